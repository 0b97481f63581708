package config

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2"

	"vitrine"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/experiment"
)

// File is an experiment's file.
type File struct {
	Name, Title string
	Seeds       int // how many are played unless the selection says otherwise

	// Pool names the real items that the world is made of, "" for most. A file
	// that names one needs [File.UsePool] before it makes an experiment.
	Pool string

	problem    bandit.Problem
	items      int
	pool       *env.Pool
	constraint made[vitrine.Constraint]
	contexts   made[newContexts]
	truth      made[newTruth]
	revenue    made[env.Revenues]
	drift      made[newDrift] // nil for a truth that stays
	contenders []contender
}

// contender is a policy of the file.
type contender struct {
	name, label string
	baselines   string // "theory", "tuned" or "" for both
	section     section
	made        made[newLearner]
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
}

// MaxSeeds is the most seeds that an experiment may have.
const MaxSeeds = 1_000_000

var legalName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

// Load reads an experiment's file. name is what errors call it.
func Load(name string, text []byte) (*File, error) {
	doc, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	root := doc.root()
	k := keys{Items: 100, Size: 5, Features: 3, Rounds: 1000, Seeds: 30}
	if err := root.bind(&k, "constraint", "contexts", "truth", "revenue", "drift", "policy"); err != nil {
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
		Name:       k.Name, Title: k.Title, Seeds: k.Seeds, items: k.Items,
		problem: bandit.Problem{
			Features: k.Features, Items: k.Items, Size: k.Size, Rounds: k.Rounds,
			Constraint: constraint.value,
		},
	}
	if f.Title == "" {
		f.Title = f.Name
	}
	if err := f.findPool(root, k.Pool); err != nil {
		return nil, err
	}
	if err := f.loadWorld(root); err != nil {
		return nil, err
	}
	return f, f.loadPolicies(root)
}

// reserved are names that results use among those of experiments.
var reserved = []string{"tune", "tune.csv", "tune.json", "tune.svg", "tune.png", "fresh.csv", "geometric-condition", "theory", "tractability"}

// checkTitle checks what stands above a figure.
func checkTitle(s section, title string) error {
	if i := strings.IndexFunc(title, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || len(title) > 100 {
		return s.errorf("title", "title = %q: must be printable, in one line, and at most 100 bytes long", title)
	}
	return nil
}

// checkName checks what names a directory.
func checkName(s section, name string) error {
	if name == "" {
		return s.errorf("name", "name is missing: it names the directory of the results")
	}
	if !legalName.MatchString(name) {
		return s.errorf("name", "name = %q: use lower-case letters, digits, '.', '_' and '-'", name)
	}
	if slices.Contains(reserved, name) {
		return s.errorf("name", "name = %q: results have something else of this name: choose another", name)
	}
	return nil
}

func (k keys) check(s section) error {
	if err := checkName(s, k.Name); err != nil {
		return err
	}
	if err := checkTitle(s, k.Title); err != nil {
		return err
	}
	for _, v := range []struct {
		key         string
		value, most int
	}{
		{"rounds", k.Rounds, 1e8}, {"items", k.Items, 1e7}, {"size", k.Size, 1e7}, {"features", k.Features, 1e4}, {"seeds", k.Seeds, MaxSeeds},
	} {
		if v.value < 1 || v.value > v.most {
			return s.errorf(v.key, "%s = %d: must be from 1 to %d", v.key, v.value, v.most)
		}
	}
	if k.Size > k.Items {
		return s.errorf("size", "size = %d: must not exceed items = %d", k.Size, k.Items)
	}
	return nil
}

// findPool finds the pool in the catalog.
func (f *File) findPool(root section, name string) error {
	if name == "" {
		return nil
	}
	for _, p := range pools {
		if p.Name == name {
			f.Pool = name
			return nil
		}
	}
	return root.errorf("pool", "pool = %q: unknown%s", name, hint(name, names(Pools())))
}

// UsePool gives the file its pool, and reports one that does not fit.
func (f *File) UsePool(p *env.Pool) error {
	m, d := p.Features.Dims()
	switch {
	case d != f.problem.Features:
		return fmt.Errorf("%s: features = %d, and the items of pool %q have %d", f.Name, f.problem.Features, f.Pool, d)
	case m < f.items:
		return fmt.Errorf("%s: items = %d, and the items of pool %q are %d", f.Name, f.items, f.Pool, m)
	}
	f.pool = p
	return nil
}

func (f *File) loadWorld(root section) error {
	var err error
	if f.contexts, err = world(root, "contexts", contexts, f.problem.Features); err != nil {
		return err
	}
	if f.truth, err = world(root, "truth", truths, f.problem.Features); err != nil {
		return err
	}
	if _, ok := root.values["revenue"]; !ok {
		root.values["revenue"] = map[string]any{"kind": "one"}
	}
	if f.revenue, err = world(root, "revenue", revenues, f.problem.Features); err != nil {
		return err
	}
	drift, ok, err := root.table("drift")
	if err != nil || !ok {
		return err
	}
	if truth, _, _ := root.table("truth"); truth.values["kind"] == "pool" && drift.values["kind"] == "switches" {
		return drift.errorf("kind", "kind = 'switches': the truth of a pool is not drawn, so there is no other to switch to")
	}
	if f.drift, err = pick(drift, drifts, f.problem.Features); err != nil {
		return err
	}
	if at, _ := drift.values["rounds"].([]any); len(at) > 0 && at[len(at)-1].(int64) > int64(f.problem.Rounds) {
		return drift.errorf("rounds", "rounds = %s: the last is beyond the horizon, rounds = %d", literal(drift.values["rounds"]), f.problem.Rounds)
	}
	return nil
}

// drawTruth draws the truth of a seed.
func (f *File) drawTruth(rng *rand.Rand) env.Truth {
	draw := func() env.Truth { return f.truth.value(rng, f.pool) }
	if f.drift.value == nil {
		return draw()
	}
	return f.drift.value(draw, f.problem.Rounds, rng)
}

func world[T any](root section, key string, table []named[T], features int) (made[T], error) {
	s, ok, err := root.table(key)
	if err != nil {
		return made[T]{}, err
	}
	if !ok {
		return made[T]{}, root.errorf("", "[%s] is missing", key)
	}
	return pick(s, table, features)
}

func (f *File) loadPolicies(root section) error {
	sections, err := root.tables("policy")
	if err != nil {
		return err
	}
	if len(sections) == 0 {
		return root.errorf("", "there is no [[policy]] to play")
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

func (f *File) loadPolicy(s section) (contender, error) {
	var c contender
	for key, dst := range map[string]*string{"name": &c.name, "label": &c.label, "baselines": &c.baselines} {
		v, ok := s.values[key]
		if !ok {
			continue
		}
		if *dst, ok = v.(string); !ok {
			return c, s.errorf(key, "%s = %s: wrong type: want a string in quotes", key, literal(v))
		}
	}
	if c.name == "" {
		return c, s.errorf("name", "name is missing%s", hint("", names(Policies())))
	}
	if c.label == "" {
		c.label = c.name
	}
	s.what = fmt.Sprintf("policy %q", c.label)
	if !legalName.MatchString(c.label) {
		return c, s.errorf("label", "label = %q: use lower-case letters, digits, '.', '_' and '-'", c.label)
	}
	if slices.ContainsFunc(f.contenders, func(o contender) bool { return o.label == c.label }) {
		return c, s.errorf("label", "label = %q: already taken: give this policy a label of its own", c.label)
	}
	if !slices.Contains([]string{"", "theory", "tuned"}, c.baselines) {
		return c, s.errorf("baselines", "baselines = %q: must be \"theory\" or \"tuned\", or not be there", c.baselines)
	}
	c.section = s
	var err error
	c.made, err = f.buildPolicy(c.name, s)
	return c, err
}

// buildPolicy makes the learner called name from its section.
func (f *File) buildPolicy(name string, s section) (made[newLearner], error) {
	for _, p := range policies {
		if p.Name != name {
			continue
		}
		m, err := p.build(s, f.problem)
		if err != nil {
			return made[newLearner]{}, err
		}
		m.settings = merge(map[string]any{"name": name}, m.settings)
		return m, nil
	}
	return made[newLearner]{}, s.errorf("name", "name = %q: unknown%s", name, hint(name, names(Policies())))
}

func names(entries []Entry) []string {
	var list []string
	for _, e := range entries {
		list = append(list, e.Name)
	}
	return list
}

// Selection says what of a file is played.
type Selection struct {
	Seeds     int      // how many, at most MaxSeeds; 0 is the file's
	FirstSeed uint64   // the seeds are FirstSeed, FirstSeed+1, …
	Policies  []string // labels or names; none is all
	Baselines string   // "theory", "tuned" or "both"; "" is "theory"
}

// Check reports a selection of policies that the file does not have, before its
// pool is there.
func (f *File) Check(sel Selection) error {
	_, err := f.choose(sel)
	return err
}

// Experiment makes what the selection asks for. version identifies the program.
func (f *File) Experiment(sel Selection, version string) (*experiment.Experiment, error) {
	if f.Pool != "" && f.pool == nil {
		return nil, fmt.Errorf("%s needs the data of pool %q", f.Name, f.Pool)
	}
	chosen, err := f.choose(sel)
	if err != nil {
		return nil, err
	}
	settings := map[string]any{
		"rounds": f.problem.Rounds, "items": f.items, "size": f.problem.Size, "features": f.problem.Features,
		"constraint": f.constraint.settings, "contexts": f.contexts.settings, "truth": f.truth.settings, "revenue": f.revenue.settings,
	}
	if f.Pool != "" {
		settings["pool"] = map[string]any{"name": f.Pool, "checksum": f.pool.Checksum()}
	}
	if f.drift.value != nil {
		settings["drift"] = f.drift.settings
	}
	e := &experiment.Experiment{
		Name: f.Name, Title: f.Title, Rounds: f.problem.Rounds, Constraint: f.problem.Constraint, Version: version,
		World: func(rng *rand.Rand) env.Environment {
			return &env.World{Items: f.items, Contexts: f.contexts.value(f.pool), Truth: f.drawTruth(rng), Revenues: f.revenue.value}
		},
		Settings: settings,
	}
	for _, c := range chosen {
		e.Policies = append(e.Policies, experiment.Policy{Label: c.label, Settings: c.made.settings, New: c.made.value})
	}
	seeds := sel.Seeds
	if seeds == 0 {
		seeds = f.Seeds
	}
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

// choose returns the contenders of the wanted set of baselines, or those of
// them that are wanted by label or name. A label of the other set may be
// wanted explicitly.
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
			return nil, fmt.Errorf("%s has no policy %q: it has %s", f.Name, word, strings.Join(f.labels(), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(f.contenders), func(c contender) bool { return !want[c.label] }), nil
}

// tomlKeys returns the keys and values that a struct has in TOML.
func tomlKeys(v any) map[string]any {
	text, err := toml.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("config: options that TOML cannot hold: %v", err))
	}
	values := map[string]any{}
	if err := toml.Unmarshal(text, &values); err != nil {
		panic(fmt.Sprintf("config: options that TOML cannot read back: %v", err))
	}
	return values
}
