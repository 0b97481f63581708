package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// taught returns the policy of a learner after some rounds.
func taught(t *testing.T, l vitrine.Learner, rounds int) vitrine.Policy {
	t.Helper()
	rng := newRand()
	for s := range rounds {
		x := paperContext(s)
		o := l.Policy().Offer(x, rng)
		fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: o,
			Choice: vitrine.Choice(rng.IntN(len(o.Assortment) + 1))}))
	}
	return l.Policy()
}

// The reasons belong to the offer: the best set under the index is the one shown. A policy's belief about an item does
// not depend on the items next to it, and is its estimate.
func TestExplain(t *testing.T) {
	for name, learner := range learners() {
		t.Run(name, func(t *testing.T) {
			l := learner(paperProblem())
			for _, rounds := range []int{0, 30} {
				pi := taught(t, l, rounds)
				e, ok := pi.(Explainer)
				if !ok {
					t.Fatalf("after %d rounds %T does not explain", rounds, pi)
				}
				x := paperContext(rounds)
				x.Revenue = []float64{1, 0.5, 2, 0.7, 1.1, 0.9, 3, 0.2}[:x.NumItems()]
				for seed := range 5 {
					draws := func() *rand.Rand { return rand.New(rand.NewPCG(uint64(seed), 3)) }
					shown, why := pi.Offer(x, draws()).Assortment, e.Reasons(x, draws())
					if why.Index != nil && len(why.Index) != x.NumItems() || why.Index == nil && why.By != ByChance {
						t.Fatalf("after %d rounds by %s: %d utilities of %d items", rounds, why.By, len(why.Index),
							x.NumItems())
					}
					if why.IsBest {
						k := paperSize
						if l, ok := l.(*LogBarrier); ok {
							k = l.p.MaxShown
						}
						if best, _ := assortment.Maximize(nil, assortment.AtMost(k), why.Index,
							x.Revenue); !slices.Equal(best, shown) {
							t.Errorf("after %d rounds by %s: shows %v, the best set under the index is %v", rounds,
								why.By, shown, best)
						}
					}
				}
				n := x.NumItems()
				mean, sd := make([]float64, n), make([]float64, n)
				hasMean, hasSD := e.Value(mean, sd, x.Features)
				if !hasMean {
					continue
				}
				for i := range n {
					one, spread := make([]float64, 1), make([]float64, 1)
					e.Value(one, spread, x.Features.Slice(i, i+1, 0, paperFeatures).(*mat.Dense))
					if math.Abs(one[0]-mean[i]) > 1e-9 || hasSD && math.Abs(spread[0]-sd[i]) > 1e-9 {
						t.Errorf("after %d rounds item %d has the utility %v ± %v beside others, and %v ± %v by itself",
							rounds, i, mean[i], sd[i], one[0], spread[0])
					}
				}
				if u, ok := pi.(interface {
					Utilities([]float64, *vitrine.Context)
				}); ok && why(pi) != BySlot && why(pi) != ByChance {
					want := make([]float64, n)
					u.Utilities(want, x)
					for i := range want {
						if math.Abs(want[i]-mean[i]) > 1e-9 {
							t.Errorf("after %d rounds item %d has the utility %v, and is estimated as %v", rounds, i,
								mean[i], want[i])
						}
					}
				}
				if e.IsLinear() {
					checkAffine(t, e, x.Features)
				}
			}
		})
	}
}

func why(pi vitrine.Policy) Cause {
	return pi.(Explainer).Reasons(paperContext(0), newRand()).By
}

// checkAffine compares the utility halfway between two rows with the mean of theirs.
func checkAffine(t *testing.T, e Explainer, x *mat.Dense) {
	t.Helper()
	_, d := x.Dims()
	rows := mat.NewDense(3, d, nil)
	for j := range d {
		a, b := x.At(0, j), 3*x.At(1, j)
		rows.SetCol(j, []float64{a, b, (a + b) / 2})
	}
	u, sd := make([]float64, 3), make([]float64, 3)
	e.Value(u, sd, rows)
	if math.Abs((u[0]+u[1])/2-u[2]) > 1e-9 {
		t.Errorf("a linear policy has the utilities %v and %v, and %v halfway", u[0], u[1], u[2])
	}
}

// The moments that the policies state match utilities drawn from their posteriors.
func TestExplainMoments(t *testing.T) {
	p := paperProblem()
	bma := must(NewBMA(p, []Expert{{Model: utility.NewLinear(p.NumFeatures, true)},
		{Model: utility.NewLinear(p.NumFeatures, true), MemoryRounds: 50}}, DefaultBMAOptions(), newRand()))
	mix := taught(t, bma, 40).(*mixture)
	p.Numeric = []int{0, 1}
	wide := taught(t, must(NewWide(p, newRand())), 40).(*widePolicy)
	inner := &mixture{p: wide.inner.p, views: wide.inner.views} // without units, which Value draws
	for _, e := range wide.inner.beliefs {
		if e.unit == nil && isLinear(e.model) {
			inner.beliefs, inner.weights = append(inner.beliefs, e), append(inner.weights, 1)
		}
	}
	floats.Scale(1/floats.Sum(inner.weights), inner.weights)
	wide = &widePolicy{p: wide.p, line: wide.line, inner: inner}
	options := DefaultTSOptions()
	options.Constants, options.Radius, options.Samples = "tuned", 1, 1
	ts := taught(t, must(NewTS(paperProblem(), options)), 40).(*sampling)
	for name, c := range map[string]struct {
		pi   Explainer
		draw func(x *vitrine.Context, rng *rand.Rand) float64
	}{
		"bma-mnl": {mix, func(x *vitrine.Context, rng *rand.Rand) float64 { return drawLinear(mix, x.Features, rng) }},
		"wide": {wide, func(x *vitrine.Context, rng *rand.Rand) float64 {
			var s wideScratch
			s.rows.scan(wide.line, x.Features)
			reduced := wide.line.reduce(&s.reduced, x.Features, &s.rows, 0)
			reduced.Set(0, 2, reduced.At(0,
				2)+float64(math.Sqrt(varianceOf(wide.line, s.rows.column, s.rows.value))*rng.NormFloat64()))
			return drawLinear(inner, reduced, rng)
		}},
		"ts-mnl": {ts, func(x *vitrine.Context, rng *rand.Rand) float64 { return ts.Reasons(x, rng).Index[0] }},
	} {
		t.Run(name, func(t *testing.T) {
			x := paperContext(99)
			x = &vitrine.Context{Features: x.Features.Slice(0, 1, 0, paperFeatures).(*mat.Dense)} // one item takes one slot
			mean, sd := make([]float64, 1), make([]float64, 1)
			c.pi.Value(mean, sd, x.Features)
			const draws = 4000
			sum, square, rng := 0.0, 0.0, newRand()
			for range draws {
				u := c.draw(x, rng)
				sum += u
				square += u * u
			}
			average := sum / draws
			spread := math.Sqrt(square/draws - average*average)
			if math.Abs(average-mean[0]) > 5*spread/math.Sqrt(draws) {
				t.Errorf("states a mean of %v, draws have %v ± %v", mean[0], average, spread/math.Sqrt(draws))
			}
			if math.Abs(spread/sd[0]-1) > 0.1 {
				t.Errorf("states a standard deviation of %v, draws have %v", sd[0], spread)
			}
		})
	}
}

// drawLinear returns the utility of the first item under a draw of one of the policy's beliefs, which are linear.
func drawLinear(pi *mixture, x *mat.Dense, rng *rand.Rand) float64 {
	e := pi.beliefs[drawIndex(pi.weights, rng)]
	w := make([]float64, len(e.posterior.Mode))
	e.posterior.Deviation(w, 1, rng)
	floats.Add(w, e.posterior.Mode)
	u := make([]float64, x.RawMatrix().Rows)
	e.family.Utilities(u, w, standardisedRows(pi.views[0].z, x))
	return u[0]
}

// The weights of the families sum to 1, and equal the learner's diagnostics.
func TestExplainFamilies(t *testing.T) {
	for _, experts := range [][]Expert{DefaultExperts(paperFeatures),
		{{Model: utility.NewLinear(paperFeatures, false)}}} {
		l := must(NewBMA(paperProblem(), experts, DefaultBMAOptions(), newRand())).(*BMA)
		pi := taught(t, l, 25).(*mixture)
		want, total := l.Diagnostics(), 0.0
		for _, w := range pi.Families() {
			total += w.Weight
			if math.Abs(w.Weight-want[w.Family]) > 1e-12 {
				t.Errorf("%s has the weight %v, the learner says %v", w.Family, w.Weight, want[w.Family])
			}
		}
		if math.Abs(total-1) > 1e-12 {
			t.Errorf("the weights sum to %v", total)
		}
	}
}
