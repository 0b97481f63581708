package api

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A request's JSON is read by hand, in one pass and without a map: json v2 takes eight times as long for 100 items of
// 10 features, which makes a decision by ONL-MNL among them more than three times as expensive (BenchmarkRequestReader).
// Nothing else is read by hand.

// RequestReader reads requests, each into the memory of the one before. The zero value is ready.
type RequestReader struct {
	reader
	out      Request
	maxItems int
	items    []Item // memory of the requests before
	values   Values
	revenues []float64

	request, item, limit, slot keys
	features, user             keys
}

// Read reads the JSON of a request with at most maxItems elements in each list:
//
//	{"decision_id": "abc", "items": [{"id": "sku1", "features": {"price": 1.2, "brand": "acme"}, "revenue": 2.5}, …],
//	 "user": {…}, "size": 2, "include": ["sku1"], "exclude": ["sku2"],
//	 "at_most": [{"items": ["sku3", "sku4"], "most": 1}, {"feature": "brand", "most": 2}], "baseline": ["sku1"], "defer": true}
//
// Unknown keys, keys that are there twice, wrong types and longer lists are errors, of type *[FieldError]. The
// request is good until the next one is read. Its strings are good for ever.
func (p *RequestReader) Read(text []byte, maxItems int) (*Request, error) {
	p.begin(text, maxItems)
	p.read()
	if err := p.end(); err != nil {
		return nil, err
	}
	return &p.out, nil
}

func (p *RequestReader) begin(text []byte, maxItems int) {
	if p.request.find == nil {
		p.request = keysOf("decision_id", "items", "user", "size", "include", "exclude", "at_most", "slots", "baseline", "defer")
		p.item = keysOf("id", "features", "revenue")
		p.limit = keysOf("items", "feature", "most")
		p.slot = keysOf("id", "exclude")
	}
	for _, k := range []*keys{&p.request, &p.item, &p.limit, &p.slot} {
		k.before = k.before[:0] // it stands in another text
	}
	p.features, p.user = anyKeys(maxNames), anyKeys(maxNames)
	clear(p.items)
	clear(p.values)
	p.values, p.revenues = p.values[:0], p.revenues[:0]
	p.out, p.maxItems = Request{}, maxItems
	p.reader = reader{in: text, steps: p.steps[:0]}
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
		case "user":
			r.User = p.readValues(&p.user)
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
		case "slots":
			r.Slots = []Slot{}
			for p.list(); p.another(); {
				r.Slots = append(r.Slots, p.readSlot())
			}
		case "baseline":
			r.Baseline = p.texts(nil)
		case "defer":
			r.Defer = p.truth()
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
			p.revenues = append(p.revenues, p.number())
			item.Revenue = &p.revenues[len(p.revenues)-1]
		}
	}
	return item
}

// another reports whether a list has another element. A list has at most maxItems elements, as short ones would take
// much more memory than their text.
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

// CheckLength returns a *[FieldError] for a list of a request with more elements than the placement takes items.
func CheckLength(field string, length, maxItems int) error {
	if length > maxItems {
		return Fieldf(field, "has more than %d elements: the placement takes at most %d items", maxItems, maxItems)
	}
	return nil
}

// texts reads a list of strings, and appends them.
func (p *RequestReader) texts(dst []string) []string {
	for p.list(); p.another(); {
		dst = append(dst, p.text())
	}
	return dst
}

// readValues reads an object of values. It lies beside the others.
func (p *RequestReader) readValues(k *keys) Values {
	from := len(p.values)
	for p.object(k); p.more(); {
		if key := p.key(); p.err == nil {
			p.values = append(p.values, p.value(key.name))
		}
	}
	if p.values == nil {
		return Values{}
	}
	return p.values[from:len(p.values):len(p.values)]
}

func (p *RequestReader) value(name string) Value {
	switch p.kind() {
	case '0':
		return Number(name, p.number())
	case '"':
		return Text(name, p.text())
	case 'n':
		p.literal("null")
		return Value{Name: name}
	case '{', '[':
		return Object(name, string(p.raw()))
	}
	p.wrong("a number or a string")
	return Value{}
}

func (p *RequestReader) readLimit() (l Limit) {
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

// reader reads JSON (RFC 8259) in one pass: valid UTF-8 without half surrogate pairs, keys
// that differ within an object, and not nested too deep. What it returns as a string shares
// no memory with the text.
//
// Objects and lists are read by loops,
//
//	for r.object(&keys); r.more(); {
//		switch r.key().name { … }
//	}
//	for r.list(); r.more(); {
//		…
//	}
//
// that read one value in each turn. After the first error, which has a JSON pointer to its
// place, all that is read is the zero value, and nothing is more.
type reader struct {
	in    []byte
	at    int
	steps []step          // the objects and lists around
	aside bool            // at the edge of a member of the innermost, and not in it
	kept  strings.Builder // the strings so far
	err   error
}

// step is an object or a list, and the member of it that is read.
type step struct {
	end     byte // '}' or ']'
	members int
	keys    *keys
}

const deepest = 10_000 // objects and lists in each other

// keys are those that an object may have.
type keys struct {
	find   func(name string) (number int, ok bool)
	legal  func() string
	many   int    // how many there are, if that is known
	seen   []bool // by number
	before []key  // of the object before: of a list of them, most have theirs in the same order
	next   int    // in before
}

type key struct {
	name    string
	number  int
	written []byte // how it stood in the text, with its colon
}

// keysOf are the keys of the given names, whose numbers are their places.
func keysOf(names ...string) keys {
	return keys{
		find:  func(name string) (int, bool) { i := slices.Index(names, name); return i, i >= 0 },
		legal: func() string { return strings.Join(names, ", ") },
		many:  len(names),
	}
}

// maxNames bounds the names of an object of any keys: a row has no more columns.
const maxNames = 4096

// anyKeys are all keys, up to so many.
func anyKeys(most int) keys {
	numbers := map[string]int{}
	return keys{find: func(name string) (int, bool) {
		n, ok := numbers[name]
		if !ok && len(numbers) < most {
			n, ok = len(numbers), true
			numbers[name] = n
		}
		return n, ok
	}}
}

// object comes to the members of an object. What it reads of keys is good until
// another object of theirs is read.
func (r *reader) object(k *keys) {
	if r.peek() != '{' {
		r.wrong("an object")
		return
	}
	if k.before == nil {
		k.seen, k.before = make([]bool, k.many), make([]key, 0, k.many)
	}
	clear(k.seen)
	k.next = 0
	r.enter(step{end: '}', keys: k})
}

// list comes to the elements of a list.
func (r *reader) list() {
	if r.peek() != '[' {
		r.wrong("a list")
		return
	}
	r.enter(step{end: ']'})
}

func (r *reader) enter(s step) {
	if len(r.steps) == deepest {
		r.errorf("not JSON: more than %d objects and lists are in each other", deepest)
		return
	}
	r.at++
	r.steps = append(r.steps, s)
}

// more reports whether the object or list has another member, and comes to it, or
// to what is after the object or list.
func (r *reader) more() bool {
	if r.err != nil {
		return false
	}
	top := &r.steps[len(r.steps)-1]
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
			r.unexpected("where ',' or '" + string(top.end) + "' is wanted")
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

// key reads the key of a member. It is good until the next one.
func (r *reader) key() *key {
	k := r.steps[len(r.steps)-1].keys
	if k.next == len(k.before) || !bytes.HasPrefix(r.in[r.at:], k.before[k.next].written) {
		return r.newKey(k)
	}
	found := &k.before[k.next]
	k.next++
	k.seen[found.number] = true
	r.at += len(found.written)
	r.aside = false
	return found
}

// newKey reads a key that was not foreseen. Keys after it are not foreseen either.
func (r *reader) newKey(k *keys) *key {
	if r.peek() != '"' {
		r.unexpected("where a key is wanted")
		return &key{}
	}
	from := r.at
	name := r.keep(r.quoted())
	if r.err != nil {
		return &key{}
	}
	number, known := k.find(name)
	k.before = append(k.before[:k.next], key{name: name, number: number})
	found := &k.before[k.next]
	k.next++
	r.aside = false
	for len(k.seen) <= number {
		k.seen = append(k.seen, false)
	}
	switch {
	case !known && k.legal == nil:
		r.errorf("has more than %d names", maxNames)
		return &key{}
	case !known:
		r.errorf("unknown key %q: must be one of %s", Abbreviate(name, 40), k.legal())
		return &key{}
	case k.seen[number]:
		r.errorf("the key is there twice")
		return &key{}
	case r.peek() != ':':
		r.unexpected("where ':' is wanted")
		return &key{}
	}
	r.at++
	k.seen[number] = true
	found.written = r.in[from:r.at]
	return found
}

// end reports the error, if there is one, and else what there is after the value.
func (r *reader) end() error {
	if r.peek(); r.at < len(r.in) {
		return Fieldf("", "there is more after the request")
	}
	return r.err
}

// peek returns the next byte that is not white space, 0 at the end.
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

// kind returns the type of the next value: one of '{', '[', '"', '0', 't', 'f', 'n', or
// another byte where there is none.
func (r *reader) kind() byte {
	c := r.peek()
	if c == '-' || '0' <= c && c <= '9' {
		return '0'
	}
	return c
}

// raw reads any value, and returns where it stands in the text.
func (r *reader) raw() jsontext.Value {
	r.peek()
	from := r.at
	if r.skip(); r.err != nil {
		return nil
	}
	return r.in[from:r.at]
}

// skip reads any value.
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
		r.unexpected("where a value is wanted")
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

// text reads a string.
func (r *reader) text() string {
	if r.peek() != '"' {
		r.wrong("a string")
		return ""
	}
	return r.keep(r.quoted())
}

// keep makes a string, which lies beside the others.
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

// plain comes to the first byte that ends a string or does not stand for itself in it.
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

// escape reads an escape sequence, and appends what it stands for.
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

// unit returns the unit of UTF-16 that \u with four digits stands for, and -1 of anything else.
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

// whole reads a number that is written without a point or an exponent, and is not negative.
func (r *reader) whole() int {
	if r.kind() != '0' {
		r.wrong("a whole number")
		return 0
	}
	written, _, _ := r.decimal()
	v, err := strconv.ParseInt(string(written), 10, 32)
	if err != nil || v < 0 {
		r.errorf("%s: want a whole number that is not negative", Abbreviate(string(written), 40))
		return 0
	}
	return int(v)
}

// decimal reads a number. Where m and 10^|e| of ±m·10^e are numbers of 53 bits, its value is one
// rounded operation on them (Clinger 1990, How to read floating point numbers
// accurately), and else left to others.
func (r *reader) decimal() (written []byte, v float64, exact bool) {
	const manyDigits = 19 // all that 64 bits hold
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
		m, i = digits(s, from, m)
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
		r.unexpected("where a digit is wanted")
		return nil, 0, false
	}
	written = s[:i]
	if size > manyDigits || m > 1<<53 || e < 1-len(powersOfTen) || e >= len(powersOfTen) {
		return written, 0, false
	}
	v = float64(m)
	if e < 0 {
		v /= powersOfTen[-e]
	} else {
		v *= powersOfTen[e]
	}
	return written, math.Float64frombits(math.Float64bits(v) | uint64(sign)<<63), true
}

// digits continues m, modulo 2^64, by the digits at s[i:], and returns where they end.
func digits(s []byte, i int, m uint64) (uint64, int) {
	for i < len(s) && s[i]-'0' <= 9 {
		m = 10*m + uint64(s[i]-'0')
		i++
	}
	return m, i
}

// powersOfTen are those that are exact.
var powersOfTen = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// wrong reports the coming value to be of another type.
func (r *reader) wrong(want string) {
	kind := jsontext.Kind(r.kind())
	r.skip()
	r.errorf("%s where %s is wanted", KindName(kind), want)
}

// unexpected reports that the next byte cannot stand there.
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

// errorf reports what is wrong with the value, or where the reader is.
func (r *reader) errorf(format string, args ...any) { r.fail(Fieldf(r.pointer(), format, args...)) }

// fail keeps the first error.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
		r.in, r.at = nil, 0
	}
}

// pointer returns where the reader is.
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
