// Package sessions measures the agents of package mdp: pages that change what a visitor wants next.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/parallel"
	"vitrine/internal/stream"
	"vitrine/mdp"
	"vitrine/paper/experiments"
	"vitrine/paper/study"
	"vitrine/utility"
)

// Study configures the measurement.
type Study struct {
	Name     string    `json:"name"` // of the experiment
	Title    string    `json:"title"`
	Worlds   [][]World `json:"worlds"`   // a row of the figure each
	Sessions int       `json:"sessions"` // K
	Points   int       `json:"points"`   // of a curve, each the mean of Sessions/Points sessions
	Policies []Policy  `json:"policies"`
	Seeds    []uint64  `json:"seeds"`
}

// World is a kind of world and its size.
type World struct {
	Kind string `json:"kind"`
	Size int    `json:"size,omitempty"` // N of a shop, S of RiverSwim
}

// The kinds of worlds: budget shops by their utilities, and rivers.
const (
	Linear       = "linear"
	Network      = "network"
	RiverSwim    = "riverswim"
	NetworkRiver = "network river"
	CosineRiver  = "cosine river"
)

// String names the world.
func (w World) String() string {
	switch {
	case w.Size == 0:
		return w.Kind
	case w.Kind == RiverSwim:
		return fmt.Sprintf("%s, S = %d", w.Kind, w.Size)
	}
	return fmt.Sprintf("%s utilities, N = %d", w.Kind, w.Size)
}

// The plans that need no learning.
const (
	Optimum = "oracle"
	Myopic  = "myopic, exact"
	Right   = "always right"
	Uniform = "uniform, exact"
)

// Policy is an agent: in a shop a learner of utilities and the options of its item values, in a river an algorithm of
// package mdp with β as its bonus.
type Policy struct {
	Label   string  `json:"label"`
	Learner string  `json:"learner"`          // ofu-mnl-plus, onl-mnl or uniform; an algorithm
	Radius  float64 `json:"radius,omitempty"` // α of OFU-MNL+; √β_T of ONL-MNL
	Lambda  float64 `json:"lambda,omitempty"` // λ
	mdp.Options
}

// Default returns the study of docs/algorithms/sessions.md. The constants are the best of bench/sessions, on average
// over its worlds and up to noise, on seeds from 1000. All optimistic agents share the constants of item values.
func Default(seeds []uint64) Study {
	return Study{
		Name: experiments.Sessions, Title: "Sessions: what a page does to the next one",
		Worlds:   [][]World{{{Linear, 10}, {Linear, 20}, {Linear, 40}}, {{Network, 10}, {Network, 20}, {Network, 40}}},
		Sessions: 30_000, Points: 30, Seeds: seeds,
		Policies: []Policy{
			{Label: "vql", Learner: "ofu-mnl-plus", Radius: 0.3, Lambda: 10,
				Options: mdp.Options{Warmup: 100, Bonus: 0.1}},
			{Label: "onl-vql", Learner: "onl-mnl", Radius: 0.3, Lambda: 1,
				Options: mdp.Options{Warmup: 100, Bonus: 0.1}},
			{Label: "greedy-vql", Learner: "ofu-mnl-plus", Lambda: 10, Options: mdp.Options{Warmup: 500}},
			{Label: "myopic", Learner: "ofu-mnl-plus", Radius: 0.3, Lambda: 10,
				Options: mdp.Options{Warmup: 100, Bonus: 0.1, Myopic: true}},
			{Label: "uniform", Learner: "uniform"},
		},
	}
}

// Rivers returns the study of rivers. The constants are the best of bench/sessions -rivers, as in [Default].
func Rivers(seeds []uint64) Study {
	policy := func(label, algorithm string, warmup int, lambda, beta float64) Policy {
		return Policy{Label: label, Learner: algorithm, Lambda: lambda,
			Options: mdp.Options{Warmup: warmup, Bonus: beta}}
	}
	return Study{
		Name: experiments.Rivers, Title: "Rivers: moves that the multinomial logit chooses",
		Worlds: [][]World{{{Kind: RiverSwim, Size: 4}, {Kind: RiverSwim, Size: 8}},
			{{Kind: NetworkRiver}, {Kind: CosineRiver}}},
		Sessions: 1000, Points: 50, Seeds: seeds,
		Policies: []Policy{
			policy("onl-mdp", "onl-mdp", 20, 1, 0.003),
			policy("ucrl-mnl", "ucrl-mnl", 0, 1, 0.003),
			policy("ucrl-mnl-plus", "ucrl-mnl-plus", 0, 10, 0.01),
			policy("rrl-mnl", "rrl-mnl", 0, 10, 0.003),
			policy("orrl-mnl", "orrl-mnl", 0, 10, 0.003),
			policy("greedy", "onl-mdp", 20, 1, 0),
		},
	}
}

// Agent returns an agent for a world and a number of sessions.
func (p Policy) Agent(w *mdp.World, sessions int, rng *rand.Rand) (*mdp.Agent, error) {
	_, d := w.Features[0].Dims()
	problem := bandit.Problem{
		NumFeatures: d, Items: w.Items(), MaxShown: int(w.Feasible.(assortment.AtMost)), Rounds: sessions * w.Horizon,
		Constraint: w.Feasible,
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
	World   string  `json:"world"`
	Policy  string  `json:"policy"`
	Seed    int     `json:"seed"`
	Session int     `json:"session"` // the last of them
	Return  float64 `json:"return"`
}

// Report holds the results of every world: one point for each exact plan, and the points of the policies.
type Report struct {
	Study  Study   `json:"study"`
	Points []Point `json:"points"`
}

// world is a world of a seed.
type world interface {
	levels() []Point // Policy and Return of the exact plans
	play(p Policy, sessions int, seed uint64, each func(k int, value float64) error) error
}

// at returns the world of a seed.
func (w World) at(seed uint64) world {
	rng := stream.New(seed, 0, stream.World)
	switch w.Kind {
	case RiverSwim:
		return river{mdp.RiverSwim(w.Size)}
	case NetworkRiver:
		r, _ := mdp.NetworkRiver(rng)
		return river{r}
	case CosineRiver:
		r, _ := mdp.CosineRiver(rng)
		return river{r}
	case Network:
		return shop{mdp.NetworkShop(w.Size, rng)}
	}
	return shop{mdp.BudgetShop(w.Size, rng)}
}

type shop struct{ *mdp.World }

func (w shop) levels() []Point {
	_, v := w.Solve()
	return []Point{{Policy: Optimum, Return: v[0][w.Start]}, {Policy: Myopic, Return: w.Value(w.Myopic())[0][w.Start]}}
}

func (w shop) play(p Policy, sessions int, seed uint64, each func(k int, value float64) error) error {
	a, err := p.Agent(w.World, sessions, stream.New(seed, 0, stream.Learner))
	if err != nil {
		return err
	}
	return mdp.Play(w.World, a, sessions, seed, each)
}

type river struct{ *mdp.River }

func (r river) levels() []Point {
	_, v := r.Solve()
	return []Point{{Policy: Optimum, Return: v[0][r.Start]}, {Policy: Right, Return: r.Value(r.Always(1))[0][r.Start]},
		{Policy: Uniform, Return: r.Uniform()[0][r.Start]}}
}

func (r river) play(p Policy, sessions int, seed uint64, each func(k int, value float64) error) error {
	o := mdp.SwimmerOptions{Algorithm: p.Learner, Warmup: p.Warmup, Beta: p.Bonus, Lambda: p.Lambda}
	a, err := mdp.NewSwimmer(r.River, o, sessions, stream.New(seed, 0, stream.Learner))
	if err != nil {
		return fmt.Errorf("%s: %w", p.Label, err)
	}
	return mdp.Swim(r.River, a, sessions, seed, each)
}

// curve plays a policy in the world of a seed.
func (s Study) curve(ctx context.Context, w world, p Policy, seed uint64) (points []Point, err error) {
	each, sum := s.Sessions/s.Points, 0.0
	err = w.play(p, s.Sessions, seed, func(k int, value float64) error {
		if sum += value; (k+1)%each == 0 {
			points, sum = append(points, Point{Policy: p.Label, Session: k + 1, Return: sum / float64(each)}), 0
		}
		return ctx.Err()
	})
	return points, err
}

// worlds returns the worlds of all rows.
func (s Study) worlds() []World { return slices.Concat(s.Worlds...) }

// Runs returns the number of runs in the study.
func (s Study) Runs() int { return len(s.worlds()) * len(s.Seeds) * len(s.Policies) }

// Run plays the study on a number of workers; 0 is one for each processor. progress is called after every run.
func (s Study) Run(ctx context.Context, workers int, progress func(runs int)) (*Report, error) {
	type run struct {
		world  World
		seed   uint64
		policy *Policy // nil for the exact plans
		points []Point
	}
	var runs []*run
	for _, w := range s.worlds() {
		for _, seed := range s.Seeds {
			runs = append(runs, &run{world: w, seed: seed})
			for _, p := range s.Policies {
				runs = append(runs, &run{world: w, seed: seed, policy: &p})
			}
		}
	}
	err := parallel.Each(ctx, workers, runs, func(ctx context.Context, r *run) (err error) {
		if w := r.world.at(r.seed); r.policy == nil {
			r.points = w.levels()
		} else {
			r.points, err = s.curve(ctx, w, *r.policy, r.seed)
			progress(1)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	report := &Report{Study: s}
	for _, r := range runs {
		for _, p := range r.points {
			p.World, p.Seed = r.world.String(), int(r.seed)
			report.Points = append(report.Points, p)
		}
	}
	return report, nil
}

// optimum returns what the optimal plans of a world earn, seed by seed.
func (r *Report) optimum(w World) map[int]float64 {
	best := map[int]float64{}
	for _, p := range r.Points {
		if p.World == w.String() && p.Policy == Optimum {
			best[p.Seed] = p.Return
		}
	}
	return best
}

// Curve returns a policy's mean shares of the optimum and their standard errors over the seeds, point by point.
func (r *Report) Curve(w World, policy string) (sessions, mean, se []float64) {
	values, best := map[int][]float64{}, r.optimum(w)
	for _, p := range r.Points {
		if p.World == w.String() && p.Policy == policy {
			values[p.Session] = append(values[p.Session], p.Return/best[p.Seed])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		m, sd := stat.MeanStdDev(values[k], nil)
		if len(values[k]) == 1 {
			sd = 0
		}
		sessions, mean, se = append(sessions, float64(k)), append(mean, m),
			append(se, sd/math.Sqrt(float64(len(values[k]))))
	}
	return sessions, mean, se
}

// Mark is the file that marks the directory of a report: its points.
const Mark = "sessions.csv"

// Write makes dir and writes the points and the record, the study.
func (r *Report) Write(dir string) error {
	return study.Write(dir, r, study.File{Name: Mark, Content: study.Encode(r.Points)})
}

// Read reads run.json. Errors name the file.
func Read(dir string) (*Report, error) {
	r := &Report{}
	err := study.Read(dir, experiments.Sessions, r, func() error {
		if len(r.Study.worlds()) == 0 {
			return errors.New("the study has no worlds")
		}
		for _, w := range r.Study.worlds() {
			for _, label := range r.Labels() {
				_, mean, _ := r.Curve(w, label)
				if len(mean) == 0 {
					return fmt.Errorf("%s has no points in the world %q", label, w)
				}
				if err := study.Drawable(mean...); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Labels returns the exact plans and the policies, the optimum first.
func (r *Report) Labels() []string {
	labels := []string{Optimum}
	for _, p := range r.Points {
		if p.Session == 0 && !slices.Contains(labels, p.Policy) {
			labels = append(labels, p.Policy)
		}
	}
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
	fmt.Fprintf(out, "%s: what the last %d of %d sessions earn, as a share of the optimum; %s\n", r.Study.Name,
		r.Study.Sessions/max(r.Study.Points, 1), r.Study.Sessions, r.Study.Over())
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "world\toptimum\t")
	labels := r.Labels()[1:]
	for _, label := range labels {
		fmt.Fprintf(w, "%s\t", label)
	}
	fmt.Fprintln(w)
	for _, world := range r.Study.worlds() {
		best := stat.Mean(slices.Sorted(maps.Values(r.optimum(world))), nil)
		fmt.Fprintf(w, "%s\t%.3f\t", world, best)
		for _, label := range labels {
			_, mean, se := r.Curve(world, label)
			last := len(mean) - 1
			fmt.Fprintf(w, "%.3f", mean[last])
			if len(r.Study.Seeds) > 1 {
				fmt.Fprintf(w, " ± %.3f", se[last])
			}
			fmt.Fprint(w, "\t")
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}
