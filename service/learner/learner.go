// Package learner runs a [vitrine.Learner] on its own goroutine: decisions never wait for learning, and learning never
// waits for decisions.
//
// # What runs where
//
// [Learner.Run] is the goroutine, and the only one that touches the vitrine.Learner. Everybody else leaves tasks in a
// queue: observe a round, keep the state as a version, return to a version, retire, read a part of the log. The
// goroutine performs the tasks in order, which is the order of the log, so what the learner knows is a function of the
// log. Methods that leave such a task belong to the one goroutine that applies log entries. All other methods are safe
// to call from any goroutine.
//
// Now and then, and always before it goes to sleep, the learner publishes a frozen policy: a policy shares no memory
// with its learner. [Learner.Current] returns the latest one without a lock.
//
// # What is shared
//
// One lock guards the queue, the last checkpoint and the tasks performed since. It is held for moments, and never while
// the learner learns or saves itself. The current policy, its substitute and the progress are atomic pointers to values
// that never change. Everything else belongs to the goroutine.
//
// # Bounds
//
// The rounds in the queue take a bounded number of bytes. Callers ask [Learner.HasRoom] first; [Learner.Observe] blocks
// while the queue is full. The rounds since the checkpoint are bounded as well: when they fill three quarters of the
// same bound, or take as many bytes as the checkpoint itself, the learner makes the next one.
//
// # Saved states
//
// A [State] is a checkpoint (the bytes of the vitrine.Learner), the states kept as versions, and the tasks after the
// checkpoint. [Learner.View] returns one immediately. [Learner.Freeze] lets the learner make a checkpoint first, once
// it has performed all earlier tasks. [Restore] turns either of them into a learner that continues to exactly the same
// state.
//
// # The log
//
// A learner can read rounds from the log instead of receiving them: every round since an entry ([Learner.Replay] and
// [Learner.Follow], for a second learner that catches up before it decides), or the rounds of a [Gap]
// ([Learner.CatchUp]).
//
// # Faults
//
// If the learner refuses a round or panics on it, the round is skipped. After a panic the learner is rebuilt from the
// checkpoint and the rounds since then. If rebuilding or saving fails, the learner is broken: it stops learning, and
// its last good policy keeps deciding.
package learner

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"vitrine"
	"vitrine/internal/panics"
	"vitrine/service/api"
	"vitrine/service/setup"
)

// Build builds the learner of a specification.
type Build = func(setup.Spec) (vitrine.Learner, error)

// saver is a learner that can be saved.
type saver interface {
	vitrine.Learner
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// Published is a frozen policy.
type Published struct {
	Policy vitrine.Policy // nil if the learner is retired
	Entry  uint64         // the last log entry that the policy learned from
}

// Progress tells how far a learner is.
type Progress struct {
	Entry     uint64 // the last log entry given to the learner
	Learned   uint64 // rounds learned
	Forgotten uint64 // rounds learned before a state that could not be read
	Skipped   uint64 // rounds that it refused, on which it panicked, or that came after it broke
	Since     uint64 // rounds learned after the last one that it skipped
	Broken    bool
	Retired   bool   // it only keeps states
	Problem   string // the last one

	Lag uint64 // rounds given to it but not yet learned
}

// Learner is a learner on its goroutine. Make one with [New] or [Restore], and start it with Run.
type Learner struct {
	build   Build
	spec    setup.Spec
	context context.Context // until Stop
	cancel  context.CancelFunc

	current    atomic.Pointer[Published]
	substitute atomic.Pointer[Published]
	seen       atomic.Pointer[Progress]
	asked      atomic.Bool // by Freeze(true)
	families   families

	queue

	// The rest belongs to the goroutine of Run.

	log       Log      // nil in audits
	placement string   // its entries of the log are read
	history   *history // replayed; or nil

	learner    saver // nil once retired
	checkpoint []byte
	marked     bool // the checkpoint is newer than the one in the queue
	behind     int  // rounds since a policy was published
	progress   Progress
	kept       []kept
}

// kept is a state that is kept as a version.
type kept struct {
	version uint64
	learned uint64 // rounds
	data    []byte
}

// find returns a version's state, or nil.
func find(list []kept, version uint64) *kept {
	if i := slices.IndexFunc(list, func(k kept) bool { return k.version == version }); i >= 0 {
		return &list[i]
	}
	return nil
}

const (
	checkpointRounds = 256 // minimal number of rounds between checkpoints
	publishRounds    = 64  // a policy is published after at most this number of rounds

	// MaxProblem is the length in bytes from which [Progress].Problem is abbreviated.
	MaxProblem = 500
)

// New builds a learner with its first policy, within the configuration's share of memory. The error is the policy's
// *[api.FieldError].
func New(build Build, c *setup.Config) (*Learner, error) {
	l := &Learner{build: build, spec: c.Spec(), queue: queue{limit: c.Share()}}
	l.changed.L = &l.mu
	l.context, l.cancel = context.WithCancel(context.Background())
	var err error
	if l.learner, err = l.restored(); err == nil {
		err = l.mark()
	}
	if err == nil {
		if l.publish(); l.current.Load() == nil {
			err = fmt.Errorf("the learner has no first policy: %s", l.seen.Load().Problem)
		}
	}
	if err != nil {
		return nil, api.Fieldf("/policy", "%v", err)
	}
	l.saved = *l.newCheckpoint()
	return l, nil
}

// restored builds a learner with a saved state, or a fresh one.
func (l *Learner) restored(saved ...[]byte) (s saver, err error) {
	err, _ = panics.Safely(func() error {
		built, err := l.build(l.spec)
		if err != nil {
			return err
		}
		var ok bool
		if s, ok = built.(saver); !ok {
			return errors.New("the learner cannot be saved, so it cannot serve")
		}
		if len(saved) == 0 {
			return nil
		}
		return s.UnmarshalBinary(saved[0])
	})
	return s, err
}

// policyOf makes the policy of a learner, unless the learner could not be built.
func policyOf(s saver, err error) (pi vitrine.Policy, _ error) {
	if err == nil {
		err, _ = panics.Safely(func() error { pi = s.Policy(); return nil })
	}
	if err == nil && pi == nil {
		err = errors.New("the learner has no policy")
	}
	return pi, err
}

// Begin sets the entry at which a new learner begins. Call it before Run.
func (l *Learner) Begin(entry uint64) {
	l.progress.Entry, l.saved.Entry = entry, entry
	l.show("")
	l.current.Store(&Published{l.current.Load().Policy, entry})
}

// Run does the tasks until Stop. It reads the log for a placement; a nil log is empty.
func (l *Learner) Run(log Log, placement string) {
	l.log, l.placement = log, placement
	for {
		t, last, ok := l.pop()
		switch {
		case !ok:
			return
		case t.what == toObserve && l.isStopped():
		case t.what == toObserve:
			l.learn(&t)
			if l.behind++; last || l.behind >= publishRounds {
				l.publish()
			}
		default:
			l.publish()
			if l.do(&t); t.what != toCall {
				l.publish()
			}
		}
		l.end(l.newCheckpoint())
	}
}

// Current returns the policy that was published last.
func (l *Learner) Current() *Published { return l.current.Load() }

// Progress returns how far the learner is. It names a problem if the policy could not be made or the log could not be
// read.
func (l *Learner) Progress() Progress {
	var lag uint64
	l.holding(func() { lag = l.lag }) // first: a round that is missing in it is in the progress
	p := *l.seen.Load()
	p.Lag = lag
	return p
}

// do does a task other than a round.
func (l *Learner) do(t *task) {
	switch t.what {
	case toKeep:
		l.save()
		l.kept = append(l.kept, kept{t.version, l.progress.Learned, l.checkpoint})
	case toForget:
		l.kept = slices.DeleteFunc(l.kept, func(k kept) bool { return k.version == t.version })
	case toReturn:
		l.returnTo(t.entry, t.version)
	case toRetire:
		l.retire()
	case toFollow:
		l.follow(t.entry, t.outages)
	case toCatchUp:
		l.catchUp(t.entry, t.gap)
	case toEndReplay:
		l.history = nil
	default:
		t.call()
	}
}

// publish makes the learner's policy and progress visible. If making the policy fails, the last one stays.
func (l *Learner) publish() {
	l.behind = 0
	problem := ""
	if !l.progress.Broken && !l.progress.Retired {
		if pi, err := policyOf(l.learner, nil); err != nil {
			problem = err.Error()
		} else {
			l.current.Store(&Published{pi, l.progress.Entry})
			l.families.note(pi, l.progress.Learned)
		}
	}
	l.show(problem)
}

// show makes the progress visible, with a problem that passes unless it is empty.
func (l *Learner) show(problem string) {
	seen := l.progress
	if problem != "" {
		seen.Problem = problem
	}
	l.seen.Store(&seen)
}

// learn learns a round. It makes a checkpoint when the rounds since the last one take as many bytes as the checkpoint,
// which keeps saving cheap, or three quarters of their bound, because the next round may take a quarter.
func (l *Learner) learn(t *task) {
	l.observe(t)
	n, bytes, limit := len(l.saved.since)+1, l.noted+t.bytes, 0
	l.holding(func() { limit = l.limit })
	if n >= checkpointRounds && bytes >= len(l.checkpoint) || bytes > limit*3/4 {
		l.save()
	}
}

func (l *Learner) observe(t *task) {
	l.progress.Entry = t.entry
	if l.progress.Broken {
		l.skip(1)
		return
	}
	err, panicked := panics.Safely(func() error { return l.learner.Observe(t.round) })
	if err == nil {
		l.progress.Learned++
		l.progress.Since++
		return
	}
	l.skip(1)
	l.report(err)
	if panicked {
		l.rebuild()
	}
}

func (l *Learner) skip(rounds uint64) {
	l.progress.Skipped += rounds
	l.progress.Since = 0
}

func (l *Learner) report(err error) {
	l.progress.Problem = api.Abbreviate(err.Error(), MaxProblem)
}

// fail ends the learning.
func (l *Learner) fail(err error) {
	l.progress.Broken = true
	l.report(err)
}

// rebuild restores the state before the round on which the learner panicked. It depends on the rounds only, not on when
// checkpoints were made.
func (l *Learner) rebuild() {
	s, err := l.restored(l.checkpoint)
	for _, t := range l.saved.since {
		if err == nil && t.what == toObserve {
			if failed, panicked := panics.Safely(func() error { return s.Observe(t.round) }); panicked {
				err = failed
			}
		}
	}
	if err == nil {
		l.learner = s
		err = l.mark()
	}
	if err != nil {
		l.fail(fmt.Errorf("after %s the learner could not be restored: %w", l.progress.Problem, err))
	}
}

// mark makes a checkpoint.
func (l *Learner) mark() error {
	var data []byte
	err, _ := panics.Safely(func() (err error) { data, err = l.learner.MarshalBinary(); return err })
	if err != nil {
		return fmt.Errorf("the learner cannot be saved: %w", err)
	}
	l.checkpoint, l.marked = data, true
	return nil
}

// save makes a checkpoint of a learner that learns. One that cannot be saved is broken.
func (l *Learner) save() {
	switch {
	case l.progress.Retired:
		l.marked = true
	case l.progress.Broken:
	default:
		if err := l.mark(); err != nil {
			l.fail(err)
		}
	}
}
