package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/server"
)

// run makes the service listen until stop, which returns what Run does.
func (s *service) run(l server.Listen) (address string, stop func() error) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	at, ended := make(chan net.Addr, 1), make(chan error, 1)
	if l.Address == "" {
		l.Address = "127.0.0.1:0"
	}
	l.Ready = func(a net.Addr) { at <- a }
	go func() { ended <- s.Run(ctx, l) }()
	select {
	case a := <-at:
		address = a.String()
	case err := <-ended:
		s.Fatal(err)
	}
	done := false
	stop = func() error { cancel(); done = true; return <-ended }
	s.Cleanup(func() {
		if !done {
			if err := stop(); err != nil {
				s.Error(err)
			}
		}
	})
	return address, stop
}

// patience is how long a test waits for an expected event, on a busy machine too.
const patience = 5 * time.Minute

// client keeps no connections.
func client(c *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: c}, Timeout: patience}
}

func TestRefusesToBeOpen(t *testing.T) {
	s := started(t, nil)
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "localhost.example:0"} {
		expect.Error(t, s.Run(t.Context(), server.Listen{Address: address}), server.ErrOpen, address)
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "127.1.2.3:0"} {
		_, stop := s.run(server.Listen{Address: address})
		expect.Error(t, stop(), nil, address)
	}
	_, key := keys.New("k", keys.ScopeRead)
	keyed, _ := locked(t, key.Table())
	_, stop := keyed.run(server.Listen{Address: ":0"})
	expect.Error(t, stop(), nil)
	expect.Contains(t, keyed.log.String(), "without encryption", "keys in the clear come with a warning")
}

// A request in progress when the service stops gets its answer, new ones are refused, and subscribers of
// events receive the end of the stream.
func TestDrain(t *testing.T) {
	store := &gatedStore{waiting: make(chan struct{})}
	s := started(t, func(o *server.Options, e *engine.Options) { e.Store, o.Log = store, nil })
	s.want(201, "PUT", "/v1/placements/home", home)
	store.gate = make(chan struct{})
	address, stop := s.run(server.Listen{})
	events := fatal.Or(client(nil).Get("http://" + address + "/v1/events"))(t)
	defer events.Body.Close()
	answered := decideLate(t, "http://"+address+"/v1/placements/home/decisions")
	<-store.waiting
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	if text, err := io.ReadAll(events.Body); err != nil || !strings.HasSuffix(string(text),
		"event: end\ndata: {}\n\n") {
		t.Errorf("events ended with %q, %v", text, err)
	}
	s.problem(503, "draining", "", "GET", "/readyz", "")
	s.want(200, "GET", "/healthz", "")
	select {
	case err := <-stopped:
		t.Fatalf("the service stopped over a request, %v", err)
	default:
	}
	close(store.gate)
	if status := <-answered; status != 201 {
		t.Errorf("the request in progress was answered with %d", status)
	}
	expect.Error(t, <-stopped, nil)
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("a connection is taken after the end")
	}
}

// decideLate asks for a decision that a store holds back, and passes on the status of the answer.
func decideLate(t testing.TB, url string) <-chan int {
	answered := make(chan int, 1)
	go func() {
		r, err := client(nil).Post(url, "application/json", strings.NewReader(`{`+items+`}`))
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		r.Body.Close()
		answered <- r.StatusCode
	}()
	return answered
}

// A request that is unanswered when draining takes too long is cut off, with a log line.
func TestDrainEnds(t *testing.T) {
	store := &gatedStore{waiting: make(chan struct{})}
	s := started(t, func(o *server.Options, e *engine.Options) { e.Store, o.Log = store, nil })
	s.want(201, "PUT", "/v1/placements/home", home)
	store.gate = make(chan struct{})
	address, stop := s.run(server.Listen{Drain: 10 * time.Millisecond})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r, err := client(nil).Post("http://"+address+"/v1/placements/home/decisions", "application/json",
			strings.NewReader(`{`+items+`}`))
		if err == nil {
			r.Body.Close()
		}
	}()
	<-store.waiting
	expect.Part(stop())(t, "cut off", "stopped with")
	close(store.gate)
	<-ended
}

// Callers that send slowly, or not at all, lose their connection, and others are served meanwhile.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	address, _ := s.run(server.Listen{Header: time.Second, Read: 2 * time.Second, Idle: time.Second})
	var slow sync.WaitGroup
	for _, begin := range []string{
		"", "POST /v1/placements/home/decisions HTTP/1.1\r\nHost: localhost\r\n",
		"POST /v1/placements/home/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{\"items\":",
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		c := dial(t, address)
		fatal.Or(io.WriteString(c, begin))(t)
		r, err := client(nil).Get("http://" + address + "/healthz")
		for tries := 1; err != nil && tries < 20; tries++ { // on a busy machine its own header may take a second
			r, err = client(nil).Get("http://" + address + "/healthz")
		}
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("another caller: %v", err)
		}
		r.Body.Close()
		slow.Go(func() {
			c.SetReadDeadline(time.Now().Add(patience))
			text, err := io.ReadAll(c) // until the server closes
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("after %q the connection stays open", begin)
			}
			if strings.Contains(begin, "Content-Length") && !strings.Contains(string(text), "408 Request Timeout") {
				t.Errorf("a body that does not come is answered with %q", text)
			}
		})
	}
	slow.Wait()
}

// The number of open connections is bounded. A new one replaces an idle one.
func TestMostConnections(t *testing.T) {
	s := started(t, func(o *server.Options, _ *engine.Options) { o.Limits.Connections = 2 })
	address, stop := s.run(server.Listen{})
	ask := func(c net.Conn) error {
		io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		return answered(c)
	}
	var open []net.Conn
	for range 3 {
		c := dial(t, address)
		fatal.If(t, ask(c))
		open = append(open, c)
	}
	if first, second, third := ask(open[0]), ask(open[1]), ask(open[2]); (first == nil) == (second == nil) ||
		third != nil {
		t.Errorf("of two connections at most and three that asked: %v, %v, %v", first, second, third)
	}
	expect.Error(t, stop(), nil)
}

// While all connections are busy the next one waits for an answered request. It holds up neither health at an address
// of its own nor the end of the service.
func TestMostConnectionsBusy(t *testing.T) {
	store := &gatedStore{waiting: make(chan struct{})}
	s := started(t, func(o *server.Options, e *engine.Options) { e.Store, o.Log, o.Limits.Connections = store, nil, 1 })
	s.want(201, "PUT", "/v1/placements/home", home)
	store.gate = make(chan struct{})
	free := fatal.Or(net.Listen("tcp", "127.0.0.1:0"))(t)
	health := free.Addr().String()
	free.Close()
	address, stop := s.run(server.Listen{Health: health})
	body := `{` + items + `}`
	busy := dial(t, address)
	fmt.Fprintf(busy, "POST /v1/placements/home/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+
		"%d\r\n\r\n%s", len(body), body)
	<-store.waiting
	next, last := dial(t, address), dial(t, address)
	for _, c := range []net.Conn{next, last} {
		io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	next.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	expect.Fails(next.Read(make([]byte, 1)))(t, os.ErrDeadlineExceeded, "of one connection at most the second has")
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 404, "/v1/placements": 404} {
		r := fatal.Or(client(nil).Get("http://" + health + path))(t)
		if r.Body.Close(); r.StatusCode != want {
			t.Errorf("%s at the address of health: %d, want %d", path, r.StatusCode, want)
		}
	}
	close(store.gate)
	for i, c := range []net.Conn{busy, next} {
		expect.Error(t, answered(c), nil, "connection", i)
	}
	expect.Error(t, stop(), nil)
	expect.Refused(client(nil).Get("http://"+health+"/healthz"))(t, "health is answered after the end")
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c := fatal.Or(net.Dial("tcp", address))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// answered reads an answer.
func answered(c net.Conn) error {
	c.SetReadDeadline(time.Now().Add(patience))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}

func TestLargeHeader(t *testing.T) {
	s := started(t, nil)
	address, _ := s.run(server.Listen{})
	r, _ := http.NewRequest("GET", "http://"+address+"/healthz", nil)
	r.Header.Set("X-Large", strings.Repeat("a", 40_000))
	answer := fatal.Or(client(nil).Do(r))(t)
	answer.Body.Close()
	expect.Equal(t, answer.StatusCode, http.StatusRequestHeaderFieldsTooLarge, "status")
}

// The number of requests in progress is limited.
func TestBusy(t *testing.T) {
	store := &gatedStore{waiting: make(chan struct{})}
	s := started(t, func(o *server.Options, e *engine.Options) { e.Store, o.Log, o.Limits.Concurrent = store, nil, 1 })
	s.want(201, "PUT", "/v1/placements/home", home)
	store.gate = make(chan struct{})
	done := make(chan answer)
	go func() { done <- s.ask("POST", "/v1/placements/home/decisions", `{`+items+`}`) }()
	<-store.waiting
	s.problem(503, "busy", "", "GET", "/v1/placements", "")
	s.want(200, "GET", "/healthz", "")
	close(store.gate)
	if a := <-done; a.status != 201 {
		t.Errorf("the first request: %d", a.status)
	}
	s.want(200, "GET", "/v1/placements", "")
}

// Public pages, without a key, cannot take the places of callers with keys.
func TestNobodyTakesPlaces(t *testing.T) {
	s := started(t, func(o *server.Options, _ *engine.Options) { o.Limits.Concurrent = 1 })
	for _, path := range []string{"/", "/docs", "/openapi.json", "/nothing"} {
		slow := heldWriter{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.ServeHTTP(slow, httptest.NewRequest("GET", "http://localhost"+path, nil))
		}()
		<-slow.writing
		if a := s.ask("GET", "/v1/placements", ""); a.status != 200 {
			t.Errorf("while %s is read slowly: %d %s", path, a.status, a.body)
		}
		close(slow.gate)
		<-ended
	}
}

// heldWriter is the writer for a caller that does not read its answer until the gate opens.
type heldWriter struct {
	http.ResponseWriter
	writing, gate chan struct{}
}

func (w heldWriter) Write(b []byte) (int, error) {
	close(w.writing)
	<-w.gate
	return len(b), nil
}

// An answer that takes too long is a problem that advises to try again.
func TestSlowLog(t *testing.T) {
	store := &gatedStore{waiting: make(chan struct{}, 10)}
	s := started(t, func(o *server.Options, e *engine.Options) { e.Store, o.Log = store, nil })
	s.want(201, "PUT", "/v1/placements/home", home)
	store.gate = make(chan struct{})
	patient := s.Server
	s.Server = server.New(server.Options{Engine: s.engine, Clock: s.clock.now,
		Limits: server.Limits{Answer: 200 * time.Millisecond}})
	s.problem(503, "slow", "", "POST", "/v1/placements/home/decisions", `{"decision_id":"a",`+items+`}`)
	s.Server = patient
	close(store.gate)
	fatal.If(t, s.engine.Wait(t.Context()))
	s.want(200, "POST", "/v1/placements/home/decisions", `{"decision_id":"a",`+items+`}`) // it was made all the same
}

// A caller who hangs up is no fault of the service.
func TestCallerWentAway(t *testing.T) {
	store := &gatedStore{waiting: make(chan struct{}, 10)}
	s := started(t, func(o *server.Options, e *engine.Options) { e.Store, o.Log = store, nil })
	s.want(201, "PUT", "/v1/placements/home", home)
	store.gate = make(chan struct{})
	defer close(store.gate)
	ctx, hangUp := context.WithCancel(t.Context())
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/v1/placements/home/decisions",
		strings.NewReader(`{"decision_id":"a",`+items+`}`))
	var under sync.WaitGroup
	under.Go(func() { s.ServeHTTP(answer, request) })
	<-store.waiting
	hangUp()
	under.Wait()
	expect.Equal(t, answer.Code, 499, "status")
}

// The address of a socket that was closed is free at once.
func TestSocketCloses(t *testing.T) {
	l := server.Listen{Address: "127.0.0.1:0"}
	for range 50 {
		socket := fatal.Or(server.Bind(t.Context(), l, server.Options{}))(t)
		l.Address = socket.Addr().String()
		fatal.If(t, socket.Close())
	}
}

// Windows end without anybody asking.
func TestMaintenance(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"a",`+items+`}`)
	address, _ := s.run(server.Listen{Maintain: time.Millisecond})
	r := fatal.Or(client(nil).Get("http://" + address + "/v1/events"))(t)
	defer r.Body.Close()
	s.clock.advance(31 * time.Minute)
	for in := bufio.NewScanner(r.Body); in.Scan(); {
		if in.Text() == "event: expired" {
			return
		}
	}
	t.Error("the decision did not expire")
}

// A service with a stopped engine ends, so that its supervisor can start another.
func TestEndsWithTheEngine(t *testing.T) {
	s := started(t, nil)
	s.engine.Close()
	err := s.Run(t.Context(), server.Listen{Address: "127.0.0.1:0", Maintain: time.Millisecond})
	expect.Error(t, err, engine.ErrStopped, "ended with")
	s.problem(503, "draining", "", "GET", "/readyz", "")
}

// certify writes a certificate with a serial number, and its key.
func certify(t testing.TB, dir string, serial int64) {
	t.Helper()
	key := fatal.Or(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate := fatal.Or(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	private := fatal.Or(x509.MarshalPKCS8PrivateKey(key))(t)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: certificate},
		"key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		write(t, filepath.Join(dir, name), string(pem.EncodeToMemory(block)))
	}
}

// TLS 1.2 without forward secrecy or with CBC is refused.
func TestTLSSuites(t *testing.T) {
	dir := t.TempDir()
	certify(t, dir, 1)
	s := started(t, nil)
	address, _ := s.run(server.Listen{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")})
	for suite, want := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       true,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: true,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:          false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256:       false,
	} {
		c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{suite}})
		if err == nil {
			c.Close()
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", tls.CipherSuiteName(suite), err)
		}
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certify(t, dir, 1)
	s := started(t, nil)
	address, _ := s.run(server.Listen{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")})
	serial := func() int64 {
		t.Helper()
		r := fatal.Or(client(&tls.Config{InsecureSkipVerify: true}).Get("https://" + address + "/healthz"))(t)
		r.Body.Close()
		return r.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	expect.Equal(t, serial(), 1, "certificate")
	certify(t, dir, 2)
	s.clock.advance(time.Minute)
	expect.Equal(t, serial(), 2, "certificate n after it was replaced by 2")
	write(t, filepath.Join(dir, "key.pem"), "not a key")
	s.clock.advance(time.Minute)
	expect.Equal(t, serial(), 2, "certificate n after its key was spoilt")
	expect.Contains(t, s.log.String(), filepath.Join(dir, "key.pem")+": tls: failed to find any PEM",
		"the log does not name the key")
	if r, err := client(nil).Get("http://" + address + "/healthz"); err == nil {
		if r.Body.Close(); r.StatusCode == 200 {
			t.Error("what is not encrypted is answered")
		}
	}
	expect.Part(started(t, nil).Run(t.Context(), server.Listen{Address: "127.0.0.1:0",
		Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}))(t, "key.pem: tls",
		"a file without a key")
}

// A caller who reads the answer only after the whole body learns that it was too large. A caller who asks first does not
// send it.
func TestLargeBodyIsAnswered(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", home)
	address, _ := s.run(server.Listen{})
	spaces := strings.Repeat(" ", 20<<20)
	chunked := "Transfer-Encoding: chunked\r\n\r\n1400000\r\n" + spaces + "\r\n0\r\n\r\n"
	zipped := gzipped(t, spaces) + spaces[:3<<20]
	for name, rest := range map[string]string{
		"with its size":   "Content-Length: 20971520\r\n\r\n" + spaces,
		"chunked":         chunked,
		"chunked, asking": "Expect: 100-continue\r\n" + chunked,
		"compressed":      fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", len(zipped)) + zipped,
	} {
		c := fatal.Or(net.Dial("tcp", address))(t)
		defer c.Close()
		if _, err := io.WriteString(c, "PUT /v1/placements/home/items HTTP/1.1\r\nHost: localhost\r\n"+rest); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		answers := bufio.NewReader(c)
		a, err := http.ReadResponse(answers, nil)
		if err == nil && a.StatusCode == http.StatusContinue {
			a, err = http.ReadResponse(answers, nil)
		}
		if err != nil || a.StatusCode != 413 {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
	c := fatal.Or(net.Dial("tcp", address))(t)
	defer c.Close()
	fatal.Or(io.WriteString(c, "PUT /v1/placements/home/items HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"+
		"Content-Length: 20971520\r\n\r\n"))(t)
	if a, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || a.StatusCode != 413 {
		t.Errorf("asked first: %v, %v", a, err)
	}
}

// Requests one after the other on a connection, and bytes that are not HTTP.
func TestConnections(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	address, _ := s.run(server.Listen{})
	c := fatal.Or(net.Dial("tcp", address))(t)
	defer c.Close()
	var both bytes.Buffer
	for i := range 2 {
		body := fmt.Sprintf(`{"decision_id":"%d","items":[{"id":"a","features":{"x":1}}]}`, i)
		fmt.Fprintf(&both, "POST /v1/placements/home/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+
			"%d\r\n\r\n%s", len(body), body)
	}
	c.Write(both.Bytes())
	in := bufio.NewReader(c)
	for i := range 2 {
		r := fatal.Or(http.ReadResponse(in, nil))(t)
		text, _ := io.ReadAll(r.Body)
		if r.StatusCode != 201 || !strings.Contains(string(text), fmt.Sprintf(`"decision_id":"%d"`, i)) {
			t.Errorf("answer %d: %d %s", i, r.StatusCode, text)
		}
	}
	io.WriteString(c, "\x16\x03\x01 this is not HTTP\r\n\r\n")
	if r, err := http.ReadResponse(in, nil); err == nil && r.StatusCode != 400 {
		t.Errorf("what is not HTTP is answered with %d", r.StatusCode)
	}
}

// While there is no state yet a socket answers that it is alive and not ready, and then as the service does, on the
// same connection.
func TestSocket(t *testing.T) {
	s := started(t, nil)
	socket := fatal.Or(server.Bind(t.Context(), server.Listen{Address: "127.0.0.1:0"}, server.Options{}))(t)
	defer socket.Close()
	at := "http://" + socket.Addr().String()
	kept := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer kept.CloseIdleConnections()
	try := func(path string, want int) (header http.Header, text string) {
		t.Helper()
		r := fatal.Or(kept.Get(at + path))(t)
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != want {
			t.Errorf("%s: %d %s, %v, want %d", path, r.StatusCode, body, err, want)
		}
		return r.Header, string(body)
	}
	try("/healthz", 200)
	for _, path := range []string{"/readyz", "/v1/placements", "//", "/nothing"} {
		if header, text := try(path, 503); header.Get("Retry-After") != "1" || header.Get("X-Request-Id") == "" ||
			!strings.Contains(text, `"urn:vitrine:problem:starting"`) {
			t.Errorf("%s: %v %s", path, header, text)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, socket) }()
	for { // until it serves
		r := fatal.Or(kept.Get(at + "/readyz"))(t)
		if r.Body.Close(); r.StatusCode == 200 {
			break
		}
	}
	try("/v1/placements", 200)
	stop()
	expect.Error(t, <-ended, nil)
	if c, err := net.Dial("tcp", socket.Addr().String()); err == nil {
		c.Close()
		t.Error("a connection is taken after the end")
	}
}

// A socket that pauses answers the requests in progress, and 503 to new ones, until another server serves it. One that
// is not answered in time does not delay that.
func TestSocketPauses(t *testing.T) {
	store := &gatedStore{waiting: make(chan struct{}, 2)}
	s := started(t, func(o *server.Options, e *engine.Options) { e.Store, o.Log = store, nil })
	s.want(201, "PUT", "/v1/placements/home", home)
	l := server.Listen{Address: "127.0.0.1:0", Drain: 20 * time.Millisecond}
	socket := fatal.Or(server.Bind(t.Context(), l, server.Options{}))(t)
	defer socket.Close()
	at := "http://" + socket.Addr().String() + "/v1/placements"
	status := func() int {
		r := fatal.Or(client(nil).Get(at))(t)
		r.Body.Close()
		return r.StatusCode
	}
	serve := func(s *server.Server) (stop func() error) {
		ctx, end := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, socket) }()
		for status() != 200 {
		}
		return func() error { end(server.ErrPause); return <-ended }
	}
	stop := serve(s.Server)
	store.gate = make(chan struct{})
	answered := decideLate(t, at+"/home/decisions")
	<-store.waiting
	fatal.If(t, stop())
	if n := status(); n != 503 || !strings.Contains(s.log.String(), "requests have no answer yet") {
		t.Errorf("a socket that pauses answers %d; the log has %s", n, s.log.String())
	}
	next := started(t, nil)
	stop = serve(next.Server)
	close(store.gate)
	if n := <-answered; n != 201 {
		t.Errorf("the request in progress was answered with %d", n)
	}
	fatal.If(t, stop())
}

// A wrong address or certificate is reported before there is an engine.
func TestBindRefuses(t *testing.T) {
	taken := fatal.Or(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	dir := t.TempDir()
	for name, l := range map[string]server.Listen{
		"in use": {Address: taken.Addr().String()},
		filepath.Join(dir, "cert.pem"): {Address: "127.0.0.1:0", Certificate: filepath.Join(dir, "cert.pem"),
			Key: filepath.Join(dir, "key.pem")},
		"without": {Address: ":0"},
	} {
		expect.Part(server.Bind(t.Context(), l, server.Options{}))(t, name)
	}
}
