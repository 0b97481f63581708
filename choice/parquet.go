package choice

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
)

// parquetMagic begins every Parquet file.
const parquetMagic = "PAR1"

// parquetTable reads the columns of a Parquet file, page by page. Nested and repeated columns are
// not part of the table.
type parquetTable struct {
	file    *parquet.File
	names   []string
	leaf    []int // the column of the file, by name
	readers []*parquetColumn
	read    int64
	batch   batch
}

func newParquet(r io.ReaderAt, size int64) (t table, err error) {
	defer catch(&err)
	f, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, damaged(err)
	}
	p := &parquetTable{file: f}
	for _, path := range f.Schema().Columns() {
		leaf, ok := f.Schema().Lookup(path...)
		if ok && len(path) == 1 && leaf.MaxRepetitionLevel == 0 {
			p.names = append(p.names, path[0])
			p.leaf = append(p.leaf, leaf.ColumnIndex)
		}
	}
	return p, nil
}

// catch turns a panic of the Parquet reader, which a damaged file can cause, into an error.
func catch(err *error) {
	if v := recover(); v != nil {
		*err = damaged(fmt.Errorf("%v", v))
	}
}

func (p *parquetTable) header() []string { return p.names }

func (p *parquetTable) progress() (done, total int64) { return p.read, p.file.NumRows() }

func (p *parquetTable) line(number int) int { return number + 1 }

func (p *parquetTable) unit() string { return "row" }

func (p *parquetTable) next(columns []int) (b *batch, err error) {
	defer catch(&err)
	b = &p.batch
	if p.readers == nil {
		b.columns = make([]column, len(columns))
		for _, j := range columns {
			p.readers = append(p.readers, &parquetColumn{groups: p.file.RowGroups(), index: p.leaf[j]})
		}
	}
	b.first, b.n = int(p.read), int(min(batchRows, p.file.NumRows()-p.read))
	if b.n == 0 {
		return nil, io.EOF
	}
	for k, r := range p.readers {
		c := &b.columns[k]
		c.number, c.text = c.number[:0], c.text[:0]
		if err := r.read(c, b.n); err != nil {
			return nil, fmt.Errorf("column %s: %w", p.names[columns[k]], damaged(err))
		}
		if len(c.number) == b.n {
			c.text = nil
		}
	}
	p.read += int64(b.n)
	return b, nil
}

// parquetColumn reads a column through the row groups of a file.
type parquetColumn struct {
	groups []parquet.RowGroup
	index  int

	pages  parquet.Pages
	page   parquet.Page
	number []float64 // what is left of the page
	text   []string
	values []parquet.Value
}

// read appends n values to c.
func (r *parquetColumn) read(c *column, n int) error {
	for n > 0 {
		if len(r.number) == 0 && len(r.text) == 0 {
			if err := r.turn(); err != nil {
				return err
			}
			continue
		}
		k := min(n, len(r.number)+len(r.text))
		if r.text != nil {
			c.text = append(c.text, r.text[:k]...)
			r.text = r.text[k:]
		} else {
			c.number = append(c.number, r.number[:k]...)
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
	if page.NumNulls() == 0 && page.Dictionary() == nil && page.Type().Kind() == parquet.Double {
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
		switch v.Kind() {
		case parquet.Boolean:
			r.number = append(r.number, indicator(v.Boolean()))
		case parquet.Int32:
			r.number = append(r.number, float64(v.Int32()))
		case parquet.Int64:
			if i := v.Int64(); i > 1<<53 || i < -1<<53 {
				return fmt.Errorf("%d is beyond 2^53: write the column as text", i)
			}
			r.number = append(r.number, float64(v.Int64()))
		case parquet.Float:
			r.number = append(r.number, float64(v.Float()))
		case parquet.Double:
			r.number = append(r.number, v.Double())
		case parquet.ByteArray, parquet.FixedLenByteArray:
			r.text = append(r.text, string(v.ByteArray()))
		default: // null
			if kind := r.page.Type().Kind(); kind == parquet.ByteArray || kind == parquet.FixedLenByteArray {
				r.text = append(r.text, "")
			} else {
				r.number = append(r.number, math.NaN())
			}
		}
	}
	return nil
}
