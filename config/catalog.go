package config

import (
	"context"
	"encoding"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/internal/option"
	"vitrine/internal/stream"
	"vitrine/paper/camera"
	"vitrine/paper/imdb"
	"vitrine/utility"
)

// Entry is a name that a file may use, and a line about it.
type Entry struct {
	Name, Doc string
}

// named is an entry that makes a T from its section.
type named[T any] struct {
	Entry
	maker[T]
}

// maker makes a T from a section, for items of the given number of features.
type maker[T any] struct {
	options any // the defaults, a struct; nil for none
	build   func(s section, features int) (made[T], error)
}

// withDefaults is for what has options, whose tags say what they are.
func withDefaults[O, T any](defaults func() O, create func(s section, o O, features int) (T, error)) maker[T] {
	return maker[T]{defaults(), func(s section, features int) (made[T], error) {
		o := defaults()
		if err := s.bind(&o, "kind"); err != nil {
			return made[T]{}, err
		}
		if err := option.Check(o); err != nil {
			return made[T]{}, s.at(err)
		}
		v, err := create(s, o, features)
		return made[T]{value: v, settings: o}, err
	}}
}

// bare is for what has no options.
func bare[T any](create func(s section, features int) (T, error)) maker[T] {
	return maker[T]{nil, func(s section, features int) (made[T], error) {
		if err := s.bind(&struct{}{}, "kind"); err != nil {
			return made[T]{}, err
		}
		v, err := create(s, features)
		return made[T]{value: v}, err
	}}
}

// fixed is for what nothing determines.
func fixed[T any](v T) maker[T] {
	return bare(func(section, int) (T, error) { return v, nil })
}

// made is what an entry made, and the settings that determine it.
type made[T any] struct {
	value    T
	settings any
	squares  float64 // of a learner: Σ d_w² over the families that it fits
}

// policies are the learners. Adding one is its file in bandit and a line here.
var policies = []policy{
	{Entry{"onl-mnl", "optimism on non-linear utilities, Algorithm 1 of the paper"}, guide{"for utilities that are not linear", "N d_w²", "(d_w + t) K d_w", "onl-mnl"}, matrices{6, 2.5}, withUtility(bandit.DefaultONLOptions, bandit.NewONL)},
	{Entry{"greedy", "onl-mnl without its bonus"}, guide{"as the control of onl-mnl", "N d_w", "(d_w + t) K d_w", "onl-mnl"}, matrices{6, 2.5}, withUtility(bandit.DefaultGreedyOptions, bandit.NewGreedy)},
	{Entry{"ucb-mnl", "confidence bounds on linear utilities (Oh and Iyengar 2021)"}, guide{"for utilities that are linear", "N d_w²", "(d_w + t) K d_w", "ucb-mnl"}, matrices{6, 2.5}, withBasis(bandit.DefaultUCBOptions, bandit.NewUCBOn)},
	{Entry{"ts-mnl", "optimistic Thompson sampling, linear (Oh and Iyengar 2019)"}, guide{"for offers that vary, with linear utilities", "N d_w log K", "(d_w + t) K d_w", "ts-mnl"}, matrices{8, 2.5}, withBasis(bandit.DefaultTSOptions, bandit.NewTSOn)},
	{Entry{"ofu-mnl-plus", "linear, one mirror-descent step a round (Lee and Oh 2024)"}, guide{"for rounds without end, with linear utilities", "N d_w²", "K d_w²", "ofu-mnl-plus"}, matrices{4, 1.5}, withBasis(bandit.DefaultOFUOptions, bandit.NewOFUOn)},
	{Entry{"eps-greedy-mnl", "ε-greedy with a regression oracle (Zhang and Luo 2024)"}, guide{"for logs with propensities", "N d_w", "steps K d_w", "eps-greedy-mnl"}, matrices{6, 2.5}, withUtility(bandit.DefaultEpsGreedyOptions, bandit.NewEpsGreedy)},
	{Entry{"log-barrier-mnl", "draws from all assortments, log barrier (Zhang and Luo 2024)"}, guide{"for logs of few items", "C(N, ≤K) K²", "steps K d_w", "log-barrier-mnl"}, matrices{6, 2.5}, withUtility(bandit.DefaultLogBarrierOptions, bandit.NewLogBarrier)},
	{Entry{"feel-good-ts", "Feel-Good Thompson sampling by a Langevin chain (Zhang 2022)"}, guide{"for few items and few rounds", "N d_w", "moves t N d_w", "feel-good-ts"}, matrices{2, 1.5}, withUtility(bandit.DefaultFeelGoodOptions, bandit.NewFeelGood)},
	{Entry{"bma-mnl", "utility families averaged by evidence, one sample a slot"}, guide{"if it is not known what utilities look like", "K N d_w", "d_w³ + K d_w²", "bma-mnl"}, matrices{9, 4}, withExperts},
	{Entry{"uniform", "uniform over the feasible family, learns nothing"}, guide{"for unbiased logs, and as the ceiling of regret", "K", "1", "uniform-and-oracle"}, matrices{0, 0}, alone(bandit.NewUniform)},
	{Entry{"oracle", "knows the truth: regret 0"}, guide{"for simulations, as the floor of regret", "N", "1", "uniform-and-oracle"}, matrices{0, 0}, withWorld(bandit.NewOracle)},
}

// policy is an entry that makes learners.
type policy struct {
	Entry
	guide
	matrices
	recipe
}

// matrices are how many matrices of d_w×d_w numbers a learner has at most, whatever its options: live while it
// learns and its policy decides, and saved as its state. The rounds that some learners keep come on top.
type matrices struct{ live, saved float64 }

// guide says when to choose a policy, and what an offer and a round observed cost in the rounds t,
// the items N, the largest assortment K and the parameters d_w. A training at the end of an epoch is
// shared among the epoch's rounds. page is the policy's page in docs/algorithms, "" for none.
type guide struct{ choose, offer, round, page string }

// CostLegend says what the letters in the costs of a [Description] are.
const CostLegend = "after t rounds, with N items, at most K of them offered, and d_w parameters"

// utilities are the families f_w that learners fit.
var utilities = []named[utility.Model]{
	{Entry{"linear", "xᵀθ, with intercept = true xᵀθ + b"}, withDefaults(noIntercept, linearUtility)},
	{Entry{"mlp", "a network: hidden = [widths], activation = sigmoid, tanh, relu, softplus or sine"}, withDefaults(oneLayer, mlpUtility)},
	{Entry{"wide", "linear plus odd sigmoids, units = 4 of them"}, unitsUtility(utility.NewWide, 4)},
	{Entry{"spectral", "linear plus waves sin(ωᵀx) and cos(ωᵀx), units = 1"}, unitsUtility(utility.NewSpectral, 1)},
	{Entry{"radial", "linear plus bumps, sigmoids of ‖x‖², x and 1, units = 1"}, unitsUtility(utility.NewRadial, 1)},
	{Entry{"quadratic", "linear plus all products of two features"}, bare(quadraticUtility)},
}

// contexts are the distributions of features.
var contexts = []named[newContexts]{
	{Entry{"gaussian", "standard normal features"}, fixed(always(env.Gaussian{}))},
	{Entry{"clipped-gaussian", "standard normal features cut off at ±bound, default 1/√d"}, withDefaults(noClip, clippedContexts)},
	{Entry{"uniform", "features uniform on [low, high], default [-3, 3]"}, withDefaults(interval(-3, 3), uniformContexts)},
	{Entry{"pool", "distinct items of the file's pool"}, bare(poolContexts)},
}

// truths are the true utilities.
var truths = []named[newTruth]{
	{Entry{"mlp", "a network with parameters uniform on [low, high], default [-1, 1]; ball > 0 scales w into ‖w‖ ≤ ball"}, withDefaults(defaultMLPTruth, mlpTruth)},
	{Entry{"cosine", "cos(2π xᵀw) − ½ xᵀw, w uniform on [-1, 1]; norm > 0 bounds ‖w‖"}, withDefaults(noBound, cosineTruth)},
	{Entry{"linear", "xᵀθ with parameters uniform on [low, high], default [-1, 1]; intercept = true adds b; ball as of mlp"}, withDefaults(defaultLinearTruth, linearTruth)},
	{Entry{"product", "(xᵀq₁)(xᵀq₂) − ½ xᵀq₃, q₁, q₂, q₃ orthonormal; 3 features or more"}, bare(productTruth)},
	{Entry{"threshold", "2 where 0.5 < xᵀw < 1.2, less ½, w uniform on [-1, 1]"}, bare(drawnTruth(env.NewThreshold))},
	{Entry{"radial", "2 exp(−‖x − w‖²) − ½, w uniform on [-1, 1]"}, bare(drawnTruth(env.NewRadial))},
	{Entry{"pool", "what real choices among the pool's items say: utility = \"logit\", the default, or \"probability\""}, withDefaults(logit, poolTruth)},
}

// revenues are what items earn.
var revenues = []named[env.Revenues]{
	{Entry{"one", "1 for every item"}, fixed[env.Revenues](env.One{})},
	{Entry{"uniform", "uniform on [low, high] in each round, default [0, 1]"}, withDefaults(interval(0, 1), uniformRevenue)},
}

// drifts are how a truth moves during the horizon.
var drifts = []named[newDrift]{
	{Entry{"rotation", "tastes turn by angle degrees over the horizon, default 90"}, withDefaults(rightAngle, rotationDrift)},
	{Entry{"switches", "the truth is drawn afresh at each of rounds = [...], default the middle of the horizon"}, withDefaults(middle, switchesDrift)},
}

// pools are the real items that worlds may be made of. Where their data is to be
// had is said where it is missing.
var pools = []struct {
	Entry
	source string
	load   func(ctx context.Context, path string, l Loading) (*env.Pool, error)
}{
	{Entry{"imdb", "10,000 held-out movie reviews with 30 features, utilities of a network that tells good from bad"}, imdb.Source, loadIMDB},
	{Entry{"camera", "426 digital cameras of a conjoint study, utilities fitted to its choices"}, camera.Source, loadCamera},
}

// Loading says where the loading of a pool may keep what takes long to compute,
// and hears of the work. Its functions must not be nil.
type Loading struct {
	Cache    string // a folder; "" keeps nothing
	Progress func(stage string, done, total int)
	Warn     func(err error)   // of what the result does not depend on
	Note     func(text string) // what there is to check of the result
}

// LoadPool reads the data of a pool.
func LoadPool(ctx context.Context, name, path string, l Loading) (*env.Pool, error) {
	for _, p := range pools {
		if p.Name == name {
			return p.load(ctx, path, l)
		}
	}
	return nil, fmt.Errorf("pool %q: unknown%s", name, hint(name, names(Pools())))
}

// PoolSource says where the data of a pool is to be had.
func PoolSource(name string) string {
	for _, p := range pools {
		if p.Name == name {
			return p.source
		}
	}
	return ""
}

func loadIMDB(ctx context.Context, path string, l Loading) (*env.Pool, error) {
	d, err := imdb.Prepare(ctx, path, l.Cache, imdb.Reporter{
		Progress: func(s imdb.Stage, done, total int) { l.Progress(string(s), done, total) },
		Warn:     l.Warn,
	})
	if err != nil {
		return nil, err
	}
	l.Note(d.Report.String())
	return &env.Pool{Features: d.Features, Model: d.Model, Params: d.Params}, nil
}

func loadCamera(_ context.Context, path string, l Loading) (*env.Pool, error) {
	p, report, err := camera.Load(path)
	if err != nil {
		return nil, err
	}
	l.Note(report)
	return p, nil
}

// constraints are the feasible families.
var constraints = []struct {
	Entry
	options any // the defaults, a struct; nil for none
	build   newConstraint
}{
	{Entry{"at-most", "at most size items, which is the family of files without [constraint]"}, nil, atMost},
	{Entry{"between", "at least min and at most size items; include and exclude = [items], numbered from 0"}, countOptions{}, between},
	{Entry{"groups", "also bounds on groups, nested or disjoint: groups = [{ items = [0, 1], at_least = 0, at_most = 1 }]"}, countOptions{}, groups},
	{Entry{"knapsack", "as groups, which may be left out, with a bounded weight: weights = [one whole number an item], capacity = their largest sum"}, knapsackOptions{}, knapsack},
}

// Policies, Utilities, Environments and Constraints return what files may
// name. Environments are named by table and kind.
func Policies() []Entry {
	var entries []Entry
	for _, p := range policies {
		entries = append(entries, p.Entry)
	}
	return entries
}

// Pools returns the pools of real items.
func Pools() []Entry {
	var entries []Entry
	for _, p := range pools {
		entries = append(entries, p.Entry)
	}
	return entries
}

// Utilities returns the utility families.
func Utilities() []Entry { return entries("", utilities) }

// Environments returns the parts of worlds.
func Environments() []Entry {
	return slices.Concat(entries("contexts ", contexts), entries("truth ", truths), entries("revenue ", revenues), entries("drift ", drifts))
}

// Constraints returns the feasible families.
func Constraints() []Entry {
	var entries []Entry
	for _, c := range constraints {
		entries = append(entries, c.Entry)
	}
	return entries
}

func entries[T any](prefix string, table []named[T]) []Entry {
	var list []Entry
	for _, n := range table {
		list = append(list, Entry{prefix + n.Name, n.Doc})
	}
	return list
}

// pick makes what the key "kind" of the section names.
func pick[T any](s section, table []named[T], features int) (made[T], error) {
	kind, _ := s.values["kind"].(string)
	var legal []string
	for _, n := range table {
		if n.Name == kind {
			m, err := n.build(s, features)
			if err != nil {
				return made[T]{}, err
			}
			m.settings = merge(map[string]any{"kind": kind}, m.settings)
			return m, nil
		}
		legal = append(legal, n.Name)
	}
	if _, ok := s.values["kind"]; !ok {
		return made[T]{}, s.errorf("", "kind is missing%s", hint("", legal))
	}
	return made[T]{}, s.errorf("kind", "kind = %s: unknown%s", literal(s.values["kind"]), hint(kind, legal))
}

// newLearner makes the learner of a unit.
type newLearner func(world env.Environment, rng *rand.Rand) (vitrine.Learner, error)

// head are the keys that every policy has.
var head = []string{"name", "label", "baselines"}

// recipe makes a learner from a policy's section.
type recipe struct {
	options []option.Option // with their defaults
	unfit   string          // why the learner cannot serve; "" if it can
	build   func(s section, p bandit.Problem) (made[newLearner], error)
}

// unsaved says of a learner that has no snapshots why it cannot serve. A service
// saves its learners.
func unsaved[L vitrine.Learner]() string {
	var l L
	_, saves := any(l).(encoding.BinaryMarshaler)
	_, restores := any(l).(encoding.BinaryUnmarshaler)
	if saves && restores {
		return ""
	}
	return "cannot serve, because it cannot be saved: it has no MarshalBinary and UnmarshalBinary"
}

// withUtility is for learners of a utility family.
func withUtility[O any, L vitrine.Learner](defaults func() O, create func(bandit.Problem, utility.Model, O, *rand.Rand) (L, error)) recipe {
	build := func(s section, p bandit.Problem) (made[newLearner], error) {
		t, ok, err := s.table("utility")
		if err != nil {
			return made[newLearner]{}, err
		}
		if !ok {
			return made[newLearner]{}, s.errorf("", `utility is missing: give it one, utility = { kind = "mlp", hidden = [3] }`)
		}
		m, err := pick(t, utilities, p.Features)
		if err != nil {
			return made[newLearner]{}, err
		}
		o := defaults()
		if err := s.bind(&o, append([]string{"utility"}, head...)...); err != nil {
			return made[newLearner]{}, err
		}
		if c, ok := any(o).(checker); ok {
			err = c.Check(p, m.value.NumParams())
		} else {
			_, err = create(probe(p), utility.NewLinear(1, false), o, stream.New(0, 0, stream.Learner))
		}
		if err != nil {
			return made[newLearner]{}, s.at(err)
		}
		return made[newLearner]{
			func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
				return learner(create(p, m.value, o, rng))
			},
			merge(map[string]any{"utility": m.settings}, o), square(m.value),
		}, nil
	}
	family := option.Option{Key: "utility", Type: "table", Required: true, Doc: `the family f_w, { kind = "mlp", hidden = [3] }; vitrine list utilities has all`}
	return recipe{append([]option.Option{family}, option.List(defaults())...), unsaved[L](), build}
}

// checker are options that the number of parameters decides on.
type checker interface {
	Check(p bandit.Problem, params int) error
}

// withExperts is for the learner of several utility families.
var withExperts = recipe{
	options: append([]option.Option{
		{Key: "experts", Type: "list of tables", Doc: "the families, each with its kind, its options and a memory in rounds"},
	}, option.List(bandit.DefaultBMAOptions())...),
	unfit: unsaved[*bandit.BMA](),
	build: buildExperts,
}

func buildExperts(s section, p bandit.Problem) (made[newLearner], error) {
	tables, err := s.tables("experts")
	if err != nil {
		return made[newLearner]{}, err
	}
	experts := bandit.DefaultExperts(p.Features)
	if len(tables) > 0 {
		experts = nil
	}
	for _, t := range tables {
		var o struct {
			Memory float64 `toml:"memory"`
		}
		if err := t.only("memory").bind(&o); err != nil {
			return made[newLearner]{}, err
		}
		m, err := pick(t.without("memory"), utilities, p.Features)
		if err != nil {
			return made[newLearner]{}, err
		}
		experts = append(experts, bandit.Expert{Model: m.value, Memory: o.Memory})
	}
	var settings []any
	squares := 0.0
	for _, e := range experts {
		settings = append(settings, e.String())
		squares += square(e.Model)
	}
	o := bandit.DefaultBMAOptions()
	if err := s.bind(&o, append([]string{"experts"}, head...)...); err != nil {
		return made[newLearner]{}, err
	}
	if err := bandit.CheckExperts(p.Features, experts); err != nil {
		return made[newLearner]{}, s.at(err)
	}
	if _, err := bandit.NewBMA(probe(p), bandit.DefaultExperts(1), o, stream.New(0, 0, stream.Learner)); err != nil {
		return made[newLearner]{}, s.at(err)
	}
	return made[newLearner]{
		func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
			return learner(bandit.NewBMA(p, experts, o, rng))
		},
		merge(map[string]any{"experts": settings}, o), squares,
	}, nil
}

// withBasis is for learners of utilities that are linear in their parameters:
// xᵀθ, unless the section has another family of the kind.
func withBasis[O any, L vitrine.Learner](defaults func() O, create func(bandit.Problem, utility.LinearInParams, O) (L, error)) recipe {
	build := func(s section, p bandit.Problem) (made[newLearner], error) {
		var basis, small utility.LinearInParams
		settings, squares := map[string]any{}, square(utility.NewLinear(p.Features, true))
		t, ok, err := s.table("utility")
		if err != nil {
			return made[newLearner]{}, err
		}
		if ok {
			m, err := pick(t, utilities, p.Features)
			if err != nil {
				return made[newLearner]{}, err
			}
			if basis, ok = m.value.(utility.LinearInParams); !ok {
				return made[newLearner]{}, t.errorf("kind", "kind = %s: is not linear in its parameters, and this policy learns only such utilities%s", literal(t.values["kind"]), hint("", linearFamilies()))
			}
			settings["utility"], small, squares = m.settings, utility.NewLinear(1, false), square(m.value)
		}
		o := defaults()
		if err := s.bind(&o, append([]string{"utility"}, head...)...); err != nil {
			return made[newLearner]{}, err
		}
		if _, err := create(probe(p), small, o); err != nil {
			return made[newLearner]{}, s.at(err)
		}
		return made[newLearner]{
			func(env.Environment, *rand.Rand) (vitrine.Learner, error) { return learner(create(p, basis, o)) },
			merge(settings, o), squares,
		}, nil
	}
	family := option.Option{Key: "utility", Type: "table", Doc: `the basis φ, { kind = "quadratic" }, of u = θᵀφ(x); xᵀθ if left out`}
	return recipe{append([]option.Option{family}, option.List(defaults())...), unsaved[L](), build}
}

// square returns d_w² of a family.
func square(m utility.Model) float64 { return float64(m.NumParams()) * float64(m.NumParams()) }

// linearFamilies are the utilities that are linear in their parameters.
func linearFamilies() (list []string) {
	for _, u := range utilities {
		m, err := u.build(section{doc: new(document), values: map[string]any{}}, 1)
		if _, ok := m.value.(utility.LinearInParams); ok && err == nil {
			list = append(list, u.Name)
		}
	}
	return list
}

// probe is the problem with items of one feature. Options are checked where
// learners are made, and one of this problem is small whatever the file's.
func probe(p bandit.Problem) bandit.Problem {
	p.Features = 1
	return p
}

// withOptions is for learners that have their own utility, or none.
func withOptions[O any, L vitrine.Learner](defaults func() O, create func(bandit.Problem, O) (L, error)) recipe {
	build := func(s section, p bandit.Problem) (made[newLearner], error) {
		o := defaults()
		if err := s.bind(&o, head...); err != nil {
			return made[newLearner]{}, err
		}
		if _, err := create(probe(p), o); err != nil {
			return made[newLearner]{}, s.at(err)
		}
		return made[newLearner]{
			func(env.Environment, *rand.Rand) (vitrine.Learner, error) { return learner(create(p, o)) },
			merge(nil, o), 0,
		}, nil
	}
	return recipe{option.List(defaults()), unsaved[L](), build}
}

// alone is for learners without options.
func alone[L vitrine.Learner](create func(bandit.Problem) (L, error)) recipe {
	return withOptions(func() struct{} { return struct{}{} }, func(p bandit.Problem, _ struct{}) (L, error) { return create(p) })
}

// withWorld is for learners that know the world.
func withWorld[L vitrine.Learner](create func(bandit.Problem, env.Environment) (L, error)) recipe {
	build := func(s section, p bandit.Problem) (made[newLearner], error) {
		if err := s.bind(&struct{}{}, head...); err != nil {
			return made[newLearner]{}, err
		}
		return made[newLearner]{
			func(w env.Environment, _ *rand.Rand) (vitrine.Learner, error) { return learner(create(p, w)) },
			map[string]any{}, 0,
		}, nil
	}
	return recipe{unfit: "knows the truth, which only simulated worlds have", build: build}
}

// learner hides a learner that could not be made.
func learner[L vitrine.Learner](l L, err error) (vitrine.Learner, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

type linearOptions struct {
	Intercept bool `toml:"intercept" doc:"whether there is a constant term b"`
}

func noIntercept() linearOptions { return linearOptions{} }

func linearUtility(_ section, o linearOptions, features int) (utility.Model, error) {
	return utility.NewLinear(features, o.Intercept), nil
}

// maxParams bounds d_w, so that a slip in a file does not ask for all memory.
const maxParams = 10_000

type mlpOptions struct {
	Hidden     []int  `toml:"hidden" range:"[1, 10000]" doc:"the widths of the hidden layers; at most 10000 parameters in all"`
	Activation string `toml:"activation" range:"sigmoid|tanh|relu|softplus|sine" doc:"the activation of the hidden units"`
}

func oneLayer() mlpOptions { return mlpOptions{Hidden: []int{3}, Activation: "sigmoid"} }

func mlpUtility(s section, o mlpOptions, features int) (utility.Model, error) {
	if len(o.Hidden) == 0 {
		return nil, s.errorf("hidden", "hidden = []: give at least one width (kind = \"linear\" has none)")
	}
	inputs := features
	params := 0
	for _, h := range o.Hidden {
		params += h * (inputs + 1)
		inputs = h
		if params > maxParams {
			return nil, s.errorf("hidden", "hidden = %v: more than %d parameters: learners keep a matrix of the square of their number", o.Hidden, maxParams)
		}
	}
	a, err := utility.ParseActivation(o.Activation)
	if err != nil {
		return nil, s.errorf("activation", "activation = %q: %v", o.Activation, err)
	}
	return utility.NewMLP(features, o.Hidden, a), nil
}

type unitsOptions struct {
	Units int `toml:"units" range:"[1, inf)" doc:"how many units; at most 10000 parameters in all"`
}

// unitsUtility is for families of a linear part and units.
func unitsUtility(create func(d, units int) *utility.Additive, units int) maker[utility.Model] {
	return withDefaults(func() unitsOptions { return unitsOptions{units} }, func(s section, o unitsOptions, features int) (utility.Model, error) {
		if o.Units > maxParams || o.Units*(features+2)+features+1 > maxParams {
			return nil, s.errorf("units", "units = %d: more than %d parameters", o.Units, maxParams)
		}
		return create(features, o.Units), nil
	})
}

func quadraticUtility(s section, features int) (utility.Model, error) {
	if (features+1)*(features+2)/2 > maxParams {
		return nil, s.errorf("kind", "kind = \"quadratic\": %d features make more than %d parameters", features, maxParams)
	}
	return utility.NewQuadratic(features), nil
}

// newContexts makes the distribution of features of a file, whose pool may be
// nil.
type newContexts func(pool *env.Pool) env.Contexts

// always is for contexts that need no pool.
func always(c env.Contexts) newContexts { return func(*env.Pool) env.Contexts { return c } }

type intervalOptions struct {
	Low  float64 `toml:"low" doc:"the least value"`
	High float64 `toml:"high" doc:"the largest value"`
}

func interval(low, high float64) func() intervalOptions {
	return func() intervalOptions { return intervalOptions{low, high} }
}

func (o intervalOptions) check(s section) error {
	if err := env.CheckInterval(o.Low, o.High); err != nil {
		return s.at(err)
	}
	return nil
}

type clippedOptions struct {
	Bound float64 `toml:"bound" range:"(0, inf)" zero:"1/√d" doc:"where features are cut off"`
}

func noClip() clippedOptions { return clippedOptions{} }

func clippedContexts(_ section, o clippedOptions, features int) (newContexts, error) {
	if o.Bound == 0 {
		o.Bound = 1 / math.Sqrt(float64(features))
	}
	return always(env.ClippedGaussian(o)), nil
}

func uniformContexts(s section, o intervalOptions, _ int) (newContexts, error) {
	return always(env.Uniform(o)), o.check(s)
}

func poolContexts(s section, _ int) (newContexts, error) {
	return func(p *env.Pool) env.Contexts { return p }, s.needPool()
}

// needPool reports that the file names no pool.
func (s section) needPool() error {
	if _, ok := s.doc.values["pool"]; ok {
		return nil
	}
	return s.errorf("kind", "kind = 'pool': the file names no pool: say pool = %q at its head", pools[0].Name)
}

// newTruth draws a truth for a seed, or takes that of the file's pool.
type newTruth func(rng *rand.Rand, pool *env.Pool) env.Truth

// familyOptions say how the parameters of a family are drawn.
type familyOptions struct {
	intervalOptions
	Ball float64 `toml:"ball" range:"(0, inf)" zero:"w as drawn" doc:"the ball into which w is scaled if it is outside"`
}

func defaultFamily() familyOptions { return familyOptions{intervalOptions: intervalOptions{-1, 1}} }

func familyTruth(m utility.Model, o familyOptions) newTruth {
	return func(rng *rand.Rand, _ *env.Pool) env.Truth {
		f := env.NewFamily(m, o.Low, o.High, rng)
		if o.Ball > 0 {
			f.Within(o.Ball)
		}
		return f
	}
}

type mlpTruthOptions struct {
	mlpOptions
	familyOptions
}

func defaultMLPTruth() mlpTruthOptions { return mlpTruthOptions{oneLayer(), defaultFamily()} }

func mlpTruth(s section, o mlpTruthOptions, features int) (newTruth, error) {
	m, err := mlpUtility(s, o.mlpOptions, features)
	if err != nil {
		return nil, err
	}
	return familyTruth(m, o.familyOptions), o.check(s)
}

type linearTruthOptions struct {
	linearOptions
	familyOptions
}

func defaultLinearTruth() linearTruthOptions {
	return linearTruthOptions{linearOptions{}, defaultFamily()}
}

func linearTruth(s section, o linearTruthOptions, features int) (newTruth, error) {
	return familyTruth(utility.NewLinear(features, o.Intercept), o.familyOptions), o.check(s)
}

type cosineOptions struct {
	Norm float64 `toml:"norm" range:"(0, inf)" zero:"w as drawn" doc:"the bound on ‖w‖"`
}

func noBound() cosineOptions { return cosineOptions{} }

func cosineTruth(_ section, o cosineOptions, features int) (newTruth, error) {
	return func(rng *rand.Rand, _ *env.Pool) env.Truth { return env.NewCosine(features, o.Norm, rng) }, nil
}

// drawnTruth is for truths without options.
func drawnTruth[T env.Truth](draw func(d int, rng *rand.Rand) T) func(section, int) (newTruth, error) {
	return func(_ section, features int) (newTruth, error) {
		return func(rng *rand.Rand, _ *env.Pool) env.Truth { return draw(features, rng) }, nil
	}
}

func productTruth(s section, features int) (newTruth, error) {
	if features < 3 {
		return nil, s.errorf("kind", "kind = 'product': needs features = 3 or more, and the file has %d", features)
	}
	return drawnTruth(env.NewProduct)(s, features)
}

// newDrift makes a truth move in the given number of rounds. draw draws the
// file's truth. What it draws of rng first is the truth of the first round, so
// that worlds with and without drift begin alike.
type newDrift func(draw func() env.Truth, rounds int, rng *rand.Rand) env.Truth

type rotationOptions struct {
	Angle float64 `toml:"angle" range:"[-1e6, 1e6]" doc:"the degrees by which tastes turn over the horizon"`
}

func rightAngle() rotationOptions { return rotationOptions{90} }

func rotationDrift(s section, o rotationOptions, features int) (newDrift, error) {
	if features < 2 {
		return nil, s.errorf("kind", "kind = 'rotation': needs features = 2 or more, and the file has %d", features)
	}
	return func(draw func() env.Truth, rounds int, rng *rand.Rand) env.Truth {
		return env.NewRotation(draw(), o.Angle*math.Pi/180/float64(rounds), rng)
	}, nil
}

type switchesOptions struct {
	Rounds []int `toml:"rounds" range:"[2, inf)" doc:"the rounds before which a truth is drawn; none is the middle of the horizon"`
}

func middle() switchesOptions { return switchesOptions{} }

func switchesDrift(s section, o switchesOptions, _ int) (newDrift, error) {
	for i, t := range o.Rounds {
		if i > 0 && t <= o.Rounds[i-1] {
			return nil, s.errorf("rounds", "rounds = %v: must increase", o.Rounds)
		}
	}
	return func(draw func() env.Truth, rounds int, _ *rand.Rand) env.Truth {
		at := o.Rounds
		if len(at) == 0 {
			at = []int{rounds/2 + 1}
		}
		truths := []env.Truth{draw()}
		for range at {
			truths = append(truths, draw())
		}
		return env.NewSwitches(at, truths)
	}, nil
}

type poolOptions struct {
	Utility string `toml:"utility" range:"logit|probability" doc:"what of the pool's model is the utility: log-odds, or probability"`
}

func logit() poolOptions { return poolOptions{"logit"} }

func poolTruth(s section, o poolOptions, _ int) (newTruth, error) {
	if err := s.needPool(); err != nil {
		return nil, err
	}
	return func(_ *rand.Rand, p *env.Pool) env.Truth {
		if o.Utility == "probability" {
			return env.Probability{Truth: p.Truth()}
		}
		return p.Truth()
	}, nil
}

func uniformRevenue(s section, o intervalOptions, _ int) (env.Revenues, error) {
	if o.Low < 0 {
		return nil, s.errorf("low", "low = %v: revenues must not be negative", o.Low)
	}
	return env.UniformRevenue(o), o.check(s)
}

// merge returns the settings and the keys that options have in TOML.
func merge(settings map[string]any, options any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, settings)
	if options != nil {
		maps.Copy(all, tomlKeys(options))
	}
	return all
}
