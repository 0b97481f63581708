package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/hint"
	"vitrine/internal/long"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/host"
	"vitrine/service/importer"
	"vitrine/service/setup"
)

// forget deletes a placement of a log in a data directory.
func forget(t *testing.T, data, placement string) {
	t.Helper()
	store := fatal.Or(filelog.Open(t.Context(), filelog.Options{Dir: filepath.Join(data, host.LogDir)}))(t)
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: store, Build: setup.NewLearner}))(t)
	fatal.If(t, e.Delete(t.Context(), placement, nil, time.Now().UnixNano()))
	e.Close()
	fatal.If(t, store.Close())
}

// An import that finds the log of another process leaves it alone, also if that log began after the import.
func TestImportBesideAService(t *testing.T) {
	data := t.TempDir()
	dir := filepath.Join(data, host.LogDir)
	store := fatal.Or(filelog.Open(t.Context(), filelog.Options{Dir: dir}))(t)
	defer store.Close()
	err := importCmd{Placement: "home", To: data}.fresh(t.Context(), terminal{}, new(importer.Mapping),
		[]byte(clicksPlacement))
	if err == nil || !filelog.Exists(dir) {
		t.Errorf("%v, and a log is there: %v", err, filelog.Exists(dir))
	}
}

// run1 runs a command that must succeed, and returns what it prints.
func run1(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := vitrineRun(t, args...)
	expect.Equal(fatal.T(t), code, 0, args, errs)
	return out
}

// mentions requires all of the wanted texts in a text.
func mentions(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

const clicks = `decision_id,time,item,shown,chosen,revenue,propensity,price,brand,age
a,2026-01-01T10:00:00Z,sku1,2,0,1.5,0.2,0.5,acme,30
a,2026-01-01T10:00:00Z,sku2,1,1,2,0.2,1.5,zeta,30
a,2026-01-01T10:00:00Z,sku3,0,0,1,0.2,2.5,acme,30
b,2026-01-01T10:01:00Z,sku1,1,0,1.5,0.3,0.5,acme,41
b,2026-01-01T10:01:00Z,sku3,0,0,1,0.3,2.5,acme,41
`

const clicksPlacement = `{"max_size":2,"log_items":"all","features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category","values":["acme","zeta"]},{"name":"age","kind":"number","from":"shopper","scale":10},{"name":"x","kind":"cross","of":["price","age"]}],"policy":{"name":"ucb-mnl"}}`

// A table becomes a placement's log, marked as imported; the learner learns from it; the same import again adds
// nothing.
func TestImport(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "clicks.csv", clicks)
	write(t, "home.json", clicksPlacement)
	dry := run1(t, "import", "clicks.csv", "--placement", "home", "--create", "home.json", "--to", "data", "--dry-run")
	if _, err := os.Stat("data"); err == nil || !strings.Contains(dry, "2 decisions, 2 would be imported") {
		t.Errorf("a dry run leaves %v, and prints %s", err, dry)
	}
	out := run1(t, "import", "clicks.csv", "--placement", "home", "--create", "home.json", "--to", "data")
	mentions(t, out,
		`clicks.csv: 2 decisions, 2 imported to placement "home" of data`,
		"2.5 items a decision, 1 decisions with an item taken, 2 with a propensity, 0 with how the page was drawn",
		"price    price   5       0", "age      age     2       0",
	)
	exported := run1(t, "export", "data")
	mentions(t, exported, `"time":"2026-01-01T10:00:00Z"`, `"shown":["sku2","sku1"],"propensity":0.2,`,
		`"source":"import","status":"chosen","choice":"sku2"`, `"brand":"zeta"`, `"shopper":{"age":41}`,
		`"choice":null`)
	if replayed := run1(t, "replay", "data"); !regexp.MustCompile(`home +2 +2 .* 2 +0 +\d`).MatchString(replayed) {
		t.Errorf("not learned: %s", replayed)
	}
	again := run1(t, "import", "clicks.csv", "--placement", "home", "--to", "data")
	if !strings.Contains(again, "2 decisions, 0 imported") || !strings.Contains(again, "2 decisions are in the "+
		"log already") || run1(t, "export", "data") != exported {
		t.Errorf("again: %s", again)
	}
	run1(t, "check", "data")
	forget(t, "data", "home")
	if again := run1(t, "import", "clicks.csv", "--placement", "home", "--create", "home.json", "--to",
		"data"); !strings.Contains(again, "2 decisions, 2 imported") {
		t.Errorf("a placement of the name of a deleted one: %s", again)
	}

	// Later decisions of earlier times get the time of the last entry, so that times never decrease.
	write(t, "late.csv", strings.NewReplacer("a,2026", "c,2025", "b,2026", "d,2026").Replace(clicks))
	mentions(t, run1(t, "import", "late.csv", "--placement", "home", "--to", "data"),
		"2 decisions have the time of the entry before them")
	last := int64(0)
	err := withLog("data", func(ctx context.Context, store *filelog.Store) error {
		for entry, err := range store.Entries(ctx, 1) {
			if err != nil {
				return err
			}
			e, err := eventlog.Decode(entry)
			if err != nil {
				return err
			}
			if e.Time < last {
				return fmt.Errorf("the time decreases from %d to %d", last, e.Time)
			}
			last = e.Time
		}
		return nil
	})
	expect.Error(t, err, nil)
}

// decisionsOf returns the lines of an export by decision, without what an import does not keep: the
// entries, the version of the policy, how the set was found, and when the outcome came.
func decisionsOf(t *testing.T, data string) map[string]string {
	t.Helper()
	lines := map[string]string{}
	for line := range strings.Lines(run1(t, "export", data)) {
		if strings.Contains(line, `"status":"open"`) {
			continue
		}
		id := regexp.MustCompile(`"decision_id":"([^"]*)"`).FindStringSubmatch(line)[1]
		line = regexp.MustCompile(`"(entry|outcome_entry|policy_entry)":\d+,?`).ReplaceAllString(line, "")
		line = regexp.MustCompile(`"(outcome_time|source|time)":"[^"]*",?`).ReplaceAllString(line, "")
		lines[id] = strings.Replace(line, `"status":"expired"`, `"status":"chosen"`, 1)
	}
	return lines
}

// An export in any format can be imported back, with the pages' laws, and policies are judged alike.
func TestExportsAreImports(t *testing.T) {
	t.Chdir(t.TempDir())
	playedLog(t, "data", fmt.Sprintf(shelf, "swaps", 0.5), 60, true)
	write(t, "home.json", fmt.Sprintf(shelf, "swaps", 0.5))
	want := decisionsOf(t, "data")
	if lines := fmt.Sprint(want); strings.Count(lines, `"choices":[`) < 5 || !strings.Contains(lines, `"quantity":3`) ||
		!strings.Contains(lines, `"value":6.1`) {
		t.Fatal("the log has few baskets")
	}
	write(t, "top.toml", `show = "revenue"`)
	verdict := run1(t, "evaluate", "data", "--policy", "top.toml", "--format", "csv")
	for _, format := range []string{"jsonl", "parquet", "dsjson"} {
		name := "log." + format
		write(t, name, run1(t, "export", "data", "--format", format))
		report := run1(t, "import", name, "--placement", "home", "--create", "home.json", "--to", format)
		if strings.Contains(report, "not used: ") && format != "dsjson" {
			t.Errorf("%s: %s", format, report)
		}
		if format == "parquet" { // whose own columns are no features
			expect.Contains(t, run1(t, "assess", name), "  features            of items: item, x; of the shopper: none\n")
		}
		got := decisionsOf(t, format)
		if !maps.Equal(got, want) {
			for id, line := range want {
				expect.Equal(fatal.T(t), got[id], line, format, "decision", id)
			}
			t.Errorf("%s: %d decisions, want %d", format, len(got), len(want))
		}
		if again := run1(t, "evaluate", format, "--policy", "top.toml", "--format", "csv"); format == "jsonl" &&
			again != verdict {
			t.Errorf("%s: judged differently:\n%s\n%s", format, verdict, again)
		}
	}
	// Open Bandit Pipeline keeps one context an item, and no pages.
	obp, errs, code := vitrineRun(t, "export", "data", "--format", "obp", "--items", "item_context.csv")
	if code != 0 || !strings.Contains(errs, "8 items have other features or revenues in some decisions") ||
		!strings.Contains(errs, "earned other amounts than their clicks say") {
		t.Fatal(errs)
	}
	write(t, "log.csv", obp)
	write(t, "obp.toml", "format = \"obp\"\nitems = \"item_context.csv\"")
	report := run1(t, "import", "log.csv", "--placement", "home", "--create", "home.json", "--to", "obp", "--mapping",
		"obp.toml")
	expect.Contains(t, report, "59 decisions, 59 imported")
	shown := regexp.MustCompile(`"shown":.*?\].*"choice":[^,}]*`)
	law := regexp.MustCompile(`"(propensity|sampling_law)":([^{,]*|\{.*?\}),`)
	for id, line := range decisionsOf(t, "obp") {
		strip := func(s string) string { return law.ReplaceAllString(shown.FindString(s), "") }
		expect.Equal(fatal.T(t), strip(line), strip(want[id]), "decision", id)
	}
}

// An export reports the share of decisions that it leaves out. That share does not depend on the pages: in particular,
// formats with item propensities do not keep only the pages with one item. The law of a policy with random pages of its
// own gives the probability of a page given the policy's, and no propensity.
func TestExportsOfRandomPolicies(t *testing.T) {
	const rounds = 60
	t.Chdir(t.TempDir())
	for policy, c := range map[string]struct {
		record string
		none   int // decisions without a propensity
		dsjson string
	}{
		"uniform":        {"shown", 0, "59 of 60 decisions (98.3%) are left out: they have no propensities of items"},
		"eps-greedy-mnl": {"all", 0, ""},
		"auto":           {"all", rounds, ""},
	} {
		config := strings.Replace(strings.Replace(fmt.Sprintf(shelf, "sets", 0.5), "ucb-mnl", policy, 1), `"mode"`,
			`"log_items":"`+c.record+`","mode"`, 1)
		playedLog(t, policy, config, rounds, false)
		exported, errs, code := vitrineRun(t, "export", policy)
		if code != 0 || errs != "" {
			t.Errorf("%s: exit code %d, %q", policy, code, errs)
		}
		expect.Equal(t, strings.Count(exported, `"propensity":null`), c.none, policy, "decisions without a propensity")
		_, errs, _ = vitrineRun(t, "export", policy, "--format", "dsjson")
		if !strings.Contains(errs, c.dsjson) || c.dsjson == "" && strings.Contains(errs, "no propensities") {
			t.Errorf("%s: %q, want %q", policy, errs, c.dsjson)
		}
		if c.record == "all" { // and import takes both the propensity and the law
			write(t, policy+".json", config)
			write(t, policy+".jsonl", exported)
			want := decisionsOf(t, policy)
			run1(t, "import", policy+".jsonl", "--placement", "home", "--create", policy+".json", "--to",
				policy+" again")
			expect.Equal(t, decisionsOf(t, policy+" again"), want, policy, "imported otherwise")
		}
	}
}

// canceledAfter is a context that ends after a number of questions whether it did.
type canceledAfter struct {
	context.Context
	left   *atomic.Int64
	cancel context.CancelFunc
}

func (c canceledAfter) Err() error {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// An import into a new directory may be interrupted anywhere. It leaves no directory, or says that the same command
// goes on, and then ends with the same log.
func TestInterruptedImport(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "clicks.csv", clicks)
	write(t, "home.json", clicksPlacement)
	run1(t, "import", "clicks.csv", "--placement", "home", "--create", "home.json", "--to", "whole")
	want, kept := decisionsOf(t, "whole"), 0
	for after := int64(1); ; after++ {
		dir := fmt.Sprint("data", after)
		inner, cancel := context.WithCancel(t.Context())
		ctx := canceledAfter{inner, new(atomic.Int64), cancel}
		ctx.left.Store(after)
		err := importCmd{Log: "clicks.csv", Placement: "home", To: dir, Create: "home.json"}.Run(ctx,
			terminal{out: io.Discard, err: io.Discard})
		cancel()
		if err == nil {
			break
		}
		_, missing := os.Stat(dir)
		if goesOn := hint.Of(err); !errors.Is(err, context.Canceled) || goesOn == "" != (missing != nil) {
			t.Fatalf("after %d: %v, hint %q, directory %v", after, err, goesOn, missing)
		}
		if missing == nil {
			kept++
		}
		run1(t, "import", "clicks.csv", "--placement", "home", "--create", "home.json", "--to", dir)
		expect.Equal(fatal.T(t), decisionsOf(t, dir), want, "after", after)
	}
	if kept == 0 {
		t.Error("no interrupted import was kept")
	}
}

// A second file of a format without ids adds its decisions, and the same file again adds no more. Lines of a file count
// each, also if they are alike. A file of both adds no more if its decisions have times.
func TestImportsWithoutIDs(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "home.json", `{"max_size":1,"log_items":"all","features":[{"name":"q","kind":"number","default":0}],"policy":{"name":"ucb-mnl"}}`)
	write(t, "items.csv", "item_id\nx\ny\n")
	const obp = "timestamp,item_id,click,propensity_score\n"
	const dsjson = `{"Timestamp":"%s","_label_cost":-1,"a":[1],"p":[0.5],"c":{"_multi":[{"q":1},{"q":2}]}}` + "\n"
	const line = `{"time":"%s","items":[{"id":"x"},{"id":"y"}],"shown":["x"],"choice":null}` + "\n"
	const day1, day2 = "2026-01-01T10:00:00Z", "2026-01-02T10:00:00Z"
	for format, c := range map[string]struct{ mapping, one, two string }{
		"obp":      {`items = "items.csv"`, obp + day1 + ",x,1,0.5\n" + day1 + ",x,1,0.5\n", obp + day2 + ",x,1,0.5\n" + day1 + ",y,0,0.5\n"},
		"vw":       {"actions = 2", "1:-1:0.5 | a\n1:-1:0.5 | a\n", "1:-1:0.5 | a\n2:0:0.5 | a\n"},
		"vwjson":   {"actions = 2", strings.Repeat(`{"_label":"1:-1:0.5","s":{"t":1}}`+"\n", 2), strings.Repeat(`{"_label":"2:0:0.5","s":{"t":1}}`+"\n", 2)},
		"dsjson":   {"", strings.Repeat(fmt.Sprintf(dsjson, day1), 2), strings.Repeat(fmt.Sprintf(dsjson, day2), 2)},
		"jsonl":    {"", strings.Repeat(fmt.Sprintf(line, day1), 2), strings.Repeat(fmt.Sprintf(line, day2), 2)},
		"sessions": {"[columns]\nitem = \"list\"\nchosen = \"got\"\nshown = \"seen\"", strings.Repeat(`{"list":["x","y"],"seen":["x"],"got":"x"}`+"\n", 2), strings.Repeat(`{"list":["x","y"],"seen":["y"],"got":"y"}`+"\n", 2)},
	} {
		write(t, "map.toml", "format = \""+format+"\"\n"+c.mapping)
		both := "4 decisions, 4 imported"
		if strings.Contains(c.one, day1) {
			both = "4 decisions, 0 imported"
		}
		for _, step := range []struct{ text, want string }{{c.one, "2 decisions, 2 imported"},
			{c.two, "2 decisions, 2 imported"}, {c.one, "2 decisions, 0 imported"}, {c.two, "2 decisions, 0 imported"},
			{c.one + strings.TrimPrefix(c.two, obp), both}} {
			write(t, "log", step.text)
			expect.Contains(t, run1(t, "import", "log", "--placement", "home", "--create", "home.json", "--mapping", "map.toml",
				"--to", format), "log: "+step.want, format)
		}
	}
}

// The report of an import says which of several items taken count, and which decisions got a time. An export of pages
// drawn by a known law does not say that their probability is unknown.
func TestImportReports(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "home.json", clicksPlacement)
	rows := strings.NewReplacer("sku1,2,0", "sku1,2,1", ",propensity", "", "0.2,", "", "0.3,", "").Replace(clicks)
	rows += strings.ReplaceAll(rows[strings.Index(rows, "b,2026"):], "b,2026-01-01T10:01:00Z", "c,")
	write(t, "clicks.csv", rows)
	write(t, "pages.toml", "[sampling_law]\ndraw = \"sets\"\nshare = 1\nsize = 2\n")
	out := run1(t, "import", "clicks.csv", "--placement", "home", "--create", "home.json", "--to", "data", "--mapping",
		"pages.toml")
	mentions(t, out,
		"1 decisions have several items taken: all of them count, as the choices of independent customers",
		"1 decisions have no time: they have the time of the entry before them",
	)
	exported, errs, code := vitrineRun(t, "export", "data")
	if code != 0 || errs != "" || strings.Count(exported, `"time":"2026-01-01T10:01:00Z"`) != 2 ||
		strings.Count(exported, `"sampling_law":{"draw":"sets"`) != 3 || !strings.Contains(exported, `"earned":3.5`) {
		t.Errorf("exit code %d, %q\n%s", code, errs, exported)
	}
}

// Sorting is by time only if the table has times, and an index without a name stands for no other column.
func TestImportReportsSorting(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "home.json", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	for column, want := range map[string]string{"t": "the table was sorted\n", "time": "the table was sorted by time\n"} {
		write(t, "log.csv", ",decision_id,item,chosen,x,"+column+"\n0,a,i,1,1,2026-01-01\n1,b,i,0,2,2026-01-01\n2,a,j,0,3,2026-01-01\n")
		out := run1(t, "import", "log.csv", "--placement", "home", "--create", "home.json", "--to", "data", "--dry-run")
		mentions(t, out, want)
		_, unused, _ := strings.Cut(out, "\nnot used: ")
		expect.Equal(t, unused, map[string]string{"t": "t\n"}[column], column)
	}
}

// Logs of other programs.
func TestForeignLogs(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "cb.dsjson", `{"_label_cost":-1,"_label_probability":0.8,"_label_Action":2,"EventId":"e 1","Timestamp":"2026-01-02T03:04:05.5Z","a":[2,1],"p":[0.8,0.2],"c":{"FromUrl":[{"hour":7}],"_multi":[{"_tag":"pizza","i":{"constant":1},"j":[{"spicy":1,"diet":"none"}]},{"_tag":"salad","j":[{"spicy":0,"diet":"low"}]}]}}
{"_label_cost":0,"EventId":"e2","Timestamp":"2026-01-02T03:05:05Z","a":[1,2],"p":[0.6,0.4],"c":{"FromUrl":[{"hour":9}],"_multi":[{"_tag":"pizza","j":[{"spicy":1,"diet":"none"}]},{"_tag":"salad","j":[{"spicy":0,"diet":"low"}]}]}}
{"RewardValue":1,"EventId":"e2"}
`)
	write(t, "food.json", `{"max_size":1,"log_items":"all","features":[{"name":"heat","kind":"number"},{"name":"diet","kind":"category","values":["none","low"]},{"name":"all","kind":"object","columns":8},{"name":"hour","kind":"number","from":"shopper"}],"policy":{"name":"ucb-mnl"}}`)
	write(t, "food.toml", "[features]\nheat = \"spicy\"\nall = \"*\"\n")
	report := run1(t, "import", "cb.dsjson", "--placement", "food", "--create", "food.json", "--to", "food",
		"--mapping", "food.toml")
	mentions(t, report, "3 decisions, 2 imported", "decisions left out because they have no context: 1",
		"heat     spicy   4", "not used: i.constant\n")
	exported := run1(t, "export", "food")
	mentions(t, exported, `"decision_id":"import-`, `"shown":["salad"],"propensity":0.8`, `"choice":"salad"`,
		`"decision_id":"e2"`, `"choice":null`, `"shopper":{"hour":9}`, `"diet":"low"`)
	write(t, "ccb.dsjson", `{"Timestamp":"2026-01-02T03:04:05Z","EventId":"p","c":{"user":{"hour":3},"_multi":[{"_tag":"a","f":{"heat":1}},{"_tag":"b","f":{"heat":2}},{"_tag":"c","f":{"heat":3}}],"_slots":[{},{}]},"_outcomes":[{"_label_cost":0,"_a":[2,0,1],"_p":[0.5,0.3,0.2]},{"_label_cost":-1,"_a":[0,1],"_p":[0.6,0.4]}]}`)
	write(t, "slots.json", `{"max_size":2,"log_items":"all","features":[{"name":"heat","kind":"number"},{"name":"hour","kind":"number","from":"shopper"}],"policy":{"name":"ucb-mnl"}}`)
	run1(t, "import", "ccb.dsjson", "--placement", "page", "--create", "slots.json", "--to", "page")
	if exported := run1(t, "export", "page"); !strings.Contains(exported, `"shown":["c","a"],"propensity":null`) ||
		!strings.Contains(exported, `"choice":"a"`) {
		t.Error(exported)
	}
	// The data set of Open Bandit: rows are impressions, and every page of one item was drawn uniformly.
	write(t, "random.csv", `,timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0,user-item_affinity_1
0,2019-11-24 00:00:17.004101+00:00,1,3,0,0.5,81ce,0.5,2
1,2019-11-24 00:00:23.715857+00:00,0,1,1,0.5,4ae3,1,0
`)
	write(t, "item_context.csv", ",item_id,item_feature_0\n0,0,-0.7\n1,1,0.3\n")
	write(t, "random.toml", "format = \"obp\"\nitems = \"item_context.csv\"\n[features]\naffinity = "+
		"\"user-item_affinity\"\n[sampling_law]\ndraw = \"pages\"\nshare = 1\nsize = 1\n")
	write(t, "obp.json", `{"max_size":1,"log_items":"all","features":[{"name":"item_feature_0","kind":"number"},{"name":"affinity","kind":"number"},{"name":"user_feature_0","kind":"category","from":"shopper"}],"policy":{"name":"ucb-mnl"}}`)
	report = run1(t, "import", "random.csv", "--placement", "zozo", "--create", "obp.json", "--to", "zozo", "--mapping",
		"random.toml")
	if exported := run1(t, "export", "zozo"); !strings.Contains(report, "2 with how the page was drawn") ||
		!strings.Contains(exported, `"affinity":2}`) || !strings.Contains(exported,
		`"sampling_law":{"draw":"pages","share":1,"size":1`) {
		t.Errorf("%s%s", report, exported)
	}
}

// A law takes the place of a propensity, and a number of 0 is not missing, also in a table of Parquet.
func TestImportLawsFromParquet(t *testing.T) {
	clicks := string(fatal.Or(os.ReadFile("../../docs/howto/clicks.csv"))(t))
	t.Chdir(t.TempDir())
	write(t, "log.csv", strings.ReplaceAll(clicks, ",9,2.5,", ",0,2.5,"))
	write(t, "law.toml", "[sampling_law]\ndraw = \"pages\"\nshare = 1\nsize = 2\n")
	write(t, "home.json", `{"max_size":2,"features":[{"name":"price","kind":"number"}]}`)
	into := []string{"import", "log.csv", "--placement", "home", "--create", "home.json", "--to", "data", "--mapping", "law.toml"}
	run1(t, into...)
	table, warning, _ := vitrineRun(t, "export", "data", "--format", "parquet")
	write(t, "log.parquet", table)
	into[1], into[7] = "log.parquet", "again"
	run1(t, into[:8]...)
	decisions := func(dir string) string { return run1(t, "export", dir) }
	if a, b := decisions("data"), decisions("again"); a != b || strings.Contains(warning, "no propensity") {
		t.Errorf("%s\n%.300s\n%.300s", warning, a, b)
	}
}

// Every bad log is named with its place, and no part of it is written.
func TestBadImports(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "home.json", clicksPlacement)
	write(t, "clicks.csv", clicks)
	run1(t, "import", "clicks.csv", "--placement", "home", "--create", "home.json", "--to", "data")
	before := run1(t, "export", "data")
	write(t, "whole.parquet", run1(t, "export", "data", "--format", "parquet"))
	whole, _ := os.ReadFile("whole.parquet")
	fresh := strings.NewReplacer("a,2026", "c,2026", "b,2026", "d,2026").Replace(clicks)
	strict := "[columns]\npropensity = \"propensity\""
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(fresh))
	z.Close()
	for want, c := range map[string]struct{ name, text, mapping string }{
		"the file is truncated or damaged": {
			"cut.parquet", string(whole[:len(whole)/2]), ""},
		"truncated or damaged: unexpected EOF": {
			"cut.csv.gz", zipped.String()[:zipped.Len()-20], ""},
		"if columns are separated by ';', write commas": {
			"semicolon.csv", strings.ReplaceAll(fresh, ",", ";"), ""},
		"line 7 repeats the header": {
			"twice.csv", fresh + strings.SplitAfter(fresh, "\n")[0], ""},
		`line 1 has the column "price" twice`: {
			"column.csv", strings.Replace(fresh, "brand", "price", 1), ""},
		"line 7 has 2 fields, and the header 10": {
			"short.csv", fresh + "e,2026-01-01T10:00:00Z\n", ""},
		"line 2: column propensity: the propensity is missing": {
			"missing.csv", strings.ReplaceAll(fresh, ",0.2,", ",,"), strict},
		"line 2: column propensity: the propensity is 0: must be in (0, 1]": {
			"zero.csv", strings.ReplaceAll(fresh, "0.2,", "0,"), ""},
		"line 5: column propensity: the propensity is 1.5": {
			"above.csv", strings.ReplaceAll(fresh, "0.3,", "1.5,"), ""},
		"line 3: column propensity: the propensity is 0.4, and 0.2": {
			"varies.csv", strings.Replace(fresh, "2,0.2,1.5", "2,0.4,1.5", 1), ""},
		"line 4: decision c: item \"sku3\" was chosen and not shown": {
			"unseen.csv", strings.Replace(strings.Replace(fresh, "sku3,0,0", "sku3,0,1", 1), "sku2,1,1", "sku2,1,0", 1),
			""},
		`line 3: decision c has item "sku1" twice`: {
			"item.csv", strings.Replace(fresh, "sku2", "sku1", 1), ""},
		`line 2: decision "c": /shown: has 3 items, the placement shows at most`: {
			"many.csv", strings.Replace(fresh, "sku3,0,0,1,0.2", "sku3,3,0,1,0.2", 1), ""},
		`item "sku2": column price: "1,5" is not a finite number: write numbers as 1234.5`: {
			"number.csv", strings.Replace(fresh, "0.2,1.5", `0.2,"1,5"`, 1), ""},
		`/items/1/features/price: is missing`: {
			"nan.csv", strings.Replace(fresh, "0.2,1.5", "0.2,NaN", 1), ""},
		`/items/1/features/brand: "other"`: {
			"brand.csv", strings.Replace(fresh, "zeta", "other", 1), ""},
		`feature price: name its column in [features] of the mapping, or give it a default: there is no column "price"`: {
			"none.csv", strings.Replace(fresh, "price", "cost", 1), ""},
		`line 2: column time: "yesterday" is not a time`: {
			"time.csv", strings.Replace(fresh, "2026-01-01T10:00:00Z", "yesterday", 1), ""},
		`line 3: column time: "later" is not a time`: {
			"later.csv", strings.Replace(fresh, "2026-01-01T10:00:00Z,sku2", "later,sku2", 1), ""},
		"is in the future": {
			"future.csv", strings.ReplaceAll(fresh, "2026", "2226"), ""},
		`line 7: decision c has item "sku1" twice`: {
			"again.csv", fresh + strings.SplitAfter(fresh, "\n")[1], ""},
		`there is no column "click": the columns are`: {
			"map.csv", fresh, "[columns]\nchosen = \"click\""},
		`features.price: there is no column "cost"`: {
			"feature.csv", fresh, "[features]\nprice = \"cost\""},
		`weight.csv.toml: features.weight: the placement has no such feature`: {
			"weight.csv", fresh, "[features]\nweight = \"price\""},
		`/sampling_law: gives the set ["sku2" "sku1"], which was shown, the propensity`: {
			"law.csv", fresh, "[sampling_law]\ndraw = \"pages\"\nshare = 1\nsize = 2"},
		`law.csv.toml: sampling_law.page is missing`: {
			"law.csv", fresh, "[sampling_law]\ndraw = \"pages\"\nshare = 0.5\nsize = 2"},
		`key.csv.toml:1: unknown key "column"`: {
			"key.csv", fresh, "column = 1"},
		`format = "xml": want one of csv, tsv, parquet`: {
			"xml.csv", fresh, "format = \"xml\""},
		`its name does not say its format`: {"clicks.txt", fresh, ""},
		`it has no decision`: {
			"header.csv", strings.SplitAfter(fresh, "\n")[0], ""},
		`the file is empty`: {"empty.csv", "", ""},
		`line 2: c: `: {
			"bad.dsjson", "\n" + `{"EventId":"x","c":{"_multi":3}}`, ""},
		`line 1: c: _multi is missing`: {
			"multi.dsjson", `{"EventId":"x","c":{}}`, ""},
		`line 1: slot 0: the propensity is 0: must be in (0, 1]`: {
			"zero.dsjson", `{"EventId":"x","_label_cost":0,"a":[1],"p":[0],"c":{"_multi":[{"_tag":"a"}]}}`, ""},
		`line 1: slot 0: the propensity is 1.5`: {
			"p.dsjson", `{"EventId":"x","_label_cost":0,"a":[1],"p":[1.5],"c":{"_multi":[{"_tag":"a"}]}}`, ""},
		`line 1: slot 0 has 0 propensities for 1 actions`: {
			"nop.dsjson", `{"EventId":"x","_label_cost":0,"a":[1],"p":[],"c":{"_multi":[{"_tag":"a"}]}}`, ""},
		`line 1: slot 0 shows the action [7] of 1`: {
			"a.dsjson", `{"EventId":"x","_label_cost":0,"a":[7],"p":[1],"c":{"_multi":[{"_tag":"a"}]}}`, ""},
		`line 1: `: {"cut.jsonl", `{"decision_id":"x","items":[{"id":`, ""},
		`the propensity is 2: must be in (0, 1]`: {
			"two.jsonl", `{"decision_id":"x","items":[{"id":"a"}],"shown":["a"],"propensity":2,"status":"chosen"}`, ""},
		`line 2: decision "a": the log contains this decision with another page: if the file reuses ids`: {
			"page.csv", strings.Replace(clicks, "sku1,2,0", "sku1,0,0", 1), ""},
		`line 5: decision "b": the log contains this decision with another outcome`: {
			"outcome.csv", strings.Replace(clicks, "sku1,1,0", "sku1,1,1", 1), ""},
		`line 5: decision "b": the log contains this decision with the time 2026-01-01T10:01:00Z`: {
			"day2.csv", strings.ReplaceAll(clicks, "b,2026-01-01", "b,2026-01-02"), ""},
		`the format obp needs the items`: {"obp.csv", fresh, "format = \"obp\""},
		`page has "b", which is not among the items`: {
			"law.jsonl", `{"decision_id":"x","items":[{"id":"a"}],"shown":["a"],"sampling_law":{"draw":"sets","share":0.1,"size":1,"page":["b"]},"status":"chosen"}`, ""},
	} {
		write(t, c.name, c.text)
		args := []string{"import", c.name, "--placement", "home", "--to", "data"}
		if c.mapping != "" {
			write(t, c.name+".toml", c.mapping)
			args = append(args, "--mapping", c.name+".toml")
		}
		out, errs, code := vitrineRun(t, args...)
		if code == 0 || out != "" || !strings.Contains(errs, want) || !strings.Contains(errs, c.name) {
			t.Errorf("%s: %s%s\nwant %q", c.name, out, errs, want)
		}
	}
	expect.Equal(t, run1(t, "export", "data"), before, "a bad log has left decisions")
	// A new directory is gone after a bad log, and a running service's is refused.
	write(t, "bad.csv", strings.Replace(fresh, "0.2,1.5", "0.2,NaN", 1))
	if _, _, code := vitrineRun(t, "import", "bad.csv", "--placement", "home", "--create", "home.json", "--to",
		"new"); code == 0 {
		t.Error("a bad log was imported")
	}
	expect.Fails(os.Stat("new"))(t, fs.ErrNotExist, "a bad log has left a directory")
	if _, errs, _ := vitrineRun(t, "import", "clicks.csv", "--placement", "home", "--create", "home.json", "--to",
		"clicks.csv/data"); !strings.Contains(errs, "not a directory") || strings.Contains(errs, "service") {
		t.Errorf("into a file: %s", errs)
	}
	write(t, "home.csv", `{"max_size":0}`)
	for want, args := range map[string][]string{
		"nowhere has no log":                              {"clicks.csv", "--placement", "home", "--to", "nowhere"},
		`data has no placement "shelf": there are [home]`: {"clicks.csv", "--placement", "shelf", "--to", "data"},
		"home.csv: ": {"clicks.csv", "--placement", "shelf", "--to", "data", "--create", "home.csv"},
	} {
		if _, errs, code := vitrineRun(t, append([]string{"import"}, args...)...); code == 0 ||
			!strings.Contains(errs, want) {
			t.Errorf("%s, want %q", errs, want)
		}
	}
}

// A category with very many values is an id, and named.
func TestImportOfManyCategories(t *testing.T) {
	long.Test(t)
	t.Chdir(t.TempDir())
	var b bytes.Buffer
	b.WriteString("decision_id,item,chosen,sku\n")
	for i := range 100_001 {
		fmt.Fprintf(&b, "d%d,a,0,value%d\n", i/2, i)
		if i%2 == 1 {
			b.Truncate(b.Len())
		}
	}
	text := regexp.MustCompile(`(?m)^(d\d+),a,0,(value\d*[13579])$`).ReplaceAll(b.Bytes(), []byte("$1,b,0,$2"))
	write(t, "many.csv", string(text))
	write(t, "home.json", `{"max_size":2,"features":[{"name":"sku","kind":"category"}],"policy":{"name":"ucb-mnl"}}`)
	_, errs, code := vitrineRun(t, "import", "many.csv", "--placement", "home", "--create", "home.json", "--to", "data")
	if code == 0 || !strings.Contains(errs, "column sku: the category sku has more than 100000 distinct values: "+
		"it is probably an id") || !strings.Contains(errs, "line 100002") {
		t.Error(errs)
	}
}

// A log exported by Azure Personalizer becomes the log of the placement in docs/personalizer.md, with all features, and
// policies are judged by it: Personalizer logs the probability of each action.
func TestPersonalizerLogBecomesItsPlacement(t *testing.T) {
	page := fatal.Or(os.ReadFile("../../docs/personalizer.md"))(t)
	config := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)[1]
	t.Chdir(t.TempDir())
	write(t, "personalizer.json", string(config))
	const line = `{"_label_cost":%v,"_label_probability":%[2]v,"_label_probability":%[2]v,"_label_Action":%[3]d,"_labelIndex":0,"o":[{"v":%[4]v,"EventId":"event-%[5]d","ActionTaken":false}],"Timestamp":"2021-02-04T16:31:29.2460000Z","Version":"1","EventId":"event-%[5]d","a":[%[3]d,%[6]d],"c":{"FromUrl":[{"timeofday":"Afternoon","weather":"Sunny"},{"visits":3}],"_multi":[{"_tag":"Cappucino","i":{"constant":1,"id":"Cappucino"},"j":[{"type":"hot","origin":"kenya"}]},{"_tag":"Cold brew","i":{"constant":1,"id":"Cold brew"},"j":[{"type":"cold","hours":12}]}]},"p":[%[2]v,%[7]v],"VWState":{"m":"ff07/550c"},"_original_label_cost":%[1]v}` + "\n"
	var text strings.Builder
	for k := range 100 {
		p, a := 0.9, 1
		if k%10 == 0 {
			p, a = 0.1, 2
		}
		reward := []float64{0, 0.05, 1}[k%3]
		fmt.Fprintf(&text, line, -reward, p, a, reward, k, 3-a, 1-p)
	}
	write(t, "log.json", text.String())
	report := run1(t, "import", "log.json", "--format", "personalizer", "--placement", "personalizer", "--create",
		"personalizer.json", "--to", "data", "--dry-run")
	if strings.Contains(report, "not used") {
		t.Error(report)
	}
	mentions(t, report, "id       id       200     0", "action   action   200     0",
		"context  context  100     0", "100 with how the page was drawn", "left out")
	// The page's placement records what was shown. A placement that does not say so keeps all candidates, which
	// evaluate needs.
	write(t, "personalizer.json", strings.Replace(string(config), `"log_items": "shown", `, "", 1))
	report = run1(t, "import", "log.json", "--format", "personalizer", "--placement", "personalizer", "--create",
		"personalizer.json", "--to", "data")
	taken := regexp.MustCompile(`(\d+) decisions with an item taken`).FindStringSubmatch(report)
	if taken == nil || len(taken[1]) != 2 || taken[1] < "33" || taken[1] > "42" ||
		strings.Contains(report, "left out") { // 33 rewards of 1, and 33 of 0.05
		t.Errorf("%v\n%s", taken, report)
	}
	if exported := run1(t, "export", "data"); !strings.Contains(exported, `"decision_id":"personalizer:event-7"`) ||
		!strings.Contains(exported, `"sampling_law":{"draw":"items","share":1,"size":1,"page":[],"probability":[0.1,0.9],"slot":[0,0]}`) && !strings.Contains(exported, `"probability":[0.9,0.1`) {
		t.Errorf("%.1500s", exported)
	}
	write(t, "cold.toml", `show = "revenue"`)
	verdict := run1(t, "evaluate", "data", "--policy", "cold.toml")
	if !strings.Contains(verdict, "The log says how every page was drawn.") ||
		!strings.Contains(verdict, "Every item of the policy's pages could have been shown") {
		t.Error(verdict)
	}
	write(t, "cold.toml", "show = \"revenue\"\nsize = 1") // as the log's pages
	expect.Equal(t, run1(t, "evaluate", "data", "--policy", "cold.toml"), verdict)
}

// An import that creates the placement keeps the candidates that were not shown, so that policies can be judged; a
// placement that records only items shown says what is lost.
func TestImportCreatesWithAllCandidates(t *testing.T) {
	t.Chdir(t.TempDir())
	const home = `{"max_size":2,%s"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category","values":["acme","zeta"]},{"name":"age","kind":"number","from":"shopper","scale":10}],"policy":{"name":"ucb-mnl"}}`
	write(t, "clicks.csv", clicks)
	write(t, "top.toml", `show = "revenue"`)
	write(t, "all.json", fmt.Sprintf(home, ""))
	write(t, "shown.json", fmt.Sprintf(home, `"log_items":"shown",`))
	if report := run1(t, "import", "clicks.csv", "--placement", "home", "--create", "all.json", "--to",
		"all"); strings.Contains(report, "left out") {
		t.Error(report)
	}
	if exported := run1(t, "export", "all"); strings.Count(exported, `"id":`) != 5 {
		t.Error(exported)
	}
	if _, errs, code := vitrineRun(t, "evaluate", "all", "--policy", "top.toml"); strings.Contains(errs, "candidates") {
		t.Errorf("%d %s", code, errs)
	}
	const lost = `2 candidates that were not shown are left out, which vitrine evaluate needs: the placement has "log_items": "shown"`
	if report := run1(t, "import", "clicks.csv", "--placement", "home", "--create", "shown.json", "--to",
		"shown"); !strings.Contains(report, lost) {
		t.Error(report)
	}
}

// An import, and an evaluation of policies that learn, show their progress in each pass.
func TestLearningShowsProgress(t *testing.T) {
	t.Chdir(t.TempDir())
	defer func(before time.Duration) { lineEvery = before }(lineEvery)
	lineEvery = 0
	table := "decision_id,item,shown,chosen,price\n"
	for d := range 1000 {
		table += fmt.Sprintf("d%d,a,%d,%d,0.5\nd%d,b,%d,0,0.25\n", d, d%2, d%2, d, 1-d%2)
	}
	write(t, "clicks.csv", table)
	write(t, "map.toml", "[sampling_law]\ndraw = \"pages\"\nsize = 1\nshare = 1\n")
	write(t, "home.json", `{"max_size":1,"features":[{"name":"price","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	var seen string
	shows := func(args []string, wants ...string) {
		t.Helper()
		_, shown, code := vitrineRun(t, args...)
		seen = shown
		for _, want := range wants {
			if code != 0 || !regexp.MustCompile(`(?m)^vitrine: `+want+` \d+%$`).MatchString(shown) {
				t.Errorf("%v shows, with code %d, no %s: %s", args, code, want, shown)
			}
		}
	}
	shows([]string{"import", "clicks.csv", "--placement", "home", "--create", "home.json", "--mapping", "map.toml",
		"--to", "data"}, "clicks.csv, checking:", "clicks.csv, learning:")
	for _, show := range []string{"policy", "replay"} {
		write(t, show+".toml", "show = \""+show+"\"\n[policy]\nname = \"ucb-mnl\"\n")
	}
	shows([]string{"evaluate", "data", "--policy", "policy.toml", "--policy", "replay.toml"},
		"data, policy learns:", "data, replay learns:")
	args := []string{"assess", "clicks.csv"}
	if shows(args, "clicks.csv, reading:"); strings.Count(seen, ", reading:") != 1 {
		t.Errorf("%v goes back to the start of its progress: %s", args, seen)
	}
}
