package env_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/env"
	"vitrine/env/envtest"
	"vitrine/internal/expect"
	"vitrine/internal/panics"
)

func TestTableIsAWorld(t *testing.T) {
	p := numbered(30)
	rng := newRand(1)
	for range 1000 {
		p.Sets = append(p.Sets, []int32{rng.Int32N(30), rng.Int32N(30), rng.Int32N(30)})
	}
	truth := env.Shifted{Truth: p.Truth(), By: 2}
	envtest.TestEnvironment(t, &env.World{Items: 3, Contexts: env.NewTable(p), Truth: truth, Revenues: env.One{}}, 3, 2)
}

// A context shows the alternatives of a choice of the same size, in their order. All such choices are equally likely.
func TestTableDrawsChoices(t *testing.T) {
	p, rng := numbered(12), newRand(3)
	p.Sets = [][]int32{{3, 1}, {0, 2, 4}, {1, 3}, {7, 7, 5}, {11, 0}}
	table := env.NewTable(p)
	expect.List(t, table.Sizes(), []int{2, 3}, "sizes")
	const draws = 30_000
	count := map[[2]float64]float64{}
	x := mat.NewDense(2, 2, nil)
	for range draws {
		table.Draw(x, rng)
		count[[2]float64{x.At(0, 0), x.At(1, 0)}]++
	}
	for _, set := range [][2]float64{{3, 1}, {1, 3}, {11, 0}} {
		if share := count[set] / draws; math.Abs(share-1./3) > 5*math.Sqrt(2./9/draws) {
			t.Errorf("choice %v is drawn with share %v, want 1/3", set, share)
		}
	}
	if panics.Value(func() { table.Draw(mat.NewDense(4, 2, nil), rng) }) == nil {
		t.Error("no panic for a context as large as no choice")
	}
}
