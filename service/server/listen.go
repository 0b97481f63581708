package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"vitrine/internal/sockets"
	"vitrine/service/keys"
)

// Listen says where a server listens, and its timeouts. 0 stands for the default in parentheses.
type Listen struct {
	Address     string        // such as "127.0.0.1:8080"
	Health      string        // a second address for /healthz and /readyz, which callers cannot exhaust; or ""
	Certificate string        // a PEM file, read again when it changes; "" is no TLS
	Key         string        // the PEM file of the certificate's key
	Header      time.Duration // to read the header of a request (5 s)
	Read        time.Duration // to read a whole request (30 s)
	Write       time.Duration // from the header of a request to the end of its answer (60 s)
	Idle        time.Duration // to wait for the next request of a connection (2 m)
	Drain       time.Duration // for the requests in progress at shutdown (15 s)
	Maintain    time.Duration // between searches for expired decisions (1 s)

	Ready func(net.Addr) // if set, is called when requests are answered
}

func (l Listen) withDefaults() Listen {
	l.Header = cmp.Or(l.Header, 5*time.Second)
	l.Read = cmp.Or(l.Read, 30*time.Second)
	l.Write = cmp.Or(l.Write, time.Minute)
	l.Idle = cmp.Or(l.Idle, 2*time.Minute)
	l.Drain = cmp.Or(l.Drain, 15*time.Second)
	l.Maintain = cmp.Or(l.Maintain, time.Second)
	return l
}

// ErrOpen is returned if a server without keys would be reachable from other machines.
var ErrOpen = errors.New("without API keys the service listens only on loopback")

// MayListen returns [ErrOpen] if keys is nil and address is not a loopback address, and an error for an invalid
// address.
func MayListen(address string, keys *keys.Set) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("listening on %q: must be HOST:PORT, such as 127.0.0.1:8080", address)
	}
	if keys == nil && !sockets.IsLoopback(address) {
		return fmt.Errorf("listening on %q: %w", address, ErrOpen)
	}
	return nil
}

// Socket is a bound address. While no [Server.Serve] serves it, it answers every request but /healthz with 503, so that
// a caller sees that the service is starting, or opens its log again.
type Socket struct {
	listen      Listen
	at          net.Listener
	http        http.Server
	certificate *sockets.Certificate // nil without TLS
	health      *http.Server         // at Listen.Health; serves nobody without it
	process     string
	served      chan struct{} // closed when it accepts no more
	failure     error         // why

	mu     sync.RWMutex
	server *Server // nil unless it serves
}

// Bind binds the address and reads the certificate. It ignores Options.Engine. It returns [MayListen]'s errors, and
// errors of files and sockets. The caller closes the socket with Close. Serve closes it too, unless it pauses.
func Bind(ctx context.Context, l Listen, o Options) (*Socket, error) {
	l, o = l.withDefaults(), o.withDefaults()
	if err := MayListen(l.Address, o.Keys); err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", l.Address)
	if err != nil {
		return nil, err
	}
	limited := sockets.Limit(listener, o.Limits.Connections)
	listener = limited
	var certificate *sockets.Certificate
	if l.Certificate != "" || l.Key != "" {
		if certificate, err = sockets.OpenCertificate(l.Certificate, l.Key, o.Clock, o.Logger); err != nil {
			listener.Close()
			return nil, err
		}
		listener = certificate.Listener(listener)
	} else if !sockets.IsLoopback(l.Address) {
		o.Logger.Warn("API keys and decisions are sent without encryption: configure TLS, or use a proxy that has it", "address", l.Address)
	}
	s := &Socket{listen: l, at: listener, certificate: certificate, health: new(http.Server), process: rand.Text()[:8],
		served: make(chan struct{})}
	s.http = http.Server{
		Handler: http.HandlerFunc(s.answer), MaxHeaderBytes: sockets.MaxHeader,
		DisableGeneralOptionsHandler: true, // net/http's own answer leaves the connection open, see answer
		ReadHeaderTimeout:            l.Header, ReadTimeout: l.Read, WriteTimeout: l.Write, IdleTimeout: l.Idle,
		ConnState: limited.State,
		ErrorLog:  sockets.Errors(o.Logger),
	}
	if l.Health != "" {
		if err := s.bindHealth(ctx); err != nil {
			listener.Close()
			return nil, err
		}
	}
	go func() { s.failure = s.http.Serve(listener); close(s.served) }()
	return s, nil
}

// bindHealth serves /healthz and /readyz at their own address.
func (s *Socket) bindHealth(ctx context.Context) error {
	at, err := new(net.ListenConfig).Listen(ctx, "tcp", s.listen.Health)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz"} {
		mux.HandleFunc("GET "+path, s.answer)
	}
	s.health = &http.Server{
		Handler: mux, MaxHeaderBytes: sockets.MaxHeader, ReadHeaderTimeout: s.listen.Header, ReadTimeout: s.listen.Read,
		WriteTimeout: s.listen.Write, IdleTimeout: s.listen.Idle, ErrorLog: s.http.ErrorLog,
	}
	go func() { _ = s.health.Serve(at) }() // until it is closed
	return nil
}

// Addr returns the address of the socket.
func (s *Socket) Addr() net.Addr { return s.at.Addr() }

// Close closes the socket and frees its address. It waits until the requests in progress are answered, or cuts them off
// after Listen.Drain.
func (s *Socket) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.listen.Drain)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
		err = fmt.Errorf("requests that had no answer within %v were cut off: %w", s.listen.Drain, err)
	}
	err = errors.Join(err, s.health.Close())
	_ = s.at.Close() // http.Server closes it only after it began to accept
	return err
}

func (s *Socket) answer(w http.ResponseWriter, r *http.Request) {
	// net/http silently drops a Content-Length next to Transfer-Encoding, but a proxy may use the length, and so take the
	// bytes behind the body for part of it. They are never answered (RFC 9112, Section 6.1).
	if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
		w.Header().Set("Connection", "close")
	}
	if server := s.enter(); server != nil {
		defer server.answering.Done()
		server.ServeHTTP(w, r)
		return
	}
	c := &call{Request: r, w: recorder{ResponseWriter: w}, id: cmp.Or(callersID(r.Header, "X-Request-Id"), s.process)}
	w.Header().Set("X-Request-Id", c.id)
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Path == "/healthz" {
		_ = c.healthy()
		return
	}
	c.fail(problemf(http.StatusServiceUnavailable, "starting", "the service is opening its log: try again"))
}

// enter returns the server that serves the socket, which waits for the answer at its end, or nil.
func (s *Socket) enter() *Server {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.server != nil {
		s.server.answering.Add(1)
	}
	return s.server
}

// use makes a server answer the requests from now on. Without a server the socket answers 503.
func (s *Socket) use(server *Server) {
	s.mu.Lock()
	s.server = server
	s.mu.Unlock()
}

// Run is Bind and Serve.
func (s *Server) Run(ctx context.Context, l Listen) error {
	socket, err := Bind(ctx, l, s.options)
	if err != nil {
		return err
	}
	defer socket.Close()
	return s.Serve(ctx, socket)
}

// ErrPause is the cause of a context's end that leaves the socket open, because another server may serve it.
var ErrPause = errors.New("another server will serve the socket")

// Serve serves a socket until ctx ends or the engine stops, and waits for the requests in progress. Then it closes the
// socket, unless ctx ended with ErrPause or the engine stopped. It returns engine.ErrStopped or a socket's error.
func (s *Server) Serve(ctx context.Context, socket *Socket) error {
	l := socket.listen
	maintained := make(chan error, 1)
	maintaining, stop := context.WithCancel(ctx)
	defer stop()
	s.certificate = socket.certificate
	socket.use(s)
	go func() { maintained <- s.maintain(maintaining, l.Maintain) }()
	if l.Ready != nil {
		l.Ready(socket.Addr())
	}
	select {
	case <-socket.served:
		stop()
		return errors.Join(socket.failure, <-maintained)
	case err := <-maintained: // nil after ctx ended
		pauses := err != nil || errors.Is(context.Cause(ctx), ErrPause)
		return errors.Join(err, s.drain(socket, pauses))
	}
}

// drain ends first readiness, then the streams of events, and then the requests in progress. If it pauses, new requests
// get 503, and the socket stays open. Requests that take longer than Listen.Drain then find their engine closed.
func (s *Server) drain(socket *Socket, pauses bool) error {
	s.draining.Store(true)
	if s.feed != nil {
		s.feed.Close()
	}
	if !pauses {
		return socket.Close()
	}
	socket.use(nil)
	answered := make(chan struct{})
	go func() { s.answering.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-time.After(socket.listen.Drain):
		s.log.Warn("requests have no answer yet, and the log is opened again", "after", socket.listen.Drain.String())
	}
	return nil
}
