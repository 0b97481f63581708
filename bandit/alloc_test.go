//go:build !race

package bandit

import (
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/fatal"
)

// The race detector makes pools forget on purpose, so this test is not for it.

// Offer allocates only the assortment that it returns, and Observe only the growing log of a likelihood over all
// rounds. The posteriors of BMA-MNL, also within Wide, are frozen, and made again in each round.
func TestSteadyStateAllocations(t *testing.T) {
	for name, learner := range learners() {
		t.Run(name, func(t *testing.T) {
			p := paperProblem()
			p.Rounds = 1 << 20
			l := learner(p)
			rng := newRand()
			x := paperContext(0)
			for s := range 400 {
				offer := l.Policy().Offer(x, rng)
				fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choice(s % 2)}))
			}
			pi := l.Policy()
			offer := pi.Offer(x, rng)
			if got := testing.AllocsPerRun(200, func() { pi.Offer(x, rng) }); got > 1 {
				t.Errorf("Offer allocates %v times, want once", got)
			}
			if _, ok := l.(*FeelGood); ok {
				return // it keeps every round and factors a matrix in each
			}
			if strings.HasPrefix(name, "bma-mnl") || name == "wide" {
				return
			}
			r := vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Outside}
			if got := testing.AllocsPerRun(100, func() {
				fatal.If(t, l.Observe(r))
			}); got > 0 {
				t.Errorf("Observe allocates %v times, want none", got)
			}
		})
	}
}
