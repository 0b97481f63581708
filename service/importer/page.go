package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/table"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/importer/cell"
	"vitrine/service/offer"
)

// pageRows is a decision as its columns hold it: the values of the decision, and lists with a value for each of its
// items. It comes from the rows of a table, or from a line with lists.
type pageRows struct {
	id     string
	place  string // in the file; "" if the caller adds it to errors
	text   []byte // of a decision without an id in the file
	fields fields
	lists  map[string][]api.Value
	rows   []row    // in place of lists; nil if the page is a line
	taken  []string // the items taken, if other rows than theirs tell; nil otherwise
}

func newPage(id, place string) *pageRows {
	return &pageRows{id: id, place: place, fields: fields{}, lists: map[string][]api.Value{}}
}

// at adds the place of an item to an error.
func (p *pageRows) at(i int, err error) error {
	place := p.place
	if i < len(p.rows) {
		place = p.rows[i].place
	}
	if err == nil || place == "" {
		return err
	}
	return fmt.Errorf("%s: %w", place, err)
}

// list returns the values of a column, one for each item.
func (p *pageRows) list(column string) []api.Value {
	if p.rows == nil {
		return p.lists[column]
	}
	values := make([]api.Value, len(p.rows))
	for i, r := range p.rows {
		values[i] = r.fields[column]
	}
	return values
}

// get returns the list of a column, or its only value as a list.
func (p *pageRows) get(column string) []api.Value {
	if v := p.fields[column]; p.rows == nil && p.lists[column] == nil && v.Kind != api.Missing {
		return []api.Value{v}
	}
	return p.list(column)
}

// addRow adds a row of a table.
func (p *pageRows) addRow(r row) {
	if p.rows == nil {
		p.fields = r.fields
	}
	p.rows = append(p.rows, r)
}

var (
	maxRows  = 1_000_000 // of a page
	maxCells = 1 << 20   // of the lists of a line, or as many as the line has bytes
)

type row struct {
	place  string
	fields fields
}

// rows calls each for the rows of a table, in the order of the file or sorted, after begin.
func (s *source) rows(file *os.File, begin func(header []string) error, each func(row) error) error {
	if s.sorted != nil && file == s.file {
		if err := begin(s.header); err != nil {
			return err
		}
		return s.sorted.Each(func(record []byte) error {
			r, err := decodeRow(record[keySize:], s.header)
			if err = cmp.Or(s.ctx.Err(), err); err != nil {
				return err
			}
			return each(r)
		})
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	t, err := table.Open(file, table.Options{Delimiter: s.mapping.Delimiter, Names: s.mapping.Header, Texts: true})
	if err != nil {
		return err
	}
	header := t.Header()
	s.nested = t.Nested()
	if err := begin(header); err != nil {
		return fmt.Errorf("%s 1: %w", t.Unit(), err)
	}
	return table.Each(t, func(at string, b *table.Batch, i int) error {
		r := row{at, make(fields, len(header))}
		for j, name := range header {
			switch c := &b.Columns[j]; {
			case name == "" || c.Missing(i): // a column without a name, such as an index, is no role's
			case c.Text != nil:
				r.fields[name] = api.Text("", c.Text[i])
			default:
				r.fields[name] = api.Number("", c.Number[i])
			}
		}
		return cmp.Or(s.ctx.Err(), each(r))
	})
}

// pages groups consecutive rows that share the value of a column, which begin returns; "" makes a page of each row.
func (s *source) pages(begin func(header []string) (key string, err error), each func(*pageRows) error) error {
	var open *pageRows
	var key string
	end := func() (err error) {
		if open != nil {
			err = each(open)
			open = nil
		}
		return err
	}
	number := 0
	err := s.rows(s.file, func(header []string) (err error) {
		key, err = begin(header)
		return err
	}, func(r row) error {
		number++
		id := "row-" + strconv.Itoa(number)
		if key != "" {
			if id = cell.Text(r.fields[key]); id == "" {
				return fmt.Errorf("%s: column %s is empty: it identifies the decision", r.place, key)
			}
		}
		if open == nil || open.id != id {
			if err := end(); err != nil {
				return err
			}
			open = newPage(id, r.place)
			if key == "" {
				open.text = r.fields.text()
			}
		}
		if open.addRow(r); len(open.rows) > maxRows {
			return fmt.Errorf("%s: decision %.40q has more than %d rows: does column %s identify decisions?", r.place, id,
				maxRows, key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return end()
}

// readTable reads a table with a row for each item.
func readTable(s *source) error {
	return s.pages(s.resolve, func(p *pageRows) error {
		if e := s.mapping.Events; e != nil {
			p = p.views(e, s.columns)
		}
		return s.addPage(p)
	})
}

// addPage adds the decision of a page.
func (s *source) addPage(p *pageRows) error {
	f, err := s.found(p)
	if err != nil {
		return err
	}
	err = s.add(f)
	return p.at(f.row, err)
}

// resolve finds the columns of a table in its header, and returns the one that identifies a decision.
func (s *source) resolve(header []string) (key string, err error) {
	m := s.mapping
	s.columns, s.ours = m.Columns, slices.Contains(header, "sampling_law")
	c := &s.columns
	named := []string{c.Decision, c.Item, c.Chosen, c.Time, c.Shown, c.Units, c.Value, c.Revenue, c.Propensity}
	type role struct{ field, name string }
	var others []role
	if m.Events != nil {
		others = append(others, role{"events.column", m.Events.Column})
	}
	if l := m.Law; l != nil {
		others = append(others, role{"sampling_law.page", l.Page}, role{"sampling_law.propensity",
			l.itemPropensity()}, role{"sampling_law.slot", l.Slot})
	}
	for _, o := range others {
		named = append(named, o.name)
	}
	for usual, name := range map[string]*string{
		"decision_id": &c.Decision, "item": &c.Item, "chosen": &c.Chosen, "time": &c.Time, "shown": &c.Shown,
		"units": &c.Units, "units_value": &c.Value, "revenue": &c.Revenue, "propensity": &c.Propensity,
	} {
		isNeeded := usual == "decision_id" || usual == "item" || usual == "chosen" && m.Events == nil
		switch {
		case *name == noColumn:
			*name = ""
		case *name == "" && (isNeeded || slices.Contains(header, usual) && !slices.Contains(named, usual)):
			*name = usual
		}
	}
	if err := s.use(header, c.Decision, c.Item, c.Chosen, c.Time, c.Shown, c.Units, c.Value, c.Revenue,
		c.Propensity); err != nil {
		return "", fmt.Errorf("name it in [columns] of the mapping: %w", err)
	}
	for _, f := range slices.Sorted(maps.Keys(m.Features)) {
		others = append(others, role{"features." + f, m.Features[f]})
	}
	for _, o := range others {
		if o.name != "" && !slices.Contains(header, o.name) {
			return "", fmt.Errorf("%s: %w", o.field, table.NoColumn(o.name, header, s.nested))
		}
		s.used[o.name] = s.used[o.name] || !strings.HasPrefix(o.field, "features.")
	}
	for _, f := range s.config.Features {
		if s.survey == nil && m.Features[f.Name] == "" && f.Kind != "cross" && f.Kind != "object" && f.Default == nil &&
			!slices.Contains(header, f.Name) && !slices.Contains(header, "user."+f.Name) {
			return "", fmt.Errorf("feature %s: name its column in [features] of the mapping, or give it a default: %w",
				f.Name, table.NoColumn(f.Name, header, s.nested))
		}
	}
	s.used["status"] = true
	for name := range exportedOnly {
		s.used[name] = s.used[name] || s.ours
	}
	return c.Decision, nil
}

// exportedOnly are columns of vitrine export's tables that are neither features nor in [Columns].
var exportedOnly = map[string]bool{"entry": true, "source": true, "item_propensity": true, "sampling_law": true,
	"outcome_time": true, "earned": true, "variant": true}

// see notes columns. Beyond maxColumns they are dropped: lines of JSON may contain as many paths as there are lines.
func (s *source) see(names iter.Seq[string]) {
	for name := range names {
		if len(s.seen) < maxColumns {
			s.seen[name] = true
		}
	}
}

// use marks columns of a header as used. The error names a column that is missing.
func (s *source) use(header []string, names ...string) error {
	for _, name := range names {
		if name != "" && !slices.Contains(header, name) {
			return table.NoColumn(name, header, s.nested)
		}
		s.used[name] = true
	}
	s.see(slices.Values(header))
	return nil
}

// views returns the page of the rows that show items, each for the first time, with the items that other rows take, and
// with their units and values.
func (p *pageRows) views(e *Events, c Columns) *pageRows {
	v := newPage(p.id, p.place)
	v.fields, v.rows, v.taken = p.fields, []row{}, []string{}
	shown, taken := map[string]bool{}, map[string]fields{}
	for _, r := range p.rows {
		id, kind := cell.Text(r.fields[c.Item]), cell.Text(r.fields[e.Column])
		if kind == e.Chosen && taken[id] == nil {
			taken[id] = r.fields
			v.taken = append(v.taken, id)
		}
		if kind == e.Shown && !shown[id] {
			shown[id] = true
			v.rows = append(v.rows, r)
		}
	}
	for i := range v.rows {
		r := &v.rows[i]
		for _, column := range []string{c.Units, c.Value} {
			if from := taken[cell.Text(r.fields[c.Item])]; from != nil && column != "" {
				r.fields = maps.Clone(r.fields)
				r.fields[column] = from[column]
			}
		}
	}
	return v
}

// found returns the decision of a page by the source's columns.
func (s *source) found(p *pageRows) (*found, error) {
	c := s.columns
	f := &found{id: p.id, text: p.text, user: p.fields}
	for i, v := range p.get(c.Time) {
		at, err := cell.Time(c.Time, v)
		if err != nil {
			return nil, p.at(i, err)
		}
		if i == 0 {
			f.time = at
		}
	}
	ids, flags, err := p.items(c)
	if err != nil {
		return nil, err
	}
	if status := cell.Text(p.fields["status"]); p.rows != nil && slices.Contains(unfinished, status) {
		f.skip = "have the status " + status
	} else if len(ids) == 0 && len(p.taken) == 0 {
		f.skip = "list no items"
	}
	if f.skip != "" {
		return f, nil
	}
	if err := f.addItems(s, p, ids, c); err != nil {
		return nil, err
	}
	if f.shown, err = p.arranged(c.Shown, c.Item, ids); err != nil {
		return nil, err
	}
	if f.taken, err = p.takenOf(c.Chosen, ids, flags); err != nil {
		return nil, err
	}
	if f.skipLarge() {
		return f, nil
	}
	if f.choices, err = p.takes(c, ids, f.taken); err != nil {
		return nil, err
	}
	if p.taken != nil && slices.ContainsFunc(f.taken, func(id string) bool { return !slices.Contains(f.shown, id) }) {
		f.skip = "have an item taken that was not shown"
		return f, nil
	}
	if f.propensity, err = p.propensity(c.Propensity, s.mapping.Columns.Propensity != ""); err != nil {
		return nil, err
	}
	if err = s.oneShopper(p, f); err != nil {
		return nil, err
	}
	if !s.ours { // the rows may start with the items shown, which would then win ties
		slices.SortFunc(f.items, func(a, b foundItem) int { return cmp.Compare(a.id, b.id) })
	}
	f.law, err = s.lawOf(p, f, ids)
	return f, err
}

// oneShopper takes each of the shopper's features from the first row with a value. Another value in a later row is an
// error.
func (s *source) oneShopper(p *pageRows, f *found) error {
	for _, feature := range s.config.Features {
		if feature.From != "shopper" {
			continue
		}
		column := cmp.Or(s.mapping.Features[feature.Name], feature.Name)
		if p.fields[column].Kind == api.Missing && allOf(p.list(column), isMissing) {
			column = "user." + column
		}
		first, _ := cell.Typed(feature.Kind, p.fields[column]) // match reports its error
		for i, r := range p.rows {
			v, err := cell.Typed(feature.Kind, r.fields[column])
			switch {
			case err != nil:
				return p.at(i, fmt.Errorf("column %s: %w", column, err))
			case isMissing(v):
			case isMissing(first):
				first = v
				f.user = maps.Clone(f.user)
				f.user[column] = v
			case v != first:
				return p.at(i, fmt.Errorf("column %s: it is %.40q, and %.40q further up in decision %s: a shopper's feature "+
					"has one value: make it a feature of items", column, cell.Text(v), cell.Text(first), p.id))
			}
		}
	}
	return nil
}

// unfinished lists the states in our tables of decisions without an outcome.
var unfinished = []string{"open", "deferred", "withdrawn", "evicted"}

// items returns the ids of a page's items, and for each whether it was taken if the ids say so, as in "N1-0 N2-1".
func (p *pageRows) items(c Columns) (ids []string, flags []api.Value, err error) {
	list := p.get(c.Item)
	for i, v := range list {
		if c.Chosen == c.Item {
			at := strings.LastIndexAny(v.Text, "-:")
			if at < 0 {
				return nil, nil, p.at(i, fmt.Errorf("column %s: %.40q does not end with -0 or -1", c.Item, v.Text))
			}
			flags = append(flags, api.Text("", v.Text[at+1:]))
			v = api.Text("", v.Text[:at])
		}
		if cell.Text(v) == "" {
			return nil, nil, p.at(i, fmt.Errorf("column %s is empty: it is the item", c.Item))
		}
		ids = append(ids, cell.Text(v))
	}
	return ids, flags, nil
}

func (f *found) addItems(s *source, p *pageRows, ids []string, c Columns) error {
	for _, column := range []string{c.Revenue, c.Units, c.Value} {
		if n := len(p.get(column)); n > 0 && n != len(ids) {
			return p.at(0, fmt.Errorf("column %s has %d values for %d items", column, n, len(ids)))
		}
	}
	seen := map[string]bool{}
	columns := map[string][]api.Value{}
	if p.rows == nil && len(ids) == 1 { // a list of one value looks like a value of the page
		columns[c.Revenue] = p.get(c.Revenue)
		for _, feature := range s.config.Features {
			if column := cmp.Or(s.mapping.Features[feature.Name], feature.Name); feature.From == "item" {
				columns[column] = p.get(column)
			}
		}
		maps.DeleteFunc(columns, func(_ string, list []api.Value) bool { return len(list) != 1 })
	}
	for name, list := range p.lists {
		if len(list) == len(ids) {
			columns[name] = list
		}
	}
	for i, id := range ids {
		if seen[id] {
			return p.at(i, fmt.Errorf("decision %s has item %q twice", f.id, id))
		}
		seen[id] = true
		item := foundItem{id: id, row: i}
		if p.rows != nil {
			item.fields = p.rows[i].fields
		} else {
			item.fields = fields{}
			for name, list := range columns {
				item.fields[name] = list[i]
			}
			item.fields[c.Item] = api.Text("", id)
		}
		var err error
		if item.revenue, err = cell.Revenue(c.Revenue, item.fields[c.Revenue]); err != nil {
			return p.at(i, err)
		}
		if item.revenue == nil && c.Revenue != "" && p.rows != nil {
			return p.at(i, fmt.Errorf("column %s is empty: every item needs its revenue, also one that was not taken. "+
				"To count each as 1, leave the column out", c.Revenue))
		}
		f.items = append(f.items, item)
	}
	return nil
}

// ofItems reports whether a column holds a value for each item rather than a list of items: any column of a table, or a
// member of the objects that list the items.
func (p *pageRows) ofItems(column, item string) bool {
	return p.rows != nil || parent(column) != "" && parent(column) == parent(item)
}

// arranged returns the items on a page in their order: all in the order of the file if the column is "", or by a column
// that lists them or holds their positions.
func (p *pageRows) arranged(column, item string, ids []string) (list []string, err error) {
	values := p.get(column)
	switch {
	case column == "":
		return ids, nil
	case !p.ofItems(column, item):
		for _, v := range values {
			list = append(list, cell.Text(v))
		}
		return list, nil
	case len(values) != len(ids):
		return nil, p.at(0, fmt.Errorf("column %s has %d values for %d items", column, len(values), len(ids)))
	}
	order := map[string]float64{}
	for i, id := range ids {
		at, err := cell.Position(column, values[i], float64(i+1))
		if err != nil {
			return nil, p.at(i, err)
		}
		if at > 0 {
			order[id] = at
			list = append(list, id)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(order[a], order[b]) })
	return list, nil
}

// takenOf returns the items that were taken: a column holds the id of one, a list of ids, or a condition for each item.
func (p *pageRows) takenOf(column string, ids []string, flags []api.Value) (taken []string, err error) {
	list := p.get(column)
	switch {
	case p.taken != nil:
		return p.taken, nil
	case flags == nil && (p.rows != nil || len(list) == len(ids) && allOf(list, cell.IsFlag)):
		flags = list
	case flags == nil:
		for _, v := range list {
			if text := cell.Text(v); text != "" {
				taken = append(taken, text)
			}
		}
		return taken, nil
	}
	for i, v := range flags {
		is, err := cell.Flag(column, v)
		if err != nil {
			return nil, p.at(i, err)
		}
		if is {
			taken = append(taken, ids[i])
		}
	}
	return taken, nil
}

// takes returns the items taken with their units and values, as far as the columns have them.
func (p *pageRows) takes(c Columns, ids, taken []string) (choices []api.Choice, err error) {
	if c.Units == "" && c.Value == "" {
		return nil, nil
	}
	units, values := p.get(c.Units), p.get(c.Value)
	number := func(list []api.Value, i int) (n float64, text string) {
		if len(list) == len(ids) {
			text = cell.Text(list[i])
		}
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n, text
		}
		return math.NaN(), text
	}
	for i, id := range ids {
		if !slices.Contains(taken, id) {
			if n, text := number(units, i); n > 0 && p.taken == nil {
				return nil, p.at(i, fmt.Errorf("column %s: %.40q of an item that was not taken: correct the row, or ignore "+
					`the column with units = "-"`, c.Units, text))
			}
			continue
		}
		choice := api.Choice{Item: id}
		if n, text := number(units, i); text != "" {
			if !(n >= 1 && n <= eventlog.MaxQuantity) || n != math.Trunc(n) {
				return nil, p.at(i, fmt.Errorf("column %s: %.40q is not a number of units from 1 to %d", c.Units, text,
					eventlog.MaxQuantity))
			}
			choice.Quantity = new(int(n))
		}
		if v, text := number(values, i); text != "" {
			err := api.CheckAmount("column "+c.Value, v, 0)
			if math.IsNaN(v) {
				err = fmt.Errorf("column %s: %.40q is not a number", c.Value, text)
			}
			if err != nil {
				return nil, p.at(i, err)
			}
			choice.Value = &v
		}
		if choice.Quantity != nil || choice.Value != nil {
			choices = append(choices, choice)
		}
	}
	return choices, nil
}

// propensity returns the propensity of the page, the same in all rows that hold one; 0 if the column is "", or empty and
// not required.
func (p *pageRows) propensity(column string, required bool) (propensity float64, err error) {
	if column == "" {
		return 0, nil
	}
	for i, v := range p.get(column) {
		if n, err := cell.Typed("number", v); err == nil && isMissing(n) {
			continue
		}
		q, err := cell.Probability(column, v)
		if err == nil && propensity > 0 && q != propensity {
			err = fmt.Errorf("column %s: the propensity is %v, and %v further up in decision %s", column, q, propensity, p.id)
		}
		if err != nil {
			return 0, p.at(i, err)
		}
		propensity = q
	}
	if propensity == 0 && required {
		_, err = cell.Probability(column, api.Value{})
	}
	return propensity, p.at(0, err)
}

// lawOf returns the law of a page: the page's own law in our tables, or the law of the mapping's columns.
func (s *source) lawOf(p *pageRows, f *found, ids []string) (d *offer.SamplingLaw, err error) {
	if v, ok := p.fields["sampling_law"]; ok && p.rows != nil {
		var l offer.NamedLaw
		err := json.Unmarshal([]byte(v.Text), &l, json.RejectUnknownMembers(true))
		if err == nil {
			d, err = l.Of(ids)
		}
		if err != nil {
			err = p.at(0, fmt.Errorf("column sampling_law: %w", err))
		}
		return d, err
	}
	switch l := s.mapping.Law; {
	case l == nil:
	case l.Page != "":
		page, err := p.arranged(l.Page, s.columns.Item, ids)
		if err != nil {
			return nil, err
		}
		d, err := l.of(page, idsOf(f.items))
		return d, p.at(0, err)
	case l.Draw == "items":
		column := l.itemPropensity()
		probabilities, slots := make([]float64, len(ids)), make([]string, len(ids))
		for i, item := range f.items {
			n, ok := cell.Number(item.fields[column])
			if !ok || !(n >= 0 && n <= 1) {
				return nil, p.at(item.row, fmt.Errorf("column %s: %.40q is no probability", column,
					cell.Text(item.fields[column])))
			}
			probabilities[i], slots[i] = n, cell.Text(item.fields[l.Slot])
		}
		d, err := drawOfItems(probabilities, slots)
		return d, p.at(0, err)
	}
	return nil, nil
}

// readSessions reads lines that are a decision each, with lists of their items: JSON Lines, or CSV with lists in its
// fields.
func readSessions(s *source) error {
	s.columns = s.mapping.Columns
	c := &s.columns
	for _, name := range []*string{&c.Time, &c.Shown, &c.Units, &c.Value, &c.Revenue, &c.Propensity} {
		if *name == noColumn {
			*name = ""
		}
	}
	if c.Item == "" || c.Chosen == "" {
		return errors.New("sessions need columns.item, the list of items, and columns.chosen, the items taken, in " +
			"the mapping")
	}
	session := func(p *pageRows) error {
		if c.Decision != "" {
			p.text = nil
			if p.id = cell.Text(p.fields[c.Decision]); p.id == "" {
				return p.at(0, fmt.Errorf("column %s is empty: it identifies the decision", c.Decision))
			}
		}
		return s.addPage(p)
	}
	named := []string{c.Decision, c.Time, c.Item, c.Shown, c.Chosen, c.Units, c.Value, c.Revenue, c.Propensity}
	r, err := text(s.file)
	if err != nil {
		return err
	}
	if head, _ := r.Peek(1 << 10); !strings.HasPrefix(strings.TrimLeft(string(head), " \t\r\n"), "{") {
		return s.rows(s.file, func(header []string) error { return s.use(header, named...) }, func(r row) error {
			return session(s.listed(r))
		})
	}
	for _, name := range named {
		s.used[name] = true
	}
	err = s.lines(func(place string, text []byte) error {
		p := newPage(idOf(place), "")
		p.text = text
		if err := p.flatten(text); err != nil {
			return api.JSONError(err)
		}
		s.see(maps.Keys(p.fields))
		s.see(maps.Keys(p.lists))
		return session(p)
	})
	for _, name := range []string{c.Time, c.Revenue, c.Units, c.Value} {
		isMember := parent(name) != "" // which all objects may lack
		if err == nil && name != "" && !isMember && !s.seen[name] && len(s.seen) > 0 && len(s.seen) < maxColumns {
			err = fmt.Errorf("no line has a value of %q, which the mapping names in [columns]", name)
		}
	}
	return err
}

// idOf turns the place of a decision into its name in errors, for files without ids.
func idOf(place string) string { return strings.ReplaceAll(place, " ", "-") }

// listed returns the page of a row with lists in some fields: JSON in brackets, or texts with the mapping's separator.
func (s *source) listed(r row) *pageRows {
	p := newPage(idOf(r.place), r.place)
	c := s.mapping.Columns
	if c.Decision == "" {
		p.text = r.fields.text()
	}
	for name, v := range r.fields {
		separator := s.mapping.List
		switch name {
		case c.Item, c.Shown, c.Chosen, c.Revenue:
		case c.Decision, c.Time, c.Propensity:
			p.fields[name] = v
			continue
		default:
			if separator == " " { // of words
				separator = ""
			}
		}
		if list, ok := listOf(cell.Text(v), separator); ok {
			p.lists[name] = list
		} else {
			p.fields[name] = v
		}
	}
	return p
}

// listOf parses a list of values: JSON, as Python prints it, or with a separator.
func listOf(text, separator string) (values []api.Value, ok bool) {
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		var list []jsontext.Value
		if json.Unmarshal([]byte(text), &list) == nil {
			for _, v := range list {
				value, err := scalar(v)
				if err != nil {
					return nil, false
				}
				values = append(values, value)
			}
			return values, true
		}
		if text = strings.TrimSpace(text[1 : len(text)-1]); text == "" {
			return nil, true
		}
		if separator = ","; !strings.Contains(text, ",") && strings.Contains(text, " ") {
			separator = " "
		}
	} else if separator == "" || !strings.Contains(text, separator) {
		return nil, false
	}
	parts := strings.Split(text, separator)
	if separator == " " {
		parts = strings.Fields(text)
	}
	for _, part := range parts {
		values = append(values, api.Text("", strings.Trim(strings.TrimSpace(part), `'"`)))
	}
	return values, true
}

// flatten adds the values of an object by their paths. A list of objects is a list for each of their members,
// "items.price".
func (p *pageRows) flatten(text jsontext.Value) error {
	if text.Kind() != '{' {
		return errors.New("want an object")
	}
	cells, most := 0, max(maxCells, len(text))
	err := walk(text, place{}, func(at place, v api.Value) {
		switch at.lists {
		case 0:
			p.fields[at.path] = v
		case 1:
			if len(p.lists[at.path]) != at.n {
				if cells = min(cells+at.n, most+1); cells > most { // the sum would overflow 32 bits
					return
				}
				p.lists[at.path] = make([]api.Value, at.n)
			}
			p.lists[at.path][at.i] = v
		}
	})
	if cells > most {
		return fmt.Errorf("its lists of objects have more than %d members for all objects together: name members alike, "+
			"or leave out the others", most)
	}
	return err
}

// parent returns the list of objects of a path, "items" of "items.price".
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// readOBP reads the log of Open Bandit Pipeline: a row for each item shown, and the items in a file of their own. Rows
// of one decision_id are a decision, and without this column every row is one.
func readOBP(s *source) error {
	if s.mapping.Items == "" {
		return errors.New("the format obp needs the items: set items = \"item_context.csv\" in the mapping")
	}
	items, known, err := s.obpItems()
	if err != nil {
		return fmt.Errorf("%s: %w", s.mapping.Items, err)
	}
	s.columns = Columns{Time: "timestamp", Item: "item_id", Chosen: "click"}
	return s.pages(func(header []string) (key string, err error) {
		if slices.Contains(header, "decision_id") {
			key = "decision_id"
		}
		for _, name := range []string{"timestamp", "position", "decision_id"} {
			s.used[name] = true
		}
		return key, s.use(header, "item_id", "click", "propensity_score")
	}, func(p *pageRows) error {
		f, err := s.found(p)
		if err != nil {
			return err
		}
		for _, shown := range f.items {
			if !known[shown.id] {
				return p.at(shown.row, fmt.Errorf("item_id %q is not in %s", shown.id, s.mapping.Items))
			}
			if f.propensity, err = cell.Probability("propensity_score", shown.fields["propensity_score"]); err != nil {
				return p.at(shown.row, err)
			}
		}
		if s.several { // the propensities belong to items
			f.propensity = 0
		}
		f.items = nil
		for _, item := range items {
			item.fields = maps.Clone(item.fields)
			if affinity := "user-item_affinity_" + item.id; p.fields[affinity].Kind != api.Missing {
				item.fields["user-item_affinity"] = p.fields[affinity]
				s.used[affinity] = true
			}
			f.items = append(f.items, item)
		}
		return p.at(0, s.add(f))
	})
}

// obpItems reads the items of a log of Open Bandit Pipeline, and their ids.
func (s *source) obpItems() (items []foundItem, known map[string]bool, err error) {
	file, err := os.Open(s.mapping.Items)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	known = map[string]bool{}
	s.used["revenue"] = true
	err = s.rows(file, func(header []string) error { return s.use(header, "item_id") }, func(r row) error {
		item := foundItem{id: cell.Text(r.fields["item_id"]), fields: r.fields}
		if item.id == "" || known[item.id] {
			return fmt.Errorf("%s: item_id %q is empty or a duplicate", r.place, item.id)
		}
		var err error
		if item.revenue, err = cell.Revenue("revenue", item.fields["revenue"]); err != nil {
			return fmt.Errorf("%s: %w", r.place, err)
		}
		known[item.id] = true
		items = append(items, item)
		return nil
	})
	return items, known, err
}
