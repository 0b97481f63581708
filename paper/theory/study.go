package theory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/quantile"
	"vitrine/internal/stream"
	"vitrine/paper/geometry"
	"vitrine/utility"
)

// Setting is a world from the paper's realizable panel, with standard normal contexts and a network with parameters
// uniform on [−1, 1], and its horizon.
type Setting struct {
	Rounds   int `json:"rounds"`          // T
	Items    int `json:"items"`           // N
	Size     int `json:"size"`            // K
	Features int `json:"features"`        // d
	Hidden   int `json:"hidden"`          // m
	Width    int `json:"width,omitempty"` // m for the learner's network; 0 means Hidden
}

// Study configures the measurements.
type Study struct {
	Setting  Setting   `json:"setting"`
	Betas    []float64 `json:"betas"`    // β_T for the coverage
	Horizons []int     `json:"horizons"` // T for the growth, with N and K fixed
	Items    []int     `json:"items"`    // N for the growth, with T and K fixed
	Sizes    []int     `json:"sizes"`    // K for the growth, with T and N fixed
	Hidden   []int     `json:"hidden"`   // m for the growth with d_w
	Widths   []int     `json:"widths"`   // m for a learner's network with more units than the truth
	Warmups  []int     `json:"warmups"`  // t_0 for the pilot's error
	Schedule Setting   `json:"schedule"` // horizon for playing the theorem's schedule
	Seeds    []uint64  `json:"seeds"`
}

// Default returns the study behind docs/algorithms/theory.md, on the given seeds.
func Default(seeds []uint64) Study {
	return Study{
		Setting:  Setting{Rounds: 1000, Items: 100, Size: 5, Features: 3, Hidden: 3},
		Betas:    []float64{0, 0.1, 1, 10, 100, 1000, 10_000},
		Horizons: []int{250, 500, 1000, 2000, 4000, 8000, 16_000},
		Items:    []int{25, 50, 100, 200, 400, 800, 1600},
		Sizes:    []int{1, 2, 3, 5, 8, 12, 20},
		Hidden:   []int{1, 2, 4, 8, 16},
		Widths:   []int{3, 5, 10, 20},
		Warmups:  []int{25, 50, 100, 200, 400, 800, 1600},
		Schedule: Setting{Rounds: 4000, Items: 100, Size: 5, Features: 3, Hidden: 1},
		Seeds:    seeds,
	}
}

// t_0, λ and β_T as configured in the paper's panels in this repository, at T = 1000 and d_w = 16.
const (
	configuredWarmup = 50
	configuredLambda = 10
	configuredBeta   = 10
	configuredRounds = 1000
	configuredParams = 16
)

// model returns the learner's network and its symmetries.
func (s Setting) model() (utility.Model, Symmetries) {
	hidden := cmp.Or(s.Width, s.Hidden)
	return utility.NewMLP(s.Features, []int{hidden}, utility.Sigmoid), Symmetries{s.Features, hidden, utility.Sigmoid}
}

// params returns d_w.
func (s Setting) params() int {
	m, _ := s.model()
	return m.NumParams()
}

// truth draws w*.
func (s Setting) truth(rng *rand.Rand) *env.Family {
	s.Width = 0
	m, _ := s.model()
	return env.NewFamily(m, -1, 1, rng)
}

// problem returns the problem as learners see it.
func (s Setting) problem() bandit.Problem {
	return bandit.Problem{NumFeatures: s.Features, MaxShown: s.Size, Rounds: s.Rounds,
		Constraint: assortment.AtMost(s.Size)}
}

// experiment returns an experiment that plays policies in the setting.
func (s Setting) experiment(name string, seeds []uint64, policies ...experiment.Policy) *experiment.Experiment {
	return &experiment.Experiment{
		Name: name, Rounds: s.Rounds, Constraint: assortment.AtMost(s.Size), Seeds: seeds, Settings: s,
		Policies: policies,
		World: func(rng *rand.Rand) env.Environment {
			return &env.World{Items: s.Items, Contexts: env.Gaussian{}, Truth: s.truth(rng), Revenues: env.One{}}
		},
	}
}

// onl returns ONL-MNL with options set by change.
func (s Setting) onl(label string, change func(*bandit.ONLOptions)) experiment.Policy {
	o := s.options(change)
	return experiment.Policy{Label: label, Settings: o,
		New: func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
			m, _ := s.model()
			return bandit.NewONL(s.problem(), m, o, rng)
		}}
}

func (s Setting) options(change func(*bandit.ONLOptions)) bandit.ONLOptions {
	o := bandit.DefaultONLOptions()
	o.Warmup, o.Lambda, o.Beta = configuredWarmup, configuredLambda, configuredBeta
	change(&o)
	return o
}

// witnessed returns ONL-MNL with a [Witness].
func (s Setting) witnessed(label string, change func(*bandit.ONLOptions)) experiment.Policy {
	o := s.options(change)
	return experiment.Policy{Label: label, Settings: o,
		New: func(world env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
			m, symmetries := s.model()
			l, err := bandit.NewONL(s.problem(), m, o, rng)
			if err != nil {
				return nil, err
			}
			return NewWitness(l, s.problem(), m, symmetries, world, world.(*env.World).Truth.Params())
		}}
}

// The policies in the growth. Scaled follows the theorem's powers of T and d_w in t_0, λ and β_T. Committed explores
// for a t_0 that grows as T^{2/3} and then plays its pilot, by Adam or by MAP.
const (
	Scaled       = "scaled"
	Fixed        = "fixed"
	Committed    = "commit"
	CommittedMAP = "commit-map"
	Uniform      = "uniform"
	Adam         = "adam"
	MAP          = "map"
)

// growing returns a policy for the growth.
func (s Setting) growing(label string) experiment.Policy {
	switch label {
	case Uniform:
		return experiment.Policy{Label: Uniform, Settings: Uniform,
			New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
				return bandit.NewUniform(s.problem())
			}}
	case Adam, MAP: // watches the first round after Phase I
		return s.witnessed(label, func(o *bandit.ONLOptions) {
			o.Warmup, o.Beta, o.Update, o.Pilot = s.warmup(label), 0, "none", label
		})
	}
	return s.onl(label, func(o *bandit.ONLOptions) {
		o.Update, o.Warmup = "online", s.warmup(label)
		switch label {
		case Scaled:
			d := float64(s.params()) / configuredParams
			o.Lambda = configuredLambda * d * math.Sqrt(float64(s.Rounds)/configuredRounds)
			o.Beta = configuredBeta * d
		case Committed, CommittedMAP:
			o.Beta, o.Update = 0, "none"
			if label == CommittedMAP {
				o.Pilot = MAP
			}
		}
	})
}

// warmup returns t_0 for a policy in the growth.
func (s Setting) warmup(label string) int {
	t := float64(s.Rounds) / configuredRounds
	switch label {
	case Scaled:
		return int(math.Round(configuredWarmup * float64(s.params()) / configuredParams * math.Sqrt(t)))
	case Committed, CommittedMAP:
		return int(math.Round(configuredWarmup * math.Cbrt(t*t)))
	case Adam, MAP:
		return s.Rounds - 1
	}
	return configuredWarmup
}

// axis is a direction of the growth.
type axis struct {
	name     string
	values   []int
	policies []string
	parts    []string
	set      func(*Setting, int)
	value    func(Setting) int // along the axis
}

// Axes of the growth.
const (
	Rounds  = "rounds"
	Items   = "items"
	Sizes   = "sizes"
	Params  = "params"
	Width   = "width"
	Warmup  = "warmup"
	Commits = "commit"
)

func (s Study) axes() []axis {
	regret := []string{Total, Phase2}
	setRounds, rounds := func(t *Setting, v int) { t.Rounds = v }, func(t Setting) int { return t.Rounds }
	return []axis{
		{Rounds, s.Horizons, []string{Scaled, Fixed}, regret, setRounds, rounds},
		{Items, s.Items, []string{Fixed}, regret, func(t *Setting, v int) { t.Items = v },
			func(t Setting) int { return t.Items }},
		{Sizes, s.Sizes, []string{Fixed}, []string{Total, Phase2, Kappa, KappaBall},
			func(t *Setting, v int) { t.Size = v }, func(t Setting) int { return t.Size }},
		{Params, s.Hidden, []string{Scaled, Fixed, Uniform}, regret, func(t *Setting, v int) { t.Hidden = v },
			Setting.params},
		{Width, s.Widths, []string{Scaled, Fixed}, regret, func(t *Setting, v int) { t.Width = v }, Setting.params},
		{Commits, s.Horizons, []string{Committed, CommittedMAP}, regret, setRounds, rounds},
		{Warmup, s.Warmups, []string{Adam, MAP}, []string{Distance, UtilityError},
			func(t *Setting, v int) { t.Rounds = v + 1 }, func(t Setting) int { return t.Rounds - 1 }},
	}
}

// Policies in the schedule.
const (
	byTheory   = "theory"
	configured = "configured"
)

// coverage, growth and scheduled return the study's experiments.
func (s Study) coverage() *experiment.Experiment {
	var policies []experiment.Policy
	for _, b := range s.Betas {
		policies = append(policies, s.Setting.witnessed(fmt.Sprintf("beta-%g", b), func(o *bandit.ONLOptions) {
			o.Beta = b
		}))
	}
	return s.Setting.experiment("coverage", s.Seeds, policies...)
}

func (s Study) growth(a axis, value int) *experiment.Experiment {
	setting := s.Setting
	a.set(&setting, value)
	var policies []experiment.Policy
	for _, label := range a.policies {
		policies = append(policies, setting.growing(label))
	}
	return setting.experiment(fmt.Sprintf("%s-%d", a.name, value), s.Seeds, policies...)
}

func (s Study) scheduled() *experiment.Experiment {
	t := s.Schedule
	return t.experiment("schedule", s.Seeds,
		t.onl(byTheory, func(o *bandit.ONLOptions) {
			o.Schedule, o.Kappa, o.Mu, o.Curvature = "theory", 0.25, 1, 1
		}),
		t.onl(configured, func(*bandit.ONLOptions) {}),
		t.growing(Uniform),
	)
}

// experiments returns all of the study's experiments, in the order in which they are played.
func (s Study) experiments() []*experiment.Experiment {
	all := []*experiment.Experiment{s.coverage(), s.scheduled()}
	for _, a := range s.axes() {
		for _, v := range a.values {
			all = append(all, s.growth(a, v))
		}
	}
	return all
}

// Rounds returns the number of rounds in the study.
func (s Study) Rounds() (n int) {
	for _, e := range s.experiments() {
		n += e.Rounds * len(e.Policies) * len(e.Seeds)
	}
	return n
}

// Run plays the study and returns its report. Finished runs are kept in the directories in o.Dir, and the next Run with
// the same version continues from there. If ctx ends first, the error is [experiment.ErrInterrupted].
func (s Study) Run(ctx context.Context, version string, o experiment.Options) (*Report, error) {
	o.Dir = filepath.Join(o.Dir, "runs")
	results := map[string][]experiment.Result{}
	for _, e := range s.experiments() {
		e.Version = version
		r, err := experiment.Results(ctx, e, o)
		if err != nil {
			return nil, err
		}
		results[e.Name] = r
	}
	r := &Report{Study: s}
	s.cover(r, results["coverage"])
	if err := s.measure(ctx, r, results["coverage"]); err != nil {
		return nil, err
	}
	for _, a := range s.axes() {
		s.grow(r, a, results)
	}
	s.schedule(r, results["schedule"])
	return r, nil
}

// cover summarises the witnesses.
func (s Study) cover(r *Report, results []experiment.Result) {
	for k, beta := range s.Betas {
		runs := results[k*len(s.Seeds) : (k+1)*len(s.Seeds)]
		mean := func(name string) float64 { return stat.Mean(diagnostics(runs, name), nil) }
		median := func(name string) float64 { return quantile.Of(0.5, diagnostics(runs, name)) }
		regret := finals(runs)
		r.Coverage = append(r.Coverage, Coverage{
			Beta: beta, Covered: mean("covered"), Always: mean("always"), Needed: median("needed"),
			Pilot: median("pilot"), Final: median("final"),
			Optimistic: mean("optimistic"), Best: mean("optimistic_best"), Revenue: mean("revenue"),
			Potential: mean("potential"), Bound: mean("potential_bound"),
			Trace: mean("trace"), Gradient: mean("gradient"), Kappa: median("kappa"),
			Regret: stat.Mean(regret, nil), SE: standardError(regret),
		})
		for t := 1; t <= s.Setting.Rounds; t++ {
			name := fmt.Sprintf("distance.%d", t)
			if _, ok := runs[0].Diagnostics[name]; !ok {
				continue
			}
			d := diagnostics(runs, name)
			r.Path = append(r.Path, Path{
				Beta: beta, Round: t, Radius: beta * float64(t) / float64(s.Setting.Rounds),
				Low: quantile.Of(0.1, d), Distance: quantile.Of(0.5, d), High: quantile.Of(0.9, d),
				Potential: mean(fmt.Sprintf("potential.%d", t)), Bound: mean(fmt.Sprintf("bound.%d", t)),
			})
		}
	}
}

// measure estimates the constants for each seed's world. κ of the data comes from the configured β_T, or else from the
// first.
func (s Study) measure(ctx context.Context, r *Report, results []experiment.Result) error {
	m, _ := s.Setting.model()
	n := Sample{Items: 20_000, Hessians: 500, Sets: 20_000,
		Expected: geometry.ExpectedSize(s.Setting.Items, s.Setting.Size)}
	k := max(slices.Index(s.Betas, configuredBeta), 0)
	for i, seed := range s.Seeds {
		if ctx.Err() != nil {
			return experiment.ErrInterrupted
		}
		star := s.Setting.truth(stream.New(seed, 0, stream.World)).Params()
		rng := stream.New(seed, 0, stream.Theory)
		c := Measure(m, star, env.Gaussian{}, s.Setting.Size, n, rng)
		norm := mat.Norm(mat.NewVecDense(len(star), star), 2)
		r.Constants = append(r.Constants, World{
			Seed: seed, Norm: norm, Constants: c,
			KappaData: results[k*len(s.Seeds)+i].Diagnostics["kappa"],
			KappaUnit: KappaOfNetworks(1, s.Setting.Hidden, s.Setting.Size),
			KappaNorm: KappaOfNetworks(norm, s.Setting.Hidden, s.Setting.Size),
		})
	}
	return nil
}

// grow fits the growth of each part along an axis.
func (s Study) grow(r *Report, a axis, results map[string][]experiment.Result) {
	for p, label := range a.policies {
		for _, part := range a.parts {
			if label == Uniform && part == Phase2 {
				continue
			}
			var x []float64
			var y [][]float64
			for _, v := range a.values {
				setting := s.Setting
				a.set(&setting, v)
				runs := results[fmt.Sprintf("%s-%d", a.name, v)][p*len(s.Seeds) : (p+1)*len(s.Seeds)]
				values, at := setting.values(label, part, runs), a.value(setting)
				x, y = append(x, float64(at)), append(y, values)
				r.Growth = append(r.Growth, Growth{Along: a.name, Policy: label, Part: part, Value: at,
					Mean: stat.Mean(values, nil), SE: standardError(values)})
			}
			r.Slopes = append(r.Slopes, Exponent{a.name, label, part, FitSlope(x, y, stream.New(0, 1, stream.Theory))})
		}
	}
}

// values returns a part of each of a policy's runs.
func (s Setting) values(label, part string, runs []experiment.Result) []float64 {
	switch part {
	case Phase2:
		regret := finals(runs)
		floats.Sub(regret, regretsAt(runs, s.warmup(label)))
		return regret
	case Kappa:
		return diagnostics(runs, "kappa")
	case KappaBall:
		return slices.Repeat([]float64{KappaOfNetworks(1, s.Hidden, s.Size)}, len(runs))
	case Distance:
		return diagnostics(runs, "pilot")
	case UtilityError:
		return diagnostics(runs, "pilot_error")
	}
	return finals(runs)
}

// schedule returns the schedules that the theorem requires in the panel, with the medians of the measured constants and
// with the most favourable ones, and their regret if they can be played.
func (s Study) schedule(r *Report, results []experiment.Result) {
	median := func(of func(World) float64) float64 {
		var v []float64
		for _, c := range r.Constants {
			v = append(v, of(c))
		}
		return quantile.Of(0.5, v)
	}
	m, _ := s.Setting.model()
	panel := bandit.TheorySchedule{
		Rounds: s.Setting.Rounds, Size: s.Setting.Size, Params: m.NumParams(), Delta: 0.05,
		Mu: median(func(w World) float64 { return w.Mu }),
		Cf: median(func(w World) float64 { return w.Cf }),
		Cg: median(func(w World) float64 { return w.Cg }),
		Ch: median(func(w World) float64 { return w.Ch }),
	}
	for _, k := range []struct {
		name  string
		kappa float64
	}{
		{"kappa of the unit ball", median(func(w World) float64 { return w.KappaUnit })},
		{"kappa of the world", median(func(w World) float64 { return w.Kappa })},
		{"kappa of the data", median(func(w World) float64 { return w.KappaData })},
	} {
		panel.Kappa = k.kappa
		r.Schedule = append(r.Schedule, asked(k.name, panel))
	}
	panel.Kappa, panel.Mu, panel.Cf, panel.Cg, panel.Ch = 0.25, 1, 1, 1, 1
	r.Schedule = append(r.Schedule, asked("kappa = 1/4, the rest 1", panel))

	small, _ := s.Schedule.model()
	panel.Rounds, panel.Size, panel.Params = s.Schedule.Rounds, s.Schedule.Size, small.NumParams()
	for k, label := range []string{byTheory, configured, Uniform} {
		regret := finals(results[k*len(s.Seeds) : (k+1)*len(s.Seeds)])
		row := Asked{Constants: "played, " + label, Rounds: panel.Rounds, Params: panel.Params,
			Regret: stat.Mean(regret, nil), SE: standardError(regret)}
		switch label {
		case byTheory:
			regret := row
			row = asked(regret.Constants, panel)
			row.Regret, row.SE = regret.Regret, regret.SE
		case configured:
			row.Warmup, row.Lambda, row.Beta = configuredWarmup, configuredLambda, configuredBeta
		}
		r.Schedule = append(r.Schedule, row)
	}
}

func asked(constants string, s bandit.TheorySchedule) Asked {
	return Asked{
		Constants: constants, Rounds: s.Rounds, Params: s.Params, Kappa: s.Kappa, Mu: s.Mu, Cf: s.Cf, Cg: s.Cg,
		Ch:     s.Ch,
		Warmup: s.Warmup(), Lambda: s.Lambda(), Beta: s.Radius(s.Rounds), MinRounds: s.MinRounds(),
	}
}

func diagnostics(runs []experiment.Result, name string) []float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = r.Diagnostics[name]
	}
	return values
}

func finals(runs []experiment.Result) []float64 { return regretsAt(runs, len(runs[0].Regret)) }

// regretsAt returns the regrets after the first t ≥ 1 rounds.
func regretsAt(runs []experiment.Result, t int) []float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = r.Regret[t-1]
	}
	return values
}

// standardError returns the standard error of the mean, 0 for a single value.
func standardError(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	return stat.StdDev(values, nil) / math.Sqrt(float64(len(values)))
}
