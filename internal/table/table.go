// Package table reads tables: CSV and Parquet, plain or compressed with gzip or zstd.
package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"vitrine/internal/decompress"
)

// Table is a file of rows. It is read in batches, and only the columns that are asked for.
type Table interface {
	// Header returns the names of the columns.
	Header() []string
	// Nested returns the names of columns of Parquet that hold lists or groups, which are not part of the table.
	Nested() []string
	// Next reads a batch of the columns with the given numbers, which are the same in each call, and returns io.EOF after
	// the last. The batch is valid until the next call.
	Next(columns []int) (*Batch, error)
	// Line returns the place in the file of a row of the last batch, by its number among the data rows.
	Line(number int) int
	// Unit returns the name of places: "line" or "row".
	Unit() string
	// Progress returns how much of the file was read, and its size, in the same unit.
	Progress() (done, total int64)
}

// Options say how to read a table. The zero value reads CSV with commas and a header.
type Options struct {
	Delimiter string   // of CSV; "" is a comma
	Names     []string // the columns of CSV without a header
	// Texts keeps CSV fields, Parquet booleans and 64-bit integers as text. Otherwise numeric CSV columns are detected.
	Texts bool
}

// BatchRows is the number of rows of a batch.
const BatchRows = 4096

// Batch is a run of consecutive rows.
type Batch struct {
	First   int // the number of the first row, counted from 0
	N       int
	Columns []Column
}

// Column is the part of a column that is in a batch: numbers or text.
type Column struct {
	Number []float64 // NaN for a missing value
	Text   []string  // nil if the column is of numbers
	Bare   bool      // Text holds formatted integers or booleans of a Parquet column
}

// String returns entry i as text.
func (c *Column) String(i int) string {
	if c.Text != nil {
		return c.Text[i]
	}
	return FormatNumber(c.Number[i])
}

// FormatNumber returns the shortest decimal that is v, without an exponent, so that an integer has the digits it is written with.
func FormatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Missing reports whether entry i is empty.
func (c *Column) Missing(i int) bool {
	if c.Text != nil {
		return c.Text[i] == ""
	}
	return math.IsNaN(c.Number[i])
}

// maxWhole is how many bytes of compressed Parquet are read.
var maxWhole int64 = 1 << 30

// Open returns the table in a file, from the file's current offset. The first bytes tell the format. If a Parquet file is itself
// compressed, Open holds it in memory, and it may have 1 GB.
func Open(f *os.File, o Options) (Table, error) {
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("it is a folder: name a file")
	}
	if err != nil {
		return nil, err
	}
	size := info.Size()
	counted := &counter{r: f}
	r := bufio.NewReaderSize(counted, 1<<18)
	plain, coding, err := decompress.Reader(r)
	if err != nil {
		return nil, Damaged(err)
	}
	if coding == decompress.None {
		if head, _ := r.Peek(4); string(head) == Magic {
			return newParquet(f, size, o)
		}
		if strings.HasSuffix(f.Name(), ".parquet") {
			return nil, Damaged(errors.New("it does not begin as a Parquet file does"))
		}
		return newCSV(r, counted, size, o)
	}
	inner := bufio.NewReaderSize(plain, 1<<18)
	head, err := inner.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, Damaged(err)
	}
	if string(head) == Magic {
		// The columns of a Parquet file are found from its end.
		whole, err := io.ReadAll(io.LimitReader(inner, maxWhole+1))
		if err != nil {
			return nil, Damaged(err)
		}
		if int64(len(whole)) > maxWhole {
			return nil, fmt.Errorf("the compressed Parquet file has more than %d bytes: decompress it first", maxWhole)
		}
		return newParquet(bytes.NewReader(whole), int64(len(whole)), o)
	}
	return newCSV(inner, counted, size, o)
}

// Damaged is the error of a file that ends early or was changed.
func Damaged(err error) error {
	return fmt.Errorf("the file is truncated or damaged: %w", err)
}

// counter counts the bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ParseNumber returns the number in a field of text, NaN for a missing one.
func ParseNumber(text string) (float64, error) {
	switch text {
	case "", "NA", "NaN", "nan", "NULL", "null":
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsAny(text, "_xXpP") {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return v, nil
}
