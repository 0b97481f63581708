package load_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/load"
	"vitrine/service/server"
	"vitrine/service/setup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func service(t *testing.T) (*engine.Engine, string) {
	t.Helper()
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	s := httptest.NewServer(server.New(server.Options{Engine: e}))
	t.Cleanup(func() { s.Close(); e.Close() })
	return e, s.URL
}

func small(url string) load.Options {
	return load.Options{
		Bases: []string{url}, Placement: "p", Policy: map[string]any{"name": "ucb-mnl"}, Decisions: 300, Connections: 8,
		Items: 12, Features: 3, Size: 4, Outcomes: 0.7, Seed: 1,
	}
}

// The service knows everything that a run reports as acknowledged, in both loops.
func TestRun(t *testing.T) {
	purchases := map[int]bool{}
	for _, c := range []struct {
		name   string
		change func(*load.Options)
	}{
		{"as fast as it goes", func(*load.Options) {}},
		{"at a rate", func(o *load.Options) { o.Rate, o.Poisson = 3000, true }},
		{"late outcomes", func(o *load.Options) { o.Rate, o.Delay = 3000, 30*time.Millisecond }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, url := service(t)
			var acknowledged bytes.Buffer
			var notes []string
			o := small(url)
			o.Policy = map[string]any{"name": "uniform"}
			o.Acknowledged, o.Note = &acknowledged, func(m string) { notes = append(notes, m) }
			c.change(&o)
			r := fatal.Or(load.Run(t.Context(), o))(t)
			stats := fatal.Or(e.Stats("p"))(t)
			if r.Decisions.Count != 300 || stats.Decisions != 300 || uint64(r.Outcomes.Count) != stats.Outcomes ||
				uint64(r.Purchases) != stats.ByPolicy.Purchases ||
				len(r.Errors) > 0 || r.Unreported > 0 || r.Unsent > 0 || r.Repeated > 0 || r.Interrupted ||
				len(notes) != 1 {
				t.Errorf("%+v, the service has %+v, notes %q", r, stats, notes)
			}
			if got := r.Outcomes.Count; got < 150 || got > 270 { // of 300, 70%: 210 ± 8
				t.Errorf("%d outcomes", got)
			}
			purchases[int(r.Outcomes.Count)] = true
			decisions, outcomes := lines(t, acknowledged.String())
			if len(decisions) != 300 || len(outcomes) != int(r.Outcomes.Count) {
				t.Errorf("%d decisions and %d outcomes were noted", len(decisions), len(outcomes))
			}
			for id, shown := range decisions {
				d, err := e.Decision(t.Context(), "p", id)
				if err != nil || !slices.Equal(d.Offer.IDs(), shown) {
					t.Fatalf("%s: %v was noted, the service has %+v, %v", id, shown, d, err)
				}
				choice, reported := outcomes[id]
				if reported != (d.Status == "chosen") || choice != d.Choice {
					t.Errorf("%s: %q was noted, the service has %+v", id, choice, d)
				}
			}
		})
	}
	expect.Equal(t, len(purchases), 1, "the same shoppers reported", purchases, "outcomes")
}

// lines reads what was acknowledged.
func lines(t *testing.T, text string) (decisions map[string][]string, outcomes map[string]string) {
	t.Helper()
	decisions, outcomes = map[string][]string{}, map[string]string{}
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		var line struct {
			Decision string   `json:"decision_id"`
			Shown    []string `json:"shown"`
			Choice   *string  `json:"choice"`
		}
		fatal.If(t, json.Unmarshal(s.Bytes(), &line), s.Text())
		_, decided := decisions[line.Decision]
		switch {
		case line.Shown != nil && !decided:
			decisions[line.Decision] = line.Shown
		case line.Shown == nil && decided:
			outcomes[line.Decision] = ""
			if line.Choice != nil {
				outcomes[line.Decision] = *line.Choice
			}
		default:
			t.Errorf("out of order, or twice: %s", s.Text())
		}
	}
	return decisions, outcomes
}

// A placement that is there is taken if it is for such requests, and is not changed.
func TestPlacementThatIsThere(t *testing.T) {
	e, url := service(t)
	o := small(url)
	fatal.Or(load.Run(t.Context(), o))(t)
	before, _ := e.Config("p")
	note := ""
	o.Note = func(m string) { note += m }
	if _, err := load.Run(t.Context(), o); err != nil || note != "" {
		t.Fatal(err, note)
	}
	o.Policy = map[string]any{"name": "uniform"}
	if _, err := load.Run(t.Context(), o); err != nil || !strings.Contains(note, "has the policy ") {
		t.Fatal(err, note)
	}
	if after, _ := e.Config("p"); !bytes.Equal(before.Canonical(), after.Canonical()) {
		t.Errorf("%s was %s", after.Canonical(), before.Canonical())
	}
	for _, change := range []func(*load.Options){
		func(o *load.Options) { o.Features = 4 }, func(o *load.Options) { o.Items = 13 },
		func(o *load.Options) { o.Size = 5 },
	} {
		o := small(url)
		change(&o)
		expect.Fails(load.Run(t.Context(), o))(t, load.ErrPlacement)
	}
	o.Placement, o.Policy, o.Catalogue, o.User, o.Note = "c", nil, true, 1, nil
	fatal.Or(load.Run(t.Context(), o))(t)
	o.Items--
	expect.Fails(load.Run(t.Context(), o))(t, load.ErrPlacement)
	o.Placement, o.Policy = "q", map[string]any{"name": "none"}
	expect.Part(load.Run(t.Context(), o))(t, `placement "q" cannot be created`)
}

// A stopped run returns its measurements.
func TestInterrupted(t *testing.T) {
	_, url := service(t)
	o := small(url)
	o.Decisions, o.Rate = 0, 2000
	ctx, cancel := context.WithCancel(t.Context())
	o.Acknowledged = writer(func(b []byte) (int, error) {
		if strings.Contains(string(b), "-100\"") {
			cancel()
		}
		return len(b), nil
	})
	r, err := load.Run(ctx, o)
	if err != nil || !r.Interrupted || r.Decisions.Count == 0 || len(r.Errors) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	full := errors.New("full")
	o.Acknowledged = writer(func([]byte) (int, error) { return 0, full })
	if r, err := load.Run(t.Context(), o); !errors.Is(err, full) || r.Decisions.Count == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// standing is a service behind what stands still, once, when a decision comes: for good, or for a time.
func standing(t *testing.T, before int64, still func()) string {
	t.Helper()
	_, url := service(t)
	behind := fatal.Or(neturl.Parse(url))(t)
	var n atomic.Int64
	var gate sync.RWMutex
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }, Transport: transport,
		ErrorLog: log.New(io.Discard, "", 0)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/decisions") {
			if n.Add(1) == before+1 {
				gate.Lock()
				still()
				gate.Unlock()
			}
			gate.RLock()
			defer gate.RUnlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.Close(); transport.CloseIdleConnections() })
	return s.URL
}

// A service that stands still keeps all waiting who come meanwhile, and not just the first: of 100 who come every 5 ms
// 50 come within 250 ms, and 10 of them within the first 50 ms.
func TestStandstillIsReported(t *testing.T) {
	const still = 250 * time.Millisecond
	for _, connections := range []int{1, 8} {
		o := small(standing(t, 20, func() { time.Sleep(still) }))
		o.Rate, o.Decisions, o.Outcomes, o.Connections = 200, 100, 0, connections
		r, err := load.Run(t.Context(), o)
		if err != nil || r.Decisions.Count != 100 || len(r.Errors) > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if maximum := still.Seconds() * 1000; r.Decisions.Max < maximum || r.Decisions.P90 < maximum-52 {
			t.Errorf("%d connections: %+v", connections, r.Decisions)
		}
	}
}

// An interrupted run reports the requests that wait for a service that stands still.
func TestInterruptedAtAStandstill(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	defer close(over)
	o := small(standing(t, 20, func() {
		time.Sleep(time.Second) // all four connections wait by then
		cancel()
		<-over
	}))
	o.Rate, o.Decisions, o.Outcomes, o.Connections = 200, 0, 0, 4
	r, err := load.Run(ctx, o)
	if err != nil || !r.Interrupted || r.Decisions.Count != 20 || r.Unanswered != 4 || r.Unsent < 30 ||
		len(r.Errors) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// Failures are counted by kind.
func TestFailures(t *testing.T) {
	e, url := service(t)
	o := small(url)
	o.Acknowledged = writer(func(b []byte) (int, error) {
		if strings.Contains(string(b), "-100\"") {
			if err := e.Delete(context.Background(), "p", nil, time.Now().UnixNano()); err != nil &&
				!errors.Is(err, engine.ErrNotFound) {
				t.Error(err)
			}
		}
		return len(b), nil
	})
	r, err := load.Run(t.Context(), o)
	if err != nil || r.Errors["404 not-found"] == 0 || len(r.Errors) != 1 || r.Decisions.Count >= 300 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Answers that are lost on their way are asked for again, and no decision is made twice.
func TestRetries(t *testing.T) {
	e, url := service(t)
	behind := fatal.Or(neturl.Parse(url))(t)
	var n atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 8},
		ModifyResponse: func(*http.Response) error {
			if n.Add(1)%5 == 0 {
				panic(http.ErrAbortHandler)
			}
			return nil
		},
	}
	defer proxy.Transport.(*http.Transport).CloseIdleConnections()
	losing := httptest.NewServer(proxy)
	defer losing.Close()
	o := small(losing.URL)
	o.Policy, o.Patience, o.Decisions = map[string]any{"name": "uniform"}, time.Minute, 100
	r := fatal.Or(load.Run(t.Context(), o))(t)
	stats, err := e.Stats("p")
	if err != nil || stats.Decisions != 100 || r.Decisions.Count != 100 || r.Repeated == 0 || r.Retries == 0 ||
		len(r.Errors) > 0 || uint64(r.Outcomes.Count) != stats.Outcomes {
		t.Errorf("%+v, the service has %+v, %v", r, stats, err)
	}
}

// Connections begin at different addresses of one service, and at the next where one is away.
func TestSeveralAddresses(t *testing.T) {
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	defer e.Close()
	handler := server.New(server.Options{Engine: e})
	var asked [2]atomic.Int64
	o := small("http://127.0.0.1:1")
	for i := range asked {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "POST" {
				asked[i].Add(1)
			}
			handler.ServeHTTP(w, r)
		}))
		defer s.Close()
		o.Bases = append(o.Bases, s.URL)
	}
	r := fatal.Or(load.Run(t.Context(), o))(t)
	if r.Decisions.Count != 300 || len(r.Errors) > 0 || r.Retries == 0 || r.Retries > o.Connections {
		t.Errorf("%+v", r)
	}
	for i := range asked {
		if n := asked[i].Load(); n < 50 { // of about 510
			t.Errorf("process %d got %d requests", i, n)
		}
	}
}
