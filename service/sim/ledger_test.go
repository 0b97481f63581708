package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/nats-io/nats.go"

	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
)

// ledger is the truth: all entries that the servers stored, and what they say of each decision. It checks every entry
// when it is stored, and every answer when it comes.
type ledger struct {
	heard     bool   // whether the writer had followed the log
	moved     uint64 // the message that moved its clock last
	first     uint64 // entry that was not removed
	w         *world
	mu        sync.Mutex
	entries   [][]byte
	positions []eventlog.Position // after each entry, and before the first
	decisions map[string]*decision
	claims    map[string]bool
	writers   map[uint64]string // of each epoch
	conn      *conn             // that wrote the last entry
	skew      time.Duration     // of the last entry's time
	withdrawn map[uint64]bool   // entries that end a decision which was not shown
	ops       []porcupine.Operation
	decided   int
	kinds     map[reflect.Type]int // of entries
}

type decision struct {
	entry    uint64
	asked    time.Time     // first
	ahead    time.Duration // of that, its time in the log
	shown    []string
	status   string // open, deferred, chosen, expired, evicted, late
	choice   int32
	shut     time.Time
	attempts int  // to decide it
	failed   int  // those that certainly failed
	acked    bool // and when
	ackedAt  time.Time
	outcome  time.Time // when an outcome was acknowledged
}

func newLedger(w *world) *ledger {
	return &ledger{w: w, positions: make([]eventlog.Position, 1), decisions: map[string]*decision{},
		claims: map[string]bool{}, writers: map[uint64]string{}, withdrawn: map[uint64]bool{},
		kinds: map[reflect.Type]int{}}
}

// tolerance is how much earlier than its window a decision may end: clocks that differ by less than a second are right.
// A decision during a take-over is stamped with the last entry's time, at most a minute earlier.
const tolerance = 3 * time.Second

// message checks a message that the servers store.
func (l *ledger) message(sequence uint64, m *nats.Msg, c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	writer := m.Header.Get("Vitrine-Writer")
	if string(m.Data) == "VLOGCLAIM" {
		if l.claims[writer] {
			l.w.finding("a writer has claimed the log twice, and fenced itself or its successor")
		}
		l.claims[writer] = true
		return
	}
	f, err := eventlog.DecodeFrame(m.Data)
	if err != nil {
		l.w.finding("message %d: %v", sequence, err)
		return
	}
	end := l.positions[len(l.positions)-1]
	if end.Log.IsZero() {
		l.positions[0].Log, end.Log = f.Log, f.Log
	}
	if f.Start() != end {
		l.w.finding("message %d is of a frame that begins after entry %d, the log ends with %d", sequence, f.First-1,
			end.Sequence)
	}
	if before := l.writers[f.Epoch]; before != "" && before != writer {
		l.w.finding("two writers write in epoch %d", f.Epoch)
	}
	l.writers[f.Epoch] = writer
	if l.conn != c {
		l.conn, l.heard = c, c.hasHeard(l.moved)
	}
	for _, e := range f.Entries {
		l.entries = append(l.entries, e)
		end = end.After(e)
		l.positions = append(l.positions, end)
		l.entry(end.Sequence, e, sequence)
	}
}

func (l *ledger) entry(sequence uint64, e []byte, message uint64) {
	event, err := eventlog.Decode(e)
	if err != nil {
		l.w.finding("entry %d: %v", sequence, err)
		return
	}
	now := time.Now()
	l.clock(sequence, event.Time, message)
	l.kinds[reflect.TypeOf(event.Body)]++
	find := func(id string) *decision {
		d := l.decisions[event.Placement+"/"+id]
		if d == nil || d.entry == 0 {
			l.w.finding("entry %d is of decision %s, which was not offered", sequence, id)
			return &decision{}
		}
		return d
	}
	switch b := event.Body.(type) {
	case *eventlog.Offered:
		d := l.decision(event.Placement, b.Decision)
		if d.entry > 0 {
			l.w.finding("decision %s was offered twice, by entries %d and %d, and the log begins with %d", b.Decision,
				d.entry,
				sequence, l.first)
		}
		d.entry, d.status, d.ahead = sequence, "open", time.Unix(0, event.Time).Sub(d.asked)
		for _, at := range b.Shown {
			d.shown = append(d.shown, b.ItemIDs[at])
		}
		if l.w.deferred(b.Decision) {
			d.status = "deferred"
		}
		l.decided++
	case *eventlog.Activated:
		d := find(b.Decision)
		if d.status != "deferred" {
			l.w.finding("entry %d activates decision %s, which is %s", sequence, b.Decision, d.status)
		}
		d.status = "open"
	case *eventlog.Chosen:
		d := find(b.Decision)
		if d.status != "open" && d.status != "deferred" {
			l.w.finding("entry %d is an outcome of decision %s, which is %s", sequence, b.Decision, d.status)
		}
		d.status, d.choice, d.shut = "chosen", b.Choice, now
	case *eventlog.Expired:
		d := find(b.Decision)
		if d.status != "open" && d.status != "deferred" {
			l.w.finding("entry %d ends decision %s, which is %s", sequence, b.Decision, d.status)
		}
		if age := now.Sub(d.asked); age < window-tolerance+min(0, max(d.ahead, -time.Minute)) {
			l.w.finding("entry %d ends decision %s after %v of %v: its entry %d was %v ahead of the first call, "+
				"and the log is %v ahead", sequence, b.Decision, age, window, d.entry, d.ahead, l.skew)
		}
		if d.status == "deferred" {
			d.status = "withdrawn"
			l.withdrawn[sequence] = true
		} else {
			d.status = "expired"
		}
		d.shut = now
	case *eventlog.ClockMoved:
		l.w.trace("log", "entry %d moves the clock of %s by %v", sequence, event.Placement, time.Duration(b.By))
	case *eventlog.Evicted:
		d := find(b.Decision)
		d.status, d.shut = "evicted", now
	case *eventlog.Corrected:
		d := find(b.Decision)
		if d.status == "chosen" || d.status == "late" {
			l.w.finding("entry %d is a late outcome of decision %s, which is %s", sequence, b.Decision, d.status)
		}
		d.status, d.choice = "late", b.Choice
	}
}

// log returns the entries so far, and the positions before and after each.
func (l *ledger) log() ([][]byte, []eventlog.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries), slices.Clone(l.positions)
}

// isWithdrawn reports whether an entry ends a decision that was not shown.
func (l *ledger) isWithdrawn(entry uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.withdrawn[entry]
}

// begins is the first entry that was not removed.
func (l *ledger) begins() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// removed notes that the log begins with a message.
func (l *ledger) removed(m *nats.Msg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f, err := eventlog.DecodeFrame(m.Data); err == nil {
		l.first = f.First
		l.w.count("entries removed")
	}
}

// clock checks that the log's time goes on as before, unless the process that goes on has not heard it.
func (l *ledger) clock(sequence uint64, at int64, message uint64) {
	skew := time.Until(time.Unix(0, at))
	before := l.skew
	l.skew = skew
	if (skew - before).Abs() <= time.Minute {
		return
	}
	l.moved = message
	if sequence > 1 && l.heard {
		l.w.finding("entry %d moves the log's clock by %v, though its writer had followed the log", sequence,
			skew-before)
	}
}

func (l *ledger) decision(placement, id string) *decision {
	key := placement + "/" + id
	d := l.decisions[key]
	if d == nil {
		d = new(decision)
		l.decisions[key] = d
	}
	return d
}

// ask notes that a decision is asked for.
func (l *ledger) ask(placement, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.decision(placement, id)
	if d.attempts++; d.attempts == 1 {
		d.asked = time.Now()
	}
}

// isFenced reports whether the call's error rules out a write. A process that followed when the call came may have
// proposed it to the leader before it led itself.
func (a *answer) isFenced() bool {
	err := a.err
	return a.byLeader && errors.Is(err, eventlog.ErrFenced) && !errors.Is(err, eventlog.ErrUnknown) &&
		!errors.Is(err, eventlog.ErrReopen)
}

// answer is a call, its answer, and when.
type answer struct {
	kind, placement, id, item string
	shown                     []string
	err                       error
	begin, end                time.Time
	status, choice            string // that a reading shows
	value                     int    // of a configuration
	client                    int
	byLeader                  bool
	isForgotten               bool // as an ended decision may be when its entry is removed
}

// check checks an answer against what is stored by now.
func (l *ledger) check(a *answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.decision(a.placement, a.id)
	known := d.acked && d.ackedAt.Before(a.begin)
	fail := func(format string, args ...any) {
		l.w.finding("%s %s of client %d: %s", a.kind, a.id, a.client, fmt.Sprintf(format, args...))
	}
	a.isForgotten = errors.Is(a.err, engine.ErrNotFound) && d.entry < l.first && !d.shut.IsZero()
	if errors.Is(a.err, engine.ErrNotFound) && a.kind != "decide" && known && !a.isForgotten && d.status != "evicted" {
		fail("is not found, but was acknowledged %v before, and is %s by entry %d", a.begin.Sub(d.ackedAt), d.status,
			d.entry)
	}
	switch a.kind {
	case "decide":
		if a.isFenced() {
			d.failed++
		}
		if d.entry > 0 && d.failed == d.attempts {
			fail("has failed, surely, and is entry %d: %v", d.entry, a.err)
		}
		if a.err != nil {
			break
		}
		if d.entry == 0 {
			fail("is acknowledged, and not in the log")
		} else if !slices.Equal(d.shown, a.shown) {
			fail("shows %q, entry %d %q", a.shown, d.entry, d.shown)
		}
		if !d.acked {
			d.acked, d.ackedAt = true, time.Now()
		}
	case "outcome":
		place := int32(slices.Index(d.shown, a.item) + 1)
		switch {
		case a.err == nil && (d.status != "chosen" || d.choice != place):
			fail("%q is acknowledged, and the decision is %s with %d", a.item, d.status, d.choice)
		case errors.Is(a.err, engine.ErrLate) && (d.status != "late" || d.choice != place):
			fail("%q is said to be late, and the decision is %s with %d", a.item, d.status, d.choice)
		}
		if a.err == nil || errors.Is(a.err, engine.ErrLate) {
			d.outcome = time.Now()
		}
	case "activate":
		switch {
		case a.err == nil && d.status == "deferred":
			fail("is acknowledged, and not in the log")
		case errors.Is(a.err, engine.ErrWithdrawn) && d.status != "withdrawn" && d.status != "late":
			fail("is said to be withdrawn, and is %s", d.status)
		}
	case "read":
		if a.err == nil && !d.outcome.IsZero() && d.outcome.Before(a.begin) &&
			(a.status != d.status || int32(slices.Index(d.shown, a.choice)+1) != d.choice) {
			fail("reads %s %q, but is %s with %d since %v before", a.status, a.choice, d.status, d.choice,
				a.begin.Sub(d.outcome))
		}
	}
	end := a.end.UnixNano()
	if a.kind == "decide" && a.isFenced() {
		l.w.count("answer: surely fenced")
	}
	if a.isUnknown() {
		if a.kind == "decide" && d.entry > 0 {
			l.w.count("answer: unknown, but stored")
		}
		end = 1<<62 + int64(len(l.ops))
	}
	note := func(a *answer, end int64) {
		l.ops = append(l.ops, porcupine.Operation{ClientId: a.client, Input: a, Output: a, Call: a.begin.UnixNano(),
			Return: end})
	}
	note(a, end)
	if a.kind == "outcome" && errors.Is(a.err, engine.ErrNotFound) && !a.byLeader && a.end.Sub(a.begin) > repeated {
		copied := *a
		copied.err = eventlog.ErrUnknown
		note(&copied, 1<<62+int64(len(l.ops)))
	}
}

// repeated is the time after which a follower sends a proposal to the leader again. A copy that comes late may find the
// decision that the answered one did not.
const repeated = 400 * time.Millisecond

// isUnknown reports whether the call may have been carried out, or may be yet.
func (a *answer) isUnknown() bool {
	err := a.err
	return err != nil && !a.isFenced() && !errors.Is(err, engine.ErrNotFound) && !errors.Is(err, engine.ErrLate) &&
		!errors.Is(err, engine.ErrConflict) && !errors.Is(err, engine.ErrWithdrawn) &&
		!errors.Is(err, engine.ErrNotShown) && !errors.Is(err, engine.ErrFollower)
}

// view is the model's knowledge of a decision or a configuration.
type view struct {
	offered bool
	ended   string // by an outcome: the item, or "\x00"
	isLate  bool
	value   int
}

// step is the model of a decision, or of a configuration, as callers see it, independent of the service's code. It
// returns the states that may follow a call. A decision's window may end at any time, which ledger.entry checks.
func step(s view, a *answer) (next []view) {
	after := s
	changed := func() []view { // by a call that was, may have been or was not carried out
		switch {
		case a.err == nil:
			return []view{after}
		case a.isUnknown() && after != s:
			return []view{s, after}
		}
		return []view{s}
	}
	if a.isForgotten {
		return []view{s}
	}
	switch a.kind {
	case "put":
		after.value = a.value
		return changed()
	case "config":
		if a.err == nil && a.value != s.value {
			return nil
		}
		return []view{s}
	case "decide":
		after.offered = true
		return changed()
	case "outcome":
		item := a.item
		if item == "" {
			item = "\x00"
		}
		after.ended = item
		switch {
		case a.err == nil:
			if !s.offered || s.ended != "" && (s.ended != item || s.isLate) {
				return nil
			}
			return []view{after}
		case errors.Is(a.err, engine.ErrLate):
			if !s.offered || s.ended != "" && (s.ended != item || !s.isLate) {
				return nil
			}
			after.isLate = true
			return []view{after}
		case errors.Is(a.err, engine.ErrConflict):
			if s.ended == "" || s.ended == item {
				return nil
			}
		case errors.Is(a.err, engine.ErrNotFound):
			if s.offered {
				return nil
			}
		case a.isUnknown() && s.offered && s.ended == "":
			late := after
			late.isLate = true
			return []view{s, after, late}
		}
		return []view{s}
	case "read":
		switch {
		case errors.Is(a.err, engine.ErrNotFound) && s.offered:
			return nil
		case a.err != nil:
		case !s.offered, (a.status == "chosen" || a.status == "late") != (s.ended != ""),
			s.ended != "" && (a.status == "late") != s.isLate:
			return nil
		}
	case "activate":
		if errors.Is(a.err, engine.ErrNotFound) && s.offered {
			return nil
		}
	}
	return []view{s}
}

// linearize checks that the calls about each decision and each configuration can be ordered.
func (l *ledger) linearize() {
	by, read := map[string][]porcupine.Operation{}, map[int]bool{}
	for _, o := range l.ops {
		a := o.Input.(*answer)
		key := a.placement + "/" + a.id
		by[key] = append(by[key], o)
		read[a.value] = read[a.value] || a.kind == "config" && a.err == nil
	}
	l.w.countN("checked: calls in order", len(l.ops))
	for _, key := range slices.Sorted(maps.Keys(by)) {
		// Orders grow exponentially with the calls of unknown outcome. Most of these calls change no answer.
		list := slices.DeleteFunc(slices.Clone(by[key]), func(o porcupine.Operation) bool {
			a := o.Input.(*answer)
			return a.isUnknown() && (a.kind == "config" || a.kind == "read" || a.kind == "activate" ||
				a.kind == "put" && !read[a.value])
		})
		switch porcupine.CheckOperationsTimeout(model, list, 10*time.Second) {
		case porcupine.Unknown:
			l.w.count("not checked: calls with too many orders")
		case porcupine.Illegal:
			text := ""
			for _, o := range by[key] {
				a := o.Input.(*answer)
				text += fmt.Sprintf("\n  %s–%s client %d: %s %s%s%s %d %v", l.w.at(a.begin), l.w.at(a.end), a.client,
					a.kind, a.item, a.status, a.choice, a.value, a.err)
			}
			l.w.finding("calls about %s have no order:%s", key, text)
		}
	}
}

var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{view{}} },
	Step: func(s, in, _ any) (next []any) {
		for _, n := range step(s.(view), in.(*answer)) {
			next = append(next, n)
		}
		return next
	},
}).ToModel()

// truth is the log as it was stored, with no entry removed.
type truth struct {
	*memlog.Store
	positions []eventlog.Position
}

func (t truth) Position(_ context.Context, sequence uint64) (eventlog.Position, error) {
	if sequence >= uint64(len(t.positions)) {
		return eventlog.Position{}, eventlog.ErrBeyond
	}
	return t.positions[sequence], nil
}
