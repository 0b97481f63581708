package experiment_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/env/envtest"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// TestMain acts as a learner's program if a test started it as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "outside" {
		os.Exit(outside(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}

// rule is a policy, and a learner that only counts.
type rule struct {
	offer func(x *vitrine.Context, rng *rand.Rand) vitrine.Assortment
	seen  func(r vitrine.Round) error
}

func (l *rule) Policy() vitrine.Policy { return l }

func (l *rule) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	return vitrine.Offer{Assortment: l.offer(x, rng)}
}

func (l *rule) Observe(r vitrine.Round) error {
	if l.seen == nil {
		return nil
	}
	return l.seen(r)
}

func (l *rule) Diagnostics() map[string]float64 { return map[string]float64{"answer": 42} }

const size = 3

func policy(label string, l rule) experiment.Policy {
	return experiment.Policy{Label: label, Settings: label,
		New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
			return &l, nil
		}}
}

// random draws with the policy's own generator; first always shows the same items.
func random() rule {
	return rule{offer: func(x *vitrine.Context, rng *rand.Rand) vitrine.Assortment {
		return assortment.AtMost(size).Sample(nil, x.NumItems(), rng)
	}}
}

func first() rule {
	return rule{offer: func(*vitrine.Context, *rand.Rand) vitrine.Assortment { return vitrine.Assortment{0, 1} }}
}

// best knows the world.
func best() experiment.Policy {
	return experiment.Policy{Label: "best", Settings: "best",
		New: func(w env.Environment, _ *rand.Rand) (vitrine.Learner, error) {
			return &rule{offer: func(x *vitrine.Context, _ *rand.Rand) vitrine.Assortment {
				u := make([]float64, x.NumItems())
				w.Utilities(u, x)
				s, _ := assortment.Maximize(nil, assortment.AtMost(size), u, x.Revenue)
				return s
			}}, nil
		}}
}

func small(policies ...experiment.Policy) *experiment.Experiment {
	return &experiment.Experiment{
		Name: "small", Rounds: 120, Constraint: assortment.AtMost(size),
		World: func(rng *rand.Rand) env.Environment {
			return &env.World{
				Items: 8, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{High: 1},
				Truth: env.NewFamily(utility.NewLinear(2, true), -1, 1, rng),
			}
		},
		Policies: policies, Seeds: []uint64{0, 1, 2, 3}, Settings: "small", Version: "1.2.3",
	}
}

// In a changing world, regret is measured against the round's own optimum: the oracle's regret is 0, and a policy that
// knows the original truth starts to lose at the switch.
func TestRegretIsAgainstTheRoundsOwnOptimum(t *testing.T) {
	oracle := experiment.Policy{Label: "oracle", Settings: "oracle",
		New: func(w env.Environment, _ *rand.Rand) (vitrine.Learner, error) {
			return experiment.NewOracle(bandit.Problem{NumFeatures: 2, MaxShown: size, Rounds: 120,
				Constraint: assortment.AtMost(size)}, w)
		}}
	e := small(oracle, best())
	e.World = func(rng *rand.Rand) env.Environment {
		draw := func() env.Truth { return env.NewFamily(utility.NewLinear(2, true), -1, 1, rng) }
		return &env.World{
			Items: 8, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{High: 1},
			Truth: envtest.Step{Truth: draw(), After: draw(), From: 61},
		}
	}
	dir := t.TempDir()
	s := run(t, e, experiment.Options{Dir: dir})
	if s[0].FinalMean != 0 || s[0].FinalSD != 0 {
		t.Errorf("the oracle has regret %v ± %v", s[0].FinalMean, s[0].FinalSD)
	}
	if s[1].FinalMean < 0.1 {
		t.Errorf("the truth of before has regret %v", s[1].FinalMean)
	}
	for _, seed := range e.Seeds {
		if line := fmt.Sprintf("small,best,%d,60,0\n",
			seed); !strings.Contains(string(read(t, dir, "small", "regret.csv")), line) {
			t.Errorf("seed %d: the truth of before has regret before the switch", seed)
		}
	}
}

func run(t *testing.T, e *experiment.Experiment, o experiment.Options) []experiment.Summary {
	t.Helper()
	return fatal.Or(experiment.Run(t.Context(), e, o))(t)
}

func read(t *testing.T, parts ...string) []byte {
	t.Helper()
	return fatal.Or(os.ReadFile(filepath.Join(parts...)))(t)
}

func TestBytesDoNotDependOnWorkers(t *testing.T) {
	var want []byte
	for _, workers := range []int{1, 2, 8} {
		dir := t.TempDir()
		run(t, small(policy("random", random()), policy("first", first()), best()),
			experiment.Options{Dir: dir, Workers: workers})
		got := read(t, dir, "small", "regret.csv")
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("regret.csv differs with %d workers", workers)
		}
	}
}

// With one seed, all policies meet the same truth, contexts, revenues and customers.
func TestPoliciesArePaired(t *testing.T) {
	type meeting struct {
		features []float64
		revenue  []float64
		choice   vitrine.Choice
	}
	met := map[string][]meeting{}
	recorder := func(label string) experiment.Policy {
		l := first()
		l.seen = func(r vitrine.Round) error {
			met[label] = append(met[label], meeting{r.Context.Features.RawMatrix().Data, r.Context.Revenue, r.Choice})
			return nil
		}
		return policy(label, l)
	}
	run(t, small(recorder("one"), recorder("two")), experiment.Options{Dir: t.TempDir(), Workers: 1})
	if diff := cmp.Diff(met["one"], met["two"], cmp.AllowUnexported(meeting{})); diff != "" || len(met["one"]) != 480 {
		t.Errorf("two policies of the same rule met different worlds (-one +two):\n%s", diff)
	}
}

// Customers choose by the MNL probabilities: the choices from a fixed set are within five standard errors.
func TestCustomersFollowTheModel(t *testing.T) {
	const utility = 0.5
	e := small()
	e.World = func(*rand.Rand) env.Environment { return planted{utility: utility} }
	var took [3]float64
	l := first()
	l.seen = func(r vitrine.Round) error {
		took[r.Choice]++
		return nil
	}
	e.Policies, e.Rounds = []experiment.Policy{policy("first", l)}, 5000
	run(t, e, experiment.Options{Dir: t.TempDir(), Workers: 1})
	n := float64(e.Rounds * len(e.Seeds))
	for choice, e := range []float64{1, math.Exp(utility), 1} {
		p := e / (2 + math.Exp(utility))
		if se := math.Sqrt(p * (1 - p) / n); math.Abs(took[choice]/n-p) > 5*se {
			t.Errorf("choice %d was taken with frequency %v, want %v ± %v", choice, took[choice]/n, p, se)
		}
	}
}

// Regret is measured against the optimum: a policy that knows it gets exactly 0, and no policy gets less.
func TestRegretIsAgainstTheOptimum(t *testing.T) {
	dir := t.TempDir()
	summaries := run(t, small(best(), policy("random", random())), experiment.Options{Dir: dir})
	if s := summaries[0]; s.FinalMean != 0 || s.FinalSD != 0 {
		t.Errorf("the optimum has regret %v ± %v", s.FinalMean, s.FinalSD)
	}
	rows := fatal.Or(csv.NewReader(bytes.NewReader(read(t, dir, "small", "regret.csv"))).ReadAll())(t)
	expect.Equal(t, rows[0], []string{"experiment", "policy", "seed", "round", "regret"}, "header")
	expect.Equal(fatal.T(t), len(rows), 1+2*4*120, "rows")
	last := 0.0
	for _, row := range rows[1:] {
		v := fatal.Or(strconv.ParseFloat(row[4], 64))(t)
		switch {
		case row[1] == "best" && v != 0:
			t.Fatalf("the optimum has regret %v in round %s", v, row[3])
		case row[3] == "1":
		case v < last:
			t.Fatalf("cumulative regret falls from %v to %v in round %s", last, v, row[3])
		}
		last = v
	}
}

func TestSummaryByHand(t *testing.T) {
	dir := t.TempDir()
	summaries := run(t, small(policy("first", first())), experiment.Options{Dir: dir})
	var final []float64
	rows, _ := csv.NewReader(bytes.NewReader(read(t, dir, "small", "regret.csv"))).ReadAll()
	for _, row := range rows {
		if row[3] == "120" {
			v, _ := strconv.ParseFloat(row[4], 64)
			final = append(final, v)
		}
	}
	mean := (final[0] + final[1] + final[2] + final[3]) / 4
	ss := 0.0
	for _, v := range final {
		ss += (v - mean) * (v - mean)
	}
	if s := summaries[0]; math.Abs(s.FinalMean-mean) > 1e-7 || math.Abs(s.FinalSD-math.Sqrt(ss/3)) > 1e-7 ||
		s.Seeds != 4 || s.Rounds != 120 {
		t.Errorf("summary %+v, want mean %v and sd %v of 4 seeds", s, mean, math.Sqrt(ss/3))
	}
	// Paired with an optimum, which has regret 0, the difference is the regret.
	beside := run(t, small(best(), policy("first", first())), experiment.Options{Dir: t.TempDir()})[1]
	if math.Abs(beside.PairedMean-mean) > 1e-7 || math.Abs(beside.PairedSE-math.Sqrt(ss/3/4)) > 1e-7 {
		t.Errorf("paired difference %v ± %v, want %v ± %v", beside.PairedMean, beside.PairedSE, mean, math.Sqrt(ss/3/4))
	}
	head, _, _ := strings.Cut(string(read(t, dir, "small", "summary.csv")), "\n")
	expect.Equal(t, head,
		"experiment,policy,seeds,rounds,final_mean,final_sd,seconds_per_run,processor_seconds_per_run", "header of summary.csv")
	for _, want := range []string{`"answer": 42`, `"version": "1.2.3"`, `"settings": "small"`, `"processors": `} {
		if !bytes.Contains(read(t, dir, "small", "run.json"), []byte(want)) {
			t.Errorf("run.json lacks %s", want)
		}
	}
	one := small(policy("first", first()))
	one.Seeds = one.Seeds[:1]
	if s := run(t, one, experiment.Options{Dir: t.TempDir()})[0]; !math.IsNaN(s.FinalSD) || !math.IsNaN(s.PairedSE) {
		t.Errorf("the standard deviation of one seed is %v, the standard error %v", s.FinalSD, s.PairedSE)
	}
}

// A run's processor time is known only if no other run is played at the same time.
func TestProcessorSeconds(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the processor time is not known on this system")
	}
	for _, workers := range []int{1, 2} {
		dir := t.TempDir()
		s := run(t, small(policy("random", random())), experiment.Options{Dir: dir, Workers: workers})[0]
		if known := s.ProcessorPerRun > 0; known != (workers == 1) || !known && !math.IsNaN(s.ProcessorPerRun) {
			t.Errorf("%d workers: %v processor seconds", workers, s.ProcessorPerRun)
		}
		if line := string(read(t, dir, "small", "summary.csv")); strings.HasSuffix(line, ",\n") != (workers == 2) {
			t.Errorf("%d workers: summary.csv has %s", workers, line)
		}
	}
}

// Finals is Run without its files. It returns the last regrets from a journal that other seeds and policies may share.
func TestFinals(t *testing.T) {
	dir := t.TempDir()
	var played atomic.Int64
	few := small(counting("random", &played, random()))
	few.Seeds = few.Seeds[:2]
	fatal.Or(experiment.Finals(t.Context(), few, experiment.Options{Dir: dir}))(t)
	got := fatal.Or(experiment.Finals(t.Context(),
		small(counting("random", &played, random()), policy("first", first())), experiment.Options{Dir: dir}))(t)
	expect.Equal(t, played.Load(), 4, "units were played for 4 seeds")
	expect.Fails(os.Stat(filepath.Join(dir, "small", "regret.csv")))(t, fs.ErrNotExist, "Finals left a regret.csv")
	for _, s := range run(t, small(policy("random", random()), policy("first", first())),
		experiment.Options{Dir: dir}) {
		mean := 0.0
		for _, v := range got[s.Policy] {
			mean += v / float64(len(got[s.Policy]))
		}
		if len(got[s.Policy]) != 4 || math.Abs(mean-s.FinalMean) > 1e-12 {
			t.Errorf("%s: %v, want four of mean %v", s.Policy, got[s.Policy], s.FinalMean)
		}
	}
}

func ExampleRun() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	summaries, err := experiment.Run(context.Background(), small(best()), experiment.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	fmt.Println(summaries[0].Policy, summaries[0].FinalMean)
	// Output: best 0
}
