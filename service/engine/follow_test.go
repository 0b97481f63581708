package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// follower opens an engine that follows a log.
func follower(t testing.TB, o engine.Options) *engine.Engine {
	t.Helper()
	o.Follow = o.Store.(eventlog.Followed)
	return opened(t, o)
}

func reach(t testing.TB, e *engine.Engine, entry uint64) {
	t.Helper()
	fatal.If(t, e.WaitFor(t.Context(), entry))
}

// upTo copies the first entries of a log.
func upTo(t testing.TB, store eventlog.Log, last uint64) *memlog.Store {
	t.Helper()
	c, n := new(memlog.Store), uint64(0)
	for entry, err := range store.Entries(t.Context(), 1) {
		fatal.If(t, err)
		if n == last {
			break
		}
		fatal.Or(c.Append(t.Context(), entry))(t)
		n++
	}
	return c
}

// At any entry, a follower's state and learners equal a replay's, whether it is opened on an empty log or in the
// middle.
func TestFollowerIsTheReplay(t *testing.T) { followerIsTheReplay(t, 1000, 200) }

// followerIsTheReplay compares at each multiple of every, up to the last entry.
func followerIsTheReplay(t *testing.T, last, every uint64) {
	store := new(memlog.Store)
	o := engine.Options{Store: store}
	e, f := opened(t, o), follower(t, o)
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl","lambda":1}}`)
	compare := func() {
		t.Helper()
		if e.Sequence()%every != 0 {
			return
		}
		reach(t, f, e.Sequence())
		data, at, err := f.Snapshot(t.Context())
		fatal.If(t, err)
		if at != e.Sequence() || string(data) != string(replayed(t, engine.Options{Store: upTo(t, store, at)})) {
			t.Fatalf("at entry %d the follower's state is not that of a replay", at)
		}
		// At one version the policies are the same.
		wait(t, e)
		mine, yours := statsOf(t, e, "home"), statsOf(t, f, "home")
		if mine.PolicyEntry != yours.PolicyEntry || mine.Learned != yours.Learned || mine.Learned == 0 {
			t.Errorf("the leader has learned %+v, the follower %+v", mine, yours)
		}
		if at == last/2 {
			f.Close()
			f = follower(t, o)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 0; e.Sequence() < last; i++ {
		id := fmt.Sprint("d", i)
		a := decide(t, e, "home", stock(id, 3+i%4), int64(i))
		compare()
		if i%5 > 0 {
			is(t, "outcome", e.Outcome(t.Context(), "home", id, append(a.IDs(), "")[rng.IntN(3)], int64(i)), nil)
			compare()
		}
	}
}

func statsOf(t testing.TB, e *engine.Engine, name string) api.Stats {
	t.Helper()
	s := fatal.Or(e.Stats(name))(t)
	return s
}

// A follower reports the entries that it applies, answers reads, and changes no state.
func TestFollowerChangesNothing(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	var applied atomic.Uint64
	f := follower(t, engine.Options{Store: store, Build: buildToy, Leader: func() string { return "process 7" },
		Applied: func(sequence uint64, _ *eventlog.Event) {
			if applied.Add(1) != sequence {
				t.Errorf("entry %d is the %d-th that is reported", sequence, applied.Load())
			}
		}})
	put(t, e, "home", toys)
	one(t, e, "home", "a", 1)
	is(t, "a push", errOf(e.PutItems(t.Context(), "home",
		[]api.CatalogueItem{{ID: "sku", Features: api.Values{api.Number("x", 1)}}}, 1)), nil)
	reach(t, f, e.Sequence())
	for what, err := range map[string]error{
		"a placement": errOf(f.Put(t.Context(), "cart", []byte(toys), 1)),
		"a deletion":  f.Delete(t.Context(), "home", nil, 1),
		"a version":   errOf(f.Keep(t.Context(), "home", "", 1)),
		"a push": errOf(f.PutItems(t.Context(), "home",
			[]api.CatalogueItem{{ID: "other", Features: api.Values{api.Number("x", 1)}}}, 1)),
	} {
		expect.Error(t, err, engine.ErrFollower, what)
	}
	d, err := f.Decision(t.Context(), "home", "a")
	if err != nil || d.Status != "chosen" {
		t.Errorf("%+v, %v", d, err)
	}
	if page, err := f.Items("home", 0, 10); err != nil || page.Count != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	n := uint64(0)
	for _, err := range f.Events(t.Context(), 1) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != e.Sequence() || applied.Load() != n || f.Role() != engine.Follower || e.Role() != engine.Leader ||
		f.Leader() != "process 7" {
		t.Errorf("%d events, %d reported, of %d; %s and %s, led by %q", n, applied.Load(), e.Sequence(), f.Role(),
			e.Role(), f.Leader())
	}
}

func errOf[T any](_ T, err error) error { return err }

// A follower becomes the writer once it applied the remaining entries, and its decisions continue in order.
func TestFollowerLeads(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Build: buildToy}
	e := opened(t, o)
	f := follower(t, o)
	put(t, e, "home", toys)
	for i := range 20 {
		one(t, e, "home", fmt.Sprint("d", i), float64(i%3))
	}
	e.Close()
	fatal.If(t, f.Lead(t.Context(), nil))
	if lag, sawEnd := f.Lag(); f.Role() != engine.Leader || f.Sequence() != 41 || lag != 0 || !sawEnd {
		t.Fatalf("it is %s at entry %d, %v behind", f.Role(), f.Sequence(), lag)
	}
	a, err := f.Decide(t.Context(), "home", stock("", 2), 1)
	if err != nil || a.Number != 21 {
		t.Errorf("%+v, %v", a, err)
	}
	one(t, f, "home", "new", 1)
	replays(t, f, o)
}

// If the clock moves when a follower begins to lead, it moves before a call that waits for a leader writes its
// decision, by the new clock.
func TestClockMovesBeforeAFollowerWrites(t *testing.T) {
	defer engine.SetLeaderPatience(10*time.Millisecond, time.Minute)()
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", toys)
	now, asked := atomic.Int64{}, make(chan struct{}, 1000)
	f := follower(t, engine.Options{Store: store, Build: buildToy, Replica: 1, Clock: now.Load,
		Propose: func(context.Context, []byte) ([]byte, error) {
			asked <- struct{}{}
			return nil, errors.New("nobody answers")
		}})
	reach(t, f, e.Sequence())
	decided := make(chan error)
	go func() { decided <- errOf(f.Decide(t.Context(), "home", stock("a", 2), 1)) }()
	<-asked
	e.Close()
	const to = int64(1e18)
	fatal.If(t, f.Lead(t.Context(), func(move engine.MoveClock) error {
		defer now.Store(to)
		if _, _, err := move(1, to); err != nil || f.Role() != engine.Follower {
			t.Errorf("while the clock moves it is the %s, %v", f.Role(), err)
		}
		return nil
	}))
	fatal.If(t, <-decided)
	for after, want := range []eventlog.Body{&eventlog.ClockMoved{By: to - 1}, new(eventlog.Offered)} {
		event := fatal.Or(eventlog.Decode(fatal.Or(store.Entry(t.Context(), uint64(2+after)))(t)))(t)
		if fmt.Sprintf("%T", event.Body) != fmt.Sprintf("%T", want) || event.Time != to {
			t.Errorf("entry %d is a %T at %d, want a %T at %d", 2+after, event.Body, event.Time, want, to)
		}
	}
	expect.Error(t, follower(t, engine.Options{Store: new(memlog.Store)}).Lead(t.Context(),
		func(engine.MoveClock) error { return eventlog.ErrFenced }), eventlog.ErrFenced)
}

// dated is a log that says since when it was idle.
type dated struct {
	*memlog.Store
	sequence atomic.Uint64
	at       atomic.Int64
}

func (s *dated) Synced() (uint64, time.Time) { return s.sequence.Load(), time.Unix(0, s.at.Load()) }

// The lag is the time since the state included all log entries known at that time.
func TestLag(t *testing.T) {
	store := &dated{Store: new(memlog.Store)}
	e := opened(t, engine.Options{Store: store.Store, Build: buildToy})
	put(t, e, "home", toys)
	f := follower(t, engine.Options{Store: store, Build: buildToy})
	reach(t, f, 1)
	until := func(what string, is func(time.Duration) bool) {
		t.Helper()
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
			lag, sawEnd := f.Lag()
			if sawEnd && is(lag) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the lag is %v, and it saw the end: %v", what, lag, sawEnd)
			}
		}
	}
	set := func(sequence uint64, ago time.Duration) {
		store.sequence.Store(sequence)
		store.at.Store(time.Now().Add(-ago).UnixNano())
	}
	set(1, time.Hour)
	until("an hour ago", func(lag time.Duration) bool { return lag >= time.Hour && lag < time.Hour+time.Minute })
	set(2, 0) // an entry that did not arrive
	time.Sleep(250 * time.Millisecond)
	if lag, _ := f.Lag(); lag < time.Hour {
		t.Errorf("an entry is missing, and the lag is %v", lag)
	}
	one(t, e, "home", "a", 1)
	until("when it has come", func(lag time.Duration) bool { return lag < time.Minute })
}

// cut is a log that, once cut, lost the entries that are asked for.
type cut struct {
	*memlog.Store
	is atomic.Bool
}

func (s *cut) Entry(ctx context.Context, sequence uint64) ([]byte, error) {
	if s.is.Load() {
		return nil, eventlog.ErrRemoved
	}
	return s.Store.Entry(ctx, sequence)
}

// A follower that cannot apply an entry stops and says why; if the log lost entries that it needs, it must be opened
// again, with a later snapshot.
func TestFollowerStops(t *testing.T) {
	store := &cut{Store: new(memlog.Store)}
	e := opened(t, engine.Options{Store: store.Store, Build: buildToy})
	put(t, e, "home", toys)
	for _, id := range []string{"a", "b"} {
		decide(t, e, "home", stock(id, 2), 1)
	}
	first := follower(t, engine.Options{Store: store, Build: buildToy, Snapshot: snapshot(t, e)}) // without the offers
	second := follower(t, engine.Options{Store: store.Store, Build: buildToy})
	reach(t, first, 3)
	store.is.Store(true)
	is(t, "an outcome", e.Outcome(t.Context(), "home", "a", "", 2), nil)
	if err := first.WaitFor(t.Context(), 5); !errors.Is(err, engine.ErrStopped) ||
		!errors.Is(err, eventlog.ErrReopen) || !errors.Is(first.Failure(), eventlog.ErrRemoved) {
		t.Errorf("%v, %v", err, first.Failure())
	}
	fatal.Or(store.Append(t.Context(), []byte("rubbish")))(t)
	if err := second.WaitFor(t.Context(), 5); !errors.Is(err, engine.ErrStopped) ||
		errors.Is(err, eventlog.ErrReopen) || !strings.Contains(err.Error(), "entry 5") {
		t.Errorf("%v, want that entry 5 cannot be applied", err)
	}
	expect.Error(t, second.Lead(t.Context(), nil), engine.ErrStopped)
}

// slowEntries is a log that does not answer for an entry before it may go on.
type slowEntries struct {
	*memlog.Store
	asked, goOn chan struct{}
}

func (s *slowEntries) Entry(ctx context.Context, sequence uint64) ([]byte, error) {
	s.asked <- struct{}{}
	<-s.goOn
	return s.Store.Entry(ctx, sequence)
}

// A follower looks whether the log still holds what a second learner reads. Callers of the follower do not wait for the
// log's server.
func TestFollowerAsksBeforeItLocks(t *testing.T) {
	store := &slowEntries{new(memlog.Store), make(chan struct{}, 100), make(chan struct{})}
	e := opened(t, engine.Options{Store: store.Store, Build: buildToy})
	f := follower(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", toys)
	one(t, e, "home", "a", 1)
	relearn(t, e, another)
	<-store.asked
	if n := f.Sequence(); n != e.Sequence()-1 {
		t.Errorf("it is at entry %d of %d", n, e.Sequence())
	}
	close(store.goOn)
	reach(t, f, e.Sequence())
}

// unanswering is a log that does not answer once it is set.
type unanswering struct {
	*memlog.Store
	is      atomic.Bool
	waiting chan struct{} // receives when an answer is waited for
}

func (s *unanswering) Entry(ctx context.Context, sequence uint64) ([]byte, error) {
	if s.is.Load() {
		s.waiting <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Store.Entry(ctx, sequence)
}

func (s *unanswering) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	if !s.is.Load() {
		return s.Store.Entries(ctx, from)
	}
	return func(yield func([]byte, error) bool) {
		s.waiting <- struct{}{}
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

// A log does not answer a follower, which is to lead or to apply an entry: it ends when it is to end.
func TestFollowerEndsWithoutItsLog(t *testing.T) {
	store := &unanswering{Store: new(memlog.Store), waiting: make(chan struct{}, 1)}
	e := opened(t, engine.Options{Store: store.Store, Build: buildToy})
	put(t, e, "home", toys)
	decide(t, e, "home", stock("a", 2), 1)
	o := engine.Options{Store: store, Build: buildToy, Snapshot: snapshot(t,
		e)} // without the offer, which must be read
	first, second := follower(t, o), follower(t, o)
	reach(t, first, 2)
	reach(t, second, 2)
	store.is.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	led := make(chan error, 1)
	go func() { led <- first.Lead(ctx, nil) }()
	<-store.waiting
	cancel()
	expect.Error(t, <-led, context.Canceled)
	if err := first.WaitFor(t.Context(), 99); !errors.Is(err, engine.ErrStopped) ||
		!errors.Is(first.Failure(), context.Canceled) {
		t.Errorf("%v, and it stopped with %v", err, first.Failure())
	}
	is(t, "an outcome", e.Outcome(t.Context(), "home", "a", "", 2), nil)
	<-store.waiting
	second.Close()
}

// counted is a log that counts the entries read by its followers.
type counted struct {
	*memlog.Store
	read atomic.Int64
}

func (s *counted) Follow(ctx context.Context, from uint64) iter.Seq2[[][]byte, error] {
	return func(yield func([][]byte, error) bool) {
		for entries, err := range s.Store.Follow(ctx, from) {
			for one := range slices.Chunk(entries, 1) {
				s.read.Add(1)
				if !yield(one, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// A follower that is behind keeps few entries in memory.
func TestFollowerReadsLittleAhead(t *testing.T) {
	store := &counted{Store: new(memlog.Store)}
	e := opened(t, engine.Options{Store: store.Store, Build: buildToy})
	gate := make(chan struct{})
	f := follower(t, engine.Options{Store: store, Build: buildToy, Applied: func(uint64, *eventlog.Event) { <-gate }})
	put(t, e, "home", toys)
	for i := range 300 {
		decide(t, e, "home", stock(fmt.Sprint("d", i), 1), 0)
	}
	for store.read.Load() < 60 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	if n := store.read.Load(); n > 70 {
		t.Errorf("it has read %d entries and applied one", n)
	}
	close(gate)
	reach(t, f, e.Sequence())
}

// leaving is a log that says when its follower leaves.
type leaving struct {
	*counted
	leaves chan struct{}
}

func (s *leaving) Follow(ctx context.Context, from uint64) iter.Seq2[[][]byte, error] {
	context.AfterFunc(ctx, func() { close(s.leaves) })
	return s.counted.Follow(ctx, from)
}

// A closed follower does not apply the entries that it read ahead, which may take long.
func TestFollowerEndsBeforeWhatItHasRead(t *testing.T) {
	store := &leaving{&counted{Store: new(memlog.Store)}, make(chan struct{})}
	e := opened(t, engine.Options{Store: store.Store, Build: buildToy})
	gate := make(chan struct{})
	var applied atomic.Int64
	f := follower(t, engine.Options{Store: store, Build: buildToy, Applied: func(uint64, *eventlog.Event) {
		applied.Add(1)
		<-gate
	}})
	put(t, e, "home", toys)
	for i := range 300 {
		decide(t, e, "home", stock(fmt.Sprint("d", i), 1), 0)
	}
	for store.read.Load() < 60 {
		time.Sleep(time.Millisecond)
	}
	gate <- struct{}{} // the first entry; the next ones are applied in one go
	for applied.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	time.AfterFunc(0, f.Close)
	<-store.leaves
	close(gate)
	f.Close()
	if n := applied.Load(); n > 40 {
		t.Errorf("it has applied %d entries", n)
	}
}

// A follower waits for a slow learner, also a variant's, without holding up its readers.
func TestSlowFollower(t *testing.T) {
	t.Run("placement", func(t *testing.T) {
		slowFollower(t, `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"slow"},"memory_bytes":65536}`)
	})
	t.Run("variant", func(t *testing.T) {
		slowFollower(t, `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"own"},"memory_bytes":65536,"mode":"experiment","experiment":
			{"name":"summer","variants":[{"name":"own","show":"policy","share":0.5},{"name":"rival","show":"policy","policy":{"name":"slow"},"share":0.5}]}}`)
	})
}

// slowFollower follows a placement with the slowly learning policy "slow".
func slowFollower(t *testing.T, config string) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", config)
	gate, waiting := make(chan struct{}), new(atomic.Int64)
	slow := gated(gate, waiting)
	f := follower(t, engine.Options{Store: store, Build: func(s setup.Spec) (vitrine.Learner, error) {
		if strings.Contains(string(s.Policy), "slow") {
			return slow(s)
		}
		return buildToy(s)
	}})
	for i := range 400 {
		r := stock(fmt.Sprint("d", i), 1)
		r.ShopperID = r.Decision
		is(t, "outcome", e.Outcome(t.Context(), "home", r.Decision, decide(t, e, "home", r, 0).IDs()[0], 1), nil)
		wait(t, e)
	}
	for waiting.Load() == 0 || f.Sequence() < 50 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	if s := statsOf(t, f, "home"); s.Decisions == 0 || f.Sequence() >= e.Sequence() {
		t.Errorf("at entry %d of %d, %+v", f.Sequence(), e.Sequence(), s)
	}
	close(gate)
	reach(t, f, e.Sequence())
	if string(snapshot(t, f)) != string(snapshot(t, e)) {
		t.Error("it has another state")
	}
}

// hesitant is a log that is read slowly, so that learners fall asleep between its entries.
type hesitant struct{ *memlog.Store }

func (s hesitant) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for entry, err := range s.Store.Entries(ctx, from) {
			time.Sleep(time.Millisecond)
			if !yield(entry, err) {
				return
			}
		}
	}
}

// Learners learn unasked: the writer's, a replay's, a follower's, and a new leader's.
func TestLearnersAreWoken(t *testing.T) {
	const rounds = 10
	store := &held{new(memlog.Store), make(chan struct{}, 100)}
	e := opened(t, engine.Options{Store: store.Store, Build: buildToy})
	put(t, e, "home", toys)
	f, heir := follower(t, engine.Options{Store: store.Store, Build: buildToy}),
		follower(t, engine.Options{Store: store, Build: buildToy})
	for i := range rounds {
		a := decide(t, e, "home", stock(fmt.Sprint("d", i), 1), 0)
		is(t, "outcome", e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], 1), nil)
	}
	is(t, "leading", heir.Lead(t.Context(), nil), nil)
	for name, learns := range map[string]*engine.Engine{
		"writer":   e,
		"replay":   opened(t, engine.Options{Store: hesitant{upTo(t, store, e.Sequence())}, Build: buildToy}),
		"follower": f,
		"heir":     heir,
	} {
		for end := time.Now().Add(5 * time.Minute); statsOf(t, learns,
			"home").Learned < rounds; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: it has learned %d rounds of %d", name, statsOf(t, learns, "home").Learned, rounds)
			}
		}
	}
}
