package server

import (
	"context"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Route is a line of the table of routes.
type Route struct {
	Method, Path string
	Scope        string
	Stream       bool
	Documented   bool
	Bodies       []string // their media types
	Personalizer bool     // errors are in that service's shape
}

// Routes are all there are.
func (s *Server) Routes() []Route {
	var list []Route
	for _, rt := range s.routes() {
		r := Route{Method: rt.method, Path: rt.path, Scope: rt.scope, Stream: !rt.timed, Documented: rt.id != "",
			Personalizer: rt.contract != nil}
		for _, c := range rt.body {
			r.Bodies = append(r.Bodies, c.mediaType)
		}
		list = append(list, r)
	}
	return list
}

// MetricNames are the names of all metrics, with series or without.
func (s *Server) MetricNames() (names []string) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		s.metrics.registry.Describe(descriptions)
	}()
	for d := range descriptions {
		names = append(names, regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1])
	}
	return names
}

// Exhaust spends a key's comparisons for filters.
func (s *Server) Exhaust(key string) { s.accounts.of(key).work.Charge(1e9) }

// SetHeartbeat sets the longest silence of a stream.
func (s *Server) SetHeartbeat(d time.Duration) { s.heartbeat = d }

// Turn takes a key's turn to compute a long answer.
func (s *Server) Turn(ctx context.Context, key string) (leave func(), err error) {
	return s.turns.Take(ctx, key)
}

// OneClock is oneClock.
var OneClock = oneClock
