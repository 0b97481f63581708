package natslog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
		p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: c.url(), Replicas: 3})
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
	late, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: c.url()})
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
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url, Stream: "s", Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Claim(t.Context(), "home", 2); err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := conn.JetStream()
	if err != nil {
		t.Fatal(err)
	}
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
	again, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url, Stream: "s"})
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
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url})
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
	stop, err := s.Serve(func(request []byte, most int) []byte { return fmt.Appendf(nil, "%s %v", request, most > 1<<16) })
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
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := connect(t, natslog.Options{URL: url})
	for range 30 {
		stop, err := s.Serve(func([]byte, int) []byte { return []byte("x") })
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
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url})
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
	stop, err := s.Serve(func([]byte, int) []byte { return []byte("x") })
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
	if stop, err = s.Serve(func([]byte, int) []byte { return []byte("y") }); err != nil {
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
				p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url, Stream: fmt.Sprint("s", i)})
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
	p, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url})
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
	late, err := natslog.OpenPlaces(t.Context(), natslog.Options{URL: url})
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
