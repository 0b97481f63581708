package utilitytest

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/utility"
)

// checkGradients compares Gradients with central differences of Utilities.
func checkGradients(m utility.Model) error {
	const (
		items     = 20
		step      = 1e-5
		kink      = 1e-6
		tolerance = 1e-7
	)
	w, x := draw(m, items)
	_, g := evaluate(m, w, x)
	kinks := 0
	for j := range w {
		coarse, fine := difference(m, w, x, j, step), difference(m, w, x, j, step/2)
		for i := range items {
			scale := max(1, largest(g.RawRowView(i)))
			if math.Abs(coarse[i]-fine[i]) > kink*scale {
				kinks++
				continue
			}
			if got := g.At(i, j); !(math.Abs(got-fine[i]) <= tolerance*scale) {
				return fmt.Errorf("item %d: derivative in w[%d] is %v, central difference %v", i, j, got, fine[i])
			}
		}
	}
	if 10*kinks > items*len(w) {
		return fmt.Errorf("%d of %d derivatives are at a kink", kinks, items*len(w))
	}
	return nil
}

// difference returns the central differences of the utilities in w[j].
func difference(m utility.Model, w []float64, x *mat.Dense, j int, step float64) []float64 {
	n, _ := x.Dims()
	up, down := make([]float64, n), make([]float64, n)
	v := slices.Clone(w)
	v[j] = w[j] + step
	m.Utilities(up, v, x)
	v[j] = w[j] - step
	m.Utilities(down, v, x)
	for i := range up {
		up[i] = (up[i] - down[i]) / (2 * step)
	}
	return up
}

// largest returns the largest magnitude in v.
func largest(v []float64) float64 {
	maximum := 0.0
	for _, a := range v {
		maximum = max(maximum, math.Abs(a))
	}
	return maximum
}

// checkLinearize compares utility.Linearize with Utilities and Gradients.
func checkLinearize(m utility.Model) error {
	for _, n := range []int{1, 7, 300} {
		w, x := draw(m, n)
		wantU, wantG := evaluate(m, w, x)
		u, g := make([]float64, n), mat.NewDense(n, len(w), nil)
		utility.Linearize(m, u, g, w, x)
		if !slices.Equal(u, wantU) {
			return fmt.Errorf("%d items: utilities differ from those of Utilities", n)
		}
		if !mat.Equal(g, wantG) {
			return fmt.Errorf("%d items: gradients differ from those of Gradients", n)
		}
	}
	return nil
}

// checkBackpropagate compares Backpropagate, if implemented, with Gᵀc.
func checkBackpropagate(m utility.Model) error {
	b, ok := m.(utility.Backpropagator)
	if !ok {
		return nil
	}
	const tolerance = 1e-12
	for _, n := range []int{1, 7, 300} {
		w, x := draw(m, n)
		wantU, g := evaluate(m, w, x)
		c := make([]float64, n)
		for i := range c {
			c[i] = math.Sin(float64(i + 1))
		}
		calls := 0
		var u []float64
		dst := slices.Repeat([]float64{math.NaN()}, len(w))
		value := b.Backpropagate(dst, w, x, func(cotangent, seen []float64) float64 {
			calls++
			u = slices.Clone(seen)
			copy(cotangent, c)
			return 42
		})
		if calls != 1 || value != 42 {
			return fmt.Errorf("%d items: loss called %d times, value %v returned, want once and its 42",
				n, calls, value)
		}
		if !slices.Equal(u, wantU) {
			return fmt.Errorf("%d items: loss saw utilities that differ from those of Utilities", n)
		}
		for j, got := range dst {
			want, scale := 0.0, 0.0
			for i := range n {
				want += g.At(i, j) * c[i]
				scale += math.Abs(g.At(i, j) * c[i])
			}
			if !(math.Abs(got-want) <= tolerance*scale) {
				return fmt.Errorf("%d items: entry %d is %v, want (Gᵀc)[%d] = %v", n, j, got, j, want)
			}
		}
	}
	return nil
}

// checkLinearInParams tests models that claim to be linear in their parameters: ∇f must be the same at every w, and f
// must equal wᵀ∇f.
func checkLinearInParams(m utility.Model) error {
	if _, ok := m.(utility.LinearInParams); !ok {
		return nil
	}
	const items, tolerance = 20, 1e-12
	w, x := draw(m, items)
	_, at := evaluate(m, w, x)
	for _, scale := range []float64{0, -3, 100} {
		v := slices.Clone(w)
		for j := range v {
			v[j] *= scale * float64(j+1)
		}
		u, g := evaluate(m, v, x)
		if !mat.Equal(g, at) {
			return fmt.Errorf("the gradients depend on w: the model is not linear in its parameters")
		}
		for i, got := range u {
			want, size := 0.0, 0.0
			for j, c := range v {
				want += c * g.At(i, j)
				size += math.Abs(c * g.At(i, j))
			}
			if !(math.Abs(got-want) <= tolerance*size) {
				return fmt.Errorf("item %d: utility %v, and wᵀ∇f = %v: the model is not linear in its parameters",
					i, got, want)
			}
		}
	}
	return nil
}

// checkColumns compares utilities and gradients read from columns, if supported, with the results from rows, and bit
// for bit with the results for each item on its own.
func checkColumns(m utility.Model) error {
	by, ok := m.(utility.Columnar)
	if !ok {
		return nil
	}
	const tolerance = 1e-12
	var c utility.Columns
	for _, n := range []int{1, 7, 300} {
		w, x := draw(m, n)
		u, g := evaluate(m, w, x)
		c.SetRows(x)
		back := mat.NewDense(n, m.NumFeatures(), nil)
		if c.Rows(back); !mat.Equal(back, x) {
			return fmt.Errorf("%d items: rows have changed in columns", n)
		}
		values, gradients := slices.Repeat([]float64{math.NaN()}, n), slices.Repeat([]float64{math.NaN()}, n*len(w))
		by.ColumnLinearize(values, gradients, w, &c)
		for i := range n {
			size := math.Abs(u[i])
			for j, v := range w {
				size += math.Abs(v * g.At(i, j))
			}
			if !(math.Abs(values[i]-u[i]) <= tolerance*size) {
				return fmt.Errorf("%d items: utility %d by columns is %v, want %v", n, i, values[i], u[i])
			}
			c.SetRows(mat.NewDense(1, m.NumFeatures(), slices.Clone(x.RawRowView(i))))
			one, gradient := []float64{math.NaN()}, slices.Repeat([]float64{math.NaN()}, len(w))
			by.ColumnLinearize(one, gradient, w, &c)
			if one[0] != values[i] {
				return fmt.Errorf("%d items: item %d has %v by columns, and %v without the others",
					n, i, values[i], one[0])
			}
			for j, v := range gradient {
				if want := g.At(i, j); !(math.Abs(v-want) <= tolerance*math.Abs(want)) {
					return fmt.Errorf("%d items: derivative %d of item %d is %v by columns, want %v", n, j, i, v, want)
				}
				if all := gradients[j*n+i]; v != all {
					return fmt.Errorf("%d items: derivative %d of item %d is %v by columns, and %v without the others",
						n, j, i, all, v)
				}
			}
		}
	}
	return nil
}
