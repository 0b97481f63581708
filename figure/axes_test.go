package figure

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
)

// Small values spread over the axis like large ones, and an axis around one value is never empty.
func TestSpans(t *testing.T) {
	if s := spanOf(false, []float64{-7e-10, -5e-10}); s.low != -7e-10 || s.high != -5e-10 {
		t.Errorf("%v", s)
	}
	for _, v := range []float64{0, 3, -1e20, 1e300, 5e-324} {
		s := spanOf(false, []float64{v, v})
		if n := len(s.ticks()); !(s.low < v && v < s.high) || n < 2 || n > 7 {
			t.Errorf("%v: %v with %d ticks", v, s, n)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		span    span
		minimum float64
		want    []float64
	}{
		{span{0, 1000, false}, 1, []float64{0, 200, 400, 600, 800, 1000}},
		{span{0, 500, false}, 1, []float64{0, 100, 200, 300, 400, 500}},
		{span{0, 3, false}, 1, []float64{0, 1, 2, 3}},
		{span{0, 1, false}, 1, []float64{0, 1}},
		{span{0, 71, false}, 0, []float64{0, 20, 40, 60}},
		{span{0, 0.3, false}, 0, []float64{0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3}},
		{span{-5, 5, false}, 0, []float64{-4, -2, 0, 2, 4}},
		{span{-1.57, 4.72, false}, 0, []float64{0, 2, 4}},
	} {
		var got []float64
		for _, tick := range test.span.sparse(test.minimum, 6) {
			got = append(got, tick.value)
		}
		expect.Equal(t, got, test.want, "ticks of", test.span, cmp.Comparer(func(a, b float64) bool {
			return number(a) == number(b)
		}))
	}
}
