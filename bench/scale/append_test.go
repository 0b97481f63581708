package main

import (
	"fmt"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// Each caller's entries are in its stream, and no stream is empty.
func TestAppendFor(t *testing.T) {
	var stores []*natslog.Store
	url := natstest.URL(t)
	for i := range 2 {
		s := fatal.Or(natslog.Open(t.Context(), natslog.Options{URL: url, Stream: fmt.Sprint("stream", i)}))(t)
		t.Cleanup(func() { s.Close() })
		stores = append(stores, s)
	}
	a := fatal.Or(appendFor(t.Context(), stores, [][]byte{[]byte("a decision"), []byte("an outcome")}, 8,
		100*time.Millisecond))(t)
	total := uint64(0)
	for _, s := range stores {
		x, err := s.Extent(t.Context())
		if err != nil || x.Last == 0 {
			t.Errorf("%+v, %v: a stream without entries", x, err)
		}
		total += x.Last
	}
	if uint64(a.entries) != total || a.frames < 2 || a.frames > a.entries || a.p50 > a.p99 || a.p99 > a.took {
		t.Errorf("%s of %d entries", fmt.Sprintf("%+v", a), total)
	}
	stores[1].Close()
	expect.Refused(appendFor(t.Context(), stores, [][]byte{[]byte("a decision")}, 2, 10*time.Millisecond))(t,
		"appends to a log that is closed fail unseen")
}
