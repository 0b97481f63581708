package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"vitrine/config"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/server"
)

// watchedLog is what a service logs, of which tests wait for a message.
type watchedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (w *watchedLog) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(b)
	select {
	case w.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

// line returns the first line with a message.
func (w *watchedLog) line(message string) (map[string]any, bool) {
	lines := w.lines(message)
	if len(lines) == 0 {
		return nil, false
	}
	return lines[0], true
}

// lines returns the lines with a message.
func (w *watchedLog) lines(message string) (found []map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range strings.Split(w.text.String(), "\n") {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

func (w *watchedLog) count(message string) int { return len(w.lines(message)) }

// serving is a service that runs until stop, which returns what it does.
func serving(t *testing.T, s *service) (url string, log *watchedLog, stop func() error) {
	t.Helper()
	log = &watchedLog{more: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, slog.New(slog.NewJSONHandler(log, nil))) }()
	stop = func() error { cancel(); return <-ended }
	for {
		select {
		case err := <-ended:
			t.Fatalf("the service ended: %v\n%s", err, &log.text)
		case <-log.more:
		}
		if line, ok := log.line("listening"); ok {
			return "http://" + line["address"].(string), log, stop
		}
	}
}

func ask(t *testing.T, status int, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		t.Fatalf("%s %s: %d %s, %v; want %d", method, url, answer.StatusCode, text, err, status)
	}
	return string(text)
}

// A port in use and a broken certificate are told before the log is opened.
func TestServeSaysItFirst(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for want, change := range map[string]func(*service){
		"in use": func(s *service) { s.Listen = taken.Addr().String() },
		"TLS":    func(s *service) { s.TLS.Certificate, s.TLS.Key = "none.pem", "none.pem" },
	} {
		s, err := readService("")
		if err != nil {
			t.Fatal(err)
		}
		s.Listen, s.Data = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
		change(s)
		if err := s.run(t.Context(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := os.Stat(filepath.Join(s.Data, logName)); err == nil {
			t.Errorf("%s: the log was opened", want)
		}
	}
}

// What was acknowledged is there after a restart: with the snapshot, without it, and with one that
// is spoilt.
func TestServeRestarts(t *testing.T) {
	s, err := readService("")
	if err != nil {
		t.Fatal(err)
	}
	s.Listen, s.Data = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	url, _, stop := serving(t, s)
	ask(t, 201, "PUT", url+"/v1/placements/home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	for i := range 10 {
		ask(t, 201, "POST", url+"/v1/placements/home/decisions", fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":%d}},{"id":"b","features":{"x":1}}]}`, i, i))
		ask(t, 204, "POST", fmt.Sprintf("%s/v1/decisions/d%d/outcome", url, i), `{"choice":null}`)
	}
	decision := ask(t, 200, "GET", url+"/v1/decisions/d7", "")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	snapshot := filepath.Join(s.Data, "state.snapshot")
	for _, prepare := range []struct {
		name string
		do   func() error
		warn bool
	}{
		{"with the snapshot", func() error { return nil }, false},
		{"without it", func() error { return os.Remove(snapshot) }, false},
		{"with a spoilt one", func() error { return os.WriteFile(snapshot, []byte("spoilt"), 0o600) }, true},
	} {
		if err := prepare.do(); err != nil {
			t.Fatal(err)
		}
		url, log, stop := serving(t, s)
		if got := ask(t, 200, "GET", url+"/v1/decisions/d7", ""); got != decision {
			t.Errorf("%s: %s, was %s", prepare.name, got, decision)
		}
		if _, warned := log.line("a snapshot is of no use: more of the log is replayed"); warned != prepare.warn {
			t.Errorf("%s: warned %v", prepare.name, warned)
		}
		if err := stop(); err != nil {
			t.Errorf("%s: %v", prepare.name, err)
		}
		if _, err := os.Stat(snapshot); err != nil {
			t.Errorf("%s: %v", prepare.name, err)
		}
	}
}

// The data directory is moved under a service, and another one begins at its place: the first decides nothing more and
// writes nothing there.
func TestDirectoryIsMoved(t *testing.T) {
	t.Parallel()
	s, err := readService("")
	if err != nil {
		t.Fatal(err)
	}
	s.Data = filepath.Join(t.TempDir(), "data")
	first := served(t, s)
	if err := os.Rename(s.Data, s.Data+"-moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	first.ends(func(err error) bool { return errors.Is(err, eventlog.ErrLost) && strings.Contains(err.Error(), s.Data) })
	if left, err := os.ReadDir(s.Data); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are in the new directory", left, err)
	}
	decisions, _ := readLog(t, natslog.Options{Dir: filepath.Join(s.Data+"-moved", logName)})
	first.isIn(decisions)
}

func TestServiceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "service.toml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`listen = ":8443"
data = "d"
log = "nats://host:4222"
keys = "k.toml"
log_level = "debug"
tls = {certificate = "/c.pem", key = "p.pem"}
limits = {body = 1, concurrent = 2, rate = 3, burst = 4, subscribers = 5, answer = "6s", connections = 7}
timeouts = {header = "1s", read = "2s", write = "3s", idle = "4s", drain = "5s"}
snapshots = {every = "1m", keep_every = "2m"}
`)
	s, err := readService(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Log.URL != "nats://host:4222" || s.Data != filepath.Join(dir, "d") || s.Keys != filepath.Join(dir, "k.toml") || s.TLS.Certificate != "/c.pem" || s.TLS.Key != filepath.Join(dir, "p.pem") || s.LogLevel != slog.LevelDebug {
		t.Errorf("%+v", s)
	}
	if got, want := s.limits(), (server.Limits{Body: 1, Concurrent: 2, Rate: 3, Burst: 4, Subscribers: 5, Answer: 6e9, Connections: 7}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if l := s.listen(); l.Address != ":8443" || l.Header != 1e9 || l.Read != 2e9 || l.Write != 3e9 || l.Idle != 4e9 || l.Drain != 5e9 {
		t.Errorf("%+v", l)
	}
}

// The configuration in docs/operations.md is the one without a file, and its keys are keys.
func TestServiceFileOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n    listen = ")
	text, rest, _ := strings.Cut("listen = "+text, "\n\nThe log on external servers")
	got := new(service)
	if err := got.parse([]byte(text)); err != nil {
		t.Fatal(err)
	}
	want, err := readService("")
	if err != nil {
		t.Fatal(err)
	}
	if got.Listen != want.Listen || got.Data != want.Data || got.Snapshots != want.Snapshots || got.LogLevel != want.LogLevel {
		t.Errorf("%+v, want %+v", got, want)
	}
	_, keys, _ := strings.Cut(rest, "    [[key]]")
	keys, _, _ = strings.Cut("[[key]]"+keys, "\n\n")
	path := filepath.Join(t.TempDir(), "keys.toml")
	if err := os.WriteFile(path, []byte(keys), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := server.OpenKeys(path, time.Now, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

func TestBadServiceFile(t *testing.T) {
	for text, want := range map[string]string{
		"listen = 3":                                       "1: ",
		"[limits]\nrates = 1":                              "2: unknown key \"limits.rates\"",
		"limits = {rate = nan}":                            " limits.rate = NaN: must be from 0",
		"limits = {rate = inf}":                            " limits.rate = +Inf: must be from 0",
		"limits = {rate = -1.5}":                           " limits.rate = -1.5: must be from 0",
		"limits = {concurrent = -1}":                       " limits.concurrent = -1: must be from 0",
		"limits = {concurrent = 1e3}":                      "1: ",
		"limits = {body = 9999999999999}":                  " limits.body = 9.999999999999e+12: must be from 0",
		"limits = {answer = \"0s\"}":                       "1: ",
		"tls = {key = \"k.pem\"}":                          " [tls] needs both certificate and key",
		"log = \"nats://u:p@:x%\"":                         " log.url: ",
		"[log]\nurls = \"nats://h\"":                       "2: unknown key \"log.urls\"",
		"log = {stream = \"s\"}":                           " [log] has no url",
		"log = {url = \"h\", replicas = 6}":                " log.replicas = 6: must be from 1 to 5",
		"log = {url = \"h\", stream = \"a.b\"}":            " log.stream = \"a.b\": must have no",
		"log = {url = \"h\", nkey = \"n\", token = \"t\"}": " [log] has more than one of credentials, nkey and token",
		"log = {url = \"h\", certificate = \"c\"}":         " [log] needs both certificate and key",
	} {
		s, err := readService("")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.parse([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Whatever stands in a configuration, a server can be made of what is read from it.
func FuzzServiceFile(f *testing.F) {
	f.Add("listen = \":8443\"\ntls = {certificate = \"c\", key = \"k\"}\nlimits = {rate = 3, burst = 4, answer = \"6s\"}")
	f.Add("limits = {rate = nan}")
	engine, err := decision.Open(f.Context(), decision.Options{Store: new(memlog.Store), Build: config.NewLearner})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(engine.Close)
	f.Fuzz(func(t *testing.T, text string) {
		s := new(service)
		if s.parse([]byte(text)) != nil || s.Limits.Concurrent > 1000 {
			return
		}
		w := httptest.NewRecorder()
		server.New(server.Options{Engine: engine, Limits: s.limits()}).ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/placements", nil))
		if w.Code != http.StatusOK {
			t.Errorf("the first request: %d %s", w.Code, w.Body)
		}
	})
}

// A service reaches its log by a token in a file, and commands do by the service's configuration. None of them prints
// the token, nor a password that a URL has.
func TestSecretsOfTheLog(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-t0k3n"
	srv, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, Authorization: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	host := srv.Addr().String()
	file, data := serviceFile(t, fmt.Sprintf("[log]\nurl = %q\ntoken = \"token\"\nstream = \"shop\"\n", "nats://"+host))
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "token"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serve(t, file)
	url := p.listening(t)
	ask(t, 201, "PUT", url+"/v1/placements/home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"onl-mnl"}}`)
	p.stop(t)
	all := p.said()
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"check", file}, 0},
		{[]string{"replay", file, "--data", data}, 0},
		{[]string{"export", file}, 0},
		{[]string{"check", "nats://" + secret + "@" + host}, 1}, // it has another stream
		{[]string{"check", "nats://u:" + secret + "@" + host}, 1},
		{[]string{"replay", "nats://u:" + secret + "@127.0.0.1:1"}, 1},
		{[]string{"export", "nats://" + secret + "%@" + host}, 1},
	} {
		said, code := command(t, c.args...)
		if code != c.want {
			t.Errorf("%v: exit status %d, want %d:\n%s", c.args, code, c.want, said)
		}
		all += said
	}
	if strings.Contains(all, secret) {
		t.Errorf("the token is printed:\n%s", all)
	}
}
