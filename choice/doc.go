// Package choice estimates choice models from tables of choices.
//
// There are three main types. [Data] holds choices: for each choice, the available alternatives, their variables, and
// the alternative that was chosen. A [Spec] describes how an alternative's utility depends on the variables. [Fit]
// maximises the likelihood of a Spec on Data and returns a [Result]: coefficients with standard errors, and quantities
// derived from them.
//
//	spec, err := choice.ReadSpec("mode.toml", text)
//	data, err := choice.Load(ctx, "mode.csv", spec, nil)
//	result, err := choice.Fit(ctx, spec, data, choice.Options{})
//
// In every model a choice s offers a set of alternatives, and alternative i has the systematic utility
//
//	V_si = Σ_j θ_j x_sij
//
// in the coefficients θ. The outside option, if there is one, has V = 0. Exponentials of utilities are never stored or
// returned.
//
// The notation follows Train, Discrete Choice Methods with Simulation (2009), and Ben-Akiva and Lerman, Discrete Choice
// Analysis (1985).
package choice
