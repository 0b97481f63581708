// Package config reads experiments and tunings from TOML, and describes the names that the files use.
//
// [Load] reads an experiment's file, and [File.Experiment] makes the [experiment.Experiment] that
// experiment.Run plays; see the example. [LoadTuning] reads a tuning. Errors name the file, the line
// and the key. [Descriptions] has every policy, utility family, world, constraint and pool with its options.
package config

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"vitrine"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/hint"
	"vitrine/internal/policy"
	"vitrine/internal/settings"
)

// File is an experiment's file.
type File struct {
	Name, Title string
	Seeds       int // how many are played by default

	// Pool names the pool of real items of the world, "" for none. A file with a pool needs [File.UsePool]
	// before it makes an experiment.
	Pool string

	problem    bandit.Problem
	items      int
	effects    []float64 // of the places of a display; nil if they are alike
	pool       *env.Pool
	constraint settings.Made[vitrine.Constraint]
	contexts   settings.Made[newContexts]
	truth      settings.Made[newTruth]
	revenue    settings.Made[env.Revenues]
	drift      settings.Made[newDrift] // nil for a truth that stays
	contenders []contender
}

// contender is a policy of the file.
type contender struct {
	name, label string
	baselines   string // "theory", "tuned" or "" for both
	section     settings.Section
	made        settings.Made[newLearner]
}

// keys are the keys of a file outside its tables.
type keys struct {
	Name     string `toml:"name"`
	Title    string `toml:"title"`
	Rounds   int    `toml:"rounds"`
	Items    int    `toml:"items"`
	Size     int    `toml:"size"`
	Features int    `toml:"features"`
	Seeds    int    `toml:"seeds"`
	Pool     string `toml:"pool"`

	PositionEffects []float64 `toml:"position_effects"`
}

// MaxSeeds is the maximal number of seeds of an experiment.
const MaxSeeds = 1_000_000

// maxEffect bounds the effects of places.
const maxEffect = 50

var legalName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// Load reads an experiment's file. Errors call it name.
func Load(name string, text []byte) (*File, error) {
	doc, err := settings.Parse(name, text)
	if err != nil {
		return nil, err
	}
	root := doc.Root()
	k := keys{Items: 100, Size: 5, Features: 3, Rounds: 1000, Seeds: 30}
	if err := root.Bind(&k, "constraint", "contexts", "truth", "revenue", "drift", "policy"); err != nil {
		return nil, err
	}
	if err := k.check(root); err != nil {
		return nil, err
	}
	constraint, err := loadConstraint(root, k.Items, k.Size)
	if err != nil {
		return nil, err
	}
	f := &File{
		constraint: constraint,
		Name:       k.Name, Title: k.Title, Seeds: k.Seeds, items: k.Items, effects: k.PositionEffects,
		problem: bandit.Problem{
			Features: k.Features, Items: k.Items, Size: k.Size, Rounds: k.Rounds,
			Constraint: constraint.Value,
		},
	}
	f.Title = cmp.Or(f.Title, f.Name)
	if err := f.findPool(root, k.Pool); err != nil {
		return nil, err
	}
	if err := f.loadWorld(root); err != nil {
		return nil, err
	}
	return f, f.loadPolicies(root)
}

// reserved are names of other results in the directory of experiments.
var reserved = []string{"tune", "tune.csv", "tune.json", "tune.svg", "tune.png", "fresh.csv", "geometric-condition", "theory", "tractability"}

// checkTitle checks the title of a figure.
func checkTitle(s settings.Section, title string) error {
	if i := strings.IndexFunc(title, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || len(title) > 100 {
		return s.Errorf("title", "title = %q: must be printable, in one line, and at most 100 bytes long", title)
	}
	return nil
}

// checkName checks a name that is also the name of a directory.
func checkName(s settings.Section, name string) error {
	if name == "" {
		return s.Errorf("name", "name is missing: it names the directory of the results")
	}
	if !legalName.MatchString(name) {
		return s.Errorf("name", "name = %q: use lower-case letters, digits, '.', '_' and '-'", name)
	}
	if slices.Contains(reserved, name) {
		return s.Errorf("name", "name = %q: results have something else of this name: choose another", name)
	}
	return nil
}

func (k keys) check(s settings.Section) error {
	if err := checkName(s, k.Name); err != nil {
		return err
	}
	if err := checkTitle(s, k.Title); err != nil {
		return err
	}
	for _, v := range []struct {
		key            string
		value, maximum int
	}{
		{"rounds", k.Rounds, 1e8}, {"items", k.Items, 1e7}, {"size", k.Size, 1e7}, {"features", k.Features, 1e4}, {"seeds", k.Seeds, MaxSeeds},
	} {
		if v.value < 1 || v.value > v.maximum {
			return s.Errorf(v.key, "%s = %d: must be from 1 to %d", v.key, v.value, v.maximum)
		}
	}
	for p, v := range k.PositionEffects {
		if !(math.Abs(v) <= maxEffect) || p == 0 && v != 0 {
			return s.Errorf("position_effects", "position_effects = %v: must be 0 for the first place, and from -%d to %d for the others", k.PositionEffects, maxEffect, maxEffect)
		}
	}
	if k.Size > k.Items {
		return s.Errorf("size", "size = %d: must not exceed items = %d", k.Size, k.Items)
	}
	return nil
}

// findPool finds the pool in the catalog.
func (f *File) findPool(root settings.Section, name string) error {
	if name == "" {
		return nil
	}
	for _, p := range pools {
		if p.Name == name {
			f.Pool = name
			return nil
		}
	}
	return root.Errorf("pool", "pool = %q: unknown%s", name, settings.Hint(name, names(Pools())))
}

// UsePool gives the file its pool, and reports one that does not fit.
func (f *File) UsePool(p *env.Pool) error {
	m, d := p.Features.Dims()
	contexts, table := f.contexts.Value(p).(*env.Table)
	switch {
	case d != f.problem.Features:
		return fmt.Errorf("%s: features = %d, and the items of pool %q have %d", f.Name, f.problem.Features, f.Pool, d)
	case m < f.items && !table:
		return fmt.Errorf("%s: items = %d, and the items of pool %q are %d", f.Name, f.items, f.Pool, m)
	}
	if table {
		switch sizes := contexts.Sizes(); {
		case len(sizes) == 0:
			return fmt.Errorf("%s: contexts: kind = 'table': pool %q has no choices to draw: use kind = 'pool'", f.Name, f.Pool)
		case !slices.Contains(sizes, f.items):
			return fmt.Errorf("%s: items = %d, and the choices of pool %q have %v alternatives", f.Name, f.items, f.Pool, sizes)
		}
	}
	f.pool = p
	return nil
}

func (f *File) loadWorld(root settings.Section) error {
	var err error
	if f.contexts, err = world(root, "contexts", contexts, f.problem.Features); err != nil {
		return err
	}
	if s, _, _ := root.Table("contexts"); s.Values["kind"] == "shifts" {
		if err := f.checkHorizon(s); err != nil {
			return err
		}
	}
	if f.truth, err = world(root, "truth", truths, f.problem.Features); err != nil {
		return err
	}
	if _, ok := root.Values["revenue"]; !ok {
		root.Values["revenue"] = map[string]any{"kind": "one"}
	}
	if f.revenue, err = world(root, "revenue", revenues, f.problem.Features); err != nil {
		return err
	}
	drift, ok, err := root.Table("drift")
	if err != nil || !ok {
		return err
	}
	if truth, _, _ := root.Table("truth"); (truth.Values["kind"] == "pool" || truth.Values["kind"] == "table") && drift.Values["kind"] == "switches" {
		return drift.Errorf("kind", "kind = 'switches': the truth of a pool is not drawn, so there is no other to switch to")
	}
	if f.drift, err = settings.Pick(drift, drifts, f.problem.Features); err != nil {
		return err
	}
	return f.checkHorizon(drift)
}

// checkHorizon reports rounds of changes beyond the horizon.
func (f *File) checkHorizon(s settings.Section) error {
	if at, _ := s.Values["rounds"].([]any); len(at) > 0 && at[len(at)-1].(int64) > int64(f.problem.Rounds) {
		return s.Errorf("rounds", "rounds = %s: the last is beyond the horizon, rounds = %d", settings.Literal(s.Values["rounds"]), f.problem.Rounds)
	}
	return nil
}

// drawTruth draws the truth of a seed.
func (f *File) drawTruth(rng *rand.Rand) env.Truth {
	draw := func() env.Truth { return f.truth.Value(rng, f.pool) }
	if f.drift.Value == nil {
		return draw()
	}
	return f.drift.Value(draw, f.problem.Rounds, rng)
}

func world[T any](root settings.Section, key string, table []settings.Named[T], features int) (settings.Made[T], error) {
	s, ok, err := root.Table(key)
	if err != nil {
		return settings.Made[T]{}, err
	}
	if !ok {
		return settings.Made[T]{}, root.Errorf("", "[%s] is missing", key)
	}
	return settings.Pick(s, table, features)
}

func (f *File) loadPolicies(root settings.Section) error {
	sections, err := root.Tables("policy")
	if err != nil {
		return err
	}
	if len(sections) == 0 {
		return root.Errorf("", "there is no [[policy]] to play")
	}
	for _, s := range sections {
		c, err := f.loadPolicy(s)
		if err != nil {
			return err
		}
		f.contenders = append(f.contenders, c)
	}
	return nil
}

func (f *File) loadPolicy(s settings.Section) (contender, error) {
	var c contender
	for key, dst := range map[string]*string{"name": &c.name, "label": &c.label, "baselines": &c.baselines} {
		v, ok := s.Values[key]
		if !ok {
			continue
		}
		if *dst, ok = v.(string); !ok {
			return c, s.Errorf(key, "%s = %s: wrong type: want a string in quotes", key, settings.Literal(v))
		}
	}
	if c.name == "" {
		return c, s.Errorf("name", "name is missing%s", settings.Hint("", policy.Names()))
	}
	c.label = cmp.Or(c.label, c.name)
	s.What = fmt.Sprintf("policy %q", c.label)
	if !legalName.MatchString(c.label) {
		return c, s.Errorf("label", "label = %q: use lower-case letters, digits, '.', '_' and '-'", c.label)
	}
	if slices.ContainsFunc(f.contenders, func(o contender) bool { return o.label == c.label }) {
		return c, s.Errorf("label", "label = %q: already taken: give this policy a label of its own", c.label)
	}
	if !slices.Contains([]string{"", "theory", "tuned"}, c.baselines) {
		return c, s.Errorf("baselines", "baselines = %q: must be \"theory\" or \"tuned\", or not be there", c.baselines)
	}
	c.section = s
	var err error
	c.made, err = f.buildPolicy(c.name, s)
	return c, err
}

// newLearner makes the learner of a run.
type newLearner = func(world env.Environment, rng *rand.Rand) (vitrine.Learner, error)

// buildPolicy makes the learner called name from its section.
func (f *File) buildPolicy(name string, s settings.Section) (settings.Made[newLearner], error) {
	p, ok := policy.Named(name)
	if !ok {
		return settings.Made[newLearner]{}, policy.Unknown(s, name)
	}
	m, err := p.Build(s, f.problem)
	if err != nil {
		return settings.Made[newLearner]{}, err
	}
	create := func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) { return m.New(rng) }
	switch {
	case m.Process != nil:
		create = func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
			return experiment.NewProcess(experiment.ProcessOptions{
				Command: m.Process.Command, Dir: m.Process.Dir, Timeout: m.Process.Timeout,
				Problem: f.problem, Constraint: f.constraint.Settings, Ordered: f.effects != nil,
			}, rng)
		}
	case m.New == nil:
		create = func(world env.Environment, _ *rand.Rand) (vitrine.Learner, error) {
			return experiment.NewOracle(f.problem, world)
		}
	}
	return settings.Made[newLearner]{Value: create, Settings: m.Settings}, nil
}

func names(entries []Entry) []string {
	var list []string
	for _, e := range entries {
		list = append(list, e.Name)
	}
	return list
}

// Selection selects the policies and seeds of a file to play.
type Selection struct {
	Seeds     int      // how many, at most MaxSeeds; 0 is the file's
	FirstSeed uint64   // the seeds are FirstSeed, FirstSeed+1, …
	Policies  []string // labels or names; none is all
	Baselines string   // "theory", "tuned" or "both"; "" is "theory"
}

// Check reports a selection of policies that the file does not have. It does not need the file's pool.
func (f *File) Check(sel Selection) error {
	_, err := f.choose(sel)
	return err
}

// Experiment makes the selected experiment. version identifies the program.
func (f *File) Experiment(sel Selection, version string) (*experiment.Experiment, error) {
	if f.Pool != "" && f.pool == nil {
		return nil, fmt.Errorf("%s needs the data of pool %q", f.Name, f.Pool)
	}
	chosen, err := f.choose(sel)
	if err != nil {
		return nil, err
	}
	known := map[string]any{
		"rounds": f.problem.Rounds, "items": f.items, "size": f.problem.Size, "features": f.problem.Features,
		"constraint": f.constraint.Settings, "contexts": f.contexts.Settings, "truth": f.truth.Settings, "revenue": f.revenue.Settings,
	}
	if f.Pool != "" {
		known["pool"] = map[string]any{"name": f.Pool, "checksum": f.pool.Checksum()}
	}
	if f.effects != nil {
		known["position_effects"] = f.effects
	}
	if f.drift.Value != nil {
		known["drift"] = f.drift.Settings
	}
	e := &experiment.Experiment{
		Name: f.Name, Title: f.Title, Rounds: f.problem.Rounds, Constraint: f.problem.Constraint, Version: version,
		World: func(rng *rand.Rand) env.Environment {
			return &env.World{Items: f.items, Contexts: f.contexts.Value(f.pool), Truth: f.drawTruth(rng), Revenues: f.revenue.Value, Places: f.effects}
		},
		Settings: known,
	}
	for _, c := range chosen {
		e.Policies = append(e.Policies, experiment.Policy{Label: c.label, Settings: c.made.Settings, New: c.made.Value})
	}
	seeds := cmp.Or(sel.Seeds, f.Seeds)
	for i := range uint64(seeds) {
		e.Seeds = append(e.Seeds, sel.FirstSeed+i)
	}
	return e, nil
}

// labels returns the labels of the policies.
func (f *File) labels() []string {
	var labels []string
	for _, c := range f.contenders {
		labels = append(labels, c.label)
	}
	return labels
}

// choose returns the contenders of the wanted set of baselines, or those of them with a wanted label or name.
// Labels of the other set must be wanted explicitly.
func (f *File) choose(sel Selection) ([]contender, error) {
	inSet := func(c contender) bool {
		switch sel.Baselines {
		case "both":
			return true
		case "":
			return c.baselines != "tuned"
		default:
			return c.baselines == "" || c.baselines == sel.Baselines
		}
	}
	if len(sel.Policies) == 0 {
		chosen := slices.DeleteFunc(slices.Clone(f.contenders), func(c contender) bool { return !inSet(c) })
		if len(chosen) == 0 {
			return nil, fmt.Errorf("%s has no policy for these baselines: its policies are all of the other set", f.Name)
		}
		return chosen, nil
	}
	want := map[string]bool{}
	var named []string
	for _, c := range f.contenders {
		named = append(named, c.name)
	}
	for _, word := range sel.Policies {
		found := false
		for _, c := range f.contenders {
			if inSet(c) && (c.label == word || c.name == word) {
				want[c.label], found = true, true
			}
		}
		if found {
			continue
		}
		for _, c := range f.contenders {
			if c.label == word {
				want[c.label], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s has no policy %q%s", f.Name, word, hint.Near(word, append(f.labels(), named...), ": it has "+strings.Join(f.labels(), ", ")))
		}
	}
	return slices.DeleteFunc(slices.Clone(f.contenders), func(c contender) bool { return !want[c.label] }), nil
}
