package records

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
)

// Recognized is what a file seems to be.
type Recognized struct {
	What    string   // the format in words
	Mapping *Mapping // how Read reads it
	Notes   []string // what the mapping assumes
	Needs   []string // what has to be supplied before the file can be read; nil if it can be read
}

// sampled is how many rows or lines of a file Recognize looks at.
const sampled = 20_000

// Recognize finds the format and the mapping of a log from its first rows. It returns an error only if the file cannot be
// opened or is damaged: a log that lacks something has needs.
func Recognize(ctx context.Context, path string) (*Recognized, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &Recognized{Mapping: &Mapping{}}
	r.Mapping.Format, _ = formatOf(path)
	k := &recognizer{Recognized: r, Log: &Log{name: path, file: f, mapping: r.Mapping}}
	k.source = &source{Log: k.Log, ctx: ctx, used: map[string]bool{}, seen: map[string]bool{}, report: &Report{}}
	err = safely(k.recognize)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return r, k.named(ctx, err)
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
		return damaged(err)
	}
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\ufeff")), " \t\r\n")
	switch {
	case len(start) == 0:
		return errors.New("the file is empty")
	case start[0] == '{':
		return k.lines()
	case start[0] == '[':
		k.What = "a JSON array"
		k.need("a line for each object: jq -c '.[]' %s > log.jsonl", filepath.Base(k.name))
		return nil
	case isVW(string(start)):
		return k.vw()
	case filepath.Ext(k.name) == ".vw":
		k.What = "Vowpal Wabbit's text"
		k.need("labels action:cost:probability: the lines have none, and only contextual bandits have decisions")
		return nil
	case !isText(start):
		return errors.New("the file is neither text, gzip, zstd nor Parquet")
	}
	return k.csv(string(start))
}

func isText(b []byte) bool { return !bytes.ContainsRune(b, 0) }

// vwStart matches a line of a contextual bandit in the text of Vowpal Wabbit.
var vwStart = regexp.MustCompile(`^((shared|ccb|slates)\b[^|]*|(\d+(:-?[0-9.eE+-]+:[0-9.eE+-]+)? *)*('?[^\s|,]*)?)\|`)

// isVW reports whether lines are the text of Vowpal Wabbit: all begin like it, and one has a label or is shared.
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
		if strings.Count(head, ":") >= 2 || strings.HasPrefix(head, "shared") || strings.HasPrefix(head, "ccb") || strings.HasPrefix(head, "slates") {
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
		k.note("Costs are from %v to %v: taken as losses, 0 for an item taken and 1 for none (loss = true).", c.Least, c.Most)
	case c.Least >= -1 && c.Most <= 1:
		if c.Most > 0 {
			k.note("Costs are from %v to %v: a positive cost counts as nothing taken.", c.Least, c.Most)
		}
	case c.Least < -1:
		k.Mapping.Rewards = "choice"
		k.note("Rewards are up to %v: each positive one counts as an item taken (rewards = \"choice\"). The amount is not kept.", -c.Least)
	default:
		k.need("costs from −1 (the best outcome) to 0, or losses from 0 to 1: the costs are from %v to %v", c.Least, c.Most)
	}
}

// vw recognizes the text of Vowpal Wabbit.
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
	if ccb && k.Mapping.Loss {
		k.Mapping.Loss = false
		k.need("costs from −1 (taken) to 0 in the slots: they are from %v to %v", c.Least, c.Most)
	}
	return nil
}

// slates says why slates cannot be read.
func (k *recognizer) slates() {
	k.need("which item earned the reward: slates have one reward for the page, and a choice model needs the item that was taken. Log a cost for each slot, as ccb does (_outcomes[]._label_cost)")
}

// jsonSample is what the first lines of JSON hold.
type jsonSample struct {
	keys    map[string]bool // of the lines, and "c." and those of contexts
	costs   Range[float64]  // of labels
	actions int             // the largest that a label names
	pages   pages           // of lines without labels
}

// add reads a line.
func (s *jsonSample) add(line []byte) error {
	var top map[string]jsontext.Value
	if err := json.Unmarshal(line, &top, jsontext.AllowDuplicateNames(true)); err != nil {
		return api.JSONError(err)
	}
	for name := range top {
		s.keys[name] = true
	}
	for _, inner := range []string{"_slot_id", "FromUrl"} {
		s.keys["c."+inner] = s.keys["c."+inner] || bytes.Contains(top["c"], []byte(`"`+inner+`"`))
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
	page := newSession()
	s.pages = append(s.pages, page)
	if err := page.flatten("", line); err != nil {
		return api.JSONError(err)
	}
	return nil
}

// lines recognizes JSON Lines.
func (k *recognizer) lines() error {
	s := &jsonSample{keys: map[string]bool{}}
	n := 0
	err := k.source.lines(func(_ string, line []byte) error {
		if n++; n > 5000 {
			return errEnough
		}
		return s.add(line)
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
		k.What, k.Mapping.Format = "Vowpal Wabbit's JSON of a contextual bandit with features of actions (--cb_adf --json)", "vwjson"
		k.judge(s.costs)
	case s.costs.N > 0:
		k.What, k.Mapping.Format, k.Mapping.Actions = "Vowpal Wabbit's JSON of a contextual bandit (--cb --json)", "vwjson", s.actions
		k.note("Each line is a decision between the %d actions that labels name.", s.actions)
		k.judge(s.costs)
	case keys["decision_id"] && keys["items"] && keys["shown"] && keys["status"]:
		k.What, k.Mapping.Format = "an export of Vitrine", "jsonl"
	case keys["event_name"] && keys["event_params"]:
		k.What = "events of Google Analytics 4"
		k.need("pages instead of events: a row for each item of a view_item_list with the columns decision_id (one for each list that was shown), item, shown (item_list_index), chosen (1 if a select_item of the same list names the item), time. In BigQuery: UNNEST(items), and a LEFT JOIN of select_item on user_pseudo_id, ga_session_id, item_list_id and item_id")
	default:
		k.What, k.Mapping.Format = "a line for each page, in JSON", "sessions"
		k.sessions(s.pages)
	}
	return nil
}

// anyLabel returns the label of a line, or of one of its actions.
func anyLabel(top map[string]jsontext.Value) (*vwLabel, error) {
	l, err := jsonLabel(top)
	if l != nil || err != nil {
		return l, err
	}
	var actions []map[string]jsontext.Value
	if json.Unmarshal(top["_multi"], &actions) != nil {
		return nil, nil
	}
	for _, a := range actions {
		if l, err := jsonLabel(a); l != nil {
			return l, err
		}
	}
	return nil, nil
}

// dsjson says how the costs of dsjson become rewards.
func (k *recognizer) dsjson(c Range[float64]) {
	switch {
	case c.N == 0:
		k.need("labels (_label_cost, _outcomes): no decision has an outcome")
	case c.Least < -1:
		k.Mapping.Rewards = "choice"
		k.note("Rewards are up to %v: each positive one counts as an item taken (rewards = \"choice\"). The amount is not kept.", -c.Least)
	case c.Least >= 0 && c.Most > 0:
		k.need("negative costs for what was taken: _label_cost is from %v to %v, and minus the cost is the reward. Subtract 1 if the costs are losses", c.Least, c.Most)
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
		k.need("a log: the lines are no table of columns separated by a comma, a tab, a semicolon or |, no JSON, and no labels of Vowpal Wabbit")
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

// columnsOf returns how many columns the lines of a text have with a delimiter, 0 if they differ.
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

// isHeader reports whether a first line has the names of columns: distinct texts that are no numbers.
func isHeader(first []string) bool {
	names := 0
	for j, text := range first {
		text = strings.TrimSpace(text)
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return false
		}
		if _, err := moment(text); err == nil || text != "" && slices.Contains(first[:j], first[j]) || strings.HasPrefix(text, "[") {
			return false
		}
		if text != "" {
			names++
		}
	}
	return names*2 > len(first)
}

// table recognizes the columns of a table.
func (k *recognizer) table() error {
	var header []string
	var rows []fields
	err := k.source.rows(func(h []string) error { header = h; return nil }, func(r row) error {
		if rows = append(rows, r.fields); len(rows) == sampled || len(rows)*len(header) > 1_000_000 {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if len(rows) == 0 {
		k.need("rows: the file has none")
		return nil
	}
	if k.obp(header) {
		return nil
	}
	if list := k.listColumn(header, rows); list != "" {
		k.What = strings.Replace(k.What, "a table", "a line for each page", 1)
		k.Mapping.Format, k.Mapping.Columns.Item = "sessions", list
		var sample []*session
		for _, f := range rows[:min(len(rows), 5000)] {
			sample = append(sample, k.source.listed(f))
		}
		k.sessions(sample)
		return nil
	}
	k.long(header, rows)
	return nil
}

// obp recognizes a log of Open Bandit Pipeline.
func (k *recognizer) obp(header []string) bool {
	for _, name := range []string{"item_id", "position", "click", "propensity_score"} {
		if !slices.Contains(header, name) {
			return false
		}
	}
	k.What, k.Mapping.Format = "Open Bandit's log", "obp"
	items := filepath.Join(filepath.Dir(k.name), "item_context.csv")
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

// words splits a name into lower-case words: "prop_id", "propId" and "Prop ID" are prop, id.
func words(name string) (list []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			list = append(list, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	lower := false
	for _, c := range name {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) || unicode.IsUpper(c) && lower {
			end()
		}
		if lower = unicode.IsLower(c); unicode.IsLetter(c) || unicode.IsDigit(c) {
			word = append(word, c)
		}
	}
	end()
	return list
}

// Words that name what a column holds, the best first.
var (
	decisionWords   = []string{"decision", "request", "req", "impression", "imp", "search", "srch", "query", "qid", "pageview", "page", "slate", "display", "serve", "auction", "round", "event", "visit", "session", "basket", "choice", "case", "obs", "anfrage", "recherche"}
	itemWords       = []string{"item", "items", "sku", "product", "products", "prod", "prop", "hotel", "article", "artikel", "produkt", "produit", "news", "content", "doc", "document", "ad", "banner", "creative", "campaign", "offer", "video", "movie", "song", "track", "listing", "asin", "ean", "gtin", "restaurant", "recipe", "alternative", "alt", "arm", "action", "variant", "candidate", "candidates", "impressions", "results", "slate", "shown", "reference"}
	chosenWords     = []string{"chosen", "click", "clicked", "clicks", "clickout", "klick", "clic", "purchase", "purchased", "bought", "buy", "order", "ordered", "booking", "booked", "conversion", "converted", "selected", "taken", "picked", "choice", "label", "target", "response", "reward", "y"}
	positionWords   = []string{"position", "pos", "rank", "slot", "place", "shown", "displayed", "impressed", "visible", "viewed", "seen", "index", "idx"}
	timeWords       = []string{"time", "timestamp", "ts", "datetime", "date", "at", "zeit", "created", "when", "dt"}
	propensityWords = []string{"propensity", "pscore", "probability", "prob", "p"}
	revenueWords    = []string{"revenue", "margin", "profit", "gain", "contribution", "marge", "commission"}
	fillers         = []string{"id", "ids", "key", "uuid", "guid", "no", "nr", "number", "num", "code", "bool", "is", "flag", "was", "score", "event", "local", "utc", "ms", "sec", "list", "item", "user", "value"}
)

// called returns the columns whose names say what is asked, the best first: names of these words only before others that have
// one of them.
func called(names []string, of []string) []string {
	rank := map[string]int{}
	var list []string
	for _, name := range names {
		parent, last := "", name
		if at := strings.LastIndexByte(name, '.'); at >= 0 {
			parent, last = name[:at], name[at+1:]
		}
		best := -1
		w := words(last)
		if parent != "" && len(w) == 1 && slices.Contains(fillers, w[0]) { // items.id
			w = append(words(parent), w...)
		}
		for _, word := range w {
			at := slices.Index(of, word)
			if at < 0 {
				continue
			}
			for _, other := range w {
				if other != word && !slices.Contains(fillers, other) {
					at += 1000
				}
			}
			if best < 0 || at < best {
				best = at
			}
		}
		if best >= 0 {
			rank[name] = best
			list = append(list, name)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(rank[a], rank[b]) })
	return list
}

// first returns the first name that is accepted, "" if there is none.
func first(names []string, accept func(name string) bool) string {
	for _, name := range names {
		if accept(name) {
			return name
		}
	}
	return ""
}

// each reports whether the values of a column are all accepted, and how many there are.
func each(rows []fields, name string, accept func(v api.Value) bool) (n int, all bool) {
	for _, f := range rows {
		v := f[name]
		if v.Kind == api.Missing {
			continue
		}
		if n++; !accept(v) {
			return n, false
		}
	}
	return n, n > 0
}

// isFull reports whether each row has a value in a column.
func isFull(rows []fields, name string) bool {
	n, _ := each(rows, name, func(api.Value) bool { return true })
	return n == len(rows)
}

func isFlag(v api.Value) bool { _, err := flag("", v); return err == nil }

func isMoment(v api.Value) bool { _, err := moment(textOf(v)); return err == nil }

func isPosition(v api.Value) bool { _, err := position("", v, 1); return err == nil }

func isRevenue(v api.Value) bool { n, ok := number(v); return ok && n >= 0 }

func number(v api.Value) (float64, bool) {
	n, err := typed("number", v)
	return n.Number, err == nil && n.Kind == api.IsNumber
}

// long recognizes the columns of a table with a row for each item.
func (k *recognizer) long(header []string, rows []fields) {
	c := &k.Mapping.Columns
	accept := func(test func(api.Value) bool) func(string) bool {
		return func(name string) bool { _, ok := each(rows, name, test); return ok }
	}
	flags := slices.DeleteFunc(called(header, chosenWords), func(name string) bool { return !accept(isFlag)(name) })
	if len(flags) > 0 {
		c.Chosen = flags[0]
		if others := flags[1:]; len(others) > 0 {
			k.note("%s says what was taken. The log also contains %s: name another column as chosen if that is the outcome.", c.Chosen, strings.Join(others, ", "))
		}
	}
	all := rows
	if views := k.events(header, rows); views != nil {
		rows = views
	}
	c.Time = first(called(header, timeWords), func(name string) bool {
		n, ok := each(rows, name, isMoment)
		if v, isNumber := number(rows[0][name]); isNumber { // seconds and the like since 1990
			ok = ok && v > 6e8
		}
		return ok && n > 0
	})
	c.Item = first(called(header, itemWords), func(name string) bool {
		return isFull(rows, name) && name != c.Chosen && !accept(isFlag)(name)
	})
	if c.Chosen == "" && k.Mapping.Events == nil {
		k.need("what was taken: a column of 0 and 1 in a row for each item shown, named as chosen in [columns]. The columns are %s. If rows are clicks only, the items that were shown and not taken are missing, and without them no other page can be judged", strings.Join(header, ", "))
	}
	if c.Item == "" {
		k.need("the item of each row, named as item in [columns]: no column looks like the id of an item. The columns are %s", strings.Join(header, ", "))
	}
	if k.pageID(header, rows); k.Needs != nil {
		return
	}
	groups := map[string][]fields{}
	for _, f := range rows {
		id := textOf(f[c.Decision])
		groups[id] = append(groups[id], f)
	}
	k.positions(header, rows, groups)
	if k.several(groups); k.Mapping.Events != nil {
		k.clicks(all)
	}
	k.propensities(header, groups, rows)
	c.Revenue = first(called(header, revenueWords), func(name string) bool {
		return accept(isRevenue)(name) && !k.tells(name, rows)
	})
}

// pageID finds the column that is the same in all rows of a page.
func (k *recognizer) pageID(header []string, rows []fields) {
	c := &k.Mapping.Columns
	shape := func(name string) (groups int, twice, taken float64) {
		items, open := map[string]bool{}, map[string]int{}
		for _, f := range rows {
			id := textOf(f[name])
			open[id]++
			key := strconv.Quote(id) + textOf(f[c.Item])
			if items[key] {
				twice++
			}
			items[key] = true
			if is, _ := flag("", f[c.Chosen]); is {
				taken++
			}
		}
		return len(open), twice / float64(len(rows)), taken / float64(len(open))
	}
	var repeated, single string
	c.Decision = first(called(header, decisionWords), func(name string) bool {
		groups, twice, _ := shape(name)
		switch {
		case !isFull(rows, name) || name == c.Item || name == c.Chosen || name == c.Time:
			return false
		case float64(groups) >= 0.8*float64(len(rows)):
			single = name
			return false
		case c.Item != "" && twice > 0:
			repeated = name
			return false
		}
		return true
	})
	if c.Decision == "" && c.Item != "" { // an id of another name
		c.Decision = first(header, func(name string) bool {
			w := words(name)
			groups, twice, taken := shape(name)
			return len(w) > 1 && slices.Contains(fillers[:9], w[len(w)-1]) && !slices.Contains(w, "user") && name != c.Item && name != c.Chosen && isFull(rows, name) &&
				twice == 0 && groups > 1 && taken <= 1.5 && float64(groups) < 0.8*float64(len(rows))
		})
	}
	switch {
	case c.Decision != "":
	case repeated != "":
		k.need("an id of each page: rows of one %s have an item several times, so that it is several pages. Make one, the same in all rows of a page and in no others (such as %[1]s with the time of the page), and name it as decision in [columns]", repeated)
	case single != "":
		k.need("an id of each page, the same in all its rows: %s differs in nearly every row. If each row is a page of one item, the items that could have been shown instead are missing", single)
	default:
		k.need("an id of each page, the same in all its rows: no column looks like one. If each row is a page of one item, the items that could have been shown instead are missing")
	}
}

// tells reports whether a column has values, or others than 0, only in rows that were taken.
func (k *recognizer) tells(name string, rows []fields) bool {
	if k.Mapping.Events != nil {
		return false
	}
	with, without := 0, 0
	for _, f := range rows {
		text := textOf(f[name])
		if v, err := strconv.ParseFloat(text, 64); text == "" || strings.EqualFold(text, "null") || err == nil && v == 0 {
			continue
		}
		if is, _ := flag("", f[k.Mapping.Columns.Chosen]); is {
			with++
		} else {
			without++
		}
	}
	return with > 0 && without == 0
}

// positions finds the column of positions.
func (k *recognizer) positions(header []string, rows []fields, groups map[string][]fields) {
	c := &k.Mapping.Columns
	c.Shown = first(called(header, positionWords), func(name string) bool {
		_, ok := each(rows, name, isPosition)
		if !ok || name == c.Item || name == c.Decision || name == c.Chosen {
			return false
		}
		for _, rows := range groups { // a condition, or positions that differ
			seen := map[float64]bool{}
			for _, f := range rows {
				at, _ := position("", f[name], 0)
				if at > 1 && seen[at] {
					return false
				}
				seen[at] = true
			}
		}
		return true
	})
	if c.Shown == "" {
		k.note("No column says the position: every row counts as shown, in the order of the file.")
		return
	}
	zeros, hidden, clicked := 0, 0, 0
	for _, rows := range groups {
		hidden0 := 0
		for _, f := range rows {
			if at, _ := position("", f[c.Shown], 1); at > 0 {
				continue
			}
			if hidden0++; textOf(f[c.Shown]) == "0" {
				if is, _ := flag("", f[c.Chosen]); is {
					clicked++
				}
			}
		}
		hidden += hidden0
		if hidden0 == 1 {
			zeros++
		}
	}
	if clicked > 0 && zeros == len(groups) || k.Mapping.Events != nil && hidden > 0 {
		k.note("%s counts from 0: every row counts as shown, in the order of the file.", c.Shown)
		c.Shown = ""
	}
}

// several says what to do about pages with several items taken.
func (k *recognizer) several(groups map[string][]fields) {
	n := 0
	for _, rows := range groups {
		taken := 0
		for _, f := range rows {
			if is, _ := flag("", f[k.Mapping.Columns.Chosen]); is {
				taken++
			}
		}
		if taken > 1 {
			n++
		}
	}
	k.manyTaken(n, len(groups))
}

func (k *recognizer) manyTaken(n, all int) {
	if n > 0 {
		k.Mapping.Several = "first"
		k.note("In %d of %d pages several items were taken: the first on the page counts (several = \"first\").", n, all)
	}
}

// propensities finds the column of propensities, and whether it implies a law.
func (k *recognizer) propensities(header []string, groups map[string][]fields, all []fields) {
	c := &k.Mapping.Columns
	name := first(called(header, propensityWords), func(name string) bool {
		_, ok := each(all, name, func(v api.Value) bool { n, ok := number(v); return ok && n >= 0 && n <= 1 })
		return ok && name != c.Chosen
	})
	if name == "" {
		return
	}
	one, ofPage := true, true
	for _, rows := range groups {
		sum, shown := 0.0, 0
		for _, f := range rows {
			p, _ := number(f[name])
			ofPage = ofPage && textOf(f[name]) == textOf(rows[0][name])
			sum += p
			at := 1.0
			if c.Shown != "" {
				at, _ = position("", f[c.Shown], 1)
			}
			if at > 0 {
				shown++
			}
		}
		one = one && math.Abs(sum-1) < 1e-6 && shown == 1
	}
	switch {
	case one:
		k.Mapping.Law = &Law{Draw: "items", Propensity: name}
		k.note("%s is the probability of each item, and adds up to 1 on every page ([law]).", name)
	case !ofPage:
		k.note("%s varies inside a page, so it is not the probability of the page, and it is not used. Name it as propensity in [law] with draw = \"items\" if each slot's item was drawn by itself.", name)
	default:
		c.Propensity = name
	}
}

// events recognizes a table whose rows are events, with impressions and clicks apart, and returns the rows that show items.
func (k *recognizer) events(header []string, rows []fields) (views []fields) {
	if k.Mapping.Columns.Chosen != "" {
		return nil
	}
	for _, name := range header {
		if !hasWord(name, []string{"event", "action", "type", "kind"}) {
			continue
		}
		kinds := map[string]int{}
		for _, f := range rows {
			if kinds[textOf(f[name])]++; len(kinds) > 50 {
				break
			}
		}
		var shown, chosen []string
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			switch {
			case hasWord(kind, []string{"view", "impression", "impressions", "shown", "display", "exposure"}):
				shown = append(shown, kind)
			case hasWord(kind, []string{"select", "click", "clicked", "clickout", "purchase", "buy"}):
				chosen = append(chosen, kind)
			}
		}
		if len(kinds) > 50 || len(shown) == 0 || len(chosen) == 0 {
			continue
		}
		byCount := func(a, b string) int { return cmp.Compare(kinds[a], kinds[b]) }
		e := &Events{Column: name, Shown: slices.MaxFunc(shown, byCount), Chosen: slices.MaxFunc(chosen, byCount)}
		k.What = strings.Replace(k.What, "a table", "a table of events", 1)
		k.Mapping.Events = e
		k.note("A row whose %s is %s shows an item, and %s takes it ([events]). Other rows are not read.", name, e.Shown, e.Chosen)
		for _, f := range rows {
			if textOf(f[name]) == e.Shown {
				views = append(views, f)
			}
		}
		return views
	}
	return nil
}

// clicks says what to do about pages on which several items were clicked.
func (k *recognizer) clicks(rows []fields) {
	e, c := k.Mapping.Events, k.Mapping.Columns
	taken := map[string]map[string]bool{}
	pages := map[string]bool{}
	n := 0
	for _, f := range rows {
		id := textOf(f[c.Decision])
		pages[id] = true
		if textOf(f[e.Column]) != e.Chosen {
			continue
		}
		if taken[id] == nil {
			taken[id] = map[string]bool{}
		}
		if taken[id][textOf(f[c.Item])] = true; len(taken[id]) == 2 {
			n++
		}
	}
	k.manyTaken(n, len(pages))
}
