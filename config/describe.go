package config

import (
	"slices"

	"vitrine/internal/option"
	"vitrine/internal/policy"
	"vitrine/internal/settings"
)

// Entry is a name that files may use, and a line about it.
type Entry = settings.Entry

// Description describes a name that files may use.
type Description struct {
	Table string // of a file: "policy", "utility", "contexts", "truth", "revenue", "drift", "constraint" or "pool"
	Entry
	Options []option.Option // in the order of their fields, with the defaults of files

	// Only policies have these.
	Choose       string         // when to choose it
	Offer, Round string         // the orders of the costs of an offer and of an observed round, after t rounds, with N items, at most K offered and d_w parameters
	Page         string         // in docs/algorithms, without its extension; "" for none
	Unfit        string         // why it cannot be the policy of a placement; "" if it can
	Serving      map[string]any // the defaults of placements that differ from those of files
	// Source says where to get the data of a pool.
	Source string
}

// Descriptions returns all names that files may use, table by table.
func Descriptions() []Description {
	var all []Description
	for _, p := range policy.All {
		all = append(all, Description{
			Table: "policy", Entry: Entry{Name: p.Name, Doc: p.Doc}, Options: p.Learner.Options,
			Choose: p.Choose, Offer: p.Offer, Round: p.Round, Page: p.Page, Unfit: p.Learner.Unfit, Serving: p.Serving,
		})
	}
	all = slices.Concat(all,
		descriptions("utility", policy.Families), descriptions("contexts", contexts), descriptions("truth", truths),
		descriptions("revenue", revenues), descriptions("drift", drifts))
	for _, c := range constraints {
		all = append(all, Description{Table: "constraint", Entry: c.Entry, Options: option.List(c.options)})
	}
	for _, p := range pools {
		all = append(all, Description{Table: "pool", Entry: p.Entry, Source: p.source})
	}
	return all
}

func descriptions[T any](table string, entries []settings.Named[T]) []Description {
	var all []Description
	for _, n := range entries {
		all = append(all, Description{Table: table, Entry: n.Entry, Options: option.List(n.Options)})
	}
	return all
}
