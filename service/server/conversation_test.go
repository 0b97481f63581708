package server_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	gocmp "github.com/google/go-cmp/cmp"

	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/server"
	"vitrine/service/shoppers"
)

var rewrite = flag.Bool("rewrite", false, "record the answers in testdata/conversation again, then read the diff")

// A conversation is a file of testdata/conversation. A line that begins with
//
//	#    is a comment
//	!    changes the surroundings: "advance 31m" moves the service's clock, "expire" ends waits that are over, and
//	     "keep home" keeps a version and "exchange" ends relearnings. Before the first request "body 300" and "rate 2" set limits, and
//	     "key NAME SCOPES PLACEMENTS" adds a key whose token is NAME
//	>>>  begins a request: method and path; headers; an empty line; the body
//	<<<  begins its answer: status and media type; headers; an empty line; the body
//
// After each request, and after "expire", the learners learn. A long JSON answer puts each member on a line of its own.
// Random ids, latencies and bytes of memory are replaced; bodies of pages, metrics and the OpenAPI document are left
// out.
type conversation struct {
	*service
	settings []string
	steps    []step
	listener chan string // of /v1/events, which is answered at the end
}

// step is a line of a conversation that is kept as it stands, or a request with its answer.
type step struct {
	line   string
	head   []string // of the request: method, path and headers
	body   string
	answer string // as recorded
}

func parseConversation(t testing.TB, text string) (c *conversation) {
	t.Helper()
	c = &conversation{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	begins := func(i int) bool {
		return i == len(lines) || strings.HasPrefix(lines[i], "# ") || strings.HasPrefix(lines[i], "! ") ||
			strings.HasPrefix(lines[i], ">>> ") || strings.HasPrefix(lines[i], "<<< ")
	}
	part := func(i int) (text string, next int) {
		from := i
		for i++; !begins(i); i++ {
		}
		return strings.TrimRight(strings.Join(lines[from:i], "\n"), "\n"), i
	}
	asked := false
	for i := 0; i < len(lines); {
		var text string
		switch line := lines[i]; {
		case strings.HasPrefix(line, ">>> "):
			asked = true
			text, i = part(i)
			head, body, _ := strings.Cut(strings.TrimPrefix(text, ">>> "), "\n\n")
			s := step{head: strings.Split(head, "\n"), body: body}
			if i < len(lines) && strings.HasPrefix(lines[i], "<<< ") {
				s.answer, i = part(i)
			}
			c.steps = append(c.steps, s)
		default:
			if strings.HasPrefix(line, "! ") && !asked {
				c.settings = append(c.settings, strings.TrimPrefix(line, "! "))
			}
			c.steps = append(c.steps, step{line: line})
			i++
		}
	}
	return c
}

// start starts the service that the settings describe.
func (c *conversation) start(t testing.TB) {
	var file string
	var limits server.Limits
	for _, s := range c.settings {
		words := strings.Fields(s)
		switch words[0] {
		case "body":
			limits.Body, _ = strconv.ParseInt(words[1], 10, 64)
		case "rate":
			limits.Rate, _ = strconv.ParseFloat(words[1], 64)
		case "key":
			key := keys.Key{Name: words[1], SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(words[1]))),
				Scopes: strings.Split(words[2], ",")}
			key.Placements = words[3:]
			if len(key.Placements) == 0 {
				key.Placements = nil
			}
			file += key.Table()
		}
	}
	c.service = started(t, func(o *server.Options, e *engine.Options) {
		people := fatal.Or(shoppers.Open(filepath.Join(t.TempDir(), "shoppers")))(t)
		t.Cleanup(func() { _ = people.Close() })
		e.Shoppers = people
		n := 0 // requests come one at a time
		e.NewID = func() string { n++; return fmt.Sprint("made-", n) }
		o.Limits = limits
		if file == "" {
			return
		}
		path := filepath.Join(t.TempDir(), "keys.toml")
		write(t, path, file)
		var err error
		if o.Keys, err = keys.Open(path, o.Clock, o.Logger); err != nil {
			t.Fatal(err)
		}
	})
}

// do moves what is around the service.
func (c *conversation) do(line string) {
	c.Helper()
	words := strings.Fields(strings.TrimPrefix(line, "! "))
	var err error
	switch ctx, now := c.Context(), c.clock.now().UnixNano(); words[0] {
	case "advance":
		var d time.Duration
		d, err = time.ParseDuration(words[1])
		c.clock.advance(d)
	case "expire":
		if _, err = c.engine.Expire(ctx, now); err == nil {
			err = c.engine.Wait(ctx)
		}
	case "exchange":
		_, _, err = c.engine.Exchange(ctx, now)
	case "keep":
		_, err = c.engine.Keep(ctx, words[1], "", now)
	case "body", "rate", "key": // settings
	default:
		err = fmt.Errorf("there is no %q", words[0])
	}
	if err != nil {
		c.Fatalf("%s: %v", line, err)
	}
}

// play asks, and returns the answer as it is recorded.
func (c *conversation) play(s step) string {
	c.Helper()
	method, path, _ := strings.Cut(s.head[0], " ")
	ctx, cancel := context.WithCancel(c.Context())
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(s.body))
	for _, h := range s.head[1:] {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Add(name, value); name == "Host" {
			r.Host = value
		}
	}
	w := httptest.NewRecorder()
	if strings.HasPrefix(path, "/v1/events") {
		wait := make(chan string)
		begun := &flushed{w, make(chan struct{}, 1)}
		go func() {
			defer close(wait)
			c.ServeHTTP(begun, r)
			begun.Flush() // if it was refused
			wait <- c.recorded(path, w)
		}()
		<-begun.first
		if w.Code == 200 { // it listens until the end
			c.listener = wait
			c.Cleanup(cancel)
			return ""
		}
		defer cancel()
		return <-wait
	}
	defer cancel()
	c.ServeHTTP(w, r)
	return c.recorded(path, w)
}

// flushed tells when an answer began.
type flushed struct {
	*httptest.ResponseRecorder
	first chan struct{}
}

func (f *flushed) Flush() {
	select {
	case f.first <- struct{}{}:
	default:
	}
}

var (
	drawn      = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	memory     = regexp.MustCompile(`("open":\d+,\s*"memory_bytes":|must be at least )\d{3,}`)
	latency    = regexp.MustCompile(`("p\d\d_seconds":)[^,}]+`)
	notWritten = regexp.MustCompile(`^/($|docs$|metrics$|openapi\.json$|v1/policies$|desk/)`) // the desk changes with every build
)

// recorded returns an answer as it is recorded.
func (c *conversation) recorded(path string, w *httptest.ResponseRecorder) string {
	h := w.Result().Header
	text := strings.TrimSpace(fmt.Sprintf("<<< %d %s", w.Code, h.Get("Content-Type")))
	unwritten := w.Code == 200 && notWritten.MatchString(path)
	for _, name := range []string{"Allow", "ETag", "Retry-After", "Vitrine-Entry", "WWW-Authenticate"} {
		if unwritten && name == "ETag" {
			continue
		}
		for _, v := range h.Values(name) {
			text += "\n" + name + ": " + v
		}
	}
	body := w.Body.String()
	switch {
	case unwritten:
		body = ""
	case strings.HasSuffix(h.Get("Content-Type"), "json"):
		if !jsontext.Value(body).IsValid() {
			c.Errorf("%s: not JSON: %s", path, body)
		}
		body = latency.ReplaceAllString(memory.ReplaceAllString(laid(body), "${1}0"), "${1}0")
	}
	if id := h.Get("X-Request-Id"); id != "" {
		body = strings.ReplaceAll(body, id, "ID")
	}
	if body = strings.TrimRight(drawn.ReplaceAllString(body, "UUID"), "\n"); body != "" {
		text += "\n\n" + body
	}
	return text
}

// laid puts the members of a long object on lines of their own, and changes nothing else.
func laid(object string) string {
	if len(object) <= 160 || object[0] != '{' {
		return object
	}
	var b strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(object); i++ {
		ch := object[i]
		b.WriteByte(ch)
		switch {
		case quoted && ch == '\\':
			i++
			b.WriteByte(object[i])
		case ch == '"':
			quoted = !quoted
		case quoted:
		case ch == '{' || ch == '[':
			depth++
		case ch == '}' || ch == ']':
			depth--
		case ch == ',' && depth == 1:
			b.WriteByte('\n')
		}
	}
	return b.String()
}

var decimal = regexp.MustCompile(`-?\d+\.\d+(e[-+]\d+)?`)

// alike reports whether two recorded answers are the same up to the order of members in JSON, and to the last digits
// of decimal numbers, in which the vector code of machines differs.
func alike(a, b string) bool {
	a, b = ordered(a), ordered(b)
	if decimal.ReplaceAllString(a, "0") != decimal.ReplaceAllString(b, "0") {
		return false
	}
	in, of := decimal.FindAllString(b, -1), decimal.FindAllString(a, -1)
	if len(in) != len(of) { // 0.2 is now 0
		return false
	}
	for i, text := range of {
		x, _ := strconv.ParseFloat(text, 64)
		y, _ := strconv.ParseFloat(in[i], 64)
		if math.Abs(x-y) > 1e-9*max(1, math.Abs(x)) {
			return false
		}
	}
	return true
}

// ordered returns an answer with the members of its JSON in order.
func ordered(answer string) string {
	head, body, _ := strings.Cut(answer, "\n\n")
	var b strings.Builder
	for _, part := range strings.SplitAfter(body, "\ndata: ") { // of a stream of events, or all
		end := strings.LastIndexByte(part, '}') + 1
		v := jsontext.Value(part[:end])
		if v.Canonicalize() == nil {
			part = string(v) + part[end:]
		}
		b.WriteString(part)
	}
	return head + "\n\n" + b.String()
}

// The service answers as it did when the conversations were recorded.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversation/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	routes := map[string]map[bool]bool{} // asked, by whether it answered well
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := fatal.Or(os.ReadFile(file))(t)
			c := parseConversation(t, string(text))
			c.start(t)
			listening := -1
			for i := range c.steps {
				s := &c.steps[i]
				if s.head == nil {
					if strings.HasPrefix(s.line, "! ") {
						c.do(s.line)
					}
					continue
				}
				got := c.play(*s)
				fatal.If(t, c.engine.Wait(t.Context()))
				if got == "" {
					listening = i
					continue
				}
				c.compare(s, got)
				asked(routes, c.service, s.head[0], got)
			}
			if listening >= 0 {
				c.feed.Close()
				c.compare(&c.steps[listening], <-c.listener)
				asked(routes, c.service, c.steps[listening].head[0], "<<< 2")
			}
			if *rewrite {
				write(t, file, c.text())
			}
		})
	}
	s := started(t, nil)
	for _, r := range s.Routes() {
		name := r.Method + " " + r.Path
		if !routes[name][true] || r.Documented && !routes[name][false] {
			t.Errorf("%s: the conversations ask it well: %v, and badly: %v", name, routes[name][true],
				routes[name][false])
		}
	}
}

// asked notes which route was asked.
func asked(routes map[string]map[bool]bool, s *service, request, answer string) {
	method, path, _ := strings.Cut(request, " ")
	path, _, _ = strings.Cut(path, "?")
	steps := strings.Split(path, "/")
	for _, r := range s.Routes() {
		of := strings.Split(strings.TrimSuffix(r.Path, "{$}"), "/")
		fits := slices.EqualFunc(of, steps, func(of, step string) bool {
			return of == step || strings.HasPrefix(of, "{") && step != ""
		})
		if r.Method == method && fits {
			name := r.Method + " " + r.Path
			if routes[name] == nil {
				routes[name] = map[bool]bool{}
			}
			routes[name][strings.HasPrefix(answer, "<<< 2")] = true
		}
	}
}

func (c *conversation) compare(s *step, got string) {
	c.Helper()
	if !*rewrite && !alike(got, s.answer) {
		c.Errorf("%s\n%s\nthe answer has changed; where that is meant run the test with -rewrite and read the "+
			"diff\n-recorded +got:\n%s",
			s.head[0], s.body, gocmp.Diff(strings.Split(s.answer, "\n"), strings.Split(got, "\n")))
	}
	if !alike(got, s.answer) {
		s.answer = got
	}
}

// text returns the conversation in its file format.
func (c *conversation) text() string {
	var b bytes.Buffer
	for _, s := range c.steps {
		if s.head == nil {
			fmt.Fprintln(&b, s.line)
			continue
		}
		fmt.Fprintf(&b, ">>> %s\n", strings.Join(s.head, "\n"))
		if s.body != "" {
			fmt.Fprintf(&b, "\n%s\n", s.body)
		}
		fmt.Fprintf(&b, "\n%s\n\n", cmp.Or(s.answer, "<<<"))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
