package env_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine/env"
)

// Tastes for columns of each kind have the mean 0 and the standard deviation 1, up to rounding and the bounds of a
// kind.
func TestColumnsHaveStandardTastes(t *testing.T) {
	for name, c := range env.ColumnKinds {
		rng, tastes := newRand(4), []float64(nil)
		for range 20_000 {
			tastes = append(tastes, c.Taste(c.Draw(rng)))
		}
		mean, sd := stat.MeanStdDev(tastes, nil)
		if math.Abs(mean) > 0.15 || math.Abs(sd-1) > 0.15 {
			t.Errorf("%s: tastes have the mean %v and the standard deviation %v", name, mean, sd)
		}
	}
}

// The utility of a column is linear in the logarithm of a count.
func TestTastesAreLogarithms(t *testing.T) {
	c := env.Columns{env.ColumnKinds["pareto"], env.ColumnKinds["timestamp"]}
	truth := env.NewTastes(c, 2, -1, newRand(4))
	w, u := truth.Params(), make([]float64, 2)
	truth.Utilities(u, mat.NewDense(2, 2, []float64{math.E, 1.7e9, math.E * math.E, 1.71e9}))
	if math.Abs(u[0]+1) > 1e-9 || math.Abs(u[1]-(-1+2*w[0]+2*w[1])) > 1e-9 {
		t.Errorf("utilities %v for w = %v", u, w)
	}
}

// At the ideal price of its category an item is best.
func TestIdealsAreBest(t *testing.T) {
	truth := env.NewIdeals(3, newRand(4))
	w := truth.Params()
	for c := range 2 {
		u, x := make([]float64, 3), mat.NewDense(3, 3, nil)
		for i, z := range []float64{w[1+c] - 0.5, w[1+c], w[1+c] + 0.5} {
			x.Set(i, 0, 20*math.Exp(0.6*z))
			x.Set(i, 1+c, 1)
		}
		truth.Utilities(u, x)
		if math.Abs(u[1]-(1-w[3+c])) > 1e-9 || math.Abs(u[0]-u[1]+0.25) > 1e-9 || math.Abs(u[2]-u[1]+0.25) > 1e-9 {
			t.Errorf("category %d: utilities %v around the ideal, w = %v", c, u, w)
		}
	}
	x := mat.NewDense(200, 3, nil)
	env.Priced{}.Draw(x, newRand(4))
	for i := range 200 {
		if x.At(i, 0) <= 0 || x.At(i, 1)+x.At(i, 2) != 1 || x.At(i, 1)*x.At(i, 2) != 0 {
			t.Fatalf("item %v", x.RawRowView(i))
		}
	}
}

// The truth of low rank is a bilinear form of the given rank in the features of items and of customers.
func TestLowRankIsBilinear(t *testing.T) {
	const items, customer = 4, 3
	truth := env.NewLowRank(items+customer, customer, 2, 2, newRand(4))
	m, x, u := mat.NewDense(items, customer, nil), mat.NewDense(1, items+customer, nil), make([]float64, 1)
	for i := range items {
		for j := range customer {
			x.Zero()
			x.Set(0, i, 1)
			x.Set(0, items+j, 1)
			truth.Utilities(u, x)
			m.Set(i, j, u[0]+1)
		}
	}
	var svd mat.SVD
	svd.Factorize(m, mat.SVDNone)
	if s := svd.Values(nil); s[1] < 0.01 || s[2] > 1e-9 {
		t.Errorf("singular values %v, want two", s)
	}
}

// Rings depend on the distance from the middle only, and are highest where its square is π/2.
func TestRingsAreRound(t *testing.T) {
	u, r := make([]float64, 2), math.Sqrt(math.Pi/2)
	env.NewRings(2, newRand(4)).Utilities(u, mat.NewDense(2, 2, []float64{r, 0, r / math.Sqrt2, -r / math.Sqrt2}))
	if math.Abs(u[0]-1.5) > 1e-9 || math.Abs(u[1]-1.5) > 1e-9 {
		t.Errorf("utilities %v, want 1.5", u)
	}
}

// Utilities of trees are constant between the cuts, and have the mean and the standard deviation of their leaves.
func TestTreesAreSteps(t *testing.T) {
	const d, trees = 3, 5
	var all []float64
	for seed := range uint64(400) {
		truth := env.NewTrees(d, trees, 2, 2, newRand(seed))
		w, x, u := truth.Params(), mat.NewDense(2, d, nil), make([]float64, 2)
		env.Gaussian{}.Draw(x, newRand(seed))
		want := -0.5
		for ; len(w) > 0; w = w[10:] {
			node := func(k int) float64 { return x.At(0, int(w[2*k])) - w[2*k+1] }
			leaf := map[[2]bool]float64{
				{false, false}: w[6], {false, true}: w[7], {true, false}: w[8], {true, true}: w[9],
			}
			second := node(1)
			if node(0) > 0 {
				second = node(2)
			}
			want += 2 * leaf[[2]bool{node(0) > 0, second > 0}] / math.Sqrt(trees)
		}
		truth.Utilities(u, x)
		if math.Abs(u[0]-want) > 1e-9 {
			t.Fatalf("seed %d: utility %v, want %v", seed, u[0], want)
		}
		all = append(all, u[0])
	}
	if mean, sd := stat.MeanStdDev(all, nil); math.Abs(mean+0.5) > 0.4 || math.Abs(sd-2) > 0.3 {
		t.Errorf("utilities have the mean %v and the standard deviation %v, want −½ and 2", mean, sd)
	}
}
