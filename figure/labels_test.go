package figure

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		name       string
		have, want []vg.Length
	}{
		{"far apart", []vg.Length{90, 50, 10}, []vg.Length{90, 50, 10}},
		{"a pair shares the way", []vg.Length{90, 50, 48}, []vg.Length{90, 54, 44}},
		{"a pool pushes the next", []vg.Length{50, 50, 41}, []vg.Length{57, 47, 37}},
		{"at the lower edge", []vg.Length{3, 1, 0}, []vg.Length{20, 10, 0}},
		{"at the upper edge", []vg.Length{100, 99, 20}, []vg.Length{100, 90, 20}},
		{"one", []vg.Length{50}, []vg.Length{50}},
	} {
		t.Run(test.name, func(t *testing.T) {
			expect.Equal(t, spread(test.have, 10, 0, 100), test.want)
		})
	}
}

// No other arrangement with the gaps moves the labels less.
func TestSpreadIsTheNearestArrangement(t *testing.T) {
	const gap, low, high = 10, 0, 100
	falling := func(t *rapid.T, name string, n int) []vg.Length {
		ys := make([]vg.Length, n)
		for k := range ys {
			ys[k] = vg.Length(rapid.Float64Range(low, high).Draw(t, name))
		}
		slices.Sort(ys)
		slices.Reverse(ys)
		return ys
	}
	distance := func(a, b []vg.Length) (d vg.Length) {
		for k := range a {
			d += (a[k] - b[k]) * (a[k] - b[k])
		}
		return d
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "labels")
		heights := falling(t, "height", n)
		got := spread(heights, gap, low, high)
		for k := range got {
			if got[k] < low-1e-9 || got[k] > high+1e-9 || k > 0 && got[k-1]-got[k] < gap-1e-9 {
				t.Fatalf("%v was spread to %v", heights, got)
			}
		}
		other := falling(t, "other", n)
		for k := range other {
			free := (other[k] - low) / (high - low) * (high - low - vg.Length(n-1)*gap)
			other[k] = low + free + vg.Length(n-1-k)*gap
		}
		if distance(heights, other) < distance(heights, got)-1e-9 {
			t.Fatalf("%v was spread to %v, but %v is nearer", heights, got, other)
		}
	})
}

func TestLabelsFollowTheEndsOfTheCurves(t *testing.T) {
	panel := func(name string, finals map[string]float64) Panel {
		p := Panel{Name: name}
		for _, policy := range []string{"onl-mnl", "greedy", "uniform"} {
			if v, ok := finals[policy]; ok {
				p.Curves = append(p.Curves, Curve{Policy: policy, Regret: [][]float64{{v / 2}, {3 * v / 2}}})
			}
		}
		return p
	}
	one := panel("one", map[string]float64{"onl-mnl": 2, "greedy": 4, "uniform": 50})
	two := panel("two", map[string]float64{"onl-mnl": 8, "uniform": 70})
	for _, test := range []struct {
		name   string
		panels []Panel
		want   []label
	}{
		{"one panel", []Panel{one}, []label{{"uniform", "uniform", 50, "50.0 ± 50.0"},
			{"greedy", "greedy", 4, "4.0 ± 4.0"}, {"onl-mnl", "onl-mnl", 2, "2.0 ± 2.0"}}},
		{"two panels", []Panel{one, two}, []label{{"uniform", "uniform", 60, ""}, {"onl-mnl", "onl-mnl", 5, ""},
			{"greedy", "greedy", 4, ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var plots []regretPlot
			for _, p := range test.panels {
				plots = append(plots, newRegretPlot(p, Look{}))
			}
			expect.Equal(t, labels(plots...), test.want, cmp.AllowUnexported(label{}))
		})
	}
}
