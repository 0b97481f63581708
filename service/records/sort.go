package records

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"vitrine/service/api"
)

// sortMemory bounds the rows in memory while a table is sorted.
var sortMemory = 64 << 20

// sort sorts a table whose decisions have rows apart. It keeps a hash of each decision's id, and rows in bounded memory.
func (l *Log) sort(ctx context.Context) error {
	s := &source{Log: l, ctx: ctx}
	column := l.mapping.Columns.Decision
	switch l.format {
	case "csv", "parquet":
		column = cmp.Or(column, "decision_id")
	case "obp":
		column = "decision_id"
	default:
		return nil
	}
	apart := errors.New("rows of a decision are apart")
	seed, hashes, last := maphash.MakeSeed(), map[uint64]bool{}, ""
	begin := func(header []string) error { l.header = header; return nil }
	err := safely(func() error {
		return s.rows(begin, func(r row) error {
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
	})
	if !errors.Is(err, apart) {
		return err
	}
	// First by decision, which gives its time, and then by time.
	var sorters [2]sorter
	defer sorters[0].close()
	timeColumn := cmp.Or(l.mapping.Columns.Time, map[string]string{"obp": "timestamp"}[l.format], "time")
	n := uint64(0)
	var key, payload []byte
	err = safely(func() error {
		return s.rows(begin, func(r row) error {
			n++
			id := textOf(r.fields[column])
			if id == "" {
				return fmt.Errorf("%s: column %s is empty: it identifies the decision", r.place, column)
			}
			key = binary.BigEndian.AppendUint32(key[:0], uint32(len(id)))
			key = binary.BigEndian.AppendUint64(append(key, id...), n)
			payload = appendRow(payload[:0], r, l.header)
			return sorters[0].add(key, payload)
		})
	})
	if err != nil {
		return err
	}
	var decision, order []byte
	err = sorters[0].each(func(key, payload []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		id, number := key[:len(key)-8], key[len(key)-8:]
		if !bytes.Equal(id, decision) {
			r, err := readRow(payload, l.header)
			if err != nil {
				return err
			}
			at, err := r.fields.time(timeColumn)
			if err != nil {
				return fmt.Errorf("%s: %w", r.place, err)
			}
			decision = append(decision[:0], id...)
			order = append(binary.BigEndian.AppendUint64(order[:0], uint64(at)^1<<63), number...)
		}
		return sorters[1].add(append(slices.Clip(order), number...), payload)
	})
	l.sorted = &sorters[1]
	return err
}

// appendRow appends a row: its place, and for each value the number of its column from 1 on, its kind and its text.
func appendRow(b []byte, r row, header []string) []byte {
	appendText := func(text string) { b = append(binary.AppendUvarint(b, uint64(len(text))), text...) }
	appendText(r.place)
	for j, name := range header {
		if v, ok := r.fields[name]; ok {
			b = append(binary.AppendUvarint(b, uint64(j+1)), byte(v.Kind))
			appendText(textOf(v))
		}
	}
	return b
}

var errTemporary = errors.New("the temporary file has been changed")

// readRow returns an appended row.
func readRow(b []byte, header []string) (r row, err error) {
	next := func() uint64 {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			b, err = nil, errTemporary
			return 0
		}
		b = b[size:]
		return n
	}
	text := func() (t string) {
		n := next()
		if n > uint64(len(b)) {
			b, err = nil, errTemporary
			return ""
		}
		t, b = string(b[:n]), b[n:]
		return t
	}
	r = row{place: text(), fields: fields{}}
	for len(b) > 0 {
		j := next()
		if j == 0 || j > uint64(len(header)) || len(b) == 0 {
			return r, errTemporary
		}
		kind := b[0]
		b = b[1:]
		v := api.Text("", text())
		if kind == byte(api.IsNumber) && err == nil {
			n, invalid := strconv.ParseFloat(v.Text, 64)
			if invalid != nil {
				return r, errTemporary
			}
			v = api.Number("", n)
		}
		r.fields[header[j-1]] = v
	}
	return r, err
}

// sorter sorts records by their keys, which differ, with runs in a temporary file. The zero value is ready for use.
type sorter struct {
	buffer  []byte
	records []record
	runs    []run
	file    *os.File // nil while all records are in memory
	size    int64
}

// record is a place in the buffer: that of the key, of the payload, and of what follows.
type record struct{ key, payload, end int }

type run struct{ from, size int64 }

func (s *sorter) add(key, payload []byte) error {
	if len(s.buffer)+len(key)+len(payload)+len(s.records)*24 > sortMemory && len(s.records) > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	k := len(s.buffer)
	s.buffer = append(append(s.buffer, key...), payload...)
	s.records = append(s.records, record{k, k + len(key), len(s.buffer)})
	return nil
}

// flush writes what is in memory as a run.
func (s *sorter) flush() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "vitrine-import-*"); err != nil {
			return err
		}
	}
	s.order()
	w := bufio.NewWriterSize(s.file, 1<<16)
	n := int64(0)
	var length []byte
	for _, r := range s.records {
		length = binary.AppendUvarint(binary.AppendUvarint(length[:0], uint64(r.payload-r.key)), uint64(r.end-r.payload))
		w.Write(length)
		w.Write(s.buffer[r.key:r.end])
		n += int64(len(length) + r.end - r.key)
	}
	s.runs = append(s.runs, run{s.size, n})
	s.size += n
	s.buffer, s.records = s.buffer[:0], s.records[:0]
	return w.Flush()
}

func (s *sorter) order() {
	slices.SortFunc(s.records, func(a, b record) int {
		return bytes.Compare(s.buffer[a.key:a.payload], s.buffer[b.key:b.payload])
	})
}

// each calls f for the records in order. Its arguments are valid until it returns.
func (s *sorter) each(f func(key, payload []byte) error) error {
	if s.file == nil {
		s.order()
		for _, r := range s.records {
			if err := f(s.buffer[r.key:r.payload], s.buffer[r.payload:r.end]); err != nil {
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
	s.buffer = nil
	var m merge
	for _, r := range s.runs {
		c := &cursor{in: bufio.NewReaderSize(io.NewSectionReader(s.file, r.from, r.size), 1<<15)}
		if err := c.next(); err != nil {
			return err
		}
		m = append(m, c)
	}
	heap.Init(&m)
	for len(m) > 0 {
		c := m[0]
		if err := f(c.key, c.payload); err != nil {
			return err
		}
		switch err := c.next(); {
		case err == io.EOF:
			heap.Pop(&m)
		case err != nil:
			return err
		default:
			heap.Fix(&m, 0)
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

// cursor is a record of a run.
type cursor struct {
	in           *bufio.Reader
	buffer       []byte
	key, payload []byte
}

// next moves to the next record. The error is io.EOF at the end of the run.
func (c *cursor) next() error {
	k, err := binary.ReadUvarint(c.in)
	if err != nil {
		return err
	}
	n, err := binary.ReadUvarint(c.in)
	if err != nil || k+n > math.MaxInt32 {
		return errTemporary
	}
	c.buffer = slices.Grow(c.buffer[:0], int(k+n))[:k+n]
	if _, err := io.ReadFull(c.in, c.buffer); err != nil {
		return errTemporary
	}
	c.key, c.payload = c.buffer[:k], c.buffer[k:]
	return nil
}

// merge is a heap of cursors.
type merge []*cursor

func (m merge) Len() int           { return len(m) }
func (m merge) Less(i, j int) bool { return bytes.Compare(m[i].key, m[j].key) < 0 }
func (m merge) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(x any)        { *m = append(*m, x.(*cursor)) }
func (m *merge) Pop() any {
	last := len(*m) - 1
	c := (*m)[last]
	*m = (*m)[:last]
	return c
}
