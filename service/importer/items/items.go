// Package items reads the items of a catalogue from a table: CSV, Parquet or JSON Lines.
package items

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/decompress"
	"vitrine/internal/strict"
	"vitrine/internal/table"
	"vitrine/service/api"
	"vitrine/service/importer/cell"
)

// Mapping says how the rows of a table hold the items of a catalogue.
type Mapping struct {
	Delimiter  string            `toml:"delimiter"` // of CSV; "" is a comma
	Header     []string          `toml:"header"`    // the columns of CSV without a header
	Columns    Columns           `toml:"columns"`
	Features   map[string]string `toml:"features"`   // the column of a feature
	Attributes map[string]string `toml:"attributes"` // the column of an attribute

	kinds map[string]string // of the features of items, by name
	given bool              // whether a file names the columns
}

// Columns are the names of columns, or "".
type Columns struct {
	ID         string   `toml:"id"`
	Revenue    string   `toml:"revenue"`
	Space      string   `toml:"space"`
	Available  string   `toml:"available"`   // 1, true or yes
	ValidFrom  string   `toml:"valid_from"`  // a time as in the mapping of a log
	ValidUntil string   `toml:"valid_until"` // the same
	Groups     []string `toml:"groups"`      // names of groups, with | between them
	Payload    []string `toml:"payload"`     // the members of the payload
}

// ReadMapping reads the mapping in the TOML file at path for the features of a placement. Without a path,
// or if the file names no column, columns are fields and features by name, and the others are attributes.
func ReadMapping(path string, features []api.Feature) (*Mapping, error) {
	m := &Mapping{kinds: map[string]string{}}
	for _, f := range features {
		if f.Kind != "cross" && f.From != "shopper" {
			m.kinds[f.Name] = f.Kind
		}
	}
	if path == "" {
		return m, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := strict.Decode(text, m); err != nil {
		return nil, strict.In(path, err)
	}
	// A file with only a delimiter or a header leaves the columns to their names.
	m.given = m.Columns.ID != ""
	if !m.given && (len(m.Features)+len(m.Attributes) > 0 || !reflect.DeepEqual(m.Columns, Columns{})) {
		return nil, fmt.Errorf("%s: columns.id is missing: it names the column of ids", path)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Features)) {
		if m.kinds[name] == "" {
			return nil, fmt.Errorf("%s: features.%s: the placement has no feature of items of this name: it has %s",
				path, name, strings.Join(slices.Sorted(maps.Keys(m.kinds)), ", "))
		}
	}
	return m, nil
}

// Read calls visit with each item of a table: CSV, Parquet or JSON Lines, plain or compressed. Without a mapping,
// lines of JSON are items as the service writes them. The error names the file and the place in it.
func Read(path string, m *Mapping, visit func(*api.CatalogueItem) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if plain, _, err := decompress.Reader(bufio.NewReader(f)); err == nil && !m.given {
		r := bufio.NewReaderSize(plain, 1<<16)
		if table.SkipMark(r); table.IsObject(r) {
			return inFile(path, itemLines(r, visit))
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return inFile(path, m.rows(f, visit))
}

func inFile(path string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// itemLines reads items as the service writes them.
func itemLines(r io.Reader, visit func(*api.CatalogueItem) error) error {
	bounded := table.NewBounded(r)
	in := jsontext.NewDecoder(bounded)
	for number := 1; ; number++ {
		bounded.Next()
		item := new(api.CatalogueItem)
		err := json.UnmarshalDecode(in, item, json.RejectUnknownMembers(true))
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			err = api.JSONError(err)
		case item.ID == "":
			err = errors.New("has no id")
		default:
			err = visit(item)
		}
		if err != nil {
			return fmt.Errorf("item %d: %w", number, err)
		}
	}
}

// rows reads the items of a table.
func (m *Mapping) rows(f *os.File, visit func(*api.CatalogueItem) error) error {
	t, err := table.Open(f, table.Options{Delimiter: m.Delimiter, Names: m.Header, Texts: true})
	if err != nil {
		return err
	}
	names, nested := t.Header(), t.Nested()
	if nested != nil && !m.given {
		return fmt.Errorf("column %s holds lists or groups, which are no values of an item: name the columns to "+
			"use with --mapping", strings.Join(table.NestedColumns(nested), ", "))
	}
	if m, err = m.infer(names, nested); err != nil {
		return err
	}
	names = slices.Clone(names)
	for j, used := 0, m.columns(); j < len(names); j++ {
		if !slices.Contains(used, names[j]) {
			names[j] = ""
		}
	}
	return table.Each(t, func(at string, b *table.Batch, i int) error {
		r := cells{}
		for j, name := range names {
			switch c := &b.Columns[j]; {
			case name == "" || c.Missing(i): // "" is a column that the mapping leaves out
			case c.Text == nil:
				r[name] = c.Number[i]
			case !utf8.ValidString(c.Text[i]):
				return fmt.Errorf("%s: column %s: %.40q is not UTF-8: convert the file", at, name, c.Text[i])
			case c.Bare:
				r[name] = guess(c.Text[i])
			default:
				r[name] = c.Text[i]
			}
		}
		item, err := m.item(r)
		if err == nil {
			err = visit(item)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", at, err)
		}
		return err
	})
}

// columns returns the names of the columns that items use, and "" for others.
func (m *Mapping) columns() []string {
	c := m.Columns
	return slices.Concat([]string{c.ID, c.Revenue, c.Space, c.Available, c.ValidFrom, c.ValidUntil}, c.Groups,
		c.Payload, slices.Sorted(maps.Values(m.Features)), slices.Sorted(maps.Values(m.Attributes)))
}

// infer returns the mapping for the columns of a table. Without a file a column's name decides: a field, a feature, or
// else an attribute. The error names a column that the table lacks.
func (m *Mapping) infer(columns, nested []string) (*Mapping, error) {
	if m.given {
		for _, name := range m.columns() {
			if name != "" && !slices.Contains(columns, name) {
				return nil, table.NoColumn(name, columns, nested)
			}
		}
		return m, nil
	}
	if !slices.Contains(columns, "id") {
		return nil, fmt.Errorf("%w: name the column of ids with --mapping", table.NoColumn("id", columns, nested))
	}
	n := *m
	n.Features, n.Attributes = map[string]string{}, map[string]string{}
	to := map[string]*string{"id": &n.Columns.ID, "revenue": &n.Columns.Revenue, "space": &n.Columns.Space,
		"available":  &n.Columns.Available,
		"valid_from": &n.Columns.ValidFrom, "valid_until": &n.Columns.ValidUntil}
	for _, name := range columns {
		switch {
		case to[name] != nil:
			*to[name] = name
		case name == "groups":
			n.Columns.Groups = []string{name}
		case name == "payload":
			n.Columns.Payload = []string{name}
		case n.kinds[name] != "":
			n.Features[name] = name
		default:
			n.Attributes[name] = name
		}
	}
	return &n, nil
}

const maxGroups = 100 // as of a catalogue's items

// cells are a row of a table: float64, bool or string by column. Empty cells are not there.
type cells map[string]any

// item returns the item of a row.
func (m *Mapping) item(r cells) (item *api.CatalogueItem, err error) {
	f := make(map[string]api.Value, len(r))
	for name, v := range r {
		if n, ok := v.(float64); ok {
			f[name] = api.Number("", n)
		} else {
			f[name] = api.Text("", fmt.Sprint(v))
		}
	}
	c := &m.Columns
	item = &api.CatalogueItem{ID: cell.Text(f[c.ID])}
	if item.ID == "" {
		return nil, fmt.Errorf("column %s: has no id", c.ID)
	}
	if item.Revenue, err = cell.Amount(c.Revenue, f[c.Revenue]); err != nil {
		return nil, err
	}
	if item.Space, err = cell.Amount(c.Space, f[c.Space]); err != nil {
		return nil, err
	}
	if _, ok := r[c.Available]; ok {
		v, err := cell.Flag(c.Available, f[c.Available])
		if err != nil {
			return nil, err
		}
		item.Available = &v
	}
	if err := cmp.Or(setTime(f, c.ValidFrom, &item.ValidFrom), setTime(f, c.ValidUntil, &item.ValidUntil)); err != nil {
		return nil, err
	}
	for _, column := range c.Groups {
		for name := range strings.SplitSeq(cell.Text(f[column]), "|") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(item.Groups, name) {
				if len(item.Groups) == maxGroups {
					return nil, fmt.Errorf("column %s: has more than %d groups", column, maxGroups)
				}
				item.Groups = append(item.Groups, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Features)) {
		v, err := cell.Typed(m.kinds[name], f[m.Features[name]])
		if err != nil {
			return nil, fmt.Errorf("column %s of feature %s: %w", m.Features[name], name, err)
		}
		if v.Name = name; v.Kind != api.Missing {
			item.Features = append(item.Features, v)
		}
	}
	for name, column := range m.Attributes {
		if v, ok := r[column]; ok {
			if item.Attributes == nil {
				item.Attributes = map[string]any{}
			}
			item.Attributes[name] = guess(v)
		}
	}
	item.Payload, err = r.payload(c.Payload)
	return item, err
}

// setTime stores a column's time, if the row sets one.
func setTime(f map[string]api.Value, column string, to **time.Time) error {
	text := cell.Text(f[column])
	if text == "" {
		return nil
	}
	at, err := cell.Moment(text) // 1900-01-01 is a usual beginning of what is always valid
	if err != nil {
		return fmt.Errorf("column %s: %w", column, err)
	}
	*to = new(time.Unix(0, at).UTC())
	return nil
}

// payload returns some columns as JSON, or nil.
func (r cells) payload(columns []string) (jsontext.Value, error) {
	if len(columns) == 0 {
		return nil, nil
	}
	payload := map[string]any{}
	for _, column := range columns {
		if v, ok := r[column]; ok {
			payload[column] = v
		}
	}
	return json.Marshal(payload, json.Deterministic(true))
}

// guess returns the number or the truth that a text is.
func guess(v any) any {
	text, ok := v.(string)
	if !ok {
		return v
	}
	if n, isNumber := cell.Number(api.Text("", strings.TrimSpace(text))); isNumber && !table.IsCode(text) {
		return n
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	return text
}
