package records

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2"

	"vitrine/service/api"
	"vitrine/service/setup"
)

// Survey is what the decisions of a log hold. Its size does not grow with the log.
type Survey struct {
	Decisions    int            // that can be imported
	Skipped      map[string]int // that cannot, by the reason
	Taken        int            // with an item taken, or a reward
	Partial      int            // with a reward between 0 and 1, which is the probability that the item was taken
	Shown, Items Range          // of a decision
	Unshown      int            // with items that were not shown
	Different    int            // items, at most maxDifferent
	Propensities int            // with a propensity
	Propensity   [2]float64     // the least and the largest propensity of a page
	Laws         int            // with a law
	Times        int
	First, Last  int64 // times
	Revenues     int   // items with a revenue
	Revenue      [2]float64
	Positions    []Position // the first ones

	columns map[string]*column
	names   []string // of columns, in the order in which they came
	items   map[string]bool
	sorted  bool
}

// Sorted reports whether the rows of a decision were apart.
func (v *Survey) Sorted() bool { return v.sorted }

// Range is the least and the largest of some numbers, and their sum.
type Range struct{ Least, Most, Sum int }

func (r *Range) add(n int) {
	if r.Sum == 0 && r.Most == 0 {
		r.Least = n
	}
	r.Least, r.Most, r.Sum = min(r.Least, n), max(r.Most, n), r.Sum+n
}

// Position counts what was shown and taken at a position of the page.
type Position struct{ Shown, Taken int }

const (
	maxDifferent = 100_000
	maxPositions = 20
	maxDistinct  = 1000 // values of a column that are kept
	maxColumns   = 2000
	maxProposed  = 60 // features
)

// column is what a column holds, or a path of JSON.
type column struct {
	user           bool // whether it is the user's
	varies         bool // within a decision
	n, numbers     int
	times          int
	missing        int
	sum, squares   float64
	least, most    float64
	values         map[string]int
	taken, passed  int // rows with a value other than 0
	longest, names int // the longest text, and how many texts have spaces
}

func (c *column) add(v api.Value, taken bool) {
	text := textOf(v)
	if v.Kind == api.Missing || text == "" || strings.EqualFold(text, "null") || strings.EqualFold(text, "nan") || text == `\N` {
		c.missing++
		return
	}
	c.n++
	x, isNumber := number(v)
	if isNumber {
		if c.numbers == 0 {
			c.least, c.most = x, x
		}
		c.numbers++
		c.sum += x
		c.squares += x * x
		c.least, c.most = min(c.least, x), max(c.most, x)
	} else if isMoment(v) {
		c.times++
	}
	if c.longest = max(c.longest, len(text)); strings.Contains(text, " ") {
		c.names++
	}
	if !isNumber || x != 0 {
		if taken {
			c.taken++
		} else {
			c.passed++
		}
	}
	if len(c.values) <= maxDistinct {
		c.values[text]++
	}
}

// Survey reads the whole log once. Progress, if set, is called with the bytes read.
func (l *Log) Survey(ctx context.Context, progress func(done, total int64)) (*Survey, error) {
	c, err := setup.Parse([]byte(personalizerPlacement))
	if err != nil {
		return nil, err
	}
	v := &Survey{Skipped: map[string]int{}, columns: map[string]*column{}, items: map[string]bool{}, sorted: l.sorted != nil}
	s := &source{Log: l, ctx: ctx, config: c, survey: v, report: &Report{Skipped: v.Skipped}, used: map[string]bool{}, seen: map[string]bool{}, ids: map[string]bool{}}
	info, err := l.file.Stat()
	if err != nil {
		return nil, err
	}
	v.progress(s, progress, info.Size())
	err = l.named(ctx, safely(func() error { return formats[l.format](s) }))
	return v, err
}

// progress makes the source tell how much it has read.
func (v *Survey) progress(s *source, tell func(done, total int64), size int64) {
	n := 0
	s.surveyed = func() {
		if n++; tell != nil && n%1000 == 0 {
			if at, err := s.file.Seek(0, io.SeekCurrent); err == nil {
				tell(min(at, size), size)
			}
		}
	}
}

// add counts a decision.
func (v *Survey) add(s *source, f *found) error {
	s.surveyed()
	isTaken := func(id string) bool { return slices.Contains(f.taken, id) }
	if f.rewards != nil {
		isTaken = func(id string) bool {
			at := slices.Index(f.shown, id)
			return at >= 0 && f.rewards[at] > 0
		}
	}
	for _, id := range f.taken {
		if !slices.Contains(f.shown, id) {
			return fmt.Errorf("decision %s: item %q was chosen and not shown", f.id, id)
		}
	}
	taken := 0
	for k, id := range f.shown {
		if k < maxPositions {
			if len(v.Positions) <= k {
				v.Positions = append(v.Positions, Position{})
			}
			v.Positions[k].Shown++
			if isTaken(id) {
				v.Positions[k].Taken++
			}
		}
		if isTaken(id) {
			taken++
		}
	}
	if taken > 1 && s.mapping.Several == "skip" {
		v.Skipped["have several items taken"]++
		return nil
	}
	if slices.ContainsFunc(f.rewards, func(r float64) bool { return r > 0 && r < 1 }) {
		v.Partial++
	}
	v.Decisions++
	if taken > 0 {
		v.Taken++
	}
	v.Shown.add(len(f.shown))
	v.Items.add(len(f.items))
	if len(f.items) > len(f.shown) {
		v.Unshown++
	}
	if p := f.propensity; p > 0 {
		if v.Propensity[1] == 0 {
			v.Propensity[0] = p
		}
		v.Propensity = [2]float64{min(v.Propensity[0], p), max(v.Propensity[1], p)}
	}
	if f.propensity > 0 || f.law != nil || s.mapping.Law != nil {
		v.Propensities++
	}
	if f.law != nil || s.mapping.Law != nil {
		v.Laws++
	}
	if f.time != 0 {
		if v.Times == 0 {
			v.First, v.Last = f.time, f.time
		}
		v.Times++
		v.First, v.Last = min(v.First, f.time), max(v.Last, f.time)
	}
	table := s.isTable()
	previous := map[string]api.Value{}
	for i, item := range f.items {
		if len(v.items) < maxDifferent {
			v.items[item.id] = true
		}
		v.Different = len(v.items)
		if r := item.revenue; r != nil {
			if v.Revenues == 0 {
				v.Revenue = [2]float64{*r, *r}
			}
			v.Revenues++
			v.Revenue = [2]float64{min(v.Revenue[0], *r), max(v.Revenue[1], *r)}
		}
		for _, name := range slices.Sorted(maps.Keys(item.fields)) {
			c := v.column(name, false)
			if c == nil {
				continue
			}
			value := item.fields[name]
			c.add(value, isTaken(item.id))
			if i > 0 && previous[name] != value {
				c.varies = true
			}
			previous[name] = value
		}
	}
	if !table {
		for _, name := range slices.Sorted(maps.Keys(f.user)) {
			if c := v.column(name, true); c != nil {
				c.add(f.user[name], taken > 0)
			}
		}
	}
	return nil
}

// isTable reports whether the columns of items and users are the same, a row of which has both.
func (s *source) isTable() bool { return s.format == "csv" || s.format == "parquet" }

func (v *Survey) column(name string, user bool) *column {
	if name == "*" || len(v.columns) >= maxColumns && v.columns[name] == nil {
		return nil
	}
	if v.columns[name] == nil {
		v.columns[name] = &column{user: user, values: map[string]int{}}
		v.names = append(v.names, name)
	}
	if c := v.columns[name]; c.user == user {
		return c
	}
	return nil
}

// personalizerPlacement is that of docs/personalizer.md, with the rows of all candidates.
const personalizerPlacement = `{"max_size": 10, "mode": "explore", "explore_share": 0.2, "record": "all", "features": [
    {"name": "id", "kind": "category", "buckets": 32},
    {"name": "action", "kind": "object", "buckets": 16},
    {"name": "context", "kind": "object", "from": "user", "buckets": 16},
    {"name": "action in context", "kind": "cross", "of": ["action", "context"]}
  ]}`

// Propose returns the placement that learns from the log, in JSON, and names the columns of its features in the mapping. Notes
// say what was left out. It returns an error if nothing describes the items.
func (r *Recognized) Propose(v *Survey) (text []byte, notes []string, err error) {
	notes = r.uniform(v)
	p := map[string]any{"max_size": max(1, v.Shown.Most), "record": "all", "mode": "explore", "explore": "slots", "explore_share": 0.1}
	if v.Items.Most > 1000 {
		p["max_items"] = v.Items.Most
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
			return nil, notes, errors.New("no column describes the items: neither their features nor an id that comes again")
		}
	}
	p["features"] = []any{}
	if text, err = json.Marshal(p, json.Deterministic(true), jsontext.WithIndent("  ")); err != nil {
		return nil, nil, err
	}
	lines := make([]string, len(features))
	for i, f := range features {
		line, err := json.Marshal(f, json.Deterministic(true), jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
		if err != nil {
			return nil, nil, err
		}
		lines[i] = "    " + string(line)
	}
	text = bytes.Replace(text, []byte("[]"), []byte("[\n"+strings.Join(lines, ",\n")+"\n  ]"), 1)
	if _, err := setup.Parse(text); err != nil {
		return nil, notes, fmt.Errorf("the proposed placement: %w", err)
	}
	return append(text, '\n'), notes, nil
}

// uniform sets the law of a log whose propensities are those of uniformly drawn pages.
func (r *Recognized) uniform(v *Survey) (notes []string) {
	n, k, p := v.Items.Most, v.Shown.Most, v.Propensity[0]
	all := 1.0 // sets of k of n items
	for i := range k {
		all *= float64(n-i) / float64(i+1)
	}
	if r.Mapping.Law != nil || v.Laws > 0 || v.Propensities < v.Decisions || n == k || v.Items.Least < n || v.Shown.Least < k || !(v.Propensity[1]-p <= 0.001*p) || !(math.Abs(p*all-1) < 0.01) {
		return nil
	}
	r.Mapping.Law = &Law{Draw: "pages", Share: 1, Size: k}
	v.Laws = v.Decisions
	return []string{fmt.Sprintf("Every propensity is 1/%.0f, and there are as many pages of %d of %d items: every page was drawn uniformly ([law]).", all, k, n)}
}

// roles are the columns that are no features.
func (m *Mapping) roles() []string {
	c := m.Columns
	list := []string{c.Decision, c.Time, c.Shown, c.Chosen, c.Revenue, c.Propensity, "law", "status", "outcome_time", "earned", "decision_id", "_revenue"}
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

func (r *Recognized) features(v *Survey) (features []any, notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	roles := r.Mapping.roles()
	var outcomes, ids, constant, rare []string
	last := map[string]int{}
	for _, name := range v.names {
		last[lastOf(name)]++
	}
	r.Mapping.Features = map[string]string{}
	propose := func(name string, f map[string]any, user bool) {
		short := name
		if l := lastOf(name); last[l] == 1 || r.repeats() && l != name && v.columns[l] != nil && last[l] == 2 {
			short = l
		}
		if user {
			f["from"] = "user"
		}
		if name == r.Mapping.Columns.Item && last["item"] == 0 {
			short = "item"
		}
		if f["name"] = short; short != name {
			r.Mapping.Features[short] = name
		}
		features = append(features, f)
	}
	for _, name := range v.names {
		c := v.columns[name]
		if name == "" || slices.Contains(roles, name) || r.repeats() && v.isShort(name) || r.Mapping.Format == "obp" && strings.HasPrefix(name, "user-item_affinity_") {
			continue
		}
		user := c.user || r.isTable() && !c.varies && v.Items.Most > 1
		distinct := len(c.values)
		item := name == r.Mapping.Columns.Item
		if name == "id" && (r.Mapping.Format == "vw" || r.Mapping.Format == "vwjson") {
			if item = r.Mapping.Actions > 0 || v.Different > v.Items.Most; !item { // the place among the actions
				continue
			}
		}
		all := c.n + c.missing
		share := float64(c.n) / float64(all)
		switch isFlag := slices.Contains(chosenWords, lastWord(name)) && c.most == 1 && c.least == 0; {
		case c.n == 0:
		case user && isPerson(name):
			ids = append(ids, name)
		case c.taken > 0 && c.passed == 0 && !c.user && v.Taken < v.Decisions || isFlag && !c.user && c.numbers == c.n:
			outcomes = append(outcomes, name)
		case distinct < 2:
			constant = append(constant, name)
		case share < 0.02:
			rare = append(rare, name)
		case item:
			if distinct <= 64 && v.Decisions >= 5*distinct {
				propose(name, map[string]any{"kind": "category", "values": slices.Sorted(maps.Keys(c.values)), "other": true}, false)
			} else if len(v.names) == 1 || v.Different <= maxDistinct && v.Decisions > v.Different {
				propose(name, map[string]any{"kind": "category", "buckets": 64}, false)
			}
		case c.times == c.n, c.times > 0 && c.numbers+c.times == c.n:
			ids = append(ids, name)
		case c.numbers == c.n && !isIDName(name) && (distinct > 2 || c.least != 0 || c.most != 1 || c.numbers > 0):
			mean := c.sum / float64(c.n)
			sd := math.Sqrt(max(0, c.squares/float64(c.n)-mean*mean))
			f := map[string]any{"kind": "number"}
			if c.least != 0 || c.most != 1 {
				f["center"], f["scale"] = digits(mean), digits(sd)
			}
			if f["default"] = digits(mean); r.Mapping.Format == "vw" || r.Mapping.Format == "vwjson" || r.Mapping.Format == "dsjson" && c.missing+c.n < v.Items.Sum {
				f["default"] = 0 // what a sparse log leaves out
			}
			if sd > 0 {
				propose(name, f, user)
			}
		case distinct <= 30:
			f := map[string]any{"kind": "category", "values": slices.Sorted(maps.Keys(c.values)), "other": true}
			propose(name, f, user)
			f["default"] = f["values"].([]string)[0]
			if c.missing == 0 && r.isTable() {
				delete(f, "default")
			} else if !slices.Contains(f["values"].([]string), "none") {
				f["values"], f["default"] = append([]string{"none"}, f["values"].([]string)...), "none"
			}
		case distinct <= maxDistinct && distinct*3 < c.n && c.names*2 < c.n:
			propose(name, map[string]any{"kind": "category", "buckets": 32, "default": "none"}, user)
		default:
			ids = append(ids, name)
		}
	}
	if n := len(features) - maxProposed; n > 0 {
		features = features[:maxProposed]
		note("%d more features are left out: the first %d are proposed.", n, maxProposed)
		kept := map[string]bool{}
		for _, f := range features {
			kept[f.(map[string]any)["name"].(string)] = true
		}
		maps.DeleteFunc(r.Mapping.Features, func(name, _ string) bool { return !kept[name] })
	}
	say := func(what string, names []string) {
		if len(names) > 0 {
			more := ""
			if n := len(names) - 8; n > 0 {
				names, more = names[:8], fmt.Sprintf(" and %d more", n)
			}
			note("Not features: %s%s, %s.", strings.Join(names, ", "), more, what)
		}
	}
	say("which tell the outcome", outcomes)
	say("which are ids, times or texts", ids)
	say("which have one value", constant)
	say("which are nearly always missing", rare)
	return features, notes
}

// isTable reports whether the rows of a table have the user's columns, too.
func (r *Recognized) isTable() bool {
	return slices.Contains([]string{"csv", "tsv", "parquet"}, r.Mapping.Format)
}

// lastOf returns the last name of a path.
func lastOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func lastWord(name string) string {
	for _, w := range words(name) {
		if slices.Contains(chosenWords, w) {
			return w
		}
	}
	return ""
}

// repeats reports whether the readers of a format name a value by its path and again by the last name of the path.
func (r *Recognized) repeats() bool {
	return r.Mapping.Format == "dsjson" || r.Mapping.Format == "vwjson"
}

// isShort reports whether a name is the last one of a path.
func (v *Survey) isShort(name string) bool {
	return slices.ContainsFunc(v.names, func(o string) bool { return strings.HasSuffix(o, "."+name) })
}

// isIDName reports whether a name says that its numbers are ids.
func isIDName(name string) bool {
	w := words(name)
	return len(w) > 1 && slices.Contains([]string{"id", "key", "code", "uuid", "no", "nr"}, w[len(w)-1])
}

// isPerson reports whether a name says that its values are persons or their sessions.
func isPerson(name string) bool {
	w := words(name)
	if len(w) == 0 {
		return false
	}
	last := w[len(w)-1]
	return slices.ContainsFunc(w, func(w string) bool {
		return slices.Contains([]string{"user", "session", "visitor", "cookie", "customer", "client", "uid", "device"}, w)
	}) && (last == "id" || last == "uid" || len(w) == 1 && w[0] != "device")
}

// digits returns a number of three digits.
func digits(v float64) float64 {
	if v == 0 {
		return 0
	}
	unit := math.Pow10(2 - int(math.Floor(math.Log10(math.Abs(v)))))
	if v = math.Round(v*unit) / unit; math.IsInf(v, 0) || math.IsNaN(v) {
		return 0
	}
	return v
}

// Text returns the mapping in TOML. It panics if TOML cannot hold the mapping, which has texts and numbers only.
func (m *Mapping) Text() string {
	text, err := toml.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("records: a mapping that TOML cannot hold: %v", err))
	}
	return string(text)
}
