package utility_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"vitrine/internal/panics"
	_ "vitrine/internal/rapidseed"
	"vitrine/utility"
)

// A sketch agrees with the gradients themselves, and its utilities match Utilities and Linearize bit for bit.
func TestSketch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		d, n, directions := 1+rng.IntN(5), 1+rng.IntN(300), rng.IntN(4)
		hidden := make([]int, rng.IntN(3))
		for l := range hidden {
			hidden[l] = 1 + rng.IntN(6)
		}
		for _, m := range []utility.Model{
			utility.NewMLP(d, hidden, utility.Activation(rng.IntN(5))),
			utility.NewLinear(d, false), utility.NewLinear(d, true),
		} {
			dw := m.NumParams()
			w, q := gaussian(rng, dw), gaussian(rng, directions*dw)
			x := mat.NewDense(n, d+2, gaussian(rng, n*(d+2))).Slice(0, n, 1, 1+d).(*mat.Dense)
			u, square, along := make([]float64, n), make([]float64, n), make([]float64, directions*n)
			m.(utility.Sketcher).Sketch(u, square, along, w, q, x)

			want, alone, g := make([]float64, n), make([]float64, n), mat.NewDense(n, dw, nil)
			utility.Linearize(m, want, g, w, x)
			m.Utilities(alone, w, x)
			for i := range n {
				if u[i] != want[i] || u[i] != alone[i] {
					t.Fatalf("%v: utility %v, by Linearize %v, by Utilities %v", m, u[i], want[i], alone[i])
				}
				row := g.RowView(i)
				norm2 := mat.Dot(row, row)
				if math.Abs(square[i]-norm2) > 1e-14*norm2 {
					t.Fatalf("%v: ‖∇f‖² = %v, want %v", m, square[i], norm2)
				}
				for k := range directions {
					qk := mat.NewVecDense(dw, q[k*dw:][:dw])
					got, want := along[k*n+i], mat.Dot(qk, row)
					if math.Abs(got-want) > 1e-14*mat.Norm(qk, 2)*math.Sqrt(norm2) {
						t.Fatalf("%v: q%dᵀ∇f = %v, want %v", m, k, got, want)
					}
				}
			}
		}
	})
}

// A glance agrees with the gradients' groups, and its utilities match Sketch's bit for bit.
func TestGlance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		d, h, n, directions := 1+rng.IntN(5), 1+rng.IntN(6), 1+rng.IntN(300), rng.IntN(9)
		m := utility.NewMLP(d, []int{h}, utility.Activation(rng.IntN(5)))
		dw := m.NumParams()
		w, q, weights := gaussian(rng, dw), gaussian(rng, directions*(h+1)), gaussian(rng, h+1)
		for j, v := range weights {
			weights[j] = v * v
		}
		x := mat.NewDense(n, d+2, gaussian(rng, n*(d+2))).Slice(0, n, 1, 1+d).(*mat.Dense)
		u, square, along := make([]float64, n), make([]float64, n), make([]float64, directions*n)
		m.Glance(u, square, along, w, append(weights[:h+1:h+1], q...), x)

		want, g := make([]float64, n), mat.NewDense(n, dw, nil)
		utility.Linearize(m, want, g, w, x)
		for i := range n {
			if u[i] != want[i] {
				t.Fatalf("%v: utility %v, want %v", m, u[i], want[i])
			}
			row, sum := g.RowView(i).(*mat.VecDense), 0.0
			for j := range dw {
				sum += weights[m.Group(j)] * row.AtVec(j) * row.AtVec(j)
			}
			if math.Abs(square[i]-sum) > 1e-14*sum {
				t.Fatalf("%v: ‖∇f‖² = %v by groups, want %v", m, square[i], sum)
			}
			last := row.SliceVec(dw-h-1, dw)
			for k := range directions {
				qk := mat.NewVecDense(h+1, q[k*(h+1):][:h+1])
				got, want := along[k*n+i], mat.Dot(qk, last)
				if math.Abs(got-want) > 1e-14*mat.Norm(qk, 2)*mat.Norm(last, 2) {
					t.Fatalf("%v: q%dᵀ∇f = %v, want %v", m, k, got, want)
				}
			}
		}
	})
}

// An item's results do not depend on its neighbours: a search evaluates an item in a different batch from the full
// computation.
func TestLinearizePosition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, m := range []utility.Model{utility.NewMLP(3, []int{5}, utility.Sigmoid),
		utility.NewMLP(3, []int{4, 3}, utility.Tanh), utility.NewLinear(3, true)} {
		const n = 300
		w, x := gaussian(rng, m.NumParams()), mat.NewDense(n, 3, gaussian(rng, 3*n))
		u, g := make([]float64, n), mat.NewDense(n, len(w), nil)
		utility.Linearize(m, u, g, w, x)
		for range 100 {
			from := rng.IntN(n)
			to := from + 1 + rng.IntN(n-from)
			v, h := make([]float64, to-from), mat.NewDense(to-from, len(w), nil)
			utility.Linearize(m, v, h, w, x.Slice(from, to, 0, 3).(*mat.Dense))
			for i := range v {
				if v[i] != u[from+i] {
					t.Fatalf("%v: item %d has utility %v among %d items, %v among %d",
						m, from+i, v[i], to-from, u[from+i], n)
				}
			}
			if !mat.Equal(h, g.Slice(from, to, 0, len(w))) {
				t.Fatalf("%v: gradients of the items from %d to %d depend on the others", m, from, to)
			}
		}
	}
}

func TestSketchPanics(t *testing.T) {
	m := utility.NewMLP(2, []int{2}, utility.Sigmoid)
	x, w := mat.NewDense(3, 2, nil), make([]float64, m.NumParams())
	v := func(n int) []float64 { return make([]float64, n) }
	for name, f := range map[string]func(){
		"too few utilities":   func() { m.Sketch(v(2), v(3), nil, w, nil, x) },
		"too few squares":     func() { m.Sketch(v(3), v(2), nil, w, nil, x) },
		"half a direction":    func() { m.Sketch(v(3), v(3), v(3), w, v(4), x) },
		"too few products":    func() { m.Sketch(v(3), v(3), v(2), w, v(len(w)), x) },
		"too few parameters":  func() { m.Sketch(v(3), v(3), nil, w[1:], nil, x) },
		"products of nothing": func() { m.Sketch(v(3), v(3), v(3), w, nil, x) },
	} {
		if panics.Value(f) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}
