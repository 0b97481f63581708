package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/keys"
	"vitrine/service/metrics"
	"vitrine/service/server"
)

func TestMetrics(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", strings.Replace(home, `"learn"`, `"explore"`, 1))
	for i := range 20 {
		s.want(201, "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":"%d",%s}`, i, items))
	}
	s.want(204, "POST", "/v1/placements/home/decisions/3/outcome", `{"choice":null}`)
	s.want(404, "POST", "/v1/placements/home/decisions/33/outcome", `{"choice":null}`)
	fatal.If(t, s.engine.Wait(t.Context()))
	text := s.want(200, "GET", "/metrics", "").body
	for _, line := range []string{
		`vitrine_decisions_total{placement="home"} 20`, `vitrine_outcomes_total{placement="home"} 1`,
		`vitrine_pending{placement="home"} 19`,
		`vitrine_learner_lag_rounds{placement="home"} 0`, `vitrine_log_lag_entries 0`, `vitrine_log_entries 22`,
		`vitrine_exploration_share{placement="home"} `,
		`vitrine_calibration_predicted_total{placement="home"} `,
		`vitrine_revenue{placement="home",source="policy"} 0`,
		`vitrine_request_seconds_count{method="POST",route="/v1/placements/{name}/decisions"} 20`,
		`vitrine_requests_total{method="POST",route="/v1/placements/{name}/decisions",status="2xx"} 20`,
		`vitrine_requests_total{method="POST",route="/v1/placements/{name}/decisions/{id}/outcome",status="2xx"} 1`,
		`vitrine_requests_total{method="POST",route="/v1/placements/{name}/decisions/{id}/outcome",status="4xx"} 1`,
		`vitrine_refusals_total{cause="not-found"} 1`, `vitrine_requests_in_progress 0`, `vitrine_requests_limit 256`,
		`vitrine_build_info{goversion="` + runtime.Version() + `",version="test"} 1`,
	} {
		expect.Contains(t, text, "\n"+line, line, "is missing")
	}
}

// A refund does not lower a counter: Prometheus would take that for a restart, and count all revenue again.
func TestRefundIsNoRestart(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	a := s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"d",`+items+`}`).body
	item := regexp.MustCompile(`"id":("[^"]*")`).FindStringSubmatch(a)[1]
	s.want(204, "POST", "/v1/placements/home/decisions/d/outcome", `{"choice":`+item+`}`)
	fatal.If(t, s.engine.Wait(t.Context()))
	counters := func() map[string]float64 {
		of, counts := map[string]float64{}, ""
		for line := range strings.Lines(s.want(200, "GET", "/metrics", "").body) {
			words := strings.Fields(line)
			if words[0] == "#" {
				if words[1] == "TYPE" {
					counts = words[3]
				}
			} else if counts == "counter" {
				of[words[0]] = fatal.Or(strconv.ParseFloat(words[1], 64))(t)
			}
		}
		return of
	}
	const revenue = `vitrine_revenue{placement="home",source="policy"}`
	before, earned := counters(), s.gauge(revenue)
	s.want(204, "POST", "/v1/placements/home/decisions/d/corrections", `{"id":"c","item":`+item+`,"value":-0.5}`)
	if now := s.gauge(revenue); now != earned-0.5 || len(before) < 20 {
		t.Errorf("%v earned, then %v", earned, now)
	}
	after := counters()
	for name, v := range before {
		if after[name] < v {
			t.Errorf("%s falls from %v to %v", name, v, after[name])
		}
	}
}

// A series begins with its first request: a service with one placement exports few, and each used route adds a
// histogram of 14 and a few counters.
func TestFewSeries(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	s.want(200, "GET", "/healthz", "")
	ours := func() (n int) {
		for line := range strings.Lines(s.want(200, "GET", "/metrics", "").body) {
			if strings.HasPrefix(line, "vitrine_") {
				n++
			}
		}
		return n
	}
	ours() // which is a route too
	before := ours()
	if before > 100 {
		t.Errorf("%d series of a service with one placement", before)
	}
	for i := range 10 {
		s.want(201, "POST", "/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":"%d",%s}`, i, items))
		s.ask("POST", "/v1/placements/home/decisions", `{`)
	}
	if after := ours(); after-before != 14+2+1+1 {
		t.Errorf("a route that is used adds %d series", after-before)
	}
}

// A key cannot make another placement look refused.
func TestRefusedByAnotherKey(t *testing.T) {
	token, key := keys.New("other", keys.ScopeDecide)
	key.Placements = []string{"other"}
	owner, whole := keys.New("whole", keys.Scopes...)
	s, _ := locked(t, key.Table()+whole.Table())
	s.token = owner
	s.want(201, "PUT", "/v1/placements/home", home)
	s.token = token
	s.want(404, "POST", "/v1/placements/home/decisions", `{}`)
	s.token = owner
	expect.Equal(t, s.gauge(`vitrine_decisions_refused_total{placement=""}`), 1, "refused decisions of unknown placements")
	expect.Equal(t, strings.Count(s.want(200, "GET", "/metrics", "").body, "vitrine_decisions_refused_total{"), 1, "series")
}

// Decisions that their callers must mend are counted by placement, and names of placements that do not exist make no series.
// Conflicts are not counted.
func TestRefusedDecisions(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	const rank = "/v1/placements/home/personalizer/v1.0/rank"
	s.want(422, "POST", "/v1/placements/home/decisions", `{"decision_id":"d"}`)
	s.want(400, "POST", "/v1/placements/home/decisions", `{`)
	if a := s.ask("POST", rank, `{`); a.status/100 != 4 {
		t.Error(a)
	}
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"d",`+items+`}`)
	s.want(409, "POST", "/v1/placements/home/decisions", `{"decision_id":"d","max_size":1,`+items+`}`)
	s.want(422, "POST", "/v1/placements/home/try", `{}`)
	gone, leave := context.WithCancel(t.Context())
	leave()
	left := httptest.NewRecorder() // its caller hung up
	s.ServeHTTP(left, httptest.NewRequestWithContext(gone, "POST", "http://localhost/v1/placements/home/decisions",
		strings.NewReader(`{"decision_id":"e",`+items+`}`)))
	expect.Equal(t, left.Code, 499, "status for a caller who left")
	for _, name := range []string{"a", "b", "c"} {
		s.want(404, "POST", "/v1/placements/"+name+"/decisions", `{}`)
		if a := s.ask("POST", "/v1/placements/"+name+"/decisions?what=1", `{}`); a.status/100 != 4 {
			t.Error(a)
		}
	}
	expect.Equal(t, s.gauge(`vitrine_decisions_refused_total{placement="home"}`), 3, "refused decisions of a placement")
	expect.Equal(t, s.gauge(`vitrine_decisions_refused_total{placement=""}`), 6, "refused decisions of unknown placements")
	expect.Equal(t, strings.Count(s.want(200, "GET", "/metrics", "").body, "vitrine_decisions_refused_total{"), 2, "series")
}

// Callers who spend their rate do not hide the service from its operator.
func TestMetricsHaveNoRate(t *testing.T) {
	s := started(t, func(o *server.Options, _ *engine.Options) { o.Limits.Rate, o.Limits.Burst = 0.001, 1 })
	s.want(200, "GET", "/v1/placements", "")
	s.want(429, "GET", "/v1/placements", "")
	for _, path := range []string{"/metrics", "/readyz", "/healthz"} {
		s.want(200, "GET", path, "")
	}
}

// gauge is a line of /metrics.
func (s *service) gauge(name string) (v float64) {
	s.Helper()
	for line := range strings.Lines(s.want(200, "GET", "/metrics", "").body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			fatal.Or(fmt.Sscan(value, &v))(s)
			return v
		}
	}
	s.Fatalf("there is no metric %s", name)
	return 0
}

// Appends to the log are measured, and the epoch of its writer and the age of the snapshot are shown.
func TestLogMetrics(t *testing.T) {
	appends := metrics.NewAppends()
	s := started(t, func(o *server.Options, _ *engine.Options) {
		o.Appends, o.Log = appends, epochLog{o.Log}
		o.SnapshotAge, o.SnapshotEvery = func() time.Duration { return 90 * time.Second }, time.Minute
	})
	appends.Observe(time.Second)
	appends.Observe(2 * time.Second)
	for name, want := range map[string]float64{"vitrine_log_append_seconds_count": 2,
		"vitrine_log_append_seconds_sum": 3, "vitrine_log_epoch": 7, "vitrine_snapshot_age_seconds": 90, "vitrine_snapshot_interval_seconds": 60} {
		expect.Equal(t, s.gauge(name), want, name, "is")
	}
}

// epochLog is a log with a writer's epoch.
type epochLog struct{ eventlog.Log }

func (l epochLog) Extent(ctx context.Context) (eventlog.Extent, error) {
	x, err := l.Log.Extent(ctx)
	x.Epoch = 7
	return x, err
}

// In the mode shadow the estimates of the policy's sets stand next to the baselines'.
func TestShadowMetrics(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", strings.Replace(plain, `"max_size"`, `"mode":"shadow","max_size"`, 1))
	for range 3 {
		s.want(201, "POST", "/v1/placements/home/decisions",
			`{"items":[{"id":"a","features":{"x":0}},{"id":"b","features":{"x":0}}],"baseline":["a"]}`)
	}
	text := s.want(200, "GET", "/metrics", "").body
	for _, line := range []string{ // utilities of 0: p(a|{a}) = 1/2, and of two items 1/3 each
		`vitrine_shadow_rounds_total{placement="home"} 3`, `vitrine_shadow_policy_total{placement="home"} 2`,
		`vitrine_shadow_baseline_total{placement="home"} 1.5`,
	} {
		expect.Contains(t, text, "\n"+line+"\n", line, "is missing")
	}
}

// A memory that is too small is one warning when it begins, a metric and a figure of the statistics.
func TestMemoryIsTooSmall(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home",
		`{"max_size":1,"features":[{"name":"price","kind":"number"}],"policy":{"name":"uniform"},"memory_bytes":16000}`)
	n := 0
	more := func(count int) {
		for range count {
			n++
			s.clock.advance(time.Second / 10)
			s.want(201, "POST", "/v1/placements/home/decisions",
				fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"price":1}}]}`, n))
		}
	}
	s.run(server.Listen{Maintain: time.Millisecond})
	warnings := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
			got := strings.Count(s.log.String(), "left memory before an outcome")
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
	s.problem(409, "evicted", "", "POST", "/v1/placements/home/decisions/d95/outcome", `{"choice":"a"}`)
	more(200)
	warnings(1)
	if a := s.want(200, "GET", "/metrics", ""); !strings.Contains(a.body,
		`vitrine_expired_early_total{placement="home"} 298`) || !strings.Contains(a.body,
		`vitrine_expired_total{placement="home"} 0`) {
		t.Errorf("no early ends in %s", a.body)
	}
	if a := s.want(200, "GET", "/v1/placements/home/stats", ""); !strings.Contains(a.body, `"expired_early":298`) ||
		!strings.Contains(a.body, `"memory_seconds":`) {
		t.Errorf("no early ends in %s", a.body)
	}
	if text := s.log.String(); !strings.Contains(text, `"level":"WARN"`) ||
		!strings.Contains(text, `"placement":"home"`) {
		t.Error(text)
	}
}
