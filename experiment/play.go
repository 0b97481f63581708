package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/internal/stream"
)

// unit is a policy on a seed and, once it is played, what became of it.
type unit struct {
	Fingerprint string             `json:"fingerprint"`
	Policy      string             `json:"policy"`
	Seed        uint64             `json:"seed"`
	Seconds     float64            `json:"seconds"`
	Diagnostics map[string]float64 `json:"diagnostics,omitempty"`
	Regret      []float64          `json:"regret"` // cumulative, entry t−1 after round t

	policy Policy
}

// Diagnoser is a learner that has something to say about a finished run, by
// name: ONL-MNL reports the κ of its data.
type Diagnoser interface {
	Diagnostics() map[string]float64
}

// PanicError reports a panic of a world, a learner or a policy.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // of the goroutine
}

// Error returns the value and the stack: a panic is a mistake in a program, and
// the stack says where.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// progressRounds is how often play reports progress.
const progressRounds = 50

// play lives through the rounds of a unit and stores its regret,
//
//	Regret_t = Σ_{s≤t} (R_s(S*_s) − R_s(S_s)),
//
// with the exact optimum S*_s under the true utilities. It returns
// ctx's error if that is done first, and a *PanicError if the world, the learner
// or its policy panics.
func (e *Experiment) play(ctx context.Context, u *unit, progress func(int)) (err error) {
	start := time.Now()
	at := func(t int, err error) error {
		if t == 0 {
			return fmt.Errorf("%s: policy %s, seed %d: %w", e.Name, u.Policy, u.Seed, err)
		}
		return fmt.Errorf("%s: policy %s, seed %d, round %d: %w", e.Name, u.Policy, u.Seed, t, err)
	}
	t := 0
	defer func() {
		if v := recover(); v != nil {
			err = at(t, &PanicError{v, debug.Stack()})
		}
	}()
	var contexts, customers, draws stream.Stream
	world := e.World(stream.New(u.Seed, 0, stream.World))
	if world == nil {
		return at(t, errors.New("the world is nil"))
	}
	learner, err := u.policy.New(world, stream.New(u.Seed, 0, stream.Learner))
	if err != nil {
		return at(t, err)
	}
	if learner == nil {
		return at(t, errors.New("the learner is nil: Policy.New must return a learner or an error"))
	}
	var utilities, shock []float64
	var best vitrine.Assortment
	regret, total := make([]float64, e.Rounds), 0.0
	for t = 1; t <= e.Rounds; t++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		x := world.Context(contexts.At(u.Seed, t, stream.Contexts))
		n, d := x.Features.Dims()
		if err := x.Check(d); err != nil {
			return at(t, err)
		}
		utilities, shock = grow(utilities, n), grow(shock, n+1)
		env.At(world, t).Utilities(utilities, x)
		gumbel(shock, customers.At(u.Seed, t, stream.Customers))

		policy := learner.Policy()
		if policy == nil {
			return at(t, errors.New("the learner's policy is nil"))
		}
		offer := policy.Offer(x, draws.At(u.Seed, t, stream.Policy))
		s := offer.Assortment
		if err := e.check(s, n); err != nil {
			return at(t, err)
		}
		var optimum float64
		best, optimum = assortment.Maximize(best, e.Constraint, utilities, x.Revenue)
		total += optimum - vitrine.ExpectedRevenue(s, utilities, x.Revenue)
		if math.IsNaN(total) || math.IsInf(total, 0) {
			return at(t, fmt.Errorf("regret is %v: the true utilities or the revenues are not finite, or too large", total))
		}
		regret[t-1] = total

		round := vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choose(s, utilities, shock)}
		if err := learner.Observe(round); err != nil {
			return at(t, err)
		}
		if t%progressRounds == 0 {
			progress(progressRounds)
		}
	}
	progress(e.Rounds % progressRounds)
	if d, ok := learner.(Diagnoser); ok {
		u.Diagnostics = d.Diagnostics()
	}
	u.Regret, u.Seconds = regret, time.Since(start).Seconds()
	return nil
}

func (e *Experiment) check(s vitrine.Assortment, n int) error {
	if err := s.Check(n); err != nil {
		return fmt.Errorf("infeasible offer: %w", err)
	}
	if !e.Constraint.Contains(s) {
		return fmt.Errorf("infeasible offer: %v is not in the feasible family", s)
	}
	return nil
}

// gumbel draws independent standard Gumbel shocks.
func gumbel(shock []float64, rng *rand.Rand) {
	for i := range shock {
		shock[i] = -math.Log(rng.ExpFloat64())
	}
}

func grow(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	return v[:n]
}
