package api

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/long"
	"vitrine/internal/stream"
)

const maxItems = 1000

// agree reads a request by hand and by json v2. What that one refuses the reader refuses, at the same place if it is
// JSON; and besides null and numbers that are not whole or not positive, which json v2 takes.
func agree(t *testing.T, p *RequestReader, text []byte) {
	t.Helper()
	var want Request
	wantErr := json.Unmarshal(text, &want, json.RejectUnknownMembers(true))
	have, err := p.Read(text, maxItems)
	switch {
	case wantErr != nil && err == nil:
		t.Fatalf("%s: %+v, and by json v2 %v", text, have, wantErr)
	case err == nil:
		if diff := cmp.Diff(&want, have, cmpopts.EquateEmpty()); diff != "" ||
			(want.User == nil) != (have.User == nil) || (want.Baseline == nil) != (have.Baseline == nil) ||
			(want.Candidates == nil) != (have.Candidates == nil) {
			t.Fatalf("%s: request (-json v2 +reader):\n%s", text, diff)
		}
	case wantErr == nil:
		if m := err.(*FieldError).Message; !strings.HasPrefix(m, "have null, ") &&
			!strings.HasSuffix(m, ": want a whole number from 0 to 2147483647, in digits only") && !strings.HasPrefix(m, "0: must be at least 1;") {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

var requests = []string{
	`{"items":[{"id":"i","features":{"price":1,"a/b~ü":"a","t":"x y"},"space":0.5,"revenue":2},{"id":"j","features":{"price":-3.25e-2,"a\/b~\u00fc":"\ud83d\ude00","o":{"x":[1,{"y": null}]}}}, {"revenue":3, "features":{ "t" :"\n", "price":null } , "id":"k"}],"shopper":{"age":3,"place":"Trier"},"max_size":1,"capacity":1.5,"include":["i"],"exclude":["j"],"limits":[{"feature":"a/b~ü","max":1},{"items":["i"],"max":1},{"attribute":"shop","max":2},{"max":0,"group":"sale"},{"min":1,"group":"new"}],"min_size":1,"decision_id":"x","baseline":[],"defer":true}`,
	`{"items":[]}`, `{"items":[{}]}`, `{"items":[{"features":{"price":[{"a":{"b":[1,"x",true,false,null,1e9,{}]}}]}}]}`,
	`{"items":[{"features":{"price":[{"a":1,"\u0061":2}]}}]}`, `{"shopper":{"age":true}}`, `{"max_size":-0}`,
	`{"max_size":1e0}`, `{"max_size":2147483648}`,
	`{"items":[{"features":{"price":1e999}}]}`, ` [1]`, `"x"`, "\ufeff{}", `{} x`, `{"items":[{"id":"\ud800"}]}`,
	`{"a":1}`, `{"items":[{"features":{"age":1}}]}`,
	`{"include":["a", 1]}`, `{"include":{"a":1}}`, `{"limits":[{"max":1},{"max":-1}]}`, `{"limits":[3]}`,
	`{"shopper":[]}`, `{"decision_id":null}`,
	`{"items":[{"id":"a"},[}]}`, `{"items":[{"id":"a"} {"id":"b"}]}`, `{"items":[{"id":"a",}]}`, `{"items":[,]}`,
	`{"max_size":01}`, `{"max_size":1.}`, `{"max_size":-}`, `{"max_size":.5}`, `{"max_size":1e}`,
}

// Numbers of the second item, whose keys are predicted, are read as those of the first, whatever their form.
func TestNumbersUnderPredictedKeys(t *testing.T) {
	p, rng := new(RequestReader), stream.New(3, 0, stream.World)
	texts := []string{
		"0", "-0", "00", "01", "-01", "0.", "-", "--1", "1.5", "-1.5", "1234567", "12345678", "123456789", "0.1234567",
		"0.12345678", "0.123456789012", "1234567.1234567",
		"-1234567.1234567", "1e3", "1.5E-3", "1.e3", ".5", "+1", "1.5.5", "0.0000001", "9999999.9999999", "1 ", " 1",
		"null", `"1"`, "true", "{}", "1:", "1\u0030", "1.5x", "0x1",
	}
	for range 2000 {
		text := make([]byte, 1+rng.IntN(10))
		for i := range text {
			text[i] = "0123456789.-e+"[rng.IntN(14)]
		}
		texts = append(texts, string(text), strconv.FormatFloat(rng.NormFloat64(), 'f', rng.IntN(9), 64))
	}
	for _, text := range texts {
		for _, tail := range []string{`}}]}`, `,"b":2}}],"max_size":1,"include":["x","y"]}`,
			`, "b" : 2 } }],"max_size":1}                         `} {
			agree(t, p, fmt.Appendf(nil, `{"items":[{"features":{"a":1,"b":2}},{"features":{"a":%s%s`, text, tail))
		}
	}
}

// Cuts and single changed bytes of requests are read as by tokens.
func TestReaderAgrees(t *testing.T) {
	p := new(RequestReader)
	for _, text := range requests {
		agree(t, p, []byte(text))
		for i := range len(text) {
			agree(t, p, []byte(text[:i]))
			agree(t, p, []byte(text[:i]+text[i+1:]))
			for _, b := range []byte("\"\\{}[]:,0-.eu \x00\x1f\x80\xe2n") {
				agree(t, p, []byte(text[:i]+string([]byte{b})+text[i:]))
				agree(t, p, []byte(text[:i]+string([]byte{b})+text[i+1:]))
			}
		}
	}
	for _, deep := range []int{9_990, 9_996, 9_997, 9_998, 20_000} {
		text := `{"items":[{"features":{"price":` + strings.Repeat("[", deep)
		agree(t, p, []byte(text))
		agree(t, p, []byte(text+strings.Repeat("]", deep)+"}}]}"))
	}
}

// What a request said stays, when the memory of its items and of its text have another one.
func TestReaderKeepsStrings(t *testing.T) {
	p := new(RequestReader)
	text := []byte(`{"items":[{"id":"first","features":{"a/b~ü":"one","t":"tw\u006f"}}]}`)
	r := fatal.Or(p.Read(text, maxItems))(t)
	id, brand, words := r.Items[0].ID, r.Items[0].Features[0].Text, r.Items[0].Features[1].Text
	other := []byte(`{"items":[{"id":"other"},{"id":"","features":{"t":"xxx"}},{}],"shopper":{"age":1}}`)
	copy(text, other)
	r = fatal.Or(p.Read(other, maxItems))(t)
	if id != "first" || brand != "one" || words != "two" {
		t.Errorf("%q, %q and %q are left of the first", id, brand, words)
	}
	want := &Request{
		Items: []Item{{ID: "other"}, {Features: Values{Text("t", "xxx")}}, {}},
		User:  Values{Number("age", 1)},
	}
	expect.Equal(t, r, want, "request")
}

// Names of features count for their request only.
func TestReaderForgetsNames(t *testing.T) {
	p := new(RequestReader)
	for request := range 5 {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, `,"x%d-%d":1`, request, i)
		}
		r, err := p.Read([]byte(`{"items":[{"features":{`+b.String()[1:]+`}},{"features":{"x":1}}]}`), maxItems)
		if err != nil || len(r.Items[0].Features) != 3000 {
			t.Fatalf("request %d: %v", request, err)
		}
	}
}

// In memory that is there, reading takes none for each item.
func TestReaderAllocates(t *testing.T) {
	p := new(RequestReader)
	text := []byte(`{"items":[` + strings.Repeat(`{"id":"i","features":{"price":0.25,"t":"a"},"revenue":1},`, 500) +
		`{}]}`)
	read := func() {
		fatal.Or(p.Read(text, maxItems))(t)
	}
	if n := testing.AllocsPerRun(100, read); n > 20 {
		t.Errorf("%v allocations a request, at most 20 were wanted", n)
	}
}

func FuzzReader(f *testing.F) {
	p := new(RequestReader)
	for _, text := range requests {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Count(text, []byte{','}) < maxItems { // longer lists are refused
			agree(t, p, text)
		}
	})
}

// Any value is taken as it stands, and refused where it is no JSON.
func FuzzRaw(f *testing.F) {
	for _, text := range []string{`{"a":[1,{"b":"x"}]}`, ` [ ] `, `1e3`, `{"a":1,"a":2}`, `"\ud800"`, `nul`, `-`,
		`[[1],[2`} {
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
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	have, size := shortNumber([]byte(text + strings.Repeat(",", 40)))
	if size == 0 {
		if n := len(whole); !strings.Contains(text, "e") && !strings.Contains(text, "E") && n < 8 && n+len(fraction) < 20 {
			t.Fatalf("%s is too long for shortNumber", text)
		}
		return
	}
	if size != len(text) || math.Float64bits(have) != math.Float64bits(want) {
		t.Fatalf("%s is read as %v of %d bytes, want %v", text, have, size, want)
	}
}

func TestNumbers(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "-0.0", "0e99999", "1e22", "1e23", "1e-22", "1e-23", "9007199254740992", "9007199254740993",
		"9007199254740993e-1", "9999999999999999999", "99999999999999999999",
		"18446744073709551616", "0.0000000000000000001", "0.00000000000000000001", "1e00000000000000000000005",
		"1e-99999999999999999999", "1e18446744073709551617", "5e-324", "2e-324", "1.7976931348623157e308",
		"1.8e308", "123456789012345678e-40",
		"0.1000000000000000055511151231257827", "1e+5", "1E5", "8.41e21", "9007199254740991e22",
		"9223372036854776833", "4503599627370497.5", "4503599627370498.5", "4503599627370497.501", "0.5000000000000000278", "0.500000000000000056",
		"1844674407370955161.5", "9999999.999999999999", "0.0123456789012345678", "0.01234567890123456789", "-7.0000000000",
	} {
		checkNumber(t, text)
	}
	rng := stream.New(1, 1, stream.Contexts)
	n := 10_000
	if long.Wanted() {
		n = 300_000
	}
	for range n {
		checkNumber(t, randomNumber(rng))
	}
	for range 10 * n { // enough to be next to a tie now and then
		m, k := rng.Uint64()>>rng.IntN(11)|1<<53, rng.IntN(len(tens))
		if have, want := quotient(m, k), fatal.Or(strconv.ParseFloat(fmt.Sprintf("%de-%d", m, k), 64))(t); have != want {
			t.Fatalf("%d/10^%d is %v, want %v", m, k, have, want)
		}
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
	some := func(maximum int) {
		for range 1 + rng.IntN(maximum) {
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
		b = fmt.Appendf(b, "%c%s%d", "eE"[rng.IntN(2)], []string{"", "+", "-"}[rng.IntN(3)],
			rng.IntN([]int{5, 25, 330}[rng.IntN(3)]))
	}
	return string(b)
}

func FuzzNumber(f *testing.F) {
	for _, text := range []string{"-0", "1e22", "9007199254740993", "0.1", "1e999", "1.", "01", "-", "1e"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !jsontext.Value(text).IsValid() || strings.Trim(text, "0123456789+-.eE") != "" {
			return
		}
		checkNumber(t, text)
	})
}

// Strings hold what RFC 8259 says of them, in valid UTF-8 only.
func TestStrings(t *testing.T) {
	for text, want := range map[string]string{
		`"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"\u00e9é"`: "éé", `"a\u0000b"`: "a\x00b", `"\uD834\uDd1e"`: "𝄞",
		"\"\x7f\u2028\"": "\x7f\u2028", `""`: "",
	} {
		r := reader{in: []byte(text)}
		if have := r.text(); have != want || r.err != nil || r.at != len(text) {
			t.Errorf("%s is read as %q, want %q, %v", text, have, want, r.err)
		}
	}
	for _, text := range []string{`"\x"`, `"\u12"`, `"\u12g4"`, `"\ud834"`, `"\ud834x"`, `"\ud834\ud834"`, `"\udd1e"`,
		"\"\n\"", "\"\x00\"", "\"\xff\"", "\"\xe2\x82\"", "\"\xed\xa0\x80\"", `"`, `"\`, `"\u1`} {
		r := reader{in: []byte(text)}
		if have := r.text(); r.err == nil {
			t.Errorf("%q is read as %q", text, have)
		}
	}
}

// BenchmarkRequestReader reads the JSON of 100 items with 10 features, and json v2 does.
func BenchmarkRequestReader(b *testing.B) {
	rng := stream.New(1, 1, stream.Contexts)
	var r Request
	for i := range 100 {
		item := Item{ID: fmt.Sprintf("item-%d", i), Revenue: new(rng.Float64())}
		for j := range 10 {
			item.Features = append(item.Features, Number(fmt.Sprintf("x%d", j), math.Round(1e6*rng.NormFloat64())/1e6))
		}
		r.Items = append(r.Items, item)
	}
	text, err := json.Marshal(r)
	fatal.If(b, err)
	run := func(name string, read func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				fatal.If(b, read())
			}
		})
	}
	p := new(RequestReader)
	run("hand", func() error { _, err := p.Read(text, maxItems); return err })
	run("v2", func() error { return json.Unmarshal(text, new(Request), json.RejectUnknownMembers(true)) })
}
