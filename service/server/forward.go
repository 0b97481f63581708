package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
)

// A follower passes requests that change more than decisions on to the leader, as they came, and answers with its
// answer. The leader checks the key and the limits again, so all processes need the same keys.

// forwardedKey marks the context of a request that a follower passed on.
type forwardedKey struct{}

func forwarded(c *call) bool { return c.Request.Context().Value(forwardedKey{}) != nil }

// forward passes a request on to the leader. Afterwards this process has applied the leader's entries for it.
func (s *Server) forward(c *call) error {
	request, err := s.requestOf(c)
	if err != nil {
		return err
	}
	answer, err := s.options.Forward(c.ctx, request)
	if err != nil {
		return err
	}
	a, text, err := readAnswer(answer, c.Request)
	if err != nil {
		return fmt.Errorf("the leader's answer: %w", err)
	}
	if err := s.engine.CatchUp(c.ctx); err != nil {
		s.log.Warn("a change by the leader is not seen here yet", "request_id", c.id, "cause", err.Error())
	}
	return c.relay(a, text)
}

// requestOf returns the request of a call, as the leader gets it.
func (s *Server) requestOf(c *call) ([]byte, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	r := c.Request.Clone(c.ctx)
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	r.Header.Del("Content-Encoding")
	r.Header.Del("Accept-Encoding") // the answer is compressed here
	r.Header.Set("X-Request-Id", c.id)
	r.Header.Del("Cookie")
	r.Header.Del(sessionHeader)
	if c.signedIn {
		r.Header.Set(sessionHeader, c.key.SHA256)
	}
	var request bytes.Buffer
	if err := r.Write(&request); err != nil {
		return nil, err
	}
	return request.Bytes(), nil
}

// readAnswer reads the answer of another process to a request.
func readAnswer(answer []byte, r *http.Request) (*http.Response, []byte, error) {
	a, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), r)
	if err != nil {
		return nil, nil, err
	}
	defer a.Body.Close()
	if a.StatusCode < 200 || a.StatusCode > 599 {
		return nil, nil, fmt.Errorf("status %d: want one from 200 to 599", a.StatusCode)
	}
	text, err := io.ReadAll(a.Body)
	return a, text, err
}

// relay answers with the answer of another process.
func (c *call) relay(a *http.Response, text []byte) error {
	h := c.w.Header()
	for name, values := range a.Header {
		if name != "Content-Length" {
			h[name] = values
		}
	}
	if len(text) == 0 {
		c.w.WriteHeader(a.StatusCode)
		return nil
	}
	return c.answer(a.StatusCode, a.Header.Get("Content-Type"), text)
}

// Forwarded answers a request that a follower passed on.
func (s *Server) Forwarded(request []byte) []byte {
	w := &written{header: http.Header{}}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case r.Method == http.MethodGet || r.Method == http.MethodHead: // followers answer these themselves, and some never end
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		s.serveForwarded(w, r)
	}
	return w.bytes()
}

// serveForwarded calls ServeHTTP and, like an http.Server, recovers from a handler's panic.
func (s *Server) serveForwarded(w *written, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			*w = written{header: http.Header{}, status: http.StatusInternalServerError}
			if v != http.ErrAbortHandler {
				s.log.Error("panic", "request_id", r.Header.Get("X-Request-Id"), "panic", fmt.Sprint(v), "stack",
					string(debug.Stack()))
			}
		}
	}()
	s.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), forwardedKey{}, true)))
}

// written is an answer in memory.
type written struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// bytes returns the answer in the form of HTTP/1.1.
func (w *written) bytes() []byte {
	a := &http.Response{
		StatusCode: w.status, ProtoMajor: 1, ProtoMinor: 1, Header: w.header, Body: io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()),
	}
	var answer bytes.Buffer
	_ = a.Write(&answer) // into memory
	return answer.Bytes()
}

// Header implements http.ResponseWriter.
func (w *written) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *written) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *written) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
