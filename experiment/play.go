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

// game is a unit in play.
type game struct {
	*rounds
	learner vitrine.Learner
	program *Process // the learner, if it is a program
	draws   stream.Stream
	total   float64 // regret of the rounds so far
}

// play plays a unit's rounds and stores its regret,
//
//	Regret_t = Σ_{s≤t} (R_s(S*_s) − R_s(S_s)),
//
// with the exact optimum S*_s under the true utilities, in the best order if places have effects, and with all takes of
// a visit. It passes each round to watch before the learner observes it. If ctx ends first, play returns its error. If
// the world, the learner or its policy panics, play returns a *PanicError.
func (e *Experiment) play(ctx context.Context, u *unit, progress func(int), watch func(vitrine.Round)) (err error) {
	start, t := time.Now(), 0
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
		switch {
		case err == nil || err == ctx.Err():
		case t == 0:
			err = fmt.Errorf("%s: policy %s, seed %d: %w", e.Name, u.Policy, u.Seed, err)
		default:
			err = fmt.Errorf("%s: policy %s, seed %d, round %d: %w", e.Name, u.Policy, u.Seed, min(t, e.Rounds), err)
		}
	}()
	g := new(game)
	if g.rounds, err = e.rounds(u.Seed); err != nil {
		return err
	}
	if g.learner, err = u.policy.New(g.shoppers.World, stream.New(u.Seed, 0, stream.Learner)); err != nil {
		return err
	}
	if g.learner == nil {
		return errors.New("the learner is nil: Policy.New must return a learner or an error")
	}
	if g.program, _ = g.learner.(*Process); g.program != nil {
		defer g.program.end(0)
	}
	regret := make([]float64, e.Rounds)
	for t = 1; t <= e.Rounds; t++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		round, err := g.play(ctx)
		if err != nil {
			return err
		}
		regret[t-1] = g.total
		watch(round)
		if u.policy.FirstTakes {
			round.More = nil
		}
		if err := g.learner.Observe(round); err != nil {
			return err
		}
		if t%progressRounds == 0 {
			progress(progressRounds)
		}
	}
	if g.program != nil {
		if err := g.program.Close(); err != nil {
			return err
		}
		u.stderr = g.program.Stderr()
	}
	progress(e.Rounds % progressRounds)
	if d, ok := g.learner.(Diagnoser); ok {
		u.Diagnostics = d.Diagnostics()
	}
	u.Regret, u.Seconds = regret, time.Since(start).Seconds()
	return nil
}

// play plays the next round, and adds its regret to the total.
func (g *game) play(ctx context.Context) (round vitrine.Round, err error) {
	if err := g.next(); err != nil {
		return round, err
	}
	policy := g.learner.Policy()
	if policy == nil {
		return round, errors.New("the learner's policy is nil")
	}
	var offer vitrine.Offer
	if g.program == nil {
		offer = policy.Offer(g.Context, g.draws.At(g.shoppers.Seed, g.t, stream.Policy))
	} else if offer, err = g.program.Offer(ctx, g.Context); ctx.Err() != nil {
		return round, ctx.Err()
	}
	if err == nil {
		err = g.check(offer)
	}
	if err != nil {
		return round, err
	}
	s, earned := offer.Assortment, 0.0
	if g.effects == nil {
		earned = vitrine.ExpectedRevenue(s, g.Utilities, g.Context.Revenue)
	} else {
		offer.Order = g.display(offer, policy)
		earned = vitrine.OrderedRevenue(offer.Order, g.Utilities, g.effects, g.Context.Revenue)
	}
	if g.baskets != nil {
		earned = g.baskets.Revenue(g.Context, s, g.Shown(s, offer.Order, g.effects), earned)
	}
	if g.total += g.optimum - earned; math.IsNaN(g.total) || math.IsInf(g.total, 0) {
		return round, fmt.Errorf("regret is %v: the true utilities or the revenues are not finite, or too large",
			g.total)
	}
	round = vitrine.Round{Context: g.Context, Offer: offer}
	round.Choice, round.More = g.shoppers.Visit(&g.Shopper, g.t, s, offer.Order, g.effects)
	return round, nil
}

func (r *rounds) check(o vitrine.Offer) error {
	s := o.Assortment
	if !shows(r.shown, r.Context) {
		return errors.New("the policy changed the context's features or revenues: it must copy them first")
	}
	if err := o.Check(len(r.Utilities)); err != nil {
		return fmt.Errorf("infeasible offer: %w", err)
	}
	if !r.family.Contains(s) {
		return fmt.Errorf("infeasible offer: %v breaks the constraint", s)
	}
	if p := o.Propensity; !(p >= 0 && p <= 1+1e-9) {
		return fmt.Errorf("the offer's propensity is %v: must be from 0, unknown, to 1", p)
	}
	return nil
}
