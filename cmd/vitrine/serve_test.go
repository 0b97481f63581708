package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/host"
)

// watchedLog is the log of a service, in which tests wait for messages.
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

// service is a service that a test runs, with its options.
type service struct {
	*host.Config
	options host.Options
	demo    bool
}

// newService returns a service of the default settings, with a port and a data directory of its own.
func newService(t *testing.T) *service {
	s := &service{Config: host.Default()}
	s.Listen, s.Data = "127.0.0.1:0", filepath.Join(t.TempDir(), "data")
	return s
}

func (s *service) run(ctx context.Context, logger *slog.Logger) error {
	o := s.options
	if o.Logger = logger; s.demo {
		demonstration(s.Data, &o)
	}
	return host.Run(ctx, s.Config, o)
}

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
	r := fatal.Or(http.NewRequest(method, url, strings.NewReader(body)))(t)
	answer := fatal.Or((&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r))(t)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		t.Fatalf("%s %s: %d %s, %v; want %d", method, url, answer.StatusCode, text, err, status)
	}
	return string(text)
}

// A port in use and a broken certificate are reported before the log is opened.
func TestServeSaysItFirst(t *testing.T) {
	taken := fatal.Or(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	for want, change := range map[string]func(*service){
		"in use: stop the program that listens there, or name another address with --listen": func(s *service) {
			s.Listen = taken.Addr().String()
		},
		"none.pem, key.pem: ": func(s *service) { s.TLS.Certificate, s.TLS.Key = "none.pem", "key.pem" },
	} {
		s := newService(t)
		change(s)
		expect.Part(s.run(t.Context(), slog.New(slog.DiscardHandler)))(t, want)
		expect.Fails(os.Stat(filepath.Join(s.Data, host.LogDir)))(t, fs.ErrNotExist, want, "the log was opened")
	}
}

// Acknowledged entries survive a restart with the snapshot, without it, and with a damaged one.
func TestServeRestarts(t *testing.T) {
	s := newService(t)
	url, _, stop := serving(t, s)
	ask(t, 201, "PUT", url+"/v1/placements/home",
		`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`)
	for i := range 10 {
		ask(t, 201, "POST", url+"/v1/placements/home/decisions",
			fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":%d}},{"id":"b","features":{"x":1}}]}`,
				i, i))
		ask(t, 204, "POST", fmt.Sprintf("%s/v1/placements/home/decisions/d%d/outcome", url, i), `{"choice":null}`)
	}
	decision := ask(t, 200, "GET", url+"/v1/placements/home/decisions/d7", "")
	fatal.If(t, stop())
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
		fatal.If(t, prepare.do())
		url, log, stop := serving(t, s)
		if got := ask(t, 200, "GET", url+"/v1/placements/home/decisions/d7", ""); got != decision {
			t.Errorf("%s: %s, was %s", prepare.name, got, decision)
		}
		if _, warned := log.line("a snapshot is unusable: more of the log is replayed"); warned != prepare.warn {
			t.Errorf("%s: warned %v", prepare.name, warned)
		}
		expect.Error(t, stop(), nil, prepare.name)
		if _, err := os.Stat(snapshot); err != nil {
			t.Errorf("%s: %v", prepare.name, err)
		}
	}
}

// If memory is lowered below the use of the placements, new ones are refused with a warning, and the existing
// ones serve.
func TestServeWithLittleMemory(t *testing.T) {
	const place = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl"}}`
	const warning = "more memory than they may have"
	s := newService(t)
	s.Limits.Memory.Bytes = 400 << 20
	url, log, stop := serving(t, s)
	ask(t, http.StatusCreated, "PUT", url+"/v1/placements/home", place)
	if err := stop(); err != nil || strings.Contains(log.text.String(), warning) {
		t.Fatalf("%v\n%s", err, &log.text)
	}
	s.Limits.Memory.Bytes = 100 << 20
	url, log, stop = serving(t, s)
	ask(t, http.StatusCreated, "POST", url+"/v1/placements/home/decisions", `{"items":[{"id":"a","features":{"x":1}}]}`)
	ask(t, http.StatusConflict, "PUT", url+"/v1/placements/other", place)
	for warned := false; !warned; {
		<-log.more
		log.mu.Lock()
		warned = strings.Contains(log.text.String(), warning)
		log.mu.Unlock()
	}
	expect.Error(t, stop(), nil)
}

// The data directory is moved under a service, and another one begins in its place: the first one makes no more
// decisions and writes nothing there.
func TestDirectoryIsMoved(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.Data = filepath.Join(t.TempDir(), "data")
	first := served(t, s)
	fatal.If(t, os.Rename(s.Data, s.Data+"-moved"))
	fatal.If(t, os.Mkdir(s.Data, 0o700))
	first.ends(func(err error) bool {
		return errors.Is(err, eventlog.ErrLost) && strings.Contains(
			err.Error(), s.Data)
	})
	if left, err := os.ReadDir(s.Data); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are in the new directory", left, err)
	}
	first.IsIn(filepath.Join(s.Data+"-moved", host.LogDir))
}

// A service keeps its log small while it serves. Meanwhile and afterwards it is checked, replayed and
// backed up, and it starts again, from a base too.
func TestServeKeepsItsLogSmall(t *testing.T) {
	s := newService(t)
	s.Snapshots.Every.Duration = 5 * time.Millisecond
	s.Retention.Size.Bytes = 20_000
	url, log, stop := serving(t, s)
	ask(t, 201, "PUT", url+"/v1/placements/home",
		`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"onl-mnl","warmup":5}}`)
	serve := func(url string, first, last int) {
		t.Helper()
		for i := first; i <= last; i++ {
			ask(t, 201, "POST", url+"/v1/placements/home/decisions",
				fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":%d}},{"id":"b","features":{"x":1}}]}`, i, i))
			ask(t, 204, "POST", fmt.Sprintf("%s/v1/placements/home/decisions/d%d/outcome", url, i), `{"choice":null}`)
		}
	}
	decision := func(url string) string { return ask(t, 200, "GET", url+"/v1/placements/home/decisions/d160", "") }
	backup := filepath.Join(t.TempDir(), "backup")
	serve(url, 1, 100)
	for i := range 3 {
		serve(url, 101+20*i, 120+20*i)
		run1(t, "check", s.Data)
		run1(t, "replay", s.Data)
	}
	run1(t, "backup", s.Data, backup)
	want := decision(url)
	for _, ok := log.line("removed"); !ok; _, ok = log.line("removed") {
		<-log.more
	}
	fatal.If(t, stop())
	err := withLog(s.Data, func(ctx context.Context, store *filelog.Store) error {
		x, err := store.Extent(ctx)
		if x.First == 1 || x.Bytes > 40_000 {
			t.Errorf("the log is %+v", x)
		}
		return err
	})
	fatal.If(t, err)
	for _, data := range []string{s.Data, backup} {
		run1(t, "check", data)
		run1(t, "replay", data)
		run1(t, "export", data)
		s.Data = data
		for i, snapshot := range []bool{true, false} {
			if !snapshot {
				fatal.If(t, os.Remove(filepath.Join(data, host.SnapshotFile)))
			}
			url, _, stop := serving(t, s)
			if have := decision(url); have != want {
				t.Errorf("%s, with a snapshot %v: %s, was %s", data, snapshot, have, want)
			}
			serve(url, 1000*(i+1), 1000*(i+1)+20)
			fatal.If(t, stop())
			run1(t, "check", data)
			run1(t, "replay", data)
		}
	}
}
