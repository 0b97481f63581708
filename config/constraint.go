package config

import (
	"fmt"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/option"
	"vitrine/internal/settings"
)

func atMost(_ struct{}, d settings.Dims) (vitrine.Constraint, error) {
	return assortment.AtMost(d.Size), nil
}

// countOptions are the options of all families that bound numbers of items.
type countOptions struct {
	Min     int   `toml:"min" range:"[0, inf)" doc:"the fewest items; the most is the file's size"`
	Include []int `toml:"include" range:"[0, inf)" doc:"items, numbered from 0, that every assortment has"`
	Exclude []int `toml:"exclude" range:"[0, inf)" doc:"items that no assortment has"`
}

func (o countOptions) rules(d settings.Dims) assortment.Rules {
	return assortment.Rules{Items: d.Items, Min: o.Min, Max: d.Size, Include: o.Include, Exclude: o.Exclude}
}

func (countOptions) family(r assortment.Rules) (vitrine.Constraint, error) {
	return assortment.Obeying(r, nil)
}

type knapsackOptions struct {
	countOptions
	Weights  []int `toml:"weights" range:"[0, inf)" doc:"the weight of each item, a whole number"`
	Capacity int   `toml:"capacity" range:"[0, inf)" doc:"the largest sum of weights of an assortment"`
}

func (o knapsackOptions) family(r assortment.Rules) (vitrine.Constraint, error) {
	counts, err := assortment.NewLaminar(r)
	if err != nil {
		return nil, err
	}
	return assortment.NewKnapsack(counts, o.Weights, o.Capacity)
}

// ruled returns a kind of family that bounds numbers of items, and of those in groups unless it is "between".
func ruled[O interface {
	rules(settings.Dims) assortment.Rules
	family(assortment.Rules) (vitrine.Constraint, error)
}](name, doc string, defaults O) settings.Kind[vitrine.Constraint] {
	return settings.Kind[vitrine.Constraint]{Name: name, Doc: doc, Options: option.List(defaults), Make: func(s settings.Section, d settings.Dims) (vitrine.Constraint, map[string]any, error) {
		o, keys := defaults, []string{"kind"}
		if name != "between" {
			keys = append(keys, "groups")
		}
		if err := s.Bind(&o, keys...); err != nil {
			return nil, nil, err
		}
		rules, known := o.rules(d), settings.Keys(o)
		if name == "groups" || s.Values["groups"] != nil {
			list, err := readGroups(s, &rules)
			if err != nil {
				return nil, nil, err
			}
			known = settings.Merge(known, list)
		}
		c, err := o.family(rules)
		if err != nil {
			return nil, nil, s.Errorf("", "%v", err)
		}
		return c, known, nil
	}}
}

type groupOptions struct {
	Name    string `toml:"name"`
	Items   []int  `toml:"items"`
	AtLeast int    `toml:"at_least"`
	AtMost  int    `toml:"at_most"`
}

// groupList is the groups in run.json.
type groupList struct {
	Groups []groupOptions `toml:"groups"`
}

// readGroups reads the groups of a table into rules.
func readGroups(s settings.Section, rules *assortment.Rules) (all groupList, err error) {
	tables, err := s.Tables("groups")
	if err != nil {
		return all, err
	}
	if len(tables) == 0 {
		return all, s.Errorf("groups", "groups is missing: say groups = [{ items = [0, 1, 2], at_most = 1 }]")
	}
	for i, t := range tables {
		g := groupOptions{Name: fmt.Sprintf("groups[%d]", i), AtMost: rules.Max}
		if err := t.Bind(&g); err != nil {
			return all, err
		}
		all.Groups = append(all.Groups, g)
		rules.Groups = append(rules.Groups, assortment.Group{Name: g.Name, Items: g.Items, Min: g.AtLeast, Max: g.AtMost})
	}
	return all, nil
}
