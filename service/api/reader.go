package api

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A request's JSON is read by hand, in one pass and without a map: json v2 takes eight times as long
// for 100 items of 10 features, which makes an ONL-MNL decision among them more than three times as
// expensive (BenchmarkRequestReader). Everything else is read by json v2.

// RequestReader reads requests. It reuses its memory from one request to the next. The zero value is
// ready.
type RequestReader struct {
	reader
	out      Request
	maxItems int
	items    []Item // reused, as values, optional numbers and bounds are
	values   Values
	optional []float64
	bounds   []int

	request, item, limit, slot keys
	features, user             keys
}

// Read reads the JSON of a request with at most maxItems elements in each list:
//
//	{"decision_id": "abc", "items": [{"id": "sku1", "features": {"price": 1.2, "brand": "acme"}, "revenue": 2.5, "space": 2}, …],
//	 "shopper": {…}, "min_size": 1, "max_size": 2, "include": ["sku1"], "exclude": ["sku2"],
//	 "limits": [{"items": ["sku3", "sku4"], "max": 1}, {"feature": "brand", "max": 2}, {"group": "new", "min": 1}], "capacity": 2.5, "baseline": ["sku1"], "shopper_id": "shopper-7", "defer": true,
//	 "candidates": ["sku7"], "filter": "price < 3", "strict": true, "payload": true}
//
// Unknown keys, duplicate keys, wrong types and longer lists are errors, of type *[FieldError]. The
// request is valid until the next call of Read; its strings remain valid.
func (p *RequestReader) Read(text []byte, maxItems int) (*Request, error) {
	items, values := len(p.items), len(p.values)
	p.begin(text, maxItems)
	p.read()
	// The request has written over the items and values of the one before. The rest must not keep that one's text in
	// memory.
	clear(p.items[min(len(p.items), items):items])
	clear(p.values[min(len(p.values), values):values])
	if err := p.end(); err != nil {
		return nil, InText(text, err)
	}
	return &p.out, nil
}

func (p *RequestReader) begin(text []byte, maxItems int) {
	if p.request.names == nil {
		p.request = keysOf("decision_id", "items", "shopper", "min_size", "max_size", "include", "exclude", "limits",
			"capacity", "slots", "baseline", "shopper_id", "defer", "candidates", "filter", "strict", "payload")
		p.item = keysOf("id", "features", "revenue", "space")
		p.limit = keysOf("items", "feature", "attribute", "group", "min", "max")
		p.slot = keysOf("id", "exclude")
		p.features, p.user = anyKeys(maxNames), anyKeys(maxNames)
		p.items = []Item{} // without an item, too
	}
	for _, k := range []*keys{&p.request, &p.item, &p.limit, &p.slot, &p.features, &p.user} {
		k.forget()
	}
	p.items, p.values, p.optional, p.bounds = p.items[:0], p.values[:0], p.optional[:0], p.bounds[:0]
	p.out, p.maxItems = Request{}, maxItems
	kept := p.kept.Len()
	p.reader = reader{in: text, steps: p.steps[:0]}
	p.kept.Grow(min(kept, len(text))) // requests are like those before
}

func (p *RequestReader) read() {
	r := &p.out
	for p.object(&p.request); p.more(); {
		switch p.key().name {
		case "decision_id":
			r.Decision = p.text()
		case "items":
			r.Items = p.items[:0]
			for p.list(); p.another(); {
				r.Items = append(r.Items, p.readItem())
			}
			p.items = r.Items
		case "shopper":
			r.User = p.readValues(&p.user)
		case "max_size":
			if r.MaxSize = p.whole(); r.MaxSize == 0 {
				p.errorf("0: must be at least 1; leave it out for the placement's max_size")
			}
		case "min_size":
			r.MinSize = p.whole()
		case "include":
			r.Include = p.texts(nil)
		case "exclude":
			r.Exclude = p.texts(nil)
		case "limits":
			for p.list(); p.another(); {
				r.Limits = append(r.Limits, p.readLimit())
			}
		case "capacity":
			r.Capacity = p.given()
		case "slots":
			r.Slots = []Slot{}
			for p.list(); p.another(); {
				r.Slots = append(r.Slots, p.readSlot())
			}
		case "baseline":
			r.Baseline = p.texts([]string{}) // an empty page is one, too
		case "shopper_id":
			r.ShopperID = p.text()
		case "defer":
			r.Defer = p.truth()
		case "candidates":
			r.Candidates = p.texts([]string{})
		case "filter":
			r.Filter = p.text()
		case "strict":
			r.Strict = p.truth()
		case "payload":
			r.Payload = p.truth()
		}
	}
}

func (p *RequestReader) readItem() (item Item) {
	for p.object(&p.item); p.more(); {
		switch p.key().name {
		case "id":
			item.ID = p.text()
		case "features":
			item.Features = p.readValues(&p.features)
		case "revenue":
			item.Revenue = p.given()
		case "space":
			item.Space = p.given()
		}
	}
	return item
}

// given reads a number that may be left out.
func (p *RequestReader) given() *float64 {
	p.optional = append(p.optional, p.number())
	return &p.optional[len(p.optional)-1]
}

// another reports whether a list continues. More than maxItems elements are an error, because short elements take much
// more memory than their text.
func (p *RequestReader) another() bool {
	if !p.more() {
		return false
	}
	if n := p.steps[len(p.steps)-1].members; n > p.maxItems {
		p.aside = true
		p.fail(CheckLength(p.pointer(), n, p.maxItems))
	}
	return p.err == nil
}

func (p *RequestReader) readSlot() (s Slot) {
	for p.object(&p.slot); p.more(); {
		switch p.key().name {
		case "id":
			s.ID = p.text()
		case "exclude":
			s.Exclude = p.texts(nil)
		}
	}
	return s
}

// CheckLength returns a *[FieldError] if a list of a request is longer than maxItems, the placement's
// limit on items.
func CheckLength(field string, length, maxItems int) error {
	if length > maxItems {
		return Fieldf(field, "has more than %d elements: the placement takes at most %d items", maxItems, maxItems)
	}
	return nil
}

func (p *RequestReader) texts(dst []string) []string {
	for p.list(); p.another(); {
		dst = append(dst, p.text())
	}
	return dst
}

// readValues reads an object of values into the memory that all values of a request share.
func (p *RequestReader) readValues(k *keys) Values {
	from := len(p.values)
	p.object(k)
	for p.numbers(k); p.more(); p.numbers(k) {
		if key := p.key(); p.err == nil {
			p.values = append(p.values, Value{Name: key.name})
			p.value(&p.values[len(p.values)-1])
		}
	}
	if p.values == nil {
		return Values{}
	}
	return p.values[from:len(p.values):len(p.values)]
}

// numbers reads the next members of an object of values, as long as their keys are predicted and their values are short
// numbers. It does the work of more, key and value in one loop.
func (p *RequestReader) numbers(k *keys) {
	values, at := p.values, p.at
	for k.next < len(k.before) {
		key := &k.before[k.next]
		if !bytes.HasPrefix(p.in[at:], key.written) {
			break
		}
		number, size := shortNumber(p.in[at+len(key.written):])
		if size == 0 {
			break
		}
		at += len(key.written) + size
		k.next++
		if len(values) == cap(values) {
			values = slices.Grow(values, 1)
		}
		values = values[:len(values)+1]
		v := &values[len(values)-1]
		v.Name, v.Kind, v.Number, v.Text = key.name, IsNumber, number, ""
	}
	if n := len(values) - len(p.values); n > 0 {
		p.steps[len(p.steps)-1].members += n
		p.values, p.at = values, at
	}
}

func (p *RequestReader) value(v *Value) {
	switch p.kind() {
	case '0':
		v.Kind, v.Number = IsNumber, p.float()
	case '"':
		v.Kind, v.Text = IsText, p.keep(p.quoted())
	case 'n':
		p.literal("null")
	case '{', '[':
		v.Kind, v.Text = IsObject, string(p.raw())
	default:
		p.wrong("a number or a string")
	}
}

func (p *RequestReader) readLimit() (l Limit) {
	for p.object(&p.limit); p.more(); {
		switch p.key().name {
		case "items":
			l.Items = p.texts([]string{})
		case "feature":
			l.Feature = p.text()
		case "attribute":
			l.Attribute = p.text()
		case "group":
			l.Group = p.text()
		case "min":
			l.Min = p.whole()
		case "max":
			p.bounds = append(p.bounds, p.whole())
			l.Max = &p.bounds[len(p.bounds)-1]
		}
	}
	return l
}

// reader reads JSON (RFC 8259) in one pass. It refuses invalid UTF-8, half surrogate pairs, duplicate keys and deep
// nesting. The strings that it returns share no memory with the text. Objects and lists are read by loops,
//
//	for r.object(&keys); r.more(); {
//		switch r.key().name { … }
//	}
//	for r.list(); r.more(); {
//		…
//	}
//
// that read one value per iteration. After the first error, which carries a JSON pointer to its place, every read
// returns the zero value and more returns false.
type reader struct {
	in    []byte
	at    int
	steps []step          // the enclosing objects and lists, the innermost last
	aside bool            // between members of the innermost, not inside one
	kept  strings.Builder // memory of the strings
	err   error
}

// step is an object or a list that is being read.
type step struct {
	end     byte  // '}' or ']'
	members int   // begun so far
	keys    *keys // of an object
}

const maxDepth = 10_000 // nested objects and lists

// keys is the set of an object's possible keys. It predicts the next key from the previous object: objects of a list
// usually repeat the same keys in the same order.
type keys struct {
	names   []string       // nil if any name is legal
	numbers map[string]int // numbers of the names in the text so far, if any name is legal
	limit   int            // of numbers
	before  []key          // the keys of the previous object, the first of which this one repeats
	next    int            // the predicted one, in before
	hit     bool           // whether the present member's key was predicted
	from    int            // where the text between the values began, otherwise
	seen    []bool         // by number, once a key was not predicted
	counted bool           // whether seen counts this object
}

type key struct {
	name    string
	number  int
	written []byte // the text between the value before it and its own
}

// keysOf returns the set of the given names. Their numbers are their indices.
func keysOf(names ...string) keys { return keys{names: names} }

// maxNames limits the number of distinct feature names, as rows are limited.
const maxNames = 4096

// anyKeys returns a set of any names, but at most limit of them.
func anyKeys(limit int) keys { return keys{limit: limit} }

// number returns the number of a name; ok is false if the set lacks it.
func (k *keys) number(name string) (n int, ok bool) {
	if k.names != nil {
		n = slices.Index(k.names, name)
		return n, n >= 0
	}
	if n, ok = k.numbers[name]; !ok && len(k.numbers) < k.limit {
		if k.numbers == nil {
			k.numbers = map[string]int{}
		}
		n, ok = len(k.numbers), true
		k.numbers[name] = n
	}
	return n, ok
}

// forget forgets what refers to the previous text.
func (k *keys) forget() {
	const few = 64 // a map of more names is not worth keeping
	if len(k.numbers) > few {
		k.numbers = nil
	}
	clear(k.numbers)
	clear(k.before)
	k.before = k.before[:0]
}

// object enters an object. Its keys are valid until another object with the same keys is read.
func (r *reader) object(k *keys) {
	if r.peek() != '{' {
		r.wrong("an object")
		return
	}
	if k.before == nil {
		k.seen, k.before = make([]bool, len(k.names)), make([]key, 0, len(k.names))
	}
	k.next, k.counted = 0, false
	r.enter(step{end: '}', keys: k})
}

func (r *reader) list() {
	if r.peek() != '[' {
		r.wrong("a list")
		return
	}
	r.enter(step{end: ']'})
}

func (r *reader) enter(s step) {
	if len(r.steps) == maxDepth {
		r.errorf("not JSON: objects and lists are nested more than %d deep", maxDepth)
		return
	}
	r.at++
	r.steps = append(r.steps, s)
}

// more advances to the next member of the innermost object or list, or leaves it and returns false.
func (r *reader) more() bool {
	if r.err != nil {
		return false
	}
	top := &r.steps[len(r.steps)-1]
	if k := top.keys; k != nil {
		if k.hit = k.next < len(k.before) && bytes.HasPrefix(r.in[r.at:], k.before[k.next].written); k.hit {
			r.at += len(k.before[k.next].written)
			r.aside = false
			top.members++
			k.next++
			return true
		}
		k.from = r.at
	}
	r.aside = true
	c := r.peek()
	if c == top.end {
		r.at++
		r.steps = r.steps[:len(r.steps)-1]
		r.aside = false
		return false
	}
	if top.members > 0 {
		if c != ',' {
			r.unexpected("instead of ',' or '" + string(top.end) + "'")
			return false
		}
		r.at++
		c = r.peek()
	}
	if c == top.end || r.at == len(r.in) {
		r.unexpected("after ','")
		return false
	}
	top.members++
	r.aside = top.end == '}'
	return true
}

// key reads the key of a member. It is valid until the next call.
func (r *reader) key() *key {
	k := r.steps[len(r.steps)-1].keys
	if k.hit {
		return &k.before[k.next-1]
	}
	return r.newKey(k)
}

// newKey reads a key that was not predicted, and drops the predictions after it.
func (r *reader) newKey(k *keys) *key {
	if r.peek() != '"' {
		r.unexpected("instead of a key")
		return &key{}
	}
	name := r.keep(r.quoted())
	if r.err != nil {
		return &key{}
	}
	number, known := k.number(name)
	k.count()
	k.before = append(k.before[:k.next], key{name: name, number: number})
	found := &k.before[k.next]
	k.next++
	r.aside = false
	for len(k.seen) <= number {
		k.seen = append(k.seen, false)
	}
	switch {
	case !known && k.names == nil:
		r.errorf("has more than %d names", maxNames)
		return &key{}
	case !known:
		r.fail(unknownKey(r.pointer(), name, k.names))
		return &key{}
	case k.seen[number]:
		r.errorf("duplicate key")
		return &key{}
	case r.peek() != ':':
		r.unexpected("instead of ':'")
		return &key{}
	}
	r.at++
	r.peek() // skips white space
	k.seen[number] = true
	found.written = r.in[k.from:r.at]
	return found
}

// count notes this object's keys in seen.
func (k *keys) count() {
	if k.counted {
		return
	}
	k.counted = true
	clear(k.seen)
	for i := range k.before[:k.next] {
		k.seen[k.before[i].number] = true
	}
}

// end returns the first error. Anything but white space after the request is an error too.
func (r *reader) end() error {
	if r.peek(); r.at < len(r.in) {
		return Fieldf("", "there is more text after the request")
	}
	return r.err
}

// peek skips white space and returns the next byte, or 0 at the end.
func (r *reader) peek() byte {
	for r.at < len(r.in) {
		switch c := r.in[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// kind returns the type of the next value: one of '{', '[', '"', '0', 't', 'f' and 'n', or another
// byte if there is no value.
func (r *reader) kind() byte {
	c := r.peek()
	if c == '-' || '0' <= c && c <= '9' {
		return '0'
	}
	return c
}

// raw reads any value and returns its text.
func (r *reader) raw() jsontext.Value {
	r.peek()
	from := r.at
	if r.skip(); r.err != nil {
		return nil
	}
	return r.in[from:r.at]
}

// skip skips any value.
func (r *reader) skip() {
	switch r.kind() {
	case '{':
		k := anyKeys(math.MaxInt)
		for r.object(&k); r.more(); {
			r.key()
			r.skip()
		}
	case '[':
		for r.list(); r.more(); {
			r.skip()
		}
	case '"':
		r.quoted()
	case '0':
		r.decimal()
	case 't':
		r.literal("true")
	case 'f':
		r.literal("false")
	case 'n':
		r.literal("null")
	default:
		r.unexpected("instead of a value")
	}
}

func (r *reader) literal(name string) {
	for i := range len(name) {
		if r.at == len(r.in) || r.in[r.at] != name[i] {
			r.unexpected("in " + name)
			return
		}
		r.at++
	}
}

// truth reads true or false.
func (r *reader) truth() bool {
	switch r.kind() {
	case 't':
		r.literal("true")
		return r.err == nil
	case 'f':
		r.literal("false")
	default:
		r.wrong("true or false")
	}
	return false
}

func (r *reader) text() string {
	if r.peek() != '"' {
		r.wrong("a string")
		return ""
	}
	return r.keep(r.quoted())
}

// keep returns s as a string. All strings of a request share one piece of memory.
func (r *reader) keep(s []byte) string {
	r.kept.Write(s)
	return r.kept.String()[r.kept.Len()-len(s):]
}

// quoted reads a string from its quote on.
func (r *reader) quoted() []byte {
	r.at++
	from := r.at
	if r.plain(); r.at < len(r.in) && r.in[r.at] == '"' {
		r.at++
		return r.in[from : r.at-1]
	}
	s := slices.Clone(r.in[from:r.at])
	for r.at < len(r.in) && r.in[r.at] == '\\' {
		s = r.escape(s)
		from = r.at
		r.plain()
		s = append(s, r.in[from:r.at]...)
	}
	if r.at == len(r.in) || r.in[r.at] != '"' {
		r.unexpected("in a string")
		return nil
	}
	r.at++
	return s
}

// plain advances to the first byte that ends a string, needs decoding or is invalid.
func (r *reader) plain() {
	s, i := r.in, r.at
	for i < len(s) && s[i] != '"' && s[i] != '\\' && s[i] >= ' ' {
		size := 1
		if s[i] >= utf8.RuneSelf {
			if _, size = utf8.DecodeRune(s[i:]); size == 1 { // invalid
				break
			}
		}
		i += size
	}
	r.at = i
}

// escape reads an escape sequence and appends the character that it stands for.
func (r *reader) escape(b []byte) []byte {
	const short, meaning = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	s := r.in[r.at:]
	if len(s) > 1 {
		if i := strings.IndexByte(short, s[1]); i >= 0 {
			r.at += 2
			return append(b, meaning[i])
		}
	}
	c, size := unit(s), 6
	if utf16.IsSurrogate(c) {
		c, size = utf16.DecodeRune(c, unit(s[6:])), 12
		if c == utf8.RuneError {
			c = -1
		}
	}
	if c < 0 {
		r.errorf("not JSON: invalid escape sequence %q in a string", bytes.ToValidUTF8(s[:min(len(s), size)], nil))
		return b
	}
	r.at += size
	return utf8.AppendRune(b, c)
}

// unit returns the UTF-16 code unit of \u and four digits at the beginning of s, or -1.
func unit(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	v, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(v)
}

// number reads a number, rounded to the nearest.
func (r *reader) number() float64 {
	if r.kind() != '0' {
		r.wrong("a number")
		return 0
	}
	return r.float()
}

// float reads a number from its first byte on.
func (r *reader) float() float64 {
	written, v, exact := r.decimal()
	if exact {
		return v
	}
	v, err := strconv.ParseFloat(string(written), 64)
	if err != nil {
		r.errorf("%s: out of range", Abbreviate(string(written), 40))
		return 0
	}
	return v
}

// whole reads a non-negative number without a point or an exponent.
func (r *reader) whole() int {
	if r.kind() != '0' {
		r.wrong("a whole number")
		return 0
	}
	written, _, _ := r.decimal()
	v, err := strconv.ParseInt(string(written), 10, 32)
	if err != nil || v < 0 {
		r.errorf("%s: want a whole number from 0 to %d, in digits only", Abbreviate(string(written), 40), math.MaxInt32)
		return 0
	}
	return int(v)
}

const manyDigits = 19 // that many always fit in 64 bits

// decimal reads a number ±m·10^e of value v. If m has too many digits or scaled has no value, exact is false, and the
// caller parses written.
func (r *reader) decimal() (written []byte, v float64, exact bool) {
	s := r.in[r.at:]
	sign, e := 0, 0
	if s[0] == '-' {
		sign = 1
	}
	from := sign
	m, i := digits(s, from, 0)
	size := i - from
	if size > 1 && s[from] == '0' {
		m, i, size = 0, from+1, 1
	}
	missing := size == 0
	if !missing && i < len(s) && s[i] == '.' {
		from = i + 1
		i = from
		for n := 8; n == 8 && i+8 <= len(s); i += n {
			var v uint64
			v, n = digitsOf(binary.LittleEndian.Uint64(s[i:]))
			m = tens[n]*m + v
		}
		m, i = digits(s, i, m) // those at the end of the text
		e = from - i
		size -= e
		missing = e == 0
	}
	if !missing && i < len(s) && s[i]|0x20 == 'e' {
		i++
		direction := 1
		if i < len(s) && (s[i] == '-' || s[i] == '+') {
			direction = int(',') - int(s[i])
			i++
		}
		from = i
		var power uint64
		power, i = digits(s, i, 0)
		if missing = i == from; i-from > manyDigits || power > math.MaxInt16 {
			power = math.MaxInt16
		}
		e += direction * int(power)
	}
	r.at += i
	if missing {
		r.unexpected("instead of a digit")
		return nil, 0, false
	}
	written = s[:i]
	if size > manyDigits {
		return written, 0, false
	}
	v, exact = scaled(m, e)
	return written, math.Float64frombits(math.Float64bits(v) | uint64(sign)<<63), exact
}

// scaled returns m·10^e, rounded to the nearest number and to even in a tie, if one operation does it. If m and 10^|e|
// are exact in 53 bits, it is one in floating point (Clinger 1990, How to Read Floating Point Numbers Accurately).
func scaled(m uint64, e int) (v float64, ok bool) {
	switch {
	case m > 1<<53 && -len(tens) < e && e <= 0:
		return quotient(m, -e), true
	case m > 1<<53 || e <= -len(powersOfTen) || e >= len(powersOfTen):
		return 0, false
	case e < 0:
		return float64(m) / powersOfTen[-e], true
	}
	return float64(m) * powersOfTen[e], true
}

// quotient returns m/10^k for m ≥ 1 and k < len(tens), rounded to the nearest number and to even in a tie. With both
// shifted to 64 bits, ⌊2^63·m/10^k⌋ takes at least 63 bits. Its lowest bit is set if there is a remainder, so that
// rounding to 53 bits is correct.
func quotient(m uint64, k int) float64 {
	d := tens[k]
	shift := bits.LeadingZeros64(d) - bits.LeadingZeros64(m)
	m <<= bits.LeadingZeros64(m)
	d <<= bits.LeadingZeros64(d)
	q, remainder := bits.Div64(m>>1, m<<63, d)
	if remainder > 0 {
		q |= 1
	}
	return math.Ldexp(float64(q), shift-63)
}

// shortNumber reads a number at the beginning of s: up to seven digits and, optionally, a point and more digits, at most
// 19 in all, without an exponent. It returns the same value as decimal, and the number's size. The size is 0 if s begins
// with anything else or is too short.
func shortNumber(s []byte) (v float64, size int) {
	const longest = 1 + 7 + 1 + 3*8 // sign, digits, point, and the digits that are looked at
	if len(s) < longest+1 {
		return 0, 0
	}
	sign := 0
	if s[0] == '-' {
		sign = 1
	}
	m, n := uint64(s[sign]-'0'), 1
	if s[sign+1] != '.' || m > 9 {
		m, n = digitsOf(binary.LittleEndian.Uint64(s[sign:]))
	}
	if n == 0 || n == 8 || n > 1 && s[sign] == '0' {
		return 0, 0
	}
	i := sign + n
	v = float64(m)
	if s[i] == '.' {
		i++
		f, k := digitsOf(binary.LittleEndian.Uint64(s[i:]))
		m = tens[k]*m + f
		for more := k; more == 8 && k <= 16; k += more {
			f, more = digitsOf(binary.LittleEndian.Uint64(s[i+k:]))
			m = tens[more]*m + f
		}
		if k == 0 || n+k > manyDigits {
			return 0, 0
		}
		i += k
		if v = float64(m) / powersOfTen[k]; m > 1<<53 {
			v = quotient(m, k)
		}
	}
	if s[i]|0x20 == 'e' {
		return 0, 0
	}
	return math.Float64frombits(math.Float64bits(v) | uint64(sign)<<63), i
}

// digits appends the decimal digits at s[i:] to m, modulo 2^64, and returns the index after them.
func digits(s []byte, i int, m uint64) (uint64, int) {
	for i < len(s) && s[i]-'0' <= 9 {
		m = 10*m + uint64(s[i]-'0')
		i++
	}
	return m, i
}

// digitsOf returns the value and the number of the decimal digits at the beginning of eight bytes of text, the lowest
// byte first. It adds all digits at once, in pairs, fours and eights.
func digitsOf(text uint64) (v uint64, n int) {
	x := text ^ 0x3030303030303030 // digits become bytes up to 9
	n = bits.TrailingZeros64((x&0x7f7f7f7f7f7f7f7f+0x7676767676767676|x)&0x8080808080808080) / 8
	x <<= 64 - 8*n // zeros come before the digits, in place of the rest
	x = x * (10<<8 + 1) >> 8 & 0x00ff00ff00ff00ff
	x = x * (100<<16 + 1) >> 16 & 0x0000ffff0000ffff
	x = x * (10_000<<32 + 1) >> 32
	return x, n
}

var tens = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// powersOfTen are the powers that are exact in a float64.
var powersOfTen = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
	1e21, 1e22,
}

// wrong skips the next value and reports its wrong type.
func (r *reader) wrong(want string) {
	kind := jsontext.Kind(r.kind())
	r.skip()
	r.errorf("have %s, want %s", kindName(kind), want)
}

// unexpected reports that the next character is not allowed there.
func (r *reader) unexpected(where string) {
	c, size := utf8.DecodeRune(r.in[r.at:])
	switch {
	case c == utf8.RuneError && !utf8.FullRune(r.in[r.at:]):
		r.errorf("the JSON ends early")
	case c == utf8.RuneError && size == 1:
		r.errorf("not JSON: invalid UTF-8")
	default:
		r.errorf("not JSON: invalid character %q %s", c, where)
	}
}

// errorf reports an error at the present place.
func (r *reader) errorf(format string, args ...any) { r.fail(Fieldf(r.pointer(), format, args...)) }

// fail records the first error and ends the reading.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
		r.in, r.at = nil, 0
	}
}

// pointer returns the present place as a JSON pointer.
func (r *reader) pointer() string {
	steps := r.steps
	if r.aside {
		steps = steps[:len(steps)-1]
	}
	var b []byte
	for i := range steps {
		b = append(b, '/')
		if steps[i].end == ']' {
			b = strconv.AppendInt(b, int64(steps[i].members-1), 10)
		} else {
			b = append(b, Pointer(steps[i].keys.before[steps[i].keys.next-1].name)...)
		}
	}
	return string(b)
}
