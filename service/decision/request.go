package decision

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"vitrine"
	"vitrine/assortment"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// request is an [api.Request] whose values are where the placement's schema has them.
type request struct {
	*api.Request
	items   []feature.Item  // N
	user    []feature.Value // nil where nothing is known of the user
	revenue []float64       // N, r_i ≥ 0; nil means 1 for every item
	note    string          // the ids of its slots, as the log has them; "" where they have none
}

// place returns a request with its values in their places, in d's memory.
func (d *decider) place(r *api.Request, s *feature.Schema) (*request, error) {
	q := &request{Request: r}
	n, width := len(r.Items), s.NumItem()
	d.items = slices.Grow(d.items[:0], n)[:n]
	d.values = slices.Grow(d.values[:0], n*width)[:n*width]
	clear(d.values)
	d.names = d.names[:0]
	for i := range r.Items {
		values := d.values[i*width : (i+1)*width : (i+1)*width]
		if err := d.put(values, r.Items[i].Features, s.Item); err != nil {
			return nil, err.at(fmt.Sprintf("/items/%d/features/", i), s.ItemNames)
		}
		d.items[i] = feature.Item{ID: r.Items[i].ID, Features: values}
		if v := r.Items[i].Revenue; v != nil {
			if q.revenue == nil {
				d.revenue = resize(d.revenue, n)
				q.revenue = d.revenue
				for j := range q.revenue {
					q.revenue[j] = 1
				}
			}
			q.revenue[i] = *v
		}
	}
	q.items = d.items
	if r.User != nil {
		d.names = d.names[:0]
		q.user = make([]feature.Value, s.NumUser())
		if err := d.put(q.user, r.User, s.User); err != nil {
			return nil, err.at("/user/", s.UserNames)
		}
	}
	return q, q.nameSlots()
}

// named is where a schema has the values of a name.
type named struct {
	name string
	slot int
}

// misplaced is a value without a place, or whose place is taken.
type misplaced struct {
	name  string
	taken bool
}

func (m *misplaced) at(field string, names func() string) error {
	field += api.Pointer(m.name)
	if m.taken {
		return api.Fieldf(field, "the key is there twice")
	}
	return api.Fieldf(field, "unknown key %q: must be one of %s", api.Abbreviate(m.name, 40), names())
}

// put stores values where find says. Most items have theirs in the same order.
func (d *decider) put(dst []feature.Value, values api.Values, find func(name string) (slot int, ok bool)) *misplaced {
	for k := range values {
		v := &values[k]
		if k == len(d.names) || d.names[k].name != v.Name {
			slot, ok := find(v.Name)
			if !ok {
				return &misplaced{name: v.Name}
			}
			d.names = append(d.names[:k], named{v.Name, slot})
		}
		to := &dst[d.names[k].slot]
		if to.Kind != feature.Missing {
			return &misplaced{name: v.Name, taken: true}
		}
		*to = feature.Value{Kind: v.Kind, Number: v.Number, Text: v.Text}
	}
	return nil
}

const (
	largestID       = 200 // bytes
	largestDecision = 128
)

// RequestSize bounds the bytes that a request of so many items takes while it is read and decided, beside its text: the
// values of its features, N·d numbers of rows, and what there is of each item.
func (c *Config) RequestSize(items int) int64 {
	const value, item = 96, 200
	return int64(items) * int64(8*c.schema.Width()+value*c.schema.NumItem()+item)
}

// check reports what is wrong before the features are looked at, and returns
// where the ids are.
func (r *request) check(c *Config, index map[string]int) error {
	if err := checkDecision(r.Decision); err != nil {
		return err
	}
	if len(r.Items) == 0 {
		return api.Fieldf("/items", "must have at least one item")
	}
	for _, list := range []struct {
		field  string
		length int
	}{
		{"/items", len(r.Items)}, {"/include", len(r.Include)}, {"/exclude", len(r.Exclude)}, {"/at_most", len(r.AtMost)}, {"/baseline", len(r.Baseline)},
	} {
		if err := api.CheckLength(list.field, list.length, c.MaxItems); err != nil {
			return err
		}
	}
	for i, v := range r.revenue {
		if !(v >= 0 && v <= vitrine.MaxRevenue) {
			return api.Fieldf(fmt.Sprintf("/items/%d/revenue", i), "%v: must be finite, not negative and at most %v", v, vitrine.MaxRevenue)
		}
	}
	for i := range r.Items {
		id := r.Items[i].ID
		if id == "" || len(id) > largestID || !utf8.ValidString(id) {
			return api.Fieldf(fmt.Sprintf("/items/%d/id", i), "must have from 1 to %d bytes of UTF-8", largestID)
		}
		if j, twice := index[id]; twice {
			return api.Fieldf(fmt.Sprintf("/items/%d/id", i), "%q is the id of item %d too", id, j)
		}
		index[id] = i
	}
	if r.Size != 0 {
		if err := api.InRange("/size", r.Size, 1, c.MaxSize); err != nil {
			return err
		}
	}
	return nil
}

// checkDecision reports an id that cannot stand in a URL as it is. Ids that the engine
// makes have a ~.
func checkDecision(id string) error {
	if len(id) > largestDecision {
		return api.Fieldf("/decision_id", "must have at most %d bytes", largestDecision)
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-', c == ':':
		default:
			return api.Fieldf("/decision_id", "%q: must be of letters, digits, '.', '_', '-' and ':'", id)
		}
	}
	if id == "." || id == ".." {
		return api.Fieldf("/decision_id", "%q: is no name in a URL", id)
	}
	return nil
}

// family returns the sets that may be shown.
func (r *request) family(c *Config, index map[string]int) (vitrine.Constraint, error) {
	if r.Slots != nil {
		return r.transversal(c, index)
	}
	size := r.Size
	if size == 0 {
		size = c.MaxSize
	}
	if len(r.Include) == 0 && len(r.Exclude) == 0 && len(r.AtMost) == 0 && len(c.AtMost) == 0 {
		return assortment.AtMost(size), nil
	}
	rules := assortment.Rules{Items: len(r.Items), Max: size, Name: func(i int) string { return fmt.Sprintf("item %q", r.Items[i].ID) }}
	var err error
	if rules.Include, err = find("/include", r.Include, index); err != nil {
		return nil, err
	}
	if rules.Exclude, err = find("/exclude", r.Exclude, index); err != nil {
		return nil, err
	}
	for _, l := range c.AtMost {
		rules.Groups = append(rules.Groups, r.byCategory(c.schema, l)...)
	}
	limited := map[string]bool{}
	for i, l := range r.AtMost {
		field := fmt.Sprintf("/at_most/%d", i)
		if l.Items == nil {
			if err := checkCategory(l, field, c.schema, limited); err != nil {
				return nil, err
			}
			rules.Groups = append(rules.Groups, r.byCategory(c.schema, l)...)
			continue
		}
		if l.Feature != "" || l.Most < 0 {
			return nil, api.Fieldf(field, "must have items or a feature, and most ≥ 0")
		}
		items, err := find(field+"/items", l.Items, index)
		if err != nil {
			return nil, err
		}
		rules.Groups = append(rules.Groups, assortment.Group{Name: fmt.Sprintf("at_most %d", i), Items: items, Max: l.Most})
	}
	family, err := assortment.NewLaminar(rules)
	if err != nil {
		return nil, api.Fieldf("", "%v", err)
	}
	return family, nil
}

// find returns where the ids are.
func find(field string, ids []string, index map[string]int) ([]int, error) {
	at := make([]int, len(ids))
	for k, id := range ids {
		i, ok := index[id]
		if !ok {
			return nil, api.Fieldf(fmt.Sprintf("%s/%d", field, k), "%q is not among the items", id)
		}
		at[k] = i
	}
	return at, nil
}

// byCategory returns a group for every category that the items have.
func (r *request) byCategory(s *feature.Schema, l api.Limit) []assortment.Group {
	var groups []assortment.Group
	of := map[string]int{}
	for i := range r.Items {
		v := s.Category(&r.items[i], l.Feature)
		g, ok := of[v]
		if !ok {
			g = len(groups)
			of[v] = g
			groups = append(groups, assortment.Group{Name: fmt.Sprintf("%s %q", l.Feature, v), Max: l.Most})
		}
		groups[g].Items = append(groups[g].Items, i)
	}
	return groups
}

// checkCategory checks the limit of each category of a feature. A feature has one limit: each makes
// as many groups as there are items.
func checkCategory(l api.Limit, field string, s *feature.Schema, limited map[string]bool) error {
	if !s.IsCategory(l.Feature) {
		return api.Fieldf(field+"/feature", "%q: must be a category of items", l.Feature)
	}
	if l.Most < 0 {
		return api.Fieldf(field+"/most", "%d: must not be negative", l.Most)
	}
	if limited[l.Feature] {
		return api.Fieldf(field+"/feature", "%q has a limit already", l.Feature)
	}
	limited[l.Feature] = true
	return nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// sum is the SHA-256 of what the request says, whatever it was decoded from.
func (r *request) sum() [32]byte {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := (*buf)[:0]
	b = appendString(b, r.Decision)
	b = binary.AppendUvarint(b, uint64(len(r.Items)))
	for i := range r.Items {
		b = appendString(b, r.Items[i].ID)
		b = appendValues(b, r.items[i].Features)
	}
	b = appendValues(b, r.user)
	b = binary.AppendUvarint(b, uint64(len(r.revenue)))
	for _, v := range r.revenue {
		b = appendFloat(b, v)
	}
	b = binary.AppendUvarint(b, uint64(r.Size))
	b = appendStrings(b, r.Include)
	b = appendStrings(b, r.Exclude)
	b = binary.AppendUvarint(b, uint64(len(r.AtMost)))
	for _, l := range r.AtMost {
		b = appendStrings(b, l.Items)
		b = appendString(b, l.Feature)
		b = binary.AppendUvarint(b, uint64(l.Most))
	}
	b = appendStrings(b, r.Baseline)
	if r.Slots != nil || r.Defer || r.note != "" { // sums of what has none of these stay as they were
		b = appendFlag(b, r.Defer)
		b = appendString(b, r.note)
		b = appendFlag(b, r.Slots != nil)
		b = binary.AppendUvarint(b, uint64(len(r.Slots)))
		for _, s := range r.Slots {
			b = appendStrings(b, s.Exclude)
		}
	}
	*buf = b
	return sha256.Sum256(b)
}

func appendFlag(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, v []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(v)))
	for _, s := range v {
		b = appendString(b, s)
	}
	return b
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendValues(b []byte, values []feature.Value) []byte {
	b = binary.AppendUvarint(b, uint64(len(values)))
	for i := range values {
		v := &values[i]
		b = append(b, byte(v.Kind))
		switch v.Kind {
		case feature.IsNumber:
			b = appendFloat(b, v.Number)
		case feature.IsText, feature.IsObject:
			b = appendString(b, v.Text)
		}
	}
	return b
}
