package gram_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"vitrine/internal/gram"
)

// The rough bound exceeds the norm that Norms computes, for vectors of any size and with any number of directions.
func TestRoughBoundIsAboveTheNorm(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		const n = 64
		d := 2 + rng.IntN(24)
		v, often := randomGram(rng, d)
		last := 1 + rng.IntN(d-1)
		groups := 2 + rng.IntN(min(4, d-last))
		group := make([]int, d)
		for i := range group {
			if group[i] = i % (groups - 1); i >= d-last {
				group[i] = groups - 1
			}
		}
		b := v.Inverse().Rough(func(i int) int { return group[i] }, 1+rng.IntN(last))
		if b.NumDirections() == 0 {
			return
		}
		found++
		g := hardVectors(rng, v, often, n)
		norms, squares, bounds := make([]float64, n), make([]float64, n), make([]float64, n)
		v.Inverse().Norms(norms, g)
		var along []float64
		for i := range n {
			for j, e := range g.RawRowView(i) {
				squares[i] += b.Glance()[group[j]] * e * e
			}
		}
		for k := range b.NumDirections() {
			for i := range n {
				q := mat.NewVecDense(last, b.Directions(k, k+1))
				along = append(along, mat.Dot(q, g.RowView(i).(*mat.VecDense).SliceVec(d-last, d)))
			}
		}
		b.Sketches(bounds, squares, along)
		for i, norm := range norms {
			if gram.Norm(bounds[i]) < norm {
				t.Fatalf("d = %d: bound %v of a norm of %v", d, gram.Norm(bounds[i]), norm)
			}
		}
	})
	if found == 0 {
		t.Error("there is no rough bound")
	}
}

// A rough bound is tight for groups without common entries in V⁻¹, if it uses all directions.
func TestRoughBoundIsTight(t *testing.T) {
	v := gram.NewDiagonal([]float64{0.5, 0.5, 5, 5, 1, 2, 3})
	b := v.Inverse().Rough(func(i int) int { return min(i/2, 2) }, 3)
	g := mat.NewDense(1, 7, []float64{1, 2, 3, 4, 5, 6, 7})
	norm, bound := make([]float64, 1), make([]float64, 1)
	v.Inverse().Norms(norm, g)
	square := []float64{b.Glance()[0]*(1+4) + b.Glance()[1]*(9+16) + b.Glance()[2]*(25+36+49)}
	var along []float64
	for k := range b.NumDirections() {
		along = append(along, mat.Dot(mat.NewVecDense(3, b.Directions(k, k+1)), mat.NewVecDense(3, []float64{5, 6, 7})))
	}
	if b.Sketches(bound, square, along); !(math.Abs(gram.Norm(bound[0])/norm[0]-1) < 1e-2) {
		t.Errorf("bound %v of a norm of %v", gram.Norm(bound[0]), norm[0])
	}
}
