package decision

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
)

// snapshotter is a learner that can be saved. All learners of placements must be.
type snapshotter interface {
	vitrine.Learner
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// buildLearner builds a learner, and turns panics into errors.
func buildLearner(build func(setup.Spec) (vitrine.Learner, error), s setup.Spec) (l snapshotter, err error) {
	err, _ = safely(func() error {
		learner, err := build(s)
		if err != nil {
			return err
		}
		var ok bool
		if l, ok = learner.(snapshotter); !ok {
			return errors.New("the learner cannot be saved, so it cannot serve")
		}
		return nil
	})
	if err != nil {
		return nil, api.Fieldf("/policy", "%v", err)
	}
	return l, nil
}

// safely calls f and turns a panic into an error.
func safely(f func() error) (err error, panicked bool) {
	defer func() {
		if v := recover(); v != nil {
			err, panicked = fmt.Errorf("panic: %v", v), true
		}
	}()
	return f(), false
}

// task is a task of a worker.
type task struct {
	what     whatTask
	sequence uint64 // of the entry
	round    vitrine.Round
	bytes    int           // of the round
	version  uint64        // to keep, to forget, or to roll back to
	gap      *gap          // to catch up on
	call     func(*worker) // closed when the policy after all earlier tasks is published; not part of the state
}

type whatTask uint8

const (
	toObserve whatTask = iota
	toKeep
	toCall
	toForget // a state
	toReturn // to a state, whose rounds are those learned; the learner may have retired
	toRetire // the learner goes, and its states stay
	toFollow // what the log has up to an entry
	toEndHistory
	toCatchUp // on a gap, up to an entry
)

// published is a policy, and the last entry that it has learned from.
type published struct {
	policy  vitrine.Policy
	version uint64
}

// worker runs a learner on its own goroutine. Tasks come in the order of the log.
//
// A round that the learner refuses, or on which it panics, is skipped. After a panic the learner is rebuilt
// from a checkpoint and the rounds since, so its state does not depend on the time of checkpoints. If that
// fails the learner is broken: it learns no more, and its last good policy stays.
type worker struct {
	build   func(setup.Spec) (vitrine.Learner, error)
	config  *setup.Config // of the placement, while the learner decides; the writer's, as began
	began   uint64        // the entry that began the learner
	queue   *queue
	given   atomic.Uint64 // rounds sent
	done    atomic.Uint64 // and done
	stopped atomic.Bool
	ended   chan struct{} // closed when nothing is done any more

	log        Log           // nil in audits
	placement  string        // its name
	history    *history      // that it follows, nil if none; its own, once it runs
	following  atomic.Uint64 // the first entry of that
	reached    atomic.Uint64 // the last entry of it that was read
	lost       atomic.Bool   // whether the log no longer has it
	context    context.Context
	cancel     context.CancelFunc // of context
	current    atomic.Pointer[published]
	substitute atomic.Pointer[published] // what decides while the guard has an alarm and falls back to a version
	fault      atomic.Pointer[string]    // why the current policy could not be replaced, or nil
	families   families

	spec       setup.Spec
	learner    snapshotter // nil if it has retired
	checkpoint []byte
	marked     bool // since it settled
	noted      int  // bytes of the journal
	behind     int  // rounds since a policy was published

	saved   frozenWorker // of the checkpoint; both are guarded by the queue's lock, and only the worker changes them
	journal []task       // since
	asked   atomic.Bool  // set by a snapshot that did not wait: the learner saves itself

	progress
	kept []keptState

	seen atomic.Pointer[progress]
}

// progress is the progress of a learner.
type progress struct {
	version   uint64 // the last entry passed to it
	observed  uint64 // rounds learned
	forgotten uint64 // rounds learned before a state that could not be read
	skipped   uint64 // rounds that it refused, on which it panicked, or that came after it broke
	broken    bool
	retired   bool   // it only has its states
	problem   string // the last one
}

// keptState is a kept version.
type keptState struct {
	version  uint64
	observed uint64 // rounds learned
	data     []byte
}

// stateOf returns the kept state of a version, nil if there is none.
func stateOf(kept []keptState, version uint64) *keptState {
	if i := slices.IndexFunc(kept, func(k keptState) bool { return k.version == version }); i >= 0 {
		return &kept[i]
	}
	return nil
}

const (
	checkpointRounds = 256 // minimal number of rounds between checkpoints
	publishRounds    = 64  // a policy is published after at most this number of rounds
	maxProblem       = 500 // bytes of an error's text
)

func newWorker(build func(setup.Spec) (vitrine.Learner, error), c *setup.Config, sequence uint64) (*worker, error) {
	w := &worker{build: build, config: c, spec: c.Spec(), queue: newQueue(c.Share()), ended: make(chan struct{})}
	w.context, w.cancel = context.WithCancel(context.Background())
	var err error
	if w.learner, err = buildLearner(build, w.spec); err != nil {
		return nil, err
	}
	w.version = sequence
	if err := w.mark(); err != nil {
		return nil, api.Fieldf("/policy", "%v", err)
	}
	w.settle(task{what: toCall})
	if w.publish(); w.current.Load() == nil {
		return nil, api.Fieldf("/policy", "the learner has no first policy: %s", *w.fault.Load())
	}
	return w, nil
}

// begin notes the entry at which the learner begins, before it has learned.
func (w *worker) begin(sequence uint64) {
	w.began, w.version, w.saved.version = sequence, sequence, sequence
	seen := w.progress
	w.seen.Store(&seen)
	w.current.Store(&published{w.current.Load().policy, sequence})
}

// mark makes a checkpoint of the learner.
func (w *worker) mark() error {
	var data []byte
	err, _ := safely(func() (err error) { data, err = w.learner.MarshalBinary(); return err })
	if err != nil {
		return fmt.Errorf("the learner cannot be saved: %w", err)
	}
	w.checkpoint, w.marked = data, true
	return nil
}

// publish makes the learner's policy the current one. After a panic the last one stays.
func (w *worker) publish() {
	w.behind = 0
	seen := w.progress
	w.seen.Store(&seen)
	if w.broken || w.retired {
		return
	}
	var policy vitrine.Policy
	err, _ := safely(func() error { policy = w.learner.Policy(); return nil })
	if err == nil && policy == nil {
		err = errors.New("the learner has no policy")
	}
	if err != nil {
		text := err.Error()
		w.fault.Store(&text)
		return
	}
	w.fault.Store(nil)
	w.current.Store(&published{policy, w.version})
	w.families.Note(policy, w.observed)
}

func (w *worker) send(t task) {
	if t.what == toObserve {
		w.given.Add(1)
	}
	w.queue.push(t)
}

// stop makes the worker end without learning what is still in its queue.
func (w *worker) stop() {
	w.stopped.Store(true)
	w.cancel()
	w.queue.close()
}

// wait waits until the worker has come to this point of the log and has made a call, or has ended.
func (w *worker) wait(ctx context.Context, call func(*worker)) error {
	called := make(chan struct{})
	w.send(task{what: toCall, call: func(w *worker) { call(w); close(called) }})
	select {
	case <-called:
	case <-w.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// run does the tasks until stop.
func (w *worker) run() {
	defer close(w.ended)
	for {
		t, last, ok := w.queue.pop()
		if !ok {
			return
		}
		if t.what != toObserve {
			w.publish()
			w.do(t)
			w.settle(t)
			w.publish()
			continue
		}
		if !w.stopped.Load() {
			w.learn(t, w.queue.end)
			if w.behind++; last || w.behind >= publishRounds {
				w.publish()
			}
		}
		w.done.Add(1)
	}
}

// learn learns a round. It notes that under the queue's lock, by note.
func (w *worker) learn(t task, note func(func(task), task)) {
	w.observe(t)
	note(w.record, t)
	if w.isDue() {
		w.save()
		note(w.record, task{what: toCall})
	}
}

// isDue reports whether a checkpoint is due: the rounds since the last one take as many bytes as it, so that saving a
// large learner costs little a round, or as many as the journal has, whose next round is up to a quarter of that.
func (w *worker) isDue() bool {
	return len(w.journal) >= checkpointRounds && w.noted >= len(w.checkpoint) || w.noted > w.queue.bound()*3/4
}

// learnFrom makes the learner one that follows the log.
func (w *worker) learnFrom(h *history) {
	w.history = h
	w.following.Store(h.from)
	w.saved.from = h.from
}

// follow learns what the log has up to an entry. It waits for a log that cannot be read. A learner from which the log has
// removed what it needs is lost, and never decides.
func (w *worker) follow(upTo uint64) {
	for !w.stopped.Load() && !w.lost.Load() {
		err := w.history.read(w.context, upTo, func(t task) bool {
			if t.sequence > w.version { // or it has been learned
				w.learn(t, w.queue.hold)
			}
			if w.behind++; w.behind >= publishRounds {
				w.publish()
				w.reached.Store(t.sequence)
			}
			return !w.stopped.Load()
		})
		if err == nil {
			w.publish() // first: who has reached the end may decide
			w.reached.Store(upTo)
			return
		}
		w.lost.Store(errors.Is(err, eventlog.ErrRemoved))
		text := err.Error()
		w.fault.Store(&text)
		select {
		case <-w.context.Done():
		case <-time.After(followPause):
		}
	}
}

// followPause is how long a log that cannot be read is left alone.
const followPause = time.Second

// do runs a task other than a round.
func (w *worker) do(t task) {
	switch t.what {
	case toKeep:
		w.keep(t.version)
	case toForget:
		w.kept = slices.DeleteFunc(w.kept, func(k keptState) bool { return k.version == t.version })
	case toReturn:
		w.returnTo(t.sequence, t.version)
	case toRetire:
		w.retire()
	case toFollow:
		w.follow(t.sequence)
	case toCatchUp:
		w.catchUp(t.sequence, t.gap)
	case toEndHistory:
		w.history = nil
		w.following.Store(0)
	default:
		t.call(w)
	}
}

// settle ends a task: snapshots no longer wait for it. It drops tasks from the journal that the checkpoint
// has or that a broken learner will not learn.
func (w *worker) settle(t task) { w.queue.end(w.record, t) }

// record notes what was done. The queue's lock is held.
func (w *worker) record(t task) {
	if t.what == toEndHistory {
		w.saved.from = 0
	}
	switch {
	case w.marked || w.broken:
		w.saved = w.frozen()
		clear(w.journal)
		w.journal, w.noted, w.marked = w.journal[:0], 0, false
	case t.what != toCall && t.what != toFollow && t.what != toCatchUp && t.what != toEndHistory: // whose rounds are there
		w.journal = append(w.journal, t)
		w.noted += t.bytes
	}
}

func (w *worker) frozen() frozenWorker {
	f := frozenWorker{progress: w.progress, data: w.checkpoint, kept: slices.Clone(w.kept)}
	if w.history != nil {
		f.from = w.history.from
	}
	return f
}

// view returns the last checkpoint and all later tasks. It does not wait for the learner.
func (w *worker) view() (f frozenWorker) {
	w.queue.look(func(tasks []task) {
		f = w.saved
		for _, part := range [][]task{w.journal, tasks} {
			for _, t := range part {
				if t.what != toCall {
					f.since = append(f.since, t)
				}
			}
		}
	})
	return f
}

func (w *worker) observe(t task) {
	w.version = t.sequence
	if w.broken {
		w.skipped++
		return
	}
	err, panicked := safely(func() error { return w.learner.Observe(t.round) })
	if err != nil {
		w.skipped++
		w.report(err)
		if panicked {
			w.rebuild()
		}
		return
	}
	w.observed++
}

// save makes a checkpoint. A learner that cannot be saved is broken.
func (w *worker) save() {
	switch {
	case w.retired:
		w.marked = true
		return
	case w.broken:
		return
	}
	if err := w.mark(); err != nil {
		w.fail(err)
	}
}

func (w *worker) report(err error) {
	w.problem = err.Error()
	if len(w.problem) > maxProblem {
		w.problem = w.problem[:maxProblem]
	}
}

// fail stops the learning.
func (w *worker) fail(err error) {
	w.broken = true
	w.report(err)
}

// rebuild restores the state of the learner before its panic.
func (w *worker) rebuild() {
	l, err := w.restored(w.checkpoint)
	for _, t := range w.journal {
		if err == nil && t.what == toObserve {
			if failed, panicked := safely(func() error { return l.Observe(t.round) }); panicked {
				err = failed
			}
		}
	}
	if err == nil {
		w.learner = l
		err = w.mark()
	}
	if err != nil {
		w.fail(fmt.Errorf("after %s the learner could not be restored: %w", w.problem, err))
	}
}

func (w *worker) restored(data []byte) (snapshotter, error) {
	l, err := buildLearner(w.build, w.spec)
	if err != nil {
		return nil, err
	}
	err, _ = safely(func() error { return l.UnmarshalBinary(data) })
	return l, err
}

// keep remembers the learner's state as a version.
func (w *worker) keep(version uint64) {
	w.save()
	w.kept = append(w.kept, keptState{version, w.observed, w.checkpoint})
}

// learnedAt returns how many rounds a kept state has learned; ok is false before the state is kept.
func (w *worker) learnedAt(version uint64) (rounds uint64, ok bool) {
	w.queue.look(func([]task) {
		if k := stateOf(w.saved.kept, version); k != nil {
			rounds, ok = k.observed, true
		}
	})
	return rounds, ok
}

// retire leaves the kept states, and nothing of the learner.
func (w *worker) retire() {
	w.retired, w.broken, w.marked = true, false, true
	w.learner, w.checkpoint = nil, nil
	w.current.Store(&published{version: w.version})
}

// show makes the policy of a kept state the current one of a learner that has retired.
func (w *worker) show(version uint64) {
	if k := stateOf(w.kept, version); k != nil && w.retired {
		if l, err := w.restored(k.data); err == nil {
			_, _ = safely(func() error { w.current.Store(&published{l.Policy(), version}); return nil })
		}
	}
	if w.current.Load().policy == nil {
		w.showFirst()
	}
}

// showFirst makes the policy of a learner without rounds the current one.
func (w *worker) showFirst() {
	if l, err := buildLearner(w.build, w.spec); err == nil {
		_, _ = safely(func() error { w.current.Store(&published{l.Policy(), w.version}); return nil })
	}
}

// returnTo returns to a kept state, and to its count of rounds.
func (w *worker) returnTo(sequence, version uint64) {
	w.retired = false
	w.rollBack(sequence, version)
	if k := stateOf(w.kept, version); k != nil {
		w.observed = k.observed
	}
	if w.learner == nil { // the state cannot be read: the learner has broken
		w.showFirst()
	}
}

// rollBack returns to a kept version. A broken learner learns again.
func (w *worker) rollBack(sequence, version uint64) {
	w.version = sequence
	k := stateOf(w.kept, version)
	if k == nil {
		return
	}
	l, err := w.restored(k.data)
	if err == nil {
		w.learner, w.broken = l, false
		err = w.mark()
	}
	if err != nil {
		w.fail(err)
	}
}

// frozenWorker is a learner at an entry.
type frozenWorker struct {
	progress
	data  []byte
	kept  []keptState
	since []task // that come after it

	from uint64 // of its history, 0 if there is none
}
