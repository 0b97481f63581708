package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"vitrine/internal/sockets"
	"vitrine/service/alert"
	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/feed"
	"vitrine/service/keys"
	"vitrine/service/metrics"
	"vitrine/service/personalizer"
)

// Options configure a server. Only the engine is required.
type Options struct {
	Engine  *engine.Engine
	Clock   func() time.Time // nil is time.Now
	Log     eventlog.Log     // its extent is in /metrics; may be nil
	Epoch   func() uint64    // of the log's writer; may be nil
	Appends *metrics.Appends // to the log, for /metrics; may be nil

	Unreached     func() time.Duration // how long ago the log's servers took a write, if this process writes; may be nil
	Reopened      func() int64         // how often the log was opened again, for /metrics; may be nil
	SnapshotAge   func() time.Duration // the age of the last snapshot, for /metrics; may be nil
	SnapshotEvery time.Duration        // how often there should be one
	ClockSkew     func() time.Duration // how far the time of day is ahead of Clock, for /metrics; may be nil

	Problems func() []alert.Problem // of the process; may be nil

	// Export, if set, writes the decisions of a placement that are in the log.
	Export func(ctx context.Context, w io.Writer, placement string) error

	// Forward passes a caller's request, as HTTP/1.1, on to the leader while the engine follows, and returns the answer
	// of the leader's Forwarded. Nil is allowed.
	Forward func(ctx context.Context, request []byte) (answer []byte, err error)

	Keys   *keys.Set  // nil asks for no key, which is only for loopback
	Feed   *feed.Feed // the engine must call its Applied; nil means there is no /v1/events
	Limits Limits
	Budget *budget.Budget // the requests' memory; nil is unlimited

	Personalizer bool // whether the first Rank creates its placement, without a key of the scope admin

	Proxies sockets.Proxies
	Alerts  *alert.Sender // or nil

	Origins []string // pages of these origins may call the service from a browser; see CheckOrigin

	Tracer trace.Tracer // traces requests, or nil

	Demo []api.Route // below /demo/, and its page is part of the desk; nil for a service without a demonstration

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
	options     Options
	engine      *engine.Engine
	troubles    alert.Beginnings
	inTrouble   atomic.Pointer[map[string]bool] // by placement, by the latest observe; nil before
	clock       func() time.Time
	keys        *keys.Set
	certificate *sockets.Certificate // set by Serve; nil without TLS
	sessions    sessions
	feed        *feed.Feed
	limits      Limits
	accounts    accounts
	requests    budget.Places // without probes, pages and streams
	exports     budget.Places
	listeners   budget.Places
	turns       budget.Turns // of calls that compute for long, and of listeners that read the log
	searches    budget.Turns // of the log
	log         *slog.Logger
	metrics     *requestMetrics
	heartbeat   time.Duration // the longest silence of a stream
	document    func() []byte // OpenAPI

	origin    *http.CrossOriginProtection
	handler   http.HandlerFunc
	process   string        // the prefix of this process's request ids
	asked     atomic.Uint64 // requests without an id of their own
	draining  atomic.Bool
	answering sync.WaitGroup // requests of its socket
}

// New returns a server. It panics without an engine, or if an origin is invalid.
func New(o Options) *Server {
	if o.Engine == nil {
		panic("server: New needs an engine")
	}
	o = o.withDefaults()
	s := &Server{
		options: o, engine: o.Engine, clock: o.Clock, keys: o.Keys, feed: o.Feed, limits: o.Limits, log: o.Logger,
		origin: http.NewCrossOriginProtection(), process: rand.Text()[:8], heartbeat: heartbeat,
	}
	for _, origin := range o.Origins {
		if err := errors.Join(CheckOrigin(origin), s.origin.AddTrustedOrigin(origin)); err != nil {
			panic(fmt.Sprintf("server: %v", err))
		}
	}
	s.accounts.limits = s.limits
	s.requests.What, s.exports.What, s.listeners.What = "requests", "exports", "listeners"
	s.metrics = newMetrics(o, s.requests.Taken, s.ownProblems)
	routes := s.routes()
	s.document = sync.OnceValue(func() []byte { return document(routes, o.Version) })
	mux := http.NewServeMux()
	for _, rt := range routes {
		mux.HandleFunc(rt.method+" "+rt.path, s.serve(rt))
	}
	other := func(h handler) http.HandlerFunc {
		rt := &route{path: "/"}
		rt.handle = rt.within(s, public, h)
		return s.serve(rt)
	}
	mux.HandleFunc("/", other(s.unknown(mux)))
	lost := other(nowhere)
	s.handler = func(w http.ResponseWriter, r *http.Request) {
		if at := r.URL.EscapedPath(); at == "" || at[0] != '/' || path.Clean(at) != at { // the mux would redirect
			lost(w, r)
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

// serve returns a route's http.Handler. A call passes the route's wrappers and its handler; then it is counted, logged
// and traced.
func (s *Server) serve(rt *route) http.HandlerFunc {
	series := s.metrics.series(rt)
	return func(w http.ResponseWriter, r *http.Request) {
		start := s.clock()
		c := &call{Request: r, ctx: r.Context(), server: s, w: recorder{ResponseWriter: w}, now: start.UnixNano(),
			contract: rt.contract, id: s.idOf(r)}
		h := w.Header()
		h["X-Request-Id"] = []string{c.id}
		h["X-Content-Type-Options"] = noSniff
		h["Cache-Control"] = noStore
		if id := callersID(r.Header, personalizer.RequestHeader); id != "" {
			h[personalizer.RequestHeader] = []string{id}
		}
		s.crossOrigin(c)
		s.beginTrace(c, rt)
		if err := s.protected(c, rt.handle); err != nil {
			c.fail(err)
		}
		took := s.clock().Sub(start)
		series.observe(c, took)
		s.logCall(c, rt, took)
		c.endTrace()
		c.release()
	}
}

// protected turns a panic of a handler into an error, except the one that gives up the connection.
func (s *Server) protected(c *call, h handler) (err error) {
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
	return h(c)
}

// logCall logs a request. It logs the pattern of the route and not the path, so that the log quotes no
// caller.
func (s *Server) logCall(c *call, rt *route, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case c.problem != nil && c.problem.Kind() == "busy": // or one caller fills the output
		level = slog.LevelInfo
	case c.w.status >= 500:
		level = slog.LevelError
	case c.w.status >= 400:
		level = slog.LevelInfo
	}
	if !s.log.Enabled(c.ctx, level) {
		return
	}
	attributes := []slog.Attr{
		slog.String("request_id", c.id), slog.String("method", rt.method), slog.String("route", rt.path),
		slog.Int("status", c.w.status),
		slog.Float64("seconds", took.Seconds()), slog.String("key", c.key.Name),
	}
	if at := s.options.Proxies.Caller(c.Request); at.IsValid() { // a follower logs the address of a call that it passes on
		attributes = append(attributes, slog.String("remote", at.String()))
	}
	attributes = append(attributes, c.traceAttributes()...)
	if c.problem != nil {
		attributes = append(attributes, slog.String("problem", c.problem.Type))
		if c.problem.cause != "" {
			attributes = append(attributes, slog.String("cause", c.problem.cause))
		}
	}
	s.log.LogAttrs(c.ctx, level, "request", attributes...)
}
