package importer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"

	"vitrine/internal/extsort"
	codec "vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/importer/cell"
)

// sortMemory bounds the rows in memory while a table is sorted.
var sortMemory = 64 << 20

// keySize is the size of the key that begins a record of a sorted table: the time of the decision, the number of its
// first row, and the number of the row.
const keySize = 24

// sort sorts a table if the rows of some decision are apart. It keeps the id of each decision in memory, and rows on
// disk.
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
		id := cell.Text(r.fields[column])
		if id == last || id == "" {
			l.several = l.several || id != ""
			return nil
		}
		last = id
		h := maphash.String(seed, id)
		if hashes[h] {
			l.several = true
			return apart
		}
		hashes[h] = true
		return nil
	})
	if !errors.Is(err, apart) {
		return err
	}
	sorted := &extsort.Sorter{Memory: sortMemory}
	order := map[string][]byte{} // of decisions: how their keys begin
	n, scratch := uint64(0), []byte(nil)
	err = s.rows(l.file, begin, func(r row) error {
		n++
		id := cell.Text(r.fields[column])
		if id == "" {
			return fmt.Errorf("%s: column %s is empty: it identifies the decision", r.place, column)
		}
		if order[id] == nil {
			at, err := cell.Time(timeColumn, r.fields[timeColumn])
			if err != nil {
				return fmt.Errorf("%s: %w", r.place, err)
			}
			order[id] = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(at)^1<<63), n)
		}
		w := codec.Writer(binary.BigEndian.AppendUint64(append(scratch[:0], order[id]...), n))
		r.pass(&w, l.header)
		scratch = w.Rest()
		return sorted.Add(bytes.Clone(scratch))
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

func decodeRow(b []byte, header []string) (row, error) {
	r, f := row{fields: make(fields, len(header))}, codec.Reader(b)
	r.pass(&f, header)
	if f.Close() != nil {
		return row{}, extsort.ErrChanged
	}
	return r, nil
}
