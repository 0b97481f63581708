// Package config reads experiments and tunings from TOML, and describes the names that the files use.
//
// [Load] reads an experiment's file, and [File.Experiment] makes the [experiment.Experiment] for experiment.Run; see
// the example. [LoadTuning] reads a tuning. Errors name the file, the line and the key. [Descriptions] lists every
// policy, utility family, world, constraint and pool with its options.
package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/bandit/policy"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/hint"
	"vitrine/internal/settings"
)

// File is an experiment's file.
type File struct {
	Name, Title string
	Seeds       int // number played by default

	// Pool names the world's pool of real items, or is "". A file with a pool needs [File.UsePool] before it can make
	// an experiment.
	Pool string

	problem    bandit.Problem
	items      int
	effects    []float64 // by place on a display; nil if all places are alike
	pool       *env.Pool
	contexts   newContexts
	truth      newTruth
	revenue    env.Revenues
	baskets    env.Baskets    // nil if visitors take at most one item
	drift      newDrift       // nil for a constant truth
	known      map[string]any // the world's settings, for run.json
	contenders []contender
}

// contender is one of the file's policies.
type contender struct {
	experiment.Policy
	name      string
	baselines string // "theory", "tuned" or "" for both
	section   settings.Section
}

// keys are a file's top-level keys.
type keys struct {
	Name     string `toml:"name"`
	Title    string `toml:"title"`
	Rounds   int    `toml:"rounds" range:"[1, 1e8]"`
	Items    int    `toml:"items" range:"[1, 1e7]"`
	Size     int    `toml:"size" range:"[1, 1e7]"`
	Features int    `toml:"features" range:"[1, 1e4]"`
	Seeds    int    `toml:"seeds" range:"[1, 1e6]"` // at most MaxSeeds
	Pool     string `toml:"pool"`

	Numbers  int `toml:"numbers"`  // the first columns are numbers, and the others indicators; 0 does not say
	Customer int `toml:"customer"` // the last columns are the customer's

	PositionEffects []float64 `toml:"position_effects"`
}

// MaxSeeds is the maximum number of seeds in an experiment.
const MaxSeeds = 1_000_000

// MaxFirstSeed is the largest first seed.
const MaxFirstSeed = math.MaxInt64

// maxNumbers bounds a context, which takes 8 bytes for each number.
const maxNumbers = 100_000_000

// maxEffect bounds the effects of places.
const maxEffect = 50

var legalName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)

// Load reads an experiment's file. Errors call it name.
func Load(name string, text []byte) (*File, error) {
	doc, err := settings.Parse(name, text)
	if err != nil {
		return nil, err
	}
	root := doc.Root()
	k := keys{Items: 100, Size: 5, Features: 3, Rounds: 1000, Seeds: 30}
	if err := root.Bind(&k, "constraint", "contexts", "truth", "revenue", "baskets", "drift", "policy"); err != nil {
		return nil, err
	}
	if err := k.check(root); err != nil {
		return nil, err
	}
	f := &File{
		Name: k.Name, Title: k.Title, Seeds: k.Seeds, Pool: k.Pool, items: k.Items, effects: k.PositionEffects,
		problem: k.problem(),
		known:   map[string]any{"rounds": k.Rounds, "items": k.Items, "size": k.Size, "features": k.Features},
	}
	for key, n := range map[string]int{"numbers": k.Numbers, "customer": k.Customer} {
		if n > 0 { // learners know it, so their results depend on it
			f.known[key] = n
		}
	}
	f.Title = cmp.Or(f.Title, f.Name)
	if k.Pool != "" && !slices.Contains(names("pool"), k.Pool) {
		return nil, root.Errorf("pool", "pool = %q: unknown%s", k.Pool, hint.Legal(k.Pool, names("pool")))
	}
	if err := f.loadWorld(root); err != nil {
		return nil, err
	}
	return f, f.loadPolicies(root)
}

// reserved lists other names in the results directory.
var reserved = []string{"tune", "tune.csv", "tune.json", "tune.svg", "tune.png", "fresh.csv", "geometric-condition",
	"theory", "tractability", "sessions", "rivers"}

// checkTitle validates a figure's title.
func checkTitle(s settings.Section, title string) error {
	if i := strings.IndexFunc(title, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || len(title) > 100 {
		return s.Errorf("title", "title = %q: must be printable, in one line, and at most 100 bytes long", title)
	}
	return nil
}

// checkName validates a name that is also used for a directory.
func checkName(s settings.Section, name string) error {
	if name == "" {
		return s.Errorf("name", "name is missing: it names the directory of the results")
	}
	if !legalName.MatchString(name) {
		return s.Errorf("name", "name = %q: use at most 100 lower-case letters, digits, '.', '_' and '-'", name)
	}
	if slices.Contains(reserved, name) {
		return s.Errorf("name", "name = %q: results have something else of this name: choose another", name)
	}
	return nil
}

// problem returns what learners know.
func (k keys) problem() bandit.Problem {
	p := bandit.Problem{NumFeatures: k.Features, Items: k.Items, MaxShown: k.Size, Rounds: k.Rounds}
	for j := range k.Numbers {
		p.Numeric = append(p.Numeric, j)
	}
	for j := range k.Customer {
		p.Customer = append(p.Customer, k.Features-k.Customer+j)
	}
	return p
}

func (k keys) check(s settings.Section) error {
	if err := checkName(s, k.Name); err != nil {
		return err
	}
	if err := checkTitle(s, k.Title); err != nil {
		return err
	}
	for p, v := range k.PositionEffects {
		if !(math.Abs(v) <= maxEffect) || p == 0 && v != 0 {
			return s.Errorf("position_effects",
				"position_effects = %v: must be 0 for the first place, and from -%d to %d for the others",
				k.PositionEffects, maxEffect, maxEffect)
		}
	}
	for key, n := range map[string]int{"numbers": k.Numbers, "customer": k.Customer} {
		if n < 0 || n > k.Features {
			return s.Errorf(key, "%s = %d: must be from 0 to features = %d", key, n, k.Features)
		}
	}
	if k.Items > maxNumbers/k.Features {
		return s.Errorf("items", "items = %d, features = %d: a context must have at most %d numbers", k.Items, k.Features,
			maxNumbers)
	}
	if k.Size > k.Items {
		return s.Errorf("size", "size = %d: must not exceed items = %d", k.Size, k.Items)
	}
	return nil
}

// UsePool gives the file its pool, or returns an error if it does not fit.
func (f *File) UsePool(p *env.Pool) error {
	m, d := p.Features.Dims()
	contexts, table := f.contexts(p).(*env.Table)
	switch {
	case d != f.problem.NumFeatures:
		return fmt.Errorf("%s: features = %d, and the items of pool %q have %d",
			f.Name, f.problem.NumFeatures, f.Pool, d)
	case m < f.items && !table:
		return fmt.Errorf("%s: items = %d, and the items of pool %q are %d", f.Name, f.items, f.Pool, m)
	}
	if table {
		switch sizes := contexts.Sizes(); {
		case len(sizes) == 0:
			return fmt.Errorf("%s: contexts: kind = 'table': pool %q has no choices to draw: use kind = 'pool'",
				f.Name, f.Pool)
		case !slices.Contains(sizes, f.items):
			return fmt.Errorf("%s: items = %d, and the choices of pool %q have %v alternatives",
				f.Name, f.items, f.Pool, sizes)
		}
	}
	f.pool = p
	return nil
}

func (f *File) loadWorld(root settings.Section) (err error) {
	if f.problem.Constraint, err = world(f, root, "constraint", constraints, "at-most"); err != nil {
		return err
	}
	if f.contexts, err = world(f, root, "contexts", contexts, ""); err != nil {
		return err
	}
	if f.truth, err = world(f, root, "truth", truths, ""); err != nil {
		return err
	}
	if f.revenue, err = world(f, root, "revenue", revenues, "one"); err != nil {
		return err
	}
	if root.Values["baskets"] != nil {
		if f.baskets, err = world(f, root, "baskets", baskets, ""); err != nil {
			return err
		}
	}
	if err := f.checkOptimum(root); err != nil || root.Values["drift"] == nil {
		return err
	}
	f.drift, err = world(f, root, "drift", drifts, "")
	return err
}

// checkOptimum returns an error if the best page of a round is not known, from which regret is measured.
func (f *File) checkOptimum(root settings.Section) error {
	if f.baskets == nil || f.baskets.Mean() > 0 {
		if f.effects != nil && !assortment.Orderable(f.problem.Constraint) {
			return root.Errorf("position_effects", "position_effects: the best order is not known under this "+
				"[constraint]: leave out a group's min, include, capacity and groups that cross")
		}
		return nil
	}
	s, _, err := root.Table("baskets")
	if err != nil {
		return err
	}
	kind := s.Values["kind"]
	size, plain := f.problem.Constraint.(assortment.AtMost)
	switch {
	case f.effects != nil:
		return s.Errorf("kind", "kind = '%v': the best order is not known for these baskets: leave out "+
			"position_effects", kind)
	case !plain:
		return s.Errorf("kind", "kind = '%v': the best page is not known under this [constraint]: leave it out", kind)
	}
	if err := size.CheckCount(f.items, experiment.MaxSets); err != nil {
		return s.Errorf("kind", "kind = '%v': the best page is found among all, and %v: lower items or size", kind, err)
	}
	return nil
}

// world makes the kind named in one of the file's tables. Without the table it makes the default kind, or returns an
// error if that is "".
func world[T any](f *File, root settings.Section, key string, table []settings.Kind[T], kind string) (v T, err error) {
	s, ok, err := root.Table(key)
	switch {
	case err != nil:
		return v, err
	case !ok && kind == "":
		return v, root.Errorf("", "[%s] is missing", key)
	case !ok:
		s = settings.Section{Doc: root.Doc, Values: map[string]any{"kind": kind}}
	}
	v, f.known[key], err = settings.Pick(s, table,
		settings.Dims{Features: f.problem.NumFeatures, Items: f.items, Size: f.problem.MaxShown})
	if err != nil {
		return v, err
	}
	pooled := s.Values["kind"] == "pool" || s.Values["kind"] == "table"
	if pooled && f.Pool == "" {
		return v, s.Errorf("kind", "kind = '%v': the file names no pool: say pool = %q at its head", s.Values["kind"],
			pools[0].name)
	}
	truth, _, _ := root.Table("truth")
	switch contexts, _, _ := root.Table("contexts"); {
	case key == "truth" && s.Values["kind"] == "ideals" && contexts.Values["kind"] != "priced":
		return v, s.Errorf("kind", "kind = 'ideals': needs [contexts] of kind = 'priced', with a price and a category")
	case key == "drift" && s.Values["kind"] == "rotation" && truth.Values["kind"] == "ideals":
		return v, s.Errorf("kind", "kind = 'rotation': the truth 'ideals' reads a price and a category, which do not turn")
	}
	return v, f.checkHorizon(s)
}

// checkHorizon returns an error if a change happens after the last round.
func (f *File) checkHorizon(s settings.Section) error {
	if at, _ := s.Values["rounds"].([]any); len(at) > 0 && at[len(at)-1].(int64) > int64(f.problem.Rounds) {
		return s.Errorf("rounds", "rounds = %s: the last is beyond the horizon, rounds = %d",
			settings.Literal(s.Values["rounds"]), f.problem.Rounds)
	}
	return nil
}

// drawTruth draws a seed's truth.
func (f *File) drawTruth(rng *rand.Rand) env.Truth {
	truth := f.truth(rng, f.pool)
	if f.drift == nil {
		return truth
	}
	return f.drift(truth, f.problem.Rounds, rng)
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
	var takes string
	for key, dst := range map[string]*string{"name": &c.name, "label": &c.Label, "baselines": &c.baselines,
		"takes": &takes} {
		v, ok := s.Values[key]
		if !ok {
			continue
		}
		if *dst, ok = v.(string); !ok {
			return c, s.Errorf(key, "%s = %s: wrong type: want a string in quotes", key, settings.Literal(v))
		}
	}
	if c.name == "" {
		return c, s.Errorf("name", "name is missing%s", hint.Legal("", policy.Names()))
	}
	c.Label = cmp.Or(c.Label, c.name)
	s.What = fmt.Sprintf("policy %q", c.Label)
	if !legalName.MatchString(c.Label) {
		return c, s.Errorf("label", "label = %q: use at most 100 lower-case letters, digits, '.', '_' and '-'",
			c.Label)
	}
	if slices.ContainsFunc(f.contenders, func(o contender) bool { return o.Label == c.Label }) {
		return c, s.Errorf("label", "label = %q: already taken: give this policy a label of its own", c.Label)
	}
	if !slices.Contains([]string{"", "theory", "tuned"}, c.baselines) {
		return c, s.Errorf("baselines", "baselines = %q: must be \"theory\" or \"tuned\", or not be there", c.baselines)
	}
	if takes != "" && takes != "first" {
		return c, s.Errorf("takes", "takes = %q: must be \"first\", or not be there: then the learner sees all takes",
			takes)
	}
	c.section = s
	label, err := c.Label, error(nil)
	c.Policy, err = f.buildPolicy(c.name, s)
	c.Label = label
	return c, err
}

// buildPolicy makes the policy called name from its section, without a label.
func (f *File) buildPolicy(name string, s settings.Section) (made experiment.Policy, err error) {
	p, ok := policy.Named(name)
	if !ok {
		return made, policy.Unknown(s, name)
	}
	m, err := p.Build(s, f.problem)
	if err != nil {
		return made, err
	}
	made.Settings = m.Settings
	if made.FirstTakes = s.Values["takes"] == "first"; made.FirstTakes {
		made.Settings = settings.Merge(map[string]any{"takes": "first"}, m.Settings)
	}
	switch {
	case m.Process != nil:
		made.New = func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
			return experiment.NewProcess(experiment.ProcessOptions{
				Command: m.Process.Command, Dir: m.Process.Dir, Timeout: m.Process.Timeout,
				Problem: f.problem, Constraint: f.known["constraint"], Ordered: f.effects != nil,
			}, rng)
		}
	case m.New == nil:
		made.New = func(world env.Environment, _ *rand.Rand) (vitrine.Learner, error) {
			return experiment.NewOracle(f.problem, world)
		}
	default:
		made.New = func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) { return m.New(rng) }
	}
	return made, nil
}

// Selection selects the policies and seeds of a file to play.
type Selection struct {
	Seeds     int      // number of seeds, at most MaxSeeds; 0 means the file's
	FirstSeed uint64   // seeds are FirstSeed, FirstSeed+1, …; at most MaxFirstSeed
	Policies  []string // labels or names; empty means all
	Baselines string   // "theory", "tuned" or "both"; "" means "theory"
}

// Check returns an error if the selection names policies that the file lacks. It does not need the file's pool.
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
	known := maps.Clone(f.known)
	if f.Pool != "" {
		known["pool"] = map[string]any{"name": f.Pool, "checksum": f.pool.Checksum()}
	}
	if f.effects != nil {
		known["position_effects"] = f.effects
	}
	e := &experiment.Experiment{
		Name: f.Name, Title: f.Title, Rounds: f.problem.Rounds, Constraint: f.problem.Constraint, Version: version,
		World: func(rng *rand.Rand) env.Environment {
			return &env.World{Items: f.items, Contexts: f.contexts(f.pool), Truth: f.drawTruth(rng),
				Revenues: f.revenue, Places: f.effects, Takers: f.baskets}
		},
		Settings: known,
	}
	for _, c := range chosen {
		e.Policies = append(e.Policies, c.Policy)
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
		labels = append(labels, c.Label)
	}
	return labels
}

// choose returns the contenders in the selected set of baselines, restricted to the selected labels or names. Labels
// from the other set must be selected explicitly.
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
	if sel.FirstSeed > MaxFirstSeed {
		return nil, fmt.Errorf("the first seed %d: must be at most %d", sel.FirstSeed, uint64(MaxFirstSeed))
	}
	if len(sel.Policies) == 0 {
		chosen := slices.DeleteFunc(slices.Clone(f.contenders), func(c contender) bool { return !inSet(c) })
		if len(chosen) == 0 {
			return nil, fmt.Errorf("%s has no policy for these baselines: its policies are all of the other set",
				f.Name)
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
			if inSet(c) && (c.Label == word || c.name == word) {
				want[c.Label], found = true, true
			}
		}
		if found {
			continue
		}
		for _, c := range f.contenders {
			if c.Label == word {
				want[c.Label], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s has no policy %q%s",
				f.Name, word, hint.Near(word, append(f.labels(), named...), ": it has "+strings.Join(f.labels(), ", ")))
		}
	}
	return slices.DeleteFunc(slices.Clone(f.contenders), func(c contender) bool { return !want[c.Label] }), nil
}
