package feature

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"vitrine/service/api"
)

const (
	categoryBuckets = 16  // default for a category without values
	maxValue        = 200 // bytes of a learned value; longer values, and those that are not UTF-8, are hashed
)

// vocabulary holds the values learned for a category without fixed values: the first ones get columns of their own.
// Learning gives a new schema, in which known values keep their columns.
type vocabulary struct {
	names  int            // how many values may get their own columns
	known  []string       // values with their own columns
	column map[string]int // by value
	shared *shared        // the remaining columns; nil for other kinds
}

// shared counts colliding values. Schemas that learned from each other share the counts.
type shared struct {
	first      []atomic.Uint64 // hash of the first value in each bucket, 0 if empty
	collisions atomic.Uint64
}

func newShared(has bool, buckets int) *shared {
	if !has {
		return nil
	}
	return &shared{first: make([]atomic.Uint64, buckets)}
}

// place returns a value's column, and counts the value if it shares its bucket with an earlier one.
func (c *column) place(value string) int {
	if k, ok := c.column[value]; ok {
		return k
	}
	h := c.hash(value)
	b := h % uint64(c.size-c.names)
	if c.shared != nil {
		first := &c.shared.first[b]
		if h = max(h, 1); first.Load() != h && !first.CompareAndSwap(0, h) && first.Load() != h {
			c.shared.collisions.Add(1)
		}
	}
	return c.names + int(b)
}

func (c *column) makes(o *column) bool {
	n := min(len(c.known), len(o.known))
	return Equal(c.Feature, o.Feature) && slices.Equal(c.known[:n], o.known[:n])
}

// numNames returns how many of a feature's values may get their own columns.
func numNames(f api.Feature) int {
	if f.OwnColumns == nil {
		return 0
	}
	return *f.OwnColumns
}

// Complete sets names, for categories that give neither names nor values, to three quarters of the buckets.
func Complete(features []api.Feature) {
	for i := range features {
		f := &features[i]
		if f.Kind != "category" || f.Values != nil || f.OwnColumns != nil {
			continue
		}
		f.OwnColumns = new(cmp.Or(f.Columns, categoryBuckets) * 3 / 4)
	}
}

// Seen holds values that are new to a schema, for a category without fixed values.
type Seen struct {
	Feature string
	Values  []string
}

// Unseen returns the values in a request that the schema has room to learn.
func (s *Schema) Unseen(user api.Values, items []api.Item) []Seen {
	var all []Seen
	for k := range s.columns {
		c := &s.columns[k]
		if c.names == len(c.known) {
			continue
		}
		seen := Seen{Feature: c.Name}
		note := func(v api.Value) {
			if v.Kind == api.Missing {
				v = c.missing
			}
			if _, ok := c.column[v.Text]; ok || v.Kind != api.IsText || len(v.Text) > maxValue || len(c.known)+
				len(seen.Values) == c.names || slices.Contains(seen.Values, v.Text) || !utf8.ValidString(v.Text) {
				return
			}
			seen.Values = append(seen.Values, v.Text)
		}
		switch {
		case c.From != "shopper":
			for i := range items {
				if c.slot < len(items[i].Features) {
					note(items[i].Features[c.slot])
				}
			}
		case c.slot < len(user):
			note(user[c.slot])
		default:
			note(api.Value{})
		}
		if seen.Values != nil {
			all = append(all, seen)
		}
	}
	return all
}

// LearnsItems reports whether a category of items has room for more values.
func (s *Schema) LearnsItems() bool {
	return slices.ContainsFunc(s.columns, func(c column) bool { return c.From != "shopper" && len(c.known) < c.names })
}

// Fresh returns the values among seen that the schema does not know and has room for.
func (s *Schema) Fresh(seen Seen) Seen {
	fresh := Seen{Feature: seen.Feature}
	i := s.find(seen.Feature)
	if i < 0 {
		return fresh
	}
	c := &s.columns[i]
	for _, v := range seen.Values {
		if _, ok := c.column[v]; !ok && len(c.known)+len(fresh.Values) < c.names {
			fresh.Values = append(fresh.Values, v)
		}
	}
	return fresh
}

// Learn returns a schema that also knows the values, in order. It skips known ones.
func (s *Schema) Learn(values ...Seen) (_ *Schema, err error) {
	for _, seen := range values {
		if s, err = s.learn(seen); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Schema) learn(seen Seen) (*Schema, error) {
	i := s.find(seen.Feature)
	if i < 0 || s.columns[i].shared == nil {
		return nil, fmt.Errorf("feature %q has values: it is not a category that learns them", seen.Feature)
	}
	learned := *s
	learned.columns = slices.Clone(s.columns)
	c := &learned.columns[i]
	c.known, c.column = slices.Clone(c.known), maps.Clone(c.column)
	if c.column == nil {
		c.column = map[string]int{}
	}
	for _, v := range seen.Values {
		if _, ok := c.column[v]; ok {
			continue
		}
		if len(c.known) == c.names || len(v) > maxValue {
			return nil, fmt.Errorf("feature %q has the value %q, and has learned %d of %d values",
				seen.Feature, api.Abbreviate(v, maxValue), len(c.known), c.names)
		}
		c.column[v] = len(c.known)
		c.known = append(c.known, v)
	}
	return &learned, nil
}

// Inherit returns the schema extended by the values that o learned for features that both share.
func (s *Schema) Inherit(o *Schema) *Schema {
	for _, seen := range o.Learned() {
		if i := s.find(seen.Feature); i >= 0 && Equal(s.columns[i].Feature, o.columns[o.find(seen.Feature)].Feature) {
			if learned, err := s.Learn(seen); err == nil {
				s = learned
			}
		}
	}
	return s
}

// Same reports whether two schemas are equal and know the same values.
func (s *Schema) Same(o *Schema) bool {
	return s == o || slices.EqualFunc(s.columns, o.columns, func(a, b column) bool {
		return Equal(a.Feature, b.Feature) && slices.Equal(a.known, b.known)
	})
}

// Since returns the values that the schema learned after o. ok is false if the features differ, or if o knows values
// that this schema does not.
func (s *Schema) Since(o *Schema) (all []Seen, ok bool) {
	if len(s.columns) != len(o.columns) {
		return nil, false
	}
	for i := range s.columns {
		a, b := &s.columns[i], &o.columns[i]
		if !a.makes(b) || len(b.known) > len(a.known) {
			return nil, false
		}
		if more := a.known[len(b.known):]; len(more) > 0 {
			all = append(all, Seen{a.Name, more})
		}
	}
	return all, true
}

// Learned returns the learned values, in order.
func (s *Schema) Learned() []Seen {
	var all []Seen
	for i := range s.columns {
		if c := &s.columns[i]; len(c.known) > 0 {
			all = append(all, Seen{c.Name, c.known})
		}
	}
	return all
}

// NamesBytes bounds the memory for the values that the schema may learn.
func (s *Schema) NamesBytes() int {
	bytes := 0
	for i := range s.columns {
		bytes += s.columns[i].names * (2*maxValue + 100)
	}
	return bytes
}

// Categories describes the categories without fixed values. Collisions count since [New].
func (s *Schema) Categories() []api.Category {
	var all []api.Category
	for i := range s.columns {
		if c := &s.columns[i]; c.shared != nil {
			all = append(all, api.Category{Feature: c.Name, Learned: len(c.known), OwnColumns: c.names,
				SharedColumns: c.size - c.names, Collisions: c.shared.collisions.Load()})
		}
	}
	return all
}
