package bandit

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// nothing is a family without parameters.
type nothing struct{ utility.Model }

func (nothing) NumFeatures() int { return paperFeatures }

func (nothing) NumParams() int { return 0 }

func (nothing) String() string { return "nothing" }

// improper is a family with an invalid prior.
type improper struct{ *utility.Linear }

func (improper) Precisions(dst []float64) { clear(dst) }

func TestBadExpertsAreNamed(t *testing.T) {
	d := paperFeatures
	for want, experts := range map[string][]Expert{
		"there are no experts": nil,
		"expert 2, nothing, has no parameters": {
			{Model: utility.NewQuadratic(d)}, {Model: nothing{}}},
		"expert 1, quadratic, has 5 features, the problem has 3": {
			{Model: utility.NewQuadratic(5)}},
		"experts 1 and 3 are both quadratic": {
			{Model: utility.NewQuadratic(d)}, {Model: utility.NewLinear(d, true)}, {Model: utility.NewQuadratic(d)}},
		"expert 1, linear of memory 0.5: memory_rounds = 0.5: must be finite and at least": {
			{Model: utility.NewLinear(d, false), MemoryRounds: 0.5}},
		"memory_rounds = -1": {
			{Model: utility.NewLinear(d, false), MemoryRounds: -1}},
		"memory_rounds = NaN": {
			{Model: utility.NewLinear(d, false), MemoryRounds: math.NaN()}},
		"expert 1, linear: mle: parameter 0 has a prior of precision 0: must be positive": {
			{Model: improper{utility.NewLinear(d, false)}}},
	} {
		expect.Part(NewBMA(paperProblem(), experts, DefaultBMAOptions(), newRand()))(t, want)
	}
	// The same family with a memory is another expert.
	newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(d, true)},
		{Model: utility.NewLinear(d, true), MemoryRounds: 50}})
}

// poisoned is a family with gradients that are not numbers where the first
// feature, standardised, is beyond 40.
type poisoned struct{ byRows }

func (poisoned) String() string { return "poisoned" }

func (m poisoned) Gradients(g *mat.Dense, w []float64, x *mat.Dense) {
	m.Model.Gradients(g, w, x)
	for i := range x.RawMatrix().Rows {
		if x.At(i, 0) > 40 {
			g.Set(i, 0, math.NaN())
		}
	}
}

// A model's panic in a full fit reaches the caller, who may recover. On a goroutine of its own it would end the
// process.
func TestPanicOfAModelInAFit(t *testing.T) {
	for _, many := range []int{1, 3} {
		experts := []Expert{{Model: utility.NewLinear(paperFeatures, false)}}
		var armed atomic.Bool
		for k := range many {
			experts = append(experts, Expert{Model: &exploding{newByRows(paperFeatures), k, &armed}})
		}
		l := newBMA(t, paperProblem(), experts)
		play(t, l, product, 0, 2)
		armed.Store(true)
		func() {
			defer func() {
				if got := recover(); got != "no ink" {
					t.Errorf("%d models panic, and Observe with %v, want no ink", many, got)
				}
			}()
			err := l.Observe(vitrine.Round{Context: paperContext(0),
				Offer: vitrine.Offer{Assortment: vitrine.Assortment{1}}, Choice: 1})
			t.Errorf("%d models panic in a fit, and Observe returns %v", many, err)
		}()
	}
}

// exploding is a family that panics in a fit after it is armed.
type exploding struct {
	byRows
	number int
	now    *atomic.Bool
}

func (m *exploding) String() string { return fmt.Sprintf("exploding %d", m.number) }

func (m *exploding) Utilities(u, w []float64, x *mat.Dense) {
	if n, _ := x.Dims(); n > 1 && m.now.Load() { // more rows than the round's
		panic("no ink")
	}
	m.Model.Utilities(u, w, x)
}

// An expert that cannot be fitted weighs 0 until it can; if no expert can, all weigh the same.
func TestExpertsThatCannotBeFittedRest(t *testing.T) {
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)},
		{Model: cliffs{newByRows(paperFeatures)}}})
	play(t, l, product, 0, 1)
	if got := l.weights(); math.Abs(got[0]-1) > 1e-15 || got[1] != 0 {
		t.Errorf("weights %v, want all on the first", got)
	}
	l = newBMA(t, paperProblem(), []Expert{{Model: utility.NewQuadratic(paperFeatures)},
		{Model: cliffs{newByRows(paperFeatures)}}})
	play(t, l, product, 0, 1)
	l.experts[0].wake = 1 << 20
	if got := l.weights(); got[0] != 0.5 || got[1] != 0.5 {
		t.Errorf("weights %v of experts that all rest, want equal ones", got)
	}
}

// cliffs is a family with information that overflows everywhere except at 0, where it begins.
type cliffs struct{ byRows }

func (cliffs) String() string { return "cliffs" }

func (cliffs) Init(w []float64, _ *rand.Rand) { clear(w) }

func (m cliffs) Gradients(g *mat.Dense, w []float64, x *mat.Dense) {
	m.Model.Gradients(g, w, x)
	if floats.Norm(w, 1) > 0 {
		g.Scale(1e200, g)
	}
}

// Snapshots of parts that do not belong together are refused, even with a right checksum.
func TestForgedPartsAreRefused(t *testing.T) {
	for want, forge := range map[string]func(l *BMA){
		"data of 20 rounds, of which 21 are counted": func(l *BMA) { l.rounds++ },
		"data of 20 rounds, of which 19 are counted": func(l *BMA) { l.rounds-- },
		"and no moments of their features":           func(l *BMA) { l.z, l.seen.n = standardisation{}, 0 },
		"the moments of 0 features, want 3":          func(l *BMA) { l.z.shift = nil },
		"the standard deviation of a feature is 0":   func(l *BMA) { l.z.scale[1] = 0 },
		"the moments of 0 items, and data of 60":     func(l *BMA) { l.seen.n = 0 },
		"the bytes end early": func(l *BMA) {
			l.experts[len(l.experts)-1].posterior = l.experts[0].posterior
		},
		"where there is 0 or 1": func(l *BMA) { l.experts[3].units = [][]float64{{1}} },
		"the weights of the beliefs sum to NaN, want 1": func(l *BMA) {
			l.base.posterior.LogEvidence = math.MaxFloat64
			i := slices.IndexFunc(l.experts, func(e *expert) bool { return e.unit[0] != nil })
			l.experts[i].unit[0].logMean = math.MaxFloat64
		},
	} {
		l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
		play(t, l, product, 0, 20)
		forge(l)
		data := fatal.Or(l.MarshalBinary())(t)
		fresh := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
		before, _ := fresh.MarshalBinary()
		expect.Part(fresh.UnmarshalBinary(data))(t, want)
		if after, _ := fresh.MarshalBinary(); !bytes.Equal(before, after) {
			t.Errorf("%s: the refused snapshot changed the learner", want)
		}
	}
}

// A fit under way that folds rounds missing in the snapshot is refused.
func TestForgedFitsAreRefused(t *testing.T) {
	create := func() *BMA { return newBMA(t, paperProblem(), DefaultExperts(paperFeatures)) }
	l := create()
	rounds := 40
	for play(t, l, product, 0, rounds); l.job == nil; rounds++ {
		play(t, l, product, rounds, rounds+1)
	}
	l.wait()
	refusal := fmt.Sprintf("snapshot: a fit folds %d of %d rounds", rounds+1, rounds)
	for fold, want := range map[int]string{0: "", rounds: "", rounds + 1: refusal} {
		l.job.fold = fold
		data := fatal.Or(l.MarshalBinary())(t)
		if err := create().UnmarshalBinary(data); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("folds %d of %d rounds: %v", fold, rounds, err)
		}
	}
}
