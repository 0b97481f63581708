package server

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"vitrine/service/catalogue"
)

// Limits limits requests. 0 stands for the default in parentheses. A placement's max_request_items limits the
// items that a request brings.
type Limits struct {
	Body        int64         `toml:"body"`        // bytes of a body (4 MiB)
	Concurrent  int           `toml:"concurrent"`  // requests in progress, whose bodies have come (256)
	Rate        float64       `toml:"rate"`        // requests per second of each key, or of all callers if there are no keys (no limit)
	Burst       int           `toml:"burst"`       // requests at once, within Rate (the requests of a second)
	Connections int           `toml:"connections"` // open connections; each takes a file descriptor (DefaultConnections)
	Subscribers int           `toml:"subscribers"` // listeners of /v1/events (64)
	Answer      time.Duration `toml:"-"`           // time for an answer (10 s)

	KeyConcurrent  int `toml:"key_concurrent"`  // requests in progress of one key, if there are several keys (three quarters of Concurrent)
	KeySubscribers int `toml:"key_subscribers"` // listeners of one key, if there are several keys (three quarters of Subscribers)
}

// DefaultConnections is the default of [Limits].
const DefaultConnections = 4096

func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(l.Body, 4<<20)
	l.Concurrent = cmp.Or(l.Concurrent, 256)
	l.Burst = cmp.Or(l.Burst, max(int(l.Rate), 1))
	l.Connections = cmp.Or(l.Connections, DefaultConnections)
	l.Subscribers = cmp.Or(l.Subscribers, 64)
	l.Answer = cmp.Or(l.Answer, 10*time.Second)
	l.KeyConcurrent = cmp.Or(l.KeyConcurrent, max(l.Concurrent*3/4, 1))
	l.KeySubscribers = cmp.Or(l.KeySubscribers, max(l.Subscribers*3/4, 1))
	return l
}

// accounts holds the keys' request rates.
type accounts struct {
	limits Limits

	mu    sync.Mutex
	byKey map[string]account
}

// account is a key's request rate.
type account struct {
	rate *rate.Limiter
	work *catalogue.Work // of filters
}

func (a *accounts) of(key string) account {
	a.mu.Lock()
	defer a.mu.Unlock()
	own, ok := a.byKey[key]
	if !ok {
		own = account{rate.NewLimiter(rate.Limit(a.limits.Rate), a.limits.Burst), catalogue.NewWork()}
		if a.byKey == nil {
			a.byKey = map[string]account{}
		}
		a.byKey[key] = own
	}
	return own
}

// wait returns how long the key must wait before its next request; 0 admits the request. left is the number of requests
// that may follow at once.
func (a account) wait(now time.Time) (delay time.Duration, left float64) {
	reservation := a.rate.ReserveN(now, 1)
	if delay = reservation.DelayFrom(now); delay > 0 {
		reservation.CancelAt(now)
	}
	return delay, max(a.rate.TokensAt(now), 0)
}

// enter takes a place for the call, and returns how many its key could still take.
func (c *call) enter() (free int, err error) {
	s := c.server
	free, err = s.requests.Take(c.key.Name, s.limits.Concurrent, s.share(s.limits.KeyConcurrent, s.limits.Concurrent))
	c.placed = err == nil
	return free, err
}

// leave gives up the call's place, if it holds one.
func (c *call) leave() {
	if c.placed {
		c.placed = false
		c.server.requests.Leave(c.key.Name)
	}
}

// admit admits a request, which takes a place if placed, or refuses it if the caller sends too many. It sets the headers RateLimit-Policy and
// RateLimit of draft-ietf-httpapi-ratelimit-headers-10 with the policies of the caller's key: "rate" (r: requests that
// may follow at once, t: seconds until a whole burst may) and "places" (requests in progress).
func (s *Server) admit(c *call, own account, placed bool) (err error) {
	limit, free, wait, left := s.share(s.limits.KeyConcurrent, s.limits.Concurrent), 0, time.Duration(0), 0.0
	if s.limits.Rate > 0 {
		wait, left = own.wait(time.Unix(0, c.now))
	}
	placed = placed && wait == 0
	if placed {
		free, err = c.enter()
	}
	var policy, state []byte
	if l := s.limits; l.Rate > 0 {
		w := seconds(float64(l.Burst) / l.Rate) // a smaller q would hold callers below the rate
		policy = fmt.Appendf(policy, `"rate";q=%d;w=%d`, max(l.Burst, int(l.Rate*float64(w))), w)
		state = fmt.Appendf(state, `"rate";r=%d;t=%d`, int(left), seconds((float64(l.Burst)-left)/l.Rate))
	}
	if s.keys != nil && placed {
		policy = fmt.Appendf(separated(policy), `"places";q=%d;qu="concurrent-requests"`, limit)
		state = fmt.Appendf(separated(state), `"places";r=%d`, free)
	}
	if policy != nil {
		h := c.w.Header()
		h["Ratelimit-Policy"], h["Ratelimit"] = []string{string(policy)}, []string{string(state)}
	}
	if wait > 0 {
		p := problemf(http.StatusTooManyRequests, "rate", "more than %v requests a second, or %d at once", s.limits.Rate,
			s.limits.Burst)
		p.retry = strconv.Itoa(int(wait/time.Second) + 1)
		return p
	}
	return err
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
	if s.keys == nil || len(s.keys.All()) == 1 {
		return all
	}
	return min(perKey, all)
}
