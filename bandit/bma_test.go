package bandit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
	"vitrine/mle"
	"vitrine/utility"
)

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
		fatal.If(t, l.Observe(vitrine.Round{Context: context, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u, shock)}))
	}
}

func product(x []float64) float64 { return 2*x[0]*x[1] - 0.5*x[2] }

// nothing is a family without parameters.
type nothing struct{ utility.Model }

func (nothing) NumFeatures() int { return paperFeatures }
func (nothing) NumParams() int   { return 0 }
func (nothing) String() string   { return "nothing" }

// improper is a family with a prior that is none.
type improper struct{ *utility.Linear }

func (improper) Precisions(dst []float64) { clear(dst) }

func TestBadExpertsAreNamed(t *testing.T) {
	d := paperFeatures
	for want, experts := range map[string][]Expert{
		"there are no experts":                                                      nil,
		"expert 2, nothing, has no parameters":                                      {{Model: utility.NewQuadratic(d)}, {Model: nothing{}}},
		"expert 1, quadratic, has 5 features, the problem has 3":                    {{Model: utility.NewQuadratic(5)}},
		"experts 1 and 3 are both quadratic":                                        {{Model: utility.NewQuadratic(d)}, {Model: utility.NewLinear(d, true)}, {Model: utility.NewQuadratic(d)}},
		"expert 1, linear of memory 0.5: memory = 0.5: must be finite and at least": {{Model: utility.NewLinear(d, false), Memory: 0.5}},
		"memory = -1":  {{Model: utility.NewLinear(d, false), Memory: -1}},
		"memory = NaN": {{Model: utility.NewLinear(d, false), Memory: math.NaN()}},
		"expert 1, linear: mle: parameter 0 has a prior of precision 0: must be positive": {{Model: improper{utility.NewLinear(d, false)}}},
	} {
		_, err := NewBMA(paperProblem(), experts, DefaultBMAOptions(), newRand())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	// The same family with a memory is another expert.
	newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(d, true)}, {Model: utility.NewLinear(d, true), Memory: 50}})
}

// An expert that cannot take a round sits it out: it keeps its parameters, has the linear
// family's forecast, and the others learn. At the next full fit it sits out just that
// round.
func TestAnExpertSitsOutWhatItCannotTake(t *testing.T) {
	d := paperFeatures
	for _, memory := range []float64{0, 1e12} {
		l := newBMA(t, paperProblem(), []Expert{
			{Model: utility.NewLinear(d, true)},
			{Model: poisoned{newByRows(d)}, Memory: memory},
		})
		for s := 0; s < 31 || l.job != nil || l.nextFit == l.rounds+1; s++ {
			play(t, l, product, s, s+1)
		}
		mode, evidence, other := l.experts[1].posterior.Mode, l.experts[1].posterior.LogEvidence, l.experts[0].posterior
		x := paperContext(1)
		x.Features.Set(2, 0, 123)
		base := l.base.posterior.Mode
		fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{1, 2}}, Choice: 1}))
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
			t.Errorf("memory %v: the weights are %v at the end, and the one that sat out wakes at %d", memory, w, l.experts[1].wake)
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

// A panic of a model in a full fit is the caller's, who may recover: one that no
// goroutine of its own recovers would end the process.
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
			err := l.Observe(vitrine.Round{Context: paperContext(0), Offer: vitrine.Offer{Assortment: vitrine.Assortment{1}}, Choice: 1})
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
	if n, _ := x.Dims(); n > 1 && m.now.Load() { // more rows than the round has
		panic("no ink")
	}
	m.Model.Utilities(u, w, x)
}

// The evidence finds the family that has the truth, and the offers follow.
func TestEvidenceFindsTheFamily(t *testing.T) {
	d := paperFeatures
	for name, c := range map[string]struct {
		truth func(x []float64) float64
		want  string
	}{
		"product": {product, "quadratic"},
		"wave":    {func(x []float64) float64 { return 2 * math.Cos(3*x[0]-2*x[1]) }, "spectral 3-1"},
	} {
		l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(d, true)}, {Model: utility.NewQuadratic(d)}, {Model: utility.NewSpectral(d, 1)}})
		play(t, l, c.truth, 0, 250)
		if got := l.Diagnostics()[c.want]; got < 0.99 {
			t.Errorf("%s: the weight of %s is %v: %v", name, c.want, got, l.Diagnostics())
		}
	}
}

// Weights are the evidences' and sum to one, that of the line, with any slopes, 9/4 times as large; an expert of no account rests,
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
		t.Fatalf("after %d rounds: the linear expert wakes at %d with the weight %v, want it to rest", rested, wake, l.weights()[0])
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

// An expert that cannot be fitted has no weight until it can, and where none can
// all have the same.
func TestExpertsThatCannotBeFittedRest(t *testing.T) {
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)}, {Model: cliffs{newByRows(paperFeatures)}}})
	play(t, l, product, 0, 1)
	if got := l.weights(); math.Abs(got[0]-1) > 1e-15 || got[1] != 0 {
		t.Errorf("weights %v, want all on the first", got)
	}
	l = newBMA(t, paperProblem(), []Expert{{Model: utility.NewQuadratic(paperFeatures)}, {Model: cliffs{newByRows(paperFeatures)}}})
	play(t, l, product, 0, 1)
	l.experts[0].wake = 1 << 20
	if got := l.weights(); got[0] != 0.5 || got[1] != 0.5 {
		t.Errorf("weights %v of experts that all rest, want equal ones", got)
	}
}

// cliffs is a family whose information overflows everywhere but at 0, where it
// begins.
type cliffs struct{ byRows }

func (cliffs) String() string                 { return "cliffs" }
func (cliffs) Init(w []float64, _ *rand.Rand) { clear(w) }
func (m cliffs) Gradients(g *mat.Dense, w []float64, x *mat.Dense) {
	m.Model.Gradients(g, w, x)
	if floats.Norm(w, 1) > 0 {
		g.Scale(1e200, g)
	}
}

// An expert with a memory follows tastes that turn, and outweighs the same
// family without.
func TestMemoryFollowsTastesThatTurn(t *testing.T) {
	d := paperFeatures
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(d, true)}, {Model: utility.NewLinear(d, true), Memory: 40}})
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

// With one expert each slot has the best item left, so the offer is the best assortment under the expert's index.
func TestOneExpertIsOptimistic(t *testing.T) {
	m := utility.NewQuadratic(paperFeatures)
	l := newBMA(t, paperProblem(), []Expert{{Model: m}})
	play(t, l, product, 0, 40)
	x := paperContext(3)
	n := x.NumItems()
	rng := newRand()
	for _, revenue := range [][]float64{nil, unequal(rng, n)} {
		x.Revenue = revenue
		u := make([]float64, n)
		items, g, optimism := standardisedRows(l.z, x.Features), mat.NewDense(n, m.NumParams(), nil), 1.0
		if revenue != nil {
			optimism = 0.3
		}
		p := l.experts[0].posterior
		m.Utilities(u, p.Mode, items)
		m.Gradients(g, p.Mode, items)
		for i := range u {
			u[i] += optimism * math.Sqrt(p.Variance(g.RawRowView(i)))
		}
		want, _ := assortment.Maximize(nil, paperProblem().Constraint, u, revenue)
		if got := l.Policy().Offer(x, rng).Assortment; !slices.Equal(got, want) {
			t.Errorf("revenues %v: offered %v, want %v", revenue, got, want)
		}
	}
}

// Every offer belongs to the feasible family, with bounds from below, groups,
// pins, exclusions and space.
func TestOffersAreOfAnyFamily(t *testing.T) {
	const n = 12
	laminar := func(r assortment.Rules) vitrine.Constraint {
		r.Items = n
		c := fatal.Or(assortment.NewLaminar(r))(t)
		return c
	}
	space := func(size []int, capacity int) vitrine.Constraint {
		counts := fatal.Or(assortment.NewLaminar(assortment.Rules{Items: n, Max: 3}))(t)
		s := fatal.Or(assortment.NewKnapsack(counts, size, capacity))(t)
		return s
	}
	for name, c := range map[string]vitrine.Constraint{
		"at least":     laminar(assortment.Rules{Min: 2, Max: 3}),
		"exactly":      laminar(assortment.Rules{Min: 3, Max: 3}),
		"pins":         laminar(assortment.Rules{Max: 3, Include: []int{4, 7}, Exclude: []int{0, 1}}),
		"groups":       laminar(assortment.Rules{Max: 3, Groups: []assortment.Group{{Items: []int{0, 1, 2, 3, 4, 5}, Max: 1}, {Items: []int{6, 7}, Min: 1, Max: 1}}}),
		"space":        space([]int{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}, 5),
		"nothing fits": space([]int{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, 5),
		"at most one":  assortment.AtMost(1),
	} {
		p := paperProblem()
		p.Constraint = c
		if k, ok := c.(assortment.AtMost); ok {
			p.Size = int(k)
		}
		l := newBMA(t, p, []Expert{{Model: utility.NewLinear(paperFeatures, true)}, {Model: utility.NewQuadratic(paperFeatures)}})
		full := 0
		for s := range 60 {
			rng := rand.New(rand.NewPCG(31, uint64(s)))
			x := &vitrine.Context{Features: mat.NewDense(n, paperFeatures, nil)}
			for i := range x.Features.RawMatrix().Data {
				x.Features.RawMatrix().Data[i] = rng.NormFloat64()
			}
			if s%2 == 1 {
				x.Revenue = unequal(rng, n)
			}
			offer := l.Policy().Offer(x, rng)
			if err := offer.Assortment.Check(n); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !c.Contains(offer.Assortment) {
				t.Fatalf("%s: %v is not of the family", name, offer.Assortment)
			}
			if len(offer.Assortment) > 0 {
				full++
			}
			fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choice(s % (len(offer.Assortment) + 1))}))
		}
		if name != "nothing fits" && full < 60 {
			t.Errorf("%s: %d of 60 offers are empty", name, 60-full)
		}
	}
}

// menu is a family of given sets, which answers with the sets themselves.
type menu []vitrine.Assortment

func (m menu) Contains(s vitrine.Assortment) bool {
	return slices.ContainsFunc(m, func(o vitrine.Assortment) bool { return slices.Equal(o, s) })
}

func (m menu) MaxGain(_ vitrine.Assortment, gain []float64) vitrine.Assortment {
	best, maximum := 0, math.Inf(-1)
	for k, s := range m {
		sum := 0.0
		for _, i := range s {
			sum += gain[i]
		}
		if sum > maximum {
			best, maximum = k, sum
		}
	}
	return m[best]
}

// Of a family of whole sets the offer is one that is not empty, although most of
// its items have a loss; and the family's own sets stay as they are.
func TestOffersOfWholeSets(t *testing.T) {
	sets := func() menu { return menu{{}, {0, 1, 2}, {3, 4, 5}} }
	family := sets()
	l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
	for s := range 40 {
		x := paperContext(s)
		x.Feasible = family
		if got := l.Policy().Offer(x, newRand()).Assortment; len(got) == 0 || !family.Contains(got) {
			t.Fatalf("offered %v, want one of %v", got, family[1:])
		}
		x.Feasible = nil
		l.Policy().Offer(x, newRand())
	}
	if diff := cmp.Diff(sets(), family); diff != "" {
		t.Errorf("the family changed (-want +got):\n%s", diff)
	}
}

// A first round without items has no moments; the next one has. A first round
// of one item has no standard deviations, and its size stands for them: features
// far from 1 are learned from all the same.
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
				r := vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choice(rng.IntN(len(offer.Assortment) + 1))}
				if err := l.Observe(r); err != nil {
					t.Fatalf("%d items at first, features of %v, round %d: %v", items, scale, s, err)
				}
				data := fatal.Or(l.MarshalBinary())(t)
				if err := newBMA(t, paperProblem(), DefaultExperts(paperFeatures)).UnmarshalBinary(data); err != nil {
					t.Fatalf("%d items at first, round %d: %v", items, s, err)
				}
			}
		}
	}
}

// Snapshots whose parts do not belong together are refused where the checksum is
// right too.
func TestForgedPartsAreRefused(t *testing.T) {
	for want, forge := range map[string]func(l *BMA){
		"the data of 20 rounds, and counts 21":                func(l *BMA) { l.rounds++ },
		"the data of 20 rounds, and counts 19":                func(l *BMA) { l.rounds-- },
		"and no moments of their features":                    func(l *BMA) { l.z, l.seen.n = standardisation{}, 0 },
		"the moments of 0 features, want 3":                   func(l *BMA) { l.z.shift = nil },
		"the standard deviation 0":                            func(l *BMA) { l.z.scale[1] = 0 },
		"the moments of 0 items, and the data of 60":          func(l *BMA) { l.seen.n = 0 },
		"4 numbers but this learner has 10: it was made with": func(l *BMA) { l.experts[4].posterior = l.experts[0].posterior },
		"1 numbers but this learner has 3: it was made with":  func(l *BMA) { l.experts[3].units = [][]float64{{1}} },
		"beliefs whose weights sum to NaN, want 1": func(l *BMA) {
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
		if err := fresh.UnmarshalBinary(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
		if after, _ := fresh.MarshalBinary(); !bytes.Equal(before, after) {
			t.Errorf("%s: the refused snapshot changed the learner", want)
		}
	}
}

// A fit under way that claims rounds the snapshot does not have, or to have learned more than there were, is refused; one
// that claims to have learned fewer learns the others.
func TestForgedFitsAreRefused(t *testing.T) {
	const mark = 0x74726163
	create := func() *BMA { return newBMA(t, paperProblem(), DefaultExperts(paperFeatures)) }
	l := create()
	rounds := 40
	for play(t, l, product, 0, rounds); l.job == nil; rounds++ {
		play(t, l, product, rounds, rounds+1)
	}
	l.job.due = mark
	data := fatal.Or(l.MarshalBinary())(t)
	at := bytes.Index(data, binary.LittleEndian.AppendUint64(nil, mark)) // followed by the rounds it learned and folds
	if at < 0 || binary.LittleEndian.Uint64(data[at+8:]) != uint64(rounds) {
		t.Fatalf("the fit is not where it was: %d", at)
	}
	for _, c := range []struct {
		learned, fold int
		refused       bool
	}{{rounds, 0, false}, {rounds - 1, 0, false}, {0, 0, false}, {rounds, rounds, false}, {rounds + 1, 0, true}, {rounds, rounds + 1, true}, {rounds - 1, rounds, true}, {0, 1, true}} {
		forged := bytes.Clone(data[:len(data)-4])
		binary.LittleEndian.PutUint64(forged[at+8:], uint64(c.learned))
		binary.LittleEndian.PutUint64(forged[at+16:], uint64(c.fold))
		forged = binary.LittleEndian.AppendUint32(forged, crc32.Checksum(forged, crc32.MakeTable(crc32.Castagnoli)))
		want := fmt.Sprintf("snapshot has a fit that learned %d rounds and folds %d, and the data of %d of %d rounds", c.learned, c.fold, rounds, rounds)
		if err := create().UnmarshalBinary(forged); c.refused != (err != nil) || err != nil && err.Error() != want {
			t.Errorf("learned %d, folds %d of %d rounds: %v", c.learned, c.fold, rounds, err)
		}
	}
}

// A growth that no run lives to see the second fit of leaves a learner that can
// be saved.
func TestLargestGrowth(t *testing.T) {
	o := DefaultBMAOptions()
	o.Growth = 1e300
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
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)}, {Model: paperModel(), Memory: 50}})
	if got := l.weights(); math.Abs(got[0]-2.25*got[1]) > 1e-12 {
		t.Errorf("weights %v before the first round, want 9 : 4", got)
	}
}

// A request may allow fewer items than the learner's family, or none.
func TestRequestsMayAllowFewer(t *testing.T) {
	l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
	x := paperContext(0)
	for _, revenue := range [][]float64{nil, x.Revenue} {
		for k := range paperSize + 2 {
			x.Revenue, x.Feasible = revenue, assortment.AtMost(k)
			if got := len(l.Policy().Offer(x, newRand()).Assortment); got != min(k, paperSize) && (revenue == nil || got > k) {
				t.Errorf("%d items offered where at most %d are allowed", got, k)
			}
		}
	}
	x.Revenue, x.Feasible = make([]float64, x.NumItems()), nil
	if got := l.Policy().Offer(x, newRand()).Assortment; len(got) != 0 {
		t.Errorf("offered %v where nothing earns", got)
	}
}

// The estimate of the propensity agrees with the frequencies of many offers,
// and with the closed form of a policy that has one.
func TestPropensityIsAFrequency(t *testing.T) {
	l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
	play(t, l, product, 0, 20)
	x, pi := paperContext(5), l.Policy()
	counts := map[string]int{}
	rng := newRand()
	const n = 4000
	for range n {
		counts[fmt.Sprint(pi.Offer(x, rng).Assortment)]++
	}
	offer := pi.Offer(x, rng)
	if offer.Propensity != 0 {
		t.Errorf("propensity %v, want 0 for none in closed form", offer.Propensity)
	}
	share := float64(counts[fmt.Sprint(offer.Assortment)]) / n
	p, se := Propensity(pi, x, offer.Assortment, n, rng)
	if math.Abs(p-share) > 4*math.Sqrt(2*max(share, 1.0/n)/n) || math.Abs(se-math.Sqrt(p*(1-p)/n)) > 1e-15 {
		t.Errorf("propensity %v ± %v, the share of other draws is %v", p, se, share)
	}
	small := paperProblem()
	uniform := must(NewUniform(small)).Policy()
	x.Features = mat.DenseCopyOf(x.Features.Slice(0, 3, 0, paperFeatures))
	x.Revenue = nil
	want := uniform.Offer(x, rng)
	if p, se := Propensity(uniform, x, want.Assortment, n, rng); math.Abs(p-want.Propensity) > 4*se {
		t.Errorf("propensity %v ± %v, want %v", p, se, want.Propensity)
	}
}

// The search returns units that fits then keep: with the wave it must find, the
// first start is near it or its mirror.
func TestSearchFindsTheWave(t *testing.T) {
	m := utility.NewSpectral(paperFeatures, 1)
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)}})
	l.o.Candidates = 400
	play(t, l, func(x []float64) float64 { return 2 * math.Sin(2*x[0]) }, 0, 200)
	e := fatal.Or(newExpert(Expert{Model: m}, 0, newRand()))(t)
	history := l.history.Standardised(l.z.shift, l.z.scale)
	f := fitting{beliefs: l.beliefs, o: l.o}
	starts := f.starts(e, history, newRand())
	if len(starts) != searchStarts || len(e.units) != searchMemory {
		t.Fatalf("%d starts and %d units kept, want %d and %d", len(starts), len(e.units), searchStarts, searchMemory)
	}
	e.fit(history, l.base, starts)
	theta := m.Theta(e.posterior.Mode, 0)
	want := 2 * l.z.scale[0]
	if math.Abs(math.Abs(theta[0])-want) > 0.3 || math.Abs(theta[1])+math.Abs(theta[2]) > 0.5 {
		t.Errorf("the frequency is %v, want (±%.2f, 0, 0)", theta, want)
	}
	empty := newBMA(t, paperProblem(), []Expert{{Model: m}})
	f = fitting{beliefs: empty.beliefs, o: l.o}
	if starts := f.starts(empty.experts[0], empty.history, newRand()); starts != nil {
		t.Errorf("%d starts without a round", len(starts))
	}
}
