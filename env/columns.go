package env

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Columns are features as shops have them, one kind for each column. It is the distribution of the features.
type Columns []Column

// Column is a kind of feature: how it is drawn, and the taste of customers for a value, of mean about 0 and standard
// deviation about 1.
type Column struct {
	Draw  func(rng *rand.Rand) float64
	Taste func(x float64) float64
}

// logNormal returns the kind of ⌊exp(mean + sd z)⌋ with standard normal z, in units of unit and at most most. Its taste
// is z, up to rounding.
func logNormal(mean, sd, unit, most float64) Column {
	return Column{
		func(rng *rand.Rand) float64 {
			return min(most, unit*math.Floor(math.Exp(mean+float64(sd*rng.NormFloat64()))/unit))
		},
		func(x float64) float64 { return (math.Log(max(x, 0)+float64(unit/2)) - mean) / sd },
	}
}

// ColumnKinds are the kinds of columns by name.
var ColumnKinds = map[string]Column{
	"count": logNormal(3, 1.5, 1, 9999), // of reviews
	"stars": { // half stars
		func(rng *rand.Rand) float64 { return max(2, min(10, math.Round(8+float64(1.2*rng.NormFloat64())))) / 2 },
		func(x float64) float64 { return (x - 4) / 0.6 },
	},
	"pareto": {func(rng *rand.Rand) float64 { return min(9999, 1/(1-rng.Float64())) }, func(x float64) float64 {
		return math.Log(max(x, 1)) - 1
	}},
	"yen":        logNormal(8.5, 0.8, 10, 1e6),
	"population": logNormal(12, 1.5, 1, 1e8),
	"timestamp": {
		func(rng *rand.Rand) float64 { return math.Floor(1.7e9 + float64(1e7*rng.NormFloat64())) },
		func(x float64) float64 { return (x - 1.7e9) / 1e7 },
	},
}

// Draw implements [Contexts].
func (c Columns) Draw(x *mat.Dense, rng *rand.Rand) {
	n, _ := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		for j, k := range c {
			row[j] = k.Draw(rng)
		}
	}
}

// NewTastes returns the truth f(x) = strength Σ_j w_j taste_j(x_j) + base, with w from U[−1, 1]^d.
func NewTastes(c Columns, strength, base float64, rng *rand.Rand) *Formula {
	return newFormula("columns", len(c), 1, rng, func(x, w []float64) float64 {
		u := base
		for j, k := range c {
			u += float64(strength * w[j] * k.Taste(x[j]))
		}
		return u
	})
}

// Priced draws items of a price, log-normal with the median 20, and a category: one of the other columns is 1.
type Priced struct{}

// Draw implements [Contexts].
func (Priced) Draw(x *mat.Dense, rng *rand.Rand) {
	n, d := x.Dims()
	for i := range n {
		row := x.RawRowView(i)
		clear(row)
		row[0] = math.Exp(logPrice + float64(logPriceSD*rng.NormFloat64()))
		row[1+rng.IntN(d-1)] = 1
	}
}

// The mean and the standard deviation of the logarithm of prices.
var logPrice = math.Log(20)

const logPriceSD = 0.6

// NewIdeals returns a truth for [Priced] items with an ideal price w_c for each category, in standardised logarithms z,
//
//	f(x) = 1 − (z − w_c)² − v_c
//
// with w from U[−1, 1] and v from U[0, 1]. It panics unless d ≥ 2.
func NewIdeals(d int, rng *rand.Rand) *Formula {
	t := newFormula("ideals", d, 2, rng, func(x, w []float64) float64 {
		z := (math.Log(x[0]) - logPrice) / logPriceSD
		for c, has := range x[1:] {
			if has == 1 {
				return 1 - float64((z-w[1+c])*(z-w[1+c])) - w[len(x)+c]
			}
		}
		return 0
	})
	for range d - 1 {
		t.w = append(t.w, rng.Float64())
	}
	return t
}

// NewRings returns a truth that rises and falls with the distance from the middle, f(x) = 2 sin ‖x‖² − ½.
func NewRings(d int, rng *rand.Rand) *Formula {
	return newFormula("rings", d, 1, rng, func(x, _ []float64) float64 {
		return float64(2*math.Sin(squaredDistance(x, make([]float64, len(x))))) - 0.5
	})
}

// NewLowRank returns a truth in which customers of different features like different items, x = (y, c) with the
// customer's features c last,
//
//	f(x) = s Σ_r (yᵀp_r)(cᵀq_r) / √(rank) − 1
//
// with unit vectors p_r and q_r drawn uniformly. Its parameters are p_1, q_1, p_2, …
func NewLowRank(d, customer, rank int, s float64, rng *rand.Rand) *Formula {
	items := d - customer
	w := make([]float64, rank*d)
	for r := range rank {
		copy(w[r*d:], frame(1, items, rng)[0])
		copy(w[r*d+items:], frame(1, customer, rng)[0])
	}
	return &Formula{"low-rank", d, w, func(x, w []float64) float64 {
		u := 0.0
		for r := range rank {
			p, c := 0.0, 0.0
			for j, v := range w[r*d:][:d] {
				if j < items {
					p += float64(v * x[j])
				} else {
					c += float64(v * x[j])
				}
			}
			u += float64(p * c)
		}
		return float64(s*u/math.Sqrt(float64(rank))) - 1
	}}
}

// NewTrees returns a truth of regression trees, for features of mean 0 and standard deviation 1,
//
//	f(x) = s Σ_k leaf_k(x) / √trees − ½
//
// A tree has 2^depth leaves from N(0, 1). Each of its other nodes sends items with x_j > c to the right, for a j drawn uniformly
// and c from N(0, ¼). The parameters of a tree are j and c of each node, from the root down, then its leaves.
func NewTrees(d, trees, depth int, s float64, rng *rand.Rand) *Formula {
	nodes := 1<<depth - 1
	size := 3*nodes + 1
	w := make([]float64, trees*size)
	for k := range w {
		switch at := k % size; {
		case at >= 2*nodes:
			w[k] = rng.NormFloat64()
		case at%2 == 0:
			w[k] = float64(rng.IntN(d))
		default:
			w[k] = rng.NormFloat64() / 2
		}
	}
	return &Formula{"trees", d, w, func(x, w []float64) float64 {
		u := 0.0
		for ; len(w) > 0; w = w[size:] {
			node := 0
			for node < nodes {
				right := x[int(w[2*node])] > w[2*node+1]
				node = 2*node + 1
				if right {
					node++
				}
			}
			u += w[nodes+node]
		}
		return float64(s*u/math.Sqrt(float64(trees))) - 0.5
	}}
}
