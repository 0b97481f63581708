package server_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/server"
)

// crowd is a request of 100 items with 10 features, and its placement.
func crowd() (placement, text string) {
	rng := rand.New(rand.NewPCG(1, 1))
	var features, inJSON []string
	for j := range 10 {
		features = append(features, fmt.Sprintf(`{"name":"x%d","kind":"number"}`, j))
	}
	for i := range 100 {
		var row []string
		for j := range 10 {
			row = append(row, fmt.Sprintf(`"x%d":%.6f`, j, rng.NormFloat64()))
		}
		inJSON = append(inJSON, fmt.Sprintf(`{"id":"item-%d","features":{%s},"revenue":%.2f}`, i,
			strings.Join(row, ","), rng.Float64()))
	}
	list := func(v []string) string { return "[" + strings.Join(v, ",") + "]" }
	placement = `{"max_size":5,"features":` + list(features) +
		`,"policy":{"name":"onl-mnl","warmup":0},"memory_bytes":4000000}`
	return placement, `{"items":` + list(inJSON) + `}`
}

// discard is an answer that is thrown away.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

// BenchmarkDecision measures decisions through only the handler, and over a connection: there the
// processor's time, including the caller's write and read.
func BenchmarkDecision(b *testing.B) {
	placement, body := crowd()
	open := func(b *testing.B) *service {
		s := started(b, func(o *server.Options, _ *engine.Options) { o.Logger, o.Clock, o.Feed = nil, time.Now, nil })
		s.want(201, "PUT", "/v1/placements/home", placement)
		return s
	}
	b.Run("handler", func(b *testing.B) {
		s := open(b)
		r := httptest.NewRequest("POST", "http://localhost/v1/placements/home/decisions", nil)
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = int64(len(body))
		w := &discard{header: http.Header{}}
		b.ReportAllocs()
		for b.Loop() {
			again := *r
			again.Body = io.NopCloser(strings.NewReader(body))
			if s.ServeHTTP(w, &again); w.status != 201 {
				b.Fatal(w.status)
			}
		}
	})
	b.Run("connection", func(b *testing.B) {
		s := open(b)
		address, _ := s.run(server.Listen{})
		c, err := net.Dial("tcp", address)
		fatal.If(b, err)
		defer c.Close()
		in := bufio.NewReader(c)
		request := fmt.Appendf(nil, "POST /v1/placements/home/decisions HTTP/1.1\r\nHost: "+
			"localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		before := processor()
		for b.Loop() {
			fatal.Or(c.Write(request))(b)
			answer, err := http.ReadResponse(in, nil)
			if err != nil || answer.StatusCode != 201 {
				b.Fatal(answer, err)
			}
			io.Copy(io.Discard, answer.Body)
		}
		b.ReportMetric(float64((processor()-before).Microseconds())/float64(b.N), "cpu-µs/op")
	})
}

// processor returns this process's processor time.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
