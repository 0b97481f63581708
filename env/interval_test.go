package env_test

import (
	"math"
	"testing"

	"vitrine/env"
)

func TestCheckInterval(t *testing.T) {
	for _, c := range []struct {
		name      string
		low, high float64
		want      string
	}{
		{"OK", -3, 3, ""},
		{"a point", 1, 1, ""},
		{"low NaN", math.NaN(), 1, "low = NaN: must be finite"},
		{"low infinite", math.Inf(-1), 1, "low = -Inf: must be finite"},
		{"high NaN", 0, math.NaN(), "high = NaN: must be finite"},
		{"high infinite", 0, math.Inf(1), "high = +Inf: must be finite"},
		{"both infinite", math.Inf(-1), math.Inf(1), "low = -Inf: must be finite"},
		{"too wide to draw from", -1e308, 1e308, "low = -1e+308: too far below high = 1e+308"},
		{"out of order", 2, 1, "low = 2: must not exceed high = 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if err := env.CheckInterval(c.low, c.high); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("CheckInterval(%v, %v) says %q, want %q", c.low, c.high, got, c.want)
			}
		})
	}
}
