package env_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/env"
	"vitrine/env/envtest"
	"vitrine/internal/expect"
	"vitrine/utility"
)

// numbered is a pool of m items with their number as the first feature.
func numbered(m int) *env.Pool {
	x := mat.NewDense(m, 2, nil)
	for i := range m {
		x.SetRow(i, []float64{float64(i), 1 / float64(i+1)})
	}
	return &env.Pool{Features: x, Model: utility.NewLinear(2, false), Params: []float64{0.1, -1}}
}

func TestPoolIsAWorld(t *testing.T) {
	p := numbered(30)
	for name, truth := range map[string]env.Truth{
		"utility": p.Truth(), "probability": env.Probability{Truth: p.Truth()},
	} {
		t.Run(name, func(t *testing.T) {
			envtest.TestEnvironment(t, &env.World{Items: 12, Contexts: p, Truth: truth, Revenues: env.One{}}, 12, 2)
		})
	}
}

// A context's items are distinct, whole rows of the pool, and every item is equally likely.
func TestPoolDrawsItemsWithoutReplacement(t *testing.T) {
	const m, n, draws = 12, 5, 20_000
	p, rng := numbered(m), newRand(3)
	x := mat.NewDense(n, 2, nil)
	var count [m]float64
	for range draws {
		p.Draw(x, rng)
		var seen [m]bool
		for k := range n {
			i := int(x.At(k, 0))
			if x.At(k, 1) != 1/float64(i+1) || seen[i] {
				t.Fatalf("row %d of\n%v", k, mat.Formatted(x))
			}
			seen[i] = true
			count[i]++
		}
	}
	share := float64(n) / m
	for i, c := range count {
		if se := math.Sqrt(share * (1 - share) / draws); math.Abs(c/draws-share) > 5*se {
			t.Errorf("item %d is in %v of the contexts, want %v ± %v", i, c/draws, share, se)
		}
	}
	whole := mat.NewDense(m, 2, nil)
	p.Draw(whole, rng)
	expect.Equal(t, mat.Sum(whole.ColView(0)), m*(m-1)/2, "a context as large as the pool has item numbers that sum to")
}

func TestProbabilityIsTheLogisticFunction(t *testing.T) {
	p := numbered(4)
	u, q := make([]float64, 4), make([]float64, 4)
	p.Truth().Utilities(u, p.Features)
	env.Probability{Truth: p.Truth()}.Utilities(q, p.Features)
	for i := range u {
		if want := 1 / (1 + math.Exp(-u[i])); math.Abs(q[i]-want) > 1e-14 {
			t.Errorf("item %d: %v, want %v", i, q[i], want)
		}
	}
}

func TestChecksumTellsPoolsApart(t *testing.T) {
	p, q := numbered(4), numbered(4)
	expect.Equal(t, p.Checksum(), q.Checksum(), "equal pools have different checksums")
	q.Params[1] = -2
	if p.Checksum() == q.Checksum() {
		t.Error("pools of different parameters have one checksum")
	}
}

func TestChecksumHasTheSets(t *testing.T) {
	p, q := numbered(4), numbered(4)
	p.Sets, q.Sets = [][]int32{{0, 1}, {2}}, [][]int32{{0}, {1, 2}}
	if p.Checksum() == q.Checksum() || p.Checksum() == numbered(4).Checksum() {
		t.Error("pools of different sets have one checksum")
	}
}
