// Package sessions measures the agents of package mdp: pages that change what a visitor wants next.
package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/stream"
	"vitrine/mdp"
	"vitrine/paper/experiments"
	"vitrine/paper/study"
	"vitrine/utility"
)

// Title is the title of the figure.
const Title = "Sessions: what a page does to the next one"

// Study configures the measurement.
type Study struct {
	Utilities []string `json:"utilities"` // the truths: Linear, Network
	Items     []int    `json:"items"`     // N
	Sessions  int      `json:"sessions"`  // K
	Points    int      `json:"points"`    // of a curve, each the mean of Sessions/Points sessions
	Policies  []Policy `json:"policies"`
	Seeds     []uint64 `json:"seeds"`
}

// The utilities of the worlds.
const (
	Linear  = "linear"
	Network = "network"
)

// Optimum and Myopic are the exact plans of a known world, which play without learning.
const (
	Optimum = "oracle"
	Myopic  = "myopic, exact"
)

// Policy is an agent: a learner of utilities and the options of its item values.
type Policy struct {
	Label   string  `json:"label"`
	Learner string  `json:"learner"`          // ofu-mnl-plus, onl-mnl or uniform
	Radius  float64 `json:"radius,omitempty"` // α of OFU-MNL+; √β_T of ONL-MNL
	Lambda  float64 `json:"lambda,omitempty"` // λ
	mdp.Options
}

// Default returns the study of docs/algorithms/sessions.md. The constants are the best of bench/sessions, on average
// over its worlds and up to noise, on seeds from 1000. All optimistic agents share the constants of item values.
func Default(seeds []uint64) Study {
	return Study{
		Utilities: []string{Linear, Network}, Items: []int{10, 20, 40}, Sessions: 30_000, Points: 30, Seeds: seeds,
		Policies: []Policy{
			{Label: "vql", Learner: "ofu-mnl-plus", Radius: 0.3, Lambda: 10, Options: mdp.Options{Warmup: 100, Bonus: 0.1}},
			{Label: "onl-vql", Learner: "onl-mnl", Radius: 0.3, Lambda: 1, Options: mdp.Options{Warmup: 100, Bonus: 0.1}},
			{Label: "greedy-vql", Learner: "ofu-mnl-plus", Lambda: 10, Options: mdp.Options{Warmup: 500}},
			{Label: "myopic", Learner: "ofu-mnl-plus", Radius: 0.3, Lambda: 10, Options: mdp.Options{Warmup: 100, Bonus: 0.1, Myopic: true}},
			{Label: "uniform", Learner: "uniform"},
		},
	}
}

// World returns the world of a seed.
func World(utilities string, items int, seed uint64) *mdp.World {
	rng := stream.New(seed, 0, stream.World)
	if utilities == Network {
		return mdp.NetworkShop(items, rng)
	}
	return mdp.BudgetShop(items, rng)
}

// Agent returns an agent for a world and a number of sessions.
func (p Policy) Agent(w *mdp.World, sessions int, rng *rand.Rand) (*mdp.Agent, error) {
	_, d := w.Features[0].Dims()
	problem := bandit.Problem{
		NumFeatures: d, Items: w.Items(), MaxShown: int(w.Feasible.(assortment.AtMost)), Rounds: sessions * w.Horizon, Constraint: w.Feasible,
	}
	var l vitrine.Learner
	var err error
	switch p.Learner {
	case "ofu-mnl-plus":
		o := bandit.DefaultOFUOptions()
		o.Constants, o.Radius, o.Lambda, o.Intercept = "tuned", p.Radius, p.Lambda, true
		l, err = bandit.NewOFU(problem, o)
	case "onl-mnl":
		o := bandit.DefaultONLOptions()
		o.Warmup, o.Pilot, o.Update = p.Warmup*w.Horizon, "map", "online"
		o.Lambda, o.Beta = p.Lambda, p.Radius*p.Radius
		l, err = bandit.NewONL(problem, utility.NewMLP(d, []int{3}, utility.Sigmoid), o, rng)
	case "uniform":
		l, err = bandit.NewUniform(problem)
	default:
		err = fmt.Errorf("there is no learner %q", p.Learner)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Label, err)
	}
	return mdp.NewAgent(&w.Problem, l, p.Options), nil
}

// Point is the mean return of some consecutive sessions.
type Point struct {
	Utility string  `json:"utility"`
	Items   int     `json:"items"`
	Policy  string  `json:"policy"`
	Seed    int     `json:"seed"`
	Session int     `json:"session"` // the last of them
	Return  float64 `json:"return"`
}

// Report holds the results of every world: one point for each exact plan, and the points of the policies.
type Report struct {
	Study  Study
	Points []Point
}

// curve plays a policy in the world of a seed.
func (s Study) curve(ctx context.Context, at Point, p Policy, w *mdp.World) ([]Point, error) {
	a, err := p.Agent(w, s.Sessions, stream.New(uint64(at.Seed), 0, stream.Learner))
	if err != nil {
		return nil, err
	}
	points, each, sum := []Point(nil), s.Sessions/s.Points, 0.0
	err = mdp.Play(w, a, s.Sessions, uint64(at.Seed), func(k int, value float64) error {
		if sum += value; (k+1)%each == 0 {
			at.Session, at.Return = k+1, sum/float64(each)
			points, sum = append(points, at), 0
		}
		return ctx.Err()
	})
	return points, err
}

// Runs returns the number of runs in the study.
func (s Study) Runs() int { return len(s.Utilities) * len(s.Items) * len(s.Seeds) * len(s.Policies) }

// Run plays the study on a number of workers; 0 is one for each processor. progress is called after every run.
func (s Study) Run(ctx context.Context, workers int, progress func(runs int)) (*Report, error) {
	type run struct {
		at     Point
		policy *Policy // nil for the exact plans
		points []Point
		err    error
	}
	var runs []*run
	for _, u := range s.Utilities {
		for _, n := range s.Items {
			for _, seed := range s.Seeds {
				at := Point{Utility: u, Items: n, Seed: int(seed)}
				runs = append(runs, &run{at: at})
				for _, p := range s.Policies {
					at.Policy = p.Label
					runs = append(runs, &run{at: at, policy: &p})
				}
			}
		}
	}
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	next := make(chan *run, len(runs))
	for _, r := range runs {
		next <- r
	}
	close(next)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for r := range next {
				w := World(r.at.Utility, r.at.Items, uint64(r.at.Seed))
				if r.policy != nil {
					r.points, r.err = s.curve(ctx, r.at, *r.policy, w)
					progress(1)
					continue
				}
				_, v := w.Solve()
				r.at.Session = s.Sessions
				r.at.Policy, r.at.Return = Optimum, v[0][w.Start]
				r.points = append(r.points, r.at)
				r.at.Policy, r.at.Return = Myopic, w.Value(w.Myopic())[0][w.Start]
				r.points = append(r.points, r.at)
			}
		})
	}
	wg.Wait()
	report := &Report{Study: s}
	for _, r := range runs {
		if r.err != nil {
			return nil, r.err
		}
		report.Points = append(report.Points, r.points...)
	}
	return report, nil
}

// Curve returns the mean returns of a policy and their standard errors over the seeds, point by point.
func (r *Report) Curve(utility string, items int, policy string) (sessions, mean, se []float64) {
	values := map[int][]float64{}
	for _, p := range r.Points {
		if p.Utility == utility && p.Items == items && p.Policy == policy {
			values[p.Session] = append(values[p.Session], p.Return)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		m, sd := stat.MeanStdDev(values[k], nil)
		if len(values[k]) == 1 {
			sd = 0
		}
		sessions, mean, se = append(sessions, float64(k)), append(mean, m), append(se, sd/math.Sqrt(float64(len(values[k]))))
	}
	return sessions, mean, se
}

// Mark is the file that marks the directory of a report: its points.
const Mark = "sessions.csv"

// Write makes dir and writes the points and the record, the study.
func (r *Report) Write(dir string) error {
	return study.Write(dir, struct {
		Study Study `json:"study"`
	}{r.Study}, study.File{Name: Mark, Content: study.Encode(r.Points)})
}

// Read reads what Write wrote. Errors name the file.
func Read(dir string) (*Report, error) {
	r := &Report{}
	err := study.Read(dir, experiments.Sessions,
		study.File{Name: study.RecordFile, Decode: func(text []byte) error { return json.Unmarshal(text, r) }},
		study.File{Name: Mark, Decode: r.decode})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// decode reads the points, of every policy in every world.
func (r *Report) decode(text []byte) (err error) {
	if r.Points, err = study.Decode[Point](text); err != nil {
		return err
	}
	if len(r.Study.Utilities) == 0 || len(r.Study.Items) == 0 {
		return errors.New("the study has no worlds")
	}
	for _, u := range r.Study.Utilities {
		for _, n := range r.Study.Items {
			for _, label := range r.Labels() {
				if sessions, _, _ := r.Curve(u, n, label); len(sessions) == 0 {
					return fmt.Errorf("%s has no points in the %s world of %d items", label, u, n)
				}
			}
		}
	}
	return nil
}

// Labels returns the exact plans and the policies.
func (r *Report) Labels() []string {
	labels := []string{Optimum, Myopic}
	for _, p := range r.Study.Policies {
		labels = append(labels, p.Label)
	}
	return labels
}

// Over names the subject of the numbers.
func (s Study) Over() string {
	if len(s.Seeds) == 1 {
		return "1 seed"
	}
	return fmt.Sprintf("mean ± a standard error over %d seeds", len(s.Seeds))
}

// Print writes the optimum of every world, and the share of it that the last sessions of every policy earn.
func (r *Report) Print(out io.Writer) {
	fmt.Fprintf(out, "sessions: what the last %d of %d sessions earn, as a share of the optimum; %s\n", r.Study.Sessions/max(r.Study.Points, 1), r.Study.Sessions, r.Study.Over())
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "utilities\titems\toptimum\t")
	labels := r.Labels()[1:]
	for _, label := range labels {
		fmt.Fprintf(w, "%s\t", label)
	}
	fmt.Fprintln(w)
	for _, u := range r.Study.Utilities {
		for _, n := range r.Study.Items {
			_, best, _ := r.Curve(u, n, Optimum)
			fmt.Fprintf(w, "%s\t%d\t%.3f\t", u, n, best[0])
			for _, label := range labels {
				_, mean, se := r.Curve(u, n, label)
				last := len(mean) - 1
				fmt.Fprintf(w, "%.3f", mean[last]/best[0])
				if len(r.Study.Seeds) > 1 {
					fmt.Fprintf(w, " ± %.3f", se[last]/best[0])
				}
				fmt.Fprint(w, "\t")
			}
			fmt.Fprintln(w)
		}
	}
	w.Flush()
}
