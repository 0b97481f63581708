package engine_test

import (
	"encoding/binary"
	"hash/crc32"
	"runtime"
	"slices"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
	"vitrine/service/state"
)

func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		shop, toys, clothes, `{}`, `null`, `[`,
		`{"max_size":3,"features":[{"name":"price","kind":"number","center":1,"scale":2},{"name":"brand","kind":"category","values":["a"],"allow_other":true},{"name":"t","kind":"text","default":""},{"name":"x","kind":"cross","of":["price","t"]}],"policy":{"name":"onl-mnl"},"mode":"explore","limits":[{"feature":"brand","max":1}],"capacity":2.5,"seed":9}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := setup.Parse(text)
		if err != nil {
			return
		}
		canonical := c.Canonical()
		again, err := setup.Parse(canonical)
		if err != nil || string(again.Canonical()) != string(canonical) {
			t.Fatalf("%s is read as %s, %v", text, canonical, err)
		}
		if w := c.Schema().Width(); w < 1 || w > 4096 || c.Bound() < c.MemoryBytes {
			t.Fatalf("a width of %d, a bound of %d", w, c.Bound())
		}
	})
}

func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		`{"items":[{"id":"i","features":{"price":1,"brand":"a"},"revenue":2},{"id":"j","features":{"price":3,"brand":"b"}}],"shopper":{"age":3},"max_size":1,"include":["i"],"exclude":["j"],"limits":[{"feature":"brand","max":1},{"items":["i"],"max":1}],"decision_id":"x"}`,
		`{"items":[{"id":"i","features":{"price":1,"brand":"a"},"space":0.75},{"id":"j","features":{"price":3,"brand":"b"},"space":2},{"id":"k","features":{"price":3,"brand":"b"}}],"shopper":{"age":3},"max_size":2,"capacity":1.75}`,
		`{"items":[{"id":"i","features":{"price":1e5,"brand":null}}],"baseline":["i"]}`,
		`{"items":[{"id":"i","features":{"price":1,"brand":"a","more":{"a":[1,{"b":null}]}}}],"defer":true}`,
		`{`, `[]`, `{"items":[[]]}`, `{"items":[{"features":{"price":"a"}}]}`,
	} {
		f.Add([]byte(text))
	}
	c := fatal.Or(setup.Parse([]byte(clothes)))(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := new(api.RequestReader).Read(text, c.MaxItems)
		if err != nil {
			if len(err.Error()) > 2000 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
		put(t, e, "home", clothes)
		a, err := e.Decide(t.Context(), "home", r, 0)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "/") && !strings.Contains(err.Error(), "item") &&
				!strings.Contains(err.Error(), "size") {
				t.Fatalf("%s: %v", text, err)
			}
			return
		}
		if r.Decision != "" {
			again, err := e.Decide(t.Context(), "home", r, 0)
			if err != nil || !again.Decoded {
				t.Fatalf("again: %+v, %v", again, err)
			}
			expect.Equal(fatal.T(t), asSeen(again), asSeen(a), "again")
		}
	})
}

// busy is an engine's state with a bit of everything.
func busy(t testing.TB, store engine.Log) []byte {
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	put(t, e, "shadow", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"mode":"shadow"}`)
	var page []string
	for i, id := range []string{"a", "b", "c", "d"} {
		r := stock(id, 3)
		if i > 1 {
			earning(r, 1, 2, 3)
		}
		page = decide(t, e, "home", r, 0).IDs()
	}
	fatal.If(t, e.Choose(t.Context(), "home", "d", []api.Choice{{Item: page[0], Quantity: new(2), Value: new(1.5)},
		{Item: page[1]}}, 1))
	fatal.If(t, e.Correct(t.Context(), "home", "d", api.Correction{ID: "return", Item: page[1], Value: new(-1.0)}, 1))
	fatal.If(t, e.Correct(t.Context(), "home", "d", api.Correction{ID: "mistake", Item: page[0]}, 1))
	r := stock("e", 3)
	r.Baseline = []string{"sku2"}
	fatal.Or(e.Decide(t.Context(), "shadow", r, 0))(t)
	for id, item := range map[string]string{"a": "sku0", "b": ""} {
		fatal.If(t, e.Outcome(t.Context(), "home", id, item, 1))
	}
	for _, id := range []string{"f", "g"} {
		r := stock(id, 3)
		r.Defer, r.Slots = true, []api.Slot{{ID: "left", Exclude: []string{"sku0"}}, {ID: "right"}}
		a := decide(t, e, "home", r, 0)
		if id == "g" {
			fatal.If(t, e.Reward(t.Context(), "home", "g", []api.Reward{{Item: a.IDs()[0], Value: 0.1}}, 1))
		}
	}
	fatal.Or(e.Keep(t.Context(), "home", "", 1))(t)
	return snapshot(t, e)
}

// busyEntries is how many there are after busy.
const busyEntries = 16

// withoutSum and withSum take a snapshot's checksum off, and put one on, so that fuzzing comes past it.
func withoutSum(data []byte) []byte { return data[:len(data)-4] }

func withSum(body []byte) []byte {
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return binary.LittleEndian.AppendUint32(append([]byte(nil), body...), sum)
}

// A damaged or invented snapshot is refused, or gives a working engine with the same snapshot.
func FuzzSnapshot(f *testing.F) {
	f.Add(withoutSum(busy(f, unnamed{new(memlog.Store)})))
	f.Fuzz(func(t *testing.T, body []byte) { restoreAny(t, body) })
}

func restoreAny(t *testing.T, body []byte) (taken bool) {
	store := unnamed{new(memlog.Store)} // its entries need not match the snapshot
	data := withSum(body)
	for range busyEntries {
		store.Append(t.Context(), nil)
	}
	e, err := engine.Open(t.Context(), engine.Options{Store: store, Build: buildToy, Snapshot: data})
	if err != nil {
		return false
	}
	defer e.Close()
	if machines, err := state.SnapshotMachines(data); err != nil || !slices.Equal(machines, []string{runtime.GOARCH}) {
		return false // it is written with the name of this one, too
	}
	if again := snapshot(t, e); string(again) != string(data) {
		t.Fatalf("%x\nis written as\n%x", data, again)
	}
	for _, name := range e.Placements() {
		fatal.Or(e.Stats(name))(t)
	}
	_, _ = e.Expire(t.Context(), 1<<60)
	return true
}

// A snapshot with one byte changed, and beginnings of it.
func TestDamagedSnapshots(t *testing.T) {
	data := busy(t, unnamed{new(memlog.Store)})
	body, taken := withoutSum(data), 0
	for i := 0; i < len(body); i += 3 {
		changed := append([]byte(nil), body...)
		changed[i] ^= []byte{1, 0x80, 0xff}[i/3%3]
		if restoreAny(t, changed) {
			taken++
		}
		if i%12 == 0 {
			restoreAny(t, body[:i])
		}
	}
	if taken == 0 || !restoreAny(t, body) {
		t.Error("no snapshot was taken")
	}
	expect.Refused(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: buildToy,
		Snapshot: data}))(t, "a snapshot of entries that the log does not have is taken")
	data[len(data)/2] ^= 1
	expect.Refused(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: buildToy,
		Snapshot: data}))(t, "a wrong checksum is taken")
}
