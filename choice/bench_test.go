package choice

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"vitrine/internal/fatal"
)

// race returns choices among ten alternatives with twelve standard normal variables.
func race(tb testing.TB, choices int) (*Data, Utility) {
	tb.Helper()
	const alternatives, variables = 10, 12
	rng := rand.New(rand.NewPCG(1, 1))
	var labels []string
	var u Utility
	for i := range alternatives {
		labels = append(labels, strconv.Itoa(i))
	}
	theta := make([]float64, variables)
	for v := range theta {
		u.Generic = append(u.Generic, "x"+strconv.Itoa(v))
		theta[v] = 0.1 * float64(v-6)
	}
	b := NewBuilder(labels, u.Generic, false)
	c := Case{Alternatives: make([]int, alternatives), X: make([]float64, alternatives*variables)}
	for range choices {
		best := math.Inf(-1)
		for a := range alternatives {
			c.Alternatives[a] = a
			v := -math.Log(rng.ExpFloat64())
			for k, t := range theta {
				x := rng.NormFloat64()
				c.X[a*variables+k] = x
				v += t * x
			}
			if v > best {
				best, c.Chosen = v, a
			}
		}
		fatal.If(tb, b.Add(c))
	}
	d := fatal.Or(b.Data())(tb)
	return d, u
}

func BenchmarkFit(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			d, u := race(b, n)
			spec := &Spec{Utility: u}
			for b.Loop() {
				r, err := Fit(context.Background(), spec, d, Options{Workers: 1})
				if err != nil || !r.Converged {
					b.Fatal(err)
				}
			}
		})
	}
}
