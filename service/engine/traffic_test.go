package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
)

// faultyStore is a log in memory that counts its appends, and fails at will.
type faultyStore struct {
	memlog.Store
	appends atomic.Int64
	fails   func(n int64) error // of the n-th append, before it is made; nil never fails
	after   func(n int64) error // and after it is made
}

func (s *faultyStore) Append(ctx context.Context, entries ...[]byte) (uint64, error) {
	n := s.appends.Add(1)
	if s.fails != nil {
		if err := s.fails(n); err != nil {
			return 0, err
		}
	}
	last, err := s.Store.Append(ctx, entries...)
	if s.after != nil && err == nil {
		err = s.after(n)
	}
	return last, err
}

// With many callers at once, twins among them, everyone gets the logged answer, twins the same one; a decision gets one
// outcome, appends are shared, and a replay gives the state.
func TestManyCallers(t *testing.T) {
	const callers, rounds = 16, 40
	store := &faultyStore{fails: func(int64) error { time.Sleep(5 * time.Millisecond); return nil }} // as a disk does
	var order []uint64
	e := opened(t, engine.Options{Store: store, Build: buildToy, Applied: func(sequence uint64, _ *eventlog.Event) {
		order = append(order, sequence)
	}})
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	var mu sync.Mutex
	answers, taken := map[string][]string{}, map[string]map[string]bool{}
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c/2), 1)) // callers 2k and 2k+1 are twins
			for i := range rounds {
				id := fmt.Sprintf("%d-%d", c/2, i)
				a, err := e.Decide(t.Context(), "home", stock(id, 3+i%5), int64(i))
				if err != nil {
					t.Errorf("decide: %v", err)
					return
				}
				item := append(a.IDs(), "")[rng.IntN(3)]
				if c%2 == 1 && i%3 == 0 {
					item = a.IDs()[0] // the twin may tell something else
				}
				err = e.Outcome(t.Context(), "home", id, item, int64(i)+1)
				if err != nil && !errors.Is(err, engine.ErrConflict) {
					t.Errorf("outcome: %v", err)
				}
				mu.Lock()
				if have := answers[id]; have != nil && fmt.Sprint(have) != fmt.Sprint(a.IDs()) {
					t.Errorf("twins were shown %v and %v", have, a.IDs())
				}
				answers[id] = a.IDs()
				if err == nil {
					if taken[id] == nil {
						taken[id] = map[string]bool{}
					}
					taken[id][item] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, items := range taken {
		expect.Equal(t, len(items), 1, "decision", id, "was reported with the outcomes", items)
	}
	wait(t, e)
	s, err := e.Stats("home")
	if err != nil || s.Decisions != callers/2*rounds || s.Outcomes != s.Decisions || s.Learned != s.Decisions {
		t.Errorf("stats %+v, %v", s, err)
	}
	if n := store.appends.Load(); n >= int64(e.Sequence()) {
		t.Errorf("%d appends of %d entries: none was shared", n, e.Sequence())
	}
	live := snapshot(t, e)
	for i, sequence := range order {
		if sequence != uint64(i+1) {
			t.Fatalf("entry %d was applied as number %d", sequence, i+1)
		}
	}
	if string(live) != string(replayed(t, engine.Options{Store: store, Build: buildToy})) {
		t.Error("a replay has another state")
	}
}

// A decision is answered after it is in the log, never before, and an engine
// that cannot write says so from then on.
func TestFailingLog(t *testing.T) {
	full := fmt.Errorf("disk full: %w", eventlog.ErrReopen)
	for _, written := range []bool{false, true} {
		store := &faultyStore{}
		at := func(n int64) error {
			if n == 3 {
				return full
			}
			return nil
		}
		if written {
			store.after = at
		} else {
			store.fails = at
		}
		e := opened(t, engine.Options{Store: store, Build: buildToy})
		put(t, e, "home", toys)
		decide(t, e, "home", stock("a", 2), 0)
		_, err := e.Decide(t.Context(), "home", stock("b", 2), 0)
		is(t, "decide", err, engine.ErrStopped)
		is(t, "decide", err, eventlog.ErrReopen)
		is(t, "outcome", e.Outcome(t.Context(), "home", "a", "", 1), engine.ErrStopped)
		is(t, "outcome", e.Outcome(t.Context(), "home", "a", "", 1), eventlog.ErrReopen)
		_, err = e.Decision(t.Context(), "home", "b")
		is(t, "the decision, which may be in the log", err, engine.ErrStopped)

		// Opened again, the decision is there if it was written, and its request gets its answer.
		again := opened(t, engine.Options{Store: &store.Store, Build: buildToy})
		a, err := again.Decide(t.Context(), "home", stock("b", 2), 0)
		if err != nil || a.Decoded != written {
			t.Errorf("written %v: answer %+v, %v", written, a, err)
		}
	}
}

// A second writer is noticed by the sequence, in any store.
func TestAnotherWriter(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", toys)
	fatal.Or(store.Append(t.Context(), []byte("x")))(t)
	_, err := e.Decide(t.Context(), "home", stock("a", 2), 0)
	is(t, "decide", err, engine.ErrStopped)
}

func TestClosed(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", toys)
	e.Close()
	e.Close()
	_, err := e.Decide(t.Context(), "home", stock("a", 2), 0)
	is(t, "decide", err, engine.ErrStopped)
	is(t, "wait", e.Wait(t.Context()), engine.ErrStopped)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e = opened(t, engine.Options{Store: new(memlog.Store), Build: buildToy})
	put(t, e, "home", toys)
	for range 100 { // whether it was written is not known, but it is answered
		if _, err = e.Decide(ctx, "home", stock("", 2), 0); err != nil {
			is(t, "without a caller", err, context.Canceled)
		}
	}
}

// Open decisions never exceed the memory: the oldest are evicted, by entries of the log, without being learned, and
// closed ones are forgotten. The error of a late outcome says that the memory was too small.
func TestMemoryIsBounded(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	const memory = 13_000
	put(t, e, "home", fmt.Sprintf(`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"memory_bytes":%d}`, memory))
	for i := range 400 {
		id := fmt.Sprintf("d%03d", i)
		decide(t, e, "home", stock(id, 3), int64(i))
		if i%3 == 0 {
			fatal.If(t, e.Outcome(t.Context(), "home", id, "", int64(i)))
		}
		if i%20 == 0 {
			wait(t, e) // the learner's own bound is separate
		}
		if s, _ := e.Stats("home"); s.Memory > memory || s.Memory < memory/2 && i > 200 {
			t.Fatalf("%d bytes after %d decisions", s.Memory, i+1)
		}
	}
	wait(t, e)
	s, _ := e.Stats("home")
	if s.ExpiredEarly == 0 || s.Expired > 0 || s.Learned != s.Outcomes ||
		s.Decisions != s.Outcomes+s.ExpiredEarly+uint64(s.Pending) {
		t.Errorf("stats %+v", s)
	}
	is(t, "forgotten", e.Outcome(t.Context(), "home", "d000", "", 1000), engine.ErrNotFound)
	d, err := e.Decision(t.Context(), "home", "d398")
	if err != nil || d.Status != "open" {
		t.Errorf("one of the last decisions is %+v, %v", d, err)
	}
	evicted, last := 0, ""
	for event := range events(t, store) {
		if b, ok := event.Body.(*eventlog.Evicted); ok {
			evicted++
			last = b.Decision
		}
	}
	is(t, "too small", e.Outcome(t.Context(), "home", last, "sku0", 1000), engine.ErrEvicted)
	is(t, "too small to be activated", e.Activate(t.Context(), "home", last, 1000), engine.ErrEvicted)
	if uint64(evicted) != s.ExpiredEarly {
		t.Errorf("%d are evicted, the log says so of %d", s.ExpiredEarly, evicted)
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// A log that no engine can have written is refused, and the entry is named.
func TestUnlawfulLogs(t *testing.T) {
	place := &eventlog.PlacementPut{Config: []byte(toys)}
	offer := &eventlog.Offered{
		Decision: "a", Candidates: 1, ItemIDs: []string{"i"}, Width: 1, Features: []float64{1}, Shown: []int32{0},
		Mode: offer.ByPolicy, Answer: []byte{1, 0, 1},
	}
	wide := *offer
	wide.Width, wide.Features = 2, []float64{1, 2}
	modeless := *offer
	modeless.Mode = 0
	dear := *offer
	dear.Revenue = []float64{1e308} // its square is infinite
	for want, bodies := range map[string][]eventlog.Body{
		`entry 2, placement "home": item 0 has the revenue 1e+308`:         {place, &dear},
		`entry 1, placement "home": the placement: not found`:              {offer},
		`entry 2, placement "home": the offer is of 1 items of 2 features`: {place, &wide},
		`entry 2, placement "home": the offer was found in way 0`:          {place, &modeless},
		`entry 3, placement "home": decision "a" is open already`:          {place, offer, offer},
		`entry 3, placement "home": decision "b": not found`: {
			place, offer, &eventlog.Chosen{Decision: "b"}},
		`entry 3, placement "home": decision "a" showed 1 items, and item 2 was chosen`: {
			place, offer, &eventlog.Chosen{Decision: "a", Choice: 2}},
		`entry 4, placement "home": decision "a" has its outcome already`: {
			place, offer, &eventlog.Expired{Decision: "a"}, &eventlog.Chosen{Decision: "a"}},
		`entry 2, placement "home": version 7: not found`: {
			place, &eventlog.LearnerRolledBack{Version: 7}},
		`entry 2, placement "home": version 7 is kept while the learner is at 1`: {
			place, &eventlog.VersionSaved{Version: 7}},
		`entry 1, placement "home": /max_size: 0: must be from 1 to 1000`: {
			&eventlog.PlacementPut{Config: []byte("{}")}},
		`entry 1, placement "home": /policy: there is no such toy`: {
			&eventlog.PlacementPut{Config: []byte(
				`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"none"}}`)}},
		`entry 3, placement "home": the placement: not found`: {
			place, &eventlog.PlacementDeleted{}, offer},
		`entry 2, placement "home": the answer of an offer: the bytes end early`: {
			place, func() *eventlog.Offered { o := *offer; o.Answer = nil; return &o }()},
	} {
		store := written(t, bodies...)
		_, err := engine.Open(t.Context(), engine.Options{Store: store, Build: buildToy})
		if err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	store := new(memlog.Store)
	store.Append(t.Context(), []byte("\x01\x03what"))
	expect.Refused(engine.Open(t.Context(), engine.Options{Store: store, Build: buildToy}))(t,
		"bytes that are no event are replayed")
}

// A placement's count of bytes for its decisions, open and closed, is at least their share of the heap.
func TestMemoryIsWhatItCounts(t *testing.T) {
	const noise = 200_000 // that was there before, and is gone
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const decisions = 10_000
	e := opened(t, engine.Options{Store: onDisk(t), Build: buildToy})
	put(t, e, "home", fmt.Sprintf(`{"max_size":4,"max_request_items":8,"log_items":"all","features":%s,"policy":{},"memory_bytes":200000000}`, numbers(5)))
	x := make(api.Values, 5)
	for j := range x {
		x[j] = api.Number(featureName(j), 0.1)
	}
	r := new(api.Request)
	for i := range 8 {
		r.Items = append(r.Items, api.Item{ID: itemID(i), Features: x, Revenue: new(0.0)})
	}
	for _, id := range []string{"%d", "a-long-id-of-36-bytes-as-UUIDs-%05d", strings.Repeat("x", 100) + "%d"} {
		before := heap()
		for i := range decisions {
			r.Decision = fmt.Sprintf(id, i)
			decide(t, e, "home", r, 0)
		}
		counted := 0
		check := func(what string) {
			t.Helper()
			wait(t, e)
			s, _ := e.Stats("home")
			if takes := heap() - before; takes > s.Memory-counted+noise || takes < (s.Memory-counted)/3-noise {
				t.Errorf("%d %s decisions of ids like %q take %d bytes, and are counted as %d", decisions, what, id,
					takes, s.Memory-counted)
			}
		}
		check("open")
		for i := range decisions {
			for e.Outcome(t.Context(), "home", fmt.Sprintf(id, i), "", 1) != nil {
				wait(t, e)
			}
		}
		fatal.Or(e.Keep(t.Context(), "home", "", 1))(t)
		check("closed")
		fatal.If(t, e.Delete(t.Context(), "home", nil, 1))
		put(t, e, "home", fmt.Sprintf(`{"max_size":4,"max_request_items":8,"log_items":"all","features":%s,"policy":{},"memory_bytes":200000000}`, numbers(5)))
	}
}

// fileLog is a log with entries that take no memory.
type fileLog struct {
	*memlog.Store // of an empty log
	file          *os.File
	ends          []int64
}

func onDisk(t *testing.T) *fileLog {
	file := fatal.Or(os.Create(filepath.Join(t.TempDir(), "log")))(t)
	t.Cleanup(func() { file.Close() })
	return &fileLog{Store: new(memlog.Store), file: file, ends: make([]int64, 1, 1<<17)}
}

func (l *fileLog) Append(_ context.Context, entries ...[]byte) (uint64, error) {
	for _, e := range entries {
		at := l.ends[len(l.ends)-1]
		if _, err := l.file.WriteAt(e, at); err != nil {
			return 0, err
		}
		l.ends = append(l.ends, at+int64(len(e)))
	}
	return uint64(len(l.ends) - 1), nil
}

func (l *fileLog) Entry(_ context.Context, n uint64) ([]byte, error) {
	entry := make([]byte, l.ends[n]-l.ends[n-1])
	_, err := l.file.ReadAt(entry, l.ends[n-1])
	return entry, err
}

// A placement with lowered memory forgets, and expires open decisions, until it fits.
func TestMemoryShrinks(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	place := func(memory int) string {
		return fmt.Sprintf(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{},"memory_bytes":%d}`,
			memory)
	}
	const small = 40_000
	for _, closed := range []bool{true, false} {
		put(t, e, "home", place(1_000_000))
		for i := range 200 {
			id := fmt.Sprintf("%v-%d", closed, i)
			decide(t, e, "home", stock(id, 1), 0)
			if closed {
				fatal.If(t, e.Outcome(t.Context(), "home", id, "", 1))
			}
		}
		wait(t, e)
		put(t, e, "home", place(small))
		for !closed {
			n := fatal.Or(e.Expire(t.Context(), 1))(t)
			if wait(t, e); n == 0 {
				break
			}
		}
		if s, _ := e.Stats("home"); s.Memory > small || s.Memory < small/2 {
			t.Errorf("closed %v: %d bytes", closed, s.Memory)
		}
	}
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}

// If the configuration changes meanwhile, a decision is made again, under the new one.
func TestChangesUnderWay(t *testing.T) {
	store := &faultyStore{fails: func(int64) error { time.Sleep(50 * time.Microsecond); return nil }}
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	config := func(size int) string {
		return fmt.Sprintf(`{"max_size":%d,"features":[{"name":"x","kind":"number"}],"policy":{}}`, size)
	}
	put(t, e, "home", config(3))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if _, err := e.Decide(t.Context(), "home", stock("", 5), 0); err != nil {
					t.Errorf("decide: %v", err)
					return
				}
			}
		})
	}
	for i := range 100 {
		put(t, e, "home", config(1+i%3))
	}
	wg.Wait()
	replays(t, e, engine.Options{Store: store, Build: buildToy})
}
