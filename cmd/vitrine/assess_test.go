package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/judge"
)

// Each log of the corpus is recognized without a hand-written step, or assess says what to supply. The command that
// assess prints imports a recognized log, and other policies are judged on it.
func TestAssess(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeCorpus(t, dir)
	write(t, "best.toml", `show = "best"`)
	for _, c := range []struct {
		log  string
		want []string // of the text; the first is the format
		need string   // facts to supply, or ""
		pays bool     // whether other policies are judged
	}{
		{"personalizer.json", []string{"Azure Personalizer's log", "1 of 6 candidates",
			"how the page was drawn, in 100%", "of items: id, action; of the shopper: context",
			`format = 'personalizer'`}, "", true},
		{"decisions.dsjson", []string{"contextual bandit in Vowpal Wabbit's dsjson", "Decisions left out because " +
			"they have no context: 5.", "of items: brand, price, rating; of the shopper: age, device",
			"effective decisions only"}, "", true},
		{"ccb.dsjson", []string{"slots that share their actions (ccb)", "the probability of the page is unknown",
			"3 of 6 candidates", "1: 33.3%"}, "", true},
		{"slates.dsjson", []string{"slates in Vowpal Wabbit's dsjson"}, "which item earned the reward", false},
		{"adf.vw", []string{"(--cb_adf)", "Costs are from 0 to 1: taken as losses", "loss = true",
			"every page was drawn uniformly", `price = 'Action.price'`, "dr-pi"}, "", true},
		{"actions.dat", []string{"(--cb)", "the 6 actions", "actions = 6", "of items: id; of the shopper: age, device"},
			"", true},
		{"bandit.json", []string{"(--cb_adf --json)", "of items: brand, price, rating; of the shopper: device", "dr-pi"},
			"", true},
		{"random/all.csv", []string{"Open Bandit's log", "every page was drawn uniformly", "user-item_affinity",
			`items = '../../../random/item_context.csv'`, "dr-pi"}, "", true},
		{"bts/all.csv", []string{"Open Bandit's log", "the probability of the page, in 100%", "1 of 4 candidates"}, "",
			true},
		{"alone/all.csv", []string{"Open Bandit's log"}, "put item_context.csv next to the log", false},
		{"requests.csv", []string{"a table in CSV", `decision = 'request_id'`, `item = 'sku'`, `revenue = 'margin'`,
			"every page was drawn uniformly", "revenue ", "dr-pi"}, "", true},
		{"clicks.tsv.gz", []string{"a table in TSV", "In 9 of 90 pages several items were taken: all of them count",
			"Rows of a decision are apart", `decision = 'impressionId'`, `delimiter = "\t"`}, "", false},
		{"klicks.csv", []string{"a table in CSV with the delimiter ';'", `decision = 'Anfrage_Nr'`, `chosen = 'Klick'`,
			"every row counts as shown", "Other policies cannot be judged"}, "", false},
		{"searches.csv", []string{"a table in CSV",
			"click_bool says what was taken. The log also contains booking_bool",
			"Not features: booking_bool, gross_bookings_usd, which tell the outcome", `item = 'prop_id'`,
			`shown = 'position'`}, "", false},
		{"events.csv", []string{"a table of events in CSV", `shown = 'view_item_list'`, `chosen = 'select_item'`,
			`decision = 'page_view_id'`, "90, with an item taken in 73"}, "", false},
		{"bought.parquet", []string{"a table in Parquet", "2026-03-01 08:08 to 2026-03-01", `item = 'product_id'`,
			`shown = 'displayed'`, "the model alone"}, "", true},
		{"pages.jsonl", []string{"a line for each page, in JSON", `item = 'candidates'`, `shown = 'shown'`,
			"every page was drawn uniformly", "dr-pi"}, "", true},
		{"objects.jsonl", []string{"a line for each page, in JSON", `chosen = 'items.clicked'`, `shown = 'items.rank'`,
			`revenue = 'items.margin'`, "of items: brand, items.price, item; of the shopper: price, age, device"}, "",
			true},
		{"steps.csv", []string{"a line for each page in CSV", `list = '|'`, `chosen = 'reference'`,
			"Decisions left out because they list no items: 90.", "An item was taken on every page"}, "", false},
		{"news.tsv", []string{"a line for each page in TSV without a header", `header = ['column1'`, `list = ' '`,
			`chosen = 'column5'`}, "", false},
		{"yoo.csv", []string{"a table in CSV"}, "what was taken: a column of 0 and 1", false},
		{"ads.tsv", []string{"a table in TSV"}, "no column looks like one; if several columns together identify a", false},
	} {
		t.Run(c.log, func(t *testing.T) {
			out := filepath.Join("start", c.log)
			text := run1(t, "assess", c.log, "--out", out+".text", "--to", filepath.Join(out, "data"))
			mentions(t, text, c.want...)
			if c.need == "" && strings.Contains(text, "Other policies cannot be judged") == c.pays {
				t.Errorf("other policies are judged: want %v", c.pays)
			}
			if t.Failed() {
				t.Log(text)
			}
			if c.need != "" {
				if !strings.Contains(text, "The log cannot be imported as it is. Supply:") ||
					!strings.Contains(text, c.need) {
					t.Errorf("want %q in\n%s", c.need, text)
				}
				return
			}
			var a judge.Assessment
			fatal.If(t, json.Unmarshal([]byte(run1(t, "assess", c.log, "--out", out, "--to", filepath.Join(out, "data"),
				"--json")), &a))
			for _, p := range a.Problems {
				if strings.Contains(p, "cannot be read") || strings.Contains(p, "does not fit") {
					t.Error(p)
				}
			}
			words := strings.Fields(a.Command)
			report := run1(t, words[1:]...)
			if want := "decisions, " + strings.Fields(a.Holds[0][1])[0]; !strings.Contains(report,
				strings.TrimSuffix(want, ",")+" imported") {
				t.Errorf("no %q in\n%s", want, report)
			}
			expect.Contains(t, run1(t, "evaluate", filepath.Join(out, "data"), "--policy", "best.toml"), "direct ")
		})
	}
}

// The intervals of uniform pages and of logged ones agree where pages were drawn uniformly, and the best page earns
// more.
func TestAssessedValues(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	writeCorpus(t, dir)
	var a judge.Assessment
	fatal.If(t, json.Unmarshal([]byte(run1(t, "assess", "requests.csv", "--json")), &a))
	values := map[string]judge.Value{}
	for _, v := range a.Values {
		values[v.Policy] = v
	}
	logged, uniform, best := values["as logged"], values["uniform"], values["best"]
	if uniform.Low > logged.High || uniform.High < logged.Low || best.Value <= logged.Value {
		t.Errorf("%+v", a.Values)
	}
	expect.Fails(os.Stat("mapping.toml"))(t, fs.ErrNotExist, "files are written without --out")

	// Fewer sales than an interval needs: the model's values, without a verdict on it.
	feed := "decision_id,item,shown,chosen,x\n"
	rng := rand.New(rand.NewPCG(1, 1))
	for k := range 500 {
		place := rng.IntN(10)
		for i := range 10 {
			shown, chosen := 0, 0
			if i == place {
				shown = 1
				if k%41 == 0 {
					chosen = 1
				}
			}
			feed += fmt.Sprintf("%d,i%d,%d,%d,%d\n", k, i, shown, chosen, (k+i*i)%13)
		}
	}
	write(t, "feed.csv", feed)
	write(t, "feed.toml", "[sampling_law]\ndraw = \"pages\"\nshare = 1\nsize = 1\n")
	text := run1(t, "assess", "feed.csv", "--mapping", "feed.toml")
	if strings.Contains(text, "dr-pi") || strings.Contains(text, "probably wrong") ||
		strings.Count(text, "the log checks it with") != 2 || !strings.Contains(text, " sales only") {
		t.Error(text)
	}
}

// Logs that are not logs, or damaged.
func TestAssessOther(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "array.json", "\n[{\"a\":1}]")
	write(t, "notes.txt", "some words\nand others\n")
	write(t, "rewards.json", `{"EventId":"a","RewardValue":1}`)
	write(t, "ga.json", `{"event_name":"view_item_list","event_params":[],"items":[]}`)
	write(t, "simple.vw", "1 | a b\n0 | c\n")
	write(t, "big.dsjson", `{"EventId":"a","_label_cost":3,"a":[1,2],"p":[0.5,0.5],"c":{"_multi":[{"x":{"p":1}},{"x":{"p":2}}]}}`)
	write(t, "single.csv", "decision_id,item,chosen,price\n"+"a,x,1,2\nb,y,0,3\n")
	write(t, "cut.csv", "request_id,sku,click\n"+strings.Repeat("a,x,0\n", 30)+"b,y\n")
	for log, want := range map[string]string{
		"array.json":   "jq -c '.[]' array.json",
		"notes.txt":    "a log: the lines are no table",
		"rewards.json": "the joined log",
		"ga.json":      "UNNEST(items)",
		"simple.vw":    "labels action:cost:probability",
		"big.dsjson":   "negative costs for what was taken",
		"single.csv":   "decision_id differs in nearly every row",
	} {
		if text := run1(t, "assess", log); !strings.Contains(text, want) || !strings.Contains(text, "Supply:") {
			t.Errorf("%s: no %q in\n%s", log, want, text)
		}
	}
	write(t, "partial.dsjson", `{"EventId":"a","_label_cost":-0.05,"a":[1,2],"p":[0.5,0.5],"c":{"_multi":[{"x":{"p":1}},{"x":{"p":2}}]}}`)
	if text := run1(t, "assess", "partial.dsjson"); !strings.Contains(text, "between 0 and 1 in 1 of these") ||
		!strings.Contains(text, "30 decisions are needed, and the log holds 1") {
		t.Error(text)
	}
	// Few decisions give no interval, and JSON could not hold one.
	var a judge.Assessment
	if err := json.Unmarshal([]byte(run1(t, "assess", "partial.dsjson", "--json")), &a); err != nil ||
		a.Values != nil || a.Unknown == "" {
		t.Errorf("%v, %+v", err, a)
	}
	for _, flag := range []string{"--level=0", "--level=2", "--level=NaN", "--decisions=0"} {
		if _, errs, code := vitrineRun(t, "assess", "partial.dsjson", flag); code == 0 ||
			!strings.Contains(errs, flag[:strings.Index(flag, "=")]+" is ") {
			t.Errorf("%s: %q", flag, errs)
		}
	}
	// A log that cannot be imported leaves no files.
	write(t, "twice.jsonl", strings.Repeat(`{"id":"a","items":["x","y"],"click":"x"}`+"\n", 30))
	write(t, "twice.toml", "format = 'sessions'\n[columns]\ndecision = 'id'\nitem = 'items'\nchosen = 'click'\n")
	mentions(t, run1(t, "assess", "twice.jsonl", "--mapping", "twice.toml", "--out", "twice"),
		`The log does not fit the placement: twice.jsonl: line 2: decision "a" is in the log twice`, "Supply:")
	expect.Fails(os.Stat("twice"))(t, fs.ErrNotExist, "files are written for a log that cannot be imported")
	fatal.If(t, os.Mkdir("start", 0o755))
	write(t, "start/placement.json", "mine")
	if _, errs, code := vitrineRun(t, "assess", "partial.dsjson", "--out", "start"); code == 0 ||
		!strings.Contains(errs, filepath.Join("start", "placement.json")+" exists") ||
		!strings.Contains(errs, "hint: assess never overwrites: name another directory") {
		t.Errorf("a file of the user's: %q", errs)
	}
	if text := fatal.Or(os.ReadFile("start/placement.json"))(t); string(text) != "mine" {
		t.Errorf("it is now %s", text)
	}
	write(t, "empty.csv", "")
	for log, want := range map[string]string{"cut.csv": "cut.csv: line 32 has 2 fields",
		"none.csv": "none.csv: no such file", "empty.csv": "the file is empty"} {
		if _, errs, code := vitrineRun(t, "assess", log); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %q, want %q", log, errs, want)
		}
	}
}
