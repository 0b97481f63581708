package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/server"
)

// event is one of a stream, as its reader has it.
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
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				t.Fatalf("%v: %s", err, value)
			}
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
	all, one := open(""), open("?placement=home")
	s.want(201, "PUT", "/v1/placements/home", strings.Replace(home, `,"values":["acme","zenith"]`, "", 1))
	s.want(201, "PUT", "/v1/placements/other", plain)
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"a","include":["sku2"],"size":1,`+items+`}`)
	s.want(204, "POST", "/v1/decisions/a/outcome", `{"choice":"sku2"}`)
	version, err := s.engine.Keep(t.Context(), "home", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"a2",`+items+`}`)
	s.want(204, "POST", "/v1/decisions/a2/outcome", `{"choice":null}`)
	s.want(204, "POST", "/v1/placements/home/rollback", fmt.Sprintf(`{"version":%d}`, version))
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"b",`+items+`}`)
	s.clock.advance(1e15)
	if _, err := s.engine.Expire(t.Context(), s.clock.now().UnixNano()); err != nil {
		t.Fatal(err)
	}
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"c","defer":true,"include":["sku1","sku2"],`+items+`}`)
	s.want(204, "POST", "/v1/decisions/c/activate", "")
	if err := s.engine.Reward(t.Context(), "", "c", []api.Reward{{Item: "sku1"}}, s.clock.now().UnixNano()); err != nil {
		t.Fatal(err)
	}
	s.want(204, "DELETE", "/v1/placements/home", "")
	want := []string{
		"2 placement-put home", "3 placement-put other", "4 values-seen home", "5 offered home", "6 chosen home", "7 version-kept home", "8 offered home", "9 chosen home", "10 rolled-back home",
		"11 offered home", "12 expired home", "13 offered home", "14 activated home", "15 passed home", "16 placement-deleted home",
	}
	for _, w := range want {
		e := nextEvent(t, all)
		if got := fmt.Sprint(e.id, " ", e.kind, " ", e.data["placement"]); got != w {
			t.Errorf("the event %s, want %s", got, w)
		}
		if e.id == "4" && (e.data["feature"] != "brand" || fmt.Sprint(e.data["values"]) != "[acme zenith]") {
			t.Errorf("the values %v", e.data)
		}
		if e.id == "5" && (fmt.Sprint(e.data["shown"]) != "[sku2]" || e.data["decision_id"] != "a" || e.data["time"] != "1970-01-01T01:00:00Z") {
			t.Errorf("the offer %v", e.data)
		}
		if e.id == "6" && e.data["position"] != 1.0 {
			t.Errorf("the choice %v", e.data)
		}
		if !strings.HasSuffix(w, "other") {
			if e := nextEvent(t, one); fmt.Sprint(e.id, " ", e.kind, " ", e.data["placement"]) != w {
				t.Errorf("of one placement, the event %+v, want %s", e, w)
			}
		}
	}
}

// The timeouts of other requests do not end a stream.
func TestEventsStay(t *testing.T) {
	s := started(t, nil)
	address, _ := s.run(server.Listen{Header: 20 * time.Millisecond, Read: 20 * time.Millisecond, Write: 20 * time.Millisecond, Idle: 20 * time.Millisecond})
	r, err := client(nil).Get("http://" + address + "/v1/events")
	for tries := 1; err != nil && tries < 100; tries++ { // on a busy machine the header itself may take more than 20 ms
		r, err = client(nil).Get("http://" + address + "/v1/events")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	time.Sleep(100 * time.Millisecond)
	s.want(201, "PUT", "/v1/placements/home", plain)
	if e := nextEvent(t, bufio.NewScanner(r.Body)); e.kind != "placement-put" {
		t.Errorf("the event %+v", e)
	}
}

// Who does not read is let go, and the engine does not wait for it.
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
	if text := stuck.text.String(); strings.Count(text, "\n\n") > 1100 || !strings.HasSuffix(text, "event: end\ndata: {}\n\n") {
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

func TestMostListeners(t *testing.T) {
	s := started(t, func(o *server.Options, _ *decision.Options) { o.Limits.Subscribers = 1 })
	address, _ := s.run(server.Listen{})
	r, err := client(nil).Get("http://" + address + "/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	s.problem(503, "busy", "", "GET", "/v1/events", "")
	r.Body.Close()
	io.Copy(io.Discard, r.Body)
}
