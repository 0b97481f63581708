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
// One lock guards the queue, the progress, the last checkpoint and the tasks performed since. It is held for moments, and
// never while the learner learns or saves itself. The current policy and its substitute are atomic pointers to values that
// never change. Everything else belongs to the goroutine.
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
	"slices"
	"sync"
	"sync/atomic"

	"vitrine"
	"vitrine/bandit"
	"vitrine/service/earnings"
	"vitrine/service/eventlog"
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
	Skipped   uint64 // rounds that it refused, on which it panicked, that came after it broke, or that were in doubt
	Since     uint64 // rounds learned after the last one that it skipped
	Broken    bool
	Retired   bool   // it only keeps states
	Problem   string // the last one

	Lag     uint64 // rounds to learn that the counts above do not include yet
	Waiting uint64 // sales that wait for earlier decisions
}

// Learner is a learner on its goroutine. Make one with [New] or [Restore], and start it with Run.
type Learner struct {
	build   Build
	spec    setup.Spec
	context context.Context // until Stop
	cancel  context.CancelFunc

	current    atomic.Pointer[Published]
	substitute atomic.Pointer[Published]
	asked      atomic.Bool // by Freeze(true)
	families   families

	queue

	// The rest belongs to the goroutine of Run.

	log       eventlog.Log // nil in audits
	placement string       // its entries of the log are read
	history   *history     // replayed; or nil

	learner    saver // nil once retired
	checkpoint []byte
	marked     bool   // the checkpoint is newer than the one in the queue
	behind     int    // rounds since a policy was published
	given      uint64 // rounds from the queue since the progress was shown
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

// Gap describes rounds that the learner was not given. It reads them from the log when it catches up.
type Gap struct {
	After    uint64         // rounds that end after this entry
	From     uint64         // offers from this entry on
	Rounds   uint64         // how many there are
	Doubtful earnings.Doubt // not learned
	Only     []string       // variants, nil for all
}

// Outage describes rounds that no learner learns, because their sales were probably not reported.
type Outage struct {
	After, UpTo uint64 // rounds that end after the first entry, up to the second
	Doubtful    earnings.Doubt
}

// Replaying tells how far a learner is that replays the log.
type Replaying struct {
	From    uint64 // 0 if it does not replay
	Reached uint64 // the last entry that it read
	UpTo    uint64 // the last entry that it is to read
	Lost    bool   // the log lacks entries that it needs
}

// task is a task of a learner.
type task struct {
	what    what
	entry   uint64        // of the log
	round   vitrine.Round // to observe
	bytes   int           // of the round
	version uint64        // to keep, to forget, or to return to
	rounds  uint64        // to skip
	gap     *Gap          // to catch up on
	outages []Outage      // to leave out
	call    func()        // not part of the state
}

type what uint8

// The numbers are part of the state.
const (
	toObserve what = iota
	toKeep
	toCall
	toForget
	toReturn
	toRetire
	toFollow // the log up to an entry
	toEndReplay
	toCatchUp       // on a gap, up to an entry
	toObserveBasket // in states only: a round with further choices
	toSkip          // rounds in doubt, up to an entry
)

// queue is shared between the goroutine and others under a lock. The goroutine may read the fields that only it changes
// without the lock.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond // of anything; its lock is mu
	tasks   []task    // unfinished ones, the oldest first
	busy    bool      // the first one is under way
	bytes   int       // of the rounds that wait
	limit   int       // of bytes
	lag     uint64    // rounds that are not in seen yet
	seen    Progress  // as last shown
	closed  bool
	ended   bool // no task will run any more

	ordering  ordering  // of the rounds that it was given
	saved     State     // the last checkpoint and the tasks done since; the goroutine's
	noted     int       // bytes of these tasks; the goroutine's
	replaying Replaying // UpTo is the caller's, the rest is the goroutine's
}

// State is a saved learner: a checkpoint, and the tasks after it.
type State struct {
	Progress        // of the checkpoint
	Data     []byte // of the vitrine.Learner
	kept     []kept
	since    []task // done since, and then those that wait
	from     uint64 // of its replay, or 0
	ordering ordering
}

// families holds the weights of families after some rounds. When full, it drops every other point and from then on
// notes half as many.
type families struct {
	mu     sync.Mutex
	next   uint64 // rounds after which a point is noted
	stride uint64
	points []familyPoint
}

type familyPoint struct {
	learned uint64
	weights []bandit.Weight
}
