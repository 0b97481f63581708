package quantile_test

import (
	"math"
	"testing"

	"vitrine/internal/quantile"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		p      float64
		values []float64
		want   float64
	}{
		{0.5, []float64{3}, 3},
		{0.5, []float64{4, 1}, 2.5},
		{0.5, []float64{9, 1, 2}, 2},
		{0.5, []float64{4, 3, 2, 1}, 2.5},
		{0, []float64{4, 3, 2, 1}, 1},
		{1, []float64{4, 3, 2, 1}, 4},
		{0.1, []float64{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, 10},
		{0.1, []float64{2, 1}, 1.1},
		{0.1, []float64{10, 2, 1, 4, 3}, 1.4}, // 0.4 of the way from 1 to 2
		{0.9, []float64{10, 2, 1, 4, 3}, 7.6}, // 0.6 of the way from 4 to 10
	} {
		if got := quantile.Of(c.p, c.values); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("quantile %v of %v is %v, want %v", c.p, c.values, got, c.want)
		}
	}
}
