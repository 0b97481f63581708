package config

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/bandit/policy"
	"vitrine/env"
	"vitrine/internal/hint"
	"vitrine/internal/settings"
	"vitrine/paper/imdb"
	"vitrine/utility"
)

// contexts lists the distributions of features.
var contexts = []settings.Kind[newContexts]{
	settings.Fixed("gaussian", "standard normal features", always(env.Gaussian{})),
	settings.Of("clipped-gaussian", "standard normal features cut off at ±bound, default 1/√d", clippedOptions{},
		clippedContexts),
	settings.Of("uniform", "features uniform on [low, high], default [-3, 3]", intervalOptions{-3, 3},
		func(o intervalOptions, _ settings.Dims) (newContexts, error) { return always(env.Uniform(o)), nil }),
	settings.Of("student-t", "features of Student's distribution with degrees of freedom, default 3, within ±1000",
		env.StudentT{Degrees: 3}, func(o env.StudentT, _ settings.Dims) (newContexts, error) {
			return always(o), nil
		}),
	settings.Of("shifts", "standard normal features, and from each of rounds = [...] on normal ones of another "+
		"mean and deviation", shiftsOptions{[]int{51}, []float64{1}, []float64{1}}, shiftedContexts),
	settings.Of("visits", "standard normal features, the last ones, customer = 1 by default, the customer's: the "+
		"same for all items", env.Visits{Customer: 1}, func(o env.Visits, d settings.Dims) (newContexts, error) {
		return always(o), needs("visits", o.Customer, d)
	}),
	settings.Of("columns", "columns as shops have them, of = [...], each one of count, pareto, population, stars, "+
		"timestamp, yen", columnsOptions{}, columnsContexts),
	settings.Of("priced", "a log-normal price, and a category: one of the other columns is 1; 2 features or more",
		struct{}{}, func(_ struct{}, d settings.Dims) (newContexts, error) {
			return always(env.Priced{}), needs("priced", 2, d)
		}),
	settings.Fixed("pool", "distinct items of the file's pool",
		newContexts(func(p *env.Pool) env.Contexts { return p })),
	settings.Fixed("table", "the alternatives of a choice that the file's pool was fitted to, one of those with as many", newContexts(func(p *env.Pool) env.Contexts { return env.NewTable(p) })),
}

// truths lists the true utilities.
var truths = []settings.Kind[newTruth]{
	settings.Of("mlp",
		"a network with parameters uniform on [low, high], default [-1, 1]; ball > 0 scales w into ‖w‖ ≤ ball",
		mlpTruthOptions{policy.OneLayer(), defaultFamily}, mlpTruth),
	drawn("cosine", "cos(2π xᵀw) − ½ xᵀw, w uniform on [-1, 1]; norm > 0 bounds ‖w‖", cosineOptions{}, 1,
		func(o cosineOptions, d int, rng *rand.Rand) *env.Formula { return env.NewCosine(d, o.Norm, rng) }),
	settings.Of("linear",
		"xᵀθ with parameters uniform on [low, high], default [-1, 1]; intercept = true adds b; ball as of mlp",
		linearTruthOptions{policy.LinearOptions{}, defaultFamily}, linearTruth),
	plain("product", "(xᵀq₁)(xᵀq₂) − ½ xᵀq₃, q₁, q₂, q₃ orthonormal; 3 features or more", 3, env.NewProduct),
	plain("threshold", "2 where 0.5 < xᵀw < 1.2, less ½, w uniform on [-1, 1]", 1, env.NewThreshold),
	plain("radial", "2 exp(−‖x − w‖²) − ½, w uniform on [-1, 1]", 1, env.NewRadial),
	drawn("shop", "base + xᵀw, base = -4 by default: few customers buy; w uniform on [-1, 1]", shopOptions{-4}, 1,
		shopTruth),
	plain("abs", "|xᵀw| − |x₁ − x₂|, w uniform on [-1, 1]; 2 features or more", 2, env.NewAbs),
	plain("needle", "4 exp(−2‖x − w‖²) − 3/2, w uniform on [-1, 1]", 1, env.NewNeedle),
	plain("sawtooth", "3 times the fraction of xᵀw, less 2, w uniform on [-1, 1]", 1, env.NewSawtooth),
	settings.Of("quadratic", "xᵀθ + b plus all products of two features, parameters uniform on [low, high], "+
		"default [-1, 1]; ball as of mlp", defaultFamily, quadraticTruth),
	drawn("segments", "2xᵀw − ½, with a w for each sign of the last feature, uniform on [-1, 1]; opposed = true "+
		"has w and −w", segmentsOptions{}, 2, func(o segmentsOptions, d int, rng *rand.Rand) *env.Formula {
		return env.NewSegments(d, o.Opposed, rng)
	}),
	settings.Of("tastes", "base + strength · Σ w_j t_j(x_j) for columns of = [...], t_j logarithms of log-normal "+
		"and Pareto columns; w uniform on [-1, 1]", tastesOptions{Strength: 1}, tastesTruth),
	plain("ideals", "1 − (z − w_c)² − v_c, z the logarithm of the price and c the category of priced contexts; w "+
		"uniform on [-1, 1], v on [0, 1]", 2, env.NewIdeals),
	plain("rings", "2 sin ‖x‖² − ½", 1, env.NewRings),
	settings.Of("low-rank", "strength times a product of items' and customers' features of a rank, less 1; "+
		"customer = 1, rank = 2, strength = 2 by default", lowRankOptions{1, 2, 2}, lowRankTruth),
	drawn("trees", "strength times a sum of regression trees of a depth over the root of their number, less ½; "+
		"trees = 12, depth = 1, strength = 2 by default", treesOptions{12, 1, 2}, 1,
		func(o treesOptions, d int, rng *rand.Rand) *env.Formula {
			return env.NewTrees(d, o.Trees, o.Depth, o.Strength, rng)
		}),
	settings.Of("sparse", "xᵀw with w = ±1 in relevant features, default 3, and 0 in the others", sparseOptions{3},
		sparseTruth),
	settings.Of("pool", "what real choices among the pool's items say: utility = \"logit\", the default, or "+
		"\"probability\"", poolOptions{"logit"}, poolTruth),
	settings.Of("table", "the pool's fitted utilities less that of taking nothing, outside, default 0", tableOptions{},
		tableTruth),
}

// revenues lists the items' revenues.
var revenues = []settings.Kind[env.Revenues]{
	settings.Fixed[env.Revenues]("one", "1 for every item", env.One{}),
	settings.Of("uniform", "uniform on [low, high] in each round, default [0, 1]", intervalOptions{0, 1},
		uniformRevenue),
}

// drifts lists the ways in which a truth moves during the horizon.
var drifts = []settings.Kind[newDrift]{
	settings.Of("rotation", "tastes turn by angle degrees over the horizon, default 90", rotationOptions{90},
		rotationDrift),
}

// baskets lists the ways in which visitors take several items.
var baskets = []settings.Kind[env.Baskets]{
	settings.Of("independent", "a visit with a take has mean takes, default 1.3, all by the same choice probabilities",
		independentOptions{1.3}, func(o independentOptions, _ settings.Dims) (env.Baskets, error) {
			return env.Independent{Number: o.Mean}, nil
		}),
	settings.Of("complements", "a second take, more often of an item on the other side of the first feature; at "+
		"most-size families of few items",
		env.Complements{Strength: 3, Reluctance: 2}, func(o env.Complements, _ settings.Dims) (env.Baskets, error) {
			return o, nil
		}),
}

type independentOptions struct {
	Mean float64 `toml:"mean" range:"[1, 100]" doc:"the mean number of takes of a visit with any"`
}

// pools lists the pools of real items. If the data are missing, the error says where to get them.
var pools = []struct {
	name, doc, source string
	load              func(ctx context.Context, path string, l Loading) (*env.Pool, error)
}{
	{"imdb", "10,000 held-out movie reviews with 30 features, utilities of a network that tells good from bad",
		imdb.Source, loadIMDB},
	{"camera", "426 digital cameras of a conjoint study, utilities fitted to its choices", camera.Source(),
		camera.load},
	{"modecanada", "2,779 trips from Montreal to Toronto by train, air, bus or car, utilities fitted to them",
		modeCanada.Source(), modeCanada.load},
	{"heating", "900 heating systems of houses, one of five, utilities fitted to them", heating.Source(), heating.load},
	{"fishing", "1,182 fishing trips of four modes, utilities fitted to them", fishing.Source(), fishing.load},
	{"choices", "the alternatives of a table of choices of your own, utilities of the multinomial logit fitted to it",
		choicesSource, loadChoices},
}

// Loading holds the cache for computed data and the callbacks for loading a pool. Its functions must not be nil.
type Loading struct {
	Cache    string // a directory; "" disables the cache
	Progress func(stage string, done, total int)
	Warn     func(err error)   // about problems that do not change the result
	Note     func(text string) // about the result, for the user to check
}

// LoadPool reads a pool's data.
func LoadPool(ctx context.Context, name, path string, l Loading) (*env.Pool, error) {
	for _, p := range pools {
		if p.name == name {
			return p.load(ctx, path, l)
		}
	}
	return nil, fmt.Errorf("pool %q: unknown%s", name, hint.Legal(name, names("pool")))
}

// PoolSource describes a pool's data and says where to get them.
func PoolSource(name string) string {
	for _, p := range pools {
		if p.name == name {
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

// constraints lists the feasible families.
var constraints = []settings.Kind[vitrine.Constraint]{
	settings.Of("at-most", "at most size items, which is the family of files without [constraint]", struct{}{}, atMost),
	ruled,
}

// newContexts makes a file's distribution of features. pool may be nil.
type newContexts func(pool *env.Pool) env.Contexts

// always returns contexts that need no pool.
func always(c env.Contexts) newContexts { return func(*env.Pool) env.Contexts { return c } }

type intervalOptions struct {
	Low  float64 `toml:"low" doc:"the least value"`
	High float64 `toml:"high" doc:"the largest value"`
}

func (o intervalOptions) Check() error { return env.CheckInterval(o.Low, o.High) }

type clippedOptions struct {
	Bound float64 `toml:"bound" range:"(0, inf)" zero:"1/√d" doc:"where features are cut off"`
}

func clippedContexts(o clippedOptions, d settings.Dims) (newContexts, error) {
	return always(env.ClippedGaussian{Bound: cmp.Or(o.Bound, 1/math.Sqrt(float64(d.Features)))}), nil
}

type columnsOptions struct {
	Of []string `toml:"of" range:"count|pareto|population|stars|timestamp|yen" doc:"the kind of each column; all counts if left out"`
}

// columns returns the kinds of all columns.
func (o columnsOptions) columns(d settings.Dims) (env.Columns, error) {
	if len(o.Of) == 0 {
		o.Of = slices.Repeat([]string{"count"}, d.Features)
	}
	if len(o.Of) != d.Features {
		return nil, fmt.Errorf("of = %q: has %d columns, and the file has features = %d", o.Of, len(o.Of), d.Features)
	}
	c := make(env.Columns, len(o.Of))
	for j, name := range o.Of {
		c[j] = env.ColumnKinds[name]
	}
	return c, nil
}

func columnsContexts(o columnsOptions, d settings.Dims) (newContexts, error) {
	c, err := o.columns(d)
	return always(c), err
}

type tastesOptions struct {
	columnsOptions
	Strength float64 `toml:"strength" range:"[-100, 100]" doc:"what the tastes are multiplied by"`
	Base     float64 `toml:"base" range:"[-100, 100]" doc:"the utility of an item of average features"`
}

func tastesTruth(o tastesOptions, d settings.Dims) (newTruth, error) {
	c, err := o.columns(d)
	return func(rng *rand.Rand, _ *env.Pool) env.Truth { return env.NewTastes(c, o.Strength, o.Base, rng) }, err
}

type lowRankOptions struct {
	Customer int     `toml:"customer" range:"[1, 1e4]" doc:"how many features, the last, are the customer's"`
	Rank     int     `toml:"rank" range:"[1, 100]" doc:"the number of products"`
	Strength float64 `toml:"strength" range:"[-100, 100]" doc:"what the products are multiplied by"`
}

func lowRankTruth(o lowRankOptions, d settings.Dims) (newTruth, error) {
	return func(rng *rand.Rand, _ *env.Pool) env.Truth {
		return env.NewLowRank(d.Features, o.Customer, o.Rank, o.Strength, rng)
	}, needs("low-rank", o.Customer+1, d)
}

type treesOptions struct {
	Trees    int     `toml:"trees" range:"[1, 1000]" doc:"the number of trees"`
	Depth    int     `toml:"depth" range:"[1, 8]" doc:"the splits between a root and each leaf"`
	Strength float64 `toml:"strength" range:"[-1000, 1000]" doc:"the standard deviation of utilities"`
}

type shiftsOptions struct {
	Rounds    []int     `toml:"rounds" range:"[2, inf)" doc:"the rounds before which the distribution changes"`
	Mean      []float64 `toml:"mean" range:"[-1000, 1000]" doc:"the mean of every feature from each of rounds on"`
	Deviation []float64 `toml:"deviation" range:"[1e-9, 1000]" doc:"the standard deviation of every feature from each of rounds on"`
}

func (o shiftsOptions) Check() error {
	if len(o.Mean) != len(o.Rounds) || len(o.Deviation) != len(o.Rounds) {
		return fmt.Errorf("rounds = %v: mean and deviation have %d and %d numbers: must have as many",
			o.Rounds, len(o.Mean), len(o.Deviation))
	}
	for i, t := range o.Rounds {
		if i > 0 && t <= o.Rounds[i-1] {
			return fmt.Errorf("rounds = %v: must increase", o.Rounds)
		}
	}
	return nil
}

func shiftedContexts(o shiftsOptions, _ settings.Dims) (newContexts, error) {
	laws := make([]env.Normal, len(o.Rounds))
	for k := range laws {
		laws[k] = env.Normal{Mean: o.Mean[k], Deviation: o.Deviation[k]}
	}
	return always(env.NewShifts(o.Rounds, laws)), nil
}

// newTruth draws a seed's truth, or returns the truth of the file's pool.
type newTruth func(rng *rand.Rand, pool *env.Pool) env.Truth

// drawn returns a kind of truth that needs at least the given number of features.
func drawn[O any, T env.Truth](name, doc string, defaults O, least int,
	draw func(o O, d int, rng *rand.Rand) T) settings.Kind[newTruth] {
	return settings.Of(name, doc, defaults, func(o O, d settings.Dims) (newTruth, error) {
		return func(rng *rand.Rand, _ *env.Pool) env.Truth { return draw(o, d.Features, rng) }, needs(name, least, d)
	})
}

// plain is drawn for truths without options.
func plain[T env.Truth](name, doc string, least int, draw func(d int, rng *rand.Rand) T) settings.Kind[newTruth] {
	return drawn(name, doc, struct{}{}, least, func(_ struct{}, d int, rng *rand.Rand) T { return draw(d, rng) })
}

// needs returns an error if items have too few features.
func needs(kind string, least int, d settings.Dims) error {
	if d.Features < least {
		return fmt.Errorf("kind = '%s': needs features = %d or more, and the file has %d", kind, least, d.Features)
	}
	return nil
}

// familyOptions configure how a family's parameters are drawn.
type familyOptions struct {
	intervalOptions
	Ball float64 `toml:"ball" range:"(0, inf)" zero:"w as drawn" doc:"the ball into which w is scaled if it is outside"`
}

var defaultFamily = familyOptions{intervalOptions: intervalOptions{-1, 1}}

func (o familyOptions) truth(m utility.Model) newTruth {
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

func mlpTruth(o mlpTruthOptions, d settings.Dims) (newTruth, error) {
	m, err := policy.MLP(o.MLPOptions, d)
	return o.truth(m), err
}

type linearTruthOptions struct {
	policy.LinearOptions
	familyOptions
}

func linearTruth(o linearTruthOptions, d settings.Dims) (newTruth, error) {
	return o.truth(utility.NewLinear(d.Features, o.Intercept)), nil
}

func quadraticTruth(o familyOptions, d settings.Dims) (newTruth, error) {
	return o.truth(utility.NewQuadratic(d.Features)), nil
}

type shopOptions struct {
	Base float64 `toml:"base" range:"[-1e6, 1e6]" doc:"the utility of an item of average features"`
}

func shopTruth(o shopOptions, d int, rng *rand.Rand) env.Shifted {
	return env.Shifted{Truth: env.NewFamily(utility.NewLinear(d, false), -1, 1, rng), By: o.Base}
}

type segmentsOptions struct {
	Opposed bool `toml:"opposed" doc:"whether one segment dislikes what the other likes"`
}

type sparseOptions struct {
	Relevant int `toml:"relevant" range:"[1, inf)" doc:"the number of features that matter"`
}

func sparseTruth(o sparseOptions, d settings.Dims) (newTruth, error) {
	if o.Relevant > d.Features {
		return nil, fmt.Errorf("relevant = %d: must be at most features, %d", o.Relevant, d.Features)
	}
	return func(rng *rand.Rand, _ *env.Pool) env.Truth { return env.NewSparse(d.Features, o.Relevant, rng) }, nil
}

type cosineOptions struct {
	Norm float64 `toml:"norm" range:"(0, inf)" zero:"w as drawn" doc:"the bound on ‖w‖"`
}

type poolOptions struct {
	Utility string `toml:"utility" range:"logit|probability" doc:"what of the pool's model is the utility: log-odds, or probability"`
}

func poolTruth(o poolOptions, _ settings.Dims) (newTruth, error) {
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

func tableTruth(o tableOptions, _ settings.Dims) (newTruth, error) {
	return func(_ *rand.Rand, p *env.Pool) env.Truth {
		return env.Shifted{Truth: p.Truth(), By: -o.Outside}
	}, nil
}

// newDrift makes a truth move over the given number of rounds. It is the first round's, so that worlds with and without
// drift start equal.
type newDrift func(truth env.Truth, rounds int, rng *rand.Rand) env.Truth

type rotationOptions struct {
	Angle float64 `toml:"angle" range:"[-1e6, 1e6]" doc:"the degrees by which tastes turn over the horizon"`
}

func rotationDrift(o rotationOptions, d settings.Dims) (newDrift, error) {
	return func(truth env.Truth, rounds int, rng *rand.Rand) env.Truth {
		return env.NewRotation(truth, o.Angle*math.Pi/180/float64(rounds), rng)
	}, needs("rotation", 2, d)
}

// maxRevenue keeps the sum of all rounds far from overflow.
const maxRevenue = 1e80

func uniformRevenue(o intervalOptions, _ settings.Dims) (env.Revenues, error) {
	if o.Low < 0 {
		return nil, fmt.Errorf("low = %v: revenues must not be negative", o.Low)
	}
	if o.High > maxRevenue {
		return nil, fmt.Errorf("high = %v: revenues must be at most %v", o.High, maxRevenue)
	}
	return env.UniformRevenue(o), nil
}
