package experiment_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// A deadline interrupts in the same way as Ctrl-C; a failure is not an interruption.
func TestWhatEndsAnExperiment(t *testing.T) {
	late, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	expect.Fails(experiment.Run(late, small(best()), experiment.Options{Dir: t.TempDir()}))(t,
		experiment.ErrInterrupted)
	broken := first()
	broken.seen = func(vitrine.Round) error { return context.Canceled }
	if _, err := experiment.Run(t.Context(), small(policy("broken", broken)),
		experiment.Options{Dir: t.TempDir()}); errors.Is(err, experiment.ErrInterrupted) {
		t.Errorf("error %v for a learner that fails", err)
	}
}

// planted is a world of two items with one feature; its feature, revenue or utility may be NaN or infinite.
type planted struct{ feature, revenue, utility float64 }

func (w planted) Context(*rand.Rand) *vitrine.Context {
	return &vitrine.Context{Features: mat.NewDense(2, 1, []float64{w.feature, 0}), Revenue: []float64{1, w.revenue}}
}

func (w planted) Utilities(dst []float64, _ *vitrine.Context) { dst[0], dst[1] = w.utility, 0 }

// narrow is a planted world in which a request may show one item only.
type narrow struct{ planted }

func (w narrow) Context(rng *rand.Rand) *vitrine.Context {
	x := w.planted.Context(rng)
	x.Feasible = assortment.AtMost(1)
	return x
}

// Regret is against the best page of the request's own family, and offers belong to it.
func TestFamiliesOfRequests(t *testing.T) {
	oracle := experiment.Policy{Label: "oracle", New: func(w env.Environment, _ *rand.Rand) (vitrine.Learner, error) {
		return experiment.NewOracle(bandit.Problem{NumFeatures: 1, MaxShown: size, Rounds: 120,
			Constraint: assortment.AtMost(size)}, w)
	}}
	e := small(oracle)
	e.World = func(*rand.Rand) env.Environment { return narrow{planted{revenue: 1}} }
	expect.Equal(t, run(t, e, experiment.Options{Dir: t.TempDir()})[0].FinalMean, 0.0, "regret")
	both := &rule{offer: func(*vitrine.Context, *rand.Rand) vitrine.Assortment { return vitrine.Assortment{0, 1} }}
	e.Policies[0].New = func(env.Environment, *rand.Rand) (vitrine.Learner, error) { return both, nil }
	expect.Part(experiment.Run(t.Context(), e, experiment.Options{Dir: t.TempDir()}))(t, "breaks the constraint")
}

// regret.csv must be readable, and below the directory.
func TestNamesThatFilesCannotHave(t *testing.T) {
	for _, name := range []string{"", "a,b", `a"b`, "a\nb", "..", "../a", `a\b`, "a\u00a0b"} {
		e, dir := small(policy("first", first())), t.TempDir()
		e.Name = name
		for _, e := range []*experiment.Experiment{e, small(policy(name, first()))} {
			expect.Part(experiment.Run(t.Context(), e, experiment.Options{Dir: filepath.Join(dir, "out")}))(t,
				"must be printable, without / ", name)
		}
		_, err := experiment.Finals(t.Context(), small(policy(name, first())), experiment.Options{Dir: t.TempDir()})
		if err != nil { // a tuning's labels may contain commas: they are not written to CSV
			t.Errorf("%q: Finals: error %v", name, err)
		}
		if left := fatal.Or(os.ReadDir(dir))(t); len(left) > 0 {
			t.Errorf("%q: there is %v", name, left)
		}
	}
}

func TestErrorsNameTheUnit(t *testing.T) {
	broken := first()
	broken.seen = func(vitrine.Round) error { return errors.New("no ink") }
	for want, p := range map[string]experiment.Policy{
		"small: policy broken, seed 0, round 1: no ink": policy("broken", broken),
		"policy big, seed 0, round 1: infeasible offer: [0 1 2 3] breaks the": policy("big",
			rule{offer: func(*vitrine.Context, *rand.Rand) vitrine.Assortment {
				return vitrine.Assortment{0, 1, 2,
					3}
			}}),
		"policy far, seed 0, round 1: infeasible offer: assortment has item 8": policy("far",
			rule{offer: func(*vitrine.Context, *rand.Rand) vitrine.Assortment { return vitrine.Assortment{8} }}),
		"policy unborn, seed 0: cannot be": {Label: "unborn",
			New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) { return nil, errors.New("cannot be") }},
		"policy unsaid: json: unsupported value": {Label: "unsaid", Settings: math.NaN(),
			New: best().New},
	} {
		expect.Part(experiment.Run(t.Context(), small(p), experiment.Options{Dir: t.TempDir(), Workers: 1}))(t, want)
	}
	for want, w := range map[string]planted{
		"policy first, seed 0, round 1: feature 0 of item 0 is +Inf: features must be finite": {feature: math.Inf(1)},
		"policy first, seed 0, round 1: revenue of item 1 is NaN: revenues must be finite, not negative and at " +
			"most 1e+100": {revenue: math.NaN()},
		"policy first, seed 0, round 1: the true utility of item 0 is NaN: it must be finite": {utility: math.NaN()},
	} {
		e := small(policy("first", first()))
		e.World = func(*rand.Rand) env.Environment { return w }
		expect.Part(experiment.Run(t.Context(), e, experiment.Options{Dir: t.TempDir(), Workers: 1}))(t, want)
	}
	file := filepath.Join(t.TempDir(), "a file")
	fatal.If(t, os.WriteFile(file, nil, 0o644))
	expect.Part(experiment.Run(t.Context(), small(best()), experiment.Options{Dir: file}))(t, file)
}

// A policy that changed the context would change its own judge.
func TestPoliciesLeaveTheContext(t *testing.T) {
	for want, change := range map[string]func(x *vitrine.Context){
		"round 1: the policy changed the context's features or revenues": func(x *vitrine.Context) { x.Revenue[0] += 5 },
		"round 1: the policy changed the context's features or":          func(x *vitrine.Context) { x.Features.Set(7, 1, 5) },
		"the policy changed the context's features or revenues":          func(x *vitrine.Context) { x.Revenue = nil },
		"round 1: the policy changed the context's":                      func(x *vitrine.Context) { x.Features = nil },
		"[0 1 2 3] breaks the constraint":                                func(x *vitrine.Context) { x.Feasible = assortment.AtMost(4) },
	} {
		careless := rule{offer: func(x *vitrine.Context, _ *rand.Rand) vitrine.Assortment {
			change(x)
			return vitrine.Assortment{0, 1, 2, 3}
		}}
		expect.Part(experiment.Run(t.Context(), small(policy("careless", careless)),
			experiment.Options{Dir: t.TempDir(), Workers: 1}))(t, want)
	}
}

// The regret of a policy that never shows an item depends on its utility all the same.
func TestUtilitiesAreFinite(t *testing.T) {
	for _, u := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		shy := rule{offer: func(*vitrine.Context, *rand.Rand) vitrine.Assortment { return vitrine.Assortment{1} }}
		e := small(policy("shy", shy))
		e.World = func(*rand.Rand) env.Environment { return planted{revenue: 1, utility: u} }
		expect.Part(experiment.Run(t.Context(), e, experiment.Options{Dir: t.TempDir(), Workers: 1}))(t,
			"policy shy, seed 0, round 1: the true utility of item 0 is")
	}
}

// An experiment that cannot be played is rejected by name, before any file is written.
func TestExperimentsThatCannotBePlayed(t *testing.T) {
	for want, change := range map[string]func(e *experiment.Experiment){
		`experiment "small": there are no seeds`: func(e *experiment.Experiment) {
			e.Seeds = nil
		},
		`experiment "small": seed 2 is a duplicate`: func(e *experiment.Experiment) {
			e.Seeds = []uint64{2, 0, 2}
		},
		`experiment "small": there are no policies`: func(e *experiment.Experiment) {
			e.Policies = nil
		},
		`experiment "small": policy 2, "best": the label is a duplicate`: func(e *experiment.Experiment) {
			e.Policies = append(e.Policies, e.Policies[0])
		},
		`experiment "small": policy 1, "unmade": the constructor is nil`: func(e *experiment.Experiment) {
			e.Policies = []experiment.Policy{{Label: "unmade"}}
		},
		`experiment "small": rounds = 0: must be at least 1`: func(e *experiment.Experiment) {
			e.Rounds = 0
		},
		`experiment "small": the world is nil`: func(e *experiment.Experiment) {
			e.World = nil
		},
		`experiment "small": the constraint is nil`: func(e *experiment.Experiment) {
			e.Constraint = nil
		},
	} {
		e, dir := small(best()), filepath.Join(t.TempDir(), "out")
		change(e)
		expect.Part(experiment.Run(t.Context(), e, experiment.Options{Dir: dir}))(t, want)
		expect.Fails(os.Stat(dir))(t, os.ErrNotExist, want)
	}
}

// dreamt is a world without contexts.
type dreamt struct{ env.Environment }

// A panic on one of Run's goroutines would end the program. Run turns it into an error that names the unit, with the
// value and the stack, and keeps finished units.
func TestPanicsNameTheUnit(t *testing.T) {
	ink := errors.New("no ink")
	broken := first()
	broken.seen = func(vitrine.Round) error { panic(ink) }
	created := func(l vitrine.Learner, panics any) experiment.Policy {
		return experiment.Policy{Label: "made", New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
			if panics != nil {
				panic(panics)
			}
			return l, nil
		}}
	}
	for want, p := range map[string]experiment.Policy{
		"policy learner, seed 0, round 1: panic: no ink": policy("learner", broken),
		"policy offer, seed 0, round 1: panic: no glue": policy("offer",
			rule{offer: func(*vitrine.Context, *rand.Rand) vitrine.Assortment { panic("no glue") }}),
		"policy made, seed 0: panic: no pen":                        created(nil, "no pen"),
		"policy made, seed 0: the learner is nil":                   created(nil, nil),
		"policy made, seed 0, round 1: the learner's policy is nil": created(speechless{}, nil),
	} {
		t.Run(want, func(t *testing.T) {
			_, err := experiment.Run(t.Context(), small(p), experiment.Options{Dir: t.TempDir(), Workers: 1})
			expect.Part(err)(t, "small: "+want)
			var panicked *experiment.PanicError
			expect.Equal(t, errors.As(err, &panicked), strings.Contains(want, "panic: "), "that it is a PanicError")
			if panicked != nil && !bytes.Contains(panicked.Stack, []byte("errors_test.go")) {
				t.Errorf("the stack does not lead to the panic:\n%s", panicked.Stack)
			}
			if strings.Contains(want, "learner, seed") && !errors.Is(err, ink) {
				t.Error("the error is not what the learner panicked with")
			}
		})
	}
}

// Errors about worlds that panic or are nil name the unit too.
func TestBrokenWorldsNameTheUnit(t *testing.T) {
	for want, w := range map[string]env.Environment{
		"small: policy first, seed 0, round 1: panic: runtime error": dreamt{},
		"small: policy first, seed 0: the world is nil":              nil,
	} {
		e := small(policy("first", first()))
		e.World = func(*rand.Rand) env.Environment { return w }
		expect.Part(experiment.Run(t.Context(), e, experiment.Options{Dir: t.TempDir(), Workers: 1}))(t, want)
	}
}

func TestFinishedUnitsOutliveAPanic(t *testing.T) {
	broken := first()
	broken.seen = func(vitrine.Round) error { panic("no ink") }
	dir := t.TempDir()
	expect.Refused(experiment.Run(t.Context(), small(best(), policy("broken", broken)),
		experiment.Options{Dir: dir, Workers: 1}))(t, "a policy that panics")
	expect.Equal(t, bytes.Count(read(t, dir, "small", "runs.jsonl"), []byte("\n")), 4,
		"finished units are kept although one panics")
}

// speechless is a learner without a policy.
type speechless struct{ vitrine.Learner }

func (speechless) Policy() vitrine.Policy { return nil }

// Regrets of items that earn cents are not all 0.0.
func TestPrintSmallRegrets(t *testing.T) {
	var out bytes.Buffer
	experiment.PrintSummary(&out, []experiment.Summary{
		{Policy: "a", FinalMean: 3.456e-301, FinalSD: 1e-302, PairedSE: math.NaN()},
		{Policy: "b", FinalMean: 0, FinalSD: math.NaN(), PairedMean: -3.456e-301, PairedSE: 2e-303},
	})
	experiment.PrintSummary(&out, []experiment.Summary{
		{Policy: "a", FinalMean: 0.0341, FinalSD: 0.0123, PairedSE: math.NaN()},
		{Policy: "b", FinalMean: 0.0027, FinalSD: math.NaN(), PairedMean: -0.0314, PairedSE: 0.0051},
	})
	for _, want := range []string{
		"a   3.46e-301   1e-302", "b           0        –   -3.46e-301   2e-303",
		"a   0.034   0.012", "b   0.003       –    -0.031   0.005",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, &out)
		}
	}
}
