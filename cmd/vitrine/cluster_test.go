package main

import (
	"encoding/json"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/service/client"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/server"
	"vitrine/service/setup"
)

// unsynced is a log whose end is unknown.
type unsynced struct{ *memlog.Store }

func (unsynced) Synced() (uint64, time.Time) { return 0, time.Time{} }

// cluster shows who leads, who follows how far behind, and who is away. It succeeds if one leads and all are ready.
func TestCluster(t *testing.T) {
	store := new(memlog.Store)
	open := func(o engine.Options) string {
		o.Build = setup.NewLearner
		e := fatal.Or(engine.Open(t.Context(), o))(t)
		s := httptest.NewServer(server.New(server.Options{Engine: e, Epoch: func() uint64 { return 3 }}))
		t.Cleanup(func() { s.Close(); e.Close() })
		return s.URL
	}
	leader := open(engine.Options{Store: store})
	follower := open(engine.Options{Store: store, Follow: store, Leader: func() string { return "process 7 on a" }})
	alone := open(engine.Options{Store: store, Follow: store})
	behind := open(engine.Options{Store: store, Follow: unsynced{store}})
	for _, u := range []string{follower, alone} { // until they reach the end of the log
		asks := &client.Client{Base: u, Jitter: func() float64 { return 0.1 }}
		fatal.Or(asks.Process(t.Context()))(t)
		asks.CloseIdleConnections()
	}
	const away = "http://127.0.0.1:1"
	for _, c := range []struct {
		name      string
		urls      []string
		code      int
		out, errs string // patterns
	}{
		{"well", []string{leader, follower, alone}, 0,
			`(?m)^process +role +entry +lag +epoch *\nURL +leader +0 +3\nURL +follower +0 +[\d.]+ ms +3 +follows process 7 on a\nURL +follower +0 +[\d.]+ ms +3 +knows of no leader\n$`, `^$`},
		{"one is away", []string{leader, away}, 1, `URL +not ready: .*connection refused\n`,
			`1 of 2 processes are not ready: http://127\.0\.0\.1:1\n`},
		{"one is behind", []string{leader, behind}, 1,
			`URL +not ready: lag: this process is a follower that has not seen`, `1 of 2 processes are not ready`},
		{"no leader", []string{follower, away}, 1, `follower`,
			`none of 2 processes leads, 1 are not ready\n.*hint: a follower takes over`},
		{"two leaders", []string{leader, leader}, 1, `leader`, `(\S+) and \S+ say that they lead\n.*higher epoch`},
		{"no URL", []string{"a:8080"}, 1, `must be a URL such as`, `none of 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := vitrineRun(t, append([]string{"cluster"}, c.urls...)...)
			printed := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).ReplaceAllString(out, "URL")
			if code != c.code || !regexp.MustCompile(c.out).MatchString(printed) ||
				!regexp.MustCompile(c.errs).MatchString(errs) {
				t.Errorf("status %d, %s%s", code, printed, errs)
			}
		})
	}
	out, errs, code := vitrineRun(t, "cluster", "--json", leader, away)
	if code != 1 {
		t.Errorf("status %d, %s", code, errs)
	}
	var members []member
	if err := json.Unmarshal([]byte(out), &members); err != nil || len(members) != 2 || members[0].Epoch != 3 ||
		members[1].Process != nil || !strings.Contains(members[1].Error, "refused") {
		t.Errorf("%v: %s", err, out)
	}
}
