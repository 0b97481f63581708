package server_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/keys"
	"vitrine/service/server"
)

// event is a stream's event, as read.
type event struct {
	id, kind string
	data     map[string]any
}

func nextEvent(t testing.TB, in *bufio.Scanner) (e event) {
	t.Helper()
	for in.Scan() {
		name, value, _ := strings.Cut(in.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			fatal.If(t, json.Unmarshal([]byte(value), &e.data), value)
		case "":
			if e.kind != "" {
				return e
			}
		}
	}
	t.Fatalf("the stream ended: %v", in.Err())
	return e
}

func TestEvents(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/before", plain)
	address, _ := s.run(server.Listen{})
	open := func(query string) *bufio.Scanner {
		r, err := client(nil).Get("http://" + address + "/v1/events" + query)
		if err != nil || r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v: %+v", err, r)
		}
		t.Cleanup(func() { r.Body.Close() })
		return bufio.NewScanner(r.Body)
	}
	s.problem(404, "not-found", "", "GET", "/v1/events?placement=home", "")
	s.problem(404, "not-found", "", "GET", "/v1/events?placement=home", "", "Last-Event-ID", "1")
	all := open("")
	s.want(201, "PUT", "/v1/placements/home", strings.Replace(home, `,"values":["acme","zenith"]`, "", 1))
	one := open("?placement=home")
	s.want(201, "PUT", "/v1/placements/other", plain)
	s.want(201, "POST", "/v1/placements/home/decisions",
		`{"decision_id":"a","include":["sku2"],"max_size":1,`+items+`}`)
	s.want(204, "POST", "/v1/placements/home/decisions/a/outcome", `{"choice":"sku2"}`)
	version := fatal.Or(s.engine.Keep(t.Context(), "home", "", 0))(t)
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"a2",`+items+`}`)
	s.want(204, "POST", "/v1/placements/home/decisions/a2/outcome", `{"choice":null}`)
	s.want(204, "POST", "/v1/placements/home/rollback", fmt.Sprintf(`{"version":%d}`, version))
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"b",`+items+`}`)
	s.clock.advance(1e15)
	fatal.Or(s.engine.Expire(t.Context(), s.clock.now().UnixNano()))(t)
	s.want(201, "POST", "/v1/placements/home/decisions",
		`{"decision_id":"c","defer":true,"include":["sku1","sku2"],`+items+`}`)
	s.want(204, "POST", "/v1/placements/home/decisions/c/activate", "")
	fatal.If(t, s.engine.Reward(t.Context(), "home", "c", []api.Reward{{Item: "sku1"}}, s.clock.now().UnixNano()))
	s.want(204, "DELETE", "/v1/placements/home", "")
	want := []string{
		"2 placement-put home", "3 placement-put other", "4 category-values-added home", "5 offered home",
		"6 chosen home", "7 version-saved home", "8 offered home", "9 chosen home", "10 rolled-back home",
		"11 offered home", "12 expired home", "13 offered home", "14 activated home", "15 items-declined home",
		"16 placement-deleted home",
	}
	for _, w := range want {
		e := nextEvent(t, all)
		expect.Equal(t, fmt.Sprint(e.id, " ", e.kind, " ", e.data["placement"]), w, "the event")
		if e.id == "4" && (e.data["feature"] != "brand" || fmt.Sprint(e.data["values"]) != "[acme zenith]") {
			t.Errorf("the values %v", e.data)
		}
		if e.id == "5" && (fmt.Sprint(e.data["shown"]) != "[sku2]" || e.data["decision_id"] != "a" ||
			e.data["time"] != "1970-01-01T01:00:00Z") {
			t.Errorf("the offer %v", e.data)
		}
		if e.id == "6" && e.data["position"] != 1.0 {
			t.Errorf("the choice %v", e.data)
		}
		if !strings.HasSuffix(w, "other") && e.id != "2" {
			if e := nextEvent(t, one); fmt.Sprint(e.id, " ", e.kind, " ", e.data["placement"]) != w {
				t.Errorf("of one placement, the event %+v, want %s", e, w)
			}
		}
	}
}

// A listener that comes back with the last event that it saw gets all later ones, in order and once, however much
// happens meanwhile. It is told when to come back.
func TestEventsResume(t *testing.T) {
	s := started(t, nil)
	address, _ := s.run(server.Listen{})
	s.want(201, "PUT", "/v1/placements/other", plain)
	s.want(201, "PUT", "/v1/placements/home", plain)
	const decisions = 1500 // more than a listener may be behind
	done := make(chan error)
	go func() {
		var err error
		for i := range decisions {
			for _, name := range []string{"home", "other"} {
				r := &api.Request{Decision: fmt.Sprint(i),
					Items: []api.Item{{ID: "a", Features: api.Values{api.Number("x", 1)}}}}
				if _, failed := s.engine.Decide(t.Context(), name, r, s.clock.now().UnixNano()); err == nil {
					err = failed
				}
			}
		}
		done <- err
	}()
	last, seen, connections := "2", 0, 0 // the placement home
	for seen < decisions {
		connections++
		r := fatal.Or(http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/v1/events?placement=home",
			nil))(t)
		r.Header.Set("Last-Event-ID", last)
		a, err := client(nil).Do(r)
		if err != nil || a.StatusCode != 200 {
			t.Fatalf("%v: %+v", err, a)
		}
		in := bufio.NewScanner(a.Body)
		for in.Scan() && in.Text() != "" {
			if text := in.Text(); text != ": after entry "+last && text != "retry: 2000" {
				t.Errorf("the stream begins with %q", text)
			}
		}
		for range min(1+connections*37%400, decisions-seen) {
			e := nextEvent(t, in)
			if e.kind == "end" {
				break // too slow
			}
			if want := fmt.Sprint(seen); e.kind != "offered" || e.data["decision_id"] != want ||
				e.data["placement"] != "home" {
				t.Fatalf("after %s: %+v, want decision %s", last, e, want)
			}
			last = e.id
			seen++
		}
		a.Body.Close()
	}
	fatal.If(t, <-done)
	if connections < 5 {
		t.Errorf("%d connections prove little", connections)
	}
	s.problem(400, "header", "", "GET", "/v1/events", "", "Last-Event-ID", "x")
	s.problem(400, "header", "", "GET", "/v1/events", "", "Last-Event-ID", "99999")
	fatal.If(t, s.store.TruncateBefore(t.Context(), 10))
	s.problem(410, "removed", "", "GET", "/v1/events", "", "Last-Event-ID", "8")
}

// gated is a log that a follower hears of once a channel is closed.
type gated struct {
	*memlog.Store
	open chan bool
}

func (g gated) Follow(ctx context.Context, from uint64) iter.Seq2[[][]byte, error] {
	return func(yield func([][]byte, error) bool) {
		<-g.open
		g.Store.Follow(ctx, from)(yield)
	}
}

// A listener may come back to another process, which does not know the last event yet.
func TestEventsResumeElsewhere(t *testing.T) {
	leader := started(t, nil)
	store := leader.store.(*memlog.Store)
	open := make(chan bool)
	leader.store = gated{store, open}
	f := followed(t, leader)
	leader.store = store
	address, _ := f.run(server.Listen{})
	entry := leader.want(201, "PUT", "/v1/placements/home", plain).header.Get("Vitrine-Entry")
	resumes := func(last string) int {
		r := fatal.Or(http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/v1/events", nil))(t)
		r.Header.Set("Last-Event-ID", last)
		a := fatal.Or(client(nil).Do(r))(t)
		defer a.Body.Close()
		return a.StatusCode
	}
	time.AfterFunc(50*time.Millisecond, func() { close(open) })
	expect.Equal(t, resumes(entry), 200, "after the leader's last event")
	expect.Equal(t, resumes("2"), 400, "after an event that is to come")
}

// A listener gets heartbeats while a long log does not concern it.
func TestEventsBeatWhileCatchingUp(t *testing.T) {
	s := started(t, nil)
	s.SetHeartbeat(1)
	s.want(201, "PUT", "/v1/placements/home", plain)
	s.want(201, "PUT", "/v1/placements/other", plain)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := &untilWriter{httptest.NewRecorder(), "id: 2\n", stop}
	r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/v1/events?placement=other", nil)
	r.Header.Set("Last-Event-ID", "0")
	s.ServeHTTP(w, r)
	before, _, ok := strings.Cut(w.Body.String(), "id: 2\n")
	if !ok || !strings.Contains(before, ": still here\n\n") {
		t.Errorf("the stream begins with %q", before)
	}
}

// untilWriter calls stop when it is given a text.
type untilWriter struct {
	*httptest.ResponseRecorder
	text string
	stop func()
}

func (w *untilWriter) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.text) {
		w.stop()
	}
	return w.ResponseRecorder.Write(b)
}

// The timeouts of other requests do not end a stream.
func TestEventsStay(t *testing.T) {
	s := started(t, nil)
	address, _ := s.run(server.Listen{Header: 20 * time.Millisecond, Read: 20 * time.Millisecond,
		Write: 20 * time.Millisecond, Idle: 20 * time.Millisecond})
	r, err := client(nil).Get("http://" + address + "/v1/events")
	for tries := 1; err != nil && tries < 100; tries++ { // on a busy machine the header itself may take more than 20 ms
		r, err = client(nil).Get("http://" + address + "/v1/events")
	}
	fatal.If(t, err)
	defer r.Body.Close()
	time.Sleep(100 * time.Millisecond)
	s.want(201, "PUT", "/v1/placements/home", plain)
	if e := nextEvent(t, bufio.NewScanner(r.Body)); e.kind != "placement-put" {
		t.Errorf("the event %+v", e)
	}
}

// A listener that does not read is disconnected, and the engine does not wait for it.
func TestSlowListeners(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	stuck := &stuckWriter{header: http.Header{}, written: make(chan struct{}), gate: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r, _ := http.NewRequest("GET", "http://localhost/v1/events", nil)
		s.ServeHTTP(stuck, r)
	}()
	<-stuck.written
	for i := range 1100 {
		s.feed.Applied(uint64(i), &eventlog.Event{Placement: "home", Body: new(eventlog.PlacementDeleted)})
	}
	close(stuck.gate)
	<-ended
	if text := stuck.text.String(); strings.Count(text, "\n\n") > 1100 ||
		!strings.HasSuffix(text, "event: end\ndata: {}\n\n") {
		t.Errorf("the stream has %d events and ends with %q", strings.Count(text, "\n\n"), text[max(0, len(text)-100):])
	}
}

// stuckWriter takes the first write and then no more until the gate opens.
type stuckWriter struct {
	header  http.Header
	written chan struct{}
	gate    chan struct{}
	text    lines
	first   bool
}

func (w *stuckWriter) Header() http.Header { return w.header }
func (w *stuckWriter) WriteHeader(int)     {}
func (w *stuckWriter) Flush()              {}
func (w *stuckWriter) Write(b []byte) (int, error) {
	if !w.first {
		w.first = true
		close(w.written)
	} else {
		<-w.gate
	}
	return w.text.Write(b)
}

// A page of an allowed origin may listen by fetch, with its key, and resume.
func TestEventsInBrowsers(t *testing.T) {
	const shop = "https://shop.example"
	s := started(t, func(o *server.Options, _ *engine.Options) {
		o.Origins = []string{shop}
		o.Keys = keysOf(t, o, "page", keys.ScopeRead)
	})
	address, _ := s.run(server.Listen{})
	a := s.want(204, "OPTIONS", "/v1/events", "", "Origin", shop, "Access-Control-Request-Method", "GET",
		"Access-Control-Request-Headers", "authorization,last-event-id")
	for _, name := range []string{"Authorization", "Last-Event-ID"} {
		expect.Contains(t, a.header.Get("Access-Control-Allow-Headers"), name, "pages may not send")
	}
	r := fatal.Or(http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/v1/events", nil))(t)
	r.Header = http.Header{"Origin": {shop}, "Authorization": {"Bearer page"}, "Last-Event-ID": {"0"}}
	stream, err := client(nil).Do(r)
	if err != nil || stream.StatusCode != 200 || stream.Header.Get("Access-Control-Allow-Origin") != shop {
		t.Fatalf("%v: %+v", err, stream)
	}
	defer stream.Body.Close()
	fatal.Or(s.engine.Put(t.Context(), "home", []byte(plain), 0))(t)
	if e := nextEvent(t, bufio.NewScanner(stream.Body)); e.id != "1" || e.kind != "placement-put" {
		t.Errorf("the event %+v", e)
	}
}

// keysOf makes a file with one key, with its name as token.
func keysOf(t *testing.T, o *server.Options, name string, scopes ...string) *keys.Set {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.toml")
	write(t, path, (&keys.Key{Name: name, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(name))),
		Scopes: scopes}).Table())
	set := fatal.Or(keys.Open(path, o.Clock, o.Logger))(t)
	return set
}

func TestMostListeners(t *testing.T) {
	s := started(t, func(o *server.Options, _ *engine.Options) { o.Limits.Subscribers = 1 })
	address, _ := s.run(server.Listen{})
	r := fatal.Or(client(nil).Get("http://" + address + "/v1/events"))(t)
	s.problem(503, "busy", "", "GET", "/v1/events", "")
	r.Body.Close()
	io.Copy(io.Discard, r.Body)
}

// Listeners count for the rate of their key, and hold no place among its requests.
func TestListenersKeepToTheRate(t *testing.T) {
	store := &gatedStore{waiting: make(chan struct{})}
	s := started(t, func(o *server.Options, e *engine.Options) {
		e.Store, o.Log = store, nil
		o.Limits.Rate, o.Limits.Burst, o.Limits.Concurrent = 1e-9, 4, 1
	})
	fatal.Or(s.engine.Put(t.Context(), "home", []byte(home), 0))(t)
	address, _ := s.run(server.Listen{})
	store.gate = make(chan struct{})
	answered := decideLate(t, "http://"+address+"/v1/placements/home/decisions") // takes the only place
	<-store.waiting
	for _, want := range []int{200, 200, 200, 429} {
		r := fatal.Or(client(nil).Get("http://" + address + "/v1/events"))(t)
		defer r.Body.Close()
		expect.Equal(t, r.StatusCode, want, "the status")
	}
	close(store.gate)
	expect.Equal(t, <-answered, 201, "the status of the request in progress")
}

// Old events are read in turn with long answers of the key, a few at a time.
func TestLongAnswersTakeTurns(t *testing.T) {
	s := started(t, nil)
	const entries = 600 // more than two turns
	for i := range entries {
		fatal.Or(s.engine.Put(t.Context(), "home", []byte(strings.Replace(plain, `"max_size":2`,
			fmt.Sprintf(`"max_size":2,"max_request_items":%d`, 10+i), 1)), 0))(t)
	}
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"a","items":[{"id":"a","features":{"x":1}}]}`)
	for _, c := range []struct{ method, path, body, end string }{
		{"GET", "/v1/events", "", fmt.Sprintf("id: %d\n", entries)},
		{"GET", "/v1/placements/home/decisions/a/explanation", "", "a"},
		{"GET", "/v1/placements/home/shelf?contains=b", "", "count"},
		{"POST", "/v1/placements/home/preview", plain, `"change"`},
	} {
		leave := fatal.Or(s.Turn(t.Context(), ""))(t)
		ctx, stop := context.WithCancel(t.Context())
		w, done := &untilWriter{httptest.NewRecorder(), c.end, stop}, make(chan struct{})
		go func() {
			defer close(done)
			r := httptest.NewRequestWithContext(ctx, c.method, "http://localhost"+c.path, strings.NewReader(c.body))
			r.Header.Set("Last-Event-ID", "0")
			s.ServeHTTP(w, r)
		}()
		select {
		case <-done:
			t.Errorf("%s was answered while another long answer was computed", c.path)
		case <-time.After(20 * time.Millisecond):
		}
		leave()
		<-done
		stop()
		if w.Code != 200 || !strings.Contains(w.Body.String(), c.end) {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
		if n := strings.Count(w.Body.String(), "event: placement-put\n"); c.path == "/v1/events" && n != entries {
			t.Errorf("%d of %d events", n, entries)
		}
	}
}

// streamed is a stream that a test watches.
type streamed struct {
	*httptest.ResponseRecorder
	begins func() // called before the first write
	wrote  chan string
}

func (w *streamed) Write(b []byte) (int, error) {
	if w.begins != nil {
		w.begins()
		w.begins = nil
	}
	w.wrote <- string(b)
	return len(b), nil
}

// resumeInTurn begins a stream after an entry while another long answer is computed, until leave. It returns what the
// stream writes after its greeting. The channel is closed when the stream ends.
func (s *service) resumeInTurn(ctx context.Context, after int) (stream <-chan string, leave func()) {
	w := &streamed{httptest.NewRecorder(), func() { leave = fatal.Or(s.Turn(ctx, ""))(s) }, make(chan string)}
	r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/v1/events", nil)
	r.Header.Set("Last-Event-ID", fmt.Sprint(after))
	go func() {
		defer close(w.wrote)
		s.ServeHTTP(w, r)
	}()
	expect.Contains(s, <-w.wrote, fmt.Sprint(": after entry ", after), "the greeting")
	return w.wrote, leave
}

// A listener that is far behind waits for turns, reads a few events in each, and says meanwhile that it is there. It does
// not wait for turns while events queue up. Once the feed ends, no listener waits, not even a new one.
func TestResumedListenersWaitForTurns(t *testing.T) {
	s := started(t, nil)
	s.SetHeartbeat(10 * time.Millisecond)
	var features strings.Builder
	for i := range 40 {
		fmt.Fprintf(&features, `{"name":"x%d%s","kind":"number"},`, i, strings.Repeat("x", 50))
	}
	const entries = 600 // more than a listener waits for without turns
	for i := range entries {
		fatal.Or(s.engine.Put(t.Context(), "home", []byte(strings.NewReplacer(`[`, `[`+features.String(), `"max_size":2`,
			fmt.Sprintf(`"max_size":2,"max_request_items":%d`, 100+i)).Replace(plain)), 0))(t)
	}
	const beat, end = ": still here\n\n", "event: end\ndata: {}\n\n"
	receives := func(stream <-chan string, want int) (longest int) {
		for got := 0; got < want; {
			text, ok := <-stream
			if !ok {
				t.Fatalf("the stream ended after %d events", got)
			}
			got += strings.Count(text, "event: placement-put\n")
			longest = max(longest, len(text))
		}
		return longest
	}
	ctx, cancel := context.WithCancel(t.Context())
	stream, leave := s.resumeInTurn(ctx, 0)
	for range 3 {
		if text := <-stream; text != beat {
			t.Fatalf("%.100q while another long answer is computed", text)
		}
	}
	leave()
	receives(stream, entries)
	cancel()
	for range stream {
	}

	s.SetHeartbeat(time.Hour) // a slow machine must not end a turn early
	ctx, cancel = context.WithCancel(t.Context())
	stream, leave = s.resumeInTurn(ctx, 0)
	leave()
	if longest := receives(stream, entries); longest < 100<<10 || longest > 300<<10 {
		t.Errorf("%d bytes in a turn", longest)
	}
	cancel()
	for range stream {
	}

	ctx, cancel = context.WithCancel(t.Context())
	stream, leave = s.resumeInTurn(ctx, entries-10)
	first := <-stream
	expect.Equal(t, strings.Count(first, "event: placement-put\n"), 10, "events without a turn")
	leave()
	cancel()
	for range stream {
	}

	s.SetHeartbeat(10 * time.Millisecond)
	stream, leave = s.resumeInTurn(t.Context(), 0)
	defer leave()
	r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/v1/events", nil)
	r.Header.Set("Last-Event-ID", "0")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	expect.Equal(t, w.Code, 499, "a listener that went away before its turn")
	expect.Equal(t, <-stream, beat, "while another long answer is computed")
	s.feed.Close()
	last := ""
	for beats := 0; beats < 100; beats++ {
		text, ok := <-stream
		if !ok {
			break
		}
		last = text
	}
	expect.Equal(t, last, end, "the end of the feed")
	s.problem(503, "stopped", "", "GET", "/v1/events", "", "Last-Event-ID", "0")
}

// A preview takes its turn when its body is there.
func TestSlowPreviewTakesNoTurn(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/placements/home/preview",
		&laterBody{func() { s.want(200, "GET", "/v1/placements/home/shelf", "") }, strings.NewReader(plain)})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	expect.Equal(t, w.Code, 200, "the status")
}
