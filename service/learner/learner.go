// Package learner runs a [vitrine.Learner] on a goroutine of its own, so that decisions never wait for learning and learning never
// waits for decisions.
//
// # What runs where
//
// [Learner.Run] is the goroutine. It alone touches the vitrine.Learner. The methods of a [Learner] only add a task to its queue and
// return: observe a round, keep the state as a version, return to a version, retire, read a part of the log. The goroutine does the
// tasks in their order, which is the order of the log, so the learner's state is a function of the log. The methods that add tasks
// are for the one goroutine that applies the log's entries. All other methods may be called from anywhere at any time.
//
// After a task the goroutine publishes a frozen policy, and [Learner.Current] returns it. A policy shares no memory with its learner.
//
// # What is shared
//
// A lock in the queue guards the queue, the last checkpoint and the tasks done since. It is held for moments, never while the learner
// learns or saves itself. The published policy, its substitute and the progress are atomic pointers to values that never
// change. All else belongs to the goroutine.
//
// # Bounds
//
// The rounds in the queue have bounded bytes. A caller asks [Learner.HasRoom] first, and Observe waits while the queue is full. The
// rounds done since the checkpoint are bounded too: if they take three quarters of that, or as many bytes as the checkpoint itself,
// the learner saves itself.
//
// # Saved states
//
// A [State] is a checkpoint, which is the bytes of the vitrine.Learner, the states kept as versions, and the tasks after the checkpoint.
// [Learner.View] returns one at once, without waiting for the learner. [Learner.Freeze] returns one of which the checkpoint is up to
// date, once the goroutine has come to it. [Restore] reads either of them and ends up at the same state.
//
// # The log
//
// A learner can also read rounds from the log instead of being given them: all since an entry ([Learner.Replay], [Learner.Follow]), or
// those of a [Gap] ([Learner.CatchUp]).
//
// # Faults
//
// A round that the learner refuses, or on which it panics, is skipped. After a panic the learner is rebuilt from its checkpoint
// and the rounds since. If this fails, or if the learner cannot be saved, it is broken: it learns no more, and its last good policy
// stays.
package learner

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-json-experiment/json"

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
	Policy vitrine.Policy // nil if the learner has retired
	Entry  uint64         // the last log entry that the policy has learned from
}

// Progress tells how far a learner is.
type Progress struct {
	Entry     uint64 // the last log entry given to the learner
	Learned   uint64 // rounds learned
	Forgotten uint64 // rounds learned before a state that could not be read
	Skipped   uint64 // rounds that it refused, on which it panicked, or that came after it broke
	Broken    bool
	Retired   bool   // it only keeps states
	Problem   string // the last one

	Lag uint64 // rounds given to it that it has not learned
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
	placement string   // whose entries of the log are read
	history   *history // that is replayed, nil if none is

	learner    saver // nil if it has retired
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

// find returns the state of a version, nil if there is none.
func find(list []kept, version uint64) *kept {
	if i := slices.IndexFunc(list, func(k kept) bool { return k.version == version }); i >= 0 {
		return &list[i]
	}
	return nil
}

const (
	checkpointRounds = 256 // minimal number of rounds between checkpoints
	publishRounds    = 64  // a policy is published after at most this number of rounds

	// MaxProblem is the maximal length of [Progress].Problem in bytes.
	MaxProblem = 500
)

// New builds a learner with its first policy. It is bound by the configuration's share of memory. The error is an *[api.FieldError] of
// the policy.
func New(build Build, c *setup.Config) (*Learner, error) {
	l := &Learner{build: build, spec: c.Spec(), queue: queue{limit: c.Share()}}
	l.changed.L = &l.mu
	l.context, l.cancel = context.WithCancel(context.Background())
	var err error
	if l.learner, err = l.restored(nil); err == nil {
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

// restored builds a learner with a saved state; nil is that of a learner that has learned nothing.
func (l *Learner) restored(data []byte) (s saver, err error) {
	err, _ = panics.Safely(func() error {
		built, err := l.build(l.spec)
		if err != nil {
			return err
		}
		var ok bool
		if s, ok = built.(saver); !ok {
			return errors.New("the learner cannot be saved, so it cannot serve")
		}
		if data == nil {
			return nil
		}
		return s.UnmarshalBinary(data)
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

// Run does the tasks until Stop. It reads the log for a placement; a nil log holds nothing.
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

// Progress returns how far the learner is. If its policy could not be made or the log could not be read, the problem says so.
func (l *Learner) Progress() Progress {
	var lag uint64
	l.holding(func() { lag = l.lag }) // first: a round that is missing in it is in the progress
	p := *l.seen.Load()
	p.Lag = lag
	return p
}

// PolicyName returns the name of the policy in the configuration.
func (l *Learner) PolicyName() string {
	var p struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(l.spec.Policy, &p) // which is an object
	return p.Name
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
		l.follow(t.entry)
	case toCatchUp:
		l.catchUp(t.entry, t.gap)
	case toEndReplay:
		l.history = nil
	default:
		t.call()
	}
}

// publish makes the learner's policy the current one, and its progress what is seen. If there is no policy, the last one stays.
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

// learn learns a round, and makes a checkpoint if the rounds since the last one take as many bytes as the checkpoint, so that saving a large
// learner costs little a round, or as many as they may, where the next round is up to a quarter of that.
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
		l.progress.Skipped++
		return
	}
	err, panicked := panics.Safely(func() error { return l.learner.Observe(t.round) })
	if err == nil {
		l.progress.Learned++
		return
	}
	l.progress.Skipped++
	l.report(err)
	if panicked {
		l.rebuild()
	}
}

func (l *Learner) report(err error) {
	text := err.Error()
	l.progress.Problem = text[:min(len(text), MaxProblem)]
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
