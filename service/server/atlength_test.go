package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"vitrine/service/server"
)

// get asks a running service, until ctx ends.
func get(ctx context.Context, t *testing.T, url, last string) *http.Response {
	t.Helper()
	r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Body.Close() })
	return a
}

// The events of a placement whose shard is elsewhere come from a process that has it, as they happen. A listener who goes away ends that
// in both; one here comes back when the shards here change.
func TestEventsOfAShardElsewhere(t *testing.T) {
	s := newSharded(t, func(o *server.Options) { o.Limits.Subscribers = 2 })
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	ctx, gone := context.WithCancel(t.Context())
	defer gone()
	a := get(ctx, t, h.URL+"/v1/events?placement=three", "0")
	if a.StatusCode != 200 || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	in := bufio.NewScanner(a.Body)
	if e := nextEvent(t, in); e.id != "1" || e.kind != "placement-put" || e.data["shard"] != 3.0 {
		t.Errorf("%+v", e)
	}
	for i := range 3 { // each is waited for before the next one happens
		id := fmt.Sprint("d", i)
		s.decide(201, "three", id)
		if e := nextEvent(t, in); e.id != fmt.Sprint(i+2) || e.data["decision_id"] != id {
			t.Errorf("%+v, want %s", e, id)
		}
	}
	again := get(t.Context(), t, h.URL+"/v1/events?placement=three", "3")
	if e := nextEvent(t, bufio.NewScanner(again.Body)); e.id != "4" {
		t.Errorf("%+v", e)
	}
	if a := get(t.Context(), t, h.URL+"/v1/events?placement=three", ""); a.StatusCode != 503 {
		t.Errorf("%d: a listener more than the limit", a.StatusCode)
	}
	gone()
	<-s.ended
	if a := s.ask("GET", "/v1/events?placement=three", "", "Last-Event-ID", "99"); a.status != 400 || !strings.Contains(a.body, "from 3:0 to 3:4") {
		t.Errorf("%d %s", a.status, a.body)
	}
	<-s.ended
	s.Unmount(2, "away")
	if rest, err := io.ReadAll(again.Body); err != nil {
		t.Errorf("%q, %v: want that the listener is to come back", rest, err)
	}
	<-s.ended
}

// An export of a placement whose shard is elsewhere comes from a process that has it. One that breaks off there breaks off here, and a
// problem before its first line is a problem.
func TestExportOfAShardElsewhere(t *testing.T) {
	s := newSharded(t, nil)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	line := strings.Repeat("x", 999) + "\n"
	lines, failure := 0, error(nil)
	s.logs[3].Export = func(_ context.Context, w io.Writer, placement string) error {
		for range lines {
			if _, err := io.WriteString(w, line); err != nil {
				return err
			}
		}
		return failure
	}
	if _, err := s.other.Mount(t.Context(), 3, s.logs[3]); err != nil {
		t.Fatal(err)
	}
	export := func() (*http.Response, string, error) {
		a := get(t.Context(), t, h.URL+"/v1/placements/three/export", "")
		text, err := io.ReadAll(a.Body)
		<-s.ended
		return a, string(text), err
	}
	for _, lines = range []int{0, 1, 500} {
		if a, text, err := export(); a.StatusCode != 200 || text != strings.Repeat(line, lines) || err != nil || !strings.Contains(a.Header.Get("Content-Disposition"), "three.jsonl") {
			t.Errorf("%d lines: %d, %d bytes, %v, %v", lines, a.StatusCode, len(text), a.Header, err)
		}
	}
	failure = errors.New("the log is damaged")
	if a, text, err := export(); a.StatusCode != 200 || len(text) == 0 || err == nil {
		t.Errorf("%d, %d bytes, %v: an export that broke off has an end", a.StatusCode, len(text), err)
	}
	lines = 0
	if a, text, err := export(); a.StatusCode != 500 || err != nil || a.Header.Get("Content-Disposition") != "" {
		t.Errorf("%d %s, %v", a.StatusCode, text, err)
	}
}

// A process that gets a request that was passed on passes it on no further.
func TestPassedOnOnce(t *testing.T) {
	s := newSharded(t, nil)
	for _, c := range []struct {
		path   string
		shard  int // for which the request was passed on; this process has 3, and the placement is in 1
		status int
	}{{"/v1/placements/one/export", 1, 503}, {"/v1/placements/one/export", 3, 404}, {"/v1/events?placement=one", 1, 503}, {"/v1/events?placement=one", 3, 503}} {
		var answer bytes.Buffer
		if err := s.other.PassedAtLength(t.Context(), c.shard, []byte("GET "+c.path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"), &answer); err != nil {
			t.Fatal(err)
		}
		a, err := http.ReadResponse(bufio.NewReader(&answer), nil)
		if err != nil || a.StatusCode != c.status {
			t.Fatalf("%+v: %v, %v", c, a, err)
		}
		if text, err := io.ReadAll(a.Body); err != nil || c.status == 503 && !strings.Contains(string(text), "shard-away") {
			t.Errorf("%+v: %s, %v", c, text, err)
		}
	}
	if err := s.other.PassedAtLength(t.Context(), 3, []byte("rubbish"), io.Discard); err != nil {
		t.Error(err)
	}
	if n := len(s.ended); n != 0 {
		t.Errorf("%d requests were passed on", n)
	}
}
