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

// Request asks for an assortment.
type Request struct {
	Decision string          // the caller's id for it; "" lets the engine make one
	Items    []feature.Item  // N candidates, with different ids
	User     []feature.Value // by [feature.Schema.User]; nil where nothing is known of the user
	Revenue  []float64       // N, r_i ≥ 0; nil means 1 for every item
	Size     int             // at most so many items, 1 ≤ Size ≤ K; 0 is K
	Include  []string        // ids of items that are shown
	Exclude  []string        // and that are not
	AtMost   []api.Limit     // beside those of the placement
	Baseline []string        // what is shown in the mode "shadow", in display order
	Slots    []Slot          // what is shown fills these; nil where there are none
	Defer    bool            // the outcome is waited for once it is activated: [Engine.Activate]
	Note     []byte          // kept with the decision, and part of its answer

	// Schema is that by which Items and User were made. If the placement has another one by the time the
	// request is decided, Decide returns ErrSchema. Nil is not compared.
	Schema *feature.Schema
}

const (
	largestID       = 200 // bytes
	largestDecision = 128
)

// CheckLength reports a list of a request that is longer than MaxItems. Whoever decodes requests
// asks it before there is memory for what the list has.
func (c *Config) CheckLength(field string, length int) error {
	if length > c.MaxItems {
		return api.Fieldf(field, "has more than %d elements: the placement takes at most %d items", c.MaxItems, c.MaxItems)
	}
	return nil
}

// RequestSize bounds the bytes that a request of so many items takes while it is read and decided, beside its text: the
// values of its features, N·d numbers of rows, and what there is of each item.
func (c *Config) RequestSize(items int) int64 {
	const value, item = 48, 200
	return int64(items) * int64(8*c.schema.Width()+value*c.schema.NumItem()+item)
}

// check reports what is wrong before the features are looked at, and returns
// where the ids are.
func (r *Request) check(c *Config, index map[string]int) error {
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
		if err := c.CheckLength(list.field, list.length); err != nil {
			return err
		}
	}
	if r.Revenue != nil && len(r.Revenue) != len(r.Items) {
		return api.Fieldf("/items", "%d items and %d revenues", len(r.Items), len(r.Revenue))
	}
	for i, v := range r.Revenue {
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
	if len(r.Note) > largestNote {
		return api.Fieldf("/note", "must have at most %d bytes", largestNote)
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
func (r *Request) family(c *Config, index map[string]int) (vitrine.Constraint, error) {
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
func (r *Request) byCategory(s *feature.Schema, l api.Limit) []assortment.Group {
	var groups []assortment.Group
	of := map[string]int{}
	for i := range r.Items {
		v := s.Category(&r.Items[i], l.Feature)
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
	if r.Slots != nil || r.Defer || r.Note != nil { // sums of what has none of these stay as they were
		b = appendFlag(b, r.Defer)
		b = appendString(b, string(r.Note))
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

// ParseRequest reads a request in JSON for a placement:
//
//	{"decision_id": "abc", "items": [{"id": "sku1", "features": {"price": 1.2, "brand": "acme"}, "revenue": 2.5}, …],
//	 "user": {…}, "size": 2, "include": ["sku1"], "exclude": ["sku2"],
//	 "at_most": [{"items": ["sku3", "sku4"], "most": 1}, {"feature": "brand", "most": 2}], "baseline": ["sku1"], "defer": true}
//
// Only items is needed, and of an item its id. Unknown keys, keys that are there
// twice, wrong types and lists longer than MaxItems are errors, of type *api.FieldError as all are.
func ParseRequest(text []byte, c *Config) (*Request, error) {
	return new(RequestParser).Parse(text, c)
}

// RequestParser reads requests as [ParseRequest] does, each into the memory of the one
// before. The zero value is ready.
type RequestParser struct {
	reader
	out     Request
	config  *Config
	items   []feature.Item // memory of the requests before
	values  []feature.Value
	revenue []float64

	request, item, itemFeatures, userFeatures, limit keys
}

// Parse reads a request, which is good until the next one: the engine must have answered it. Its
// strings are good for ever.
func (p *RequestParser) Parse(text []byte, c *Config) (*Request, error) {
	p.begin(text, c)
	p.read()
	if err := p.end(); err != nil {
		return nil, err
	}
	if p.out.Revenue != nil {
		p.revenues()
		p.revenue = p.out.Revenue
	}
	p.items = p.out.Items
	return &p.out, nil
}

func (p *RequestParser) begin(text []byte, c *Config) {
	if p.config == nil {
		p.request = keysOf("decision_id", "items", "user", "size", "include", "exclude", "at_most", "baseline", "defer")
		p.item = keysOf("id", "features", "revenue")
		p.limit = keysOf("items", "feature", "most")
	}
	if s := c.schema; p.config != c {
		p.config = c
		p.itemFeatures = keys{find: s.Item, legal: s.ItemNames, many: s.NumItem()}
		p.userFeatures = keys{find: s.User, legal: s.UserNames, many: s.NumUser()}
	}
	for _, k := range []*keys{&p.request, &p.item, &p.itemFeatures, &p.userFeatures, &p.limit} {
		k.before = k.before[:0] // it stands in another text
	}
	clear(p.items)
	clear(p.values)
	p.values = p.values[:0]
	p.out = Request{Schema: c.schema}
	p.reader = reader{in: text, steps: p.steps[:0]}
}

func (p *RequestParser) read() {
	r := &p.out
	for p.object(&p.request); p.more(); {
		switch p.key().name {
		case "decision_id":
			r.Decision = p.text()
		case "items":
			r.Items = slices.Grow(p.items[:0], 1)
			for p.list(); p.another(); {
				p.readItem()
			}
		case "user":
			r.User = make([]feature.Value, p.config.schema.NumUser())
			p.features(r.User, &p.userFeatures, p.config.schema.IsUserObject)
		case "size":
			r.Size = p.whole()
		case "include":
			r.Include = p.texts(nil)
		case "exclude":
			r.Exclude = p.texts(nil)
		case "at_most":
			for p.list(); p.another(); {
				r.AtMost = append(r.AtMost, p.readLimit())
			}
		case "baseline":
			r.Baseline = p.texts(nil)
		case "defer":
			r.Defer = p.truth()
		}
	}
}

func (p *RequestParser) readItem() {
	r := &p.out
	i, n := len(r.Items), p.config.schema.NumItem()
	if i == cap(r.Items) {
		r.Items = slices.Grow(r.Items, p.coming())
	}
	if len(p.values)+n > cap(p.values) {
		p.values = make([]feature.Value, 0, n*(i+p.coming()))
	}
	from := len(p.values)
	p.values = p.values[:from+n]
	item := feature.Item{Features: p.values[from : from+n : from+n]}
	r.Items = append(r.Items, item)
	for p.object(&p.item); p.more(); {
		switch p.key().name {
		case "id":
			r.Items[i].ID = p.text()
		case "features":
			p.features(item.Features, &p.itemFeatures, p.config.schema.IsItemObject)
		case "revenue":
			p.revenues()
			r.Revenue[i] = p.number()
		}
	}
}

// another reports whether a list has another element. A list has no more elements than the
// placement takes items, as short ones would take much more memory than their text.
func (p *RequestParser) another() bool {
	if !p.more() {
		return false
	}
	if n := p.steps[len(p.steps)-1].members; n > p.config.MaxItems {
		p.aside = true
		p.fail(p.config.CheckLength(p.pointer(), n))
	}
	return p.err == nil
}

// texts reads a list of strings, and appends them.
func (p *RequestParser) texts(dst []string) []string {
	for p.list(); p.another(); {
		dst = append(dst, p.text())
	}
	return dst
}

// coming is how many more items to make room for: as many as there would be if they took as
// much of the text as those so far, but not many times those.
func (p *RequestParser) coming() int {
	n, most := len(p.out.Items), 16
	if n > 0 {
		most = min(16*n, (len(p.in)-p.at)/(p.at/n)+1)
	}
	return min(most, p.config.MaxItems-n)
}

// revenues makes room for the revenues of the items so far.
func (p *RequestParser) revenues() {
	r := &p.out
	if r.Revenue == nil {
		r.Revenue = p.revenue[:0]
	}
	r.Revenue = slices.Grow(r.Revenue, cap(r.Items)-len(r.Revenue))
	for len(r.Revenue) < len(r.Items) {
		r.Revenue = append(r.Revenue, 1)
	}
}

// features reads values. isObject reports which of them are objects.
func (p *RequestParser) features(dst []feature.Value, k *keys, isObject func(slot int) bool) {
	for p.object(k); p.more(); {
		if key := p.key(); p.err == nil {
			p.value(&dst[key.number], isObject(key.number))
		}
	}
}

func (p *RequestParser) value(v *feature.Value, object bool) {
	switch kind := p.kind(); {
	case kind == '0':
		v.Kind, v.Number = feature.IsNumber, p.number()
	case kind == '"':
		v.Kind, v.Text = feature.IsText, p.text()
	case kind == 'n':
		p.literal("null")
	case object && (kind == '{' || kind == '['):
		v.Kind, v.Text = feature.IsObject, string(p.raw())
	default:
		p.wrong("a number or a string")
	}
}

func (p *RequestParser) readLimit() (l api.Limit) {
	for p.object(&p.limit); p.more(); {
		switch p.key().name {
		case "items":
			l.Items = p.texts([]string{})
		case "feature":
			l.Feature = p.text()
		case "most":
			l.Most = p.whole()
		}
	}
	return l
}
