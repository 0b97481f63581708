package choice

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

// table is a file of rows. It is read in batches, and only the columns that are asked for.
type table interface {
	// header returns the names of the columns.
	header() []string
	// next reads a batch of the columns with the given numbers, and returns io.EOF after the last.
	// The batch is valid until the next call.
	next(columns []int) (*batch, error)
	// line returns the place in the file of a row of the last batch, by its number among the data
	// rows, and unit what places are called: "line" or "row".
	line(number int) int
	unit() string
	// progress returns how much of the file was read, and its size, in the same unit.
	progress() (done, total int64)
}

// batchRows is the number of rows of a batch.
const batchRows = 4096

// batch is a run of consecutive rows.
type batch struct {
	first   int // the number of the first row, counted from 0
	n       int
	columns []column
}

// column is the part of a column that is in a batch: numbers or text.
type column struct {
	number []float64 // NaN for a missing value
	text   []string  // nil if the column is of numbers
}

// string returns entry i as text.
func (c *column) string(i int) string {
	if c.text != nil {
		return c.text[i]
	}
	return strconv.FormatFloat(c.number[i], 'f', -1, 64)
}

// missing reports whether entry i has no value.
func (c *column) missing(i int) bool {
	if c.text != nil {
		return c.text[i] == ""
	}
	return math.IsNaN(c.number[i])
}

// openTable returns the table in a file of CSV or Parquet, plain or compressed with gzip or zstd.
// What it is shows in its first bytes.
func openTable(f *os.File, delimiter string) (table, error) {
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
		return nil, damaged(err)
	}
	if coding == decompress.None {
		if head, _ := r.Peek(4); string(head) == parquetMagic {
			return newParquet(f, size)
		}
		if strings.HasSuffix(f.Name(), ".parquet") {
			return nil, damaged(errors.New("it does not begin as a Parquet file does"))
		}
		return newCSV(r, counted, size, delimiter)
	}
	inner := bufio.NewReaderSize(plain, 1<<18)
	head, err := inner.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, damaged(err)
	}
	if string(head) == parquetMagic {
		// The columns of a Parquet file are found from its end.
		whole, err := io.ReadAll(inner)
		if err != nil {
			return nil, damaged(err)
		}
		return newParquet(bytes.NewReader(whole), int64(len(whole)))
	}
	return newCSV(inner, counted, size, delimiter)
}

// damaged is the error of a file that ends early or has been changed.
func damaged(err error) error {
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

// parseNumber returns the number in a field of text, NaN for a missing one.
func parseNumber(text string) (float64, error) {
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
