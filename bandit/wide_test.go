package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
	"vitrine/internal/scratch"
	"vitrine/mle"
	"vitrine/utility"
)

// ids are items of three numbers and one of 100 ids, whose utility is linear in both.
type ids struct {
	effect []float64
	slope  [3]float64
}

func newIDs(seed uint64) ids {
	rng, w := rand.New(rand.NewPCG(seed, 9)), ids{effect: make([]float64, 100)}
	for j := range w.effect {
		w.effect[j] = 0.8 * rng.NormFloat64()
	}
	for k := range w.slope {
		w.slope[k] = 0.5 * rng.NormFloat64()
	}
	return w
}

func (w ids) problem() Problem {
	return Problem{Features: 103, Size: 3, Rounds: 1 << 20, Constraint: assortment.AtMost(3), Numeric: []int{0, 1, 2}}
}

// play returns what a learner earns of the optimum in the last half of some rounds of 30 items.
func (w ids) play(t testing.TB, l vitrine.Learner, from, to int) float64 {
	t.Helper()
	const n = 30
	earned, optimum := 0.0, 0.0
	for s := from; s < to; s++ {
		rng := rand.New(rand.NewPCG(7, uint64(s)))
		x, u, shock := mat.NewDense(n, 103, nil), make([]float64, n), make([]float64, n+1)
		for i := range n {
			j := rng.IntN(100)
			x.Set(i, 3+j, 1)
			u[i] = w.effect[j] - 1.5
			for k := range 3 {
				v := 10 + 5*rng.NormFloat64()
				x.Set(i, k, v)
				u[i] += w.slope[k] * (v - 10) / 5
			}
		}
		vitrine.DrawShocks(shock, rng)
		c := &vitrine.Context{Features: x}
		offer := l.Policy().Offer(c, rng)
		fatal.If(t, l.Observe(vitrine.Round{Context: c, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u, shock)}))
		if s >= (from+to)/2 {
			_, best := assortment.Maximize(nil, assortment.AtMost(3), u, nil)
			optimum, earned = optimum+best, earned+vitrine.ExpectedRevenue(offer.Assortment, u, nil)
		}
	}
	return earned / optimum
}

// Wide learns the effects of ids and the slopes of numbers; without the ids it would earn far less.
func TestWideLearnsIDs(t *testing.T) {
	var w ids
	var l *Wide
	const stores = 4
	share, correlation, scale := 0.0, 0.0, 0.0
	for seed := range uint64(stores) {
		w = newIDs(seed)
		l = must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide)
		share += w.play(t, l, 0, 700) / stores
		sum, xx, yy := 0.0, 0.0, 0.0
		for j, v := range w.effect {
			mode := l.line.index([]int{3 + j}, []float64{1})
			sum, xx, yy = sum+v*mode, xx+v*v, yy+mode*mode
		}
		correlation += sum / math.Sqrt(xx*yy) / stores
		scale += l.line.spread / stores
	}
	if !(share > 0.88 && correlation > 0.55 && scale > 0.4 && scale < 1.2) {
		t.Errorf("earns %.3f of the optimum; the effects have the correlation %.2f with the truth and the standard deviation %.2f, want about 0.8", share, correlation, scale)
	}
	t.Logf("earns %.3f; correlation %.2f, standard deviation %.2f", share, correlation, scale)
	fresh := must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide)
	data := fatal.Or(l.MarshalBinary())(t)
	fatal.If(t, fresh.UnmarshalBinary(data))
	w.play(t, l, 700, 740)
	w.play(t, fresh, 700, 740)
	a, _ := l.MarshalBinary()
	b, _ := fresh.MarshalBinary()
	if !slices.Equal(a, b) {
		t.Error("a restored learner learns other bytes")
	}
}

// wideRows returns items with the numeric columns 0 and 2 and indicators, and the same as a dense linear utility reads them: the
// standardised numbers, 1, and the columns 1, 3, 4, 5.
func wideRows(n int, z standardisation, rng *rand.Rand) (x, dense *mat.Dense) {
	x, dense = mat.NewDense(n, 6, nil), mat.NewDense(n, 7, nil)
	for i := range n {
		x.SetRow(i, []float64{rng.NormFloat64(), float64(rng.IntN(2)), rng.NormFloat64(), float64(i % 2), 0, -0.5})
		dense.SetRow(i, []float64{(x.At(i, 0) - z.shift[0]) / z.scale[0], (x.At(i, 2) - z.shift[1]) / z.scale[1], 1, x.At(i, 1), x.At(i, 3), x.At(i, 4), x.At(i, 5)})
	}
	return x, dense
}

// varianceOf returns the variance of the index of an item.
func varianceOf(l *wideLine, column []int, value []float64) float64 {
	v := make([]float64, 1)
	l.indexVariances(v, &entries{[]int{len(column)}, column, value}, 0, 1)
	return v[0]
}

// As long as the block has room, rounds move the posterior as the extended Kalman filter of all features does.
func TestWideIsAKalmanFilter(t *testing.T) {
	rng := newRand()
	l := newWideLine(6, 7, []int{0, 2}, 1)
	l.z = standardisation{[]float64{0.3, -1}, []float64{2, 0.5}}
	m := utility.NewLinear(7, false)
	prior := []float64{4, 4, 0.25, 4, 4, 4, 4}
	want, err := mle.NewLaplace(&mle.NLL{Model: m, Choices: mle.NewChoices(7), Prior: prior}, make([]float64, 7))
	fatal.If(t, err)
	for s := range 12 {
		x, dense := wideRows(3, l.z, rng)
		c := mle.NewChoices(7)
		c.AppendRows(dense, vitrine.Choice(s%4))
		l.learn(x, vitrine.Choice(s%4))
		// A step of the filter with the information at the mode before it; NewLaplace halves no such step.
		if want, err = want.Step(&mle.NLL{Model: m, Choices: c}); err != nil {
			t.Fatal(err)
		}
		f := l.freeze()
		x, dense = wideRows(2, l.z, rng)
		var rows entries
		rows.scan(f, x)
		for i := range 2 {
			row := dense.RawRowView(i)
			index, of := 0.0, make([]float64, 7) // of all but the first slope and the intercept
			for j, v := range row {
				if j != 0 && j != 2 {
					index, of[j] = index+v*want.Mode[j], v
				}
			}
			column, value := rows.row(i)
			wantNear(t, "an index", f.index(column, value), index, 1e-9)
			wantNear(t, "its variance", varianceOf(f, column, value), want.Variance(of), 1e-9)
		}
		wantNear(t, "a slope", l.mean[0], want.Mode[0], 1e-9)
		wantNear(t, "the intercept", l.mean[2], want.Mode[2], 1e-9)
	}
}

// With many numbers a surprising choice is no reason for a long step, and noise none for slopes.
func TestWideDoesNotRunAway(t *testing.T) {
	const numbers = 150
	p := Problem{Features: numbers, Size: 4, Rounds: 1000, Constraint: assortment.AtMost(4)}
	for j := range numbers {
		p.Numeric = append(p.Numeric, j)
	}
	for seed := range uint64(3) {
		l, rng := must(NewWide(p, newRand())).(*Wide), rand.New(rand.NewPCG(seed, 7))
		if first := l.line.slope; first <= 0.2 || first >= 0.25 {
			t.Errorf("the first slope is %v, want ½ √(30/150)", first)
		}
		for range 120 {
			x := mat.NewDense(4, numbers, nil)
			for i := range 4 {
				for j := range numbers {
					x.Set(i, j, rng.NormFloat64())
				}
			}
			r := vitrine.Round{Context: &vitrine.Context{Features: x}, Offer: vitrine.Offer{Assortment: vitrine.Assortment{0, 1, 2, 3}}, Choice: vitrine.Choice(rng.IntN(5))}
			fatal.If(t, l.Observe(r))
		}
		if l.line.slope > 0.2 || mat.Norm(mat.NewVecDense(numbers, l.line.mean[:numbers]), 2) > 2 {
			t.Errorf("of noise τ is %v, and the slopes have the length %v", l.line.slope, mat.Norm(mat.NewVecDense(numbers, l.line.mean[:numbers]), 2))
		}
	}
}

// A step is halved until its loss is at most 1 above that of none.
func TestWideShortensSteps(t *testing.T) {
	s := mat.NewSymDense(2, []float64{9, 2, 2, 4})
	for _, want := range []float64{1, 0.5, 0.25, 0.0625} {
		u, a := []float64{1, -1}, []float64{3 / want / 4, -2 / want / 4}
		whole := slices.Clone(a)
		shorten(a, u, s, 1)
		loss := func(share float64) float64 {
			v := mat.NewVecDense(2, nil)
			v.MulVec(s, mat.NewVecDense(2, whole))
			p := make([]float64, 3)
			vitrine.Probabilities(p, []float64{u[0] - share*v.AtVec(0), u[1] - share*v.AtVec(1)})
			return share*share*(whole[0]*v.AtVec(0)+whole[1]*v.AtVec(1))/2 - math.Log(p[1])
		}
		share := a[0] / whole[0]
		if share != math.Exp2(math.Round(math.Log2(share))) || a[1] != share*whole[1] || loss(share) > loss(0)+1 || share < 1 && loss(2*share) <= loss(0)+1 {
			t.Errorf("of the step %v remains %v", whole, a)
		}
	}
	small := []float64{0.01, 0.02}
	if shorten(small, []float64{1, -1}, s, 1); small[0] != 0.01 {
		t.Errorf("a small step becomes %v", small)
	}
}

// Indicators that find no place in the block have no covariances: a round from the prior moves the means as the filter of all
// features does, and the information is the diagonal of the Fisher information.
func TestWideBesideTheBlock(t *testing.T) {
	rng := newRand()
	l := newWideLine(6, 4, []int{0, 2}, 1) // room for one
	l.z = standardisation{[]float64{0.3, -1}, []float64{2, 0.5}}
	x, dense := wideRows(3, l.z, rng)
	x.Set(0, 1, 1)
	dense.Set(0, 3, 1)
	c := mle.NewChoices(7)
	c.AppendRows(dense, 2)
	loss := &mle.NLL{Model: utility.NewLinear(7, false), Choices: c}
	prior := fatal.Or(mle.NewLaplace(&mle.NLL{Model: loss.Model, Choices: mle.NewChoices(7), Prior: []float64{4, 4, 0.25, 4, 4, 4, 4}}, make([]float64, 7)))(t)
	want := fatal.Or(prior.Step(loss))(t)
	l.learn(x, 2)
	fisher := loss.Fisher(nil, make([]float64, 7))
	if !slices.Equal(l.joined, []int{1}) {
		t.Fatalf("the block has the indicators %v, want the first that was shown", l.joined)
	}
	for k, v := range l.mean {
		wantNear(t, "a parameter of the block", v, want.Mode[k], 1e-12)
	}
	g, _ := l.information()
	for i := range 4 {
		for j := range 4 {
			wantNear(t, "information of the block", g.At(i, j), fisher.At(i, j), 1e-12)
		}
	}
	for k, j := range map[int]int{4: 3, 5: 4, 6: 5} {
		wantNear(t, "an effect beside the block", l.mode(j), want.Mode[k], 1e-12)
		wantNear(t, "its information", l.known[j], fisher.At(k, k), 1e-12)
	}
	// The index of an item has the variances of both.
	f := l.freeze()
	h := mat.NewSymDense(4, nil)
	for i := range 4 {
		for j := range 4 {
			h.SetSym(i, j, fisher.At(i, j))
		}
		h.SetSym(i, i, h.At(i, i)+[]float64{4, 4, 0.25, 4}[i])
	}
	var inverse mat.Dense
	fatal.If(t, inverse.Inverse(h))
	wantNear(t, "the variance of an index", varianceOf(f, []int{1, 2, 3, 5}, []float64{1, 0.7, -2, 0.5}),
		inverse.At(3, 3)+0.49*inverse.At(1, 1)+1.4*inverse.At(1, 3)+4*l.variance(3)+0.25*l.variance(5), 1e-12)
	// What is frozen does not change.
	all, ones := []int{1, 2, 3, 4, 5}, []float64{1, 1, 1, 1, 1}
	index, variance := f.index(all, ones), varianceOf(f, all, ones)
	for s := range 5 {
		x, _ := wideRows(3, l.z, rng)
		l.learn(x, vitrine.Choice(s%3))
	}
	l.limit = 7
	l.learn(x, 1)
	if len(l.joined) < 2 || f.index(all, ones) != index || varianceOf(f, all, ones) != variance {
		t.Errorf("a frozen index is %v ± %v, and was %v ± %v", f.index(all, ones), varianceOf(f, all, ones), index, variance)
	}
}

// Many entries of an item have the variance that the sum over their pairs has.
func TestWideVarianceOfManyEntries(t *testing.T) {
	rng := newRand()
	l := newWideLine(40, 30, nil, 0)
	for s := range 30 {
		x := mat.NewDense(2, 40, nil)
		for j := range 40 {
			x.Set(0, j, rng.NormFloat64())
			x.Set(1, j, rng.NormFloat64())
		}
		l.learn(x, vitrine.Choice(s%3))
	}
	f := l.freeze()
	var rows entries
	x := mat.NewDense(3, 40, nil)
	for j := range 40 {
		x.Set(0, j, rng.NormFloat64())
		x.Set(2, j, rng.NormFloat64())
	}
	x.Set(1, 3, 1) // few
	rows.scan(f, x)
	got := make([]float64, 3)
	f.indexVariances(got, &rows, 0, 3)
	for i, v := range got {
		want := 0.0
		for j := range 40 {
			for k := range 40 {
				switch a, b := f.place[j], f.place[k]; {
				case a >= 0 && b >= 0:
					want += x.At(i, j) * x.At(i, k) * f.inverse.At(a, b)
				case j == k:
					want += x.At(i, j) * x.At(i, j) * f.variance(j)
				}
			}
		}
		wantNear(t, "a variance", v, want, 1e-12)
	}
	if len(l.joined) != 29 {
		t.Errorf("%d indicators are in the block, want 29", len(l.joined))
	}
}

// Damage that the decoder of numbers does not see.
func TestWideSnapshotsThatCannotBe(t *testing.T) {
	w := newIDs(1)
	for want, damage := range map[string]func(l *wideLine){
		"the column 1 in its block":          func(l *wideLine) { l.joined[0] = 1 },
		"in its block, where it cannot be":   func(l *wideLine) { l.joined[1] = l.joined[0] },
		"the column 103 in its block":        func(l *wideLine) { l.joined[0] = 103 },
		"a block of 4 parameters":            func(l *wideLine) { l.mean = l.mean[:4] },
		"standard deviations 0.01":           func(l *wideLine) { l.slope = 0.01 },
		"0.5 and 5, which must be from 0.03": func(l *wideLine) { l.slope, l.spread = 0.5, 5 },
		"the information -1 of the column 7": func(l *wideLine) { l.known[7] = -1 },
		"the information 2 of the column 2":  func(l *wideLine) { l.known[2] = 2 },
	} {
		l, restored := must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide), must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide)
		w.play(t, l, 0, 20)
		damage(l.line)
		data := fatal.Or(l.MarshalBinary())(t)
		if err := restored.UnmarshalBinary(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	a, ok := residuals(mat.NewSymDense(2, []float64{math.NaN(), 0, 0, 1}), []float64{0.2, 0.3}, 1)
	if ok {
		t.Errorf("residuals %v", a)
	}
	if v := newWideLine(3, 4, []int{0}, 1).standardised(0, 5); v != 0 {
		t.Errorf("without moments a feature is %v", v)
	}
}

// The first rounds may have no items.
func TestWideBeginsWithoutItems(t *testing.T) {
	for _, numbers := range []int{0, 3, 40} {
		p := Problem{Features: 303, Size: 3, Rounds: 100, Constraint: assortment.AtMost(3), Numeric: []int{}}
		for j := range numbers {
			p.Numeric = append(p.Numeric, j)
		}
		l := must(NewWide(p, newRand())).(*Wide)
		for _, x := range []*vitrine.Context{new(vitrine.Context), {Features: new(mat.Dense)}} {
			fatal.If(t, l.Observe(vitrine.Round{Context: x, Choice: vitrine.Outside}))
		}
		x := mat.NewDense(2, 303, nil)
		x.Set(0, 1, 2)
		x.Set(1, 300, 1)
		offer := l.Policy().Offer(&vitrine.Context{Features: x}, newRand())
		if err := l.Observe(vitrine.Round{Context: &vitrine.Context{Features: x}, Offer: offer, Choice: 1}); err != nil || len(offer.Assortment) != 2 {
			t.Fatal(offer, err)
		}
		u := make([]float64, 2)
		if l.Policy().(*widePolicy).Utilities(u, &vitrine.Context{Features: x}); math.IsNaN(u[0] + u[1]) {
			t.Errorf("%d numbers: the utilities are %v", numbers, u)
		}
	}
}

// If features move, the line has their later moments.
func TestWideFollowsItsFeatures(t *testing.T) {
	p := Problem{Features: 40, Size: 1, Rounds: 100, Constraint: assortment.AtMost(1), Numeric: []int{0}}
	l := must(NewWide(p, newRand())).(*Wide)
	for s := range 60 {
		x := mat.NewDense(2, 40, nil)
		x.Set(0, 0, float64(s))
		x.Set(1, 0, float64(s%7))
		fatal.If(t, l.Observe(vitrine.Round{Context: &vitrine.Context{Features: x}, Offer: vitrine.Offer{Assortment: vitrine.Assortment{1}}, Choice: vitrine.Choice(s % 2)}))
	}
	if now := l.seen.standardisation(); l.line.z.scale[0] < now.scale[0]/1.6 {
		t.Errorf("the scale is %v, want near %v", l.line.z.scale, now.scale)
	}
}

// An indicator that joins the block keeps what is known of it.
func TestWideJoins(t *testing.T) {
	l := newWideLine(3, 3, []int{0}, 1)
	l.known[2], l.pull[2] = 5, 2
	mode, variance := l.mode(2), l.variance(2)
	l.join(2)
	l.join(1)
	f := l.freeze()
	wantNear(t, "the mode", f.index([]int{2}, []float64{1}), mode, 1e-12)
	wantNear(t, "the variance", varianceOf(f, []int{2}, []float64{1}), variance, 1e-12)
	if !slices.Equal(l.joined, []int{2}) || l.known[2] != 0 || l.pull[2] != 0 {
		t.Errorf("joined %v, beside the block it has %v and %v", l.joined, l.known[2], l.pull[2])
	}
}

// A change of the standardisation leaves the log-likelihood ½ wᵀGw − rᵀw of all utilities as it is,
// up to a constant.
func TestWideStandardisation(t *testing.T) {
	rng := newRand()
	l := newWideLine(4, 5, []int{0, 1, 2}, 3)
	first, second := standardisation{[]float64{1, 2, 3}, []float64{1, 4, 0.5}}, standardisation{[]float64{-1, 2.5, 0}, []float64{3, 1, 0.25}}
	l.z = first
	for s := range 20 {
		x := mat.NewDense(2, 4, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), 1, 1, 2, rng.NormFloat64(), 0})
		l.learn(x, vitrine.Choice(s%3))
	}
	loss := func(g *mat.SymDense, r, w []float64) float64 {
		v := mat.NewVecDense(5, w)
		return mat.Inner(v, g, v)/2 - mat.Dot(v, mat.NewVecDense(5, r))
	}
	in := func(w []float64, z standardisation) []float64 { // of raw features to standardised ones
		v := slices.Clone(w)
		for j := range 3 {
			v[j] = w[j] * z.scale[j]
			v[3] += w[j] * z.shift[j]
		}
		return v
	}
	g, r := l.information()
	l.renew(second)
	now, pull := l.information()
	for _, w := range [][]float64{{0.1, 0.2, 0.3, 0.4, 0.5}, {1, 0, -1, 0.5, 0}, {0, 0, 0, 0, 1}} {
		wantNear(t, "the log-likelihood", loss(now, pull, in(w, second)), loss(g, r, in(w, first)), 1e-9)
	}
	if !slices.Equal(l.z.scale, second.scale) {
		t.Errorf("the standardisation is %v", l.z)
	}
}

// The scales are the mean squares of parameters, which one of the prior joins.
func TestWideScales(t *testing.T) {
	rng := newRand()
	l := newWideLine(4, 4, []int{0, 1}, 2)
	l.z = standardisation{[]float64{0, 0}, []float64{1, 1}}
	for s := range 10 {
		l.learn(mat.NewDense(2, 4, []float64{rng.NormFloat64(), rng.NormFloat64(), 1, 0, rng.NormFloat64(), rng.NormFloat64(), 0, 1}), vitrine.Choice(s%3))
	}
	if !slices.Equal(l.joined, []int{2}) || l.known[3] == 0 {
		t.Fatalf("the block has %v", l.joined)
	}
	inverse, mean := l.block.Inverse(), l.mean
	if s := (shrinkage{1e-9, 1}); s.sd() != 0.03 {
		t.Errorf("the least scale is %v", s.sd())
	}
	if s := (shrinkage{1e9, 1}); s.sd() != 3 {
		t.Errorf("the largest scale is %v", s.sd())
	}
	slope := math.Sqrt((0.25 + mean[0]*mean[0] + inverse.At(0, 0) + mean[1]*mean[1] + inverse.At(1, 1)) / 3)
	spread := math.Sqrt((0.25 + mean[3]*mean[3] + inverse.At(3, 3) + l.mode(3)*l.mode(3) + l.variance(3)) / 3)
	g, r := l.information()
	l.renew(l.z)
	wantNear(t, "τ", l.slope, slope, 1e-12)
	wantNear(t, "σ", l.spread, spread, 1e-12)
	// The posterior has the same rounds and the new priors.
	for k, p := range []float64{1 / (slope * slope), 1 / (slope * slope), 0.25, 1 / (spread * spread)} {
		g.SetSym(k, k, g.At(k, k)+p)
	}
	var w mat.VecDense
	fatal.If(t, w.SolveVec(g, mat.NewVecDense(4, r)))
	for k, v := range l.mean {
		wantNear(t, "a parameter", v, w.AtVec(k), 1e-12)
	}
}

// Of two items that differ by an id of the same mean, the one whose id is less known is shown.
func TestWideShowsWhatItDoesNotKnow(t *testing.T) {
	p := Problem{Features: 40, Size: 1, Rounds: 100, Constraint: assortment.AtMost(1), Numeric: []int{0}}
	l := must(NewWide(p, newRand())).(*Wide)
	items := func(ids ...int) *vitrine.Context {
		x := mat.NewDense(len(ids), 40, nil)
		for i, j := range ids {
			x.Set(i, j, 1)
		}
		return &vitrine.Context{Features: x}
	}
	for s := range 60 { // the id 1 sells best, and the id 2 never
		r := vitrine.Round{Context: items(1, 2, 3), Offer: vitrine.Offer{Assortment: vitrine.Assortment{0, 1, 2}}, Choice: []vitrine.Choice{1, 1, 3, vitrine.Outside}[s%4]}
		fatal.If(t, l.Observe(r))
	}
	l.line.mean[l.line.place[3]] = 0 // as that of an id never shown
	l.policy = nil
	pi := l.Policy().(*widePolicy)
	u := make([]float64, 2)
	if pi.Utilities(u, items(3, 4)); u[0] != u[1] {
		t.Errorf("without a bonus the utilities are %v", u)
	}
	for _, revenue := range [][]float64{nil, {1, 2}} {
		x, share := items(1, 4), indexOptimism*optimism
		if x.Revenue = revenue; revenue != nil {
			share = indexOptimism * revenueOptimism
		}
		var rows entries
		rows.scan(pi.line, x.Features)
		reduced := &vitrine.Context{Features: pi.line.reduce(new(scratch.Matrix), x.Features, &rows, 0), Revenue: revenue}
		for i := range 2 {
			reduced.Features.Set(i, 1, reduced.Features.At(i, 1)+share*math.Sqrt(varianceOf(pi.line, []int{1 + 3*i}, []float64{1})))
		}
		have, want := pi.Reasons(x, newRand()), pi.inner.Reasons(reduced, newRand())
		for i, v := range want.Index {
			wantNear(t, "the utility of a slot", have.Index[i], v, 1e-12)
		}
	}
	for _, x := range []*vitrine.Context{items(3, 4), items(4, 3)} {
		if i := l.Policy().Offer(x, newRand()).Assortment[0]; x.Features.At(i, 4) == 0 {
			t.Error("shows the item of the id that is known")
		}
	}
}

// Beside indicators auto has the products of the numbers with each other, and, if not all products are there, with all. Of many
// numbers it has the squares.
func TestAutoHasProductsOfNumbers(t *testing.T) {
	first := func(n int) (numeric []int) {
		for j := range n {
			numeric = append(numeric, j)
		}
		return numeric
	}
	for _, c := range []struct {
		features int
		numeric  []int
		want     []string // beside the default experts
	}{
		{8, nil, nil},
		{8, []int{}, nil},
		{3, []int{0, 1, 2}, nil},
		{8, []int{1, 4}, []string{"quadratic in [1 4]"}},
		{11, []int{1, 4}, []string{"quadratic in [1 4]", "quadratic in [1 4] with all"}},
		{12, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []string{"quadratic in [0 1 2 3 4 5 6 7 8 9 10 11]"}},
		{29, []int{0, 1, 2, 3}, []string{"quadratic in [0 1 2 3]"}}, // 10 + 100 with all, and 30
		{20, first(14), []string{"squares of the first 14"}},        // 14 · 15 / 2 + 21 products are too many
		{15, first(15), []string{"squares of the first 15"}},
		{79, first(79), []string{"squares of the first 79"}},
		{80, first(80), nil},
		{300, first(40), []string{"squares of the first 40"}},
		{60, []int{5, 9}, []string{"quadratic in [0 1]"}}, // and the index
		{60, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []string{"quadratic in [0 1 2 3 4 5 6 7 8 9]", "quadratic in [0 1 2 3 4 5 6 7 8 9] with all"}},
	} {
		p := Problem{Features: c.features, Size: 3, Rounds: 100, Constraint: assortment.AtMost(3), Numeric: c.numeric}
		l := fatal.Or(NewAuto(p, AutoOptions{}, newRand()))(t)
		bma, ok := l.(*BMA)
		if !ok {
			bma = l.(*Wide).bma
		}
		var have []string
		for _, e := range bma.experts[len(DefaultExperts(bma.p.Features)):] {
			have = append(have, e.String())
		}
		if !slices.Equal(have, c.want) {
			t.Errorf("%d features, numeric %v: has %q, want %q", c.features, c.numeric, have, c.want)
		}
	}
}

// The learner of auto is chosen by the number and the kinds of features.
func TestAutoChooses(t *testing.T) {
	numeric := func(n int) []int {
		list := []int{}
		for j := range n {
			list = append(list, j)
		}
		return list
	}
	for _, c := range []struct {
		features int
		numeric  []int
		want     string
	}{
		{3, nil, "bma-mnl"}, {30, numeric(2), "bma-mnl"}, {31, numeric(2), "wide"}, {31, nil, "bma-mnl"}, {128, nil, "bma-mnl"}, {128, numeric(128), "bma-mnl"},
		{129, nil, "wide"}, {129, numeric(129), "wide"}, {200, numeric(120), "wide"}, {40, numeric(0), "wide"}, {60, numeric(29), "wide"}, {60, numeric(30), "wide"}, {400, numeric(300), "wide"},
	} {
		p := Problem{Features: c.features, Size: 3, Rounds: 100, Constraint: assortment.AtMost(3), Numeric: c.numeric}
		l := fatal.Or(NewAuto(p, AutoOptions{}, newRand()))(t)
		name := "bma-mnl"
		experts := 0
		if w, ok := l.(*Wide); ok {
			name, experts = "wide", len(w.bma.experts)
			direct := min(len(c.numeric), 127)
			if n := w.bma.p.Features; n != direct+1 || w.line.direct != direct {
				t.Errorf("the experts of %d features have %d, %d of them as they are, want %d", c.features, n, w.line.direct, direct)
			}
			if len(w.line.numeric) != min(len(c.numeric), 255) || w.line.limit != min(c.features+1, 256) || w.line.limit != AutoBlock(p) {
				t.Errorf("of %d features %d are numeric, and %d in the block", c.features, len(w.line.numeric), w.line.limit)
			}
		} else {
			experts = len(l.(*BMA).experts)
		}
		if name != c.want || experts != len(AutoExperts(p)) {
			t.Errorf("%d features, numeric %v: %s of %d experts, want %s of %d", c.features, c.numeric, name, experts, c.want, len(AutoExperts(p)))
		}
	}
	for _, features := range []int{30, 31} {
		p := Problem{Features: features, Size: 3, Rounds: 100, Constraint: assortment.AtMost(3), Numeric: numeric(2)}
		l, err := NewAuto(p, AutoOptions{PositionEffects: true}, newRand())
		if features == 30 && (err != nil || len(l.Policy().(*mixture).PlaceEffects()) != 3) {
			t.Errorf("%d features with position effects: %T, error %v", features, l, err)
		}
		if features == 31 && (err == nil || !strings.Contains(err.Error(), "at most 30 columns, or 128 if all are numbers, and these have 31")) {
			t.Errorf("%d features with position effects: %T, error %v", features, l, err)
		}
	}
	for _, bad := range [][]int{{-1}, {3}, {1, 0}, {1, 1}} {
		p := Problem{Features: 3, Size: 3, Rounds: 100, Constraint: assortment.AtMost(3), Numeric: bad}
		if _, err := NewAuto(p, AutoOptions{}, newRand()); err == nil || !strings.Contains(err.Error(), "must be distinct columns of 3 features") {
			t.Errorf("numeric columns %v: error %v", bad, err)
		}
	}
}
