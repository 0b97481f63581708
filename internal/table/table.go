// Package table reads tables: CSV, Parquet and JSON Lines, plain or compressed with gzip or zstd.
package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/decompress"
	"vitrine/internal/hint"
)

// Table is a file of rows. It is read in batches, restricted to the columns that the caller asks for.
type Table interface {
	// Header returns the names of the columns.
	Header() []string
	// Nested returns the paths of the Parquet leaves inside lists and groups, such as "tags.list.element". They are not
	// part of the table.
	Nested() []string
	// Next reads a batch of the columns with the given numbers, which must be the same in each call. After the last
	// batch it returns io.EOF. The batch is valid until the next call.
	Next(columns []int) (*Batch, error)
	// Line returns the position in the file of a row of the last batch, given its number among the data rows.
	Line(number int) int
	// Unit returns the unit of positions: "line" or "row".
	Unit() string
	// Progress returns how much of the file was read, and its size, in the same unit.
	Progress() (done, total int64)
}

// At names the position of a row of t's last batch, given its number among the data rows: "line 3" or "row 3".
func At(t Table, number int) string { return t.Unit() + " " + strconv.Itoa(t.Line(number)) }

// Each calls visit for each row of t with all its columns: row i of b, at the given position.
func Each(t Table, visit func(at string, b *Batch, i int) error) error {
	all := make([]int, len(t.Header()))
	for j := range all {
		all[j] = j
	}
	for {
		b, err := t.Next(all)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range b.N {
			if err := visit(At(t, b.First+i), b, i); err != nil {
				return err
			}
		}
	}
}

// NoColumn returns the error about a name that is not among a table's columns. The error lists the leaves of a nested
// column, a column with a similar name, or all columns.
func NoColumn(name string, columns, nested []string) error {
	inside := slices.DeleteFunc(slices.Clone(nested), func(leaf string) bool { return rootOf(leaf) != name })
	if len(inside) > 0 {
		return fmt.Errorf("column %q is nested, and a row needs one value: write %s as columns of their own",
			name, listed(inside))
	}
	lowered := make([]string, len(columns))
	for i, n := range columns {
		lowered[i] = strings.ToLower(n)
	}
	if best := hint.Nearest(strings.ToLower(name), lowered, 1+(len(name)+1)/3); best != "" {
		return fmt.Errorf("there is no column %q: did you mean %q?", name, columns[slices.Index(lowered, best)])
	}
	return fmt.Errorf("there is no column %q: the columns are %s", name, listed(columns))
}

// rootOf returns the column of a nested leaf.
func rootOf(leaf string) string {
	root, _, _ := strings.Cut(leaf, ".")
	return root
}

// NestedColumns returns the columns that hold the leaves of [Table.Nested].
func NestedColumns(leaves []string) (names []string) {
	for _, leaf := range leaves {
		if root := rootOf(leaf); !slices.Contains(names, root) {
			names = append(names, root)
		}
	}
	return names
}

// listed joins the first names.
func listed(names []string) string {
	const shown = 20
	if len(names) > shown {
		return strings.Join(names[:shown], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// Options control how a table is read. The zero value reads CSV with commas and a header.
type Options struct {
	Delimiter string   // of CSV; "" means a comma
	Names     []string // columns of CSV without a header
	IDs       []string // columns of CSV and JSON Lines whose later batches may be text although the first holds numbers
	// Texts keeps the fields of CSV and JSON Lines, and Parquet's booleans and 64-bit integers, as text. Otherwise
	// numeric columns are detected.
	Texts bool
}

// BatchRows is the number of rows of a batch.
const BatchRows = 4096

// Batch is a run of consecutive rows.
type Batch struct {
	First   int // number of the first row, counted from 0
	N       int
	Columns []Column
}

// Column is the part of a column in a batch, as numbers or text.
type Column struct {
	Number []float64 // NaN for a missing value
	Text   []string  // nil for a numeric column
	// Bare means that a Parquet or JSON Lines file writes Text as numbers, booleans, lists or objects rather than
	// strings.
	Bare bool
}

// String returns entry i as text.
func (c *Column) String(i int) string {
	if c.Text != nil {
		return c.Text[i]
	}
	return FormatNumber(c.Number[i])
}

// FormatNumber returns the shortest decimal that equals v, without an exponent, so that an integer keeps its digits.
func FormatNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Missing reports whether entry i is empty.
func (c *Column) Missing(i int) bool {
	if c.Text != nil {
		return c.Text[i] == ""
	}
	return math.IsNaN(c.Number[i])
}

// Blank reports whether a numeric column is empty in the whole batch.
func (c *Column) Blank() bool {
	return c.Text == nil && !slices.ContainsFunc(c.Number, func(v float64) bool { return !math.IsNaN(v) })
}

// maxWhole limits compressed Parquet, in bytes.
var maxWhole int64 = 1 << 30

// Open returns the table in a file, from the file's current offset. The first bytes determine the format. If a Parquet
// file is itself compressed, Open holds it in memory and accepts up to 1 GB.
func Open(f *os.File, o Options) (Table, error) {
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = errors.New("it is a folder: name a file")
	}
	if err != nil {
		return nil, err
	}
	size := info.Size()
	start, _ := f.Seek(0, io.SeekCurrent) // not defined for a pipe
	counted := &counter{r: f}
	r, coding, err := decompressed(counted)
	if err != nil {
		return nil, err
	}
	head, err := r.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, Damaged(err)
	}
	switch {
	case string(head) == Magic && coding == decompress.None:
		return newParquet(f, size, o)
	case string(head) == Magic:
		// A Parquet file lists its columns at its end.
		whole, err := io.ReadAll(io.LimitReader(r, maxWhole+1))
		if err != nil {
			return nil, Damaged(err)
		}
		if int64(len(whole)) > maxWhole {
			return nil, fmt.Errorf("the compressed Parquet file has more than %d bytes: decompress it first", maxWhole)
		}
		return newParquet(bytes.NewReader(whole), int64(len(whole)), o)
	case string(head) == "PK\x03\x04":
		return nil, errors.New("it is a ZIP archive, as a spreadsheet's workbook is: unpack it, or save the table as CSV")
	case bytes.HasPrefix(head, []byte("BZh")) && '1' <= head[len(head)-1] && head[len(head)-1] <= '9',
		string(head) == "\xfd7zX":
		return nil, errors.New("it is compressed with bzip2 or xz: decompress it, or use gzip or zstd")
	case strings.HasSuffix(f.Name(), ".parquet"):
		return nil, Damaged(errors.New("it does not begin as a Parquet file does"))
	}
	SkipMark(r)
	if list, _ := r.Peek(1 << 10); bytes.HasPrefix(bytes.Join(bytes.Fields(list), nil), []byte("[{")) {
		return nil, errors.New("the file is one list of JSON: write an object a line, without [ and ] around them")
	}
	t := &textTable{bytes: counted, size: size, texts: o.Texts, ids: o.IDs}
	if !IsObject(r) {
		return t, t.openCSV(r, o)
	}
	// A first pass collects the names of all members.
	names, err := membersOf(r)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return nil, fmt.Errorf("JSON Lines are read twice: save them to a file: %w", err)
	}
	t.bytes = &counter{r: f}
	if r, _, err = decompressed(t.bytes); err != nil {
		return nil, err
	}
	SkipMark(r)
	t.names, t.r = names, newLines(r, names, o.Texts)
	return t, nil
}

// SkipMark skips a byte order mark.
func SkipMark(r *bufio.Reader) {
	if mark, _ := r.Peek(3); string(mark) == "\ufeff" {
		r.Discard(3)
	}
}

func decompressed(r io.Reader) (*bufio.Reader, decompress.Coding, error) {
	plain, coding, err := decompress.Reader(bufio.NewReaderSize(r, 1<<18))
	if err != nil {
		return nil, coding, Damaged(err)
	}
	return bufio.NewReaderSize(plain, 1<<18), coding, nil
}

// Damaged returns the error about a file that ends early or was changed, and ErrLong as it is.
func Damaged(err error) error {
	if errors.Is(err, ErrLong) {
		return err
	}
	return fmt.Errorf("the file is truncated or damaged: %w", err)
}

// ErrLong is the error of a line with more than MaxLine bytes.
var ErrLong = fmt.Errorf("a line is longer than %d bytes: end each record with a line break, close each quote, and leave "+
	"longer values out", MaxLine)

// MaxLine is the maximal number of bytes of a line.
const MaxLine = 64 << 20

// Bounded is a reader of lines. A small file may be a line that fills all memory once it is decompressed.
type Bounded struct {
	r    io.Reader
	left int
}

// NewBounded returns a reader of the first line.
func NewBounded(r io.Reader) *Bounded { return &Bounded{r, MaxLine} }

// Next begins the next line.
func (b *Bounded) Next() { b.left = MaxLine }

// Read returns ErrLong if the present line is too long.
func (b *Bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrLong
	}
	n, err := b.r.Read(p)
	b.left -= n
	return n, err
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ParseNumber returns the number in a text field, or NaN for a missing value.
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
