package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

// An append takes as many entries as one frame of the log holds: all of them
// where they fill it to the last byte, and not one more.
func TestAnAppendIsAsLargeAsAFrame(t *testing.T) {
	const room = eventlog.MaxFrame - eventlog.EmptyFrame
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var entries [][]byte
		left := room
		for left > 0 && len(entries) < 20 {
			e := make([]byte, rng.IntN(left))
			entries, left = append(entries, e), left-eventlog.EntrySize(e)
		}
		for len(entries) > 0 && left < 0 {
			left += eventlog.EntrySize(entries[len(entries)-1])
			entries = entries[:len(entries)-1]
		}
		for left > 0 { // fill the frame: a length takes from 1 to 3 bytes, so that a pair fits where one entry may not
			e := make([]byte, left-min(left, 1))
			for eventlog.EntrySize(e) > left {
				e = e[1:]
			}
			entries, left = append(entries, e), left-eventlog.EntrySize(e)
		}
		if size, err := eventlog.EntriesSize(entries...); err != nil || size != room {
			t.Fatalf("the test's entries take %d bytes (%v), want %d", size, err, room)
		}
		if got := engine.Fitting(entries); got != len(entries) {
			t.Fatalf("%d of %d entries that fill a frame are appended together", got, len(entries))
		}
		more := append(entries, nil)
		expect.Refused(eventlog.EntriesSize(more...))(fatal.T(t), "a frame takes more than it holds")
		if got := engine.Fitting(more); got != len(entries) {
			t.Fatalf("%d entries are appended together, a frame holds %d", got, len(entries))
		}
	}
	expect.Equal(t, engine.Fitting([][]byte{make([]byte, eventlog.MaxBatch), nil}), 1,
		"entries are appended if the first one is too large: the writer would not end")
}

// Memory filled to the last byte keeps its contents: only the excess is forgotten, or expires early.
func TestMemoryCanBeFilled(t *testing.T) {
	const decisions = 80
	id := func(i int) string { return fmt.Sprintf("d%04d", i) }
	for _, closed := range []bool{true, false} {
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
		place := func(memory int) {
			t.Helper()
			put(t, e, "home", fmt.Sprintf(
				`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{},"memory_bytes":%d}`, memory))
		}
		decide := func(i int) {
			t.Helper()
			decide(t, e, "home", stock(id(i), 1), 0)
			if closed {
				fatal.If(t, e.Outcome(t.Context(), "home", id(i), "", 1))
			}
			wait(t, e)
		}
		status := func(i int) string {
			d, err := e.Decision(t.Context(), "home", id(i))
			if err != nil {
				return "forgotten"
			}
			return d.Status
		}
		place(10_000_000)
		decide(0)
		s := fatal.Or(e.Stats("home"))(t)
		each := s.Memory
		for i := 1; i < decisions; i++ {
			decide(i)
		}
		if s, _ = e.Stats("home"); s.Memory != decisions*each {
			t.Fatalf("%d decisions take %d bytes, the first took %d", decisions, s.Memory, each)
		}
		before := status(0)
		if closed { // an open decision is larger than a closed one, so that a decision needs room to become closed
			place(decisions * each)
			expect.Equal(t, status(0), before, "the memory is filled by closed decisions, and the oldest is")
			place(decisions*each - 1)
			if got := status(0); got != "forgotten" || status(1) == "forgotten" {
				t.Errorf("the memory is exceeded by a byte, and the oldest is %s and the next %s, want only the "+
					"first forgotten", got, status(1))
			}
			continue
		}
		place((decisions + 1) * each)
		decide(decisions)
		expect.Equal(t, status(0), before, "the memory is filled by open decisions, and the oldest is")
		decide(decisions + 1)
		if got := status(0); got == before || status(1) != before {
			t.Errorf("the memory is exceeded, and the oldest is %s and the next %s, want only the next %s", got,
				status(1), before)
		}
	}
}
