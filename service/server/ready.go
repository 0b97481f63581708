package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"vitrine/service/api"
	"vitrine/service/decision"
)

// maxLag is how far a follower that is ready may be behind its log.
const maxLag = time.Second

// unseen is less than the lag of a follower that has not been at the end of its log yet.
const unseen = 10 * 365 * 24 * time.Hour

// ready reports what the process does with its log, or why it gets no requests from a load balancer: it is being
// stopped, or too far behind the log that it follows. A process with several logs is ready if it is with one of them. Why the log of
// a shard is away may name hosts, so only callers who may read learn that.
func (s *Server) ready(c *call) error {
	if s.draining.Load() {
		return problemf(http.StatusServiceUnavailable, "draining", "the service is being stopped")
	}
	if !s.several() {
		p := s.slots[0].standing()
		if p.Problem != "" {
			return problemf(http.StatusServiceUnavailable, "lag", "%s", p.Problem)
		}
		return c.answerJSON(http.StatusOK, p)
	}
	all, ready := api.Process{Role: string(decision.Follower)}, false
	for _, number := range s.options.Shards.Follow {
		p := s.slots[number].standing()
		if p.Role == "" && !s.mayRead(c) {
			p.Problem = "this process does not have its log"
		}
		ready = ready || p.Problem == ""
		all.LagSeconds = max(all.LagSeconds, p.LagSeconds)
		if p.Role == string(decision.Leader) {
			all.Role = p.Role
		}
		all.Shards = append(all.Shards, *p)
	}
	if !ready {
		return problemf(http.StatusServiceUnavailable, "lag", "this process is up to date with none of its shards; shard %d: %s", all.Shards[0].Shard, all.Shards[0].Problem)
	}
	return c.answerJSON(http.StatusOK, all)
}

// mayRead reports whether a caller of a route that needs no key has one of the scope read, or needs none.
func (s *Server) mayRead(c *call) bool {
	if c.Request.Context().Value(probeKey{}) != nil {
		return false
	}
	if s.keys == nil {
		return true
	}
	scheme, token, _ := strings.Cut(c.Header.Get("Authorization"), " ")
	key, known := s.keys.find(token)
	return known && strings.EqualFold(scheme, "Bearer") && slices.Contains(key.scopes, ScopeRead)
}

// standing describes this process among those of a log.
func (at *slot) standing() *api.Process {
	s := at.shard.Load()
	if s == nil {
		return &api.Process{Shard: at.number, Problem: at.problem()}
	}
	p := &api.Process{Role: string(s.Engine.Role()), Entry: s.Engine.Sequence(), Shard: at.number}
	if s.Epoch != nil {
		p.Epoch = s.Epoch()
	}
	if s.Engine.Role() != decision.Follower {
		return p
	}
	lag := s.Engine.Lag()
	p.LagSeconds, p.Leader = lag.Seconds(), s.Engine.Leader()
	writes := "which is written by " + p.Leader
	if p.Leader == "" {
		writes = "which no process is known to write"
	}
	switch {
	case lag > unseen:
		p.Problem, p.LagSeconds = "this process is a follower that has not seen the end of the log yet", 0
	case lag > maxLag:
		p.Problem = fmt.Sprintf("this process is a follower and %v behind the log, %s", lag.Round(time.Millisecond), writes)
	}
	return p
}
