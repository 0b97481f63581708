package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Listen says where a server listens, and for how long it waits. 0 is the value in
// parentheses.
type Listen struct {
	Address     string        // "127.0.0.1:8080"
	Health      string        // where /healthz and /readyz are as well, apart from callers and their connections; "" is nowhere
	Certificate string        // PEM files of TLS, read again when they change; "" is no TLS
	Key         string        //
	Header      time.Duration // for the header of a request (5 s)
	Read        time.Duration // for all of it (30 s)
	Write       time.Duration // from the header of a request to the end of its answer (60 s)
	Idle        time.Duration // for the next request of a connection (2 m)
	Drain       time.Duration // for the requests under way at the end (15 s)
	Maintain    time.Duration // between looks for decisions whose window is over (1 s)

	Ready func(net.Addr) // told once connections are taken
}

const largestHeader = 16 << 10

func (l Listen) withDefaults() Listen {
	for _, d := range []struct {
		of *time.Duration
		to time.Duration
	}{
		{&l.Header, 5 * time.Second}, {&l.Read, 30 * time.Second}, {&l.Write, time.Minute}, {&l.Idle, 2 * time.Minute},
		{&l.Drain, 15 * time.Second}, {&l.Maintain, time.Second},
	} {
		if *d.of == 0 {
			*d.of = d.to
		}
	}
	return l
}

// ErrOpen is of a server that would be open to others without asking for keys.
var ErrOpen = errors.New("without API keys the service listens on loopback alone")

// MayListen reports ErrOpen for an address that others reach, without keys.
func MayListen(address string, keys *Keys) error {
	if keys == nil && !isLoopback(address) {
		return fmt.Errorf("listening on %q: %w", address, ErrOpen)
	}
	return nil
}

// Socket is where a server will answer. Until it does, while it reads its log, requests are
// answered with 503, but for /healthz.
type Socket struct {
	listen  Listen
	at      net.Listener
	http    http.Server
	health  *http.Server           // nil without an address of its own
	server  atomic.Pointer[Server] // nil until it answers
	process string
	served  chan error
}

// Bind takes the address, and reads the certificate. Of the options it needs those that are not of an engine. Errors are ErrOpen and those
// of files and sockets. The socket is closed by Close, or at the end of Serve.
func Bind(ctx context.Context, l Listen, o Options) (*Socket, error) {
	l, o = l.withDefaults(), o.withDefaults()
	if err := MayListen(l.Address, o.Keys); err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", l.Address)
	if err != nil {
		return nil, err
	}
	limited := limitConnections(listener, o.Limits.Connections)
	listener = limited
	if l.Certificate != "" || l.Key != "" {
		if listener, err = withTLS(listener, l, o); err != nil {
			return nil, err
		}
	} else if !isLoopback(l.Address) {
		o.Logger.Warn("API keys and decisions travel without encryption: configure TLS here, or a proxy that has it", "address", l.Address)
	}
	s := &Socket{listen: l, at: listener, process: rand.Text()[:8], served: make(chan error, 1)}
	s.http = http.Server{
		Handler: http.HandlerFunc(s.answer), MaxHeaderBytes: largestHeader,
		ReadHeaderTimeout: l.Header, ReadTimeout: l.Read, WriteTimeout: l.Write, IdleTimeout: l.Idle, ConnState: limited.state,
		ErrorLog: log.New(connections{o.Logger}, "", 0),
	}
	if l.Health != "" {
		if err := s.bindHealth(ctx); err != nil {
			listener.Close()
			return nil, err
		}
	}
	go func() { s.served <- s.http.Serve(listener) }()
	return s, nil
}

// bindHealth answers /healthz and /readyz at an address of their own.
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
		Handler: mux, MaxHeaderBytes: largestHeader, ReadHeaderTimeout: s.listen.Header, ReadTimeout: s.listen.Read, WriteTimeout: s.listen.Write,
		IdleTimeout: s.listen.Idle, ErrorLog: s.http.ErrorLog,
	}
	go func() { _ = s.health.Serve(at) }() // until it is closed
	return nil
}

// Addr returns where the socket is.
func (s *Socket) Addr() net.Addr { return s.at.Addr() }

// Close ends a socket, where Serve has not. The address is free then.
func (s *Socket) Close() error {
	err := s.http.Close()
	if s.health != nil {
		err = errors.Join(err, s.health.Close())
	}
	_ = s.at.Close() // which the goroutine that accepts may not have come to
	return err
}

func (s *Socket) answer(w http.ResponseWriter, r *http.Request) {
	if server := s.server.Load(); server != nil {
		server.ServeHTTP(w, r)
		return
	}
	c := &call{Request: r, w: recorder{ResponseWriter: w}, id: s.process}
	w.Header().Set("X-Request-Id", c.id)
	if r.URL.Path == "/healthz" {
		_ = c.healthy()
		return
	}
	c.fail(problemf(http.StatusServiceUnavailable, "starting", "the service reads its log: ask again"))
}

// Run is Bind and Serve.
func (s *Server) Run(ctx context.Context, l Listen) error {
	socket, err := Bind(ctx, l, s.options)
	if err != nil {
		return err
	}
	return s.Serve(ctx, socket)
}

// Serve answers at a socket until ctx ends, or the engine has stopped. Then it takes no more requests and
// answers those under way. Errors are decision.ErrStopped and those of sockets.
func (s *Server) Serve(ctx context.Context, socket *Socket) error {
	l := socket.listen
	maintained := make(chan error, 1)
	maintaining, stop := context.WithCancel(ctx)
	defer stop()
	if socket.health != nil {
		defer socket.health.Close()
	}
	socket.server.Store(s)
	go func() { maintained <- s.maintain(maintaining, l.Maintain) }()
	if l.Ready != nil {
		l.Ready(socket.Addr())
	}
	select {
	case err := <-socket.served:
		stop()
		return errors.Join(err, <-maintained)
	case err := <-maintained: // nil where ctx has ended
		return errors.Join(err, s.drain(&socket.http, l.Drain))
	}
}

// drain ends a server: readiness first, then listeners to events, then the requests under way.
func (s *Server) drain(h *http.Server, most time.Duration) error {
	s.draining.Store(true)
	if s.feed != nil {
		s.feed.Close()
	}
	ctx, cancel := timeout(most)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil {
		h.Close()
		return fmt.Errorf("requests were cut off that had no answer within %v: %w", most, err)
	}
	return nil
}

// maintain ends the wait for outcomes whose window is over, now and then, until
// ctx ends or the engine has stopped.
func (s *Server) maintain(ctx context.Context, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if _, err := s.engine.Expire(ctx, s.clock().UnixNano()); err != nil && ctx.Err() == nil {
			s.log.Error("the engine has stopped", "cause", err.Error())
			return err
		}
		s.early.look(s.engine, s.clock(), s.log)
	}
}

// withTLS wraps a listener. The certificate is read again when its files change.
func withTLS(listener net.Listener, l Listen, o Options) (net.Listener, error) {
	load := func() (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(l.Certificate, l.Key)
		return &c, err
	}
	certificate, err := watch(load, o.Clock, o.Logger, l.Certificate, l.Key)
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return tls.NewListener(listener, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		CipherSuites:   authenticated(),
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.get(), nil },
	}), nil
}

// authenticated returns the suites of TLS 1.2 with forward secrecy and authenticated encryption: none with CBC.
func authenticated() []uint16 {
	var suites []uint16
	for _, s := range tls.CipherSuites() {
		if strings.HasPrefix(s.Name, "TLS_ECDHE_") && !strings.Contains(s.Name, "_CBC_") {
			suites = append(suites, s.ID)
		}
	}
	return suites
}

// connections logs what http.Server says of connections, which is nothing of
// what they carry.
type connections struct{ to *slog.Logger }

func (c connections) Write(b []byte) (int, error) {
	c.to.Warn("connection", "cause", string(bytes.TrimSpace(b)))
	return len(b), nil
}

func timeout(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
