package utility_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/panics"
	"vitrine/utility"
	"vitrine/utility/utilitytest"
)

var (
	_ utility.Linearizer     = (*utility.MLP)(nil)
	_ utility.Backpropagator = (*utility.MLP)(nil)
	_ utility.Backpropagator = (*utility.Linear)(nil)

	activations = []utility.Activation{
		utility.Sigmoid, utility.Tanh, utility.ReLU, utility.Softplus, utility.Sine,
	}
)

func TestContract(t *testing.T) {
	for _, intercept := range []bool{false, true} {
		for _, d := range []int{1, 5} {
			t.Run(fmt.Sprintf("linear/d=%d/intercept=%v", d, intercept), func(t *testing.T) {
				utilitytest.TestModel(t, utility.NewLinear(d, intercept))
			})
		}
	}
	for _, a := range activations {
		for _, hidden := range [][]int{nil, {3}, {5, 4}, {2, 1, 6}} {
			t.Run(fmt.Sprintf("mlp/%v/%v", a, hidden), func(t *testing.T) {
				utilitytest.TestModel(t, utility.NewMLP(3, hidden, a))
			})
		}
	}
}

// With θ = (2, -1), b = 0.5 and x = (3, 4): θᵀx + b = 6 - 4 + 0.5.
func TestLinearByHand(t *testing.T) {
	x := mat.NewDense(1, 2, []float64{3, 4})
	u, g := make([]float64, 1), mat.NewDense(1, 3, nil)
	utility.Linearize(utility.NewLinear(2, true), u, g, []float64{2, -1, 0.5}, x)
	expect.Equal(t, u[0], 2.5, "utility")
	expect.Equal(t, g.RawRowView(0), []float64{3, 4, 1}, "gradient")
}

// A network of two features and two rectified units, at x = (1, 2):
//
//	W_1 = | 1  3 |  b_1 = | -1 |  z = | 6 |  a = | 6 |
//	      | 2 -4 |        |  1 |      |-5 |      | 0 |
//
//	W_2 = ( 10 20 )  b_2 = 7  f = 10·6 + 20·0 + 7 = 67
//
// So w = [1 3, 2 -4, -1, 1, 10 20, 7], and only the first unit passes on a derivative: ∂f/∂z = (10, 0).
func TestMLPByHand(t *testing.T) {
	w := []float64{1, 3, 2, -4, -1, 1, 10, 20, 7}
	x := mat.NewDense(1, 2, []float64{1, 2})
	u, g := make([]float64, 1), mat.NewDense(1, len(w), nil)
	utility.NewMLP(2, []int{2}, utility.ReLU).Linearize(u, g, w, x)
	expect.Equal(t, u[0], 67, "utility")
	expect.Equal(t, g.RawRowView(0), []float64{10, 20, 0, 0, 10, 0, 6, 0, 1}, "gradient")
}

// Networks of any shape agree with nested loops that follow the definition.
func TestMLPIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 6).Draw(t, "d")
		hidden := rapid.SliceOfN(rapid.IntRange(1, 9), 0, 3).Draw(t, "hidden")
		a := rapid.SampledFrom(activations).Draw(t, "activation")
		n := rapid.SampledFrom([]int{1, 2, 5, 127, 128, 129, 257}).Draw(t, "items")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))

		m := utility.NewMLP(d, hidden, a)
		w := make([]float64, m.NumParams())
		m.Init(w, rng)
		x := mat.NewDense(n, d, gaussian(rng, n*d))
		got := make([]float64, n)
		m.Utilities(got, w, x)
		for i, u := range got {
			want := definition(w, x.RawRowView(i), hidden, a)
			if !(math.Abs(u-want) <= 1e-12*max(1, math.Abs(want))) {
				t.Fatalf("utility of item %d is %v, want %v", i, u, want)
			}
		}
	})
}

// definition evaluates the network at one item, entry by entry.
func definition(w, x []float64, hidden []int, a utility.Activation) float64 {
	activate := map[utility.Activation]func(float64) float64{
		utility.Sigmoid:  func(z float64) float64 { return 1 / (1 + math.Exp(-z)) },
		utility.Tanh:     math.Tanh,
		utility.ReLU:     func(z float64) float64 { return math.Max(0, z) },
		utility.Softplus: func(z float64) float64 { return math.Log1p(math.Exp(-math.Abs(z))) + math.Max(0, z) },
		utility.Sine:     math.Sin,
	}[a]
	for l, h := range append(slices.Clone(hidden), 1) {
		weight, bias := w[:h*len(x)], w[h*len(x):h*(len(x)+1)]
		w = w[h*(len(x)+1):]
		out := make([]float64, h)
		for j := range out {
			out[j] = bias[j]
			for k, v := range x {
				out[j] += weight[j*len(x)+k] * v
			}
			if l < len(hidden) {
				out[j] = activate(out[j])
			}
		}
		x = out
	}
	return x[0]
}

// A perceptron without hidden layers is the linear family with an intercept.
func TestMLPWithoutHiddenLayerIsLinear(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	w, x := gaussian(rng, 5), mat.NewDense(7, 4, gaussian(rng, 28))
	mlp, linear := make([]float64, 7), make([]float64, 7)
	utility.NewMLP(4, nil, utility.Sigmoid).Utilities(mlp, w, x)
	utility.NewLinear(4, true).Utilities(linear, w, x)
	for i := range mlp {
		if math.Abs(mlp[i]-linear[i]) > 1e-14 {
			t.Errorf("item %d: %v, want %v", i, mlp[i], linear[i])
		}
	}
}

// Every activation saturates at finite utilities and gradients.
func TestMLPSaturates(t *testing.T) {
	x := mat.NewDense(2, 1, []float64{1e6, -1e6})
	for _, a := range activations {
		m := utility.NewMLP(1, []int{1}, a)
		u, g := make([]float64, 2), mat.NewDense(2, m.NumParams(), nil)
		m.Linearize(u, g, []float64{1, 0, 1, 0}, x)
		for _, v := range slices.Concat(u, g.RawMatrix().Data) {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("%v: utilities %v, gradients %v", a, u, g.RawMatrix().Data)
				break
			}
		}
	}
}

// PyTorch's default: each layer's weights and biases are U(±1/√fan_in). The larger layers fill their range.
func TestInitFillsItsRange(t *testing.T) {
	fill := func(m utility.Model) []float64 {
		w := make([]float64, m.NumParams())
		m.Init(w, rand.New(rand.NewPCG(1, 2)))
		return w
	}
	mlp, linear := fill(utility.NewMLP(4, []int{100, 25}, utility.Sigmoid)), fill(utility.NewLinear(400, true))
	for _, test := range []struct {
		name  string
		w     []float64
		fanIn float64
	}{
		{"W_1", mlp[:400], 4},
		{"b_1", mlp[400:500], 4},
		{"W_2", mlp[500:3000], 100},
		{"b_2", mlp[3000:3025], 100},
		{"W_3", mlp[3025:3050], 25},
		{"b_3", mlp[3050:], 25},
		{"θ and b", linear, 400},
	} {
		bound := 1 / math.Sqrt(test.fanIn)
		low, high := slices.Min(test.w), slices.Max(test.w)
		if low < -bound || high > bound {
			t.Errorf("%s: in [%v, %v], want within ±%v", test.name, low, high, bound)
		}
		if len(test.w) >= 100 && (low > -0.7*bound || high < 0.7*bound) {
			t.Errorf("%s: in [%v, %v], want it to fill ±%v", test.name, low, high, bound)
		}
	}
}

func TestParseActivation(t *testing.T) {
	for _, a := range activations {
		got, err := utility.ParseActivation(a.String())
		if err != nil || got != a {
			t.Errorf("ParseActivation(%q) = %v, %v", a.String(), got, err)
		}
	}
	expect.Message(utility.ParseActivation("sigmod"))(t,
		`unknown activation "sigmod": want one of sigmoid, tanh, relu, softplus, sine`)
	expect.Equal(t, utility.Activation(9).String(), "Activation(9)", "unknown activation prints as")
}

func TestConstructorsPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"linear of no features": func() { utility.NewLinear(0, true) },
		"mlp of no features":    func() { utility.NewMLP(0, []int{3}, utility.Sigmoid) },
		"mlp of an empty layer": func() { utility.NewMLP(3, []int{3, 0}, utility.Sigmoid) },
		"mlp of no activation":  func() { utility.NewMLP(3, []int{3}, utility.Activation(9)) },
	} {
		if panics.Value(f) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}

func gaussian(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}
