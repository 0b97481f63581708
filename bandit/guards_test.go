package bandit

import (
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit/bandittest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// If a request's family contains larger sets, no policy shows more than MaxShown items; a smaller one is kept to.
func TestNoPolicyShowsMoreThanSize(t *testing.T) {
	size := []int{1, 1, 1, 1, 1, 1, 1, 1}
	slots := make([]assortment.Slot, paperSize+3)
	rules := func(least, most int) *assortment.Quota {
		l := fatal.Or(assortment.NewQuota(assortment.Rules{Items: paperItems, Min: least, Max: most}))(t)
		return l
	}
	shelf := fatal.Or(assortment.NewQuota(assortment.Rules{Items: paperItems, Max: assortment.NoLimit,
		Weights: assortment.WeightsOf(size, paperSize+2)}))(t)
	places := fatal.Or(assortment.NewSlots(paperItems, slots, 0))(t)
	for name, learner := range learners() {
		t.Run(name, func(t *testing.T) {
			p := paperProblem()
			l := learner(p)
			bound := paperSize
			if strings.HasPrefix(name, "log-barrier") {
				bound = 2 // its table's
			}
			for s := range 30 { // both phases, and random policies
				for what, family := range map[string]vitrine.Constraint{
					"AtMost": assortment.AtMost(paperSize + 5), "all": rules(0, assortment.NoLimit),
					"at least": rules(2, 7), "space": shelf, "slots": places,
					"one": assortment.AtMost(1), "two": rules(2, 2),
				} {
					x := paperContext(s)
					x.Feasible = family
					got := l.Policy().Offer(x, newRand()).Assortment
					if len(got) > bound || !family.Contains(got) {
						t.Fatalf("round %d, %s: %v is shown, at most %d items may be, and those of the family", s, what,
							got, bound)
					}
				}
				x := paperContext(s)
				fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: l.Policy().Offer(x, newRand())}))
			}
			x := paperContext(0)
			x.Feasible = rules(paperSize+1, paperSize+2)
			func() {
				defer func() {
					if got, want := fmt.Sprint(recover()),
						"the feasible family of a context has no set of at most"; !strings.Contains(got, want) {
						t.Errorf("panic of %s, want one that says %q", got, want)
					}
				}()
				l.Policy().Offer(x, newRand())
			}()
		})
	}
}

// countedQuota counts how often it is limited.
type countedQuota struct {
	*assortment.Quota
	limited int
}

func (q *countedQuota) Limit(maximum int) (vitrine.Constraint, error) {
	q.limited++
	return q.Quota.Limit(maximum)
}

// The problem's own family is restricted, too, once for all offers.
func TestProblemsFamilyIsLimited(t *testing.T) {
	p := paperProblem()
	family := &countedQuota{Quota: fatal.Or(assortment.NewQuota(assortment.Rules{Items: paperItems, Max: paperSize + 2}))(t)}
	p.Constraint = family
	for name, learner := range learners() {
		l := learner(p)
		limited := family.limited
		for s := range 30 {
			x := paperContext(s)
			offer := l.Policy().Offer(x, newRand())
			if len(offer.Assortment) > paperSize {
				t.Fatalf("%s, round %d: %v is shown, at most %d items may be", name, s, offer.Assortment, paperSize)
			}
			fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer}))
		}
		expect.Equal(t, family.limited, limited, name+" limits the family for offers n times")
	}
	good := must(NewFeelGood(p, paperModel(), DefaultFeelGoodOptions(), newRand())).(*FeelGood)
	if s := good.past.family.MaxGain(nil, []float64{1, 1, 1, 1, 1, 1, 1, 1}); len(s) != paperSize {
		t.Errorf("feel-good-ts expects revenue of %d items", len(s))
	}
	p.Constraint = fatal.Or(assortment.NewQuota(assortment.Rules{Items: paperItems, Min: paperSize + 1, Max: paperSize + 2}))(t)
	expect.Part(p.Check())(t, fmt.Sprintf("size = %d: the constraint: ", paperSize))
	p.Constraint = (*assortment.Quota)(nil)
	expect.Part(p.Check())(t, "the problem has no constraint")
}

// A round with a feasible family of another number of items is refused by name.
func TestFamilyOfAnotherNumberOfItemsIsRefused(t *testing.T) {
	family := fatal.Or(assortment.NewQuota(assortment.Rules{Items: paperItems + 1, Max: 2}))(t)
	for name, learner := range learners() {
		x := paperContext(0)
		x.Feasible = family
		expect.Part(learner(paperProblem()).Observe(vitrine.Round{Context: x,
			Offer: vitrine.Offer{Assortment: vitrine.Assortment{1}}}))(t, "context has 8 items, its feasible family has 9", name)
	}
}

// A nil model is an error that names the constructor.
func TestNilModelsAreNamed(t *testing.T) {
	p := paperProblem()
	var typed *utility.MLP
	for _, m := range []utility.Model{nil, typed} {
		_, onl := NewONL(p, m, DefaultONLOptions(), newRand())
		_, greedy := NewGreedy(p, m, DefaultGreedyOptions(), newRand())
		_, eps := NewEpsGreedy(p, m, DefaultEpsGreedyOptions(), newRand())
		_, barrier := NewLogBarrier(p, m, DefaultLogBarrierOptions(), newRand())
		_, good := NewFeelGood(p, m, DefaultFeelGoodOptions(), newRand())
		_, bma := NewBMA(p, []Expert{{Model: utility.NewLinear(paperFeatures, true)}, {Model: m}}, DefaultBMAOptions(),
			newRand())
		for want, err := range map[string]error{
			"NewONL: the utility model is nil": onl, "NewGreedy: the utility model is nil": greedy,
			"NewEpsGreedy: the utility model is nil":  eps,
			"NewLogBarrier: the utility model is nil": barrier, "NewFeelGood: the utility model is nil": good,
			"the model of expert 2 is nil": bma,
		} {
			expect.Part(err)(t, want)
		}
	}
	var basis *utility.Expansion
	_, ucb := NewUCBOn(p, basis, DefaultUCBOptions())
	_, ts := NewTSOn(p, basis, DefaultTSOptions())
	_, ofu := NewOFUOn(p, basis, DefaultOFUOptions())
	for want, err := range map[string]error{"NewUCBOn": ucb, "NewTSOn": ts, "NewOFUOn": ofu} {
		expect.Part(err)(t, want+": the utility model is nil")
	}
}

// tilted is a family without a String, one for each tilt.
type tilted struct {
	sine
	tilt float64
}

func (m tilted) Utilities(dst, w []float64, x *mat.Dense) {
	m.sine.Utilities(dst, w, x)
	for i := range dst {
		dst[i] += m.tilt * x.At(i, 0)
	}
}

// A snapshot is not read by a family of the same type and dimensions that
// computes something else.
func TestSnapshotsOfAnotherFamilyAreRefused(t *testing.T) {
	p := paperProblem()
	for name, learner := range map[string]func(m utility.Model) vitrine.Learner{
		"onl-mnl": func(m utility.Model) vitrine.Learner { return must(NewONL(p, m, DefaultONLOptions(), newRand())) },
		"eps-greedy-mnl": func(m utility.Model) vitrine.Learner {
			return must(NewEpsGreedy(p, m, DefaultEpsGreedyOptions(), newRand()))
		},
		"feel-good-ts": func(m utility.Model) vitrine.Learner {
			return must(NewFeelGood(p, m, DefaultFeelGoodOptions(), newRand()))
		},
		"bma-mnl": func(m utility.Model) vitrine.Learner {
			return must(NewBMA(p, []Expert{{Model: m}, {Model: m, MemoryRounds: 30}}, DefaultBMAOptions(), newRand()))
		},
	} {
		data, err := learner(tilted{sine{paperFeatures}, 1}).(bandittest.Snapshotter).MarshalBinary()
		fatal.If(t, err)
		expect.Error(t, learner(tilted{sine{paperFeatures}, 1}).(bandittest.Snapshotter).UnmarshalBinary(data), nil,
			name, "a snapshot of the same family")
		err = learner(tilted{sine{paperFeatures}, 1.5}).(bandittest.Snapshotter).UnmarshalBinary(data)
		expect.Part(err)(t, "bandit.tilted d_w=3 fingerprint=", name)
	}
}
