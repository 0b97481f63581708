package bandit

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// Damage that the decoder of numbers does not see.
func TestWideSnapshotsThatCannotBe(t *testing.T) {
	w := newIDs(1)
	for want, damage := range map[string]func(l *wideLine){
		"the column 1 is in the block":       func(l *wideLine) { l.joined[0] = 1 },
		"in the block, where it cannot be":   func(l *wideLine) { l.joined[1] = l.joined[0] },
		"the column 103 is in the block":     func(l *wideLine) { l.joined[0] = 103 },
		"a block of 4 parameters":            func(l *wideLine) { l.mean = l.mean[:4] },
		"standard deviations 0.01":           func(l *wideLine) { l.slope = 0.01 },
		"0.5 and 5, which must be from 0.03": func(l *wideLine) { l.slope, l.spread = 0.5, 5 },
		"the information of column 7 is -1":  func(l *wideLine) { l.known[7] = -1 },
		"the information of column 2 is 2":   func(l *wideLine) { l.known[2] = 2 },
	} {
		l, restored := must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide),
			must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide)
		w.play(t, l, 0, 20)
		damage(l.line)
		data := fatal.Or(l.MarshalBinary())(t)
		expect.Part(restored.UnmarshalBinary(data))(t, want)
	}
	a, ok := residuals(mat.NewSymDense(2, []float64{math.NaN(), 0, 0, 1}), []float64{0.2, 0.3}, []vitrine.Choice{1})
	if ok {
		t.Errorf("residuals %v", a)
	}
	expect.Equal(t, newWideLine(3, 4, []int{0}, 1).standardised(0, 5), 0, "without moments a feature is")
}

// The first rounds may be empty.
func TestWideBeginsWithoutItems(t *testing.T) {
	for _, numbers := range []int{0, 3, 40} {
		p := Problem{NumFeatures: 303, MaxShown: 3, Rounds: 100, Constraint: assortment.AtMost(3), Numeric: []int{}}
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
		if err := l.Observe(vitrine.Round{Context: &vitrine.Context{Features: x}, Offer: offer,
			Choice: 1}); err != nil || len(offer.Assortment) != 2 {
			t.Fatal(offer, err)
		}
		u := make([]float64, 2)
		if l.Policy().(*widePolicy).Utilities(u, &vitrine.Context{Features: x}); math.IsNaN(u[0] + u[1]) {
			t.Errorf("%d numbers: the utilities are %v", numbers, u)
		}
	}
}

// If features move, the line follows their later moments.
func TestWideFollowsItsFeatures(t *testing.T) {
	p := Problem{NumFeatures: 40, MaxShown: 1, Rounds: 100, Constraint: assortment.AtMost(1), Numeric: []int{0}}
	l := must(NewWide(p, newRand())).(*Wide)
	for s := range 60 {
		x := mat.NewDense(2, 40, nil)
		x.Set(0, 0, float64(s))
		x.Set(1, 0, float64(s%7))
		fatal.If(t, l.Observe(vitrine.Round{Context: &vitrine.Context{Features: x},
			Offer: vitrine.Offer{Assortment: vitrine.Assortment{1}}, Choice: vitrine.Choice(s % 2)}))
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
	first, second := standardisation{shift: []float64{1, 2, 3}, scale: []float64{1, 4, 0.5}},
		standardisation{shift: []float64{-1, 2.5, 0}, scale: []float64{3, 1, 0.25}}
	l.z = first
	for s := range 20 {
		x := mat.NewDense(2, 4, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), 1, 1, 2,
			rng.NormFloat64(), 0})
		l.learn(x, []vitrine.Choice{vitrine.Choice(s % 3)})
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
	expect.List(t, l.z.scale, second.scale, "the standardisation is", l.z)
}

// The scales are the mean squares of parameters, which one of the prior joins.
func TestWideScales(t *testing.T) {
	rng := newRand()
	l := newWideLine(4, 4, []int{0, 1}, 2)
	l.z = standardisation{shift: []float64{0, 0}, scale: []float64{1, 1}}
	for s := range 10 {
		l.learn(mat.NewDense(2, 4, []float64{rng.NormFloat64(), rng.NormFloat64(), 1, 0, rng.NormFloat64(),
			rng.NormFloat64(), 0, 1}), []vitrine.Choice{vitrine.Choice(s % 3)})
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
	// The posterior combines the same rounds and the new priors.
	for k, p := range []float64{1 / (slope * slope), 1 / (slope * slope), 0.25, 1 / (spread * spread)} {
		g.SetSym(k, k, g.At(k, k)+p)
	}
	var w mat.VecDense
	fatal.If(t, w.SolveVec(g, mat.NewVecDense(4, r)))
	for k, v := range l.mean {
		wantNear(t, "a parameter", v, w.AtVec(k), 1e-12)
	}
}
