package natslog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"vitrine/service/eventlog/natslog"
)

// A placement is in the shard of its first claim, whoever claims and reads, on a cluster of three servers.
func TestPlaces(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var all [3]*natslog.Places
	for i := range all {
		p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: c.url(), Replicas: 3}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		all[i] = p
	}
	names := []string{"home", "a.b", ".", "..x", "a:b", "-", strings.Repeat("x", 64), "d"}
	shards := map[string]int{}
	for _, name := range names {
		var claiming sync.WaitGroup
		var got [3]int
		for i, p := range all {
			claiming.Go(func() {
				var err error
				if got[i], err = p.Claim(t.Context(), name, i+1); err != nil {
					t.Error(err)
				}
			})
		}
		claiming.Wait()
		shards[name] = got[0]
		if got[0] < 1 || got != [3]int{got[0], got[0], got[0]} {
			t.Errorf("%s: shards %v", name, got)
		}
	}
	late, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: c.url()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	want := map[int]int{}
	for name, shard := range shards {
		want[shard]++
		if got, err := late.Shard(t.Context(), name); got != shard || err != nil {
			t.Errorf("%s: shard %d, %v, want %d", name, got, err, shard)
		}
	}
	if got, err := late.Counts(t.Context()); !maps.Equal(got, want) || err != nil {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if got, err := late.Shard(t.Context(), "never"); got != 0 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

// A bucket that is missing, and an entry that is none, are named; what is known stays known.
func TestPlacesAreBroken(t *testing.T) {
	url := external(t)
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url, Stream: "s", Patience: time.Second}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Claim(t.Context(), "home", 2); err != nil {
		t.Fatal(err)
	}
	js := jetStream(t, url)
	if _, err := js.Publish("$KV.s-shards.bad", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Shard(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), `the key "bad" of the bucket "s-shards" is "x"`) {
		t.Error(err)
	}
	if err := js.DeleteKeyValue("s-shards"); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Shard(t.Context(), "home"); got != 2 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	for name, err := range map[string]error{
		"Shard": func() error { _, err := p.Shard(t.Context(), "other"); return err }(),
		"Claim": func() error { _, err := p.Claim(t.Context(), "other", 1); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), `the bucket "s-shards"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	again, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url, Stream: "s"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got, err := again.Claim(t.Context(), "home", 2); got != 2 || err != nil {
		t.Errorf("%d, %v: the bucket is not made again", got, err)
	}
}

// A request for a shard is answered by one of the processes that have its log, and by nobody if there is none.
func TestServe(t *testing.T) {
	url := external(t)
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ask := func(shard int) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		answer, err := p.Ask(ctx, shard, []byte("x"))
		return string(answer), err
	}
	if _, err := ask(2); !errors.Is(err, natslog.ErrNobody) {
		t.Error(err)
	}
	s := connect(t, natslog.Options{URL: url, Stream: natslog.ShardStream("", 2)})
	stop, err := s.Serve(func(request []byte, most int) []byte { return fmt.Appendf(nil, "%s %v", request, most > 1<<16) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := ask(2); text != "x true" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := ask(1); !errors.Is(err, natslog.ErrNobody) {
		t.Error(err)
	}
	stop()
	if _, err := ask(2); !errors.Is(err, natslog.ErrNobody) {
		t.Error(err)
	}
}

// A request that comes while a process stops to serve is answered by it, or by nobody.
func TestServeEnds(t *testing.T) {
	url := external(t)
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := connect(t, natslog.Options{URL: url})
	for range 30 {
		stop, err := s.Serve(func([]byte, int) []byte { return []byte("x") }, nil)
		if err != nil {
			t.Fatal(err)
		}
		var asking sync.WaitGroup
		for range 8 {
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if _, err := p.Ask(ctx, 1, nil); err != nil && !errors.Is(err, natslog.ErrNobody) {
					t.Error(err)
				}
			})
		}
		stop()
		asking.Wait()
		if t.Failed() {
			return
		}
	}
}

// A process that hangs, or whose machine is gone, gets no requests: another one answers them.
func TestServeBesideOneThatHangs(t *testing.T) {
	url := external(t)
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.QueueSubscribe("vitrine.process", "vitrine", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	s := connect(t, natslog.Options{URL: url})
	stop, err := s.Serve(func([]byte, int) []byte { return []byte("x") }, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 30 {
		if _, err := p.Ask(ctx, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	// The one that was asked leaves, and another one comes.
	stop()
	if stop, err = s.Serve(func([]byte, int) []byte { return []byte("y") }, nil); err != nil {
		t.Fatal(err)
	}
	defer stop()
	if text, err := p.Ask(ctx, 1, nil); string(text) != "y" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// A standby that seizes the lease takes it from a process that renews it, and from no other.
func TestSeize(t *testing.T) {
	url := external(t)
	first := connect(t, natslog.Options{URL: url, Process: "first"})
	second := connect(t, natslog.Options{URL: url, Process: "second", Standby: true})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	second.Seize("third")
	if err := second.Lead(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: it leads in the place of another one", err)
	}
	second.Seize("first")
	if err := second.Lead(t.Context()); err != nil || !second.Leads() {
		t.Error(err)
	}
	<-first.Lost()
}

// Processes that open the bucket at once, of which several find it missing, all open it.
func TestPlacesOpenedTogether(t *testing.T) {
	url := external(t)
	for i := range 10 {
		var opening sync.WaitGroup
		for range 8 {
			opening.Go(func() {
				p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url, Stream: fmt.Sprint("s", i)}, 0)
				if err != nil {
					t.Error(err)
					return
				}
				p.Close()
			})
		}
		opening.Wait()
	}
}

// A key that somebody has deleted is no placement.
func TestPlaceIsDeleted(t *testing.T) {
	url := external(t)
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, name := range []string{"home", "gone"} {
		if _, err := p.Claim(t.Context(), name, 2); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m := nats.NewMsg("$KV.vitrine-shards.gone")
	m.Header.Set("KV-Operation", "DEL")
	if err := conn.PublishMsg(m); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	late, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if got, err := late.Counts(t.Context()); !maps.Equal(got, map[int]int{2: 1}) || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := late.Claim(t.Context(), "gone", 1); got != 1 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

// A bucket that is lost and made again knows no placement of a shard until the placements of that shard were added: nothing else
// says that a placement was never made, or makes it in another shard.
func TestPlacesAreLost(t *testing.T) {
	url := external(t)
	connect(t, natslog.Options{URL: url, Stream: natslog.ShardStream("", 2)})
	var said bytes.Buffer
	open := func() *natslog.Places {
		p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url, Patience: time.Second, Logger: slog.New(slog.NewTextHandler(&said, nil))}, 3)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	expect := func(p *natslog.Places, name string, want int, lacks ...int) {
		t.Helper()
		var partial *natslog.PartialError
		for call, ask := range map[string]func() (int, error){
			"Shard": func() (int, error) { return p.Shard(t.Context(), name) },
			"Claim": func() (int, error) { return p.Claim(t.Context(), name, 1) },
		} {
			partial = nil
			got, err := ask()
			if errors.As(err, &partial); got != want || (err != nil) != (lacks != nil) || lacks != nil && !slices.Equal(partial.Lacks(), lacks) {
				t.Errorf("%s of %s: %d, %v, want %d, shards that lack %v", call, name, got, err, want, lacks)
			}
		}
		if got, err := p.Lacks(t.Context()); lacks != nil && (!slices.Equal(got, lacks) || err != nil) {
			t.Errorf("lacks %v, %v, want %v", got, err, lacks)
		}
	}
	add := func(p *natslog.Places, shard int, names []string, elsewhere map[string]int) {
		t.Helper()
		if got, err := p.Add(t.Context(), shard, names); err != nil || !maps.Equal(got, elsewhere) {
			t.Errorf("%v, %v, want %v", got, err, elsewhere)
		}
	}
	p := open()
	if !strings.Contains(said.String(), "the bucket of the shards was lost") {
		t.Error("a bucket that is missing beside a log is made again silently")
	}
	expect(p, "home", 0, 1, 2, 3)
	add(p, 3, []string{"home"}, nil)
	expect(p, "home", 3)
	expect(p, "other", 0, 1, 2)
	add(p, 1, []string{"home", "more"}, map[string]int{"home": 3})
	expect(p, "other", 0, 2)
	add(p, 2, nil, nil)
	if got, err := p.Shard(t.Context(), "other"); got != 0 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if got, err := p.Claim(t.Context(), "other", 2); got != 2 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if counts, err := p.Counts(t.Context()); err != nil || !maps.Equal(counts, map[int]int{1: 1, 2: 1, 3: 1}) {
		t.Errorf("%v, %v", counts, err)
	}

	// Lost while p runs, which remembers what it knew and claims nothing by that.
	if err := jetStream(t, url).DeleteKeyValue("vitrine-shards"); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Lacks(t.Context()); err != nil || !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
	add(p, 2, []string{"other"}, nil)
	if got, err := p.Shard(t.Context(), "home"); got != 3 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	var partial *natslog.PartialError
	if got, err := p.Claim(t.Context(), "home", 3); got != 0 || !errors.As(err, &partial) {
		t.Errorf("%d, %v: a placement that was only remembered is claimed", got, err)
	}
	expect(p, "other", 2)
	late := open()
	var adding sync.WaitGroup
	for shard, of := range map[int]*natslog.Places{1: p, 3: late} {
		adding.Go(func() { add(of, shard, []string{fmt.Sprint("of", shard)}, nil) })
	}
	adding.Wait()
	for shard := 1; shard <= 3; shard += 2 {
		expect(late, fmt.Sprint("of", shard), shard)
	}
	if got, err := late.Lacks(t.Context()); err != nil || got != nil {
		t.Errorf("lacks %v, %v", got, err)
	}
	if _, err := jetStream(t, url).Publish("$KV.vitrine-shards.=added", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := late.Claim(t.Context(), "never", 1); err == nil || !strings.Contains(err.Error(), `the key "=added" of the bucket "vitrine-shards" is "x"`) {
		t.Error(err)
	}
}
