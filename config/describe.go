package config

import (
	"slices"

	"vitrine/bandit/policy"
	"vitrine/internal/settings"
)

// Description describes a name that files may use. All names have a doc and options; only policies have more.
type Description struct {
	// Table is the table in a file: "policy", "utility", "contexts", "truth", "revenue", "baskets", "drift",
	// "constraint" or "pool".
	Table  string
	Source string // where to get a pool's data
	policy.Policy
}

// Descriptions returns the names that files may use in the given tables, or in all tables by default.
func Descriptions(tables ...string) []Description {
	var all []Description
	for _, p := range policy.All {
		all = append(all, Description{Table: "policy", Policy: p})
	}
	all = slices.Concat(all,
		descriptions("utility", policy.Families), descriptions("contexts", contexts), descriptions("truth", truths),
		descriptions("revenue", revenues), descriptions("baskets", baskets), descriptions("drift", drifts),
		descriptions("constraint", constraints))
	for _, p := range pools {
		all = append(all, Description{Table: "pool", Policy: policy.Policy{Name: p.name, Doc: p.doc}, Source: p.source})
	}
	return slices.DeleteFunc(all, func(d Description) bool {
		return len(tables) > 0 && !slices.Contains(tables, d.Table)
	})
}

func descriptions[T any](table string, kinds []settings.Kind[T]) []Description {
	var all []Description
	for _, k := range kinds {
		all = append(all, Description{Table: table,
			Policy: policy.Policy{Name: k.Name, Doc: k.Doc, Learner: policy.Learner{Options: k.Options}}})
	}
	return all
}

func names(table string) (list []string) {
	for _, d := range Descriptions(table) {
		list = append(list, d.Name)
	}
	return list
}
