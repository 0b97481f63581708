package choice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"vitrine/internal/kernel"
	"vitrine/internal/table"
)

// maxAlternatives is the maximum number of labels: a column with more does not contain labels.
const maxAlternatives = 10_000

var nan = math.NaN()

// Variable is an expression over a table's columns, and the alternatives that use it in their utilities. It may be
// missing in the rows of others.
type Variable struct {
	Expression   string
	Alternatives []string // nil means all
}

// Progress is called with the amount of a file read so far, and its size, in the same unit.
type Progress func(done, total int64)

// Read reads the variables and the choices from the table at path: CSV, Parquet or JSON Lines, plain or compressed with
// gzip or zstd. progress may be nil. Errors name the file, the row and the column. It is an error if no alternative is
// chosen, or several are, or one that is not available; if a value is missing or not finite; and if a choice's rows are
// not consecutive.
func Read(ctx context.Context, path string, l Layout, variables []Variable, progress Progress) (*Data, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, err := read(ctx, f, &l, variables, progress)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return d, err
}

func read(ctx context.Context, f *os.File, l *Layout, variables []Variable, progress Progress) (*Data, error) {
	ids := append(slices.Clone(l.Choice), l.Alternative, l.Panel, l.Cluster)
	if l.Form == "wide" {
		ids = append(ids, l.Chosen)
	}
	t, err := table.Open(f, table.Options{Delimiter: l.Delimiter, IDs: ids})
	if err != nil {
		return nil, err
	}
	if l.Form == "wide" {
		if t, l, err = unfold(t, l); err != nil {
			return nil, err
		}
	}
	if l.each {
		if l, err = l.among(t, variables); err != nil {
			return nil, err
		}
	}
	r, err := newReader(t, l, variables)
	if err != nil {
		return nil, err
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b, err := t.Next(r.columns)
		if errors.Is(err, io.EOF) {
			return r.finish()
		} else if err != nil {
			return nil, err
		}
		if err := r.batch(b); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(t.Progress())
		}
	}
}

// reader assembles choices from the rows of a long table.
type reader struct {
	t       table.Table
	layout  *Layout
	builder *Builder

	frame   frame // the table's columns, the columns that the reader fills, and the derived ones
	columns []int // columns of the frame to read from the table
	// columns of the frame for alternative and position; -1 if the table has such a column, or it is unused
	fill    [2]int
	derived []*computed // additional columns

	key, alternative, panel, cluster  []int // columns of the frame; at most one each, except for key
	filter, available, chosen, weight *computed
	variables                         []*computed
	needed                            [][]bool // by variable, then by label; nil for all labels

	labels, panels, clusters numbering
	excluded                 map[int]bool // by label to exclude: whether a row offers it
	outside                  int          // label of the outside option, or -1
	number                   []int        // by label: 1 + its index in the data; 0 if excluded
	latest                   []int        // by label: the last choice that contains it
	choices                  int          // number of choices begun

	first  int          // number of the batch's first row
	place  int          // position of the last row in its choice, from 1
	last   []keyPart    // key of the last row
	usual  []usualLabel // by position in a choice
	begins []bool       // by row of the batch: whether it begins a choice
	label  []int        // by row of the batch
	check  []bool       // by variable: whether some values are not finite, or not needed
	plain  bool         // whether no variable needs checking
	run    [2]int       // rows [from, to) of the batch that are in the data, but not yet with their variables
	x      []float64    // variables in a row

	open openChoice
	past keys
}

// computed is an expression and the specification's field that contains it.
type computed struct {
	*expression
	field string
	slot  int       // column of the frame that it fills, if derived
	value []float64 // by row of the batch
}

// resolver finds names in a header, and keeps the first error.
type resolver struct {
	names  []string
	nested []string // nested columns, which the table leaves out
	used   map[int]bool
	err    error
}

func (r *resolver) expression(field, source string) *computed {
	if source == "" || r.err != nil {
		return nil
	}
	e, err := parseExpression(source, r.names, r.nested)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", field, err)
		return nil
	}
	for _, slot := range e.slots {
		r.used[slot] = true
	}
	return &computed{expression: e, field: field}
}

func (r *resolver) column(field string, names ...string) (slots []int) {
	for _, name := range names {
		if name == "" || r.err != nil {
			continue
		}
		slot := slices.Index(r.names, name)
		if slot < 0 {
			r.err = fmt.Errorf("%s: %w", field, unknownColumn(name, r.names, r.nested))
		}
		r.used[slot] = true
		slots = append(slots, slot)
	}
	return slots
}

// newReader resolves the names in a layout and in variables against a long table's header.
func newReader(t table.Table, l *Layout, variables []Variable) (*reader, error) {
	header := t.Header()
	r := &reader{t: t, layout: l, outside: -1, excluded: map[int]bool{}}
	names := &resolver{names: slices.Clone(header), nested: t.Nested(), used: map[int]bool{}}
	for k, name := range []string{"alternative", "position"} {
		r.fill[k] = -1
		if !slices.Contains(header, name) {
			r.fill[k] = len(names.names)
			names.names = append(names.names, name)
		}
	}
	for _, entry := range l.Derive {
		name, source, err := derived(entry)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names.names, name) {
			return nil, fmt.Errorf("data.derive: there is a column %q already", name)
		}
		if e := names.expression("data.derive", source); e != nil {
			e.slot = len(names.names)
			r.derived = append(r.derived, e)
		}
		names.names = append(names.names, name)
	}
	r.filter = names.expression("data.filter", l.Filter)
	r.available = names.expression("data.available", l.Available)
	r.chosen = names.expression("data.chosen", l.Chosen)
	r.weight = names.expression("data.weight", l.Weight)
	r.key = names.column("data.choice", l.Choice...)
	r.alternative = names.column("data.alternative", l.Alternative)
	r.panel = names.column("data.panel", l.Panel)
	r.cluster = names.column("data.cluster", l.Cluster)
	labels := make([]string, len(variables))
	for v, variable := range variables {
		labels[v] = variable.Expression
		r.variables = append(r.variables, names.expression("utility", variable.Expression))
	}
	if names.err != nil {
		return nil, names.err
	}
	for j := range header {
		if names.used[j] {
			r.columns = append(r.columns, j)
		}
	}
	for k, slot := range r.fill {
		if slot >= 0 && !names.used[slot] {
			r.fill[k] = -1
		}
	}
	r.frame = frame{names: names.names, columns: make([]table.Column, len(names.names))}
	r.x, r.check = make([]float64, len(variables)), make([]bool, len(variables))

	r.builder = NewBuilder(nil, labels, l.hasOutside())
	r.builder.Panels, r.builder.Clusters = l.Panel != "", l.Cluster != ""
	r.builder.data.Unobserved = l.Chosen == ""
	for _, c := range slices.Concat(r.derived, r.variables) {
		if c.plain && !identifier(c.source) {
			r.builder.data.columns = append(r.builder.data.columns, c.source)
		}
	}
	for _, label := range l.Exclude {
		r.excluded[r.labels.of(label)] = false
	}
	if l.OutsideLabel != "" {
		r.outside = r.labels.of(l.OutsideLabel)
	}
	for _, label := range l.Alternatives {
		r.labels.of(label)
	}
	for v, variable := range variables {
		r.needed = append(r.needed, nil)
		for _, label := range variable.Alternatives {
			n := r.labels.of(label)
			for len(r.needed[v]) <= n {
				r.needed[v] = append(r.needed[v], false)
			}
			r.needed[v][n] = true
		}
	}
	return r, nil
}

// at adds the place of a row in the batch to an error.
func (r *reader) at(i int, format string, args ...any) error {
	return fmt.Errorf("%s: %w", table.At(r.t, r.first+i), fmt.Errorf(format, args...))
}

// compute evaluates an expression on the batch's rows.
func (r *reader) compute(c *computed) error {
	values, i, err := c.numbers(&r.frame)
	switch c.value = values; {
	case err == nil:
		return nil
	case c.plain:
		return r.at(i, "column %s: %w: write numbers as 1234.5, or compare a text, %[1]s == \"text\"", c.source, err)
	case c.program == nil:
		return fmt.Errorf("%s: %w", c.field, err) // not specific to a row
	}
	return r.at(i, "column %s: %w", c.source, err)
}

// batch adds a batch's rows to the choices.
func (r *reader) batch(b *table.Batch) error {
	r.first, r.frame.n = b.First, b.N
	for k, j := range r.columns {
		r.frame.columns[j] = b.Columns[k]
	}
	if err := r.group(); err != nil {
		return err
	}
	for _, d := range r.derived {
		if err := r.compute(d); err != nil {
			return err
		}
		r.frame.columns[d.slot] = table.Column{Number: d.value}
	}
	r.plain = true
	for v, e := range r.variables {
		if err := r.compute(e); err != nil {
			return err
		}
		r.check[v] = r.needed[v] != nil || !allFinite(e.value)
		r.plain = r.plain && !r.check[v]
	}
	for _, c := range []*computed{r.filter, r.available, r.chosen, r.weight} {
		if c == nil {
			continue
		}
		if err := r.compute(c); err != nil {
			return err
		}
	}
	for i := range b.N {
		if r.begins[i] {
			if err := r.end(); err != nil {
				return err
			}
			if err := r.begin(i); err != nil {
				return err
			}
		}
		row, err := r.state(i)
		if err == nil && row.kept {
			err = r.row(i, row)
		}
		if err != nil {
			return err
		}
	}
	r.copyRun()
	return nil
}

// rowState is the result of a layout's conditions for a row.
type rowState struct{ kept, available, chosen bool }

// state returns what the conditions say of a row. It notes a chosen row that is filtered out.
func (r *reader) state(i int) (row rowState, err error) {
	if row.kept, err = r.condition(i, r.filter, true); err != nil {
		return row, err
	}
	if !row.kept {
		if r.chosen != nil && r.chosen.value[i] == 1 {
			r.open.lost = r.t.Line(r.first + i)
		}
		return row, nil
	}
	if row.chosen, err = r.condition(i, r.chosen, false); err != nil {
		return row, err
	}
	if row.available, err = r.condition(i, r.available, true); err != nil {
		return row, err
	}
	if r.open.kept == 0 {
		return row, r.keep(i)
	}
	if w := r.weight; w != nil && w.value[i] != r.open.weight {
		return row, r.at(i, "column %s: the weight is %v, and %v in the first row of %s", w.source, w.value[i],
			r.open.weight, r.name())
	}
	for _, g := range r.groups() {
		for _, slot := range g.slots {
			if c := &r.frame.columns[slot]; !c.Missing(i) && g.numbering.at(c, i, nil) != *g.dst {
				return row, r.at(i, "column %s is %s, and %s in the first row of %s", r.frame.names[slot], c.String(i),
					g.numbering.names[*g.dst], r.name())
			}
		}
	}
	return row, nil
}

// allFinite reports whether all values are finite. It may return false for very large values.
func allFinite(values []float64) bool {
	sum := kernel.Sum(values)
	return sum-sum == 0
}

// condition returns whether a condition holds in a row, and usual without a condition.
func (r *reader) condition(i int, c *computed, usual bool) (bool, error) {
	if c == nil {
		return usual, nil
	}
	switch v := c.value[i]; {
	case math.IsNaN(v):
		return false, r.at(i, "column %s is missing: want 0 or 1 (%s)", c.source, c.field)
	case v != 0 && v != 1:
		return false, r.at(i, "column %s: %v is neither 0 nor 1 (%s)", c.source, v, c.field)
	}
	return c.value[i] == 1, nil
}

// group finds the beginnings of choices in the batch, and each row's label.
func (r *reader) group() error {
	r.begins, r.label = r.begins[:0], r.label[:0]
	var text []string
	var position []float64
	for i := range r.frame.n {
		begins := r.last == nil || r.layout.each
		if r.last == nil {
			r.last = make([]keyPart, len(r.key))
		}
		for k, slot := range r.key {
			c, last := &r.frame.columns[slot], &r.last[k]
			switch {
			case c.Missing(i):
				return r.at(i, "column %s is empty: it identifies the choice", r.frame.names[slot])
			case c.Text != nil && c.Text[i] != last.String(): // which may have been a number
				begins, last.text = true, c.Text[i]
			case c.Text == nil && c.Number[i] != last.number:
				begins, last.number = true, c.Number[i]
			}
		}
		r.begins = append(r.begins, begins)
		if begins {
			r.place = 0
		}
		r.place++

		label, err := r.labelOf(i)
		if err != nil {
			return err
		}
		if len(r.labels.names) > maxAlternatives && !r.layout.each {
			return r.at(i, "column %s has more than %d distinct values: it cannot be the alternative",
				r.layout.Alternative, maxAlternatives)
		}
		r.label = append(r.label, label)
		if r.fill[0] >= 0 {
			text = append(text, r.labels.names[label])
		}
		if r.fill[1] >= 0 {
			position = append(position, float64(r.place))
		}
	}
	if slot := r.fill[0]; slot >= 0 {
		r.frame.columns[slot] = table.Column{Text: text}
	}
	if slot := r.fill[1]; slot >= 0 {
		r.frame.columns[slot] = table.Column{Number: position}
	}
	return nil
}

// labelOf returns a row's label. Without one it is the row's place in its choice, or in a table of items its number.
func (r *reader) labelOf(i int) (int, error) {
	if r.alternative != nil {
		c := &r.frame.columns[r.alternative[0]]
		if !c.Missing(i) {
			return r.labelAt(c, i), nil
		}
		if !r.layout.each || r.layout.labelled {
			return 0, r.at(i, "column %s is empty: it is the alternative", r.frame.names[r.alternative[0]])
		}
	}
	if r.layout.each {
		return r.labels.of(strconv.Itoa(r.first + i + 1)), nil
	}
	return r.labels.of(strconv.Itoa(r.place)), nil
}

// labelAt returns a row's label. Usually it is the label at the same position in the previous choice.
func (r *reader) labelAt(c *table.Column, i int) int {
	for len(r.usual) < r.place {
		r.usual = append(r.usual, usualLabel{number: nan})
	}
	usual := &r.usual[r.place-1]
	if c.Text == nil && c.Number[i] != usual.number || c.Text != nil && c.Text[i] != usual.text {
		*usual = usualLabel{label: r.labels.at(c, i, r.layout.label), number: nan}
		if c.Text == nil {
			usual.number = c.Number[i]
		} else {
			usual.text = c.Text[i]
		}
	}
	return usual.label
}

// usualLabel is the table's text at a position in the previous choice, and its label.
type usualLabel struct {
	number float64
	text   string
	label  int
}

// openChoice is the choice being read.
type openChoice struct {
	place      int       // number of its first row in the file
	key        []keyPart // identifies the choice
	kept       int       // number of rows that the filter kept
	rows       int       // number of those that are available, without the outside option's
	chosen     int       // chosen one among these, or none
	chosenRows int
	outside    bool // whether it contains a row for the outside option
	left       bool // whether the chosen alternative is excluded
	excluded   bool // whether it offers an excluded alternative
	lost       int  // number of a chosen row that the filter dropped, or 0
	weight     float64
	panel      int
	cluster    int
}

// keyed reports whether columns of the file identify choices.
func (r *reader) keyed() bool { return !r.layout.each && r.layout.Choice[0] != choiceColumn }

// name describes the open choice in words.
func (r *reader) name() string {
	if !r.keyed() {
		return "the choice"
	}
	words := make([]string, len(r.key))
	for k := range words {
		words[k] = r.layout.Choice[k] + " " + r.open.key[k].String()
	}
	return strings.Join(words, ", ")
}

// begin opens a choice at row i.
func (r *reader) begin(i int) error {
	r.choices++
	key := r.open.key[:0]
	for _, slot := range r.key {
		if c := &r.frame.columns[slot]; c.Text != nil {
			key = append(key, keyPart{text: c.Text[i]})
		} else {
			key = append(key, keyPart{number: c.Number[i]})
		}
	}
	if r.layout.each {
		r.builder.data.Kept = append(r.builder.data.Kept, false)
	}
	r.open = openChoice{key: key, place: r.t.Line(r.first + i), chosen: none, weight: 1}
	if !r.layout.each && !r.past.add(key) {
		return r.at(i, "%s has rows further up, and others lie between: sort the table by %s", r.name(),
			strings.Join(r.layout.Choice, ", "))
	}
	return nil
}

// group is a column that numbers the choices' decision makers or clusters.
type group struct {
	slots     []int
	numbering *numbering
	dst       *int
}

func (r *reader) groups() [2]group {
	return [2]group{{r.panel, &r.panels, &r.open.panel}, {r.cluster, &r.clusters, &r.open.cluster}}
}

// keep takes the weight and the groups of the open choice from row i, the first that the filter kept.
func (r *reader) keep(i int) error {
	if w := r.weight; w != nil {
		if r.open.weight = w.value[i]; !(r.open.weight >= 0) || math.IsInf(r.open.weight, 1) {
			return r.at(i, "column %s: the weight is %v: want a finite number, at least 0", w.source, r.open.weight)
		}
	}
	for _, g := range r.groups() {
		for _, slot := range g.slots {
			c := &r.frame.columns[slot]
			if c.Missing(i) {
				return r.at(i, "column %s is empty", r.frame.names[slot])
			}
			*g.dst = g.numbering.at(c, i, nil)
		}
	}
	if r.builder.Panels && r.builder.returns(r.open.panel) {
		return r.at(i, "%s %s has choices further up, and others lie between: sort the table by it", r.layout.Panel,
			r.frame.columns[r.panel[0]].String(i))
	}
	return nil
}

// row adds row i to the open choice.
func (r *reader) row(i int, row rowState) error {
	o, label := &r.open, r.label[i]
	name := r.labels.names[label]
	if row.chosen {
		if o.chosenRows++; o.chosenRows > 1 {
			return r.at(i, "%s has two chosen alternatives", r.name())
		}
	}
	o.kept++
	_, isExcluded := r.excluded[label]
	if isExcluded && row.available {
		r.excluded[label], o.excluded = true, true
	}
	switch {
	case row.chosen && isExcluded:
		o.left = true
		return nil
	case row.chosen && !row.available:
		return r.at(i, "%s chose %s, which is not available", r.name(), name)
	case isExcluded || !row.available:
		return nil
	case label == r.outside:
		if r.layout.each {
			return r.at(i, "%s is the outside option, which every page has: leave the row out", name)
		}
		if o.outside {
			return r.at(i, "%s has alternative %s twice", r.name(), name)
		}
		o.outside = true
		return nil
	}
	number, err := r.alternativeOf(label)
	if err != nil {
		return r.at(i, "%w", err)
	}
	if r.latest[label] == r.choices {
		return r.at(i, "%s has alternative %s twice", r.name(), name)
	}
	r.latest[label] = r.choices
	if row.chosen {
		o.chosen = o.rows
	}
	o.rows++
	if r.plain {
		r.builder.open.alt = append(r.builder.open.alt, int32(number))
		if r.run[1] != i {
			r.copyRun()
			r.run[0] = i
		}
		r.run[1] = i + 1
		return nil
	}
	if err := r.evaluate(i, label); err != nil {
		return err
	}
	r.builder.row(number, r.x)
	return nil
}

// evaluate stores the variables of a row in r.x, 0 for those that its alternative does not use.
func (r *reader) evaluate(i, label int) error {
	for v, e := range r.variables {
		r.x[v] = e.value[i]
		switch needed := r.needed[v]; {
		case needed != nil && !(label < len(needed) && needed[label]):
			r.x[v] = 0
		case math.IsNaN(r.x[v]):
			alternative := r.labels.names[label]
			if u, ok := r.t.(*unfolded); ok {
				if column := u.lacking(e.source, alternative); column != "" {
					return r.at(i, "there is no column %s, for alternative %s", column, alternative)
				}
			}
			return r.at(i, "column %s is missing or not a number, for alternative %s", e.source, alternative)
		case math.IsInf(r.x[v], 0):
			return r.at(i, "column %s is %v, for alternative %s", e.source, r.x[v], r.labels.names[label])
		}
	}
	return nil
}

// copyRun adds the variables for the rows in run to the data.
func (r *reader) copyRun() {
	if r.run[0] < r.run[1] {
		for v, e := range r.variables {
			r.builder.x[v] = append(r.builder.x[v], e.value[r.run[0]:r.run[1]]...)
		}
	}
	r.run = [2]int{}
}

// alternativeOf returns a label's index in the data.
func (r *reader) alternativeOf(label int) (int, error) {
	for len(r.number) <= label {
		r.number = append(r.number, 0)
		r.latest = append(r.latest, 0)
	}
	if r.number[label] == 0 {
		d, name := r.builder.data, r.labels.names[label]
		if !utf8.ValidString(name) {
			return 0, fmt.Errorf("the alternative %q is not UTF-8: convert the file", name)
		}
		if l := r.layout.Alternatives; len(l) > 0 && !slices.Contains(l, name) {
			return 0, fmt.Errorf("alternative %q is not in data.alternatives; data.exclude leaves alternatives out",
				name)
		}
		d.Alternatives = append(d.Alternatives, name)
		r.number[label] = len(d.Alternatives)
	}
	return r.number[label] - 1, nil
}

// end closes the open choice.
func (r *reader) end() error {
	o := &r.open
	r.copyRun()
	if o.kept == 0 || r.layout.each && o.rows == 0 {
		return nil
	}
	observed := r.chosen != nil
	switch {
	case o.lost > 0:
		return fmt.Errorf("%s %d: the filter leaves out the chosen row of %s, and not all of its rows: to leave "+
			"an alternative out, use data.exclude", r.t.Unit(), o.lost, r.name())
	case o.left, o.excluded && o.rows == 0:
		r.builder.forget(o.rows)
		r.builder.data.Dropped++
		return nil
	case r.outside >= 0 && !o.outside && !r.layout.each:
		return fmt.Errorf("%s %d: %s has no row of the outside option %s",
			r.t.Unit(), o.place, r.name(), r.layout.OutsideLabel)
	case o.rows == 0 && r.keyed():
		return fmt.Errorf("%s %d: %s has no available alternative among its rows, which must be together",
			r.t.Unit(), o.place, r.name())
	case o.rows == 0:
		return fmt.Errorf("%s %d: %s has no available alternative", r.t.Unit(), o.place, r.name())
	case observed && o.chosenRows == 0 && r.layout.Outside != "implicit":
		return fmt.Errorf("%s %d: %s has no chosen alternative: if nothing was taken, set outside = \"implicit\"",
			r.t.Unit(), o.place, r.name())
	}
	if r.layout.each {
		r.builder.data.Kept[r.choices-1] = true
	}
	r.builder.close(Case{Chosen: o.chosen, Weight: o.weight, Panel: o.panel, Cluster: o.cluster})
	return nil
}

// finish ends the last choice and returns the data.
func (r *reader) finish() (*Data, error) {
	if err := r.end(); err != nil {
		return nil, err
	}
	if len(r.builder.data.Kept) > 0 && r.builder.data.Choices == 0 {
		return nil, errors.New("the model's filter, exclude or available leaves out every row")
	}
	if r.layout.Filter != "" && r.builder.data.Choices == 0 && r.first+r.frame.n > 0 {
		return nil, fmt.Errorf("no row meets the filter %q", r.layout.Filter)
	}
	r.builder.data.PanelNames = r.panels.names
	for _, label := range r.layout.Exclude {
		if !r.excluded[r.labels.of(label)] && !slices.Contains(r.builder.data.Unmet, label) {
			r.builder.data.Unmet = append(r.builder.data.Unmet, label)
		}
	}
	d, err := r.builder.Data()
	if err == nil {
		d.order(r.layout.Alternatives)
	}
	return d, err
}
