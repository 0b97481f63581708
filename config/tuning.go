package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"vitrine/bandit/policy"
	"vitrine/experiment"
	"vitrine/internal/hint"
	"vitrine/internal/settings"
	"vitrine/tune"
)

// Tuning is a tuning's file: the policy's parameters to search, the panels with the final regrets to average, and the
// seeds. A setting is a choice of the parameters, identified by its index.
type Tuning struct {
	Name, Title string
	Policy      string   // label in the panels
	Panels      []string // names of the experiments
	Parameters  []string // keys to search, nested ones with dots
	Settings    int      // number of competing settings
	Training    []uint64
	Halving     tune.Halving
	Fresh       []uint64
	Best        int // number of settings that play the fresh seeds

	tuned []tunedPanel
	seen  map[string]bool // settings as text
}

// Configured is the index of the setting in the panels' files. It does not compete.
const Configured = -1

// tunedPanel is a panel with its policy in every setting.
type tunedPanel struct {
	file       *File
	configured contender
	settings   []experiment.Policy
	same       int // index of the setting that equals the configured one, or Configured
}

// MaxSettings is the maximum number of settings in a tuning.
const MaxSettings = 10_000

type tuningKeys struct {
	Name   string `toml:"name"`
	Title  string `toml:"title"`
	Policy string `toml:"policy"`
}

// The bounds are MaxSeeds and MaxSettings.
type seedKeys struct {
	FirstSeed int64 `toml:"first_seed" range:"[0, inf)"`
	Seeds     int64 `toml:"seeds" range:"[1, 1e6]"`
}

type freshKeys struct {
	seedKeys
	Best int `toml:"best" range:"[1, 1e4]"`
}

type randomKeys struct {
	Draws int   `toml:"draws" range:"[1, 1e4]"`
	Seed  int64 `toml:"seed" range:"[0, inf)"`
}

type rangeKeys struct {
	Low  float64 `toml:"low"`
	High float64 `toml:"high"`
	Log  bool    `toml:"log"`
}

// LoadTuning reads a tuning's file. Errors call it name. open loads the experiments named in it.
func LoadTuning(name string, text []byte, open func(experiment string) (*File, error)) (*Tuning, error) {
	doc, err := settings.Parse(name, text)
	if err != nil {
		return nil, err
	}
	root := doc.Root()
	var k tuningKeys
	if err := root.Bind(&k, "experiments", "training", "fresh", "halving", "grid", "random"); err != nil {
		return nil, err
	}
	if err := checkName(root, k.Name); err != nil {
		return nil, err
	}
	if err := checkTitle(root, k.Title); err != nil {
		return nil, err
	}
	t := &Tuning{Name: k.Name, Title: k.Title, Policy: k.Policy, seen: map[string]bool{}}
	t.Title = cmp.Or(t.Title, t.Name)
	for _, load := range []func(settings.Section) error{
		t.loadSeeds,
		t.loadHalving,
		func(s settings.Section) error { return t.loadPanels(s, open) },
		t.loadSpace,
	} {
		if err := load(root); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// optional binds the table called key and returns it, or the root if the table is missing.
func optional(root settings.Section, key string, dst any) (settings.Section, error) {
	s, ok, err := root.Table(key)
	if err != nil || !ok {
		return root, err
	}
	return s, s.Bind(dst)
}

func (t *Tuning) loadSeeds(root settings.Section) error {
	training, fresh := seedKeys{1000, 40}, freshKeys{seedKeys{2000, 100}, 1}
	if _, err := optional(root, "training", &training); err != nil {
		return err
	}
	fs, err := optional(root, "fresh", &fresh)
	if err != nil {
		return err
	}
	t.Training, t.Fresh, t.Best = training.list(), fresh.list(), fresh.Best
	if t.Fresh[0] <= t.Training[len(t.Training)-1] && t.Training[0] <= t.Fresh[len(t.Fresh)-1] {
		return fs.Errorf("", "the fresh seeds %d to %d overlap the training seeds %d to %d: settings that were "+
			"chosen on a seed are too good on it",
			t.Fresh[0], t.Fresh[len(t.Fresh)-1], t.Training[0], t.Training[len(t.Training)-1])
	}
	return nil
}

func (k seedKeys) list() []uint64 {
	seeds := make([]uint64, k.Seeds)
	for i := range seeds {
		seeds[i] = uint64(k.FirstSeed) + uint64(i)
	}
	return seeds
}

func (t *Tuning) loadHalving(root settings.Section) error {
	h := tune.Halving{First: 5, Factor: 3}
	s, ok, err := root.Table("halving")
	if err != nil || !ok {
		return err
	}
	if err := s.Bind(&h); err != nil {
		return err
	}
	if h.First < 1 || h.First > len(t.Training) {
		return s.Errorf("first", "first = %d: must be from 1 to the %d training seeds", h.First, len(t.Training))
	}
	t.Halving = h
	return nil
}

func (t *Tuning) loadPanels(root settings.Section, open func(string) (*File, error)) error {
	if t.Policy == "" {
		return root.Errorf("policy", "policy is missing: the label that it has in the experiments")
	}
	list, ok := root.Values["experiments"].([]any)
	if !ok || len(list) == 0 {
		return root.Errorf("experiments",
			"experiments must be a list of at least one name or path, [\"main-gaussian-realizable\"]")
	}
	for _, v := range list {
		name, ok := v.(string)
		if !ok {
			return root.Errorf("experiments", "experiments: %s: must be a name or a path in quotes",
				settings.Literal(v))
		}
		f, err := open(name)
		if err != nil {
			return root.Errorf("experiments", "%v", err)
		}
		if slices.Contains(t.Panels, f.Name) {
			return root.Errorf("experiments", "experiments: %q stands twice", f.Name)
		}
		if t.Training[0] < uint64(f.Seeds) {
			return root.Errorf("training", "training: the seeds %d to %d overlap the seeds of %s, 0 to %d: settings that "+
				"were chosen on a seed are too good on it", t.Training[0], t.Training[len(t.Training)-1], f.Name, f.Seeds-1)
		}
		i := slices.IndexFunc(f.contenders, func(c contender) bool { return c.Label == t.Policy })
		if i < 0 {
			return root.Errorf("policy", "policy = %q: %s has no policy of this label%s", t.Policy, f.Name,
				hint.Near(t.Policy, f.labels(), ": it has "+strings.Join(f.labels(), ", ")))
		}
		t.Panels = append(t.Panels, f.Name)
		t.tuned = append(t.tuned, tunedPanel{file: f, configured: f.contenders[i], same: Configured})
	}
	return nil
}

// parameter is a key to search.
type parameter struct {
	key   string // in the policy's section, nested ones with dots
	at    settings.Section
	value any // a list, or a range's table
}

// errorf places an error at the parameter.
func (p parameter) errorf(format string, args ...any) error {
	return p.at.Errorf(p.key, p.key+" "+format, args...)
}

func (p parameter) line() int { return p.at.Doc.Lines[settings.Join(p.at.Path, p.key)] }

// parameters returns a table's keys in the order of the file. Tables inside it hold nested keys, except those for which
// isLeaf returns true.
func parameters(s settings.Section, isLeaf func(map[string]any) bool) []parameter {
	var all []parameter
	var walk func(prefix string, values map[string]any)
	walk = func(prefix string, values map[string]any) {
		for key, v := range values {
			key = settings.Join(prefix, key)
			if table, ok := v.(map[string]any); ok && !isLeaf(table) {
				walk(key, table)
				continue
			}
			all = append(all, parameter{key, s, v})
		}
	}
	walk("", s.Values)
	slices.SortFunc(all, func(a, b parameter) int {
		return cmp.Or(cmp.Compare(a.line(), b.line()), strings.Compare(a.key, b.key))
	})
	return all
}

// loadSpace lists the settings: first the grid points, then the random ones.
func (t *Tuning) loadSpace(root settings.Section) error {
	found := false
	for _, space := range []struct {
		key  string
		load func(settings.Section) error
	}{{"grid", t.loadGrid}, {"random", t.loadRandom}} {
		table, ok, err := root.Table(space.key)
		if err == nil && ok {
			found, err = true, space.load(table)
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return root.Errorf("", "there is nothing to search: give it a [grid] or a [random] of the policy's parameters")
	}
	return nil
}

func (t *Tuning) loadGrid(s settings.Section) error {
	list := parameters(s, func(map[string]any) bool { return false })
	if len(list) == 0 {
		return s.Errorf("", "has no parameter: give it one with a list of values, lambda = [0.1, 1, 10]")
	}
	var values [][]any
	points := 1
	for _, p := range list {
		v, err := p.list()
		if err != nil {
			return err
		}
		values = append(values, v)
		if points *= len(v); points > MaxSettings {
			return p.errorf("makes more than %d settings", MaxSettings)
		}
		t.Parameters = append(t.Parameters, p.key)
	}
	return t.add(s, list, tune.Grid(values))
}

// list returns the values of a parameter given as a list.
func (p parameter) list() ([]any, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	list, ok := p.value.([]any)
	if !ok {
		return nil, p.errorf("= %s: must be a list of values, [%s]",
			settings.Literal(p.value), settings.Literal(p.value))
	}
	if len(list) == 0 {
		return nil, p.errorf("= []: give it at least one value")
	}
	var seen []string
	for _, v := range list {
		if table, ok := v.(map[string]any); ok {
			keys := append(slices.Sorted(maps.Keys(table)), "key")
			return nil, p.errorf("has a table among its values: search the keys in it, %s.%s = […]", p.key, keys[0])
		}
		text := settings.Literal(v)
		if slices.Contains(seen, text) {
			return nil, p.errorf("has the value %s twice", text)
		}
		seen = append(seen, text)
	}
	return list, nil
}

func (p parameter) check() error {
	if slices.Contains(policy.Common, p.key) {
		return p.errorf("cannot be searched: it names the policy")
	}
	return nil
}

func (t *Tuning) loadRandom(s settings.Section) error {
	k := randomKeys{Draws: 30}
	if err := s.Bind(&k, "ranges"); err != nil {
		return err
	}
	rs, ok, err := s.Table("ranges")
	if err != nil {
		return err
	}
	list := parameters(rs, func(table map[string]any) bool {
		_, low := table["low"]
		_, high := table["high"]
		return low || high || len(table) == 0
	})
	if !ok || len(list) == 0 {
		return s.Errorf("ranges",
			"ranges is missing: give it the parameters, lambda = { low = 0.1, high = 10, log = true }")
	}
	var keys []string
	for _, p := range list {
		keys = append(keys, p.key)
	}
	if t.Parameters == nil {
		t.Parameters = keys
	}
	slices.SortFunc(list, func(a, b parameter) int {
		return cmp.Compare(slices.Index(t.Parameters, a.key), slices.Index(t.Parameters, b.key))
	})
	if len(list) != len(t.Parameters) || slices.ContainsFunc(keys, func(k string) bool {
		return !slices.Contains(t.Parameters, k)
	}) {
		return rs.Errorf("", "has the parameters %s, and the grid has %s: they must be the same",
			strings.Join(keys, ", "), strings.Join(t.Parameters, ", "))
	}
	var ranges []tune.Range
	for _, p := range list {
		r, err := t.loadRange(p)
		if err != nil {
			return err
		}
		ranges = append(ranges, r)
	}
	rng := rand.New(rand.NewPCG(uint64(k.Seed), 0))
	var points [][]any
	for range k.Draws {
		var point []any
		for _, r := range ranges {
			point = append(point, r.Draw(rng))
		}
		points = append(points, point)
	}
	return t.add(rs, list, points)
}

func (t *Tuning) loadRange(p parameter) (tune.Range, error) {
	table, ok := p.value.(map[string]any)
	if !ok {
		if _, isList := p.value.([]any); !isList {
			return tune.Range{}, p.errorf("= %s: must be a list of values, [%s], or a range, { low = 0.1, high = 10 }",
				settings.Literal(p.value), settings.Literal(p.value))
		}
		list, err := p.list()
		return tune.Range{List: list}, err
	}
	if err := p.check(); err != nil {
		return tune.Range{}, err
	}
	s := settings.Section{Doc: p.at.Doc, Path: settings.Join(p.at.Path, p.key), What: "random: " + p.key, Values: table}
	k := rangeKeys{math.NaN(), math.NaN(), false}
	if err := s.Bind(&k); err != nil {
		return tune.Range{}, err
	}
	if table["low"] == nil || table["high"] == nil {
		return tune.Range{}, s.Errorf("", "give it both low and high, { low = 0.1, high = 10 }")
	}
	if !(k.Low < k.High) || math.IsInf(k.High-k.Low, 0) {
		return tune.Range{}, s.Errorf("", "low = %v, high = %v: must be finite, low less than high", k.Low, k.High)
	}
	if k.Log && k.Low <= 0 {
		return tune.Range{}, s.Errorf("low", "low = %v: must be positive where log = true", k.Low)
	}
	r := tune.Range{Low: k.Low, High: k.High, Log: k.Log}
	if _, whole := lookup(t.tuned[0].configured.Settings, p.key).(int64); whole {
		r.Whole = true
		if k.Low != math.Round(k.Low) || k.High != math.Round(k.High) || math.Abs(k.Low) > 1e15 ||
			math.Abs(k.High) > 1e15 {
			return tune.Range{}, s.Errorf("", "low = %v, high = %v: %s is a whole number", k.Low, k.High, p.key)
		}
	}
	return r, nil
}

// add makes the policy for every panel at every point, and skips duplicate points.
func (t *Tuning) add(s settings.Section, list []parameter, points [][]any) error {
	for _, point := range points {
		made := make([]experiment.Policy, len(t.tuned))
		for i := range t.tuned {
			p := &t.tuned[i]
			m, err := p.file.buildPolicy(p.configured.name, p.with(s, list, point))
			if err != nil {
				return err
			}
			made[i] = m
		}
		key := fmt.Sprint(made[0].Settings)
		if t.seen[key] {
			continue
		}
		t.seen[key] = true
		for i := range t.tuned {
			p := &t.tuned[i]
			if reflect.DeepEqual(p.configured.Settings, made[i].Settings) {
				p.same = len(p.settings)
			}
			p.settings = append(p.settings, made[i])
		}
		t.Settings++
	}
	return nil
}

// with returns the policy's section with the parameters set. Errors refer to the parameter's line, or else to the line
// of s.
func (p *tunedPanel) with(s settings.Section, list []parameter, point []any) settings.Section {
	doc := &settings.Document{Name: s.Doc.Name, Lines: map[string]int{"policy": s.Doc.Lines[s.Path]}}
	values := p.configured.section.Values
	for i, parameter := range list {
		keys := strings.Split(parameter.key, ".")
		for n := range keys {
			doc.Lines[settings.Join("policy", strings.Join(keys[:n+1], "."))] = parameter.line()
		}
		values = put(values, keys, point[i])
	}
	what := fmt.Sprintf("policy %q of %s", p.configured.Label, p.file.Name)
	return settings.Section{Doc: doc, Path: "policy", What: what, Values: values}
}

// put returns a copy of the table with a value at a nested key.
func put(table map[string]any, keys []string, value any) map[string]any {
	table = maps.Clone(table)
	if table == nil {
		table = map[string]any{}
	}
	if len(keys) > 1 {
		inner, _ := table[keys[0]].(map[string]any)
		value = put(inner, keys[1:], value)
	}
	table[keys[0]] = value
	return table
}

// lookup returns the value at a key with dots, or nil.
func lookup(settings any, key string) any {
	for _, k := range strings.Split(key, ".") {
		table, ok := settings.(map[string]any)
		if !ok {
			return nil
		}
		settings = table[k]
	}
	return settings
}

// Values returns a setting's values, in the order of the parameters. In the configured setting, values that differ
// between panels are separated by '/'.
func (t *Tuning) Values(setting int) []string {
	var cells []string
	for _, key := range t.Parameters {
		var all []string
		for p := range t.tuned {
			if v := word(lookup(t.tuned[p].at(setting).Settings, key)); !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		cells = append(cells, strings.Join(all, "/"))
	}
	return cells
}

// word formats a value for tables.
func word(v any) string {
	switch v := v.(type) {
	case nil: // missing in the configured setting
		return "–"
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return settings.Literal(v)
	}
}

func (p *tunedPanel) at(setting int) experiment.Policy {
	if setting == Configured {
		return p.configured.Policy
	}
	return p.settings[setting]
}

// Files returns the panels' files. The caller supplies their pools.
func (t *Tuning) Files() []*File {
	var files []*File
	for _, p := range t.tuned {
		files = append(files, p.file)
	}
	return files
}

// Label returns the label for a setting's runs in a panel. A setting in the search that equals the configured one
// shares its label, so that it is not played twice.
func (t *Tuning) Label(panel, setting int) string {
	p := &t.tuned[panel]
	if setting == Configured {
		setting = p.same
	}
	if setting == Configured {
		return t.Policy + " as configured"
	}
	label := t.Policy
	for i, v := range t.Values(setting) {
		label += " " + t.Parameters[i] + "=" + v
	}
	return label
}

// Experiment makes the experiment that plays the settings on the seeds in a panel, each label once. version identifies
// the program.
func (t *Tuning) Experiment(panel int, settings []int, seeds []uint64, version string) (*experiment.Experiment, error) {
	p := &t.tuned[panel]
	e, err := p.file.Experiment(Selection{Policies: []string{t.Policy}, Baselines: "both"}, version)
	if err != nil {
		return nil, err
	}
	e.Policies, e.Seeds = nil, seeds
	for _, s := range settings {
		label, m := t.Label(panel, s), p.at(s)
		if !slices.ContainsFunc(e.Policies, func(o experiment.Policy) bool { return o.Label == label }) {
			m.Label = label
			e.Policies = append(e.Policies, m)
		}
	}
	return e, nil
}

// IsConfigured reports whether a setting equals the one in every panel's file.
func (t *Tuning) IsConfigured(setting int) bool {
	return !slices.ContainsFunc(t.tuned, func(p tunedPanel) bool { return p.same != setting })
}
