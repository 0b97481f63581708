package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/filelog"
)

// shelf is a placement of a simulated shop: eight items with their utility as only feature.
const shelf = `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"mode":"explore","explore":%q,"explore_share":%v}`

// exploredLog makes the log of a shop in a directory.
func exploredLog(t *testing.T, dir, explore string, share float64, rounds int) {
	t.Helper()
	playedLog(t, dir, fmt.Sprintf(shelf, explore, share), rounds, false)
}

// playedLog makes the log of a placement of that shop with the given configuration. With baskets, some customers take more
// than one unit.
func playedLog(t *testing.T, dir, config string, rounds int, baskets bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, 2))
	err := withEngine(dir, func(ctx context.Context, e *engine.Engine, _ *filelog.Store) error {
		if _, err := e.Put(ctx, "home", []byte(config), 1); err != nil {
			return err
		}
		for k := range rounds {
			now := int64(k + 2)
			r := &api.Request{Decision: fmt.Sprint("d", k)}
			u := map[string]float64{}
			for i := range 8 {
				x := rng.Float64()*2 - 1
				id := fmt.Sprint("sku", i)
				u[id] = x
				r.Items = append(r.Items, api.Item{ID: id, Features: api.Values{api.Number("x", x)},
					Revenue: new(1 + float64(i)/8)})
			}
			a, err := e.Decide(ctx, "home", r, now)
			if err != nil {
				return err
			}
			sum, taken := 1.0, ""
			for _, id := range a.IDs() {
				sum += math.Exp(u[id])
			}
			left := rng.Float64()*sum - 1
			for _, id := range a.IDs() {
				if left >= 0 {
					if left -= math.Exp(u[id]); left < 0 {
						taken = id
					}
				}
			}
			if k%50 == 49 {
				continue // no outcome
			}
			choices := []api.Choice{}
			if taken != "" {
				choices = append(choices, api.Choice{Item: taken})
			}
			if taken != "" && baskets && k%3 == 0 {
				if choices[0].Quantity = new(1 + k/3%3); k%6 == 0 {
					choices[0].Value = new(0.1 + float64(k))
				}
				if other := a.IDs()[k%len(a.IDs())]; other != taken {
					choices = append(choices, api.Choice{Item: other})
				}
			}
			if err := e.Choose(ctx, "home", a.Decision, choices, now); err != nil {
				return err
			}
			if taken != "" && baskets && k%4 == 0 { // part of the money comes back
				c := api.Correction{ID: "back", Item: taken, Value: new(-0.25)}
				if err := e.Correct(ctx, "home", a.Decision, c, now); err != nil {
					return err
				}
			}
			if err := e.Wait(ctx); err != nil { // each decision follows all earlier outcomes, on a slow machine too
				return err
			}
		}
		return nil
	})
	fatal.If(t, err)
}

// vitrineRun runs a command.
func vitrineRun(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e)
	return o.String(), e.String(), code
}

func write(t *testing.T, name, text string) {
	t.Helper()
	fatal.If(t, os.WriteFile(name, []byte(text), 0o644))
}

// A better policy is found to be better, in all formats, and the log's gaps come first.
func TestEvaluate(t *testing.T) {
	t.Chdir(t.TempDir())
	exploredLog(t, "data", "swaps", 0.5, 1000)
	write(t, "best.toml", `show = "best"`)
	write(t, "top.toml", "name = \"dearest\"\nshow = \"revenue\"")
	write(t, "same.toml", "show = \"items\"\nitems = [\"sku3\", \"none\"]\nsize = 1")
	write(t, "learned.toml", "show = \"policy\"\n[policy]\nname = \"ucb-mnl\"")
	write(t, "drawn.toml", `show = "uniform"`)
	text, errs, code := vitrineRun(t, "evaluate", "data", "--policy", "top.toml", "--policy", "best.toml", "--policy",
		"same.toml", "--policy", "learned.toml", "--policy", "drawn.toml", "--figure", "forest.svg")
	expect.Equal(fatal.T(t), code, 0, errs)
	mentions(t, text,
		`placement "home": 980 decisions with an outcome. A page of the log earned `,
		"Left out: 20 decisions, which have no outcome.",
		"dearest: the items of the largest revenues\n  The log says how every page was drawn.",
		"best minus dearest, on the same rounds:",
		"learned: the page of a policy that has learned from the log, ucb-mnl", "no support: ",
	)
	// A uniform page has as many items as every other.
	if _, drawn, _ := strings.Cut(text, "\ndrawn: a page drawn uniformly\n"); !strings.Contains(drawn, ", and 1 is expected.") {
		t.Errorf("uniform pages are smaller:\n%s", drawn)
	}
	if svg, err := os.ReadFile("forest.svg"); err != nil || !strings.Contains(string(svg), "best, dr-pi") ||
		!strings.Contains(string(svg), "as logged") {
		t.Errorf("the figure: %v", err)
	}
	table, _, _ := vitrineRun(t, "evaluate", "data", "--policy", "top.toml", "--policy", "best.toml", "--policy",
		"learned.toml", "--format", "csv")
	rows := fatal.Or(csv.NewReader(strings.NewReader(table)).ReadAll())(t)
	value := map[string]float64{}
	for _, r := range rows[1:] {
		// Only a policy that is fixed before the log begins gets an interval that holds at any time.
		if fixed := r[0] == "dearest" && slices.Contains([]string{"dr-pi", "pi", "items"},
			r[2]); (r[9] != "") != fixed {
			t.Errorf("%s, %s: the interval at any time begins at %q", r[0], r[2], r[9])
		}
		value[r[0]+"-"+r[1]+" "+r[2]], _ = strconv.ParseFloat(r[3], 64)
	}
	for method, least := range map[string]float64{"direct": 0.02, "dr-pi": 0.01} {
		d := value["best-dearest "+method]
		if d < least || math.Abs(d-(value["best- "+method]-value["dearest- "+method])) > 1e-9 {
			t.Errorf("%s: the difference is %v", method, d)
		}
		if off := value["best- "+method] - value["learned- "+method]; math.Abs(off) > 0.03 {
			t.Errorf("%s: what has learned is %v off the best page", method, off)
		}
	}
	if j, _, _ := vitrineRun(t, "evaluate", "data", "--policy", "same.toml", "--format", "json", "--level",
		"0.9"); !strings.Contains(j, `"level": 0.9,`) || !strings.Contains(j,
		`"effective_rounds"`) || !strings.Contains(j, `"none": "no support: `) || !strings.Contains(j, `"decisions": 20`) {
		t.Errorf("%s", j)
	}
}

// A log of only shown items says so, and raises no alarm about the model: it cannot check it.
func TestEvaluateShownItems(t *testing.T) {
	clicks := string(fatal.Or(os.ReadFile("../../docs/howto/clicks.csv"))(t))
	t.Chdir(t.TempDir())
	write(t, "log.csv", strings.Join(slices.DeleteFunc(strings.SplitAfter(clicks, "\n"), func(row string) bool {
		fields := strings.Split(row, ",")
		return len(fields) > 3 && fields[3] == "0"
	}), ""))
	write(t, "law.toml", "[sampling_law]\ndraw = \"pages\"\nshare = 1\nsize = 2\n")
	write(t, "home.json", `{"max_size":2,"features":[{"name":"price","kind":"number","center":10,"scale":5},
		{"name":"rating","kind":"number","center":3},{"name":"brand","kind":"category","values":["acme","zeta"]}]}`)
	write(t, "top.toml", `show = "revenue"`)
	if _, errs, code := vitrineRun(t, "import", "log.csv", "--placement", "home", "--create", "home.json", "--mapping",
		"law.toml", "--to", "data"); code != 0 {
		t.Fatal(errs)
	}
	text, _, _ := vitrineRun(t, "evaluate", "data", "--policy", "top.toml")
	if !strings.Contains(text, "Warning: the log lists no item that was not shown") ||
		!strings.Contains(text, "Nothing in the log checks the model of the direct method.") {
		t.Errorf("%s", text)
	}
}

// Small amounts are written with more decimals.
func TestEvaluateSmallAmounts(t *testing.T) {
	clicks := string(fatal.Or(os.ReadFile("../../docs/howto/clicks.csv"))(t))
	t.Chdir(t.TempDir())
	write(t, "log.csv", regexp.MustCompile(`,(\d\.\d\d),`).ReplaceAllString(clicks, ",${1}e-7,"))
	write(t, "home.json", `{"max_size":2,"features":[{"name":"price","kind":"number","center":10,"scale":5}]}`)
	write(t, "top.toml", `show = "revenue"`)
	if _, errs, code := vitrineRun(t, "import", "log.csv", "--placement", "home", "--create", "home.json", "--to",
		"data"); code != 0 {
		t.Fatal(errs)
	}
	text, _, _ := vitrineRun(t, "evaluate", "data", "--policy", "top.toml")
	mentions(t, text, "A page of the log earned 0.0000001547 ± 0.0000000102.", "0.00000014", " … 0.0000001")
}

// The judged pages ignore the placement's rules, and the report says so.
func TestEvaluateSaysThatRulesDoNotBind(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "top.toml", `show = "revenue"`)
	for rules, bind := range map[string]bool{"": false, `,"exclude":["sku7"]`: true, `,"min_size":1`: true} {
		dir := t.TempDir()
		playedLog(t, dir, strings.Replace(fmt.Sprintf(shelf, "swaps", 0.5), `,"mode"`, rules+`,"mode"`, 1), 60, false)
		text, errs, _ := vitrineRun(t, "evaluate", dir, "--policy", "top.toml")
		if strings.Contains(text, "\nThe judged pages ignore the placement's and the requests' rules") != bind || errs != "" {
			t.Errorf("rules %q: %s%s", rules, text, errs)
		}
	}
}

// A learning policy is replayed on a uniform log, and the logs of other modes are refused.
func TestEvaluateReplay(t *testing.T) {
	t.Chdir(t.TempDir())
	exploredLog(t, "data", "sets", 1, 2500)
	write(t, "live.toml", "show = \"replay\"\n[policy]\nname = \"ucb-mnl\"")
	text, errs, code := vitrineRun(t, "evaluate", "data", "--policy", "live.toml")
	if code != 0 || !strings.Contains(text, "of 2450 rounds its page is that of the log") ||
		!strings.Contains(text, "  replay ") {
		t.Errorf("%s%s", text, errs)
	}
	write(t, "bad.toml", "show = \"best\"\nitem = 3")
	write(t, "which.toml", `show = "worst"`)
	write(t, "none.toml", `show = "policy"`)
	write(t, "twice.toml", `show = "items"`+"\n"+`items = ["a", "a"]`)
	write(t, "strange.toml", `show = "items"`+"\n"+`items = ["nobody"]`)
	write(t, "large.toml", `show = "best"`+"\n"+`size = 3`)
	write(t, "zero.toml", "show = \"best\"\nsize = 0")
	write(t, "unknown.toml", "show = \"policy\"\n[policy]\nname = \"ucb\"")
	exploredLog(t, "empty", "sets", 1, 0)
	if _, errs, code := vitrineRun(t, "evaluate", "empty", "--policy", "live.toml"); code != 1 ||
		!strings.Contains(errs, "empty: there is no decision to judge a policy by") {
		t.Errorf("%s, %d", errs, code)
	}
	for want, args := range map[string][]string{
		`bad.toml:2: unknown key "item"`:                                             {"bad.toml"},
		`which.toml: show = "worst": want one of best, model, policy, replay, items`: {"which.toml"},
		`none.toml: a table [policy] goes with`:                                      {"none.toml"},
		`twice.toml: items has "a" twice`:                                            {"twice.toml"},
		`strange.toml: items = ["nobody"]: no request has any of them`:               {"strange.toml"},
		`large.toml: size = 3: the placement shows at most 2 items`:                  {"large.toml"},
		`zero.toml: size = 0: must be at least 1`:                                    {"zero.toml"},
		`unknown.toml: [policy]: ucb: name = "ucb": unknown`:                         {"unknown.toml"},
		`live.toml: name = "live": another policy has it`: {
			"live.toml", "--policy", "live.toml"},
		`data has no placement "shop": there are home`: {
			"live.toml", "--placement", "shop"},
		`--utility:1: utility: kind = 'cubic': unknown`: {
			"live.toml", "--utility", `{kind = "cubic"}`},
		`missing.toml: no such file`: {"missing.toml"},
		`the level is 1.5`:           {"live.toml", "--level", "1.5"},
		`the level is 0: want`:       {"live.toml", "--level", "0"},
		`0 folds: want`:              {"live.toml", "--folds", "0"},
		`error: 1 folds: want`:       {"live.toml", "--folds", "1"},
		`0 resamples: want`:          {"live.toml", "--resamples", "0"},
		`placement "home" has too few decisions with an outcome: --folds 9999 needs at least 9999, and there are 2450`: {
			"live.toml", "--folds", "9999"},
		`: want TOML, such as {kind`: {"live.toml", "--utility", "quadratic"},
	} {
		if out, errs, code := vitrineRun(t, append([]string{"evaluate", "data", "--policy"}, args...)...); code == 0 ||
			out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: %s\nwant %q", args, errs, want)
		}
	}
}

// uniformLog writes log.csv: pages of one of five items, drawn uniformly or by their feature, and taken with the
// probability 1/(1 + exp(−u(x))). Its propensity is a uniform page's times a factor.
func uniformLog(t *testing.T, rounds int, byFeature bool, u func(x float64) float64, factor float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	var rows strings.Builder
	rows.WriteString("decision_id,item,shown,chosen,x,propensity\n")
	for d := range rounds {
		var x [5]float64
		for i := range x {
			x[i] = rng.Float64()*4 - 2
		}
		page := rng.IntN(5)
		if other := rng.IntN(5); byFeature && x[other] > x[page] {
			page = other
		}
		for i, v := range x {
			shown, chosen := 0, 0
			if i == page {
				if shown = 1; rng.Float64() < 1/(1+math.Exp(-u(v))) {
					chosen = 1
				}
			}
			fmt.Fprintf(&rows, "d%d,i%d,%d,%d,%v,%v\n", d, i, shown, chosen, v, factor/5)
		}
	}
	write(t, "log.csv", rows.String())
}

// Of an imported log the command says whether its law, its propensities and the model are right.
func TestEvaluateChecksImportedLogs(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "home.json", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"mode":"explore","explore":"sets","explore_share":0.1}`)
	write(t, "law.toml", "[sampling_law]\ndraw = \"pages\"\nshare = 1\nsize = 1\n")
	write(t, "best.toml", `show = "best"`)
	write(t, "fixed.toml", "show = \"items\"\nitems = [\"i0\"]")
	linear := func(x float64) float64 { return x - 0.5 }
	v := func(x float64) float64 { return 3*math.Abs(x) - 3 }
	for k, c := range []struct {
		byFeature bool
		u         func(float64) float64
		factor    float64
		mapping   bool
		policy    string
		want      []string
	}{
		{false, linear, 1, true, "best.toml", []string{"The items shown are like those that the log's laws draw",
			"The model agrees with the residuals: dr-pi"}},
		{true, linear, 1, true, "best.toml",
			[]string{`Warning: the pages were not drawn as the log says: items with more of the feature "x" were shown more often than its laws would, by `}},
		{false, linear, 1, false, "fixed.toml", []string{"and 1 is expected", "The model agrees with the " +
			"residuals: dr-sets"}},
		{false, linear, 0.5, false, "fixed.toml", []string{"instead of 1: the propensities are not those with " +
			"which the pages were drawn"}},
		{false, v, 1, false, "best.toml", []string{"The model is probably wrong: dr-sets and direct differ"}},
	} {
		uniformLog(t, 2000, c.byFeature, c.u, c.factor)
		data := fmt.Sprint("data", k)
		args := []string{"import", "log.csv", "--placement", "home", "--create", "home.json", "--to", data}
		if c.mapping {
			args = append(args, "--mapping", "law.toml")
		}
		if _, errs, code := vitrineRun(t, args...); code != 0 {
			t.Fatal(errs)
		}
		text, errs, code := vitrineRun(t, "evaluate", data, "--policy", c.policy)
		expect.Equal(fatal.T(t), code, 0, errs)
		mentions(t, text, c.want...)
	}
}

// A policy with position effects learns from the places of the log, also in a replay: here the better item is always in
// the second place, which hardly sells.
func TestEvaluatePositionEffects(t *testing.T) {
	t.Chdir(t.TempDir())
	rng := rand.New(rand.NewPCG(6, 6))
	var rows strings.Builder
	rows.WriteString("decision_id,item,shown,chosen,x\n")
	for d := range 1000 {
		x := []float64{rng.Float64(), rng.Float64(), rng.Float64(), rng.Float64()}
		page := rng.Perm(4)[:2]
		slices.SortFunc(page, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
		u := []float64{2 * x[page[0]], 2*x[page[1]] - 3}
		left := rng.Float64()*(1+math.Exp(u[0])+math.Exp(u[1])) - 1
		for i := range x {
			place, chosen := 1+slices.Index(page, i), 0
			if place == 1 && left >= 0 && left < math.Exp(u[0]) || place == 2 && left >= math.Exp(u[0]) {
				chosen = 1
			}
			fmt.Fprintf(&rows, "d%d,i%d,%d,%d,%v\n", d, i, place, chosen, x[i])
		}
	}
	write(t, "log.csv", rows.String())
	write(t, "home.json", `{"max_size":2,"features":[{"name":"x","kind":"number"}]}`)
	write(t, "law.toml", "[sampling_law]\ndraw = \"pages\"\nshare = 1\nsize = 2\n")
	if _, errs, code := vitrineRun(t, "import", "log.csv", "--placement", "home", "--create", "home.json", "--mapping",
		"law.toml", "--to", "data"); code != 0 {
		t.Fatal(errs)
	}
	value := func(show, method, more string) float64 {
		write(t, "p.toml", fmt.Sprintf("show = %q\n[policy]\nname = \"ucb-mnl\"\n%s", show, more))
		out, errs, _ := vitrineRun(t, "evaluate", "data", "--policy", "p.toml", "--format", "csv")
		for _, row := range fatal.Or(csv.NewReader(strings.NewReader(out)).ReadAll())(t) {
			if slices.Contains(row, method) {
				return fatal.Or(strconv.ParseFloat(row[slices.Index(row, method)+1], 64))(t)
			}
		}
		t.Fatal(out, errs)
		return 0
	}
	for show, method := range map[string]string{"policy": "dr-pi", "replay": "replay"} {
		places, without := value(show, method, "position_effects = true"), value(show, method, "")
		if places < without+0.1 {
			t.Errorf("%s: %v with the places, %v without", show, places, without)
		}
	}
}

// Decisions that an import made of one page count as this page, also in a copy of the log and after an export.
func TestEvaluateCountsCopiesAsOnePage(t *testing.T) {
	t.Chdir(t.TempDir())
	rng := rand.New(rand.NewPCG(6, 6))
	var rows strings.Builder
	rows.WriteString("decision_id,time,item,shown,chosen,units,revenue,x\n")
	row := func(id string, time, item, place, taken int, x float64) {
		fmt.Fprintf(&rows, "%s,%d,i%d,%d,%d,%d,2,%v\n", id, 1_700_000_000+time, item, max(0, 3-place), min(taken, 1), taken, x)
	}
	for k, aspect := range []string{"time", "item", "place", "x"} { // in which two pages differ, whatever their names are
		for i := range 8 {
			at := map[string]int{"item": i % 4, "place": i % 4, "x": i % 4}
			if i >= 4 {
				at[aspect] = (at[aspect] + 1) % 4
			}
			row(aspect+strings.Repeat("..2", i/4), k+at["time"], at["item"], at["place"], 0, float64(at["x"]))
		}
	}
	for d := range 192 {
		id := fmt.Sprintf("%0*d", 3+d%126, d) // up to 128 bytes
		for i, place := range rng.Perm(4) {
			taken := 0
			if place < 3 && rng.Float64() < 0.75 {
				taken = 1 + rng.IntN(2)
			}
			row(id, 5+d, i, place, taken, rng.NormFloat64())
		}
	}
	write(t, "log.csv", rows.String())
	mentions(t, run1(t, "assess", "log.csv", "--json"), `"judged_decisions": 200,`)
	write(t, "home.json", `{"max_size":3,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	write(t, "fixed.toml", "show = \"items\"\nitems = [\"i0\", \"i1\", \"i3\"]")
	law := "[sampling_law]\ndraw = \"pages\"\nshare = 1\nsize = 3\n"
	write(t, "all.toml", law)
	write(t, "each.toml", "several = \"each\"\n"+law)
	for _, m := range []string{"all", "each"} {
		mentions(t, run1(t, "import", "log.csv", "--placement", "home", "--create", "home.json", "--to", m, "--mapping", m+".toml"),
			map[string]string{"all": "all of them count", "each": "vitrine evaluate counts them as one page"}[m])
	}
	run1(t, "log", "copy", "each", "copied")
	write(t, "each.jsonl", run1(t, "export", "each"))
	run1(t, "import", "each.jsonl", "--placement", "home", "--create", "home.json", "--to", "again")
	want := run1(t, "evaluate", "all", "--policy", "fixed.toml")
	mentions(t, want, ": 200 decisions with an outcome")
	for _, data := range []string{"each", "copied", "again"} {
		got := run1(t, "evaluate", data, "--policy", "fixed.toml")
		expect.Equal(t, strings.Replace(got, data, "all", 1), want, data)
	}
}
