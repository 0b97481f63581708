package decision

import (
	"slices"
	"sync"

	"vitrine/service/offer"
	"vitrine/service/setup"
)

// queue holds the tasks that wait for a learner, the oldest first. The bytes of its rounds are bounded.
type queue struct {
	mu      sync.Mutex
	changed sync.Cond // of anything; its lock is mu
	tasks   []task
	small   [16]task // the array of tasks, unless more wait; then it is empty
	current []task   // the task taken last, until it ends
	bytes   int
	limit   int
	upTo    uint64 // the entry up to which the log is learned from
	closed  bool
}

func newQueue(limit int) *queue {
	q := &queue{limit: limit}
	q.changed.L = &q.mu
	q.tasks = q.small[:0]
	return q
}

// push adds a task. It waits until there is room, unless the queue is empty. A learner that waits in
// pop may not see a round before rouse.
func (q *queue) push(t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.makeRoom(t.bytes)
	q.add(t)
	q.bytes += t.bytes
	if t.what != toObserve {
		q.changed.Broadcast()
	}
}

// add adds tasks. The caller holds mu.
func (q *queue) add(tasks ...task) {
	if len(q.tasks)+len(tasks) > cap(q.tasks) {
		q.tasks = slices.Grow(q.tasks, len(tasks))
		clear(q.small[:]) // which would keep the rounds
	}
	q.tasks = append(q.tasks, tasks...)
}

// rouse wakes a learner that waits in pop.
func (q *queue) rouse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changed.Broadcast()
}

// makeRoom waits until there is room for a round, or the queue is empty or closed. The caller holds mu.
func (q *queue) makeRoom(bytes int) {
	for first := true; q.bytes > 0 && bytes > 0 && q.bytes+bytes > q.limit && !q.closed; first = false {
		if first {
			q.changed.Broadcast() // as rouse
		}
		q.changed.Wait()
	}
}

// pop takes the oldest task, and waits while there is none; ok is false after the
// last of a closed queue. last reports that there is none after it.
func (q *queue) pop() (t task, last, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.tasks) == 0 && !q.closed {
		q.changed.Wait()
	}
	if len(q.tasks) == 0 {
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

// end ends the task taken last, and calls f with a task under the lock.
func (q *queue) end(f func(task), t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.current)
	q.current = q.current[:0]
	f(t)
}

// look calls f with the tasks that have not ended.
func (q *queue) look(f func(tasks []task)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(slices.Concat(q.current, q.tasks))
}

// refill adds tasks of a snapshot, without waiting for room.
func (q *queue) refill(tasks []task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(tasks...)
	for _, t := range tasks {
		q.bytes += t.bytes
		if t.what == toFollow {
			q.upTo = t.sequence
		}
	}
}

// follow adds the task to learn from the log up to an entry, or changes the last task to that.
func (q *queue) follow(upTo uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.upTo = upTo
	if last := len(q.tasks) - 1; last >= 0 && q.tasks[last].what == toFollow {
		q.tasks[last].sequence = upTo
		return
	}
	q.add(task{what: toFollow, sequence: upTo})
	q.changed.Broadcast()
}

// followed returns the last entry of the log that is to be learned from.
func (q *queue) followed() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.upTo
}

// hold calls f with a task under the lock, while another one goes on.
func (q *queue) hold(f func(task), t task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f(t)
}

// await waits until there is room for a round.
func (q *queue) await(bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.makeRoom(bytes)
}

// room reports whether a round of the given bytes can be pushed without waiting, after other rounds of before
// bytes. There is always room for one round.
func (q *queue) room(before, bytes int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	before += q.bytes
	return before == 0 || before+bytes <= q.limit
}

func (q *queue) bound() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit
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

// bytesOf returns the bytes of the round of an offer while it waits for the learner.
func bytesOf(o *offer.Offer) int {
	return setup.RoundBytes(len(o.Features)+len(o.Revenue), len(o.Shown))
}
