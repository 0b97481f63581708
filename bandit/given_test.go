package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/search"
	"vitrine/internal/gram"
	"vitrine/utility"
)

// The policy of the mapped rows finds the optimistic utilities of the rows, and makes the same offers.
func TestGiven(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	normal := func(rows, columns int) *mat.Dense {
		m := mat.NewDense(rows, columns, nil)
		m.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, m)
		return m
	}
	for _, intercept := range []bool{false, true} {
		for _, radius := range []float64{0, 2, -2} {
			const n, d, k = 3000, 9, 4
			model := utility.NewLinear(d, intercept)
			v := gram.New(model.NumParams(), 1)
			for range 20 {
				v.Add(1, normal(1, model.NumParams()).RawRowView(0))
			}
			o := &optimistic{p: Problem{NumFeatures: d, MaxShown: 5, Constraint: assortment.AtMost(5)},
				z: search.Optimistic{
					Model: model, Params: normal(1, model.NumParams()).RawRowView(0), Inverse: v.Inverse(),
					Radius: radius,
					Slack:  0.3,
				}}
			m, c, a := normal(d, k), normal(1, d).RawRowView(0), normal(n, k)
			x := new(mat.Dense)
			x.Mul(a, m.T())
			for i := range n {
				for j := range d {
					x.Set(i, j, x.At(i, j)+c[j])
				}
			}
			reduced := o.Given(m, c).(*optimistic)
			for _, revenue := range [][]float64{nil, normal(1, n).RawRowView(0)} {
				for i := range revenue {
					revenue[i] = math.Abs(revenue[i])
				}
				rows, mapped := &vitrine.Context{Features: x, Revenue: revenue},
					&vitrine.Context{Features: a, Revenue: revenue}
				want, got := o.z.Utilities(nil, rows), reduced.z.Utilities(nil, mapped)
				for i := range want {
					if math.Abs(want[i]-got[i]) > 1e-9*max(1, math.Abs(want[i])) {
						t.Fatalf("item %d has %v, want %v", i, got[i], want[i])
					}
				}
				if a, b := o.Offer(rows, nil).Assortment, reduced.Offer(mapped, nil).Assortment; !slices.Equal(a, b) {
					t.Errorf("the offers are %v and %v", a, b)
				}
			}
		}
	}
	u := uniform{Problem{NumFeatures: 9, MaxShown: 5, Constraint: assortment.AtMost(5)}}
	short := u.Given(normal(9, 2), nil).Offer(&vitrine.Context{Features: normal(30, 2)}, rand.New(rand.NewPCG(1, 1)))
	if whole := u.Offer(&vitrine.Context{Features: normal(30, 9)}, rand.New(rand.NewPCG(1, 1))); !slices.Equal(
		short.Assortment, whole.Assortment) || short.Propensity != whole.Propensity {
		t.Errorf("the uniform offers are %v and %v", short, whole)
	}
	mlp := &optimistic{z: search.Optimistic{Model: utility.NewMLP(2, []int{3}, utility.Sigmoid)}}
	if mlp.Given(mat.NewDense(2, 1, nil), make([]float64, 2)) != nil {
		t.Error("a utility that is not linear is reduced")
	}
}
