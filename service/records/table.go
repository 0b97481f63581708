package records

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"vitrine/service/api"
)

// row is a row of a table.
type row struct {
	place  string
	fields fields
}

// readTable reads a long table.
func readTable(s *source) error {
	t := &table{source: s}
	if err := s.rows(t.begin, t.row); err != nil {
		return err
	}
	return t.close()
}

// rows reads a table with a header: in the order of the file, or sorted.
func (s *source) rows(begin func(header []string) error, each func(row) error) error {
	switch {
	case s.sorted != nil:
		if err := begin(s.header); err != nil {
			return err
		}
		return s.sorted.each(func(_, payload []byte) error {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			r, err := readRow(payload, s.header)
			if err != nil {
				return err
			}
			return each(r)
		})
	case s.format == "parquet":
		return s.parquet(begin, each)
	}
	return s.csv(s.file, begin, each)
}

// csv reads CSV with a header, or with that of the mapping.
func (s *source) csv(file *os.File, begin func(header []string) error, each func(row) error) error {
	r, err := text(file)
	if err != nil {
		return err
	}
	if head, _ := r.Peek(3); string(head) == "\ufeff" {
		r.Discard(3)
	}
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	in.LazyQuotes = s.mapping.Delimiter == "\t" // TSV has no quotes
	if d := s.mapping.Delimiter; d != "" {
		in.Comma = []rune(d)[0]
	}
	explain := func(err error) error {
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			return fmt.Errorf("line %d: %w", parse.Line, parse.Err)
		}
		return damaged(err)
	}
	header := slices.Clone(s.mapping.Header)
	if header == nil {
		if header, err = in.Read(); errors.Is(err, io.EOF) {
			return errors.New("the file is empty")
		} else if err != nil {
			return explain(err)
		}
		header = slices.Clone(header)
	}
	if len(header) == 1 {
		for _, other := range ",;\t|" {
			if other != in.Comma && strings.ContainsRune(header[0], other) {
				return fmt.Errorf("line 1 has one column, %.60q: if columns are separated by %q, set delimiter in the mapping", header[0], other)
			}
		}
	}
	for j, name := range header {
		if header[j] = strings.TrimSpace(name); slices.Contains(header[:j], header[j]) {
			return fmt.Errorf("line 1 has the column %q twice", name)
		}
	}
	if err := begin(header); err != nil {
		return fmt.Errorf("line 1: %w", err)
	}
	for {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return explain(err)
		}
		line, _ := in.FieldPos(0)
		place := "line " + strconv.Itoa(line)
		switch {
		case len(record) != len(header):
			return fmt.Errorf("%s has %d fields, and the header %d", place, len(record), len(header))
		case slices.Equal(record, header):
			return fmt.Errorf("%s repeats the header: remove it", place)
		}
		f := fields{}
		for j, text := range record {
			if text != "" {
				f[header[j]] = api.Text("", text)
			}
		}
		if err := each(row{place, f}); err != nil {
			return err
		}
	}
}

// parquet reads Parquet.
func (s *source) parquet(begin func(header []string) error, each func(row) error) error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	f, err := parquet.OpenFile(s.file, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return damaged(err)
	}
	var header []string
	var values []func(parquet.Value) api.Value
	for _, path := range f.Schema().Columns() {
		leaf, ok := f.Schema().Lookup(path...)
		if len(path) > 1 || !ok || leaf.MaxRepetitionLevel > 0 {
			return fmt.Errorf("column %s is nested: a table has plain columns", strings.Join(path, "."))
		}
		header, values = append(header, path[0]), append(values, parquetValue(leaf.Node.Type()))
	}
	if err := begin(header); err != nil {
		return err
	}
	number := 0
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		defer rows.Close()
		buffer := make([]parquet.Row, 256)
		for {
			if err := s.ctx.Err(); err != nil {
				return err
			}
			n, err := rows.ReadRows(buffer)
			for _, list := range buffer[:n] {
				number++
				f := fields{}
				for _, v := range list {
					if k := v.Column(); !v.IsNull() {
						f[header[k]] = values[k](v)
					}
				}
				if err := each(row{"row " + strconv.Itoa(number), f}); err != nil {
					return err
				}
			}
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return damaged(fmt.Errorf("after row %d: %w", number, err))
			}
		}
	}
	return nil
}

// parquetValue returns how values of a type become those of a table. Timestamps and dates are texts in RFC 3339, without a
// time zone in UTC, and decimals are numbers.
func parquetValue(of parquet.Type) func(parquet.Value) api.Value {
	stamp := func(t time.Time) api.Value { return api.Text("", t.UTC().Format(time.RFC3339Nano)) }
	integer := func(v parquet.Value) int64 {
		if v.Kind() == parquet.Int32 {
			return int64(v.Int32())
		}
		return v.Int64()
	}
	if of.Kind() == parquet.Int96 { // of Spark: the nanoseconds of a day, and its Julian day
		return func(v parquet.Value) api.Value {
			b := v.Int96()
			const epoch = 2440588
			return stamp(time.Unix((int64(b[2])-epoch)*86400, int64(b[1])<<32|int64(b[0])))
		}
	}
	if logical := of.LogicalType(); logical != nil && (of.Kind() == parquet.Int64 || of.Kind() == parquet.Int32) {
		switch l := logical.Value.(type) {
		case *format.TimestampType:
			perSecond := int64(time.Second / l.Unit.Value.Duration())
			return func(v parquet.Value) api.Value {
				n := integer(v)
				return stamp(time.Unix(n/perSecond, n%perSecond*int64(l.Unit.Value.Duration())))
			}
		case *format.DateType:
			return func(v parquet.Value) api.Value { return stamp(time.Unix(integer(v)*86400, 0)) }
		case *format.DecimalType:
			scale := math.Pow10(int(l.Scale))
			return func(v parquet.Value) api.Value { return api.Number("", float64(integer(v))/scale) }
		}
	}
	switch of.Kind() {
	case parquet.Boolean:
		return func(v parquet.Value) api.Value { return api.Text("", strconv.FormatBool(v.Boolean())) }
	case parquet.Int32:
		return func(v parquet.Value) api.Value { return api.Number("", float64(v.Int32())) }
	case parquet.Int64:
		return func(v parquet.Value) api.Value { return api.Text("", strconv.FormatInt(v.Int64(), 10)) }
	case parquet.Float:
		return func(v parquet.Value) api.Value { return api.Number("", float64(v.Float())) }
	case parquet.Double:
		return func(v parquet.Value) api.Value { return api.Number("", v.Double()) }
	}
	return func(v parquet.Value) api.Value { return api.Text("", string(v.ByteArray())) }
}

// table makes decisions of the rows of a long table.
type table struct {
	*source
	columns Columns
	strict  bool // whether the propensity is required
	open    *found
	order   map[string]float64 // of the items shown
	page    []uint32           // the policy's own page, in the items
	p       []float64          // of the law that draws items
	slots   []string
	clicked []string // of events: the items taken
}

// begin finds the columns.
func (t *table) begin(header []string) error {
	t.columns = t.mapping.Columns
	t.strict = t.columns.Propensity != ""
	for _, c := range []struct {
		name     *string
		usual    string
		required bool
	}{
		{&t.columns.Decision, "decision_id", true}, {&t.columns.Item, "item", true}, {&t.columns.Chosen, "chosen", t.mapping.Events == nil},
		{&t.columns.Time, "time", false}, {&t.columns.Shown, "shown", false}, {&t.columns.Revenue, "revenue", false}, {&t.columns.Propensity, "propensity", false},
	} {
		named := *c.name != ""
		if !named {
			*c.name = c.usual
		}
		switch has := slices.Contains(header, *c.name); {
		case has:
			t.used[*c.name] = true
		case named || c.required:
			return fmt.Errorf("there is no column %q: the columns are %q; name it in [columns] of the mapping", *c.name, header)
		default:
			*c.name = ""
		}
	}
	if e := t.mapping.Events; e != nil {
		if !slices.Contains(header, e.Column) {
			return fmt.Errorf("events.column = %q: there is no such column: the columns are %q", e.Column, header)
		}
		t.used[e.Column] = true
	}
	if l := t.mapping.Law; l != nil {
		for _, c := range []struct{ field, name string }{{"page", l.Page}, {"propensity", l.itemPropensity()}, {"slot", l.Slot}} {
			if c.name != "" && !slices.Contains(header, c.name) {
				return fmt.Errorf("law.%s = %q: there is no such column: the columns are %q", c.field, c.name, header)
			}
			t.used[c.name] = true
		}
	}
	for _, name := range []string{"law", "status", "outcome_time", "earned"} {
		t.used[name] = true
	}
	for _, m := range t.report.Features {
		if mapped := t.mapping.Features[m.Feature]; mapped != "" && !slices.Contains(header, mapped) {
			return fmt.Errorf("features.%s = %q: there is no such column: the columns are %q", m.Feature, mapped, header)
		}
	}
	for _, name := range header {
		t.seen[name] = true
	}
	return nil
}

// textOf returns a field as text.
func textOf(v api.Value) string {
	if v.Kind == api.IsNumber {
		return strconv.FormatFloat(v.Number, 'g', -1, 64)
	}
	return v.Text
}

// time returns the time in a column, 0 if the field or the column's name is empty.
func (f fields) time(column string) (at int64, err error) {
	if v := f[column]; column != "" && v.Kind != api.Missing {
		if at, err = moment(textOf(v)); err != nil {
			err = fmt.Errorf("column %s: %w", column, err)
		}
	}
	return at, err
}

// revenue returns the number in a column, nil if the field or the column's name is empty.
func (f fields) revenue(column string) (*float64, error) {
	v := f[column]
	if column == "" || v.Kind == api.Missing {
		return nil, nil
	}
	n, err := typed("number", v)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", column, err)
	}
	return &n.Number, nil
}

// missingColumn returns the first of the named columns that the header lacks, "" if it has them all.
func missingColumn(header []string, names ...string) string {
	return first(names, func(name string) bool { return name != "" && !slices.Contains(header, name) })
}

// flag parses a condition.
func flag(column string, v api.Value) (bool, error) {
	switch strings.ToLower(textOf(v)) {
	case "1", "true", "1.0":
		return true, nil
	case "", "0", "false", "0.0":
		return false, nil
	}
	return false, fmt.Errorf("column %s: %.40q is neither 0 nor 1", column, textOf(v))
}

// row adds a row to the open decision.
func (t *table) row(r row) error {
	id := textOf(r.fields[t.columns.Decision])
	if id == "" {
		return fmt.Errorf("%s: column %s is empty: it identifies the decision", r.place, t.columns.Decision)
	}
	if t.open != nil && t.open.id != id {
		if err := t.close(); err != nil {
			return err
		}
	}
	return t.place(r.place, t.item(id, r))
}

// item adds a row to the decision of an id.
func (t *table) item(id string, r row) error {
	at, err := r.fields.time(t.columns.Time)
	if err != nil {
		return err
	}
	if t.open == nil {
		t.open, t.order = &found{place: r.place, id: id, time: at, user: r.fields}, map[string]float64{}
		t.page, t.p, t.slots, t.clicked = nil, nil, nil, nil
		if status := textOf(r.fields["status"]); slices.Contains([]string{"open", "deferred", "withdrawn", "evicted"}, status) {
			t.open.skip = "have the status " + status
		}
	}
	item := foundItem{id: textOf(r.fields[t.columns.Item]), fields: r.fields}
	if item.id == "" {
		return fmt.Errorf("column %s is empty: it is the item", t.columns.Item)
	}
	again := slices.ContainsFunc(t.open.items, func(o foundItem) bool { return o.id == item.id })
	if e := t.mapping.Events; e != nil {
		kind := textOf(r.fields[e.Column])
		if kind == e.Chosen {
			t.clicked = append(t.clicked, item.id)
		}
		if kind != e.Shown || again {
			return nil
		}
	}
	if item.revenue, err = r.fields.revenue(t.columns.Revenue); err != nil {
		return err
	}
	if again {
		return fmt.Errorf("decision %s has item %q twice", id, item.id)
	}
	t.open.items = append(t.open.items, item)
	shown := float64(len(t.open.items))
	if c := t.columns.Shown; c != "" {
		at, err := position(c, r.fields[c], shown)
		if err != nil {
			return err
		}
		shown = at
	}
	if err := t.drawn(r); err != nil {
		return err
	}
	if shown > 0 {
		t.order[item.id] = shown
		t.open.shown = append(t.open.shown, item.id)
	}
	chosen, err := flag(t.columns.Chosen, r.fields[t.columns.Chosen])
	switch {
	case err != nil:
		return err
	case chosen && shown == 0:
		return fmt.Errorf("decision %s: item %q was chosen and not shown", id, item.id)
	case chosen:
		t.open.taken = append(t.open.taken, item.id)
	}
	if v, ok := r.fields[t.columns.Propensity]; t.columns.Propensity != "" && (ok || t.strict) {
		p, err := probability(t.columns.Propensity, v)
		switch {
		case err != nil:
			return err
		case t.open.propensity != 0 && t.open.propensity != p:
			return fmt.Errorf("column %s: the propensity is %v, and %v in the first row of decision %s", t.columns.Propensity, p, t.open.propensity, id)
		}
		t.open.propensity = p
	}
	return nil
}

// position parses the position of an item on a page: 0 if it is not there, and last for "true".
func position(column string, v api.Value, last float64) (float64, error) {
	switch text := strings.ToLower(textOf(v)); text {
	case "", "false", "0":
		return 0, nil
	case "true":
		return last, nil
	default:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0) {
			return 0, fmt.Errorf("column %s: %.40q is no position", column, text)
		}
		return n, nil
	}
}

// drawn reads what the mapping's law needs of a row.
func (t *table) drawn(r row) error {
	l := t.mapping.Law
	if l == nil {
		return nil
	}
	if l.Page != "" {
		at, err := position(l.Page, r.fields[l.Page], 1)
		if err != nil {
			return err
		}
		if at > 0 {
			t.page = append(t.page, uint32(len(t.open.items)-1))
		}
	}
	if c := l.itemPropensity(); c != "" {
		n, err := typed("number", r.fields[c])
		if err != nil || !(n.Number >= 0 && n.Number <= 1) {
			return fmt.Errorf("column %s: %.40q is no probability", c, textOf(r.fields[c]))
		}
		t.p = append(t.p, n.Number)
		t.slots = append(t.slots, textOf(r.fields[l.Slot]))
	}
	return nil
}

// close ends the open decision.
func (t *table) close() error {
	o := t.open
	if o == nil {
		return nil
	}
	t.open = nil
	for i, id := range t.clicked {
		switch {
		case !slices.Contains(o.shown, id):
			o.skip = "have an item taken that was not shown"
		case !slices.Contains(t.clicked[:i], id):
			o.taken = append(o.taken, id)
		}
	}
	if o.skip != "" {
		return t.source.add(o)
	}
	slices.SortStableFunc(o.shown, func(a, b string) int { return cmp.Compare(t.order[a], t.order[b]) })
	if v, ok := o.items[0].fields["law"]; ok {
		var l law
		err := json.Unmarshal([]byte(v.Text), &l, json.RejectUnknownMembers(true))
		if err == nil {
			o.law, err = l.draw(o.items)
		}
		if err != nil {
			return fmt.Errorf("%s: column law: %w", o.place, err)
		}
	}
	err := error(nil)
	switch l := t.mapping.Law; {
	case l == nil || o.law != nil:
	case l.Page != "":
		o.law = l.of(t.page, len(o.items))
	case l.Draw == "items":
		o.law, err = drawOfItems(t.p, t.slots)
	}
	if err == nil {
		err = t.source.add(o)
	}
	return t.place(o.place, err)
}

// readOBP reads the log of Open Bandit Pipeline: a row for each item shown, and the items in a file
// of their own. Rows of one decision_id are a decision, and without that column every row is one.
func readOBP(s *source) error {
	if s.mapping.Items == "" {
		return errors.New("the format obp needs the items: set items = \"item_context.csv\" in the mapping")
	}
	items, err := s.obpItems()
	if err != nil {
		return fmt.Errorf("%s: %w", s.mapping.Items, err)
	}
	var open *found
	grouped := false
	number := 0
	end := func() (err error) {
		if open != nil {
			err = s.place(open.place, s.add(open))
			open = nil
		}
		return err
	}
	begin := func(header []string) error {
		for _, name := range []string{"item_id", "click", "propensity_score"} {
			if !slices.Contains(header, name) {
				return fmt.Errorf("there is no column %q: a log of Open Bandit Pipeline has timestamp, item_id, position, click and propensity_score", name)
			}
			s.used[name] = true
		}
		grouped = slices.Contains(header, "decision_id")
		for _, name := range []string{"timestamp", "position", "decision_id", ""} {
			s.used[name] = true
		}
		return nil
	}
	each := func(r row) error {
		number++
		f := r.fields
		id := "row-" + strconv.Itoa(number)
		if grouped {
			id = textOf(f["decision_id"])
		}
		if open == nil || open.id != id {
			if err := end(); err != nil {
				return err
			}
			open = &found{place: r.place, id: id, user: f}
			var err error
			if open.time, err = f.time("timestamp"); err != nil {
				return fmt.Errorf("%s: %w", r.place, err)
			}
			for _, item := range items {
				own := fields{}
				maps.Copy(own, item.fields)
				if v, ok := f["user-item_affinity_"+item.id]; ok {
					own["user-item_affinity"] = v
					s.seen["user-item_affinity_"+item.id], s.used["user-item_affinity_"+item.id] = true, true
				}
				open.items = append(open.items, foundItem{item.id, own, item.revenue})
			}
		}
		shown := textOf(f["item_id"])
		if !slices.ContainsFunc(items, func(o foundItem) bool { return o.id == shown }) {
			return fmt.Errorf("%s: item_id %q is not in %s", r.place, shown, s.mapping.Items)
		}
		p, err := probability("propensity_score", f["propensity_score"])
		if err != nil {
			return fmt.Errorf("%s: %w", r.place, err)
		}
		clicked, err := flag("click", f["click"])
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", r.place, err)
		case clicked:
			open.taken = append(open.taken, shown)
		}
		open.shown = append(open.shown, shown)
		// That of a page is known if it has one item.
		if open.propensity = p; len(open.shown) > 1 {
			open.propensity = 0
		}
		return nil
	}
	if err := s.rows(begin, each); err != nil {
		return err
	}
	return end()
}

// obpItems reads the items of a log of Open Bandit Pipeline.
func (s *source) obpItems() (items []foundItem, err error) {
	f, err := os.Open(s.mapping.Items)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	begin := func(header []string) error {
		if !slices.Contains(header, "item_id") {
			return fmt.Errorf("there is no column \"item_id\": the columns are %q", header)
		}
		return nil
	}
	s.used["item_id"], s.used["revenue"] = true, true
	each := func(r row) error {
		item := foundItem{id: textOf(r.fields["item_id"]), fields: r.fields}
		if item.id == "" || slices.ContainsFunc(items, func(o foundItem) bool { return o.id == item.id }) {
			return fmt.Errorf("%s: item_id %q is empty or a duplicate", r.place, item.id)
		}
		if item.revenue, err = r.fields.revenue("revenue"); err != nil {
			return fmt.Errorf("%s: %w", r.place, err)
		}
		items = append(items, item)
		return nil
	}
	if err := s.csv(f, begin, each); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, errors.New("it has no items")
	}
	return items, nil
}
