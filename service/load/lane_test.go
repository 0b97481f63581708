package load

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/service/api"
)

// echoing answers with what it was sent, and counts connections.
func echoing(t *testing.T, opened *atomic.Int64, change func(w http.ResponseWriter, r *http.Request) (handled bool)) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change != nil && change(w, r) {
			return
		}
		w.Header().Set("X-Method", r.Method+" "+r.RequestURI+" "+r.Header.Get("X-Extra"))
		body, err := io.ReadAll(r.Body) // before the answer begins, or net/http ends the connection
		if err != nil {
			t.Error(err)
		}
		w.Write(body)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func exchange(t *testing.T, l *lane, method, url, body string) (text string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	fatal.If(t, err)
	if body == "" {
		r.Body = nil
	}
	r.Header.Set("X-Extra", "extra")
	answer, err := l.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if got, want := answer.Header.Get("X-Method"), method+" "+r.URL.RequestURI()+" extra"; got != want {
		t.Errorf("%q arrived, want %q", got, want)
	}
	all, err := io.ReadAll(answer.Body)
	return string(all), err
}

// A lane keeps its connection, for bodies of all sizes, and makes another one where the service has closed it.
func TestLaneKeepsItsConnection(t *testing.T) {
	var opened atomic.Int64
	s := echoing(t, &opened, nil)
	l := new(lane)
	defer l.close()
	for range 3 {
		for _, body := range []string{"", "a", strings.Repeat("body ", 40_000)} {
			if got, err := exchange(t, l, "POST", s.URL+"/a%2Fb?c=d", body); err != nil || got != body {
				t.Fatalf("%d bytes came back of %d, %v", len(got), len(body), err)
			}
		}
	}
	if opened.Load() != 1 {
		t.Errorf("%d connections", opened.Load())
	}
	s.CloseClientConnections()
	if got, err := exchange(t, l, "POST", s.URL+"/", "again"); err != nil || got != "again" || opened.Load() != 2 {
		t.Errorf("%q, %v, %d connections", got, err, opened.Load())
	}
}

// What breaks off is an error, and the next request has a connection of its own.
func TestLaneAfterFailures(t *testing.T) {
	var opened atomic.Int64
	s := echoing(t, &opened, func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/cut":
			w.Header().Set("X-Method", r.Method+" "+r.RequestURI+" extra")
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "short")
			return true
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/last":
			w.Header().Set("Connection", "close")
		}
		return false
	})
	l := new(lane)
	defer l.close()
	for _, c := range []struct {
		path   string
		err    error
		opened int64
	}{{"/", nil, 1}, {"/cut", io.ErrUnexpectedEOF, 1}, {"/", nil, 2}, {"/abort", io.EOF, 3}, {"/last", nil, 4}, {"/", nil, 5}} {
		if _, err := exchange(t, l, "POST", s.URL+c.path, "x"); !errors.Is(err, c.err) || opened.Load() != c.opened {
			t.Errorf("%s: %v, want %v; %d connections, want %d", c.path, err, c.err, opened.Load(), c.opened)
		}
	}
}

// An answer is of its request, whatever else the other side says.
func TestLaneAndOddAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nX-Method: GET / extra\r\nContent-Length: 1\r\n\r\n"
	for name, c := range map[string]struct {
		said   []string // to each request, over all connections
		opened int64
	}{
		"interim answers": {[]string{"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + ok + "a", ok + "b"}, 1},
		"two at once":     {[]string{ok + "a" + ok + "x", ok + "b"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var n, opened atomic.Int64
			s := echoing(t, &opened, func(w http.ResponseWriter, _ *http.Request) bool {
				conn, in, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return true
				}
				defer conn.Close()
				for {
					if _, err := io.WriteString(conn, c.said[n.Add(1)-1]); err != nil {
						t.Error(err)
					}
					if _, err := http.ReadRequest(in.Reader); err != nil {
						return true
					}
				}
			})
			l := new(lane)
			defer l.close()
			for _, want := range []string{"a", "b"} {
				if got, err := exchange(t, l, "GET", s.URL+"/", ""); err != nil || got != want {
					t.Errorf("%q, %v, want %q", got, err, want)
				}
			}
			if opened.Load() != c.opened {
				t.Errorf("%d connections, want %d", opened.Load(), c.opened)
			}
		})
	}
}

// Stopping ends a request that waits for its answer, and all later ones.
func TestLaneStops(t *testing.T) {
	var opened atomic.Int64
	arrived, done := make(chan struct{}), make(chan struct{})
	s := echoing(t, &opened, func(http.ResponseWriter, *http.Request) bool { close(arrived); <-done; return true })
	defer close(done)
	l := new(lane)
	defer l.close()
	go func() { <-arrived; l.stop() }()
	var timeout net.Error
	if _, err := exchange(t, l, "GET", s.URL+"/", ""); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Error(err)
	}
	if _, err := exchange(t, l, "GET", s.URL+"/", ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestKindsOfErrors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	address := "http://" + listener.Addr().String()
	listener.Close()
	_, refused := exchange(t, new(lane), "GET", address, "")
	expired, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	for want, err := range map[string]error{
		"connection refused": refused, "connection broken": io.EOF, "timeout": expired.Err(), "other": errors.New("x"),
		"503 busy": &api.Problem{Status: 503, Type: "urn:vitrine:problem:busy"}, "502": &api.Problem{Status: 502},
	} {
		if got := kindOf(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

// A request to another address opens a connection to it.
func TestLaneChangesAddress(t *testing.T) {
	var opened atomic.Int64
	one, other := echoing(t, &opened, nil), echoing(t, &opened, func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("X-Method", r.Method+" "+r.RequestURI+" "+r.Header.Get("X-Extra"))
		io.WriteString(w, "other")
		return true
	})
	l := new(lane)
	defer l.close()
	for i, to := range []string{one.URL, other.URL, other.URL, one.URL} {
		want := map[string]string{one.URL: "one", other.URL: "other"}[to]
		if text, err := exchange(t, l, "POST", to, "one"); err != nil || text != want {
			t.Errorf("request %d: %q, %v", i, text, err)
		}
	}
	if n := opened.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}
