package figure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		high, least float64
		want        []float64
	}{
		{1000, 1, []float64{0, 200, 400, 600, 800, 1000}},
		{500, 1, []float64{0, 100, 200, 300, 400, 500}},
		{3, 1, []float64{0, 1, 2, 3}},
		{1, 1, []float64{0, 1}},
		{71, 0, []float64{0, 20, 40, 60}},
		{0.3, 0, []float64{0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3}},
	} {
		got := ticks(test.high, test.least)
		if diff := cmp.Diff(test.want, got, cmp.Comparer(func(a, b float64) bool { return number(a) == number(b) })); diff != "" {
			t.Errorf("ticks up to %v: -want +got:\n%s", test.high, diff)
		}
	}
}
