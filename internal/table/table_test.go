package table_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

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

// Values have the types that a reader asks for: numbers and conditions for models, and what the file says, to the last digit, for logs.
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
		{b.String(), table.Options{Texts: true}, []table.Column{text("x", false), text("true", true), text("7", true), number(3), number(0.5)}},
		{"a,b\n 1.5 ,007\n", table.Options{}, []table.Column{number(1.5), text("007", false)}},
		{"a,b\n 1.5 ," + long + "\n", table.Options{Texts: true}, []table.Column{text("1.5", false), text(long, false)}},
		{"x|\"y\"\n", table.Options{Names: []string{"a", "b"}, Delimiter: "|"}, []table.Column{text("x", false), text("y", false)}},
		{"a\tb\nx\t5\" disk\n", table.Options{Delimiter: "\t"}, []table.Column{text("x", false), text(`5" disk`, false)}},
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

// Whatever the bytes, all columns of a table have as many values as it has rows, or an error says why not.
func FuzzOpen(f *testing.F) {
	for _, text := range []string{"a,b\n1,x\n2,\n", "a;b\n", "PAR1", "\x1f\x8b", "\xef\xbb\xbfa\n\"", "a,a\n"} {
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
