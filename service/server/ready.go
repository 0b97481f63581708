package server

import (
	"fmt"
	"net/http"
	"time"

	"vitrine/service/api"
	"vitrine/service/engine"
)

// MaxLag is how far a follower that is ready may be behind its log.
const MaxLag = time.Second

// maxUnreached is how long a leader stays ready without reaching the log's servers: as long as a write waits for a
// leader. If the servers elect a leader among themselves, they answer again sooner.
const maxUnreached = 5 * time.Second

// ready reports what the process does with its log, or why it gets no requests from a load balancer: it is being
// stopped, cannot write its log, is too far behind the log that it follows, or away from the servers of the log that it
// writes.
func (s *Server) ready(c *call) error {
	if s.draining.Load() {
		return problemf(http.StatusServiceUnavailable, "draining", "the service is being stopped")
	}
	if err := s.engine.Failure(); err != nil {
		return err
	}
	p, problem := s.standing()
	if problem != "" {
		return problemf(http.StatusServiceUnavailable, "lag", "%s", problem)
	}
	return c.answerJSON(http.StatusOK, p)
}

// standing describes this process among those that share the log, and says why it is not ready, if it is not.
func (s *Server) standing() (p *api.Process, problem string) {
	p = &api.Process{Role: string(s.engine.Role()), Entry: s.engine.Sequence()}
	if s.options.Epoch != nil {
		p.Epoch = s.options.Epoch()
	}
	if s.engine.Role() != engine.Follower {
		if s.options.Unreached != nil {
			if d := s.options.Unreached(); d > maxUnreached {
				problem = fmt.Sprintf("this process writes the log, but has not reached the log's servers for %v",
					d.Round(time.Millisecond))
			}
		}
		return p, problem
	}
	lag, sawEnd := s.engine.Lag()
	p.LagSeconds, p.Leader = lag.Seconds(), s.engine.Leader()
	writes := "whose last known writer is " + p.Leader
	if p.Leader == "" {
		writes = "which no process is known to write"
	}
	switch {
	case !sawEnd:
		problem = "this process is a follower that has not seen the end of the log yet"
	case lag > MaxLag:
		problem = fmt.Sprintf("this process is a follower and %v behind the log, %s", lag.Round(time.Millisecond),
			writes)
	}
	return p, problem
}
