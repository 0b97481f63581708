package utility

import (
	"slices"
	"sync"
)

// scratch lends slices to concurrent calls and keeps them for reuse.
type scratch struct{ pool sync.Pool }

// get returns a slice of length n with arbitrary entries.
func (s *scratch) get(n int) *[]float64 {
	buf, ok := s.pool.Get().(*[]float64)
	if !ok {
		buf = new([]float64)
	}
	*buf = slices.Grow((*buf)[:0], n)[:n]
	return buf
}

// put takes back a slice that get returned.
func (s *scratch) put(buf *[]float64) { s.pool.Put(buf) }
