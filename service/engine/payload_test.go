package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

// A repeated request gets the payloads of its first answer, whatever became of the items since: another price, no
// payload, or no item. So it is after a restart, and for a request that did not ask for payloads or that asks a
// follower.
func TestRepeatedPayloads(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", `{"max_size":3,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	stored := func(prices ...int) {
		t.Helper()
		var items []api.CatalogueItem
		for i, price := range prices {
			item := api.CatalogueItem{ID: itemID(i), Features: api.Values{api.Number("x", float64(i))}}
			if price > 0 {
				item.Payload = jsontext.Value(fmt.Sprintf(`{"price":%d}`, price))
			}
			items = append(items, item)
		}
		fatal.Or(e.PutItems(t.Context(), "home", items, 0))(t)
	}
	stored(10, 20, 0)
	with := &api.Request{Decision: "with", Payload: true}
	without := &api.Request{Decision: "without"}
	first, none := decide(t, e, "home", with, 0), decide(t, e, "home", without, 0)
	want := map[string]string{itemID(0): `{"price":10}`, itemID(1): `{"price":20}`, itemID(2): ""}
	for k, id := range first.IDs() {
		expect.Equal(t, first.Payload[k], want[id], id, "has the payload")
	}
	if none.Payload != nil {
		t.Errorf("payloads %q, which nobody asked for", none.Payload)
	}
	same := func(what string, e *engine.Engine) {
		t.Helper()
		for _, before := range []struct {
			r *api.Request
			a *offer.Offer
		}{{with, first}, {without, none}} {
			expect.Equal(t, asSeen(decide(t, e, "home", before.r, 0)), asSeen(before.a), before.r.Decision, "of", what)
		}
		d, err := e.Decision(t.Context(), "home", "with")
		if err != nil || !cmp.Equal(d.Offer.Payload, first.Payload) {
			t.Errorf("the decision in %s: %+v, %v", what, d.Offer, err)
		}
	}
	same("the same catalogue", e)
	stored(11, 0, 33)
	same("other prices", e)
	fatal.Or(e.DeleteItems(t.Context(), "home", []string{itemID(0), itemID(1)}, 0))(t)
	same("fewer items", e)
	live := snapshot(t, e)
	same("a replay", opened(t, engine.Options{Store: store, Build: buildToy}))
	same("the snapshot", opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: live}))
	if d := decide(t, e, "home", &api.Request{Decision: "next", Payload: true}, 0); d.Payload[0] != `{"price":33}` {
		t.Errorf("the next decision has the payloads %q", d.Payload)
	}
}

// Payloads add to the log their own bytes, two more for the flag, one for their number, and one or two for the length
// of each.
func TestBytesOfPayloads(t *testing.T) {
	payload := `{"price":12.5,"title":"` + strings.Repeat("t", 60) + `","url":"` + strings.Repeat("u", 80) + `"}`
	bytes := map[bool]int{}
	for _, with := range []bool{false, true} {
		store := new(memlog.Store)
		e := opened(t, engine.Options{Store: store, Build: buildToy})
		put(t, e, "home", `{"max_size":4,"features":`+numbers(10)+`,"policy":{}}`)
		var items []api.CatalogueItem
		for i := range 20 {
			item := api.CatalogueItem{ID: itemID(i), Payload: jsontext.Value(payload)}
			for k := range 10 {
				item.Features = append(item.Features, api.Number(featureName(k), float64(i*k)/200))
			}
			items = append(items, item)
		}
		fatal.Or(e.PutItems(t.Context(), "home", items, 0))(t)
		a := decide(t, e, "home", &api.Request{Decision: "d", Payload: with}, 0)
		entry := fatal.Or(store.Entry(t.Context(), e.Sequence()))(t)
		bytes[with] = len(entry)
		if with && len(a.IDs()) > 0 && len(entry) > bytes[false]+len(a.IDs())*(len(payload)+2)+4 {
			t.Errorf("an entry of %d items takes %d bytes, and %d with payloads of %d", len(a.IDs()), bytes[false],
				len(entry), len(payload))
		}
		t.Logf("%d items shown, %d bytes of payload each: the entry takes %d bytes", len(a.IDs()), len(payload),
			len(entry))
	}
}
