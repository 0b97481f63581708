package importer

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/internal/table"
	"vitrine/service/api"
	"vitrine/service/importer/cell"
)

// Recognized describes the format that a file appears to use.
type Recognized struct {
	What    string   // the format in words
	Mapping *Mapping // how Read reads it
	Notes   []string // assumptions of the mapping
	Needs   []string // missing before the file can be read; nil if it can be read

	rows bool // whether lines of JSON are the rows of a table
}

// sampled is how many rows or lines of a file Recognize looks at.
const sampled = 20_000

// Recognize finds the format and the mapping of a log from its first rows. It returns an error only if the file cannot
// be opened or is damaged: if a log lacks something, its needs say so.
func Recognize(ctx context.Context, path string) (*Recognized, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &Recognized{Mapping: &Mapping{}}
	r.Mapping.Format, _ = formatOf(path)
	k := &recognizer{Recognized: r, Log: &Log{Name: path, file: f, mapping: r.Mapping}}
	k.source = &source{Log: k.Log, ctx: ctx, used: map[string]bool{}, seen: map[string]bool{}, report: &Report{}}
	return r, k.named(ctx, k.recognize())
}

// errEnough ends the reading of a sample.
var errEnough = errors.New("enough")

type recognizer struct {
	*Recognized
	*Log
	source *source
}

func (k *recognizer) need(format string, args ...any) {
	k.Needs = append(k.Needs, fmt.Sprintf(format, args...))
}

func (k *recognizer) note(format string, args ...any) {
	k.Notes = append(k.Notes, fmt.Sprintf(format, args...))
}

// recognize looks at the first bytes.
func (k *recognizer) recognize() error {
	head := make([]byte, 4)
	if _, err := k.file.ReadAt(head, 0); err != nil && err != io.EOF {
		return err
	}
	if string(head) == "PAR1" {
		k.What, k.Mapping.Format, k.format = "a table in Parquet", "parquet", "parquet"
		return k.table()
	}
	r, err := text(k.file)
	if err != nil {
		return err
	}
	start, err := r.Peek(1 << 16)
	if err != nil && err != io.EOF && len(start) == 0 {
		return table.Damaged(err)
	}
	start = bytes.TrimLeft(start, " \t\r\n")
	switch {
	case len(start) == 0:
		return errors.New("the file is empty")
	case start[0] == '{':
		return k.lines()
	case start[0] == '[':
		k.What = "a JSON array"
		k.need("a line for each object: jq -c '.[]' %s > log.jsonl", filepath.Base(k.Name))
		return nil
	case isVW(string(start)):
		return k.vw()
	case filepath.Ext(k.Name) == ".vw":
		k.What = "Vowpal Wabbit's text"
		k.need("labels action:cost:probability: the lines have none, and only contextual bandits have decisions")
		return nil
	case bytes.ContainsRune(start, 0):
		return errors.New("the file is neither text, gzip, zstd nor Parquet")
	}
	return k.csv(string(start))
}

// vwStart matches a line of a contextual bandit in the text of Vowpal Wabbit.
var vwStart = regexp.MustCompile(`^((shared|ccb|slates)\b[^|]*|(\d+(:-?[0-9.eE+-]+:[0-9.eE+-]+)? *)*('?[^\s|,]*)?)\|`)

// isVW reports whether lines are the text of Vowpal Wabbit: all begin like it, and one is labelled or shared.
func isVW(start string) bool {
	lines := strings.Split(start, "\n")
	labels := 0
	for _, line := range lines[:max(1, min(len(lines)-1, 50))] {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		head := vwStart.FindString(line)
		if head == "" {
			return false
		}
		if strings.Count(head, ":") >= 2 || strings.HasPrefix(head, "shared") || strings.HasPrefix(head, "ccb") ||
			strings.HasPrefix(head, "slates") {
			labels++
		}
	}
	return labels > 0
}

// judge says how costs become rewards.
func (k *recognizer) judge(c Range[float64]) {
	switch {
	case c.N == 0:
		k.need("labels with a cost and a probability: no decision has an outcome")
	case c.Least >= 0 && c.Most > 0 && c.Most <= 1:
		k.Mapping.Loss = true
		k.note("Costs are from %v to %v: taken as losses, 0 for an item taken and 1 for none (loss = true).", c.Least,
			c.Most)
	case c.Least >= -1 && c.Most <= 1:
		if c.Most > 0 {
			k.note("Costs are from %v to %v: a positive cost counts as nothing taken.", c.Least, c.Most)
		}
	case c.Least < -1:
		k.amounts(c)
	default:
		k.need("costs from −1 (the best outcome) to 0, or losses from 0 to 1: the costs are from %v to %v", c.Least,
			c.Most)
	}
}

// amounts makes choices of rewards above 1.
func (k *recognizer) amounts(c Range[float64]) {
	k.Mapping.Rewards = "choice"
	k.note("Rewards are up to %v: each positive one counts as an item taken (rewards = \"choice\"). The amount is "+
		"not kept.", -c.Least)
}

func (k *recognizer) vw() error {
	k.What, k.Mapping.Format = "Vowpal Wabbit's text of a contextual bandit with features of actions (--cb_adf)", "vw"
	var c Range[float64]
	lines, most, empty, multi, slates, ccb := 0, 0, 0, false, false, false
	err := k.source.everyLine(func(_ string, line []byte) error {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			empty++
			return nil
		}
		if lines++; lines > sampled {
			return errEnough
		}
		e, err := parseVW(string(line))
		if err != nil {
			return err
		}
		multi = multi || e.kind != "" || len(e.labels) == 0
		slates, ccb = slates || e.kind == "slates", ccb || e.kind == "slot"
		for _, l := range e.labels {
			most = max(most, l.action)
			c.add(l.cost)
		}
		if o, err := slotOf(e.slot); err == nil && o != nil {
			c.add(*o.Cost)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	switch {
	case slates:
		k.What = "Vowpal Wabbit's text of slates"
		k.slates()
		return nil
	case ccb:
		k.What = "Vowpal Wabbit's text of slots that share their actions (--ccb_explore_adf)"
	case !multi && empty <= 1:
		k.What, k.Mapping.Actions = "Vowpal Wabbit's text of a contextual bandit (--cb)", most
		k.note("Each line is a decision between the %d actions that labels name.", most)
	}
	k.judge(c)
	return nil
}

// slates says why slates cannot be read.
func (k *recognizer) slates() {
	k.need("which item earned the reward: slates have one reward for the page, and a choice model needs the item " +
		"that was taken. Log a cost for each slot, as ccb does (_outcomes[]._label_cost)")
}

// jsonSample summarizes the first lines of JSON.
type jsonSample struct {
	keys    map[string]bool // of the lines; those in contexts begin with "c."
	costs   Range[float64]  // of labels
	actions int             // the largest that a label names
	pages   pages           // of lines without labels
}

// add reads a line.
func (s *jsonSample) add(place string, line []byte) error {
	top, err := membersOf(line)
	if err != nil {
		return api.JSONError(err)
	}
	for _, m := range top {
		s.keys[m.name] = true
		for _, inner := range []string{"_slot_id", "FromUrl"} {
			s.keys["c."+inner] = s.keys["c."+inner] || m.name == "c" && bytes.Contains(m.value, []byte(`"`+inner+`"`))
		}
	}
	var l vwLine
	if json.Unmarshal(line, &l, jsontext.AllowDuplicateNames(true)) == nil && l.Cost != nil {
		s.costs.add(min(*l.Cost, -(&vwOutcome{Cost: l.Cost, Rewards: l.Rewards}).reward()))
	}
	for _, o := range l.Outcomes {
		if o.Cost != nil {
			s.costs.add(-o.reward())
		}
	}
	if s.keys["c"] {
		return nil
	}
	if label, err := anyLabel(top); err == nil && label != nil {
		s.costs.add(label.cost)
		s.actions = max(s.actions, label.action)
	}
	if s.keys["_multi"] {
		return nil
	}
	page := newPage("", place)
	s.pages = append(s.pages, page)
	return page.flatten(line)
}

func (k *recognizer) lines() error {
	s := &jsonSample{keys: map[string]bool{}}
	n := 0
	err := k.source.lines(func(place string, line []byte) error {
		if n++; n > 5000 {
			return errEnough
		}
		return s.add(place, line)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	keys := s.keys
	switch {
	case keys["c"] && keys["c._slot_id"]:
		k.What, k.Mapping.Format = "slates in Vowpal Wabbit's dsjson", "dsjson"
		k.slates()
	case keys["c"]:
		k.What, k.Mapping.Format = "contextual bandit in Vowpal Wabbit's dsjson", "dsjson"
		if keys["_outcomes"] {
			k.What = "slots that share their actions (ccb) in Vowpal Wabbit's dsjson"
			k.note("A slot's probabilities depend on the slots above it, so the probability of the page is unknown.")
		}
		if keys["c.FromUrl"] {
			k.What, k.Mapping.Format = "Azure Personalizer's log (dsjson): "+k.What, "personalizer"
		}
		k.dsjson(s.costs)
	case keys["EventId"] && keys["RewardValue"]:
		k.What = "outcomes of Azure Personalizer without their decisions"
		k.need("the joined log: these lines have rewards only, and what was shown is in other files")
	case keys["_multi"]:
		k.What, k.Mapping.Format = "Vowpal Wabbit's JSON of a contextual bandit with features of actions "+
			"(--cb_adf --json)", "vwjson"
		k.judge(s.costs)
	case s.costs.N > 0:
		k.What, k.Mapping.Format, k.Mapping.Actions = "Vowpal Wabbit's JSON of a contextual bandit (--cb --json)",
			"vwjson", s.actions
		k.note("Each line is a decision between the %d actions that labels name.", s.actions)
		k.judge(s.costs)
	case keys["decision_id"] && keys["items"] && keys["shown"] && keys["status"]:
		k.What, k.Mapping.Format = "an export of Vitrine", "jsonl"
	case keys["event_name"] && keys["event_params"]:
		k.What = "events of Google Analytics 4"
		k.need("pages instead of events: a row for each item of a view_item_list with the columns decision_id " +
			"(one for each list that was shown), item, shown (item_list_index), chosen (1 if a select_item of the " +
			"same list names the item), time. In BigQuery: UNNEST(items), and a LEFT JOIN of select_item on " +
			"user_pseudo_id, ga_session_id, item_list_id and item_id")
	default:
		if _, lists := s.pages.names(); len(lists) == 0 && !keys["items"] {
			k.What, k.Mapping.Format, k.rows, k.format = "a table in JSON Lines", "jsonl", true, "csv"
			return k.table()
		}
		k.What, k.Mapping.Format = "a line for each page, in JSON", "sessions"
		k.sessions(s.pages)
	}
	return nil
}

// dsjson says how the costs of dsjson become rewards.
func (k *recognizer) dsjson(c Range[float64]) {
	switch {
	case c.N == 0:
		k.need("labels (_label_cost, _outcomes): no decision has an outcome")
	case c.Least < -1:
		k.amounts(c)
	case c.Least >= 0 && c.Most > 0:
		k.need("negative costs for what was taken: _label_cost is from %v to %v, and minus the cost is the "+
			"reward. Subtract 1 if the costs are losses", c.Least, c.Most)
	case c.Least > -1 && c.Least < 0:
		k.note("Rewards are at most %v: a reward counts as the probability that the item was taken.", -c.Least)
	}
}

// csv finds the delimiter and the header of a table in text.
func (k *recognizer) csv(start string) error {
	best, width := ',', 0
	for _, d := range ",\t;|" {
		if n := columnsOf(start, d); n > width {
			best, width = d, n
		}
	}
	if width < 2 {
		k.What = "text"
		k.need("a log: the lines are no table of columns separated by a comma, a tab, a semicolon or |, no JSON, " +
			"and no labels of Vowpal Wabbit")
		return nil
	}
	k.format = "csv"
	switch k.Mapping.Format = "csv"; best {
	case ',':
		k.What = "a table in CSV"
	case '\t':
		k.What, k.Mapping.Delimiter = "a table in TSV", "\t"
	default:
		k.What, k.Mapping.Delimiter = fmt.Sprintf("a table in CSV with the delimiter %q", best), string(best)
	}
	in := csv.NewReader(strings.NewReader(start))
	in.Comma, in.LazyQuotes, in.FieldsPerRecord = best, true, -1
	if first, err := in.Read(); err == nil && !isHeader(first) {
		for j := range first {
			k.Mapping.Header = append(k.Mapping.Header, fmt.Sprintf("column%d", j+1))
		}
		k.What += " without a header"
	}
	return k.table()
}

// columnsOf returns the number of columns that a delimiter makes in each line, 0 if the lines differ.
func columnsOf(start string, delimiter rune) int {
	if at := strings.LastIndexByte(start, '\n'); at > 0 && len(start) > 1<<15 {
		start = start[:at]
	}
	in := csv.NewReader(strings.NewReader(start))
	in.Comma, in.LazyQuotes, in.FieldsPerRecord = delimiter, true, -1
	n, lines, same := 0, 0, 0
	for lines < 100 {
		record, err := in.Read()
		if err != nil {
			break
		}
		if lines++; lines == 1 {
			n = len(record)
		}
		if len(record) == n {
			same++
		}
	}
	if same*10 < lines*9 {
		return 0
	}
	return n
}

// isHeader reports whether a first line names columns: with distinct texts that are no numbers.
func isHeader(first []string) bool {
	names := 0
	for j, text := range first {
		text = strings.TrimSpace(text)
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return false
		}
		if _, err := cell.Moment(text); err == nil || text != "" && slices.Contains(first[:j], first[j]) ||
			strings.HasPrefix(text, "[") {
			return false
		}
		if text != "" {
			names++
		}
	}
	return names*2 > len(first)
}

// table recognises the columns of a table.
func (k *recognizer) table() error {
	var header []string
	var rows []row
	err := k.source.rows(k.file, func(h []string) error { header = h; return nil }, func(r row) error {
		if rows = append(rows, r); len(rows) == sampled || len(rows)*len(header) > 1_000_000 {
			return errEnough
		}
		return nil
	})
	if nested := k.source.nested; nested != nil {
		k.note("Columns of lists and groups are not read: %s.", strings.Join(table.NestedColumns(nested), ", "))
	}
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return err
	case len(rows) == 0:
		k.need("rows: the file has none")
	case k.obp(header):
	case k.listColumn(header, rows):
		k.What = strings.Replace(k.What, "a table", "a line for each page", 1)
		k.Mapping.Format = "sessions"
		var p pages
		for _, r := range rows[:min(len(rows), 5000)] {
			p = append(p, k.source.listed(r))
		}
		k.sessions(p)
	default:
		k.long(header, rows)
	}
	if k.Needs != nil && k.source.nested != nil && k.Mapping.Columns.Item == "" {
		k.need("the table as JSON Lines, if the items are in the columns of lists and groups: only JSON's are read")
	}
	return nil
}

// obp recognises a log of Open Bandit Pipeline.
func (k *recognizer) obp(header []string) bool {
	for _, name := range []string{"item_id", "position", "click", "propensity_score"} {
		if !slices.Contains(header, name) {
			return false
		}
	}
	k.What, k.Mapping.Format = "Open Bandit's log", "obp"
	items := filepath.Join(filepath.Dir(k.Name), "item_context.csv")
	if _, err := os.Stat(items); err != nil {
		k.need("the items: put item_context.csv next to the log. The log itself has only the items that were shown")
		return true
	}
	k.Mapping.Items = items
	if !slices.Contains(header, "decision_id") {
		k.note("Each row is a decision that shows one item: the log does not say which rows are of one page.")
	}
	return true
}
