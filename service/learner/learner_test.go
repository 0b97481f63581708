package learner_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"vitrine"
	"vitrine/bandit"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// A full fit that a test began ends by itself.
func TestMain(m *testing.M) {
	fits := reflect.TypeFor[bandit.BMA]().PkgPath() + ".(*fit"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(fits+"ting).run.func1"),
		goleak.IgnoreAnyFunction(fits+"Job).start.func1"))
}

// ledger is a learner that notes the features of the items that were shown, and further takes as negative numbers. Its
// policy is a copy of it.
type ledger struct {
	seen    []float64
	before  func(x float64) // of Observe
	saved   func() error    // of MarshalBinary
	fails   func() error    // of UnmarshalBinary
	noFirst bool            // there is no policy
	ballast int             // bytes of the state

	published func() // each policy
}

// Items with these features make a ledger panic, refuse the round, or skip its note.
const (
	poison = 13
	sour   = 17
	blank  = 0
)

func (l *ledger) Observe(r vitrine.Round) error {
	x := r.Context.Features.At(0, 0)
	if l.before != nil {
		l.before(x)
	}
	switch x {
	case sour:
		return errors.New("sour")
	case blank:
		return nil
	}
	l.seen = append(l.seen, x) // half done when it panics
	if x == poison {
		panic("poison")
	}
	for _, c := range r.More {
		l.seen = append(l.seen, -float64(c))
	}
	return nil
}

func (l *ledger) Policy() vitrine.Policy {
	if l.noFirst {
		return nil
	}
	if l.published != nil {
		l.published()
	}
	return ledger{seen: slices.Clone(l.seen)}
}

func (l *ledger) MarshalBinary() ([]byte, error) {
	if l.saved != nil {
		if err := l.saved(); err != nil {
			return nil, err
		}
	}
	return binary.Append(make([]byte, l.ballast), binary.LittleEndian, l.seen)
}

func (l *ledger) UnmarshalBinary(data []byte) error {
	if l.fails != nil {
		if err := l.fails(); err != nil {
			return err
		}
	}
	if len(data)%8 != 0 {
		return errors.New("not of a ledger")
	}
	l.seen = make([]float64, len(data[l.ballast:])/8)
	_, err := binary.Decode(data[l.ballast:], binary.LittleEndian, l.seen)
	return err
}

func (ledger) Offer(*vitrine.Context, *rand.Rand) vitrine.Offer { return vitrine.Offer{} }

// of builds copies of a ledger.
func of(l ledger) learner.Build {
	return func(setup.Spec) (vitrine.Learner, error) { own := l; return &own, nil }
}

func config(t testing.TB) *setup.Config {
	return fatal.Or(setup.Parse([]byte(`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ledger"}}`)))(t)
}

// cleaner is a test, or a check of a property.
type cleaner interface{ Cleanup(func()) }

// run starts a learner until the end of the test.
func run(t cleaner, l *learner.Learner, log eventlog.Log) *learner.Learner {
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(log, "home") }()
	t.Cleanup(func() { l.Stop(); <-ended })
	return l
}

func started(t *testing.T, build learner.Build) *learner.Learner {
	t.Helper()
	return run(t, fatal.Or(learner.New(build, config(t)))(t), nil)
}

// seen waits until a learner has done all tasks, and returns what the published policy has learned from.
func seen(l *learner.Learner) []float64 {
	<-l.Reached()
	return l.Current().Policy.(ledger).seen
}

// offered is a decision that shows an item with the given feature.
func offered(decision string, x float64) *eventlog.Offered {
	return &eventlog.Offered{Decision: decision, Candidates: 1, ItemIDs: []string{"i"}, Width: 1,
		Features: []float64{x}, Shown: []int32{0}, Propensity: 1, Mode: offer.ByPolicy,
		Answer: new(offer.Estimates).Append(nil)}
}

// observe gives a learner the rounds of items with the given features, after the entry.
func observe(l *learner.Learner, after uint64, features ...float64) {
	for k, x := range features {
		l.Observe(after+uint64(k)+1, 0, &offer.Offer{Offered: offered("d", x)}, 1, nil)
	}
	l.Wake()
}

func write(t *testing.T, log *memlog.Store, bodies ...eventlog.Body) {
	t.Helper()
	for _, body := range bodies {
		e := &eventlog.Event{Placement: "home", Body: body}
		fatal.Or(log.Append(t.Context(), fatal.Or(e.Encode(nil))(t)))(t)
	}
}

func encoded(s learner.State) []byte {
	f := fields.Writer(nil)
	if s.Fields(&f); f.Err() != nil {
		panic(f.Err())
	}
	return f.Rest()
}

func restored(data []byte, build learner.Build, c *setup.Config, beginAgain bool) (*learner.Learner, error) {
	var s learner.State
	f := fields.Reader(data)
	if s.Fields(&f); f.Close() != nil {
		return nil, f.Err()
	}
	return learner.Restore(&s, build, c, beginAgain)
}

// Each round that a learner was given is learned or skipped, counts as its lag, or waits, at any moment.
func TestEachRoundIsCounted(t *testing.T) {
	const rounds, sales = 200, 10
	var l *learner.Learner
	gate := make(chan struct{})
	l = started(t, of(ledger{before: func(x float64) {
		<-gate
		if p := l.Progress(); p.Learned+p.Skipped+p.Lag+p.Waiting != rounds+sales {
			t.Errorf("%+v before the round %v of %d", p, x, rounds)
		}
	}}))
	observe(l, 0, slices.Repeat([]float64{1, sour}, rounds/2)...)
	for k := range uint64(sales) {
		l.Observe(rounds+1, k+1, &offer.Offer{Offered: offered("d", 1)}, 1, nil)
	}
	close(gate)
	for _, waiting := range []uint64{sales - 2, 0} { // two may be ahead of earlier decisions
		l.Wake()
		<-l.Reached()
		if p := l.Progress(); p.Learned != rounds/2+sales-waiting || p.Skipped != rounds/2 || p.Lag != 0 || p.Waiting != waiting {
			t.Errorf("%+v", p)
		}
		l.Settle(rounds+1, sales)
	}
}

// A round on which the learner panics is as if it had not been: the learner is back where it was, half done as it left
// its state, and goes on.
func TestAPanicSkipsTheRound(t *testing.T) {
	for _, rounds := range []int{3, 255, 256, 257, 600} { // around checkpoints
		l, want := started(t, of(ledger{})), []float64{}
		for i := range rounds {
			want = append(want, float64(1+i%7))
		}
		observe(l, 0, want...)
		observe(l, 1000, poison, sour, poison)
		observe(l, 2000, 1, 2)
		expect.List(t, seen(l), append(want, 1, 2), "after", rounds, "rounds it has seen")
		if p := l.Progress(); p.Learned != uint64(rounds+2) || p.Skipped != 3 || p.Since != 2 || p.Broken ||
			p.Problem != "panic: poison" || p.Entry != 2002 || p.Lag != 0 {
			t.Errorf("after %d rounds: %+v", rounds, p)
		}
	}
}

// A long problem stays UTF-8, which JSON needs.
func TestALongProblem(t *testing.T) {
	for n := range 4 {
		l := started(t, of(ledger{before: func(float64) {
			panic(strings.Repeat("x", n) + strings.Repeat("±", learner.MaxProblem))
		}}))
		observe(l, 0, 1)
		seen(l)
		if p := l.Progress().Problem; !utf8.ValidString(p) || len(p) > learner.MaxProblem+3 {
			t.Errorf("%q", p)
		}
	}
}

// If the learner cannot be rebuilt after a panic, its last good policy stays, until it returns to a version.
func TestABrokenLearner(t *testing.T) {
	broken := false
	log := new(memlog.Store)
	for n := range 5 {
		write(t, log, offered(fmt.Sprint(n), 1))
	}
	write(t, log, &eventlog.Chosen{Decision: "4"})
	l := run(t, fatal.Or(learner.New(of(ledger{
		before: func(x float64) { broken = broken || x == poison },
		fails: func() error {
			if broken {
				return errors.New("no more")
			}
			return nil
		},
	}), config(t)))(t), log)
	observe(l, 0, 1)
	l.Keep(1)
	observe(l, 1, 2)
	seen(l)
	observe(l, 2, poison, 4)
	if got, p := seen(l), l.Progress(); !slices.Equal(got, []float64{1, 2}) || !p.Broken || p.Skipped != 2 ||
		p.Problem != "after panic: poison the learner could not be restored: no more" || l.Current().Entry != 2 {
		t.Errorf("it has seen %v: %+v", got, p)
	}
	l.CatchUp(6, learner.Gap{After: 4, From: 1, Rounds: 1, Doubtful: earnings.Doubt{From: 5, Until: 6}})
	<-l.Reached()
	if p := l.Progress(); p.Skipped != 3 || !strings.HasSuffix(p.Problem, "no more") {
		t.Errorf("after a round in doubt: %+v", p)
	}
	broken = false
	l.ReturnTo(5, 1)
	observe(l, 5, 6)
	if got, p := seen(l), l.Progress(); !slices.Equal(got, []float64{1, 6}) || p.Broken || p.Learned != 2 {
		t.Errorf("after the return it has seen %v: %+v", got, p)
	}
}

// A learner that cannot be saved is broken, and says so in its state.
func TestALearnerThatCannotBeSaved(t *testing.T) {
	saves := 0
	l := started(t, of(ledger{saved: func() error {
		if saves++; saves > 1 {
			return errors.New("not this one")
		}
		return nil
	}}))
	observe(l, 0, 1)
	if s, ok := <-l.Freeze(false); !ok || !s.Broken || !strings.Contains(s.Problem, "cannot be saved: not this one") ||
		s.IsBehind() {
		t.Errorf("%v: %+v", ok, s.Progress)
	}
}

func TestNewChecksTheLearner(t *testing.T) {
	for want, build := range map[string]learner.Build{
		"/policy: no":        func(setup.Spec) (vitrine.Learner, error) { return nil, errors.New("no") },
		"/policy: panic: oh": func(setup.Spec) (vitrine.Learner, error) { panic("oh") },
		"/policy: the learner cannot be saved, so": func(setup.Spec) (vitrine.Learner, error) {
			return struct{ vitrine.Learner }{&ledger{}}, nil
		},
		"/policy: the learner has no first policy": of(ledger{noFirst: true}),
		"/policy: the learner cannot be saved: no": of(ledger{saved: func() error { return errors.New("no") }}),
	} {
		if _, err := learner.New(build, config(t)); err == nil || !strings.HasPrefix(err.Error(), want) ||
			!errors.Is(err, api.ErrInvalid) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// A learner is saved after 256 rounds, after rounds of as many bytes as its state if that is large, and sooner if
// rounds take three quarters of the bound.
func TestCheckpoints(t *testing.T) {
	each := learner.RoundBytes(&offer.Offer{Offered: offered("", 1)})
	for _, c := range []struct{ state, bound, want int }{{0, 1000, 256}, {300, 1000, 300}, {150, 1000, 256},
		{300, 200, 151}} {
		rounds, maximum := 0, 0
		l := started(t, of(ledger{
			ballast: c.state * each / 8 * 8,
			before:  func(float64) { rounds++; maximum = max(maximum, rounds) },
			saved:   func() error { rounds = 0; return nil },
		}))
		l.SetBound(c.bound * each)
		observe(l, 0, make([]float64, 700)...)
		if <-l.Reached(); maximum != c.want {
			t.Errorf("a state of %d rounds is saved after %d rounds, want %d", c.state, maximum, c.want)
		}
	}
}

// An idle learner is woken if there is no room for another round.
func TestAFullQueueWakes(t *testing.T) {
	one := &offer.Offer{Offered: offered("d", 1)}
	each := learner.RoundBytes(one)
	for name, more := range map[string]func(*learner.Learner){
		"Observe":   func(l *learner.Learner) { l.Observe(2, 0, one, 0, nil) },
		"AwaitRoom": func(l *learner.Learner) { l.AwaitRoom(each) },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := started(t, of(ledger{}))
			l.SetBound(each * 3 / 2)
			synctest.Wait() // until it waits for tasks
			if !l.HasRoom(0, 2*each) || l.HasRoom(each, each) {
				t.Errorf("%s: an empty queue has room for one round of any size, and for no two", name)
			}
			l.Observe(1, 0, one, 0, nil)
			synctest.Wait()
			if p := l.Progress(); p.Learned != 0 || p.Lag != 1 || l.HasRoom(0, each) {
				t.Errorf("%s: a round wakes the learner: %+v", name, p)
			}
			more(l)
			synctest.Wait()
			if p := l.Progress(); p.Learned == 0 { // once awake, it may take the second round, too
				t.Errorf("%s: %+v", name, p)
			}
		})
	}
}

// A queue that was long frees its memory once it is empty.
func TestAQueueGivesItsMemoryBack(t *testing.T) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	gate := make(chan struct{})
	l := started(t, of(ledger{before: func(float64) { <-gate }}))
	const long = 20_000 // rounds, of more than 500 bytes each
	l.SetBound(math.MaxInt)
	before := heap()
	observe(l, 0, make([]float64, long)...)
	close(gate)
	seen(l)
	<-l.Freeze(false)
	<-l.Reached()
	after := heap()
	for deadline := time.Now().Add(10 * time.Second); after > before+100*long &&
		time.Now().Before(deadline); after = heap() {
		runtime.Gosched() // the learner's stack may hold the last rounds until it waits
	}
	if after > before+100*long {
		t.Errorf("the empty queue takes %d bytes", after-before)
	}
	runtime.KeepAlive(l)
}

// A stopped learner drops its rounds, and its callers do not wait.
func TestStop(t *testing.T) {
	gate := make(chan struct{})
	l := started(t, of(ledger{before: func(float64) { <-gate }}))
	observe(l, 0, 1, 2, 3)
	before := l.Reached()
	l.Stop()
	close(gate)
	<-before
	<-l.Reached()
	if s, ok := <-l.Freeze(false); ok {
		t.Errorf("a learner that has ended is saved: %+v", s)
	}
	if p := l.Progress(); p.Learned > 1 {
		t.Errorf("it has learned: %+v", p)
	}
}

// A version consists of its rounds, its policy, and the substitute while a guard distrusts the present policy.
func TestVersions(t *testing.T) {
	l := started(t, of(ledger{}))
	observe(l, 0, 1, 2)
	l.Keep(2)
	observe(l, 2, 3)
	<-l.Reached()
	rounds, ok := l.Learned(2)
	if _, none := l.Learned(3); rounds != 2 || !ok || none {
		t.Errorf("version 2 has learned %d rounds, %v; version 3 %v", rounds, ok, none)
	}
	for entry, want := range map[uint64]learner.Published{2: {Policy: ledger{seen: []float64{1, 2}}, Entry: 2},
		3: *l.Current(), 9: *l.Current()} {
		if got := l.PolicyOf(entry); got.Entry != want.Entry || !slices.Equal(got.Policy.(ledger).seen,
			want.Policy.(ledger).seen) {
			t.Errorf("the policy of %d is %+v", entry, got)
		}
	}
	l.SetSubstitute(2)
	<-l.Reached()
	if s := l.Substitute(); s == nil || s.Entry != 2 || l.Current().Entry != 3 {
		t.Errorf("the substitute is %+v", s)
	}
	if l.ClearSubstitute(); l.Substitute() != nil {
		t.Error("the substitute stays")
	}
	l.Retire()
	<-l.Reached()
	if l.Current().Policy != nil {
		t.Error("a learner that has retired has a policy")
	}
	<-l.Show(9)
	if got := seen(l); len(got) != 0 {
		t.Errorf("without the version it shows %v", got)
	}
	<-l.Show(2)
	expect.List(t, seen(l), []float64{1, 2}, "version 2 shows")
	l.ReturnTo(7, 2)
	observe(l, 7, 4)
	l.Forget(2)
	if got := seen(l); !slices.Equal(got, []float64{1, 2, 4}) || l.Progress().Learned != 3 {
		t.Errorf("after the return it has seen %v: %+v", got, l.Progress())
	}
	<-l.Freeze(false)
	<-l.Reached()
	if _, ok := l.Learned(2); ok {
		t.Error("version 2 is not forgotten")
	}
}

// Whenever a learner is saved, at once or when it gets to it, the state and the later tasks give what all tasks give.
func TestSavedStates(t *testing.T) {
	c := config(t)
	rapid.Check(t, func(rt *rapid.T) {
		l := run(rt, fatal.Or(learner.New(of(ledger{}), c))(t), nil)
		others := []*learner.Learner{}
		entry, versions := uint64(0), []uint64{}
		each := func(do func(l *learner.Learner)) {
			for _, l := range append(others, l) {
				do(l)
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "tasks") {
			entry++
			switch what := rapid.IntRange(0, 9).Draw(rt, "what"); {
			case what == 0:
				versions = append(versions, entry)
				each(func(l *learner.Learner) { l.Keep(entry) })
			case what == 1 && len(versions) > 0:
				v := versions[0]
				versions = versions[1:]
				each(func(l *learner.Learner) { l.Forget(v) })
			case what == 2 && len(versions) > 0:
				each(func(l *learner.Learner) { l.ReturnTo(entry, versions[0]) })
			case what == 3 && len(versions) > 0:
				each(func(l *learner.Learner) { l.Retire(); l.ReturnTo(entry, versions[0]) })
			case what == 4 && len(others) < 5:
				s := l.View()
				if rapid.Bool().Draw(rt, "patient") {
					s = <-l.Freeze(false)
				}
				expect.List(fatal.T(rt), s.Versions(), versions, "the state has the versions")
				others = append(others, run(rt, fatal.Or(restored(encoded(s), of(ledger{}), c, false))(t), nil))
			default:
				x := rapid.SampledFrom([]float64{1, 2, 3, poison, sour}).Draw(rt, "x")
				each(func(l *learner.Learner) { observe(l, entry-1, x) })
			}
		}
		want := <-l.Freeze(false)
		for _, other := range others {
			if got := <-other.Freeze(false); !bytes.Equal(encoded(got), encoded(want)) ||
				!slices.Equal(seen(other), seen(l)) {
				rt.Fatalf("the state of %+v is %+v", want, got)
			}
		}
	})
}

// Only one state without a waiting caller is requested at a time.
func TestFreezeOnce(t *testing.T) {
	gate := make(chan struct{})
	l := started(t, of(ledger{before: func(float64) { <-gate }}))
	observe(l, 0, 1)
	first := l.Freeze(true)
	if _, ok := <-l.Freeze(true); ok {
		t.Error("the second request is answered")
	}
	if s := l.View(); !s.IsBehind() {
		t.Error("a state with a round that is not learned is not behind")
	}
	close(gate)
	if s := <-first; s.IsBehind() || s.Learned != 1 {
		t.Errorf("%+v", s)
	}
	if _, ok := <-l.Freeze(true); !ok {
		t.Error("the next request is not answered")
	}
}

// A learner with an unreadable saved state begins again if it may, and says how much it knew.
func TestBeginAgain(t *testing.T) {
	l := started(t, of(ledger{}))
	observe(l, 0, 1, 2)
	l.Keep(2)
	data := encoded(<-l.Freeze(false))
	later := of(ledger{fails: func() error { return errors.New("it is of an earlier program") }})
	expect.Refused(restored(data, later, config(t), false))(t, "a state that cannot be read is read")
	l = run(t, fatal.Or(restored(data, later, config(t), true))(t), nil)
	if got, p := seen(l), l.Progress(); len(got) != 0 || p.Forgotten != 2 || p.Learned != 0 ||
		!strings.Contains(p.Problem, "began again") {
		t.Errorf("it has seen %v: %+v", got, p)
	}
	if rounds, ok := l.Learned(2); rounds != 0 || !ok {
		t.Errorf("version 2 has %d rounds, %v", rounds, ok)
	}
}

// A learner that replays the log learns the outcomes of its placement's decisions once they are in force, of those that
// fit it, until it is given rounds.
func TestReplay(t *testing.T) {
	log := new(memlog.Store)
	deferred := offered("deferred", 5)
	deferred.Answer = (&offer.Estimates{Deferred: true}).Append(nil)
	later := *deferred
	later.Decision = "later"
	large := offered("large", 6)
	large.ItemIDs, large.Candidates, large.Features, large.Shown = []string{"i", "j"}, 2, []float64{6, 6}, []int32{0, 1}
	write(t, log, offered("first", 1), offered("a", 2), &eventlog.Chosen{Decision: "first", Choice: 1}, deferred,
		&later, large,
		&eventlog.Activated{Decision: "later"}, &eventlog.Expired{Decision: "deferred"},
		&eventlog.Expired{Decision: "later"}, &eventlog.Chosen{Decision: "large"},
		&eventlog.Chosen{Decision: "a"}, offered("gone", 7), &eventlog.Evicted{Decision: "gone"})
	other := &eventlog.Event{Placement: "other", Body: offered("a", 8)}
	fatal.Or(log.Append(t.Context(), fatal.Or(other.Encode(nil))(t)))(t)
	write(t, log, offered("open", 3), &eventlog.Chosen{Decision: "open"})

	l := fatal.Or(learner.New(of(ledger{}), config(t)))(t)
	l.Replay(2)
	run(t, l, log)
	expect.Equal(t, l.Needs(), 2, "it needs entry")
	l.Follow(13, nil)
	l.Follow(15, nil)
	if got, r := seen(l), l.Replaying(); !slices.Equal(got, []float64{5, 2}) ||
		r != (learner.Replaying{From: 2, Reached: 15, UpTo: 15}) {
		t.Errorf("up to entry 15 it has seen %v: %+v", got, r)
	}
	again := run(t, fatal.Or(restored(encoded(l.View()), of(ledger{}), config(t), false))(t), log)
	for _, l := range []*learner.Learner{l, again} {
		l.Follow(16, nil)
		l.EndReplay()
		observe(l, 16, 9)
		if got := seen(l); !slices.Equal(got, []float64{5, 2, 3, 9}) || l.Needs() != math.MaxUint64 {
			t.Errorf("it has seen %v, and needs %d", got, l.Needs())
		}
	}
	if !bytes.Equal(encoded(<-l.Freeze(false)), encoded(<-again.Freeze(false))) {
		t.Error("the state is another one")
	}
}

// failing is a log that cannot be read at first.
type failing struct {
	*memlog.Store
	fails int
}

func (f *failing) Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error] {
	if f.fails--; f.fails >= 0 {
		return func(yield func([]byte, error) bool) { yield(nil, errors.New("no answer")) }
	}
	return f.Store.Entries(ctx, from)
}

// A learner waits for a log that cannot be read. If the log no longer has what it needs, it is lost.
func TestLogsThatFail(t *testing.T) {
	log := new(memlog.Store)
	write(t, log, offered("a", 1), &eventlog.Chosen{Decision: "a"}, offered("b", 2), &eventlog.Chosen{Decision: "b"})
	synctest.Test(t, func(t *testing.T) {
		l := fatal.Or(learner.New(of(ledger{}), config(t)))(t)
		l.Replay(1)
		run(t, l, &failing{log, 3})
		l.Follow(4, nil)
		synctest.Wait()
		if p := l.Progress(); p.Problem != "no answer" {
			t.Errorf("%+v", p)
		}
		if got, p := seen(l), l.Progress(); !slices.Equal(got, []float64{1, 2}) || p.Problem != "" {
			t.Errorf("it has seen %v: %+v", got, p)
		}
	})
	fatal.If(t, log.TruncateBefore(t.Context(), 3))
	l := fatal.Or(learner.New(of(ledger{}), config(t)))(t)
	l.Replay(1)
	run(t, l, log)
	l.Follow(4, nil)
	if got := seen(l); len(got) != 0 || !l.Replaying().Lost {
		t.Errorf("it has seen %v: %+v", got, l.Replaying())
	}
	l = run(t, fatal.Or(learner.New(of(ledger{}), config(t)))(t), log)
	l.CatchUp(4, learner.Gap{From: 1, Rounds: 2})
	if got, p := seen(l), l.Progress(); len(got) != 0 || p.Skipped != 2 ||
		!strings.Contains(p.Problem, "2 rounds held back during a sales alarm are lost") {
		t.Errorf("it has seen %v: %+v", got, p)
	}
}

// A learner that catches up leaves out other variants, and skips decisions in doubt, or only expired ones. Its saved
// states count these, too.
func TestCatchUp(t *testing.T) {
	log := new(memlog.Store)
	for n, variant := range []string{"", "mine", "yours", "mine", "mine"} {
		o := offered(fmt.Sprint(n), float64(n+1))
		o.Answer = (&offer.Estimates{Variant: variant, Unit: 1}).Append(nil)
		end := eventlog.Body(&eventlog.Chosen{Decision: o.Decision})
		if n == 4 {
			end = &eventlog.Expired{Decision: o.Decision}
		}
		write(t, log, o, end)
	}
	for _, c := range []struct {
		gap     learner.Gap
		want    []float64
		skipped uint64
	}{
		{learner.Gap{From: 1}, []float64{1, 2, 3, 4, 5}, 0},
		{learner.Gap{From: 1, Only: []string{"mine"}}, []float64{2, 4, 5}, 0},
		{learner.Gap{From: 1, Doubtful: earnings.Doubt{From: 3, Until: 6}}, []float64{1, 4, 5}, 2},
		{learner.Gap{From: 1, Doubtful: earnings.Doubt{From: 3, Until: 10}, Only: []string{"mine"}}, nil, 3},
		{learner.Gap{From: 1, Doubtful: earnings.Doubt{From: 3, Until: 10, Expired: true}}, []float64{1, 2, 3, 4}, 1},
		{learner.Gap{From: 5, Only: []string{}}, nil, 0},
	} {
		l := run(t, fatal.Or(learner.New(of(ledger{}), config(t)))(t), log)
		l.CatchUp(10, c.gap)
		<-l.Reached()
		again := run(t, fatal.Or(restored(encoded(l.View()), of(ledger{}), config(t), false))(t), log)
		for _, l := range []*learner.Learner{l, again} {
			expect.List(t, seen(l), c.want, c.gap, "it has seen")
			expect.Equal(t, l.Progress().Skipped, c.skipped, c.gap, "it has skipped")
		}
	}
}

// The rounds of a long outage take no more memory than one, and a learner that is restored skips all at once.
func TestManyRoundsInDoubt(t *testing.T) {
	log := new(memlog.Store)
	const many = 1000
	for n := range many {
		write(t, log, offered(fmt.Sprint(n), 1), &eventlog.Chosen{Decision: fmt.Sprint(n)})
	}
	var policies atomic.Int64
	build := of(ledger{published: func() { policies.Add(1) }})
	l := run(t, fatal.Or(learner.New(build, config(t)))(t), log)
	l.CatchUp(2*many, learner.Gap{From: 1, Rounds: many, Doubtful: earnings.Doubt{From: 1, Until: 2 * many}})
	<-l.Reached()
	state := encoded(l.View())
	if len(state) > 300 {
		t.Errorf("its state has %d bytes", len(state))
	}
	policies.Store(0)
	again := run(t, fatal.Or(restored(state, build, config(t), false))(t), log)
	<-again.Reached()
	if p := again.Progress(); p != l.Progress() || p.Skipped != many || p.Learned != 0 || p.Problem != "" {
		t.Errorf("after a restart it has %+v, before %+v", p, l.Progress())
	}
	if policies.Load() > 10 {
		t.Errorf("a restart makes %d policies", policies.Load())
	}
}

// A learner that catches up, again after a restart, learns each round once: those after the gap has begun, and after
// the last one that it was given.
func TestCatchingUpAgain(t *testing.T) {
	log := new(memlog.Store)
	for n := range 20 { // the rounds end at entries 2, 4, …, 40
		write(t, log, offered(fmt.Sprint(n), 1), &eventlog.Chosen{Decision: fmt.Sprint(n)})
	}
	for _, c := range []struct{ given, after, want uint64 }{{0, 0, 20}, {10, 0, 15}, {0, 10, 15}, {30, 10, 5},
		{40, 0, 0}} {
		l := fatal.Or(learner.New(of(ledger{}), config(t)))(t)
		l.Begin(c.given)
		run(t, l, log)
		l.CatchUp(40, learner.Gap{After: c.after, From: 1, Rounds: 20})
		<-l.Reached()
		if got := l.Progress().Learned; got != c.want {
			t.Errorf("given up to %d, a learner has learned %d rounds after %d, want %d", c.given, got, c.after, c.want)
		}
	}
}

// Further takes wait for the learner in its saved state, too. Rounds with one take have the bytes that they would have
// without baskets.
func TestTakesInSavedStates(t *testing.T) {
	l := fatal.Or(learner.New(of(ledger{}), config(t)))(t)
	l.Observe(2, 0, &offer.Offer{Offered: offered("d", 1)}, 1, eventlog.Basket{{Place: 1, Quantity: 3, Value: 5}})
	observe(l, 2, 2)
	again := run(t, fatal.Or(restored(encoded(l.View()), of(ledger{}), config(t), false))(t), nil)
	expect.List(t, seen(again), []float64{1, -1, -1, 2}, "learned")
	plain := fatal.Or(learner.New(of(ledger{}), config(t)))(t)
	plain.Observe(2, 0, &offer.Offer{Offered: offered("d", 1)}, 1, eventlog.Basket{{Place: 1, Quantity: 1, Value: 5}})
	one := fatal.Or(learner.New(of(ledger{}), config(t)))(t)
	one.Observe(2, 0, &offer.Offer{Offered: offered("d", 1)}, 1, nil)
	if !bytes.Equal(encoded(plain.View()), encoded(one.View())) {
		t.Error("a basket of one unit waits in other bytes than a choice")
	}
}

// A state that is read is written as it was, and what is no state is an error.
func FuzzRestore(f *testing.F) {
	c := config(f)
	l := fatal.Or(learner.New(of(ledger{}), c))(f)
	add := func() { f.Add(encoded(l.View())) }
	l.Replay(2)
	add()
	l.Keep(1)
	l.Retire()
	l.ReturnTo(2, 1)
	l.Forget(1)
	observe(l, 2, 1)
	l.CatchUp(3, learner.Gap{After: 1, From: 1, Rounds: 1, Only: []string{"a"}})
	l.Follow(4, nil)
	l.EndReplay()
	add()
	l.Observe(5, 0, &offer.Offer{Offered: offered("d", 1)}, 1, eventlog.Basket{{Place: 1, Quantity: 3, Value: 5}})
	add()
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := restored(data, of(ledger{}), c, false)
		if err != nil {
			return
		}
		again := fatal.Or(restored(encoded(l.View()), of(ledger{}), c, false))(t)
		if !bytes.Equal(encoded(again.View()), encoded(l.View())) {
			t.Error("the state is written in another way")
		}
	})
}
