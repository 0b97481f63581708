package engine_test

import (
	"errors"
	"strings"
	"testing"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// shopOn makes decisions under ids that begin with a name, with their outcomes.
func shopOn(t *testing.T, e *engine.Engine, name string, decisions int) {
	t.Helper()
	for i := range decisions {
		id := name + string(rune('a'+i))
		decide(t, e, "home", stock(id, 3), 0)
		is(t, id, e.Outcome(t.Context(), "home", id, "", 1), nil)
	}
}

const home = `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`

// A snapshot belongs to one log, up to one entry. A snapshot of another log, or of a copy that grew separately, is
// refused, as is one without an identity once the log has one.
func TestForeignSnapshots(t *testing.T) {
	fill := func(store engine.Log, names ...string) *engine.Engine {
		e := opened(t, engine.Options{Store: store, Build: buildToy})
		put(t, e, "home", home)
		for _, name := range names {
			shopOn(t, e, name, 5)
		}
		return e
	}
	log := new(memlog.Store)
	e := fill(log, "ours")
	middle := snapshot(t, e)
	shopOn(t, e, "later", 5)
	want := snapshot(t, e)
	fork := snapshot(t, fill(new(memlog.Store), "ours", "fork"))
	early := snapshot(t, fill(unnamed{new(memlog.Store)}, "ours"))

	for name, c := range map[string]struct {
		snapshot []byte
		want     error
	}{
		"its own": {want, nil}, "its own of the middle": {middle, nil},
		"a fork's": {fork, eventlog.ErrForeign}, "without identity": {early, eventlog.ErrForeign},
	} {
		e, err := engine.Open(t.Context(), engine.Options{Store: log, Build: buildToy, Snapshot: c.snapshot})
		expect.Error(t, err, c.want, name)
		if err == nil {
			if have := snapshot(t, e); string(have) != string(want) {
				t.Errorf("%s: the state is another one", name)
			}
			e.Close()
		}
	}
	expect.Fails(engine.Open(t.Context(), engine.Options{Store: named{log}, Build: buildToy,
		Snapshot: want}))(t, eventlog.ErrForeign, "of another identity")
	short := new(memlog.Store)
	fill(short)
	expect.Fails(engine.Open(t.Context(), engine.Options{Store: short, Build: buildToy, Snapshot: want}))(t,
		eventlog.ErrBeyond, "of entries that the log has lost")
	expect.Fails(engine.Open(t.Context(), engine.Options{Store: named{short}, Build: buildToy,
		Snapshot: want}))(t, eventlog.ErrForeign, "of another log's later entries")
}

// A learner with an unreadable saved state begins again if it may, and says how much it knew.
func TestBeginAgain(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store, Build: buildToy})
	put(t, e, "home", home)
	shopOn(t, e, "x", 5)
	version, err := e.Keep(t.Context(), "home", "", 1)
	fatal.If(t, err)
	old := snapshot(t, e)
	e.Close()
	is(t, "removing", store.TruncateBefore(t.Context(), e.Sequence()+1), nil)

	o := engine.Options{Store: store, Build: func(s setup.Spec) (vitrine.Learner, error) {
		return &later{toy{size: s.Size}}, nil
	}, Snapshot: old}
	expect.Refused(engine.Open(t.Context(), o))(fatal.T(t), "a state that cannot be read is read")
	o.BeginAgain = true
	e = opened(t, o)
	check := func(e *engine.Engine, learned uint64) {
		t.Helper()
		is(t, "waiting", e.Wait(t.Context()), nil)
		s, err := e.Stats("home")
		if err != nil || s.Forgotten != 5 || s.Learned != learned || s.Broken || s.Decisions < 5 ||
			!strings.Contains(s.Problem, "began again") {
			t.Errorf("%+v, %v", s, err)
		}
	}
	check(e, 0)
	_, err = e.Decision(t.Context(), "home", "xa")
	is(t, "a decision that the log no longer has", err, engine.ErrNotFound)
	is(t, "rolling back", e.RollBack(t.Context(), "home", version, nil, 2), nil)
	shopOn(t, e, "y", 3)
	check(e, 3)
	o.Snapshot, o.BeginAgain = snapshot(t, e), false
	again := opened(t, o)
	check(again, 3)
	if string(snapshot(t, again)) != string(o.Snapshot) {
		t.Error("the state is another one")
	}
}

// later is a toy of a later program, which reads no state of a toy.
type later struct{ toy }

func (l *later) MarshalBinary() ([]byte, error) {
	data, err := l.toy.MarshalBinary()
	return append(data, 2), err
}

func (l *later) UnmarshalBinary(data []byte) error {
	if len(data) != 9 {
		return errors.New("the state is of an earlier program")
	}
	return l.toy.UnmarshalBinary(data[:8])
}
