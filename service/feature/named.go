package feature

import (
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// Named calls visit with the JSON value in a row of every feature except crosses. It visits the features of items, or
// of the user if user is true. The value is, for a
//
//	number                   center + scale·column: the request's number up to rounding
//	category with values     the value; null for any other
//	category without values  the value, if the schema has learned it
//	hashed value, text       the list of its columns, because the value cannot be recovered
//	object                   the list of its columns
//
// Named panics unless the row has [Schema.Width] columns.
func (s *Schema) Named(row []float64, user bool, visit func(name string, value jsontext.Value)) {
	if len(row) != s.width {
		panic("feature: Named needs a row of the schema's width")
	}
	for _, i := range s.slots(user) {
		c := &s.columns[i]
		visit(c.Name, c.value(row[c.from:c.from+c.size]))
	}
}

func (s *Schema) slots(user bool) []int {
	if user {
		return s.user
	}
	return s.item
}

// value recovers the value that encode turned into the columns.
func (c *column) value(columns []float64) jsontext.Value {
	switch {
	case c.Kind == "number":
		return number(c.unscale(columns[0]))
	case c.byValue != nil:
		for k, v := range c.Values {
			if columns[k] == 1 {
				text, _ := jsontext.AppendQuote(nil, v) // invalid UTF-8 becomes U+FFFD
				return text
			}
		}
		return jsontext.Value("null")
	}
	for k, v := range c.known {
		if columns[k] == 1 {
			text, _ := jsontext.AppendQuote(nil, v)
			return text
		}
	}
	list := jsontext.Value("[")
	for i, v := range columns {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, number(v)...)
	}
	return append(list, ']')
}

// unscale returns the number for a column, up to rounding.
func (c *column) unscale(x float64) float64 { return c.Center + float64(c.scale*x) }

// number returns v in JSON. JSON cannot express infinities: they become the largest numbers.
func number(v float64) jsontext.Value {
	return jsontext.Value(jsontext.Float(max(-math.MaxFloat64, min(v, math.MaxFloat64))).String())
}
