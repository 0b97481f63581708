package bandit

import (
	"math"
	"sync"
	"time"

	"vitrine/internal/panics"
	"vitrine/mle"
)

// fitJob is a full fit of all experts to a learner's rounds, which runs alongside the learner. The learner goes on
// learning by its filter and also gives its rounds to the job, whose fitted beliefs learn them too. After round due the
// learner adopts these beliefs. So its knowledge after a round does not depend on how long the fit takes.
//
// If rounds come faster than the fit can keep up with, Observe waits a little in each of them, rather than for the
// whole fit in the last.
type fitJob struct {
	due    int // the round after which the result is taken
	fold   int // kept rounds that the result folded
	moved  bool
	room   *mle.Choices  // where the learner moves its rounds, or nil; so Observe does not wait for new memory
	result *beliefs      // the job's, until wait
	took   time.Duration // the fit's time; 0 until it ends
	fits   panics.Catcher

	pace  time.Duration // of the fit, for each round until due
	late  time.Duration // how long it should take at most
	begun time.Time
	given int           // rounds since
	ended chan struct{} // closed when the fit ended and only rounds are left to learn

	mu      sync.Mutex
	moves   sync.Cond // a round is learned, or all is done
	running bool
	broken  bool // by a panic
	queue   []queued
	tangent tangent
}

// queued is a round, as it came, and the standardisation in use.
type queued struct {
	round *mle.Choices
	z     standardisation
}

const (
	maxPause   = 3 * time.Millisecond // for a fit, in one round
	maxBacklog = 8                    // rounds that are waited for, in one round
)

// newFitJob returns a job that is not running.
func newFitJob(due int, result *beliefs) *fitJob {
	j := &fitJob{due: due, result: result, ended: make(chan struct{})}
	j.moves.L = &j.mu
	return j
}

// start runs a fit that probably takes the expected time, 0 if unknown, within a number of rounds.
func (j *fitJob) start(expected time.Duration, lag int, fit func()) {
	j.begun, j.running, j.broken, j.pace, j.late = time.Now(), true, true, maxPause, math.MaxInt64
	if expected > 0 && lag > 0 {
		// Three quarters of the rounds are for the fit, and it may take a quarter longer than expected.
		j.late = expected * 5 / 4
		j.pace = j.late * 4 / 3 / time.Duration(lag)
	}
	go func() {
		defer j.end()
		defer j.fits.Catch()
		fit()
		j.took = time.Since(j.begun)
		close(j.ended)
		for {
			r, more := j.next()
			if !more {
				return
			}
			j.learn(r)
		}
	}()
}

// next returns the first round of the queue, and whether there is one.
func (j *fitJob) next() (r queued, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.moves.Broadcast()
	if len(j.queue) == 0 {
		j.running, j.broken = false, false
		return queued{}, false
	}
	r, j.queue = j.queue[0], j.queue[1:]
	return r, true
}

// end releases those who wait, also if the fit panicked.
func (j *fitJob) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running = false
	j.moves.Broadcast()
}

// learn moves the fitted beliefs by a round.
func (j *fitJob) learn(r queued) {
	if j.result.z.shift == nil {
		j.result.z = r.z
	}
	if r.round.Rows() > 0 {
		j.result.learn(r.round, false, &j.tangent)
	}
}

// teach gives the job a round. It waits if the job is behind.
func (j *fitJob) teach(r queued) {
	j.given++
	j.mu.Lock()
	if !j.running {
		j.mu.Unlock()
		if !j.broken {
			j.learn(r)
		}
		return
	}
	j.queue = append(j.queue, r)
	left := max(0, len(j.queue)-1-maxBacklog)
	j.mu.Unlock()

	select {
	case <-j.ended:
	default:
		if pause := j.pause(time.Since(j.begun)); pause > 0 {
			timer := time.NewTimer(pause)
			defer timer.Stop()
			select {
			case <-j.ended:
			case <-timer.C:
			}
		}
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.running && len(j.queue) > left {
		j.moves.Wait()
	}
}

// pause returns how long a round waits for a fit that has run for some time. If that is too long, all remaining rounds
// share the wait, so that the last one does not wait for the whole rest.
func (j *fitJob) pause(elapsed time.Duration) time.Duration {
	if elapsed > j.late {
		return maxPause
	}
	return min(j.pace*time.Duration(j.given)-elapsed, maxPause)
}

// wait returns when the fit has ended and all rounds are learned. If the fit panicked, wait panics.
func (j *fitJob) wait() {
	j.mu.Lock()
	for j.running {
		j.moves.Wait()
	}
	j.mu.Unlock()
	j.fits.Repanic()
}
