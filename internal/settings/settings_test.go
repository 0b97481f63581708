package settings_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"vitrine/internal/fatal"
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
	d := fatal.Or(settings.Parse("x.toml", []byte(text)))(t)
	return d
}

// Every key and table has the line on which it is written, counted by hand.
func TestLinesOfKeys(t *testing.T) {
	want := map[string]int{
		"name": 1, "rounds": 2, "truth": 4, "truth.kind": 5, "truth.options": 6, "truth.options.scale": 6,
		"truth.options.deep": 6, "truth.options.deep.x": 6, "policy[0]": 8, "policy[0].name": 9, "policy[0].lambda": 10,
		"policy[1]": 12, "policy[1].name": 13, "policy[1].utility": 14, "policy[1].utility.kind": 15,
		"policy[1].experts[0]": 17, "policy[1].experts[0].kind": 18,
		"policy[1].experts[1]": 19, "policy[1].experts[1].kind": 20, "policy[1].experts[1].units": 21,
	}
	if got := parsed(t).Lines; !reflect.DeepEqual(got, want) {
		for path, line := range want {
			if got[path] != line {
				t.Errorf("%s is on line %d, want %d", path, got[path], line)
			}
		}
		t.Errorf("lines are %v", got)
	}
}

// Errors name the file, the line, the table and the key. A missing key has the line of its table.
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
		"x.toml:2: rounds is 10":                                                    root.Errorf("rounds", "rounds is %d", 10),
		"x.toml: seeds is missing":                                                  root.Errorf("seeds", "seeds is missing"),
		"x.toml:10: policy: lambda = 1.5: is too small":                             policies[0].At(fmt.Errorf("lambda = 1.5: is too small")),
		"x.toml:8: policy: radius = 0: must be positive":                            policies[0].At(fmt.Errorf("radius = 0: must be positive")),
		"x.toml:15: policy: utility: kind is strange":                               utility.Errorf("kind", "kind is strange"),
		"x.toml:21: policy: experts[1]: units is strange":                           experts[1].Errorf("units", "units is strange"),
		"x.toml:1: name = 'x': must be a table":                                     second(root.Table("name")),
		"x.toml:1: name: must be an array of tables, [[name]]":                      last(root.Tables("name")),
		"x.toml:21: policy: experts[1]: unknown key \"units\": must be one of kind": experts[1].Bind(&struct{}{}, "kind"),
		"x.toml:2: rounds = 10: wrong type: want a string in quotes": root.Only("rounds").Bind(&struct {
			Rounds string `toml:"rounds"`
		}{}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	if _, ok, err := root.Table("revenue"); ok || err != nil {
		t.Errorf("a missing table: %v, %v", ok, err)
	}
	if list, err := root.Tables("revenue"); list != nil || err != nil {
		t.Errorf("a missing array: %v, %v", list, err)
	}
	if _, err := settings.Parse("x.toml", []byte("a = 1\nb = \n")); err == nil || !strings.HasPrefix(err.Error(), "x.toml:2: ") {
		t.Errorf("a syntax error is %v", err)
	}
}

func second(_ settings.Section, _ bool, err error) error { return err }
func last(_ []settings.Section, err error) error         { return err }

// Bind changes only the keys of the section. Only and Without leave their section as it is.
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
	if only := root.Only("name"); !reflect.DeepEqual(only.Values, map[string]any{"name": "x"}) {
		t.Errorf("only the name is %v", only.Values)
	}
	if left := root.Without("name"); len(left.Values) != 3 || left.Values["name"] != nil {
		t.Errorf("without the name is %v", left.Values)
	} else if err := left.Bind(&struct{}{}, "rounds"); err == nil || !strings.HasSuffix(err.Error(), ": must be one of rounds, name") {
		t.Errorf("without the name, an unknown key: %v", err)
	}
	if len(root.Only("nothing").Values) != 0 || len(root.Values) != 4 {
		t.Errorf("the document has %v", root.Values)
	}
}

var shapes = []settings.Named[string]{
	settings.Name("square", "four sides", settings.WithDefaults(func() side { return side{Length: 1} }, func(_ settings.Section, o side, features int) (string, error) {
		return fmt.Sprint("square ", o.Length, features), nil
	})),
	settings.Name("circle", "no side", settings.Fixed("circle")),
}

type side struct {
	Length float64 `toml:"length" range:"(0, 10]" doc:"the length"`
}

func TestPick(t *testing.T) {
	for text, want := range map[string]string{
		"kind = \"square\"\nlength = 3.0": "square 3 7",
		`kind = "square"`:                 "square 1 7",
		`kind = "circle"`:                 "circle",
		``:                                "x.toml: kind is missing: must be one of square, circle",
		`kind = "sqare"`:                  `x.toml:1: kind = 'sqare': unknown: did you mean "square"?`,
		`kind = 3`:                        "x.toml:1: kind = 3: unknown: must be one of square, circle",
		"kind = \"circle\"\nlength = 3.0": `x.toml:2: unknown key "length": must be one of kind`,
		"kind = \"square\"\nlength = 0.0": "x.toml:2: length = 0: must be above 0 and at most 10",
	} {
		d := fatal.Or(settings.Parse("x.toml", []byte(text)))(t)
		m, err := settings.Pick(d.Root(), shapes, 7)
		got := m.Value
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if strings.Contains(text, "3.0") && err == nil && !reflect.DeepEqual(m.Settings, map[string]any{"kind": "square", "length": 3.0}) {
			t.Errorf("the settings are %v", m.Settings)
		}
	}
	if got := settings.Entries("a ", shapes); got[1] != (settings.Entry{Name: "a circle", Doc: "no side"}) {
		t.Errorf("the entries are %v", got)
	}
}

// JSON has the values that TOML has: 3 and 3.0 differ, as in a file.
func TestReadJSON(t *testing.T) {
	got, err := settings.ReadJSON([]byte(`{"i": 3, "f": 3.0, "e": 1e3, "b": true, "s": "é", "l": [1, {"x": []}], "o": {"k": -2}}`))
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
		`{} {}`:                "there is more after the object",
		`{"a": 1, "a": 2}`:     "duplicate",
		`{"a": 1`:              "EOF",
		``:                     "EOF",
		"{\"a\": \"\xff\"}":    "UTF-8",
		`{"a": 1, "b": [1, 2}`: "invalid character",
	} {
		if _, err := settings.ReadJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The nearest legal word is proposed up to two edits away, and else all are named.
func TestHint(t *testing.T) {
	legal := []string{"lambda", "beta", "warmup"}
	for word, want := range map[string]string{
		"lamda": `: did you mean "lambda"?`, "lamba_": `: did you mean "lambda"?`, "bet": `: did you mean "beta"?`,
		"gamma": ": must be one of lambda, beta, warmup", "": ": must be one of lambda, beta, warmup",
	} {
		if got := settings.Hint(word, legal); got != want {
			t.Errorf("%q%s, want %s", word, got, want)
		}
	}
}

func TestLiteral(t *testing.T) {
	for want, v := range map[string]any{
		"3": int64(3), "0.5": 0.5, "'x'": "x", "true": true, "[1, 2]": []any{int64(1), int64(2)}, "a table": map[string]any{"a": 1},
	} {
		if got := settings.Literal(v); got != want {
			t.Errorf("%v is written as %s, want %s", v, got, want)
		}
	}
	known := map[string]any{"kind": "x"}
	if got := settings.Merge(known, side{2}); !reflect.DeepEqual(got, map[string]any{"kind": "x", "length": 2.0}) || len(known) != 1 {
		t.Errorf("merged %v, and the first is %v", got, known)
	}
	defer func() {
		if recover() == nil {
			t.Error("options that TOML cannot hold do not panic")
		}
	}()
	settings.Keys(func() {})
}

// Files and objects of any content are read or refused, and the values of an object can be written as TOML.
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
			if err := (settings.Section{Doc: new(settings.Document), Values: values}).Bind(&values); err != nil && !strings.Contains(err.Error(), "toml") {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}
