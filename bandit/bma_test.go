package bandit

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/mle"
	"vitrine/utility"
)

// weights returns the π_e, summed over each expert's beliefs.
func (l *BMA) weights() []float64 { return l.together(l.split()[0]) }

func newBMA(t testing.TB, p Problem, experts []Expert) *BMA {
	t.Helper()
	o := DefaultBMAOptions()
	o.Candidates = 40
	l := fatal.Or(NewBMA(p, experts, o, newRand()))(t)
	return l
}

// play lets the learner meet customers of the given utility in rounds from..to.
func play(t testing.TB, l vitrine.Learner, truth func(x []float64) float64, from, to int) {
	t.Helper()
	playOf(t, paperFeatures, l, truth, from, to)
}

// playOf is play with items of d features.
func playOf(t testing.TB, d int, l vitrine.Learner, truth func(x []float64) float64, from, to int) {
	t.Helper()
	for s := from; s < to; s++ {
		rng := rand.New(rand.NewPCG(21, uint64(s)))
		x := mat.NewDense(30, d, nil)
		u, shock := make([]float64, 30), make([]float64, 31)
		for i := range u {
			for j := range d {
				x.Set(i, j, rng.NormFloat64())
			}
			u[i] = truth(x.RawRowView(i))
		}
		vitrine.DrawShocks(shock, rng)
		context := &vitrine.Context{Features: x}
		offer := l.Policy().Offer(context, rng)
		fatal.If(t, l.Observe(vitrine.Round{Context: context, Offer: offer,
			Choice: vitrine.Choose(offer.Assortment, u, shock)}))
	}
}

func product(x []float64) float64 { return 2*x[0]*x[1] - 0.5*x[2] }

// An expert that cannot take a round sits it out: it keeps its parameters, gets the linear family's forecast, and the
// others learn. At the next full fit it sits out just that round.
func TestAnExpertSitsOutWhatItCannotTake(t *testing.T) {
	d := paperFeatures
	for _, memory := range []float64{0, 1e12} {
		l := newBMA(t, paperProblem(), []Expert{
			{Model: utility.NewLinear(d, true)},
			{Model: poisoned{newByRows(d)}, MemoryRounds: memory},
		})
		for s := 0; s < 31 || l.job != nil || l.nextFit == l.rounds+1; s++ {
			play(t, l, product, s, s+1)
		}
		mode, evidence, other := l.experts[1].posterior.Mode, l.experts[1].posterior.LogEvidence, l.experts[0].posterior
		x := paperContext(1)
		x.Features.Set(2, 0, 123)
		base := l.base.posterior.Mode
		fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{1, 2}},
			Choice: 1}))
		for j, v := range l.experts[1].posterior.Mode {
			wantNear(t, "the mode of the one that sits out", v, mode[j], 1e-9)
		}
		// Its forecast is the linear family's, by hand.
		u := make([]float64, 2)
		for k, i := range []int{1, 2} {
			for j := range d {
				u[k] += base[j] * (x.Features.At(i, j) - l.z.shift[j]) / l.z.scale[j]
			}
			u[k] += base[d]
		}
		wantNear(t, "its evidence", l.experts[1].posterior.LogEvidence, evidence+u[0]-vitrine.LogSumExp1(u), 1e-9)
		if l.experts[0].posterior == other {
			t.Error("the other expert did not learn")
		}
		played := l.rounds
		play(t, l, product, played, 80)
		if w := l.weights(); !(w[1] > 0.01) || l.experts[1].wake != 0 {
			t.Errorf("memory %v: the weights are %v at the end, and the one that sat out wakes at %d", memory, w,
				l.experts[1].wake)
		}
		// Both are the linear family, so one round is all that they differ by.
		for j, v := range l.experts[1].posterior.Mode {
			wantNear(t, "a parameter", v, l.experts[0].posterior.Mode[j], 0.3)
		}
	}
}

// byRows is the linear family and its prior, without its methods by columns.
type byRows struct {
	utility.Model
	utility.Prior
}

func newByRows(d int) byRows {
	m := utility.NewLinear(d, true)
	return byRows{m, m}
}

// The evidence finds the true family, and the offers follow.
func TestEvidenceFindsTheFamily(t *testing.T) {
	d := paperFeatures
	for name, c := range map[string]struct {
		truth func(x []float64) float64
		want  string
	}{
		"product": {product, "quadratic"},
		"wave":    {func(x []float64) float64 { return 2 * math.Cos(3*x[0]-2*x[1]) }, "spectral 3-1"},
		"stumps": {func(x []float64) float64 {
			return 2 * (math.Copysign(1, 0.4-math.Abs(x[0])) + math.Copysign(1, 0.4-math.Abs(x[1]-0.7)) +
				math.Copysign(1, x[2]-0.7))
		}, "steps"},
	} {
		l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(d, true)}, {Model: utility.NewQuadratic(d)},
			{Model: utility.NewSpectral(d, 1)}, {Model: utility.NewSteps(d)}})
		play(t, l, c.truth, 0, 250)
		if got := l.Diagnostics()[c.want]; got < 0.99 {
			t.Errorf("%s: the weight of %s is %v: %v", name, c.want, got, l.Diagnostics())
		}
	}
}

// Weights follow the evidence and sum to one; the line counts 9/4 times, with any slopes; a negligible expert rests,
// and is asked again when the rounds have doubled.
func TestWeightsAreEvidences(t *testing.T) {
	d := paperFeatures
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(d, true)}, {Model: utility.NewQuadratic(d)}})
	if got := l.weights(); math.Abs(got[0]-2.25/3.25) > 1e-12 || math.Abs(got[1]-1/3.25) > 1e-12 {
		t.Errorf("weights %v before the first round, want 9 : 4", got)
	}
	play(t, l, product, 0, 12)
	over := func(p *mle.Laplace) float64 { return math.Exp(p.LogEvidence - l.experts[1].posterior.LogEvidence) }
	ratio := 1 / (2*over(l.experts[0].posterior) + over(l.flat.posterior)/4)
	if got := l.weights(); math.Abs(got[1]/got[0]-ratio) > 1e-9*ratio || math.Abs(got[0]+got[1]-1) > 1e-12 {
		t.Errorf("weights %v, want the ratio %v", got, ratio)
	}
	for s := 12; s < 400 && l.experts[0].wake == 0; s++ {
		play(t, l, product, s, s+1)
	}
	rested, wake := l.rounds, l.experts[0].wake
	if wake > 2*rested || wake < 2*(rested-1-rested/minLag) || l.weights()[0] > negligible {
		t.Fatalf("after %d rounds: the linear expert wakes at %d with the weight %v, want it to rest", rested, wake,
			l.weights()[0])
	}
	frozen := l.experts[0].posterior
	play(t, l, product, rested, wake-1)
	if l.experts[0].posterior != frozen {
		t.Error("a resting expert moved")
	}
	play(t, l, product, wake-1, 2*wake)
	if l.experts[0].posterior == frozen {
		t.Error("an expert never woke")
	}
}

// An expert with a memory follows tastes that turn, and outweighs the same
// family without.
func TestMemoryFollowsTastesThatTurn(t *testing.T) {
	d := paperFeatures
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(d, true)},
		{Model: utility.NewLinear(d, true), MemoryRounds: 40}})
	first := func(x []float64) float64 { return 2 * x[0] }
	second := func(x []float64) float64 { return 2 * x[1] }
	play(t, l, first, 0, 200)
	still := l.weights()
	play(t, l, second, 200, 400)
	turned := l.weights()
	if !(still[0] > 0.5 && turned[1] > 0.99) {
		t.Errorf("the weight of the family that stands is %v while it does, that of the one that moves %v after the turn", still[0], turned[1])
	}
	if w := l.experts[1].posterior.Mode; !(w[1] > 2*math.Abs(w[0])) {
		t.Errorf("the slopes are %v after the turn, want those of the second feature", w[:d])
	}
}

// Fits run side by side, and their bytes do not depend on how many processors
// there are.
func TestBytesDoNotDependOnProcessors(t *testing.T) {
	run := func(processors int) []byte {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
		play(t, l, product, 0, 60)
		data := fatal.Or(l.MarshalBinary())(t)
		return data
	}
	if !bytes.Equal(run(1), run(8)) {
		t.Error("one processor and eight learn differently")
	}
}

// A first round without items sets no moments; the next one does. A first round of one item shows no deviations, and
// its size stands for them: features far from 1 are learned from all the same.
func TestTheFirstRoundMayBeSmall(t *testing.T) {
	for _, items := range []int{0, 1} {
		for _, scale := range []float64{0.01, 1, 300, 4000} {
			l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
			for s := range 30 {
				rng := rand.New(rand.NewPCG(4, uint64(s)))
				n := 10
				if s == 0 {
					n = items
				}
				x := &vitrine.Context{}
				if n > 0 {
					x.Features = mat.NewDense(n, paperFeatures, nil)
					for i := range n * paperFeatures {
						x.Features.RawMatrix().Data[i] = scale * (1 + rng.Float64())
					}
				}
				offer := l.Policy().Offer(x, rng)
				r := vitrine.Round{Context: x, Offer: offer,
					Choice: vitrine.Choice(rng.IntN(len(offer.Assortment) + 1))}
				fatal.If(t, l.Observe(r), items, "items at first, features of", scale, "round", s)
				data := fatal.Or(l.MarshalBinary())(t)
				fatal.If(t, newBMA(t, paperProblem(), DefaultExperts(paperFeatures)).UnmarshalBinary(data), items,
					"items at first, round", s)
			}
		}
	}
}

// A growth that no run lives to see the second fit of leaves a learner that can
// be saved.
func TestLargestGrowth(t *testing.T) {
	o := DefaultBMAOptions()
	o.Growth = 1e100
	create := func() *BMA { return must(NewBMA(paperProblem(), DefaultExperts(paperFeatures), o, newRand())).(*BMA) }
	l := create()
	play(t, l, product, 0, 20)
	data := fatal.Or(l.MarshalBinary())(t)
	if err := create().UnmarshalBinary(data); err != nil || l.nextFit < 1<<29 {
		t.Errorf("the next fit is after round %d; restored: %v", l.nextFit, err)
	}
}

// The evidence of no rounds is 1 for an expert that is never fitted, wherever it
// starts.
func TestNoRoundsSayNothingOfAMemory(t *testing.T) {
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)},
		{Model: paperModel(), MemoryRounds: 50}})
	if got := l.weights(); math.Abs(got[0]-2.25*got[1]) > 1e-12 {
		t.Errorf("weights %v before the first round, want 9 : 4", got)
	}
}
