package choice

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"vitrine/internal/table"
)

// Columns that unfolding a wide table adds. Files never contain columns with these names.
const (
	choiceColumn = "\x00choice" // row number in the wide table
	chosenColumn = "\x00chosen" // 1 for the chosen alternative, else 0
	labelColumn  = "\x00label"  // the alternative

	keptColumn    = "\x00kept"  // in the wide table: whether the filter keeps the row
	labelOfChosen = "\x00taken" // in the wide table: the chosen label, if it is an expression
)

// unfolded presents a wide table as a long one, with a row for each alternative. Its columns are the variables from
// Layout.Names and the columns of the wide table. A variable that an alternative lacks is missing.
type unfolded struct {
	table.Table
	layout *Layout
	labels []string // alternatives that get rows
	names  []string
	from   [][]int // by name, then by alternative: the column of the wide table, or -1
	chosen int     // the wide column, or -1 if choices are unknown
	kept   int     // the wide column, or -1 if the wide table does not determine the filter
	batch  table.Batch
	wide   []int // columns to read from the wide table
	place  []int // by column of the wide table: its place in wide
}

// unfold returns a wide table's long form, with its layout.
func unfold(t table.Table, l *Layout) (table.Table, *Layout, error) {
	t, left, err := widen(t, l)
	if err != nil {
		return nil, nil, err
	}
	u := &unfolded{Table: t, layout: l, chosen: -1, kept: slices.Index(t.Header(), keptColumn)}
	for _, a := range l.Alternatives {
		if a != l.OutsideLabel {
			u.labels = append(u.labels, a)
		}
	}
	header := t.Header()
	if l.Chosen != "" {
		if u.chosen = slices.Index(header, l.Chosen); u.chosen < 0 {
			u.chosen = slices.Index(header, labelOfChosen)
		}
	}
	for j, name := range header {
		u.names = append(u.names, name)
		u.from = append(u.from, slices.Repeat([]int{j}, len(u.labels)))
	}
	for k, label := range u.labels {
		prefix, suffix, _ := strings.Cut(strings.Replace(l.Names, "{alternative}", label, 1), "{variable}")
		for j, name := range header {
			variable, ok := strings.CutPrefix(name, prefix)
			if ok {
				variable, ok = strings.CutSuffix(variable, suffix)
			}
			if !ok || variable == "" {
				continue
			}
			v := slices.Index(u.names, variable)
			if v < 0 {
				v = len(u.names)
				u.names = append(u.names, variable)
				u.from = append(u.from, slices.Repeat([]int{-1}, len(u.labels)))
			} else if v < len(header) {
				return nil, nil, fmt.Errorf("%q is a column and a variable of data.names: name the columns apart",
					variable)
			}
			u.from[v][k] = j
		}
	}
	u.names = append(u.names, choiceColumn, labelColumn, chosenColumn)

	long := *l
	long.Form, long.Choice, long.Alternative, long.Names = "long", []string{choiceColumn}, labelColumn, ""
	long.Alternatives, long.Labels, long.Derive = u.labels, nil, left
	if l.hasOutside() {
		long.Outside, long.OutsideLabel = "implicit", ""
	}
	if l.Chosen != "" {
		long.Chosen = chosenColumn
	}
	return u, &long, nil
}

func (u *unfolded) Header() []string { return u.names }

func (u *unfolded) Line(number int) int { return u.Table.Line(number / len(u.labels)) }

func (u *unfolded) Next(columns []int) (*table.Batch, error) {
	if u.place == nil {
		u.choose(columns)
	}
	w, err := u.Table.Next(u.wide)
	if err != nil {
		return nil, err
	}
	n := len(u.labels)
	b := &u.batch
	b.First, b.N = w.First*n, w.N*n
	for k, j := range columns {
		c := &b.Columns[k]
		c.Number, c.Text = c.Number[:0], c.Text[:0]
		switch u.names[j] {
		case choiceColumn:
			for i := range b.N {
				c.Number = append(c.Number, float64(b.First/n+i/n))
			}
		case labelColumn:
			for range w.N {
				c.Text = append(c.Text, u.labels...)
			}
		case chosenColumn:
			if err := u.indicators(c, w); err != nil {
				return nil, err
			}
		default:
			if err := u.spread(c, u.from[j], w); err != nil {
				return nil, err
			}
		}
		if len(c.Text) == 0 {
			c.Text = nil
		}
	}
	return b, nil
}

// choose finds the columns of the wide table that the given columns need.
func (u *unfolded) choose(columns []int) {
	u.place = slices.Repeat([]int{-1}, len(u.Table.Header()))
	add := func(j int) {
		if j >= 0 && u.place[j] < 0 {
			u.place[j] = len(u.wide)
			u.wide = append(u.wide, j)
		}
	}
	add(u.chosen)
	add(u.kept)
	for _, j := range columns {
		if j < len(u.from) {
			for _, from := range u.from[j] {
				add(from)
			}
		}
	}
	u.batch.Columns = make([]table.Column, len(columns))
}

// indicators stores in c whether each alternative was chosen.
func (u *unfolded) indicators(c *table.Column, w *table.Batch) error {
	known := slices.Clone(u.labels)
	if u.layout.OutsideLabel != "" {
		known = append(known, u.layout.OutsideLabel)
	}
	labels := &w.Columns[u.place[u.chosen]]
	for i := range w.N {
		if u.kept >= 0 && w.Columns[u.place[u.kept]].Number[i] == 0 { // whatever its label
			for range u.labels {
				c.Number = append(c.Number, 0)
			}
			continue
		}
		label := u.layout.label(labels.String(i))
		if labels.Missing(i) {
			label = ""
		}
		if !slices.Contains(known, label) && !(label == "" && u.layout.Outside == "implicit") {
			return fmt.Errorf("%s: column %s: %q is not one of the alternatives %s",
				table.At(u.Table, w.First+i), u.layout.Chosen, label, strings.Join(u.layout.Alternatives, ", "))
		}
		for _, a := range u.labels {
			c.Number = append(c.Number, indicator(a == label))
		}
	}
	return nil
}

// lacking names the first column that the wide table lacks for an expression of an alternative, "" if it lacks none.
func (u *unfolded) lacking(source, label string) string {
	k := slices.Index(u.labels, label)
	for v, from := range u.from {
		if from[k] < 0 && uses(source, u.names[v:v+1]) {
			return strings.NewReplacer("{alternative}", label, "{variable}", u.names[v]).Replace(u.layout.Names)
		}
	}
	return ""
}

// mixed names the first value that makes a variable text for an alternative, while it is a number for others.
func (u *unfolded) mixed(source []*table.Column, from []int, w *table.Batch) error {
	at := slices.IndexFunc(source, func(c *table.Column) bool { return c != nil && c.Text != nil })
	column := u.Table.Header()[from[at]]
	for i, text := range source[at].Text {
		if _, err := table.ParseNumber(text); err != nil {
			return fmt.Errorf("%s: column %s: %w, but other alternatives have numbers", table.At(u.Table, w.First+i), column, err)
		}
	}
	return fmt.Errorf("column %s is text, and other alternatives have numbers", column)
}

// spread stores a variable in c: for each row of w, its values for the alternatives.
func (u *unfolded) spread(c *table.Column, from []int, w *table.Batch) error {
	source := make([]*table.Column, len(from))
	text, number := false, false
	for k, j := range from {
		if j >= 0 {
			source[k] = &w.Columns[u.place[j]]
			text = text || source[k].Text != nil
			number = number || slices.ContainsFunc(source[k].Number, func(n float64) bool { return !math.IsNaN(n) })
		}
	}
	if text && number {
		return u.mixed(source, from, w)
	}
	for i := range w.N {
		for _, s := range source {
			switch {
			case text && (s == nil || s.Text == nil): // or all cells are empty
				c.Text = append(c.Text, "")
			case s == nil:
				c.Number = append(c.Number, nan)
			case text:
				c.Text = append(c.Text, s.Text[i])
			default:
				c.Number = append(c.Number, s.Number[i])
			}
		}
	}
	return nil
}
