package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2"

	"vitrine/service/api"
	"vitrine/service/importer/cell"
	"vitrine/service/personalizer"
	"vitrine/service/setup"
)

// Survey summarizes the decisions of a log. Its size does not grow with the log.
type Survey struct {
	Decisions    int            // that can be imported
	Skipped      map[string]int // that cannot, by the reason
	Taken        int            // with an item taken, or a reward
	Partial      int            // with a reward between 0 and 1, which is the probability that the item was taken
	Shown, Items Range[int]     // of a decision
	Unshown      int            // with items that were not shown
	Different    int            // items, at most maxDifferent
	Propensities int            // with a propensity
	Propensity   Range[float64] // of a page
	Laws         int            // with a law
	Times        Range[int64]
	Revenue      Range[float64] // of an item
	Positions    []Position     // the first ones
	Sorted       bool           // whether the rows of a decision were apart

	columns map[string]*column
	names   []string // of columns, in the order in which they came
	ours    bool     // whether the log is a table of vitrine export
	items   map[string]bool
}

// Range is the least and the largest of N numbers, and their sum.
type Range[T int | int64 | float64] struct {
	N                int
	Least, Most, Sum T
}

func (r *Range[T]) add(v T) {
	if r.N == 0 {
		r.Least, r.Most = v, v
	}
	r.N++
	r.Least, r.Most, r.Sum = min(r.Least, v), max(r.Most, v), r.Sum+v
}

// Position counts how often an item was shown and taken at a position of the page.
type Position struct{ Shown, Taken int }

const (
	maxDifferent = 100_000
	maxPositions = 20
	maxDistinct  = 1000 // values of a column that are kept
	maxColumns   = 2000
	maxProposed  = 60 // features
)

// column summarizes a column, or a path of JSON.
type column struct {
	user          bool // whether it is the user's
	varies        bool // within a decision
	n, times      int  // values, and how many of them are times
	missing       int
	numbers       Range[float64]
	squares       float64 // the sum of the numbers' squares
	values        map[string]int
	taken, passed int    // rows with a value other than 0
	names         int    // texts with spaces
	absent        int    // texts such as NA, which stand for no number
	foreign       int    // numbers in another form than 1234.5
	odd           string // the first value that is no number
}

// add counts a value in a decision.
func (c *column) add(v api.Value, taken bool, decision string) {
	text := cell.Text(v)
	if v.Kind == api.Missing || text == "" || strings.EqualFold(text, "null") || strings.EqualFold(text, "nan") ||
		text == `\N` {
		c.missing++
		return
	}
	c.n++
	n, err := cell.Typed("number", v)
	x, isNumber := n.Number, err == nil && n.Kind == api.IsNumber
	switch {
	case isNumber:
		c.numbers.add(x)
		c.squares += float64(x * x)
	case err == nil && isMissing(n):
		c.absent++
	default:
		if c.odd == "" {
			c.odd = fmt.Sprintf("%.40q in decision %s", text, decision)
		}
		if cell.IsTime(v) {
			c.times++
		} else if cell.Foreign.MatchString(text) {
			c.foreign++
		}
	}
	if strings.Contains(text, " ") {
		c.names++
	}
	switch {
	case isNumber && x == 0, err == nil && isMissing(n):
	case taken:
		c.taken++
	default:
		c.passed++
	}
	if len(c.values) <= maxDistinct {
		c.values[text]++
	}
}

// Survey reads the whole log once.
func (l *Log) Survey(ctx context.Context) (*Survey, error) {
	c, err := setup.Parse([]byte(personalizerPlacement))
	if err != nil {
		return nil, err
	}
	v := &Survey{Skipped: map[string]int{}, columns: map[string]*column{}, items: map[string]bool{},
		Sorted: l.sorted != nil}
	s := &source{Log: l, ctx: ctx, config: c, survey: v, report: &Report{Skipped: v.Skipped}, used: map[string]bool{},
		seen: map[string]bool{}, ids: map[string]bool{}}
	err = l.named(ctx, formats[l.format](s))
	if s.isTable() {
		v.ours = s.ours
		for _, c := range v.columns {
			c.missing = v.Items.Sum - c.n // an empty cell is no field of its row
		}
	}
	return v, err
}

// add counts a decision.
func (v *Survey) add(s *source, f *found, rewards []api.Reward) {
	isTaken := func(id string) bool {
		return slices.ContainsFunc(rewards, func(r api.Reward) bool { return r.Item == id })
	}
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	hasLaw := f.law != nil || s.mapping.Law != nil
	v.Decisions++
	count(&v.Taken, len(rewards) > 0)
	count(&v.Partial, slices.ContainsFunc(rewards, func(r api.Reward) bool { return r.Value < 1 }))
	count(&v.Unshown, len(f.items) > len(f.shown))
	count(&v.Laws, hasLaw)
	count(&v.Propensities, hasLaw || f.propensity > 0)
	v.Shown.add(len(f.shown))
	v.Items.add(len(f.items))
	if f.propensity > 0 {
		v.Propensity.add(f.propensity)
	}
	if f.time != 0 {
		v.Times.add(f.time)
	}
	for k, id := range f.shown[:min(len(f.shown), maxPositions)] {
		if len(v.Positions) <= k {
			v.Positions = append(v.Positions, Position{})
		}
		v.Positions[k].Shown++
		count(&v.Positions[k].Taken, isTaken(id))
	}
	for _, item := range f.items {
		if len(v.items) < maxDifferent {
			v.items[item.id] = true
		}
		if item.revenue != nil {
			v.Revenue.add(*item.revenue)
		}
		v.values(item.fields, false, isTaken(item.id), f.id)
		for name, value := range item.fields {
			if value != f.items[0].fields[name] && v.columns[name] != nil {
				v.columns[name].varies = true
			}
		}
	}
	v.Different = len(v.items)
	if !s.isTable() {
		v.values(f.user, true, len(rewards) > 0, f.id)
	}
}

// values adds the values of an item, or of the user, to their columns. A column belongs to the side that named it
// first.
func (v *Survey) values(f fields, user, taken bool, decision string) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if name == "*" || len(v.columns) >= maxColumns && v.columns[name] == nil {
			continue
		}
		if v.columns[name] == nil {
			v.columns[name] = &column{user: user, values: map[string]int{}}
			v.names = append(v.names, name)
		}
		if c := v.columns[name]; c.user == user {
			c.add(f[name], taken, decision)
		}
	}
}

// isTable reports whether items and users share their columns, as in the rows of a table.
func (s *source) isTable() bool { return s.format == "csv" || s.format == "parquet" }

// personalizerPlacement is the placement of docs/personalizer.md, which also logs the rows of all candidates.
const personalizerPlacement = `{"max_size": 10, "mode": "explore", "explore_share": 0.2, "log_items": "all", "features": ` + personalizer.AnyFeatures + "}"

// Propose returns the placement that learns from the log, in JSON, and names the columns of its features in the
// mapping. Notes list the columns left out. It returns an error if nothing describes the items.
func (r *Recognized) Propose(v *Survey) (text []byte, notes []string, err error) {
	notes = r.uniform(v)
	p := map[string]any{"max_size": max(1, v.Shown.Most), "log_items": "all", "mode": "explore", "explore": "swaps",
		"explore_share": 0.1}
	if v.Items.Most > 1000 {
		p["max_request_items"] = v.Items.Most
	}
	var features []any
	if r.Mapping.Format == "personalizer" {
		var own map[string]any
		if err := json.Unmarshal([]byte(personalizerPlacement), &own); err != nil {
			return nil, nil, err
		}
		features = own["features"].([]any)
	} else {
		var more []string
		features, more = r.features(v)
		if notes = append(notes, more...); len(features) == 0 {
			return nil, notes, errors.New("no column describes the items: neither their features nor an id that " +
				"comes again")
		}
	}
	p["features"] = []any{}
	if text, err = json.Marshal(p, json.Deterministic(true), jsontext.WithIndent("  ")); err != nil {
		return nil, nil, err
	}
	var lines [][]byte // a feature on each
	for _, f := range features {
		line, err := json.Marshal(f, json.Deterministic(true), jsontext.SpaceAfterColon(true),
			jsontext.SpaceAfterComma(true))
		if err != nil {
			return nil, notes, fmt.Errorf("feature %v is not UTF-8: convert the file", f.(map[string]any)["name"])
		}
		lines = append(lines, line)
	}
	text = bytes.Replace(text, []byte("[]"), slices.Concat([]byte("[\n    "), bytes.Join(lines, []byte(",\n    ")),
		[]byte("\n  ]")), 1)
	if _, err := setup.Parse(text); err != nil {
		return nil, notes, fmt.Errorf("the proposed placement: %w", err)
	}
	return append(text, '\n'), notes, nil
}

// uniform sets the law of a log if its propensities match uniformly drawn pages.
func (r *Recognized) uniform(v *Survey) (notes []string) {
	n, k, p := v.Items.Most, v.Shown.Most, v.Propensity.Least
	all := 1.0 // sets of k of n items
	for i := range k {
		all *= float64(n-i) / float64(i+1)
	}
	if r.Mapping.Law != nil || v.Laws > 0 || v.Propensities < v.Decisions || n == k || v.Items.Least < n ||
		v.Shown.Least < k || !(v.Propensity.Most-p <= 0.001*p) || !(math.Abs(p*all-1) < 0.01) {
		return nil
	}
	r.Mapping.Law = &Law{Draw: "pages", Share: 1, Size: k}
	v.Laws = v.Decisions
	return []string{fmt.Sprintf("Every propensity is 1/%.0f, and there are as many pages of %d of %d items: every "+
		"page was drawn uniformly ([sampling_law]).", all, k, n)}
}

// roles are the columns that are no features.
func (m *Mapping) roles() []string {
	c := m.Columns
	list := []string{c.Decision, c.Time, c.Shown, c.Chosen, c.Revenue, c.Propensity, "status", "decision_id", "_revenue"}
	if m.Events != nil {
		list = append(list, m.Events.Column)
	}
	if m.Law != nil {
		list = append(list, m.Law.Page, m.Law.Propensity, m.Law.Slot)
	}
	if m.Format == "obp" {
		list = append(list, "item_id", "timestamp", "position", "click", "propensity_score", "decision_id", "revenue")
	}
	if m.Format == "jsonl" || m.Format == "csv" || m.Format == "tsv" || m.Format == "parquet" {
		list = append(list, "time", "shown", "chosen", "revenue", "propensity")
	}
	return list
}

// Why columns are no features.
const (
	tellOutcome = "which tell the outcome"
	idLike      = "which are ids, times or texts"
	constant    = "which have one value"
	rare        = "which are nearly always missing"
)

// features proposes the features of a placement and says which columns are left out.
func (r *Recognized) features(v *Survey) (features []any, notes []string) {
	none := map[string][]string{}
	sharing := map[string]int{} // how many paths end with a name
	for _, name := range v.names {
		sharing[lastOf(name)]++
	}
	r.Mapping.Features = map[string]string{}
	left := 0
	for _, name := range v.names {
		if r.skips(v, name) {
			continue
		}
		f, why := r.feature(v, name)
		if c := v.columns[name]; c.odd != "" && !r.isItem(name) && !isIDName(name) &&
			10*(c.numbers.N+c.absent+c.foreign) >= 9*c.n {
			notes = append(notes, fmt.Sprintf("%s is not taken for a number, because of %s: write numbers as 1234.5.", name,
				c.odd))
		}
		switch {
		case why != "":
			none[why] = append(none[why], name)
			continue
		case f == nil:
			continue
		case len(features) == maxProposed:
			left++
			continue
		}
		short := name
		if last := lastOf(name); sharing[last] == 1 || sharing[last] == 2 && repeats(r.Mapping.Format) && last != name &&
			v.columns[last] != nil {
			short = last
		}
		if name == r.Mapping.Columns.Item && sharing["item"] == 0 {
			short = "item"
		}
		if f["name"] = short; short != name {
			r.Mapping.Features[short] = name
		}
		features = append(features, f)
	}
	if left > 0 {
		notes = append(notes, fmt.Sprintf("%d more features are left out: the first %d are proposed.", left,
			maxProposed))
	}
	for _, why := range []string{tellOutcome, idLike, constant, rare} {
		names, more := none[why], ""
		if n := len(names) - 8; n > 0 {
			names, more = names[:8], fmt.Sprintf(" and %d more", n)
		}
		if names != nil {
			notes = append(notes, fmt.Sprintf("Not features: %s%s, %s.", strings.Join(names, ", "), more, why))
		}
	}
	return features, notes
}

// skips reports whether a column plays another role, or repeats a value by another name.
func (r *Recognized) skips(v *Survey, name string) bool {
	switch format := r.Mapping.Format; {
	case name == "", slices.Contains(r.Mapping.roles(), name):
		return true
	case v.ours && exportedOnly[name]:
		return name != "variant" || !v.columns[name].varies // an experiment has one for all items
	case repeats(format) && isRepeated(name, v.names):
		return true
	case format == "obp":
		return strings.HasPrefix(name, "user-item_affinity_")
	}
	// The place among the actions of a line of Vowpal Wabbit identifies no item.
	return name == "id" && r.isVW() && r.Mapping.Actions == 0 && v.Different <= v.Items.Most
}

func (r *Recognized) isVW() bool { return r.Mapping.Format == "vw" || r.Mapping.Format == "vwjson" }

// whyNone returns why a column is no feature, "" if it may be one.
func (r *Recognized) whyNone(v *Survey, name string, c *column, user bool) string {
	isOutcome := c.isUnit() && c.numbers.N == c.n && hasWord(name, chosenWords) ||
		c.taken > 0 && c.passed == 0 && v.Taken < v.Decisions
	switch {
	case user && isPerson(name):
		return idLike
	case !c.user && isOutcome:
		return tellOutcome
	case len(c.values) < 2:
		return constant
	case float64(c.n) < 0.02*float64(c.n+c.missing):
		return rare
	case !r.isItem(name) && c.times > 0 && c.numbers.N+c.times == c.n:
		return idLike
	}
	return ""
}

func (c *column) isUnit() bool { return c.numbers.Least == 0 && c.numbers.Most == 1 }

// isItem reports whether a column holds the ids of items.
func (r *Recognized) isItem(name string) bool {
	return name == r.Mapping.Columns.Item || name == "id" && r.isVW()
}

// itemFeature returns the feature of the ids of items, nil if they do not come again.
func (v *Survey) itemFeature(c *column) map[string]any {
	switch distinct := len(c.values); {
	case distinct <= 64 && v.Decisions >= 5*distinct:
		return map[string]any{"kind": "category", "values": slices.Sorted(maps.Keys(c.values)), "allow_other": true}
	case len(v.names) == 1 || v.Different <= maxDistinct && v.Decisions > v.Different:
		return map[string]any{"kind": "category", "columns": 64}
	}
	return nil
}

// numberFeature returns the feature of numbers, nil if they are all the same.
func (c *column) numberFeature() map[string]any {
	mean := c.numbers.Sum / float64(c.numbers.N)
	sd := math.Sqrt(max(0, c.squares/float64(c.numbers.N)-float64(mean*mean)))
	if sd == 0 {
		return nil
	}
	f := map[string]any{"kind": "number", "default": digits(mean)}
	if !c.isUnit() {
		f["center"], f["scale"] = digits(mean), digits(sd)
	}
	return f
}

// categoryFeature returns the feature of a category with few values.
func (c *column) categoryFeature(mayMiss bool) map[string]any {
	values := slices.Sorted(maps.Keys(c.values))
	f := map[string]any{"kind": "category", "allow_other": true}
	if mayMiss {
		if f["default"] = "none"; !slices.Contains(values, "none") {
			values = append([]string{"none"}, values...)
		}
	}
	f["values"] = values
	return f
}

// feature returns the feature of a column, or why it is left out. Both are empty if the column holds no information.
func (r *Recognized) feature(v *Survey, name string) (f map[string]any, why string) {
	c := v.columns[name]
	if c.n == 0 {
		return nil, ""
	}
	user := c.user || r.isTable() && !c.varies && v.Items.Most > 1
	if why := r.whyNone(v, name, c, user); why != "" {
		return nil, why
	}
	distinct := len(c.values)
	switch {
	case r.isItem(name):
		return v.itemFeature(c), ""
	case c.numbers.N > 0 && c.numbers.N+c.absent == c.n && !isIDName(name):
		if f = c.numberFeature(); f == nil {
			return nil, constant
		}
		if r.isVW() || r.Mapping.Format == "dsjson" && c.missing+c.n < v.Items.Sum {
			f["default"] = 0 // a sparse log leaves zeros out
		}
	case distinct <= 30:
		f = c.categoryFeature(c.missing > 0 || !r.isTable())
	case distinct <= maxDistinct && distinct*3 < c.n && c.names*2 < c.n:
		f = map[string]any{"kind": "category", "columns": 32, "default": "none"}
	default:
		return nil, idLike
	}
	if user {
		f["from"] = "shopper"
	}
	return f, ""
}

// isTable reports whether the format is a table, with the user's columns in each row.
func (r *Recognized) isTable() bool {
	return r.rows || slices.Contains([]string{"csv", "tsv", "parquet"}, r.Mapping.Format)
}

func lastOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func hasWord(name string, list []string) bool {
	return slices.ContainsFunc(words(name), func(w string) bool { return slices.Contains(list, w) })
}

// repeats reports whether the readers of a format name a value by its path and again by the last name of the path.
func repeats(format string) bool {
	return format == "dsjson" || format == "vwjson" || format == "personalizer"
}

// isRepeated reports whether a name is the last of a path.
func isRepeated(name string, paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return strings.HasSuffix(path, "."+name) })
}

// isIDName reports whether a name says that its numbers are ids.
func isIDName(name string) bool {
	w := words(name)
	return len(w) > 1 && slices.Contains([]string{"id", "key", "code", "uuid", "no", "nr"}, w[len(w)-1])
}

// isPerson reports whether a name says that its values are persons or their sessions.
func isPerson(name string) bool {
	w := words(name)
	if !hasWord(name, []string{"user", "session", "visitor", "cookie", "customer", "client", "uid", "device"}) {
		return false
	}
	last := w[len(w)-1]
	return last == "id" || last == "uid" || len(w) == 1 && last != "device"
}

// digits returns a number of three digits.
func digits(v float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	return v
}

// Text returns the mapping in TOML. It panics if TOML cannot hold the mapping, which cannot happen: a mapping consists
// of texts and numbers.
func (m *Mapping) Text() string {
	text, err := toml.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("importer: a mapping that TOML cannot hold: %v", err))
	}
	return string(text)
}
