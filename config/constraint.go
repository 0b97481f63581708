package config

import (
	"fmt"

	"vitrine"
	"vitrine/assortment"
)

// newConstraint makes the feasible family of a file with so many items, of which
// at most size are shown.
type newConstraint func(s section, items, size int) (made[vitrine.Constraint], error)

// loadConstraint makes the family of the table [constraint]; without one it is
// all sets of at most size items.
func loadConstraint(root section, items, size int) (made[vitrine.Constraint], error) {
	s, ok, err := root.table("constraint")
	if err != nil {
		return made[vitrine.Constraint]{}, err
	}
	if !ok {
		s = section{doc: root.doc, values: map[string]any{"kind": constraints[0].Name}}
	}
	var table []named[vitrine.Constraint]
	for _, c := range constraints {
		table = append(table, named[vitrine.Constraint]{c.Entry, maker[vitrine.Constraint]{c.options, func(s section, _ int) (made[vitrine.Constraint], error) {
			return c.build(s, items, size)
		}}})
	}
	return pick(s, table, 0)
}

func atMost(s section, _, size int) (made[vitrine.Constraint], error) {
	return made[vitrine.Constraint]{value: assortment.AtMost(size)}, s.bind(&struct{}{}, "kind")
}

// countOptions are what all families of bounded numbers have.
type countOptions struct {
	Min     int   `toml:"min" range:"[0, inf)" doc:"the fewest items; the most is the file's size"`
	Include []int `toml:"include" range:"[0, inf)" doc:"items, numbered from 0, that every assortment has"`
	Exclude []int `toml:"exclude" range:"[0, inf)" doc:"items that no assortment has"`
}

func (o countOptions) rules(items, size int) assortment.Rules {
	return assortment.Rules{Items: items, Min: o.Min, Max: size, Include: o.Include, Exclude: o.Exclude}
}

func between(s section, items, size int) (made[vitrine.Constraint], error) {
	var o countOptions
	if err := s.bind(&o, "kind"); err != nil {
		return made[vitrine.Constraint]{}, err
	}
	return family(s, o, func() (vitrine.Constraint, error) { return assortment.NewLaminar(o.rules(items, size)) })
}

type groupOptions struct {
	Name    string `toml:"name"`
	Items   []int  `toml:"items"`
	AtLeast int    `toml:"at_least"`
	AtMost  int    `toml:"at_most"`
}

func groups(s section, items, size int) (made[vitrine.Constraint], error) {
	var o countOptions
	if err := s.bind(&o, "kind", "groups"); err != nil {
		return made[vitrine.Constraint]{}, err
	}
	if s.values["groups"] == nil {
		return made[vitrine.Constraint]{}, s.errorf("groups", "groups is missing: say "+groupsExample)
	}
	rules := o.rules(items, size)
	settings, err := s.groups(&rules)
	if err != nil {
		return made[vitrine.Constraint]{}, err
	}
	return family(s, merge(merge(nil, o), settings), func() (vitrine.Constraint, error) { return assortment.NewLaminar(rules) })
}

const groupsExample = "groups = [{ items = [0, 1, 2], at_most = 1 }]"

// groupList is what run.json says of groups.
type groupList struct {
	Groups []groupOptions `toml:"groups"`
}

// groups reads the groups of a table into rules.
func (s section) groups(rules *assortment.Rules) (settings groupList, err error) {
	list, ok := s.values["groups"].([]any)
	if !ok || len(list) == 0 {
		return settings, s.errorf("groups", "groups = %s: say "+groupsExample, literal(s.values["groups"]))
	}
	for i, v := range list {
		values, ok := v.(map[string]any)
		if !ok {
			return settings, s.errorf("groups", "groups[%d] = %s: must be a table, such as { items = [0, 1, 2], at_most = 1 }", i, literal(v))
		}
		g := groupOptions{Name: fmt.Sprintf("groups[%d]", i), AtMost: rules.Max}
		in := section{doc: s.doc, path: join(s.path, "groups"), what: fmt.Sprintf("%s: groups[%d]", s.what, i), values: values}
		if err := in.bind(&g); err != nil {
			return settings, err
		}
		settings.Groups = append(settings.Groups, g)
		rules.Groups = append(rules.Groups, assortment.Group{Name: g.Name, Items: g.Items, Min: g.AtLeast, Max: g.AtMost})
	}
	return settings, nil
}

type knapsackOptions struct {
	countOptions
	Weights  []int `toml:"weights" range:"[0, inf)" doc:"the weight of each item, a whole number"`
	Capacity int   `toml:"capacity" range:"[0, inf)" doc:"the largest sum of weights of an assortment"`
}

func knapsack(s section, items, size int) (made[vitrine.Constraint], error) {
	var o knapsackOptions
	if err := s.bind(&o, "kind", "groups"); err != nil {
		return made[vitrine.Constraint]{}, err
	}
	rules := o.rules(items, size)
	all := merge(nil, o)
	if s.values["groups"] != nil {
		settings, err := s.groups(&rules)
		if err != nil {
			return made[vitrine.Constraint]{}, err
		}
		all = merge(all, settings)
	}
	return family(s, all, func() (vitrine.Constraint, error) {
		counts, err := assortment.NewLaminar(rules)
		if err != nil {
			return nil, err
		}
		return assortment.NewKnapsack(counts, o.Weights, o.Capacity)
	})
}

// family makes a family, and places what is wrong with its rules at the table.
func family(s section, settings any, create func() (vitrine.Constraint, error)) (made[vitrine.Constraint], error) {
	c, err := create()
	if err != nil {
		return made[vitrine.Constraint]{}, s.errorf("", "%v", err)
	}
	return made[vitrine.Constraint]{value: c, settings: settings}, nil
}
