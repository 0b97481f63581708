package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/hint"
	"vitrine/internal/wait"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/host"
	"vitrine/service/importer"
	"vitrine/service/page"
	"vitrine/service/setup"
)

type importCmd struct {
	Log       string `arg:"" help:"Log of decisions, - for the standard input: CSV, TSV, Parquet, JSON Lines, dsjson, JSON or text of Vowpal Wabbit, dsjson of Azure Personalizer, or CSV of Open Bandit Pipeline; text may be compressed with gzip or zstd."`
	Placement string `help:"The placement that learns from it." placeholder:"NAME" required:""`
	To        string `help:"The data directory of the service, which must not be running." placeholder:"DIR" required:""`
	Create    string `help:"Create the placement, if it does not exist, from its configuration as PUT takes it. The log keeps all candidates, unless the configuration sets log_items." placeholder:"FILE"`
	Mapping   string `help:"TOML file that maps the log's columns to decisions." placeholder:"FILE"`
	Format    string `help:"Format of the log, in place of the mapping's or the one that its name says." placeholder:"FORMAT" enum:",csv,tsv,parquet,jsonl,dsjson,personalizer,obp,vw,vwjson,sessions" default:""`
	DryRun    bool   `help:"Read the log and report, and write nothing."`
}

func (importCmd) Help() string {
	return `The decisions become events of the placement's log, marked as imported, and the learner learns from them as from its own. The whole log is read and checked first: if a line is wrong, the error names it and nothing is written. Decisions that the log already contains are left out, so you can repeat an interrupted import. If an id is in the log with another page, time or outcome, the import stops before it writes. A decision without an id gets one made of its contents; if it has no time either, it is only recognised in the same file.

A table is CSV, TSV, Parquet or JSON Lines. It contains a row for each item of a decision, with the columns decision_id, item and chosen, and optionally time, shown (the position), units (how many were taken), units_value (what they earned), revenue and propensity; every feature is the column of its name. The items of a decision are stored in the order of their ids, so that ties between items don't depend on the order of the rows. Only tables of vitrine export, which have the column sampling_law, keep their order. If your columns have other names, write a mapping, or let vitrine assess find it:

    format = "csv"                 csv, tsv, parquet, jsonl (a table, or lines of vitrine export), dsjson, personalizer, obp,
                                   vw, vwjson or sessions; found from the name of the file
    delimiter = ";"
    header = ["id", "sku", …]      names of the columns, if the first line of CSV has none
    items = "item_context.csv"     of obp: the file of the items
    several = "first"              if several items of a decision were taken, only the "first" on the page counts, "each" is
                                   a decision of its own, or the decision is left out ("skip"); without it all count
    rewards = "choice"             in dsjson: each positive reward is an item taken. The default, "share", takes a reward
                                   in [0, 1] as the probability of a choice, as the service does
    [columns]                      "-" ignores the column of the usual name, such as revenue
    decision = "session"           identifies a decision (join several columns into one in the file); if its rows are apart, the table
                                   is sorted first, by time if known
    time = "ts"                    RFC 3339, or seconds, milliseconds, microseconds or nanoseconds since 1970
    item = "sku"
    shown = "position"             from 1 on, or true; without it all rows are shown
    chosen = "clicked"             1 or true in the rows that were taken
    units = "quantity"             how many units were taken, in the rows that were taken; 1 if empty
    value = "paid"                 what these units earned together; units × revenue if empty
    revenue = "margin"             of the item, taken or not; 1 without the column
    propensity = "p"               of the page; required in each decision if it is named here
    [events]                       in place of chosen, if impressions and clicks are rows of their own
    column = "event_name"
    shown = "view_item_list"
    chosen = "select_item"
    [features]
    price = "price_eur"            the column of a feature; in dsjson a path such as "item.price"
    action = "*"                   in dsjson: the whole action or context, of a feature of kind object
    [sampling_law]                 how pages were drawn, for vitrine evaluate
    draw = "pages"                 uniformly from pages of exactly size items; "sets": of at most size; "swaps": the
                                   policy's own page with one item replaced
    size = 3
    share = 0.1                    of decisions whose page was drawn; the others show the policy's own page
    page = "greedy"                column of the position on the policy's own page, needed if share is below 1; in jsonl, a
                                   list of items

If each item was drawn with a probability of its own, the law is draw = "items", with the columns propensity = "item_propensity" and, for pages of several slots that were drawn separately, slot = "slot". All candidates need rows. dsjson has these probabilities.

personalizer reads the logs that Azure Personalizer exported, and the placement learns them like Rank calls with the same features: the members of contextFeatures and of an action's features become the placement's features of their names, and all others the object features context and action; an event is the decision PLACEMENT:EVENT. Other dsjson is mapped by paths.

sessions holds a decision in each line, in JSON or CSV: item and revenue are lists, shown is a list of items, and chosen is an item, a list of items, or a list of 0 and 1. A path such as items.price names a member of the objects in a list; list = "|" separates the values of a list in CSV. vw and vwjson have labels action:cost:probability: actions = 4 is the number of actions that have no lines, and loss = true says that costs are 0 for an item taken and 1 for none, in place of −1 and 0.

A time before the log's last entry becomes the last entry's time, and so does a missing time if other decisions have one. An outcome gets the time of its decision. The import takes about 0.5 kB of memory for each decision.

` + examples(
		"vitrine import clicks.csv --placement home --create home.json --to vitrine-data",
		"vitrine import clicks.parquet --placement home --to vitrine-data --mapping clicks.toml --dry-run",
		"vitrine import vw.dsjson --placement home --to vitrine-data",
		"zcat personalizer/*.gz | vitrine import - --format personalizer --placement personalizer --to "+
			"vitrine-data --create personalizer.json",
	)
}

func (c importCmd) Run(ctx context.Context, t terminal) (err error) {
	m := &importer.Mapping{}
	if c.Mapping != "" {
		if m, err = importer.ReadMapping(c.Mapping); err != nil {
			return err
		}
	}
	if c.Format != "" {
		m.Format = c.Format
	}
	var create []byte
	if c.Create != "" {
		if create, err = c.configuration(); err != nil {
			return fmt.Errorf("%s: %w", c.Create, err)
		}
	}
	dir := filepath.Join(c.To, host.LogDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if c.Create == "" {
			return hint.New(fmt.Errorf("%s has no log", c.To), "name the placement's configuration with --create, "+
				"and the directory is made")
		}
		return c.fresh(ctx, t, m, create)
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	_, err = c.into(ctx, t, store, m, create)
	return errors.Join(err, store.Close())
}

// configuration returns the configuration of a placement to create. By default it records all candidates.
func (c importCmd) configuration() ([]byte, error) {
	text, err := os.ReadFile(c.Create)
	if err != nil {
		return nil, err
	}
	if _, err := setup.Parse(text); err != nil {
		return nil, err
	}
	var own map[string]jsontext.Value
	if err := json.Unmarshal(text, &own); err != nil {
		return nil, err
	}
	if _, says := own["log_items"]; !says {
		own["log_items"] = jsontext.Value(`"all"`)
	}
	return json.Marshal(own)
}

// fresh imports into a new data directory, which is there only if the import succeeds, or is interrupted while it
// writes.
func (c importCmd) fresh(ctx context.Context, t terminal, m *importer.Mapping, create []byte) error {
	_, before := os.Stat(c.To)
	if err := os.MkdirAll(c.To, 0o700); err != nil {
		return err
	}
	store, err := c.open(ctx)
	if err != nil {
		return err // another process may have made the log meanwhile
	}
	begun, err := c.into(ctx, t, store, m, create)
	err = errors.Join(err, store.Close())
	if err != nil && !(begun && errors.Is(err, context.Canceled)) || c.DryRun {
		err = errors.Join(err, os.RemoveAll(filepath.Join(c.To, host.LogDir)))
		if before != nil {
			err = errors.Join(err, os.RemoveAll(c.To))
		}
	}
	return err
}

// open opens the log for writing.
func (c importCmd) open(ctx context.Context) (*filelog.Store, error) {
	return filelog.Open(ctx, filelog.Options{Dir: filepath.Join(c.To, host.LogDir)})
}

// into imports into a log, and says whether it began to write decisions.
func (c importCmd) into(ctx context.Context, t terminal, store *filelog.Store, m *importer.Mapping,
	create []byte) (begun bool, err error) {
	known, last, err := engine.Recorded(ctx, store, c.Placement)
	if err != nil {
		return false, err
	}
	e, err := host.OpenEngine(ctx, c.To, engine.Options{Store: store, Budget: budget.New(math.MaxInt64 / 2)},
		slog.New(slog.DiscardHandler))
	if err != nil {
		return false, err
	}
	defer e.Close()
	config, err := e.Config(c.Placement)
	isNew := errors.Is(err, engine.ErrNotFound)
	switch {
	case isNew && create != nil:
		if config, err = setup.Parse(create); err != nil {
			return false, err
		}
	case isNew:
		return false, hint.New(fmt.Errorf("%s has no placement %q: there are %v", c.To, c.Placement, e.Placements()),
			"name its configuration with --create")
	case err != nil:
		return false, err
	}
	now := time.Now().UnixNano()
	i := &importing{importCmd: c, several: m.Several, engine: e, config: config, known: known, last: last, now: now}
	log, err := importer.Open(ctx, c.Log, m)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	bar := &stages{w: t.err, name: log.Name}
	defer bar.close()
	log.Progress = func(done, total int64) { bar.report("checking", int(done), int(total)) }
	// The first pass checks everything, and the second writes.
	report, err := log.Read(ctx, c.Placement, config, i.check)
	if err != nil {
		return false, err
	}
	if !c.DryRun {
		if isNew {
			if _, err := e.Put(ctx, c.Placement, create, max(last, min(i.first, now))); err != nil {
				return false, err
			}
		}
		log.Progress = nil
		defer i.show(bar)()
		_, err := log.Read(ctx, c.Placement, config, func(d *page.Imported) error { return i.write(ctx, d) })
		if err == nil {
			err = i.flush(ctx)
		}
		if err == nil {
			err = e.Wait(ctx)
		}
		if errors.Is(err, context.Canceled) {
			err = hint.New(err, "give the same command again: decisions that are there are left out")
		}
		if err != nil {
			return true, err
		}
	}
	return true, i.print(t, log.Name, report)
}

// importing is an import in progress.
type importing struct {
	importCmd
	several string // of the mapping
	engine  *engine.Engine
	config  *setup.Config
	known   map[string]engine.Known
	last    int64 // the time of the log's last entry
	first   int64 // the earliest time of a decision
	timed   bool  // whether there is any
	now     int64

	waiting []*page.Imported

	decisions, chosen, before, withLaw, withPropensity, moved int
	untimed                                                   int
	items, unshown                                            int
}

// check is the first pass.
func (i *importing) check(d *page.Imported) error {
	if d.Time > i.now+int64(time.Minute) {
		return fmt.Errorf("the time of decision %q, %s, is in the future", d.Request.Decision,
			time.Unix(0, d.Time).UTC().Format(time.RFC3339))
	}
	if k, ok := i.known[d.Request.Decision]; ok {
		i.before++
		if err := k.Is(i.Placement, i.config, d); err != nil {
			return fmt.Errorf("decision %q: %w", d.Request.Decision, err)
		}
		return nil
	}
	if err := engine.CheckImport(i.Placement, i.config, d); err != nil {
		return fmt.Errorf("decision %q: %w", d.Request.Decision, err)
	}
	if d.Time > 0 && (!i.timed || d.Time < i.first) {
		i.first, i.timed = d.Time, true
	}
	i.decisions++
	i.items += len(d.Request.Items)
	i.unshown += len(d.Request.Items) - len(d.Shown)
	if len(d.Choices) > 0 {
		i.chosen++
	}
	if d.Draw != nil {
		i.withLaw++
	}
	if d.Propensity > 0 || d.Draw != nil {
		i.withPropensity++
	}
	return nil
}

// write is the second pass.
func (i *importing) write(ctx context.Context, d *page.Imported) error {
	if _, ok := i.known[d.Request.Decision]; ok {
		return nil
	}
	if d.Time == 0 && i.timed { // the present would move all later decisions
		d.Time = max(i.last, i.first)
		i.untimed++
	} else if d.Time == 0 {
		d.Time = i.now
	}
	if d.Time < i.last {
		d.Time = i.last
		i.moved++
	}
	i.last = d.Time
	if i.waiting = append(i.waiting, d); len(i.waiting) < together {
		return nil
	}
	return i.flush(ctx)
}

// together is how many decisions are handed to the engine at once.
const together = 256

// flush writes the decisions that wait.
func (i *importing) flush(ctx context.Context) error {
	err := i.engine.Import(ctx, i.Placement, i.waiting...)
	i.waiting = i.waiting[:0]
	return err
}

// show shows how many decisions the learner has learned, until stop is called.
func (i *importing) show(bar *stages) (stop func()) {
	learned := func() int { s, _ := i.engine.Stats(i.Placement); return int(s.Learned) }
	before := learned()
	report := func() { bar.report("learning", min(learned()-before, i.decisions), i.decisions) }
	ctx, cancel := context.WithCancel(context.Background())
	var showing sync.WaitGroup
	showing.Go(func() {
		for range wait.Every(ctx, barEvery) {
			report()
		}
	})
	return func() { cancel(); showing.Wait(); report() }
}

// print prints the report about the log of a name.
func (i *importing) print(t terminal, name string, r *importer.Report) error {
	verb := "imported"
	if i.DryRun {
		verb = "would be imported"
	}
	fmt.Fprintf(t.out, "%s: %d decisions, %d %s to placement %q of %s\n", name, r.Decisions, i.decisions, verb,
		i.Placement, i.To)
	if i.decisions > 0 {
		fmt.Fprintf(t.out, "%.1f items a decision, %d decisions with an item taken, %d with a propensity, %d with "+
			"how the page was drawn\n",
			float64(i.items)/float64(i.decisions), i.chosen, i.withPropensity, i.withLaw)
	}
	if i.config.LogItems != "all" && i.unshown > 0 {
		fmt.Fprintf(t.out, "%d candidates that were not shown are left out, which vitrine evaluate needs: the "+
			"placement has \"log_items\": \"shown\"\n", i.unshown)
	}
	if r.Sorted {
		fmt.Fprintln(t.out, "the rows of some decisions are apart: the table was sorted"+map[bool]string{true: " by time"}[i.timed])
	}
	if n := r.Several - r.Drawn; n > 0 {
		fmt.Fprintf(t.out, "%d decisions have several items taken: %s\n", n,
			map[string]string{"first": "the first on the page counts", "each": "each is a decision of its own; vitrine evaluate counts them as one page",
				"": "all of them count, as the choices of independent customers"}[i.several])
	}
	if r.Drawn > 0 {
		fmt.Fprintf(t.out, "%d decisions have several items with a reward: the choice was drawn from their rewards\n",
			r.Drawn)
	}
	if i.before > 0 {
		fmt.Fprintf(t.out, "%d decisions are in the log already\n", i.before)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		fmt.Fprintf(t.out, "decisions left out because they %s: %d\n", reason, r.Skipped[reason])
	}
	if i.untimed > 0 {
		fmt.Fprintf(t.out, "%d decisions have no time: they have the time of the entry before them\n", i.untimed)
	}
	if i.moved > 0 {
		fmt.Fprintf(t.out, "%d decisions have the time of the entry before them, which is later than theirs\n", i.moved)
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nfeature\tcolumn\tvalues\tmissing\tclipped")
	for _, f := range r.Features {
		column := f.Column
		if f.Found == 0 {
			column = "(none)"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\n", f.Feature, column, f.Found, f.Missing, f.Clipped)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Unused) > 0 {
		fmt.Fprintf(t.out, "\nnot used: %s\n", strings.Join(r.Unused, ", "))
	}
	return nil
}
