package table

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// csvTable reads CSV with a header. The first batch with a value in a column decides what the column holds: numbers if each
// value is a number or missing, and is not a code.
type csvTable struct {
	r     *csv.Reader
	bytes *counter
	size  int64
	names []string
	holds []content // by column that is read
	read  int       // rows
	lines []int     // of the rows of the batch
	batch Batch
	texts bool
}

// content is what a column holds.
type content byte

const (
	undecided content = iota // all values so far are missing
	numbers
	texts
)

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

func (t *csvTable) Nested() []string { return nil }

func (t *csvTable) Progress() (done, total int64) { return t.bytes.n, t.size }

func (t *csvTable) Line(number int) int { return t.lines[number-t.batch.First] }

func (t *csvTable) Unit() string { return "line" }

func (t *csvTable) Next(columns []int) (*Batch, error) {
	b := &t.batch
	b.First, b.N = t.read, 0
	t.lines = t.lines[:0]
	if b.Columns == nil {
		b.Columns, t.holds = make([]Column, len(columns)), make([]content, len(columns))
		for k := range t.holds {
			if t.texts {
				t.holds[k] = texts
			}
		}
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
			if t.holds[k] != numbers {
				c.Text = append(c.Text, text)
				continue
			}
			v, err := ParseNumber(text)
			if err != nil {
				return nil, fmt.Errorf("line %d: column %s: %w, but earlier values in the column are", line, t.names[j], err)
			}
			if isLong(text) {
				return nil, fmt.Errorf("line %d: column %s: %s is beyond 2^53, and earlier values in the column are numbers: begin ids with a letter", line, t.names[j], text)
			}
			c.Number = append(c.Number, v)
		}
		b.N++
	}
	if b.N == 0 {
		return nil, io.EOF
	}
	t.read += b.N
	for k := range b.Columns {
		c := &b.Columns[k]
		if t.holds[k] == undecided {
			t.holds[k] = infer(c)
		}
		if t.holds[k] != texts {
			c.Text = nil
		}
	}
	return b, nil
}

// IsCode reports whether a text is a code rather than a number: 007, which is not 7, or an integer beyond 2^53, which a float64
// rounds.
func IsCode(text string) bool {
	return len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' || isLong(text)
}

// isLong reports whether a text is an integer beyond 2^53.
func isLong(text string) bool {
	if len(text) < 16 || strings.Trim(strings.TrimLeft(text, "+-"), "0123456789") != "" {
		return false
	}
	i, err := strconv.ParseInt(text, 10, 64)
	return err != nil || i > 1<<53 || i < -1<<53
}

// infer returns what a column of texts holds, and parses its numbers. A missing value is a number that decides nothing.
func infer(c *Column) content {
	holds := undecided
	for _, text := range c.Text {
		v, err := ParseNumber(text)
		if err != nil || IsCode(text) {
			c.Number = c.Number[:0]
			return texts
		}
		if !math.IsNaN(v) {
			holds = numbers
		}
		c.Number = append(c.Number, v)
	}
	return holds
}
