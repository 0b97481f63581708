package feature

import (
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// Named calls visit for every feature of items, or of the user, that is not a cross, with
// what a row says of its value as JSON:
//
//	number              center + scale·column, the request's number but for rounding
//	category, values    the value, null for one that is not among them
//	category, text      the list of its columns, of which the value cannot be told
//
// The row has [Schema.Width] columns, or Named panics.
func (s *Schema) Named(row []float64, user bool, visit func(name string, value jsontext.Value)) {
	if len(row) != s.width {
		panic("feature: Named needs a row of the schema's width")
	}
	for _, i := range s.slots(user) {
		c := &s.columns[i]
		visit(c.Name, c.value(row[c.from:c.from+c.size]))
	}
}

// slots lists the columns whose values are the items', or the user's.
func (s *Schema) slots(user bool) []int {
	if user {
		return s.user
	}
	return s.item
}

// value is what encode has made columns of.
func (c *column) value(columns []float64) jsontext.Value {
	switch {
	case c.Kind == "number":
		return number(c.Center + float64(c.Scale*columns[0]))
	case c.byValue != nil:
		for k, v := range c.Values {
			if columns[k] == 1 {
				text, _ := jsontext.AppendQuote(nil, v) // what is not UTF-8 becomes U+FFFD
				return text
			}
		}
		return jsontext.Value("null")
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

// number is v in JSON, which has no infinities.
func number(v float64) jsontext.Value {
	return jsontext.Value(jsontext.Float(max(-math.MaxFloat64, min(v, math.MaxFloat64))).String())
}
