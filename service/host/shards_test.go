package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vitrine/service/api"
	"vitrine/service/eventlog/natslog"
)

// quickly makes services even out in milliseconds who leads.
func quickly(t *testing.T) {
	was := spreadEvery
	spreadEvery = 50 * time.Millisecond
	t.Cleanup(func() { spreadEvery = was }) // after the services, whose cleanups come later
}

// sharded returns a change of a configuration: n shards, and the ones that are followed, or all.
func sharded(shards int, follow ...int) func(c *Config) {
	return func(c *Config) { c.Log.Shards, c.Log.Follow = shards, follow }
}

const homeOfX = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"memory":100000`

// led returns how many shards the service leads, and whether it is up to date with all that it follows.
func (r *running) led() (n int, ready bool) {
	status, text := r.get("/readyz")
	var p api.Process
	if status != 200 || json.Unmarshal([]byte(text), &p) != nil {
		return 0, false
	}
	ready = true
	for _, s := range p.Shards {
		ready = ready && s.Problem == ""
		if s.Role == "leader" {
			n++
		}
	}
	return n, ready
}

// leads waits until the service leads n shards, and is up to date with all that it follows.
func (r *running) leads(n int) {
	r.Helper()
	r.until(fmt.Sprintf("leading %d shards", n), func() bool {
		led, ready := r.led()
		return led == n && ready
	})
}

func request(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (r *running) get(path string) (status int, text string) {
	q, _ := http.NewRequest("GET", r.url+path, nil)
	return roundTrip(r.T, q)
}

// lists returns the placements with their shards.
func (r *running) lists() (shards map[string]int, away []int) {
	r.Helper()
	var list api.PlacementList
	if err := json.Unmarshal([]byte(r.ask(200, "GET", "/v1/placements", "")), &list); err != nil {
		r.Fatal(err)
	}
	shards = map[string]int{}
	for _, p := range list.Placements {
		shards[p.Name] = p.Config.Shard
	}
	return shards, list.Away
}

// Two services with three shards: the leaders are spread, each placement is in one shard from its creation on, every service
// answers for all, and what is here and elsewhere is one list. A third one follows one shard.
func TestShards(t *testing.T) {
	quickly(t)
	log := logServer(t)
	first := runs(t, log, t.TempDir(), sharded(3))
	first.leads(3)
	second := runs(t, log, t.TempDir(), sharded(3))
	first.until("three leaders on two services", func() bool {
		a, ready := first.led()
		b, also := second.led()
		return a+b == 3 && a > 0 && b > 0 && ready && also
	})
	third := runs(t, log, t.TempDir(), sharded(3, 2))
	third.leads(0)

	// The shard of a placement: written out, or the one with the fewest.
	third.ask(201, "PUT", "/v1/placements/a", homeOfX+`,"shard":3}`)
	second.ask(201, "PUT", "/v1/placements/b", homeOfX+`}`)
	first.ask(201, "PUT", "/v1/placements/c", homeOfX+`}`)
	third.ask(201, "PUT", "/v1/placements/d", homeOfX+`}`)
	first.ask(201, "PUT", "/v1/placements/of.a:1", homeOfX+`,"catalogue":"a"}`)
	want := map[string]int{"a": 3, "b": 1, "c": 2, "d": 1, "of.a:1": 3}
	for _, r := range []*running{first, second, third} {
		r.until("the list", func() bool {
			have, away := r.lists()
			return maps.Equal(have, want) && away == nil
		})
	}
	for body, problem := range map[string]string{
		homeOfX + `,"shard":4}`:                 "/shard: 4: must be from 1 to 3",
		homeOfX + `,"shard":1,"catalogue":"a"}`: `placement \"a\", whose catalogue this one uses, is in shard 3`,
		`{"max_size":0,"features":[]}`:          "/max_size",
	} {
		if text := first.ask(422, "PUT", "/v1/placements/e", body); !strings.Contains(text, problem) {
			t.Errorf("%s: %s", body, text)
		}
	}
	if text := third.ask(422, "PUT", "/v1/placements/a", homeOfX+`,"shard":1}`); !strings.Contains(text, "the placement is in shard 3") {
		t.Error(text)
	}
	third.ask(200, "PUT", "/v1/placements/a", homeOfX+`,"shard":3}`)
	third.ask(404, "GET", "/v1/placements/e", "")

	// Decisions and outcomes of every placement through every service, and by the id only.
	all := []*running{first, second, third}
	for i := range 30 {
		name, id := []string{"a", "b", "c"}[i%3], fmt.Sprint("d", i)
		all[i%2].ask(201, "POST", "/v1/placements/"+name+"/decisions", `{"decision_id":"`+id+`","items":[{"id":"i","features":{"x":1}}]}`)
		all[(i+1)%3].ask(200, "GET", "/v1/placements/"+name+"/stats", "")
		all[(i/3)%3].ask(204, "POST", "/v1/decisions/"+id+"/outcome", `{"choice":"i"}`)
		all[(i/2)%3].ask(200, "POST", "/v1/placements/"+name+"/decisions", `{"decision_id":"`+id+`","items":[{"id":"i","features":{"x":1}}]}`)
	}
	third.ask(404, "POST", "/v1/decisions/none/outcome", `{"choice":"i"}`)
	var o api.Overview
	if err := json.Unmarshal([]byte(third.ask(200, "GET", "/v1/overview?limit=2&from=1", "")), &o); err != nil {
		t.Fatal(err)
	}
	if o.Total != 5 || len(o.Placements) != 2 || o.Placements[0].Name != "b" || o.Placements[1].Name != "c" || o.Placements[0].Shard != 1 || o.Placements[1].Shard != 2 || o.Placements[0].Decisions != 10 {
		t.Errorf("%+v", o)
	}
	metrics := third.ask(200, "GET", "/metrics", "")
	for _, line := range []string{`vitrine_shard_here{shard="2"} 1`, `vitrine_shard_follows{shard="2"} 1`, `vitrine_leader{shard="2"} 0`, `vitrine_decisions_total{placement="c",shard="2"} 10`, "vitrine_memory_limit_bytes "} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %q", line)
		}
	}
	if strings.Count(metrics, `shard="1"`) != 1 || !strings.Contains(metrics, `vitrine_shard_follows{shard="1"} 0`) {
		t.Error("more metrics of a shard that is not followed")
	}
	listening := request(t, "GET", third.url+"/v1/events?placement=a", "")
	listening.Header.Set("Last-Event-ID", "0")
	events, err := http.DefaultClient.Do(listening)
	if err != nil || events.StatusCode != 200 {
		t.Fatal(events, err)
	}
	lines := bufio.NewScanner(events.Body)
	for seen := 0; seen < 2 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "event: offered") {
			seen++
		}
	}
	if lines.Err() != nil {
		t.Error(lines.Err())
	}
	events.Body.Close()
	third.ask(404, "GET", "/v1/placements/a/export", "") // the service that has shard 3 can make none

	// A service ends: the others lead its shards, and the lists of one that follows some name what is missing.
	first.stop()
	second.until("leading", func() bool {
		n, ready := second.led()
		m, _ := third.led()
		return n+m == 3 && ready
	})
	second.ask(201, "POST", "/v1/placements/a/decisions", `{"decision_id":"new","items":[{"id":"i","features":{"x":1}}]}`)
	second.stop()
	third.leads(1)
	if have, away := third.lists(); !maps.Equal(have, map[string]int{"c": 2}) || !slices.Equal(away, []int{1, 3}) {
		t.Errorf("%v, away %v", have, away)
	}
	if text := third.ask(503, "POST", "/v1/placements/b/decisions", `{"items":[{"id":"i","features":{"x":1}}]}`); !strings.Contains(text, "shard-away") || !strings.Contains(text, "shard 1 is away: no process that follows it answers") {
		t.Error(text)
	}
	for _, path := range []string{"/v1/events?placement=a", "/v1/placements/a/export"} {
		if text := third.ask(503, "GET", path, ""); !strings.Contains(text, "shard 3 is away") {
			t.Errorf("%s: %s", path, text)
		}
	}
	third.ask(503, "POST", "/v1/decisions/none/outcome", `{"choice":"i"}`)
	third.ask(201, "POST", "/v1/placements/c/decisions", `{"items":[{"id":"i","features":{"x":1}}]}`)
}

// A placement that two services make at once is in one shard. One of before the shards is in the first. More shards later get new
// placements.
func TestPlacesOfShards(t *testing.T) {
	log := logServer(t)
	single := runs(t, log, t.TempDir(), nil)
	single.ask(201, "PUT", "/v1/placements/old", homeOfX+`}`)
	if text := single.ask(422, "PUT", "/v1/placements/other", homeOfX+`,"shard":1}`); !strings.Contains(text, "has one log and no shards") {
		t.Error(text)
	}
	single.stop()
	first, second := runs(t, log, t.TempDir(), sharded(2)), runs(t, log, t.TempDir(), sharded(3))
	first.until("leading", func() bool { // which of them leads the second shard depends on who is quicker
		n, ready := first.led()
		m, too := second.led()
		return n+m == 3 && ready && too
	})
	var making sync.WaitGroup
	for i := range 20 {
		for shard, r := range []*running{first, second} {
			making.Go(func() {
				q, _ := http.NewRequest("PUT", r.url+fmt.Sprint("/v1/placements/p", i), strings.NewReader(homeOfX+fmt.Sprintf(`,"shard":%d}`, shard+1)))
				if status, text := roundTrip(t, q); status != 201 && !strings.Contains(text, fmt.Sprintf("the placement is in shard %d", 2-shard)) {
					t.Errorf("%d %s", status, text)
				}
			})
		}
	}
	making.Wait()
	names := map[int]int{}
	have, _ := second.lists()
	for _, shard := range have {
		names[shard]++
	}
	if len(have) != 21 || have["old"] != 1 || names[3] != 0 {
		t.Errorf("%v", have)
	}
	second.ask(201, "PUT", "/v1/placements/second", homeOfX+`,"shard":2}`) // one service may have won every name above
	second.ask(201, "PUT", "/v1/placements/new", homeOfX+`}`)
	if have, _ := second.lists(); have["new"] != 3 {
		t.Errorf("a new placement is in shard %d", have["new"])
	}
	first.ask(200, "GET", "/v1/placements/new", "") // which does not know of the third shard
	first.ask(201, "POST", "/v1/placements/old/decisions", `{"items":[{"id":"i","features":{"x":1}}]}`)
}

// A shard whose stream is removed is named, and the others are served.
func TestShardIsAway(t *testing.T) {
	log := logServer(t)
	r := runsWith(t, log, t.TempDir(), Options{Patience: 2 * time.Second}, func(c *Config) {
		sharded(2)(c)
		c.Limits.Answer.Duration = 500 * time.Millisecond
	})
	r.leads(2)
	r.ask(201, "PUT", "/v1/placements/a", homeOfX+`,"shard":1}`)
	r.ask(201, "PUT", "/v1/placements/b", homeOfX+`,"shard":2}`)
	decide := func(name string) int {
		q, _ := http.NewRequest("POST", r.url+"/v1/placements/"+name+"/decisions", strings.NewReader(`{"items":[{"id":"i","features":{"x":1}}]}`))
		status, text := roundTrip(t, q)
		if status == 503 && !strings.Contains(text, "shard 2") {
			t.Errorf("%s", text)
		}
		return status
	}
	js := jetStream(t, log)
	if err := js.DeleteStream("vitrine-2"); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if status := decide("b"); status != 503 {
				t.Errorf("status %d of a placement whose shard is away", status)
			}
		})
	}
	for range 20 {
		if status := decide("a"); status != 201 {
			t.Errorf("status %d of a placement of another shard", status)
		}
	}
	wait.Wait()
	if err := js.DeleteKeyValue("vitrine-shards"); err != nil {
		t.Fatal(err)
	}
	r.ask(201, "POST", "/v1/placements/a/decisions", `{"items":[{"id":"i","features":{"x":1}}]}`)
	if text := r.ask(503, "PUT", "/v1/placements/c", homeOfX+`}`); !strings.Contains(text, "problem:shards") {
		t.Error(text)
	}
	r.until("the bucket of the shards", func() bool { // with the one that is away, or without it if its log is closed already
		status, text := roundTrip(t, request(t, "PUT", r.url+"/v1/placements/c", homeOfX+`,"shard":1}`))
		return status == 201 || strings.Contains(text, "which placements are in the shards [2]")
	})
}

// The bucket of the shards is removed, while services run or are stopped: placements stay in their shards, and none is made until
// every shard has a process that has opened its log.
func TestPlacesAreLost(t *testing.T) {
	log := logServer(t)
	js := jetStream(t, log)
	first := runs(t, log, t.TempDir(), sharded(2, 1))
	if text := first.ask(503, "PUT", "/v1/placements/a", homeOfX+`}`); !strings.Contains(text, "which placements are in the shards [") {
		t.Error(text)
	}
	second := runs(t, log, t.TempDir(), sharded(2, 2))
	first.leads(1)
	second.leads(1)
	first.ask(201, "PUT", "/v1/placements/a", homeOfX+`,"shard":1}`)
	first.ask(201, "PUT", "/v1/placements/b", homeOfX+`,"shard":2}`)
	first.ask(201, "PUT", "/v1/placements/gone", homeOfX+`,"shard":2}`)
	second.ask(204, "DELETE", "/v1/placements/gone", "")

	if err := js.DeleteKeyValue("vitrine-shards"); err != nil {
		t.Fatal(err)
	}
	first.ask(201, "POST", "/v1/placements/b/decisions", `{"items":[{"id":"i","features":{"x":1}}]}`)
	third := runs(t, log, t.TempDir(), sharded(2))
	third.until("the bucket", func() bool {
		status, _ := roundTrip(t, request(t, "PUT", third.url+"/v1/placements/gone", homeOfX+`,"shard":1}`))
		return status == 201
	})
	third.stop()
	first.leads(1)
	second.leads(1)
	for name, shard := range map[string]int{"b": 1, "gone": 2} { // the second one remembers that gone was its own
		if text := second.ask(422, "PUT", "/v1/placements/"+name, homeOfX+fmt.Sprintf(`,"shard":%d}`, shard)); !strings.Contains(text, fmt.Sprint("the placement is in shard ", 3-shard)) {
			t.Error(text)
		}
	}

	second.stop()
	first.stop()
	if err := js.DeleteKeyValue("vitrine-shards"); err != nil {
		t.Fatal(err)
	}
	first = runs(t, log, first.data, sharded(2, 1))
	first.leads(1)
	if !first.said("the bucket of the shards was lost") {
		t.Error("the loss is not logged")
	}
	for method, body := range map[string]string{"PUT": homeOfX + `,"shard":1}`, "GET": ""} {
		if text := first.ask(503, method, "/v1/placements/b", body); !strings.Contains(text, "which placements are in the shards [2]") {
			t.Error(text)
		}
	}
	first.ask(200, "GET", "/v1/placements/a", "")
	second = runs(t, log, second.data, sharded(2, 2))
	second.leads(1)
	if text := first.ask(422, "PUT", "/v1/placements/b", homeOfX+`,"shard":1}`); !strings.Contains(text, "the placement is in shard 2") {
		t.Error(text)
	}
	first.ask(404, "GET", "/v1/placements/never", "")
}

// A service that is ended while it waits for the log's servers ends without an error.
func TestEndBeforeShards(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c := Default()
	c.Data, c.Listen, c.Log.URL, c.Log.Shards = t.TempDir(), "127.0.0.1:0", "nats://127.0.0.1:1", 2
	if err := Run(ctx, c, Options{Logger: slog.New(slog.NewTextHandler(stopper(stop), nil))}); err != nil {
		t.Error(err)
	}
}

// A service with shards does not start beside one without, nor the other way round. Whoever was there first goes on.
func TestShardsBesideNone(t *testing.T) {
	log := logServer(t)
	refused := func(change func(*Config), parts ...string) {
		t.Helper()
		c := Default()
		c.Data, c.Listen, c.Log.URL = t.TempDir(), "127.0.0.1:0", log
		change(c)
		err := Run(t.Context(), c, Options{Logger: slog.New(slog.DiscardHandler)})
		if !errors.Is(err, natslog.ErrShards) {
			t.Fatalf("%v, want ErrShards", err)
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v, want %q", err, part)
			}
		}
	}
	single := runs(t, log, t.TempDir(), nil)
	single.ask(201, "PUT", "/v1/placements/old", homeOfX+`}`)
	refused(sharded(2), fmt.Sprintf("process %d", os.Getpid()), "has none, this one has 2: stop all, then start them with the same log.shards")
	single.ask(201, "POST", "/v1/placements/old/decisions", `{"items":[{"id":"i","features":{"x":1}}]}`)
	if _, err := jetStream(t, log).KeyValue("vitrine-shards"); err == nil {
		t.Error("a service that is refused has made the bucket of the shards")
	}
	single.stop()

	two := runs(t, log, t.TempDir(), sharded(2))
	two.leads(2)
	two.ask(201, "PUT", "/v1/placements/new", homeOfX+`,"shard":2}`)
	refused(sharded(0), `the bucket "vitrine-shards"`, "in the shards [1 2], this process has none: start it with log.shards = 2")
	if err := jetStream(t, log).DeleteKeyValue("vitrine-shards"); err != nil {
		t.Fatal(err)
	}
	refused(sharded(1)) // by the lease, unless the bucket is there again
	two.ask(201, "POST", "/v1/placements/old/decisions", `{"items":[{"id":"i","features":{"x":1}}]}`)
	two.ask(201, "POST", "/v1/placements/new/decisions", `{"items":[{"id":"i","features":{"x":1}}]}`)
	two.until("the bucket that is made again", func() bool {
		bucket, err := jetStream(t, log).KeyValue("vitrine-shards")
		if err != nil {
			return false
		}
		added, err := bucket.Get("=added")
		return err == nil && strings.Contains(string(added.Value()), "2")
	})
	two.stop()
	refused(sharded(0))
}

// A service may be without shards again, as long as none but the first has a placement.
func TestNoShardsAgain(t *testing.T) {
	log := logServer(t)
	two := runs(t, log, t.TempDir(), sharded(2))
	two.leads(2)
	two.ask(201, "PUT", "/v1/placements/home", homeOfX+`,"shard":1}`)
	two.stop()
	runs(t, log, t.TempDir(), nil).ask(201, "POST", "/v1/placements/home/decisions", `{"items":[{"id":"i","features":{"x":1}}]}`)
}
