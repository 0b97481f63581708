package engine_test

import (
	"errors"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

func TestBadRequests(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: setup.NewLearner})
	put(t, e, "home", clothes)
	put(t, e, "shadow", strings.Replace(clothes, `"max_size"`, `"mode":"shadow","max_size"`, 1))
	c, err := e.Config("home")
	fatal.If(t, err)
	const item = `{"id":"i","features":{"price":1,"brand":"a"}}`
	for text, want := range map[string]string{
		``:                                      `the JSON ends early`,
		`{"items":[`:                            `/items: the JSON ends early`,
		`{"items":[` + item + `]} {}`:           `there is more text after the request`,
		`{"item":[]}`:                           `/item: unknown key "item": did you mean "items"?`,
		`{}`:                                    `/items: must have at least one item`,
		`{"items":{}}`:                          `/items: have an object, want a list`,
		`{"items":[3]}`:                         `/items/0: have a number, want an object`,
		`{"items":[` + item + `,` + item + `]}`: `/items/1/id: "i" is the id of item 0 too`,
		`{"items":[{"id":""}]}`:                 `/items/0/id: must have from 1 to 1024 bytes`,
		`{"items":[{"id":3}]}`:                  `/items/0/id: have a number, want a string`,
		`{"items":[{"id":"i","id":"j"}]}`:       `/items/0/id: duplicate key`,
		`{"items":[{"id":"i","features":{"price":1,"colour":2}}]}`:                                    `/items/0/features/colour: unknown key "colour": must be one of price, brand`,
		`{"items":[{"id":"i","features":{"price":"1"}}]}`:                                             `/items/0/features/price: "1": want a number`,
		`{"items":[{"id":"i","features":{"price":[1]}}]}`:                                             `/items/0/features/price: want a number or a string`,
		`{"items":[{"id":"i","features":{"price":1e1999}}]}`:                                          `/items/0/features/price: 1e1999: out of range`,
		`{"items":[{"id":"i","features":{"price":1e19,"brand":"a"}}]}`:                                `/items/0/features/price: 1e+19: is 1e+19 after scaling`,
		`{"items":[{"id":"i","features":{"price":null,"brand":"a"}}]}`:                                `/items/0/features/price: is missing, and the feature has no default`,
		`{"items":[{"id":"i","features":{"brand":"a"}}]}`:                                             `/items/0/features/price: is missing`,
		`{"items":[{"id":"i","features":{"price":1,"brand":"z"}}]}`:                                   `/items/0/features/brand: "z": is not one of the feature's values`,
		`{"items":[{"id":"i","revenue":-1}]}`:                                                         `/items/0/revenue: -1: must be from 0 to 1e+12`,
		`{"items":[` + item + `],"shopper":{"price":1}}`:                                              `/shopper/price: unknown key "price": must be one of age`,
		`{"items":[` + item + `],"shopper":{"age":"old"}}`:                                            `/shopper/age: "old": want a number`,
		`{"items":[` + item + `],"max_size":3}`:                                                       `/max_size: 3: must be from 1 to 2`,
		`{"items":[` + item + `],"max_size":-3}`:                                                      `/max_size: -3: want a whole number`,
		`{"items":[` + item + `],"max_size":1.5}`:                                                     `/max_size: 1.5: want a whole number`,
		`{"items":[` + item + `],"include":["j"]}`:                                                    `/include/0: "j" is not among the items`,
		`{"items":[` + item + `],"include":["i"],"exclude":["i"]}`:                                    `/include: item "i"`,
		`{"items":[` + item + `],"limits":[{"feature":"price","max":1}]}`:                             `/limits/0/feature: "price": must be a category of items`,
		`{"items":[` + item + `],"limits":[{"feature":"brand","items":[]}]}`:                          `/limits/0: must have one of items, feature, attribute and group`,
		`{"items":[` + item + `],"limits":[{"feature":"brand","max":1},{"feature":"brand","max":1}]}`: `/limits/1: "brand" has a limit already`,
		`{"items":[` + item + `],"limits":[{"brand":1}]}`:                                             `/limits/0/brand: unknown key`,
		`{"items":[` + item + `],"baseline":["j"]}`:                                                   `/baseline/0: "j" is not among the items`,
		`{"items":[` + item + `],"decision_id":".."}`:                                                 `/decision_id: "..": is no name in a URL`,
		`{"items":[` + item + `],"decision_id":"a b"}`:                                                `/decision_id: "a b": must be of letters`,
		`{"items":[` + item + `],"decision_id":"` + strings.Repeat("a", 129) +
			`"}`: `/decision_id: must have at most 128 bytes`,
		`{"items":` + strings.Repeat("[", 20000): `/items/0/0`,
		`{"items":[` + item + `],"defer":"yes"}`: `/defer: have a string, want true or false`,
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
		expect.Prefix(err)(t, want, text)
	}
	before := e.Sequence()
	_, err = e.Decide(t.Context(), "nowhere", stock("a", 1), 0)
	is(t, "nowhere", err, engine.ErrNotFound)
	_, err = e.Decide(t.Context(), "home", stock("a", 1), 0) // of one feature
	is(t, "another schema", err, api.ErrInvalid)
	expect.Equal(t, e.Sequence(), before, "a bad request is in the log")
	expect.Fails(e.Put(t.Context(), "a/b", []byte(clothes), 0))(t, api.ErrInvalid, "a placement's name")
}

// The errors come out of the engine with the field that they are about.
func TestBadPolicyOfAPlacement(t *testing.T) {
	e, err := engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner})
	fatal.If(t, err)
	defer e.Close()
	_, err = e.Put(t.Context(), "home", []byte(
		`{"max_size":3,"features":[{"name":"price","kind":"number"}],"policy":{"name":"feel-good-ts"}}`), 0)
	if want := `/policy: feel-good-ts: learns from the items that were not shown, too: the placement must have "log_items": "all"`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	_, err = e.Put(t.Context(), "home", []byte(
		`{"max_size":3,"features":[{"name":"price","kind":"number"}],"policy":{"name":"onl-mnl","lamda":3}}`), 0)
	if want := `/policy: onl-mnl: unknown key "lamda": did you mean "lambda"?`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err = e.Put(t.Context(), "home",
		[]byte(`{"max_size":3,"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category"}],"policy":{"name":"onl-mnl","lambda":3,"beta":1,"warmup":20},"attribution_window":"30m","mode":"learn"}`), 0); err != nil {
		t.Error(err)
	}
}

const clothes = `{"max_size":2,"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category","values":["a","b"]},{"name":"age","kind":"number","from":"shopper","default":0}],"policy":{"name":"uniform"}}`
