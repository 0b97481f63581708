package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"vitrine"
	"vitrine/bandit"
	"vitrine/internal/hint"
	"vitrine/internal/option"
	"vitrine/internal/settings"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// OfUtility makes learners of a utility family.
func OfUtility[O any, L vitrine.Learner](defaults func() O,
	create func(bandit.Problem, utility.Model, O, *rand.Rand) (L, error)) Learner {
	return of(family, defaults, func(p bandit.Problem, f []bandit.Expert, o O, rng *rand.Rand) (L, error) {
		return create(p, f[0].Model, o, rng)
	})
}

// OfBasis makes learners of utilities that are linear in their parameters: xᵀθ,
// unless the section names another family of the kind.
func OfBasis[O any, L vitrine.Learner](defaults func() O,
	create func(bandit.Problem, utility.LinearInParams, O) (L, error)) Learner {
	return of(basis, defaults, func(p bandit.Problem, f []bandit.Expert, o O, _ *rand.Rand) (L, error) {
		if len(f) == 0 {
			return create(p, nil, o)
		}
		return create(p, f[0].Model.(utility.LinearInParams), o)
	})
}

// OfExperts makes learners of several utility families.
func OfExperts[O any, L vitrine.Learner](defaults func() O,
	create func(bandit.Problem, []bandit.Expert, O, *rand.Rand) (L, error)) Learner {
	return of(experts, defaults, create)
}

// OfOptions makes learners that bring their own utility, or need none.
func OfOptions[O any, L vitrine.Learner](defaults func() O, create func(bandit.Problem, O) (L, error)) Learner {
	return of(own, defaults, func(p bandit.Problem, _ []bandit.Expert, o O, _ *rand.Rand) (L, error) {
		return create(p, o)
	})
}

func noOptions() struct{} { return struct{}{} }

// auto makes the learner that needs no choice.
func auto() Learner {
	l := of(own, func() (o bandit.AutoOptions) { return o },
		func(p bandit.Problem, _ []bandit.Expert, o bandit.AutoOptions, rng *rand.Rand) (vitrine.Learner, error) {
			return bandit.NewAuto(p, o, rng)
		})
	l.Unfit = cmp.Or(unsaved[*bandit.BMA](), unsaved[*bandit.Wide]())
	build := l.build
	l.build = func(s settings.Section, p bandit.Problem) (Made, error) {
		m, err := build(s, p)
		block := bandit.AutoBlock(p)
		m.Squares = 2*float64(p.NumFeatures) +
			float64(block*block)/4 // vectors of effects, and three of the twelve matrices of the table
		for _, e := range bandit.AutoExperts(p) {
			m.Squares += expertSquare(e)
		}
		return m, err
	}
	return l
}

// families says which utility families a learner fits.
type families int

const (
	own     families = iota // its own, or none
	family                  // the one that the section names
	basis                   // one that is linear in its parameters, by default xᵀθ
	experts                 // several
)

// options describe the key of the families.
func (f families) options() []option.Option {
	return map[families][]option.Option{
		family: {{Key: "utility", Type: "table", Required: true, Doc: `the family f_w, { kind = "mlp", hidden = [3] }; vitrine list utilities has all`}},
		basis:  {{Key: "utility", Type: "table", Doc: `the basis φ, { kind = "quadratic" }, of u = θᵀφ(x); xᵀθ if left out`}},
		experts: {{Key: "experts", Type: "list of tables", Doc: "the families, each with its kind, its options " +
			"and its memory_rounds"}},
	}[f]
}

// of makes learners of the given families. create is given as many as the section names.
func of[O any, L vitrine.Learner](f families, defaults func() O,
	create func(bandit.Problem, []bandit.Expert, O, *rand.Rand) (L, error)) Learner {
	mine := f.options()
	keys := slices.Clone(Common)
	for _, o := range mine {
		keys = append([]string{o.Key}, keys...)
	}
	build := func(s settings.Section, p bandit.Problem) (none Made, err error) {
		m, list, err := f.read(s, p)
		if err != nil {
			return none, err
		}
		o := defaults()
		if err := s.Bind(&o, keys...); err != nil {
			return none, err
		}
		if c, ok := any(o).(checker); ok {
			err = c.Check(p, list[0].Model.NumParams())
		} else {
			probe, small := f.probe(p, list)
			_, err = create(probe, small, o, stream.New(0, 0, stream.Learner))
		}
		if err != nil {
			return none, s.At(err)
		}
		m.New = func(rng *rand.Rand) (vitrine.Learner, error) {
			l, err := create(p, list, o, rng)
			if err != nil {
				return nil, err // and not a learner that is a nil pointer
			}
			return l, nil
		}
		m.Settings = withoutEmpty(settings.Merge(m.Settings, o))
		if m.Written != nil {
			m.Written = settings.Merge(m.Settings, m.Written)
		}
		return m, nil
	}
	return Learner{append(mine, option.List(defaults())...), unsaved[L](), build}
}

// checker are options with a check that needs the number of parameters.
type checker interface {
	Check(p bandit.Problem, params int) error
}

// probe returns a small problem and families for it. Options are checked by making a learner of them, which takes
// little memory whatever the file's problem.
func (f families) probe(p bandit.Problem, list []bandit.Expert) (bandit.Problem, []bandit.Expert) {
	if f == own {
		return p, nil
	}
	p.NumFeatures, p.Numeric, p.Customer = 1, nil, nil
	switch {
	case f == experts:
		return p, bandit.DefaultExperts(1)
	case len(list) > 0:
		return p, []bandit.Expert{{Model: utility.NewLinear(1, false)}}
	}
	return p, nil
}

// withoutEmpty removes empty lists: an unused option does not help to identify a policy.
func withoutEmpty(s map[string]any) map[string]any {
	for key, v := range s {
		if list, ok := v.([]any); ok && len(list) == 0 {
			delete(s, key)
		}
	}
	return s
}

// read returns the families of a section, and their part of the result.
func (f families) read(s settings.Section, p bandit.Problem) (m Made, list []bandit.Expert, err error) {
	switch f {
	case own:
		return m, nil, nil
	case experts:
		return readExperts(s, p)
	}
	t, ok, err := s.Table("utility")
	switch {
	case err != nil:
		return m, nil, err
	case !ok && f == family:
		return m, nil, s.Errorf("", `utility is missing: give it one, utility = { kind = "mlp", hidden = [3] }`)
	case !ok:
		m.Squares = square(utility.NewLinear(p.NumFeatures, true))
		return m, nil, nil
	}
	model, known, err := settings.Pick(t, Families, settings.Dims{Features: p.NumFeatures})
	if err != nil {
		return m, nil, err
	}
	if _, ok := model.(utility.LinearInParams); f == basis && !ok {
		return m, nil, t.Errorf("kind", "kind = %s: is not linear in its parameters, and this policy learns only "+
			"such utilities%s", settings.Literal(t.Values["kind"]), hint.Legal("", linearFamilies()))
	}
	m.Settings, m.Squares = map[string]any{"utility": known}, square(model)
	return m, []bandit.Expert{{Model: model}}, nil
}

// linearFamilies are the utilities that are linear in their parameters.
func linearFamilies() (list []string) {
	for _, u := range Families {
		m, _, err := u.Make(settings.Section{Doc: new(settings.Document)}, settings.Dims{Features: 1})
		if _, ok := m.(utility.LinearInParams); ok && err == nil {
			list = append(list, u.Name)
		}
	}
	return list
}

// readExperts is read for several families. A section without any gets [bandit.DefaultExperts].
func readExperts(s settings.Section, p bandit.Problem) (m Made, list []bandit.Expert, err error) {
	tables, err := s.Tables("experts")
	if err != nil {
		return m, nil, err
	}
	if len(tables) == 0 {
		for _, values := range defaultExperts(p.NumFeatures) {
			tables = append(tables, settings.Section{Doc: s.Doc, Values: values})
		}
	}
	var names, written []any
	for _, t := range tables {
		var o struct {
			MemoryRounds float64 `toml:"memory_rounds"`
		}
		rest, err := t.Split("memory_rounds", &o)
		if err != nil {
			return m, nil, err
		}
		model, known, err := settings.Pick(rest, Families, settings.Dims{Features: p.NumFeatures})
		if err != nil {
			return m, nil, err
		}
		e := bandit.Expert{Model: model, MemoryRounds: o.MemoryRounds}
		list, names, written = append(list, e), append(names, e.String()), append(written, settings.Merge(known, o))
		m.Squares += expertSquare(e)
	}
	if err := bandit.CheckExperts(p.NumFeatures, list); err != nil {
		return m, nil, s.At(err)
	}
	m.Settings, m.Written = map[string]any{"experts": names}, map[string]any{"experts": written}
	return m, list, nil
}

// defaultExperts returns [bandit.DefaultExperts] in file format.
func defaultExperts(features int) (tables []map[string]any) {
	for _, e := range bandit.DefaultExperts(features) {
		t := map[string]any{}
		if e.MemoryRounds > 0 {
			t["memory_rounds"] = e.MemoryRounds
		}
		switch m := e.Model.(type) {
		case *utility.Linear:
			t["kind"], t["intercept"] = "linear", true
		case *utility.Additive:
			kind, _, _ := strings.Cut(m.String(), " ")
			t["kind"], t["units"] = kind, int64(m.Units())
		default:
			t["kind"] = bandit.Expert{Model: m}.String()
		}
		tables = append(tables, t)
	}
	return tables
}

// square returns d_w² of a family.
func square(m utility.Model) float64 { return float64(m.NumParams()) * float64(m.NumParams()) }

// expertSquare returns d_w² of an expert, and for one of units what their posteriors take besides: 120 units of some
// 3d + 33 numbers, twice, among the twelve matrices of the table.
func expertSquare(e bandit.Expert) float64 {
	s := square(e.Model)
	if m, ok := e.Model.(*utility.Additive); ok && e.MemoryRounds == 0 && m.Units() == 1 {
		s += float64(120 * (3*m.NumFeatures() + 33) * 2 / 12)
	}
	return s
}

// unsaved returns why a learner without snapshots cannot serve. A service saves
// its learners.
func unsaved[L vitrine.Learner]() string {
	l := reflect.TypeFor[L]()
	if l.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) &&
		l.Implements(reflect.TypeFor[encoding.BinaryUnmarshaler]()) {
		return ""
	}
	return "cannot serve, because it cannot be saved: it has no MarshalBinary and UnmarshalBinary"
}

// oracle is for learners that know the world. Only an experiment can make them, so there is no New.
func oracle() Learner {
	build := func(s settings.Section, _ bandit.Problem) (Made, error) {
		return Made{}, s.Bind(&struct{}{}, Common...)
	}
	return Learner{Unfit: "knows the truth, which only simulated worlds have", build: build}
}

// Process is a learner that is another program.
type Process struct {
	Command []string
	Dir     string
	Timeout time.Duration
}

// process is for learners that are programs of the user. Only an experiment can run them, so there is no New.
func process() Learner {
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
		if len(o.Command) == 0 {
			return none, s.Errorf("command",
				`command is missing: name the program and its arguments, command = ["python3", "learner.py"]`)
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
