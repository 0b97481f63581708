package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/experiment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
	"vitrine/utility"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const minute = int64(60e9)

// opened opens an engine over a log, which is closed with the test.
func opened(t testing.TB, o engine.Options) *engine.Engine {
	t.Helper()
	if o.Build == nil {
		o.Build = setup.NewLearner
	}
	e := fatal.Or(engine.Open(t.Context(), o))(t)
	t.Cleanup(e.Close)
	return e
}

func put(t testing.TB, e *engine.Engine, name, text string) {
	t.Helper()
	fatal.Or(e.Change(t.Context(), name, []byte(text), engine.Change{Reset: true}, 0))(t)
}

func wait(t testing.TB, e *engine.Engine) {
	t.Helper()
	fatal.If(t, e.Wait(t.Context()))
}

func snapshot(t testing.TB, e *engine.Engine) []byte {
	t.Helper()
	data, _, err := e.Snapshot(t.Context())
	fatal.If(t, err)
	return data
}

// replayed returns the state that a log gives, from a snapshot or from its first entry.
func replayed(t testing.TB, o engine.Options) []byte {
	t.Helper()
	if o.Build == nil {
		o.Build = setup.NewLearner
	}
	e := fatal.Or(engine.Open(t.Context(), o))(t)
	defer e.Close()
	return snapshot(t, e)
}

// replays compares the state of an engine with that which its log gives, from o's snapshot or from the first entry.
func replays(t testing.TB, e *engine.Engine, o engine.Options) {
	t.Helper()
	if !bytes.Equal(snapshot(t, e), replayed(t, o)) {
		t.Error("a replay gives another state")
	}
}

// asSeen is a caller's view of an offer.
func asSeen(o *offer.Offer) any {
	return []any{o.Reply(), o.Mode, o.Certain, o.Own, o.Deferred}
}

// try is [engine.Engine.Try] for a placement as it is now.
func try(ctx context.Context, e *engine.Engine, name string, r *api.Request,
	now int64) (*offer.Offer, *api.Explanation, error) {
	v, err := e.View(name)
	if err != nil {
		return nil, nil, err
	}
	return e.Try(ctx, v, r, now)
}

func decide(t testing.TB, e *engine.Engine, name string, r *api.Request, now int64) *offer.Offer {
	t.Helper()
	a := fatal.Or(e.Decide(t.Context(), name, r, now))(t)
	return a
}

// numbers names d plain features.
func numbers(d int) string {
	var list []string
	for j := range d {
		list = append(list, fmt.Sprintf(`{"name":%q,"kind":"number"}`, featureName(j)))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// featureName is "x" of the first one.
func featureName(j int) string {
	if j == 0 {
		return "x"
	}
	return fmt.Sprint("x", j)
}

// earning gives the items of a request revenues.
func earning(r *api.Request, revenue ...float64) {
	for i := range r.Items {
		r.Items[i].Revenue = &revenue[i]
	}
}

// simulator is a world of experiments, played through an engine.
type simulator struct {
	shoppers env.Shoppers
	env.Shopper
}

func newSimulator(seed uint64, items, d int) *simulator {
	return &simulator{shoppers: env.Shoppers{World: newWorld(items, d)(stream.New(seed, 0, stream.World)), Seed: seed}}
}

func newWorld(items, d int) func(*rand.Rand) env.Environment {
	return func(rng *rand.Rand) env.Environment {
		return &env.World{
			Items: items, Contexts: env.Gaussian{},
			Truth:    env.NewFamily(utility.NewLinear(d, false), -1, 1, rng),
			Revenues: env.UniformRevenue{Low: 0.5, High: 1},
		}
	}
}

// request returns the request of a round.
func (s *simulator) request(round int) (*api.Request, *vitrine.Context) {
	if err := s.shoppers.Meet(&s.Shopper, round); err != nil {
		panic(err)
	}
	return requestOf(s.Context), s.Context
}

func requestOf(x *vitrine.Context) *api.Request {
	r := new(api.Request)
	for i := range x.NumItems() {
		var values api.Values
		for j, v := range x.Features.RawRowView(i) {
			values = append(values, api.Number(featureName(j), v))
		}
		r.Items = append(r.Items, api.Item{ID: itemID(i), Features: values})
	}
	if x.Revenue != nil {
		earning(r, x.Revenue...)
	}
	return r
}

func itemID(i int) string { return fmt.Sprintf("sku%d", i) }

// choose returns the item that the customer of the round takes.
func (s *simulator) choose(a *offer.Offer) (item string, set vitrine.Assortment) {
	for i := range s.Utilities {
		for _, id := range a.IDs() {
			if id == itemID(i) {
				set = append(set, i)
			}
		}
	}
	if c := s.Choose(set); c > 0 {
		item = itemID(set[c-1])
	}
	return item, set
}

// The same learner on the same seed meets the same contexts and the same customers through the engine as in an
// experiment, and its regret is the same in every round, bit for bit.
func TestRegretIsTheExperiments(t *testing.T) {
	const items, d, size, rounds, seed = 12, 3, 3, 150, 5
	for _, policy := range []string{
		`{"name":"onl-mnl","lambda":3,"beta":1,"warmup":20,"update":"mle","utility":{"kind":"mlp","hidden":[3]},"pilot_steps":200}`,
		`{"name":"onl-mnl","lambda":3,"beta":1,"warmup":20,"pilot":"map"}`,
		`{"name":"ucb-mnl","constants":"tuned","radius":0.1}`,
		`{"name":"ts-mnl","constants":"tuned","radius":0.1}`,
		`{"name":"eps-greedy-mnl","steps":20}`,
		`{"name":"eps-greedy-mnl","oracle":"offline","steps":20}`,
		`{"name":"log-barrier-mnl","gamma":100}`,
		`{"name":"feel-good-ts","moves":3}`,
		`{"name":"bma-mnl"}`,
	} {
		for _, record := range []string{"shown", "all"} {
			if record == "shown" && (strings.Contains(policy, "feel-good") || strings.Contains(policy, "bma")) {
				continue // they look at the items that were not shown, too
			}
			e := experiment.Experiment{
				Name: "x", Rounds: rounds, Constraint: assortment.AtMost(size), World: newWorld(items, d),
				Seeds: []uint64{seed},
				Policies: []experiment.Policy{
					{Label: "p", New: func(env.Environment, *rand.Rand) (vitrine.Learner, error) {
						return setup.NewLearner(setup.Spec{Policy: []byte(policy), Features: d, Items: items, All: true,
							Size: size, Rounds: rounds, Seed: seed})
					}}},
			}
			want := played(t, &e)

			engine := opened(t, engine.Options{Store: new(memlog.Store)})
			put(t, engine, "home", fmt.Sprintf(
				`{"max_size":%d,"max_request_items":%d,"features":%s,"policy":%s,"horizon":%d,"seed":%d,"log_items":%q}`, size, items, numbers(d), policy, rounds, seed, record))
			s, total := newSimulator(seed, items, d), 0.0
			for round := 1; round <= rounds; round++ {
				r, x := s.request(round)
				a := decide(t, engine, "home", r, 0)
				item, set := s.choose(a)
				_, optimum := assortment.Maximize(nil, assortment.AtMost(size), s.Utilities, x.Revenue)
				total += optimum - vitrine.ExpectedRevenue(set, s.Utilities, x.Revenue)
				if total != want[round-1] {
					t.Fatalf("%s, record %s: regret %v in round %d, the experiment has %v", policy, record, total,
						round, want[round-1])
				}
				fatal.If(t, engine.Outcome(t.Context(), "home", a.Decision, item, 1))
				wait(t, engine)
			}
			if total < 0.1 {
				t.Errorf("%s: a regret of %v proves nothing", policy, total)
			}
		}
	}
}

// played returns the regret of an experiment of one policy and one seed, a
// number a round.
func played(t *testing.T, e *experiment.Experiment) []float64 {
	t.Helper()
	dir := t.TempDir()
	fatal.Or(experiment.Run(t.Context(), e, experiment.Options{Dir: dir}))(t)
	text := fatal.Or(os.ReadFile(filepath.Join(dir, e.Name, "runs.jsonl")))(t)
	var unit struct {
		Regret []float64 `json:"regret"`
	}
	fatal.If(t, json.Unmarshal(text, &unit))
	return unit.Regret
}

const shop = `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"memory_bytes":200000}`

// stock is a request of n items.
func stock(id string, n int) *api.Request {
	r := &api.Request{Decision: id}
	for i := range n {
		r.Items = append(r.Items, api.Item{ID: itemID(i), Features: api.Values{api.Number("x", float64(i)/10)}})
	}
	return r
}

func is(t *testing.T, what string, err, want error) {
	t.Helper()
	expect.Error(t, err, want, what)
}

func TestOutcomes(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", shop)
	ctx := t.Context()
	a := fatal.Or(e.Decide(ctx, "home", stock("a", 5), 0))(t)
	if len(a.IDs()) != 2 || len(a.Probability) != 2 || a.Propensity != 1 || a.Mode != offer.ByPolicy {
		t.Fatalf("answer %+v", a)
	}
	if sum := a.Outside + a.Probability[0] + a.Probability[1]; math.Abs(sum-1) > 1e-12 ||
		math.Abs(a.Expected-(1-a.Outside)) > 1e-12 {
		t.Errorf("probabilities sum to %v, and the revenue is %v", sum, a.Expected)
	}
	is(t, "not shown", e.Outcome(ctx, "home", "a", "sku77", 1), engine.ErrNotShown)
	is(t, "unknown", e.Outcome(ctx, "home", "b", "", 1), engine.ErrNotFound)
	for _, err := range []error{e.Outcome(ctx, "home", "a", strings.Repeat("x", 1<<20), 1),
		e.Outcome(ctx, "home", strings.Repeat("x", 1<<20), "", 1)} {
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
		}
	}
	is(t, "first", e.Outcome(ctx, "home", "a", a.IDs()[1], 1), nil)
	before := e.Sequence()
	is(t, "again", e.Outcome(ctx, "home", "a", a.IDs()[1], 2), nil)
	is(t, "another", e.Outcome(ctx, "home", "a", a.IDs()[0], 2), engine.ErrConflict)
	is(t, "none", e.Outcome(ctx, "home", "a", "", 2), engine.ErrConflict)
	expect.Equal(t, e.Sequence(), before, "a repeated outcome is in the log twice")
	d, err := e.Decision(t.Context(), "home", "a")
	if err != nil || d.Status != "chosen" || d.Choice != a.IDs()[1] {
		t.Errorf("decision %+v, %v", d, err)
	}

	again, err := e.Decide(ctx, "home", stock("a", 5), 3)
	if err != nil || !again.Decoded || again.IDs()[0] != a.IDs()[0] || again.PolicyEntry != a.PolicyEntry {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	_, err = e.Decide(ctx, "home", stock("a", 4), 3)
	is(t, "another request", err, engine.ErrConflict)

	for _, id := range []string{"late", "lost", "none"} {
		if a, err = e.Decide(ctx, "home", stock(id, 5), 10); err != nil {
			t.Fatal(err)
		}
	}
	is(t, "late", e.Outcome(ctx, "home", "late", a.IDs()[0], 11+30*minute), engine.ErrLate)
	is(t, "late again", e.Outcome(ctx, "home", "late", a.IDs()[0], 11+30*minute), engine.ErrLate)
	is(t, "late, but none", e.Outcome(ctx, "home", "late", "", 11+30*minute), engine.ErrConflict)
	is(t, "in time", e.Outcome(ctx, "home", "none", "", 10+30*minute), nil)
	if n, err := e.Expire(ctx, 10+30*minute); n != 0 || err != nil {
		t.Errorf("%d expired, %v, before the window is over", n, err)
	}
	if n, err := e.Expire(ctx, 11+30*minute); n != 1 || err != nil {
		t.Errorf("%d expired, %v", n, err)
	}
	wait(t, e)
	s, err := e.Stats("home")
	if err != nil || s.Decisions != 4 || s.Outcomes != 2 || s.Expired != 2 || s.Pending != 0 || s.Learned != 4 ||
		s.Lag != 0 || s.Late != 1 || s.ByPolicy.Purchases != 2 {
		t.Errorf("stats %+v, %v", s, err)
	}
	replays(t, e, engine.Options{Store: store})
}

// The number of placements is bounded. Existing ones can be changed, and deleting one makes room.
func TestMostPlacements(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	for i := range 1000 {
		put(t, e, fmt.Sprint(i), toys)
	}
	_, err := e.Put(t.Context(), "more", []byte(toys), 0)
	is(t, "one more", err, api.ErrInvalid)
	put(t, e, "7", strings.Replace(toys, `"max_size"`, `"max_versions":3,"max_size"`, 1))
	fatal.If(t, e.Delete(t.Context(), "7", nil, 0))
	put(t, e, "more", toys)
}

// An id that the engine makes is new, whatever was deleted and created, and does not tell the next one: a caller that
// knows an id may report its outcome.
func TestMadeIDs(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	seen := map[string]bool{}
	for range 3 {
		put(t, e, "home", shop)
		for range 3 {
			a, err := e.Decide(t.Context(), "home", stock("", 3), 0)
			if err != nil || seen[a.Decision] || len(a.Decision) < 26 || strings.Contains(a.Decision, "home") {
				t.Fatalf("decision %+v, %v", a, err)
			}
			seen[a.Decision] = true
		}
		fatal.If(t, e.Delete(t.Context(), "home", nil, 0))
	}
	for id := range seen {
		is(t, "deleted", e.Outcome(t.Context(), "home", id, "", 0), engine.ErrNotFound)
	}
	made := opened(t, engine.Options{Store: new(memlog.Store), NewID: func() string { return "chosen" }})
	put(t, made, "home", shop)
	expect.Equal(t, decide(t, made, "home", stock("", 3), 0).Decision, "chosen", "the id from the source")
}

// A decision that was made while the clock was a year ahead does not hold up the expiry of those after it.
func TestExpiryAfterAStepOfTheClock(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	put(t, e, "home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"onl-mnl"},"attribution_window":"30m"}`)
	const year = 365 * 24 * 60 * minute
	for i, now := range []int64{year, 0, 2 * minute, minute} {
		r := &api.Request{Decision: fmt.Sprint("d", i),
			Items: []api.Item{{ID: "a", Features: api.Values{api.Number("x", 1)}}}}
		decide(t, e, "home", r, now)
	}
	expired := func(now int64, want int) {
		t.Helper()
		if n, err := e.Expire(t.Context(), now); n != want || err != nil {
			t.Errorf("%d expired, %v; want %d", n, err, want)
		}
	}
	expired(30*minute+1, 1)
	data := snapshot(t, e)
	e.Close()
	e = opened(t, engine.Options{Store: store, Snapshot: data})
	expired(31*minute+1, 1)
	expired(31*minute+1, 0)
	if d, err := e.Decision(t.Context(), "home", "d2"); err != nil || d.Status != "open" {
		t.Errorf("the one made last: %+v, %v", d, err)
	}
	expired(33*minute, 1)
	expired(year+31*minute, 1)
}

// Values of features are found by their names: a change of the placement's features does not exchange them.
func TestFeaturesChangePlaces(t *testing.T) {
	var rows [][]float64
	e := opened(t, engine.Options{Store: new(memlog.Store), Applied: func(_ uint64, e *eventlog.Event) {
		if o, ok := e.Body.(*eventlog.Offered); ok {
			rows = append(rows, slices.Clone(o.Features))
		}
	}})
	const price, stock = `{"name":"price","kind":"number"}`, `{"name":"stock","kind":"number"}`
	request := &api.Request{Include: []string{"a"},
		Items: []api.Item{{ID: "a", Features: api.Values{api.Number("price", 9.5), api.Number("stock", 3)}}}}
	for _, features := range []string{price + "," + stock, stock + "," + price} {
		put(t, e, "home", fmt.Sprintf(`{"max_size":1,"features":[%s],"policy":{"name":"onl-mnl"}}`, features))
		decide(t, e, "home", request, 0)
	}
	e.Close()
	expect.Equal(t, rows, [][]float64{{9.5, 3}, {3, 9.5}})
	twice := &api.Request{Items: []api.Item{
		{ID: "a", Features: api.Values{api.Number("price", 9.5), api.Number("price", 3)}}}}
	e = opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":1,"features":[`+price+`],"policy":{"name":"onl-mnl"}}`)
	expect.Part(e.Decide(t.Context(), "home", twice, 0))(t, "/items/0/features/price: duplicate key", "a price twice")
}
