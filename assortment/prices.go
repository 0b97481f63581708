package assortment

import (
	"fmt"
	"math"
)

// Priced is an item whose utility falls with its price, u = Utility − Sensitivity · price.
type Priced struct {
	Utility     float64 // at price 0
	Sensitivity float64 // > 0
	Cost        float64 // of one sold
}

// OptimalPrices returns the prices p of the largest expected profit when all items are shown and
// customers choose by the MNL model, and that profit of a customer,
//
//	max_p Σ_i (p_i − c_i) exp(a_i − b_i p_i) / (1 + Σ_j exp(a_j − b_j p_j))
//
// The margin of each item is the same but for its sensitivity, p_i = c_i + 1/b_i + R, where the profit
// R is the one solution of
//
//	R = Σ_i exp(a_i − b_i (c_i + R) − 1) / b_i
//
// whose right side falls in R. Every item is worth showing: one more item raises R. Source: Gallego
// and Wang (2014), Section 3; with equal sensitivities Li and Huh (2011).
//
// The prices are stored in dst; nil allocates. It returns an error that names an item whose numbers
// are not finite or whose sensitivity is not positive.
func OptimalPrices(dst []float64, items []Priced) (prices []float64, profit float64, err error) {
	for i, p := range items {
		if !(p.Sensitivity > 0) || math.IsInf(p.Sensitivity, 1) || math.IsNaN(p.Utility+p.Cost) || math.IsInf(p.Utility+p.Cost, 0) {
			return nil, 0, fmt.Errorf("item %d has utility %v, sensitivity %v and cost %v: want finite numbers, and a sensitivity above 0", i, p.Utility, p.Sensitivity, p.Cost)
		}
	}
	dst, profit = dst[:0], marginRoot(items)
	for _, p := range items {
		dst = append(dst, p.Cost+1/p.Sensitivity+profit)
	}
	return dst, profit, nil
}

// marginRoot solves log Σ_i exp(a_i − b_i (c_i + R) − 1)/b_i = log R by Newton's method in y = log R,
// between bounds that the sign narrows. The left side falls in R and the right side rises.
func marginRoot(items []Priced) float64 {
	if len(items) == 0 {
		return 0
	}
	// f returns left − right and its slope in y.
	f := func(y float64) (value, slope float64) {
		r, top := math.Exp(y), math.Inf(-1)
		exponent := func(p Priced) float64 {
			return p.Utility - p.Sensitivity*(p.Cost+r) - 1 - math.Log(p.Sensitivity)
		}
		for _, p := range items {
			top = max(top, exponent(p))
		}
		sum, weighted := 0.0, 0.0
		for _, p := range items {
			e := math.Exp(exponent(p) - top)
			sum += e
			weighted += e * p.Sensitivity
		}
		return top + math.Log(sum) - y, -r*weighted/sum - 1
	}
	low, high := -1.0, 1.0
	for v, _ := f(low); v < 0; v, _ = f(low) {
		low = 2 * low
	}
	for v, _ := f(high); v > 0; v, _ = f(high) {
		high = 2 * high
	}
	y := (low + high) / 2
	for high-low > 1e-15*(1+math.Abs(y)) {
		v, slope := f(y)
		if v > 0 {
			low = y
		} else {
			high = y
		}
		next := y - v/slope
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		if next == y {
			break
		}
		y = next
	}
	return math.Exp(y)
}
