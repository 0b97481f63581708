package choice

import (
	"context"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

func TestReadSpecErrors(t *testing.T) {
	long := "form = \"long\"\nchoice = [\"id\"]\nchosen = \"y\"\n"
	wide := "form = \"wide\"\nchosen = \"y\"\n"
	utility := "[utility]\ngeneric = [\"x\"]\n"
	for _, c := range []struct{ text, want string }{
		{"[data]\n" + utility,
			`s: data.form is "": want long (a row for each alternative) or wide (a row for each choice)`},
		{"[data]\nform = \"long\"\n" + utility,
			`s: data.choice is missing: a long table needs the columns that identify a choice, choice = ["case"]`},
		{"[data]\n" + long + "names = \"x\"\n" + utility, `s: data.names is for wide tables`},
		{"[data]\n" + wide + utility,
			`s: data.alternatives is missing: a wide table needs the labels of the alternatives`},
		{"[data]\n" + wide + "alternatives = [\"a\"]\nnames = \"{variable}\"\n" + utility,
			`s: data.names is "{variable}": want the pattern of the columns, such as "{variable}.{alternative}"`},
		{"[data]\n" + wide + "alternatives = [\"a\"]\nnames = \"{variable}.{alternative}\"\nalternative = \"z\"\n" +
			utility, `s: data.choice and data.alternative are for long tables: a row of a wide table is a choice`},
		{"[data]\n" + long + "outside = \"maybe\"\n" + utility,
			`s: data.outside is "maybe": want absent, implicit or explicit`},
		{"[data]\n" + long + "outside = \"explicit\"\n" + utility,
			`s: outside = "explicit" needs data.outside_alternative, the label of the outside option`},
		{"[data]\n" + long + "outside_alternative = \"a\"\n" + utility,
			`s: data.outside_alternative needs outside = "explicit"`},
		{"[data]\n" + long + "delimiter = \"ab\"\n" + utility, `s: data.delimiter is "ab": want one character`},
		{"[data]\n" + long + "alternatives = [\"a\", \"a\"]\n" + utility, `s: data.alternatives has "a" twice`},
		{"[data]\n" + long,
			`s: utility has no term: give it constants, generic, individual, specific, terms or a network`},
		{"[data]\n" + long + "[[utility.terms]]\nname = \"b\"\n", `s: utility.terms: term 1 has no variable`},
		{"[data]\n" + long + utility + "generc = 1\n", `s: line 7: there is no key "utility.generc"`},
		{"[data]\nform = 3\n",
			"s: line 2: toml: data.form: wrong type: have a TOML integer, want a string in quotes"},
		{"[data\n", "s: line 1: toml: expected ']' to close table name"},
	} {
		expect.Message(ReadSpec("s", []byte(c.text)))(t, c.want, c.text)
	}
}

// A utility's coefficients come in order, and terms with the same name share one.
func TestTerms(t *testing.T) {
	u := Utility{Constants: true, Reference: "b", Generic: []string{"g"}, Individual: []string{"i"},
		Specific: []string{"s"},
		Terms:    []Term{{"shared", "x", []string{"a"}}, {"shared", "y", []string{"c"}}, {"", "z", nil}}}
	d := &Data{Alternatives: []string{"c", "a", "b"}, Variables: []string{"g", "i", "s", "x", "y", "z"}}
	g := fatal.Or(newDesign(&u, []string{"a", "b", "c"}, d.Outside, d))(t)
	want := []string{"constant[a]", "constant[c]", "g", "i[a]", "i[c]", "s[a]", "s[b]", "s[c]", "shared", "z"}
	expect.Equal(t, g.names, want)
	b := NewBuilder(d.Alternatives, d.Variables, false)
	// c, a and b, with g i s x y z.
	fatal.If(t, b.Add(Case{Alternatives: []int{0, 1, 2},
		X: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}}))
	made := fatal.Or(b.Data())(t)
	var scratch matrix
	wantColumns := [][]float64{{0, 1, 0}, {1, 0, 0}, {1, 7, 13}, {0, 8, 0}, {2, 0, 0}, {0, 9, 0}, {0, 0, 15}, {3, 0, 0},
		{5, 10, 0}, {6, 12, 18}}
	expect.Equal(t, g.columns(&scratch, made.blocks[0]), wantColumns)
	for _, c := range []struct {
		u    Utility
		want string
	}{
		{Utility{Constants: true, Reference: "z"},
			`utility.reference is "z": the alternatives of the data are ["a" "b" "c"]`},
		{Utility{Terms: []Term{{"", "x", []string{"z"}}}},
			`utility.terms: term 1: alternative "z": the alternatives of the data are ["a" "b" "c"]`},
		{Utility{Generic: []string{"w"}},
			`utility: the data have no variable "w": they have ["g" "i" "s" "x" "y" "z"]`},
		{Utility{Generic: []string{"g", "i", "g"}}, `utility names the variable "g" twice`},
		{Utility{Individual: []string{"i"}, Specific: []string{"i"}}, `utility names the variable "i" twice`},
	} {
		expect.Message(newDesign(&c.u, []string{"a", "b", "c"}, d.Outside, d))(t, c.want)
	}
}

func TestFitRefuses(t *testing.T) {
	one, only := loadTrips(t, replaceLine(trips, "[utility]", "filter = \"district == 'south'\"\n[utility]"))
	expect.Message(Fit(context.Background(), one, only, Options{Errors: "clustered"}))(t,
		"clustered errors need data.cluster or data.panel, with several values")
	never, none := loadTrips(t, replaceLine(trips, `chosen = "chosen"`, `chosen = "chosen == 2"`))
	expect.Message(Fit(context.Background(), never, none, Options{}))(t,
		"every choice takes the outside option: check data.chosen")
	expect.Message(Fit(context.Background(), one, only, Options{Workers: -1}))(t,
		"workers is -1: want at least 0, one for each processor")
	expect.Message(Fit(context.Background(), one, only, Options{Steps: -1}))(t,
		"steps is -1 and tolerance 0: want at least 0, the default")
	spec, d := loadTrips(t, replaceLine(trips, `chosen = "chosen"`, ""))
	expect.Message(Fit(context.Background(), spec, d, Options{}))(t,
		"the data do not say what was chosen: set data.chosen")
	if part, err := slice(d, 0, 3); err != nil || !part.Unobserved {
		t.Errorf("a part of the data says what was chosen, %v", err)
	}
	r := &Result{Spec: spec, Alternatives: d.Alternatives, Outside: true, Coefficients: make([]float64, 8)}
	expect.Refused(r.Score(d))(t, "a score of choices that are not known")
	if shares, err := r.Shares(d); err != nil || len(shares) != 5 {
		t.Errorf("shares %v, %v", shares, err)
	}
}

// A variable may be given a name, which tables, coefficients and elasticities then use.
func TestNamedVariables(t *testing.T) {
	named := replaceLine(trips, `generic = ["cost", "time / 60"]`, `generic = ["cost", "hours = time / 60"]`)
	r, d := fitText(t, "testdata/trips.csv", named, Options{})
	want, base := fitText(t, "testdata/trips.csv", trips, Options{})
	if r.Names[4] != "hours" || r.Coefficients[4] != want.Coefficients[4] {
		t.Errorf("%s is %v, want hours, %v", r.Names[4], r.Coefficients[4], want.Coefficients[4])
	}
	text, err := r.JSON()
	fatal.If(t, err)
	if r, err = decodeModel(text); err != nil {
		t.Fatal(err)
	}
	got := fatal.Or(r.Elasticities(d, "hours"))(t)
	e := fatal.Or(want.Elasticities(base, "time / 60"))(t)
	expect.Equal(t, got, e, "elasticities -time / 60 +hours")
}
