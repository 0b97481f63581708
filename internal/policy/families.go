package policy

import (
	"vitrine/internal/settings"
	"vitrine/utility"
)

// Families are the utilities f_w that learners fit.
var Families = []settings.Named[utility.Model]{
	settings.Name("linear", "xᵀθ, with intercept = true xᵀθ + b", settings.Options(LinearOptions{}, Linear)),
	settings.Name("mlp", "a network: hidden = [widths], activation = sigmoid, tanh, relu, softplus or sine", settings.WithDefaults(OneLayer, MLP)),
	settings.Name("wide", "linear plus odd sigmoids, units = 4 of them", unitsUtility(utility.NewWide, 4)),
	settings.Name("spectral", "linear plus waves sin(ωᵀx) and cos(ωᵀx), units = 1", unitsUtility(utility.NewSpectral, 1)),
	settings.Name("radial", "linear plus bumps, sigmoids of ‖x‖², x and 1, units = 1", unitsUtility(utility.NewRadial, 1)),
	settings.Name("quadratic", "linear plus all products of two features", settings.Bare(quadraticUtility)),
}

// LinearOptions are the options of Linear.
type LinearOptions struct {
	Intercept bool `toml:"intercept" doc:"whether there is a constant term b"`
}

// Linear makes the linear family.
func Linear(_ settings.Section, o LinearOptions, features int) (utility.Model, error) {
	return utility.NewLinear(features, o.Intercept), nil
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
func MLP(s settings.Section, o MLPOptions, features int) (utility.Model, error) {
	if len(o.Hidden) == 0 {
		return nil, s.Errorf("hidden", "hidden = []: give at least one width (kind = \"linear\" has none)")
	}
	inputs := features
	params := 0
	for _, h := range o.Hidden {
		params += h * (inputs + 1)
		inputs = h
		if params > maxParams {
			return nil, s.Errorf("hidden", "hidden = %v: more than %d parameters: learners keep a matrix of the square of their number", o.Hidden, maxParams)
		}
	}
	a, err := utility.ParseActivation(o.Activation)
	if err != nil {
		return nil, s.Errorf("activation", "activation = %q: %v", o.Activation, err)
	}
	return utility.NewMLP(features, o.Hidden, a), nil
}

type unitsOptions struct {
	Units int `toml:"units" range:"[1, inf)" doc:"how many units; at most 10000 parameters in all"`
}

// unitsUtility is for families of a linear part and units.
func unitsUtility(create func(d, units int) *utility.Additive, units int) settings.Maker[utility.Model] {
	return settings.Options(unitsOptions{units}, func(s settings.Section, o unitsOptions, features int) (utility.Model, error) {
		if o.Units > maxParams || o.Units*(features+2)+features+1 > maxParams {
			return nil, s.Errorf("units", "units = %d: more than %d parameters", o.Units, maxParams)
		}
		return create(features, o.Units), nil
	})
}

func quadraticUtility(s settings.Section, features int) (utility.Model, error) {
	if (features+1)*(features+2)/2 > maxParams {
		return nil, s.Errorf("kind", "kind = \"quadratic\": %d features make more than %d parameters", features, maxParams)
	}
	return utility.NewQuadratic(features), nil
}
