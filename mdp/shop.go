package mdp

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine/assortment"
	"vitrine/env"
	"vitrine/utility"
)

// The budget shop: states, steps, features of an item, and items of a page.
const (
	budgets  = 5
	steps    = 5
	features = 5
	pageSize = 5
)

// BudgetShop returns the world of Lee and Oh (2025, Section 6.1) with n items: a state is a visitor's budget j = 1, …,
// 5, the middle one at first, in a session of five pages of at most five items. To buy item i = 1, …, n with budget j
// earns
//
//	r = (i/(100n) + j/5) / 5,
//
// and the budget falls to max(j−1, 1) with probability i/n, and otherwise grows to min(j+1, 5). A visitor who buys no
// item earns 0, and the budget grows. (The paper prints a least budget of 0, which is no state.) The utilities are
// φ(s,i)ᵀθ. φ and θ are uniform on [−1, 1]⁵/√5, a range that the paper leaves open.
func BudgetShop(n int, rng *rand.Rand) *World {
	x := make([]*mat.Dense, budgets)
	for s := range x {
		x[s] = draws(n, features, 1/math.Sqrt(features), rng)
	}
	theta := draws(1, features, 1/math.Sqrt(features), rng).RawRowView(0)
	linear := utility.NewLinear(features, false)
	return budgetShop(x, func(dst []float64, x *mat.Dense) { linear.Utilities(dst, theta, x) })
}

// networkScale bounds the weights of a network's truth. The standard deviation of an instance's utilities is about 2,
// and a plan for the nearest linear utilities earns 96 to 98% of the optimum.
const networkScale = 6

// NetworkShop returns the budget shop with the utilities f_w(φ(s,i), b_s): a network of three sigmoid units, with
// weights uniform on [−6, 6], φ uniform on [−1, 1]⁵, and the budget b_s = −1, −½, …, 1 as a sixth feature.
func NetworkShop(n int, rng *rand.Rand) *World {
	x := make([]*mat.Dense, budgets)
	for s := range x {
		x[s] = draws(n, features+1, 1, rng)
		for i := range n {
			x[s].Set(i, features, float64(2*s-budgets+1)/(budgets-1))
		}
	}
	network := utility.NewMLP(features+1, []int{3}, utility.Sigmoid)
	return budgetShop(x, env.NewFamily(network, -networkScale, networkScale, rng).Utilities)
}

// draws returns a matrix of uniform numbers up to a size.
func draws(n, d int, size float64, rng *rand.Rand) *mat.Dense {
	x := mat.NewDense(n, d, nil)
	x.Apply(func(int, int, float64) float64 { return size * (2*rng.Float64() - 1) }, x)
	return x
}

// budgetShop returns the world of the features with the utilities.
func budgetShop(x []*mat.Dense, utilities func(dst []float64, x *mat.Dense)) *World {
	w := &World{Problem: Problem{Horizon: steps, Features: x, Feasible: assortment.AtMost(pageSize)},
		Start: budgets / 2}
	n := w.Items()
	for s := range x {
		u, r, next := make([]float64, n), make([]float64, n+1), make([][]float64, n+1)
		utilities(u, x[s])
		for a := range next {
			next[a] = make([]float64, budgets)
			falls := float64(a) / float64(n)
			if a > 0 {
				r[a] = (falls/100 + float64(s+1)/budgets) / steps
			}
			next[a][min(s+1, budgets-1)] += 1 - falls
			next[a][max(s-1, 0)] += falls
		}
		w.Utility, w.Reward, w.Next = append(w.Utility, u), append(w.Reward, r), append(w.Next, next)
	}
	return w
}
