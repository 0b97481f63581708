package engine_test

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/bandit/policy"
	"vitrine/internal/fatal"
	"vitrine/offpolicy"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// events yields the events of a log.
func events(t *testing.T, store engine.Log) iter.Seq[eventlog.Event] {
	t.Helper()
	return func(yield func(eventlog.Event) bool) {
		for entry, err := range store.Entries(t.Context(), 1) {
			fatal.If(t, err)
			event := fatal.Or(eventlog.Decode(entry))(t)
			if !yield(event) {
				return
			}
		}
	}
}

// written returns a log of events of the placement home.
func written(t *testing.T, bodies ...eventlog.Body) *memlog.Store {
	t.Helper()
	store := new(memlog.Store)
	for _, body := range bodies {
		entry := fatal.Or((&eventlog.Event{Placement: "home", Body: body}).Encode(nil))(t)
		fatal.Or(store.Append(t.Context(), entry))(t)
	}
	return store
}

// offers returns the offers of a log.
func offers(t *testing.T, store engine.Log) (list []*eventlog.Offered) {
	t.Helper()
	for e := range events(t, store) {
		if o, ok := e.Body.(*eventlog.Offered); ok {
			list = append(list, o)
		}
	}
	return list
}

// The log holds the law by which a set was drawn: sets and items are shown as often as it says, and it gives the log's
// propensity. Exploration by swaps shows the policy's set, or one with another item, that the request's rules allow.
func TestLogHasTheLaw(t *testing.T) {
	const n, rounds, share = 5, 1500, 0.4
	for name, c := range map[string]struct {
		explore string
		change  func(*api.Request)
		sets    int // that are shown
	}{
		"sets":       {"sets", func(*api.Request) {}, 5 + 10},
		"full pages": {"sets", func(r *api.Request) { r.MinSize = 2 }, 10},
		"slots":      {"swaps", func(*api.Request) {}, 1 + 2*3},
		"slots under rules": {"swaps", func(r *api.Request) {
			r.Limits = []api.Limit{{Items: []string{"sku0", "sku2"}, Max: new(1)}}
		}, 1 + 2 + 3},
		"pinned items": {"swaps", func(r *api.Request) { r.Include = []string{"sku0"} }, 1 + 3},
		"slots of a page": {"swaps", func(r *api.Request) {
			r.Slots = []api.Slot{{Exclude: []string{"sku3"}}, {Exclude: []string{"sku4"}}}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memlog.Store)
			e := opened(t, engine.Options{Store: store, Build: func(setup.Spec) (vitrine.Learner, error) {
				return &always{offer: func(*vitrine.Context) vitrine.Offer {
					return vitrine.Offer{Assortment: vitrine.Assortment{0, 1}, Propensity: 1}
				}}, nil
			}})
			put(t, e, "home", fmt.Sprintf(
				`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"explore","explore":%q,"explore_share":%v}`, c.explore, share))
			for range rounds {
				r := stock("", n)
				c.change(r)
				decide(t, e, "home", r, 0)
			}
			shown, items := map[string]float64{}, make([]float64, n)
			var law offpolicy.SamplingLaw
			propensity := map[string]float64{}
			for _, o := range offers(t, store) {
				s := make(vitrine.Assortment, len(o.Shown))
				for k, i := range o.Shown {
					s[k] = int(i)
					items[i]++
				}
				slices.Sort(s)
				if law = offer.LawOf(o); law == nil {
					t.Fatal("an offer without its law")
				}
				p := law.Propensity(s)
				if math.Abs(p-o.Propensity) > 1e-12 || p == 0 {
					t.Fatalf("%v has the propensity %v, and %v by its law", s, o.Propensity, p)
				}
				if by := o.Mode == offer.ByChance; c.explore == "swaps" &&
					by != !slices.Equal(s, vitrine.Assortment{0, 1}) {
					t.Fatalf("%v was found in way %d", s, o.Mode)
				}
				shown[fmt.Sprint(s)]++
				propensity[fmt.Sprint(s)] = p
			}
			total := 0.0
			for s, p := range propensity {
				total += p
				if z := (shown[s] - rounds*p) / math.Sqrt(rounds*p*(1-p)); math.Abs(z) > 4.5 {
					t.Errorf("%s is shown %v times of %d, and its propensity is %v", s, shown[s], rounds, p)
				}
			}
			if math.Abs(total-1) > 1e-9 || c.sets > 0 && len(shown) != c.sets {
				t.Errorf("%d sets, want %d, with propensities of sum %v", len(shown), c.sets, total)
			}
			for i, count := range items {
				p := law.Inclusion(i)
				if se := math.Sqrt(rounds * p * (1 - p)); math.Abs(count-rounds*p) > 4.5*se+1e-9 {
					t.Errorf("item %d is shown %v times of %d, want a share of %v", i, count, rounds, p)
				}
			}
		})
	}
}

// The decisions of the mode "explore" with a propensity are an unbiased sample: over the possible sets, the weights 1/μ
// average 1, for every policy, before it learned and later; or no decision has a propensity, whatever its set.
func TestExploreWeights(t *testing.T) {
	const n, share, rounds = 4, 0.4, 400
	sets := 4.0 + 6
	known := map[string]bool{}
	for _, name := range policy.Names() {
		if p, _ := policy.Named(name); p.Learner.Unfit != "" {
			continue
		}
		for _, explore := range []string{"sets", "swaps"} {
			store := new(memlog.Store)
			e := opened(t, engine.Options{Store: store})
			put(t, e, "home", fmt.Sprintf(
				`{"max_size":2,"max_request_items":10,"features":[{"name":"x","kind":"number"}],"policy":{"name":%q},"mode":"explore","explore":%q,"explore_share":%v}`,
				name, explore, share))
			for _, phase := range []string{"first", "later"} {
				var weights []float64
				missing := 0
				for i := range rounds {
					a := decide(t, e, "home", stock(fmt.Sprint(phase, i), n), 0)
					page := float64(len(a.IDs()))
					switch {
					case a.Propensity == 0:
						missing++
					case explore == "sets":
						weights = append(weights, 1/(a.Propensity*sets))
					default: // the policy's page, and those with one item swapped
						weights = append(weights, 1/(a.Propensity*(1+page*(n-page))))
					}
				}
				what := fmt.Sprintf("%s, %s, %s", name, explore, phase)
				if missing > 0 && len(weights) > 0 {
					t.Errorf("%s: %d decisions have a propensity, and %d have none", what, len(weights), missing)
				}
				if len(weights) > 0 {
					known[name+" "+explore] = true
					mean, sd := stat.MeanStdDev(weights, nil)
					if math.Abs(mean-1) > 4*sd/math.Sqrt(float64(len(weights)))+1e-9 {
						t.Errorf("%s: the mean of 1/μ is %.3f ± %.3f, want 1", what, mean,
							sd/math.Sqrt(float64(len(weights))))
					}
				}
				for i := range 60 {
					choice := ""
					if a, err := e.Decision(t.Context(), "home", fmt.Sprint(phase, i)); err == nil && i%3 > 0 {
						choice = a.Offer.IDs()[0]
					}
					fatal.If(t, e.Outcome(t.Context(), "home", fmt.Sprint(phase, i), choice, 0))
				}
				wait(t, e)
			}
		}
	}
	for _, random := range []string{"uniform", "eps-greedy-mnl", "log-barrier-mnl"} {
		if !known[random+" sets"] {
			t.Errorf("%s has a law in closed form, and its decisions have no propensity", random)
		}
	}
	if !known["ucb-mnl swaps"] {
		t.Error("a certain policy that explores by swaps has no propensities")
	}
}

// A random policy that cannot swap an item of its page gets no propensity either: otherwise only such pages would have
// one.
func TestSlotsWithoutSwaps(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"uniform"},"mode":"explore","explore":"swaps"}`)
	for range 50 {
		if a, err := e.Decide(t.Context(), "home", stock("", 2), 0); err != nil || a.Propensity != 0 {
			t.Fatalf("%v has the propensity %v, %v", a.IDs(), a.Propensity, err)
		}
	}
}

// Without the rows of all items a law is meaningless; a certain policy in the mode learn follows one.
func TestLawsThatAreNotLogged(t *testing.T) {
	for config, want := range map[string]bool{
		`"mode":"explore","log_items":"shown"`: false,
		`"mode":"learn","log_items":"all"`:     true,
		`"mode":"learn"`:                       false,
	} {
		store := new(memlog.Store)
		e := opened(t, engine.Options{Store: store, Build: buildToy})
		put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},`+config+`}`)
		decide(t, e, "home", stock("", 4), 0)
		if law := offer.LawOf(offers(t, store)[0]); (law != nil) != want {
			t.Errorf("%s: the law is %v", config, law)
		}
	}
}
