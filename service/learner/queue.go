package learner

import (
	"slices"
	"sync"

	"vitrine"
)

// task is a task of a learner.
type task struct {
	what    what
	entry   uint64        // of the log
	round   vitrine.Round // to observe
	bytes   int           // of the round
	version uint64        // to keep, to forget, or to return to
	gap     *Gap          // to catch up on
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
	toCatchUp // on a gap, up to an entry
)

// queue is what a learner's goroutine shares with others: the tasks that wait, the oldest first, the last checkpoint, and the tasks
// done since. The goroutine alone changes saved and since, and may read them without the lock.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond // of anything; its lock is mu
	tasks   []task
	small   [16]task // the array of tasks, unless more wait; then it is empty
	current []task   // the task taken last, until it ends
	bytes   int      // of the rounds that wait
	limit   int      // of bytes
	lag     uint64   // rounds that have not ended
	closed  bool
	ended   bool // nothing is done any more

	saved State  // the last checkpoint
	since []task // done since
	noted int    // bytes of since

	upTo    uint64 // the entry up to which the log is to be read
	reached uint64 // the last one that was
	lost    bool   // the log no longer has it
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit}
	q.changed.L = &q.mu
	q.tasks = q.small[:0]
	return q
}

// push adds a task. It waits until there is room, unless the queue is empty. A learner that waits in pop may not see a round before
// wake. It reports false if nothing is done any more.
func (q *queue) push(t task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.makeRoom(t.bytes)
	q.add(t)
	if t.what != toObserve {
		q.changed.Broadcast()
	}
	return !q.ended
}

// add adds tasks without waiting. The caller holds mu.
func (q *queue) add(tasks ...task) {
	if len(q.tasks)+len(tasks) > cap(q.tasks) {
		q.tasks = slices.Grow(q.tasks, len(tasks))
		clear(q.small[:]) // which would keep the rounds
	}
	q.tasks = append(q.tasks, tasks...)
	for _, t := range tasks {
		q.bytes += t.bytes
		switch t.what {
		case toObserve:
			q.lag++
		case toFollow:
			q.upTo = t.entry
		}
	}
}

// wake wakes a learner that waits in pop.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

// makeRoom waits until there is room for a round, or the queue is empty or closed. The caller holds mu.
func (q *queue) makeRoom(bytes int) {
	for first := true; q.bytes > 0 && bytes > 0 && q.bytes+bytes > q.limit && !q.closed; first = false {
		if first {
			q.changed.Broadcast() // as wake
		}
		q.changed.Wait()
	}
}

// pop takes the oldest task, and waits while there is none; ok is false after the last of a closed queue. last reports that there is
// none after it.
func (q *queue) pop() (t task, last, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.tasks) == 0 && !q.closed {
		q.changed.Wait()
	}
	if len(q.tasks) == 0 {
		q.ended = true
		return task{}, true, false
	}
	t = q.tasks[0]
	q.tasks[0] = task{}
	if q.tasks = q.tasks[1:]; len(q.tasks) == 0 {
		q.tasks = q.small[:0] // so that a larger array is freed
	}
	q.current = append(q.current[:0], t)
	q.bytes -= t.bytes
	q.changed.Broadcast()
	return t, len(q.tasks) == 0, true
}

// end ends the task taken last, and notes it.
func (q *queue) end(t task, checkpoint *State) {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.current)
	q.current = q.current[:0]
	switch t.what {
	case toObserve:
		q.lag--
	case toEndReplay:
		q.saved.from = 0
	}
	q.note(t, checkpoint)
}

// hold notes a round while another task goes on, which reads it from the log.
func (q *queue) hold(t task, checkpoint *State) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.note(t, checkpoint)
}

// note notes what was done since the checkpoint, or that there is a new one, nil if there is none. The caller holds mu.
func (q *queue) note(t task, checkpoint *State) {
	switch {
	case checkpoint != nil:
		checkpoint.from = q.saved.from
		q.saved = *checkpoint
		clear(q.since)
		q.since, q.noted = q.since[:0], 0
	case t.what <= toRetire && t.what != toCall: // the others leave their rounds
		q.since = append(q.since, t)
		q.noted += t.bytes
	}
}

// isDue reports whether a checkpoint of the given bytes is to be made anew after one more round: the rounds since then take as many
// bytes as it, so that saving a large learner costs little a round, or as many as they may, where the next round is up to a quarter of
// that.
func (q *queue) isDue(round, checkpoint int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := len(q.since)+1, q.noted+round
	return n >= checkpointRounds && bytes >= checkpoint || bytes > q.limit*3/4
}

// view returns the last checkpoint and all later tasks.
func (q *queue) view() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.saved
	s.since = slices.DeleteFunc(slices.Concat(q.since, q.current, q.tasks), func(t task) bool { return t.what == toCall })
	return s
}

// kept returns the state of a version; ok is false if there is none.
func (q *queue) kept(version uint64) (k kept, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if found := find(q.saved.kept, version); found != nil {
		return *found, true
	}
	return k, false
}

// follow adds the task to learn from the log up to an entry, or changes the last task to that.
func (q *queue) follow(upTo uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last := len(q.tasks) - 1; last >= 0 && q.tasks[last].what == toFollow {
		q.tasks[last].entry, q.upTo = upTo, upTo
		return
	}
	q.add(task{what: toFollow, entry: upTo})
	q.changed.Broadcast()
}

// reach notes how far the log was read, or that it no longer has what is needed.
func (q *queue) reach(entry uint64, lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost = q.lost || lost; !lost {
		q.reached = entry
	}
}

func (q *queue) lagging() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lag
}

// awaitRoom waits until there is room for a round.
func (q *queue) awaitRoom(bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.makeRoom(bytes)
}

func (q *queue) hasRoom(before, bytes int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before += q.bytes
	return before == 0 || before+bytes <= q.limit
}

func (q *queue) setBound(bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = bytes
	q.changed.Broadcast()
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
