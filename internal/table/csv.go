package table

import (
	"bufio"
	"bytes"
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

// textTable reads CSV with a header, and JSON Lines. The first batch with a value in a column decides whether the
// column holds numbers: it does if each value is a missing value or a number that is not a code.
type textTable struct {
	r     records
	bytes *counter
	size  int64
	names []string
	holds []content // by column that is read
	read  int       // rows
	lines []int     // of the rows of the batch
	batch Batch
	texts bool
	ids   []string
}

// records reads the rows of a file as text.
type records interface {
	// next returns the values of a row, valid until the next call, and its line. A missing value is "".
	next() (record []string, line int, err error)
	// bare reports whether no value of a column since its last call was a string.
	bare(column int) bool
}

// content is the type of a column's values.
type content byte

const (
	undecided content = iota // all values so far are missing
	numbers
	texts
	mixed // ids, the first batches of numbers
)

// csvRecords reads the rows of a CSV file.
type csvRecords struct {
	*csv.Reader
	bounded *Bounded
	names   []string
}

func (t *textTable) openCSV(text *bufio.Reader, o Options) error {
	start, _ := text.Peek(1 << 16)
	start, _, _ = bytes.Cut(start, []byte{'\r'})
	quoted := bytes.Count(start, []byte{'"'})%2 == 1 // whether the first carriage return is in quotes
	bounded := NewBounded(text)
	r := csvRecords{Reader: csv.NewReader(bufio.NewReaderSize(bounded, 1<<16)), bounded: bounded}
	if o.Delimiter != "" {
		if r.Comma = []rune(o.Delimiter)[0]; strings.ContainsRune("\"\r\n\ufffd", r.Comma) {
			return fmt.Errorf("delimiter = %q: want a character that separates columns", o.Delimiter)
		}
	}
	r.ReuseRecord = true
	r.FieldsPerRecord = -1
	r.LazyQuotes = r.Comma == '\t' // TSV does not quote
	t.names = slices.Clone(o.Names)
	if t.names == nil {
		names, err := r.Read()
		if errors.Is(err, io.EOF) {
			return errors.New("the file is empty")
		} else if err != nil {
			return explain(err)
		}
		t.names = slices.Clone(names)
		if len(names) == 1 {
			for _, other := range ",;\t|" {
				if other != r.Comma && strings.ContainsRune(names[0], other) {
					commas := "write commas, or "
					if other == ',' {
						commas = ""
					}
					return fmt.Errorf("line 1 has one column, %.60q: if columns are separated by %q, %sset "+
						"delimiter = %q in the TOML file that describes the table, if there is one",
						names[0], other, commas, string(other))
				}
			}
		}
	}
	for j, name := range t.names {
		t.names[j] = strings.TrimSpace(name)
	}
	seen := make(map[string]bool, len(t.names))
	for j, name := range t.names {
		if !utf8.ValidString(name) {
			return fmt.Errorf("line 1: the name of column %d, %.40q, is not UTF-8: convert the file", j+1, name)
		}
		if strings.ContainsRune(name, '\r') && !quoted {
			return errors.New("lines end with only a carriage return: save the file with line feeds")
		}
		if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
			return fmt.Errorf("line 1: %.40q cannot be the name of a column: is the file CSV?", name)
		}
		if seen[name] && name != "" { // columns without a name have no use, so several are fine
			return fmt.Errorf("line 1 has the column %q twice", name)
		}
		seen[name] = true
	}
	r.names = t.names
	t.r = r
	return nil
}

func (r csvRecords) next() (record []string, line int, err error) {
	r.bounded.Next()
	if record, err = r.Read(); errors.Is(err, io.EOF) {
		return nil, 0, err
	} else if err != nil {
		return nil, 0, explain(err)
	}
	line, _ = r.FieldPos(0)
	switch {
	case len(record) != len(r.names):
		return nil, 0, fmt.Errorf("line %d has %d fields, and the header %d", line, len(record), len(r.names))
	case slices.Equal(record, r.names):
		return nil, 0, fmt.Errorf("line %d repeats the header: remove it", line)
	}
	return record, line, nil
}

func (csvRecords) bare(int) bool { return false }

// explain adds the position to a reading error.
func explain(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		line := parse.Line
		if errors.Is(parse.Err, csv.ErrQuote) { // the quote is open since some line of the record
			line = parse.StartLine
		}
		return fmt.Errorf("line %d: %w", line, parse.Err)
	}
	return Damaged(err)
}

func (t *textTable) Header() []string { return t.names }

func (t *textTable) Nested() []string { return nil }

func (t *textTable) Progress() (done, total int64) { return t.bytes.n, t.size }

func (t *textTable) Line(number int) int { return t.lines[number-t.batch.First] }

func (t *textTable) Unit() string { return "line" }

func (t *textTable) Next(columns []int) (*Batch, error) {
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
		record, line, err := t.r.next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		t.lines = append(t.lines, line)
		for k, j := range columns {
			c, text := &b.Columns[k], strings.TrimSpace(record[j])
			if t.holds[k] != numbers {
				if t.holds[k] == mixed {
					text = idText(text)
				}
				c.Text = append(c.Text, text)
				continue
			}
			v, err := ParseNumber(text)
			if (err != nil || IsCode(text)) && slices.Contains(t.ids, t.names[j]) {
				t.holds[k] = mixed
				for _, v := range c.Number {
					c.Text = append(c.Text, numberText(v))
				}
				c.Text = append(c.Text, text)
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("line %d: column %s: %w, but earlier values in the column are",
					line, t.names[j], err)
			}
			if IsCode(text) {
				why := "begins with 0"
				if isLong(text) {
					why = "is beyond 2^53"
				}
				return nil, fmt.Errorf("line %d: column %s: %s %s, and earlier values in the column are "+
					"numbers: begin ids with a letter", line, t.names[j], text, why)
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
		if t.holds[k] < texts {
			c.Text = nil
		}
		c.Bare = t.r.bare(columns[k])
	}
	return b, nil
}

// idText returns an id of a mixed column as the earlier numbers are written: 1.0 as 1.
func idText(text string) string {
	if v, err := ParseNumber(text); err == nil && !IsCode(text) {
		return numberText(v)
	}
	return text
}

func numberText(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return FormatNumber(v)
}

// IsCode reports whether a text is a code rather than a number: 007, which differs from 7, or an integer beyond 2^53,
// which a float64 would round.
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

// infer determines the type of a text column and parses its numbers. Missing values count as numbers, but do not
// decide.
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
