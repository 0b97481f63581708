package catalogue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/api"
)

// Decoding a record returns the encoded item, and equal items give equal records.
func TestRecords(t *testing.T) {
	s := schemaOf(t, shop)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		item := draw(rng, fmt.Sprint("sku", i))
		text := record(t, item, s)
		var f fields
		fatal.If(t, f.read(text))
		fatal.If(t, f.verify(s))
		got := f.item(s)
		expect.Equal(fatal.T(t), got, *item, cmp.Transformer("values", func(v api.Values) map[string]api.Value {
			byName := map[string]api.Value{}
			for _, v := range v {
				byName[v.Name] = v
			}
			return byName
		}))
		slices.Reverse(got.Features)
		expect.Equal(fatal.T(t), record(t, &got, s), text, "item", i, "has two records")
	}
}

// A record that is cut anywhere, or that has a byte too many, is rejected.
func TestDamagedRecords(t *testing.T) {
	s := schemaOf(t, shop)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 50 {
		text := record(t, draw(rng, "sku"), s)
		for n := range len(text) {
			var f fields
			if f.read(text[:n]) == nil && f.verify(s) == nil {
				t.Fatalf("item %d: the first %d of %d bytes are a record", i, n, len(text))
			}
		}
		expect.Part(New(s).NewChange([]string{text + "\x00"}, nil))(t, "1 bytes too many", "a byte too many")
		expect.Part(New(s).NewChange([]string{"\x02" + text[1:]}, nil))(t,
			"is in format 2, and this program reads format 1", "version 2")
	}
}

func FuzzRecord(f *testing.F) {
	s := schemaOf(f, shop)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add([]byte(record(f, draw(rng, "sku"), s)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := New(s)
		change, err := c.NewChange([]string{string(data)}, nil)
		if err != nil {
			return
		}
		c.Apply(1, change)
		item := c.Item(0)
		again, err := Encode(&item, s, "")
		if err != nil { // a record may hold texts that Encode rejects
			return
		}
		if len(again) > len(data) {
			t.Errorf("a record of %d bytes is one of %d", len(data), len(again))
		}
	})
}

// Errors name the field with the wrong value.
func TestBadItems(t *testing.T) {
	s := schemaOf(t, shop)
	for _, c := range []struct{ item, want string }{
		{`{"id":".."}`, `/items/3/id: "..": is no name in a URL`},
		{`{"id":""}`, `/items/3/id: "": must have from 1 to 200 bytes of UTF-8`},
		{`{"id":"a","revenue":-1}`, "/items/3/revenue: -1: must be from 0 to 1e+12"},
		{`{"id":"a","space":-1}`, "/items/3/space: -1: must be finite and not negative"},
		{`{"id":"a","groups":["x","x"]}`, `/items/3/groups/1: "x" is a duplicate`},
		{`{"id":"a","groups":[""]}`, `/items/3/groups/0: "": must have`},
		{`{"id":"a","attributes":{"a b":1}}`, "/items/3/attributes/a b: the name must have"},
		{`{"id":"a","attributes":{"price":1}}`, `/items/3/attributes/price: "price" is a field or a feature`},
		{`{"id":"a","attributes":{"id":1}}`, `/items/3/attributes/id: "id" is a field or a feature`},
		{`{"id":"a","attributes":{"x":[1]}}`, "/items/3/attributes/x: must be a number, a string, true or false"},
		{`{"id":"a","valid_from":"2020-01-02T00:00:00Z","valid_until":"2020-01-02T00:00:00Z"}`,
			"/items/3/valid_until: "},
		{`{"id":"a","valid_from":"1200-01-02T00:00:00Z"}`, "/items/3/valid_from: "},
		{`{"id":"a","features":{"colour":"red"}}`,
			`/items/3/features/colour: unknown key "colour": must be one of price, brand`},
		{`{"id":"a","features":{"age":3}}`, `/items/3/features/age: unknown key "age"`},
		{`{"id":"a","payload":"` + strings.Repeat("x", maxPayload) + `"}`,
			"/items/3/payload: has 16386 bytes, at most 16384"},
	} {
		var item api.CatalogueItem
		fatal.If(t, json.Unmarshal([]byte(c.item), &item))
		expect.Prefix(Encode(&item, s, "/items/3"))(t, c.want, c.item)
	}
	c := New(s)
	one := record(t, &api.CatalogueItem{ID: "a", Features: api.Values{api.Number("price", 1)}}, s)
	expect.Part(c.NewChange([]string{one, one}, nil))(t, `item "a" is a duplicate`, "a record twice")
	expect.Refused(c.NewChange([]string{one}, []string{"a"}))(t, "an item is put and deleted")
	expect.Message(c.NewChange([]string{record(t, &api.CatalogueItem{ID: "a"}, s)}, nil))(t,
		`item "a": /items/0/features/price: is missing, and the feature has no default`, "an item without a price")
}

// A patch changes only the fields that it names.
func TestPatch(t *testing.T) {
	s := schemaOf(t, shop)
	c := New(s)
	read := func(text string) *api.CatalogueItem {
		item := new(api.CatalogueItem)
		fatal.If(t, json.Unmarshal([]byte(text), item))
		return item
	}
	item := read(`{"id":"a","features":{"price":1,"brand":"x"},"revenue":2,"groups":["g"],"space":1,"valid_until":"2030-01-01T00:00:00Z","attributes":{"k":1,"l":true},"payload":[1]}`)
	for patch, want := range map[string]string{
		`{"id":"a","features":{"price":5},"revenue":3}`:                                                                                                   `{"id":"a","features":{"price":5,"brand":"x"},"revenue":3,"groups":["g"],"space":1,"valid_until":"2030-01-01T00:00:00Z","attributes":{"k":1,"l":true},"payload":[1]}`,
		`{"id":"a","features":{"brand":null},"available":false,"groups":["h","i"]}`:                                                                       `{"id":"a","features":{"price":1},"revenue":2,"groups":["h","i"],"space":1,"available":false,"valid_until":"2030-01-01T00:00:00Z","attributes":{"k":1,"l":true},"payload":[1]}`,
		`{"id":"a","attributes":{"k":null,"m":"n"},"space":0,"payload":{"t":1},"valid_from":"2020-01-01T00:00:00Z","valid_until":"2021-01-01T00:00:00Z"}`: `{"id":"a","features":{"price":1,"brand":"x"},"revenue":2,"groups":["g"],"space":0,"valid_from":"2020-01-01T00:00:00Z","valid_until":"2021-01-01T00:00:00Z","attributes":{"l":true,"m":"n"},"payload":{"t":1}}`,
		`{"id":"a","valid_until":null,"payload":null}`:                                                                                                    `{"id":"a","features":{"price":1,"brand":"x"},"revenue":2,"groups":["g"],"space":1,"attributes":{"k":1,"l":true}}`,
		`{"id":"a","groups":null,"available":null}`:                                                                                                       `{"id":"a","features":{"price":1,"brand":"x"},"revenue":2,"space":1,"valid_until":"2030-01-01T00:00:00Z","attributes":{"k":1,"l":true},"payload":[1]}`,
		`{"id":"a","valid_from":null,"available":false,"valid_until":null,"space":3}`:                                                                     `{"id":"a","features":{"price":1,"brand":"x"},"revenue":2,"groups":["g"],"space":3,"available":false,"attributes":{"k":1,"l":true},"payload":[1]}`,
	} {
		apply(t, c, 1, []string{record(t, item, s)}, nil)
		r, ok, err := c.Patch(read(patch), "/items/0")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		expect.Equal(t, r, record(t, read(want), s), patch, "is another item than", want)
	}
	for _, payload := range [][3]string{ // before, patch, after
		{`{"t":1,"u":2}`, `{"u":null,"v":3}`, `{"t":1,"v":3}`}, {`[1]`, `{"u":2}`, `{"u":2}`}, {`{"t":1}`, `[2]`, `[2]`},
		{``, `{"t":1,"u":null}`, `{"t":1}`},
	} {
		if got := string(mergedPayload(jsontext.Value(payload[0]), jsontext.Value(payload[1]))); got != payload[2] {
			t.Errorf("%s patched with %s is %s, want %s", payload[0], payload[1], got, payload[2])
		}
	}
	if _, ok, err := c.Patch(&api.CatalogueItem{ID: "b"}, ""); ok || err != nil {
		t.Errorf("an unknown item is patched: %v", err)
	}
	expect.Refused(c.Patch(read(`{"id":"a","revenue":-1}`), "/items/0"))(t, "a negative revenue passes")
}
