package experiment_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// popular offers the items that sold most, and initially some items chosen by the seed.
type popular struct{ sold []float64 }

func newPopular(items int, seed uint32) *popular {
	p, rng := &popular{make([]float64, items)}, rand.New(rand.NewPCG(uint64(seed), 0))
	for i := range p.sold {
		p.sold[i] = rng.Float64()
	}
	return p
}

func (p *popular) best() []int {
	items := make([]int, len(p.sold))
	for i := range items {
		items[i] = i
	}
	slices.SortFunc(items, func(a, b int) int {
		if p.sold[a] < p.sold[b] {
			return 1
		}
		return -1
	})
	return items[:size]
}

// inside runs popular as a learner in this program.
type inside struct{ *popular }

func (l inside) Policy() vitrine.Policy { return l }
func (l inside) Offer(*vitrine.Context, *rand.Rand) vitrine.Offer {
	return vitrine.Offer{Assortment: slices.Sorted(slices.Values(l.best())), Propensity: 1}
}
func (l inside) Observe(r vitrine.Round) error {
	if r.Choice != vitrine.Outside {
		l.sold[r.Offer.Assortment[r.Choice-1]]++
	}
	for _, c := range r.More {
		l.sold[r.Offer.Assortment[c-1]]++
	}
	return nil
}

// outside runs popular as a separate program, with a fault.
func outside(fault string) (status int) {
	var p *popular
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for t := 0; lines.Scan(); {
		var m struct {
			Problem *struct {
				Seed                          uint32
				Rounds, Items, Size, Features int
				Constraint                    struct{ Kind string }
				Ordered                       bool
			}
			Context *struct {
				Features [][]float64
				Revenue  []float64
			}
			Round *struct {
				Assortment []int
				Choice     *int
				More       []int
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		switch {
		case m.Problem != nil:
			if m.Problem.Rounds != 120 || m.Problem.Size != size || m.Problem.Features != 2 ||
				m.Problem.Constraint.Kind != "at-most" {
				fmt.Fprintln(os.Stderr, "another problem:", lines.Text())
				return 1
			}
			p = newPopular(m.Problem.Items, m.Problem.Seed)
			if fault == "noisy" {
				fmt.Fprintln(os.Stderr, "hello")
			}
		case m.Context != nil:
			t++
			if len(m.Context.Features) != 8 || len(m.Context.Features[7]) != 2 || len(m.Context.Revenue) != 8 {
				fmt.Fprintln(os.Stderr, "another context:", lines.Text())
				return 1
			}
			answer, _ := json.Marshal(map[string]any{"assortment": p.best(), "propensity": 1})
			if t == 5 {
				switch fault {
				case "crash":
					fmt.Fprintln(os.Stderr, strings.Repeat("x", 10_000)+"\nout of ideas")
					return 3
				case "stops":
					return 0
				case "garbage":
					answer = []byte(`{"assortment": [1`)
				case "infeasible":
					answer = []byte(`{"assortment": [0, 1, 2, 3]}`)
				case "unknown item":
					answer = []byte(`{"assortment": [8]}`)
				case "chatty":
					answer = fmt.Appendf(answer, "\ndone")
				case "endless":
					answer = []byte(strings.Repeat("x", 10_000))
				case "silent":
					time.Sleep(time.Hour)
				case "silent child":
					sleeper := exec.Command("sleep", "3600")
					sleeper.Stdout, sleeper.Stderr = os.Stdout, os.Stderr
					_ = sleeper.Run()
				}
			}
			fmt.Printf("%s\n", answer)
			if fault == "early" && t == 120 {
				return 0
			}
		case m.Round != nil:
			if c := m.Round.Choice; c != nil {
				if !slices.Contains(m.Round.Assortment, *c) {
					fmt.Fprintln(os.Stderr, "a choice that was not offered:", lines.Text())
					return 1
				}
				p.sold[*c]++
			}
			for _, i := range m.Round.More {
				p.sold[i]++
			}
		}
	}
	switch fault {
	case "stubborn":
		time.Sleep(time.Hour)
	case "late":
		fmt.Fprintln(os.Stderr, "cannot save")
		return 4
	}
	return 0
}

// inProcess plays popular inside this program, and asProcess outside, with the same draws.
func inProcess() experiment.Policy {
	return experiment.Policy{Label: "inside", Settings: "inside",
		New: func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
			return inside{newPopular(8, rng.Uint32())}, nil
		}}
}

func asProcess(timeout time.Duration, command ...string) experiment.Policy {
	return experiment.Policy{Label: "outside", Settings: command,
		New: func(_ env.Environment, rng *rand.Rand) (vitrine.Learner, error) {
			return experiment.NewProcess(experiment.ProcessOptions{
				Command: command, Timeout: timeout, Constraint: map[string]any{"kind": "at-most"},
				Problem: bandit.Problem{NumFeatures: 2, Items: 8, MaxShown: size, Rounds: 120,
					Constraint: assortment.AtMost(size)},
			}, rng)
		}}
}

func withFault(fault string, timeout time.Duration) experiment.Policy {
	return asProcess(timeout, os.Args[0], "outside", fault)
}

// A learner in a separate program gets exactly the same regret as in this program, with any number of workers, and a
// second run finds all of its runs in the journal. Visitors take several items.
func TestProcess(t *testing.T) {
	for _, workers := range []int{1, 4} {
		e, dir := small(inProcess(), withFault("", time.Minute), withFault("early", time.Minute)), t.TempDir()
		e.Policies[2].Label = "early"
		world := e.World
		e.World = func(rng *rand.Rand) env.Environment {
			w := world(rng).(*env.World)
			w.Takers = env.Independent{Number: 1.5}
			return w
		}
		s := run(t, e, experiment.Options{Dir: dir, Workers: workers, Warn: func(m string) { t.Error(m) }})
		for _, other := range s[1:] {
			if s[0].FinalMean < 1 || other.FinalMean != s[0].FinalMean || other.FinalSD != s[0].FinalSD {
				t.Errorf("%d workers: regret %v ± %v inside, %v ± %v %s",
					workers, s[0].FinalMean, s[0].FinalSD, other.FinalMean, other.FinalSD, other.Policy)
			}
		}
		noChildren(t)
		regret := read(t, dir, "small", "regret.csv")
		for k := range e.Policies {
			e.Policies[k].New = func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
				return nil, errors.New("played again")
			}
		}
		run(t, e, experiment.Options{Dir: dir})
		if string(read(t, dir, "small", "regret.csv")) != string(regret) {
			t.Error("a second run has other regrets")
		}
	}
}

// An error names the policy, the seed, the round, the program, and the problem. The program is always reaped.
func TestProcessFaults(t *testing.T) {
	t.Run("all", processFaults)
	noChildren(t)
}

func processFaults(t *testing.T) {
	for _, c := range []struct {
		fault   string
		timeout time.Duration
		want    []string
	}{
		{"crash", time.Minute, []string{"round 5: process ", " ended: exit status 3; it wrote to standard error:\nxxx",
			"\nout of ideas"}},
		{"stops", time.Minute, []string{"round 5: process ",
			"ended, or closed its standard input or output, before its last round"}},
		{"garbage", time.Minute, []string{"round 5: process ",
			`answered "{\"assortment\": [1": want {"assortment": [3, 17]}`}},
		{"infeasible", time.Minute, []string{"round 5: process ", "4 items, and the size is "}},
		{"unknown item", time.Minute, []string{"round 5: infeasible offer: assortment has item 8"}},
		{"chatty", time.Minute, []string{"round 6: process ", `wrote "done", which nothing asked for`}},
		{"endless", time.Minute, []string{"round 5: process ", "answered with a line of more than 4168 bytes"}},
		{"silent", 4 * time.Second, []string{"round 5: process ", "gave no answer in 4s: "}},
		{"silent child", 4 * time.Second, []string{"round 5: process ", "gave no answer in 4s: "}},
		{"stubborn", 4 * time.Second, []string{"round 120: process ", "had not ended 4s after its last round"}},
		{"late", time.Minute, []string{"round 120: process ",
			"failed after its last round: exit status 4; it wrote to standard error:\ncannot save"}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			e := small(withFault(c.fault, c.timeout))
			e.Seeds = []uint64{7}
			_, err := experiment.Run(t.Context(), e, experiment.Options{Dir: t.TempDir()})
			for _, want := range append(c.want, "small: policy outside, seed 7, ") {
				expect.Part(err)(t, want)
			}
			if err != nil && len(err.Error()) > 6000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	t.Run("no program", func(t *testing.T) {
		expect.Prefix(experiment.Run(t.Context(), small(asProcess(time.Minute, "no-such-program")),
			experiment.Options{Dir: t.TempDir(), Workers: 1}))(t,
			"small: policy outside, seed 0: process no-such-program does not start: ")
	})
	t.Run("noisy", func(t *testing.T) {
		e := small(withFault("noisy", time.Minute))
		e.Seeds = []uint64{7}
		var warnings []string
		run(t, e, experiment.Options{Dir: t.TempDir(), Warn: func(m string) { warnings = append(warnings, m) }})
		if want := "small: policy outside, seed 7 wrote to standard error:\nhello"; len(warnings) != 1 ||
			warnings[0] != want {
			t.Errorf("warnings %q, want %q", warnings, want)
		}
	})
}

// Stopping a run kills a busy program.
func TestProcessInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := small(withFault("silent", time.Hour))
	dir := t.TempDir()
	go func() {
		time.Sleep(200 * time.Millisecond)
		cancel()
	}()
	expect.Fails(experiment.Run(ctx, e, experiment.Options{Dir: dir, Workers: 2}))(t, experiment.ErrInterrupted)
	noChildren(t)
	if data, err := os.ReadFile(filepath.Join(dir, "small", "runs.jsonl")); err != nil || len(data) > 0 {
		t.Errorf("the journal has %q, %v", data, err)
	}
}

// A program's policy panics if the program fails, because it cannot return an error.
func TestProcessPolicyPanics(t *testing.T) {
	l := fatal.Or(withFault("crash", time.Minute).New(nil, rand.New(rand.NewPCG(1, 2))))(t)
	defer func() {
		if v := recover(); !strings.Contains(fmt.Sprint(v), "exit status") {
			t.Errorf("panic: %v", v)
		}
		expect.Error(t, l.(*experiment.Process).Close(), nil)
		noChildren(t)
	}()
	shoppers := env.Shoppers{Seed: 1, World: small().World(rand.New(rand.NewPCG(1, 2)))}
	var shopper env.Shopper
	for round := 1; ; round++ {
		fatal.If(t, shoppers.Meet(&shopper, round))
		o := l.Policy().Offer(shopper.Context, nil)
		fatal.If(t, l.Observe(vitrine.Round{Context: shopper.Context, Offer: o}))
	}
}
