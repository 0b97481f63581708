package theory_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/floats"

	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/paper/theory"
	"vitrine/utility"
)

// small returns a study that takes a second.
func small() theory.Study {
	return theory.Study{
		Setting:  theory.Setting{Rounds: 80, Items: 8, Size: 3, Features: 2, Hidden: 2},
		Betas:    []float64{0, 10, 1e6},
		Horizons: []int{60, 120},
		Items:    []int{8, 16},
		Sizes:    []int{1, 3},
		Hidden:   []int{1, 2},
		Widths:   []int{2, 3},
		Warmups:  []int{10, 40},
		Schedule: theory.Setting{Rounds: 1100, Items: 8, Size: 2, Features: 1, Hidden: 1},
		Seeds:    []uint64{0, 1},
	}
}

func run(t *testing.T, dir string, workers int) *theory.Report {
	t.Helper()
	var played atomic.Int64
	s := small()
	add := func(n int) { played.Add(int64(n)) }
	r := fatal.Or(s.Run(t.Context(), "1", experiment.Options{Dir: dir, Workers: workers, Progress: add, Reused: add}))(t)
	expect.Equal(t, int(played.Load()), s.Rounds(), "progress of n rounds")
	return r
}

func TestStudy(t *testing.T) {
	dir := t.TempDir()
	r := run(t, dir, 1)
	expect.Equal(t, run(t, t.TempDir(), 8), r, "8 workers measure something else")
	expect.Equal(t, run(t, dir, 2), r, "continued, it measures something else")
	if len(r.Coverage) != 3 || len(r.Growth) != 54 || len(r.Slopes) != 27 || len(r.Constants) != 2 ||
		len(r.Schedule) != 7 {
		t.Fatalf("%d rows of coverage, %d of growth, %d of slopes, %d of constants, %d of the schedule",
			len(r.Coverage), len(r.Growth), len(r.Slopes), len(r.Constants), len(r.Schedule))
	}
	if c := r.Coverage[0]; c.Beta != 0 || c.Covered != 0 || c.Always != 0 || !(c.Needed > 0) {
		t.Errorf("without a radius: %+v", c)
	}
	if c := r.Coverage[2]; c.Covered != 1 || c.Always != 1 || c.Best != 1 || c.Revenue != 1 {
		t.Errorf("with the largest radius: %+v", c)
	}
	for _, c := range r.Constants {
		if !(c.KappaNorm <= c.KappaUnit && c.KappaUnit < c.Kappa && c.Kappa < 0.25) || c.KappaData == 0 {
			t.Errorf("constants %+v", c)
		}
	}
	// The row that is played requires ⌈8 d_w √T⌉ rounds in Phase I.
	if s := r.Schedule[4]; s.Warmup != 1062 || s.MinRounds != 1024 || !(s.Regret > 0) {
		t.Errorf("the schedule that is played: %+v", s)
	}

	fatal.If(t, r.Write(dir))
	expect.Equal(t, fatal.Or(theory.Read(dir))(t), r, "written and read")
	for name, head := range map[string]string{
		"coverage.csv":  "beta,covered,always,needed,",
		"path.csv":      "beta,round,radius,low,distance,high,potential,bound\n",
		"constants.csv": "seed,norm,kappa,c_f,c_g,c_h,mu,kappa_data,kappa_unit,kappa_norm\n0,",
		"growth.csv":    "along,policy,part,value,mean,se\nrounds,scaled,total,60,",
		"slopes.csv":    "along,policy,part,estimate,low,high\n",
		"schedule.csv":  "constants,rounds,params,",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.HasPrefix(string(text), head) {
			t.Errorf("%s: %v, begins with %.80s", name, err, text)
		}
	}
}

// The regret in Phase II is over the rounds after t_0, which is 50 √(T/1000) d_w/16 for one policy, with d_w = 9, and
// 50 for the other. Adding the regret in the first t_0 rounds gives the total.
func TestGrowthOfPhaseII(t *testing.T) {
	dir := t.TempDir()
	r := run(t, dir, 2)
	for _, c := range []struct {
		policy string
		rounds int
		warmup int
	}{{theory.Scaled, 60, 7}, {theory.Scaled, 120, 10}, {theory.Fixed, 60, 50}, {theory.Fixed, 120, 50}} {
		of := func(part string) float64 {
			for _, g := range r.Growth {
				if g.Along == "rounds" && g.Policy == c.policy && g.Value == c.rounds && g.Part == part {
					return g.Mean
				}
			}
			t.Fatalf("no growth of %s, %d rounds, %s", c.policy, c.rounds, part)
			return 0
		}
		f := fatal.Or(os.Open(filepath.Join(dir, "runs", fmt.Sprintf("rounds-%d", c.rounds), "runs.jsonl")))(t)
		defer f.Close()
		first, last, n := 0.0, 0.0, 0.0
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var u struct {
				Policy string
				Regret []float64
			}
			fatal.If(t, json.Unmarshal(lines.Bytes(), &u))
			if u.Policy == c.policy {
				first, last, n = first+u.Regret[c.warmup-1], last+u.Regret[c.rounds-1], n+1
			}
		}
		if n != 2 || math.Abs(of(theory.Total)-last/n) > 1e-12 || math.Abs(of(theory.Phase2)-(last-first)/n) > 1e-12 {
			t.Errorf("%s, T = %d: total %v and Phase II %v, want %v and %v of %v runs",
				c.policy, c.rounds, of(theory.Total), of(theory.Phase2), last/n, (last-first)/n, n)
		}
	}
}

// The pilot's error agrees with the penalised maximum over uniform offers, recomputed here: its distance from the
// nearest image of w*, and its squared error over the next round's items.
func TestGrowthOfThePilotsError(t *testing.T) {
	r, s := run(t, t.TempDir(), 2), small().Setting
	m := utility.NewMLP(s.Features, []int{s.Hidden}, utility.Sigmoid)
	problem := bandit.Problem{NumFeatures: s.Features, MaxShown: s.Size, Rounds: 50,
		Constraint: assortment.AtMost(s.Size)}
	uniform := fatal.Or(bandit.NewUniform(problem))(t)
	for _, t0 := range small().Warmups {
		distance, wrong := 0.0, 0.0
		for _, seed := range small().Seeds {
			truth := env.NewFamily(m, -1, 1, stream.New(seed, 0, stream.World))
			shoppers := env.Shoppers{World: &env.World{Items: s.Items, Contexts: env.Gaussian{}, Truth: truth,
				Revenues: env.One{}}, Seed: seed}
			var p env.Shopper
			data := mle.NewChoices(s.Features)
			for round := range t0 + 1 {
				fatal.If(t, shoppers.Meet(&p, round+1))
				if round < t0 {
					offer := uniform.Policy().Offer(p.Context, stream.New(seed, round+1, stream.Policy)).Assortment
					data.Append(p.Context.Features, offer, p.Choose(offer))
				}
			}
			w := make([]float64, m.NumParams())
			m.Init(w, stream.New(seed, 0, stream.Learner))
			fatal.Or((mle.LevenbergMarquardt{Steps: 100, Tolerance: 1e-6}).Minimize(&mle.NLL{Model: m, Choices: data,
				Ridge: 1}, w))(t)
			_, d, err := theory.Symmetries{Features: s.Features, Hidden: s.Hidden,
				Activation: utility.Sigmoid}.Nearest(w, truth.Params())
			fatal.If(t, err)
			u := make([]float64, s.Items)
			m.Utilities(u, w, p.Context.Features)
			floats.Sub(u, p.Utilities)
			distance, wrong = distance+d*d/2, wrong+floats.Dot(u, u)/float64(s.Items)/2
		}
		for _, g := range r.Growth {
			if g.Along != theory.Warmup || g.Policy != theory.MAP || g.Value != t0 {
				continue
			}
			if want := map[string]float64{theory.Distance: distance,
				theory.UtilityError: wrong}[g.Part]; math.Abs(g.Mean-want) > 1e-9 {
				t.Errorf("t_0 = %d, %s: %v, want %v", t0, g.Part, g.Mean, want)
			}
		}
	}
}

// Growth along the number of parameters is placed at that number, and κ of the ball is at most κ of the data.
func TestGrowthAtItsValues(t *testing.T) {
	r := run(t, t.TempDir(), 2)
	mean := func(along, policy, part string, value int) float64 {
		for _, g := range r.Growth {
			if g.Along == along && g.Policy == policy && g.Part == part && g.Value == value {
				return g.Mean
			}
		}
		t.Fatalf("no growth of %s along %s at %d, %s", policy, along, value, part)
		return 0
	}
	for _, d := range []int{5, 9} { // one unit and two
		if !(mean(theory.Params, theory.Scaled, theory.Total, d) < mean(theory.Params, theory.Uniform, theory.Total,
			d)) {
			t.Errorf("d_w = %d: ONL-MNL is not ahead of uniform", d)
		}
	}
	// Three units for a truth with two, and two units: the same as along the items at the setting's N.
	if a, b := mean(theory.Width, theory.Fixed, theory.Total, 9), mean(theory.Items, theory.Fixed, theory.Total,
		8); a != b {
		t.Errorf("a learner of two units has the regret %v, and %v", a, b)
	}
	mean(theory.Width, theory.Fixed, theory.Total, 13)
	for _, k := range []int{1, 3} {
		ball, data := mean(theory.Sizes, theory.Fixed, theory.KappaBall, k), mean(theory.Sizes, theory.Fixed,
			theory.Kappa, k)
		if ball != theory.KappaOfNetworks(1, 2, k) || !(ball < data && data <= 1/float64(4*k)) {
			t.Errorf("K = %d: κ of the ball is %v, of the data %v", k, ball, data)
		}
	}
}

// An interrupted study keeps its finished runs.
func TestStudyIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	dir := t.TempDir()
	_, err := small().Run(ctx, "1", experiment.Options{Dir: dir, Workers: 1, Progress: func(int) { stop() }})
	expect.Error(t, err, experiment.ErrInterrupted)
	if _, err := os.Stat(filepath.Join(dir, "runs", "coverage", "runs.jsonl")); err != nil {
		t.Error(err)
	}
}

// If the horizon is too short for the theorem's schedule, the report says so.
func TestStudyOfAShortHorizon(t *testing.T) {
	s := small()
	s.Schedule.Rounds = 1000
	_, err := s.Run(t.Context(), "1", experiment.Options{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), `schedule: policy theory, seed`) ||
		!strings.Contains(err.Error(), "asks for t_0 = 1012 rounds") {
		t.Errorf("error %v", err)
	}
}

func TestReportsThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"{":                    "unexpected end of JSON input; run vitrine reproduce theory again",
		"{}":                   "a table is missing; run vitrine reproduce theory again",
		`{"coverage": "none"}`: "run vitrine reproduce theory again",
		`{"coverage": [{}], "path": [{}], "growth": [{"mean": 1e200}]}`: "1e+200 is too large to be drawn",
		`{"coverage": [{}], "path"`:                                     "run vitrine reproduce theory again",
	} {
		fatal.If(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(text), 0o644))
		if _, err := theory.Read(dir); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "run.json") {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	expect.Fails(theory.Read(t.TempDir()))(t, os.ErrNotExist)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"coverage": [{"beta": 1}], "path": [{}], "growth": [{"along": "rounds", "value": 3}]}`))
	f.Add([]byte(`{"coverage": [1e999]}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		fatal.If(t, os.WriteFile(filepath.Join(dir, "run.json"), text, 0o644))
		if r, err := theory.Read(dir); err == nil && (len(r.Coverage) == 0 || len(r.Path) == 0 || len(r.Growth) == 0) {
			t.Error("a report without a table is read")
		}
	})
}

// The theorem's schedule for the panel cannot be played at T = 1000 for any κ.
func TestTheoryIsBeyondThePanel(t *testing.T) {
	s := bandit.TheorySchedule{Rounds: 1000, Size: 5, Params: 16, Kappa: 0.25, Mu: 1, Delta: 0.05, Cf: 1, Cg: 1}
	if s.Warmup() != 4048 || s.MinRounds() != 16_384 {
		t.Errorf("t_0 = %v, and T beyond %v", s.Warmup(), s.MinRounds())
	}
}
