package feature

import "vitrine/service/api"

// Part is a feature and its columns in a row.
type Part struct {
	Name, Kind string
	From, Size int
}

// Parts returns the features, in order.
func (s *Schema) Parts() []Part {
	parts := make([]Part, len(s.columns))
	for i := range s.columns {
		c := &s.columns[i]
		parts[i] = Part{c.Name, c.Kind, c.from, c.size}
	}
	return parts
}

// Value returns the value of the k-th feature in a row: a number within its bounds, or a category. It is missing for
// other kinds, and for a category value that shares its column.
func (s *Schema) Value(row []float64, k int) api.Value {
	c := &s.columns[k]
	columns := row[c.from : c.from+c.size]
	switch c.Kind {
	case "number":
		return api.Number(c.Name, float64(columns[0]*c.scale)+c.Center)
	case "category":
		for b, v := range columns {
			if v != 0 {
				return c.valueAt(b)
			}
		}
	}
	return api.Value{Name: c.Name}
}

// ValueOf returns the value of a feature of the schema, by its name: see Value.
func (s *Schema) ValueOf(row []float64, name string) api.Value { return s.Value(row, s.index[name]) }

// valueAt returns the category value that owns a column.
func (c *column) valueAt(b int) api.Value {
	switch {
	case b < len(c.Values):
		return api.Text(c.Name, c.Values[b])
	case b < len(c.known):
		return api.Text(c.Name, c.known[b])
	}
	return api.Value{Name: c.Name}
}

// NumValues returns how many values of the k-th feature, a category, own columns. It is 0 for other kinds.
func (s *Schema) NumValues(k int) int {
	if c := &s.columns[k]; c.Kind == "category" {
		return len(c.Values) + len(c.known)
	}
	return 0
}

// Set replaces a feature's columns in a row and recomputes the crosses with it.
func (s *Schema) Set(row []float64, k int, columns []float64) {
	c := &s.columns[k]
	copy(row[c.from:c.from+c.size], columns)
	for i := range s.columns {
		if x := &s.columns[i]; x.Kind == "cross" && (x.left == k || x.right == k) {
			s.outer(row[x.from:x.from+x.size], row, x)
		}
	}
}
