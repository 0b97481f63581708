package feature

import (
	"vitrine/service/api"
)

// Split computes rows in two steps: first the item's columns, which are the same for every user, and then the rest. The
// item's columns are its own features and their crosses. Together the steps give the same bits as [Schema.Rows].
type Split struct {
	schema *Schema
	width  int   // number of the item's columns
	at     []int // for each feature, the index of its first column among the item's, −1 if it depends on the user
	runs   []run // places of the item's columns in a row
	rest   []int // features that depend on the user, in order
}

// run is a range of columns that are adjacent both in the row and among the item's columns.
type run struct{ from, at, size int }

// Split prepares the computation of rows in two steps.
func (s *Schema) Split() *Split {
	p := &Split{schema: s, at: make([]int, len(s.columns))}
	for k := range s.columns {
		c := &s.columns[k]
		p.at[k] = -1
		ofItem := c.From == "item"
		if c.Kind == "cross" {
			ofItem = p.at[c.left] >= 0 && p.at[c.right] >= 0
		}
		if !ofItem {
			p.rest = append(p.rest, k)
			continue
		}
		p.at[k] = p.width
		if last := len(p.runs) - 1; last >= 0 && p.runs[last].from+p.runs[last].size == c.from {
			p.runs[last].size += c.size
		} else {
			p.runs = append(p.runs, run{c.from, p.width, c.size})
		}
		p.width += c.size
	}
	return p
}

// Width returns the number of the item's columns.
func (p *Split) Width() int { return p.width }

// Schema returns the underlying schema.
func (p *Split) Schema() *Schema { return p.schema }

// Learn returns the split for a schema that differs only by values that it has learned.
func (p *Split) Learn(s *Schema) *Split {
	learned := *p
	learned.schema = s
	return &learned
}

// Items stores the columns of N items in dst, N×Width in row-major order, and returns how many values were outside
// their bounds. Errors are those that [Schema.Rows] returns.
func (p *Split) Items(dst []float64, items []api.Item) (clipped int, err error) {
	s := p.schema
	if len(dst) != len(items)*p.width {
		panic("feature: Split.Items needs len(dst) = N·Width")
	}
	clear(dst)
	if err := s.checkLengths(items); err != nil || len(items) == 0 {
		return 0, err
	}
	for k := range s.columns {
		c, at := &s.columns[k], p.at[k]
		switch {
		case at < 0:
		case c.Kind == "cross":
			for i := range items {
				row := dst[i*p.width : (i+1)*p.width]
				to := row[at : at+c.size]
				p.outer(to, row, c)
				if err := c.checkCross(to, i); err != nil {
					return 0, err
				}
			}
		default:
			if err := c.encodeItems(dst[at:], p.width, items, &clipped); err != nil {
				return 0, err
			}
		}
	}
	return clipped, nil
}

func (p *Split) outer(to, row []float64, c *column) {
	x, y := &p.schema.columns[c.left], &p.schema.columns[c.right]
	for a, u := range row[p.at[c.left] : p.at[c.left]+x.size] {
		for b, v := range row[p.at[c.right] : p.at[c.right]+y.size] {
			to[a*y.size+b] = u * v
		}
	}
}

// large returns a column that a learner would reject, if there is one.
func large(columns []float64, c *column) (v float64, ok bool) {
	for _, v := range columns {
		if !c.fits(v) {
			return v, true
		}
	}
	return 0, false
}

// Number recovers an item's number from its columns, up to rounding and bounds; slot is the feature's slot in the
// schema. ok is false if the feature is not a number.
func (p *Split) Number(columns []float64, slot int) (v float64, ok bool) {
	k := p.schema.item[slot]
	c := &p.schema.columns[k]
	if !c.isNumber {
		return 0, false
	}
	return c.unscale(columns[p.at[k]]), true
}

// User stores the user's columns at their places in a row, zeroes the others, and returns how many values were outside
// their bounds. A nil user means that all its values are missing.
func (p *Split) User(row []float64, user api.Values) (clipped int, err error) {
	s := p.schema
	clear(row)
	if len(user) != 0 && len(user) != len(s.user) {
		return 0, api.Fieldf("/shopper", "has %d values, want %d", len(user), len(s.user))
	}
	for _, k := range p.rest {
		c := &s.columns[k]
		to := row[c.from : c.from+c.size]
		if c.Kind == "cross" {
			if s.columns[c.left].From == "shopper" && s.columns[c.right].From == "shopper" {
				s.outer(to, row, c)
				if v, ok := large(to, c); ok {
					return 0, api.Fieldf("/shopper", "feature %q has the column %v: it must be finite and at most "+
						"%v in size: scale it", c.Name, v, c.most)
				}
			}
			continue
		}
		if err := c.encodeUser(to, user, &clipped); err != nil {
			return 0, err
		}
	}
	return clipped, nil
}

// UserOf recovers the row that User stored from an item's row that Complete has made of it.
func (p *Split) UserOf(row []float64) []float64 {
	s, user := p.schema, make([]float64, len(row))
	for _, k := range p.rest {
		c := &s.columns[k]
		if c.Kind != "cross" || s.columns[c.left].From == "shopper" && s.columns[c.right].From == "shopper" {
			copy(user[c.from:c.from+c.size], row[c.from:])
		}
	}
	return user
}

// Complete stores an item's row in dst, given the item's columns and the row that User stored. It reports whether the
// crosses' columns are finite and small.
func (p *Split) Complete(dst, user, item []float64) bool {
	s := p.schema
	copy(dst, user)
	for _, r := range p.runs {
		copy(dst[r.from:r.from+r.size], item[r.at:r.at+r.size])
	}
	for _, k := range p.rest {
		c := &s.columns[k]
		if c.Kind != "cross" || s.columns[c.left].From == "shopper" && s.columns[c.right].From == "shopper" {
			continue
		}
		to := dst[c.from : c.from+c.size]
		s.outer(to, dst, c)
		if _, ok := large(to, c); ok {
			return false
		}
	}
	return true
}

// Map returns the linear map from an item's columns a to its row, x = M a + user, for the row that User stored: M[j][k]
// is the contribution of column k to column j of the row. It is row-major, d×Width.
func (p *Split) Map(dst, user []float64) []float64 {
	s, w := p.schema, p.width
	if n := s.width * w; cap(dst) < n {
		dst = make([]float64, n)
	} else {
		dst = dst[:n]
		clear(dst)
	}
	for _, r := range p.runs {
		for j := range r.size {
			dst[(r.from+j)*w+r.at+j] = 1
		}
	}
	for _, k := range p.rest {
		c := &s.columns[k]
		if c.Kind != "cross" {
			continue
		}
		x, y := &s.columns[c.left], &s.columns[c.right]
		switch left, right := p.at[c.left], p.at[c.right]; {
		case left >= 0:
			for a := range x.size {
				for b, v := range user[y.from : y.from+y.size] {
					dst[(c.from+a*y.size+b)*w+left+a] = v
				}
			}
		case right >= 0:
			for a, u := range user[x.from : x.from+x.size] {
				for b := range y.size {
					dst[(c.from+a*y.size+b)*w+right+b] = u
				}
			}
		}
	}
	return dst
}

// ItemName returns the name of the items' feature at a slot.
func (s *Schema) ItemName(slot int) string { return s.columns[s.item[slot]].Name }
