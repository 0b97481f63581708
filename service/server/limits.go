package server

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound what is let in. 0 is the value in parentheses. How many items a
// decision may have is for each placement to say, in its max_items.
type Limits struct {
	Body        int64         // bytes of a body (4 MiB)
	Concurrent  int           // requests under way (256): with Body, what bodies take of memory
	Rate        float64       // requests a second of each key, or of all without keys (no limit)
	Burst       int           // of them at once (a second's)
	Connections int           // open at once, each with a file descriptor that the log may need (4096)
	Subscribers int           // of /v1/events (64)
	Answer      time.Duration // for an answer, once its body is read (10 s)

	// The share of these that one key may take, if there are several keys (three quarters)
	KeyConcurrent, KeySubscribers int
}

func (l Limits) withDefaults() Limits {
	if l.Body == 0 {
		l.Body = 4 << 20
	}
	if l.Concurrent == 0 {
		l.Concurrent = 256
	}
	if l.Burst == 0 {
		l.Burst = max(int(l.Rate), 1)
	}
	if l.Connections == 0 {
		l.Connections = 4096
	}
	if l.Subscribers == 0 {
		l.Subscribers = 64
	}
	if l.KeyConcurrent == 0 {
		l.KeyConcurrent = max(l.Concurrent*3/4, 1)
	}
	if l.KeySubscribers == 0 {
		l.KeySubscribers = max(l.Subscribers*3/4, 1)
	}
	if l.Answer == 0 {
		l.Answer = 10 * time.Second
	}
	return l
}

// rates are the buckets of the keys, by name.
type rates struct {
	limits Limits
	mu     sync.Mutex
	of     map[string]*rate.Limiter
}

// wait returns how long a key must wait for its next request; 0 lets it in.
func (r *rates) wait(key string, now time.Time) time.Duration {
	if r.limits.Rate == 0 {
		return 0
	}
	r.mu.Lock()
	l := r.of[key]
	if l == nil {
		if r.of == nil {
			r.of = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(r.limits.Rate), r.limits.Burst)
		r.of[key] = l
	}
	r.mu.Unlock()
	reservation := l.ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	if delay > 0 {
		reservation.CancelAt(now)
	}
	return delay
}

// enter takes a place among the requests under way.
func (s *Server) enter(c *call) (leave func(), err error) {
	if wait := s.rates.wait(c.key, time.Unix(0, c.now)); wait > 0 {
		p := problemf(http.StatusTooManyRequests, "rate", "more than %v requests a second", s.limits.Rate)
		p.retry = strconv.Itoa(int(wait/time.Second) + 1)
		return nil, p
	}
	return s.places.take(c.key, s.limits.Concurrent, s.share(s.limits.KeyConcurrent, s.limits.Concurrent))
}

// share returns how much of a limit one key may take.
func (s *Server) share(each, all int) int {
	if s.keys == nil || len(s.keys.file.get()) == 1 {
		return all
	}
	return min(each, all)
}

// places are taken by the requests under way.
type places struct {
	mu    sync.Mutex
	taken int
	of    map[string]int // by key
}

// take takes a place for a key, unless all have been taken, or as many as one key may take.
func (p *places) take(key string, all, each int) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= all:
		return nil, problemf(http.StatusServiceUnavailable, "busy", "%d requests are under way, which is the most", all)
	case p.of[key] >= each:
		return nil, problemf(http.StatusServiceUnavailable, "busy", "%d requests of this key are under way, which is the most of one", each)
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.taken++
	p.of[key]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken--
		p.of[key]--
	}, nil
}

// checkOrigin keeps the pages of other sites, which a browser on this machine may
// show, from a service that asks for no key: their requests name another origin,
// or another host where a name of theirs was made to mean this machine.
func (s *Server) checkOrigin(c *call) error {
	if s.keys != nil {
		return nil
	}
	if c.Host != "" && !isLoopback(c.Host) || s.origin.Check(c.Request) != nil {
		return problemf(http.StatusForbidden, "forbidden", "without API keys only requests to localhost, and from its own pages, are answered")
	}
	return nil
}

// isLoopback reports an address, with a port or without, of this machine alone.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(trimBrackets(host))
	return ip != nil && ip.IsLoopback()
}

func trimBrackets(host string) string {
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}
