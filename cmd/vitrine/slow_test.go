package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
)

var slowTimes = flag.Int("slow-times", 1, "how often TestSlowCallers has each crowd come")

// crowd is a group of callers with their own key who hold their connections. A refused caller comes again.
type crowd struct {
	address, key  string
	came, refused atomic.Int64
}

// behave is the behaviour of a caller on a connection until it is closed.
type behave func(c *crowd, conn net.Conn)

var (
	silent behave = func(_ *crowd, conn net.Conn) { drain(conn) }

	halfHeader behave = func(_ *crowd, conn net.Conn) {
		io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: loc")
		drain(conn)
	}

	idle behave = func(_ *crowd, conn net.Conn) {
		io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		drain(conn)
	}

	slowBody behave = func(c *crowd, conn net.Conn) {
		fmt.Fprintf(conn, "POST /v1/placements/home/decisions HTTP/1.1\r\nHost: localhost\r\nAuthorization: "+
			"Bearer %s\r\nContent-Length: 1000000\r\n\r\n{", c.key)
		go func() {
			for { // a space is white space of JSON
				if _, err := io.WriteString(conn, " "); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
		}()
		c.status(conn)
	}

	listener behave = func(c *crowd, conn net.Conn) {
		fmt.Fprintf(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", c.key)
		if c.status(conn) == http.StatusOK {
			drain(conn)
		}
	}
)

func drain(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// status waits for the head of an answer, and counts those that report a limit.
func (c *crowd) status(conn net.Conn) int {
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	if a.StatusCode == http.StatusServiceUnavailable {
		c.refused.Add(1)
	}
	return a.StatusCode
}

// come sends callers, until ctx ends. wait returns when they are gone.
func (c *crowd) come(ctx context.Context, callers int, do behave) (wait func()) {
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
				conn, err := net.Dial("tcp", c.address)
				if err != nil {
					continue
				}
				c.came.Add(1)
				gone := context.AfterFunc(ctx, func() { conn.Close() })
				do(c, conn)
				gone()
				conn.Close()
			}
		})
	}
	return all.Wait
}

// shopper asks under another key, each time on a connection of its own.
type shopper struct {
	*testing.T
	url, key string
	asked    int
	longest  time.Duration
}

func (s *shopper) ask(method, path, body string) *http.Response {
	s.Helper()
	r := fatal.Or(http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body)))(s)
	r.Header.Set("Authorization", "Bearer "+s.key)
	begin := time.Now()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: patience}}
	a, err := client.Do(r)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	s.longest = max(s.longest, time.Since(begin))
	return a
}

func (s *shopper) want(status int, method, path, body string) {
	s.Helper()
	a := s.ask(method, path, body)
	defer a.Body.Close()
	if text, err := io.ReadAll(a.Body); err != nil || a.StatusCode != status {
		s.Fatalf("%s %s: %d %s, %v; want %d", method, path, a.StatusCode, text, err, status)
	}
}

// shop asks for decisions, reports outcomes, and receives the events of both.
func (s *shopper) shop(times int) {
	s.Helper()
	events := s.ask("GET", "/v1/events", "")
	defer events.Body.Close()
	if events.StatusCode != http.StatusOK {
		s.Fatalf("events: %d", events.StatusCode)
	}
	for range times {
		s.asked++
		s.want(201, "POST", "/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":1}}]}`, s.asked))
		s.want(204, "POST", fmt.Sprintf("/v1/placements/home/decisions/d%d/outcome", s.asked), `{"choice":null}`)
	}
	heard := 0
	for lines := bufio.NewScanner(events.Body); heard < 2*times && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: ") {
			heard++
		}
	}
	if heard < 2*times {
		s.Fatalf("%d events, want %d", heard, 2*times)
	}
}

// newKey adds a key with all scopes to a file, and returns its token.
func newKey(t *testing.T, file, name string) string {
	t.Helper()
	said, code := command(t, "keys", "add", file, name, "--scopes", "decide,outcome,read,admin")
	token := regexp.MustCompile(`vitrine_\S+`).FindString(said)
	if code != 0 || token == "" {
		t.Fatalf("keys add: exit status %d: %s", code, said)
	}
	return token
}

// Crowds under one key hold connections without a word, with half a header or idle, send bodies that do not end, and
// listen to events, beyond the service's limits. No timeout sends them away. Requests under another key are answered.
func TestSlowCallers(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const connections, concurrent, subscribers = 400, 64, 64
	file, data := serviceFile(t, fmt.Sprintf("keys = \"keys.toml\"\n[limits]\nconnections = "+
		"%d\nconcurrent = %d\nsubscribers = %d\n[timeouts]\nheader = \"1h\"\nread = \"1h\"\nwrite = \"1h\"\nidle "+
		"= \"1h\"\ndrain = \"1s\"\n",
		connections, concurrent, subscribers))
	keys := filepath.Join(filepath.Dir(file), "keys.toml")
	key := newKey(t, keys, "crowd")
	shopper := &shopper{T: t, key: newKey(t, keys, "shop")}
	p := program.Serve(t, file)
	shopper.url = p.Listening()
	shopper.want(201, "PUT", "/v1/placements/home",
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"onl-mnl"}}`)
	report := ""
	for range *slowTimes {
		report = ""
		var all []func(c *crowd, ctx context.Context) (wait func())
		for _, k := range []struct {
			name    string
			callers int
			do      behave
			crowded func(c *crowd) bool // there is no more room for them
		}{
			{"silent connections", connections + 50, silent, func(c *crowd) bool {
				return c.came.Load() > 2*connections
			}},
			{"half headers", connections + 50, halfHeader, func(c *crowd) bool {
				return c.came.Load() > 2*connections
			}},
			{"idle connections", connections + 50, idle, func(c *crowd) bool { return c.came.Load() > 2*connections }},
			{"slow bodies", concurrent + 20, slowBody, func(c *crowd) bool { return c.came.Load() >= concurrent+20 }}, // they are not refused
			{"listeners", subscribers + 20, listener, func(c *crowd) bool { return c.refused.Load() > 10 }},
			{"all of them", 0, nil, func(c *crowd) bool {
				return c.came.Load() > 5*connections && c.refused.Load() > 20
			}},
		} {
			c := &crowd{address: strings.TrimPrefix(shopper.url, "http://"), key: key}
			ctx, cancel := context.WithCancel(t.Context())
			var waits []func()
			if k.do != nil {
				come := func(c *crowd, ctx context.Context) func() { return c.come(ctx, k.callers, k.do) }
				all = append(all, come)
				waits = []func(){come(c, ctx)}
			} else {
				for _, come := range all {
					waits = append(waits, come(c, ctx))
				}
			}
			for deadline := time.Now().Add(patience); !k.crowded(c); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%s: %d came and %d were refused: that is no crowd\n%s", k.name, c.came.Load(),
						c.refused.Load(), p.Said())
				}
			}
			shopper.longest = 0
			shopper.shop(10)
			report += fmt.Sprintf("; %s: %d came, %d were refused, %v", k.name, c.came.Load(), c.refused.Load(),
				shopper.longest.Round(time.Millisecond))
			cancel()
			for _, wait := range waits {
				wait()
			}
		}
	}
	p.Stop()
	program.Sound(t, data)
	if !t.Failed() {
		t.Logf("verdict: %d decisions, their outcomes and events under another key were all answered; the last "+
			"crowds and the longest wait of the other key%s", shopper.asked, report)
	}
}
