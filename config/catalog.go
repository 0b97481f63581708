package config

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine/env"
	"vitrine/internal/policy"
	"vitrine/internal/settings"
	"vitrine/paper/camera"
	"vitrine/paper/imdb"
	"vitrine/utility"
)

// contexts is the table of the distributions of features.
var contexts = []settings.Named[newContexts]{
	settings.Name("gaussian", "standard normal features", settings.Fixed(always(env.Gaussian{}))),
	settings.Name("clipped-gaussian", "standard normal features cut off at ±bound, default 1/√d", settings.Options(clippedOptions{}, clippedContexts)),
	settings.Name("uniform", "features uniform on [low, high], default [-3, 3]", settings.Options(intervalOptions{-3, 3}, uniformContexts)),
	settings.Name("student-t", "features of Student's distribution with degrees of freedom, default 3, within ±1000", settings.Options(studentOptions{3}, studentContexts)),
	settings.Name("shifts", "standard normal features, and from each of rounds = [...] on normal ones of another mean and deviation", settings.Options(shiftsOptions{[]int{51}, []float64{1}, []float64{1}}, shiftedContexts)),
	settings.Name("visits", "standard normal features, the last one the customer's: the same for all items", settings.Fixed(always(env.Visits{}))),
	settings.Name("pool", "distinct items of the file's pool", settings.Bare(poolContexts)),
	settings.Name("table", "the alternatives of a choice that the file's pool was fitted to, one of those with as many", settings.Bare(tableContexts)),
}

// truths is the table of the true utilities.
var truths = []settings.Named[newTruth]{
	settings.Name("mlp", "a network with parameters uniform on [low, high], default [-1, 1]; ball > 0 scales w into ‖w‖ ≤ ball", settings.WithDefaults(defaultMLPTruth, mlpTruth)),
	settings.Name("cosine", "cos(2π xᵀw) − ½ xᵀw, w uniform on [-1, 1]; norm > 0 bounds ‖w‖", settings.Options(cosineOptions{}, cosineTruth)),
	settings.Name("linear", "xᵀθ with parameters uniform on [low, high], default [-1, 1]; intercept = true adds b; ball as of mlp", settings.Options(linearTruthOptions{policy.LinearOptions{}, defaultFamily}, linearTruth)),
	settings.Name("product", "(xᵀq₁)(xᵀq₂) − ½ xᵀq₃, q₁, q₂, q₃ orthonormal; 3 features or more", settings.Bare(productTruth)),
	settings.Name("threshold", "2 where 0.5 < xᵀw < 1.2, less ½, w uniform on [-1, 1]", settings.Bare(drawnTruth(env.NewThreshold))),
	settings.Name("radial", "2 exp(−‖x − w‖²) − ½, w uniform on [-1, 1]", settings.Bare(drawnTruth(env.NewRadial))),
	settings.Name("shop", "base + xᵀw, base = -4 by default: few customers buy; w uniform on [-1, 1]", settings.Options(shopOptions{-4}, shopTruth)),
	settings.Name("abs", "|xᵀw| − |x₁ − x₂|, w uniform on [-1, 1]; 2 features or more", settings.Bare(pairTruth(env.NewAbs))),
	settings.Name("needle", "4 exp(−2‖x − w‖²) − 3/2, w uniform on [-1, 1]", settings.Bare(drawnTruth(env.NewNeedle))),
	settings.Name("sawtooth", "3 times the fraction of xᵀw, less 2, w uniform on [-1, 1]", settings.Bare(drawnTruth(env.NewSawtooth))),
	settings.Name("quadratic", "linear plus all products of two features, parameters uniform on [low, high], default [-1, 1]; ball as of mlp", settings.Options(defaultFamily, quadraticTruth)),
	settings.Name("segments", "2xᵀw − ½, with a w for each sign of the last feature, uniform on [-1, 1]; opposed = true has w and −w", settings.Options(segmentsOptions{}, segmentsTruth)),
	settings.Name("sparse", "xᵀw with w = ±1 in relevant features, default 3, and 0 in the others", settings.Options(sparseOptions{3}, sparseTruth)),
	settings.Name("pool", "what real choices among the pool's items say: utility = \"logit\", the default, or \"probability\"", settings.Options(poolOptions{"logit"}, poolTruth)),
	settings.Name("table", "the pool's fitted utilities less that of taking nothing, outside, default 0", settings.Options(tableOptions{}, tableTruth)),
}

// revenues is the table of the items' revenues.
var revenues = []settings.Named[env.Revenues]{
	settings.Name("one", "1 for every item", settings.Fixed[env.Revenues](env.One{})),
	settings.Name("uniform", "uniform on [low, high] in each round, default [0, 1]", settings.Options(intervalOptions{0, 1}, uniformRevenue)),
}

// drifts is the table of the ways in which a truth moves during the horizon.
var drifts = []settings.Named[newDrift]{
	settings.Name("rotation", "tastes turn by angle degrees over the horizon, default 90", settings.Options(rotationOptions{90}, rotationDrift)),
	settings.Name("switches", "the truth is drawn afresh at each of rounds = [...], default the middle of the horizon", settings.Options(switchesOptions{}, switchesDrift)),
}

// pools is the table of the pools of real items. If the data is missing, the error says where to get it.
var pools = []struct {
	Entry
	source string
	load   func(ctx context.Context, path string, l Loading) (*env.Pool, error)
}{
	{Entry{Name: "imdb", Doc: "10,000 held-out movie reviews with 30 features, utilities of a network that tells good from bad"}, imdb.Source, loadIMDB},
	{Entry{Name: "camera", Doc: "426 digital cameras of a conjoint study, utilities fitted to its choices"}, camera.Source, loadCamera},
	{Entry{Name: "modecanada", Doc: "2,779 trips from Montreal to Toronto by train, air, bus or car, utilities fitted to them"}, modeCanada.Source(), modeCanada.load},
	{Entry{Name: "heating", Doc: "900 heating systems of houses, one of five, utilities fitted to them"}, heating.Source(), heating.load},
	{Entry{Name: "fishing", Doc: "1,182 fishing trips of four modes, utilities fitted to them"}, fishing.Source(), fishing.load},
	{Entry{Name: "choices", Doc: "the alternatives of a table of choices of your own, utilities of the multinomial logit fitted to it"}, choicesSource, loadChoices},
}

// Loading has the cache of computed data and the callbacks of the loading of a pool. Its functions must not
// be nil.
type Loading struct {
	Cache    string // a folder; "" for no cache
	Progress func(stage string, done, total int)
	Warn     func(err error)   // of things that do not change the result
	Note     func(text string) // things to check in the result
}

// LoadPool reads the data of a pool.
func LoadPool(ctx context.Context, name, path string, l Loading) (*env.Pool, error) {
	for _, p := range pools {
		if p.Name == name {
			return p.load(ctx, path, l)
		}
	}
	return nil, fmt.Errorf("pool %q: unknown%s", name, settings.Hint(name, names(Pools())))
}

// PoolSource describes the data of a pool and says where to get it.
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

// constraints is the table of the feasible families.
var constraints = []struct {
	Entry
	options any // the defaults, a struct; nil for none
	build   newConstraint
}{
	{Entry{Name: "at-most", Doc: "at most size items, which is the family of files without [constraint]"}, nil, atMost},
	{Entry{Name: "between", Doc: "at least min and at most size items; include and exclude = [items], numbered from 0"}, countOptions{}, between},
	{Entry{Name: "groups", Doc: "also bounds on groups: groups = [{ items = [0, 1], at_least = 0, at_most = 1 }]; groups may cross in two ways if all bounds are at_most"}, countOptions{}, groups},
	{Entry{Name: "knapsack", Doc: "as groups, which may be left out, with a bounded weight: weights = [one whole number an item], capacity = their largest sum"}, knapsackOptions{}, knapsack},
}

// Policies, Utilities, Environments and Constraints return the names that files may use. Environments are
// named by table and kind.
func Policies() []Entry {
	var entries []Entry
	for _, p := range policy.All {
		entries = append(entries, Entry{Name: p.Name, Doc: p.Doc})
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
func Utilities() []Entry { return settings.Entries("", policy.Families) }

// Environments returns the parts of worlds.
func Environments() []Entry {
	return slices.Concat(settings.Entries("contexts ", contexts), settings.Entries("truth ", truths), settings.Entries("revenue ", revenues), settings.Entries("drift ", drifts))
}

// Constraints returns the feasible families.
func Constraints() []Entry {
	var entries []Entry
	for _, c := range constraints {
		entries = append(entries, c.Entry)
	}
	return entries
}

// newContexts makes the distribution of features of a file, whose pool may be
// nil.
type newContexts func(pool *env.Pool) env.Contexts

// always returns contexts that need no pool.
func always(c env.Contexts) newContexts { return func(*env.Pool) env.Contexts { return c } }

type intervalOptions struct {
	Low  float64 `toml:"low" doc:"the least value"`
	High float64 `toml:"high" doc:"the largest value"`
}

func (o intervalOptions) check(s settings.Section) error {
	if err := env.CheckInterval(o.Low, o.High); err != nil {
		return s.At(err)
	}
	return nil
}

type clippedOptions struct {
	Bound float64 `toml:"bound" range:"(0, inf)" zero:"1/√d" doc:"where features are cut off"`
}

func clippedContexts(_ settings.Section, o clippedOptions, features int) (newContexts, error) {
	if o.Bound == 0 {
		o.Bound = 1 / math.Sqrt(float64(features))
	}
	return always(env.ClippedGaussian(o)), nil
}

type studentOptions struct {
	Degrees int `toml:"degrees" range:"[1, 1000]" doc:"the degrees of freedom"`
}

func studentContexts(_ settings.Section, o studentOptions, _ int) (newContexts, error) {
	return always(env.StudentT(o)), nil
}

type shiftsOptions struct {
	Rounds    []int     `toml:"rounds" range:"[2, inf)" doc:"the rounds before which the distribution changes"`
	Mean      []float64 `toml:"mean" range:"[-1000, 1000]" doc:"the mean of every feature from each of rounds on"`
	Deviation []float64 `toml:"deviation" range:"[1e-9, 1000]" doc:"the standard deviation of every feature from each of rounds on"`
}

func shiftedContexts(s settings.Section, o shiftsOptions, _ int) (newContexts, error) {
	if len(o.Mean) != len(o.Rounds) || len(o.Deviation) != len(o.Rounds) {
		return nil, s.Errorf("rounds", "rounds, mean and deviation have %d, %d and %d numbers: must have as many each", len(o.Rounds), len(o.Mean), len(o.Deviation))
	}
	if err := increasing(s, o.Rounds); err != nil {
		return nil, err
	}
	laws := make([]env.Normal, len(o.Rounds))
	for k := range laws {
		laws[k] = env.Normal{Mean: o.Mean[k], Deviation: o.Deviation[k]}
	}
	return always(env.NewShifts(o.Rounds, laws)), nil
}

// increasing checks rounds at which something changes.
func increasing(s settings.Section, rounds []int) error {
	for i, t := range rounds {
		if i > 0 && t <= rounds[i-1] {
			return s.Errorf("rounds", "rounds = %v: must increase", rounds)
		}
	}
	return nil
}

func uniformContexts(s settings.Section, o intervalOptions, _ int) (newContexts, error) {
	return always(env.Uniform(o)), o.check(s)
}

func poolContexts(s settings.Section, _ int) (newContexts, error) {
	return func(p *env.Pool) env.Contexts { return p }, needPool(s)
}

func tableContexts(s settings.Section, _ int) (newContexts, error) {
	return func(p *env.Pool) env.Contexts { return env.NewTable(p) }, needPool(s)
}

// needPool reports that the file names no pool.
func needPool(s settings.Section) error {
	if _, ok := s.Doc.Values["pool"]; ok {
		return nil
	}
	return s.Errorf("kind", "kind = '%v': the file names no pool: say pool = %q at its head", s.Values["kind"], pools[0].Name)
}

// newTruth draws a truth for a seed, or returns the truth of the file's pool.
type newTruth func(rng *rand.Rand, pool *env.Pool) env.Truth

// familyOptions configure the draw of the parameters of a family.
type familyOptions struct {
	intervalOptions
	Ball float64 `toml:"ball" range:"(0, inf)" zero:"w as drawn" doc:"the ball into which w is scaled if it is outside"`
}

var defaultFamily = familyOptions{intervalOptions: intervalOptions{-1, 1}}

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
	policy.MLPOptions
	familyOptions
}

func defaultMLPTruth() mlpTruthOptions { return mlpTruthOptions{policy.OneLayer(), defaultFamily} }

func mlpTruth(s settings.Section, o mlpTruthOptions, features int) (newTruth, error) {
	m, err := policy.MLP(s, o.MLPOptions, features)
	if err != nil {
		return nil, err
	}
	return familyTruth(m, o.familyOptions), o.check(s)
}

type linearTruthOptions struct {
	policy.LinearOptions
	familyOptions
}

func linearTruth(s settings.Section, o linearTruthOptions, features int) (newTruth, error) {
	return familyTruth(utility.NewLinear(features, o.Intercept), o.familyOptions), o.check(s)
}

type shopOptions struct {
	Base float64 `toml:"base" range:"[-1e6, 1e6]" doc:"the utility of an item of average features"`
}

func shopTruth(_ settings.Section, o shopOptions, features int) (newTruth, error) {
	return drawnTruth(func(d int, rng *rand.Rand) env.Shifted {
		return env.Shifted{Truth: env.NewFamily(utility.NewLinear(d, false), -1, 1, rng), By: o.Base}
	})(settings.Section{}, features)
}

func quadraticTruth(s settings.Section, o familyOptions, features int) (newTruth, error) {
	return familyTruth(utility.NewQuadratic(features), o), o.check(s)
}

type segmentsOptions struct {
	Opposed bool `toml:"opposed" doc:"whether one segment dislikes what the other likes"`
}

func segmentsTruth(s settings.Section, o segmentsOptions, features int) (newTruth, error) {
	return pairTruth(func(d int, rng *rand.Rand) *env.Segments { return env.NewSegments(d, o.Opposed, rng) })(s, features)
}

type sparseOptions struct {
	Relevant int `toml:"relevant" range:"[1, inf)" doc:"the number of features that matter"`
}

func sparseTruth(s settings.Section, o sparseOptions, features int) (newTruth, error) {
	if o.Relevant > features {
		return nil, s.Errorf("relevant", "relevant = %d: must be at most features, %d", o.Relevant, features)
	}
	return func(rng *rand.Rand, _ *env.Pool) env.Truth { return env.NewSparse(features, o.Relevant, rng) }, nil
}

type cosineOptions struct {
	Norm float64 `toml:"norm" range:"(0, inf)" zero:"w as drawn" doc:"the bound on ‖w‖"`
}

func cosineTruth(_ settings.Section, o cosineOptions, features int) (newTruth, error) {
	return func(rng *rand.Rand, _ *env.Pool) env.Truth { return env.NewCosine(features, o.Norm, rng) }, nil
}

// drawnTruth is for truths without options.
func drawnTruth[T env.Truth](draw func(d int, rng *rand.Rand) T) func(settings.Section, int) (newTruth, error) {
	return func(_ settings.Section, features int) (newTruth, error) {
		return func(rng *rand.Rand, _ *env.Pool) env.Truth { return draw(features, rng) }, nil
	}
}

// pairTruth is drawnTruth for truths of at least two features.
func pairTruth[T env.Truth](draw func(d int, rng *rand.Rand) T) func(settings.Section, int) (newTruth, error) {
	return func(s settings.Section, features int) (newTruth, error) {
		if features < 2 {
			return nil, s.Errorf("kind", "kind = %s: needs features = 2 or more, and the file has %d", settings.Literal(s.Values["kind"]), features)
		}
		return drawnTruth(draw)(s, features)
	}
}

func productTruth(s settings.Section, features int) (newTruth, error) {
	if features < 3 {
		return nil, s.Errorf("kind", "kind = 'product': needs features = 3 or more, and the file has %d", features)
	}
	return drawnTruth(env.NewProduct)(s, features)
}

// newDrift makes a truth move in the given number of rounds. draw draws the file's truth. The first draw is
// the truth of the first round, so worlds with and without drift start equal.
type newDrift func(draw func() env.Truth, rounds int, rng *rand.Rand) env.Truth

type rotationOptions struct {
	Angle float64 `toml:"angle" range:"[-1e6, 1e6]" doc:"the degrees by which tastes turn over the horizon"`
}

func rotationDrift(s settings.Section, o rotationOptions, features int) (newDrift, error) {
	if features < 2 {
		return nil, s.Errorf("kind", "kind = 'rotation': needs features = 2 or more, and the file has %d", features)
	}
	return func(draw func() env.Truth, rounds int, rng *rand.Rand) env.Truth {
		return env.NewRotation(draw(), o.Angle*math.Pi/180/float64(rounds), rng)
	}, nil
}

type switchesOptions struct {
	Rounds []int `toml:"rounds" range:"[2, inf)" doc:"the rounds before which a truth is drawn; none is the middle of the horizon"`
}

func switchesDrift(s settings.Section, o switchesOptions, _ int) (newDrift, error) {
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
	}, increasing(s, o.Rounds)
}

type poolOptions struct {
	Utility string `toml:"utility" range:"logit|probability" doc:"what of the pool's model is the utility: log-odds, or probability"`
}

func poolTruth(s settings.Section, o poolOptions, _ int) (newTruth, error) {
	if err := needPool(s); err != nil {
		return nil, err
	}
	return func(_ *rand.Rand, p *env.Pool) env.Truth {
		if o.Utility == "probability" {
			return env.Probability{Truth: p.Truth()}
		}
		return p.Truth()
	}, nil
}

type tableOptions struct {
	Outside float64 `toml:"outside" range:"[-100, 100]" doc:"the utility of taking nothing, which is subtracted from those of items"`
}

func tableTruth(s settings.Section, o tableOptions, _ int) (newTruth, error) {
	return func(_ *rand.Rand, p *env.Pool) env.Truth {
		return env.Relative{Truth: p.Truth(), Outside: o.Outside}
	}, needPool(s)
}

func uniformRevenue(s settings.Section, o intervalOptions, _ int) (env.Revenues, error) {
	if o.Low < 0 {
		return nil, s.Errorf("low", "low = %v: revenues must not be negative", o.Low)
	}
	return env.UniformRevenue(o), o.check(s)
}
