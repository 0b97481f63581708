package bandit

import (
	"math"
	"slices"
	"testing"

	"vitrine/mle"
	"vitrine/utility"
)

// The slots of a page have each belief and each unit as often as its weight asks for, up to one slot, and each slot has
// them by weight.
func TestSlotsAreASystematicSample(t *testing.T) {
	const slots, pages = 10, 4000
	line, wave := utility.NewLinear(1, true), utility.NewSpectral(1, 1)
	_, base := waves(t, 60)
	units := &unitPosterior{weight: []float64{0.1, 0.2, 0.7}}
	for i := range units.weight {
		units.theta = append(units.theta, []float64{float64(i)})
		units.amplitudes = append(units.amplitudes, mle.Amplitudes{Mode: make([]float64, 2), Cross: make([]float64, 4), Root: []float64{1, 0, 0, 1}})
	}
	o := &mixture{
		p:       Problem{Features: 1, Size: slots, Rounds: 1},
		beliefs: []belief{{family: line, model: line, posterior: base}, {family: wave, model: wave, posterior: base, unit: units}},
		weights: []float64{0.45, 0.55}, width: 1,
	}
	rng, w := newRand(), new(mixtureScratch)
	var first [4]float64 // how often the first slot has the line and each unit
	for range pages {
		o.begin(w, 2*slots, rng)
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

// weightOf returns the weight of the line, or that of a unit from 1 on.
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
