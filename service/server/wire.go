package server

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"net/http"
	"slices"
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"vitrine/service/api"
	"vitrine/service/decision"
)

// binaryRequest is a DecisionRequest of proto/decision.proto and the api.Request made from it. Its
// memory is reused.
type binaryRequest struct {
	decision                   string
	ids, texts                 list
	numbers, revenues          []float64
	userNumbers                []float64
	userTexts                  list
	size, deferred             uint32
	include, exclude, baseline []string
	atMost                     []api.Limit
	maxItems                   int // the limit of every list

	values  api.Values
	items   []api.Item
	request api.Request

	config       *decision.Config // of the columns
	ofItem, user columns
}

var binaryRequests = sync.Pool{New: func() any { return new(binaryRequest) }}

// release puts the memory into the pool. The engine must have answered, because it may still read a
// request whose caller has stopped waiting.
func (r *binaryRequest) release() {
	clear(r.values)
	clear(r.items)
	*r = binaryRequest{
		ids: r.ids.empty(), texts: r.texts.empty(), numbers: r.numbers[:0], revenues: r.revenues[:0], userNumbers: r.userNumbers[:0],
		userTexts: r.userTexts.empty(), values: r.values[:0], items: r.items[:0],
		config: r.config, ofItem: r.ofItem, user: r.user,
	}
	binaryRequests.Put(r)
}

// list is a list of strings in one piece of memory.
type list struct {
	bytes []byte
	ends  []int
}

func (l *list) empty() list { return list{l.bytes[:0], l.ends[:0]} }

func (l *list) len() int { return len(l.ends) }

// each yields the strings.
func (l *list) each() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		all, from := string(l.bytes), 0
		for i, end := range l.ends {
			if !yield(i, all[from:end]) {
				return
			}
			from = end
		}
	}
}

func (l *list) consume(t protowire.Type, b []byte) int {
	v, size := consumeBytes(t, b)
	if size >= 0 {
		l.bytes = append(l.bytes, v...)
		l.ends = append(l.ends, len(l.bytes))
	}
	return size
}

// fields reads a message field by field. Unknown fields are errors, because ignoring them could ignore
// what the caller asks for.
func fields(b []byte, read func(n protowire.Number, t protowire.Type, b []byte) int) error {
	for len(b) > 0 {
		n, t, size := protowire.ConsumeTag(b)
		if size < 0 {
			return notBinary("a tag is cut off or ill-formed")
		}
		b = b[size:]
		switch size = read(n, t, b); {
		case size == unknownField:
			return notBinary("field %d is unknown, or of another type: see service/server/proto/decision.proto", n)
		case size < 0:
			return notBinary("field %d is cut off or ill-formed", n)
		}
		b = b[size:]
	}
	return nil
}

const unknownField = math.MinInt

func notBinary(format string, args ...any) error {
	return problemf(http.StatusBadRequest, "malformed", "the body is not a DecisionRequest: %s", fmt.Sprintf(format, args...))
}

// consumeBytes reads a string.
func consumeBytes(t protowire.Type, b []byte) ([]byte, int) {
	if t != protowire.BytesType {
		return nil, unknownField
	}
	v, size := protowire.ConsumeBytes(b)
	if size >= 0 && !utf8.Valid(v) {
		return nil, -1
	}
	return v, size
}

func consumeText(dst *string, t protowire.Type, b []byte) int {
	v, size := consumeBytes(t, b)
	if size >= 0 {
		*dst = string(v)
	}
	return size
}

func consumeTexts(dst *[]string, t protowire.Type, b []byte) int {
	v, size := consumeBytes(t, b)
	if size >= 0 {
		*dst = append(*dst, string(v))
	}
	return size
}

// consumeNumbers reads packed doubles, and single ones.
func consumeNumbers(dst *[]float64, t protowire.Type, b []byte) int {
	switch t {
	case protowire.Fixed64Type:
		v, size := protowire.ConsumeFixed64(b)
		if size >= 0 {
			*dst = append(*dst, math.Float64frombits(v))
		}
		return size
	case protowire.BytesType:
		packed, size := protowire.ConsumeBytes(b)
		if size < 0 || len(packed)%8 != 0 {
			return -1
		}
		had, n := len(*dst), len(packed)/8
		*dst = slices.Grow(*dst, n)[:had+n]
		to := (*dst)[had:]
		for i := range to {
			to[i] = math.Float64frombits(binary.LittleEndian.Uint64(packed[8*i:]))
		}
		return size
	}
	return unknownField
}

func consumeWhole(dst *uint32, t protowire.Type, b []byte) int {
	if t != protowire.VarintType {
		return unknownField
	}
	v, size := protowire.ConsumeVarint(b)
	if size >= 0 && v > math.MaxInt32 {
		return -1
	}
	*dst = uint32(v)
	return size
}

// full reports whether a repeated field exceeds its limit; further elements are skipped.
func (r *binaryRequest) full(n protowire.Number) bool {
	length := 0
	switch n {
	case 2:
		length = r.ids.len()
	case 9:
		length = len(r.include)
	case 10:
		length = len(r.exclude)
	case 11:
		length = len(r.atMost)
	case 12:
		length = len(r.baseline)
	}
	return length > r.maxItems
}

func (r *binaryRequest) read(n protowire.Number, t protowire.Type, b []byte) int {
	if r.full(n) {
		return protowire.ConsumeFieldValue(n, t, b)
	}
	switch n {
	case 1:
		return consumeText(&r.decision, t, b)
	case 2:
		return r.ids.consume(t, b)
	case 3:
		return consumeNumbers(&r.numbers, t, b)
	case 4:
		return r.texts.consume(t, b)
	case 5:
		return consumeNumbers(&r.revenues, t, b)
	case 6:
		return consumeNumbers(&r.userNumbers, t, b)
	case 7:
		return r.userTexts.consume(t, b)
	case 8:
		return consumeWhole(&r.size, t, b)
	case 9:
		return consumeTexts(&r.include, t, b)
	case 10:
		return consumeTexts(&r.exclude, t, b)
	case 11:
		return consumeLimit(&r.atMost, t, b)
	case 12:
		return consumeTexts(&r.baseline, t, b)
	case 13:
		return consumeWhole(&r.deferred, t, b)
	}
	return unknownField
}

func consumeLimit(dst *[]api.Limit, t protowire.Type, b []byte) int {
	if t != protowire.BytesType {
		return unknownField
	}
	message, size := protowire.ConsumeBytes(b)
	if size < 0 {
		return size
	}
	var l api.Limit
	var maximum uint32
	err := fields(message, func(n protowire.Number, t protowire.Type, b []byte) int {
		switch n {
		case 1:
			return consumeTexts(&l.Items, t, b)
		case 2:
			return consumeText(&l.Feature, t, b)
		case 3:
			return consumeWhole(&maximum, t, b)
		}
		return unknownField
	})
	if err != nil {
		return -1
	}
	l.Most = int(maximum)
	*dst = append(*dst, l)
	return size
}

// parse reads a request in the wire format. Errors of values name the fields of the JSON form. The
// request shares memory with r.
func (r *binaryRequest) parse(body []byte, c *decision.Config) (*api.Request, error) {
	r.maxItems = c.MaxItems
	if err := fields(body, r.read); err != nil {
		return nil, err
	}
	if r.config != c {
		r.config = c
		r.ofItem, r.user = columnsOf(c)
	}
	n := r.ids.len()
	if err := api.CheckLength("/items", n, c.MaxItems); err != nil {
		return nil, err
	}
	if err := r.ofItem.check("/items", "numbers", "texts", n, len(r.numbers), r.texts.len()); err != nil {
		return nil, err
	}
	if len(r.revenues) > 0 && len(r.revenues) != n {
		return nil, api.Fieldf("/items", "%d items and %d revenues", n, len(r.revenues))
	}
	width := r.ofItem.width()
	r.values = slices.Grow(r.values, n*width)[:n*width]
	r.items = slices.Grow(r.items, n)[:n]
	for i, id := range r.ids.each() {
		r.items[i] = api.Item{ID: id, Features: r.values[i*width : (i+1)*width : (i+1)*width]}
		if len(r.revenues) > 0 {
			r.items[i].Revenue = &r.revenues[i]
		}
	}
	r.ofItem.fill(r.values, r.numbers, &r.texts)
	r.request = api.Request{
		Decision: r.decision, Items: r.items, Size: int(r.size), Include: r.include, Exclude: r.exclude, AtMost: r.atMost, Baseline: r.baseline,
		Defer: r.deferred != 0,
	}
	if len(r.userNumbers) > 0 || r.userTexts.len() > 0 {
		if err := r.user.check("/user", "user_numbers", "user_texts", 1, len(r.userNumbers), r.userTexts.len()); err != nil {
			return nil, err
		}
		r.request.User = make(api.Values, r.user.width())
		r.user.fill(r.request.User, r.userNumbers, &r.userTexts)
	}
	return &r.request, nil
}

// columns has the names of the numbers and of the texts in a row, and which of the texts are objects.
type columns struct {
	numbers, texts []string
	object         []bool
}

func columnsOf(c *decision.Config) (items, user columns) {
	for i := range c.Features {
		f := &c.Features[i]
		of := &items
		if f.From == "user" {
			of = &user
		}
		switch f.Kind {
		case "cross":
		case "number":
			of.numbers = append(of.numbers, f.Name)
		default:
			of.texts, of.object = append(of.texts, f.Name), append(of.object, f.Kind == "object")
		}
	}
	return items, user
}

func (s *columns) check(field, numbersField, textsField string, rows, numbers, texts int) error {
	for _, c := range []struct {
		name       string
		have, each int
	}{{numbersField, numbers, len(s.numbers)}, {textsField, texts, len(s.texts)}} {
		if c.have != rows*c.each {
			return api.Fieldf(field, "%d %s, want %d of each of %d rows", c.have, c.name, c.each, rows)
		}
	}
	return nil
}

func (s *columns) width() int { return len(s.numbers) + len(s.texts) }

// fill stores numbers and texts, both in row-major order, in rows of values.
func (s *columns) fill(rows api.Values, numbers []float64, texts *list) {
	width, n := s.width(), len(s.numbers)
	for i, v := range numbers {
		rows[i/n*width+i%n] = api.Number(s.numbers[i%n], v)
	}
	for i, text := range texts.each() {
		of := i % len(s.texts)
		value := api.Text(s.texts[of], text)
		if s.object[of] {
			value.Kind = api.IsObject
		}
		rows[i/len(s.texts)*width+n+of] = value
	}
}

// appendBinary appends a DecisionAnswer.
func appendBinary(b []byte, a *decision.Answer) []byte {
	text := func(n protowire.Number, s string) {
		b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	number := func(n protowire.Number, v float64) {
		b = protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), math.Float64bits(v))
	}
	text(1, a.Decision)
	for _, id := range a.Shown {
		text(2, id)
	}
	if len(a.Probability) > 0 {
		b = protowire.AppendTag(b, 3, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(8*len(a.Probability)))
		for _, p := range a.Probability {
			b = protowire.AppendFixed64(b, math.Float64bits(p))
		}
	}
	number(4, a.Outside)
	number(5, a.Revenue)
	number(6, a.Propensity)
	b = protowire.AppendTag(b, 7, protowire.VarintType)
	return protowire.AppendVarint(b, a.PolicyVersion)
}
