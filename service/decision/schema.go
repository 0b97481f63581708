package decision

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/text"
)

// Feature is something known of an item or a user. Its kind says which columns
// of an item's row it becomes:
//
//	number              (v' − center) / scale, v' = min(max(v, min), max); where a center or a scale is given
//	                    min and max are center ± 10 scale by default, and elsewhere without bound
//	category, values    e_k of ℝ^m for the k-th of the m values; with other = true
//	                    e_{m+1} of ℝ^{m+1} for all other ones, which are errors elsewhere
//	category            e_b of ℝ^B, b = h(v) mod B
//	text                z / ‖z‖ of ℝ^B, z_b = Σ_w σ(w) 1{h(w) mod B = b} over the
//	                    words w of the text ([text.Tokens]); 0 of no words
//	object              z / max(1, ‖z‖) of ℝ^B, z_b = Σ σ(v) x(v) 1{h(v) mod B = b} over the
//	                    values of a JSON object; 0 of no values, and where it is missing
//	cross               vec(x yᵀ), x and y the columns of two earlier features
//
// A value of an object has a name, those of the members that lead to it with dots
// between them. A string, true or false is v = "name=value" with x = 1, a number is v = "name"
// with x = asinh of it, and null is nothing. The k-th element of a list, from 0 on, has the
// list's name, with ".k" after it where it is a number: so the objects of a list are as one.
//
// Hashed are all with h = mix(FNV-1a(name, 0, v)) in 64 bits, mix the finaliser of SplitMix64,
// and the sign σ = ±1 the uppermost bit of h. The features of a user are
// columns of every item's row: they tell users who buy from those who do not,
// and by crosses which items they buy.
type Feature struct {
	Name    string         `json:"name"`
	Kind    string         `json:"kind"`
	From    string         `json:"from,omitzero"`    // "item", the default, or "user"
	Center  float64        `json:"center,omitzero"`  // number
	Scale   float64        `json:"scale,omitzero"`   // number, 1 by default
	Min     *float64       `json:"min,omitzero"`     // number: what is less counts as this
	Max     *float64       `json:"max,omitzero"`     // and what is more as this
	Values  []string       `json:"values,omitempty"` // category
	Other   bool           `json:"other,omitzero"`   // category with values
	Buckets int            `json:"buckets,omitzero"` // B: 16 of a category, 64 of a text or an object by default
	Of      []string       `json:"of,omitempty"`     // cross
	Default jsontext.Value `json:"default,omitzero"` // what a missing value stands for; without one it is an error
}

// equal reports whether two features make rows of the same meaning. Bounds may differ: a learner goes on with new ones.
func (f Feature) equal(o Feature) bool {
	return f.Name == o.Name && f.Kind == o.Kind && f.From == o.From && f.Center == o.Center && f.Scale == o.Scale &&
		slices.Equal(f.Values, o.Values) && f.Other == o.Other && f.Buckets == o.Buckets && slices.Equal(f.Of, o.Of) &&
		bytes.Equal(f.Default, o.Default)
}

// Value is what a request says of a feature. The zero value says nothing.
type Value struct {
	Kind   ValueKind
	Number float64
	Text   string
}

// ValueKind is the type of a value.
type ValueKind uint8

// The types of values.
const (
	Missing ValueKind = iota
	IsNumber
	IsText
	IsObject
)

// Number and Text make values.
func Number(v float64) Value { return Value{Kind: IsNumber, Number: v} }

// Text makes the value of a category or a text.
func Text(s string) Value { return Value{Kind: IsText, Text: s} }

// Schema makes rows of a fixed width.
type Schema struct {
	columns []column
	item    []int          // the columns whose values are the items', in order
	user    []int          // those whose values are the user's
	index   map[string]int // of the columns, by name
	width   int
}

// column is a feature with its place.
type column struct {
	Feature
	slot       int  // of its value
	isNumber   bool // of an item
	from, size int  // its columns in a row
	byValue    map[string]int
	missing    Value
	low, high  float64 // of a number
	left       int     // of a cross: the features, by index
	right      int
}

// equal reports whether two schemas make the same rows.
func (s *Schema) equal(o *Schema) bool {
	return s == o || slices.EqualFunc(s.columns, o.columns, func(a, b column) bool { return a.Feature.equal(b.Feature) })
}

const (
	largestWidth = 4096
	largestName  = 100
)

// newSchema checks the features, and fills in their defaults.
func newSchema(features []Feature) (*Schema, error) {
	if len(features) == 0 {
		return nil, fieldf("/features", `must name at least one feature, such as {"name": "price", "kind": "number"}`)
	}
	s := &Schema{index: map[string]int{}}
	for i := range features {
		if err := s.add(i, &features[i]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Schema) add(i int, f *Feature) error {
	field := fmt.Sprintf("/features/%d", i)
	if f.Name == "" || len(f.Name) > largestName {
		return fieldf(field+"/name", "must have from 1 to %d bytes", largestName)
	}
	if s.find(f.Name) >= 0 {
		return fieldf(field+"/name", "%q is there twice", f.Name)
	}
	c := column{from: s.width}
	if err := c.measure(s, field, f); err != nil {
		return err
	}
	if f.Kind != "cross" {
		if f.From == "" {
			f.From = "item"
		}
		slots := &s.item
		if f.From == "user" {
			slots = &s.user
		} else if err := oneOf(field+"/from", f.From, "item", "user"); err != nil {
			return err
		}
		c.slot = len(*slots)
		*slots = append(*slots, i)
	}
	c.Feature = *f
	c.isNumber = f.Kind == "number" && f.From == "item"
	if f.Default != nil {
		if err := c.parseDefault(field + "/default"); err != nil {
			return err
		}
		f.Default = c.Default
	}
	if s.width += c.size; s.width > largestWidth {
		return fieldf(field, "the row has more than %d columns up to this feature: learners keep a matrix of the square of their number", largestWidth)
	}
	s.index[f.Name] = i
	s.columns = append(s.columns, c)
	return nil
}

// measure checks what is particular to a kind, and finds the number of columns.
func (c *column) measure(s *Schema, field string, f *Feature) error {
	legal := map[string][]string{
		"number":   {"from", "center", "scale", "min", "max", "default"},
		"category": {"from", "values", "other", "buckets", "default"},
		"text":     {"from", "buckets", "default"},
		"object":   {"from", "buckets"},
		"cross":    {"of"},
	}
	keys, ok := legal[f.Kind]
	if !ok {
		return oneOf(field+"/kind", f.Kind, "number", "category", "text", "object", "cross")
	}
	for _, has := range []struct {
		key string
		set bool
	}{
		{"from", f.From != ""}, {"center", f.Center != 0}, {"scale", f.Scale != 0}, {"min", f.Min != nil}, {"max", f.Max != nil}, {"values", f.Values != nil}, {"other", f.Other},
		{"buckets", f.Buckets != 0}, {"of", f.Of != nil}, {"default", f.Default != nil},
	} {
		if has.set && !slices.Contains(keys, has.key) {
			return fieldf(field+"/"+has.key, "a feature of kind %q does not have it", f.Kind)
		}
	}
	switch f.Kind {
	case "number":
		return c.number(field, f)
	case "category":
		if f.Values != nil {
			return c.values(field, f)
		}
		if f.Other {
			return fieldf(field+"/other", "is for a category with values")
		}
		return c.buckets(field, f, 16)
	case "text", "object":
		return c.buckets(field, f, 64)
	default:
		return c.cross(s, field, f)
	}
}

func (c *column) number(field string, f *Feature) error {
	if f.Scale == 0 {
		f.Scale = 1
	}
	if math.IsInf(f.Center, 0) || math.IsInf(f.Scale, 0) || !(f.Scale > 0) {
		return fieldf(field+"/scale", "%v: must be positive and finite", f.Scale)
	}
	c.size = 1
	return c.bounds(field, f)
}

// usualBound is how many scales a number may be from its center, where these are given.
const usualBound = 10

// bounds finds those of a number, before scaling.
func (c *column) bounds(field string, f *Feature) error {
	c.low, c.high = math.Inf(-1), math.Inf(1)
	if f.Center != 0 || f.Scale != 1 {
		c.low, c.high = f.Center-usualBound*f.Scale, f.Center+usualBound*f.Scale
	}
	for _, b := range []struct {
		key   string
		given *float64
		to    *float64
	}{{"/min", f.Min, &c.low}, {"/max", f.Max, &c.high}} {
		if b.given == nil {
			continue
		}
		if scaled := (*b.given - f.Center) / f.Scale; !isFinite(scaled) {
			return fieldf(field+b.key, "%v: is %v after scaling, which is too large: set center and scale", *b.given, scaled)
		}
		*b.to = *b.given
	}
	if !(c.low < c.high) {
		return fieldf(field+"/min", "the bounds are %v and %v: the least must be less than the most", c.low, c.high)
	}
	return nil
}

// clipped returns v within the bounds.
func (c *column) clipped(v float64) float64 { return min(max(v, c.low), c.high) }

func (c *column) values(field string, f *Feature) error {
	if len(f.Values) == 0 || f.Buckets != 0 {
		return fieldf(field+"/values", "a category has values, at least one, or buckets")
	}
	c.byValue = map[string]int{}
	for k, v := range f.Values {
		if _, twice := c.byValue[v]; twice {
			return fieldf(fmt.Sprintf("%s/values/%d", field, k), "%q is there twice", v)
		}
		c.byValue[v] = k
	}
	c.size = len(f.Values)
	if f.Other {
		c.size++
	}
	return nil
}

func (c *column) buckets(field string, f *Feature, usual int) error {
	if f.Buckets == 0 {
		f.Buckets = usual
	}
	c.size = f.Buckets
	return inRange(field+"/buckets", f.Buckets, 1, largestWidth)
}

func (c *column) cross(s *Schema, field string, f *Feature) error {
	if len(f.Of) != 2 {
		return fieldf(field+"/of", "must name two features")
	}
	for k, name := range f.Of {
		j := s.find(name)
		if j < 0 || s.columns[j].Kind == "cross" {
			return fieldf(fmt.Sprintf("%s/of/%d", field, k), "%q is not an earlier feature other than a cross", name)
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

// parseDefault checks the default by encoding it.
func (c *column) parseDefault(field string) error {
	if err := c.Default.Canonicalize(); err != nil {
		return fieldf(field, "%v", err)
	}
	switch c.Default.Kind() {
	case '0':
		v, err := strconv.ParseFloat(string(c.Default), 64)
		if err != nil {
			return fieldf(field, "%s: out of range", c.Default)
		}
		c.missing = Number(v)
	case '"':
		v, err := jsontext.AppendUnquote(nil, c.Default)
		if err != nil {
			return fieldf(field, "%v", err)
		}
		c.missing = Text(string(v))
	default:
		return fieldf(field, "must be a number or a string")
	}
	if message := c.encode(make([]float64, c.size), c.missing); message != "" {
		return fieldf(field, "%s", message)
	}
	return nil
}

func (s *Schema) find(name string) int {
	if i, ok := s.index[name]; ok {
		return i
	}
	return -1
}

// Width returns d, the number of columns.
func (s *Schema) Width() int { return s.width }

// Item returns where an item's values have a feature: Item.Features[slot].
func (s *Schema) Item(name string) (slot int, ok bool) { return s.slotOf(name, "item") }

// User returns where a user's values have a feature.
func (s *Schema) User(name string) (slot int, ok bool) { return s.slotOf(name, "user") }

func (s *Schema) slotOf(name, from string) (int, bool) {
	i, ok := s.index[name]
	if !ok || s.columns[i].From != from {
		return 0, false
	}
	return s.columns[i].slot, true
}

// names lists the features of items or users.
func (s *Schema) names(from string) string {
	var list []string
	for _, c := range s.columns {
		if c.From == from {
			list = append(list, c.Name)
		}
	}
	if list == nil {
		return "there are none"
	}
	return strings.Join(list, ", ")
}

// NumItem and NumUser are the lengths of an item's and a user's values.
func (s *Schema) NumItem() int { return len(s.item) }

// NumUser is the length of a user's values.
func (s *Schema) NumUser() int { return len(s.user) }

// Rows stores the rows of items in dst, N×d by rows. Its errors are of type
// *FieldError.
func (s *Schema) Rows(dst []float64, user []Value, items []Item) error {
	var clipped int
	return s.rows(dst, user, items, &clipped)
}

// rows is Rows, and counts the values that were beyond their bounds.
func (s *Schema) rows(dst []float64, user []Value, items []Item, clipped *int) error {
	d := s.width
	if len(dst) != len(items)*d {
		panic("decision: Rows needs len(dst) = N·d")
	}
	clear(dst)
	if len(user) != 0 && len(user) != len(s.user) {
		return fieldf("/user", "has %d values, want %d", len(user), len(s.user))
	}
	for i := range items {
		row := dst[i*d : (i+1)*d]
		if len(items[i].Features) != len(s.item) {
			return fieldf(fmt.Sprintf("/items/%d/features", i), "has %d values, want %d", len(items[i].Features), len(s.item))
		}
		for k := range s.columns {
			c := &s.columns[k]
			to := row[c.from : c.from+c.size]
			if c.isNumber {
				v := &items[i].Features[c.slot]
				c.count(v, clipped)
				if x := (c.clipped(v.Number) - c.Center) / c.Scale; v.Kind == IsNumber && isFinite(x) && !math.IsInf(v.Number, 0) {
					to[0] = x
					continue
				}
			}
			switch {
			case c.Kind == "cross":
				s.outer(to, row, c)
			case c.From == "user" && i > 0:
				copy(to, dst[c.from:c.from+c.size])
			case c.From == "user":
				var v Value
				if len(user) > 0 {
					v = user[c.slot]
				}
				c.count(&v, clipped)
				if message := c.encode(to, v); message != "" {
					return fieldf("/user/"+pointer(c.Name), "%s", message)
				}
			default:
				if message := c.encode(to, items[i].Features[c.slot]); message != "" {
					return fieldf(fmt.Sprintf("/items/%d/features/%s", i, pointer(c.Name)), "%s", message)
				}
			}
			for _, v := range to {
				if !isFinite(v) {
					return fieldf(fmt.Sprintf("/items/%d", i), "feature %q has the column %v: it must be finite and small: scale it", c.Name, v)
				}
			}
		}
	}
	return nil
}

// count counts a value beyond the bounds of a number.
func (c *column) count(v *Value, clipped *int) {
	if c.Kind == "number" && v.Kind == IsNumber && (v.Number < c.low || v.Number > c.high) {
		*clipped++
	}
}

// outer stores the cross product of two features of the row.
func (s *Schema) outer(to, row []float64, c *column) {
	x, y := &s.columns[c.left], &s.columns[c.right]
	for a, u := range row[x.from : x.from+x.size] {
		for b, v := range row[y.from : y.from+y.size] {
			to[a*y.size+b] = u * v
		}
	}
}

// encode adds a value to columns that are 0, or says what is wrong with it.
func (c *column) encode(to []float64, v Value) (message string) {
	if v.Kind == Missing && c.Kind == "object" {
		return ""
	}
	if v.Kind == Missing {
		if v = c.missing; v.Kind == Missing {
			return "is missing, and the feature has no default"
		}
	}
	switch {
	case c.Kind == "object" && v.Kind != IsObject:
		return "want an object or a list of objects"
	case c.Kind == "object":
		return c.object(to, v.Text)
	case v.Kind == IsObject:
		return "want a number or a string"
	case c.Kind == "number" && v.Kind != IsNumber:
		return fmt.Sprintf("%q: want a number", v.Text)
	case c.Kind == "number":
		if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
			return fmt.Sprintf("%v: want a finite number", v.Number)
		}
		to[0] = (c.clipped(v.Number) - c.Center) / c.Scale
		if !isFinite(to[0]) {
			return fmt.Sprintf("%v: is %v after scaling, which is too large: set center and scale", v.Number, to[0])
		}
	case v.Kind != IsText:
		return fmt.Sprintf("%v: want a string", v.Number)
	case c.Kind == "text":
		c.words(to, v.Text)
	case c.byValue == nil:
		to[c.hash(v.Text)%uint64(len(to))] = 1
	default:
		k, ok := c.byValue[v.Text]
		if !ok && !c.Other {
			return fmt.Sprintf("%q: is not one of the feature's values: add it, or other = true", v.Text)
		}
		if !ok {
			k = len(c.Values)
		}
		to[k] = 1
	}
	return ""
}

// words adds the hashed words of a text.
func (c *column) words(to []float64, s string) {
	for w := range text.Tokens(s) {
		h := c.hash(w)
		sign := 1.0
		if h>>63 == 1 {
			sign = -1
		}
		to[h%uint64(len(to))] += sign
	}
	sum := 0.0
	for _, v := range to {
		sum += v * v
	}
	if sum == 0 {
		return
	}
	norm := math.Sqrt(sum)
	for b := range to {
		to[b] /= norm
	}
}

// hash is h of [Feature].
func (c *column) hash(value string) uint64 {
	return splitMix(fnv1a(c.hashed(), value))
}

// hashed is the hash of what is before a value.
func (c *column) hashed() uint64 { return fnv1a(fnv1a(14695981039346656037, c.Name), "\x00") }

// splitMix is mix of [Feature].
func splitMix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func fnv1a(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// pointer escapes a key for a JSON pointer (RFC 6901).
func pointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
