package bandit

import (
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment/search"
	"vitrine/utility"
)

// Given returns a policy for short rows a, of k features. It offers what this policy offers for the rows
//
//	x = M a + c
//
// up to rounding, where M is a d×k matrix and c holds d entries. So rows that share a user's features need not be
// written out. A linear utility stays linear, θᵀx + b = (Mᵀθ)ᵀa + θᵀc + b, and so do the norms of the rows, with TᵀV⁻¹T
// in place of V⁻¹ for the map T of (a, 1). It returns nil if the utility is not linear.
func (o *optimistic) Given(m *mat.Dense, c []float64) vitrine.Policy {
	linear, ok := o.z.Model.(*utility.Linear)
	if !ok {
		return nil
	}
	d, k := m.Dims()
	theta := o.z.Params[:d]
	w := make([]float64, k+1)
	mat.NewVecDense(k, w[:k]).MulVec(m.T(), mat.NewVecDense(d, theta))
	w[k] = mat.Dot(mat.NewVecDense(d, theta), mat.NewVecDense(d, c))
	if linear.NumParams() > d {
		w[k] += o.z.Params[d]
	}
	p := o.p
	p.NumFeatures = k
	r := &optimistic{p: p, z: search.Optimistic{Model: utility.NewLinear(k, true), Params: w, Radius: o.z.Radius,
		Slack: o.z.Slack}}
	if o.z.Radius != 0 {
		t := mat.NewDense(linear.NumParams(), k+1, nil)
		for j := range d {
			row := t.RawRowView(j)
			copy(row, m.RawRowView(j))
			row[k] = c[j]
		}
		if linear.NumParams() > d {
			t.Set(d, k, 1)
		}
		r.z.Inverse = o.z.Inverse.Congruent(t)
	}
	return r
}

// Given returns the policy itself, because it reads no rows.
func (u uniform) Given(m *mat.Dense, _ []float64) vitrine.Policy {
	_, u.p.NumFeatures = m.Dims()
	return u
}
