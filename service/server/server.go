package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"vitrine/internal/hint"
	"vitrine/service/alert"
	"vitrine/service/budget"
	"vitrine/service/catalogue"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/personalizer"
)

// Options configure a server. Only the engine is required.
type Options struct {
	Engine  *decision.Engine
	Clock   func() time.Time // nil is time.Now
	Log     eventlog.Bounded // whose extent is in /metrics; may be nil
	Epoch   func() uint64    // of the log's writer; may be nil
	Appends *Appends         // to the log, for /metrics; may be nil

	Reopened    func() int64         // how often the log was opened again, for /metrics; may be nil
	SnapshotAge func() time.Duration // the age of the last snapshot, for /metrics; may be nil
	ClockSkew   func() time.Duration // how far the time of day is ahead of Clock, for /metrics; may be nil

	// Export, if set, writes the decisions of a placement that are in the log.
	Export func(ctx context.Context, w io.Writer, placement string) error

	// Forward passes a caller's request, in the form of HTTP/1.1, on to the leader while the engine follows, and returns the
	// answer of the leader's Forwarded. Nil forwards nothing.
	Forward func(ctx context.Context, request []byte) (answer []byte, err error)

	Keys   *Keys // nil asks for no key, which is only for loopback
	Feed   *Feed // the engine must call its Applied; nil means there is no /v1/events
	Limits Limits
	Budget *budget.Budget // from which requests take their memory; nil has no limit

	Personalizer bool // whether the first Rank creates its placement, without a key of the scope admin

	Proxies Proxies
	Alerts  *alert.Sender // nil sends none

	Origins []string // whose pages may call the service from a browser; see CheckOrigin

	Tracer trace.Tracer // of requests; nil traces nothing

	Demo http.Handler // answers below /demo/, and its page is part of the desk; nil for a service without a demonstration

	Logger  *slog.Logger // nil discards
	Version string       // in the OpenAPI document
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limits = o.Limits.withDefaults()
	return o
}

// Server is the http.Handler of the API. It is safe for concurrent use.
type Server struct {
	options    Options
	engine     *decision.Engine
	early      early
	clock      func() time.Time
	keys       *Keys
	sessions   sessions
	exports    exports
	feed       *Feed
	limits     Limits
	rates      rates
	works      works
	inProgress semaphore
	log        *slog.Logger
	metrics    *metrics
	heartbeat  time.Duration // the longest silence of a stream
	document   []byte        // OpenAPI

	origin   *http.CrossOriginProtection
	handler  http.HandlerFunc
	process  string // the prefix of this process's request ids
	requests atomic.Uint64
	draining atomic.Bool
}

// New returns a server. It panics without an engine, or if an origin is invalid.
func New(o Options) *Server {
	if o.Engine == nil {
		panic("server: New needs an engine")
	}
	o = o.withDefaults()
	s := &Server{
		options: o, engine: o.Engine, early: newEarly(o.Engine), clock: o.Clock, keys: o.Keys, feed: o.Feed, limits: o.Limits, log: o.Logger,
		origin: http.NewCrossOriginProtection(), process: rand.Text()[:8], heartbeat: heartbeat,
	}
	for _, origin := range o.Origins {
		if err := errors.Join(CheckOrigin(origin), s.origin.AddTrustedOrigin(origin)); err != nil {
			panic(fmt.Sprintf("server: %v", err))
		}
	}
	s.rates = newRates(s.limits)
	s.metrics = newMetrics(o, s.inProgress.count)
	routes := s.routes()
	s.document = document(routes, o.Version)
	mux := http.NewServeMux()
	for i := range routes {
		mux.HandleFunc(routes[i].method+" "+routes[i].path, s.pass(&routes[i]))
	}
	mux.HandleFunc("/", s.pass(&route{path: "/", handle: s.unknown(mux), free: true}))
	nowhere := s.pass(&route{path: "/", handle: (*call).nowhere, free: true})
	s.handler = func(w http.ResponseWriter, r *http.Request) {
		if at := r.URL.EscapedPath(); at == "" || at[0] != '/' || path.Clean(at) != at { // the mux would redirect
			nowhere(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handler(w, personalizer.Canonical(r))
}

// call is a request in progress.
type call struct {
	*http.Request
	ctx     context.Context // the request's, with a deadline and its span
	w       recorder
	server  *Server
	now     int64 // the time of arrival, Unix nanoseconds
	id      string
	key     string // the name of the caller's key
	buffer  *bytes.Buffer
	taken   [2]int64          // of the budget, by purpose
	problem *problem          // that it was answered with
	trace   trace.SpanContext // of its span, or of the caller's; may be invalid
	span    trace.Span        // nil without a tracer
	entry   uint64            // of the log, the last one that has the call's change; 0 for none

	contract *personalizer.Route // the route's

	keySum     [sha256.Size]byte // the hash of the key's token
	signedIn   bool              // whether the key is that of a session
	placements []string          // the placements that the key is limited to; nil is all
}

// Context returns the context of the call, in place of that of its request: another request with it would be a copy.
func (c *call) Context() context.Context { return c.ctx }

// Now returns when the request came, Unix nanoseconds.
func (c *call) Now() int64 { return c.now }

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pass wraps the handler of a route with what all requests have in common.
func (s *Server) pass(rt *route) http.HandlerFunc {
	series := s.metrics.series(rt)
	return func(w http.ResponseWriter, r *http.Request) {
		start := s.clock()
		c := &call{
			Request: r, ctx: r.Context(), server: s, w: recorder{ResponseWriter: w}, now: start.UnixNano(), contract: rt.contract, id: s.idOf(r),
		}
		h := w.Header()
		h["X-Request-Id"] = []string{c.id}
		h["X-Content-Type-Options"] = noSniff
		if id := callersID(r.Header, personalizer.RequestHeader); id != "" {
			h[personalizer.RequestHeader] = []string{id}
		}
		s.crossOrigin(c)
		s.beginTrace(c, rt)
		if err := s.do(c, rt); err != nil {
			c.fail(err)
		}
		took := s.clock().Sub(start)
		series.observe(c, took)
		s.logCall(c, rt, took)
		s.endTrace(c)
		c.release()
	}
}

// do answers a request, or returns the error to answer with.
func (s *Server) do(c *call, rt *route) (err error) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			err = fmt.Errorf("%w: %v", errPanic, v)
			s.log.Error("panic", "request_id", c.id, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	if err := s.checkOrigin(c); err != nil {
		return err
	}
	if err := s.authorize(c, rt.scope); err != nil {
		return err
	}
	if !rt.free {
		leave, err := s.enter(c)
		if err != nil {
			return err
		}
		defer leave()
	}
	if err := s.confine(c, rt); err != nil {
		return err
	}
	if !rt.stream {
		ctx, cancel := context.WithTimeout(c.Context(), s.limits.Answer)
		defer cancel()
		c.ctx = catalogue.WithWork(ctx, s.works.of(c.key))
	}
	if id := c.PathValue("id"); id != "" && c.PathValue("name") == "" && rt.contract == nil && c.placements != nil { // before anything reveals that it exists
		if _, err := c.placementOf(id); err != nil {
			return err
		}
	}
	if rt.stream {
		return rt.handle(c)
	}
	if rt.writes() {
		if err := s.engine.Confirm(c.ctx); err != nil {
			return err
		}
		c.ctx = decision.WithEntry(c.ctx, &c.entry)
	}
	if rt.reads() {
		if err := s.awaitEntry(c); err != nil {
			return err
		}
	}
	if err := s.seek(c, rt); err != nil {
		return err
	}
	if s.isLeaders(c, rt) {
		return s.forward(c)
	}
	return rt.handle(c)
}

// logCall logs a request. It logs the pattern of the route and not the path, so that the log quotes no
// caller.
func (s *Server) logCall(c *call, rt *route, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case c.w.status >= 500:
		level = slog.LevelError
	case c.w.status >= 400:
		level = slog.LevelInfo
	}
	if !s.log.Enabled(c.Context(), level) {
		return
	}
	attributes := []slog.Attr{
		slog.String("request_id", c.id), slog.String("method", rt.method), slog.String("route", rt.path), slog.Int("status", c.w.status),
		slog.Float64("seconds", took.Seconds()), slog.String("key", c.key), slog.String("remote", s.options.Proxies.caller(c.Request).String()),
	}
	attributes = append(attributes, c.traceAttributes()...)
	if c.problem != nil {
		attributes = append(attributes, slog.String("problem", c.problem.Type))
		if c.problem.cause != "" {
			attributes = append(attributes, slog.String("cause", c.problem.cause))
		}
	}
	s.log.LogAttrs(c.Context(), level, "request", attributes...)
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// maxKept limits the size of a buffer that is kept for reuse, in bytes.
const maxKept = 1 << 20

// scratch returns the call's buffer, emptied. It is valid until the call is answered.
func (c *call) scratch() *bytes.Buffer {
	if c.buffer == nil {
		c.buffer = buffers.Get().(*bytes.Buffer)
	}
	c.buffer.Reset()
	return c.buffer
}

func (c *call) release() {
	c.keep(budget.Body, 0)
	c.keep(budget.Work, 0)
	if c.buffer != nil && c.buffer.Cap() <= maxKept {
		buffers.Put(c.buffer)
	}
}

// body reads the body, which is valid until the next call of scratch.
func (c *call) body() ([]byte, error) {
	coding, err := c.coding()
	if err != nil {
		return nil, err
	}
	limit := c.server.limits.Body
	if c.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	size := c.ContentLength
	if size < 0 || coding != "" { // unknown
		size = limit
	}
	if coding == asZstd {
		size += maxWindow
	}
	if err := c.take(budget.Body, size); err != nil {
		return nil, err
	}
	b := c.scratch()
	body := io.Reader(http.MaxBytesReader(&c.w, c.Request.Body, limit))
	if coding != "" {
		decoding, done := decoded(coding, body)
		defer done()
		body = io.LimitReader(decoding, limit+1)
	} else if size := c.ContentLength; size > 0 {
		b.Grow(int(size) + bytes.MinRead)
	}
	_, err = b.ReadFrom(body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge(limit)
	case int64(b.Len()) > limit:
		return nil, problemf(http.StatusRequestEntityTooLarge, "too-large", "the body has more than %d bytes when it is decompressed", limit)
	case errors.Is(err, errCoding):
		return nil, problemf(http.StatusBadRequest, "body", "the body is not %s, which its Content-Encoding says", coding)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, problemf(http.StatusRequestTimeout, "slow", "the body did not arrive in time")
	case err == io.ErrUnexpectedEOF:
		return nil, problemf(http.StatusBadRequest, "body", "the body ends before its Content-Length")
	case err != nil:
		return nil, problemf(http.StatusBadRequest, "body", "the body cannot be read")
	}
	c.keep(budget.Body, int64(b.Len()))
	return b.Bytes(), nil
}

// jsonBody is body for a body that must be JSON.
func (c *call) jsonBody() ([]byte, error) {
	if _, err := c.mediaType(asJSON); err != nil {
		return nil, err
	}
	return c.body()
}

func tooLarge(limit int64) error {
	return problemf(http.StatusRequestEntityTooLarge, "too-large", "the body has more than %d bytes", limit)
}

// The types of bodies.
const (
	asJSON = "application/json"
	asForm = "application/x-www-form-urlencoded" // which curl -d sends, also with JSON
)

// mediaType returns the type of the body, which must be one of legal.
func (c *call) mediaType(legal ...string) (string, error) {
	given := c.Header.Get("Content-Type")
	if given == "" || given == asForm {
		return asJSON, nil
	}
	if slices.Contains(legal, given) {
		return given, nil
	}
	t, _, err := mime.ParseMediaType(given)
	for _, l := range legal {
		if err == nil && t == l {
			return t, nil
		}
	}
	return "", problemf(http.StatusUnsupportedMediaType, "media-type", "the Content-Type must be %s", hint.List(legal))
}

// answer sends a body, compressed if the caller likes that and it is long.
func (c *call) answer(status int, mediaType string, body []byte) error {
	h := c.w.Header()
	h["Content-Type"] = []string{mediaType}
	if len(body) >= minCompressed {
		h.Add("Vary", "Accept-Encoding")
		if coding := accepted(c.Header); coding != "" {
			h["Content-Encoding"] = []string{coding}
			body = encoded(coding, body)
		}
	}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	if h["Cache-Control"] == nil {
		h["Cache-Control"] = noStore
	}
	c.nameEntry(status)
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // fails only if the caller has gone
	return nil
}

// Headers that are the same in every answer, in the canonical form of http.Header.
var (
	noStore = []string{"no-store"}
	noSniff = []string{"nosniff"}
)
