package decision

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine"
	"vitrine/assortment"
)

// Request asks for an assortment.
type Request struct {
	Decision string    // the caller's id for it; "" lets the engine make one
	Items    []Item    // N candidates, with different ids
	User     []Value   // by [Schema.User]; nil where nothing is known of the user
	Revenue  []float64 // N, r_i ≥ 0; nil means 1 for every item
	Size     int       // at most so many items, 1 ≤ Size ≤ K; 0 is K
	Include  []string  // ids of items that are shown
	Exclude  []string  // and that are not
	AtMost   []Limit   // beside those of the placement
	Baseline []string  // what is shown in the mode "shadow", in display order
}

// Item is a candidate.
type Item struct {
	ID       string
	Features []Value // by [Schema.Item]
}

const (
	largestID       = 200 // bytes
	largestDecision = 128
)

// CheckLength reports a list of a request that is longer than MaxItems. Whoever decodes requests
// asks it before there is memory for what the list has.
func (c *Config) CheckLength(field string, length int) error {
	if length > c.MaxItems {
		return fieldf(field, "has more than %d elements: the placement takes at most %d items", c.MaxItems, c.MaxItems)
	}
	return nil
}

// check reports what is wrong before the features are looked at, and returns
// where the ids are.
func (r *Request) check(c *Config, index map[string]int) error {
	if err := checkDecision(r.Decision); err != nil {
		return err
	}
	if len(r.Items) == 0 {
		return fieldf("/items", "must have at least one item")
	}
	for _, list := range []struct {
		field  string
		length int
	}{
		{"/items", len(r.Items)}, {"/include", len(r.Include)}, {"/exclude", len(r.Exclude)}, {"/at_most", len(r.AtMost)}, {"/baseline", len(r.Baseline)},
	} {
		if err := c.CheckLength(list.field, list.length); err != nil {
			return err
		}
	}
	if r.Revenue != nil && len(r.Revenue) != len(r.Items) {
		return fieldf("/items", "%d items and %d revenues", len(r.Items), len(r.Revenue))
	}
	for i, v := range r.Revenue {
		if !(v >= 0 && v <= vitrine.LargestRevenue) {
			return fieldf(fmt.Sprintf("/items/%d/revenue", i), "%v: must be finite, not negative and at most %v", v, vitrine.LargestRevenue)
		}
	}
	for i := range r.Items {
		id := r.Items[i].ID
		if id == "" || len(id) > largestID || !utf8.ValidString(id) {
			return fieldf(fmt.Sprintf("/items/%d/id", i), "must have from 1 to %d bytes of UTF-8", largestID)
		}
		if j, twice := index[id]; twice {
			return fieldf(fmt.Sprintf("/items/%d/id", i), "%q is the id of item %d too", id, j)
		}
		index[id] = i
	}
	if r.Size != 0 {
		if err := inRange("/size", r.Size, 1, c.MaxSize); err != nil {
			return err
		}
	}
	return nil
}

// checkDecision reports an id that cannot stand in a URL as it is. Ids that the engine
// makes have a ~.
func checkDecision(id string) error {
	if len(id) > largestDecision {
		return fieldf("/decision_id", "must have at most %d bytes", largestDecision)
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-', c == ':':
		default:
			return fieldf("/decision_id", "%q: must be of letters, digits, '.', '_', '-' and ':'", id)
		}
	}
	if id == "." || id == ".." {
		return fieldf("/decision_id", "%q: is no name in a URL", id)
	}
	return nil
}

// family returns the sets that may be shown.
func (r *Request) family(c *Config, index map[string]int) (vitrine.Constraint, error) {
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
			if err := c.schema.checkLimit(field, l, limited); err != nil {
				return nil, err
			}
			rules.Groups = append(rules.Groups, r.byCategory(c.schema, l)...)
			continue
		}
		if l.Feature != "" || l.Most < 0 {
			return nil, fieldf(field, "must have items or a feature, and most ≥ 0")
		}
		items, err := find(field+"/items", l.Items, index)
		if err != nil {
			return nil, err
		}
		rules.Groups = append(rules.Groups, assortment.Group{Name: fmt.Sprintf("at_most %d", i), Items: items, Max: l.Most})
	}
	family, err := assortment.NewLaminar(rules)
	if err != nil {
		return nil, fieldf("", "%v", err)
	}
	return family, nil
}

// find returns where the ids are.
func find(field string, ids []string, index map[string]int) ([]int, error) {
	at := make([]int, len(ids))
	for k, id := range ids {
		i, ok := index[id]
		if !ok {
			return nil, fieldf(fmt.Sprintf("%s/%d", field, k), "%q is not among the items", id)
		}
		at[k] = i
	}
	return at, nil
}

// byCategory makes a group of every category that the items have.
func (r *Request) byCategory(s *Schema, l Limit) []assortment.Group {
	c := &s.columns[s.index[l.Feature]]
	var groups []assortment.Group
	of := map[string]int{}
	for i := range r.Items {
		v := r.Items[i].Features[c.slot]
		if v.Kind == Missing {
			v = c.missing
		}
		g, ok := of[v.Text]
		if !ok {
			g = len(groups)
			of[v.Text] = g
			groups = append(groups, assortment.Group{Name: fmt.Sprintf("%s %q", l.Feature, v.Text), Max: l.Most})
		}
		groups[g].Items = append(groups[g].Items, i)
	}
	return groups
}

// checkLimit checks the limit of each category of a feature. A feature has one: each makes
// as many groups as there are items.
func (s *Schema) checkLimit(field string, l Limit, limited map[string]bool) error {
	i := s.find(l.Feature)
	if i < 0 || s.columns[i].Kind != "category" || s.columns[i].From != "item" {
		return fieldf(field+"/feature", "%q: must be a category of items", l.Feature)
	}
	if l.Most < 0 {
		return fieldf(field+"/most", "%d: must not be negative", l.Most)
	}
	if limited[l.Feature] {
		return fieldf(field+"/feature", "%q has a limit already", l.Feature)
	}
	limited[l.Feature] = true
	return nil
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// sum is the SHA-256 of what the request says, whatever it was decoded from.
func (r *Request) sum() [32]byte {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	b := (*buf)[:0]
	b = appendString(b, r.Decision)
	b = binary.AppendUvarint(b, uint64(len(r.Items)))
	for i := range r.Items {
		b = appendString(b, r.Items[i].ID)
		b = appendValues(b, r.Items[i].Features)
	}
	b = appendValues(b, r.User)
	b = binary.AppendUvarint(b, uint64(len(r.Revenue)))
	for _, v := range r.Revenue {
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
	*buf = b
	return sha256.Sum256(b)
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

func appendValues(b []byte, values []Value) []byte {
	b = binary.AppendUvarint(b, uint64(len(values)))
	for i := range values {
		v := &values[i]
		b = append(b, byte(v.Kind))
		switch v.Kind {
		case IsNumber:
			b = appendFloat(b, v.Number)
		case IsText:
			b = appendString(b, v.Text)
		}
	}
	return b
}

// ParseRequest reads a request in JSON for a placement:
//
//	{"decision_id": "abc", "items": [{"id": "sku1", "features": {"price": 1.2, "brand": "acme"}, "revenue": 2.5}, …],
//	 "user": {…}, "size": 2, "include": ["sku1"], "exclude": ["sku2"],
//	 "at_most": [{"items": ["sku3", "sku4"], "most": 1}, {"feature": "brand", "most": 2}], "baseline": ["sku1"]}
//
// Only items is needed, and of an item its id. Unknown keys, keys that are there
// twice, wrong types and lists longer than MaxItems are errors, of type *FieldError as all are.
func ParseRequest(text []byte, c *Config) (*Request, error) {
	p := &requestParser{Request: new(Request), config: c, schema: c.schema, in: jsontext.NewDecoder(bytes.NewBuffer(text))}
	err := p.object(p.member)
	if err == nil {
		if _, trailing := p.in.ReadToken(); trailing != io.EOF {
			err = fieldf("", "there is more after the request")
		}
	}
	if err != nil {
		return nil, err
	}
	if p.Revenue != nil {
		p.revenues()
	}
	return p.Request, nil
}

// requestParser reads a request value by value.
type requestParser struct {
	*Request
	config *Config
	schema *Schema
	in     *jsontext.Decoder
	values []Value // storage of coming items
}

func (p *requestParser) member(key []byte) error {
	switch string(key) {
	case "decision_id":
		return p.text(&p.Decision)
	case "items":
		p.Items = []Item{}
		return p.array(p.item)
	case "user":
		p.User = make([]Value, p.schema.NumUser())
		return p.object(func(key []byte) error { return p.feature(p.User, key, "user") })
	case "size":
		return p.whole(&p.Size)
	case "include":
		return p.list(&p.Include)
	case "exclude":
		return p.list(&p.Exclude)
	case "at_most":
		return p.array(p.limit)
	case "baseline":
		return p.list(&p.Baseline)
	}
	return p.unknown(key, "decision_id, items, user, size, include, exclude, at_most, baseline")
}

func (p *requestParser) item() error {
	n := p.schema.NumItem()
	if len(p.values) < n {
		p.values = make([]Value, 32*n)
	}
	p.Items = append(p.Items, Item{Features: p.values[:n:n]})
	p.values = p.values[n:]
	item := &p.Items[len(p.Items)-1]
	return p.object(func(key []byte) error {
		switch string(key) {
		case "id":
			return p.text(&item.ID)
		case "features":
			return p.object(func(key []byte) error { return p.feature(item.Features, key, "item") })
		case "revenue":
			p.revenues()
			return p.number(&p.Revenue[len(p.Items)-1])
		}
		return p.unknown(key, "id, features, revenue")
	})
}

// revenues makes room for the revenues of the items so far.
func (p *requestParser) revenues() {
	for len(p.Revenue) < len(p.Items) {
		p.Revenue = append(p.Revenue, 1)
	}
}

func (p *requestParser) feature(values []Value, name []byte, from string) error {
	slot, ok := p.schema.slotOf(name, from)
	if !ok {
		return p.unknown(name, p.schema.names(from))
	}
	switch p.in.PeekKind() {
	case '0':
		values[slot].Kind = IsNumber
		return p.number(&values[slot].Number)
	case '"':
		values[slot].Kind = IsText
		return p.text(&values[slot].Text)
	case 'n':
		return p.skip()
	}
	return p.wrong("a number or a string")
}

func (p *requestParser) limit() error {
	p.AtMost = append(p.AtMost, Limit{})
	l := &p.AtMost[len(p.AtMost)-1]
	return p.object(func(key []byte) error {
		switch string(key) {
		case "items":
			l.Items = []string{}
			return p.list(&l.Items)
		case "feature":
			return p.text(&l.Feature)
		case "most":
			return p.whole(&l.Most)
		}
		return p.unknown(key, "items, feature, most")
	})
}

// object reads an object, and calls member for each key, which is good until it
// reads the key's value.
func (p *requestParser) object(member func(key []byte) error) error {
	if p.in.PeekKind() != '{' {
		return p.wrong("an object")
	}
	if err := p.skip(); err != nil {
		return err
	}
	for p.in.PeekKind() != '}' {
		name, err := p.in.ReadValue()
		if err != nil {
			return jsonError(err)
		}
		if err := member(unquote(name)); err != nil {
			return err
		}
	}
	return p.skip()
}

func (p *requestParser) array(element func() error) error {
	if p.in.PeekKind() != '[' {
		return p.wrong("a list")
	}
	if err := p.skip(); err != nil {
		return err
	}
	for n := 1; p.in.PeekKind() != ']'; n++ {
		if n > p.config.MaxItems {
			return p.config.CheckLength(string(p.in.StackPointer().Parent()), n)
		}
		if err := element(); err != nil {
			return err
		}
	}
	return p.skip()
}

func (p *requestParser) list(dst *[]string) error {
	return p.array(func() error {
		*dst = append(*dst, "")
		return p.text(&(*dst)[len(*dst)-1])
	})
}

func (p *requestParser) text(dst *string) error {
	if p.in.PeekKind() != '"' {
		return p.wrong("a string")
	}
	raw, err := p.in.ReadValue()
	if err != nil {
		return jsonError(err)
	}
	*dst = string(unquote(raw))
	return nil
}

// unquote returns what a string of valid JSON holds.
func unquote(v jsontext.Value) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	s, _ := jsontext.AppendUnquote(nil, v)
	return s
}

func (p *requestParser) number(dst *float64) error {
	if p.in.PeekKind() != '0' {
		return p.wrong("a number")
	}
	raw, err := p.in.ReadValue()
	if err != nil {
		return jsonError(err)
	}
	if *dst, err = strconv.ParseFloat(string(raw), 64); err != nil {
		return p.errorf("%s: out of range", abbreviate(string(raw), 40))
	}
	return nil
}

func (p *requestParser) whole(dst *int) error {
	if p.in.PeekKind() != '0' {
		return p.wrong("a whole number")
	}
	raw, err := p.in.ReadValue()
	if err != nil {
		return jsonError(err)
	}
	v, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil || v < 0 {
		return p.errorf("%s: want a whole number that is not negative", abbreviate(string(raw), 40))
	}
	*dst = int(v)
	return nil
}

func (p *requestParser) skip() error {
	if _, err := p.in.ReadToken(); err != nil {
		return jsonError(err)
	}
	return nil
}

// wrong reports the coming value to be of another type.
func (p *requestParser) wrong(want string) error {
	v, err := p.in.ReadValue()
	if err != nil {
		return jsonError(err)
	}
	return p.errorf("%s where %s is wanted", kindName(v.Kind()), want)
}

func (p *requestParser) unknown(key []byte, legal string) error {
	return p.errorf("unknown key %q: must be one of %s", abbreviate(string(key), 40), legal)
}

// errorf makes an error at the value that was read last.
func (p *requestParser) errorf(format string, args ...any) error {
	return fieldf(string(p.in.StackPointer()), format, args...)
}
