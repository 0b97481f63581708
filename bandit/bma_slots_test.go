package bandit

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/mle"
	"vitrine/utility"
)

// The slots of a page use each belief and each unit as often as its weight asks for, up to one slot, and each slot
// draws them by weight.
func TestSlotsAreASystematicSample(t *testing.T) {
	const slots, pages = 10, 4000
	line, wave := utility.NewLinear(1, true), utility.NewSpectral(1, 1)
	_, base := waves(t, 60)
	units := &unitPosterior{weight: []float64{0.1, 0.2, 0.7}}
	for i := range units.weight {
		units.theta = append(units.theta, []float64{float64(i)})
		units.amplitudes = append(units.amplitudes, mle.Amplitudes{Mode: make([]float64, 2), Cross: make([]float64, 4),
			Root: []float64{1, 0, 0, 1}})
	}
	o := &mixture{
		p: Problem{NumFeatures: 1, MaxShown: slots, Rounds: 1},
		beliefs: []belief{{family: line, model: line, posterior: base},
			{family: wave, model: wave, posterior: base, unit: units}},
		weights: []float64{0.45, 0.55}, width: 1,
	}
	rng, w := newRand(), new(mixtureScratch)
	x := &vitrine.Context{Features: mat.NewDense(2*slots, 1, nil)}
	var first [4]float64 // how often the first slot draws the line and each unit
	for range pages {
		o.begin(w, x, rng)
		var got [4]float64
		for k, i := range w.expert {
			at := 0
			if i == 1 {
				at = 1 + int(wave.Theta(w.delta[k*w.width:][:wave.NumParams()], 0)[0])
			}
			got[at]++
			if k == 0 {
				first[at]++
			}
		}
		for at, n := range got {
			if want := slots * weightOf(o, at); math.Abs(n-want) >= 1 {
				t.Fatalf("%v of %d slots have belief or unit %d, want %v", n, slots, at, want)
			}
		}
	}
	for at, n := range first {
		p := weightOf(o, at)
		wantNear(t, "share of the first slots", n/pages, p, 5*math.Sqrt(p*(1-p)/pages))
	}
}

// weightOf returns the weight of the line, or a unit's from 1 on.
func weightOf(o *mixture, at int) float64 {
	if at == 0 {
		return o.weights[0]
	}
	return o.weights[1] * o.beliefs[1].unit.weight[at-1]
}

// A page's slots are drawn from equal parts of [0, 1), one from each, in random order.
func TestSystematic(t *testing.T) {
	const n, draws = 4, 4000
	rng, v := newRand(), make([]float64, n)
	mean, low := 0.0, 0.0
	for range draws {
		systematic(v, rng)
		mean += v[0] / draws
		if v[0] < v[1] {
			low += 1.0 / draws
		}
		sorted := slices.Sorted(slices.Values(v))
		for k, x := range sorted {
			wantNear(t, "place in a part", x, sorted[0]+float64(k)/n, 1e-15)
		}
		if sorted[0] < 0 || sorted[n-1] >= 1 {
			t.Fatalf("%v is not within [0, 1)", v)
		}
	}
	wantNear(t, "mean", mean, 0.5, 5*math.Sqrt(1.0/12/draws))
	wantNear(t, "share in ascending order", low, 0.5, 5*math.Sqrt(0.25/draws))
}

func TestQuantile(t *testing.T) {
	pi := []float64{0.25, 0, 0.5, 0.25}
	for _, c := range []struct {
		v      float64
		i      int
		within float64
	}{{0, 0, 0}, {0.125, 0, 0.5}, {0.25, 2, 0}, {0.625, 2, 0.75}, {0.75, 3, 0}, {0.875, 3, 0.5}, {1, 3, 0}} {
		if i, within := quantile(pi, c.v); i != c.i || within != c.within {
			t.Errorf("quantile of %v: %d, %v, want %d, %v", c.v, i, within, c.i, c.within)
		}
	}
}

// A slot's utilities are its belief's plus standard deviations, of the linear parameters for units and of all for
// others: one of them if revenues are equal, and 0.3 if not. An item with a gradient that no expert takes gets no
// bonus.
func TestSlotsAreOptimistic(t *testing.T) {
	network := utility.NewMLP(paperFeatures, []int{2}, utility.Tanh)
	l := newBMA(t, paperProblem(), append(DefaultExperts(paperFeatures), Expert{Model: network}))
	play(t, l, product, 0, 30)
	if flat := l.Policy().(*mixture).beliefs[0]; flat.posterior != l.flat.posterior {
		t.Error("the first belief is not the linear family with slopes near 0")
	}
	x := paperContext(99)
	x.Features.Set(3, 0, 1e6)
	n := x.NumItems()
	for _, c := range []struct {
		revenue  []float64
		optimism float64
	}{{nil, 1}, {slices.Repeat([]float64{2}, n), 1}, {unequal(newRand(), n), 0.3}} {
		x.Revenue = c.revenue
		beliefs := l.Policy().(*mixture).beliefs
		pi := &mixture{p: l.p, beliefs: beliefs, weights: slices.Repeat([]float64{1 / float64(len(beliefs))},
			len(beliefs)), width: 0.7, views: []view{{z: l.z}}}
		pi.p.MaxShown = n
		rng, w, seen := newRand(), new(mixtureScratch), map[int]bool{}
		for range 5 {
			pi.begin(w, x, rng)
			pi.fillSlots(w, x.Features, 0, len(w.expert))
			items := standardisedRows(l.z, x.Features)
			for k, b := range w.expert {
				e := beliefs[b]
				seen[b] = true
				want, g := make([]float64, n), mat.NewDense(n, len(e.posterior.Mode), nil)
				if e.unit == nil {
					e.family.Utilities(want, e.posterior.Mode, items)
					e.family.Gradients(g, e.posterior.Mode, items)
				} else {
					e.family.Utilities(want, w.delta[k*w.width:][:e.family.NumParams()], items)
					utility.NewLinear(paperFeatures, true).Gradients(g, e.posterior.Mode, items)
				}
				for i := range want {
					if mat.Norm(g.RowView(i), 2) <= vitrine.MaxUnscaled {
						want[i] += c.optimism * math.Sqrt(e.posterior.Variance(g.RawRowView(i)))
					}
					wantNear(t, pi.name(&e)+": utility", w.z[k*n+i], want[i], 1e-9)
				}
			}
		}
		if len(seen) != len(beliefs) {
			t.Errorf("slots have %d of %d beliefs", len(seen), len(beliefs))
		}
	}
}

// Amplitudes of units are drawn with the width b_t, and at least 0.6. No other part of a unit's slot is drawn.
func TestSlotsDrawAmplitudes(t *testing.T) {
	wave := utility.NewSpectral(1, 1)
	_, base := waves(t, 60)
	unit := mle.Amplitudes{Mode: []float64{1, 2}, Cross: make([]float64, 4), Root: []float64{2, 0, 0, 2}}
	units := &unitPosterior{theta: [][]float64{{1}}, amplitudes: []mle.Amplitudes{unit}, weight: []float64{1}}
	for b, want := range map[float64]float64{0: 0.3, 0.3: 0.3, 0.8: 0.4, 1: 0.5} {
		o := &mixture{
			p:       Problem{NumFeatures: 1, MaxShown: 100, Rounds: 1},
			beliefs: []belief{{family: wave, model: wave, posterior: base, unit: units}},
			weights: []float64{1}, width: b,
		}
		w, rng := new(mixtureScratch), newRand()
		const pages, draws = 50, 50 * 200
		square := 0.0
		for range pages {
			o.begin(w, &vitrine.Context{Features: mat.NewDense(100, 1, nil)}, rng)
			for k := range w.expert {
				drawn := w.delta[k*w.width:][:wave.NumParams()]
				expect.List(fatal.T(t), drawn[:2], base.Mode, "the linear part is")
				for j, g := range wave.Gamma(drawn, 0) {
					square += (g - unit.Mode[j]) * (g - unit.Mode[j]) / draws
				}
			}
		}
		wantNear(t, fmt.Sprintf("b = %v: variance of amplitudes over its own", b), square/(want*want), 1,
			5*math.Sqrt(2.0/draws)/2)
	}
}
