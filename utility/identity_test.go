package utility_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/utility"
)

// own stands for a user's family: a linear one that tests can modify.
type own struct {
	*utility.Linear
	scale, slope float64
}

func (m own) Utilities(dst, w []float64, x *mat.Dense) {
	m.Linear.Utilities(dst, w, x)
	for i := range dst {
		dst[i] *= m.scale
	}
}

func (m own) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	m.Linear.Gradients(dst, w, x)
	dst.Scale(m.slope, dst)
}

// named is own with a String that does not distinguish its members.
type named struct{ own }

func (named) String() string { return "mine" }

// believed is own with a prior.
type believed struct {
	own
	precision float64
}

func (m believed) Precisions(dst []float64) {
	for j := range dst {
		dst[j] = m.precision
	}
}

// bent is own with transformed features and parameters.
type bent struct {
	own
	feature, param func(float64) float64
}

func (m bent) Utilities(dst, w []float64, x *mat.Dense) {
	var features mat.Dense
	features.Apply(func(_, _ int, v float64) float64 { return m.feature(v) }, x)
	params := make([]float64, len(w))
	for j, v := range w {
		params[j] = m.param(v)
	}
	m.own.Utilities(dst, params, &features)
}

// Families that compute different utilities get different identities, even with equal types and Strings. A family's
// identity is the same in every process.
func TestIdentityTellsFamiliesApart(t *testing.T) {
	linear := func(d int) own { return own{utility.NewLinear(d, true), 1, 1} }
	scaled := func(scale, slope float64) own { return own{utility.NewLinear(2, true), scale, slope} }
	same := func(v float64) float64 { return v }
	clipped := func(bound float64) func(float64) float64 {
		return func(v float64) float64 { return max(-bound, min(v, bound)) }
	}
	families := map[string]utility.Model{
		"not bent":            bent{linear(2), same, same},
		"of sizes":            bent{linear(2), math.Abs, same},
		"of small features":   bent{linear(2), clipped(1), same},
		"of sizes of params":  bent{linear(2), same, math.Abs},
		"of small params":     bent{linear(2), same, clipped(0.2)},
		"in the fourth digit": scaled(1.001, 1),
		"that and gradients":  scaled(1.001, 1.001),
		"the first":           linear(2),
		"of more features":    linear(3),
		"no intercept":        own{utility.NewLinear(2, false), 1, 1},
		"other utilities":     scaled(1.01, 1),
		"other gradients":     scaled(1, 1.01),
		"no utilities":        scaled(0, 1),
		"no gradients":        scaled(1, 0),
		"tiny":                scaled(1e-12, 1e-12),
		"tinier":              scaled(1e-13, 1e-13),
		"another sign":        scaled(-1, -1),
		"named":               named{linear(2)},
		"named, and other":    named{scaled(2, 2)},
		"of a prior":          believed{linear(2), 3},
		"of another prior":    believed{linear(2), 4},
		"linear":              utility.NewLinear(2, true),
		"linear, and scaled":  own{utility.NewLinear(2, true), 2, 2},
	}
	of := map[string]string{}
	for name, m := range families {
		id := utility.Identity(m)
		if other, twice := of[id]; twice {
			t.Errorf("%s and %s are both %s", name, other, id)
		}
		of[id] = name
		expect.Equal(t, utility.Identity(m), id, name, "is", id, "and then")
	}
	got, want := utility.Identity(named{linear(2)}), `utility_test.named "mine" d_w=3 fingerprint=`
	if !strings.HasPrefix(got, want) {
		t.Errorf("identity %s, want one that begins with %s", got, want)
	}
}

// Snapshots rely on these names of the package's families.
func TestIdentityOfThePackagesFamilies(t *testing.T) {
	for want, m := range map[string]utility.Model{
		"linear":                    utility.NewLinear(3, false),
		"linear with intercept":     utility.NewLinear(3, true),
		"quadratic in [0 2]":        utility.NewProducts(3, []int{0, 2}, false),
		"quadratic in [1] with all": utility.NewProducts(3, []int{1}, true),
		"squares of [0 2]":          utility.NewSquares(3, []int{0, 2}),
		"squares of the first 2":    utility.NewSquares(3, []int{0, 1}),
		"steps":                     utility.NewSteps(3),
		"quadratic":                 utility.NewQuadratic(3),
		"sigmoid 3-15-1":            utility.NewMLP(3, []int{15}, utility.Sigmoid),
		"wide 3-4":                  utility.NewWide(3, 4),
		"radial 3-1":                utility.NewRadial(3, 1),
		"spectral 3-2":              utility.NewSpectral(3, 2),
	} {
		expect.Equal(t, utility.Identity(m), want, "identity")
	}
}

// A fingerprint uses four digits of each number, so the last digits, in which machines differ, have no influence.
func TestIdentityIgnoresRounding(t *testing.T) {
	m := utility.NewMLP(5, []int{20, 20}, utility.ReLU)
	want := utility.Identity(rounded{m, 0})
	for seed := range uint64(50) {
		if got := utility.Identity(rounded{m, seed}); got != want {
			t.Errorf("identity %s, and %s with other last digits", want, got)
		}
	}
}

// rounded perturbs the last digits of an MLP. Seed 0 leaves them alone.
type rounded struct {
	*utility.MLP
	seed uint64
}

func (m rounded) Linearize(u []float64, g *mat.Dense, w []float64, x *mat.Dense) {
	m.MLP.Linearize(u, g, w, x)
	if m.seed == 0 {
		return
	}
	rng := rand.New(rand.NewPCG(m.seed, 1))
	noise := func(v float64) float64 { return v + 1e-9*rng.NormFloat64()*max(v, -v, 1e-4) }
	for i := range u {
		u[i] = noise(u[i])
	}
	g.Apply(func(_, _ int, v float64) float64 { return noise(v) }, g)
}
