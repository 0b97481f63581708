package table

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// csvTable reads CSV with a header. A column is one of numbers if each of its values in the first
// batch is a number or missing, and is not a code such as 007.
type csvTable struct {
	r       *csv.Reader
	bytes   *counter
	size    int64
	names   []string
	numeric []bool // by column, from the first batch
	read    int    // rows
	lines   []int  // of the rows of the batch
	batch   Batch
	texts   bool
}

func newCSV(r *bufio.Reader, bytes *counter, size int64, o Options) (Table, error) {
	if head, _ := r.Peek(3); string(head) == "\ufeff" {
		r.Discard(3)
	}
	t := &csvTable{r: csv.NewReader(r), bytes: bytes, size: size, names: slices.Clone(o.Names), texts: o.Texts}
	if o.Delimiter != "" {
		t.r.Comma = []rune(o.Delimiter)[0]
	}
	t.r.ReuseRecord = true
	t.r.FieldsPerRecord = -1
	t.r.LazyQuotes = t.r.Comma == '\t' // TSV does not quote
	if t.names == nil {
		names, err := t.r.Read()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty")
		} else if err != nil {
			return nil, t.explain(err)
		}
		t.names = slices.Clone(names)
		if len(names) == 1 {
			for _, other := range ",;\t|" {
				if other != t.r.Comma && strings.ContainsRune(names[0], other) {
					return nil, fmt.Errorf("line 1 has one column, %.60q: if columns are separated by %q, set delimiter", names[0], other)
				}
			}
		}
	}
	for j, name := range t.names {
		t.names[j] = strings.TrimSpace(name)
	}
	for j, name := range t.names {
		if !utf8.ValidString(name) {
			return nil, fmt.Errorf("line 1: the name of column %d, %.40q, is not UTF-8: convert the file", j+1, name)
		}
		if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
			return nil, fmt.Errorf("line 1: %.40q cannot be the name of a column: is the file CSV?", name)
		}
		if slices.Contains(t.names[:j], name) {
			return nil, fmt.Errorf("line 1 has the column %q twice", name)
		}
	}
	return t, nil
}

// explain turns an error of reading into one that says where.
func (t *csvTable) explain(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %w", parse.Line, parse.Err)
	}
	return Damaged(err)
}

func (t *csvTable) Header() []string { return t.names }

func (t *csvTable) Progress() (done, total int64) { return t.bytes.n, t.size }

func (t *csvTable) Line(number int) int { return t.lines[number-t.batch.First] }

func (t *csvTable) Unit() string { return "line" }

func (t *csvTable) Next(columns []int) (*Batch, error) {
	b := &t.batch
	b.First, b.N = t.read, 0
	t.lines = t.lines[:0]
	if b.Columns == nil {
		b.Columns = make([]Column, len(columns))
	}
	for k := range b.Columns {
		c := &b.Columns[k]
		c.Number, c.Text = c.Number[:0], c.Text[:0]
	}
	for b.N < BatchRows {
		record, err := t.r.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, t.explain(err)
		}
		line, _ := t.r.FieldPos(0)
		switch {
		case len(record) != len(t.names):
			return nil, fmt.Errorf("line %d has %d fields, and the header %d", line, len(record), len(t.names))
		case slices.Equal(record, t.names):
			return nil, fmt.Errorf("line %d repeats the header: remove it", line)
		}
		t.lines = append(t.lines, line)
		for k, j := range columns {
			c, text := &b.Columns[k], strings.TrimSpace(record[j])
			if t.numeric == nil || !t.numeric[k] {
				c.Text = append(c.Text, text)
				continue
			}
			v, err := ParseNumber(text)
			if err != nil {
				return nil, fmt.Errorf("line %d: column %s: %w, and the column's first values are", line, t.names[j], err)
			}
			c.Number = append(c.Number, v)
		}
		b.N++
	}
	if b.N == 0 {
		return nil, io.EOF
	}
	t.read += b.N
	if t.numeric == nil {
		t.infer()
	}
	for k := range b.Columns {
		if t.numeric[k] {
			b.Columns[k].Text = nil
		}
	}
	return b, nil
}

// isCode reports whether a text is a code rather than a number, as 007 is, which is not 7.
func isCode(text string) bool {
	return len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9'
}

// infer finds the columns of numbers in the first batch, and parses them.
func (t *csvTable) infer() {
	t.numeric = make([]bool, len(t.batch.Columns))
	if t.texts {
		return
	}
	for k := range t.batch.Columns {
		c := &t.batch.Columns[k]
		t.numeric[k] = true
		for _, text := range c.Text {
			v, err := ParseNumber(text)
			if err != nil || isCode(text) {
				t.numeric[k], c.Number = false, c.Number[:0]
				break
			}
			c.Number = append(c.Number, v)
		}
	}
}
