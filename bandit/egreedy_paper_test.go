package bandit

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/mle"
)

func newPaperEpsGreedy(t *testing.T, o EpsGreedyOptions) *EpsGreedy {
	t.Helper()
	l := fatal.Or(NewEpsGreedy(paperProblem(), paperModel(), o, stream.New(1, 0, stream.Learner)))(t)
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
		expect.List(fatal.T(t), l.w, w, "after round", s+1, "the parameters differ from the schedule's")
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

// Zhang and Luo (2024), Algorithm 1 with Equation 4: ε_m = (N K Err(2^{m−2}))^{1/3} in epoch m, the rounds 2^{m−1}, …,
// 2^m − 1. With Err(n) = d_w/(1000 n), N = 8, K = 3 and d_w = 21 that is (0.504/2^{m−2})^{1/3}. The error is unknown in
// the first epoch.
func TestEpsGreedyTheorySchedule(t *testing.T) {
	o := DefaultEpsGreedyOptions()
	o.Steps, o.Schedule, o.ErrConstant = 0, "theory", 1e-3
	l := newPaperEpsGreedy(t, o)
	x := paperContext(0)
	wantNear(t, "N K d_w / 1000", float64(x.NumItems()*paperSize*len(l.w))/1000, 0.504, 1e-12)
	for s, r := range linearHistory(t, 40) {
		epoch := 1 + int(math.Log2(float64(s+1)))
		want := 1.0
		if epoch > 1 {
			want = math.Cbrt(0.504 / math.Pow(2, float64(epoch-2)))
		}
		wantNear(t, "ε_t", l.Policy().(*epsGreedy).share(x.NumItems()), want, 1e-12)
		observeAll(t, l, []vitrine.Round{r})
	}
	// A slower rate, and a constant so large that all rounds explore.
	o.ErrRate = 0.5
	slow := newPaperEpsGreedy(t, o)
	observeAll(t, slow, linearHistory(t, 40))
	wantNear(t, "ε_t at Err(n) = d_w/(1000 √n)", slow.Policy().(*epsGreedy).share(8), math.Cbrt(0.504/4), 1e-12)
	o.ErrConstant = 10
	wantNear(t, "ε_t at a large error", newPaperEpsGreedy(t, o).Policy().(*epsGreedy).share(8), 1, 0)
}

// Zhang and Luo (2024), Equation 9: the online oracle uses one ε for all rounds, (N K Reg(T)/T)^{1/3}, ∝ T^(−1/6) for a
// regret of √T.
func TestEpsGreedyTheoryScheduleOnline(t *testing.T) {
	o := DefaultEpsGreedyOptions()
	o.Oracle, o.Schedule, o.ErrConstant, o.ErrRate = "online", "theory", 1e-3, 0.5
	l := newPaperEpsGreedy(t, o)
	want := math.Cbrt(0.504 / math.Sqrt(paperRounds))
	for _, r := range linearHistory(t, 20) {
		wantNear(t, "ε_t", l.Policy().(*epsGreedy).share(8), want, 1e-12)
		observeAll(t, l, []vitrine.Round{r})
	}
}

// opaque hides everything of a family but its two methods.
type opaque struct{ vitrine.Constraint }

// bundle is the family of at most two of the items 3, …, 7, or of 0, 1 and 2 together.
type bundle struct{}

func (bundle) Contains(s vitrine.Assortment) bool {
	return slices.Equal(s, []int{0, 1, 2}) || len(s) <= 2 && (len(s) == 0 || s[0] >= 3)
}

func (bundle) MaxGain(dst vitrine.Assortment, gain []float64) vitrine.Assortment {
	dst = append(dst[:0], 0, 1, 2)
	others := slices.Clone(gain)
	clear(others[:3])
	rest := assortment.AtMost(2).MaxGain(nil, others)
	total := 0.0
	for _, i := range rest {
		total += gain[i]
	}
	if total >= gain[0]+gain[1]+gain[2] {
		return append(dst[:0], rest...)
	}
	return dst
}

// epsGreedyFamilies are families of 8 items that allow single items, or some of them, or none.
func epsGreedyFamilies(t *testing.T) map[string]vitrine.Constraint {
	t.Helper()
	rules := func(r assortment.Rules) *assortment.Quota {
		r.Items = paperItems
		l := fatal.Or(assortment.NewQuota(r))(t)
		return l
	}
	space := rules(assortment.Rules{Min: 1, Max: 3, Weights: assortment.WeightsOf([]int{1, 2, 3, 4, 5, 6, 7, 3}, 6)})
	slots := fatal.Or(assortment.NewSlots(paperItems, []assortment.Slot{{Name: "a", Exclude: []int{0, 1, 2, 7}},
		{Name: "b", Exclude: []int{2, 3, 7}}}, 2))(t)
	pairs := rules(assortment.Rules{Min: 2, Max: 3, Exclude: []int{4}})
	return map[string]vitrine.Constraint{
		"at most":      assortment.AtMost(paperSize),
		"one item":     assortment.AtMost(1),
		"nothing":      assortment.AtMost(0),
		"at least two": pairs,
		"opaque":       opaque{pairs},
		"pinned":       rules(assortment.Rules{Max: 3, Include: []int{5}}),
		"nothing fits": rules(assortment.Rules{Max: 1, Include: []int{5}}),
		"a demanded one": rules(assortment.Rules{Max: 3,
			Groups: []assortment.Group{{Name: "g", Items: []int{1, 2, 3}, Min: 1, Max: 2}}}),
		"space":  space,
		"slots":  slots,
		"bundle": bundle{},
	}
}

// The law is the mixture of Equation 4, written out over all sets of the family: q(S) = (1 − ε) 1{S is best} + (ε/n)
// Σ_i 1{S = S_i} for the n items that some set shows. Offers follow its frequencies, and their propensities are its
// values.
func TestEpsGreedyExploresByItems(t *testing.T) {
	for name, family := range epsGreedyFamilies(t) {
		for _, ownFamily := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, own family %v", name, ownFamily), func(t *testing.T) {
				const epsilon = 0.4
				o := DefaultEpsGreedyOptions()
				o.Epsilon, o.Decay = epsilon, 1
				p := paperProblem()
				x := paperContext(3) // of unequal revenues
				if ownFamily {
					x.Feasible = family
				} else if p.Constraint = family; name == "one item" {
					p.MaxShown = 1
				} else if name == "nothing" {
					return // a problem shows something
				}
				l := fatal.Or(NewEpsGreedy(p, paperModel(), o, newRand()))(t)
				u := make([]float64, paperItems)
				l.model.Utilities(u, l.w, x.Features)
				all := fatal.Or(assortment.Enumerate(nil, family, paperSize, paperItems, 1000))(t)
				law, shown := map[string]float64{}, map[int]vitrine.Assortment{}
				best, maximum := vitrine.Assortment(nil), 0.0
				for m := range all.Len() {
					s := all.At(m)
					if r := vitrine.ExpectedRevenue(s, u, x.Revenue); r > maximum {
						best, maximum = s, r
					}
					for _, i := range s {
						if have, ok := shown[i]; !ok || len(s) < len(have) {
							shown[i] = s
						}
					}
				}
				for i, smallest := range shown {
					s := assortment.Smallest(nil, family, i, paperItems)
					if len(s) != len(smallest) || !slices.Contains(s, i) || !family.Contains(s) {
						t.Fatalf("the smallest set with item %d is %v, and %v is one", i, s, smallest)
					}
					law[fmt.Sprint(s)] += epsilon / float64(len(shown))
				}
				if len(shown) == 0 {
					law["[]"] = epsilon
				}
				law[fmt.Sprint(best)] += 1 - epsilon

				rng, pi, count := newRand(), l.Policy(), map[string]int{}
				const draws = 10_000
				for range draws {
					offer := pi.Offer(x, rng)
					count[fmt.Sprint(offer.Assortment)]++
					wantNear(t, "the propensity of "+fmt.Sprint(offer.Assortment), offer.Propensity,
						law[fmt.Sprint(offer.Assortment)], 1e-12)
				}
				for s, q := range law {
					if se := math.Sqrt(q * (1 - q) / draws); math.Abs(float64(count[s])/draws-q) > 5*se {
						t.Errorf("set %s has the frequency %v, want %v ± %v", s, float64(count[s])/draws, q, se)
					}
				}
			})
		}
	}
}

// With explore = "set" the law is (1 − ε) 1{S is best} + ε/|𝒮 \ {∅}|. If the family cannot be sampled uniformly there
// is no closed form, unless ε is 0.
func TestEpsGreedyExploresBySets(t *testing.T) {
	for name, family := range epsGreedyFamilies(t) {
		t.Run(name, func(t *testing.T) {
			const epsilon, draws = 0.5, 20_000
			o := DefaultEpsGreedyOptions()
			o.Explore, o.Epsilon, o.Decay = "set", epsilon, 1
			l := newPaperEpsGreedy(t, o)
			x, rng := paperContext(3), newRand()
			x.Feasible = family
			_, sampled := assortment.SamplerOf(family)
			all := fatal.Or(assortment.Enumerate(nil, family, paperSize, paperItems, 1000))(t)
			best := l.Policy().(*epsGreedy).greedy.Offer(x, rng).Assortment
			pi, count, propensity := l.Policy(), map[string]int{}, map[string]float64{}
			for range draws {
				offer := pi.Offer(x, rng)
				key := fmt.Sprint(offer.Assortment)
				count[key]++
				propensity[key] = offer.Propensity
				want := epsilon / float64(max(all.Len(), 1))
				if slices.Equal(offer.Assortment, best) {
					want += 1 - epsilon
				}
				if !sampled {
					want = 0
				}
				wantNear(t, "the propensity of "+key, offer.Propensity, want, 1e-12)
			}
			total := 0.0
			for key, p := range propensity {
				total += p
				if se := math.Sqrt(p * (1 - p) / draws); sampled && math.Abs(float64(count[key])/draws-p) > 5*se {
					t.Errorf("set %s: frequency %v, propensity %v", key, float64(count[key])/draws, p)
				}
			}
			if sampled {
				wantNear(t, "the sum of the propensities", total, 1, 1e-9)
			}
		})
	}
	o := DefaultEpsGreedyOptions()
	o.Explore, o.Epsilon, o.Floor = "set", 0, 0
	x := paperContext(3)
	x.Feasible = opaque{assortment.AtMost(paperSize)}
	wantNear(t, "the propensity where nothing explores", newPaperEpsGreedy(t, o).Policy().Offer(x,
		newRand()).Propensity, 1, 0)
}

// Slots of too many kinds of items allow no uniform draw, and so no propensity by sets; by items they do.
func TestEpsGreedyPropensityOfManySlots(t *testing.T) {
	var slots []assortment.Slot
	const n = 40
	for a := range 8 {
		var exclude []int
		for i := range n {
			if i%8 != a && (i/8+a)%3 > 0 {
				exclude = append(exclude, i)
			}
		}
		slots = append(slots, assortment.Slot{Name: "slot", Exclude: exclude})
	}
	family := fatal.Or(assortment.NewSlots(n, slots, 0))(t)
	if family.Uniform() {
		t.Fatal("the family can be sampled uniformly")
	}
	x := &vitrine.Context{Features: mat.NewDense(n, paperFeatures, nil), Feasible: family}
	env.Gaussian{}.Draw(x.Features, newRand())
	for explore, want := range map[string]float64{"item": 0.75, "set": 0} {
		o := DefaultEpsGreedyOptions()
		o.Explore, o.Epsilon = explore, 0.25
		p := paperProblem()
		p.MaxShown, p.Constraint = len(slots), assortment.AtMost(len(slots))
		l := fatal.Or(NewEpsGreedy(p, paperModel(), o, newRand()))(t)
		pi := l.Policy()
		best := pi.(*epsGreedy).greedy.Offer(x, nil).Assortment
		rng := newRand()
		for range 20 {
			if offer := pi.Offer(x, rng); slices.Equal(offer.Assortment, best) {
				wantNear(t, explore+": the propensity of the best set", offer.Propensity, want, 1e-12)
			} else if explore == "item" {
				wantNear(t, "the propensity of an item", offer.Propensity, 0.25/n, 1e-12)
			}
		}
	}
}

// If all items earn 0, the greedy set is empty, which exploration never draws: its propensity is 1 − ε, and the others'
// ε over their number.
func TestEpsGreedyPropensityOfTheEmptySet(t *testing.T) {
	for explore, others := range map[string]float64{"item": paperItems, "set": 92} {
		o := DefaultEpsGreedyOptions()
		o.Explore, o.Epsilon, o.Decay = explore, 0.25, 1
		l := newPaperEpsGreedy(t, o)
		x, rng, pi := paperContext(3), newRand(), l.Policy()
		x.Revenue = make([]float64, x.NumItems())
		const draws = 10_000
		empty := 0
		for range draws {
			offer := pi.Offer(x, rng)
			if len(offer.Assortment) > 0 {
				wantNear(t, "the propensity of a set", offer.Propensity, 0.25/others, 1e-12)
				continue
			}
			empty++
			wantNear(t, "the propensity of the empty set", offer.Propensity, 0.75, 1e-12)
		}
		if se := math.Sqrt(0.75 * 0.25 / draws); math.Abs(float64(empty)/draws-0.75) > 5*se {
			t.Errorf("the empty set has the frequency %v, want 0.75 ± %v", float64(empty)/draws, se)
		}
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
