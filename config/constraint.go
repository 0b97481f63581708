package config

import (
	"fmt"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/settings"
)

// newConstraint makes the feasible family of a file with n items, at most size of which are shown.
type newConstraint func(s settings.Section, items, size int) (settings.Made[vitrine.Constraint], error)

// loadConstraint makes the family of the table [constraint]; without one it is
// all sets of at most size items.
func loadConstraint(root settings.Section, items, size int) (settings.Made[vitrine.Constraint], error) {
	s, ok, err := root.Table("constraint")
	if err != nil {
		return settings.Made[vitrine.Constraint]{}, err
	}
	if !ok {
		s = settings.Section{Doc: root.Doc, Values: map[string]any{"kind": constraints[0].Name}}
	}
	var table []settings.Named[vitrine.Constraint]
	for _, c := range constraints {
		table = append(table, settings.Name(c.Name, c.Doc, settings.Maker[vitrine.Constraint]{Options: c.options, Build: func(s settings.Section, _ int) (settings.Made[vitrine.Constraint], error) {
			return c.build(s, items, size)
		}}))
	}
	return settings.Pick(s, table, 0)
}

func atMost(s settings.Section, _, size int) (settings.Made[vitrine.Constraint], error) {
	return settings.Made[vitrine.Constraint]{Value: assortment.AtMost(size)}, s.Bind(&struct{}{}, "kind")
}

// countOptions are the options of all families that bound numbers of items.
type countOptions struct {
	Min     int   `toml:"min" range:"[0, inf)" doc:"the fewest items; the most is the file's size"`
	Include []int `toml:"include" range:"[0, inf)" doc:"items, numbered from 0, that every assortment has"`
	Exclude []int `toml:"exclude" range:"[0, inf)" doc:"items that no assortment has"`
}

func (o countOptions) rules(items, size int) assortment.Rules {
	return assortment.Rules{Items: items, Min: o.Min, Max: size, Include: o.Include, Exclude: o.Exclude}
}

func between(s settings.Section, items, size int) (settings.Made[vitrine.Constraint], error) {
	var o countOptions
	if err := s.Bind(&o, "kind"); err != nil {
		return settings.Made[vitrine.Constraint]{}, err
	}
	return family(s, o, func() (vitrine.Constraint, error) { return assortment.NewLaminar(o.rules(items, size)) })
}

type groupOptions struct {
	Name    string `toml:"name"`
	Items   []int  `toml:"items"`
	AtLeast int    `toml:"at_least"`
	AtMost  int    `toml:"at_most"`
}

func groups(s settings.Section, items, size int) (settings.Made[vitrine.Constraint], error) {
	var o countOptions
	if err := s.Bind(&o, "kind", "groups"); err != nil {
		return settings.Made[vitrine.Constraint]{}, err
	}
	if s.Values["groups"] == nil {
		return settings.Made[vitrine.Constraint]{}, s.Errorf("groups", "groups is missing: say "+groupsExample)
	}
	rules := o.rules(items, size)
	list, err := readGroups(s, &rules)
	if err != nil {
		return settings.Made[vitrine.Constraint]{}, err
	}
	return family(s, settings.Merge(settings.Merge(nil, o), list), func() (vitrine.Constraint, error) { return assortment.Obeying(rules, nil) })
}

const groupsExample = "groups = [{ items = [0, 1, 2], at_most = 1 }]"

// groupList is the groups in run.json.
type groupList struct {
	Groups []groupOptions `toml:"groups"`
}

// readGroups reads the groups of a table into rules.
func readGroups(s settings.Section, rules *assortment.Rules) (all groupList, err error) {
	list, ok := s.Values["groups"].([]any)
	if !ok || len(list) == 0 {
		return all, s.Errorf("groups", "groups = %s: say "+groupsExample, settings.Literal(s.Values["groups"]))
	}
	for i, v := range list {
		values, ok := v.(map[string]any)
		if !ok {
			return all, s.Errorf("groups", "groups[%d] = %s: must be a table, such as { items = [0, 1, 2], at_most = 1 }", i, settings.Literal(v))
		}
		g := groupOptions{Name: fmt.Sprintf("groups[%d]", i), AtMost: rules.Max}
		in := settings.Section{Doc: s.Doc, Path: settings.Join(s.Path, "groups"), What: fmt.Sprintf("%s: groups[%d]", s.What, i), Values: values}
		if err := in.Bind(&g); err != nil {
			return all, err
		}
		all.Groups = append(all.Groups, g)
		rules.Groups = append(rules.Groups, assortment.Group{Name: g.Name, Items: g.Items, Min: g.AtLeast, Max: g.AtMost})
	}
	return all, nil
}

type knapsackOptions struct {
	countOptions
	Weights  []int `toml:"weights" range:"[0, inf)" doc:"the weight of each item, a whole number"`
	Capacity int   `toml:"capacity" range:"[0, inf)" doc:"the largest sum of weights of an assortment"`
}

func knapsack(s settings.Section, items, size int) (settings.Made[vitrine.Constraint], error) {
	var o knapsackOptions
	if err := s.Bind(&o, "kind", "groups"); err != nil {
		return settings.Made[vitrine.Constraint]{}, err
	}
	rules := o.rules(items, size)
	all := settings.Merge(nil, o)
	if s.Values["groups"] != nil {
		groups, err := readGroups(s, &rules)
		if err != nil {
			return settings.Made[vitrine.Constraint]{}, err
		}
		all = settings.Merge(all, groups)
	}
	return family(s, all, func() (vitrine.Constraint, error) {
		counts, err := assortment.NewLaminar(rules)
		if err != nil {
			return nil, err
		}
		return assortment.NewKnapsack(counts, o.Weights, o.Capacity)
	})
}

// family makes a family, and places errors of its rules at the table.
func family(s settings.Section, known any, create func() (vitrine.Constraint, error)) (settings.Made[vitrine.Constraint], error) {
	c, err := create()
	if err != nil {
		return settings.Made[vitrine.Constraint]{}, s.Errorf("", "%v", err)
	}
	return settings.Made[vitrine.Constraint]{Value: c, Settings: known}, nil
}
