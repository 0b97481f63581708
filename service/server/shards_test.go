package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/server"
	"vitrine/service/setup"
)

// places are server.Places in memory.
type places struct {
	mu    sync.Mutex
	of    map[string]int
	lacks []int // shards
	ill   error
}

// partial is the error of a placement that is not known yet.
type partial []int

func (p partial) Error() string { return "partial" }

func (p partial) Lacks() []int { return p }

func (p *places) Shard(_ context.Context, placement string) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.find(placement)
}

func (p *places) find(placement string) (int, error) {
	if p.of[placement] == 0 && p.lacks != nil && p.ill == nil {
		return 0, partial(p.lacks)
	}
	return p.of[placement], p.ill
}

func (p *places) Claim(_ context.Context, placement string, shard int) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.find(placement); err != nil {
		return 0, err
	}
	if p.of[placement] == 0 {
		p.of[placement] = shard
	}
	return p.of[placement], nil
}

func (p *places) Add(_ context.Context, shard int, placements []string) (map[string]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	elsewhere := map[string]int{}
	for _, name := range placements {
		if p.of[name] == 0 {
			p.of[name] = shard
		}
		if p.of[name] != shard {
			elsewhere[name] = p.of[name]
		}
	}
	p.lacks = slices.DeleteFunc(p.lacks, func(n int) bool { return n == shard })
	if len(p.lacks) == 0 {
		p.lacks = nil
	}
	return elsewhere, p.ill
}

func (p *places) Lacks(context.Context) ([]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lacks), p.ill
}

func (p *places) Counts(context.Context) (map[int]int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := map[int]int{}
	for _, shard := range p.of {
		counts[shard]++
	}
	return counts, p.ill
}

// sharded is a service with three shards in two processes: the first one follows 1 and 2, the second one 3.
type sharded struct {
	*service             // the first process
	inDoubt  atomic.Bool // the leader of each shard may have been replaced
	other    *server.Server
	places   *places
	logs     [4]server.Shard // by number
	passed   chan string     // the requests that were passed on
	held     chan struct{}   // nil, or what they wait for
	ended    chan int        // the shards whose answers at length have ended
}

func newSharded(t *testing.T, change func(*server.Options)) *sharded {
	s := &sharded{service: &service{TB: t}, places: &places{of: map[string]int{}}, passed: make(chan string, 100), ended: make(chan int, 100)}
	pass := func(to **server.Server, has func(int) bool) func(context.Context, int, []byte) ([]byte, error) {
		return func(_ context.Context, shard int, request []byte) ([]byte, error) {
			if !has(shard) {
				return nil, fmt.Errorf("%w: nobody", server.ErrAway)
			}
			line, _, _ := strings.Cut(string(request), "\r\n")
			s.passed <- line
			if s.held != nil {
				<-s.held
			}
			return (*to).Passed(shard, request, 5000), nil
		}
	}
	atLength := func(to **server.Server, has func(int) bool) func(context.Context, int, []byte) (io.ReadCloser, error) {
		return func(ctx context.Context, shard int, request []byte) (io.ReadCloser, error) {
			if !has(shard) {
				return nil, fmt.Errorf("%w: nobody", server.ErrAway)
			}
			from, in := io.Pipe()
			go func() {
				if err := (*to).PassedAtLength(ctx, shard, request, in); err != nil {
					in.CloseWithError(io.ErrUnexpectedEOF)
				}
				in.Close()
				s.ended <- shard
			}()
			return from, nil
		}
	}
	theirs, ours := func(n int) bool { return n == 3 }, func(n int) bool { return n < 3 }
	o := server.Options{Feed: new(server.Feed), Personalizer: true, Shards: &server.Shards{
		Count: 3, Follow: []int{1, 2}, Places: s.places, Pass: pass(&s.other, theirs), PassAtLength: atLength(&s.other, theirs),
	}}
	if change != nil {
		change(&o)
	}
	s.feed = o.Feed
	t.Cleanup(s.feed.Close)
	s.Server = server.New(o)
	o.Feed, o.Shards = new(server.Feed), &server.Shards{Count: 3, Follow: []int{3}, Places: s.places, Pass: pass(&s.Server, ours), PassAtLength: atLength(&s.Server, ours)}
	s.other = server.New(o)
	for number := 1; number <= 3; number++ {
		of := s.Server
		if number == 3 {
			of = s.other
		}
		e, err := decision.Open(t.Context(), decision.Options{Shard: number, Store: new(memlog.Store), Build: setup.NewLearner, Applied: of.Applied(number), Confirm: func(context.Context) error {
			if s.inDoubt.Load() {
				return errors.New("another one writes the log")
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		s.logs[number] = server.Shard{Engine: e, Clock: time.Now}
		if _, err := of.Mount(t.Context(), number, s.logs[number]); err != nil {
			t.Fatal(err)
		}
	}
	for number, name := range []string{1: "one", 2: "two", 3: "three"} {
		if number > 0 {
			s.want(201, "PUT", "/v1/placements/"+name, strings.TrimSuffix(homeOfX, "}")+fmt.Sprintf(`,"shard":%d}`, number))
		}
	}
	return s
}

func (s *sharded) decide(status int, name, id string) answer {
	s.Helper()
	return s.want(status, "POST", "/v1/placements/"+name+"/decisions", `{"decision_id":"`+id+`","items":[{"id":"i","features":{"x":1}}]}`)
}

// A leader that may have been replaced does not say that no shard has a decision.
func TestShardsInDoubt(t *testing.T) {
	s := newSharded(t, nil)
	for _, name := range []string{"one", "three"} {
		s.decide(201, name, "of-"+name)
	}
	s.problem(404, "not-found", "", "POST", "/v1/decisions/unknown/outcome", `{"choice":null}`)
	s.inDoubt.Store(true)
	for _, id := range []string{"of-one", "of-three", "unknown"} {
		s.problem(503, "no-leader", "", "POST", "/v1/decisions/"+id+"/outcome", `{"choice":null}`)
	}
	s.problem(503, "no-leader", "", "GET", "/v1/decisions/unknown", "")
	s.want(200, "GET", "/v1/decisions/of-one", "")
}

// A request goes to the shard of its placement or its decision, here or in another process, once.
func TestShardOfARequest(t *testing.T) {
	s := newSharded(t, nil)
	for len(s.passed) > 0 {
		<-s.passed
	}
	for number, name := range []string{1: "one", 2: "two", 3: "three"} {
		if number == 0 {
			continue
		}
		if got := s.decide(201, name, "of-"+name).header.Get("Vitrine-Entry"); got != fmt.Sprintf("%d:2", number) {
			t.Errorf("entry %q of shard %d", got, number)
		}
		if n := s.logs[number].Engine.Sequence(); n != 2 {
			t.Errorf("shard %d has %d entries", number, n)
		}
		s.want(204, "POST", "/v1/decisions/of-"+name+"/outcome", `{"choice":"i"}`)
		if a := s.want(200, "GET", "/v1/placements/"+name, ""); !strings.Contains(a.body, fmt.Sprintf(`"shard":%d`, number)) || a.header.Get("Etag") == "" {
			t.Errorf("%s", a.body)
		}
	}
	if n := len(s.passed); n != 3 {
		t.Errorf("%d requests were passed on, want a decision, an outcome and a read", n)
	}
	s.decide(201, "one", "twice")
	s.decide(201, "two", "twice")
	s.problem(409, "ambiguous", "", "POST", "/v1/decisions/twice/outcome", `{"choice":"i"}`)
	s.problem(404, "not-found", "", "POST", "/v1/decisions/never/outcome", `{"choice":"i"}`)
	s.problem(404, "not-found", "", "GET", "/v1/placements/never", "")
	s.problem(422, "invalid", "#/shard", "PUT", "/v1/placements/one", strings.TrimSuffix(homeOfX, "}")+`,"shard":2}`)
	s.problem(422, "invalid", "#/shard", "PUT", "/v1/placements/new", strings.TrimSuffix(homeOfX, "}")+`,"shard":-1}`)
	s.problem(422, "invalid", "#/max_size", "PUT", "/v1/placements/new", `{"max_size":0,"features":[{"name":"x","kind":"number"}]}`)
	if s.places.of["new"] != 0 {
		t.Error("a PUT that is refused gives a name a shard")
	}
	s.want(200, "POST", "/v1/placements/new/preview", homeOfX)
	if s.places.of["new"] != 0 {
		t.Error("a preview gives a name a shard")
	}
	s.want(201, "POST", "/personalizer/v1.0/rank", `{"eventId":"e","contextFeatures":[],"actions":[{"id":"a","features":[{"x":1}]}]}`)
	s.want(204, "POST", "/personalizer/v1.0/events/e/reward", `{"value":1}`)
	if s.places.of["personalizer"] != 1 {
		t.Errorf("%v", s.places.of)
	}

	// A placement that was made by a process with one log only.
	if _, err := s.logs[2].Engine.Put(t.Context(), "stray", []byte(homeOfX), 1); err != nil {
		t.Fatal(err)
	}
	s.want(200, "GET", "/v1/placements/stray", "")
	if s.places.of["stray"] != 2 {
		t.Errorf("%v", s.places.of)
	}
}

// Reads wait for the entries of their shards; other forms are refused.
func TestEntriesOfShards(t *testing.T) {
	s := newSharded(t, nil)
	s.want(200, "GET", "/v1/placements/one?entry=1:1,2:99", "")
	s.want(200, "GET", "/v1/placements/three?entry=3:1", "")
	s.want(200, "GET", "/v1/placements?entry=1:1,2:1,3:1", "")
	s.problem(422, "invalid", "#/entry", "GET", "/v1/placements/one?entry=1", "")
	s.problem(422, "invalid", "#/entry", "GET", "/v1/placements/one?entry=1:x", "")
	if a := s.want(503, "GET", "/v1/placements?entry=2:99", ""); !strings.Contains(a.body, "entry 2:99 is not part") {
		t.Error(a.body)
	}
}

// A shard that is away is named, others are served, and none takes all places.
func TestShardsAway(t *testing.T) {
	s := newSharded(t, func(o *server.Options) { o.Limits.Concurrent = 4 })
	s.Unmount(2, "its stream is gone")
	for _, path := range []string{"/v1/placements/two", "/v1/placements/two/stats", "/v1/decisions/of-two", "/v1/events?placement=two"} {
		if a := s.want(503, "GET", path, ""); !strings.Contains(a.body, "shard 2 is away: its stream is gone") || !strings.Contains(a.body, "shard-away") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	s.decide(201, "one", "a")
	s.decide(201, "three", "b")
	if a := s.want(200, "GET", "/v1/overview", ""); !strings.Contains(a.body, `"away":[2]`) || !strings.Contains(a.body, `"total":2`) {
		t.Error(a.body)
	}
	if a := s.want(200, "GET", "/readyz", ""); !strings.Contains(a.body, `{"entry":0,"shard":2,"problem":"its stream is gone"}`) {
		t.Error(a.body)
	}
	s.Unmount(2, "its stream at nats://secret:4222 is gone")
	s.places.lacks = []int{2}
	for method, body := range map[string]string{"PUT": homeOfX, "GET": ""} {
		if a := s.want(503, method, "/v1/placements/new", body); !strings.Contains(a.body, "problem:shards") || !strings.Contains(a.body, "which placements are in the shards [2]") {
			t.Errorf("%s: %s", method, a.body)
		}
	}
	one, err := s.Mount(t.Context(), 1, s.logs[1])
	if err != nil {
		t.Fatal(err)
	}
	s.places.lacks = []int{1, 2}
	tending, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	var beside sync.WaitGroup
	beside.Go(func() { _ = s.Tend(tending, one, time.Millisecond) })
	for lacks := []int{1, 2}; len(lacks) != 1; time.Sleep(time.Millisecond) {
		lacks, _ = s.places.Lacks(t.Context())
	}
	stop()
	beside.Wait()
	s.places.lacks = nil
	s.want(201, "PUT", "/v1/placements/new", homeOfX)
	if s.places.of["new"] == 2 {
		t.Error("a new placement is in a shard that is away")
	}
	s.Unmount(1, "its stream is gone too")
	if a := s.want(503, "GET", "/readyz", ""); !strings.Contains(a.body, "its stream is gone") {
		t.Error(a.body)
	}
	s.places.ill = errors.New("no bucket")
	s.problem(503, "shards", "", "GET", "/v1/placements/three", "")
	s.places.ill = nil

	// Requests that hang in a shard: half of the places are for others.
	if _, err := s.Mount(t.Context(), 1, s.logs[1]); err != nil {
		t.Fatal(err)
	}
	s.passed, s.held = make(chan string), make(chan struct{})
	var hanging sync.WaitGroup
	for range 2 {
		hanging.Go(func() { s.ask("GET", "/v1/placements/three", "") })
		<-s.passed
	}
	if a := s.want(503, "GET", "/v1/placements/three", ""); !strings.Contains(a.body, "2 requests for shard 3 are in progress") {
		t.Error(a.body)
	}
	s.decide(201, "one", "c")
	close(s.held)
	hanging.Wait()
	hanging.Go(func() { s.want(200, "GET", "/v1/placements/three", "") })
	<-s.passed
	hanging.Wait()
}

// An answer that is too long to be passed on is refused.
func TestLongAnswerOfAShard(t *testing.T) {
	s := newSharded(t, nil)
	var items []string
	for i := range 200 {
		items = append(items, fmt.Sprintf(`{"id":"i%d","features":{"x":1},"payload":{"title":"a title that is long"}}`, i))
	}
	s.want(200, "PUT", "/v1/placements/three/items", `{"items":[`+strings.Join(items, ",")+`]}`)
	if a := s.want(503, "GET", "/v1/placements/three/items", ""); !strings.Contains(a.body, "ask a process that follows shard 3") {
		t.Error(a.body)
	}
	s.want(200, "GET", "/v1/placements/three/items?limit=5", "")
}

// Events of the shards that are here are one stream. Its ids say where a listener is in each log, and it resumes without a gap, also
// when a shard has come back.
func TestEventsOfShards(t *testing.T) {
	s := newSharded(t, nil)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	listen := func(last, query string) *bufio.Scanner {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", h.URL+"/v1/events"+query, nil)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil || a.StatusCode != 200 {
			t.Fatal(a, err)
		}
		t.Cleanup(func() { a.Body.Close() })
		return bufio.NewScanner(a.Body)
	}
	expect := func(in *bufio.Scanner, id, kind string, shard any, decision any) {
		t.Helper()
		if e := nextEvent(t, in); e.id != id || e.kind != kind || e.data["shard"] != shard || e.data["decision_id"] != decision {
			t.Errorf("%+v, want %s %s of %v in shard %v", e, id, kind, decision, shard)
		}
	}
	in := listen("", "")
	s.decide(201, "one", "a")
	s.decide(201, "three", "elsewhere")
	s.decide(201, "two", "b")
	expect(in, "1:2,2:1", "offered", 1.0, "a")
	expect(in, "1:2,2:2", "offered", 2.0, "b")
	s.Unmount(2, "away")
	expect(in, "", "end", nil, nil)
	in = listen("1:2,2:2", "")
	s.decide(201, "one", "c")
	expect(in, "1:3,2:2", "offered", 1.0, "c")
	meanwhile := &api.Request{Decision: "meanwhile", Items: []api.Item{{ID: "i", Features: api.Values{api.Number("x", 1)}}}}
	if _, err := s.logs[2].Engine.Decide(t.Context(), "two", meanwhile, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mount(t.Context(), 2, s.logs[2]); err != nil {
		t.Fatal(err)
	}
	expect(in, "", "end", nil, nil)
	in = listen("1:3,2:2", "")
	expect(in, "1:3,2:3", "offered", 2.0, "meanwhile")
	in = listen("0", "?placement=two")
	expect(in, "1", "placement-put", 2.0, nil)
	expect(in, "2", "offered", 2.0, "b")
	in = listen("2", "?placement=two")
	expect(in, "3", "offered", 2.0, "meanwhile")
	for _, bad := range []string{"5", "1:99", "x", "1:2,1:3"} {
		if a := s.ask("GET", "/v1/events", "", "Last-Event-ID", bad); a.status != 400 || !strings.Contains(a.body, "from 1:0 to 1:") {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
}

// Without a key /readyz says only which shards are away: why may name hosts.
func TestReadyNamesNoHosts(t *testing.T) {
	const cause = "dial tcp: lookup db7.example: no such host"
	path := filepath.Join(t.TempDir(), "keys.toml")
	reader, read := server.NewKey("reader", server.ScopeRead)
	shop, decide := server.NewKey("shop", server.ScopeDecide)
	write(t, path, stored(read)+stored(decide))
	keys, err := server.OpenKeys(path, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := &service{TB: t, Server: server.New(server.Options{Keys: keys, Feed: new(server.Feed), Shards: &server.Shards{Count: 2, Follow: []int{1, 2}, Places: &places{of: map[string]int{}}}})}
	e, err := decision.Open(t.Context(), decision.Options{Shard: 2, Store: new(memlog.Store), Build: setup.NewLearner})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	expect := func(status int) {
		t.Helper()
		for _, s.token = range []string{reader, shop, "unknown", ""} {
			a := s.want(status, "GET", "/readyz", "")
			says := cause
			if s.token != reader {
				says = "this process does not have its log"
			}
			if strings.Contains(a.body, cause) != (says == cause) || !strings.Contains(a.body, says) || !strings.Contains(a.body, "shard") {
				t.Errorf("%s", a.body)
			}
		}
	}
	s.Unmount(1, cause)
	s.Unmount(2, cause)
	expect(503)
	if _, err := s.Mount(t.Context(), 2, server.Shard{Engine: e, Clock: time.Now}); err != nil {
		t.Fatal(err)
	}
	expect(200)
}
