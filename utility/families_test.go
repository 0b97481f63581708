package utility_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/internal/panics"
	"vitrine/utility"
	"vitrine/utility/utilitytest"
)

var additive = []func(d, units int) *utility.Additive{utility.NewWide, utility.NewSpectral, utility.NewRadial}

func TestNestedFamiliesKeepTheContract(t *testing.T) {
	for _, d := range []int{1, 3} {
		for _, create := range additive {
			for _, units := range []int{1, 3} {
				m := create(d, units)
				t.Run(m.String(), func(t *testing.T) { utilitytest.TestModel(t, m) })
			}
		}
		t.Run(fmt.Sprintf("quadratic d=%d", d), func(t *testing.T) {
			utilitytest.TestModel(t, utility.NewQuadratic(d))
		})
	}
	for _, m := range []*utility.Expansion{utility.NewProducts(3, []int{1}, false),
		utility.NewProducts(4, []int{0, 2}, true), utility.NewSquares(3, []int{0, 2}), utility.NewSteps(1), utility.NewSteps(3)} {
		t.Run(m.String(), func(t *testing.T) { utilitytest.TestModel(t, m) })
	}
}

// Column-wise utilities are available without gradients.
func TestUnitsByColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, create := range additive {
		m := create(3, 2)
		w, x := make([]float64, m.NumParams()), mat.NewDense(20, 3, nil)
		for _, v := range [][]float64{w, x.RawMatrix().Data} {
			for j := range v {
				v[j] = rng.NormFloat64()
			}
		}
		var c utility.Columns
		c.SetRows(x)
		want, got := make([]float64, 20), make([]float64, 20)
		m.ColumnLinearize(want, make([]float64, 20*len(w)), w, &c)
		m.ColumnUtilities(got, w, &c)
		expect.Equal(t, got, want, m)
	}
}

func TestSumKeepsTheContract(t *testing.T) {
	for _, m := range []*utility.Sum{
		utility.NewSum(utility.NewLinear(2, false), utility.NewMLP(3, []int{4}, utility.Tanh)),
		utility.NewSum(utility.NewQuadratic(1), utility.NewSum(utility.NewLinear(1, true), utility.NewRadial(2, 1))),
	} {
		t.Run(m.String(), func(t *testing.T) { utilitytest.TestModel(t, m) })
	}
}

// At x = (1, 2) with a = (3, 4) and b = 5, the linear part is 16. The one unit has amplitude 2, and its cosine, if any,
// 7.
func TestUnitsByHand(t *testing.T) {
	x := mat.NewDense(1, 2, []float64{1, 2})
	odd := func(z float64) float64 { return 2/(1+math.Exp(-z)) - 1 }
	for _, c := range []struct {
		m    utility.Model
		w    []float64
		want float64
	}{
		{utility.NewWide(2, 1), []float64{3, 4, 5, 2, 0.1, -0.2, 0.5}, 16 + 2*odd(0.1-0.4+0.5)},
		{utility.NewSpectral(2, 1), []float64{3, 4, 5, 2, 7, 0.1, 0.2}, 16 + 2*math.Sin(0.5) + 7*math.Cos(0.5)},
		{utility.NewRadial(2, 1), []float64{3, 4, 5, 2, -0.1, 0.1, 0.2, 0.3}, 16 + 2*odd(-0.5+0.5+0.3)},
		{utility.NewSum(utility.NewLinear(1, false), utility.NewLinear(1, true)), []float64{3, 4, 5}, 3*1 + 4*2 + 5},
		{utility.NewQuadratic(2), []float64{3, 4, 5, 0.1, 0.2, 0.3}, 16 + 0.1*1 + 0.2*2 + 0.3*4},
		{utility.NewProducts(2, []int{1}, false), []float64{3, 4, 5, 0.3}, 16 + 0.3*4},
		{utility.NewProducts(2, []int{1}, true), []float64{3, 4, 5, 0.2, 0.3}, 16 + 0.2*2 + 0.3*4},
		{utility.NewSquares(2, []int{0}), []float64{3, 4, 5, 0.3}, 16 + 0.3*1},
		{utility.NewSquares(2, []int{0, 1}), []float64{3, 4, 5, 0.2, 0.3}, 16 + 0.2*1 + 0.3*4},
		{utility.NewSteps(2), []float64{3, 4, 5, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 7, 1, 2, 3, 4, 5, 6, 7}, 16 + 2.1 + 28},
		{utility.NewProducts(2, []int{0, 1}, false), []float64{3, 4, 5, 0.1, 0.2, 0.3}, 16 + 0.1*1 + 0.2*2 + 0.3*4},
	} {
		u := make([]float64, 1)
		c.m.Utilities(u, c.w, x)
		if math.Abs(u[0]-c.want) > 1e-14*c.want {
			t.Errorf("%v: utility %v, want %v", c.m, u[0], c.want)
		}
	}
}

// At amplitude 0, every additive family is linear.
func TestTheLinearFamilyIsNested(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	x := mat.NewDense(20, 3, nil)
	for i := range x.RawMatrix().Data {
		x.RawMatrix().Data[i] = rng.NormFloat64()
	}
	linear := []float64{0.3, -1, 0.2, 0.7}
	want, got := make([]float64, 20), make([]float64, 20)
	utility.NewLinear(3, true).Utilities(want, linear, x)
	for _, create := range additive {
		m := create(3, 2)
		w := make([]float64, m.NumParams())
		m.Init(w, rng)
		copy(w, linear)
		for k := range m.Units() {
			clear(m.Gamma(w, k))
		}
		m.Utilities(got, w, x)
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-14 {
				t.Fatalf("%v: utility %v of item %d, want %v", m, got[i], i, want[i])
			}
		}
	}
}

// Utilities are built from the outputs of Unit and Psi.
func TestUnitsAreOutputs(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	x := mat.NewDense(300, 2, nil)
	for i := range x.RawMatrix().Data {
		x.RawMatrix().Data[i] = rng.NormFloat64()
	}
	for _, create := range additive {
		m := create(2, 1)
		w := make([]float64, m.NumParams())
		m.Init(w, rng)
		u := make([]float64, 300)
		m.Utilities(u, w, x)
		h := make([]float64, m.Outputs()*300)
		m.Unit(h, m.Theta(w, 0), m.Psi(make([]float64, 4*300), x))
		for i := range u {
			want := 0.0
			for o, gamma := range m.Gamma(w, 0) {
				want += gamma * h[o*300+i]
			}
			if math.Abs(u[i]-want) > 1e-13 {
				t.Fatalf("%v: utility %v of item %d, its unit has %v", m, u[i], i, want)
			}
		}
	}
}

// Slopes have the standard deviation ½ and the intercept 1. A family without a prior uses 1 everywhere.
func TestPriors(t *testing.T) {
	for _, c := range []struct {
		m    utility.Model
		want []float64
	}{
		{utility.NewLinear(2, true), []float64{4, 4, 1}},
		{utility.NewLinear(2, false), []float64{4, 4}},
		{utility.NewWide(1, 2), []float64{4, 1, 2, 2, 1, 1, 1, 1}},
		{utility.NewSpectral(1, 2), []float64{4, 1, 2, 2, 2, 2, 1.0 / 9, 1.0 / 9}},
		{utility.NewRadial(1, 1), []float64{4, 1, 1, 1, 1, 1}},
		{utility.NewQuadratic(1), []float64{4, 1, 4}},
		{utility.NewQuadratic(3), []float64{4, 4, 4, 1, 8, 8, 8, 8, 8, 8}},
		{utility.NewProducts(3, []int{1, 2}, false), []float64{4, 4, 4, 1, 4, 4, 4}},
		{utility.NewProducts(3, []int{1}, true), []float64{4, 4, 4, 1, 4, 4, 4}},
		{utility.NewSquares(10, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
			append(append(slices.Repeat([]float64{4}, 10), 1), slices.Repeat([]float64{8}, 10)...)},
		{utility.NewSquares(4, []int{1, 3}), []float64{4, 4, 4, 4, 1, 1.6, 1.6}}, // independent of d
		{utility.NewSteps(1), []float64{4, 1, 4, 4, 4, 4, 4, 4, 4}},
		{utility.NewMLP(1, []int{1}, utility.Sigmoid), []float64{1, 1, 1, 1}},
	} {
		got := make([]float64, c.m.NumParams())
		utility.Precisions(c.m, got)
		expect.Equal(t, got, c.want, c.m)
	}
}

func TestFamiliesOfNothingPanic(t *testing.T) {
	for name, create := range map[string]func(){
		"no features":           func() { utility.NewWide(0, 1) },
		"no units":              func() { utility.NewSpectral(1, 0) },
		"products of nothing":   func() { utility.NewQuadratic(0) },
		"products of none":      func() { utility.NewProducts(3, nil, true) },
		"one feature twice":     func() { utility.NewProducts(3, []int{1, 1}, false) },
		"steps of nothing":      func() { utility.NewSteps(0) },
		"squares of none":       func() { utility.NewSquares(3, nil) },
		"a feature too many":    func() { utility.NewProducts(3, []int{3}, false) },
		"products in no order":  func() { utility.NewProducts(3, []int{1, 0}, false) },
		"a prior of wrong size": func() { utility.Precisions(utility.NewQuadratic(2), make([]float64, 2)) },
		"columns of no items": func() {
			utility.NewRadial(1, 1).ColumnUtilities(make([]float64, 1), make([]float64, 6), new(utility.Columns))
		},
	} {
		if panics.Value(create) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}

// The cuts of steps part standard normal features in eight equal shares.
func TestStepsAreAtQuantiles(t *testing.T) {
	m := utility.NewSteps(1)
	g := mat.NewDense(1, m.NumParams(), nil)
	for k := range 8 {
		for _, share := range []float64{0.01, 0.99} {
			x := math.Sqrt2 * math.Erfinv(2*(float64(k)+share)/8-1)
			m.Gradients(g, make([]float64, m.NumParams()), mat.NewDense(1, 1, []float64{x}))
			if above := floats.Sum(g.RawRowView(0)[2:]); above != float64(k) {
				t.Errorf("%v is above %v cuts, want %d", x, above, k)
			}
		}
	}
}
