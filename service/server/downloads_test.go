package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/server"
	"vitrine/service/setup"
)

// An export is sent as it is written; one that breaks off does not look whole; and one slow reader leaves places to
// others.
func TestExport(t *testing.T) {
	var write atomic.Value // func(w io.Writer) error: the server calls it in other goroutines
	begun, goOn := make(chan bool), make(chan bool)
	s := started(t, func(o *server.Options, _ *engine.Options) {
		o.Export = func(_ context.Context, w io.Writer, placement string) error {
			expect.Equal(t, placement, "home", "an export of")
			return write.Load().(func(io.Writer) error)(w)
		}
	})
	s.want(201, "PUT", "/v1/placements/home", plain)
	const path = "/v1/placements/home/export"
	write.Store(func(w io.Writer) error { _, err := io.WriteString(w, "{}\n{}\n"); return err })
	a := s.want(200, "GET", path, "")
	if a.body != "{}\n{}\n" || a.header.Get("Content-Type") != "application/x-ndjson" ||
		a.header.Get("Content-Disposition") != `attachment; filename="home.jsonl"` {
		t.Errorf("%v %q", a.header, a.body)
	}
	write.Store(func(io.Writer) error { return nil })
	s.want(200, "GET", path, "")
	write.Store(func(io.Writer) error { return errors.New("secret") })
	s.problem(500, "internal", "", "GET", path, "")
	s.problem(404, "not-found", "", "GET", "/v1/placements/nowhere/export", "")
	// HEAD neither reads the log nor waits for events.
	s.want(200, "HEAD", path, "")
	if a := s.want(200, "HEAD", "/v1/events", ""); a.header.Get("Content-Type") != "text/event-stream" || a.body != "" {
		t.Errorf("%v %q", a.header, a.body)
	}

	address, _ := s.run(server.Listen{})
	write.Store(func(w io.Writer) error {
		if _, err := io.WriteString(w, strings.Repeat("{}\n", 10_000)); err != nil {
			return err
		}
		begun <- true
		<-goOn
		return errors.New("entries were removed")
	})
	r, err := client(nil).Get("http://" + address + path)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("%v: %+v", err, r)
	}
	defer r.Body.Close()
	<-begun
	write.Store(func(w io.Writer) error { _, err := io.WriteString(w, "{}\n"); return err })
	s.want(200, "GET", path, "")
	close(goOn)
	if text, err := io.ReadAll(bufio.NewReader(r.Body)); err == nil {
		t.Errorf("what broke off looks whole: %q", text)
	}
	write.Store(func(io.Writer) error { return nil })
	s.want(200, "GET", path, "")

	// Retention removes entries that are not exported yet, after one line or many, compressed or not.
	for _, lines := range []int{1, 50, 10_000} {
		for _, encoding := range []string{"gzip", "zstd", "identity"} {
			write.Store(func(w io.Writer) error {
				for range lines {
					if _, err := io.WriteString(w, "{}\n"); err != nil {
						return err
					}
				}
				return eventlog.ErrRemoved
			})
			request := fatal.Or(http.NewRequestWithContext(t.Context(), "GET", "http://"+address+path, nil))(t)
			request.Header.Set("Accept-Encoding", encoding)
			r, err := client(nil).Do(request)
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body) // the encoded bytes
				r.Body.Close()
			}
			expect.Refused(err)(t, encoding, "what breaks off after", lines, "lines looks whole")
		}
	}
}

// A learner of the same configuration can read a downloaded model.
func TestModel(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	s.want(201, "POST", "/v1/placements/home/decisions",
		`{"decision_id":"a","items":[{"id":"sku1","features":{"x":1},"revenue":3}]}`)
	s.want(204, "POST", "/v1/placements/home/decisions/a/outcome", `{"choice":"sku1"}`)
	a := s.want(200, "GET", "/v1/placements/home/model", "")
	var m api.LearnerState
	fatal.If(t, json.Unmarshal([]byte(a.body), &m))
	if m.Placement != "home" || m.Learned != 1 || m.PolicyEntry != 3 || m.Config.Policy["name"] != "ucb-mnl" ||
		len(m.State) == 0 || !strings.Contains(a.header.Get("Content-Disposition"), "home.model.json") {
		t.Errorf("%v %s", a.header, a.body)
	}
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: s.store, Build: setup.NewLearner}))(t)
	defer e.Close()
	again, err := e.Model(t.Context(), "home")
	if err != nil || again.State != m.State {
		t.Errorf("a replay has another model: %v", err)
	}
	s.problem(404, "not-found", "", "GET", "/v1/placements/nowhere/model", "")
}
