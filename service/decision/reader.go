package decision

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
)

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

// anyKeys are all keys.
func anyKeys() *keys {
	numbers := map[string]int{}
	return &keys{find: func(name string) (int, bool) {
		n, ok := numbers[name]
		if !ok {
			n = len(numbers)
			numbers[name] = n
		}
		return n, true
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
	case !known:
		r.errorf("unknown key %q: must be one of %s", api.Abbreviate(name, 40), k.legal())
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
		return api.Fieldf("", "there is more after the request")
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
		for r.object(anyKeys()); r.more(); {
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
		r.errorf("%s: out of range", api.Abbreviate(string(written), 40))
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
		r.errorf("%s: want a whole number that is not negative", api.Abbreviate(string(written), 40))
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
	r.errorf("%s where %s is wanted", api.KindName(kind), want)
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
func (r *reader) errorf(format string, args ...any) { r.fail(api.Fieldf(r.pointer(), format, args...)) }

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
			b = append(b, api.Pointer(steps[i].keys.before[steps[i].keys.next-1].name)...)
		}
	}
	return string(b)
}
