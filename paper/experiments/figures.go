package experiments

import (
	"fmt"
	"slices"
)

// Figure is a figure of several panels. Figures from the paper keep its layout.
type Figure struct {
	Name  string
	Heads []string  // above each column; may be nil
	Rows  [][]Panel // from top to bottom, each from left to right
}

// Panel is an experiment's place in a figure.
type Panel struct {
	Experiment string
	Caption    string
}

// figures lists the paper's figures in order, with the main figure in two halves, and then the others.
var figures = []Figure{
	{
		Name: "main-gaussian",
		Rows: [][]Panel{{
			{"main-gaussian-realizable", "Realizability (Gaussian)"},
			{"main-gaussian-misspecified", "Misspecification (Gaussian)"},
		}},
	}, {
		Name: "main-uniform",
		Rows: [][]Panel{{
			{"main-uniform-realizable", "Realizability (Uniform)"},
			{"main-uniform-misspecified", "Misspecification (Uniform)"},
		}},
	}, {
		Name: "main",
		Rows: [][]Panel{{
			{"main-gaussian-realizable", "Realizability (Gaussian)"},
			{"main-gaussian-misspecified", "Misspecification (Gaussian)"},
		}, {
			{"main-uniform-realizable", "Realizability (Uniform)"},
			{"main-uniform-misspecified", "Misspecification (Uniform)"},
		}},
	}, {
		Name:  "items",
		Heads: []string{"Gaussian", "Uniform"},
		Rows: [][]Panel{{
			{"items-gaussian-n100", "N = 100"},
			{"items-uniform-n100", "N = 100"},
		}, {
			{"items-gaussian-n800", "N = 800"},
			{"items-uniform-n800", "N = 800"},
		}},
	},
	sweep("gaussian", "Gaussian"),
	sweep("uniform", "Uniform"),
	likeMain("warmup"),
	likeMain("unit"),
	linear(),
	worlds(),
	{
		Name:  "positions",
		Heads: []string{"Equal revenues", "Revenues U[0, 1]"},
		Rows: [][]Panel{
			{{"positions-steep", "γ = 0, −0.5, …, −2"}, {"positions-steep-revenue", "γ = 0, −0.5, …, −2"}},
			{{"positions-zero", "γ = 0"}, {"positions-zero-revenue", "γ = 0"}},
		},
	},
}

// likeMain returns a group's figure with the same panels as the main figure.
func likeMain(name string) Figure {
	f := Figure{Name: name, Heads: []string{"Realizability", "Misspecification"}}
	for _, contexts := range []struct{ name, title string }{{"gaussian", "Gaussian"}, {"uniform", "Uniform"}} {
		f.Rows = append(f.Rows, []Panel{
			{name + "-" + contexts.name + "-realizable", contexts.title},
			{name + "-" + contexts.name + "-misspecified", contexts.title},
		})
	}
	return f
}

// linear returns the figure for the benchmark of the linear baselines.
func linear() Figure {
	f := Figure{Name: "linear", Heads: []string{"Equal revenues", "Revenues U[0, 1]"}}
	for _, v := range []struct{ k, d int }{{5, 5}, {5, 3}, {10, 5}, {15, 5}} {
		name, caption := fmt.Sprintf("linear-k%d-d%d", v.k, v.d), fmt.Sprintf("K = %d, d = %d", v.k, v.d)
		f.Rows = append(f.Rows, []Panel{{name, caption}, {name + "-revenue", caption}})
	}
	return f
}

// sweep returns the appendix figure with varying d and K.
func sweep(contexts, title string) Figure {
	f := Figure{
		Name:  "sweep-" + contexts,
		Heads: []string{"Realizability (" + title + ")", "Misspecification (" + title + ")"},
	}
	for _, v := range []struct{ d, k int }{{3, 10}, {3, 15}, {5, 10}, {10, 10}} {
		var row []Panel
		for _, truth := range []string{"realizable", "misspecified"} {
			row = append(row, Panel{
				fmt.Sprintf("sweep-%s-%s-d%d-k%d", contexts, truth, v.d, v.k),
				fmt.Sprintf("N = 100, d = %d, K = %d", v.d, v.k),
			})
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// worlds returns the figure of truths outside the paper, each unchanged, with unequal revenues, and drifting.
func worlds() Figure {
	f := Figure{Name: "worlds"}
	for _, truth := range []struct{ name, title string }{
		{"product", "Product"}, {"threshold", "Threshold"}, {"radial", "Radial"}, {"linear", "Linear"},
	} {
		name := "worlds-" + truth.name
		f.Rows = append(f.Rows, []Panel{
			{name, truth.title}, {name + "-revenue", truth.title + ", revenues U[0, 1]"},
			{name + "-drift", truth.title + ", drift"},
		})
	}
	return f
}

// Figures returns the figures for which names includes all experiments.
func Figures(names []string) []Figure {
	return slices.DeleteFunc(slices.Clone(figures), func(f Figure) bool {
		return slices.ContainsFunc(f.experiments(), func(n string) bool { return !slices.Contains(names, n) })
	})
}

// experiments returns the experiments in the panels, row by row.
func (f Figure) experiments() (names []string) {
	for _, row := range f.Rows {
		for _, p := range row {
			names = append(names, p.Experiment)
		}
	}
	return names
}
