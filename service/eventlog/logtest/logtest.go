// Package logtest is the battery of contract tests for event logs.
package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
)

// Open opens the log in a directory, creating it if necessary.
type Open func(t testing.TB, dir string) eventlog.Log

// Run checks the contract of an open store.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		test func(*testing.T, eventlog.Log)
	}{
		{"append", testAppend},
		{"any bytes", testAnyBytes},
		{"too large", testTooLarge},
		{"reads what was there", testReadsWhatWasThere},
		{"concurrent", testConcurrent},
		{"cancelled", testCancelled},
		{"caller's memory", testCallersMemory},
		{"extent", testExtent},
		{"truncate", testTruncate},
		{"first since", testFirstSince},
		{"first within", testFirstWithin},
		{"position", testPosition},
		{"entry", testEntry},
		{"entries at once", testEntriesAtOnce},
		{"truncate while reading", testTruncateWhileReading},
		{"follow", testFollow},
		{"closed", testClosed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			defer s.Close()
			c.test(t, s)
		})
	}
}

// RunDurable checks the contract of stores that outlive Close.
func RunDurable(t *testing.T, open Open) {
	t.Run("reopened", func(t *testing.T) {
		dir := t.TempDir()
		for round := range 4 {
			s := open(t, dir)
			Want(t, s, 1, numbered(1, 10*round)...)
			for i := 10*round + 1; i <= 10*round+10; i++ {
				expect.Equal(fatal.T(t), appendAll(t, s, entry(i)), uint64(i), "after opening", round+1,
					"times: entry", i, "has the sequence")
			}
			fatal.If(t, s.Close())
		}
	})
	t.Run("identity", func(t *testing.T) {
		dir := t.TempDir()
		var want, other eventlog.Position
		for round := range 3 {
			s := open(t, dir)
			p := fatal.Or(s.Position(t.Context(), uint64(round)))(t)
			if round > 0 && p != want {
				t.Errorf("opened %d times it is at %+v, and was at %+v", round+1, p, want)
			}
			appendAll(t, s, entry(round+1))
			want = p.After(entry(round + 1))
			fatal.If(t, s.Close())
		}
		s := open(t, t.TempDir())
		defer s.Close()
		other, err := s.Position(t.Context(), 0)
		if err != nil || other.Log == want.Log {
			t.Errorf("another log is called %v, too, %v", other.Log, err)
		}
	})
	t.Run("reopened after truncation", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		for i := 1; i <= 20; i++ {
			appendAll(t, s, entry(i))
		}
		truncate(t, s, 21)
		fatal.If(t, s.Close())
		s = open(t, dir)
		defer s.Close()
		Want(t, s, 21)
		expect.Equal(t, appendAll(t, s, entry(21)), 21, "the entry after 20 removed ones has the sequence")
	})
}

// Read returns the entries from a sequence on and the error at their end.
func Read(s eventlog.Log, from uint64) (entries [][]byte, err error) {
	for e, err := range s.Entries(context.Background(), from) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, bytes.Clone(e))
	}
	return entries, nil
}

// Want checks that the log from a sequence on consists of exactly these entries.
func Want(t testing.TB, s eventlog.Log, from uint64, want ...[]byte) {
	t.Helper()
	have := fatal.Or(Read(s, from))(t)
	if len(have) != len(want) {
		t.Fatalf("%d entries from %d on, want %d", len(have), from, len(want))
	}
	for i := range want {
		if !bytes.Equal(have[i], want[i]) {
			t.Fatalf("entry %d is %.40q, want %.40q", from+uint64(i), have[i], want[i])
		}
	}
}

func entry(i int) []byte { return fmt.Appendf(nil, "entry %d", i) }

func numbered(first, last int) (entries [][]byte) {
	for i := first; i <= last; i++ {
		entries = append(entries, entry(i))
	}
	return entries
}

func appendAll(t testing.TB, s eventlog.Log, entries ...[]byte) uint64 {
	t.Helper()
	return fatal.Or(s.Append(t.Context(), entries...))(t)
}

func truncate(t testing.TB, s eventlog.Log, sequence uint64) {
	t.Helper()
	fatal.If(t, s.TruncateBefore(t.Context(), sequence))
}

func extent(t testing.TB, s eventlog.Log) eventlog.Extent {
	t.Helper()
	return fatal.Or(s.Extent(t.Context()))(t)
}

// Entries come back in order, from the empty log on, whether they were appended alone or together.
func testAppend(t *testing.T, s eventlog.Log) {
	last := 0
	for n := range 8 {
		Want(t, s, 1, numbered(1, last)...)
		expect.Equal(t, appendAll(t, s), uint64(last), "the last entry is")
		expect.Equal(fatal.T(t), appendAll(t, s, numbered(last+1, last+n)...), uint64(last+n), "after", n, "more the last is")
		last += n
	}
	for from := 1; from <= last+1; from++ {
		Want(t, s, uint64(from), numbered(from, last)...)
	}
	beyond := uint64(last + 2)
	for from, want := range map[uint64]error{0: eventlog.ErrRemoved, beyond: eventlog.ErrBeyond, 1 << 60: eventlog.ErrBeyond} {
		if entries, err := Read(s, from); !errors.Is(err, want) || len(entries) > 0 {
			t.Errorf("reading from %d on: %d entries and the error %v, want %v", from, len(entries), err, want)
		}
	}
}

func testAnyBytes(t *testing.T, s eventlog.Log) {
	rng := rand.New(rand.NewPCG(1, 2))
	var want [][]byte
	for _, n := range []int{0, 1, 127, 128, 129, 5000, 16383, 16384, 900_000, 0} {
		e := make([]byte, n)
		for i := range e {
			e[i] = byte(rng.Uint32())
		}
		want = append(want, e)
		appendAll(t, s, e)
	}
	Want(t, s, 1, want...)
}

// A rejected append writes no entries and does not affect later appends.
func testTooLarge(t *testing.T, s eventlog.Log) {
	appendAll(t, s, entry(1))
	largest := make([]byte, eventlog.MaxFrame-eventlog.EmptyFrame-3)
	for _, entries := range [][][]byte{
		{append([]byte{0}, largest...)},
		{largest, {}},
		{entry(2), make([]byte, 3*eventlog.MaxFrame), entry(3)},
	} {
		expect.Fails(s.Append(t.Context(), entries...))(t, eventlog.ErrTooLarge, len(entries), len(entries[0]))
	}
	appendAll(t, s, largest)
	appendAll(t, s, entry(3))
	Want(t, s, 1, entry(1), largest, entry(3))
}

// An iteration ends with the entries present at its start. It may stop early, and may run again.
func testReadsWhatWasThere(t *testing.T, s eventlog.Log) {
	for i := 1; i <= 5; i++ {
		appendAll(t, s, entry(i))
	}
	entries := s.Entries(t.Context(), 2)
	n := 0
	for _, err := range entries {
		fatal.If(t, err)
		n++
		appendAll(t, s, entry(5+n))
	}
	if n != 4 {
		t.Errorf("the iteration had %d entries, want the 4 of its beginning", n)
	}
	for range entries {
		break
	}
	n = 0
	for range entries {
		n++
	}
	expect.Equal(t, n, 8, "run again, the iteration had n entries")
}

// Each of many callers finds its entries at the returned sequences, in the order of its appends.
func testConcurrent(t *testing.T, s eventlog.Log) {
	const callers, each = 16, 25
	returned := make([][each]uint64, callers)
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := range each {
				last, err := s.Append(t.Context(), fmt.Appendf(nil, "%d/%d", c, i), fmt.Appendf(nil, "%d/%d+", c, i))
				if err != nil {
					t.Error(err)
					return
				}
				returned[c][i] = last
			}
		})
	}
	for range 3 {
		group.Go(func() {
			if _, err := Read(s, 1); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	entries := fatal.Or(Read(s, 1))(t)
	expect.Equal(fatal.T(t), len(entries), 2*callers*each, "entries")
	for c := range callers {
		for i, last := range returned[c] {
			want := fmt.Sprintf("%d/%d", c, i)
			expect.Equal(t, string(entries[last-2]), want, "entry", last-1, "is")
			expect.Equal(t, string(entries[last-1]), want+"+", "entry", last, "is")
			if i > 0 && last <= returned[c][i-1] {
				t.Errorf("caller %d: entry %d has the sequence %d, the one before it %d", c, i, last, returned[c][i-1])
			}
		}
	}
}

func testCancelled(t *testing.T, s eventlog.Log) {
	appendAll(t, s, entry(1))
	appendAll(t, s, entry(2))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for _, err := range s.Entries(ctx, 1) {
		if n++; n == 1 {
			cancel()
		} else {
			expect.Error(t, err, context.Canceled, "cancelled while reading")
		}
	}
	if _, err := s.Append(ctx, entry(3)); !errors.Is(err, context.Canceled) || errors.Is(err, eventlog.ErrUnknown) {
		t.Errorf("appending with a cancelled context: %v", err)
	}
	Want(t, s, 1, numbered(1, 2)...)
}

func testCallersMemory(t *testing.T, s eventlog.Log) {
	mine := entry(1)
	appendAll(t, s, mine)
	clear(mine)
	Want(t, s, 1, entry(1))
}

func testExtent(t *testing.T, s eventlog.Log) {
	if x := extent(t, s); x.First != 1 || x.Last != 0 {
		t.Errorf("an empty log is [%d, %d], want [1, 0]", x.First, x.Last)
	}
	appendAll(t, s, numbered(1, 3)...)
	appendAll(t, s, bytes.Repeat([]byte{1}, 10_000))
	if x := extent(t, s); x.First != 1 || x.Last != 4 || x.Bytes < 10_000 || x.Bytes > 20_000 {
		t.Errorf("a log of 4 entries and 10 kB is [%d, %d] of %d bytes", x.First, x.Last, x.Bytes)
	}
}

func testTruncate(t *testing.T, s eventlog.Log) {
	for i := 1; i <= 20; i++ {
		appendAll(t, s, entry(i))
	}
	truncate(t, s, 0)
	Want(t, s, 1, numbered(1, 20)...)
	for _, before := range []int{8, 3, 8, 15} {
		truncate(t, s, uint64(before))
		if x := extent(t, s); x.First > 15 || x.Last != 20 {
			t.Fatalf("[%d, %d] is left of 20 entries after removing those before %d", x.First, x.Last, before)
		}
		Want(t, s, 15, numbered(15, 20)...)
	}
	if first := extent(t, s).First; first > 1 {
		if _, err := Read(s, first-1); !errors.Is(err, eventlog.ErrRemoved) ||
			!strings.Contains(err.Error(), fmt.Sprint(first)) {
			t.Errorf("reading removed entries: %v, want ErrRemoved with the first that is left", err)
		}
	}
	expect.Error(t, s.TruncateBefore(t.Context(), 22), eventlog.ErrBeyond)
	truncate(t, s, 21)
	Want(t, s, 21)
	expect.Equal(t, appendAll(t, s, entry(21)), 21, "the entry after 20 removed ones has the sequence")
	Want(t, s, 21, entry(21))
}

// The first byte of an entry is its number.
func testFirstSince(t *testing.T, s eventlog.Log) {
	since := func(n int) (sequence uint64, asked int) {
		sequence, err := eventlog.FirstSince(t.Context(), s,
			func(e []byte) (bool, error) { asked++; return int(e[0]) >= n, nil })
		fatal.If(t, err)
		return sequence, asked
	}
	if first, asked := since(0); first != 1 || asked != 0 {
		t.Errorf("of no entries the first is %d, after asking %d", first, asked)
	}
	for i := 1; i <= 199; i += 2 {
		appendAll(t, s, []byte{byte(i)}, []byte{byte(i + 1)})
	}
	truncate(t, s, 41)
	first := extent(t, s).First
	for n := 30; n <= 202; n++ {
		have, asked := since(n)
		want := min(max(uint64(n), first), 201)
		expect.Equal(t, have, want, "of", first, "to 200 the first since", n)
		if asked > 10 {
			t.Errorf("%d entries are asked of 160", asked)
		}
	}
	broken := errors.New("broken")
	expect.Fails(eventlog.FirstSince(t.Context(), s, func([]byte) (bool, error) { return false, broken }))(t, broken)
}

// The entries after the cut fit into the bytes. With one append more they would not.
func testFirstWithin(t *testing.T, s eventlog.Log) {
	within := func(bytes uint64) uint64 { return fatal.Or(s.FirstWithin(t.Context(), bytes))(t) }
	expect.Equal(t, within(0), 1, "of no entries the first is")
	for i := 1; i <= 60; i++ {
		appendAll(t, s, make([]byte, 100*i))
	}
	whole := extent(t, s).Bytes
	expect.Equal(t, within(whole), 1, "the first of", whole, "bytes in a log of as many")
	for _, bytes := range []uint64{whole - 1, whole / 2, whole / 4, 10_000} {
		first := within(bytes)
		truncate(t, s, first)
		left := extent(t, s).Bytes
		if more := left + 100*(first-1); left > bytes || more+1000 < bytes { // opening a log takes up to two messages
			t.Errorf("from %d on the log has %d bytes, want at most %d and not much less", first, left, bytes)
		}
	}
	truncate(t, s, within(0))
	Want(t, s, 61)
}

// Positions continue from entry to entry, and removal does not change them.
func testPosition(t *testing.T, s eventlog.Log) {
	at := func(sequence uint64) eventlog.Position {
		t.Helper()
		return fatal.Or(s.Position(t.Context(), sequence))(t)
	}
	want := []eventlog.Position{at(0)}
	if want[0].Log.IsZero() || want[0].Sequence != 0 {
		t.Errorf("an empty log is at %+v", want[0])
	}
	for i := 1; i <= 30; {
		group := [][]byte{entry(i)}
		if i%3 == 0 {
			group = append(group, entry(i+1), entry(i+2))
		}
		appendAll(t, s, group...)
		for range group {
			want = append(want, want[i-1].After(entry(i)))
			i++
		}
	}
	check := func(first int) {
		t.Helper()
		for i := first - 1; i < len(want); i++ {
			if have := at(uint64(i)); have != want[i] {
				t.Errorf("after entry %d: %+v, want %+v", i, have, want[i])
			}
		}
		expect.Fails(s.Position(t.Context(), uint64(len(want))))(t, eventlog.ErrBeyond)
	}
	check(1)
	truncate(t, s, 11)
	x := extent(t, s)
	check(int(x.First))
	if x.First > 1 {
		expect.Fails(s.Position(t.Context(), x.First-2))(t, eventlog.ErrRemoved)
	}
}

// A concurrent reader gets all entries from its start to the end, or ErrRemoved, but never an error about damage.
func testTruncateWhileReading(t *testing.T, s eventlog.Log) {
	appendAll(t, s, entry(1))
	truncate(t, s, 1)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				x, err := s.Extent(t.Context())
				if err != nil || x.First > x.Last+1 {
					t.Errorf("[%d, %d], %v", x.First, x.Last, err)
					return
				}
				have, err := Read(s, x.First)
				if err != nil && !errors.Is(err, eventlog.ErrRemoved) {
					t.Errorf("reading from %d on: %v", x.First, err)
					return
				}
				for i := range have {
					if want := entry(int(x.First) + i); !bytes.Equal(have[i], want) {
						t.Errorf("from %d on: %q, want %q", x.First, have[i], want)
						return
					}
				}
			}
		})
	}
	for i := 2; i <= 100 && !t.Failed(); i++ {
		appendAll(t, s, entry(i))
		truncate(t, s, uint64(i))
	}
}

func testClosed(t *testing.T, s eventlog.Log) {
	appendAll(t, s, entry(1))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { // acknowledged or rejected, never left hanging
			if _, err := s.Append(t.Context(), entry(2)); err != nil && !errors.Is(err, eventlog.ErrClosed) {
				t.Error(err)
			}
		})
	}
	fatal.If(t, s.Close())
	group.Wait()
	expect.Fails(s.Append(t.Context(), entry(3)))(t, eventlog.ErrClosed)
	expect.Fails(Read(s, 1))(t, eventlog.ErrClosed)
	expect.Error(t, s.Close(), nil, "closing again")
}

// Entry returns the same entries as the iteration, for small and large appends, in any order.
func testEntry(t *testing.T, s eventlog.Log) {
	ctx := t.Context()
	wantError := func(sequence uint64, want error) {
		t.Helper()
		expect.Fails(s.Entry(ctx, sequence))(t, want, sequence)
	}
	wantError(0, eventlog.ErrRemoved)
	wantError(1, eventlog.ErrBeyond)
	rng := rand.New(rand.NewPCG(1, 1))
	last := 0
	for range 60 {
		n := 1 + rng.IntN(1+rng.IntN(40))
		appendAll(t, s, numbered(last+1, last+n)...)
		last += n
	}
	check := func(i int) {
		t.Helper()
		if e, err := s.Entry(ctx, uint64(i)); err != nil || !bytes.Equal(e, entry(i)) {
			t.Fatalf("entry %d is %q, %v", i, e, err)
		}
	}
	for _, i := range rng.Perm(last) {
		check(i + 1)
	}
	wantError(uint64(last+1), eventlog.ErrBeyond)
	wantError(uint64(last+2), eventlog.ErrBeyond)

	truncate(t, s, uint64(last/2))
	first := int(extent(t, s).First)
	for i := first; i <= last; i++ {
		check(i)
	}
	check(first)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	expect.Fails(s.Entry(cancelled, uint64(first)))(t, context.Canceled)
	s.Close()
	wantError(uint64(first), eventlog.ErrClosed)
}

// Entries can be read during writes.
func testEntriesAtOnce(t *testing.T, s eventlog.Log) {
	appendAll(t, s, entry(1))
	var written atomic.Int64
	written.Store(1)
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(c)))
			for last := int64(1); last < 200; last = written.Load() {
				i := 1 + rng.Int64N(last)
				if e, err := s.Entry(t.Context(), uint64(i)); err != nil || !bytes.Equal(e, entry(int(i))) {
					t.Errorf("entry %d is %q, %v", i, e, err)
					return
				}
			}
		})
	}
	buffer := make([]byte, 0, 100)
	for i := 2; i <= 200; i++ {
		buffer = fmt.Appendf(buffer[:0], "entry %d", i) // the caller reuses the buffer
		appendAll(t, s, buffer)
		written.Store(int64(i))
	}
	wg.Wait()
}

// testFollow checks that a follower gets the existing entries, and each new one as it arrives, even while entries are
// removed, until it leaves. A log that one process writes and reads is not followed.
func testFollow(t *testing.T, log eventlog.Log) {
	s, ok := log.(interface {
		eventlog.Log
		eventlog.Followed
	})
	if !ok {
		t.Skip("it is not an eventlog.Followed")
	}
	appendAll(t, s, numbered(1, 5)...)
	for _, from := range []uint64{1, 3, 6} {
		ctx, cancel := context.WithCancel(t.Context())
		next, got := int(from), make(chan int, 100)
		ended := make(chan error, 1)
		go func() {
			for entries, err := range s.Follow(ctx, from) {
				if err != nil {
					ended <- err
					return
				}
				if len(entries) == 0 {
					t.Errorf("from %d: it yields no entries", from)
				}
				for _, e := range entries {
					if want := entry(next); !bytes.Equal(e, want) {
						t.Errorf("from %d: %q, want %q", from, e, want)
					}
					got <- next
					next++
				}
			}
			ended <- nil
		}()
		last := extent(t, s).Last
		for i := int(from); i <= int(last); i++ {
			<-got
		}
		for n := range 3 {
			appendAll(t, s, entry(int(last)+n+1))
			if i := <-got; i != int(last)+n+1 {
				t.Fatalf("from %d: entry %d comes, want %d", from, i, int(last)+n+1)
			}
		}
		cancel()
		expect.Error(t, <-ended, context.Canceled, from)
	}
	last := extent(t, s).Last
	for entries, err := range s.Follow(t.Context(), last) { // the iteration ends
		if err != nil || len(entries) != 1 || !bytes.Equal(entries[0], entry(int(last))) {
			t.Errorf("%q, %v", entries, err)
		}
		break
	}
	for from, want := range map[uint64]error{last + 2: eventlog.ErrBeyond, 0: eventlog.ErrRemoved} {
		for _, err := range s.Follow(t.Context(), from) {
			expect.Error(t, err, want, from)
		}
	}
	ended := make(chan error)
	go func() {
		for _, err := range s.Follow(t.Context(), last+1) {
			ended <- err
			return
		}
	}()
	s.Close()
	expect.Error(t, <-ended, eventlog.ErrClosed)
}
