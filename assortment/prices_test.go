package assortment_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"vitrine/assortment"
)

// profit returns the expected profit of prices, by its definition.
func profit(items []assortment.Priced, prices []float64) float64 {
	sum, earned := 1.0, 0.0
	for i, p := range items {
		v := math.Exp(p.Utility - p.Sensitivity*prices[i])
		sum += v
		earned += v * (prices[i] - p.Cost)
	}
	return earned / sum
}

// No change of a price earns more, near or far, and the profit is that of the prices.
func TestOptimalPrices(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for trial := range 500 {
		items := make([]assortment.Priced, 1+rng.IntN(6))
		for i := range items {
			items[i] = assortment.Priced{Utility: 6*rng.Float64() - 2, Sensitivity: math.Exp(3*rng.Float64() - 2), Cost: 2 * rng.Float64()}
			if trial%2 == 0 {
				items[i].Sensitivity = 0.7
			}
		}
		prices, best, err := assortment.OptimalPrices(nil, items)
		if err != nil {
			t.Fatal(err)
		}
		if got := profit(items, prices); math.Abs(got-best) > 1e-12*(1+best) {
			t.Fatalf("%+v: prices %v earn %v, not %v", items, prices, got, best)
		}
		for range 200 {
			moved := append([]float64(nil), prices...)
			size := math.Exp(8*rng.Float64() - 6)
			for i := range moved {
				moved[i] += size * rng.NormFloat64()
			}
			if v := profit(items, moved); v > best*(1+1e-12) {
				t.Fatalf("%+v: prices %v earn %v, more than %v of %v", items, moved, v, best, prices)
			}
		}
	}
}

// With equal sensitivities the profit is W(Σ exp(a_i − b c_i − 1))/b, with Lambert's W (Li and Huh
// 2011): for a = 1, b = 1, c = 0 it is W(1) = 0.567143290409783872….
func TestOptimalPricesKnown(t *testing.T) {
	prices, best, err := assortment.OptimalPrices([]float64{9, 9}, []assortment.Priced{{Utility: 1, Sensitivity: 1}})
	if err != nil || math.Abs(best-0.567143290409783872) > 1e-15 || len(prices) != 1 || math.Abs(prices[0]-1.567143290409783872) > 1e-15 {
		t.Errorf("prices %v, profit %v, %v", prices, best, err)
	}
	if prices, best, err := assortment.OptimalPrices(nil, nil); err != nil || best != 0 || len(prices) != 0 {
		t.Errorf("without items: %v, %v, %v", prices, best, err)
	}
	// Utilities whose exponentials are beyond a float64.
	for _, u := range []float64{-800, 800, 5000} {
		prices, best, err := assortment.OptimalPrices(nil, []assortment.Priced{{Utility: u, Sensitivity: 1}, {Utility: u - 1, Sensitivity: 2, Cost: 1}})
		if err != nil || !(best >= 0) || math.IsInf(best, 0) || !(prices[0] >= 1) {
			t.Errorf("utility %v: prices %v, profit %v, %v", u, prices, best, err)
		}
	}
	for _, p := range []assortment.Priced{{Sensitivity: 0}, {Sensitivity: -1}, {Utility: math.NaN(), Sensitivity: 1}, {Cost: math.Inf(1), Sensitivity: 1}} {
		if _, _, err := assortment.OptimalPrices(nil, []assortment.Priced{p}); err == nil {
			t.Errorf("%+v has no error", p)
		}
	}
}
