package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vitrine/service/decision"
	"vitrine/service/server"
)

// A memory that is too small is one warning when it begins, a metric and a figure of the statistics.
func TestMemoryIsTooSmall(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", `{"max_size":1,"features":[{"name":"price","kind":"number"}],"policy":{"name":"uniform"},"memory":16000}`)
	n := 0
	more := func(count int) {
		for range count {
			n++
			s.clock.advance(time.Second / 10)
			s.want(201, "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"price":1}}]}`, n))
		}
	}
	s.run(server.Listen{Maintain: time.Millisecond})
	warnings := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			got := strings.Count(s.log.String(), "left memory before their outcome")
			if got > want || time.Now().After(deadline) {
				t.Fatalf("%d warnings, want %d:\n%s", got, want, s.log)
			}
			if got == want {
				return
			}
		}
	}
	more(200)
	warnings(1)
	s.problem(409, "evicted", "", "POST", "/v1/decisions/d95/outcome", `{"choice":"a"}`)
	more(200)
	warnings(1)
	if a := s.want(200, "GET", "/metrics", ""); !strings.Contains(a.body, `vitrine_expired_early_total{placement="home"} 298`) || !strings.Contains(a.body, `vitrine_expired_total{placement="home"} 0`) {
		t.Errorf("no early ends in %s", a.body)
	}
	if a := s.want(200, "GET", "/v1/placements/home/stats", ""); !strings.Contains(a.body, `"expired_early":298`) || !strings.Contains(a.body, `"memory_seconds":`) {
		t.Errorf("no early ends in %s", a.body)
	}
	if text := s.log.String(); !strings.Contains(text, `"level":"WARN"`) || !strings.Contains(text, `"placement":"home"`) {
		t.Error(text)
	}
}

func TestSnapshotAge(t *testing.T) {
	s := started(t, func(o *server.Options, _ *decision.Options) {
		o.SnapshotAge = func() time.Duration { return 90 * time.Second }
	})
	if a := s.want(200, "GET", "/metrics", ""); !strings.Contains(a.body, "\nvitrine_snapshot_age_seconds 90\n") {
		t.Error(a.body)
	}
}
