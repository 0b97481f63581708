package page

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/bandit"
	"vitrine/service/api"
	"vitrine/service/feature"
)

const (
	maxOrders        = 16      // random orders of the features, each with its reverse
	maxWork          = 1 << 22 // floats in the rows of one item; larger items get fewer orders
	maxContributions = 24
)

// contributionsOf splits a row's utility among its features and returns the largest shares. The shares are Shapley
// values: a coalition of features takes its columns from the row, and all other columns from the reference.
//
//	u(row) = u(reference) + Σ_f φ_f
//
// The features are added in random orders from a fixed seed, each order followed by its reverse. If the utility is
// affine, every order gives φ_f = w_f (row_f − reference_f), so one order is enough. A feature whose columns equal the
// reference gets no share.
func contributionsOf(e bandit.Explainer, s *feature.Schema, row,
	reference []float64) (base float64, list []api.Contribution) {
	var active []int
	parts, shares := s.Parts(), map[int]float64{}
	for k, p := range parts {
		if !slices.Equal(row[p.From:p.From+p.Size], reference[p.From:p.From+p.Size]) {
			active = append(active, k)
		}
	}
	d, n := len(row), len(active)+1
	orders := min(maxOrders, max(1, maxWork/(2*n*d)))
	if e.IsLinear() {
		orders = 1
	}
	rng := rand.New(rand.NewPCG(1, 1))
	rows, u, ignored := mat.NewDense(n, d, nil), make([]float64, n), make([]float64, n)
	for range orders {
		rng.Shuffle(len(active), func(i, j int) { active[i], active[j] = active[j], active[i] })
		for range 2 {
			rows.SetRow(0, reference)
			for i, k := range active {
				next := rows.RawRowView(i + 1)
				copy(next, rows.RawRowView(i))
				p := parts[k]
				copy(next[p.From:p.From+p.Size], row[p.From:p.From+p.Size])
			}
			e.Value(u, ignored, rows)
			base = u[0]
			for i, k := range active {
				shares[k] += (u[i+1] - u[i]) / float64(2*orders)
			}
			slices.Reverse(active)
		}
	}
	return base, largest(s, row, shares)
}

// largest lists the largest shares and sums up the rest.
func largest(s *feature.Schema, row []float64, shares map[int]float64) []api.Contribution {
	var list []api.Contribution
	for k, p := range s.Parts() {
		if share, ok := shares[k]; ok {
			list = append(list, api.Contribution{Feature: p.Name, Value: valueOf(s.Value(row, k)), Utility: share})
		}
	}
	slices.SortStableFunc(list, func(a, b api.Contribution) int {
		return cmp.Compare(math.Abs(b.Utility), math.Abs(a.Utility))
	})
	if len(list) > maxContributions {
		rest := api.Contribution{}
		for _, c := range list[maxContributions:] {
			rest.Utility += c.Utility
		}
		list = append(list[:maxContributions], rest)
	}
	return list
}

// valueOf returns a value for JSON, or nil if it is missing.
func valueOf(v api.Value) any {
	switch v.Kind {
	case api.IsNumber:
		return v.Number
	case api.IsText:
		return v.Text
	}
	return nil
}

// usable returns a number that JSON can express and a set can have as utility, or nil.
func usable(v float64) *float64 {
	if !(math.Abs(v) <= 700) {
		return nil
	}
	return &v
}
