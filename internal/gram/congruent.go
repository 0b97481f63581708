package gram

import (
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Congruent returns TᵀV⁻¹T for a d×k matrix T. The norm of g under it is the norm of Tg under V⁻¹, up to rounding. The
// result need not be definite.
func (v Inverse) Congruent(t *mat.Dense) Inverse {
	d, k := t.Dims()
	if d != v.d {
		panic("gram: Congruent needs a matrix with d rows")
	}
	var half, whole mat.Dense
	half.Mul(Unpack(nil, v.p, d), t)
	whole.Mul(t.T(), &half)
	c := Inverse{d: k, p: make([]float64, 0, kernel.PackedLen(k))}
	for i := range k {
		for j := i; j < k; j++ {
			c.p = append(c.p, (whole.At(i, j)+whole.At(j, i))/2)
		}
	}
	return c
}
