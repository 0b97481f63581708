package server

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits limits requests. 0 stands for the default in parentheses. A placement's max_items limits the
// items of a request.
type Limits struct {
	Body        int64         // bytes of a body (4 MiB)
	Concurrent  int           // requests in progress (256)
	Rate        float64       // requests per second of each key, or of all callers if there are no keys (no limit)
	Burst       int           // requests at once, within Rate (the requests of a second)
	Connections int           // open connections; each takes a file descriptor (4096)
	Subscribers int           // listeners of /v1/events (64)
	Answer      time.Duration // time for an answer (10 s)

	KeyConcurrent  int // requests in progress of one key, if there are several keys (three quarters of Concurrent)
	KeySubscribers int // listeners of one key, if there are several keys (three quarters of Subscribers)
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

// rates limits the rates of the keys, by name.
type rates struct {
	limits Limits
	mu     sync.Mutex
	of     map[string]*rate.Limiter
}

// wait returns how long a key must wait before its next request; 0 admits the request.
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

// enter admits a request, or refuses it if the caller has too many.
func (s *Server) enter(c *call) (leave func(), err error) {
	if wait := s.rates.wait(c.key, time.Unix(0, c.now)); wait > 0 {
		p := problemf(http.StatusTooManyRequests, "rate", "more than %v requests a second", s.limits.Rate)
		p.retry = strconv.Itoa(int(wait/time.Second) + 1)
		return nil, p
	}
	return s.inProgress.acquire(c.key, s.limits.Concurrent, s.share(s.limits.KeyConcurrent, s.limits.Concurrent))
}

// share returns how much of a limit one key may take.
func (s *Server) share(perKey, all int) int {
	if s.keys == nil || len(s.keys.file.get()) == 1 {
		return all
	}
	return min(perKey, all)
}

// semaphore counts the requests in progress.
type semaphore struct {
	mu    sync.Mutex
	all   int
	byKey map[string]int
}

// acquire counts a request of a key, unless there are limit of all keys or perKey of this one.
func (p *semaphore) acquire(key string, limit, perKey int) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.all >= limit:
		return nil, problemf(http.StatusServiceUnavailable, "busy", "%d requests are in progress, which is the limit", limit)
	case p.byKey[key] >= perKey:
		return nil, problemf(http.StatusServiceUnavailable, "busy", "%d requests of this key are in progress, which is the limit of a key", perKey)
	}
	if p.byKey == nil {
		p.byKey = map[string]int{}
	}
	p.all++
	p.byKey[key]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.all--
		p.byKey[key]--
	}, nil
}

// checkOrigin protects a service without keys from pages of other sites in a browser on this machine.
// Their requests have another origin, or another host if the site's name resolves to this machine.
func (s *Server) checkOrigin(c *call) error {
	if s.keys != nil {
		return nil
	}
	if c.Host != "" && !isLoopback(c.Host) || s.origin.Check(c.Request) != nil {
		return problemf(http.StatusForbidden, "forbidden", "without API keys the service answers only requests to localhost and from its own pages")
	}
	return nil
}

// isLoopback reports whether an address, with or without a port, is a loopback address.
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
