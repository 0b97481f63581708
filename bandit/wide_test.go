package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/mle"
	"vitrine/utility"
)

// ids are items of three numbers and one of 100 ids, with a utility that is linear in both.
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
	return Problem{NumFeatures: 103, MaxShown: 3, Rounds: 1 << 20, Constraint: assortment.AtMost(3),
		Numeric: []int{0, 1, 2}}
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
		fatal.If(t, l.Observe(vitrine.Round{Context: c, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u,
			shock)}))
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
		t.Errorf("earns %.3f of the optimum; the effects have the correlation %.2f with the truth and the "+
			"standard deviation %.2f, want about 0.8", share, correlation, scale)
	}
	t.Logf("earns %.3f; correlation %.2f, standard deviation %.2f", share, correlation, scale)
	fresh := must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide)
	data := fatal.Or(l.MarshalBinary())(t)
	fatal.If(t, fresh.UnmarshalBinary(data))
	w.play(t, l, 700, 740)
	w.play(t, fresh, 700, 740)
	a, _ := l.MarshalBinary()
	b, _ := fresh.MarshalBinary()
	expect.List(t, a, b, "a restored learner learns other bytes")
}

// A snapshot is refused if the experts within cross other columns of the customer.
func TestWideSnapshotsNameTheCustomer(t *testing.T) {
	p := Problem{NumFeatures: 200, MaxShown: 3, Rounds: 400, Constraint: assortment.AtMost(3)}
	for j := range 16 {
		p.Numeric = append(p.Numeric, j)
	}
	learner := func(customer ...int) *Wide {
		p.Customer = customer
		return must(NewWide(p, newRand())).(*Wide)
	}
	snapshot := fatal.Or(learner(1, 2).MarshalBinary())(t)
	expect.Error(t, learner(1, 2).UnmarshalBinary(snapshot), nil)
	expect.Part(learner(3, 4).UnmarshalBinary(snapshot))(t, "the customer's at positions [1 2], want ")
	expect.Part(learner().UnmarshalBinary(snapshot))(t, "the customer's at positions [1 2], want ")
}

// wideRows returns items with the numeric columns 0 and 2 and indicators, and the same as a dense linear utility reads
// them: the standardised numbers, 1, and the columns 1, 3, 4, 5.
func wideRows(n int, z standardisation, rng *rand.Rand) (x, dense *mat.Dense) {
	x, dense = mat.NewDense(n, 6, nil), mat.NewDense(n, 7, nil)
	for i := range n {
		x.SetRow(i, []float64{rng.NormFloat64(), float64(rng.IntN(2)), rng.NormFloat64(), float64(i % 2), 0, -0.5})
		dense.SetRow(i, []float64{(x.At(i, 0) - z.shift[0]) / z.scale[0], (x.At(i, 2) - z.shift[1]) / z.scale[1], 1,
			x.At(i, 1), x.At(i, 3), x.At(i, 4), x.At(i, 5)})
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
	l.z = standardisation{shift: []float64{0.3, -1}, scale: []float64{2, 0.5}}
	m := utility.NewLinear(7, false)
	prior := []float64{4, 4, 0.25, 4, 4, 4, 4}
	want, err := mle.NewLaplace(&mle.NLL{Model: m, Choices: mle.NewChoices(7), Prior: prior}, make([]float64, 7))
	fatal.If(t, err)
	for s := range 12 {
		x, dense := wideRows(3, l.z, rng)
		c := mle.NewChoices(7)
		takes := []vitrine.Choice{vitrine.Choice(s % 4)}
		if s%4 > 0 && s%3 > 0 {
			takes = append(takes, slices.Repeat([]vitrine.Choice{vitrine.Choice(1 + s%2)}, s%3)...)
		}
		c.AppendRows(dense, takes[0], takes[1:]...)
		l.learn(x, takes)
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
	p := Problem{NumFeatures: numbers, MaxShown: 4, Rounds: 1000, Constraint: assortment.AtMost(4)}
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
			r := vitrine.Round{Context: &vitrine.Context{Features: x},
				Offer: vitrine.Offer{Assortment: vitrine.Assortment{0, 1, 2, 3}}, Choice: vitrine.Choice(rng.IntN(5))}
			fatal.If(t, l.Observe(r))
		}
		if l.line.slope > 0.2 || mat.Norm(mat.NewVecDense(numbers, l.line.mean[:numbers]), 2) > 2 {
			t.Errorf("of noise τ is %v, and the slopes have the length %v", l.line.slope,
				mat.Norm(mat.NewVecDense(numbers, l.line.mean[:numbers]), 2))
		}
	}
}

// A step is halved until its loss is at most 1 above the loss without a step.
func TestWideShortensSteps(t *testing.T) {
	s := mat.NewSymDense(2, []float64{9, 2, 2, 4})
	for _, want := range []float64{1, 0.5, 0.25, 0.0625} {
		u, a := []float64{1, -1}, []float64{3 / want / 4, -2 / want / 4}
		whole := slices.Clone(a)
		shorten(a, u, s, []vitrine.Choice{1})
		loss := func(share float64) float64 {
			v := mat.NewVecDense(2, nil)
			v.MulVec(s, mat.NewVecDense(2, whole))
			p := make([]float64, 3)
			vitrine.Probabilities(p, []float64{u[0] - share*v.AtVec(0), u[1] - share*v.AtVec(1)})
			return share*share*(whole[0]*v.AtVec(0)+whole[1]*v.AtVec(1))/2 - math.Log(p[1])
		}
		share := a[0] / whole[0]
		if share != math.Exp2(math.Round(math.Log2(share))) || a[1] != share*whole[1] || loss(share) > loss(0)+1 ||
			share < 1 && loss(2*share) <= loss(0)+1 {
			t.Errorf("of the step %v remains %v", whole, a)
		}
	}
	small := []float64{0.01, 0.02}
	if shorten(small, []float64{1, -1}, s, []vitrine.Choice{1}); small[0] != 0.01 {
		t.Errorf("a small step becomes %v", small)
	}
}

// Indicators outside the block keep no covariances: a round from the prior moves the means as the filter of all
// features does, and the information is the diagonal of the Fisher information.
func TestWideBesideTheBlock(t *testing.T) {
	rng := newRand()
	l := newWideLine(6, 4, []int{0, 2}, 1) // room for one
	l.z = standardisation{shift: []float64{0.3, -1}, scale: []float64{2, 0.5}}
	x, dense := wideRows(3, l.z, rng)
	x.Set(0, 1, 1)
	dense.Set(0, 3, 1)
	c := mle.NewChoices(7)
	c.AppendRows(dense, 2)
	loss := &mle.NLL{Model: utility.NewLinear(7, false), Choices: c}
	prior := fatal.Or(mle.NewLaplace(&mle.NLL{Model: loss.Model, Choices: mle.NewChoices(7),
		Prior: []float64{4, 4, 0.25, 4, 4, 4, 4}}, make([]float64, 7)))(t)
	want := fatal.Or(prior.Step(loss))(t)
	l.learn(x, []vitrine.Choice{2})
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
	// The variances of both enter an item's index.
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
	// A frozen policy does not change.
	all, ones := []int{1, 2, 3, 4, 5}, []float64{1, 1, 1, 1, 1}
	index, variance := f.index(all, ones), varianceOf(f, all, ones)
	for s := range 5 {
		x, _ := wideRows(3, l.z, rng)
		l.learn(x, []vitrine.Choice{vitrine.Choice(s % 3)})
	}
	l.limit = 7
	l.learn(x, []vitrine.Choice{1})
	if len(l.joined) < 2 || f.index(all, ones) != index || varianceOf(f, all, ones) != variance {
		t.Errorf("a frozen index is %v ± %v, and was %v ± %v", f.index(all, ones), varianceOf(f, all, ones), index,
			variance)
	}
}

// For an item with many entries, the variance equals the sum over their pairs.
func TestWideVarianceOfManyEntries(t *testing.T) {
	rng := newRand()
	l := newWideLine(40, 30, nil, 0)
	for s := range 30 {
		x := mat.NewDense(2, 40, nil)
		for j := range 40 {
			x.Set(0, j, rng.NormFloat64())
			x.Set(1, j, rng.NormFloat64())
		}
		l.learn(x, []vitrine.Choice{vitrine.Choice(s % 3)})
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
	expect.Equal(t, len(l.joined), 29, "indicators are in the block")
}
