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
		if err := l.Observe(vitrine.Round{Context: c, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u, shock)}); err != nil {
			t.Fatal(err)
		}
		if s >= (from+to)/2 {
			_, best := assortment.Maximize(nil, assortment.AtMost(3), u, nil)
			optimum, earned = optimum+best, earned+vitrine.ExpectedRevenue(offer.Assortment, u, nil)
		}
	}
	return earned / optimum
}

// Wide learns the effects of ids and the slopes of numbers; without the ids it would earn far less.
func TestWideLearnsIDs(t *testing.T) {
	w := newIDs(1)
	l := must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide)
	if share := w.play(t, l, 0, 700); share < 0.9 {
		t.Errorf("earns %.3f of the optimum", share)
	}
	sum, xx, yy := 0.0, 0.0, 0.0
	for j, v := range w.effect {
		mode := l.line.mode(3 + j)
		sum, xx, yy = sum+v*mode, xx+v*v, yy+mode*mode
	}
	if r := sum / math.Sqrt(xx*yy); r < 0.6 {
		t.Errorf("the effects' correlation with the truth is %.2f", r)
	}
	if s := l.line.spread; s < 0.4 || s > 1.2 {
		t.Errorf("the effects' standard deviation is %v, want about 0.8", s)
	}
	fresh := must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide)
	data, err := l.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	w.play(t, l, 700, 740)
	w.play(t, fresh, 700, 740)
	a, _ := l.MarshalBinary()
	b, _ := fresh.MarshalBinary()
	if !slices.Equal(a, b) {
		t.Error("a restored learner learns other bytes")
	}
}

// Version 1 has BMA-MNL of version 4 within, and version 2 that of version 5.
func TestWideReadsItsEarlierVersions(t *testing.T) {
	w := newIDs(1)
	for version := 1; version <= 2; version++ {
		l, restored := must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide), must(NewAuto(w.problem(), AutoOptions{}, newRand())).(*Wide)
		w.play(t, l, 0, 40)
		l.bma.wait()
		l.identity.version = version
		if version == 1 {
			l.bma.flat = nil
			if l.bma.job != nil {
				l.bma.job.result.flat = nil
			}
		}
		data, err := l.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := restored.UnmarshalBinary(data); err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if !slices.Equal(restored.bma.base.posterior.Mode, l.bma.base.posterior.Mode) || restored.bma.flat == nil {
			t.Errorf("version %d: the experts are others", version)
		}
		w.play(t, restored, 40, 60)
	}
}

// One round from the prior moves the mean as the extended Kalman filter of all features at once
// does, and its information is the block and the diagonal of the Fisher information.
func TestAWideStepIsAKalmanStep(t *testing.T) {
	rng := newRand()
	const d = 6
	l := newWideLine(d, []int{0, 2})
	l.standardise(standardisation{[]float64{0.3, -1}, []float64{2, 0.5}})
	x := mat.NewDense(3, d, nil)
	for i := range 3 {
		x.SetRow(i, []float64{rng.NormFloat64(), 1, rng.NormFloat64(), float64(i % 2), 0, -0.5})
	}
	// The same features and priors, dense: numbers, intercept, indicators.
	z := mat.NewDense(3, d+1, nil)
	for i := range 3 {
		z.SetRow(i, []float64{(x.At(i, 0) - 0.3) / 2, (x.At(i, 2) + 1) / 0.5, 1, x.At(i, 1), x.At(i, 3), x.At(i, 4), x.At(i, 5)})
	}
	c := mle.NewChoices(d + 1)
	c.AppendRows(z, 2)
	m := utility.NewLinear(d+1, false)
	prior, err := mle.NewLaplace(&mle.NLL{Model: m, Choices: mle.NewChoices(d + 1), Prior: []float64{4, 4, 0.25, 4, 4, 4, 4}}, make([]float64, d+1))
	if err != nil {
		t.Fatal(err)
	}
	loss := &mle.NLL{Model: m, Choices: c}
	want, err := prior.Step(loss)
	if err != nil {
		t.Fatal(err)
	}
	l.learn(x, 2)
	for k, v := range l.mean {
		wantNear(t, "a slope", v, want.Mode[k], 1e-12)
	}
	fisher := loss.Fisher(nil, make([]float64, d+1))
	for k, j := range []int{1, 3, 4, 5} {
		wantNear(t, "an effect", l.mode(j), want.Mode[3+k], 1e-12)
		wantNear(t, "its information", l.effect[j], fisher.At(3+k, 3+k), 1e-12)
	}
	for i := range 3 {
		for j := i; j < 3; j++ {
			wantNear(t, "the information of the block", l.block.At(i, j), fisher.At(i, j), 1e-12)
		}
	}
}

// A change of the standardisation leaves the log-likelihood ½ wᵀGw − rᵀw of all utilities as it is,
// up to a constant.
func TestWideStandardisation(t *testing.T) {
	rng := newRand()
	l := newWideLine(3, []int{0, 1, 2})
	first, second := standardisation{[]float64{1, 2, 3}, []float64{1, 4, 0.5}}, standardisation{[]float64{-1, 2.5, 0}, []float64{3, 1, 0.25}}
	l.standardise(first)
	for s := range 20 {
		x := mat.NewDense(2, 3, []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), 1, 2, rng.NormFloat64()})
		l.learn(x, vitrine.Choice(s%3))
	}
	loss := func(w []float64) float64 {
		v := mat.NewVecDense(4, w)
		return mat.Inner(v, l.block, v)/2 - mat.Dot(v, mat.NewVecDense(4, l.natural))
	}
	var before []float64
	slopes := [][]float64{{0.1, 0.2, 0.3, 0.4}, {1, 0, -1, 0.5}, {0, 0, 0, 0}}
	in := func(w []float64, z standardisation) []float64 { // of raw features to standardised ones
		v := slices.Clone(w)
		for j := range 3 {
			v[j] = w[j] * z.scale[j]
			v[3] += w[j] * z.shift[j]
		}
		return v
	}
	for _, w := range slopes {
		before = append(before, loss(in(w, first)))
	}
	l.standardise(second)
	for k, w := range slopes {
		wantNear(t, "the log-likelihood", loss(in(w, second)), before[k], 1e-9)
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
		{3, nil, "bma-mnl"}, {30, numeric(2), "bma-mnl"}, {31, numeric(2), "wide"}, {31, nil, "bma-mnl"}, {100, nil, "bma-mnl"},
		{101, nil, "wide"}, {200, numeric(120), "wide"}, {40, numeric(0), "wide"},
	} {
		p := Problem{Features: c.features, Size: 3, Rounds: 100, Constraint: assortment.AtMost(3), Numeric: c.numeric}
		l, err := NewAuto(p, AutoOptions{}, newRand())
		if err != nil {
			t.Fatal(err)
		}
		name := "bma-mnl"
		experts := 0
		if w, ok := l.(*Wide); ok {
			name, experts = "wide", len(w.bma.experts)
			if n := w.bma.p.Features; n > 30 {
				t.Errorf("the experts of %d features have %d", c.features, n)
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
		if features == 31 && (err == nil || !strings.Contains(err.Error(), "at most 30 features, and these have 31")) {
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
