package learner

import (
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// push adds a task. A round waits for room, unless it is the only one. push returns false if no task will run any more.
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

// makeRoom waits until there is room for a round, or no other one waits, or the queue is closed. The caller holds mu.
func (q *queue) makeRoom(bytes int) {
	for first := true; q.bytes > 0 && bytes > 0 && q.bytes+bytes > q.limit-q.ordering.bytes && !q.closed; first = false {
		if first {
			q.changed.Broadcast() // as Wake
		}
		q.changed.Wait()
	}
}

// add adds a task without waiting. The caller holds mu.
func (q *queue) add(t task) {
	q.tasks = append(q.tasks, t)
	q.bytes += t.bytes
	switch t.what {
	case toObserve:
		q.lag++
	case toFollow:
		q.replaying.UpTo = t.entry
	}
}

// pop waits for the oldest task and takes it; ok is false after the last task of a closed queue. last reports that it
// is the only one.
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
	t, q.busy = q.tasks[0], true
	q.bytes -= t.bytes
	q.changed.Broadcast()
	return t, len(q.tasks) == 1, true
}

// end ends the task taken last, and notes it.
func (q *queue) end(checkpoint *State) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tasks[0]
	q.tasks[0] = task{}
	if q.tasks = q.tasks[1:]; len(q.tasks) == 0 {
		q.tasks = nil // frees the array
	}
	q.busy = false
	if t.what == toEndReplay {
		q.replaying.From = 0
	}
	q.note(t, checkpoint)
}

// note notes a task performed after the last checkpoint, or a new checkpoint unless it is nil. The caller holds mu.
func (q *queue) note(t task, checkpoint *State) {
	last := len(q.saved.since) - 1
	switch {
	case checkpoint != nil:
		clear(q.saved.since)
		checkpoint.since = q.saved.since[:0]
		q.saved, q.noted = *checkpoint, 0
	case t.what == toSkip && last >= 0 && q.saved.since[last].what == toSkip: // so that outages take little memory
		q.saved.since[last].entry = t.entry
		q.saved.since[last].rounds += t.rounds
	case t.what <= toRetire && t.what != toCall || t.what == toSkip: // the others leave their rounds
		q.saved.since = append(q.saved.since, t)
		q.noted += t.bytes
	}
}

// holds calls f under the lock.
func (q *queue) holding(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
}

// keeps returns a version's state, if it is kept.
func (q *queue) keeps(version uint64) (k kept, ok bool) {
	q.holding(func() {
		if found := find(q.saved.kept, version); found != nil {
			k, ok = *found, true
		}
	})
	return k, ok
}

// RoundBytes returns the bytes of an offer's round while it waits for a learner.
func RoundBytes(o *offer.Offer) int {
	return setup.RoundBytes(len(o.Features)+len(o.Revenue), len(o.Shown))
}

// Observe gives the learner the round of a decision, by its entry, whose outcome was logged at another entry. Sales wait:
// see [Learner.Settle]. Observe blocks while the queue is full. An idle learner may not see the round before Wake.
func (l *Learner) Observe(entry, decision uint64, o *offer.Offer, choice int, basket eventlog.Basket) {
	t := task{what: toObserve, round: o.Round(choice, basket), bytes: RoundBytes(o)}
	var due []task
	l.holding(func() { due = l.ordering.admit(sale{decision, t}, l.limit/2) })
	l.observeAll(entry, due)
}

// Settle says, as of an entry, that all decisions up to another one have ended: their sales wait no longer.
func (l *Learner) Settle(entry, settled uint64) {
	var due []task
	l.holding(func() { due = l.ordering.settle(settled, l.limit/2) })
	if len(due) > 0 {
		l.observeAll(entry, due)
		l.Wake()
	}
}

func (l *Learner) observeAll(entry uint64, rounds []task) {
	for _, t := range rounds {
		t.entry = entry
		l.push(t)
	}
}

// Wake makes the learner see all rounds that it was given.
func (l *Learner) Wake() { l.holding(l.changed.Broadcast) }

// HasRoom reports whether Observe would take a round of the given bytes without blocking, after other rounds of before
// bytes. A single round always fits.
func (l *Learner) HasRoom(before, bytes int) (ok bool) {
	l.holding(func() { ok = l.bytes+before == 0 || l.bytes+before+bytes <= l.limit-l.ordering.bytes })
	return ok
}

// AwaitRoom waits until there is room for a round of the given bytes.
func (l *Learner) AwaitRoom(bytes int) { l.holding(func() { l.makeRoom(bytes) }) }

// SetBound changes the maximal bytes of the rounds that wait.
func (l *Learner) SetBound(bytes int) { l.holding(func() { l.limit = bytes; l.changed.Broadcast() }) }

// call calls f on the goroutine once the policy after all earlier tasks is published. The channel is closed after the
// call, or when the learner ends.
func (l *Learner) call(f func()) <-chan struct{} {
	done := make(chan struct{})
	if !l.push(task{what: toCall, call: func() { defer close(done); f() }}) {
		close(done)
	}
	return done
}

// Reached returns a channel that is closed once the policy after all present tasks is published, or the learner ends.
func (l *Learner) Reached() <-chan struct{} { return l.call(func() {}) }

// Stop ends the learner without learning the rounds that are still in its queue.
func (l *Learner) Stop() {
	l.cancel()
	l.holding(func() { l.closed = true; l.changed.Broadcast() })
}

func (l *Learner) isStopped() bool { return l.context.Err() != nil }
