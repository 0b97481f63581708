package policy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/bandit/policy"
	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/internal/option"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// shop is a simulated shop: some of its products are shown, and as many shoppers walk away as buy.
type shop struct{ items, features, size, rounds int }

var (
	large = shop{20, 5, 3, 1500}
	small = shop{10, 3, 2, 1500} // few enough to enumerate all sets
	brief = shop{10, 3, 2, 300}  // for chains with slower and slower rounds
)

func (w shop) problem() bandit.Problem {
	return bandit.Problem{NumFeatures: w.features, Items: w.items, MaxShown: w.size, Rounds: 100_000,
		Constraint: assortment.AtMost(w.size)}
}

// sells plays a placement's policy with its settings and returns what it earns of the optimum.
func (w shop) sells(t *testing.T, settings string, seed uint64) float64 {
	t.Helper()
	complete := fatal.Or(policy.Complete([]byte(settings), w.problem(), true))(t)
	p, m, err := policy.Read(jsonOf(t, complete), w.problem(), true)
	fatal.If(t, err)
	l := fatal.Or(m.New(stream.New(seed, 0, stream.Learner)))(t)
	shoppers := env.Shoppers{Seed: seed, World: &env.World{
		Items: w.items, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{Low: 0.5, High: 1},
		Truth: env.NewFamily(utility.NewLinear(w.features, false), -1, 1, stream.New(seed, 0, stream.World)),
	}}
	var shopper env.Shopper
	var draws stream.Stream
	earned, optimum := 0.0, 0.0
	for round := 1; round <= w.rounds; round++ {
		fatal.If(t, shoppers.Meet(&shopper, round))
		for i := range shopper.Utilities {
			shopper.Utilities[i]--
		}
		o := l.Policy().Offer(shopper.Context, draws.At(seed, round, stream.Policy))
		_, best := assortment.Maximize(nil, assortment.AtMost(w.size), shopper.Utilities, shopper.Context.Revenue)
		earned += vitrine.ExpectedRevenue(o.Assortment, shopper.Utilities, shopper.Context.Revenue)
		optimum += best
		fatal.If(t, l.Observe(seen(shopper.Context, o, shopper.Choose(o.Assortment), p.AllRows)))
	}
	return earned / optimum
}

// seen is a placement's round: with all rows, or only the rows of the items shown.
func seen(x *vitrine.Context, o vitrine.Offer, c vitrine.Choice, all bool) vitrine.Round {
	if all || len(o.Assortment) == 0 {
		return vitrine.Round{Context: x, Offer: o, Choice: c}
	}
	_, d := x.Features.Dims()
	shown := &vitrine.Context{Features: mat.NewDense(len(o.Assortment), d, nil)}
	s := make(vitrine.Assortment, len(o.Assortment))
	for k, i := range o.Assortment {
		s[k] = k
		shown.Features.SetRow(k, x.Features.RawRowView(i))
		shown.Revenue = append(shown.Revenue, x.Revenue[i])
	}
	return vitrine.Round{Context: shown, Offer: vitrine.Offer{Assortment: s, Propensity: o.Propensity}, Choice: c}
}

// chance returns what sets drawn by chance earn of the optimum.
func chance(t *testing.T, world shop, seed uint64) float64 {
	t.Helper()
	return world.sells(t, `{"name":"uniform"}`, seed)
}

// With all its defaults every policy of a placement earns nearly the optimum. Log-barrier-MNL explores more by
// its design: 1/(γ√t) of its barrier is its bound.
func TestDefaultsSell(t *testing.T) {
	seeds := uint64(1)
	if long.Wanted() {
		seeds = 3
	}
	for _, p := range policy.All {
		if p.Learner.Unfit != "" || p.Name == "uniform" {
			continue
		}
		if p.Matrices.Live <= 0 || p.Matrices.Saved <= 0 {
			t.Errorf("%s can serve, and its memory counts as 0: set Matrices in its line, and compare them with the "+
				"heap in service/setup/size_test.go", p.Name)
		}
		world, least := large, 0.95
		switch p.Name {
		case "log-barrier-mnl":
			world, least = small, 0.9
		case "feel-good-ts":
			world, least = brief, 0.9
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				earned, chance := world.sells(t, `{"name":"`+p.Name+`"}`, seed+1), chance(t, world, seed+1)
				if earned < least || earned < chance+0.1 {
					t.Errorf("seed %d: earns %.3f of the optimum, want %.2f; chance earns %.3f", seed+1, earned, least,
						chance)
				}
			}
		})
	}
}

// The theory's constants sell less than tuned ones, so a placement with them gets a warning.
func TestTheoryIsWarnedOf(t *testing.T) {
	for _, c := range []struct{ settings, want string }{
		{`{"name":"ucb-mnl","constants":"theory"}`, `ucb-mnl: constants = "theory": `},
		{`{"name":"ts-mnl","constants":"frozen"}`, `ts-mnl: constants = "frozen": `},
		{`{"name":"ofu-mnl-plus","constants":"published"}`, `ofu-mnl-plus: constants = "published": `},
		{`{"name":"log-barrier-mnl","constants":"theory"}`, `log-barrier-mnl: constants = "theory": `},
		{`{"name":"eps-greedy-mnl","schedule":"theory"}`, `eps-greedy-mnl: schedule = "theory": `},
		{`{"name":"onl-mnl","schedule":"theory","kappa":0.25,"mu":0.9}`, `onl-mnl: schedule = "theory": `},
		{`{"name":"ucb-mnl"}`, ""},
		{`{"name":"ucb-mnl","constants":"tuned","radius":3}`, ""},
		{`{"name":"onl-mnl"}`, ""},
		{`{"name":"uniform"}`, ""},
	} {
		s := fatal.Or(policy.Complete([]byte(c.settings), large.problem(), true))(t)
		warnings := policy.Warnings(s)
		if (c.want == "") != (warnings == nil) || c.want != "" && !strings.HasPrefix(warnings[0], c.want) {
			t.Errorf("%s: %q, want %q", c.settings, warnings, c.want)
		}
	}
	world := brief
	for _, name := range []string{"ucb-mnl", "ts-mnl", "ofu-mnl-plus"} {
		tuned, theory := world.sells(t, `{"name":"`+name+`"}`, 1), world.sells(t,
			`{"name":"`+name+`","constants":"theory"}`, 1)
		if theory > tuned-0.1 {
			t.Errorf("%s earns %.3f of the optimum by the theory and %.3f tuned: the warning is wrong", name, theory,
				tuned)
		}
	}
}

// Complete gives every setting, and a placement that names all of them gets the same ones.
func TestCompleteIsComplete(t *testing.T) {
	for _, p := range policy.All {
		if p.Learner.Unfit != "" {
			continue
		}
		all := fatal.Or(policy.Complete([]byte(`{"name":"`+p.Name+`"}`), large.problem(), true))(t)
		for _, o := range p.Learner.Options {
			if _, ok := all[o.Key]; !ok && o.Type != "table" && !o.Omitted &&
				o.Key != "pilot_weights" { // an empty list
				t.Errorf("%s has no %s", p.Name, o.Key)
			}
		}
		text := jsonOf(t, all)
		again, err := policy.Complete(text, large.problem(), true)
		if err != nil || string(jsonOf(t, again)) != string(text) {
			t.Errorf("%s, read again: %s, %v\nwant %s", p.Name, jsonOf(t, again), err, text)
		}
	}
}

// The experts of a placement are the library's.
func TestDefaultExperts(t *testing.T) {
	for _, features := range []int{3, 10, 11, 30, 31, 300} {
		problem := large.problem()
		problem.NumFeatures = features
		_, m, err := policy.Read([]byte(`{"name":"bma-mnl"}`), problem, true)
		fatal.If(t, err)
		var want []any
		for _, e := range bandit.DefaultExperts(features) {
			want = append(want, e.String())
		}
		if fmt.Sprint(m.Settings["experts"]) != fmt.Sprint(want) {
			t.Errorf("%d features: %v, want %v", features, m.Settings["experts"], want)
		}
	}
}

// The families without options have at most 10,000 parameters.
func TestFixedFamiliesAreBounded(t *testing.T) {
	for kind, create := range map[string]func(d int) *utility.Expansion{"quadratic": utility.NewQuadratic,
		"steps": utility.NewSteps} {
		problem := large.problem()
		for problem.NumFeatures = 1; create(problem.NumFeatures).NumParams() <= 10_000; problem.NumFeatures++ {
		}
		text := fmt.Appendf(nil, `{"name":"ucb-mnl","utility":{"kind":%q}}`, kind)
		want := fmt.Sprintf("kind = %q: %d features make more than 10000 parameters", kind, problem.NumFeatures)
		expect.Part(policy.Read(text, problem, true))(t, want)
		problem.NumFeatures--
		if _, _, err := policy.Read(text, problem, true); err != nil {
			t.Error(err)
		}
	}
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	return fatal.Or(json.Marshal(v))(t)
}

// No whole number in a policy or a family is unbounded: each multiplies the work or the memory of an offer or a round. A
// horizon bounds warmup.
func TestWholeNumbersAreBounded(t *testing.T) {
	all := map[string][]option.Option{}
	for _, p := range policy.All {
		all[p.Name] = p.Options
	}
	for _, f := range policy.Families {
		all[f.Name] = f.Options
	}
	for name, options := range all {
		for _, o := range options {
			if strings.Contains(o.Type, "integer") && o.Key != "warmup" && (o.Legal == nil || math.IsInf(o.Legal.High, 1)) {
				t.Errorf("%s: %s is %s, %s", name, o.Key, o.Type, o.Range())
			}
		}
	}
	expect.Part(read(`{"name": "ts-mnl", "samples": 2000000000}`))(t, "samples = 2000000000: must be from 1 to 1000")
	experts := strings.Repeat(`, {"kind": "linear", "memory_rounds": %d}`, 101)[2:]
	numbers := make([]any, 101)
	for k := range numbers {
		numbers[k] = k + 1
	}
	expect.Part(read(fmt.Sprintf(`{"name": "bma-mnl", "experts": [`+experts+`]}`, numbers...)))(t,
		"there are 101 experts: name at most 100")
}

func read(text string) error {
	_, _, err := policy.Read([]byte(text), large.problem(), true)
	return err
}

// Learners tell at most 1000 places apart.
func TestPlacesAreBounded(t *testing.T) {
	p := large.problem()
	p.MaxShown, p.Constraint = 1001, assortment.AtMost(1001)
	for _, l := range policy.All {
		if !slices.ContainsFunc(l.Options, func(o option.Option) bool { return o.Key == "position_effects" }) {
			continue
		}
		text := fmt.Sprintf(`{"name": %q, "position_effects": true, "utility": {"kind": "linear"}}`, l.Name)
		if l.Name == "auto" || l.Name == "bma-mnl" {
			text = fmt.Sprintf(`{"name": %q, "position_effects": true}`, l.Name)
		}
		_, _, err := policy.Read([]byte(text), p, true)
		if l.Name == "log-barrier-mnl" {
			expect.Refused(err)(t, "all assortments") // are too many
			continue
		}
		expect.Part(err)(t, "position_effects = true: a learner tells at most 1000 places apart", l.Name)
	}
}
