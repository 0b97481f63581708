package main

import (
	"bytes"
	"context"
	"errors"

	"vitrine/internal/replace"
	"vitrine/service/inspect"
)

type exportCmd struct {
	logArg
	Placement string  `help:"Export only the decisions of this placement." placeholder:"NAME"`
	From      *uint64 `help:"Export only the decisions from this entry of the log on." placeholder:"ENTRY"`
	Format    string  `help:"jsonl (the default), parquet, dsjson (Vowpal Wabbit) or obp (Open Bandit Pipeline)." placeholder:"jsonl|parquet|dsjson|obp" enum:"jsonl,parquet,dsjson,obp" default:"jsonl"`
	Items     string  `help:"File for the items (item_context.csv) with --format obp." placeholder:"FILE"`
}

func (exportCmd) Help() string {
	return `The command writes one line of JSON a decision, in the order in which their outcomes were learned; those without an outcome come last. Decisions wait for their outcome in memory, as many as the placements' own memory holds.

    {"placement":"home","decision_id":"abc","entry":7,"time":"2026-01-02T15:04:05.5Z","candidates":100,"shopper":{…},
     "items":[{"id":"sku1","features":{"price":1.2,"brand":"acme"},"revenue":2.5},…],
     "shown":["sku1",…],"propensity":null,"policy_entry":3,"source":"policy",
     "status":"chosen","choice":"sku1","outcome_entry":9,"outcome_time":"2026-01-02T15:05:00Z","earned":2.5}

items are the items in the log: those shown, or all candidates if the placement has "log_items": "all". Features have the values of the request as far as the log has them. Numbers were scaled and are scaled back, which may change the last digit; hashed categories and texts are lists of columns; crosses are left out, because they follow from other features. If the configuration is neither in the log nor in a snapshot, an item has the columns of all features in "row". Decisions whose entry was removed are left out, even if their outcome is in the log. Those of a placement of the same name that was deleted are there: --from leaves them out.

source says how the set was found: policy, chance, baseline, or import for decisions of vitrine import. variant is the one of an experiment that the shopper was shown, or holdout, and is left out otherwise. status is chosen, expired, evicted (the memory was full before the outcome came, and nothing was learned), open, deferred (not activated), withdrawn (never activated, and nothing was learned) or late (the outcome came after the decision had ended: the outcome counts, and was not learned). choice is null for the outside option, and if no outcome came in time; it is left out while the decision is open. Unless one unit of one item was taken at its revenue, choice is the first item on the page, and choices lists all, with their values after corrections such as returns: {"item":"sku1","quantity":2,"value":5.1}. Withdrawn sales are left out. A value is at least 0. earned is the sum of the values, or less if more came back than was paid, which vitrine import does not read. An unknown propensity is null. If the log has it, sampling_law says how the set was drawn, and items have the probability of being shown.

parquet is a table with a row for each item of one placement. dsjson has slates of slots (CCB) with an outcome; the probability of a slot is that of its item being on the page. obp has a row for each item shown, and the items in the file of --items; its propensity_score, too, is the probability of the item being on the page, in any position. vitrine import reads all four, but no columns of hashed categories, texts and objects. Ids and texts are those of callers, unchanged: a spreadsheet takes an id that begins with =, +, - or @ as a formula.

` + aboutLog + "\n\n" + examples("vitrine export vitrine-data > decisions.jsonl", "vitrine export vitrine-data --placement home --from 100000 > new.jsonl", "vitrine export vitrine-data --placement home --format parquet > decisions.parquet")
}

func (c exportCmd) Run(ctx context.Context, t terminal) (err error) {
	if (c.Format == "obp") != (c.Items != "") {
		return usageError{errors.New("--items goes with --format obp, which needs it")}
	}
	log, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	which := inspect.Decisions{Placement: c.Placement, From: c.From}
	switch c.Format {
	case "parquet":
		return log.ExportParquet(ctx, t.out, which)
	case "dsjson":
		return log.ExportVW(ctx, t.out, which)
	case "obp":
		var items bytes.Buffer
		if err := log.ExportOBP(ctx, t.out, &items, which); err != nil {
			return err
		}
		return replace.File(c.Items, items.Bytes())
	}
	return log.Export(ctx, t.out, which)
}
