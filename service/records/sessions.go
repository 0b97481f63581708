package records

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
)

// session is a line that is a decision: its values by the names of columns, and its lists. A list of objects is a list for
// each of their members, "items.price".
type session struct {
	fields fields
	lists  map[string][]api.Value
}

func newSession() *session { return &session{fields{}, map[string][]api.Value{}} }

// readSessions reads lines that are a decision each, with lists of their items: JSON Lines, or CSV whose fields have lists.
func readSessions(s *source) error {
	r, err := text(s.file)
	if err != nil {
		return err
	}
	for {
		b, err := r.Peek(1)
		if err != nil || !strings.ContainsRune(" \t\r\n", rune(b[0])) {
			break
		}
		r.Discard(1)
	}
	if head, _ := r.Peek(1); string(head) == "{" {
		return s.jsonSessions()
	}
	return s.csv(s.file, s.beginSessions, func(r row) error { return s.place(r.place, s.session(r.place, s.listed(r.fields))) })
}

// place adds a place to an error.
func (s *source) place(place string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	return nil
}

// beginSessions checks the columns of a table.
func (s *source) beginSessions(header []string) error {
	c := s.mapping.Columns
	if name := missingColumn(header, c.Decision, c.Time, c.Item, c.Shown, c.Chosen, c.Revenue, c.Propensity); name != "" {
		return fmt.Errorf("there is no column %q: the columns are %q", name, header)
	}
	for _, name := range header {
		s.seen[name] = true
	}
	return nil
}

// listed returns the fields of a row, of which some are lists: JSON in brackets, or texts with the mapping's separator.
func (s *source) listed(f fields) *session {
	l := newSession()
	c := s.mapping.Columns
	for name, v := range f {
		separator := s.mapping.List
		switch name {
		case c.Item, c.Shown, c.Chosen, c.Revenue:
		case c.Decision, c.Time, c.Propensity:
			l.fields[name] = v
			continue
		default:
			if separator == " " { // of words
				separator = ""
			}
		}
		if list, ok := listOf(textOf(v), separator); ok {
			l.lists[name] = list
		} else {
			l.fields[name] = v
		}
	}
	return l
}

// listOf parses a list of values.
func listOf(text, separator string) ([]api.Value, bool) {
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		var list []jsontext.Value
		if err := json.Unmarshal([]byte(text), &list); err == nil {
			values := make([]api.Value, len(list))
			for i, v := range list {
				if values[i], err = scalar(v); err != nil {
					return nil, false
				}
			}
			return values, true
		}
		// As Python prints one.
		inner := strings.TrimSpace(text[1 : len(text)-1])
		if inner == "" {
			return nil, true
		}
		if separator = ","; !strings.Contains(inner, ",") && strings.Contains(inner, " ") {
			separator = " "
		}
		text = inner
	} else if separator == "" || !strings.Contains(text, separator) {
		return nil, false
	}
	var values []api.Value
	parts := strings.Split(text, separator)
	if separator == " " {
		parts = strings.Fields(text)
	}
	for _, part := range parts {
		values = append(values, api.Text("", strings.Trim(strings.TrimSpace(part), `'"`)))
	}
	return values, true
}

// jsonSessions reads JSON Lines.
func (s *source) jsonSessions() error {
	return s.lines(func(place string, text []byte) error {
		l := newSession()
		if err := l.flatten("", jsontext.Value(text)); err != nil {
			return api.JSONError(err)
		}
		for name := range l.fields {
			s.seen[name] = true
		}
		for name := range l.lists {
			s.seen[name] = true
		}
		return s.session(place, l)
	})
}

// flatten adds the values inside an object by their paths with dots.
func (l *session) flatten(path string, text jsontext.Value) error {
	var object map[string]jsontext.Value
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	for name, v := range object {
		name := path + name
		switch v.Kind() {
		case '{':
			if err := l.flatten(name+".", v); err != nil {
				return err
			}
		case '[':
			if err := l.list(name, v); err != nil {
				return err
			}
		default:
			value, err := scalar(v)
			if err != nil {
				return err
			}
			l.fields[name] = value
		}
	}
	return nil
}

// list adds a list of values, or a list of objects as lists of their members.
func (l *session) list(name string, text jsontext.Value) error {
	var list []jsontext.Value
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list) == 0 || list[0].Kind() != '{' {
		l.lists[name] = make([]api.Value, len(list))
	}
	for i, v := range list {
		switch v.Kind() {
		case '{':
			inner := newSession()
			if err := inner.flatten("", v); err != nil {
				return err
			}
			for member, v := range inner.fields {
				member = name + "." + member
				if l.lists[member] == nil {
					l.lists[member] = make([]api.Value, len(list))
				}
				l.lists[member][i] = v
			}
		case '[':
		default:
			value, err := scalar(v)
			if err != nil {
				return err
			}
			if l.lists[name] != nil {
				l.lists[name][i] = value
			}
		}
	}
	return nil
}

// get returns the list of a column, or its only value as a list.
func (l *session) get(column string) []api.Value {
	if v := l.fields[column]; l.lists[column] == nil && v.Kind != api.Missing {
		return []api.Value{v}
	}
	return l.lists[column]
}

// session adds the decision of a line.
func (s *source) session(place string, l *session) error {
	c := s.mapping.Columns
	if c.Item == "" || c.Chosen == "" {
		return errors.New("sessions need columns.item, the list of items, and columns.chosen, the items taken, in the mapping")
	}
	f := &found{place: place, id: strings.ReplaceAll(place, " ", "-"), user: l.fields}
	if c.Decision != "" {
		if f.id = textOf(l.fields[c.Decision]); f.id == "" {
			return fmt.Errorf("column %s is empty: it identifies the decision", c.Decision)
		}
	}
	var err error
	if f.time, err = l.fields.time(c.Time); err != nil {
		return err
	}
	for _, name := range []string{c.Decision, c.Time, c.Item, c.Shown, c.Chosen, c.Revenue, c.Propensity} {
		s.used[name] = true
	}
	ids := l.get(c.Item)
	if len(ids) == 0 {
		f.skip = "list no items"
		return s.add(f)
	}
	var flags []api.Value // of each item, whether it was taken
	if c.Chosen == c.Item {
		flags = make([]api.Value, len(ids))
		for i, v := range ids {
			at := strings.LastIndexAny(v.Text, "-:")
			if at < 0 {
				return fmt.Errorf("column %s: %.40q does not end with -0 or -1", c.Item, v.Text)
			}
			flags[i], ids[i] = api.Text("", v.Text[at+1:]), api.Text("", v.Text[:at])
		}
	}
	for i, v := range ids {
		item := foundItem{id: textOf(v), fields: fields{c.Item: v}}
		if item.id == "" {
			return fmt.Errorf("column %s: an item is empty", c.Item)
		}
		if slices.ContainsFunc(f.items, func(o foundItem) bool { return o.id == item.id }) {
			return fmt.Errorf("column %s has item %q twice", c.Item, item.id)
		}
		for name, list := range l.lists {
			if len(list) == len(ids) && name != c.Item {
				item.fields[name] = list[i]
			}
		}
		if item.revenue, err = item.fields.revenue(c.Revenue); err != nil {
			return err
		}
		f.items = append(f.items, item)
	}
	if err := s.shown(f, l, ids); err != nil {
		return err
	}
	if v := l.fields[c.Propensity]; c.Propensity != "" && v.Kind != api.Missing {
		if f.propensity, err = probability(c.Propensity, v); err != nil {
			return err
		}
	}
	if f.taken, err = s.taken(l, ids, flags); err != nil {
		return err
	}
	return s.add(f)
}

// shown reads the items shown, in their order: a list of ids, or a position or a condition of each item.
func (s *source) shown(f *found, l *session, ids []api.Value) error {
	c := s.mapping.Columns
	list := l.get(c.Shown)
	if c.Shown == "" {
		for _, id := range ids {
			f.shown = append(f.shown, textOf(id))
		}
		return nil
	}
	if parent(c.Shown) == "" || parent(c.Shown) != parent(c.Item) {
		for _, v := range list {
			f.shown = append(f.shown, textOf(v))
		}
		return nil
	}
	if len(list) != len(ids) {
		return fmt.Errorf("column %s has %d values for %d items", c.Shown, len(list), len(ids))
	}
	order := map[string]float64{}
	for i, id := range ids {
		at, err := position(c.Shown, list[i], float64(i+1))
		if err != nil {
			return err
		}
		if at > 0 {
			order[textOf(id)] = at
			f.shown = append(f.shown, textOf(id))
		}
	}
	slices.SortStableFunc(f.shown, func(a, b string) int { return cmp.Compare(order[a], order[b]) })
	return nil
}

// parent returns the list of objects of a path, "items" of "items.price".
func parent(path string) string {
	at := strings.LastIndexByte(path, '.')
	return path[:max(at, 0)]
}

// taken returns the items that were taken: the id in the column chosen, a list of ids, or a condition of each item.
func (s *source) taken(l *session, ids, flags []api.Value) (taken []string, err error) {
	c := s.mapping.Columns
	list := l.get(c.Chosen)
	if flags == nil && len(list) == len(ids) && !slices.ContainsFunc(list, func(v api.Value) bool { _, err := flag("", v); return err != nil }) {
		flags = list
	}
	if flags == nil {
		for _, v := range list {
			if text := textOf(v); text != "" {
				taken = append(taken, text)
			}
		}
		return taken, nil
	}
	for i, v := range flags {
		is, err := flag(c.Chosen, v)
		if err != nil {
			return nil, err
		}
		if is {
			taken = append(taken, textOf(ids[i]))
		}
	}
	return taken, nil
}
