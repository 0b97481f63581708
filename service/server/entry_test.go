package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/server"
)

// The answer to a change names the log's last entry, and the document says so. Reads and problems name none.
func TestEntryOfAChange(t *testing.T) {
	s := started(t, func(*server.Options, *engine.Options) {})
	const home = "/v1/placements/home"
	for _, c := range []struct{ method, path, body, entry string }{
		{"PUT", home, `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`, "1"},
		{"POST", home + "/decisions", `{"decision_id":"a","items":[{"id":"i","features":{"x":1}}]}`, "2"},
		{"POST", home + "/decisions", `{"decision_id":"b","items":[{"id":"i","features":{"x":1}}]}`, "3"},
		{"POST", home + "/decisions", `{"decision_id":"a","items":[{"id":"i","features":{"x":1}}]}`, "3"},
		{"POST", home + "/decisions", `{"decision_id":"a","items":[{"id":"j","features":{"x":1}}]}`, ""},
		{"POST", home + "/decisions/a/outcome", `{"choice":"i"}`, "4"},
		{"POST", home + "/decisions/a/outcome", `{"choice":"i"}`, "4"},
		{"GET", home + "/decisions/a", "", ""},
		{"PUT", home, `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"attribution_window":"1h"}`, "5"},
		{"DELETE", home, "", "6"},
	} {
		a := s.ask(c.method, c.path, c.body)
		expect.Equal(t, a.header.Get("Vitrine-Entry"), c.entry, c.method, c.path, c.body, a.status, "entry")
	}
	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Headers map[string]any }
		}
	}
	fatal.If(t, json.Unmarshal([]byte(s.ask("GET", "/openapi.json", "").body), &document,
		json.MatchCaseInsensitiveNames(true)))
	n := 0
	for path, operations := range document.Paths {
		for method, operation := range operations {
			changes := method != "get" && path != "/v1/session" && path != "/v1/erasures" &&
				path != "/v1/placements/{name}/try"
			for status, response := range operation.Responses {
				want := changes && strings.HasPrefix(status, "2")
				expect.Equal(t, response.Headers["Vitrine-Entry"] != nil, want, method, path, status, "has the header")
				n++
			}
		}
	}
	if n < 50 {
		t.Errorf("%d answers in the document", n)
	}
}

// twoProcesses are a service and one that follows its log.
func twoProcesses(t *testing.T, change func(o *server.Options, e *engine.Options)) (leader, follower *service) {
	leader = started(t, nil)
	return leader, started(t, func(o *server.Options, e *engine.Options) {
		e.Store, e.Follow = leader.store, leader.store.(eventlog.Followed)
		e.Leader = func() string { return "process 7" }
		o.Log = nil
		if change != nil {
			change(o, e)
		}
	})
}

const homeOfX = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`

// A reader who names an entry sees it on every process.
func TestReadYourWrites(t *testing.T) {
	leader, follower := twoProcesses(t, func(o *server.Options, _ *engine.Options) { o.Limits.Answer = patience })
	entry := leader.want(201, "PUT", "/v1/placements/home", homeOfX).header.Get("Vitrine-Entry")
	follower.want(200, "GET", "/v1/placements/home?entry="+entry, "")
	for i := range 50 {
		id := fmt.Sprint("d", i)
		entry = leader.want(201, "POST", "/v1/placements/home/decisions",
			`{"decision_id":"`+id+`","items":[{"id":"i","features":{"x":1}}]}`).header.Get("Vitrine-Entry")
		follower.want(200, "GET", "/v1/placements/home/decisions/"+id+"?entry="+entry, "")
	}
	follower.want(200, "GET", "/v1/placements/home?entry=", "")
	for _, entry := range []string{"x", "-1", "1.5", "18446744073709551616"} {
		follower.problem(422, "invalid", "#/entry", "GET", "/v1/placements?entry="+entry, "")
	}
	leader.problem(400, "query", "", "POST", "/v1/placements/home/decisions?entry=1000",
		`{"items":[{"id":"i","features":{"x":1}}]}`) // a change does not wait
}

// An entry that does not come is the problem lag.
func TestEntryDoesNotCome(t *testing.T) {
	_, follower := twoProcesses(t, func(o *server.Options, _ *engine.Options) {
		o.Limits.Answer = 200 * time.Millisecond
	})
	for _, path := range []string{"/v1/placements?entry=1000", "/v1/placements/home/stats?entry=1000",
		"/v1/placements/nothing?entry=18446744073709551615"} {
		a := follower.want(503, "GET", path, "")
		if !strings.Contains(a.body, `"urn:vitrine:problem:lag"`) || !strings.Contains(a.body,
			"is at entry 0: try again") || a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %s, %v", path, a.body, a.header)
		}
	}
}

// looks waits until a follower has seen the end of its log.
func (s *service) looks() {
	for strings.Contains(s.ask("GET", "/readyz", "").body, "has not seen the end") {
		time.Sleep(10 * time.Millisecond)
	}
}

// A follower that never saw the end of its log is not ready, and no decades behind it.
func TestNeverSeen(t *testing.T) {
	_, follower := twoProcesses(t, func(_ *server.Options, e *engine.Options) { e.Follow = old{e.Follow, time.Time{}} })
	follower.isLate("has not seen the end of the log yet", follower.want(503, "GET", "/readyz", ""))
	if lag := follower.gauge("vitrine_follower_lag_seconds"); lag > 3700 {
		t.Error("a follower lags by", lag, "seconds")
	}
}

// A process describes its part in its log. A follower too far behind is not ready, and says why.
func TestReady(t *testing.T) {
	leader, follower := twoProcesses(t, func(o *server.Options, _ *engine.Options) {
		o.Epoch = func() uint64 { return 5 }
	})
	leader.want(201, "PUT", "/v1/placements/home", homeOfX)
	follower.want(200, "GET", "/v1/placements?entry=1", "")
	if a := leader.want(200, "GET", "/readyz", ""); a.body != `{"role":"leader","entry":1}` {
		t.Error(a.body)
	}
	follower.looks()
	var p api.Process
	if a := follower.want(200, "GET", "/readyz", ""); json.Unmarshal([]byte(a.body), &p) != nil ||
		p.Role != "follower" || p.Leader != "process 7" || p.Entry != 1 || p.Epoch != 5 ||
		!(p.LagSeconds >= 0 && p.LagSeconds < 60) {
		t.Error(a.body)
	}
	if leader.gauge("vitrine_leader") != 1 || follower.gauge("vitrine_leader") != 0 ||
		leader.gauge("vitrine_follower_lag_seconds") != 0 {
		t.Error("the metrics have another role")
	}
	for _, c := range []struct{ leader, want string }{
		{"process 7", `1h\d+m.*s behind the log, whose last known writer is process 7`},
		{"", `1h\d+m.*s behind the log, which no process is known to write`}} {
		_, late := twoProcesses(t, func(_ *server.Options, e *engine.Options) {
			e.Follow, e.Leader = old{e.Follow, time.Now().Add(-time.Hour)}, func() string { return c.leader }
		})
		if a := late.want(503, "GET", "/readyz", ""); !strings.Contains(a.body, "has not seen the end") {
			late.isLate(c.want, a)
		}
		late.looks()
		late.isLate(c.want, late.want(503, "GET", "/readyz", ""))
	}
	cut := time.Duration(0)
	lone := started(t, func(o *server.Options, _ *engine.Options) {
		o.Unreached = func() time.Duration { return cut }
	})
	for _, cut = range []time.Duration{0, 5 * time.Second} { // servers elect their leader in less
		lone.want(200, "GET", "/readyz", "")
		expect.Equal(t, lone.gauge("vitrine_leader"), 1, "it leads")
	}
	cut += time.Millisecond
	lone.isLate("has not reached the log's servers for 5.001s", lone.want(503, "GET", "/readyz", ""))
	expect.Equal(t, lone.gauge("vitrine_leader"), 0, "it leads without servers")
}

// old is a log that was idle at a time, and unknown since.
type old struct {
	eventlog.Followed
	at time.Time
}

func (o old) Synced() (uint64, time.Time) { return 0, o.at }

// isLate checks the answer of a follower that is not ready.
func (s *service) isLate(want string, a answer) {
	s.Helper()
	if !strings.Contains(a.body, "problem:lag") || !regexp.MustCompile(want).MatchString(a.body) ||
		a.header.Get("Retry-After") == "" {
		s.Errorf("%s, want %s", a.body, want)
	}
}
