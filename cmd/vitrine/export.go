package main

import (
	"context"
	"errors"

	"vitrine/service/inspect"
)

type exportCmd struct {
	logArg
	Placement string  `help:"Export the decisions of this placement alone." placeholder:"NAME"`
	From      *uint64 `help:"Export the decisions from this entry of the log on." placeholder:"ENTRY"`
}

// Help is the tail of the command's help.
func (exportCmd) Help() string {
	return `One line of JSON a decision, in the order of their outcomes, which is that in which they were learned; those without an outcome come last. Decisions wait for their outcome in memory, which has as many as the placements' own memory.

    {"placement":"home","decision_id":"abc","entry":7,"time":"2026-01-02T15:04:05.5Z","candidates":100,"user":{…},
     "items":[{"id":"sku1","features":{"price":1.2,"brand":"acme"},"revenue":2.5},…],
     "shown":["sku1",…],"propensity":null,"policy_version":3,"by":"policy",
     "status":"chosen","choice":"sku1","outcome_entry":9,"outcome_time":"2026-01-02T15:05:00Z"}

items are those that the log has: the ones shown, or of a placement with "record": "all" all candidates. Features are those of the request as far as the log has them: numbers after scaling and back, which may change the last digit; hashed categories and texts are lists of columns; crosses, which follow from others, are left out. Where the configuration is neither in the log nor in a snapshot an item has the columns of all features, "row". Decisions whose entry was removed are left out, though their outcome is in the log. by is policy, chance or baseline: how the set was found. status is chosen, expired, evicted (the memory was full before its outcome came: nothing was learned from it), open, deferred (not shown yet, as far as is known) or withdrawn (deferred to the end: nothing was learned from it); choice is null for the outside option and where the wait for an outcome ended, and left out while the decision is open. An unknown propensity is null.

` + aboutLog + "\n\n" + examples("vitrine export vitrine-data > decisions.jsonl", "vitrine export vitrine-data --placement home --from 100000 > new.jsonl")
}

// Run exports the decisions.
func (c exportCmd) Run(ctx context.Context, t terminal) (err error) {
	log, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	return log.Export(ctx, t.out, inspect.Decisions{Placement: c.Placement, From: c.From})
}
