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
	"vitrine/service/offer"
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
	build Build
	spec  setup.Spec
	queue *queue

	context context.Context // until Stop
	stop    context.CancelFunc

	current    atomic.Pointer[Published]
	substitute atomic.Pointer[Published]
	seen       atomic.Pointer[Progress]
	families   families
	asked      atomic.Bool // set by Freeze(true) until the goroutine has saved the learner

	// The rest belongs to the goroutine of Run.

	log       Log      // nil in audits
	placement string   // whose entries of the log are read
	history   *history // that is replayed, nil if none is

	learner    saver // nil if it has retired
	checkpoint []byte
	marked     bool // the checkpoint is newer than that of the queue
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
	l := &Learner{build: build, spec: c.Spec(), queue: newQueue(c.Share())}
	l.context, l.stop = context.WithCancel(context.Background())
	var err error
	if l.learner, err = l.built(); err != nil {
		return nil, err
	}
	if err := l.mark(); err != nil {
		return nil, api.Fieldf("/policy", "%v", err)
	}
	if l.publish(); l.current.Load() == nil {
		return nil, api.Fieldf("/policy", "the learner has no first policy: %s", l.seen.Load().Problem)
	}
	l.queue.end(task{what: toCall}, l.newCheckpoint())
	return l, nil
}

// built builds a learner that has learned nothing, and turns panics into errors.
func (l *Learner) built() (s saver, err error) {
	err, _ = panics.Safely(func() error {
		built, err := l.build(l.spec)
		if err != nil {
			return err
		}
		var ok bool
		if s, ok = built.(saver); !ok {
			return errors.New("the learner cannot be saved, so it cannot serve")
		}
		return nil
	})
	if err != nil {
		return nil, api.Fieldf("/policy", "%v", err)
	}
	return s, nil
}

// restored builds a learner with a saved state.
func (l *Learner) restored(data []byte) (saver, error) {
	s, err := l.built()
	if err != nil {
		return nil, err
	}
	err, _ = panics.Safely(func() error { return s.UnmarshalBinary(data) })
	return s, err
}

// policyOf returns the policy of a saved state.
func (l *Learner) policyOf(data []byte) (pi vitrine.Policy, err error) {
	s, err := l.restored(data)
	if err == nil {
		err, _ = panics.Safely(func() error { pi = s.Policy(); return nil })
	}
	return pi, err
}

// Begin sets the entry at which a new learner begins. Call it before Run.
func (l *Learner) Begin(entry uint64) {
	l.progress.Entry, l.queue.saved.Entry = entry, entry
	seen := l.progress
	l.seen.Store(&seen)
	l.current.Store(&Published{l.current.Load().Policy, entry})
}

// Run does the tasks until Stop. It reads the log for a placement; a nil log holds nothing.
func (l *Learner) Run(log Log, placement string) {
	l.log, l.placement = log, placement
	for {
		t, last, ok := l.queue.pop()
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
		l.queue.end(t, l.newCheckpoint())
	}
}

// Stop ends the learner without learning the rounds that are still in its queue.
func (l *Learner) Stop() {
	l.stop()
	l.queue.close()
}

func (l *Learner) isStopped() bool { return l.context.Err() != nil }

// Current returns the policy that was published last.
func (l *Learner) Current() *Published { return l.current.Load() }

// Progress returns how far the learner is. If its policy could not be made or the log could not be read, the problem says so.
func (l *Learner) Progress() Progress {
	lag := l.queue.lagging() // first: a round that is missing in it is in the progress
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

// Families returns how the weights of the utility families over which the policy averages have developed, nil if it does not average.
func (l *Learner) Families() []api.FamilyHistory { return l.families.report() }

// RoundBytes returns the bytes of an offer's round while it waits for a learner.
func RoundBytes(o *offer.Offer) int {
	return setup.RoundBytes(len(o.Features)+len(o.Revenue), len(o.Shown))
}

// Observe gives the learner the round of a decision whose outcome an entry of the log reports. It waits until the queue has room. A
// learner that has nothing else to do may not see the round before Wake.
func (l *Learner) Observe(entry uint64, o *offer.Offer, choice int) {
	l.queue.push(task{what: toObserve, entry: entry, round: o.Round(choice), bytes: RoundBytes(o)})
}

// Wake makes the learner see all rounds that it was given.
func (l *Learner) Wake() { l.queue.wake() }

// HasRoom reports whether Observe will not wait for a round of the given bytes, after other rounds of before bytes. There is
// always room for one round.
func (l *Learner) HasRoom(before, bytes int) bool { return l.queue.hasRoom(before, bytes) }

// AwaitRoom waits until there is room for a round of the given bytes.
func (l *Learner) AwaitRoom(bytes int) { l.queue.awaitRoom(bytes) }

// SetBound changes the maximal bytes of the rounds that wait.
func (l *Learner) SetBound(bytes int) { l.queue.setBound(bytes) }

// call calls f on the goroutine once the policy after all earlier tasks is published. The channel is closed after the call, or if the
// learner has ended.
func (l *Learner) call(f func()) <-chan struct{} {
	done := make(chan struct{})
	if !l.queue.push(task{what: toCall, call: func() { defer close(done); f() }}) {
		close(done)
	}
	return done
}

// Reached returns a channel that is closed once the policy after all tasks up to now is published, or the learner has ended.
func (l *Learner) Reached() <-chan struct{} { return l.call(func() {}) }

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
	if l.progress.Broken || l.progress.Retired {
		l.show("")
		return
	}
	var policy vitrine.Policy
	err, _ := panics.Safely(func() error { policy = l.learner.Policy(); return nil })
	if err == nil && policy == nil {
		err = errors.New("the learner has no policy")
	}
	if err != nil {
		l.show(err.Error())
		return
	}
	l.current.Store(&Published{policy, l.progress.Entry})
	l.families.note(policy, l.progress.Learned)
	l.show("")
}

// show makes the progress visible, with a problem that passes unless it is empty.
func (l *Learner) show(problem string) {
	seen := l.progress
	if problem != "" {
		seen.Problem = problem
	}
	l.seen.Store(&seen)
}

// learn learns a round, and saves the learner if that is due.
func (l *Learner) learn(t *task) {
	l.observe(t)
	if l.queue.isDue(t.bytes, len(l.checkpoint)) {
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
	for _, t := range l.queue.since {
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
