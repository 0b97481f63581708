package decision

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"vitrine/internal/stream"
	"vitrine/service/api"
	"vitrine/service/feature"
)

const mixed = `{"max_size":2,"features":[{"name":"price","kind":"number"},{"name":"a/b~ü","kind":"category"},{"name":"t","kind":"text"},{"name":"age","kind":"number","from":"user"},{"name":"place","kind":"category","from":"user"},{"name":"o","kind":"object"}],"policy":{}}`

func mixedConfig(t testing.TB) *Config {
	c, err := ParseConfig([]byte(mixed))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// agree parses a request in both ways. What is wrong with valid JSON is said in the same
// words. What is no JSON is refused at the same place, or by one of them at what is around it.
func agree(t *testing.T, p *RequestParser, text []byte, c *Config) {
	t.Helper()
	want, wantErr := parseByTokens(text, c.Schema())
	have, err := p.Parse(text, c)
	if have != nil && want != nil && have.Schema != c.Schema() {
		t.Fatalf("%s: a request of another schema than the configuration's", text)
	}
	sameRequest := cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Schema" }, cmp.Ignore())
	if diff := cmp.Diff(want, have, sameRequest); diff != "" {
		t.Fatalf("%s: request (-tokens +reader):\n%s\n%v, %v", text, diff, wantErr, err)
	}
	if wantErr == nil && err == nil {
		return
	}
	if wantErr == nil || err == nil {
		t.Fatalf("%s:\nreader %v\ntokens %v", text, err, wantErr)
	}
	a, b := wantErr.(*api.FieldError), err.(*api.FieldError)
	if *a == *b || !jsontext.Value(text).IsValid() && (around(a.Field, b.Field) || around(b.Field, a.Field)) {
		return
	}
	t.Fatalf("%s:\nreader %v\ntokens %v", text, err, wantErr)
}

func around(outer, inner string) bool {
	outer, inner = strings.TrimSuffix(outer, "…"), strings.TrimSuffix(inner, "…")
	return jsontext.Pointer(outer).Contains(jsontext.Pointer(inner)) || len(outer) >= 490 && strings.HasPrefix(inner, outer)
}

var requests = []string{
	`{"items":[{"id":"i","features":{"price":1,"a/b~ü":"a","t":"x y"},"revenue":2},{"id":"j","features":{"price":-3.25e-2,"a\/b~\u00fc":"\ud83d\ude00","o":{"x":[1,{"y": null}]}}}, {"revenue":3, "features":{ "t" :"\n", "price":null } , "id":"k"}],"user":{"age":3,"place":"Trier"},"size":1,"include":["i"],"exclude":["j"],"at_most":[{"feature":"a/b~ü","most":1},{"items":["i"],"most":1}],"decision_id":"x","baseline":[],"defer":true}`,
	`{"items":[]}`, `{"items":[{}]}`, `{"items":[{"features":{"price":[{"a":{"b":[1,"x",true,false,null,1e9,{}]}}]}}]}`,
	`{"items":[{"features":{"price":[{"a":1,"\u0061":2}]}}]}`, `{"user":{"age":true}}`, `{"size":-0}`, `{"size":1e0}`, `{"size":2147483648}`,
	`{"items":[{"features":{"price":1e999}}]}`, ` [1]`, `"x"`, "\ufeff{}", `{} x`, `{"items":[{"id":"\ud800"}]}`, `{"a":1}`, `{"items":[{"features":{"age":1}}]}`,
	`{"include":["a", 1]}`, `{"include":{"a":1}}`, `{"at_most":[{"most":1},{"most":-1}]}`, `{"at_most":[3]}`, `{"user":[]}`, `{"decision_id":null}`,
	`{"items":[{"id":"a"},[}]}`, `{"items":[{"id":"a"} {"id":"b"}]}`, `{"items":[{"id":"a",}]}`, `{"items":[,]}`, `{"size":01}`, `{"size":1.}`, `{"size":-}`, `{"size":.5}`, `{"size":1e}`,
}

// Cuts and single changed bytes of requests are read as by tokens.
func TestReaderAgrees(t *testing.T) {
	c, p := mixedConfig(t), new(RequestParser)
	for _, text := range requests {
		agree(t, p, []byte(text), c)
		for i := range len(text) {
			agree(t, p, []byte(text[:i]), c)
			agree(t, p, []byte(text[:i]+text[i+1:]), c)
			for _, b := range []byte("\"\\{}[]:,0-.eu \x00\x1f\x80\xe2n") {
				agree(t, p, []byte(text[:i]+string([]byte{b})+text[i:]), c)
				agree(t, p, []byte(text[:i]+string([]byte{b})+text[i+1:]), c)
			}
		}
	}
	for _, deep := range []int{9_990, 9_996, 9_997, 9_998, 20_000} {
		text := `{"items":[{"features":{"price":` + strings.Repeat("[", deep)
		agree(t, p, []byte(text), c)
		agree(t, p, []byte(text+strings.Repeat("]", deep)+"}}]}"), c)
	}
}

// What a request said stays, when the memory of its items and of its text have another one.
func TestParserKeepsStrings(t *testing.T) {
	c, p := mixedConfig(t), new(RequestParser)
	text := []byte(`{"items":[{"id":"first","features":{"a/b~ü":"one","t":"tw\u006f"}}]}`)
	r, err := p.Parse(text, c)
	if err != nil {
		t.Fatal(err)
	}
	id, brand, words := r.Items[0].ID, r.Items[0].Features[1].Text, r.Items[0].Features[2].Text
	other := []byte(`{"items":[{"id":"other"},{"id":"","features":{"t":"xxx"}},{}],"user":{"age":1}}`)
	copy(text, other)
	r, err = p.Parse(other, c)
	if err != nil {
		t.Fatal(err)
	}
	if id != "first" || brand != "one" || words != "two" {
		t.Errorf("%q, %q and %q are left of the first", id, brand, words)
	}
	if r.Schema != c.Schema() {
		t.Error("the request is of another schema")
	}
	r.Schema = nil
	want := &Request{
		Items: []feature.Item{{ID: "other", Features: make([]feature.Value, 4)}, {Features: []feature.Value{{}, {}, feature.Text("xxx"), {}}}, {Features: make([]feature.Value, 4)}},
		User:  []feature.Value{feature.Number(1), {}},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// In memory that is there, reading takes none for each item.
func TestParserAllocates(t *testing.T) {
	c, p := mixedConfig(t), new(RequestParser)
	text := []byte(`{"items":[` + strings.Repeat(`{"id":"i","features":{"price":0.25,"t":"a"},"revenue":1},`, 500) + `{}]}`)
	read := func() {
		if _, err := p.Parse(text, c); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, read); n > 20 {
		t.Errorf("%v allocations a request, at most 20 were wanted", n)
	}
}

func FuzzReader(f *testing.F) {
	c, p := mixedConfig(f), new(RequestParser)
	for _, text := range requests {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Count(text, []byte{','}) < c.MaxItems { // longer lists are refused
			agree(t, p, text, c)
		}
	})
}

// Any value is taken as it stands, and refused where it is no JSON.
func FuzzRaw(f *testing.F) {
	for _, text := range []string{`{"a":[1,{"b":"x"}]}`, ` [ ] `, `1e3`, `{"a":1,"a":2}`, `"\ud800"`, `nul`, `-`, `[[1],[2`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := reader{in: text}
		have := string(r.raw())
		ok := r.err == nil && r.peek() == 0 && r.at == len(r.in)
		if want := jsontext.Value(text).IsValid(); ok != want {
			t.Fatalf("%q is JSON: %v, %v, want %v", text, ok, r.err, want)
		}
		if want := string(bytes.Trim(text, " \t\r\n")); ok && have != want {
			t.Fatalf("%q is read as %q", text, have)
		}
	})
}

// A number has the value that strconv finds, to the last bit.
func checkNumber(t *testing.T, text string) {
	t.Helper()
	want, wantErr := strconv.ParseFloat(text, 64)
	r := reader{in: []byte(text)}
	have := r.number()
	if wantErr != nil {
		if r.err == nil {
			t.Fatalf("%s is read as %v", text, have)
		}
		return
	}
	if r.err != nil || r.at != len(text) || math.Float64bits(have) != math.Float64bits(want) {
		t.Fatalf("%s is read as %v, want %v, %v", text, have, want, r.err)
	}
}

func TestNumbers(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "-0.0", "0e99999", "1e22", "1e23", "1e-22", "1e-23", "9007199254740992", "9007199254740993", "9007199254740993e-1", "9999999999999999999", "99999999999999999999",
		"18446744073709551616", "0.0000000000000000001", "0.00000000000000000001", "1e00000000000000000000005", "1e-99999999999999999999", "1e18446744073709551617", "5e-324", "2e-324", "1.7976931348623157e308", "1.8e308", "123456789012345678e-40",
		"0.1000000000000000055511151231257827", "1e+5", "1E5", "8.41e21", "9007199254740991e22",
	} {
		checkNumber(t, text)
	}
	rng := stream.New(1, 1, stream.Contexts)
	n := 300_000
	if testing.Short() {
		n = 10_000
	}
	for range n {
		checkNumber(t, randomNumber(rng))
	}
}

func randomNumber(rng *rand.Rand) string {
	switch rng.IntN(5) {
	case 0:
		return strconv.FormatFloat(rng.NormFloat64(), 'f', rng.IntN(20), 64)
	case 1: // every exponent
		v := math.Float64frombits(rng.Uint64())
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "0"
		}
		return strconv.FormatFloat(v, 'e', -1, 64)
	case 2:
		return strconv.FormatInt(rng.Int64()>>rng.IntN(64), 10)
	}
	b := []byte{}
	if rng.IntN(2) == 0 {
		b = append(b, '-')
	}
	some := func(most int) {
		for range 1 + rng.IntN(most) {
			b = append(b, byte('0'+rng.IntN(10)))
		}
	}
	if rng.IntN(3) == 0 {
		b = append(b, '0')
	} else {
		b = append(b, byte('1'+rng.IntN(9)))
		some(17)
	}
	if rng.IntN(3) > 0 {
		b = append(b, '.')
		some(22)
	}
	if rng.IntN(2) > 0 {
		b = fmt.Appendf(b, "%c%s%d", "eE"[rng.IntN(2)], []string{"", "+", "-"}[rng.IntN(3)], rng.IntN([]int{5, 25, 330}[rng.IntN(3)]))
	}
	return string(b)
}

func FuzzNumber(f *testing.F) {
	for _, text := range []string{"-0", "1e22", "9007199254740993", "0.1", "1e999", "1.", "01", "-", "1e"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || strings.Trim(text, "0123456789+-.eE") != "" {
			return
		}
		checkNumber(t, text)
	})
}

// Strings hold what RFC 8259 says of them, in valid UTF-8 alone.
func TestStrings(t *testing.T) {
	for text, want := range map[string]string{
		`"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"\u00e9é"`: "éé", `"a\u0000b"`: "a\x00b", `"\uD834\uDd1e"`: "𝄞", "\"\x7f\u2028\"": "\x7f\u2028", `""`: "",
	} {
		r := reader{in: []byte(text)}
		if have := r.text(); have != want || r.err != nil || r.at != len(text) {
			t.Errorf("%s is read as %q, want %q, %v", text, have, want, r.err)
		}
	}
	for _, text := range []string{`"\x"`, `"\u12"`, `"\u12g4"`, `"\ud834"`, `"\ud834x"`, `"\ud834\ud834"`, `"\udd1e"`, "\"\n\"", "\"\x00\"", "\"\xff\"", "\"\xe2\x82\"", "\"\xed\xa0\x80\"", `"`, `"\`, `"\u1`} {
		r := reader{in: []byte(text)}
		if have := r.text(); r.err == nil {
			t.Errorf("%q is read as %q", text, have)
		}
	}
}

// parseByTokens is the same language by another implementation.
func parseByTokens(text []byte, s *feature.Schema) (*Request, error) {
	p := &tokenParser{Request: new(Request), schema: s, in: jsontext.NewDecoder(bytes.NewBuffer(text))}
	err := p.object(p.member)
	if err == nil {
		if _, trailing := p.in.ReadToken(); trailing != io.EOF {
			err = api.Fieldf("", "there is more after the request")
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

// tokenParser reads a request value by value.
type tokenParser struct {
	*Request
	schema *feature.Schema
	in     *jsontext.Decoder
	values []feature.Value // storage of coming items
}

func (p *tokenParser) member(key []byte) error {
	switch string(key) {
	case "decision_id":
		return p.text(&p.Decision)
	case "items":
		p.Items = []feature.Item{}
		return p.array(p.item)
	case "user":
		p.User = make([]feature.Value, p.schema.NumUser())
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
	case "defer":
		return p.truth(&p.Defer)
	}
	return p.unknown(key, "decision_id, items, user, size, include, exclude, at_most, baseline, defer")
}

func (p *tokenParser) item() error {
	n := p.schema.NumItem()
	if len(p.values) < n {
		p.values = make([]feature.Value, 32*n)
	}
	p.Items = append(p.Items, feature.Item{Features: p.values[:n:n]})
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
func (p *tokenParser) revenues() {
	for len(p.Revenue) < len(p.Items) {
		p.Revenue = append(p.Revenue, 1)
	}
}

func (p *tokenParser) feature(values []feature.Value, name []byte, from string) error {
	find, names, isObject := p.schema.Item, p.schema.ItemNames, p.schema.IsItemObject
	if from == "user" {
		find, names, isObject = p.schema.User, p.schema.UserNames, p.schema.IsUserObject
	}
	slot, ok := find(string(name))
	if !ok {
		return p.unknown(name, names())
	}
	switch p.in.PeekKind() {
	case '0':
		values[slot].Kind = feature.IsNumber
		return p.number(&values[slot].Number)
	case '"':
		values[slot].Kind = feature.IsText
		return p.text(&values[slot].Text)
	case 'n':
		return p.skip()
	case '{', '[':
		if isObject(slot) {
			raw, err := p.in.ReadValue()
			if err != nil {
				return api.JSONError(err)
			}
			values[slot] = feature.Object(string(raw))
			return nil
		}
	}
	return p.wrong("a number or a string")
}

func (p *tokenParser) truth(dst *bool) error {
	if kind := p.in.PeekKind(); kind != 't' && kind != 'f' {
		return p.wrong("true or false")
	}
	token, err := p.in.ReadToken()
	if err != nil {
		return api.JSONError(err)
	}
	*dst = token.Bool()
	return nil
}

func (p *tokenParser) limit() error {
	p.AtMost = append(p.AtMost, api.Limit{})
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
func (p *tokenParser) object(member func(key []byte) error) error {
	if p.in.PeekKind() != '{' {
		return p.wrong("an object")
	}
	if err := p.skip(); err != nil {
		return err
	}
	for p.in.PeekKind() != '}' {
		name, err := p.in.ReadValue()
		if err != nil {
			return api.JSONError(err)
		}
		if err := member(unquote(name)); err != nil {
			return err
		}
	}
	return p.skip()
}

func (p *tokenParser) array(element func() error) error {
	if p.in.PeekKind() != '[' {
		return p.wrong("a list")
	}
	if err := p.skip(); err != nil {
		return err
	}
	for p.in.PeekKind() != ']' {
		if err := element(); err != nil {
			return err
		}
	}
	return p.skip()
}

func (p *tokenParser) list(dst *[]string) error {
	return p.array(func() error {
		*dst = append(*dst, "")
		return p.text(&(*dst)[len(*dst)-1])
	})
}

func (p *tokenParser) text(dst *string) error {
	if p.in.PeekKind() != '"' {
		return p.wrong("a string")
	}
	raw, err := p.in.ReadValue()
	if err != nil {
		return api.JSONError(err)
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

func (p *tokenParser) number(dst *float64) error {
	if p.in.PeekKind() != '0' {
		return p.wrong("a number")
	}
	raw, err := p.in.ReadValue()
	if err != nil {
		return api.JSONError(err)
	}
	if *dst, err = strconv.ParseFloat(string(raw), 64); err != nil {
		return p.errorf("%s: out of range", api.Abbreviate(string(raw), 40))
	}
	return nil
}

func (p *tokenParser) whole(dst *int) error {
	if p.in.PeekKind() != '0' {
		return p.wrong("a whole number")
	}
	raw, err := p.in.ReadValue()
	if err != nil {
		return api.JSONError(err)
	}
	v, err := strconv.ParseInt(string(raw), 10, 32)
	if err != nil || v < 0 {
		return p.errorf("%s: want a whole number that is not negative", api.Abbreviate(string(raw), 40))
	}
	*dst = int(v)
	return nil
}

func (p *tokenParser) skip() error {
	if _, err := p.in.ReadToken(); err != nil {
		return api.JSONError(err)
	}
	return nil
}

// wrong reports the coming value to be of another type.
func (p *tokenParser) wrong(want string) error {
	v, err := p.in.ReadValue()
	if err != nil {
		return api.JSONError(err)
	}
	return p.errorf("%s where %s is wanted", api.KindName(v.Kind()), want)
}

func (p *tokenParser) unknown(key []byte, legal string) error {
	return p.errorf("unknown key %q: must be one of %s", api.Abbreviate(string(key), 40), legal)
}

// errorf makes an error at the value that was read last.
func (p *tokenParser) errorf(format string, args ...any) error {
	return api.Fieldf(string(p.in.StackPointer()), format, args...)
}
