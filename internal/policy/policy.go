// Package policy has the table of policies, [All], and builds their learners from
// tables of settings: those of experiment files, and those of placements.
//
// All that the programs say and do about a policy by its name comes from the
// table: lists, descriptions, legal keys, defaults of placements, line styles.
package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"vitrine"
	"vitrine/bandit"
	"vitrine/internal/option"
	"vitrine/internal/settings"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// Policy is what is known of a policy besides its code.
type Policy struct {
	Name, Doc string // Doc is one line

	Choose       string // when to choose it
	Offer, Round string // the orders of the costs of an offer and of an observed round, see CostLegend
	Page         string // in docs/algorithms, without its ending; "" for none

	// Serving are the defaults of placements that differ from those of files. With them a policy sells.
	Serving map[string]any
	// Warn returns what speaks against settings in a placement, "" for nothing; nil is nothing.
	Warn func(settings map[string]any) string
	// AllRows says that the learner also learns from the items that were not shown.
	AllRows bool
	// Matrices are how many matrices of d_w×d_w numbers a learner has at most, whatever its options. The
	// rounds that some learners keep come on top.
	Matrices Matrices
	// Line is how figures draw it. Without a color it gets the next free style.
	Line Line

	Learner Learner
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

// CostLegend says what the letters in the costs of a [Policy] are. A training at the end of an epoch is
// shared among the epoch's rounds.
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
	m, err := p.Learner.build(s, problem)
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
	Written  map[string]any                                // the same as a section has them; nil is Settings
	Squares  float64                                       // Σ d_w² over the families that it fits
	Process  *Process                                      // the program to run, of [OfProcess]; New is nil
}

// Process is a learner that is another program.
type Process struct {
	Command []string
	Dir     string
	Timeout time.Duration
}

// Learner makes a policy's learners from its section. It is one of [OfUtility], [OfBasis],
// [OfOptions], [OfNothing], [OfAuto], [OfExperts], [OfWorld] and [OfProcess].
type Learner struct {
	Options []option.Option // with their defaults
	Unfit   string          // why it cannot serve; "" if it can
	build   func(s settings.Section, p bandit.Problem) (Made, error)
}

// Common are the keys of every [[policy]], which are not the learner's.
var Common = []string{"name", "label", "baselines"}

// made returns the maker of learners with the given settings and options.
func made[L vitrine.Learner](create func(rng *rand.Rand) (L, error), known map[string]any, options any, squares float64) Made {
	return Made{
		New: func(rng *rand.Rand) (vitrine.Learner, error) {
			l, err := create(rng)
			if err != nil {
				return nil, err // and not a learner that is a nil pointer
			}
			return l, nil
		},
		Settings: withoutEmpty(settings.Merge(known, options)),
		Squares:  squares,
	}
}

// withoutEmpty removes empty lists: an option that is not used is no part of what identifies a policy.
func withoutEmpty(s map[string]any) map[string]any {
	maps.DeleteFunc(s, func(_ string, v any) bool {
		list, ok := v.([]any)
		return ok && len(list) == 0
	})
	return s
}

// square returns d_w² of a family.
func square(m utility.Model) float64 { return float64(m.NumParams()) * float64(m.NumParams()) }

// unsaved returns why a learner without snapshots cannot serve. A service saves
// its learners.
func unsaved[L vitrine.Learner]() string {
	var l L
	_, saves := any(l).(encoding.BinaryMarshaler)
	_, restores := any(l).(encoding.BinaryUnmarshaler)
	if saves && restores {
		return ""
	}
	return "cannot serve, because it cannot be saved: it has no MarshalBinary and UnmarshalBinary"
}

// OfUtility makes learners of a utility family.
func OfUtility[O any, L vitrine.Learner](defaults func() O, create func(bandit.Problem, utility.Model, O, *rand.Rand) (L, error)) Learner {
	build := func(s settings.Section, p bandit.Problem) (none Made, err error) {
		t, ok, err := s.Table("utility")
		if err != nil {
			return none, err
		}
		if !ok {
			return none, s.Errorf("", `utility is missing: give it one, utility = { kind = "mlp", hidden = [3] }`)
		}
		m, err := settings.Pick(t, Families, p.Features)
		if err != nil {
			return none, err
		}
		o := defaults()
		if err := s.Bind(&o, append([]string{"utility"}, Common...)...); err != nil {
			return none, err
		}
		if c, ok := any(o).(checker); ok {
			err = c.Check(p, m.Value.NumParams())
		} else {
			_, err = create(probe(p), utility.NewLinear(1, false), o, stream.New(0, 0, stream.Learner))
		}
		if err != nil {
			return none, s.At(err)
		}
		return made(func(rng *rand.Rand) (L, error) { return create(p, m.Value, o, rng) }, map[string]any{"utility": m.Settings}, o, square(m.Value)), nil
	}
	family := option.Option{Key: "utility", Type: "table", Required: true, Doc: `the family f_w, { kind = "mlp", hidden = [3] }; vitrine list utilities has all`}
	return Learner{append([]option.Option{family}, option.List(defaults())...), unsaved[L](), build}
}

// checker are options whose check needs the number of parameters.
type checker interface {
	Check(p bandit.Problem, params int) error
}

// OfBasis makes learners of utilities that are linear in their parameters: xᵀθ,
// unless the section has another family of the kind.
func OfBasis[O any, L vitrine.Learner](defaults func() O, create func(bandit.Problem, utility.LinearInParams, O) (L, error)) Learner {
	build := func(s settings.Section, p bandit.Problem) (none Made, err error) {
		var basis, small utility.LinearInParams
		known, squares := map[string]any{}, square(utility.NewLinear(p.Features, true))
		t, ok, err := s.Table("utility")
		if err != nil {
			return none, err
		}
		if ok {
			m, err := settings.Pick(t, Families, p.Features)
			if err != nil {
				return none, err
			}
			if basis, ok = m.Value.(utility.LinearInParams); !ok {
				return none, t.Errorf("kind", "kind = %s: is not linear in its parameters, and this policy learns only such utilities%s", settings.Literal(t.Values["kind"]), settings.Hint("", linearFamilies()))
			}
			known["utility"], small, squares = m.Settings, utility.NewLinear(1, false), square(m.Value)
		}
		o := defaults()
		if err := s.Bind(&o, append([]string{"utility"}, Common...)...); err != nil {
			return none, err
		}
		if _, err := create(probe(p), small, o); err != nil {
			return none, s.At(err)
		}
		return made(func(*rand.Rand) (L, error) { return create(p, basis, o) }, known, o, squares), nil
	}
	family := option.Option{Key: "utility", Type: "table", Doc: `the basis φ, { kind = "quadratic" }, of u = θᵀφ(x); xᵀθ if left out`}
	return Learner{append([]option.Option{family}, option.List(defaults())...), unsaved[L](), build}
}

// linearFamilies are the utilities that are linear in their parameters.
func linearFamilies() (list []string) {
	for _, u := range Families {
		m, err := u.Build(settings.Section{Doc: new(settings.Document), Values: map[string]any{}}, 1)
		if _, ok := m.Value.(utility.LinearInParams); ok && err == nil {
			list = append(list, u.Name)
		}
	}
	return list
}

// probe is the problem with items of one feature. Options are checked where
// learners are made, and one of this problem is small whatever the file's.
func probe(p bandit.Problem) bandit.Problem {
	p.Features, p.Numeric = 1, nil
	return p
}

// OfOptions makes learners that have their own utility, or none.
func OfOptions[O any, L vitrine.Learner](defaults func() O, create func(bandit.Problem, O) (L, error)) Learner {
	build := func(s settings.Section, p bandit.Problem) (none Made, err error) {
		o := defaults()
		if err := s.Bind(&o, Common...); err != nil {
			return none, err
		}
		if _, err := create(probe(p), o); err != nil {
			return none, s.At(err)
		}
		return made(func(*rand.Rand) (L, error) { return create(p, o) }, nil, o, 0), nil
	}
	return Learner{option.List(defaults()), unsaved[L](), build}
}

// OfNothing makes learners without options.
func OfNothing[L vitrine.Learner](create func(bandit.Problem) (L, error)) Learner {
	return OfOptions(func() struct{} { return struct{}{} }, func(p bandit.Problem, _ struct{}) (L, error) { return create(p) })
}

// OfWorld is for learners that know the world. Only an experiment can make them,
// so there is no New.
func OfWorld() Learner {
	build := func(s settings.Section, _ bandit.Problem) (Made, error) {
		return Made{Settings: map[string]any{}}, s.Bind(&struct{}{}, Common...)
	}
	return Learner{Unfit: "knows the truth, which only simulated worlds have", build: build}
}

// OfProcess is for learners that are programs of the user. Only an experiment can run them, so there is no New.
func OfProcess() Learner {
	type options struct {
		Command []string `toml:"command" doc:"the program and its arguments, started in the file's folder"`
		Timeout float64  `toml:"timeout" range:"(0, 1e6]" doc:"seconds to wait for an answer"`
	}
	defaults := options{Timeout: 60}
	build := func(s settings.Section, _ bandit.Problem) (none Made, err error) {
		o := defaults
		if err := s.Bind(&o, Common...); err != nil {
			return none, err
		}
		if err := option.Check(o); err != nil {
			return none, s.At(err)
		}
		if len(o.Command) == 0 {
			return none, s.Errorf("command", `command is missing: name the program and its arguments, command = ["python3", "learner.py"]`)
		}
		p := &Process{o.Command, filepath.Dir(s.Doc.Name), time.Duration(o.Timeout * float64(time.Second))}
		files, err := p.files()
		if err != nil {
			return none, s.Errorf("command", "%v", err)
		}
		return Made{Process: p, Settings: settings.Merge(map[string]any{"files": files}, o)}, nil
	}
	list := option.List(defaults)
	list[0].Required, list[0].Default = true, nil
	return Learner{Options: list, Unfit: "is a program of its own, which only experiments run", build: build}
}

// files returns a hash of each file that the command names, so that a changed program plays its runs again.
func (p Process) files() (map[string]any, error) {
	hashes := map[string]any{}
	for _, word := range p.Command {
		path := word
		if !filepath.IsAbs(word) {
			path = filepath.Join(p.Dir, word)
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue // an argument of another kind, or a program on the search path
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		hashes[word] = hex.EncodeToString(sum[:8])
	}
	return hashes, nil
}

// OfAuto makes the learner that needs no choice.
func OfAuto() Learner {
	build := func(s settings.Section, p bandit.Problem) (none Made, err error) {
		var o bandit.AutoOptions
		if err := s.Bind(&o, Common...); err != nil {
			return none, err
		}
		if _, err := bandit.NewAuto(p, o, stream.New(0, 0, stream.Learner)); err != nil {
			return none, s.At(err)
		}
		block := bandit.AutoBlock(p)
		squares := 2*float64(p.Features) + float64(block*block)/4 // vectors of effects, and three of the twelve matrices of the table
		for _, e := range bandit.AutoExperts(p) {
			squares += expertSquare(e)
		}
		return made(func(rng *rand.Rand) (vitrine.Learner, error) { return bandit.NewAuto(p, o, rng) }, nil, o, squares), nil
	}
	return Learner{Options: option.List(bandit.AutoOptions{}), Unfit: cmp.Or(unsaved[*bandit.BMA](), unsaved[*bandit.Wide]()), build: build}
}

// OfExperts makes BMA-MNL, the learner of several utility families.
func OfExperts() Learner {
	return Learner{
		Options: append([]option.Option{
			{Key: "experts", Type: "list of tables", Doc: "the families, each with its kind, its options and a memory in rounds"},
		}, option.List(bandit.DefaultBMAOptions())...),
		Unfit: unsaved[*bandit.BMA](),
		build: buildExperts,
	}
}

// expertSquare returns d_w² of an expert, and for one of units what their posteriors take besides: 120 units of some
// 3d + 33 numbers, twice, among the twelve matrices of the table.
func expertSquare(e bandit.Expert) float64 {
	s := square(e.Model)
	if m, ok := e.Model.(*utility.Additive); ok && e.Memory == 0 {
		s += float64(120 * (3*m.NumFeatures() + 33) * 2 / 12)
	}
	return s
}

func buildExperts(s settings.Section, p bandit.Problem) (none Made, err error) {
	tables, err := s.Tables("experts")
	if err != nil {
		return none, err
	}
	if len(tables) == 0 {
		for _, values := range defaultExperts(p.Features) {
			tables = append(tables, settings.Section{Doc: s.Doc, Values: values})
		}
	}
	var experts []bandit.Expert
	var written []any
	for _, t := range tables {
		var o struct {
			Memory float64 `toml:"memory"`
		}
		if err := t.Only("memory").Bind(&o); err != nil {
			return none, err
		}
		m, err := settings.Pick(t.Without("memory"), Families, p.Features)
		if err != nil {
			return none, err
		}
		experts = append(experts, bandit.Expert{Model: m.Value, Memory: o.Memory})
		all := settings.Keys(o)
		maps.Copy(all, m.Settings.(map[string]any)) // of Pick
		written = append(written, all)
	}
	var names []any
	squares := 0.0
	for _, e := range experts {
		names = append(names, e.String())
		squares += expertSquare(e)
	}
	o := bandit.DefaultBMAOptions()
	if err := s.Bind(&o, append([]string{"experts"}, Common...)...); err != nil {
		return none, err
	}
	if err := bandit.CheckExperts(p.Features, experts); err != nil {
		return none, s.At(err)
	}
	if _, err := bandit.NewBMA(probe(p), bandit.DefaultExperts(1), o, stream.New(0, 0, stream.Learner)); err != nil {
		return none, s.At(err)
	}
	m := made(func(rng *rand.Rand) (*bandit.BMA, error) { return bandit.NewBMA(p, experts, o, rng) }, map[string]any{"experts": names}, o, squares)
	m.Written = settings.Merge(m.Settings, nil)
	m.Written["experts"] = written
	return m, nil
}

// defaultExperts are [bandit.DefaultExperts] as a file has them. Those of more features are the first ones.
func defaultExperts(features int) []map[string]any {
	tables := []map[string]any{
		{"kind": "linear", "intercept": true},
		{"kind": "linear", "intercept": true, "memory": 200.0},
		{"kind": "radial", "units": int64(1)},
		{"kind": "spectral", "units": int64(1)},
		{"kind": "quadratic"},
	}
	return tables[:len(bandit.DefaultExperts(features))]
}

// Default is the policy of placements that name none.
const Default = "auto"

// Complete returns all settings of a placement's policy. It is given those that the placement names, as a JSON
// object with the keys of a [[policy]] of a file, {"name": "onl-mnl", "lambda": 3, …}, and reads them as
// strictly. The others have the policy's Serving, then the defaults of files. allRows says that rounds have
// the rows of all items, and not only of those shown.
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
		return p, m, fmt.Errorf("name is missing%s", settings.Hint("", serving()))
	}
	p, known := Named(name)
	values := map[string]any{}
	maps.Copy(values, p.Serving)
	if _, ok := given["utility"]; ok {
		delete(values, "intercept") // the utility has a constant term or none
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
		return p, m, Unknown(s, name)
	case p.Learner.Unfit != "":
		return p, m, s.Errorf("", "%s", p.Learner.Unfit)
	case p.AllRows && !allRows:
		return p, m, s.Errorf("", `learns from the items that were not shown, too: the placement must have "record": "all"`)
	}
	m, err = p.Build(s, problem)
	return p, m, err
}

// Effective returns the settings of a placement's policy with those that [Complete] leaves out because they have the zero value.
func Effective(settings map[string]any) map[string]any {
	name, _ := settings["name"].(string)
	p, _ := Named(name)
	all := maps.Clone(settings)
	for _, o := range p.Learner.Options {
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

// Unknown returns the error of a name that no policy has.
func Unknown(s settings.Section, name string) error {
	return s.Errorf("name", "name = %q: unknown%s", name, settings.Hint(name, Names()))
}

// serving are the policies that a placement can have.
func serving() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { p, _ := Named(name); return p.Learner.Unfit != "" })
}
