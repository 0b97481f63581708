package engine_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// curator shows the last items first, and claims an effect of log ½ in the second place on utilities of 0. It keeps the
// orders that it observes.
type curator struct {
	toy
	seen *[][]int
}

func (c *curator) Policy() vitrine.Policy { return c }

func (c *curator) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	n := x.NumItems()
	return vitrine.Offer{Assortment: vitrine.Assortment{0, n - 1}, Order: []int{n - 1, 0}, Propensity: 1}
}

func (c *curator) Utilities(dst []float64, _ *vitrine.Context) { clear(dst) }

func (c *curator) PlaceEffects() []float64 { return []float64{0, math.Log(0.5)} }

func (c *curator) Observe(r vitrine.Round) error {
	*c.seen = append(*c.seen, slices.Clone(r.Offer.Order))
	return c.toy.Observe(r)
}

// The answer keeps a policy's order, its effects count in the probabilities, and the learner observes the order shown,
// also a baseline's.
func TestOrdersOfPolicies(t *testing.T) {
	for _, mode := range []string{"learn", "shadow"} {
		var seen [][]int
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: func(s setup.Spec) (vitrine.Learner, error) {
			return &curator{toy{size: s.Size}, &seen}, nil
		}})
		put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"`+mode+`"}`)
		r, want := stock("a", 4), []string{"sku3", "sku0"}
		if mode == "shadow" {
			r.Baseline, want = []string{"sku2", "sku1"}, []string{"sku2", "sku1"}
		}
		a := decide(t, e, "home", r, 0)
		expect.List(t, a.IDs(), want, mode, "shown")
		// By hand: exp(u) = 1 and ½ beside the outside option's 1.
		if len(a.Probability) != 2 || math.Abs(a.Probability[0]-1/2.5) > 1e-12 ||
			math.Abs(a.Probability[1]-0.5/2.5) > 1e-12 {
			t.Errorf("%s: probabilities %v, want 0.4 and 0.2", mode, a.Probability)
		}
		fatal.If(t, e.Outcome(t.Context(), "home", "a", want[1], 1))
		wait(t, e)
		// The log holds the rows of the items shown, in the order of the request.
		if len(seen) == 0 || !slices.Equal(seen[len(seen)-1], []int{1, 0}) {
			t.Errorf("%s: the learner observed the orders %v, want [1 0]", mode, seen)
		}
	}
}

// A placement with position effects learns that its second place sells less, shows the better item first, and reaches
// the same state in a replay.
func TestPlacementWithPositionEffects(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	const config = `{"max_size":2,"features":[{"name":"x","kind":"number"}],"log_items":"shown",
		"policy":{"name":"ucb-mnl","constants":"tuned","radius":0.1,"position_effects":true}}`
	put(t, e, "home", config)
	rng := rand.New(rand.NewPCG(1, 1))
	gamma := []float64{0, -2}
	for round := range 400 {
		r := &api.Request{Decision: fmt.Sprint("d", round)}
		utility := map[string]float64{}
		for i := range 4 {
			x := rng.NormFloat64()
			utility[itemID(i)] = x
			r.Items = append(r.Items, api.Item{ID: itemID(i), Features: api.Values{api.Number("x", x)}})
		}
		a := decide(t, e, "home", r, 0)
		bought, best := "", -math.Log(rng.ExpFloat64())
		for p, id := range a.IDs() {
			if v := utility[id] + gamma[p] - math.Log(rng.ExpFloat64()); v > best {
				bought, best = id, v
			}
		}
		fatal.If(t, e.Outcome(t.Context(), "home", r.Decision, bought, 1))
	}
	wait(t, e)
	r := &api.Request{Decision: "last"}
	for i, x := range []float64{-1, 1, 1.5, -2} {
		r.Items = append(r.Items, api.Item{ID: itemID(i), Features: api.Values{api.Number("x", x)}})
	}
	a := decide(t, e, "home", r, 0)
	if !slices.Equal(a.IDs(), []string{"sku2", "sku1"}) {
		t.Fatalf("shown %v, want the best item first", a.IDs())
	}
	r.Decision = ""
	two, why, err := try(t.Context(), e, "home", r, 0)
	fatal.If(t, err)
	if r.MaxSize = 1; math.Abs(*why.Revenue-two.Expected) > 1e-12 || why.Next != nil {
		t.Errorf("the explanation has a revenue of %v, and the answer of %v; the next best is %v", *why.Revenue, two.Expected,
			why.Next)
	}
	one, why, err := try(t.Context(), e, "home", r, 0)
	fatal.If(t, err)
	if cost := two.Expected - one.Expected; math.Abs(why.Rules[0].Cost-cost) > 1e-12 {
		t.Errorf("%+v, and the answers earn %v more without it", why.Rules, cost)
	}
	expect.Equal(t, why.Unknown, []string{"the next-best set: with position effects, the order of a set counts, too"})
	r.Slots, r.MaxSize = []api.Slot{{Exclude: []string{"sku2"}}, {}}, 0
	slots, why, err := try(t.Context(), e, "home", r, 0)
	fatal.If(t, err)
	if math.Abs(*why.Revenue-slots.Expected) > 1e-12 || slots.Expected > two.Expected-0.01 || why.Rules != nil ||
		!slices.Equal(slots.IDs(), []string{"sku1", "sku2"}) {
		t.Errorf("%v earns %v by the answer, and %v by the explanation, whose rules are %+v; in the best order %v",
			slots.IDs(), slots.Expected, *why.Revenue, why.Rules, two.Expected)
	}
	expect.Equal(t, why.Unknown, []string{"the next-best set and what the rules cost: with position effects, the order of a set counts, too"})
	put(t, e, "home", strings.Replace(config, "}]", `}],"mode":"shadow"`, 1))
	r.Baseline = []string{"sku0"}
	if shadow := decide(t, e, "home", r, 0); shadow.Shadow != slots.Expected {
		t.Errorf("in the mode shadow the policy's page would earn %v, want %v", shadow.Shadow, slots.Expected)
	}
	// The items differ by half a unit of x, with a coefficient near 1.
	if effect := math.Log(a.Probability[1]/a.Probability[0]) + 0.5; math.Abs(effect+2) > 0.7 {
		t.Errorf("the second place has an effect of %.2f, want −2", effect)
	}

	var first, second bytes.Buffer
	if _, _, err := e.WriteSnapshot(t.Context(), &first, time.Minute); err != nil {
		t.Fatal(err)
	}
	again := opened(t, engine.Options{Store: store})
	if _, _, err := again.WriteSnapshot(t.Context(), &second, time.Minute); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("a replay of the log has another state")
	}
}
