package server_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/server"
)

// gzipped is a text as the standard library compresses it.
func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := stdgzip.NewWriter(&b)
	fatal.Or(io.WriteString(w, text))(t)
	fatal.If(t, w.Close())
	return b.String()
}

// zstandard is a text in the coding zstd, as a stream of unknown length.
func zstandard(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := fatal.Or(zstd.NewWriter(&b))(t)
	fatal.Or(io.Copy(w, strings.NewReader(text)))(t)
	fatal.If(t, w.Close())
	return b.String()
}

// plainOf is an answer's body as it was before it was compressed.
func plainOf(t testing.TB, a answer) string {
	t.Helper()
	var r io.Reader = strings.NewReader(a.body)
	switch coding := a.header.Get("Content-Encoding"); coding {
	case "":
	case "gzip":
		z := fatal.Or(stdgzip.NewReader(r))(t)
		r = z
	case "zstd":
		z := fatal.Or(zstd.NewReader(r))(t)
		defer z.Close()
		r = z
	default:
		t.Fatalf("Content-Encoding: %s", coding)
	}
	text := fatal.Or(io.ReadAll(r))(t)
	return string(text)
}

// A compressed body is the body that it becomes: the same decision.
func TestCompressedRequests(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", gzipped(t, home), "Content-Encoding", "gzip")
	first := s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"abc",`+items+`}`)
	for coding, compress := range map[string]func(testing.TB, string) string{
		"gzip": gzipped, "x-gzip": gzipped, "GZIP": gzipped, "zstd": zstandard,
		"identity": func(_ testing.TB, text string) string { return text },
	} {
		for range 3 { // decoders are used again
			a := s.want(200, "POST", "/v1/placements/home/decisions", compress(t, `{"decision_id":"abc",`+items+`}`),
				"Content-Encoding", coding)
			expect.Equal(t, a.body, first.body, coding)
		}
		s.want(400, "POST", "/v1/placements/home/decisions", compress(t, `{"decision_id"`), "Content-Encoding", coding)
	}
	in := func(status int, kind, coding, body string) {
		t.Helper()
		s.problem(status, kind, "", "POST", "/v1/placements/home/decisions", body, "Content-Encoding", coding)
	}
	good := `{` + items + `}`
	for coding, compressed := range map[string]string{"gzip": gzipped(t, good), "zstd": zstandard(t, good)} {
		in(400, "body", coding, good)
		in(400, "body", coding, compressed[:len(compressed)-3])
		if a := s.ask("POST", "/v1/placements/home/decisions", compressed[:len(compressed)/2], "Content-Encoding",
			coding); !strings.Contains(a.body, "ends before its "+coding) {
			t.Error(a.body)
		}
		in(400, "body", coding, compressed[:len(compressed)/2])
		in(400, "body", coding, compressed[:3])
		in(400, "body", coding, compressed+"garbage")
		broken := []byte(compressed)
		broken[len(broken)/2] ^= 0x10
		in(400, "body", coding, string(broken))
	}
	in(400, "body", "gzip", "")
	in(400, "malformed", "zstd", "") // an empty text is no frame
	for _, coding := range []string{"br", "deflate", "gzip, zstd", "gzip,", "zip"} {
		in(415, "media-type", coding, good)
	}
	if got := s.ask("POST", "/v1/placements/home/decisions", good, "Content-Encoding",
		"br").header.Get("Accept-Encoding"); got != "zstd, gzip" {
		t.Errorf("Accept-Encoding of a 415: %q", got)
	}
}

// A decompressed body is bounded like any body, before there is memory for more.
func TestDecompressedBound(t *testing.T) {
	const limit = 1 << 16
	b := budget.New(1 << 30)
	s := started(t, func(o *server.Options, e *engine.Options) { o.Limits.Body, o.Budget, e.Budget = limit, b, b })
	s.want(201, "PUT", "/v1/placements/home", home)
	padded := func(n int) string { return `{` + items + strings.Repeat(" ", n-len(items)-2) + `}` }
	for coding, compress := range map[string]func(testing.TB, string) string{"gzip": gzipped, "zstd": zstandard} {
		s.want(201, "POST", "/v1/placements/home/decisions", compress(t, padded(limit)), "Content-Encoding", coding)
		for _, n := range []int{limit + 1, 100 * limit} {
			a := s.want(413, "POST", "/v1/placements/home/decisions", compress(t, padded(n)), "Content-Encoding",
				coding)
			if !strings.Contains(a.body, "decompressed") || !strings.Contains(a.body, ":too-large") {
				t.Errorf("%s of %d bytes: %s", coding, n, a.body)
			}
		}
		// Too long before decompression, though it decompresses to nothing.
		long := strings.Repeat(compress(t, ""), limit)
		s.problem(413, "too-large", "", "POST", "/v1/placements/home/decisions", long, "Content-Encoding", coding)
	}
	bomb := zstandard(t, padded(48<<20)) // which becomes more than the test may take
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.want(413, "POST", "/v1/placements/home/decisions", bomb, "Content-Encoding", "zstd")
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 32<<20 {
		t.Errorf("%d bytes of memory for a body of at most %d", after.TotalAlloc-before.TotalAlloc, limit)
	}
	// A window beyond what is kept is refused: a frame that says it needs 1 GiB.
	s.problem(400, "body", "", "POST", "/v1/placements/home/decisions", "\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00",
		"Content-Encoding", "zstd")
	if u := b.Usage(); u.Requests != 0 || u.Waiting != 0 {
		t.Errorf("memory is still taken: %+v", u)
	}
}

// While a body in zstd is read, its window counts in the memory of requests too.
func TestWindowIsCharged(t *testing.T) {
	for size, status := range map[int64]int{10 << 20: 413, 64 << 20: 201} {
		b := budget.New(size)
		s := started(t, func(o *server.Options, e *engine.Options) { o.Limits.Body, o.Budget, e.Budget = 1<<16, b, b })
		s.want(201, "PUT", "/v1/placements/home", strings.Replace(plain, `{`,
			`{"memory_bytes":100000,"max_versions":1,`, 1))
		body := `{"items":[{"id":"a","features":{"x":1}}]}`
		s.want(201, "POST", "/v1/placements/home/decisions", gzipped(t, body), "Content-Encoding", "gzip")
		s.want(status, "POST", "/v1/placements/home/decisions", zstandard(t, body), "Content-Encoding", "zstd")
	}
}

// A long answer is compressed as its caller likes; a short one is not.
func TestCompressedAnswers(t *testing.T) {
	s := started(t, nil)
	plain := s.want(200, "GET", "/openapi.json", "")
	if plain.header.Get("Content-Encoding") != "" || plain.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("without Accept-Encoding: %v", plain.header)
	}
	for accept, want := range map[string]string{
		"gzip": "gzip", "gzip, deflate": "gzip", "zstd": "zstd", "gzip, deflate, br, zstd": "zstd",
		"zstd;q=0.5, gzip;q=0.8": "gzip", "GZIP ; q = 1": "gzip",
		"*;q=0.1, gzip": "gzip", "zstd;q=0, gzip": "gzip", "identity": "", "br": "", "gzip;q=0": "", "gzip;q=x": "",
		"": "",
	} {
		a := s.want(200, "GET", "/openapi.json", "", "Accept-Encoding", accept)
		expect.Equal(t, a.header.Get("Content-Encoding"), want, "Accept-Encoding", accept, "Content-Encoding")
		if want != "" && len(a.body) > len(plain.body)/3 {
			t.Errorf("Accept-Encoding: %s: %d bytes of %d", accept, len(a.body), len(plain.body))
		}
		expect.Equal(t, plainOf(t, a), plain.body, "Accept-Encoding", accept, "it becomes another document")
	}
	if a := s.want(200, "GET", "/v1/placements", "", "Accept-Encoding",
		"gzip"); a.header.Get("Content-Encoding") != "" {
		t.Errorf("a short answer is compressed: %v", a.header)
	}
}

// Decoders and encoders belong to one request at a time.
func TestCompressedAtOnce(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	document := s.want(200, "GET", "/openapi.json", "").body
	var callers sync.WaitGroup
	for caller := range 8 {
		coding, compress := "gzip", gzipped
		if caller%2 == 0 {
			coding, compress = "zstd", zstandard
		}
		callers.Go(func() {
			for i := range 10 {
				id := fmt.Sprintf("%d-%d", caller, i)
				body := compress(t, `{"decision_id":"`+id+`",`+items+`}`)
				if a := s.ask("POST", "/v1/placements/home/decisions", body, "Content-Encoding",
					coding); a.status != 201 || !strings.Contains(a.body, `"`+id+`"`) {
					t.Errorf("%s: %d %s", id, a.status, a.body)
				}
				expect.Equal(t, plainOf(t, s.ask("GET", "/openapi.json", "", "Accept-Encoding", coding)), document, id,
					"another document")
			}
		})
	}
	callers.Wait()
}

// Every compressed body is answered, within bounds.
func FuzzCompressed(f *testing.F) {
	s := started(f, func(o *server.Options, _ *engine.Options) { o.Limits.Body = 1 << 16 })
	s.want(201, "PUT", "/v1/placements/home", home)
	f.Add(true, []byte(gzipped(f, `{`+items+`}`)))
	f.Add(false, []byte(zstandard(f, `{`+items+`}`)))
	f.Add(false, []byte("\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, gzip bool, body []byte) {
		r := httptest.NewRequestWithContext(context.Background(), "POST",
			"http://localhost/v1/placements/home/decisions", bytes.NewReader(body))
		r.Header.Set("Content-Encoding", map[bool]string{true: "gzip", false: "zstd"}[gzip])
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
