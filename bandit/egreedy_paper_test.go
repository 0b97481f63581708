package bandit

import (
	"math"
	"slices"
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/stream"
	"vitrine/mle"
)

func newPaperEpsGreedy(t *testing.T, o EpsGreedyOptions) *EpsGreedy {
	t.Helper()
	l, err := NewEpsGreedy(paperProblem(), paperModel(), o, stream.New(1, 0, stream.Learner))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Appendix, Implementation of ε-greedy-MNL: after t = 2ᵏ − 1 the parameters
// are updated with the observations of the epoch that ends, by Adam from the
// parameters there were.
func TestEpsGreedyEpochs(t *testing.T) {
	o := DefaultEpsGreedyOptions()
	o.Steps, o.Rate = 30, 1e-2
	l := newPaperEpsGreedy(t, o)
	w := slices.Clone(l.w)
	epoch := mle.NewChoices(paperFeatures)
	for s, r := range linearHistory(t, 70) {
		observeAll(t, l, []vitrine.Round{r})
		epoch.Append(r.Context.Features, r.Offer.Assortment, r.Choice)
		if slices.Contains([]int{1, 3, 7, 15, 31, 63}, s+1) {
			mle.Adam{Rate: o.Rate, Steps: o.Steps}.Minimize(&mle.NLL{Model: l.model, Choices: epoch}, w)
			epoch.Reset()
		}
		if !slices.Equal(l.w, w) {
			t.Fatalf("after round %d the parameters are not those of the schedule", s+1)
		}
	}
}

// Appendix: ε starts at 0.1 and decays by 0.995 a step to no less than 0.001.
func TestEpsGreedyDecay(t *testing.T) {
	o := DefaultEpsGreedyOptions()
	o.Steps = 0
	l := newPaperEpsGreedy(t, o)
	for s, r := range linearHistory(t, 50) {
		wantNear(t, "ε_t", l.Policy().(*epsGreedy).epsilon, 0.1*math.Pow(0.995, float64(s)), 1e-12)
		observeAll(t, l, []vitrine.Round{r})
	}
	l.rounds = 2000
	l.policy = nil
	wantNear(t, "ε_2001", l.Policy().(*epsGreedy).epsilon, 0.001, 0)
}

// The propensity is that of the mixture: it sums to 1 over the sets that are
// offered, each set's frequency is its propensity.
func TestEpsGreedyPropensity(t *testing.T) {
	o := DefaultEpsGreedyOptions()
	o.Epsilon, o.Decay = 0.5, 1
	l := newPaperEpsGreedy(t, o)
	x, rng, pi := paperContext(3), newRand(), l.Policy()
	const draws = 40_000
	count, propensity := map[string]int{}, map[string]float64{}
	for range draws {
		offer := pi.Offer(x, rng)
		key := string(rune(0))
		for _, i := range offer.Assortment {
			key += string(rune('a' + i))
		}
		count[key]++
		propensity[key] = offer.Propensity
	}
	total := 0.0
	for key, p := range propensity {
		total += p
		if se := math.Sqrt(p * (1 - p) / draws); math.Abs(float64(count[key])/draws-p) > 5*se {
			t.Errorf("set %q: frequency %v, propensity %v", key, float64(count[key])/draws, p)
		}
	}
	wantNear(t, "the sum of the propensities of the 92 sets", total, 1, 1e-9)
}

// Where nothing earns, the greedy set is empty, which the uniform policy never
// draws: its propensity is 1 − ε, and that of the others ε over their number.
func TestEpsGreedyPropensityOfTheEmptySet(t *testing.T) {
	o := DefaultEpsGreedyOptions()
	o.Epsilon, o.Decay = 0.25, 1
	l := newPaperEpsGreedy(t, o)
	x, rng, pi := paperContext(3), newRand(), l.Policy()
	x.Revenue = make([]float64, x.NumItems())
	const draws = 10_000
	empty := 0
	for range draws {
		offer := pi.Offer(x, rng)
		if len(offer.Assortment) > 0 {
			wantNear(t, "the propensity of a set", offer.Propensity, 0.25/92, 1e-12)
			continue
		}
		empty++
		wantNear(t, "the propensity of the empty set", offer.Propensity, 0.75, 1e-12)
	}
	if se := math.Sqrt(0.75 * 0.25 / draws); math.Abs(float64(empty)/draws-0.75) > 5*se {
		t.Errorf("the empty set has the frequency %v, want 0.75 ± %v", float64(empty)/draws, se)
	}
}

// Where the family has ∅ alone it is offered for certain.
func TestEpsGreedyPropensityWhereNothingMayBeShown(t *testing.T) {
	l := newPaperEpsGreedy(t, DefaultEpsGreedyOptions())
	x := paperContext(3)
	x.Feasible = assortment.AtMost(0)
	if offer := l.Policy().Offer(x, newRand()); len(offer.Assortment) != 0 || offer.Propensity != 1 {
		t.Errorf("offer %v, want ∅ with propensity 1", offer)
	}
}

func TestEpsGreedyRestartDrawsWeightsAfresh(t *testing.T) {
	o := DefaultEpsGreedyOptions()
	o.Steps, o.Restart = 0, true
	l := newPaperEpsGreedy(t, o)
	before := slices.Clone(l.w)
	observeAll(t, l, linearHistory(t, 1))
	if slices.Equal(before, l.w) {
		t.Error("the weights after the first epoch are the initial ones")
	}
}
