package choice

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/table"
)

const longTable = `case,alt,took,cost,region,w
1,bus,0,2,north,1
1,car,1,5,north,1
2,car,0,4,south,2
2,bus,1,1,south,2
3,car,1,3,north,1
`

const longSpec = `
[data]
form = "long"
choice = ["case"]
alternative = "alt"
chosen = "took"
[utility]
generic = ["cost"]
`

// load writes a file and loads it.
func load(t *testing.T, name string, content []byte, spec string) (*Data, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	fatal.If(t, os.WriteFile(path, content, 0o644))
	s, err := ReadSpec("spec.toml", []byte(spec))
	if err != nil {
		return nil, err
	}
	d, err := Load(context.Background(), path, s, nil)
	if err != nil {
		// Errors begin with the path of the file.
		text, ok := strings.CutPrefix(err.Error(), path+": ")
		if !ok {
			t.Fatalf("the error does not name the file: %v", err)
		}
		return nil, errors.New(text)
	}
	return d, nil
}

// mustLoad is load without errors.
func mustLoad(t *testing.T, name string, content []byte, spec string) *Data {
	t.Helper()
	return fatal.Or(load(t, name, content, spec))(t)
}

// describe formats data: a line per choice with its alternatives and variables, and a star at the chosen one.
func describe(d *Data) string {
	var out strings.Builder
	for s := range d.Choices {
		alternatives, chosen := d.Choice(s)
		for i, a := range alternatives {
			if i > 0 {
				out.WriteString("; ")
			}
			out.WriteString(d.Alternatives[a])
			if i == chosen {
				out.WriteString("*")
			}
			for v := range d.Variables {
				fmt.Fprintf(&out, " %v", value(d, s, i, v))
			}
		}
		if chosen == none {
			out.WriteString("; outside*")
		}
		b, k := d.locate(s)
		if w := b.weightOf(k); w != 1 {
			fmt.Fprintf(&out, " ×%v", w)
		}
		if b.panel != nil {
			fmt.Fprintf(&out, " panel %d", b.panel[k])
		}
		if b.cluster != nil {
			fmt.Fprintf(&out, " cluster %d", b.cluster[k])
		}
		out.WriteString("\n")
	}
	return out.String()
}

func TestReadTables(t *testing.T) {
	wide := "mode,cost_bus,cost_car,income,av_bus,av_car,note\ncar,2,5,10,1,1,x\nbus,1,4,20,1,0,y\nbus,3,,30,1,0,\n"
	wideSpec := `
[data]
form = "wide"
chosen = "mode"
names = "{variable}_{alternative}"
alternatives = ["bus", "car"]
available = "av"
`
	for _, c := range []struct{ name, table, spec, want string }{
		{"long", longTable, longSpec, "bus 2; car* 5\ncar 4; bus* 1\ncar* 3\n"},
		{"weights, panels, clusters", longTable,
			replaceLine(longSpec, "[utility]", "weight = \"w\"\npanel = \"case\"\ncluster = \"region\"\n[utility]"),
			"bus 2; car* 5 panel 0 cluster 0\ncar 4; bus* 1 ×2 panel 1 cluster 1\ncar* 3 panel 2 cluster 0\n"},
		{"true and false", strings.NewReplacer(",0,", ",False,", ",1,", ",True,").Replace(longTable), longSpec,
			"bus 2; car* 5\ncar 4; bus* 1\ncar* 3\n"},
		{"filter and derived columns", longTable,
			replaceLine(replaceLine(longSpec,
				"[utility]", "filter = \"region == 'north' && cost < 10\"\nderive = [\"half = cost / 2\", \"root "+
					"= sqrt(half * 8)\"]\n[utility]"),
				`generic = ["cost"]`, `generic = ["root", "log(cost) + exp(0)", "pow(cost, 2)", "cost > 2", "position", "alternative == 'car'"]`),
			fmt.Sprintf("bus %v %v 4 0 1 0; car* %v %v 25 1 2 1\ncar* %v %v 9 1 1 1\n",
				math.Sqrt(8), math.Log(2)+1, math.Sqrt(20), math.Log(5)+1, math.Sqrt(12), math.Log(3)+1)},
		{"an implicit outside option", strings.Replace(longTable, "2,bus,1", "2,bus,0", 1),
			replaceLine(longSpec, "[utility]", "outside = \"implicit\"\n[utility]"),
			"bus 2; car* 5\ncar 4; bus 1; outside*\ncar* 3\n"},
		{"an explicit outside option", longTable + "1e3,car,1,0,a,1\n1e3,bus,0,0,a,1\n",
			replaceLine(longSpec, "[utility]",
				"filter = \"case != 3\"\noutside = \"explicit\"\noutside_alternative = \"bus\"\n[utility]"),
			"car* 5\ncar 4; outside*\ncar* 0\n"},
		{"an excluded alternative", longTable, replaceLine(longSpec, "[utility]", "exclude = [\"bus\"]\n[utility]"),
			"car* 5\ncar* 3\n"},
		{"only an excluded alternative", longTable + "4,bus,0,2,north,1\n5,car,0,7,north,1\n",
			replaceLine(longSpec, "[utility]", "outside = \"implicit\"\nexclude = [\"bus\"]\n[utility]"),
			"car* 5\ncar* 3\ncar 7; outside*\n"},
		{"given alternatives and labels", longTable,
			replaceLine(longSpec, "[utility]",
				"alternatives = [\"auto\", \"bus\"]\nlabels = {car = \"auto\"}\n[utility]"),
			"bus 2; auto* 5\nauto 4; bus* 1\nauto* 3\n"},
		{"no column of alternatives", longTable, replaceLine(longSpec, `alternative = "alt"`, ""),
			"1 2; 2* 5\n1 4; 2* 1\n1* 3\n"},
		{"another delimiter", strings.ReplaceAll(longTable, ",", ";"), replaceLine(longSpec, "[utility]",
			"delimiter = \";\"\n[utility]"), "bus 2; car* 5\ncar 4; bus* 1\ncar* 3\n"},
		{"a byte order mark and spaces", "\ufeff" + strings.ReplaceAll(longTable, ",", " ,"), longSpec,
			"bus 2; car* 5\ncar 4; bus* 1\ncar* 3\n"},
		{"text as a condition", strings.NewReplacer(",0,", ",no,", ",1,", ",yes,").Replace(longTable),
			replaceLine(longSpec, `chosen = "took"`, `chosen = "took == 'yes'"`),
			"bus 2; car* 5\ncar 4; bus* 1\ncar* 3\n"},
		{"a blank column compared with text", "case,alt,took,cost,note\n1,bus,0,2,\n1,car,1,5,NA\n",
			replaceLine(longSpec, "[utility]", "filter = \"note != 'test'\"\n[utility]"), "bus 2; car* 5\n"},
		{"codes are not numbers", "case,alt,took,cost\n07,01,1,1\n07,1,0,2\n7,01,0,3\n7,1,1,4\n", longSpec,
			"01* 1; 1 2\n01 3; 1* 4\n"},
		{"wide", wide, wideSpec + "[utility]\ngeneric = [\"cost\", \"cost / income\"]\n",
			"bus 2 0.2; car* 5 0.5\nbus* 1 0.05\nbus* 3 0.1\n"},
		{"wide, a variable of one alternative", wide, wideSpec +
			"[utility]\ngeneric = [\"income\"]\n[[utility.terms]]\nvariable = \"cost\"\nalternatives = [\"bus\"]\n",
			"bus 10 2; car* 10 0\nbus* 20 1\nbus* 30 3\n"},
		{"wide with labels", strings.Replace(wide, "\ncar", "\n7", 1),
			wideSpec + "labels = {7 = \"car\"}\n[utility]\nconstants = true\n", "bus; car*\nbus*\nbus*\n"},
		{"wide with codes, a filter before the labels, and derived columns in names",
			"pick,pass,train_fare,car_fuel,year\n1,0,6,4,89\n2,1,6,5,89\n0,0,1,1,88\n",
			"[data]\nform = \"wide\"\nchosen = \"pick\"\nnames = \"{alternative}_{variable}\"\nalternatives = " +
				"[\"train\", \"car\"]\nlabels = {1 = \"train\", 2 = \"car\"}\nfilter = \"year == 89\"\n" +
				"derive = [\"train_cost = train_fare * (pass == 0)\", \"car_cost = car_fuel\", \"half = cost / " +
				"2\"]\n[utility]\ngeneric = [\"cost\", \"half\"]\n",
			"train* 6 3; car 4 2\ntrain 0 0; car* 5 2.5\n"},
		{"a filter before the other conditions",
			"case,mode,took,year\n1,bus,1,89\n1,car,0,89\n2,bus,9,88\n2,car,1,88\n2,car,1,88\n",
			"[data]\nform = \"long\"\nchoice = [\"case\"]\nalternative = \"mode\"\nchosen = \"took\"\nfilter = " +
				"\"year == 89\"\n[utility]\nconstants = true\n", "bus*; car\n"},
		{"a filter before weights, panels and clusters",
			"case,mode,took,year,w,who,town\n1,car,0,88,,,\n1,bus,1,89,2,a,x\n1,car,0,89,2,a,x\n2,bus,1,88,,,\n2,car,0,88,-1,,\n" +
				"3,bus,0,89,1,b,x\n3,car,1,89,1,b,x\n4,bus,1,88,1,a,x\n",
			"[data]\nform = \"long\"\nchoice = [\"case\"]\nalternative = \"mode\"\nchosen = \"took\"\nfilter = " +
				"\"year == 89\"\n" +
				"weight = \"w\"\npanel = \"who\"\ncluster = \"town\"\n[utility]\nconstants = true\n",
			"bus*; car ×2 panel 0 cluster 0\nbus; car* panel 1 cluster 0\n"},
		{"wide with an expression of the choice", "bought,cost_bus,cost_car\n1,2,5\n0,1,4\n",
			strings.Replace(strings.Replace(wideSpec, "\"mode\"", "\"bought == 1 ? 'bus' : 'car'\"", 1),
				"available = \"av\"\n", "", 1) + "[utility]\ngeneric = [\"cost\"]\n",
			"bus* 2; car 5\nbus 1; car* 4\n"},
		{"wide with an outside option", strings.Replace(wide, "\ncar", "\n", 1), wideSpec +
			"outside = \"implicit\"\n[utility]\ngeneric = [\"cost\"]\n", "bus 2; car 5; outside*\nbus* 1\nbus* 3\n"},
		{"wide with an explicit outside option", strings.Replace(wide, "\ncar", "\nhome", 1),
			wideSpec + "outside = \"explicit\"\noutside_alternative = \"home\"\n[utility]\ngeneric = [\"cost\"]\n",
			"bus 2; car 5; outside*\nbus* 1\nbus* 3\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Equal(t, describe(mustLoad(t, "table.csv", []byte(c.table), c.spec)), c.want)
		})
	}
}

// The alternatives come in the order of data.alternatives, even if the first choice did not offer the first one: it
// is the reference.
func TestReadOrder(t *testing.T) {
	wide := "mode,cost_bus,cost_car,cost_train,av_bus,av_car,av_train\ncar,2,5,6,0,1,1\nbus,1,4,7,1,0,1\n"
	for _, c := range []struct{ name, table, spec string }{
		{"long", "case,mode,took,cost\n1,train,0,6\n1,car,1,5\n2,train,0,7\n2,bus,1,1\n",
			"form = \"long\"\nchoice = [\"case\"]\nalternative = \"mode\"\nchosen = \"took\"\n"},
		{"wide", wide, "form = \"wide\"\nchosen = \"mode\"\nnames = \"{variable}_{alternative}\"\navailable = \"av\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "[data]\n" + c.spec + "alternatives = [\"bus\", \"plane\", \"car\", \"train\"]\n" +
				"[utility]\nconstants = true\ngeneric = [\"cost\"]\n"
			if c.name == "wide" {
				text = strings.Replace(text, " \"plane\",", "", 1)
			}
			d := mustLoad(t, "table.csv", []byte(c.table), text)
			expect.Equal(t, d.Alternatives, []string{"bus", "car", "train"})
			cells := map[string]bool{}
			for _, cell := range strings.FieldsFunc(describe(d), func(r rune) bool { return r == ';' || r == '\n' }) {
				cells[strings.TrimSpace(cell)] = true
			}
			expect.Equal(t, cells, map[string]bool{"bus* 1": true, "train 7": true, "car* 5": true, "train 6": true})
			g := fatal.Or(newDesign(&fatal.Or(ReadSpec("spec.toml", []byte(text)))(t).Utility, d.Alternatives, d.Outside, d))(t)
			expect.Equal(t, g.names, []string{"constant[car]", "constant[train]", "cost"})
		})
	}
}

// A nested column in a Parquet file is not a column, and the error says so.
func TestReadNested(t *testing.T) {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		Case int64    `parquet:"case"`
		Alt  string   `parquet:"alt"`
		Took bool     `parquet:"took"`
		Cost []string `parquet:"cost,list"`
	}](&b)
	fatal.If(t, w.Close())
	for _, source := range []string{"cost", "log(cost)"} {
		expect.Part(load(t, "table.parquet", b.Bytes(), replaceLine(longSpec, `generic = ["cost"]`,
			`generic = ["`+source+`"]`)))(t, `column "cost" is nested, and a row needs one value: write `+
			`cost.list.element as columns of their own`)
	}
}

func TestReadErrors(t *testing.T) {
	row := func(old, new string) string { return strings.Replace(longTable, old, new, 1) }
	with := func(lines string) string { return replaceLine(longSpec, "[utility]", lines+"\n[utility]") }
	uses := func(utility string) string { return replaceLine(longSpec, `generic = ["cost"]`, utility) }
	many := func() string {
		var b strings.Builder
		b.WriteString("case,alt,took,cost\n")
		for i := range maxAlternatives + 1 {
			fmt.Fprintf(&b, "1,a%d,0,1\n", i)
		}
		return b.String()
	}
	for _, c := range []struct{ name, table, spec, want string }{
		{"nothing chosen", row("1,car,1", "1,car,0"), longSpec,
			`line 2: case 1 has no chosen alternative: if nothing was taken, set outside = "implicit"`},
		{"nothing chosen at the end", row("3,car,1", "3,car,0"), longSpec,
			`line 6: case 3 has no chosen alternative: if nothing was taken, set outside = "implicit"`},
		{"two chosen", row("1,bus,0", "1,bus,1"), longSpec, "line 3: case 1 has two chosen alternatives"},
		{"two chosen with an outside option", row("1,bus,0", "1,bus,1"), with(`outside = "implicit"`),
			"line 3: case 1 has two chosen alternatives"},
		{"an unavailable one chosen", longTable, with(`available = "cost < 5"`),
			"line 3: case 1 chose car, which is not available"},
		{"none available", row("3,car,1", "3,car,0"), with(`available = "case < 3"`),
			"line 6: case 3 has no available alternative among its rows, which must be together"},
		{"chosen is neither", row("1,car,1", "1,car,2"), longSpec,
			"line 3: column took: 2 is neither 0 nor 1 (data.chosen)"},
		{"none available in a row", "mode,car_open\n,0\n", "[data]\nform = \"wide\"\nchosen = \"mode\"\noutside = \"implicit\"\n" +
			"available = \"open\"\nnames = \"{alternative}_{variable}\"\nalternatives = [\"car\"]\n[utility]\nconstants = true\n",
			"line 2: the choice has no available alternative"},
		{"chosen is missing", row("1,car,1", "1,car,"), longSpec,
			"line 3: column took is missing: want 0 or 1 (data.chosen)"},
		{"a missing number", row("1,car,1,5", "1,car,1,"), longSpec,
			"line 3: column cost is missing or not a number, for alternative car"},
		{"a NaN", row("1,car,1,5", "1,car,1,NaN"), longSpec,
			"line 3: column cost is missing or not a number, for alternative car"},
		{"not finite", longTable, uses(`generic = ["log(cost - 2)"]`),
			"line 2: column log(cost - 2) is -Inf, for alternative bus"},
		{"infinity in the table", row("1,car,1,5", "1,car,1,inf"), longSpec,
			"line 3: column cost is +Inf, for alternative car"},
		{"text for a number", row("1,car,1,5", "1,car,1,five"), longSpec,
			`line 3: column cost: "five" is not a number: write numbers as 1234.5, or compare a text, cost == "text"`},
		{"text among numbers, later", longTable + longRows(table.BatchRows) + "x,car,1,three,north,1\n",
			uses(`generic = ["cost"]`),
			`line 4103: column cost: "three" is not a number, but earlier values in the column are`},
		{"an unknown column", longTable, uses(`generic = ["costs"]`),
			`utility: there is no column "costs": did you mean "cost"?`},
		{"an unknown column in an expression", longTable, uses(`generic = ["log(fare)"]`),
			`utility: "log(fare)": there is no column "fare": the columns are case, alt, took, cost, region, w, alternative, position`},
		{"an unknown column in the layout", longTable, with(`panel = "person"`),
			`data.panel: there is no column "person": the columns are case, alt, took, cost, region, w, alternative, position`},
		{"not an expression", longTable, uses(`generic = ["cost +"]`),
			`utility: "cost +" is neither a column nor an expression: unexpected token EOF (1:6)`},
		{"types", longTable, uses(`generic = ["cost + region"]`),
			`utility: "cost + region": invalid operation: + (mismatched types float64 and string) (1:6)`},
		{"not a number", longTable, uses(`generic = ["region + 'x'"]`),
			`line 2: column region + 'x': "region + 'x'" is northx: want a number or a condition`},
		{"rows that are not consecutive", longTable + "1,bus,1,2,north,1\n", longSpec,
			"line 7: case 1 has rows further up, and others lie between: sort the table by case"},
		{"ids that are text", strings.ReplaceAll(longTable, "\n2,", "\ntwo,") + "two,bus,1,2,north,1\n", longSpec,
			"line 7: case two has rows further up, and others lie between: sort the table by case"},
		{"panels that are not consecutive", longTable, with(`panel = "region"`),
			"line 6: region north has choices further up, and others lie between: sort the table by it"},
		{"an alternative twice", row("1,car,1", "1,bus,1"), longSpec, "line 3: case 1 has alternative bus twice"},
		{"an unexpected alternative", longTable, with(`alternatives = ["bus"]`),
			`line 3: alternative "car" is not in data.alternatives; data.exclude leaves alternatives out`},
		{"weights that differ", row("1,car,1,5,north,1", "1,car,1,5,north,2"), with(`weight = "w"`),
			"line 3: column w: the weight is 2, and 1 in the first row of case 1"},
		{"a cluster that varies", longTable, with(`cluster = "alt"`),
			"line 3: column alt is car, and bus in the first row of case 1"},
		{"a panel that varies", row("1,car,1,5,north", "1,car,1,5,west"), with(`panel = "region"`),
			"line 3: column region is west, and north in the first row of case 1"},
		{"a label in another encoding", row("1,car,1", "1,v\xe9lo,1"), longSpec,
			`line 3: the alternative "v\xe9lo" is not UTF-8: convert the file`},
		{"a negative weight", row("3,car,1,3,north,1", "3,car,1,3,north,-1"), with(`weight = "w"`),
			"line 6: column w: the weight is -1: want a finite number, at least 0"},
		{"a filter that keeps a part", longTable, with(`filter = "cost < 5"`),
			"line 3: the filter leaves out the chosen row of case 1, and not all of its rows: to leave an " +
				"alternative out, use data.exclude"},
		{"a filter that keeps an excluded alternative", longTable, with("filter = \"cost < 5\"\nexclude = [\"bus\"]"),
			"line 3: the filter leaves out the chosen row of case 1, and not all of its rows: to leave an " +
				"alternative out, use data.exclude"},
		{"a filter that keeps nothing", longTable, with(`filter = "cost > 5"`), `no row meets the filter "cost > 5"`},
		{"no outside row", longTable, with("outside = \"explicit\"\noutside_alternative = \"bus\""),
			"line 6: case 3 has no row of the outside option bus"},
		{"a category of a million", many(), longSpec,
			"line 10002: column alt has more than 10000 distinct values: it cannot be the alternative"},
		{"a derived column twice", longTable, with(`derive = ["cost = w"]`),
			`data.derive: there is a column "cost" already`},
		{"a wrong derived column", longTable, with(`derive = ["a == b"]`),
			`data.derive has "a == b": want "name = expression"`},
		{"the wrong delimiter", strings.ReplaceAll(longTable, ",", ";"), longSpec,
			`line 1 has one column, "case;alt;took;cost;region;w": if columns are separated by ';', write commas, or set delimiter = ";" in the TOML file that describes the table, if there is one`},
		{"commas in place of the delimiter", longTable, with(`delimiter = ";"`),
			`line 1 has one column, "case,alt,took,cost,region,w": if columns are separated by ',', set delimiter = "," in the TOML file that describes the table, if there is one`},
		{"a quote as the delimiter", longTable, with(`delimiter = "\""`),
			`delimiter = "\"": want a character that separates columns`},
		{"a header twice", row("2,car,0", "case,alt,took,cost,region,w\n2,car,0"), longSpec,
			"line 4 repeats the header: remove it"},
		{"a column twice", row("region", "cost"), longSpec, `line 1 has the column "cost" twice`},
		{"bytes that are not text", "case,al\x00t,took\n", longSpec,
			`line 1: "al\x00t" cannot be the name of a column: is the file CSV?`},
		{"a name in another encoding", "case,pr\xe9s,took\n", longSpec,
			`line 1: the name of column 2, "pr\xe9s", is not UTF-8: convert the file`},
		{"a short line", row("2,car,0,4,south,2", "2,car,0"), longSpec, "line 4 has 3 fields, and the header 6"},
		{"a bare quote", row("north", `no"rth`), longSpec, `line 2: bare " in non-quoted-field`},
		{"an empty file", "", longSpec, "the file is empty"},
		{"no rows", "case,alt,took,cost\n", longSpec, "there are no choices"},
		{"an empty id", row("1,bus", ",bus"), longSpec, "line 2: column case is empty: it identifies the choice"},
		{"an empty label", row("1,bus", "1,"), longSpec, "line 2: column alt is empty: it is the alternative"},
		{"an unknown label", "mode,cost_bus,cost_car\ntram,1,2\n",
			"[data]\nform = \"wide\"\nchosen = \"mode\"\nnames = \"{variable}_{alternative}\"\nalternatives = " +
				"[\"bus\", \"car\"]\n[utility]\ngeneric = [\"cost\"]\n",
			`line 2: column mode: "tram" is not one of the alternatives bus, car`},
		{"a variable that an alternative lacks", "mode,cost_bus\nbus,1\n",
			"[data]\nform = \"wide\"\nchosen = \"mode\"\nnames = \"{variable}_{alternative}\"\nalternatives = " +
				"[\"bus\", \"car\"]\n[utility]\ngeneric = [\"cost\"]\n",
			`line 2: there is no column cost_car, for alternative car`},
		{"an expression of it", "mode,cost_bus\nbus,1\n",
			"[data]\nform = \"wide\"\nchosen = \"mode\"\nnames = \"{variable}_{alternative}\"\nalternatives = " +
				"[\"bus\", \"car\"]\n[utility]\ngeneric = [\"log(cost) / 10\"]\n",
			`line 2: there is no column cost_car, for alternative car`},
		{"text and empty cells", "mode,class_bus,class_car\nbus,a,\n",
			"[data]\nform = \"wide\"\nchosen = \"mode\"\nnames = \"{variable}_{alternative}\"\nalternatives = " +
				"[\"bus\", \"car\"]\n[utility]\ngeneric = [\"class\"]\n",
			`line 2: column class: "a" is not a number: write numbers as 1234.5, or compare a text, class == "text"`},
		{"text and numbers", "mode,cost_bus,cost_car\nbus,1,2\nbus,1,$3\n",
			"[data]\nform = \"wide\"\nchosen = \"mode\"\nnames = \"{variable}_{alternative}\"\nalternatives = " +
				"[\"bus\", \"car\"]\n[utility]\ngeneric = [\"cost\"]\n",
			`line 3: column cost_car: "$3" is not a number, but other alternatives have numbers`},
		{"codes and numbers", "mode,cost_bus,cost_car\nbus,1,007\n",
			"[data]\nform = \"wide\"\nchosen = \"mode\"\nnames = \"{variable}_{alternative}\"\nalternatives = " +
				"[\"bus\", \"car\"]\n[utility]\ngeneric = [\"cost\"]\n",
			`column cost_car is text, and other alternatives have numbers`},
		{"an open quote", row("north", `"north`), longSpec, `line 2: extraneous or missing " in quoted-field`},
		{"a bare quote", row("north", "\"no\nrth\",x\"y"), longSpec, `line 3: bare " in non-quoted-field`},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Message(load(t, "table.csv", []byte(c.table), c.spec))(t, c.want)
		})
	}
}

// longRows returns rows for n choices with one alternative.
func longRows(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,car,1,3,north,1\n", 10+i)
	}
	return b.String()
}

// Ids may be numbers at first and text later, even within a choice's rows.
func TestMixedIDs(t *testing.T) {
	rows := longTable + longRows(table.BatchRows-6) // the next row is the last of a batch
	d := fatal.Or(load(t, "table.csv", []byte(rows+"99999,bus,0,3,north,1\n99999,car,1,3,north,1\nx,car,1,3,north,1\n"+
		"007,car,1,3,north,1\n"), longSpec))(t)
	expect.Equal(t, d.Choices, table.BatchRows, "choices")
	rows = "mode,cost_1,cost_bus\n" + strings.Repeat("1.0,2,3\n", table.BatchRows) + "bus,2,3\n1.0,2,3\n"
	d = fatal.Or(load(t, "wide.csv", []byte(rows), "[data]\nform = \"wide\"\nchosen = \"mode\"\n"+
		"names = \"{variable}_{alternative}\"\nalternatives = [\"1\", \"bus\"]\n[utility]\ngeneric = [\"cost\"]\n"))(t)
	expect.Equal(t, d.Choices, table.BatchRows+2, "choices of a wide table")
}

func compressed(t *testing.T, kind string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	switch kind {
	case "":
		return content
	case ".gz":
		w := gzip.NewWriter(&b)
		w.Write(content)
		w.Close()
	case ".zst":
		w := fatal.Or(zstd.NewWriter(&b))(t)
		w.Write(content)
		w.Close()
	}
	return b.Bytes()
}

// parquetRow is a row of longTable, with a price that may be missing.
type parquetRow struct {
	Case   int64    `parquet:"case"`
	Alt    string   `parquet:"alt,dict"`
	Took   bool     `parquet:"took"`
	Cost   float64  `parquet:"cost"`
	Region *string  `parquet:"region,optional"`
	W      int32    `parquet:"w"`
	Extra  *float64 `parquet:"extra,optional"`
	Single float32  `parquet:"single"`
	Delay  float64  `parquet:"delay,dict"`
}

func parquetTableOf(t *testing.T, choices int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&b, parquet.MaxRowsPerRowGroup(1000), parquet.PageBufferSize(512))
	north, extra := "north", 0.5
	for i := range choices {
		rows := []parquetRow{
			{Case: int64(i), Alt: "bus", Cost: float64(i) / 4, Region: &north, W: 3, Extra: &extra, Single: 0.25,
				Delay: float64(i % 3)},
			{Case: int64(i), Alt: "car", Took: true, Cost: float64(-i), W: 3, Single: 0.75, Delay: 7},
		}
		fatal.Or(w.Write(rows))(t)
	}
	fatal.If(t, w.Close())
	return b.Bytes()
}

// A table reads the same in all formats, across pages, row groups and batches.
func TestReadForms(t *testing.T) {
	const choices = 6000
	var csv, lines strings.Builder
	csv.WriteString("case,alt,took,cost,region,w,extra,single,delay\n")
	for i := range choices {
		fmt.Fprintf(&csv, "%d,bus,0,%v,north,3,0.5,0.25,%d\n%d,car,1,%v,,3,,0.75,7\n", i, float64(i)/4, i%3, i, -i)
		fmt.Fprintf(&lines,
			`{"case":%d,"alt":"bus","took":false,"cost":%v,"region":"north","w":3,"extra":0.5,"single":0.25,"delay":%d}
{"w":3,"case":%d,"took":true,"alt":"car","cost":%v,"region":null,"single":0.75,"delay":7}
`, i, float64(i)/4, i%3, i, -i)
	}
	spec := replaceLine(replaceLine(longSpec, "[utility]", "weight = \"w\"\n[utility]"), `generic = ["cost"]`,
		`generic = ["cost", "single", "delay", "region == 'north'"]
[[utility.terms]]
variable = "extra"
alternatives = ["bus"]`)
	want := ""
	for _, form := range []struct {
		name    string
		content []byte
	}{{"table.csv", []byte(csv.String())}, {"table.parquet", parquetTableOf(t, choices)},
		{"table.jsonl", []byte(lines.String())}} {
		for _, kind := range []string{"", ".gz", ".zst"} {
			d := mustLoad(t, form.name+kind, compressed(t, kind, form.content), spec)
			got := describe(d)
			if want == "" {
				want = got
				if d.Choices != choices ||
					!strings.Contains(want, "bus 1499.75 0.25 2 1 0.5; car* -5999 0.75 7 0 0 ×3\n") {
					t.Fatalf("%d choices, the last are %s", d.Choices, got[len(got)-200:])
				}
			}
			expect.Equal(t, got, want, form.name, kind, "differs")
		}
	}
}

// A truncated or changed file causes an error that names it, wherever the damage is.
func TestReadDamagedFiles(t *testing.T) {
	csv := []byte(longTable + longRows(20_000))
	parquetFile := parquetTableOf(t, 2000)
	for name, whole := range map[string][]byte{
		"table.csv.gz":     compressed(t, ".gz", csv),
		"table.csv.zst":    compressed(t, ".zst", csv),
		"table.parquet":    parquetFile,
		"table.parquet.gz": compressed(t, ".gz", parquetFile),
	} {
		for _, keep := range []int{5, 20, len(whole) / 2, len(whole) - 9} {
			expect.Part(load(t, name, whole[:keep], longSpec))(t, "truncated or damaged", name, keep, len(whole))
		}
	}
	expect.Part(load(t, "table.parquet", []byte("\x00\x01\x02,a\n"), longSpec))(t,
		"truncated or damaged: it does not begin as", "bytes that are not Parquet")
	// Changed bytes may go unnoticed, but must never cause a panic.
	for at := 4; at < len(parquetFile); at += 997 {
		changed := bytes.Clone(parquetFile)
		changed[at] ^= 0x55
		load(t, "table.parquet", changed, longSpec)
	}
}

func TestReadProgressAndCancel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.csv")
	text := longTable + longRows(3*table.BatchRows)
	fatal.If(t, os.WriteFile(path, []byte(text), 0o644))
	s, err := ReadSpec("spec", []byte(longSpec))
	fatal.If(t, err)
	var last int64
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := Load(ctx, path, s, func(done, total int64) {
		if done < last || total != int64(len(text)) {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	}); err != nil || last != int64(len(text)) {
		t.Errorf("error %v after %d bytes", err, last)
	}
	_, err = Load(ctx, path, s, func(int64, int64) { cancel() })
	expect.Error(t, err, context.Canceled)
	expect.Part(Load(context.Background(), t.TempDir(), s, nil))(t, "is a folder")
}

func TestBuilder(t *testing.T) {
	good := Case{Alternatives: []int{0, 2}, X: []float64{1, 2}, Chosen: 1}
	for _, c := range []struct {
		name   string
		change func(*Case)
		want   string
	}{
		{"an alternative twice", func(c *Case) { c.Alternatives[1] = 0 },
			`choice 2: alternative "a" is available twice`},
		{"an alternative that there is not", func(c *Case) { c.Alternatives[1] = 3 },
			"choice 2: alternative 3: there are 3"},
		{"no alternative", func(c *Case) { c.Alternatives, c.X = nil, nil }, "choice 2: no alternative is available"},
		{"values", func(c *Case) { c.X = c.X[:1] }, "choice 2: 1 values for 2 alternatives of 1 variables"},
		{"chosen", func(c *Case) { c.Chosen = 2 },
			"choice 2: chosen is 2: want a position among 2 alternatives, or -1 for an outside option"},
		{"no outside option", func(c *Case) { c.Chosen = -1 },
			"choice 2: chosen is -1: want a position among 2 alternatives, or -1 for an outside option"},
		{"a weight", func(c *Case) { c.Weight = math.Inf(1) },
			"choice 2: the weight is +Inf: want a finite number, at least 0"},
		{"NaN", func(c *Case) { c.X[1] = math.NaN() }, `choice 2: x of alternative "c" is NaN`},
	} {
		b := NewBuilder([]string{"a", "b", "c"}, []string{"x"}, false)
		fatal.If(t, b.Add(good))
		bad := Case{Alternatives: []int{0, 2}, X: []float64{1, 2}, Chosen: 1}
		c.change(&bad)
		expect.Message(b.Add(bad))(t, c.want, c.name)
		fatal.If(t, b.Add(Case{Alternatives: []int{0, 2}, X: []float64{1, 2}, Chosen: 1}))
		d, err := b.Data()
		if err != nil || describe(d) != "a 1; c* 2\na 1; c* 2\n" {
			t.Errorf("%s: %v, %v", c.name, describe(d), err)
		}
	}
	b := NewBuilder([]string{"a"}, nil, true)
	b.Panels = true
	for _, panel := range []int{1, 0} {
		fatal.If(t, b.Add(Case{Alternatives: []int{0}, Panel: panel}))
	}
	expect.Refused(b.Add(Case{Alternatives: []int{0}, Panel: 1}))(t, "a panel that comes again")
	expect.Message(b.Add(Case{Alternatives: []int{0}, Panel: math.MaxInt32}))(t,
		"choice 3: panels and clusters are numbered from 0, without gaps", "a large number")
	expect.Refused(NewBuilder(nil, nil, true).Data())(t, "no choices")
	b = NewBuilder([]string{"a", "a"}, nil, true)
	fatal.If(t, b.Add(Case{Alternatives: []int{0}}))
	expect.Refused(b.Data())(t, "two alternatives of one name")
}

// Blocks contain complete panels, and slices contain the right choices.
func TestBlocks(t *testing.T) {
	b := NewBuilder([]string{"a", "b"}, []string{"x"}, true)
	b.Panels = true
	const n = 5000
	for s := range n {
		fatal.If(t, b.Add(Case{Alternatives: []int{0, 1}, X: []float64{float64(s), -1}, Chosen: s%3 - 1,
			Panel: s / 70}))
	}
	d := fatal.Or(b.Data())(t)
	if len(d.blocks) < 4 {
		t.Errorf("%d blocks", len(d.blocks))
	}
	for i, k := range d.blocks {
		if k.rows() > blockRows+140 { // the panel that is open when a block is full
			t.Errorf("block %d has %d rows", i, k.rows())
		}
		if i > 0 && k.panel[0] == d.blocks[i-1].panel[d.blocks[i-1].choices()-1] {
			t.Errorf("panel %d is in two blocks", k.panel[0])
		}
	}
	part := fatal.Or(slice(d, 1000, 4321))(t)
	if part.Choices != 3321 || part.Rows != 6642 {
		t.Errorf("%d choices, %d rows", part.Choices, part.Rows)
	}
	for s := range part.Choices {
		_, chosen := part.Choice(s)
		if want := (s+1000)%3 - 1; chosen != want || value(part, s, 0, 0) != float64(s+1000) {
			t.Fatalf("choice %d is %d with %v", s, chosen, value(part, s, 0, 0))
		}
	}
	expect.Refused(slice(d, 7, 7))(t, "a slice of no choices")
}

// A missing number is unequal to every number, itself included, and neither larger nor smaller.
func TestMissingInComparisons(t *testing.T) {
	table := strings.Replace(longTable, "2,car,0,4,south,2\n2,bus,1,1,south,2", "2,car,0,4,south,\n2,bus,1,1,south,", 1)
	for filter, choices := range map[string]int{"w == w": 2, "w > 1": 0, "w <= 1": 2, "w != 1": 1, "not (w == 1)": 1} {
		n := 0
		d, err := load(t, "x.csv", []byte(table), strings.Replace(longSpec, "[utility]", "filter = \""+filter+"\"\n[utility]", 1))
		if err == nil {
			n = d.Choices
		}
		expect.Equal(t, n, choices, filter)
	}
}

// slice returns the existing ones of the choices [from, to).
func slice(d *Data, from, to int) (*Data, error) {
	return d.Filter(func(s int) bool { return s >= from && s < to })
}

// value returns variable v for the i-th available alternative of choice s.
func value(d *Data, s, i, v int) float64 {
	b, s := d.locate(s)
	lo, _ := b.span(s)
	return b.x[v][lo+i]
}
