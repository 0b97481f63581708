package feature

import (
	"fmt"
	"math"

	"vitrine/service/api"
)

// Rows stores the rows of N items in dst, an N×d matrix in row-major order, and returns how many values were outside
// their bounds. A nil user means that all its values are missing. Errors have the type *[api.FieldError]. Rows panics
// if len(dst) is not N·d.
func (s *Schema) Rows(dst []float64, user api.Values, items []api.Item) (clipped int, err error) {
	d := s.width
	if len(dst) != len(items)*d {
		panic("feature: Rows needs len(dst) = N·d")
	}
	clear(dst)
	if len(user) != 0 && len(user) != len(s.user) {
		return 0, api.Fieldf("/shopper", "has %d values, want %d", len(user), len(s.user))
	}
	if err := s.checkLengths(items); err != nil || len(items) == 0 {
		return 0, err
	}
	for k := range s.columns {
		c := &s.columns[k]
		first := dst[c.from : c.from+c.size]
		switch {
		case c.Kind == "cross":
			for i := range items {
				row := dst[i*d : (i+1)*d]
				to := row[c.from : c.from+c.size]
				s.outer(to, row, c)
				if err := c.checkCross(to, i); err != nil {
					return 0, err
				}
			}
		case c.From == "shopper":
			if err := c.encodeUser(first, user, &clipped); err != nil {
				return 0, err
			}
			for i := d; i < len(dst); i += d {
				copy(dst[i+c.from:], first)
			}
		default:
			if err := c.encodeItems(dst[c.from:], d, items, &clipped); err != nil {
				return 0, err
			}
		}
	}
	return clipped, nil
}

// checkLengths reports the first item with the wrong number of values.
func (s *Schema) checkLengths(items []api.Item) error {
	for i := range items {
		if len(items[i].Features) != len(s.item) {
			return api.Fieldf(fmt.Sprintf("/items/%d/features", i), "has %d values, want %d", len(items[i].Features),
				len(s.item))
		}
	}
	return nil
}

// encodeItems adds the items' values to zeroed columns, dst[i·stride:] for item i.
func (c *column) encodeItems(dst []float64, stride int, items []api.Item, clipped *int) error {
	for i := range items {
		v := &items[i].Features[c.slot]
		if n := v.Number; c.isNumber && v.Kind == api.IsNumber && c.low <= n && n <= c.high {
			if x := (n - c.Center) / c.scale; c.fits(x) {
				dst[i*stride] = x
				continue
			}
		}
		c.count(v, clipped)
		if message := c.encode(dst[i*stride:i*stride+c.size], *v); message != "" {
			return api.Fieldf(fmt.Sprintf("/items/%d/features/%s", i, api.Pointer(c.Name)), "%s", message)
		}
	}
	return nil
}

// checkCross reports a product of item i that a learner would refuse.
func (c *column) checkCross(product []float64, i int) error {
	if v, ok := large(product, c); ok {
		return api.Fieldf(fmt.Sprintf("/items/%d", i), "feature %q has the column %v: it must be finite and at most %v "+
			"in size: scale it", c.Name, v, c.most)
	}
	return nil
}

func (c *column) count(v *api.Value, clipped *int) {
	if c.Kind == "number" && v.Kind == api.IsNumber && (v.Number < c.low || v.Number > c.high) {
		*clipped++
	}
}

// outer stores the cross product of two features.
func (s *Schema) outer(to, row []float64, c *column) {
	x, y := &s.columns[c.left], &s.columns[c.right]
	for a, u := range row[x.from : x.from+x.size] {
		for b, v := range row[y.from : y.from+y.size] {
			to[a*y.size+b] = u * v
		}
	}
}

// encode adds a value to zeroed columns, or returns an error message.
func (c *column) encode(to []float64, v api.Value) (message string) {
	if v.Kind == api.Missing && c.Kind == "object" {
		return ""
	}
	if v.Kind == api.Missing {
		if v = c.missing; v.Kind == api.Missing {
			return "is missing, and the feature has no default"
		}
	}
	switch {
	case c.Kind == "object" && v.Kind != api.IsObject:
		return "want an object or a list of objects"
	case c.Kind == "object":
		return c.object(to, v.Text)
	case v.Kind == api.IsObject:
		return "want a number or a string"
	case c.Kind == "number" && v.Kind != api.IsNumber:
		return fmt.Sprintf("%q: want a number", v.Text)
	case c.Kind == "number":
		return c.scaled(to, v.Number)
	case v.Kind != api.IsText:
		return fmt.Sprintf("%v: want a string", v.Number)
	case c.Kind == "text":
		c.words(to, v.Text)
	case c.byValue == nil:
		to[c.place(v.Text)] = 1
	default:
		k, ok := c.byValue[v.Text]
		if !ok && !c.AllowOther {
			return fmt.Sprintf("%q: is not one of the feature's values: add it, or set allow_other", v.Text)
		}
		if !ok {
			k = len(c.Values)
		}
		to[k] = 1
	}
	return ""
}

// scaled stores a scaled number, or returns what is wrong with it.
func (c *column) scaled(to []float64, v float64) (message string) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprintf("%v: want a finite number", v)
	}
	if to[0] = (c.clipped(v) - c.Center) / c.scale; !c.fits(to[0]) {
		return fmt.Sprintf("%v: is %v after scaling, and must be at most %v in size: set center and scale", v, to[0],
			c.most)
	}
	return ""
}

// fits reports whether the learner accepts v as a feature.
func (c *column) fits(v float64) bool { return math.Abs(v) <= c.most }

// encodeUser stores the user's value, or a missing value if user is nil.
func (c *column) encodeUser(to []float64, user api.Values, clipped *int) error {
	var v api.Value
	if len(user) > 0 {
		v = user[c.slot]
	}
	c.count(&v, clipped)
	if message := c.encode(to, v); message != "" {
		return api.Fieldf("/shopper/"+api.Pointer(c.Name), "%s", message)
	}
	return nil
}
