package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
)

// An export and a stream of events may have no end, so a process that passes such a request on passes the answer on as it comes.

// passAtLength answers a call by a process that has the log of a shard, as its answer comes. A caller to whom the rest of it cannot
// be passed on loses the connection, so that the end is missing.
func (s *Server) passAtLength(c *call, number int) error {
	if err := s.onlyOnce(c, number); err != nil {
		return err
	}
	request, err := s.requestOf(c, c.URL.RequestURI())
	if err != nil {
		return err
	}
	answer, err := s.options.Shards.PassAtLength(c.Context(), number, request)
	if err != nil {
		return s.unpassed(number, request, err)
	}
	defer answer.Close()
	a, err := http.ReadResponse(bufio.NewReader(answer), c.Request)
	if err != nil {
		return s.away(number, fmt.Errorf("%w: its answer: %w", ErrAway, err))
	}
	if a.StatusCode != http.StatusOK {
		text, err := io.ReadAll(a.Body)
		if err != nil {
			return s.away(number, fmt.Errorf("%w: its answer: %w", ErrAway, err))
		}
		return c.relay(a, text)
	}
	maps.Copy(c.w.Header(), a.Header)
	to := newDownload(c)
	c.w.WriteHeader(a.StatusCode)
	part := make([]byte, 32<<10)
	for {
		n, err := a.Body.Read(part)
		if n > 0 {
			if _, gone := to.Write(part[:n]); gone != nil || to.control.Flush() != nil {
				return nil
			}
		}
		switch {
		case err == io.EOF || c.Context().Err() != nil: // or the caller is gone, or is to come back
			return nil
		case err != nil:
			s.log.Warn("an answer that was passed on has broken off", "request_id", c.id, "shard", number, "cause", err.Error())
			panic(http.ErrAbortHandler)
		}
	}
}

// PassedAtLength answers a request that another process has passed on because it does not have the log of a shard. It writes the answer
// as it comes, in the form of HTTP/1.1, until ctx ends. An error breaks the answer off.
func (s *Server) PassedAtLength(ctx context.Context, number int, request []byte, to io.Writer) (err error) {
	w := &writing{header: http.Header{}, to: bufio.NewWriterSize(to, 64<<10)}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return w.end()
	}
	defer func() {
		if v := recover(); v != nil {
			if err = errBroken; v != http.ErrAbortHandler {
				s.log.Error("panic", "request_id", r.Header.Get("X-Request-Id"), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
		}
	}()
	s.ServeHTTP(w, r.WithContext(context.WithValue(ctx, relayKey{}, relay{shard: number, atLength: true})))
	return w.end()
}

var errBroken = errors.New("the answer has broken off")

// writing is an answer that is written as it comes.
type writing struct {
	header http.Header
	to     *bufio.Writer
	chunks io.WriteCloser // nil before the header is written
}

// Header implements http.ResponseWriter.
func (w *writing) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *writing) WriteHeader(status int) {
	if w.chunks != nil {
		return
	}
	header := w.header.Clone()
	header.Del("Content-Length")
	header.Set("Transfer-Encoding", "chunked")
	fmt.Fprintf(w.to, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	_ = header.Write(w.to) // errors stay in to
	_, _ = w.to.WriteString("\r\n")
	w.chunks = httputil.NewChunkedWriter(w.to)
}

// Write implements http.ResponseWriter.
func (w *writing) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.chunks.Write(b)
}

// FlushError sends what was written: see [http.ResponseController].
func (w *writing) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return w.to.Flush()
}

// end ends the answer.
func (w *writing) end() error {
	w.WriteHeader(http.StatusOK)
	if err := w.chunks.Close(); err != nil {
		return err
	}
	_, _ = w.to.WriteString("\r\n")
	return w.to.Flush()
}
