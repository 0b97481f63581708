package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"vitrine"
	"vitrine/internal/stream"
)

// unit is a policy on a seed and, once played, its result.
type unit struct {
	Fingerprint string             `json:"fingerprint"`
	Policy      string             `json:"policy"`
	Seed        uint64             `json:"seed"`
	Seconds     float64            `json:"seconds"`
	Processor   float64            `json:"processor_seconds,omitempty"` // 0 if unknown
	Diagnostics map[string]float64 `json:"diagnostics,omitempty"`
	Regret      []float64          `json:"regret"` // cumulative, entry t−1 after round t

	policy Policy
	stderr string // standard error output of the learner's program, if it is a [Process]
}

// Diagnoser is a learner that reports diagnostics of a finished run, by name: ONL-MNL reports the κ of its data.
type Diagnoser interface {
	Diagnostics() map[string]float64
}

// PanicError reports that a world, a learner or a policy panicked.
type PanicError struct {
	Value any    // argument of the panic
	Stack []byte // stack of the goroutine
}

// Error returns the value and the stack: a panic is a programming error, and the stack locates it.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// progressRounds is the number of rounds between progress reports.
const progressRounds = 50

// play plays a unit's rounds and stores its regret,
//
//	Regret_t = Σ_{s≤t} (R_s(S*_s) − R_s(S_s)),
//
// with the exact optimum S*_s under the true utilities, in the best order if places have effects, and with all takes of a
// visit. It passes each round
// to watch before the learner observes it. If ctx ends first, play returns its error. If the world, the learner or its
// policy panics, play returns a *PanicError.
func (e *Experiment) play(ctx context.Context, u *unit, progress func(int), watch func(vitrine.Round)) (err error) {
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
	rounds, err := e.rounds(u.Seed)
	if err != nil {
		return at(t, err)
	}
	var draws stream.Stream
	learner, err := u.policy.New(rounds.shoppers.World, stream.New(u.Seed, 0, stream.Learner))
	if err != nil {
		return at(t, err)
	}
	if learner == nil {
		return at(t, errors.New("the learner is nil: Policy.New must return a learner or an error"))
	}
	program, _ := learner.(*Process)
	if program != nil {
		defer program.end(0)
	}
	regret, total := make([]float64, e.Rounds), 0.0
	for t = 1; t <= e.Rounds; t++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := rounds.next(); err != nil {
			return at(t, err)
		}
		policy := learner.Policy()
		if policy == nil {
			return at(t, errors.New("the learner's policy is nil"))
		}
		var offer vitrine.Offer
		if program != nil {
			offer, err = program.Offer(ctx, rounds.Context)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return at(t, err)
			}
		} else {
			offer = policy.Offer(rounds.Context, draws.At(u.Seed, t, stream.Policy))
		}
		s := offer.Assortment
		if err := e.check(offer, len(rounds.Utilities)); err != nil {
			return at(t, err)
		}
		earned := 0.0
		if rounds.effects == nil {
			earned = vitrine.ExpectedRevenue(s, rounds.Utilities, rounds.Context.Revenue)
		} else {
			offer.Order = rounds.display(offer, policy)
			earned = vitrine.OrderedRevenue(offer.Order, rounds.Utilities, rounds.effects, rounds.Context.Revenue)
		}
		if rounds.baskets != nil {
			earned = rounds.baskets.Revenue(rounds.Context, s, rounds.Shown(s, offer.Order, rounds.effects), earned)
		}
		total += rounds.optimum - earned
		if math.IsNaN(total) || math.IsInf(total, 0) {
			return at(t, fmt.Errorf("regret is %v: the true utilities or the revenues are not finite, or too large",
				total))
		}
		regret[t-1] = total

		round := vitrine.Round{Context: rounds.Context, Offer: offer}
		round.Choice, round.More = rounds.shoppers.Visit(&rounds.Shopper, t, s, offer.Order, rounds.effects)
		watch(round)
		if u.policy.FirstTakes {
			round.More = nil
		}
		if err := learner.Observe(round); err != nil {
			return at(t, err)
		}
		if t%progressRounds == 0 {
			progress(progressRounds)
		}
	}
	if program != nil {
		if err := program.Close(); err != nil {
			return at(e.Rounds, err)
		}
		u.stderr = program.Stderr()
	}
	progress(e.Rounds % progressRounds)
	if d, ok := learner.(Diagnoser); ok {
		u.Diagnostics = d.Diagnostics()
	}
	u.Regret, u.Seconds = regret, time.Since(start).Seconds()
	return nil
}

func (e *Experiment) check(o vitrine.Offer, n int) error {
	s := o.Assortment
	if err := o.Check(n); err != nil {
		return fmt.Errorf("infeasible offer: %w", err)
	}
	if !e.Constraint.Contains(s) {
		return fmt.Errorf("infeasible offer: %v is not in the feasible family", s)
	}
	return nil
}
