package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// running is a service at a log on a server.
type running struct {
	testing.TB
	url  string
	data string
	stop func() // and waits for its end

	mu  sync.Mutex
	log bytes.Buffer
}

func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(b)
}

func (r *running) said(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.log.String(), text)
}

// until waits until something is so.
func (r *running) until(what string, is func() bool) {
	r.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.Fatalf("%s: it does not come to that:\n%s", what, &r.log)
		}
	}
}

// runs starts a service, and returns when it answers.
func runs(t testing.TB, log, data string, change func(c *Config)) *running {
	t.Helper()
	return runsWith(t, log, data, Options{}, change)
}

var addresses atomic.Uint32

// runsWith is runs with some options.
func runsWith(t testing.TB, log, data string, o Options, change func(c *Config)) *running {
	t.Helper()
	r := &running{TB: t, data: data}
	c := Default()
	c.Data, c.Listen, c.Log.URL = data, "127.0.0.1:0", log
	if runtime.GOOS == "linux" { // no other test gets the port while the service opens its log again
		n := addresses.Add(1)
		c.Listen = fmt.Sprintf("127.1.%d.%d:0", n>>8, n&0xff)
	}
	c.Snapshots.Every.Duration = 50 * time.Millisecond
	if change != nil {
		change(c)
	}
	ctx, stop := context.WithCancel(t.Context())
	address, ended := make(chan string, 10), make(chan error, 1)
	go func() {
		o.Logger, o.Serving = slog.New(slog.NewJSONHandler(r, nil)), func(_ context.Context, at string) {
			address <- at
		}
		ended <- Run(ctx, c, o)
	}()
	r.stop = sync.OnceFunc(func() {
		stop()
		expect.Error(t, <-ended, nil)
	})
	t.Cleanup(r.stop)
	select {
	case at := <-address:
		r.url = "http://" + at
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	}
	return r
}

// ask asks, and expects a status.
func (r *running) ask(status int, method, path, body string) string {
	r.Helper()
	q, _ := http.NewRequest(method, r.url+path, strings.NewReader(body))
	have, text := roundTrip(r, q)
	if have != status {
		r.Fatalf("%s %s: %d %s", method, path, have, text)
	}
	return text
}

// tally are the counts of a placement.
func (r *running) tally() (t struct{ Decisions, Outcomes, Learned uint64 }) {
	r.Helper()
	fatal.If(r, json.Unmarshal([]byte(r.ask(200, "GET", "/v1/placements/home/stats", "")), &t))
	return t
}

// Three services share one log. Each answers every request, all reach the same state, and when the leader ends another
// one leads. A new machine begins with the servers' snapshot, after the log's first entries are gone.
func TestServicesShareALog(t *testing.T) {
	log := natstest.URL(t)
	small := func(c *Config) { c.Retention.Size.Bytes = 40_000 }
	first := runs(t, log, t.TempDir(), small)
	second := runs(t, log, t.TempDir(), small)
	second.until("following", func() bool { return second.said("following the log") })
	second.ask(201, "PUT", "/v1/placements/home",
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"memory_bytes":100000}`)
	for i := range 200 {
		to, and := first, second
		if i%2 == 0 {
			to, and = second, first
		}
		to.ask(201, "POST", "/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":%d}},{"id":"b","features":{"x":1}}]}`,
				i, i%3))
		and.ask(204, "POST", fmt.Sprintf("/v1/placements/home/decisions/d%d/outcome", i), `{"choice":null}`)
	}
	first.until("retention", func() bool { return first.said(`"msg":"removed"`) })
	if second.said(`"msg":"snapshot"`) || second.said(`"msg":"removed"`) {
		t.Error("a follower writes snapshots for itself, or removes entries")
	}
	data := t.TempDir()
	fatal.If(t, os.WriteFile(filepath.Join(data, SnapshotFile), []byte("rubbish"), 0o600))
	third := runs(t, log, data, nil)
	if !third.said("begins with the snapshot beside the log") {
		t.Error("a new machine does not begin with the snapshot beside the log")
	}
	for _, r := range []*running{first, second, third} {
		r.until("the state", func() bool {
			have := r.tally()
			return have.Decisions == 200 && have.Outcomes == 200 && have.Learned == 200
		})
	}
	first.stop()
	second.until("leading", func() bool {
		return second.said("this process writes the log now") || third.said("this process writes the log now")
	})
	third.ask(201, "POST", "/v1/placements/home/decisions",
		`{"decision_id":"new","items":[{"id":"a","features":{"x":1}}]}`)
	second.ask(200, "POST", "/v1/placements/home/decisions",
		`{"decision_id":"new","items":[{"id":"a","features":{"x":1}}]}`)

	// A machine without a snapshot of its own, when the one beside the log is damaged or of another log.
	third.stop()
	second.stop()
	bucket, err := natstest.JetStream(t, log).ObjectStore("vitrine-snapshots")
	fatal.If(t, err)
	for _, name := range []string{"a", "b"} {
		last := fatal.Or(bucket.GetInfo(name))(t)
		entry, _, _ := strings.Cut(last.Metadata["position"], " ")
		fatal.Or(bucket.Put(&nats.ObjectMeta{Name: name, Metadata: map[string]string{"position": entry + " " +
			strings.Repeat("ab", 16) + " " + strings.Repeat("cd", 16)}}, strings.NewReader("x")))(t)
	}
	o := Default()
	o.Data, o.Log.URL, o.Listen = t.TempDir(), log, "127.0.0.1:0"
	var said bytes.Buffer
	err = Run(t.Context(), o, Options{Logger: slog.New(slog.NewJSONHandler(&said, nil))})
	if err == nil || !strings.Contains(said.String(), "the snapshot beside the log is not used") ||
		!strings.Contains(said.String(), "another log") {
		t.Errorf("%v:\n%s", err, &said)
	}
	runs(t, log, second.data, nil).tally() // it keeps one of its own
}

// If two processes are to take the log over at once, one of them leads and the other follows it. They wait three
// seconds between the lease and the claim, as long as the lease of the first one lasts.
func TestTwoTakeOver(t *testing.T) {
	log := natstest.URL(t)
	long := Options{Connecting: func(o *natslog.Options) { o.Lease = 3 * time.Second }}
	all := [3]*running{runsWith(t, log, t.TempDir(), long, nil)}
	var starts sync.WaitGroup
	for i := range 2 {
		starts.Go(func() { all[1+i] = runsWith(t, log, t.TempDir(), Options{TakeOver: true}, nil) })
		time.Sleep(1500 * time.Millisecond)
	}
	starts.Wait()
	all[0].until("the first one follows", func() bool { return all[0].said("following the log") })
	all[1].ask(201, "PUT", "/v1/placements/home",
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	for i, r := range all {
		r.ask(201, "POST", "/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":1}}]}`, i))
	}
}

// A leader whose servers are gone is not ready, without any caller, and is ready again when they are back.
func TestLeaderReachesNoServer(t *testing.T) {
	o := natsserver.Options{StoreDir: t.TempDir()}
	servers := natstest.Serve(t, o)
	at := fatal.Or(url.Parse(servers.ClientURL()))(t)
	o.Port = fatal.Or(strconv.Atoi(at.Port()))(t)
	r := runs(t, at.String(), t.TempDir(), nil)
	ready := func() (is bool, text string) { status, text := r.get("/readyz"); return status == 200, text }
	r.until("ready", func() bool { is, _ := ready(); return is })
	natstest.Stop(servers)
	r.until("not ready", func() bool {
		is, text := ready()
		return !is && strings.Contains(text, "has not reached the log's servers for ")
	})
	r.until("a problem", func() bool {
		_, metrics := r.get("/metrics")
		return strings.Contains(metrics, "vitrine_process_problems 1\n") &&
			r.said("This process writes the log, and has not reached its servers for ")
	})
	natstest.Serve(t, o)
	r.until("ready again", func() bool { is, _ := ready(); return is })
}

// A service whose stream is lost notices it without any caller, and does not go on with an empty one. Neither does one with
// an empty data directory.
func TestStreamIsLost(t *testing.T) {
	url := natstest.URL(t)
	r := runs(t, url, t.TempDir(), nil)
	r.ask(201, "PUT", "/v1/placements/home", personal)
	r.until("there is a snapshot", func() bool { return isFile(filepath.Join(r.data, SnapshotFile)) })
	js := natstest.JetStream(t, url)
	r.until("there is a shared one", func() bool {
		info, err := js.StreamInfo("OBJ_vitrine-snapshots")
		return err == nil && info.State.Msgs >= 2
	})
	fatal.If(t, js.DeleteStream("vitrine"))
	r.until("the loss is noticed", func() bool { return r.said("was removed") })
	r.until("not ready", func() bool { status, _ := r.get("/readyz"); return status == 503 })
	r.until("it says so", func() bool { return r.said("this log is empty, but another log wrote ") })
	r.stop()
	fresh := Default()
	fresh.Data, fresh.Log.URL, fresh.Listen = t.TempDir(), url, "127.0.0.1:0"
	begins := func(*engine.Engine) error { return errors.New("it begins a new log") }
	expect.Part(Run(t.Context(), fresh, Options{Opened: begins}))(t,
		"this log is empty, but another log wrote OBJ_vitrine-snapshots")
	fatal.Or(js.Publish("$O.vitrine-snapshots.M."+base64.URLEncoding.EncodeToString([]byte("a")), nil))(t) // it is unreadable
	ctx, stop := context.WithCancel(t.Context())
	expect.Error(t, Run(ctx, fresh, Options{Opened: begins, Logger: slog.New(slog.NewTextHandler(stopper(stop),
		nil))}), nil,
		"it waits for the snapshots")
}

// A leader that is stopped writes followers' decisions until its slowest caller gets an answer.
func TestLeaderDrains(t *testing.T) {
	log := natstest.URL(t)
	leader := runs(t, log, t.TempDir(), nil)
	follower := runs(t, log, t.TempDir(), nil)
	leader.ask(201, "PUT", "/v1/placements/home",
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	at := strings.TrimPrefix(leader.url, "http://")
	slow := fatal.Or(net.Dial("tcp", at))(t)
	defer slow.Close()
	fatal.Or(io.WriteString(slow, "POST /v1/placements/home/decisions HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"))(t)
	leader.ask(200, "GET", "/metrics", "") // after the slow call came
	go leader.stop()
	leader.until("draining", func() bool {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	follower.ask(201, "POST", "/v1/placements/home/decisions", `{"items":[{"id":"a","features":{"x":1}}]}`)
	if follower.said("this process writes the log now") {
		t.Error("the leader did not wait for its slowest caller")
	}
}

// A follower that could not lead, or lacks memory for its leader's placements, says so.
func TestFollowerIsUnfit(t *testing.T) {
	log := natstest.URL(t)
	leader := runs(t, log, t.TempDir(), nil)
	follower := runs(t, log, t.TempDir(), func(c *Config) { c.Limits.Memory.Bytes = 100 << 20 })
	leader.ask(201, "PUT", "/v1/placements/home",
		`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	follower.until("too little memory", func() bool { return follower.said("The placements need ") })
	if leader.said("The placements need ") {
		t.Error("the leader has too little memory, too")
	}
	fatal.If(t, natstest.JetStream(t, log).DeleteKeyValue("vitrine-lease"))
	follower.until("unable to lead", func() bool {
		_, metrics := follower.get("/metrics")
		return strings.Contains(metrics, "vitrine_process_problems 1\n") &&
			follower.said("This process could not take over the log if the leader failed: ")
	})
}

// A service opens the log again if the leader removes the entries that it was about to read: it opened an empty log,
// without a snapshot. The second time it begins with the leader's snapshot.
func TestRemovedWhileOpening(t *testing.T) {
	log := natstest.URL(t)
	leader := runs(t, log, t.TempDir(), func(c *Config) { c.Retention.Size.Bytes = 10_000 })
	opened := 0
	follower := runsWith(t, log, t.TempDir(), Options{Opened: func(e *engine.Engine) error {
		if opened++; opened > 1 {
			return nil
		}
		e.Close() // or it might follow the log faster than the leader removes entries
		expect.Equal(t, e.Sequence(), 0, "the log has n entries already")
		leader.ask(201, "PUT", "/v1/placements/home",
			`{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"},"memory_bytes":100000}`)
		for i := range 100 {
			leader.ask(201, "POST", "/v1/placements/home/decisions",
				fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":1}}]}`, i))
			leader.ask(204, "POST", fmt.Sprintf("/v1/placements/home/decisions/d%d/outcome", i), `{"choice":null}`)
		}
		leader.until("retention", func() bool { return leader.said(`"msg":"removed"`) })
		return nil
	}}, nil)
	follower.until("the state", func() bool { return follower.tally().Learned == 100 })
	if opened != 2 || !follower.said("the log will be opened again") {
		t.Errorf("the log was opened %d times:\n%s", opened, &follower.log)
	}
}

// A log that is empty or missing offers no snapshot; invalid names and metadata are reported.
func TestSnapshotsBesideTheLog(t *testing.T) {
	url := natstest.URL(t)
	s, err := natslog.Open(t.Context(), natslog.Options{URL: url})
	fatal.If(t, err)
	defer s.Close()
	if _, _, err := s.LastSnapshot(t.Context()); err != natslog.ErrNoSnapshot {
		t.Errorf("%v, want ErrNoSnapshot", err)
	}
	at := fatal.Or(s.Position(t.Context(), 0))(t)
	for n := range 5 {
		at.Sequence = uint64(n + 1)
		fatal.If(t, s.PutSnapshot(t.Context(), at, strings.NewReader(strings.Repeat(fmt.Sprint(n), 300_000))))
	}
	got, read, err := s.LastSnapshot(t.Context())
	if err != nil || got != at {
		t.Errorf("%v, %v, want %v", got, err, at)
	}
	var w bytes.Buffer
	if err := read(t.Context(), &w); err != nil || w.String() != strings.Repeat("4", 300_000) {
		t.Errorf("%d bytes, %v", w.Len(), err)
	}
	js := natstest.JetStream(t, url)
	info, err := js.StreamInfo("OBJ_vitrine-snapshots")
	if err != nil || info.State.Bytes > 800_000 {
		t.Errorf("%d bytes of snapshots are kept, %v", info.State.Bytes, err)
	}
	at.Sequence = 6
	fatal.If(t, s.PutSnapshot(t.Context(), at, strings.NewReader("six")))
	if info, err = js.StreamInfo("OBJ_vitrine-snapshots",
		&nats.StreamInfoRequest{SubjectsFilter: "$O.vitrine-snapshots.C.>"}); err != nil ||
		len(info.State.Subjects) != 2 {
		t.Errorf("%v, %v: parts of two snapshots should be there", info.State.Subjects, err)
	}
	at.Sequence = 3 // of a log restored from a backup
	fatal.If(t, s.PutSnapshot(t.Context(), at, strings.NewReader("three")))
	if got, _, err := s.LastSnapshot(t.Context()); err != nil || got != at {
		t.Errorf("%v, %v: a snapshot beyond the log is left", got, err)
	}
	bucket := fatal.Or(js.ObjectStore("vitrine-snapshots"))(t)
	log, hash := strings.Repeat("ab", 16), strings.Repeat("cd", 16)
	for position, isRead := range map[string]bool{
		"9 " + log + " " + hash: true, "": false, "-9 " + log + " " + hash: false, "9 ab " + hash: false,
		"9 " + log + " x": false,
	} {
		for _, name := range []string{"a", "b"} {
			fatal.Or(bucket.Put(&nats.ObjectMeta{Name: name, Metadata: map[string]string{"position": position}},
				strings.NewReader("x")))(t)
		}
		if _, _, err := s.LastSnapshot(t.Context()); (err == nil) != isRead || errors.Is(err, natslog.ErrNoSnapshot) {
			t.Errorf("%q: %v, is read %v", position, err, isRead)
		}
	}
	expect.Error(t, s.PutSnapshot(t.Context(), at, strings.NewReader("again")), nil)
	if got, _, err := s.LastSnapshot(t.Context()); err != nil || got != at {
		t.Errorf("%v, %v: a good one replaces a bad one", got, err)
	}
}
