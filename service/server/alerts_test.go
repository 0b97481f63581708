package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/alert"
	"vitrine/service/engine"
	"vitrine/service/health"
	"vitrine/service/server"
)

// alarmed is a service that sends alerts to a receiver, which answers with status.
func alarmed(t *testing.T, status func() int) (s *service, told chan string, sender *alert.Sender) {
	t.Helper()
	told = make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.Error(t, err, nil)
		w.WriteHeader(status())
		told <- string(body)
	}))
	t.Cleanup(receiver.Close)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	fatal.If(t, os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 0o600))
	s = started(t, func(o *server.Options, _ *engine.Options) {
		var err error
		sender, err = alert.Open(alert.Options{URL: receiver.URL, Secret: secret, Level: "warning",
			File: filepath.Join(dir, "alerts.json"), Now: o.Clock})
		fatal.If(t, err)
		o.Alerts = sender
		o.Unreached = func() time.Duration { return time.Hour } // the host reports that
	})
	return s, told, sender
}

// A placement's health problem rings when it begins and when it ends.
func TestAlerts(t *testing.T) {
	s, told, sender := alarmed(t, func() int { return 200 })
	s.run(server.Listen{Maintain: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() { sender.Run(ctx) })
	defer sending.Wait()
	defer cancel()
	hears := func(step time.Duration, want ...string) {
		t.Helper()
		for {
			select {
			case got := <-told:
				for _, w := range want {
					expect.Contains(t, got, w, "the receiver was told")
				}
				return
			case <-time.After(100 * time.Millisecond):
				s.clock.advance(step)
			}
		}
	}
	// The theory's constants are a warning of the placement.
	s.want(201, "PUT", "/v1/placements/home",
		`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl","constants":"theory"}}`)
	hears(10*time.Second, `"type":"problem.began"`, `"placement":"home"`, `"level":"warning"`)
	s.want(204, "DELETE", "/v1/placements/home", "")
	hears(30*time.Second, `"type":"problem.ended"`, `"placement":"home"`)
	for sender.Stats().Delivered < 2 { // it counts after the receiver
		time.Sleep(time.Millisecond)
	}
	if a := s.want(200, "GET", "/metrics", ""); !strings.Contains(a.body, "vitrine_alerts_delivered_total 2\n") ||
		!strings.Contains(a.body, "vitrine_alerts_failing 0\n") {
		t.Error(a.body)
	}
}

// An operator sees that alerts arrive before one is needed, and that they do not.
func TestTestAlert(t *testing.T) {
	status := 202
	s, told, _ := alarmed(t, func() int { return status })
	s.want(200, "POST", "/v1/alerts/test", "")
	expect.Contains(t, <-told, `"type":"test"`)
	if page := s.overview(""); len(page.Health) != 0 {
		t.Errorf("%+v", page.Health)
	}
	status = 500
	s.problem(502, "alert", "", "POST", "/v1/alerts/test", "")
	if a := s.ask("POST", "/v1/alerts/test", ""); !strings.Contains(a.body, "answered 500") {
		t.Error(a.body)
	}
	silent := started(t, nil)
	silent.problem(404, "no-alerts", "", "POST", "/v1/alerts/test", "")
	if a := silent.ask("POST", "/v1/alerts/test", ""); !strings.Contains(a.body, "under [alerts]") {
		t.Error(a.body)
	}
}

// Alerts that do not arrive are a problem that the overview and the metrics show.
func TestAlertsDoNotArrive(t *testing.T) {
	s, _, sender := alarmed(t, func() int { return 500 })
	sender.Flush(t.Context(), "log", alert.Problem{Level: "bad", Key: "log", Text: "the log is lost"})
	page := s.overview("")
	if len(page.Health) != 1 || page.Health[0].Level != "bad" || !strings.Contains(page.Health[0].Text,
		"Alerts have not been delivered since 1970-01-01 01:00:00") ||
		!strings.Contains(page.Health[0].Text, "answered 500") {
		t.Errorf("%+v", page.Health)
	}
	if a := s.want(200, "GET", "/metrics", ""); !strings.Contains(a.body, "vitrine_alerts_failed_total 1\n") ||
		!strings.Contains(a.body, "vitrine_alerts_failing 1\n") {
		t.Error(a.body)
	}
}

// Problems for which there was no room are a warning for an hour.
func TestDroppedAlerts(t *testing.T) {
	s, _, sender := alarmed(t, func() int { return 202 })
	many := make([]alert.Problem, 1002)
	for i := range many {
		many[i] = alert.Problem{Level: "bad", Key: fmt.Sprint(i)}
	}
	sender.Observe("log", many)
	if page := s.overview(""); len(page.Health) != 1 || !strings.HasPrefix(page.Health[0].Text,
		"No alerts were sent for 2 problems") {
		t.Errorf("%+v", page.Health)
	}
	s.clock.advance(time.Hour)
	if page := s.overview(""); len(page.Health) != 0 {
		t.Errorf("an hour later: %+v", page.Health)
	}
}

// A certificate that expires soon, or a changed file that cannot be read, rings and shows before callers are refused.
func TestFilesRing(t *testing.T) {
	dir := t.TempDir()
	certify(t, dir, 1) // for an hour
	s, told, sender := alarmed(t, func() int { return 202 })
	s.clock.advance(time.Since(s.clock.now()))
	s.run(server.Listen{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")})
	says := func(want ...string) {
		t.Helper()
		page := s.overview("")
		if len(page.Health) != len(want) {
			t.Fatalf("%+v, want %q", page.Health, want)
		}
		for i, w := range want {
			if page.Health[i].Level != "bad" || !strings.Contains(page.Health[i].Text, w) {
				t.Errorf("%+v, want %q", page.Health[i], w)
			}
		}
	}
	says()
	s.clock.advance(30 * time.Minute)
	says()
	s.clock.advance(20 * time.Minute)
	says("cert.pem expires on ")
	s.clock.advance(20 * time.Minute)
	says("cert.pem expired on ")
	good := fatal.Or(os.ReadFile(filepath.Join(dir, "key.pem")))(t)
	write(t, filepath.Join(dir, "key.pem"), "not a key")
	s.clock.advance(time.Minute)
	says("key.pem: tls: failed to find any PEM", "cert.pem expired on ")
	ringing := make(chan string)
	go func() {
		for range 2 {
			ringing <- <-told
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() { sender.Run(ctx) })
	defer sending.Wait()
	defer cancel()
	var heard string
	for n := 0; n < 2; {
		select {
		case text := <-ringing:
			heard += text
			n++
		case <-time.After(100 * time.Millisecond):
			s.clock.advance(10 * time.Second)
		}
	}
	if !strings.Contains(heard, "failed to find any PEM") || !strings.Contains(heard, "expired on") {
		t.Error(heard)
	}
	write(t, filepath.Join(dir, "key.pem"), string(good))
	s.clock.advance(time.Minute)
	says("cert.pem expired on ")
	if a := s.want(200, "GET", "/metrics", ""); !strings.Contains(a.body, "vitrine_process_problems 1\n") {
		t.Error(a.body)
	}
}

// A move of the clock rings once, not for each placement.
func TestClockRingsOnce(t *testing.T) {
	var all []alert.Problem
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, alert.Problem{Placement: name, Level: "warning", Key: health.Clock, Text: "It moved."},
			alert.Problem{Placement: name, Key: "other"})
	}
	got := server.OneClock(all)
	if want := (alert.Problem{Level: "warning", Key: health.Clock, Text: "It moved. This concerns 3 placements."}); len(got) != 4 ||
		got[3] != want {
		t.Errorf("%+v", got)
	}
	expect.Equal(t, len(server.OneClock(nil)), 0, "problems of none")
}
