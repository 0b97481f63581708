// Package records reads the logs of other programs as decisions of a placement:
//
//	csv, parquet   a row for each item of a decision
//	jsonl          lines as vitrine export writes them
//	dsjson         lines of Vowpal Wabbit, of contextual bandits and of slates of slots (CCB)
//	personalizer   the same, as Azure Personalizer exports them
//	obp            the CSV of Open Bandit Pipeline, a row for each item shown
//
// A [Mapping] says which columns hold what. Every error names the place in the file.
package records

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"vitrine/internal/decompress"
	"vitrine/internal/strict"
	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// Mapping says how a file holds decisions. The zero value is that of files whose columns have the
// names that vitrine export gives them.
type Mapping struct {
	Format    string            `toml:"format"`    // "" is found from the name of the file
	Delimiter string            `toml:"delimiter"` // of CSV; "" is a comma
	Items     string            `toml:"items"`     // obp: the file of the items, item_context.csv
	Columns   Columns           `toml:"columns"`
	Features  map[string]string `toml:"features"` // the column of a feature; without it the column of its name
	Law       *Law              `toml:"law"`

	path string // of the file that it was read from
}

// Columns are the names of columns. "" is the name in parentheses, if the file has it.
type Columns struct {
	Decision   string `toml:"decision"`   // identifies a decision, whose rows are consecutive (decision_id)
	Time       string `toml:"time"`       // RFC 3339, or seconds since 1970 (time)
	Item       string `toml:"item"`       // the id of the item (item)
	Shown      string `toml:"shown"`      // the position, from 1 on, or true; 0, false or empty if not shown (shown). Without it all rows are shown
	Chosen     string `toml:"chosen"`     // 1 or true in the row that was taken (chosen)
	Revenue    string `toml:"revenue"`    // of the item (revenue)
	Propensity string `toml:"propensity"` // of the page, in (0, 1] (propensity). A column that is named must have it in every decision
}

// Law says how all pages of the log were drawn.
type Law struct {
	Draw  string  `toml:"draw"`  // "sets": of at most size items; "pages": of exactly size items
	Share float64 `toml:"share"` // must be 1: the policy's own page is not in the log
	Size  int     `toml:"size"`
}

// ReadMapping reads a mapping from a TOML file. The error names the file and the line.
func ReadMapping(path string) (*Mapping, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := &Mapping{path: path}
	if err := strict.Decode(text, m); err != nil {
		return nil, strict.In(path, err)
	}
	if m.Items != "" && !filepath.IsAbs(m.Items) {
		m.Items = filepath.Join(filepath.Dir(path), m.Items)
	}
	switch l := m.Law; {
	case m.Format != "" && formats[m.Format] == nil:
		return nil, fmt.Errorf("%s: format = %q: want one of %s", path, m.Format, strings.Join(formatNames(), ", "))
	case len([]rune(m.Delimiter)) > 1:
		return nil, fmt.Errorf("%s: delimiter = %q: want one character", path, m.Delimiter)
	case l == nil:
	case l.Draw != "sets" && l.Draw != "pages":
		return nil, fmt.Errorf("%s: law.draw = %q: want sets or pages", path, l.Draw)
	case l.Share != 1:
		return nil, fmt.Errorf("%s: law.share = %v: the mapping can describe only logs whose pages were all drawn uniformly, share = 1", path, l.Share)
	case l.Size < 1:
		return nil, fmt.Errorf("%s: law.size = %d: must be at least 1", path, l.Size)
	}
	return m, nil
}

// formats are the readers by name.
var formats map[string]func(*source) error

func init() {
	formats = map[string]func(*source) error{
		"csv": readCSV, "parquet": readParquet, "jsonl": readLines, "dsjson": readDecisions, "personalizer": readDecisions, "obp": readOBP,
	}
}

func formatNames() []string {
	return []string{"csv", "parquet", "jsonl", "dsjson", "personalizer", "obp"}
}

// formatOf returns the format of a file by its name.
func formatOf(path string) (string, error) {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".zst")
	switch ext := filepath.Ext(name); ext {
	case ".csv", ".parquet", ".jsonl", ".dsjson":
		return ext[1:], nil
	case ".json":
		return "dsjson", nil
	}
	return "", fmt.Errorf("%s: its name does not say its format: set format in the mapping, one of %s", path, strings.Join(formatNames(), ", "))
}

// Report counts what Read found in a log.
type Report struct {
	Decisions int            // read
	Skipped   map[string]int // decisions that are left out, by the reason
	Features  []Match
	Unused    []string // columns and paths of the file that are no feature, at most 50 of them
}

// Match is a feature of the placement and where its values come from.
type Match struct {
	Feature, Column string
	Found, Missing  int // values
}

// maxValues bounds the distinct values of a hashed category: a column with more is an id.
const maxValues = 100_000

// Read reads the log at path for a placement, and calls each for every decision with an outcome.
// Both passes of an import call it. The error names the file and the place.
func Read(ctx context.Context, path string, m *Mapping, c *setup.Config, each func(d *decision.Imported) error) (*Report, error) {
	format := m.Format
	if format == "" {
		var err error
		if format, err = formatOf(path); err != nil {
			return nil, err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &source{ctx: ctx, file: f, mapping: m, config: c, each: each, report: &Report{Skipped: map[string]int{}}, used: map[string]bool{}, seen: map[string]bool{}, ids: map[string]bool{}, values: map[string]map[string]bool{}}
	for _, feature := range c.Features {
		if feature.Kind == "cross" {
			continue
		}
		column := cmp.Or(m.Features[feature.Name], feature.Name)
		s.report.Features = append(s.report.Features, Match{Feature: feature.Name, Column: column})
	}
	for name := range m.Features {
		if !slices.ContainsFunc(s.report.Features, func(x Match) bool { return x.Feature == name }) {
			return nil, fmt.Errorf("%s: features.%s: the placement has no such feature", m.path, name)
		}
	}
	if err := s.run(format); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.report.Decisions == 0 {
		return nil, fmt.Errorf("%s: it has no decision", path)
	}
	for name := range s.seen {
		if !s.used[name] {
			s.report.Unused = append(s.report.Unused, name)
		}
	}
	slices.Sort(s.report.Unused)
	s.report.Unused = s.report.Unused[:min(len(s.report.Unused), 50)]
	return s.report, nil
}

// source is a log that is being read.
type source struct {
	ctx     context.Context
	file    *os.File
	mapping *Mapping
	config  *setup.Config
	each    func(d *decision.Imported) error
	report  *Report
	used    map[string]bool // columns
	seen    map[string]bool
	ids     map[string]bool            // of decisions
	values  map[string]map[string]bool // of hashed categories
}

func (s *source) run(format string) (err error) {
	defer func() { // a damaged file can make the reader of Parquet panic
		if v := recover(); v != nil {
			err = damaged(fmt.Errorf("%v", v))
		}
	}()
	return formats[format](s)
}

// damaged is the error of a file that ends early or has been changed.
func damaged(err error) error { return fmt.Errorf("the file is truncated or damaged: %w", err) }

// text returns the file decompressed.
func (s *source) text(f io.Reader) (*bufio.Reader, error) {
	r := bufio.NewReaderSize(f, 1<<16)
	plain, coding, err := decompress.Reader(r)
	switch {
	case err != nil:
		return nil, damaged(err)
	case coding == decompress.None:
		return r, nil
	}
	return bufio.NewReaderSize(plain, 1<<16), nil
}

// lines calls each for every line that is not empty. A line is at most 64 MB.
func (s *source) lines(each func(place string, line []byte) error) error {
	r, err := s.text(s.file)
	if err != nil {
		return err
	}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 64<<20)
	for n := 1; scan.Scan(); n++ {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if len(bytes.TrimSpace(scan.Bytes())) == 0 {
			continue
		}
		place := "line " + strconv.Itoa(n)
		if err := each(place, scan.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	if err := scan.Err(); err != nil {
		return damaged(err)
	}
	return nil
}

// fields are the values of an item, or of the user, by the names of columns.
type fields map[string]api.Value

// found is a decision as a file has it.
type found struct {
	place      string
	id         string
	time       int64
	items      []foundItem
	user       fields
	shown      []string
	choice     string
	skip       string // why it is left out; "" if it is not
	propensity float64
	law        *offer.Draw
}

type foundItem struct {
	id      string
	fields  fields
	revenue *float64
}

// add converts a decision and hands it over.
func (s *source) add(f *found) error {
	s.report.Decisions++
	if f.skip != "" {
		s.report.Skipped[f.skip]++
		return nil
	}
	if len(f.items) == 0 {
		return errors.New("the decision has no items")
	}
	if len(f.shown) == 0 {
		s.report.Skipped["show nothing"]++
		return nil
	}
	f.id = decisionID(f.id)
	if s.ids[f.id] {
		return fmt.Errorf("decision %q has rows further up: sort by decision, or give decisions ids of their own", f.id)
	}
	s.ids[f.id] = true
	d := &decision.Imported{
		Request: &api.Request{Decision: f.id}, Shown: f.shown, Choice: f.choice, Time: f.time, Propensity: f.propensity, Draw: f.law,
	}
	if l := s.mapping.Law; l != nil && d.Draw == nil {
		d.Draw = &offer.Draw{Kind: offer.DrawPages, Epsilon: 1, Size: min(l.Size, len(f.items))}
		if l.Draw == "sets" {
			d.Draw.Kind = offer.DrawSets
		}
	}
	for _, item := range f.items {
		values, err := s.match("item", item.fields)
		if err != nil {
			return fmt.Errorf("item %q: %w", item.id, err)
		}
		if item.revenue != nil && !(*item.revenue >= 0 && !math.IsInf(*item.revenue, 0)) {
			return fmt.Errorf("item %q: the revenue is %v: must be finite and not negative", item.id, *item.revenue)
		}
		d.Request.Items = append(d.Request.Items, api.Item{ID: item.id, Features: values, Revenue: item.revenue})
	}
	var err error
	if d.Request.User, err = s.match("user", f.user); err != nil {
		return fmt.Errorf("the user: %w", err)
	}
	return s.each(d)
}

// decisionID returns an id that can be a decision's: the file's own, or a hash of it.
func decisionID(id string) string {
	ok := id != "" && len(id) <= 128 && id != "." && id != ".."
	for _, c := range []byte(id) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-:", c) >= 0)
	}
	if ok {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "import-" + hex.EncodeToString(sum[:12])
}

// match returns the values of the features of items, or of users.
func (s *source) match(from string, f fields) (api.Values, error) {
	for name := range f {
		s.seen[name] = true
	}
	var list api.Values
	k := 0
	for _, feature := range s.config.Features {
		if feature.Kind == "cross" {
			continue
		}
		m := &s.report.Features[k]
		k++
		if feature.From != from {
			continue
		}
		v, ok := f[m.Column]
		if !ok && from == "user" {
			v, ok = f["user."+m.Column]
		}
		if !ok || v.Kind == api.Missing {
			m.Missing++
			continue
		}
		s.used[m.Column] = true
		m.Found++
		if !utf8.ValidString(v.Text) {
			return nil, fmt.Errorf("column %s: %.40q is not UTF-8: convert the file", m.Column, v.Text)
		}
		if feature.Buckets > 0 && isColumns(v, feature.Buckets) {
			return nil, fmt.Errorf("column %s: %.40s are columns: the values of hashed categories, texts and objects are not in an export", m.Column, v.Text)
		}
		typed, err := typed(feature.Kind, v)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", m.Column, err)
		}
		if feature.Kind == "category" && feature.Values == nil && typed.Kind == api.IsText {
			if s.values[feature.Name] == nil {
				s.values[feature.Name] = map[string]bool{}
			}
			if s.values[feature.Name][typed.Text] = true; len(s.values[feature.Name]) > maxValues {
				return nil, fmt.Errorf("column %s: the category %s has more than %d distinct values: it is probably an id", m.Column, feature.Name, maxValues)
			}
		}
		typed.Name = feature.Name
		list = append(list, typed)
	}
	return list, nil
}

// typed returns a value as a feature of a kind takes it.
func typed(kind string, v api.Value) (api.Value, error) {
	switch {
	case kind == "number" && v.Kind == api.IsText:
		n, err := strconv.ParseFloat(v.Text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return v, fmt.Errorf("%.40q is not a finite number", v.Text)
		}
		return api.Number("", n), nil
	case kind == "number" && v.Kind == api.IsNumber && (math.IsNaN(v.Number) || math.IsInf(v.Number, 0)):
		return v, fmt.Errorf("%v is not a finite number", v.Number)
	case (kind == "category" || kind == "text") && v.Kind == api.IsNumber:
		return api.Text("", strconv.FormatFloat(v.Number, 'g', -1, 64)), nil
	case (kind == "category" || kind == "text") && v.Kind == api.IsObject:
		return v, fmt.Errorf("%.40s is not a text: the values of hashed categories and of texts are not in an export", v.Text)
	case kind == "object" && v.Kind == api.IsText:
		return api.Object("", v.Text), nil
	}
	return v, nil
}

// isColumns reports whether a value is the n columns that an export has in the place of a hashed one, in a table as a text.
func isColumns(v api.Value, n int) bool {
	var columns []float64
	return (v.Kind == api.IsText || v.Kind == api.IsObject) && strings.HasPrefix(v.Text, "[") && json.Unmarshal([]byte(v.Text), &columns) == nil && len(columns) == n
}

// probability parses a propensity, which must be in (0, 1].
func probability(column string, v api.Value) (float64, error) {
	n, err := typed("number", v)
	switch {
	case v.Kind == api.Missing:
		return 0, fmt.Errorf("column %s: the propensity is missing", column)
	case err != nil:
		return 0, fmt.Errorf("column %s: the propensity %w", column, err)
	case !(n.Number > 0 && n.Number <= 1):
		return 0, fmt.Errorf("column %s: the propensity is %v: must be in (0, 1]", column, n.Number)
	}
	return n.Number, nil
}

// moment parses a time: RFC 3339, the forms of other programs, or seconds since 1970.
func moment(text string) (int64, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(seconds) < 1e11 {
		return int64(seconds * 1e9), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999-07:00", "2006-01-02 15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			if y := t.Year(); y < 1678 || y > 2261 {
				return 0, fmt.Errorf("the time %.40q is beyond what a log holds", text)
			}
			return t.UnixNano(), nil
		}
	}
	return 0, fmt.Errorf("%.40q is not a time such as 2026-01-02T15:04:05Z", text)
}
