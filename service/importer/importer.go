// Package importer reads the logs of other programs as decisions of a placement:
//
//	csv, tsv       a row for each item of a decision
//	parquet        the same
//	jsonl          lines as vitrine export writes them
//	dsjson         lines of Vowpal Wabbit: contextual bandits, and slots that share their actions (CCB)
//	personalizer   the same, as Azure Personalizer exports them: with the features and ids of a Rank
//	obp            the CSV of Open Bandit Pipeline, a row for each item shown
//	vw, vwjson     the text and the JSON of Vowpal Wabbit, with labels action:cost:probability
//	sessions       a line for each decision, with lists of its items: JSON Lines or CSV
//
// A [Mapping] assigns the columns their roles. Every error names the place in the file.
package importer

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
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"vitrine/internal/decompress"
	"vitrine/internal/extsort"
	"vitrine/internal/strict"
	"vitrine/internal/table"
	"vitrine/service/api"
	"vitrine/service/importer/cell"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/personalizer"
	"vitrine/service/setup"
)

// Mapping says how a file holds decisions. The zero value fits files with the column names of
// vitrine export.
type Mapping struct {
	Format    string            `toml:"format,omitempty"`    // "" is found from the name of the file
	Delimiter string            `toml:"delimiter,omitempty"` // of CSV; "" is a comma
	Header    []string          `toml:"header,omitempty"`    // the columns of CSV without a header
	List      string            `toml:"list,omitempty"`      // sessions: the separator of the values of a list in a field of CSV
	Actions   int               `toml:"actions,omitempty"`   // vw, vwjson: the number of actions, if they are not listed
	Loss      bool              `toml:"loss,omitempty"`      // vw, vwjson: whether a cost of 0 means taken and 1 not taken, instead of −1 and 0
	Items     string            `toml:"items,omitempty"`     // obp: the file of the items, item_context.csv
	Several   string            `toml:"several,omitempty"`   // which of several items taken count: all (""), the "first" on the page, "each" as a decision of its own; "skip" leaves the decision out
	Rewards   string            `toml:"rewards,omitempty"`   // dsjson: "share" (the default) takes a reward in [0, 1] as the probability of a choice, "choice" a positive one as a choice
	Columns   Columns           `toml:"columns,omitempty"`
	Events    *Events           `toml:"events,omitempty"`   // tables of events: which rows show and take items, in place of the column chosen
	Features  map[string]string `toml:"features,omitempty"` // the column of a feature; without it the column of its name
	Law       *Law              `toml:"sampling_law,omitempty"`

	path string // of the file that it was read from
}

// noColumn, as the name of a column, ignores the column of the usual name.
const noColumn = "-"

// Columns are the names of columns. "" is the name in parentheses, if the file contains it and the mapping gives it no
// other role; a feature may use the column, too. "-" ignores the column of that name.
type Columns struct {
	Decision   string `toml:"decision,omitempty"`   // identifies a decision (decision_id)
	Time       string `toml:"time,omitempty"`       // RFC 3339, or seconds, milliseconds, microseconds or nanoseconds since 1970 (time)
	Item       string `toml:"item,omitempty"`       // the id of the item (item)
	Shown      string `toml:"shown,omitempty"`      // the position, from 1 on, or true; 0, false or empty if not shown (shown). Without it all rows are shown
	Chosen     string `toml:"chosen,omitempty"`     // 1 or true in the row that was taken (chosen)
	Units      string `toml:"units,omitempty"`      // the units that were taken, in rows that were taken (units); 1 if empty
	Value      string `toml:"value,omitempty"`      // the earnings of these units together, in rows that were taken (units_value); units × revenue if empty
	Revenue    string `toml:"revenue,omitempty"`    // of the item (revenue)
	Propensity string `toml:"propensity,omitempty"` // of the page, in (0, 1] (propensity). A named column must hold it in every decision
}

// Events say which rows of a table of events show an item, and which take one. Other rows are not read.
type Events struct {
	Column string `toml:"column,omitempty"` // holds the kind of the event
	Shown  string `toml:"shown,omitempty"`  // the kind of rows that show an item
	Chosen string `toml:"chosen,omitempty"` // the kind of rows that take one
}

// Law says how the pages of the log were drawn.
type Law struct {
	Draw       string  `toml:"draw,omitempty"`       // "sets": of at most size items; "pages": of exactly size items; "swaps": the policy's page with one item replaced; "items": the item of each slot by itself
	Share      float64 `toml:"share,omitempty"`      // the share of decisions with a drawn page; the others show the policy's own page
	Size       int     `toml:"size,omitempty"`       // of sets and pages
	Page       string  `toml:"page,omitempty"`       // the column of the policy's own page, as Shown; in jsonl, a list of items. Needed by swaps, and if share < 1
	Propensity string  `toml:"propensity,omitempty"` // items: the column of the probability that the row's item is in its slot (item_propensity)
	Slot       string  `toml:"slot,omitempty"`       // items: the column of the slot that the row's item was drawn for; "" is one slot
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
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func (m *Mapping) check() error {
	err := cmp.Or(oneOf("format", m.Format, formatNames...), oneOf("several", m.Several, "first", "skip", "each"),
		oneOf("rewards", m.Rewards, "share", "choice"))
	switch e := m.Events; {
	case err != nil:
		return err
	case m.Columns.Decision == noColumn || m.Columns.Item == noColumn || m.Columns.Chosen == noColumn && e == nil:
		return fmt.Errorf("columns.decision, item and chosen cannot be %q: name the columns of the decision, of its "+
			"items, and of the item taken", noColumn)
	case len([]rune(m.Delimiter)) > 1:
		return fmt.Errorf("delimiter = %q: want one character", m.Delimiter)
	case e != nil && (e.Column == "" || e.Shown == "" || e.Chosen == ""):
		return errors.New("events need column, shown and chosen")
	case m.Law != nil:
		return m.Law.check()
	}
	return nil
}

func oneOf(field, value string, names ...string) error {
	if value == "" || slices.Contains(names, value) {
		return nil
	}
	return fmt.Errorf("%s = %q: want one of %s", field, value, strings.Join(names, ", "))
}

func (l *Law) check() error {
	if l.Draw == "" {
		return errors.New("sampling_law.draw is missing: want sets, pages, swaps or items")
	}
	if err := oneOf("sampling_law.draw", l.Draw, "sets", "pages", "swaps", "items"); err != nil {
		return err
	}
	drawn := []string{"sets", "pages", "swaps"}
	for _, o := range []struct {
		field string
		value any
		isSet bool
		draws []string
	}{
		{"size", l.Size, l.Size != 0, drawn[:2]}, {"page", l.Page, l.Page != "", drawn},
		{"share", l.Share, l.Share != 0, drawn},
		{"propensity", l.Propensity, l.Propensity != "", []string{"items"}},
		{"slot", l.Slot, l.Slot != "", []string{"items"}},
	} {
		if o.isSet && !slices.Contains(o.draws, l.Draw) {
			return fmt.Errorf("sampling_law.%s = %v: belongs to draw = %q", o.field, o.value, o.draws)
		}
	}
	switch {
	case l.Draw == "items":
	case !(l.Share > 0 && l.Share <= 1):
		return fmt.Errorf("sampling_law.share = %v: must be in (0, 1]", l.Share)
	case l.Draw != "swaps" && l.Size < 1:
		return fmt.Errorf("sampling_law.size = %d: must be at least 1", l.Size)
	case l.Page == "" && (l.Share < 1 || l.Draw == "swaps"):
		return fmt.Errorf("sampling_law.page is missing: name the column of the policy's own page, which was " +
			"shown where no page was drawn")
	}
	return nil
}

var formats = map[string]func(*source) error{"csv": readTable, "parquet": readTable, "jsonl": readLines,
	"dsjson": readDecisions, "personalizer": readDecisions, "obp": readOBP, "vw": readVW, "vwjson": readVWJSON,
	"sessions": readSessions}

var formatNames = []string{"csv", "tsv", "parquet", "jsonl", "dsjson", "personalizer", "obp", "vw", "vwjson",
	"sessions"}

func formatOf(path string) (string, error) {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".zst")
	switch ext := filepath.Ext(name); ext {
	case ".csv", ".tsv", ".parquet", ".jsonl", ".dsjson", ".vw":
		return ext[1:], nil
	case ".json":
		return "dsjson", nil
	}
	return "", fmt.Errorf("%s: its name does not say its format: give --format, or set format in the mapping: one of %s", path, strings.Join(formatNames, ", "))
}

// Report counts the decisions and values that Read found in a log.
type Report struct {
	Decisions int            // read
	Skipped   map[string]int // decisions that are left out, by the reason
	Several   int            // decisions with several items taken, that count
	Drawn     int            // of them, decisions with a choice drawn from the items' rewards
	Sorted    bool           // whether the rows of a decision were apart, so that the table was sorted
	Features  []Match
	Unused    []string // columns and paths of the file that are no feature, at most 50 of them
}

// Match is a feature of the placement and where its values come from.
type Match struct {
	Feature, Column string
	Found, Missing  int // values
	Clipped         int // of Found, values beyond the feature's bounds
}

// maxValues bounds the distinct values of a hashed category: a column with more is an id.
const maxValues = 100_000

// Log is a log that can be read several times.
type Log struct {
	Name string // for messages
	// Progress, if set, is called now and then with the bytes read, unless the rows were sorted.
	Progress func(done, total int64)

	format  string
	mapping *Mapping
	file    *os.File
	spooled bool            // whether file is a copy of a stream
	sorted  *extsort.Sorter // the rows of a table that was not sorted; nil if the file lists them in order
	sum     []byte          // SHA-256 of the file, once a decision needs it
	header  []string
	several bool // whether a decision of the table has several rows
}

// Open opens the log at path, "-" for the standard input. A stream is copied to a temporary file. If the rows of a
// decision are not consecutive, the table is sorted into another one, in bounded memory, by the time of decisions and
// their first row. Close removes both. The error names the file and the place.
func Open(ctx context.Context, path string, m *Mapping) (l *Log, err error) {
	l = &Log{Name: path, format: m.Format, mapping: m}
	if l.format == "" {
		if l.format, err = formatOf(path); err != nil {
			return nil, err
		}
	}
	if l.format == "tsv" {
		tabs := *m
		tabs.Delimiter = cmp.Or(m.Delimiter, "\t")
		l.format, l.mapping = "csv", &tabs
	}
	if w := m.Law; w != nil && (w.Page != "" || w.Draw == "items") &&
		!slices.Contains([]string{"csv", "parquet", "jsonl"}, l.format) {
		return nil, fmt.Errorf("%s: sampling_law.draw = %q with columns is of tables and jsonl, and the format is %s",
			m.path, w.Draw, l.format)
	}
	if path == "-" {
		l.Name, l.file = "standard input", os.Stdin
	} else if l.file, err = os.Open(path); err != nil {
		return nil, err
	}
	if info, failed := l.file.Stat(); path == "-" || failed == nil && !info.Mode().IsRegular() {
		err = l.spool()
	}
	if err == nil && l.format == "jsonl" && l.hasRows(ctx) {
		l.format = "csv" // the reader of tables sees JSON
	}
	if err == nil {
		err = l.sort(ctx)
	}
	if err != nil {
		return nil, errors.Join(l.named(ctx, err), l.Close())
	}
	return l, nil
}

// hasRows reports whether the lines of JSON are the rows of a table: a line of vitrine export lists items.
func (l *Log) hasRows(ctx context.Context) (rows bool) {
	_ = (&source{Log: l, ctx: ctx}).lines(func(_ string, line []byte) error { // Read reports errors
		members, err := membersOf(line)
		rows = err == nil && !slices.ContainsFunc(members, func(m member) bool { return m.name == "items" })
		return errEnough
	})
	return rows
}

// spool replaces a stream by a copy of it.
func (l *Log) spool() error {
	stream := l.file
	copied, err := os.CreateTemp("", "vitrine-import-*")
	if err != nil {
		return err
	}
	l.file, l.spooled = copied, true
	if _, err = io.Copy(copied, stream); stream != os.Stdin {
		err = errors.Join(err, stream.Close())
	}
	return err
}

// Close removes temporary files and closes the log.
func (l *Log) Close() error {
	err := l.file.Close()
	if l.spooled {
		err = errors.Join(err, os.Remove(l.file.Name()))
	}
	if l.sorted != nil {
		err = errors.Join(err, l.sorted.Close())
	}
	return err
}

// named adds the name of the file to an error.
func (l *Log) named(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%s: %w", l.Name, err)
}

// Read reads the log for a placement, and calls each for every decision with an outcome. An import calls it twice, and
// checks everything first. The error names the file and the place.
func (l *Log) Read(ctx context.Context, placement string, c *setup.Config,
	each func(d *page.Imported) error) (*Report, error) {
	m := l.mapping
	s := &source{Log: l, ctx: ctx, placement: placement, config: c, each: each,
		report: &Report{Skipped: map[string]int{}, Sorted: l.sorted != nil}, used: map[string]bool{},
		seen: map[string]bool{}, ids: map[string]bool{}, repeats: map[string]int{}, values: map[string]map[string]bool{}}
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
	if err := l.named(ctx, formats[l.format](s)); err != nil {
		return nil, err
	}
	if s.report.Decisions == 0 {
		return nil, fmt.Errorf("%s: it has no decision", l.Name)
	}
	names := slices.Sorted(maps.Keys(s.seen))
	for _, name := range names {
		again := repeats(l.format) && (name == "*" || s.used[lastOf(name)] || isRepeated(name, names))
		if !s.used[name] && !again {
			s.report.Unused = append(s.report.Unused, name)
		}
	}
	s.report.Unused = s.report.Unused[:min(len(s.report.Unused), 50)]
	return s.report, nil
}

// progress reports a number of decisions now and then.
func (l *Log) progress(decisions int) {
	if l.Progress == nil || l.sorted != nil || decisions%1000 > 0 {
		return
	}
	info, err := l.file.Stat()
	if at, failed := l.file.Seek(0, io.SeekCurrent); err == nil && failed == nil {
		l.Progress(min(at, info.Size()), info.Size())
	}
}

// source is a log that is being read.
type source struct {
	*Log
	ctx       context.Context
	placement string
	config    *setup.Config
	columns   Columns // of pages, with their usual names
	ours      bool    // whether vitrine export wrote the table, or this line
	each      func(d *page.Imported) error
	report    *Report
	used      map[string]bool // columns
	seen      map[string]bool
	nested    []string                   // leaves of Parquet that are not read
	ids       map[string]bool            // of decisions
	repeats   map[string]int             // decisions by the ids that were made for them
	values    map[string]map[string]bool // of hashed categories
	survey    *Survey                    // counts decisions, in place of each
}

// text returns a file from its beginning, decompressed.
func text(f *os.File) (*bufio.Reader, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(f, 1<<16)
	plain, _, err := decompress.Reader(r)
	if err != nil {
		return nil, table.Damaged(err)
	}
	r = bufio.NewReaderSize(plain, 1<<16) // r itself if it is plain
	table.SkipMark(r)
	return r, nil
}

// lines calls each for every line that is not empty. A line is at most 64 MB.
func (s *source) lines(each func(place string, line []byte) error) error {
	return s.everyLine(func(place string, line []byte) error {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		return each(place, line)
	})
}

// everyLine calls each for every line, empty ones included.
func (s *source) everyLine(each func(place string, line []byte) error) error {
	r, err := text(s.file)
	if err != nil {
		return err
	}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, table.MaxLine)
	n := 1
	for ; scan.Scan(); n++ {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		place := "line " + strconv.Itoa(n)
		if err := each(place, scan.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
	}
	if err := scan.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return fmt.Errorf("line %d: %w", n, table.ErrLong)
		}
		return table.Damaged(err)
	}
	return nil
}

// fields are the values of an item, or of the user, by the names of columns.
type fields map[string]api.Value

// text writes out the fields, whatever their order in the file.
func (f fields) text() (b []byte) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		b = fmt.Appendf(b, "%q=%q\n", name, cell.Text(f[name]))
	}
	return b
}

// found is a decision of a file.
type found struct {
	id         string
	text       []byte // makes an id if the file gives none; nil if it does
	row        int    // of the item that an error of add is about
	time       int64
	items      []foundItem
	user       fields
	shown      []string
	taken      []string     // in any order
	choices    []api.Choice // quantities and values of items taken, if the file gives them
	rewards    []float64    // of the items shown, in place of taken; nil if the file says which items were taken
	skip       string       // why it is left out; "" if it is not
	propensity float64
	law        *offer.SamplingLaw
}

type foundItem struct {
	id      string
	row     int // its place among the decision's rows or items in the file
	fields  fields
	revenue *float64
}

func idsOf(items []foundItem) (ids []string) {
	for _, item := range items {
		ids = append(ids, item.id)
	}
	return ids
}

// add converts a decision and hands it over.
func (s *source) add(f *found) error {
	s.report.Decisions++
	s.progress(s.report.Decisions)
	if f.skip == "" && len(f.items) > 0 && len(f.shown)+len(f.taken) == 0 {
		f.skip = "show nothing"
	}
	if f.skipLarge() {
		s.report.Skipped[f.skip]++
		return nil
	}
	if len(f.items) == 0 {
		return errors.New("the decision has no items")
	}
	rewards, err := f.earned()
	if err != nil {
		return err
	}
	if len(rewards) > 1 && s.mapping.Several == "skip" {
		s.report.Skipped["have several items taken"]++
		return nil
	}
	if s.survey != nil {
		s.survey.add(s, f, rewards)
		return nil
	}
	d, err := s.imported(f)
	if err != nil {
		return err
	}
	return s.outcomes(f, d, rewards)
}

// imported returns a decision with the values of the placement's features.
func (s *source) imported(f *found) (d *page.Imported, err error) {
	if f.text != nil || f.id == "" {
		if f.id, err = s.makeID(f); err != nil {
			return nil, err
		}
	}
	f.id = decisionID(f.id)
	d = &page.Imported{Request: &api.Request{Decision: f.id}, Shown: f.shown, Time: f.time, Propensity: f.propensity,
		Draw: f.law}
	if l := s.mapping.Law; l != nil && l.Draw != "items" && d.Draw == nil && l.Page == "" { // share is 1
		if d.Draw, err = l.of(nil, idsOf(f.items)); err != nil {
			return nil, err
		}
	}
	for _, item := range f.items {
		values, err := s.match("item", item.fields)
		if err == nil && item.revenue != nil {
			err = api.CheckAmount("revenue", *item.revenue, 0)
		}
		if err != nil {
			f.row = item.row
			return nil, fmt.Errorf("item %q: %w", item.id, err)
		}
		d.Request.Items = append(d.Request.Items, api.Item{ID: item.id, Features: values, Revenue: item.revenue})
	}
	if d.Request.User, err = s.match("shopper", f.user); err != nil {
		return nil, fmt.Errorf("the user: %w", err)
	}
	return d, nil
}

// skipLarge leaves a decision out that shows, or takes, more items than any page holds. It reports whether the decision
// is left out, for whatever reason.
func (f *found) skipLarge() bool {
	if f.skip == "" && max(len(f.shown), len(f.taken)) > setup.MaxSize {
		f.skip = fmt.Sprintf("show more than %d items", setup.MaxSize)
	}
	return f.skip != ""
}

// earned returns the rewards of the items taken, in the order of the page.
func (f *found) earned() (rewards []api.Reward, err error) {
	for k, id := range f.shown {
		switch {
		case f.rewards == nil && slices.Contains(f.taken, id):
			rewards = append(rewards, api.Reward{Item: id, Value: 1})
		case f.rewards != nil && f.rewards[k] > 0:
			rewards = append(rewards, api.Reward{Item: id, Value: f.rewards[k]})
		}
	}
	for _, id := range f.taken {
		if !slices.Contains(f.shown, id) {
			f.row = f.items[max(0, slices.Index(idsOf(f.items), id))].row
			return nil, fmt.Errorf("decision %s: item %q was chosen and not shown", f.id, id)
		}
	}
	return rewards, nil
}

// choose adds items taken, with their quantities and values.
func (f *found) choose(choices []api.Choice) {
	taken := map[string]bool{}
	for _, id := range f.taken {
		taken[id] = true
	}
	for _, c := range choices {
		if !taken[c.Item] {
			taken[c.Item] = true
			f.taken = append(f.taken, c.Item)
		}
	}
	f.choices = choices
}

// choicesOf returns the choices for the items taken.
func (f *found) choicesOf(rewards []api.Reward) (choices []api.Choice) {
	for _, r := range rewards {
		c := api.Choice{Item: r.Item}
		for _, given := range f.choices {
			if given.Item == r.Item {
				c = given
			}
		}
		choices = append(choices, c)
	}
	return choices
}

// outcomes hands a decision over with its rewards: once, or once for each item that was taken.
func (s *source) outcomes(f *found, d *page.Imported, rewards []api.Reward) error {
	isChoice := f.rewards == nil
	list := [][]api.Reward{rewards}
	if len(rewards) > 1 {
		switch s.mapping.Several {
		case "first":
			list[0] = rewards[:1]
		case "each":
			list = slices.Collect(slices.Chunk(rewards, 1))
		default:
			if !isChoice {
				s.report.Drawn++
			}
		}
		s.report.Several++
	}
	id := f.id // with room for the number of the last copy
	if longest := page.CopyID(id, len(list)); decisionID(longest) != longest {
		id = decisionID(longest)
	}
	for k, rewards := range list {
		one, request := *d, *d.Request
		one.Request, request.Decision = &request, page.CopyID(id, k+1)
		if s.ids[request.Decision] {
			return fmt.Errorf("decision %q is in the log twice: give decisions ids of their own", request.Decision)
		}
		s.ids[request.Decision] = true
		if isChoice {
			one.Choices = f.choicesOf(rewards)
		} else {
			one.Rewards = rewards
		}
		err, i := s.each(&one), 0
		if e, ok := errors.AsType[*api.FieldError](err); ok {
			if n, _ := fmt.Sscanf(e.Field, "/items/%d", &i); n == 1 { // in the order of the request
				f.row, err = f.items[i].row, fmt.Errorf("item %q: %w", f.items[i].id, err)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decisionID returns an id that can be a decision's: the file's own, or a hash of it.
func decisionID(id string) string {
	ok := id != "" && len(id) <= 128 && id != "." && id != ".."
	for _, c := range []byte(id) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("._-:", c) >= 0)
	}
	if ok {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "import-" + hex.EncodeToString(sum[:12])
}

// makeID returns an id for a decision that the file gives none. It is made of the decision's text, and of the whole file
// if the decision has no time, since then the same text in another file is another decision. Repeats within the file are
// numbered. The same file therefore gets the same ids again.
func (s *source) makeID(f *found) (string, error) {
	h := sha256.New()
	h.Write(f.text)
	if f.time == 0 && s.sum == nil {
		file := sha256.New()
		if _, err := io.Copy(file, io.NewSectionReader(s.file, 0, math.MaxInt64)); err != nil {
			return "", err
		}
		s.sum = file.Sum(nil)
	}
	if f.time == 0 {
		h.Write(s.sum)
	}
	id := "import-" + hex.EncodeToString(h.Sum(nil)[:12])
	if s.repeats[id]++; s.repeats[id] > 1 {
		id += "-" + strconv.Itoa(s.repeats[id])
	}
	return id, nil
}

// match returns the values of the features of items, or of users.
func (s *source) match(from string, f fields) (api.Values, error) {
	if f[personalizer.RestOfActions].Kind != api.IsObject && f[personalizer.RestOfContext].Kind != api.IsObject {
		s.see(maps.Keys(f)) // in a Rank with such an object, all are used
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
		v := f[m.Column]
		if v.Kind == api.Missing && from == "shopper" {
			v = f["user."+m.Column]
		}
		if v.Kind == api.Missing && s.ours && feature.AllowOther && s.seen[m.Column] {
			v = api.Text("", "\x00") // the null of an export: a value that the placement does not list
		}
		if v.Kind == api.Missing {
			m.Missing++
			continue
		}
		s.used[m.Column] = true
		if !utf8.ValidString(v.Text) {
			return nil, fmt.Errorf("column %s: %.40q is not UTF-8: convert the file", m.Column, v.Text)
		}
		if feature.Columns > 0 && cell.IsColumns(v, feature.Columns) {
			return nil, fmt.Errorf("column %s: %.40s are columns: the values of hashed categories, texts and "+
				"objects are not in an export", m.Column, v.Text)
		}
		typed, err := cell.Typed(feature.Kind, v)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", m.Column, err)
		}
		if typed.Kind == api.Missing { // a number that is NA
			m.Missing++
			continue
		}
		m.Found++
		if feature.Kind == "number" && s.config.Schema().Clips(feature.Name, typed.Number) {
			m.Clipped++
		}
		if feature.Kind == "category" && feature.Values == nil && typed.Kind == api.IsText {
			if s.values[feature.Name] == nil {
				s.values[feature.Name] = map[string]bool{}
			}
			if s.values[feature.Name][typed.Text] = true; len(s.values[feature.Name]) > maxValues {
				return nil, fmt.Errorf("column %s: the category %s has more than %d distinct values: it is "+
					"probably an id", m.Column, feature.Name, maxValues)
			}
		}
		typed.Name = feature.Name
		list = append(list, typed)
	}
	return list, nil
}

// of returns the law of a decision, given the policy's own page; nil if the law does not need it.
func (l *Law) of(page, ids []string) (*offer.SamplingLaw, error) {
	kind, _ := offer.DrawKind(l.Draw)
	own, err := offer.Places(page, ids)
	slices.Sort(own)
	d := &offer.SamplingLaw{Kind: kind, Epsilon: l.Share, Size: min(l.Size, len(ids)), Page: own}
	if kind == offer.DrawSwaps {
		d.Size = len(own)
	}
	return d, err
}

// itemPropensity names the column of item probabilities, "" if the law needs no such column.
func (l *Law) itemPropensity() string {
	if l.Draw != "items" {
		return ""
	}
	return cmp.Or(l.Propensity, "item_propensity")
}

// drawOfItems returns the law by which the item of each slot was drawn by itself, given the probability and the slot of
// each item. Slots are numbered in the order in which they come.
func drawOfItems(p []float64, slots []string) (*offer.SamplingLaw, error) {
	d := &offer.SamplingLaw{Kind: offer.DrawItems, Epsilon: 1, Probability: p}
	numbers := map[string]uint32{}
	sum := map[string]float64{}
	for i, slot := range slots {
		if _, ok := numbers[slot]; !ok {
			numbers[slot] = uint32(len(numbers))
		}
		d.Slot = append(d.Slot, numbers[slot])
		sum[slot] += p[i]
	}
	for slot, v := range sum {
		if math.Abs(v-1) > offer.Tolerance {
			return nil, fmt.Errorf("the probabilities of the items of slot %q have the sum %v: must be 1", slot, v)
		}
	}
	d.Size = len(numbers)
	return d, nil
}
