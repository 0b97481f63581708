package config

import (
	"slices"

	"vitrine/internal/option"
)

// Description is what is known of a name that files may use.
type Description struct {
	Table string // of a file: "policy", "utility", "contexts", "truth", "revenue", "drift", "constraint" or "pool"
	Entry
	Options []option.Option // in the order of their fields, with the defaults of files

	// Only policies have these.
	Choose       string         // when to choose it
	Offer, Round string         // the orders of the costs of an offer and of an observed round, [CostLegend]
	Page         string         // in docs/algorithms, without its ending; "" for none
	Unfit        string         // why it cannot serve; "" if it can
	Serving      map[string]any // the defaults of placements that differ from those of files
	// Source says where the data of a pool is to be had.
	Source string
}

// Descriptions returns all names that files may use, table by table.
func Descriptions() []Description {
	var all []Description
	for _, p := range policies {
		all = append(all, Description{
			Table: "policy", Entry: p.Entry, Options: p.options,
			Choose: p.choose, Offer: p.offer, Round: p.round, Page: p.page, Unfit: p.unfit, Serving: placementDefaults[p.Name],
		})
	}
	all = slices.Concat(all,
		descriptions("utility", utilities), descriptions("contexts", contexts), descriptions("truth", truths),
		descriptions("revenue", revenues), descriptions("drift", drifts))
	for _, c := range constraints {
		all = append(all, Description{Table: "constraint", Entry: c.Entry, Options: option.List(c.options)})
	}
	for _, p := range pools {
		all = append(all, Description{Table: "pool", Entry: p.Entry, Source: p.source})
	}
	return all
}

func descriptions[T any](table string, entries []named[T]) []Description {
	var all []Description
	for _, n := range entries {
		all = append(all, Description{Table: table, Entry: n.Entry, Options: option.List(n.options)})
	}
	return all
}

// Suggest ends the message about a word that is not one of the legal ones: with the nearest, or
// with all of them.
func Suggest(word string, legal []string) string { return hint(word, legal) }
