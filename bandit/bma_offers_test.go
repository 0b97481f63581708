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
	"vitrine/utility"
)

// With one expert each slot takes the best item left, so the offer is the best assortment under the expert's index.
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
		expect.List(t, l.Policy().Offer(x, rng).Assortment, want, "revenues", revenue, "offered")
	}
}

// Every offer belongs to the feasible family, with bounds from below, groups,
// pins, exclusions and space.
func TestOffersAreOfAnyFamily(t *testing.T) {
	const n = 12
	laminar := func(r assortment.Rules) vitrine.Constraint {
		r.Items = n
		return fatal.Or(assortment.NewQuota(r))(t)
	}
	space := func(size []int, capacity int) vitrine.Constraint {
		return fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Max: 3,
			Weights: assortment.WeightsOf(size, capacity)}))(t)
	}
	for name, c := range map[string]vitrine.Constraint{
		"at least": laminar(assortment.Rules{Min: 2, Max: 3}),
		"exactly":  laminar(assortment.Rules{Min: 3, Max: 3}),
		"pins":     laminar(assortment.Rules{Max: 3, Include: []int{4, 7}, Exclude: []int{0, 1}}),
		"groups": laminar(assortment.Rules{Max: 3,
			Groups: []assortment.Group{{Items: []int{0, 1, 2, 3, 4, 5}, Max: 1},
				{Items: []int{6, 7}, Min: 1, Max: 1}}}),
		"space":        space([]int{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}, 5),
		"nothing fits": space([]int{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}, 5),
		"at most one":  assortment.AtMost(1),
	} {
		t.Run(name, func(t *testing.T) {
			p := paperProblem()
			p.Constraint = c
			if k, ok := c.(assortment.AtMost); ok {
				p.MaxShown = int(k)
			}
			l := newBMA(t, p, []Expert{{Model: utility.NewLinear(paperFeatures, true)},
				{Model: utility.NewQuadratic(paperFeatures)}})
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
				fatal.If(t, offer.Assortment.Check(n))
				if !c.Contains(offer.Assortment) {
					t.Fatalf("%v is not of the family", offer.Assortment)
				}
				if len(offer.Assortment) > 0 {
					full++
				}
				fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer,
					Choice: vitrine.Choice(s % (len(offer.Assortment) + 1))}))
			}
			if name != "nothing fits" && full < 60 {
				t.Errorf("%d of 60 offers are empty", 60-full)
			}
		})
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

// In a family of whole sets the offer is not empty, although most items lose money; and the family's own sets stay as
// they are.
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
	expect.Equal(t, family, sets(), "the family changed")
}

// A request may allow fewer items than the learner's family, or none.
func TestRequestsMayAllowFewer(t *testing.T) {
	l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
	x := paperContext(0)
	for _, revenue := range [][]float64{nil, x.Revenue} {
		for k := range paperSize + 2 {
			x.Revenue, x.Feasible = revenue, assortment.AtMost(k)
			if got := len(l.Policy().Offer(x, newRand()).Assortment); got != min(k, paperSize) &&
				(revenue == nil || got > k) {
				t.Errorf("%d items offered where at most %d are allowed", got, k)
			}
		}
	}
	x.Revenue, x.Feasible = make([]float64, x.NumItems()), nil
	if got := l.Policy().Offer(x, newRand()).Assortment; len(got) != 0 {
		t.Errorf("offered %v where nothing earns", got)
	}
}

// An offer's propensity has no closed form.
func TestPropensityIsUnknown(t *testing.T) {
	l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
	play(t, l, product, 0, 20)
	expect.Equal(t, l.Policy().Offer(paperContext(5), newRand()).Propensity, 0, "propensity")
}

// The search returns units that fits then keep: with the wave it must find, the
// first start is near it or its mirror.
func TestSearchFindsTheWave(t *testing.T) {
	m := utility.NewSpectral(paperFeatures, 1)
	l := newBMA(t, paperProblem(), []Expert{{Model: utility.NewLinear(paperFeatures, true)}})
	l.o.Candidates = 400
	play(t, l, func(x []float64) float64 { return 2 * math.Sin(2*x[0]) }, 0, 200)
	e := fatal.Or(newExpert(Expert{Model: m}, 0, newRand()))(t)
	history := l.history.Transformed(l.z.row)
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
