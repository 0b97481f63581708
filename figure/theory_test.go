package figure_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vitrine/figure"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/theory"
)

// study returns a small, made-up study.
func study() figure.Theory {
	r := figure.Theory{Study: theory.Study{Seeds: []uint64{0, 1}}}
	for _, beta := range []float64{0, 1, 10, 100, 1000} {
		share := beta / (10 + beta)
		r.Coverage = append(r.Coverage, theory.Coverage{
			Beta: beta, Covered: share, Always: share * share, Optimistic: math.Sqrt(share), Best: share,
			Revenue: 1 - (1-share)/2,
		})
		for t := 100; t <= 1000; t += 100 {
			x := float64(t)
			r.Path = append(r.Path, theory.Path{
				Beta: beta, Round: t, Radius: beta * x / 1000, Low: 20, Distance: 30 + x/10, High: 100 + x,
				Potential: math.Sqrt(x), Bound: 10 * math.Log(x),
			})
		}
	}
	for _, g := range []struct {
		along, policy string
		values        []int
		exponent      float64
	}{
		{"rounds", theory.Scaled, []int{250, 1000, 4000, 16_000}, 0.5},
		{"rounds", theory.Fixed, []int{250, 1000, 4000, 16_000}, 0.4},
		{"items", theory.Fixed, []int{25, 100, 400, 1600}, 0.1},
		{"sizes", theory.Fixed, []int{1, 3, 20}, -1},
		{"params", theory.Scaled, []int{6, 16, 81}, 1},
		{"params", theory.Fixed, []int{6, 16, 81}, 0.5},
		{"warmup", theory.Adam, []int{25, 100, 1600}, 0},
		{"warmup", theory.MAP, []int{25, 100, 1600}, -1},
		{"commit", theory.Committed, []int{250, 1000, 4000, 16_000}, 0.9},
		{"commit", theory.CommittedMAP, []int{250, 1000, 4000, 16_000}, 0.67},
	} {
		parts := []string{theory.Total, theory.Phase2}
		if g.along == "warmup" {
			parts = []string{theory.Distance, theory.UtilityError}
		}
		for _, part := range parts {
			for _, v := range g.values {
				regret := 5 * math.Pow(float64(v), g.exponent)
				if part == theory.Phase2 || part == theory.UtilityError {
					regret /= 2
				}
				r.Growth = append(r.Growth, theory.Growth{Along: g.along, Policy: g.policy, Part: part, Value: v,
					Mean: regret, SE: regret / 10})
			}
			r.Slopes = append(r.Slopes, theory.Exponent{Along: g.along, Policy: g.policy, Part: part,
				Slope: theory.Slope{Estimate: g.exponent, Low: g.exponent - 0.1, High: g.exponent + 0.1}})
		}
	}
	return r
}

// An edited report may contain more lines than there are styles.
func TestTheoryOfManyPolicies(t *testing.T) {
	r := study()
	for range 9 {
		r.Slopes = append(r.Slopes, r.Slopes[0])
	}
	expect.Error(t, figure.Write(filepath.Join(t.TempDir(), "theory"), r), nil)
}

// A single seed gives no interval.
func TestTheoryOfOneSeed(t *testing.T) {
	for seeds, want := range map[int]bool{1: false, 2: true} {
		r := study()
		r.Study.Seeds = r.Study.Seeds[:seeds]
		path := filepath.Join(t.TempDir(), "theory")
		fatal.If(t, figure.Write(path, r))
		svg := fatal.Or(os.ReadFile(path + ".svg"))(t)
		expect.Equal(t, strings.Contains(string(svg), ">1 seed of"), seeds == 1, seeds,
			"seeds: the note says of 1 seed")
		if !strings.Contains(string(svg), "0.50") || strings.Contains(string(svg), "0.40 to 0.60") != want {
			t.Errorf("%d seeds: an interval is drawn, or none", seeds)
		}
	}
}
