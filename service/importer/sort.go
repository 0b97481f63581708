package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"os"
	"slices"

	codec "vitrine/internal/fields"
	"vitrine/service/api"
)

// sortMemory bounds the rows in memory while a table is sorted.
var sortMemory = 64 << 20

// keySize is the size of the key that begins a record of a sorted table: the time of the decision, the number of its first row,
// and the number of the row.
const keySize = 24

// sort sorts a table if the rows of some decision are apart. It keeps the id of each decision in memory, and rows on disk.
func (l *Log) sort(ctx context.Context) error {
	s := &source{Log: l, ctx: ctx}
	column, timeColumn := cmp.Or(l.mapping.Columns.Decision, "decision_id"), cmp.Or(l.mapping.Columns.Time, "time")
	switch l.format {
	case "csv", "parquet":
	case "obp":
		column, timeColumn = "decision_id", "timestamp"
	default:
		return nil
	}
	begin := func(header []string) error { l.header = header; return nil }
	apart := errors.New("rows of a decision are apart")
	seed, hashes, last := maphash.MakeSeed(), map[uint64]bool{}, ""
	err := s.rows(l.file, begin, func(r row) error {
		id := textOf(r.fields[column])
		if id == last || id == "" {
			return nil
		}
		last = id
		h := maphash.String(seed, id)
		if hashes[h] {
			return apart
		}
		hashes[h] = true
		return nil
	})
	if !errors.Is(err, apart) {
		return err
	}
	hashes = nil
	sorted := &sorter{}
	order := map[string][]byte{} // of decisions: how their keys begin
	n, scratch := uint64(0), []byte(nil)
	err = s.rows(l.file, begin, func(r row) error {
		n++
		id := textOf(r.fields[column])
		if id == "" {
			return fmt.Errorf("%s: column %s is empty: it identifies the decision", r.place, column)
		}
		if order[id] == nil {
			at, err := timeOf(timeColumn, r.fields[timeColumn])
			if err != nil {
				return fmt.Errorf("%s: %w", r.place, err)
			}
			order[id] = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(at)^1<<63), n)
		}
		w := codec.Writer(binary.BigEndian.AppendUint64(append(scratch[:0], order[id]...), n))
		r.pass(&w, l.header)
		scratch = w.Rest()
		return sorted.add(bytes.Clone(scratch))
	})
	l.sorted = sorted
	return err
}

// pass passes over the fields of a row.
func (r *row) pass(f *codec.Fields, header []string) {
	f.String(&r.place)
	for _, name := range header {
		v := r.fields[name]
		kind := byte(v.Kind)
		f.Byte(&kind)
		switch v.Kind = api.ValueKind(kind); v.Kind {
		case api.IsNumber:
			f.Float(&v.Number)
		case api.IsText:
			f.String(&v.Text)
		}
		if f.Reads() && v.Kind != api.Missing {
			r.fields[name] = v
		}
	}
}

var errTemporary = errors.New("the temporary file has been changed")

func decodeRow(b []byte, header []string) (row, error) {
	r, f := row{fields: make(fields, len(header))}, codec.Reader(b)
	r.pass(&f, header)
	if f.Close() != nil {
		return row{}, errTemporary
	}
	return r, nil
}

// sorter sorts records by their bytes, with runs in a temporary file. The zero value is ready for use.
type sorter struct {
	records [][]byte
	size    int      // of the records in memory
	file    *os.File // nil while all records are in memory
	runs    []int64  // where runs end
}

func (s *sorter) add(record []byte) error {
	s.records = append(s.records, record)
	if s.size += len(record) + 24; s.size < sortMemory {
		return nil
	}
	return s.flush()
}

// flush writes the records in memory as a run.
func (s *sorter) flush() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "vitrine-import-*"); err != nil {
			return err
		}
	}
	slices.SortFunc(s.records, bytes.Compare)
	w := bufio.NewWriterSize(s.file, 1<<16)
	n := int64(0)
	for _, r := range s.records {
		length := binary.AppendUvarint(nil, uint64(len(r)))
		w.Write(length)
		w.Write(r)
		n += int64(len(length) + len(r))
	}
	if len(s.runs) > 0 {
		n += s.runs[len(s.runs)-1]
	}
	clear(s.records) // which would stay in memory
	s.runs, s.records, s.size = append(s.runs, n), s.records[:0], 0
	return w.Flush()
}

// each calls f for the records in order. Its argument is valid until it returns.
func (s *sorter) each(f func(record []byte) error) error {
	if s.file == nil {
		slices.SortFunc(s.records, bytes.Compare)
		for _, r := range s.records {
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(s.records) > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	var list []*run
	from := int64(0)
	for _, end := range s.runs {
		r := &run{in: bufio.NewReaderSize(io.NewSectionReader(s.file, from, end-from), 1<<15)}
		if err := r.next(); err != nil {
			return err
		}
		list, from = append(list, r), end
	}
	for len(list) > 0 {
		k := 0
		for j, r := range list {
			if bytes.Compare(r.record, list[k].record) < 0 {
				k = j
			}
		}
		if err := f(list[k].record); err != nil {
			return err
		}
		if err := list[k].next(); err == io.EOF {
			list = slices.Delete(list, k, k+1)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// close removes the temporary file.
func (s *sorter) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

// run is a sorted part of the file, and its next record.
type run struct {
	in     *bufio.Reader
	record []byte
}

// next moves to the next record. The error is io.EOF at the end of the run.
func (r *run) next() error {
	n, err := binary.ReadUvarint(r.in)
	if err != nil {
		return err
	}
	if n > math.MaxInt32 {
		return errTemporary
	}
	r.record = slices.Grow(r.record[:0], int(n))[:n]
	if _, err := io.ReadFull(r.in, r.record); err != nil {
		return errTemporary
	}
	return nil
}
