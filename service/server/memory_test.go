package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/server"
	"vitrine/service/setup"
)

func within(t testing.TB, size int64) (*service, *budget.Budget) {
	b := budget.New(size)
	return started(t, func(so *server.Options, eo *engine.Options) {
		so.Budget, eo.Budget, eo.Size = b, b, setup.LearnerSize
	}), b
}

// A placement is charged, and one that does not fit is a problem that says why.
func TestPlacementsTakeMemory(t *testing.T) {
	s, b := within(t, 1<<30)
	s.want(http.StatusCreated, "PUT", "/v1/placements/home", plain)
	u := b.Usage()
	metrics := s.want(http.StatusOK, "GET", "/metrics", "").body
	for _, want := range []string{
		fmt.Sprintf("vitrine_memory_limit_bytes %v\n", float64(1<<30)),
		fmt.Sprintf("vitrine_memory_used_bytes{purpose=\"placements\"} %v\n", float64(u.Placements)),
		"vitrine_memory_used_bytes{purpose=\"requests\"} 0\n",
		"vitrine_memory_waiting_requests 0\n",
		fmt.Sprintf("vitrine_charged_bytes{placement=\"home\"} %v\n", float64(u.Placements)),
	} {
		expect.Contains(t, metrics, want, "/metrics")
	}
	expect.Contains(t, s.want(http.StatusOK, "GET", "/v1/placements/home/stats", "").body,
		fmt.Sprintf(`"reserved_bytes":%d`, u.Placements), "the statistics do not have the", u.Placements, "bytes that are charged")
	const wide = `{"max_size":3,"features":[{"name":"sku","kind":"category","columns":4095}],"policy":{"name":"onl-mnl"}}`
	s.problem(http.StatusConflict, "memory", "", "PUT", "/v1/placements/wide", wide)
	if b.Usage() != u {
		t.Errorf("%+v was taken before, and %+v after", u, b.Usage())
	}
}

// rows is a request of n items of one category.
func rows(n int) string {
	var b strings.Builder
	b.WriteString(`{"items":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"%d","features":{"sku":"%d"}}`, i, i)
	}
	b.WriteString("]}")
	return b.String()
}

// Requests with rows that do not fit at once are answered one after another: together they never exceed the budget.
func TestRequestsTakeMemory(t *testing.T) {
	const n, width = 2048, 512 // 8 MiB
	b := budget.New(32 << 20)
	c := new(offers)
	var now, maximum atomic.Int64
	s := started(t, func(so *server.Options, eo *engine.Options) {
		so.Budget, eo.Budget, eo.Build = b, b, c.build
	})
	s.want(http.StatusCreated, "PUT", "/v1/placements/wide",
		fmt.Sprintf(`{"max_size":1,"max_request_items":%d,"features":[{"name":"sku","kind":"category","columns":%d}],"policy":{"name":"uniform"},"memory_bytes":1000000}`, n, width))
	placements := b.Usage().Placements
	c.offered = func() {
		together := now.Add(1)
		defer now.Add(-1)
		maximum.Store(max(maximum.Load(), together))
		if u := b.Usage(); u.Requests > u.Size-u.Placements || u.Requests < together*8*n*width {
			t.Errorf("%d requests of %d×%d numbers hold %+v", together, n, width, u)
		}
	}
	body := rows(n)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range 20 { // as clients do that are asked to try again
				if a := s.ask("POST", "/v1/placements/wide/decisions",
					body); a.status != http.StatusServiceUnavailable {
					if a.status != http.StatusCreated {
						t.Errorf("status %d: %s", a.status, a.body)
					}
					return
				}
			}
			t.Error("a request was refused 20 times")
		})
	}
	all.Wait()
	if maximum := maximum.Load(); maximum < 1 || maximum > 2 {
		t.Errorf("%d requests of 8 MiB were decided at once, of which the budget holds two", maximum)
	}
	if u := b.Usage(); u.Requests != 0 || u.Placements != placements {
		t.Errorf("in the end %+v is taken", u)
	}
}

// A request waits a little for the memory of others, and is then asked to retry. One that will never fit is
// too large.
func TestRequestsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := within(t, 400<<20)
		s.want(http.StatusCreated, "PUT", "/v1/placements/home",
			`{"max_size":1,"max_request_items":16384,"features":[{"name":"sku","kind":"category","columns":4096}],"policy":{"name":"uniform"},"memory_bytes":1000000}`)
		free := b.Usage().Size - b.Usage().Placements
		work, start := free-free/4, free/8
		const path = "/v1/placements/home/decisions"
		for what, taken := range map[budget.Purpose]int64{budget.Work: work, budget.Start: start} {
			other := b.Account("", 4, time.Hour)
			fatal.If(t, other.Take(t.Context(), what, taken))
			s.problem(http.StatusServiceUnavailable, "busy", "", "POST", path, rows(2))
			var late answer
			go func() { late = s.ask("POST", path, rows(2)) }()
			if synctest.Wait(); late.status != 0 || b.Usage().Waiting != 1 {
				t.Errorf("answered %d at once, %+v", late.status, b.Usage())
			}
			other.Keep(what, 0)
			if synctest.Wait(); late.status != http.StatusCreated {
				t.Errorf("once there was memory the answer was %d %s", late.status, late.body)
			}
			if u := b.Usage(); u.Requests != 0 {
				t.Errorf("in the end %+v is taken", u)
			}
		}
		s.problem(http.StatusRequestEntityTooLarge, "memory", "", "POST", path, rows(16000))
		if a := s.ask("POST", "/v1/placements/home/personalizer/v1.0/rank",
			rankOf(9900)); a.status != http.StatusRequestEntityTooLarge {
			t.Errorf("a Rank that never fits: %d %s", a.status, a.body)
		}
		s.engine.Close()
		s.feed.Close()
	})
}

// However many bodies one key begins and never ends, another key gets answers.
func TestKeysShareMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, webKey := keys.New("web", keys.ScopeDecide)
		shop, shopKey := keys.New("shop", keys.Scopes...)
		file := filepath.Join(t.TempDir(), "keys.toml")
		write(t, file, webKey.Table()+shopKey.Table())
		b := budget.New(400 << 20)
		s := started(t, func(so *server.Options, eo *engine.Options) {
			so.Budget, eo.Budget = b, b
			so.Keys = fatal.Or(keys.Open(file, so.Clock, so.Logger))(t)
		})
		s.token = shop
		s.want(http.StatusCreated, "PUT", "/v1/placements/home", home)
		var slow sync.WaitGroup
		body, end := io.Pipe()
		for _, length := range []int64{-1, 300_000, 10_000} {
			for range 60 {
				slow.Go(func() {
					r := httptest.NewRequest("POST", "http://localhost/v1/placements/home/decisions", body)
					r.Header.Set("Authorization", "Bearer "+web)
					r.ContentLength = length
					s.ServeHTTP(httptest.NewRecorder(), r)
				})
			}
			synctest.Wait()
			if a := s.ask("POST", "/v1/placements/home/decisions", "{"+items+strings.Repeat(" ", 16_000)+"}"); a.status != 201 {
				t.Errorf("another key gets %d %s", a.status, a.body)
			}
			time.Sleep(2 * time.Second)
		}
		_ = end.Close()
		slow.Wait()
		expect.Equal(t, b.Usage().Requests, 0, "bytes are taken in the end")
		s.engine.Close()
		s.feed.Close()
	})
}

// Long bodies that stop after their half keep short requests of their key out as little as those of others, and hold
// memory only for the part that came.
func TestHalfSentBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, webKey := keys.New("web", keys.ScopeDecide)
		shop, shopKey := keys.New("shop", keys.Scopes...)
		file := filepath.Join(t.TempDir(), "keys.toml")
		write(t, file, webKey.Table()+shopKey.Table())
		b := budget.New(400 << 20)
		s := started(t, func(so *server.Options, eo *engine.Options) {
			so.Budget, eo.Budget = b, b
			so.Keys = fatal.Or(keys.Open(file, so.Clock, so.Logger))(t)
		})
		s.token = shop
		s.want(http.StatusCreated, "PUT", "/v1/placements/home", home)
		s.token = web
		const half = 2<<20 + 1
		var slow sync.WaitGroup
		var ends []*io.PipeWriter
		for i := range 40 {
			body, end := io.Pipe()
			ends = append(ends, end)
			slow.Go(func() {
				r := httptest.NewRequest("POST", "http://localhost/v1/placements/home/decisions", body)
				r.Header.Set("Authorization", "Bearer "+web)
				r.ContentLength = 4 << 20
				s.ServeHTTP(httptest.NewRecorder(), r)
				body.Close()
			})
			go end.Write(make([]byte, half))
			synctest.Wait()
			if held := b.Usage().Requests; i == 0 && held > half+64<<10 {
				t.Errorf("a body of which %d bytes have come holds %d", half, held)
			}
			s.want(http.StatusCreated, "POST", "/v1/placements/home/decisions", "{"+items+strings.Repeat(" ", 3000)+"}")
		}
		for _, end := range ends {
			_ = end.Close()
		}
		slow.Wait()
		expect.Equal(t, b.Usage().Requests, 0, "bytes are taken in the end")
		s.engine.Close()
		s.feed.Close()
	})
}

// Of its own weight a request is charged what it takes and no more, in every form, and returns it if it fails.
func TestRequestsReturnMemory(t *testing.T) {
	b := budget.New(1 << 30)
	var taken int64
	c := &offers{offered: func() { taken = b.Usage().Requests }}
	s := started(t, func(so *server.Options, eo *engine.Options) { so.Budget, eo.Build = b, c.build })
	s.want(http.StatusCreated, "PUT", "/v1/placements/home",
		`{"max_size":1,"features":[{"name":"sku","kind":"category","columns":1000}],"policy":{"name":"uniform"}}`)
	config := fatal.Or(s.engine.Config("home"))(t)
	const items = 30
	s.want(http.StatusCreated, "POST", "/v1/placements/home/decisions", rows(items))
	expect.Equal(t, taken, config.RequestSize(items)+2*int64(len(rows(items))), items, "items take n bytes")
	if rows := int64(8 * 1000 * items); taken < rows || taken > 2*rows {
		t.Errorf("%d items of %d bytes take %d bytes", items, rows, taken)
	}
	for _, body := range []string{rows(1001), rows(0), "{", `{"items":[{"id":"a","features":{"sku":3}}]}`} {
		s.ask("POST", "/v1/placements/home/decisions", body)
		s.ask("POST", "/v1/placements/home/personalizer/v1.0/rank", body)
	}
	if u := b.Usage(); u.Requests != 0 {
		t.Errorf("in the end %+v is taken", u)
	}
}

// rankOf is a Rank of n actions.
func rankOf(n int) string {
	var b strings.Builder
	b.WriteString(`{"actions":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"%d","features":[{"sku":"%d"}]}`, i, i)
	}
	b.WriteString("]}")
	return b.String()
}

// Bodies that are announced and do not come hold neither places nor more memory than they have sent, so that they keep
// no other request out, not even their own key's.
func TestUnsentBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(400 << 20)
		s := started(t, func(so *server.Options, eo *engine.Options) {
			so.Budget, eo.Budget, so.Limits.Concurrent = b, b, 2
		})
		s.want(http.StatusCreated, "PUT", "/v1/placements/home", home)
		var slow sync.WaitGroup
		body, end := io.Pipe()
		for _, of := range []struct {
			length int64
			coding string
		}{{1000, ""}, {4 << 20, ""}, {5 << 20, ""}, {-1, ""}, {4 << 20, "gzip"}, {1000, "zstd"}} {
			for range 200 {
				slow.Go(func() {
					r := httptest.NewRequest("POST", "http://localhost/v1/placements/home/decisions", body)
					r.ContentLength = of.length
					r.Header.Set("Content-Encoding", of.coding)
					s.ServeHTTP(httptest.NewRecorder(), r)
				})
			}
			fatal.Or(end.Write([]byte(" ")))(t)
			synctest.Wait()
			s.want(http.StatusCreated, "POST", "/v1/placements/home/decisions", "{"+items+strings.Repeat(" ", 16_000)+"}")
		}
		_ = end.CloseWithError(io.ErrUnexpectedEOF) // no decoder of this bubble may return to the pool
		slow.Wait()
		expect.Equal(t, b.Usage().Requests, 0, "bytes are taken in the end")
		s.want(http.StatusCreated, "POST", "/v1/placements/home/decisions", "{"+items+"}")
		s.engine.Close()
		s.feed.Close()
	})
}
