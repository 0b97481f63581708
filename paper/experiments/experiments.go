// Package experiments embeds the paper's panels, one TOML file each, and the layout of the figures made from them.
package experiments

import (
	"embed"
	"slices"
	"strings"
)

// GeometricCondition is the figure of the geometric condition, which needs no play and therefore no file.
const GeometricCondition = "geometric-condition"

// Theory is the study of the theory. Its experiments come without a file.
const Theory = "theory"

// Tractability is the measurement of the algorithms' cost. It has no file either.
const Tractability = "tractability"

// Sessions is the measurement of the agents of package mdp, without a file too.
const Sessions = "sessions"

// Rivers is the measurement of package mdp's swimmers, also without a file.
const Rivers = "rivers"

// WithoutFile returns the names of the experiments without a file.
func WithoutFile() []string {
	return []string{GeometricCondition, Theory, Tractability, Sessions, Rivers}
}

//go:embed *.toml
var files embed.FS

// order lists the names in the order of the paper's figures and their panels. Then come variants of the main panels,
// contexts that change after Phase I, the benchmark of the linear baselines, and worlds outside the paper, with those
// that need data at the end.
var order = strings.Fields(`
	main-gaussian-realizable main-gaussian-misspecified
	main-uniform-realizable main-uniform-misspecified
	items-gaussian-n100 items-gaussian-n800
	items-uniform-n100 items-uniform-n800
	sweep-gaussian-realizable-d3-k10 sweep-gaussian-misspecified-d3-k10
	sweep-gaussian-realizable-d3-k15 sweep-gaussian-misspecified-d3-k15
	sweep-gaussian-realizable-d5-k10 sweep-gaussian-misspecified-d5-k10
	sweep-gaussian-realizable-d10-k10 sweep-gaussian-misspecified-d10-k10
	sweep-uniform-realizable-d3-k10 sweep-uniform-misspecified-d3-k10
	sweep-uniform-realizable-d3-k15 sweep-uniform-misspecified-d3-k15
	sweep-uniform-realizable-d5-k10 sweep-uniform-misspecified-d5-k10
	sweep-uniform-realizable-d10-k10 sweep-uniform-misspecified-d10-k10
	warmup-gaussian-realizable warmup-gaussian-misspecified
	warmup-uniform-realizable warmup-uniform-misspecified
	unit-gaussian-realizable unit-gaussian-misspecified
	unit-uniform-realizable unit-uniform-misspecified
	contexts-same contexts-mean contexts-wide contexts-back
	linear-k5-d5 linear-k5-d5-revenue
	linear-k5-d3 linear-k5-d3-revenue
	linear-k10-d5 linear-k10-d5-revenue
	linear-k15-d5 linear-k15-d5-revenue
	worlds-product worlds-product-revenue worlds-product-drift
	worlds-threshold worlds-threshold-revenue worlds-threshold-drift
	worlds-radial worlds-radial-revenue worlds-radial-drift
	worlds-linear worlds-linear-revenue worlds-linear-drift
	worlds-abs worlds-quadratic worlds-needle worlds-sawtooth worlds-segments worlds-segments-opposed
	worlds-sparse worlds-conversion-4 worlds-conversion-4-revenue worlds-conversion-6 worlds-weak worlds-student-2
	worlds-student-3
	shop-counts shop-pareto shop-large shop-ideals shop-rings shop-personal shop-stumps shop-forest
	positions-steep positions-steep-revenue
	positions-zero positions-zero-revenue
	baskets-independent baskets-complements
	table1 imdb imdb-probability
	camera modecanada heating fishing
`)

// Names returns the names of all experiments, in the order of the paper.
func Names() []string { return slices.Clone(order) }

// Groups returns the names of groups of experiments: prefixes before the first '-' that several names share, and the
// names of figures.
func Groups() []string {
	var groups []string
	add := func(group string) {
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	for _, n := range order {
		if prefix, _, _ := strings.Cut(n, "-"); len(Members(prefix)) > 1 {
			add(prefix)
		}
		for _, f := range figures {
			if slices.Contains(f.experiments(), n) {
				add(f.Name)
			}
		}
	}
	return groups
}

// Members returns a group's experiments.
func Members(group string) []string {
	return slices.DeleteFunc(Names(), func(n string) bool { return !strings.HasPrefix(n, group+"-") })
}

// Read returns an experiment's file.
func Read(name string) ([]byte, error) {
	return files.ReadFile(name + ".toml")
}
