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

// accounts are what the keys have in progress and may spend.
type accounts struct {
	limits Limits

	mu    sync.Mutex
	all   int // requests in progress
	byKey map[string]*account
}

// account is that of a key.
type account struct {
	rate       *rate.Limiter   // nil without a limit
	work       *catalogue.Work // of filters
	inProgress int             // requests
}

// of returns the account of a key. The caller holds mu.
func (a *accounts) of(key string) *account {
	own := a.byKey[key]
	if own == nil {
		own = &account{work: catalogue.NewWork()}
		if a.limits.Rate > 0 {
			own.rate = rate.NewLimiter(rate.Limit(a.limits.Rate), a.limits.Burst)
		}
		if a.byKey == nil {
			a.byKey = map[string]*account{}
		}
		a.byKey[key] = own
	}
	return own
}

// inProgress returns the number of requests in progress.
func (a *accounts) inProgress() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

// wait returns how long the key must wait before its next request; 0 admits the request. left is the number of requests that it may
// make at once after this one.
func (a *account) wait(now time.Time) (delay time.Duration, left float64) {
	if a.rate == nil {
		return 0, 0
	}
	reservation := a.rate.ReserveN(now, 1)
	if delay = reservation.DelayFrom(now); delay > 0 {
		reservation.CancelAt(now)
	}
	return delay, max(a.rate.TokensAt(now), 0)
}

// begin counts a request of an account, unless there are as many as the limit of all keys or perKey of this one. free is the number of
// requests that the key may have in progress besides. The caller holds mu.
func (a *accounts) begin(own *account, perKey int) (free int, err error) {
	switch limit := a.limits.Concurrent; {
	case a.all >= limit:
		return 0, problemf(http.StatusServiceUnavailable, "busy", "%d requests are in progress, which is the limit", limit)
	case own.inProgress >= perKey:
		return 0, problemf(http.StatusServiceUnavailable, "busy", "%d requests of this key are in progress, which is the limit of a key", perKey)
	}
	a.all++
	own.inProgress++
	return min(a.limits.Concurrent-a.all, perKey-own.inProgress), nil
}

// leave ends a request of an account.
func (a *accounts) leave(own *account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all--
	own.inProgress--
}

// enter admits a request, or refuses it if the caller has too many. The answer has the headers RateLimit-Policy and
// RateLimit of draft-ietf-httpapi-ratelimit-headers-10, with the policies that concern the caller's key: "rate", whose r is the
// number of requests that may follow at once and t the seconds until the whole burst may, and "places", the requests in progress.
func (s *Server) enter(c *call) (own *account, err error) {
	places, free := s.share(s.limits.KeyConcurrent, s.limits.Concurrent), 0
	s.accounts.mu.Lock()
	own = s.accounts.of(c.key.name)
	wait, left := own.wait(time.Unix(0, c.now))
	if wait == 0 {
		free, err = s.accounts.begin(own, places)
	}
	s.accounts.mu.Unlock()
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
	return own, err
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
