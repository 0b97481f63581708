package utilitytest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/utility"
)

// Each flawed model breaks one clause of the contract, and the battery reports it.
func TestBatteryFindsFlaws(t *testing.T) {
	sound := utility.NewMLP(3, []int{4}, utility.Sigmoid)
	var sink []float64
	for _, test := range []struct {
		flaw  string
		model utility.Model
		want  string // the clause and the beginning of the complaint
	}{
		{"Init ignores rng", flawed{MLP: sound,
			init: func(w []float64, _ *rand.Rand) { clear(w) }},
			"Init: two states of rng gave the same parameters"},
		{"Init leaves an entry", flawed{MLP: sound,
			init: func(w []float64, rng *rand.Rand) { sound.Init(w, rng); w[2] = math.NaN() }},
			"Init: w[2] = NaN"},
		{"one derivative is wrong", flawed{MLP: sound,
			gradients: func(g *mat.Dense, w []float64, x *mat.Dense) {
				sound.Gradients(g, w, x)
				g.Set(0, 3, g.At(0, 3)+1e-5)
			}},
			"GradientsAreDerivatives: item 0: derivative in w[3]"},
		{"Linearize is of another point", flawed{MLP: sound,
			linearize: func(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
				sound.Linearize(u, g, w, x)
				u[0]++
			}},
			"LinearizeIsUtilitiesAndGradients: 1 items: utilities differ"},
		{"Backpropagate adds to its destination", flawed{MLP: sound,
			backpropagate: func(dst, w []float64, x *mat.Dense, loss func(c, u []float64) float64) float64 {
				g := make([]float64, len(dst))
				l := sound.Backpropagate(g, w, x, loss)
				for j, v := range g {
					dst[j] += v
				}
				return l
			}},
			"BackpropagateIsGradientsTimesCotangent: 1 items: entry 0 is NaN"},
		{"utilities by columns are 1", byColumns{utility.NewLinear(2, true), func(u, _ []float64) { u[0] = 1 }},
			"ColumnsAreRows: 1 items: utility 0"},
		{"the last derivative by columns is 2",
			byColumns{utility.NewLinear(2, true), func(_, g []float64) { g[len(g)-1] = 2 }},
			"ColumnsAreRows: 1 items: derivative 2 of item 0 is 2 by columns, want 1"},
		{"derivatives by columns are in rows", byColumns{utility.NewLinear(2, true), func(u, g []float64) {
			copy(g, mat.DenseCopyOf(mat.NewDense(len(g)/len(u), len(u), slices.Clone(g)).T()).RawMatrix().Data)
		}},
			"ColumnsAreRows: 7 items: derivative 1 of item 0"},
		{"a network says it is linear", claims{flawed{MLP: sound}},
			"LinearInParamsIsTrue: the gradients depend on w"},
		{"a line with a constant says it is linear", claims{flawed{MLP: sound,
			utilities: func(u, _ []float64, x *mat.Dense) {
				for i := range u {
					u[i] = 1
				}
			},
			gradients: func(g *mat.Dense, _ []float64, _ *mat.Dense) { g.Zero() }}},
			"LinearInParamsIsTrue: item 0: utility 1, and wᵀ∇f = 0"},
		{"utilities depend on the batch", flawed{MLP: sound,
			utilities: func(u, w []float64, x *mat.Dense) {
				sound.Utilities(u, w, x)
				for i := range u {
					u[i] += 1e-15 * float64(len(u))
				}
			}},
			"BatchIsSingleItems: utility of item 0"},
		{"the stride is ignored", flawed{MLP: sound,
			utilities: func(u, w []float64, x *mat.Dense) {
				n, d := x.Dims()
				sound.Utilities(u, w, mat.NewDense(n, d, x.RawMatrix().Data[:n*d]))
			}},
			"ViewsAreAccepted: Utilities differs on a view"},
		{"the parameters are normalised in place", flawed{MLP: sound,
			utilities: func(u, w []float64, x *mat.Dense) {
				sound.Utilities(u, w, x)
				w[0] *= 0.5
			}},
			"ArgumentsAreKept: Utilities changed its arguments"},
		{"a long destination is accepted", flawed{MLP: sound,
			utilities: func(u, w []float64, x *mat.Dense) {
				n, _ := x.Dims()
				sound.Utilities(u[:min(n, len(u))], w, x)
			}},
			"WrongShapesPanic: Utilities of too many items"},
		{"every call allocates", flawed{MLP: sound,
			utilities: func(u, w []float64, x *mat.Dense) {
				sink = make([]float64, len(u))
				sound.Utilities(sink, w, x)
				copy(u, sink)
			}},
			"NothingIsAllocated: Utilities allocates 1 times"},
	} {
		t.Run(test.flaw, func(t *testing.T) {
			clause, want, _ := strings.Cut(test.want, ": ")
			for _, c := range checks {
				if c.name != clause {
					continue
				}
				expect.Prefix(c.check(test.model))(t, want, clause)
				return
			}
			t.Errorf("no clause %q", clause)
		})
	}
}

// flawed is an MLP with some methods replaced.
type flawed struct {
	*utility.MLP
	init          func(w []float64, rng *rand.Rand)
	utilities     func(u, w []float64, x *mat.Dense)
	gradients     func(g *mat.Dense, w []float64, x *mat.Dense)
	linearize     func(u []float64, g *mat.Dense, w []float64, x *mat.Dense)
	backpropagate func(dst, w []float64, x *mat.Dense, loss func(cotangent, u []float64) float64) float64
}

// byColumns is the linear family with tampered column results.
type byColumns struct {
	*utility.Linear
	change func(u, g []float64)
}

func (m byColumns) ColumnLinearize(u, g, w []float64, c *utility.Columns) {
	m.Linear.ColumnLinearize(u, g, w, c)
	m.change(u, g)
}

// claims is a model that claims to be linear in its parameters.
type claims struct{ flawed }

func (claims) LinearInParams() {}

func (m flawed) Init(w []float64, rng *rand.Rand) {
	if m.init != nil {
		m.init(w, rng)
		return
	}
	m.MLP.Init(w, rng)
}

func (m flawed) Utilities(u, w []float64, x *mat.Dense) {
	if m.utilities != nil {
		m.utilities(u, w, x)
		return
	}
	m.MLP.Utilities(u, w, x)
}

func (m flawed) Gradients(g *mat.Dense, w []float64, x *mat.Dense) {
	if m.gradients != nil {
		m.gradients(g, w, x)
		return
	}
	m.MLP.Gradients(g, w, x)
}

func (m flawed) Linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	if m.linearize != nil {
		m.linearize(u, g, w, x)
		return
	}
	m.MLP.Linearize(u, g, w, x)
}

func (m flawed) Backpropagate(dst, w []float64, x *mat.Dense, loss func(cotangent, u []float64) float64) float64 {
	if m.backpropagate != nil {
		return m.backpropagate(dst, w, x, loss)
	}
	return m.MLP.Backpropagate(dst, w, x, loss)
}
