package setup_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/setup"
)

func TestBadConfigs(t *testing.T) {
	const fine = `"max_size":2,"features":[{"name":"a","kind":"number"},{"name":"b","kind":"category"}],"policy":{"name":"uniform"}`
	for text, want := range map[string]string{
		``:                            `the JSON ends early`,
		`[]`:                          `wrong type: have a list, want an object`,
		`{` + fine + `,"max_size":3}`: `/max_size: duplicate key`,
		`{` + fine + `,"sizes":3}`:    `/sizes: unknown key "sizes": must be one of max_size, min_size, max_request_items, features, include, exclude, currency, limits, `,
		`{"max_size":2,"features":[{"name":"a","kind":"number","scal":1}],"policy":{}}`: `/features/0/scal: unknown key "scal": did you mean "scale"?`,
		`{` + fine + `} {}`:                                 `not JSON: `,
		`{` + fine + `,"seed":-1}`:                          `/seed: `,
		`{` + fine + `,"seed":1e300}`:                       `/seed: `,
		`{` + fine + `,"horizon":"many"}`:                   `/horizon: wrong type: have a string, want a whole number`,
		`{` + fine + `,"horizon":0}`:                        `/horizon: 0: must be from 1 to 100000000`,
		`{` + fine + `,"max_versions":0}`:                   `/max_versions: 0: must be from 1 to 1000`,
		`{` + fine + `,"max_request_items":0}`:              `/max_request_items: 0: must be from 1 to 1000000`,
		`{` + fine + `,"memory_bytes":10}`:                  `/memory_bytes: 10: must be at least `,
		`{` + fine + `,"memory_bytes":9000000000000000000}`: `/memory_bytes: `,
		`{"max_size":2,"max_request_items":1000000,"features":[{"name":"a","kind":"text","columns":4096}],"policy":{}}`: `/max_request_items: 1000000: must be at most 16384 of 4096 columns each`,
		`{` + fine + `,"mode":"lern"}`:                                              `/mode: "lern": unknown: did you mean "learn"?`,
		`{` + fine + `,"log_items":"some"}`:                                         `/log_items: "some": unknown: must be one of shown, all`,
		`{` + fine + `,"explore_share":0.1}`:                                        `/explore_share: 0.1: is for the mode "explore"`,
		`{` + fine + `,"mode":"explore","explore_share":0}`:                         `/explore_share: 0: must be in (0, 1]`,
		`{` + fine + `,"explore":"swaps"}`:                                          `/explore: "swaps": is for the mode "explore"`,
		`{` + fine + `,"mode":"explore","explore":"item"}`:                          `/explore: "item": unknown: must be one of sets, swaps`,
		`{` + fine + `,"mode":"explore","explore_share":2}`:                         `/explore_share: 2: must be in (0, 1]`,
		`{` + fine + `,"attribution_window":"soon"}`:                                `/attribution_window: "soon": must be a duration such as "30m"`,
		`{` + fine + `,"attribution_window":"-1s"}`:                                 `/attribution_window: "-1s": must be`,
		`{` + fine + `,"limits":[{"feature":"a","max":1}]}`:                         `/limits/0/feature: "a": must be a category of items`,
		`{` + fine + `,"limits":[{"feature":"b","max":-1}]}`:                        `/limits/0/max: -1: must not be negative`,
		`{` + fine + `,"limits":[{"feature":"b","max":2},{"feature":"b","max":1}]}`: `/limits/1: "b" has a limit already`,
		`{` + fine + `,"limits":[{"items":["b"],"max":1}]}`:                         `/limits/0/items: only requests have items`,
		`{` + fine + `,"currency":"euro"}`:                                          `/currency: "euro": must be three capital letters`,
		`{` + fine + `,"include":["x","y","z"]}`:                                    `/include: `,
		`{` + fine + `,"include":["x"],"exclude":["y","x"]}`:                        `/exclude/1: "x" is in include already`,
		`{` + fine + `,"exclude":[""]}`:                                             `/exclude/0: must have from 1 to 1024 bytes`,
		`{"max_size":2,"policy":{}}`:                                                `/features: must name at least one feature`,
		`{"max_size":2,"features":[{"name":"a","kind":"number"}],"policy":"x"}`:     `/policy: must be an object such as`,
		`{"max_size":0,"features":[]}`:                                              `/max_size: 0: must be from 1 to 1000`,
	} {
		_, err := setup.Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// A configuration's canonical form is unique and complete.
func TestCanonical(t *testing.T) {
	a := fatal.Or(setup.Parse([]byte(`{"policy":{"b":1.0,"a":[ ]}, "attribution_window":"90s", "max_size":3,"features":[{"kind":"number","name":"price","default":1e0}]}`)))(t)
	const want = `{"attribution_window":"1m30s","features":[{"default":1,"from":"item","kind":"number","name":"price","scale":1}],"horizon":100000,"log_items":"shown","max_request_items":1000,"max_size":3,"max_versions":8,"memory_bytes":67108864,"mode":"learn","policy":{"a":[],"b":1},"seed":0}`
	expect.Equal(t, string(a.Canonical()), want, "have")
	b, err := setup.Parse(a.Canonical())
	if err != nil || string(b.Canonical()) != want {
		t.Errorf("read again: %s, %v", b.Canonical(), err)
	}
}

// A placement with three limits says that they must not cross.
func TestNoteOfLimits(t *testing.T) {
	for n := range 5 {
		var limits []string
		for k := range n {
			limits = append(limits, fmt.Sprintf(`{"group":"g%d","max":1}`, k))
		}
		c := fatal.Or(setup.Parse([]byte(`{"max_size":2,"features":[{"name":"a","kind":"number"}],"limits":[` + strings.Join(limits,
			",") + `]}`)))(t)
		notes := strings.Join(c.Answer().Notes, "\n")
		expect.Equal(t, strings.Contains(notes, "in two ways that cross"), n > 2, notes)
	}
}

// A placement that draws sets under rules says that the log does not tell how.
func TestNoteOfTheLaw(t *testing.T) {
	for rule, noted := range map[string]bool{``: false, `,"exclude":["a"]`: true, `,"include":["a"]`: true, `,"min_size":1`: true,
		`,"min_size":2`: false, `,"capacity":2`: false, `,"limits":[{"group":"a","max":1}]`: true,
		`,"shopper_history":{"keep":"24h","hide_bought":true}`: true, `,"exclude":["a"],"explore":"swaps"`: false,
		`,"exclude":["a"],"log_items":"shown"`: false, `,"limits":[{"group":"a","max":1},{"group":"b","max":1}]`: false} {
		c := fatal.Or(setup.Parse([]byte(`{"max_size":2,"features":[{"name":"a","kind":"number"}],"mode":"explore"` + rule + `}`)))(t)
		notes := strings.Join(c.Answer().Notes, "\n")
		expect.Equal(t, strings.Contains(notes, "explore by swaps"), noted, rule, notes)
	}
}
