package option_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/option"
	"vitrine/internal/panics"
)

type inner struct {
	Lambda float64 `toml:"lambda" range:"[0.5, inf)" doc:"a precision"`
	Pilot  string  `toml:"pilot" range:"adam|map" doc:"a way"`
}

type options struct {
	inner   `zero:"lambda: the paper's"`
	Warmup  int     `toml:"warmup" range:"[0, inf)"`
	Rate    float64 `toml:"rate" range:"(0, 1)"`
	Share   float64 `toml:"share" range:"(0, 0.25]" when:"pilot=map"`
	Update  string  `toml:"update" range:"mle|map"` // share is unrestricted under "map"
	Part    float64 `toml:"part" range:"[0, 1)"`
	Samples int     `toml:"samples" range:"[1, inf)" zero:"as many as items"`
	Hidden  []int   `toml:"hidden" range:"[1, 1e4]"`
	Growth  float64 `toml:"growth" range:"(1, inf)"`
	Step    float64 `toml:"step" range:"(0, inf)"`
	Open    float64 `toml:"open"`
	Restart bool    `toml:"restart" doc:"whether it starts again"`
	hidden  int     // not an option
}

func legal() options {
	return options{inner: inner{Lambda: 1, Pilot: "adam"}, Rate: 0.5,
		Update: "map", Part: 0, Samples: 1, Hidden: []int{3, 2}, Growth: 2, Step: 1}
}

func TestList(t *testing.T) {
	want := [][]string{
		{"lambda", "number", "at least 0.5, or 0 for the paper's", "a precision"},
		{"pilot", "string", "adam, map", "a way"},
		{"warmup", "integer", "at least 0", ""},
		{"rate", "number", "between 0 and 1", ""},
		{"share", "number", "above 0 and at most 0.25", ""},
		{"update", "string", "mle, map", ""},
		{"part", "number", "at least 0 and below 1", ""},
		{"samples", "integer", "at least 1, or 0 for as many as items", ""},
		{"hidden", "list of integers", "from 1 to 10000", ""},
		{"growth", "number", "above 1", ""},
		{"step", "number", "positive", ""},
		{"open", "number", "", ""},
		{"restart", "true or false", "", "whether it starts again"},
	}
	var got [][]string
	for _, o := range option.List(legal()) {
		got = append(got, []string{o.Key, o.Type, o.Range(), o.Doc})
	}
	expect.Equal(t, got, want)
	if l := option.List(nil); l != nil {
		t.Errorf("no options are %v", l)
	}
	if o := option.List(legal()); !reflect.DeepEqual(o[8].Default, []int{3, 2}) || o[1].Default != "adam" {
		t.Errorf("defaults %v, %v", o[8].Default, o[1].Default)
	}
}

func TestCheck(t *testing.T) {
	expect.Error(t, option.Check(legal()), nil, "legal options")
	for want, change := range map[string]func(*options){
		"": func(o *options) {
			*o = options{inner{0, "adam"}, 0, 0.5, -9, "map", 0, 0, nil, 2, 1, math.Inf(1), true, -1}
		},
		"lambda = 0.4: must be finite and at least 0.5, or 0 for the paper's": func(o *options) { o.Lambda = 0.4 },
		"lambda = +Inf: must be finite and at least 0.5": func(o *options) {
			o.Lambda = math.Inf(1)
		},
		"lambda = 1e+101: must be at most 1e+100":             func(o *options) { o.Lambda = 1e101 },
		"lambda = NaN: must be":                               func(o *options) { o.Lambda = math.NaN() },
		`pilot = "newton": unknown: must be one of adam, map`: func(o *options) { o.Pilot = "newton" },
		"warmup = -1: must be at least 0":                     func(o *options) { o.Warmup = -1 },
		"rate = 1: must be between 0 and 1":                   func(o *options) { o.Rate = 1 },
		"rate = 0: must be":                                   func(o *options) { o.Rate = 0 },
		"share = 0: must be above 0":                          func(o *options) { o.Pilot = "map" },
		"share = 0.26: must be above 0 and at most 0.25":      func(o *options) { o.Pilot, o.Share = "map", 0.26 },
		"part = 1: must be at least 0 and below 1":            func(o *options) { o.Part = 1 },
		"samples = -1: must be at least 1, or 0":              func(o *options) { o.Samples = -1 },
		"hidden = [3 0]: must be from 1 to 10000":             func(o *options) { o.Hidden = []int{3, 0} },
		"hidden = [10001]: must be":                           func(o *options) { o.Hidden = []int{10001} },
		"growth = 1: must be finite and above 1":              func(o *options) { o.Growth = 1 },
		"step = 0: must be finite and positive":               func(o *options) { o.Step = 0 },
	} {
		o := legal()
		change(&o)
		err := option.Check(o)
		if got := ""; err != nil {
			got = err.Error()
			if want == "" || !strings.HasPrefix(got, want) {
				t.Errorf("error %q, want %q", got, want)
			}
		} else if want != "" {
			t.Errorf("no error, want %q", want)
		}
	}
}

// A struct may refine an option that it embeds.
func TestEmbeddedOptionsAreRefined(t *testing.T) {
	type refined struct {
		inner `range:"pilot: adam|map|none" doc:"lambda: of this struct"`
	}
	o := refined{inner{Lambda: 1, Pilot: "none"}}
	expect.Error(t, option.Check(o), nil)
	expect.Refused(option.Check(o.inner))(t, "the embedded struct takes the word too")
	o.Pilot, o.Lambda = "map", 0.1
	expect.Prefix(option.Check(o))(t, "lambda = 0.1: must be")
	if list := option.List(o); list[0].Doc != "of this struct" ||
		list[1].Doc != "a way" || list[1].Range() != "adam, map, none" {
		t.Errorf("options %+v", list)
	}
}

func TestIllFormedTagsPanic(t *testing.T) {
	for name, bad := range map[string]any{
		"range": struct {
			A float64 `toml:"a" range:"0..1"`
		}{},
		"empty": struct {
			A float64 `toml:"a" range:"[1, 0]"`
		}{},
		"type": struct {
			A chan int `toml:"a"`
		}{},
		"zero": struct {
			inner `zero:"mu: none"`
		}{},
		"embedded range": struct {
			inner `range:"lambda: 0..1"`
		}{},
		"embedded doc": struct {
			inner `doc:"mu: a mean"`
		}{},
	} {
		if panics.Value(func() { option.List(bad) }) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}
