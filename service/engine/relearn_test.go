package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/health"
	"vitrine/service/offer"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// another is toys with another learner.
var another = strings.Replace(toys, `{}`, `{"name":"another"}`, 1)

func relearn(t testing.TB, e *engine.Engine, config string) {
	t.Helper()
	fatal.Or(e.Change(t.Context(), "home", []byte(config), engine.Change{Relearn: true}, 500))(t)
}

func exchange(t testing.TB, e *engine.Engine) {
	t.Helper()
	wait(t, e)
	if done, ended, err := e.Exchange(t.Context(), 600); err != nil || len(done) != 1 || ended != nil {
		t.Fatalf("exchanged %q, ended %q, %v", done, ended, err)
	}
	wait(t, e)
}

// learnedFrom plays the outcomes of a log to a learner, which refuses or panics as it likes.
func learnedFrom(t *testing.T, store *memlog.Store, l *toy) {
	t.Helper()
	offers, activated := map[string]*eventlog.Offered{}, map[string]bool{}
	observe := func(id string, choice int) {
		o := offers[id]
		n := len(o.ItemIDs)
		r := vitrine.Round{Context: &vitrine.Context{Features: mat.NewDense(n, o.Width, o.Features)},
			Choice: vitrine.Outside}
		for i := range n {
			r.Offer.Assortment = append(r.Offer.Assortment, i) // only items shown are recorded
		}
		if choice > 0 {
			r.Choice = vitrine.Choice(int(o.Shown[choice-1]) + 1)
		}
		before := l.level
		defer func() {
			if recover() != nil {
				l.level = before
			}
		}()
		_ = l.Observe(r)
	}
	for e := range events(t, store) {
		if e.Placement != "home" {
			continue
		}
		switch b := e.Body.(type) {
		case *eventlog.Offered:
			offers[b.Decision] = b
		case *eventlog.Chosen:
			observe(b.Decision, int(b.Choice))
		case *eventlog.Activated:
			activated[b.Decision] = true
		case *eventlog.Expired:
			if !offer.IsDeferred(offers[b.Decision]) || activated[b.Decision] {
				observe(b.Decision, 0)
			}
		}
	}
}

// A second learner learns the log's rounds, from all earlier learners, and new ones, while the first one decides. Then
// it decides as if it had seen all outcomes. The first one becomes a version.
func TestRelearning(t *testing.T) {
	store := new(memlog.Store)
	o := engine.Options{Store: store, Build: buildToy}
	e := opened(t, o)
	put(t, e, "other", toys)
	put(t, e, "home", toys)
	n := 0
	trade := func(rounds int) {
		for range rounds {
			n++
			one(t, e, "home", fmt.Sprint("d", n), []float64{1, 4, poison, 2, sour, 0}[n%6])
			one(t, e, "other", fmt.Sprint("o", n), 5)
		}
	}
	trade(300) // more than a checkpoint
	r := stock("deferred", 3)
	r.Defer = true
	decide(t, e, "home", r, 1)
	r = stock("activated", 3)
	r.Defer = true
	decide(t, e, "home", r, 1)
	is(t, "activating", e.Activate(t.Context(), "home", "activated", 2), nil)
	put(t, e, "home", strings.Replace(toys, `{}`, `{},"seed":2`, 1)) // begins again
	trade(20)
	decide(t, e, "home", stock("late", 3), 1)
	fatal.Or(e.Expire(t.Context(), 1<<60))(t)
	decide(t, e, "home", stock("open", 3), 1<<60)
	relearn(t, e, another)
	relearn(t, e, another) // again: no change
	if c, _ := e.Config("home"); c.Seed != 2 {
		t.Errorf("the first learner does not decide: %s", c.Canonical())
	}
	if c, ok := e.Relearning("home"); !ok || c.Policy["name"] != "another" || c.Warnings != nil {
		t.Error("there is no relearning")
	}
	last := func() api.PastEvent { t.Helper(); return fatal.Or(e.History(t.Context(), "home"))(t).Changes[0] }
	begun := last()
	trade(30)
	wait(t, e)
	s, _ := e.Stats("home")
	if p := s.Relearning; p == nil || p.Learned+p.Skipped != s.Outcomes+s.Expired || p.Skipped < 100 ||
		p.Entry != p.To || p.From != 2 || !p.Since.Equal(time.Unix(0, 500)) || s.Learned >= p.Learned {
		t.Errorf("%+v, %+v", s, s.Relearning)
	}
	exchange(t, e)
	end := last()
	if begun.Kind != "relearning-begun" || end.Kind != "swapped" || len(begun.Fields) != 2 {
		t.Errorf("the history lists %+v, then %+v", begun, end)
	}
	expect.Equal(t, end.Fields, begun.Fields, "what changed")
	fatal.If(t, e.Outcome(t.Context(), "home", "open", "", 1<<60))
	trade(5)
	wait(t, e)

	want := &toy{size: 1}
	learnedFrom(t, store, want)
	a := decide(t, e, "home", stock("probe", 2), 1<<60)
	if p := 1 / (1 + math.Exp(-math.Abs(0.1-want.level))); math.Abs(a.Outside-p) > 1e-12 { // of the nearer one
		t.Errorf("p(0|S) = %v, want %v", a.Outside, p)
	}
	s, _ = e.Stats("home")
	versions, _ := e.Versions("home", 0)
	if s.Relearning != nil || s.Stale != 1 || len(versions) != 2 || versions[1].Note != "before a change of "+
		"policy/name, seed" {
		t.Errorf("%+v, %+v", s, versions)
	}
	replays(t, e, o)
	is(t, "rolling back", e.RollBack(t.Context(), "home", versions[1].Version, nil, 700), nil)
	if c, _ := e.Config("home"); c.Seed != 2 {
		t.Errorf("rolled back to %s", c.Canonical())
	}
}

// A restart in the middle of a relearning goes on where it was, from any snapshot, and gives the state that no restart
// gives.
func TestRelearningGoesOn(t *testing.T) {
	store, gate := new(memlog.Store), make(chan struct{})
	var waiting atomic.Int64
	rounds := 0
	build := func(s setup.Spec) (vitrine.Learner, error) {
		l := &toy{size: s.Size}
		if strings.Contains(string(s.Policy), "another") {
			l.before = func(*vitrine.Context) {
				if rounds++; rounds > 300 {
					waiting.Add(1)
					<-gate
				}
			}
		}
		return l, nil
	}
	e := opened(t, engine.Options{Store: store, Build: build})
	put(t, e, "home", toys)
	for i := range 400 {
		one(t, e, "home", fmt.Sprint("d", i), []float64{1, 4, poison, 2, sour, 0}[i%6])
	}
	relearn(t, e, another)
	for waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if s, _ := e.Stats("home"); s.Relearning == nil || s.Relearning.Entry >= s.Relearning.To ||
		s.Lag > 0 && s.Relearning.Learned == 0 {
		t.Errorf("%+v", s.Relearning)
	}
	if done, ended, err := e.Exchange(t.Context(), 1); done != nil || ended != nil || err != nil {
		t.Errorf("it is exchanged before it has caught up: %q, %q, %v", done, ended, err)
	}
	one(t, e, "home", "meanwhile", 3)
	var w bytes.Buffer
	if _, behind, err := e.WriteSnapshot(t.Context(), &w, time.Minute); behind != nil || err == nil && w.Len() == 0 {
		t.Fatalf("behind %q, %v", behind, err)
	}
	oldest, err := state.SnapshotOldest(w.Bytes())
	if err != nil || oldest != 1 || e.Needs(e.Sequence()) != 1 {
		t.Errorf("the snapshot needs entry %d, and the engine %d, %v", oldest, e.Needs(e.Sequence()), err)
	}
	one(t, e, "home", "later", 3)
	close(gate)
	exchange(t, e)
	one(t, e, "home", "last", 3)
	want := snapshot(t, e)
	for what, from := range map[string][]byte{"the log": nil, "the snapshot": w.Bytes(), "the end": want} {
		if string(replayed(t, engine.Options{Store: store, Build: buildToy, Snapshot: from})) != string(want) {
			t.Errorf("%s gives another state", what)
		}
	}
	s, _ := e.Stats("home")
	slow := func(s setup.Spec) (vitrine.Learner, error) {
		return &toy{size: s.Size, before: func(*vitrine.Context) { time.Sleep(20 * time.Microsecond) }}, nil
	}
	again := opened(t, engine.Options{Store: copied(t, store), Build: slow})
	if have, _ := again.Stats("home"); have.Learned != s.Learned {
		t.Errorf("after a restart a learner of %d rounds decides, want %d", have.Learned, s.Learned)
	}
	expect.Equal(t, e.Needs(e.Sequence()), math.MaxUint64, "entry n is needed")
	expect.Equal(t, e.Needs(10), 1, "entry n is needed for a replay from entry 10 on")
}

// A relearning ends with the earlier configuration, a reset, the end of the placement, or a broken learner. Other changes
// and rollbacks wait.
func TestRelearningEnds(t *testing.T) {
	b := budget.New(1 << 30)
	size := func(setup.Spec) (setup.Size, error) { return setup.Size{Learner: 1000, State: 100}, nil }
	store := new(memlog.Store)
	var broken atomic.Bool
	e := opened(t, engine.Options{Store: store, Size: size, Budget: b,
		Build: func(s setup.Spec) (vitrine.Learner, error) {
			if strings.Contains(string(s.Policy), "another") && broken.Load() {
				return &fragile{toy{size: s.Size}, &broken}, nil
			}
			return &toy{size: s.Size}, nil
		}})
	put(t, e, "home", toys)
	alone := charged(t, e, "home")
	one(t, e, "home", "a", 1)
	version, err := e.Keep(t.Context(), "home", "", 0)
	fatal.If(t, err)
	one(t, e, "home", "b", 1)
	ends := func(what string, f func() error) {
		t.Helper()
		relearn(t, e, another)
		c, _ := setup.Parse([]byte(another))
		expect.Equal(t, charged(t, e, "home")-alone, 1200+int64(c.Bound()), "a second learner is charged")
		_, err := e.Change(t.Context(), "home", []byte(strings.Replace(toys, `{}`, `{},"seed":9`, 1)),
			engine.Change{Relearn: true}, 0)
		is(t, "another change", err, engine.ErrRelearning)
		for _, reset := range []bool{false, true} { // it would be lost with the exchange
			_, err = e.Change(t.Context(), "home", []byte(strings.Replace(toys, `{}`, `{},"max_versions":3`, 1)),
				engine.Change{Reset: reset}, 0)
			is(t, "a change that no learner sees", err, engine.ErrRelearning)
		}
		is(t, "a roll back", e.RollBack(t.Context(), "home", version, nil, 0), engine.ErrRelearning)
		is(t, what, f(), nil)
		if _, ok := e.Relearning("home"); ok {
			t.Errorf("%s: it goes on", what)
		}
		if u := b.Usage().Placements; len(e.Placements()) > 0 && u != charged(t, e, "home") || charge(e) != u {
			t.Errorf("%s: %d bytes are charged", what, u)
		}
	}
	ends("the configuration of before", func() error {
		_, err := e.Put(t.Context(), "home", []byte(toys), 0)
		return err
	})
	ends("a reset", func() error {
		_, err := e.Change(t.Context(), "home", []byte(strings.Replace(toys, `{}`, `{},"seed":9`, 1)),
			engine.Change{Reset: true}, 0)
		return err
	})
	put(t, e, "home", toys)
	one(t, e, "home", "c", poison)
	wait(t, e)
	broken.Store(true)
	ends("a learner that breaks", func() error {
		wait(t, e)
		_, ended, err := e.Exchange(t.Context(), 0)
		if len(ended) != 1 {
			return fmt.Errorf("ended %q, %w", ended, err)
		}
		return err
	})
	broken.Store(false)
	_, err = e.Change(t.Context(), "home", []byte(strings.Replace(another, `"x"`, `"y"`, 1)),
		engine.Change{Relearn: true}, 0)
	is(t, "other features", err, api.ErrInvalid)
	ends("a delete", func() error { return e.Delete(t.Context(), "home", nil, 0) })
	e.Close()
	replayed(t, engine.Options{Store: store, Build: buildToy})
}

// charge returns the charge of the placement home, or 0.
func charge(e *engine.Engine) int64 {
	s, err := e.Stats("home")
	if err != nil {
		return 0
	}
	return s.Charged
}

// If the log loses entries that a second learner needs, it never decides, and a replay that cannot repeat its learning
// is refused.
func TestRelearningOfALogThatIsCut(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", toys)
	for i := range 10 {
		one(t, e, "home", fmt.Sprint("d", i), 1)
	}
	base := snapshot(t, e)
	relearn(t, e, another)
	wait(t, e)
	middle := snapshot(t, e)
	exchange(t, e)
	after := snapshot(t, e)
	is(t, "removing", store.TruncateBefore(t.Context(), 5), nil)
	for what, from := range map[string][]byte{"before": base, "in the middle": middle} {
		expect.Fails(engine.Open(t.Context(), engine.Options{Store: store, Build: buildToy,
			Snapshot: from}))(t, eventlog.ErrRemoved, what)
	}
	again := opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: after})
	relearn(t, again, toys) // from the rest
	wait(t, again)
	s, err := again.Stats("home")
	if err != nil || s.Relearning.From != 5 || s.Relearning.Learned != 8 {
		t.Errorf("%+v, %v", s.Relearning, err)
	}
	is(t, "giving up", failed(again.Put(t.Context(), "home", []byte(another), 0)), nil)
	is(t, "removing", store.TruncateBefore(t.Context(), 9), nil)
	again.Close()

	cut := &cutting{Store: store}
	last := opened(t, engine.Options{Store: cut, Build: buildToy, Snapshot: after})
	cut.isCut.Store(true)
	relearn(t, last, toys)
	wait(t, last)
	if done, ended, err := last.Exchange(t.Context(), 0); done != nil || len(ended) != 1 || err != nil {
		t.Errorf("exchanged %q, ended %q, %v", done, ended, err)
	}
}

// A second learner that finds much fewer rounds in the log than the present learner learned waits until it is accepted.
func TestRelearningOfFewRoundsWaits(t *testing.T) {
	another := strings.Replace(another, `{`, `{"mode":"shadow",`, 1)
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", strings.Replace(toys, `"max_size":1`, `"max_size":2`, 1))
	for i := range 10 {
		one(t, e, "home", fmt.Sprint("d", i), 1)
	}
	wait(t, e)
	after := snapshot(t, e)
	e.Close()
	is(t, "removing", store.TruncateBefore(t.Context(), 16), nil)
	e = opened(t, engine.Options{Store: store, Build: buildToy, Snapshot: after})
	var loss *engine.LossError
	if _, err := e.Put(t.Context(), "home", []byte(another), 0); !errors.As(err, &loss) || loss.LogFrom != 16 {
		t.Errorf("%v, %+v", err, loss)
	}
	v, err := e.Preview(t.Context(), "home", []byte(another), engine.Change{}, 1e18)
	if err != nil || v.Lost == nil || v.Lost.LogFrom != 16 {
		t.Errorf("%+v, %v", v.Lost, err)
	}
	other := []byte(strings.Replace(another, `"x"`, `"y"`, 1)) // of which the log holds no rows
	if _, err := e.Put(t.Context(), "home", other, 0); !errors.As(err, &loss) || loss.LogFrom != 0 {
		t.Errorf("other features: %v, %+v", err, loss)
	}
	accept := func(config string) error {
		return failed(e.Change(t.Context(), "home", []byte(config), engine.Change{Accept: true}, 0))
	}
	is(t, "accepting no learner", accept(another), api.ErrInvalid)
	relearn(t, e, another)
	if v, err := e.Preview(t.Context(), "home", []byte(another), engine.Change{}, 0); err != nil ||
		v.Change != api.PreviewNone || v.Placement.Warnings != nil || !strings.Contains(v.Placement.Notes[0], "baseline") {
		t.Errorf("%+v, %v", v, err)
	}
	wait(t, e)
	if done, ended, err := e.Exchange(t.Context(), 0); done != nil || ended != nil || err != nil {
		t.Errorf("exchanged %q, ended %q, %v", done, ended, err)
	}
	s, err := e.Stats("home")
	if err != nil || s.Learned != 10 || s.Relearning == nil || s.Relearning.Learned != 3 || s.Relearning.MaxSize != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	if h := health.Of(&s, nil); len(h) == 0 || h[0].Level != "warning" || !strings.HasPrefix(h[0].Text, "The second learner "+
		"has learned 3 rounds from the log, and the present one 10 rounds. It decides once it has learned half as many, or "+
		"when you accept it: PUT its configuration with relearn=accept") {
		t.Errorf("%+v", h)
	}
	is(t, "accepting another learner", accept(toys), api.ErrInvalid)
	is(t, "accepting for a placement that changed meanwhile", failed(e.Change(t.Context(), "home", []byte(another),
		engine.Change{Accept: true, Match: func(uint64) error { return engine.ErrConflict }}, 0)), engine.ErrConflict)
	is(t, "accepting", accept(another), nil)
	is(t, "accepting again", accept(another), nil)
	if s, _ := e.Stats("home"); s.Relearning != nil || s.Learned != 3 {
		t.Errorf("%+v", s)
	}
}

func failed[T any](_ T, err error) error { return err }

// cutting is a log that removes entries while they are read.
type cutting struct {
	*memlog.Store
	isCut atomic.Bool
}

func (c *cutting) Extent(ctx context.Context) (eventlog.Extent, error) {
	x, err := c.Store.Extent(ctx)
	if c.isCut.Load() {
		x.First = 6 // which is gone a moment later
	}
	return x, err
}

// A relearning of a log that does not answer is refused, and no memory stays set aside for it.
func TestRelearningOfALogThatDoesNotAnswer(t *testing.T) {
	b := budget.New(1 << 40)
	e := opened(t, engine.Options{Store: mute{new(memlog.Store)}, Build: buildToy, Budget: b})
	put(t, e, "home", toys)
	one(t, e, "home", "d", 1)
	before := b.Usage().Placements
	_, err := e.Change(t.Context(), "home", []byte(another), engine.Change{Relearn: true}, 0)
	is(t, "relearning", err, engine.ErrUnread)
	if after := b.Usage().Placements; after != before {
		t.Errorf("%d bytes are set aside, %d before", after, before)
	}
}

// mute is a log that does not tell its extent.
type mute struct{ *memlog.Store }

func (mute) Extent(context.Context) (eventlog.Extent, error) {
	return eventlog.Extent{}, errors.New("no answer")
}

// A learner that takes over before it read the last entries decides by the entries it read.
func TestRelearnedPolicyDecidesAtOnce(t *testing.T) {
	gate, rounds := make(chan struct{}), new(atomic.Int64)
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: func(s setup.Spec) (vitrine.Learner, error) {
		l := &toy{size: s.Size}
		if strings.Contains(string(s.Policy), "another") {
			l.before = func(*vitrine.Context) {
				if rounds.Add(1) == 130 {
					<-gate
				}
			}
		}
		return l, nil
	}})
	put(t, e, "home", toys)
	for i := range 200 {
		one(t, e, "home", fmt.Sprint("d", i), 4)
	}
	relearn(t, e, another)
	for rounds.Load() < 130 {
		time.Sleep(time.Millisecond)
	}
	if done, ended, err := e.Exchange(t.Context(), 0); len(done) != 1 || ended != nil || err != nil {
		t.Fatalf("exchanged %q, ended %q, %v", done, ended, err)
	}
	r := &api.Request{Items: []api.Item{{ID: "first", Features: api.Values{api.Number("x", 0)}},
		{ID: "learned", Features: api.Values{api.Number("x", 16)}}}}
	if a := choose(t, e, r, 2); a.IDs()[0] != "learned" {
		t.Errorf("the learner decides as if it had learned nothing: %q", a.IDs())
	}
	close(gate)
	wait(t, e)
}

// A second learner is given up while a snapshot waits for it: the snapshot would not be of the bytes of a replay.
func TestSnapshotOfALearnerGivenUp(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	build := func(s setup.Spec) (vitrine.Learner, error) {
		if strings.Contains(string(s.Policy), "another") {
			return gated(gate, new(atomic.Int64))(s)
		}
		return buildToy(s)
	}
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: build})
	put(t, e, "home", toys)
	one(t, e, "home", "a", 1)
	wait(t, e)
	relearn(t, e, another)
	snapshot := make(chan error, 1)
	go func() {
		_, _, err := e.Snapshot(t.Context())
		snapshot <- err
	}()
	select {
	case err := <-snapshot:
		t.Fatalf("%v, without the second learner's round", err)
	case <-time.After(100 * time.Millisecond): // it waits
	}
	put(t, e, "home", toys)
	gate <- struct{}{}
	expect.Part(<-snapshot)(t, "a learner of home ended before entry 4")
}
