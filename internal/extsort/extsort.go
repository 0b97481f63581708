// Package extsort sorts more records than fit into memory.
package extsort

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"slices"
)

// ErrChanged is returned if the temporary file is not as it was written.
var ErrChanged = errors.New("the temporary file has been changed")

// Sorter sorts records by their bytes. Records that do not fit into memory wait in a temporary file, as sorted runs.
type Sorter struct {
	Memory int // bytes of records in memory, at most; 0 sends each record to the file

	records [][]byte
	size    int      // of the records in memory
	file    *os.File // nil while all records are in memory
	runs    []int64  // where runs end
}

// Add adds a record, which must not change any more.
func (s *Sorter) Add(record []byte) error {
	s.records = append(s.records, record)
	if s.size += len(record) + 24; s.size < s.Memory {
		return nil
	}
	return s.flush()
}

// flush writes the records in memory as a run.
func (s *Sorter) flush() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "vitrine-sort-*"); err != nil {
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

// Each calls f for the records in order. Its argument is valid until it returns.
func (s *Sorter) Each(f func(record []byte) error) error {
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

// Close removes the temporary file.
func (s *Sorter) Close() error {
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
		return ErrChanged
	}
	r.record = slices.Grow(r.record[:0], int(n))[:n]
	if _, err := io.ReadFull(r.in, r.record); err != nil {
		return ErrChanged
	}
	return nil
}
