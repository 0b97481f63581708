package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/freeport"
	"vitrine/internal/long"
	"vitrine/service/client"
	"vitrine/service/load"
)

// balancer is an ordinary load balancer: it asks /readyz, and sends requests to the processes that are ready in turn.
type balancer struct {
	ready atomic.Pointer[[]*url.URL]
	next  atomic.Uint64
}

func newBalancer(t *testing.T, urls []string) (b *balancer, address string) {
	b = new(balancer)
	var all []*url.URL
	for _, text := range urls {
		u := fatal.Or(url.Parse(text))(t)
		all = append(all, u)
	}
	asks := &http.Client{Timeout: time.Second, Transport: new(http.Transport)}
	ask := func() {
		var ready []*url.URL
		for _, u := range all {
			if answer, err := asks.Get(u.String() + "/readyz"); err == nil {
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					ready = append(ready, u)
				}
			}
		}
		b.ready.Store(&ready)
	}
	ask()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			ask()
			time.Sleep(50 * time.Millisecond)
		}
	}()
	transport := new(http.Transport)
	s := httptest.NewServer(&httputil.ReverseProxy{
		Transport:    transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		Rewrite: func(r *httputil.ProxyRequest) {
			if ready := *b.ready.Load(); len(ready) > 0 {
				r.SetURL(ready[b.next.Add(1)%uint64(len(ready))])
			}
		},
	})
	t.Cleanup(func() {
		stop()
		<-ended
		s.Close()
		transport.CloseIdleConnections()
		asks.CloseIdleConnections()
	})
	return b, s.URL
}

// Behind an ordinary load balancer the death of the leader costs its callers only a wait: they know one address, retry,
// and every decision and outcome is in the log once. They can read their own writes from any process.
func TestLoadBalancer(t *testing.T) {
	long.Test(t)
	if strconv.IntSize == 32 {
		t.Skip("servers in a cluster panic on 32-bit machines: their statistics load 64-bit words that are not aligned")
	}
	t.Chdir(t.TempDir())
	var routes, servers []string
	var ports [3][2]int
	for i := range ports {
		ports[i] = [2]int{freeport.Local(t), freeport.Local(t)}
		servers = append(servers, fmt.Sprintf("nats://127.0.0.1:%d", ports[i][0]))
		routes = append(routes, fmt.Sprintf("%q", fmt.Sprintf("nats://127.0.0.1:%d", ports[i][1])))
	}
	write(t, "nats.conf", "server_name: $NAME\nhost: \"127.0.0.1\"\nport: $PORT\njetstream { store_dir: $NAME, "+
		"sync_interval: always }\n"+
		"cluster { name: three, host: \"127.0.0.1\", port: $ROUTES, routes: ["+strings.Join(routes, ", ")+"] }\n")
	h := &three{T: t}
	for i, p := range ports {
		h.nats([]string{fmt.Sprint("NAME=n", i), fmt.Sprint("PORT=", p[0]), fmt.Sprint("ROUTES=", p[1])}, "nats.conf")
	}
	var processes []*process
	var urls []string
	for range 3 {
		file, _ := serviceFile(t, fmt.Sprintf("[log]\nurl = %q\nreplicas = 3\n", strings.Join(servers, ",")))
		p := program.Serve(t, file)
		processes, urls = append(processes, p), append(urls, p.Listening())
	}
	b, address := newBalancer(t, urls)
	const decisions = 1000
	killed := false
	r, err := load.Run(t.Context(), load.Options{
		Bases: []string{address}, Placement: "home", Policy: map[string]any{"name": "onl-mnl"}, Decisions: decisions,
		Rate: 300, Connections: 8,
		Items: 10, Features: 3, Size: 3, Outcomes: 1, Patience: patience, Seed: 1,
		Progress: func(g load.Progress) {
			for i, u := range urls {
				one := &client.Client{Base: u, Patience: -1}
				if p, err := one.Process(t.Context()); err == nil && p.Role == "leader" && !killed &&
					g.Decisions > decisions/10 {
					processes[i].Kill()
					killed = true
				}
				one.CloseIdleConnections()
			}
		},
	})
	if err != nil || r.Decisions.Count != decisions || r.Outcomes.Count != decisions || len(r.Errors) > 0 || !killed {
		t.Fatalf("%+v, %v; the leader was killed: %v", r, err, killed)
	}
	expect.Equal(t, len(*b.ready.Load()), 2, "processes are ready")
	caller := &client.Client{Base: address, ReadYourWrites: true}
	defer caller.CloseIdleConnections()
	fatal.Or(caller.Keep(t.Context(), "home", "after it all"))(t)
	for range 4 { // each process is asked twice
		if s, err := caller.Stats(t.Context(), "home"); err != nil || s.Decisions != decisions ||
			s.Outcomes != decisions {
			t.Errorf("%+v, %v", s, err)
		}
	}
}
