package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Magic begins every Parquet file.
const Magic = "PAR1"

// parquetTable reads the columns of a Parquet file, page by page. It leaves out nested and repeated columns.
type parquetTable struct {
	file    *parquet.File
	names   []string
	nested  []string
	leaf    []int // column number in the file, by name
	types   []parquet.Type
	readers []*parquetColumn
	read    int64
	texts   bool
	batch   Batch
}

func newParquet(r io.ReaderAt, size int64, o Options) (t Table, err error) {
	defer Catch(&err)
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, Damaged(err)
	}
	// The library has no decoder for LZ4 and LZO. Its decoder for LZ4_RAW fails on some files, and takes memory without
	// end on damaged ones.
	for _, group := range f.Metadata().RowGroups {
		for _, c := range group.Columns {
			switch codec := c.MetaData.Codec; codec {
			case format.Lz4, format.Lz4Raw, format.LZO:
				return nil, fmt.Errorf("the compression %v is not read: write the file with zstd or snappy", codec)
			}
		}
	}
	p := &parquetTable{file: f, texts: o.Texts}
	seen := map[string]bool{}
	for _, path := range f.Schema().Columns() {
		leaf, ok := f.Schema().Lookup(path...)
		if len(path) == 1 && (!ok || seen[path[0]] && path[0] != "") { // Lookup finds the last for both, or a group
			return nil, fmt.Errorf("the file contains the column %q twice", path[0])
		}
		if ok && len(path) == 1 && leaf.MaxRepetitionLevel == 0 {
			seen[path[0]] = true
			p.names = append(p.names, path[0])
			p.leaf, p.types = append(p.leaf, leaf.ColumnIndex), append(p.types, leaf.Node.Type())
		} else {
			p.nested = append(p.nested, strings.Join(path, "."))
		}
	}
	return p, nil
}

// Catch turns a panic of the Parquet reader, which a damaged file can cause, into an error.
func Catch(err *error) {
	if v := recover(); v != nil {
		*err = Damaged(fmt.Errorf("%v", v))
	}
}

func (p *parquetTable) Header() []string { return p.names }

func (p *parquetTable) Nested() []string { return p.nested }

func (p *parquetTable) Progress() (done, total int64) { return p.read, p.file.NumRows() }

func (p *parquetTable) Line(number int) int { return number + 1 }

func (p *parquetTable) Unit() string { return "row" }

func (p *parquetTable) Next(columns []int) (b *Batch, err error) {
	defer Catch(&err)
	b = &p.batch
	if p.readers == nil {
		b.Columns = make([]Column, len(columns))
		for _, j := range columns {
			p.readers = append(p.readers, newColumn(p.file, p.leaf[j], p.types[j], p.texts))
		}
	}
	b.First, b.N = int(p.read), int(min(BatchRows, p.file.NumRows()-p.read))
	if b.N == 0 {
		return nil, io.EOF
	}
	for k, r := range p.readers {
		c := &b.Columns[k]
		c.Number, c.Text = c.Number[:0], c.Text[:0]
		if err := r.read(c, b.N); err != nil {
			if !errors.Is(err, errBeyond) {
				err = Damaged(err)
			}
			return nil, fmt.Errorf("column %s: %w", p.names[columns[k]], err)
		}
		if len(c.Number) == b.N {
			c.Text = nil
		}
		c.Bare = r.bare
	}
	p.read += int64(b.N)
	return b, nil
}

var errBeyond = errors.New("is beyond 2^53: write the column as text")

// parquetColumn reads a column through the row groups of a file.
type parquetColumn struct {
	groups []parquet.RowGroup
	index  int

	textOf   func(parquet.Value) string // nil for numeric columns
	bare     bool                       // see Column
	numberOf func(parquet.Value) (float64, error)

	pages  parquet.Pages
	page   parquet.Page
	number []float64 // the rest of the page
	text   []string
	values []parquet.Value
}

// read appends n values to c.
func (r *parquetColumn) read(c *Column, n int) error {
	for n > 0 {
		if len(r.number) == 0 && len(r.text) == 0 {
			if err := r.turn(); err != nil {
				return err
			}
			continue
		}
		k := min(n, len(r.number)+len(r.text))
		if r.text != nil {
			c.Text = append(c.Text, r.text[:k]...)
			r.text = r.text[k:]
		} else {
			c.Number = append(c.Number, r.number[:k]...)
			r.number = r.number[k:]
		}
		n -= k
	}
	return nil
}

// turn decodes the next page.
func (r *parquetColumn) turn() error {
	if r.page != nil {
		parquet.Release(r.page)
		r.page = nil
	}
	if r.pages == nil {
		if len(r.groups) == 0 {
			return io.ErrUnexpectedEOF
		}
		r.pages = r.groups[0].ColumnChunks()[r.index].Pages()
		r.groups = r.groups[1:]
	}
	page, err := r.pages.ReadPage()
	if errors.Is(err, io.EOF) {
		err = r.pages.Close()
		r.pages = nil
		return err
	} else if err != nil {
		return err
	}
	r.page = page
	r.number, r.text = nil, nil
	if page.NumNulls() == 0 && page.Dictionary() == nil && page.Type().Kind() == parquet.Double && r.textOf == nil {
		data := page.Data()
		r.number = data.Double()
		return nil
	}
	return r.decode()
}

// decode converts the values of the page one by one.
func (r *parquetColumn) decode() error {
	n := int(r.page.NumValues())
	if cap(r.values) < n {
		r.values = make([]parquet.Value, n)
	}
	values := r.values[:n]
	if k, err := r.page.Values().ReadValues(values); k < n {
		return errors.Join(io.ErrUnexpectedEOF, err)
	}
	for _, v := range values {
		switch {
		case r.textOf != nil && v.IsNull():
			r.text = append(r.text, "")
		case r.textOf != nil:
			r.text = append(r.text, r.textOf(v))
		case v.IsNull():
			r.number = append(r.number, math.NaN())
		default:
			n, err := r.numberOf(v)
			if err != nil {
				return err
			}
			r.number = append(r.number, n)
		}
	}
	return nil
}

// newColumn returns a column's reader. Timestamps and dates become RFC 3339 text, in UTC if they carry no time zone,
// and decimals become numbers. Integers become text if some are beyond 2^53.
func newColumn(f *parquet.File, index int, of parquet.Type, texts bool) *parquetColumn {
	r := &parquetColumn{groups: f.RowGroups(), index: index}
	logical, unsigned := logicalType(f, index, of)
	whole := integers{unsigned}
	isInteger := of.Kind() == parquet.Int64 || of.Kind() == parquet.Int32
	if isInteger && r.logical(logical, whole.value) || !isInteger && r.logicalBytes(logical, texts) {
		return r
	}
	switch kind := of.Kind(); {
	case kind == parquet.Boolean && texts:
		r.bare, r.textOf = true, func(v parquet.Value) string { return strconv.FormatBool(v.Boolean()) }
	case kind == parquet.Boolean:
		r.numberOf = func(v parquet.Value) (float64, error) {
			if v.Boolean() {
				return 1, nil
			}
			return 0, nil
		}
	case kind == parquet.Int64 && (texts || r.reaches(whole.beyond)): // ids, as in CSV
		r.bare, r.textOf = true, whole.text
	case isInteger:
		r.numberOf = func(v parquet.Value) (float64, error) {
			if whole.beyond(v) {
				return 0, fmt.Errorf("%s %w", whole.text(v), errBeyond)
			}
			return float64(whole.value(v)), nil
		}
	case kind == parquet.Int96: // Spark's format: the nanoseconds of a day, and its Julian day
		r.textOf = func(v parquet.Value) string {
			b := v.Int96()
			const epoch = 2440588
			return stamp(time.Unix((int64(b[2])-epoch)*86400, int64(b[1])<<32|int64(b[0])))
		}
	case kind == parquet.Float:
		r.numberOf = func(v parquet.Value) (float64, error) { return float64(v.Float()), nil }
	case kind == parquet.Double:
		r.numberOf = func(v parquet.Value) (float64, error) { return v.Double(), nil }
	default:
		r.textOf = func(v parquet.Value) string { return string(v.ByteArray()) }
	}
	return r
}

// logicalType returns a column's logical type, or nil, and whether its integers are unsigned.
func logicalType(f *parquet.File, index int, of parquet.Type) (logical any, unsigned bool) {
	l := of.LogicalType()
	if l == nil && of.Kind() == parquet.FixedLenByteArray { // the library lacks a type for halves
		l = &leaves(f)[index].LogicalType
	}
	if l == nil {
		return nil, false
	}
	i, ok := l.Value.(*format.IntType)
	return l.Value, ok && !i.IsSigned
}

// integers reads the values of a column of integers.
type integers struct{ unsigned bool }

func (n integers) value(v parquet.Value) int64 {
	switch {
	case v.Kind() == parquet.Int32 && n.unsigned:
		return int64(uint32(v.Int32()))
	case v.Kind() == parquet.Int32:
		return int64(v.Int32())
	}
	return v.Int64()
}

func (n integers) text(v parquet.Value) string {
	if n.unsigned {
		return strconv.FormatUint(uint64(n.value(v)), 10)
	}
	return strconv.FormatInt(n.value(v), 10)
}

// beyond reports whether a value is too large for a float64 to tell it from its neighbours.
func (n integers) beyond(v parquet.Value) bool {
	i := n.value(v)
	return i > 1<<53 || i < -1<<53 || n.unsigned && i < 0
}

// leaves returns the schema's elements that are columns.
func leaves(f *parquet.File) []format.SchemaElement {
	return slices.DeleteFunc(slices.Clone(f.Metadata().Schema), func(e format.SchemaElement) bool { return !e.Type.Valid })
}

// reaches reports whether the file says that the smallest or the largest value of some row group is beyond.
func (r *parquetColumn) reaches(beyond func(parquet.Value) bool) bool {
	for _, g := range r.groups {
		if c, ok := g.ColumnChunks()[r.index].(*parquet.FileColumnChunk); ok {
			if low, high, ok := c.Bounds(); ok && (beyond(low) || beyond(high)) {
				return true
			}
		}
	}
	return false
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// logical handles integers that stand for a time or a decimal, and reports whether they do.
func (r *parquetColumn) logical(of any, integer func(parquet.Value) int64) bool {
	switch l := of.(type) {
	case *format.TimestampType:
		unit := int64(l.Unit.Value.Duration())
		perSecond := int64(time.Second) / unit
		r.textOf = func(v parquet.Value) string {
			return stamp(time.Unix(integer(v)/perSecond, integer(v)%perSecond*unit))
		}
	case *format.DateType:
		r.textOf = func(v parquet.Value) string { return stamp(time.Unix(integer(v)*86400, 0)) }
	case *format.DecimalType:
		if l.Scale == 0 {
			return false
		}
		scale := math.Pow10(int(l.Scale))
		r.numberOf = func(v parquet.Value) (float64, error) { return float64(integer(v)) / scale, nil }
	default:
		return false
	}
	return true
}

// logicalBytes handles bytes that stand for a decimal, a half or a UUID, and reports whether they do.
func (r *parquetColumn) logicalBytes(of any, texts bool) bool {
	switch l := of.(type) {
	case *format.DecimalType: // an integer in two's complement, its high byte first
		integer := func(v parquet.Value) *big.Int {
			b := v.ByteArray()
			i := new(big.Int).SetBytes(b)
			if len(b) > 0 && b[0] >= 1<<7 {
				i.Sub(i, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
			return i
		}
		if l.Scale == 0 && texts { // ids, as in CSV
			r.bare, r.textOf = true, func(v parquet.Value) string { return integer(v).String() }
			return true
		}
		r.numberOf = func(v parquet.Value) (float64, error) {
			i := integer(v)
			if l.Scale == 0 && i.CmpAbs(big.NewInt(1<<53)) > 0 {
				return 0, fmt.Errorf("%d %w", i, errBeyond)
			}
			return strconv.ParseFloat(fmt.Sprintf("%de-%d", i, l.Scale), 64)
		}
	case *format.Float16Type: // 1 bit of sign, 5 of exponent, 10 of fraction
		r.numberOf = func(v parquet.Value) (float64, error) {
			b := binary.LittleEndian.Uint16(v.ByteArray())
			sign, exponent, fraction := 1-2*float64(b>>15), int(b>>10&31), float64(b&1023)
			switch {
			case exponent == 0:
				return sign * math.Ldexp(fraction, -24), nil
			case exponent < 31:
				return sign * math.Ldexp(1024+fraction, exponent-25), nil
			case fraction == 0:
				return math.Inf(int(sign)), nil
			}
			return math.NaN(), nil
		}
	case *format.UUIDType:
		r.textOf = func(v parquet.Value) string {
			b := v.ByteArray()
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
		}
	default:
		return false
	}
	return true
}
