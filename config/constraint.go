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

// ruleOptions are the rules of the service, with items by number. at_most and at_least are arrays of tables.
type ruleOptions struct {
	MinSize  int   `toml:"min_size" range:"[0, inf)" doc:"the fewest items; the most is the file's size"`
	Include  []int `toml:"include" range:"[0, inf)" doc:"items, numbered from 0, that every assortment has"`
	Exclude  []int `toml:"exclude" range:"[0, inf)" doc:"items that no assortment has"`
	Spaces   []int `toml:"spaces" range:"[0, inf)" doc:"the space of each item, a whole number, if a capacity bounds their sum"`
	Capacity int   `toml:"capacity" range:"[0, inf)" doc:"the largest sum of spaces of an assortment"`
}

// limit bounds how many of some items are shown.
type limit struct {
	Items []int `toml:"items"`
	Most  int   `toml:"most"`
}

// demand is a number of some items that must be shown.
type demand struct {
	Items []int `toml:"items"`
	Least int   `toml:"least"`
}

// boundList is the bounds in run.json.
type boundList struct {
	AtMost  []limit  `toml:"at_most,omitempty"`
	AtLeast []demand `toml:"at_least,omitempty"`
}

// ruled is the kind of family that obeys rules.
var ruled = settings.Kind[vitrine.Constraint]{
	Name: "rules", Doc: "rules in the words of the service: at_most = [{ items = [0, 1], most = 1 }] and at_least = [{ items = [2, 3], least = 1 }] bound groups, which may cross in two ways if there is no at_least and no capacity",
	Options: option.List(ruleOptions{}), Make: func(s settings.Section, d settings.Dims) (vitrine.Constraint, map[string]any, error) {
		var o ruleOptions
		if err := s.Bind(&o, "kind", "at_most", "at_least"); err != nil {
			return nil, nil, err
		}
		if _, given := s.Values["capacity"]; given != (o.Spaces != nil) {
			return nil, nil, s.Errorf("capacity", "capacity and spaces go together")
		}
		rules := assortment.Rules{Items: d.Items, Min: o.MinSize, Max: d.Size, Include: o.Include, Exclude: o.Exclude}
		bounds, err := readBounds(s, &rules)
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

// readBounds reads the bounds of a table into rules.
func readBounds(s settings.Section, rules *assortment.Rules) (all boundList, err error) {
	most, err := s.Tables("at_most")
	if err != nil {
		return all, err
	}
	for i, t := range most {
		l := limit{Most: rules.Max}
		if err := t.Bind(&l); err != nil {
			return all, err
		}
		all.AtMost = append(all.AtMost, l)
		rules.Groups = append(rules.Groups, assortment.Group{Name: fmt.Sprintf("at_most[%d]", i), Items: l.Items, Max: l.Most})
	}
	least, err := s.Tables("at_least")
	if err != nil {
		return all, err
	}
	for i, t := range least {
		l := demand{}
		if err := t.Bind(&l); err != nil {
			return all, err
		}
		all.AtLeast = append(all.AtLeast, l)
		rules.Groups = append(rules.Groups, assortment.Group{Name: fmt.Sprintf("at_least[%d]", i), Items: l.Items, Min: l.Least, Max: assortment.NoLimit})
	}
	return all, nil
}
