// Package choice estimates models of choice from tables of choices.
//
// There are three types to know. [Data] holds choices: for each, the alternatives that were
// available, their variables, and which was chosen. A [Spec] says how the utility of an
// alternative depends on the variables. [Fit] maximises the likelihood of a Spec on Data and
// returns a [Result]: coefficients with their standard errors, and what they imply.
//
//	spec, err := choice.ReadSpec("mode.toml", text)
//	data, err := choice.Load(ctx, "mode.csv", spec, nil)
//	result, err := choice.Fit(ctx, spec, data, choice.Options{})
//
// In every model a choice s offers a set of alternatives, and alternative i has the systematic
// utility
//
//	V_si = Σ_j θ_j x_sij
//
// in the coefficients θ. The outside option, if the data have one, has V = 0. Exponentials of
// utilities are never stored or returned.
//
// The notation follows Train, Discrete Choice Methods with Simulation (2009), and Ben-Akiva and
// Lerman, Discrete Choice Analysis (1985).
package choice
