package utilitytest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/panics"
	"vitrine/utility"
)

// checkInit requires finite parameters that depend only on rng.
func checkInit(m utility.Model) error {
	initial := func(seed uint64) []float64 {
		w := slices.Repeat([]float64{math.NaN()}, m.NumParams())
		m.Init(w, rand.New(rand.NewPCG(seed, 0)))
		return w
	}
	w := initial(1)
	for j, v := range w {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("w[%d] = %v", j, v)
		}
	}
	if !slices.Equal(w, initial(1)) {
		return fmt.Errorf("one state of rng gave two sets of parameters")
	}
	if slices.Equal(w, initial(2)) {
		return fmt.Errorf("two states of rng gave the same parameters")
	}
	return nil
}

// checkBatch requires an item's results to be the same on its own and in a batch.
func checkBatch(m utility.Model) error {
	const items = 300
	w, x := draw(m, items)
	u, g := evaluate(m, w, x)
	for i := range items {
		aloneU, aloneG := evaluate(m, w, mat.NewDense(1, m.NumFeatures(), slices.Clone(x.RawRowView(i))))
		if aloneU[0] != u[i] {
			return fmt.Errorf("utility of item %d is %v in the batch, %v alone", i, u[i], aloneU[0])
		}
		if !slices.Equal(aloneG.RawRowView(0), g.RawRowView(i)) {
			return fmt.Errorf("gradient of item %d is %v in the batch, %v alone",
				i, g.RawRowView(i), aloneG.RawRowView(0))
		}
	}
	return nil
}

// checkViews passes features and gradients that are views of wider matrices.
func checkViews(m utility.Model) error {
	const items = 9
	w, x := draw(m, items)
	_, xv := frame(items, m.NumFeatures())
	xv.Copy(x)
	onView := calls(m, w, xv)
	for k, c := range calls(m, w, x) {
		c.call()
		onView[k].call()
		if !slices.Equal(onView[k].result, c.result) {
			return fmt.Errorf("%s differs on a view of the features", c.name)
		}
	}

	_, want := evaluate(m, w, x)
	for name, store := range map[string]func(g *mat.Dense){
		"Gradients": func(g *mat.Dense) { m.Gradients(g, w, x) },
		"Linearize": func(g *mat.Dense) { utility.Linearize(m, make([]float64, items), g, w, x) },
	} {
		whole, g := frame(items, len(w))
		store(g)
		if !mat.Equal(g, want) {
			return fmt.Errorf("%s differs on a view of the destination", name)
		}
		g.Zero()
		if mat.Norm(whole, 1) != 0 {
			return fmt.Errorf("%s writes outside a view of the destination", name)
		}
	}
	return nil
}

// frame returns an r×c view in the middle of a matrix of zeros.
func frame(r, c int) (whole, view *mat.Dense) {
	whole = mat.NewDense(r+2, c+3, nil)
	return whole, whole.Slice(1, r+1, 2, c+2).(*mat.Dense)
}

// checkArguments requires every call to leave w and x unchanged.
func checkArguments(m utility.Model) error {
	w, x := draw(m, 9)
	wantW, wantX := slices.Clone(w), mat.DenseCopyOf(x)
	for _, c := range calls(m, w, x) {
		c.call()
		if !slices.Equal(w, wantW) || !mat.Equal(x, wantX) {
			return fmt.Errorf("%s changed its arguments", c.name)
		}
	}
	return nil
}

// checkPanics requires a panic for every argument with a wrong shape.
func checkPanics(m utility.Model) error {
	const items = 4
	w, x := draw(m, items)
	d, params := m.NumFeatures(), m.NumParams()
	u, g := make([]float64, items), mat.NewDense(items, params, nil)
	long, wide := make([]float64, params+1), mat.NewDense(items, d+1, nil)
	type misuse struct {
		name string
		call func()
	}
	wrong := []misuse{
		{"Init of too long parameters", func() { m.Init(long, rand.New(rand.NewPCG(1, 1))) }},
		{"Utilities of too few items", func() { m.Utilities(u[:items-1], w, x) }},
		{"Utilities of too many items", func() { m.Utilities(make([]float64, items+1), w, x) }},
		{"Utilities with too few parameters", func() { m.Utilities(u, w[:params-1], x) }},
		{"Utilities with too many parameters", func() { m.Utilities(u, long, x) }},
		{"Utilities of too many features", func() { m.Utilities(u, w, wide) }},
		{"Gradients of too few items", func() { m.Gradients(mat.NewDense(items-1, params, nil), w, x) }},
		{"Gradients of too many columns", func() { m.Gradients(mat.NewDense(items, params+1, nil), w, x) }},
		{"Gradients with too many parameters", func() { m.Gradients(g, long, x) }},
		{"Gradients of too many features", func() { m.Gradients(g, w, wide) }},
		{"Linearize of too few items", func() { utility.Linearize(m, u[:items-1], g, w, x) }},
		{"Linearize of too many columns", func() { utility.Linearize(m, u, mat.NewDense(items, params+1, nil), w, x) }},
	}
	if b, ok := m.(utility.Backpropagator); ok {
		wrong = append(wrong,
			misuse{"Backpropagate of too long a gradient", func() { b.Backpropagate(long, w, x, sumOfSquares) }},
			misuse{"Backpropagate with too many parameters", func() { b.Backpropagate(w, long, x, sumOfSquares) }},
			misuse{"Backpropagate of too many features", func() {
				b.Backpropagate(make([]float64, params), w, wide, sumOfSquares)
			}},
		)
	}
	if by, ok := m.(utility.Columnar); ok {
		var c, wider utility.Columns
		c.SetRows(x)
		wider.SetRows(wide)
		columns := make([]float64, items*params)
		wrong = append(wrong,
			misuse{"ColumnLinearize of too few items", func() { by.ColumnLinearize(u[:items-1], columns, w, &c) }},
			misuse{"ColumnLinearize of too many derivatives", func() {
				by.ColumnLinearize(u, make([]float64, items*(params+1)), w, &c)
			}},
			misuse{"ColumnLinearize of too many features", func() { by.ColumnLinearize(u, columns, w, &wider) }},
			misuse{"ColumnLinearize with too many parameters", func() { by.ColumnLinearize(u, columns, long, &c) }},
		)
	}
	for _, c := range wrong {
		if panics.Value(c.call) == nil {
			return fmt.Errorf("%s does not panic", c.name)
		}
	}
	return nil
}

// checkAllocations requires calls that do not allocate. One allocation-free call in two thousand is enough, because the
// garbage collector and the race detector may empty a model's scratch pools at any time.
func checkAllocations(m utility.Model) error {
	w, x := draw(m, 300)
	for _, c := range calls(m, w, x) {
		minimum := math.Inf(1)
		for tries := 2000; tries > 0 && minimum > 0; tries-- {
			minimum = min(minimum, testing.AllocsPerRun(1, c.call))
		}
		if minimum > 0 {
			return fmt.Errorf("%s allocates %v times", c.name, minimum)
		}
	}
	return nil
}

// checkConcurrency compares concurrent calls of several sizes with the same calls made one at a time. The race detector
// sees more.
func checkConcurrency(m utility.Model) error {
	const workers = 8
	results := func(n int) [][]float64 {
		w, x := draw(m, n)
		var all [][]float64
		for _, c := range calls(m, w, x) {
			c.call()
			all = append(all, slices.Clone(c.result))
		}
		return all
	}
	sizes := []int{1, 5, 140}
	want := make([][][]float64, len(sizes))
	for k, n := range sizes {
		want[k] = results(n)
	}
	errs := make([]error, workers)
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			for r := range 3 * len(sizes) {
				k := (i + r) % len(sizes)
				for c, got := range results(sizes[k]) {
					if !slices.Equal(got, want[k][c]) {
						errs[i] = fmt.Errorf("a call with %d items gave another result beside others", sizes[k])
					}
				}
			}
		})
	}
	group.Wait()
	return cmp.Or(errs...)
}

// call is one use of a model, and the destination of its result.
type call struct {
	name   string
	call   func()
	result []float64
}

// calls returns the calls of m at w and x, each with its own destination.
func calls(m utility.Model, w []float64, x *mat.Dense) []call {
	n, _ := x.Dims()
	u, lu := make([]float64, n), make([]float64, n)
	g, lg := mat.NewDense(n, len(w), nil), mat.NewDense(n, len(w), nil)
	all := []call{
		{"Utilities", func() { m.Utilities(u, w, x) }, u},
		{"Gradients", func() { m.Gradients(g, w, x) }, g.RawMatrix().Data},
		{"Linearize", func() { utility.Linearize(m, lu, lg, w, x) }, lg.RawMatrix().Data},
	}
	if b, ok := m.(utility.Backpropagator); ok {
		dst := make([]float64, len(w))
		all = append(all, call{"Backpropagate", func() { b.Backpropagate(dst, w, x, sumOfSquares) }, dst})
	}
	return all
}

// sumOfSquares is the loss ½ Σ_i u_i².
func sumOfSquares(cotangent, u []float64) float64 {
	copy(cotangent, u)
	sum := 0.0
	for _, v := range u {
		sum += v * v
	}
	return sum / 2
}
