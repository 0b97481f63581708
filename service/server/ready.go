package server

import (
	"net/http"
	"time"

	"vitrine/service/api"
	"vitrine/service/decision"
)

// maxLag is how far a follower that is ready may be behind its log.
const maxLag = time.Second

// unseen is less than the lag of a follower that has not been at the end of its log yet.
const unseen = 10 * 365 * 24 * time.Hour

// ready reports what the process does with its log, or why it gets no requests from a load balancer: it is being
// stopped, or too far behind the log that it follows.
func (s *Server) ready(c *call) error {
	p := s.standing()
	lag := time.Duration(p.LagSeconds * float64(time.Second)).Round(time.Millisecond)
	switch {
	case s.draining.Load():
		return problemf(http.StatusServiceUnavailable, "draining", "the service is being stopped")
	case lag > unseen:
		return problemf(http.StatusServiceUnavailable, "lag", "this process is a follower that has not seen the end of the log yet")
	case lag > maxLag && p.Leader == "":
		return problemf(http.StatusServiceUnavailable, "lag", "this process is a follower and %v behind the log, which no process is known to write", lag)
	case lag > maxLag:
		return problemf(http.StatusServiceUnavailable, "lag", "this process is a follower and %v behind the log, which is written by %s", lag, p.Leader)
	}
	return c.answerJSON(http.StatusOK, p)
}

// standing describes this process among those of its log.
func (s *Server) standing() *api.Process {
	p := &api.Process{Role: string(s.shard.Engine.Role()), Entry: s.shard.Engine.Sequence()}
	if s.shard.Engine.Role() == decision.Follower {
		p.LagSeconds, p.Leader = s.shard.Engine.Lag().Seconds(), s.shard.Engine.Leader()
	}
	if s.shard.Epoch != nil {
		p.Epoch = s.shard.Epoch()
	}
	return p
}
