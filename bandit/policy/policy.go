// Package policy holds the table of policies, [All], and builds their learners from tables of settings, of experiment
// files and of placements.
//
// Everything that the programs say and do about a policy by its name comes from the table: lists, descriptions, legal
// keys, defaults of placements, line styles.
package policy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/bandit"
	"vitrine/internal/hint"
	"vitrine/internal/option"
	"vitrine/internal/settings"
)

// Policy describes a policy.
type Policy struct {
	Name, Doc string // Doc is one line

	Choose       string // when to choose it
	Offer, Round string // the orders of the costs of an offer and of an observed round, see CostLegend
	Page         string // in docs/algorithms, without its ending; or ""

	// Serving are the defaults of placements that differ from the defaults of files. With them a policy sells.
	Serving map[string]any
	// Warn returns an argument against settings in a placement, or "". It may be nil.
	Warn func(settings map[string]any) string
	// AnyScale says that the learner accepts features up to [vitrine.MaxFeature] in size, because it standardises them.
	// Others accept them up to [vitrine.MaxUnscaled].
	AnyScale bool
	// AllRows says that the learner also learns from the items that were not shown.
	AllRows bool
	// Matrices bounds the number of d_w×d_w matrices in a learner, for any options. The rounds that some learners keep
	// come on top.
	Matrices Matrices
	// Line is how figures draw it. Without a color it gets the next free style.
	Line Line

	Learner
}

// Matrices are counts of matrices: Live while a learner learns and its policy decides, Saved in its snapshot.
type Matrices struct{ Live, Saved float64 }

// Line is the style of a policy's curves.
type Line struct {
	Color    string    // a color of package figure: black, orange, sky blue, green, blue, vermilion, purple or grey
	Dashes   []float64 // lengths on and off in turn, in points; nil is solid
	Variants []Variant
}

// Variant is the style of the policy under a label, with settings of its own.
type Variant struct {
	Label  string
	Dashes []float64
}

// CostLegend explains the letters in the costs of a [Policy]. A training at the end of an epoch is shared among the
// epoch's rounds.
const CostLegend = "after t rounds, with N items, at most K of them offered, and d_w parameters"

// Named returns the policy of a name.
func Named(name string) (p Policy, ok bool) {
	i := slices.IndexFunc(All, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return Policy{}, false
	}
	return All[i], true
}

// Names returns the names of all policies, in the order of the table.
func Names() []string {
	var names []string
	for _, p := range All {
		names = append(names, p.Name)
	}
	return names
}

// Build returns the maker of a policy's learners from the policy's section.
func (p Policy) Build(s settings.Section, problem bandit.Problem) (Made, error) {
	m, err := p.build(s, problem)
	if err == nil {
		m.Settings = settings.Merge(map[string]any{"name": p.Name}, m.Settings)
		if m.Written != nil {
			m.Written["name"] = p.Name
		}
	}
	return m, err
}

// Made makes a policy's learners.
type Made struct {
	New      func(rng *rand.Rand) (vitrine.Learner, error) // at its first round; nil if only an experiment can make it
	Settings map[string]any                                // that determine it
	Written  map[string]any                                // the same in section format; nil is Settings
	Squares  float64                                       // Σ d_w² over the families that it fits
	Process  *Process                                      // the program to run, of the policy process; New is nil
}

// Learner makes a policy's learners from its section.
type Learner struct {
	Options []option.Option // with their defaults
	Unfit   string          // why it cannot serve; "" if it can
	build   func(s settings.Section, p bandit.Problem) (Made, error)
}

// Common are the keys of every [[policy]], which are not the learner's.
var Common = []string{"name", "label", "baselines", "takes"}

// Default is the policy of placements that name no policy.
const Default = "auto"

// Complete returns all settings of a placement's policy. It takes the placement's own settings, as a JSON object with
// the keys of a [[policy]] in a file, {"name": "onl-mnl", "lambda": 3, …}, and reads them as strictly. The others come
// from the policy's Serving, then from the defaults of files. allRows says that rounds contain the rows of all items,
// not only of those shown.
func Complete(text []byte, problem bandit.Problem, allRows bool) (map[string]any, error) {
	_, m, err := Read(text, problem, allRows)
	if err != nil {
		return nil, err
	}
	if m.Written != nil {
		return m.Written, nil
	}
	return m.Settings, nil
}

// Read returns a placement's policy and the maker of its learners. It reads the settings as [Complete] does.
func Read(text []byte, problem bandit.Problem, allRows bool) (p Policy, m Made, err error) {
	given, err := settings.ReadJSON(text)
	if err != nil {
		return p, m, err
	}
	name, ok := given["name"].(string)
	if !ok {
		return p, m, fmt.Errorf("name is missing%s", hint.Legal("", serving()))
	}
	p, known := Named(name)
	values := map[string]any{}
	maps.Copy(values, p.Serving)
	if _, ok := given["utility"]; ok {
		delete(values, "intercept") // the utility decides about a constant term
	}
	if c, ok := given["constants"]; ok && c != values["constants"] {
		delete(values, "radius") // they go with the other constants
		delete(values, "lambda")
	}
	maps.Copy(values, given)
	s := settings.Section{Doc: &settings.Document{Name: name, Values: values}, Values: values}
	for _, key := range Common[1:] {
		if _, ok := values[key]; ok {
			return p, m, s.Errorf(key, "unknown key %q: it is for files of experiments", key)
		}
	}
	switch {
	case !known:
		return p, m, s.Errorf("name", "name = %q: unknown%s", name, hint.Legal(name, serving()))
	case p.Unfit != "":
		return p, m, s.Errorf("", "%s", p.Unfit)
	case p.AllRows && !allRows:
		return p, m, s.Errorf("", `learns from the items that were not shown, too: the placement must have "log_items": "all"`)
	}
	m, err = p.Build(s, problem)
	return p, m, err
}

// Effective returns the settings of a placement's policy including the zero values that [Complete] leaves out.
func Effective(settings map[string]any) map[string]any {
	name, _ := settings["name"].(string)
	p, _ := Named(name)
	all := maps.Clone(settings)
	for _, o := range p.Options {
		if _, ok := all[o.Key]; !ok && o.Omitted {
			all[o.Key] = o.Default
		}
	}
	return all
}

// Warnings returns what speaks against the settings of a placement's policy. All of them are given.
func Warnings(settings map[string]any) []string {
	name, _ := settings["name"].(string)
	if p, ok := Named(name); ok && p.Warn != nil {
		if text := p.Warn(settings); text != "" {
			return []string{name + ": " + text}
		}
	}
	return nil
}

// Unknown returns the error of an unknown name.
func Unknown(s settings.Section, name string) error {
	return s.Errorf("name", "name = %q: unknown%s", name, hint.Legal(name, Names()))
}

// serving are the policies that a placement may use.
func serving() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { p, _ := Named(name); return p.Unfit != "" })
}
