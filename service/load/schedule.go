package load

import (
	"math/rand/v2"
	"sync"
	"time"
)

// task is a request that is due.
type task struct {
	due   time.Time
	round int // of the decision, from 0 on

	decision string // of an outcome: its decision; "" if the task is a decision
	choice   string // an outcome's item, or ""
}

// schedule returns tasks in order of time.
type schedule struct {
	rate    float64   // decisions per second; 0 is a closed loop
	poisson bool      // whether gaps are exponential
	max     int       // number of decisions; 0 is no limit
	end     time.Time // of decisions; zero is no limit
	rng     *rand.Rand

	mu       sync.Mutex
	round    int       // of the next decision
	at       time.Time // when it is due
	outcomes []task    // almost in order of time
	over     bool
	unsent   int
}

func newSchedule(o *Options, start time.Time, rng *rand.Rand) *schedule {
	s := &schedule{rate: o.Rate, poisson: o.Poisson, max: o.Decisions, rng: rng, at: start}
	if o.Duration > 0 {
		s.end = start.Add(o.Duration)
	}
	return s
}

// gap draws the time between two decisions.
func (s *schedule) gap() time.Duration {
	g := 1 / s.rate
	if s.poisson {
		g *= s.rng.ExpFloat64()
	}
	return time.Duration(g * float64(time.Second))
}

// next returns the next task, which may be due later. ok is false if no task is left for this caller: only a caller
// that just decided adds an outcome, and it calls next again.
func (s *schedule) next(now time.Time) (t task, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rate == 0 {
		s.at = now
	}
	if !s.over && s.done(now) {
		s.over = true
	}
	if len(s.outcomes) > 0 && (s.over || !s.outcomes[0].due.After(s.at)) {
		t = s.outcomes[0]
		s.outcomes = s.outcomes[1:]
		return t, true
	}
	if s.over {
		return t, false
	}
	t = task{due: s.at, round: s.round}
	s.round++
	if s.rate > 0 {
		s.at = s.at.Add(s.gap())
	}
	return t, true
}

// done reports whether there are no more decisions. It counts those that were due but found no free
// connection.
func (s *schedule) done(now time.Time) bool {
	if s.max > 0 && s.round >= s.max {
		return true
	}
	if s.end.IsZero() || s.at.Before(s.end) && now.Before(s.end) {
		return false
	}
	for s.rate > 0 && s.at.Before(s.end) && (s.max == 0 || s.round+s.unsent < s.max) {
		s.unsent++
		s.at = s.at.Add(s.gap())
	}
	return true
}

// stop ends a run that is interrupted.
func (s *schedule) stop(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.IsZero() || now.Before(s.end) {
		s.end = now
	}
	s.over = s.over || s.done(now)
}

func (s *schedule) add(t task) {
	s.mu.Lock()
	s.outcomes = append(s.outcomes, t)
	s.mu.Unlock()
}
