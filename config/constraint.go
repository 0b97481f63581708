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

// ruleOptions are the service's rules, with items by number. limits is an array of tables.
type ruleOptions struct {
	MinSize  int   `toml:"min_size" range:"[0, inf)" doc:"the fewest items; the most is the file's size"`
	Include  []int `toml:"include" range:"[0, inf)" doc:"items, numbered from 0, that every assortment has"`
	Exclude  []int `toml:"exclude" range:"[0, inf)" doc:"items that no assortment has"`
	Spaces   []int `toml:"spaces" range:"[0, inf)" doc:"the space of each item, a whole number, if a capacity bounds their sum"`
	Capacity int   `toml:"capacity" range:"[0, inf)" doc:"the largest sum of spaces of an assortment"`
}

// limitList is the limits in run.json.
type limitList struct {
	Limits []assortment.Group `toml:"limits,omitempty"`
}

// ruled is the kind of family that obeys rules.
var ruled = settings.Kind[vitrine.Constraint]{
	Name: "rules", Doc: "rules in the words of the service: limits = [{ items = [0, 1], max = 1 }, { items = [2, " +
		"3], min = 1 }] bound groups, which may cross in two ways if there is no capacity",
	Options: option.List(ruleOptions{}), Make: func(s settings.Section, d settings.Dims) (vitrine.Constraint,
		map[string]any, error) {
		var o ruleOptions
		if err := s.Bind(&o, "kind", "limits"); err != nil {
			return nil, nil, err
		}
		if _, given := s.Values["capacity"]; given != (o.Spaces != nil) {
			return nil, nil, s.Errorf("capacity", "capacity and spaces go together")
		}
		rules := assortment.Rules{Items: d.Items, Min: o.MinSize, Max: d.Size, Include: o.Include, Exclude: o.Exclude}
		bounds, err := readLimits(s, &rules)
		if err != nil {
			return nil, nil, err
		}
		c, err := o.family(rules)
		if err != nil {
			return nil, nil, s.Errorf("", "%v", err)
		}
		return c, settings.Merge(settings.Keys(o), bounds), nil
	},
}

func (o ruleOptions) family(r assortment.Rules) (vitrine.Constraint, error) {
	if o.Spaces != nil {
		r.Weights = assortment.WeightsOf(o.Spaces, o.Capacity)
	}
	return assortment.NewQuota(r)
}

// readLimits adds a table's limits to rules.
func readLimits(s settings.Section, rules *assortment.Rules) (all limitList, err error) {
	tables, err := s.Tables("limits")
	if err != nil {
		return all, err
	}
	for i, t := range tables {
		g := assortment.Group{Name: fmt.Sprintf("limits[%d]", i), Max: rules.Max}
		if err := t.Bind(&g); err != nil {
			return all, err
		}
		if t.Values["min"] == nil && t.Values["max"] == nil {
			return all, t.Errorf("", "needs a min, a max or both")
		}
		rules.Groups = append(rules.Groups, g)
	}
	return limitList{rules.Groups}, nil
}
