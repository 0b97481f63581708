package server

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"vitrine/service/catalogue"
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
	l.Body = cmp.Or(l.Body, 4<<20)
	l.Concurrent = cmp.Or(l.Concurrent, 256)
	l.Burst = cmp.Or(l.Burst, max(int(l.Rate), 1))
	l.Connections = cmp.Or(l.Connections, 4096)
	l.Subscribers = cmp.Or(l.Subscribers, 64)
	l.Answer = cmp.Or(l.Answer, 10*time.Second)
	l.KeyConcurrent = cmp.Or(l.KeyConcurrent, max(l.Concurrent*3/4, 1))
	l.KeySubscribers = cmp.Or(l.KeySubscribers, max(l.Subscribers*3/4, 1))
	return l
}

// rates limits the rates of the keys.
type rates struct {
	limits Limits
	mu     sync.Mutex
	of     map[string]*rate.Limiter // by the name of the key
}

func newRates(l Limits) rates { return rates{limits: l, of: map[string]*rate.Limiter{}} }

// wait returns how long a key must wait before its next request; 0 admits the request. left is the number of requests that
// the key may make at once after this one.
func (r *rates) wait(key string, now time.Time) (delay time.Duration, left float64) {
	if r.limits.Rate == 0 {
		return 0, 0
	}
	r.mu.Lock()
	l := r.of[key]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(r.limits.Rate), r.limits.Burst)
		r.of[key] = l
	}
	r.mu.Unlock()
	reservation := l.ReserveN(now, 1)
	if delay = reservation.DelayFrom(now); delay > 0 {
		reservation.CancelAt(now)
	}
	return delay, max(l.TokensAt(now), 0)
}

// works are the accounts of the keys for the work of filters.
type works struct {
	mu    sync.Mutex
	byKey map[string]*catalogue.Work
}

func (w *works) of(key string) *catalogue.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil {
		w.byKey = map[string]*catalogue.Work{}
	}
	if w.byKey[key] == nil {
		w.byKey[key] = catalogue.NewWork()
	}
	return w.byKey[key]
}

// enter admits a request, or refuses it if the caller has too many. The answer has the headers RateLimit-Policy and
// RateLimit of draft-ietf-httpapi-ratelimit-headers-10, with the policies that concern the caller's key: "rate", whose r is the
// number of requests that may follow at once and t the seconds until the whole burst may, and "places", the requests in progress.
func (s *Server) enter(c *call) (leave func(), err error) {
	wait, left := s.rates.wait(c.key, time.Unix(0, c.now))
	places, free := s.share(s.limits.KeyConcurrent, s.limits.Concurrent), 0
	if wait == 0 {
		leave, free, err = s.inProgress.acquire(c.key, s.limits.Concurrent, places)
	}
	var policy, state []byte
	if l := s.limits; l.Rate > 0 {
		policy = fmt.Appendf(policy, `"rate";q=%d;w=%d`, l.Burst, seconds(float64(l.Burst)/l.Rate))
		state = fmt.Appendf(state, `"rate";r=%d;t=%d`, int(left), seconds((float64(l.Burst)-left)/l.Rate))
	}
	if s.keys != nil && wait == 0 {
		policy = fmt.Appendf(separated(policy), `"places";q=%d;qu="concurrent-requests"`, places)
		state = fmt.Appendf(separated(state), `"places";r=%d`, free)
	}
	if policy != nil {
		h := c.w.Header()
		h["Ratelimit-Policy"], h["Ratelimit"] = []string{string(policy)}, []string{string(state)}
	}
	if wait > 0 {
		p := problemf(http.StatusTooManyRequests, "rate", "more than %v requests a second", s.limits.Rate)
		p.retry = strconv.Itoa(int(wait/time.Second) + 1)
		return nil, p
	}
	return leave, err
}

// separated returns the beginning of a list of header values, ready for the next one.
func separated(list []byte) []byte {
	if len(list) > 0 {
		list = append(list, ", "...)
	}
	return list
}

// seconds rounds up to whole seconds.
func seconds(s float64) int { return int(min(math.Ceil(s), math.MaxInt32)) }

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

// count returns the number of requests in progress.
func (p *semaphore) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// acquire counts a request of a key, unless there are limit of all keys or perKey of this one. free is the number of requests
// that the key may have in progress besides.
func (p *semaphore) acquire(key string, limit, perKey int) (release func(), free int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.all >= limit:
		return nil, 0, problemf(http.StatusServiceUnavailable, "busy", "%d requests are in progress, which is the limit", limit)
	case p.byKey[key] >= perKey:
		return nil, 0, problemf(http.StatusServiceUnavailable, "busy", "%d requests of this key are in progress, which is the limit of a key", perKey)
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
	}, min(limit-p.all, perKey-p.byKey[key]), nil
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
