package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vitrine/service/decision"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/server"
	"vitrine/service/setup"
)

// beside makes a service that has the first of several shards with a placement one, and follows those in hang, whose leader does not
// answer. pass answers for the others.
func beside(t *testing.T, count int, hang []int, pass func(ctx context.Context, shard int, line string) (status int, body string, err error)) *service {
	s := &service{TB: t, feed: new(server.Feed)}
	t.Cleanup(s.feed.Close)
	s.Server = server.New(server.Options{Feed: s.feed, Limits: server.Limits{Answer: 2 * time.Second, Concurrent: 4}, Shards: &server.Shards{
		Count: count, Follow: append([]int{1}, hang...), Places: &places{of: map[string]int{}},
		Pass: func(ctx context.Context, shard int, request []byte) ([]byte, error) {
			line, _, _ := strings.Cut(string(request), "\r\n")
			status, body, err := pass(ctx, shard, strings.TrimSuffix(line, " HTTP/1.1"))
			if err != nil {
				return nil, err
			}
			return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), len(body), body), nil
		},
	}})
	for _, number := range append([]int{1}, hang...) {
		o := decision.Options{Shard: number, Store: new(memlog.Store), Build: setup.NewLearner, Follow: number > 1}
		o.Propose = func(ctx context.Context, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		e, err := decision.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		if _, err := s.Mount(t.Context(), number, server.Shard{Engine: e, Clock: time.Now}); err != nil {
			t.Fatal(err)
		}
	}
	s.want(201, "PUT", "/v1/placements/one", strings.TrimSuffix(homeOfX, "}")+`,"shard":1}`)
	return s
}

// A decision that is named by its id only is found though the leaders of other shards, here and elsewhere, do not answer. Nothing is
// found twice.
func TestDecisionBesideShardsThatHang(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string][]int{}
	s := beside(t, 6, []int{2}, func(ctx context.Context, shard int, line string) (int, string, error) {
		mu.Lock()
		asked[line] = append(asked[line], shard)
		mu.Unlock()
		switch {
		case shard == 3:
			<-ctx.Done()
			return 0, "", ctx.Err()
		case shard == 4:
			return 503, `{"detail":"shard 4 has no leader"}`, nil
		case shard == 5 && strings.Contains(line, "/there"):
			return 200, `{"decision_id":"there"}`, nil
		}
		return 404, `{}`, nil
	})
	s.want(201, "POST", "/v1/placements/one/decisions", `{"decision_id":"here","items":[{"id":"i","features":{"x":1}}]}`)
	s.want(204, "POST", "/v1/decisions/here/outcome", `{"choice":"i"}`)
	if len(asked) != 0 {
		t.Errorf("%v: others were asked for a decision that is here", asked)
	}
	if a := s.want(200, "GET", "/v1/decisions/there", ""); a.body != `{"decision_id":"there"}` {
		t.Error(a.body)
	}
	if got := asked["GET /v1/decisions/there"]; !slices.Equal(got, []int{3, 4, 5}) {
		t.Errorf("shards %v were asked", got)
	}
	if a := s.want(503, "GET", "/v1/decisions/never", ""); !strings.Contains(a.body, "shard 4 has no leader") {
		t.Error(a.body)
	}
	s.want(200, "GET", "/v1/placements/one", "") // a place that is not given back would be missed: there is one for each shard
}

// A list asks all shards elsewhere at once, so that those that hang do not add up, and passes on the entries that it must have.
func TestListsAskShardsAtOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string]int{}
	all := make(chan struct{})
	s := beside(t, 4, nil, func(ctx context.Context, shard int, line string) (int, string, error) {
		mu.Lock()
		if asked[line]++; asked[line] == 3 && strings.Contains(line, "entry") {
			close(all)
		}
		mu.Unlock()
		if strings.Contains(line, "overview") {
			return 200, fmt.Sprintf(`{"now":"2026-01-01T00:00:00Z","total":%d,"placements":[]}`, 100*shard-250), nil
		}
		select {
		case <-all:
			return 200, fmt.Sprintf(`{"placements":[{"name":"p%d","config":{}}]}`, shard), nil
		case <-ctx.Done():
			return 0, "", ctx.Err()
		}
	})
	if a := s.want(200, "GET", "/v1/placements?entry=1:1,3:7", ""); strings.Contains(a.body, "away") || strings.Count(a.body, `"name":"p`) != 3 {
		t.Error(a.body)
	}
	if asked["GET /v1/placements?entry=1:1,3:7"] != 3 {
		t.Errorf("%v", asked)
	}
	clear(asked)
	s.want(200, "GET", "/v1/overview?from=100000", "")
	if n := len(asked); n != 2 { // 150 placements are the most of a shard
		t.Errorf("%d pages of the overview were asked for: %v", n, asked)
	}
}

// A process that has just lost the log of a shard says so to the process that asks it, and not that there is nothing.
func TestPassedToAProcessWithoutTheShard(t *testing.T) {
	s := newSharded(t, nil)
	s.decide(201, "two", "d")
	s.Unmount(2, "its stream is gone")
	for _, path := range []string{"/v1/decisions/d", "/v1/placements", "/v1/overview", "/v1/placements/two"} {
		answer := string(s.Passed(2, []byte("GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"), 1<<20))
		if !strings.HasPrefix(answer, "HTTP/1.1 503") || !strings.Contains(answer, "shard 2 is away: its stream is gone") {
			t.Errorf("%s: %s", path, answer)
		}
	}
}

// A request that is too long to be passed on is refused with what to do.
func TestLongRequestToAShard(t *testing.T) {
	t.Parallel()
	s := beside(t, 2, nil, func(context.Context, int, string) (int, string, error) {
		return 0, "", fmt.Errorf("%w: 2 MB", server.ErrTooLong)
	})
	if a := s.want(503, "PUT", "/v1/placements/two", strings.TrimSuffix(homeOfX, "}")+`,"shard":2}`); !strings.Contains(a.body, "too long to be passed on: ask a process that follows shard 2") {
		t.Error(a.body)
	}
}
