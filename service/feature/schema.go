package feature

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"vitrine"
	"vitrine/service/api"
)

// Schema turns feature values into rows of a fixed width. The kind of a feature determines the columns of an item's row
// for a value v:
//
//	number              (v' − center) / scale with v' = min(max(v, min), max). If center or scale is given,
//	                    min and max are center ± 10 scale by default; otherwise there are no bounds
//	category, values    e_k in ℝ^m for the k-th of m values. With allow_other, e_{m+1} in ℝ^{m+1} for any
//	                    other value, which is an error otherwise
//	category            e_b in ℝ^B: the first m values that a schema learns have b = 0, …, m − 1, and the others
//	                    b = m + h(v) mod (B − m), with m = names
//	text                z / ‖z‖ in ℝ^B, z_b = Σ_w σ(w) 1{h(w) mod B = b} over the words w of the text
//	                    (runs of two or more letters, digits or underscores, in lower case); 0 if there are no words
//	object              z / √n in ℝ^B, z_b = Σ σ(v) x(v) 1{h(v) mod B = b} over the n values of a JSON
//	                    object; 0 if it is empty or missing
//	cross               vec(x yᵀ), x and y the columns of two earlier features
//
// The name of a value inside an object is its path: the member names joined by dots. A string, true or false is v =
// "name=value" with x = 1; a number is v = "name" with x = asinh(number) / 2, within ±8; null is ignored. A list's
// elements take the name of the list, except that a number at index k, from 0, is named "list.k". The objects in a list
// therefore share their names.
//
// The hash is h = mix(FNV-1a(name, 0, v)) in 64 bits, with mix the finaliser of SplitMix64. The highest bit of h is the
// sign: σ = −1 if it is set. The user's features are columns of every item's row. They separate users who buy from
// users who do not; crossed with features of items, they separate the items that each user buys.
type Schema struct {
	columns []column
	item    []int          // indices of the features of items, in order
	user    []int          // indices of the features of the user
	index   map[string]int // indices by name
	width   int
}

// column is a feature and its place in a row.
type column struct {
	api.Feature
	slot       int            // index of its value in a request
	isNumber   bool           // whether it is a number of an item
	from, size int            // columns in a row
	byValue    map[string]int // for a category with values
	vocabulary                // for a category without values
	missing    api.Value      // default value
	scale      float64        // of a number
	low, high  float64        // bounds of a number
	most       float64        // largest size of a column
	left       int            // first feature of a cross
	right      int            // second feature of a cross
}

// Columns returns the first of a feature's columns and their number; ok is false if the feature does not exist.
func (s *Schema) Columns(name string) (from, size int, ok bool) {
	i, ok := s.index[name]
	if !ok {
		return 0, 0, false
	}
	return s.columns[i].from, s.columns[i].size, true
}

// At returns the name of the feature that owns a column.
func (s *Schema) At(column int) string {
	for i := range s.columns {
		if c := &s.columns[i]; column >= c.from && column < c.from+c.size {
			return c.Name
		}
	}
	return ""
}

// Equal reports whether two schemas define the same features, so that they give the same rows once they have learned
// the same values.
func (s *Schema) Equal(o *Schema) bool {
	return s == o || slices.EqualFunc(s.columns, o.columns, func(a, b column) bool { return a.makes(&b) })
}

const (
	maxWidth = 4096 // columns of a row
	maxName  = 100  // bytes of a feature's name
)

// New returns the schema of features, and sets their unset fields to the defaults in place. Errors have the type
// *[api.FieldError], with fields below /features.
func New(features []api.Feature) (*Schema, error) {
	if len(features) == 0 {
		return nil, api.Fieldf("/features",
			`must name at least one feature, such as {"name": "price", "kind": "number"}`)
	}
	s := &Schema{index: map[string]int{}}
	for i := range features {
		if err := s.add(i, &features[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Schema) add(i int, f *api.Feature) error {
	field := fmt.Sprintf("/features/%d", i)
	if f.Name == "" || len(f.Name) > maxName {
		return api.Fieldf(field+"/name", "must have from 1 to %d bytes", maxName)
	}
	if s.find(f.Name) >= 0 {
		return api.Fieldf(field+"/name", "%q is a duplicate", f.Name)
	}
	c := column{from: s.width, most: vitrine.MaxFeature}
	if err := c.measure(s, field, f); err != nil {
		return err
	}
	if f.Kind != "cross" {
		f.From = cmp.Or(f.From, "item")
		slots := &s.item
		if f.From == "shopper" {
			slots = &s.user
		} else if err := api.OneOf(field+"/from", f.From, "item", "shopper"); err != nil {
			return err
		}
		c.slot = len(*slots)
		*slots = append(*slots, i)
	}
	if err := c.counts(field, f); err != nil {
		return err
	}
	c.Feature = *f
	c.isNumber = f.Kind == "number" && f.From == "item"
	if f.Default != nil {
		if err := c.setDefault(field + "/default"); err != nil {
			return err
		}
	}
	c.shared = newShared(c.Kind == "category" && c.byValue == nil, c.size-c.names)
	if s.width += c.size; s.width > maxWidth {
		return api.Fieldf(field, "the row has more than %d columns up to this feature: a learner's memory grows "+
			"with the square of this number", maxWidth)
	}
	s.index[f.Name] = i
	s.columns = append(s.columns, c)
	return nil
}

// measure checks the fields for f's kind, and sets the number of columns.
func (c *column) measure(s *Schema, field string, f *api.Feature) error {
	legal := map[string][]string{
		"number":   {"from", "center", "scale", "min", "max", "default", "history"},
		"category": {"from", "values", "allow_other", "columns", "own_columns", "default"},
		"text":     {"from", "columns", "default"},
		"object":   {"from", "columns"},
		"cross":    {"of"},
	}
	keys, ok := legal[f.Kind]
	if !ok {
		return api.OneOf(field+"/kind", f.Kind, "number", "category", "text", "object", "cross")
	}
	for _, has := range []struct {
		key string
		set bool
	}{
		{"from", f.From != ""}, {"center", f.Center != 0}, {"scale", f.Scale != nil}, {"min", f.Min != nil},
		{"max", f.Max != nil}, {"values", f.Values != nil}, {"allow_other", f.AllowOther},
		{"columns", f.Columns != 0}, {"own_columns", f.OwnColumns != nil}, {"of", f.Of != nil},
		{"default", f.Default != nil}, {"history", f.History != ""},
	} {
		if has.set && !slices.Contains(keys, has.key) {
			return api.Fieldf(field+"/"+has.key, "is not a field of kind %q", f.Kind)
		}
	}
	switch f.Kind {
	case "number":
		return c.number(field, f)
	case "category":
		if f.Values != nil && f.OwnColumns != nil {
			return api.Fieldf(field+"/own_columns", "is only for a category without values")
		}
		if f.Values != nil {
			return c.values(field, f)
		}
		if f.AllowOther {
			return api.Fieldf(field+"/allow_other", "is only for a category with values")
		}
		if err := c.buckets(field, f, categoryBuckets); err != nil {
			return err
		}
		c.names = numNames(*f)
		if c.names < 0 || c.names >= f.Columns {
			return api.Fieldf(field+"/own_columns", "%d: must be from 0 to %d, less than columns", c.names, f.Columns-1)
		}
		return nil
	case "text", "object":
		return c.buckets(field, f, 64)
	default:
		return c.cross(s, field, f)
	}
}

func (c *column) number(field string, f *api.Feature) error {
	c.scale = scaleOf(*f)
	f.Scale = new(c.scale)
	if math.IsInf(f.Center, 0) || math.IsInf(c.scale, 0) || !(c.scale > 0) {
		return api.Fieldf(field+"/scale", "%v: must be positive and finite", c.scale)
	}
	c.size = 1
	return c.bounds(field, f)
}

// bounds sets a number's bounds, before scaling.
func (c *column) bounds(field string, f *api.Feature) error {
	c.low, c.high = math.Inf(-1), math.Inf(1)
	if f.Center != 0 || c.scale != 1 {
		c.low, c.high = f.Center-float64(10*c.scale), f.Center+float64(10*c.scale)
	}
	for _, b := range []struct {
		key   string
		given *float64
		to    *float64
	}{{"/min", f.Min, &c.low}, {"/max", f.Max, &c.high}} {
		if b.given == nil {
			continue
		}
		if scaled := (*b.given - f.Center) / c.scale; !c.fits(scaled) {
			return api.Fieldf(field+b.key, "%v: is %v after scaling, which is too large: set center and scale",
				*b.given, scaled)
		}
		*b.to = *b.given
	}
	if !(c.low < c.high) {
		return api.Fieldf(field+"/min", "min is %v and max is %v: min must be less than max", c.low, c.high)
	}
	return nil
}

// Clips reports whether a number is beyond the bounds of the feature of a name, which must exist.
func (s *Schema) Clips(name string, v float64) bool {
	c := &s.columns[s.index[name]]
	return c.clipped(v) != v
}

func (c *column) clipped(v float64) float64 { return min(max(v, c.low), c.high) }

func (c *column) values(field string, f *api.Feature) error {
	if len(f.Values) == 0 || f.Columns != 0 {
		return api.Fieldf(field+"/values", "a category has either at least one value or columns")
	}
	c.byValue = map[string]int{}
	for k, v := range f.Values {
		if _, twice := c.byValue[v]; twice {
			return api.Fieldf(fmt.Sprintf("%s/values/%d", field, k), "%q is a duplicate", v)
		}
		c.byValue[v] = k
	}
	c.size = len(f.Values)
	if f.AllowOther {
		c.size++
	}
	return nil
}

func (c *column) buckets(field string, f *api.Feature, byDefault int) error {
	f.Columns = cmp.Or(f.Columns, byDefault)
	c.size = f.Columns
	return api.InRange(field+"/columns", f.Columns, 1, maxWidth)
}

func (c *column) cross(s *Schema, field string, f *api.Feature) error {
	if len(f.Of) != 2 {
		return api.Fieldf(field+"/of", "must name two features")
	}
	for k, name := range f.Of {
		j := s.find(name)
		if j < 0 || s.columns[j].Kind == "cross" {
			return api.Fieldf(fmt.Sprintf("%s/of/%d", field, k), "%q is not an earlier feature, or is a cross", name)
		}
		if h := s.columns[j].History; h != "" {
			return api.Fieldf(fmt.Sprintf("%s/of/%d", field, k), "%q counts what each shopper has %s, which no "+
				"cross can have", name, h)
		}
		if k == 0 {
			c.left = j
		} else {
			c.right = j
		}
	}
	c.size = s.columns[c.left].size * s.columns[c.right].size
	return nil
}

// setDefault sets the default, and validates it by encoding it.
func (c *column) setDefault(field string) error {
	switch v := c.Default.(type) {
	case float64:
		c.missing = api.Number(c.Name, v)
	case string:
		c.missing = api.Text(c.Name, v)
	default:
		return api.Fieldf(field, "must be a number or a string")
	}
	if message := c.encode(make([]float64, c.size), c.missing); message != "" {
		return api.Fieldf(field, "%s", message)
	}
	return nil
}

func (s *Schema) find(name string) int {
	if i, ok := s.index[name]; ok {
		return i
	}
	return -1
}

// Width returns d, the number of columns of a row.
func (s *Schema) Width() int { return s.width }

// Numeric returns the columns of numbers, in order: the others are indicators.
func (s *Schema) Numeric() []int {
	numeric := []int{}
	for i := range s.columns {
		if c := &s.columns[i]; c.Kind == "number" {
			numeric = append(numeric, c.from)
		}
	}
	return numeric
}

// Customer returns the columns of the user's features, in order: they are the same in all rows of a request. It returns
// nil if the schema has a cross, which says itself which products matter.
func (s *Schema) Customer() (columns []int) {
	for i := range s.columns {
		c := &s.columns[i]
		if c.Kind == "cross" {
			return nil
		}
		for j := range c.size {
			if c.From == "shopper" {
				columns = append(columns, c.from+j)
			}
		}
	}
	return columns
}

// Bound makes the schema refuse features that are larger than most in size after scaling.
func (s *Schema) Bound(most float64) {
	for i := range s.columns {
		s.columns[i].most = most
	}
}

// Item returns the index of a feature's value in [api.Item].Features. ok is false if items do not have that feature.
func (s *Schema) Item(name string) (slot int, ok bool) { return s.slotOf(name, "item") }

// Default returns the value of a feature, without a name, for items or users that lack it. It is Missing without a
// default.
func (s *Schema) Default(name string) api.Value {
	v := s.columns[s.index[name]].missing
	v.Name = ""
	return v
}

// User returns the index of a feature's value in the user's values. ok is false if users do not have that feature.
func (s *Schema) User(name string) (slot int, ok bool) { return s.slotOf(name, "shopper") }

func (s *Schema) slotOf(name, from string) (int, bool) {
	i, ok := s.index[name]
	if !ok || s.columns[i].From != from {
		return 0, false
	}
	return s.columns[i].slot, true
}

// ItemNames returns the names of the items' features.
func (s *Schema) ItemNames() []string { return s.names("item") }

// UserNames returns the names of the user's features.
func (s *Schema) UserNames() []string { return s.names("shopper") }

func (s *Schema) names(from string) (list []string) {
	for _, c := range s.columns {
		if c.From == from {
			list = append(list, c.Name)
		}
	}
	return list
}

// NumItem returns the number of features of items.
func (s *Schema) NumItem() int { return len(s.item) }

// NumUser returns the number of features of the user.
func (s *Schema) NumUser() int { return len(s.user) }

// IsCategory reports whether name is a category of items.
func (s *Schema) IsCategory(name string) bool {
	i := s.find(name)
	return i >= 0 && s.columns[i].Kind == "category" && s.columns[i].From == "item"
}

// Category returns the item's value of a category, or the default if it is missing. It panics if name is not a category
// of items.
func (s *Schema) Category(item *api.Item, name string) string {
	if !s.IsCategory(name) {
		panic(fmt.Sprintf("feature: %q is not a category of items", name))
	}
	c := &s.columns[s.index[name]]
	if v := item.Features[c.slot]; v.Kind != api.Missing {
		return v.Text
	}
	return c.missing.Text
}
