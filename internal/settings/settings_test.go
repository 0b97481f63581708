package settings_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/panics"
	"vitrine/internal/settings"
)

const text = `name = "x"
rounds = 10

[truth]
kind = "linear"
options = { scale = 2.0, deep = { x = 1 } }

[[policy]]
name = "a"
lambda = 1.5

[[policy]]
name = "b"
[policy.utility]
kind = "mlp"

[[policy.experts]]
kind = "linear"
[[policy.experts]]
kind = "wide"
units = 3
`

func parsed(t testing.TB) *settings.Document {
	t.Helper()
	return fatal.Or(settings.Parse("x.toml", []byte(text)))(t)
}

// Every key and table maps to its line in the file. Lines counted by hand.
func TestLinesOfKeys(t *testing.T) {
	want := map[string]int{
		"name": 1, "rounds": 2, "truth": 4, "truth.kind": 5, "truth.options": 6, "truth.options.scale": 6,
		"truth.options.deep": 6, "truth.options.deep.x": 6, "policy[0]": 8, "policy[0].name": 9, "policy[0].lambda": 10,
		"policy[1]": 12, "policy[1].name": 13, "policy[1].utility": 14, "policy[1].utility.kind": 15,
		"policy[1].experts[0]": 17, "policy[1].experts[0].kind": 18,
		"policy[1].experts[1]": 19, "policy[1].experts[1].kind": 20, "policy[1].experts[1].units": 21,
	}
	if marked := fatal.Or(settings.Parse("x.toml", []byte("\ufeff"+text)))(t); !reflect.DeepEqual(marked, parsed(t)) {
		t.Errorf("with a byte order mark: %v", marked)
	}
	if got := parsed(t).Lines; !reflect.DeepEqual(got, want) {
		for path, line := range want {
			expect.Equal(t, got[path], line, path, "is on line")
		}
		t.Errorf("lines are %v", got)
	}
}

// Errors name the file, the line, the table and the key. A missing key gets the line of its table.
func TestErrorsNameTheLine(t *testing.T) {
	root := parsed(t).Root()
	policies, err := root.Tables("policy")
	if err != nil || len(policies) != 2 {
		t.Fatal(policies, err)
	}
	utility, ok, err := policies[1].Table("utility")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	experts, err := policies[1].Tables("experts")
	if err != nil || len(experts) != 2 {
		t.Fatal(experts, err)
	}
	for want, err := range map[string]error{
		"x.toml:2: rounds is 10":                        root.Errorf("rounds", "rounds is %d", 10),
		"x.toml: seeds is missing":                      root.Errorf("seeds", "seeds is missing"),
		"x.toml:10: policy: lambda = 1.5: is too small": policies[0].At(fmt.Errorf("lambda = 1.5: is too small")),
		"x.toml:8: policy: radius = 0: must be positive": policies[0].At(
			fmt.Errorf("radius = 0: must be positive"),
		),
		"x.toml:15: policy: utility: kind is strange":          utility.Errorf("kind", "kind is strange"),
		"x.toml:21: policy: experts[1]: units is strange":      experts[1].Errorf("units", "units is strange"),
		"x.toml:1: name = 'x': must be a table":                second(root.Table("name")),
		"x.toml:1: name: must be an array of tables, [[name]]": last(root.Tables("name")),
		"x.toml:21: policy: experts[1]: unknown key \"units\": must be one of kind": experts[1].Bind(&struct{}{},
			"kind"),
		"x.toml:2: rounds = 10: wrong type: want a string in quotes": root.Bind(&struct {
			Rounds string `toml:"rounds"`
		}{}, "name", "truth", "policy"),
	} {
		expect.Message(err)(t, want)
	}
	if _, ok, err := root.Table("revenue"); ok || err != nil {
		t.Errorf("a missing table: %v, %v", ok, err)
	}
	if list, err := root.Tables("revenue"); list != nil || err != nil {
		t.Errorf("a missing array: %v, %v", list, err)
	}
	expect.Prefix(settings.Parse("x.toml", []byte("a = 1\nb = \n")))(t, "x.toml:2: ", "a syntax error")
}

func second(_ settings.Section, _ bool, err error) error { return err }
func last(_ []settings.Section, err error) error         { return err }

// Bind changes only the keys of the section, and leaves the section unchanged.
func TestBind(t *testing.T) {
	root := parsed(t).Root()
	o := struct {
		Rounds int    `toml:"rounds"`
		Seeds  int    `toml:"seeds"`
		Name   string `toml:"name"`
	}{1, 2, "y"}
	if err := root.Bind(&o, "truth", "policy", "name"); err != nil || o.Rounds != 10 || o.Seeds != 2 || o.Name != "y" {
		t.Errorf("bound %+v, %v", o, err)
	}
	rest, err := root.Split("name", &o)
	if len(rest.Values) != 3 || rest.Values["name"] != nil || err != nil || o.Name != "x" || len(root.Values) != 4 {
		t.Errorf("without the name is %v of %v, %v", rest.Values, root.Values, err)
	} else if err := rest.Bind(&struct{}{}, "rounds"); err == nil ||
		!strings.HasSuffix(err.Error(), ": must be one of rounds, name") {
		t.Errorf("without the name, an unknown key: %v", err)
	}
}

var shapes = []settings.Kind[string]{
	settings.Of("square", "four sides", side{1, []int{4}}, func(o side, d settings.Dims) (string, error) {
		if o.Length == 9 {
			return "", errors.New("length = 9: is refused")
		}
		return fmt.Sprint("square ", o.Length, o.Corners, d.Features), nil
	}),
	settings.Fixed("circle", "no side", "circle"),
}

type side struct {
	Length  float64 `toml:"length" range:"(0, 10]" doc:"the length"`
	Corners []int   `toml:"corners" doc:"their number"`
}

func (o side) Check() error {
	if o.Length == 8 {
		return errors.New("length = 8: fails its check")
	}
	return nil
}

func TestPick(t *testing.T) {
	for text, want := range map[string]string{
		"kind = \"square\"\nlength = 3.0":     "square 3 [4] 7",
		`kind = "square"`:                     "square 1 [4] 7",
		"kind = \"square\"\ncorners = [3, 5]": "square 1 [3 5] 7",
		"kind = \"square\"\ncorners = []":     "square 1 [] 7",
		"kind = \"square\"\nlength = 8":       "x.toml:2: length = 8: fails its check",
		"kind = \"square\"\nlength = 9":       "x.toml:2: length = 9: is refused",
		`kind = "circle"`:                     "circle",
		``:                                    "x.toml: kind is missing: must be one of square, circle",
		`kind = "sqare"`:                      `x.toml:1: kind = 'sqare': unknown: did you mean "square"?`,
		`kind = 3`:                            "x.toml:1: kind = 3: unknown: must be one of square, circle",
		"kind = \"circle\"\nlength = 3.0":     `x.toml:2: unknown key "length": must be one of kind`,
		"kind = \"square\"\nlength = 0.0":     "x.toml:2: length = 0: must be above 0 and at most 10",
	} {
		d := fatal.Or(settings.Parse("x.toml", []byte(text)))(t)
		got, known, err := settings.Pick(d.Root(), shapes, settings.Dims{Features: 7})
		if err != nil {
			got = err.Error()
		}
		expect.Equal(t, got, want, text)
		if strings.Contains(text, "3.0") && err == nil &&
			!reflect.DeepEqual(known, map[string]any{"kind": "square", "length": 3.0, "corners": []any{int64(4)}}) {
			t.Errorf("the settings are %v", known)
		}
	}
	if length := shapes[0].Options[0]; length.Key != "length" || length.Default != 1.0 || len(shapes[1].Options) != 0 {
		t.Errorf("the options are %+v and %+v", length, shapes[1].Options)
	}
}

// JSON gives the same values as TOML: 3 and 3.0 differ, as in a file.
func TestReadJSON(t *testing.T) {
	got, err := settings.ReadJSON(
		[]byte(`{"i": 3, "f": 3.0, "e": 1e3, "b": true, "s": "é", "l": [1, {"x": []}], "o": {"k": -2}}`),
	)
	want := map[string]any{"i": int64(3), "f": 3.0, "e": 1000.0, "b": true, "s": "é",
		"l": []any{int64(1), map[string]any{"x": []any{}}}, "o": map[string]any{"k": int64(-2)}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %#v, %v", got, err)
	}
	if got, err := settings.ReadJSON([]byte(`{"n": 9223372036854775808}`)); err != nil || got["n"] != math.Pow(2, 63) {
		t.Errorf("a number beyond the integers is %v, %v", got["n"], err)
	}
	for text, want := range map[string]string{
		`{"a": {"b": null}}`:   "/a/b: null is not a value: leave the key out",
		`{"a": [1, null]}`:     "/a/1: null is not a value: leave the key out",
		`{"a": 1e999}`:         "/a: the number 1e999 is out of range",
		`[1]`:                  "must be an object",
		`{} {}`:                "invalid character '{' after top-level value",
		`null`:                 "must be an object",
		`{"a": 1, "a": 2}`:     "duplicate",
		`{"a": 1`:              "EOF",
		``:                     "EOF",
		"{\"a\": \"\xff\"}":    "UTF-8",
		`{"a": 1, "b": [1, 2}`: "invalid character",
	} {
		expect.Part(settings.ReadJSON([]byte(text)))(t, want, text)
	}
}

func TestLiteral(t *testing.T) {
	for want, v := range map[string]any{
		"3": int64(3), "0.5": 0.5, "'x'": "x", "true": true,
		"[1, 2]": []any{int64(1), int64(2)}, "a table": map[string]any{"a": 1},
	} {
		expect.Equal(t, settings.Literal(v), want, v, "is written as")
	}
	known := map[string]any{"kind": "x"}
	if got := settings.Merge(known, side{Length: 2}); !reflect.DeepEqual(got, map[string]any{
		"kind": "x", "length": 2.0, "corners": []any{},
	}) || len(known) != 1 {
		t.Errorf("merged %v, and the first is %v", got, known)
	}
	if panics.Value(func() { settings.Keys(func() {}) }) == nil {
		t.Error("options that TOML cannot hold do not panic")
	}
}

// Any file or object is either read or rejected, and an object's values can be written as TOML.
func FuzzRead(f *testing.F) {
	f.Add([]byte(text))
	f.Add([]byte(`{"a": [1, {"b": 2.5}], "c": "x"}`))
	f.Add([]byte("[[a.b]]\n[a.b.c]\n[[a.b.c.d]]\nx = {y = 1}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, err := settings.Parse("x", text); err == nil {
			for path, line := range d.Lines {
				if line < 1 || line > strings.Count(string(text), "\n")+1 {
					t.Fatalf("%s is on line %d", path, line)
				}
			}
		}
		if values, err := settings.ReadJSON(text); err == nil && len(values) > 0 {
			var none struct{}
			expect.Refused((settings.Section{Doc: new(settings.Document), Values: values}).Bind(&none))(fatal.T(t),
				text, "no key is unknown")
		}
	})
}
