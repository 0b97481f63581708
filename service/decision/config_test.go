package decision_test

import (
	"errors"
	"strings"
	"testing"

	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog/memlog"
)

func TestBadConfigs(t *testing.T) {
	const fine = `"max_size":2,"features":[{"name":"a","kind":"number"},{"name":"b","kind":"category"}],"policy":{"name":"uniform"}`
	for text, want := range map[string]string{
		``:                            `the JSON ends early`,
		`[]`:                          `wrong type: have a list, want an object`,
		`{` + fine + `,"max_size":3}`: `/max_size: duplicate key`,
		`{` + fine + `,"sizes":3}`:    `/sizes: unknown key "sizes": must be one of max_size, max_items, features, at_most, `,
		`{"max_size":2,"features":[{"name":"a","kind":"number","scal":1}],"policy":{}}`: `/features/0/scal: unknown key "scal": must be one of name, kind, from, center, scale, `,
		`{` + fine + `} {}`:                           `not JSON: `,
		`{` + fine + `,"seed":-1}`:                    `/seed: `,
		`{` + fine + `,"seed":1e300}`:                 `/seed: `,
		`{` + fine + `,"rounds":"many"}`:              `/rounds: wrong type: have a string, want a whole number`,
		`{` + fine + `,"rounds":0}`:                   `/rounds: 0: must be from 1 to 100000000`,
		`{` + fine + `,"keep":0}`:                     `/keep: 0: must be from 1 to 1000`,
		`{` + fine + `,"max_items":0}`:                `/max_items: 0: must be from 1 to 1000000`,
		`{` + fine + `,"memory":10}`:                  `/memory: 10: must be at least `,
		`{` + fine + `,"memory":9000000000000000000}`: `/memory: `,
		`{"max_size":2,"max_items":1000000,"features":[{"name":"a","kind":"text","buckets":4096}],"policy":{}}`: `/max_items: 1000000: must be at most 16384 of 4096 columns each`,
		`{` + fine + `,"mode":"lern"}`:                                                 `/mode: "lern": must be one of ["learn" "shadow" "explore" "experiment"]`,
		`{` + fine + `,"record":"some"}`:                                               `/record: "some": must be one of ["shown" "all"]`,
		`{` + fine + `,"explore_share":0.1}`:                                           `/explore_share: 0.1: is for the mode "explore"`,
		`{` + fine + `,"mode":"explore","explore_share":0}`:                            `/explore_share: 0: must be in (0, 1]`,
		`{` + fine + `,"explore":"slots"}`:                                             `/explore: "slots": is for the mode "explore"`,
		`{` + fine + `,"mode":"explore","explore":"item"}`:                             `/explore: "item": must be one of ["sets" "slots"]`,
		`{` + fine + `,"mode":"explore","explore_share":2}`:                            `/explore_share: 2: must be in (0, 1]`,
		`{` + fine + `,"attribution_window":"soon"}`:                                   `/attribution_window: "soon": must be a duration such as "30m"`,
		`{` + fine + `,"attribution_window":"-1s"}`:                                    `/attribution_window: "-1s": must be`,
		`{` + fine + `,"at_most":[{"feature":"a","most":1}]}`:                          `/at_most/0/feature: "a": must be a category of items`,
		`{` + fine + `,"at_most":[{"feature":"b","most":-1}]}`:                         `/at_most/0/most: -1: must not be negative`,
		`{` + fine + `,"at_most":[{"feature":"b","most":2},{"feature":"b","most":1}]}`: `/at_most/1: "b" has a limit already`,
		`{` + fine + `,"at_most":[{"items":["b"],"most":1}]}`:                          `/at_most/0/items: only requests have items`,
		`{"max_size":2,"policy":{}}`:                                                   `/features: must name at least one feature`,
		`{"max_size":2,"features":[{"name":"a","kind":"number"}],"policy":"x"}`:        `/policy: must be an object such as`,
		`{"max_size":0,"features":[]}`:                                                 `/max_size: 0: must be from 1 to 1000`,
	} {
		_, err := decision.ParseConfig([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// A configuration has one canonical form, with all that was left out.
func TestCanonical(t *testing.T) {
	a, err := decision.ParseConfig([]byte(`{"policy":{"b":1.0,"a":[ ]}, "attribution_window":"90s", "max_size":3,"features":[{"kind":"number","name":"price","default":1e0}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"attribution_window":"1m30s","features":[{"default":1,"from":"item","kind":"number","name":"price","scale":1}],"keep":8,"max_items":1000,"max_size":3,"memory":67108864,"mode":"learn","policy":{"a":[],"b":1},"record":"shown","rounds":100000,"seed":0}`
	if have := string(a.Canonical()); have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
	b, err := decision.ParseConfig(a.Canonical())
	if err != nil || string(b.Canonical()) != want {
		t.Errorf("read again: %s, %v", b.Canonical(), err)
	}
}

const clothes = `{"max_size":2,"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category","values":["a","b"]},{"name":"age","kind":"number","from":"user","default":0}],"policy":{"name":"uniform"}}`

func TestBadRequests(t *testing.T) {
	e := opened(t, decision.Options{Store: new(memlog.Store), Build: decision.NewLearner})
	put(t, e, "home", clothes)
	put(t, e, "shadow", strings.Replace(clothes, `"max_size"`, `"mode":"shadow","max_size"`, 1))
	c, err := e.Config("home")
	if err != nil {
		t.Fatal(err)
	}
	const item = `{"id":"i","features":{"price":1,"brand":"a"}}`
	for text, want := range map[string]string{
		``:                                      `the JSON ends early`,
		`{"items":[`:                            `/items: the JSON ends early`,
		`{"items":[` + item + `]} {}`:           `there is more text after the request`,
		`{"item":[]}`:                           `/item: unknown key "item": must be one of decision_id, items, `,
		`{}`:                                    `/items: must have at least one item`,
		`{"items":{}}`:                          `/items: have an object, want a list`,
		`{"items":[3]}`:                         `/items/0: have a number, want an object`,
		`{"items":[` + item + `,` + item + `]}`: `/items/1/id: "i" is the id of item 0 too`,
		`{"items":[{"id":""}]}`:                 `/items/0/id: must have from 1 to 200 bytes`,
		`{"items":[{"id":3}]}`:                  `/items/0/id: have a number, want a string`,
		`{"items":[{"id":"i","id":"j"}]}`:       `/items/0/id: duplicate key`,
		`{"items":[{"id":"i","features":{"price":1,"colour":2}}]}`:                                       `/items/0/features/colour: unknown key "colour": must be one of price, brand`,
		`{"items":[{"id":"i","features":{"price":"1"}}]}`:                                                `/items/0/features/price: "1": want a number`,
		`{"items":[{"id":"i","features":{"price":[1]}}]}`:                                                `/items/0/features/price: want a number or a string`,
		`{"items":[{"id":"i","features":{"price":1e999}}]}`:                                              `/items/0/features/price: 1e999: out of range`,
		`{"items":[{"id":"i","features":{"price":1e9,"brand":"a"}}]}`:                                    `/items/0/features/price: 1e+09: is 1e+09 after scaling`,
		`{"items":[{"id":"i","features":{"price":null,"brand":"a"}}]}`:                                   `/items/0/features/price: is missing, and the feature has no default`,
		`{"items":[{"id":"i","features":{"brand":"a"}}]}`:                                                `/items/0/features/price: is missing`,
		`{"items":[{"id":"i","features":{"price":1,"brand":"z"}}]}`:                                      `/items/0/features/brand: "z": is not one of the feature's values`,
		`{"items":[{"id":"i","revenue":-1}]}`:                                                            `/items/0/revenue: -1: must be finite`,
		`{"items":[` + item + `],"user":{"price":1}}`:                                                    `/user/price: unknown key "price": must be one of age`,
		`{"items":[` + item + `],"user":{"age":"old"}}`:                                                  `/user/age: "old": want a number`,
		`{"items":[` + item + `],"size":3}`:                                                              `/size: 3: must be from 1 to 2`,
		`{"items":[` + item + `],"size":-3}`:                                                             `/size: -3: want a whole number`,
		`{"items":[` + item + `],"size":1.5}`:                                                            `/size: 1.5: want a whole number`,
		`{"items":[` + item + `],"include":["j"]}`:                                                       `/include/0: "j" is not among the items`,
		`{"items":[` + item + `],"include":["i"],"exclude":["i"]}`:                                       `item "i"`,
		`{"items":[` + item + `],"at_most":[{"feature":"price","most":1}]}`:                              `/at_most/0/feature: "price": must be a category of items`,
		`{"items":[` + item + `],"at_most":[{"feature":"brand","items":[]}]}`:                            `/at_most/0: must have one of items, feature, attribute and group`,
		`{"items":[` + item + `],"at_most":[{"feature":"brand","most":1},{"feature":"brand","most":1}]}`: `/at_most/1: "brand" has a limit already`,
		`{"items":[` + item + `],"at_most":[{"brand":1}]}`:                                               `/at_most/0/brand: unknown key`,
		`{"items":[` + item + `],"baseline":["j"]}`:                                                      `/baseline/0: "j" is not among the items`,
		`{"items":[` + item + `],"decision_id":".."}`:                                                    `/decision_id: "..": is no name in a URL`,
		`{"items":[` + item + `],"decision_id":"a b"}`:                                                   `/decision_id: "a b": must be of letters`,
		`{"items":[` + item + `],"decision_id":"` + strings.Repeat("a", 129) + `"}`:                      `/decision_id: must have at most 128 bytes`,
		`{"items":` + strings.Repeat("[", 20000):                                                         `/items/0/0`,
		`{"items":[` + item + `],"defer":"yes"}`:                                                         `/defer: have a string, want true or false`,
	} {
		r, err := new(api.RequestReader).Read([]byte(text), c.MaxItems)
		if err == nil {
			_, err = e.Decide(t.Context(), "home", r, 0)
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%.200s:\n got %v\nwant %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"items":[` + item + `]}`:                          `/baseline: is missing`,
		`{"items":[` + item + `],"baseline":["j"]}`:         `/baseline/0: "j" is not among the items`,
		`{"items":[` + item + `],"baseline":["i","i"]}`:     `/baseline/1: "i" is a duplicate`,
		`{"items":[` + item + `],"baseline":["i","i","i"]}`: `/baseline: has 3 items, the placement shows at most 2`,
	} {
		r, err := new(api.RequestReader).Read([]byte(text), c.MaxItems)
		if err == nil {
			_, err = e.Decide(t.Context(), "shadow", r, 0)
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
	before := e.Sequence()
	_, err = e.Decide(t.Context(), "nowhere", stock("a", 1), 0)
	is(t, "nowhere", err, decision.ErrNotFound)
	_, err = e.Decide(t.Context(), "home", stock("a", 1), 0) // of one feature
	is(t, "another schema", err, api.ErrInvalid)
	if e.Sequence() != before {
		t.Error("a bad request is in the log")
	}
	if _, err := e.Put(t.Context(), "a/b", []byte(clothes), 0); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("a placement's name: %v", err)
	}
}
