package table_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/table"
)

// open returns the table in a file with this text.
func open(t testing.TB, text []byte, o table.Options) (table.Table, error) {
	path := filepath.Join(t.TempDir(), "table")
	fatal.If(t, os.WriteFile(path, text, 0o600))
	f, err := os.Open(path)
	fatal.If(t, err)
	t.Cleanup(func() { f.Close() })
	return table.Open(f, o)
}

// Values get the types that a reader asks for: numbers and booleans for models, and for logs the text of the file, to
// the last digit.
func TestTypes(t *testing.T) {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		Name  string  `parquet:"a"`
		Is    bool    `parquet:"b"`
		ID    int64   `parquet:"c"`
		Small int32   `parquet:"d"`
		Cost  float64 `parquet:"e"`
	}](&b)
	w.Write([]struct {
		Name  string  `parquet:"a"`
		Is    bool    `parquet:"b"`
		ID    int64   `parquet:"c"`
		Small int32   `parquet:"d"`
		Cost  float64 `parquet:"e"`
	}{{"x", true, 7, 3, 0.5}})
	w.Close()
	long := strings.Repeat("9", 18)
	number := func(v float64) table.Column { return table.Column{Number: []float64{v}} }
	text := func(v string, bare bool) table.Column { return table.Column{Text: []string{v}, Bare: bare} }
	for _, c := range []struct {
		text string
		o    table.Options
		want []table.Column
	}{
		{b.String(), table.Options{}, []table.Column{text("x", false), number(1), number(7), number(3), number(0.5)}},
		{b.String(), table.Options{Texts: true},
			[]table.Column{text("x", false), text("true", true), text("7", true), number(3), number(0.5)}},
		{"a,b\n 1.5 ,007\n", table.Options{}, []table.Column{number(1.5), text("007", false)}},
		{"a,b\n 1.5 ," + long + "\n", table.Options{Texts: true},
			[]table.Column{text("1.5", false), text(long, false)}},
		{"a,b\n9007199254740993,-9007199254740992\n", table.Options{},
			[]table.Column{text("9007199254740993", false), number(-1 << 53)}},
		{"x|\"y\"\n", table.Options{Names: []string{"a", "b"}, Delimiter: "|"},
			[]table.Column{text("x", false), text("y", false)}},
		{"a,b,,\n1,x,y,z\n", table.Options{}, []table.Column{number(1), text("x", false), text("y", false), text("z", false)}},
		{"\ufeff{\"a\":1,\"b\":\"x\"}\n", table.Options{}, []table.Column{{Number: []float64{1}, Bare: true}, text("x", false)}},
		{"a\tb\nx\t5\" disk\n", table.Options{Delimiter: "\t"},
			[]table.Column{text("x", false), text(`5" disk`, false)}},
	} {
		tab, err := open(t, []byte(c.text), c.o)
		fatal.If(t, err)
		columns := make([]int, len(c.want))
		for j := range columns {
			columns[j] = j
		}
		got, err := tab.Next(columns)
		fatal.If(t, err)
		for j := range got.Columns {
			if len(got.Columns[j].Number) == 0 {
				got.Columns[j].Number = nil
			}
		}
		if diff := cmp.Diff(c.want, got.Columns); diff != "" || tab.Header()[1] != "b" {
			t.Errorf("%.20q, %+v (-want +got):\n%s", c.text, c.o, diff)
		}
	}
}

// Two columns of one name are refused, unless the name is empty.
func TestColumnTwice(t *testing.T) {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		Cost float64 `parquet:"cost"`
		Time float64 `parquet:"time"`
	}](&b)
	fatal.If(t, w.Close())
	const message = `the file contains the column "cost" twice`
	twice := bytes.ReplaceAll(b.Bytes(), []byte("time"), []byte("cost"))
	expect.Message(open(t, twice, table.Options{}))(t, message)
	unnamed := bytes.ReplaceAll(twice, []byte("\x04cost"), []byte{0})
	unnamed[len(unnamed)-8] -= 8 // the footer's length
	if _, err := open(t, unnamed, table.Options{}); err != nil {
		t.Error(err)
	}
	b.Reset()
	group := parquet.NewGenericWriter[struct {
		Cost float64 `parquet:"cost"`
		Time struct {
			X float64 `parquet:"x"`
		} `parquet:"time"`
	}](&b)
	fatal.If(t, group.Close())
	expect.Message(open(t, bytes.ReplaceAll(b.Bytes(), []byte("time"), []byte("cost")), table.Options{}))(t, message)
}

// Parquet's unsigned integers, byte decimals and UUIDs are converted to their meaning. List columns are named.
func TestLogicalTypes(t *testing.T) {
	var b bytes.Buffer
	schema := parquet.NewSchema("table", parquet.Group{
		"a": parquet.Uint(32), "b": parquet.Uint(64), "c": parquet.Uint(64),
		"d": parquet.Decimal(2, 20, parquet.FixedLenByteArrayType(9)),
		"e": parquet.Decimal(1, 20, parquet.ByteArrayType), "f": parquet.UUID(), "g": parquet.List(parquet.String()),
		"h": parquet.Decimal(0, 38, parquet.ByteArrayType), "i": parquet.Decimal(0, 18, parquet.Int64Type),
	})
	w := parquet.NewWriter(&b, schema)
	id := [16]byte{0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3, 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00}
	const big = 3_000_000_000
	fatal.Or(w.WriteRows([]parquet.Row{{
		parquet.Int32Value(big-1<<32).Level(0, 0, 0),
		parquet.Int64Value(big).Level(0, 0, 1), parquet.Int64Value(-1).Level(0, 0, 2),
		parquet.FixedLenByteArrayValue([]byte{0, 0, 0, 0, 0, 0, 0, 0x07, 0xcb}).Level(0, 0, 3),
		parquet.ByteArrayValue([]byte{0xff, 0x38}).Level(0, 0, 4),
		parquet.FixedLenByteArrayValue(id[:]).Level(0, 0, 5), parquet.ByteArrayValue([]byte("x")).Level(0, 1, 6),
		parquet.ByteArrayValue([]byte{0x20, 0, 0, 0, 0, 0, 1}).Level(0, 0, 7), parquet.Int64Value(1<<53+1).Level(0, 0, 8),
	}}))(t)
	fatal.If(t, w.Close())
	for _, texts := range []bool{false, true} {
		tab := fatal.Or(open(t, b.Bytes(), table.Options{Texts: texts}))(t)
		expect.List(t, tab.Nested(), []string{"g.list.element"}, "nested")
		columns := []int{0, 1, 3, 4, 5, 2}
		want := []string{"3000000000", "3000000000", "19.95", "-20", "123e4567-e89b-12d3-a456-426614174000",
			"18446744073709551615"}
		got := fatal.Or(tab.Next(columns))(t)
		for k := range want {
			expect.Equal(t, got.Columns[k].String(0), want[k], "column", columns[k])
		}
		const id = "9007199254740993" // a decimal without decimals, which a float64 cannot tell from its neighbours
		got, err := fatal.Or(open(t, b.Bytes(), table.Options{Texts: texts}))(t).Next([]int{7})
		if err != nil || got.Columns[0].String(0) != id {
			t.Errorf("%+v, %v", got, err)
		}
		got, err = fatal.Or(open(t, b.Bytes(), table.Options{Texts: texts}))(t).Next([]int{6})
		if texts && (err != nil || got.Columns[0].String(0) != id) ||
			!texts && (err == nil || err.Error() != "column h: "+id+" is beyond 2^53: write the column as text") {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// Without statistics a column of ids beyond 2^53 is not known before they come. The file is not blamed.
func TestLongIDs(t *testing.T) {
	for _, o := range [][]parquet.WriterOption{nil, {parquet.SkipPageBounds("a")}} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[struct {
			A int64 `parquet:"a"`
		}](&b, o...)
		fatal.Or(w.Write([]struct {
			A int64 `parquet:"a"`
		}{{1}, {1<<53 + 1}}))(t)
		fatal.If(t, w.Close())
		got, err := fatal.Or(open(t, b.Bytes(), table.Options{}))(t).Next([]int{0})
		if o == nil && (err != nil || got.Columns[0].String(1) != "9007199254740993") ||
			o != nil && (err == nil || err.Error() != "column a: 9007199254740993 is beyond 2^53: write the column as text") {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// A column may be empty in the first batches. Its first value decides whether it is numeric, and later values must
// agree.
func TestLateValues(t *testing.T) {
	empty := strings.Repeat("1,,NA\n", table.BatchRows)
	tab := fatal.Or(
		open(t, []byte("a,b,c\n"+empty+"2,red,7\n"+strings.Repeat("1,,\n", table.BatchRows)+"9007199254740993,,\n"),
			table.Options{}),
	)(t)
	all := []int{0, 1, 2}
	if b := fatal.Or(tab.Next(all))(t); !b.Columns[1].Missing(0) || !b.Columns[2].Missing(0) {
		t.Errorf("%+v", b.Columns)
	}
	if b := fatal.Or(tab.Next(all))(t); b.Columns[1].String(0) != "red" ||
		b.Columns[2].String(0) != "7" || b.Columns[2].Text != nil {
		t.Errorf("%+v", b.Columns)
	}
	expect.Part(tab.Next(all))(t, "line 8195: column a: 9007199254740993 is beyond 2^53")
	// 007 would become 7, another id.
	tab = fatal.Or(open(t, []byte("a,b\n"+strings.Repeat("7,2\n", table.BatchRows)+"007,2\n"), table.Options{}))(t)
	fatal.Or(tab.Next(all[:2]))(t)
	expect.Part(tab.Next(all[:2]))(t, "line 4098: column a: 007 begins with 0")
	tab = fatal.Or(open(t, []byte("a,b\n"+strings.Repeat("1,2\n", table.BatchRows)+"1,red\n"), table.Options{}))(t)
	fatal.Or(tab.Next(all[:2]))(t)
	expect.Part(tab.Next(all[:2]))(t, `column b: "red" is not a number, but earlier values in the column are`)
}

// Ids that are numbers first and text later keep one spelling.
func TestMixedIDs(t *testing.T) {
	text := "a,b\n" + strings.Repeat("1.0,1.0\n", table.BatchRows) + "1.0,1.0\nNA,1\nwalk,007\n1.0,007\nNA,1.00\n007,x\n"
	tab := fatal.Or(open(t, []byte(text), table.Options{IDs: []string{"a", "b"}}))(t)
	fatal.Or(tab.Next([]int{0, 1}))(t)
	b := fatal.Or(tab.Next([]int{0, 1}))(t)
	expect.Equal(t, b.Columns[0].Text, []string{"1", "", "walk", "1", "", "007"})
	expect.Equal(t, b.Columns[1].Text, []string{"1", "1", "007", "007", "1", "x"})
}

// A header may hold a very large number of columns: a comparison of each with all others would take a minute here.
func TestWideHeader(t *testing.T) {
	var b strings.Builder
	for j := range 200_000 {
		fmt.Fprintf(&b, "c%d,", j)
	}
	if _, err := open(t, []byte(b.String()+"last\n"), table.Options{}); err != nil {
		t.Error(err)
	}
	expect.Message(open(t, []byte(b.String()+"c7\n"), table.Options{}))(t, `line 1 has the column "c7" twice`)
}

// JSON Lines are read by member name. Members may come in any order and appear first on any line.
func TestJSONLines(t *testing.T) {
	const text = "\n" + `{"id":"a","n":1.50,"is":true,"more":{"x": [1, 2]}}` + "\n\n" +
		`{"n":2,"late":"7","id":"b","is":false}` + "\n" + `{"id":"c","n":null}`
	for _, c := range []struct {
		texts bool
		want  string
		bare  []bool
	}{{false, "a 1.5 1 {\"x\":[1,2]} NaN|b 2 0  7|c NaN NaN  NaN", []bool{false, true, true, true, false}},
		{true, "a 1.50 true {\"x\":[1,2]} |b 2 false  7|c    ", []bool{false, true, true, true, false}}} {
		tab := fatal.Or(open(t, []byte(text), table.Options{Texts: c.texts}))(t)
		expect.Equal(t, strings.Join(tab.Header(), " "), "id n is more late", "the columns are")
		var rows, places []string
		fatal.If(t, table.Each(tab, func(at string, b *table.Batch, i int) error {
			var row []string
			for j := range b.Columns {
				row = append(row, b.Columns[j].String(i))
				expect.Equal(t, b.Columns[j].Bare, c.bare[j], "column", j, "is bare")
			}
			rows, places = append(rows, strings.Join(row, " ")), append(places, at)
			return nil
		}))
		if got := strings.Join(rows, "|"); got != c.want ||
			!slices.Equal(places, []string{"line 2", "line 4", "line 5"}) {
			t.Errorf("%s at %s, want %s", got, places, c.want)
		}
	}
	for bad, want := range map[string]string{
		"{}\n[1]":       "line 2: want a JSON object: it is \"[1]\"",
		`{"a":1}{}`:     "line 1: want a JSON object: there is text after it",
		`{"a":1,"a":2}`: `line 1: want a JSON object: jsontext: duplicate object member name "a"`,
		`{"a":`:         "line 1: want a JSON object: ",
	} {
		expect.Prefix(open(t, []byte(bad), table.Options{}))(t, want, bad)
	}
}

// The error about a missing column names a similar one, or the content of a nested column.
func TestNoColumn(t *testing.T) {
	nested := []string{"tags.list.element", "user.age", "user.name"}
	for name, want := range map[string]string{
		"Cst":  `there is no column "Cst": did you mean "cost"?`,
		"fare": `there is no column "fare": the columns are case, cost`,
		"user": `column "user" is nested, and a row needs one value: write user.age, user.name as columns of their own`,
	} {
		if err := table.NoColumn(name, []string{"case", "cost"}, nested); err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	expect.List(t, table.NestedColumns(nested), []string{"tags", "user"})
}

// Compressed Parquet must fit in memory, so its size is limited.
func TestLongCompressedParquet(t *testing.T) {
	defer table.SetMaxWhole(table.SetMaxWhole(100))
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	fatal.Or(w.Write([]byte(table.Magic + strings.Repeat("x", 97))))(t)
	fatal.If(t, w.Close())
	expect.Part(open(t, b.Bytes(), table.Options{}))(t, "more than 100 bytes: decompress it first")
}

// For any bytes, all columns contain as many values as the table contains rows, or an error says why not.
func FuzzOpen(f *testing.F) {
	for _, text := range []string{"a,b\n1,x\n2,\n", "a;b\n", "PAR1", "\x1f\x8b",
		"\xef\xbb\xbfa\n\"", "a,a\n", "{\"a\":1}\n{\"b\":[],\"a\":\"x\"}"} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, texts bool) {
		tab, err := open(t, text, table.Options{Texts: texts})
		if err != nil {
			return
		}
		all := make([]int, len(tab.Header()))
		for j := range all {
			all[j] = j
		}
		for {
			b, err := tab.Next(all)
			if err != nil {
				return
			}
			for j := range b.Columns {
				if n := len(b.Columns[j].Number) + len(b.Columns[j].Text); n != b.N {
					t.Fatalf("column %d has %d values in %d rows", j, n, b.N)
				}
			}
		}
	})
}

// Archives and compressions that are not read are named.
func TestArchives(t *testing.T) {
	for head, want := range map[string]string{"PK\x03\x04\x14\x00": "it is a ZIP archive", "BZh91AY": "bzip2 or xz",
		"\xfd7zXZ\x00\x00": "bzip2 or xz", "a,b\r1,2\r1,2\r": "only a carriage return"} {
		expect.Part(open(t, []byte(head), table.Options{}))(t, want, head)
	}
}

// Headers that resemble an archive's or another line end are a CSV file's.
func TestHeaders(t *testing.T) {
	for _, text := range []string{"BZh,b\n1,2\n", "BZh\n1\n", "\"a\rb\",c\n1,2\n"} {
		if _, err := open(t, []byte(text), table.Options{}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Halves, of which the library knows only the bytes, are numbers. pyarrow writes testdata/half.parquet.
func TestHalves(t *testing.T) {
	tab := fatal.Or(open(t, fatal.Or(os.ReadFile("testdata/half.parquet"))(t), table.Options{}))(t)
	got := fatal.Or(tab.Next([]int{1}))(t).Columns[0].Number
	want := []float64{1.5, -0.25, 0x1p-24, 65504, 0.333251953125, math.Inf(1), math.Inf(-1), math.NaN(),
		-2.002716064453125e-05, math.NaN()}
	expect.Equal(t, got, want, cmpopts.EquateNaNs())
}

// A codec that is not read is named. pandas writes testdata/lz4.parquet with compression = "lz4".
func TestLZ4(t *testing.T) {
	expect.Prefix(open(t, fatal.Or(os.ReadFile("testdata/lz4.parquet"))(t), table.Options{}))(t,
		"the compression LZ4_RAW is not read: ")
}
