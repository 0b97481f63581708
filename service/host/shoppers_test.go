package host

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/natslog/natstest"
)

const (
	personal = `{"max_size":2,"min_size":2,"features":[{"name":"x","kind":"number"}],"shopper_history":{"keep":"24h","hide_bought":true}}`
	anna     = "anna@example.com"
)

// shows asks for a page for a shopper, and reports whether it has the item that she bought.
func (r *running) shows(id string) bool {
	r.Helper()
	text := r.ask(201, "POST", "/v1/placements/home/decisions",
		`{"decision_id":"`+id+`","shopper_id":"`+anna+`","items":[{"id":"boots","features":{"x":1}},{"id":"socks","features":{"x":2}}]}`)
	return strings.Contains(text, `"boots"`)
}

// A service remembers shoppers over a restart. No file of its directory has a shopper's id, and an erasure lasts.
func TestShoppersAreRemembered(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	r := runs(t, "", data, nil)
	r.ask(201, "PUT", "/v1/placements/home", personal)
	r.shows("a")
	r.ask(204, "POST", "/v1/placements/home/decisions/a/outcome", `{"choice":"boots"}`)
	for k, want := range []bool{false, false, true, true} {
		expect.Equal(t, r.shows(strings.Repeat("b", k+1)), want, "start", k, "the item that was bought is shown", !want)
		if k == 1 {
			r.ask(204, "POST", "/v1/erasures", `{"shopper_id":"`+anna+`"}`)
		}
		if metrics := r.ask(200, "GET", "/metrics", ""); strings.Contains(metrics, anna) ||
			!strings.Contains(metrics, `vitrine_shoppers{placement="home"} `) {
			t.Error(metrics)
		}
		r.stop()
		fatal.If(t, filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(anna)) {
				t.Errorf("%s has the shopper's id (%v)", path, err)
			}
			return nil
		}))
		if r.said(anna) {
			t.Error("the service's log has the shopper's id")
		}
		r = runs(t, "", data, nil)
	}
}

// A service says that the file of shoppers' keys is missing or damaged, until it starts again, and so does vitrine check. It
// starts all the same, because decisions need no shopper.
func TestShoppersFileIsGone(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	path := filepath.Join(data, "shoppers")
	r := runs(t, "", data, nil)
	r.ask(201, "PUT", "/v1/placements/home", personal)
	for k, damage := range []func(text []byte) error{
		nil,
		func([]byte) error { return os.Remove(path) },
		nil,
		func(text []byte) error { text[len(text)-1] ^= 1; return os.WriteFile(path, text, 0o600) },
		nil,
		func(text []byte) error { return os.WriteFile(path, text[:len(text)-5], 0o600) },
	} {
		r.shows("a" + strings.Repeat("b", k))
		r.stop()
		if damage != nil {
			fatal.If(t, damage(fatal.Or(os.ReadFile(path))(t)))
		}
		expect.Equal(t, CheckShoppers(data, 1) != nil, damage != nil, "a fault before start", k)
		r = runs(t, "", data, nil)
		expect.Equal(t, strings.Contains(r.ask(200, "GET", "/v1/overview", ""), "remembered shoppers are new") &&
			r.said("returning shoppers are new"), damage != nil, "the service rings in start", k)
	}
	r.stop()
}

// A service that ends during the replay leaves the damage of the keys as it is, so that the next start finds it.
func TestDamagedKeysOutlastAStart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	path := filepath.Join(data, "shoppers")
	r := runs(t, "", data, nil)
	r.ask(201, "PUT", "/v1/placements/home", personal)
	r.shows("a")
	r.stop()
	text := fatal.Or(os.ReadFile(path))(t)
	text[len(text)-1] ^= 1
	fatal.If(t, os.WriteFile(path, text, 0o600))
	c := Default()
	c.Data, c.Listen = data, "127.0.0.1:0"
	ctx, stop := context.WithCancel(t.Context())
	expect.Error(t, Run(ctx, c, Options{Opened: func(*engine.Engine) error {
		stop()
		return ctx.Err()
	}}), nil)
	expect.Part(0, CheckShoppers(data, 1))(t, "is damaged")
	r = runs(t, "", data, nil)
	expect.Equal(t, r.said("returning shoppers are new"), true, "the next start says so")
	r.stop()
	expect.Error(t, CheckShoppers(data, 1), nil)
}

// All services on a log know the same shoppers, and any of them erases one.
func TestServicesShareShoppers(t *testing.T) {
	t.Parallel()
	url := natstest.URL(t)
	leader := runs(t, url, t.TempDir(), nil)
	leader.ask(201, "PUT", "/v1/placements/home", personal)
	follower := runs(t, url, t.TempDir(), nil)
	leader.shows("a")
	leader.ask(204, "POST", "/v1/placements/home/decisions/a/outcome", `{"choice":"boots"}`)
	n := 0
	follower.until("the follower hides it", func() bool { n++; return !follower.shows("b" + strings.Repeat("x", n)) })
	if leader.shows("c") {
		t.Error("the leader shows it")
	}
	follower.ask(204, "POST", "/v1/erasures", `{"shopper_id":"`+anna+`"}`)
	if !leader.shows("d") || !follower.shows("e") {
		t.Error("the shopper is not erased")
	}
}

// BenchmarkShoppers decides in turns without a shopper, for one who came before and for a new one, on a log on a server of
// NATS. It reports medians: the time of a decision, and how much longer the others take.
func BenchmarkShoppers(b *testing.B) {
	r := runs(b, natstest.URL(b), b.TempDir(), nil)
	r.ask(201, "PUT", "/v1/placements/home", personal)
	took, k := [3][]float64{}, 0
	decide := func(kind int) {
		k++
		shopper := []string{"", `"shopper_id":"anna",`, fmt.Sprintf(`"shopper_id":"%d",`, k)}[kind]
		start := time.Now()
		r.ask(201, "POST", "/v1/placements/home/decisions",
			`{`+shopper+`"items":[{"id":"boots","features":{"x":1}},{"id":"socks","features":{"x":2}}]}`)
		took[kind] = append(took[kind], float64(time.Since(start).Nanoseconds()))
	}
	for range 20 {
		decide(1)
	}
	took[1] = nil
	for b.Loop() {
		for kind := range took {
			decide(kind)
		}
	}
	median := func(x []float64) float64 {
		slices.Sort(x)
		return x[len(x)/2]
	}
	none := median(took[0])
	b.ReportMetric(none/1e6, "ms/decision")
	b.ReportMetric(median(took[1])/none, "known/none")
	b.ReportMetric(median(took[2])/none, "new/none")
}

// A service says that it made the stream of shoppers' keys again, because returning shoppers are new, also after it
// opened the log again. A first stream is no problem.
func TestShoppersStreamIsGone(t *testing.T) {
	t.Parallel()
	url := natstest.URL(t)
	rings := func(r *running) bool {
		return strings.Contains(r.ask(200, "GET", "/v1/overview", ""), "remembered shoppers are new")
	}
	leader, follower := runs(t, url, t.TempDir(), nil), runs(t, url, t.TempDir(), nil)
	leader.ask(201, "PUT", "/v1/placements/home", personal)
	leader.shows("a")
	leader.ask(204, "POST", "/v1/placements/home/decisions/a/outcome", `{"choice":"boots"}`)
	follower.until("the follower has the outcome", func() bool { return follower.tally().Outcomes == 1 })
	fatal.If(t, natstest.JetStream(t, url).DeleteStream("vitrine-shoppers"))
	leader.ask(503, "POST", "/v1/placements/home/decisions", `{"shopper_id":"x","items":[{"id":"boots","features":{"x":1}}]}`)
	expect.Equal(t, follower.shows("c"), true, "the item that a stranger bought is shown")
	expect.Equal(t, rings(follower) && follower.said("the stream of shoppers' keys was missing"), true,
		"the follower says so")
	expect.Equal(t, rings(leader) || leader.said("the stream of shoppers' keys was missing"), false,
		"the leader, which made the first, says so")
	leader.stop()
	follower.until("the follower leads", func() bool { return follower.said("this process writes the log now") })
	runsWith(t, url, t.TempDir(), Options{TakeOver: true}, nil)
	follower.until("the follower opens the log again",
		func() bool { return follower.said("the log will be opened again") })
	follower.until("it still says so", func() bool {
		code, text := follower.get("/v1/overview")
		return code == 200 && strings.Contains(text, "remembered shoppers are new")
	})
}
