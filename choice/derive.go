package choice

import (
	"fmt"
	"slices"

	"vitrine/internal/table"
)

// derivedTable is a table with additional columns, computed row by row.
type derivedTable struct {
	table.Table
	computed []*computed
	frame    frame // all columns: first the table's, then the computed ones
	base     []int // columns to read from the table
	batch    table.Batch
}

// widen adds to a wide table the derived columns that its own columns determine. It also adds keptColumn and
// labelOfChosen if the filter and the chosen alternative are such expressions. The other derived columns are left to
// the long form: those that use the alternative, its position, or a variable from [Layout.Names].
func widen(t table.Table, l *Layout) (wide table.Table, left []string, err error) {
	w := &derivedTable{Table: t, frame: frame{names: slices.Clone(t.Header())}}
	add := func(field, name, source string) error {
		e, err := parseExpression(source, w.frame.names, t.Nested())
		if err != nil {
			return err
		}
		w.computed = append(w.computed, &computed{expression: e, field: field, slot: len(w.frame.names)})
		w.frame.names = append(w.frame.names, name)
		return nil
	}
	for _, entry := range l.Derive {
		name, source, err := derived(entry)
		if err != nil {
			return nil, nil, err
		}
		if slices.Contains(w.frame.names, name) {
			return nil, nil, fmt.Errorf("data.derive: there is a column %q already", name)
		}
		if add("data.derive", name, source) != nil {
			left = append(left, entry)
		}
	}
	if l.Filter != "" {
		// otherwise the long form provides its columns or reports that they are missing
		_ = add("data.filter", keptColumn, l.Filter)
	}
	if l.Chosen != "" && !slices.Contains(w.frame.names, l.Chosen) {
		if err := add("data.chosen", labelOfChosen, l.Chosen); err != nil {
			return nil, nil, fmt.Errorf("data.chosen: %w", err)
		}
	}
	if w.computed == nil {
		return t, left, nil
	}
	return w, left, nil
}

func (w *derivedTable) Header() []string { return w.frame.names }

func (w *derivedTable) Next(columns []int) (*table.Batch, error) {
	if w.frame.columns == nil {
		w.frame.columns = make([]table.Column, len(w.frame.names))
		w.batch.Columns = make([]table.Column, len(columns))
		need := slices.Clone(columns)
		for _, c := range w.computed {
			need = append(need, c.slots...)
		}
		slices.Sort(need)
		for _, j := range slices.Compact(need) {
			if j < len(w.Table.Header()) {
				w.base = append(w.base, j)
			}
		}
	}
	b, err := w.Table.Next(w.base)
	if err != nil {
		return nil, err
	}
	w.batch.First, w.batch.N, w.frame.n = b.First, b.N, b.N
	for k, j := range w.base {
		w.frame.columns[j] = b.Columns[k]
	}
	for _, c := range w.computed {
		column, i, err := c.values(&w.frame)
		if err != nil && c.program == nil && !c.plain {
			return nil, fmt.Errorf("%s: %w", c.field, err) // not specific to a row
		} else if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", table.At(w, b.First+i), c.field, err)
		}
		w.frame.columns[c.slot] = column
	}
	for k, j := range columns {
		w.batch.Columns[k] = w.frame.columns[j]
	}
	return &w.batch, nil
}
