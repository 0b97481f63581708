package inspect

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/offpolicy"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// twins are two engines with the same placement and the same catalogue. One decides by its items, the other by the same
// items in the requests, so that its log contains their rows.
type twins struct {
	*testing.T
	rng     *rand.Rand
	stores  [2]*memlog.Store
	engines [2]*engine.Engine
	now     int64
	open    []string
	all     []string
	shown   map[string][]string
	config  string
}

// shopWindow gives each brand a column: rows could not tell apart values that share one.
const shopWindow = `{"max_size":3,"seed":4,"log_items":"all","policy":{"name":"ucb-mnl"},%s"features":[{"name":"age","kind":"number","from":"shopper"},
	{"name":"city","kind":"category","from":"shopper","columns":4,"own_columns":2,"default":""},{"name":"x","kind":"number"%s},{"name":"both","kind":"cross","of":["age","x"]},
	{"name":"brand","kind":"category","columns":10,"own_columns":9,"default":""}]}`

func newTwins(t *testing.T, seed uint64) *twins {
	w := &twins{T: t, rng: rand.New(rand.NewPCG(seed, 7)), shown: map[string][]string{}}
	for k := range w.engines {
		w.stores[k] = new(memlog.Store)
		e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: w.stores[k], Build: setup.NewLearner}))(t)
		t.Cleanup(e.Close)
		w.engines[k] = e
	}
	return w
}

// both calls change for both engines.
func (w *twins) both(change func(e *engine.Engine) error) {
	w.Helper()
	w.now++
	for _, e := range w.engines {
		fatal.If(w, change(e))
		fatal.If(w, e.Wait(w.Context()))
	}
}

func (w *twins) put(more, ofX string, how engine.Change) {
	w.config = fmt.Sprintf(shopWindow, more, ofX)
	w.both(func(e *engine.Engine) error {
		_, err := e.Change(w.Context(), "home", []byte(w.config), how, w.now)
		return err
	})
}

func (w *twins) items() []api.CatalogueItem {
	page := fatal.Or(w.engines[0].Items("home", 0, engine.MaxPage))(w)
	return page.Items
}

// stock puts and deletes some items.
func (w *twins) stock() {
	var items []api.CatalogueItem
	seen := map[int]bool{}
	for range 1 + w.rng.IntN(6) {
		i := w.rng.IntN(30)
		if seen[i] {
			continue
		}
		seen[i] = true
		item := api.CatalogueItem{ID: fmt.Sprint("i", i), Features: api.Values{api.Number("x", w.rng.NormFloat64()),
			api.Text("brand", fmt.Sprint("b", w.rng.IntN(8)))}}
		if w.rng.IntN(2) == 0 {
			item.Revenue = new(w.rng.Float64())
		}
		items = append(items, item)
	}
	w.both(func(e *engine.Engine) error { _, err := e.PutItems(w.Context(), "home", items, w.now); return err })
	if all := w.items(); len(all) > 6 && w.rng.IntN(2) == 0 {
		var ids []string
		for _, i := range w.rng.Perm(len(all))[:w.rng.IntN(len(all)-5)] {
			ids = append(ids, all[i].ID)
		}
		w.both(func(e *engine.Engine) error { _, err := e.DeleteItems(w.Context(), "home", ids, w.now); return err })
	}
}

// decide asks both for a decision among some items of the catalogue, and sometimes others.
func (w *twins) decide() {
	id := fmt.Sprint("d", len(w.all))
	byID := &api.Request{Decision: id, User: api.Values{api.Number("age", w.rng.NormFloat64()),
		api.Text("city", fmt.Sprint("c", w.rng.IntN(5)))}}
	all := w.items()
	if w.rng.IntN(3) == 0 {
		byID.Items = []api.Item{{ID: all[0].ID, Features: api.Values{api.Number("x", 0.5)}},
			{ID: "new", Features: api.Values{api.Number("x", 1), api.Text("brand", "b1")}}}
	}
	some := w.rng.IntN(3) > 0
	if some || byID.Items != nil {
		byID.Candidates = []string{}
	}
	byRow := *byID
	byRow.Candidates = nil
	for i, item := range all {
		if some && i > 3 && w.rng.IntN(3) == 0 {
			continue
		}
		if byID.Candidates != nil {
			byID.Candidates = append(byID.Candidates, item.ID)
		}
		if !slices.ContainsFunc(byID.Items, func(own api.Item) bool { return own.ID == item.ID }) {
			byRow.Items = append(slices.Clip(byRow.Items), api.Item{ID: item.ID, Features: item.Features,
				Revenue: item.Revenue})
		}
	}
	if w.rng.IntN(3) == 0 {
		byID.Exclude = []string{all[1].ID}
		byID.Limits = []api.Limit{{Feature: "brand", Max: new(1)}}
		byRow.Exclude, byRow.Limits = byID.Exclude, byID.Limits
	}
	w.now++
	var answers [2]*offer.Offer
	for k, r := range []*api.Request{byID, &byRow} {
		var err error
		if answers[k], err = w.engines[k].Decide(w.Context(), "home", r, w.now); err != nil {
			w.Fatal(err)
		}
	}
	answers[0].Catalogue = nil
	if diff := cmp.Diff(answers[1].Reply(), answers[0].Reply()); diff != "" {
		w.Fatalf("decision %s (-rows +ids):\n%s", id, diff)
	}
	w.shown[id] = answers[0].IDs()
	w.all, w.open = append(w.all, id), append(w.open, id)
}

func (w *twins) outcome() {
	if len(w.open) == 0 {
		return
	}
	at := w.rng.IntN(len(w.open))
	id := w.open[at]
	w.open = slices.Delete(w.open, at, at+1)
	chosen := w.rng.IntN(2)
	w.both(func(e *engine.Engine) error {
		item := ""
		if chosen > 0 && len(w.shown[id]) > 0 {
			item = w.shown[id][0]
		}
		return e.Outcome(w.Context(), "home", id, item, w.now)
	})
}

// exported returns the lines of an export and the rounds of an evaluation, from an entry on. A snapshot covers the
// entries before.
func exported(t *testing.T, store *memlog.Store, first uint64, snapshot []byte) (string, []offpolicy.Round) {
	t.Helper()
	var out bytes.Buffer
	var rounds []offpolicy.Round
	encoder := jsontext.NewEncoder(&out)
	x := newDecisions(store, first, "", func(o *offered, end outcome) error {
		if end.isRound() {
			rounds = append(rounds, roundOf(o, end))
		}
		return writeLine(encoder, o, end)
	})
	if snapshot != nil {
		fatal.If(t, x.unchanged(t.Context(), snapshot, first))
	}
	sequence := first
	for entry, err := range store.Entries(t.Context(), first) {
		var event eventlog.Event
		if err == nil {
			event, err = eventlog.Decode(entry)
		}
		if err == nil {
			err = x.event(t.Context(), sequence, &event)
		}
		fatal.If(t, err)
		sequence++
	}
	fatal.If(t, x.rest(func(*offered) bool { return true }))
	if x.lost > 0 {
		t.Errorf("%d of %d decisions have not all candidates", x.lost, x.candidates)
	}
	return out.String(), rounds
}

// A log with the ids of candidates gives the same as a log with their rows: exports and evaluations byte by byte, also
// from an entry in the middle and after changes of the features; explanations; and learners, also those that learn from
// the log again.
func TestIDsInTheLogAreRows(t *testing.T) {
	for seed := range uint64(6) {
		w := newTwins(t, seed)
		w.put("", "", engine.Change{})
		w.stock()
		w.stock()
		for i := range 150 {
			switch k := w.rng.IntN(10); {
			case k < 2:
				w.stock()
			case k < 6:
				w.decide()
			case i == 60 && seed%2 == 0:
				w.put("", `,"scale":2`, engine.Change{Reset: true})
			default:
				w.outcome()
			}
			if i == 100 {
				w.put(`"mode":"explore","explore_share":0.5,"explore":"swaps",`,
					map[bool]string{true: `,"scale":2`}[seed%2 == 0], engine.Change{Reset: true})
			}
		}
		ids, ofIDs := exported(t, w.stores[0], 1, nil)
		rows, ofRows := exported(t, w.stores[1], 1, nil)
		expect.Equal(fatal.T(t), ids, rows, "seed", seed, "the export")
		expect.Equal(fatal.T(t), ofIDs, ofRows, "seed", seed, "the rounds",
			cmp.Comparer(func(a, b *mat.Dense) bool { return mat.Equal(a, b) }), cmp.Comparer(func(a, b offpolicy.SamplingLaw) bool { return fmt.Sprint(a) == fmt.Sprint(b) }))
		snapshot, upTo := w.compare(seed)
		for first := upTo - 30; first <= upTo; first += 7 {
			ids, _ := exported(t, w.stores[0], first, snapshot[0])
			if rows, _ := exported(t, w.stores[1], first, snapshot[1]); rows != ids {
				t.Fatalf("seed %d: the export from entry %d on differs:\n%s", seed, first, cmp.Diff(rows, ids))
			}
		}
		for _, id := range w.all {
			var why [2]*api.Explanation
			for k, e := range w.engines {
				var err error
				if why[k], err = e.Explain(t.Context(), "home", id, 0, nil); err != nil {
					t.Fatal(err)
				}
			}
			if len(why[0].Unknown) > 0 && strings.HasPrefix(why[0].Unknown[0], "the utilities: the features") {
				why[0].Known = why[1].Known // of other features
			}
			expect.Equal(fatal.T(t), why[0], why[1], "seed", seed, "the explanation of", id)
		}
		w.relearn()
		w.compare(seed)
	}
}

// compare compares the states of the engines but for the log's identity and hash, and returns their snapshots.
func (w *twins) compare(seed uint64) (data [2][]byte, upTo uint64) {
	w.Helper()
	var rest [2][]byte
	for k, e := range w.engines {
		var err error
		if data[k], upTo, err = e.Snapshot(w.Context()); err != nil {
			w.Fatal(err)
		}
		at := fatal.Or(state.SnapshotPosition(data[k]))(w)
		_, rest[k], _ = bytes.Cut(data[k][:len(data[k])-4], at.Hash[:])
	}
	if !bytes.Equal(rest[0], rest[1]) {
		w.Fatalf("seed %d: the states differ, %d and %d bytes", seed, len(rest[0]), len(rest[1]))
	}
	return data, upTo
}

// relearn lets another learner learn from the log, and replace the first.
func (w *twins) relearn() {
	w.both(func(e *engine.Engine) error {
		config := strings.Replace(w.config, "ucb-mnl", "ts-mnl", 1)
		if _, err := e.Change(w.Context(), "home", []byte(config), engine.Change{Relearn: true}, w.now); err != nil {
			return err
		}
		for range 100_000 {
			if done, _, err := e.Exchange(context.Background(), w.now); err != nil || len(done) > 0 {
				return err
			}
		}
		return fmt.Errorf("the second learner does not catch up")
	})
}

// However often the features change, few versions of a catalogue are in memory.
func TestFewVersionsInMemory(t *testing.T) {
	w := newTwins(t, 1)
	for k := range 4 {
		w.put("", fmt.Sprintf(`,"scale":%d`, k+1), engine.Change{Reset: true})
		for range 4 {
			w.stock()
			w.stock()
			w.decide()
		}
	}
	x := newDecisions(w.stores[0], 1, "", func(*offered, outcome) error { return nil })
	sequence := uint64(0)
	for entry, err := range w.stores[0].Entries(t.Context(), 1) {
		fatal.If(t, err)
		event := fatal.Or(eventlog.Decode(entry))(t)
		if sequence++; x.event(t.Context(), sequence, &event) != nil || len(x.frozen) > 1 {
			t.Fatalf("entry %d: the items of %d catalogues are kept", sequence, len(x.frozen))
		}
	}
	if x.lost > 0 || len(x.frozen) == 0 {
		t.Errorf("%d decisions have not all candidates, and %d catalogues are kept", x.lost, len(x.frozen))
	}
}

// Placements that share a catalogue get the values that its owner learns from items, whichever name comes first.
func TestSharersInheritFromTheOwner(t *testing.T) {
	own := []byte(fmt.Sprintf(shopWindow, "", ""))
	shared := fmt.Sprintf(shopWindow, `"catalogue_of":"home",`, "")
	for range 20 {
		x := newDecisions(new(memlog.Store), 1, "", nil)
		for _, name := range []string{"home", "a", "z"} {
			text := own
			if name != "home" {
				text = []byte(shared)
			}
			c := fatal.Or(setup.Parse(text))(t)
			x.configs[name] = c
		}
		learned := fatal.Or(x.configs["home"].Learn(feature.Seen{Feature: "brand", Values: []string{"b1"}}))(t)
		x.items["home"] = catalogue.New(learned.Schema())
		fatal.If(t, x.stock(t.Context(), 1, &eventlog.Event{Placement: "home",
			Body: &eventlog.PlacementPut{Config: own}}))
		for name, c := range x.configs {
			if !c.Schema().Same(learned.Schema()) {
				t.Fatalf("%s has not the values of the items", name)
			}
		}
	}
}
