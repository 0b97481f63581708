package policy

import (
	"fmt"

	"vitrine/internal/settings"
	"vitrine/utility"
)

// Families are the utilities f_w that learners fit.
var Families = []settings.Kind[utility.Model]{
	settings.Of("linear", "xᵀθ, with intercept = true xᵀθ + b", LinearOptions{}, linearFamily),
	settings.Of("mlp", "a network: hidden = [widths], activation = sigmoid, tanh, relu, softplus or sine", OneLayer(),
		MLP),
	units("wide", "xᵀθ + b plus odd sigmoids, units = 4 of them", 4, utility.NewWide),
	units("spectral", "xᵀθ + b plus waves sin(ωᵀx) and cos(ωᵀx), units = 1", 1, utility.NewSpectral),
	units("radial", "xᵀθ + b plus bumps, sigmoids of ‖x‖², x and 1, units = 1", 1, utility.NewRadial),
	fixed("quadratic", "xᵀθ + b plus all products of two features", func(d int) int { return (d + 1) * (d + 2) / 2 },
		utility.NewQuadratic),
	fixed("steps", "xᵀθ + b plus seven steps of each feature, at normal quantiles", func(d int) int { return 8*d + 1 },
		utility.NewSteps),
}

// LinearOptions are the options of the linear family.
type LinearOptions struct {
	Intercept bool `toml:"intercept" doc:"whether there is a constant term b"`
}

func linearFamily(o LinearOptions, d settings.Dims) (utility.Model, error) {
	return utility.NewLinear(d.Features, o.Intercept), nil
}

// maxParams bounds d_w, so that a slip in a file does not ask for all memory.
const maxParams = 10_000

// MLPOptions are the options of MLP.
type MLPOptions struct {
	Hidden     []int  `toml:"hidden" range:"[1, 10000]" doc:"the widths of the hidden layers; at most 10000 parameters in all"`
	Activation string `toml:"activation" range:"sigmoid|tanh|relu|softplus|sine" doc:"the activation of the hidden units"`
}

// OneLayer returns the default options of MLP.
func OneLayer() MLPOptions { return MLPOptions{Hidden: []int{3}, Activation: "sigmoid"} }

// MLP makes a family of networks.
func MLP(o MLPOptions, d settings.Dims) (utility.Model, error) {
	if len(o.Hidden) == 0 {
		return nil, fmt.Errorf("hidden = []: give at least one width (kind = \"linear\" has none)")
	}
	inputs := d.Features
	params := 0
	for _, h := range o.Hidden {
		params += h * (inputs + 1)
		inputs = h
		if params > maxParams {
			return nil, fmt.Errorf("hidden = %v: more than %d parameters: learners keep a matrix of the square of "+
				"their number", o.Hidden, maxParams)
		}
	}
	a, err := utility.ParseActivation(o.Activation)
	if err != nil {
		return nil, fmt.Errorf("activation = %q: %v", o.Activation, err)
	}
	return utility.NewMLP(d.Features, o.Hidden, a), nil
}

type unitsOptions struct {
	Units int `toml:"units" range:"[1, 10000]" doc:"how many units; at most 10000 parameters in all"`
}

// units is for families of a linear part and units.
func units(name, doc string, n int, create func(d, units int) *utility.Additive) settings.Kind[utility.Model] {
	return settings.Of(name, doc, unitsOptions{n}, func(o unitsOptions, d settings.Dims) (utility.Model, error) {
		if o.Units > maxParams || o.Units*(d.Features+2)+d.Features+1 > maxParams {
			return nil, fmt.Errorf("units = %d: more than %d parameters", o.Units, maxParams)
		}
		return create(d.Features, o.Units), nil
	})
}

// fixed is for families without options. It knows their parameters without building them.
func fixed(name, doc string, params func(d int) int, create func(d int) *utility.Expansion) settings.Kind[utility.Model] {
	return settings.Bare(name, doc, func(d settings.Dims) (utility.Model, error) {
		if params(d.Features) > maxParams {
			return nil, fmt.Errorf("kind = %q: %d features make more than %d parameters", name, d.Features, maxParams)
		}
		return create(d.Features), nil
	})
}
