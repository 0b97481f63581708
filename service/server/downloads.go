package server

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	downloadWrite = 10 * time.Second // for a caller to read a part of a download; a caller that stalls or crawls loses its place
	downloadPart  = 64 << 10

	maxExports    = 4 // at once; each reads the log and holds a snapshot in memory
	maxKeyExports = 2 // at once, of one of several keys
)

func (s *Server) model(c *call) error {
	m, err := s.engine.Model(c.ctx, c.placement)
	if err != nil {
		return err
	}
	c.attach(".model.json")
	return c.answerJSON(http.StatusOK, m)
}

// attach names the file in which a browser stores the answer: the placement's name, which needs no escape, and a
// suffix.
func (c *call) attach(suffix string) {
	c.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", c.placement+suffix))
}

func (s *Server) export(c *call) error {
	if _, err := s.engine.Config(c.placement); err != nil {
		return err
	}
	if _, err := s.exports.Take(c.key.Name, maxExports, s.share(maxKeyExports, maxExports)); err != nil {
		return err
	}
	defer s.exports.Leave(c.key.Name)
	c.attach(".jsonl")
	h := c.w.Header()
	h.Set("Content-Type", asLines)
	if c.Method == http.MethodHead { // the answer is without a body: do not read the log
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	if err := s.options.Export(c.ctx, &download{w: &c.w, control: http.NewResponseController(&c.w)}, c.placement); err != nil {
		if c.w.status == 0 {
			h.Del("Content-Disposition")
			return err
		}
		s.log.Warn("an export has broken off", "request_id", c.id, "cause", err.Error())
		panic(http.ErrAbortHandler) // so that the caller sees that the end is missing
	}
	if c.w.status == 0 {
		c.w.WriteHeader(http.StatusOK)
	}
	return nil
}

// download gives the caller time for each part of a long answer.
type download struct {
	w       io.Writer
	control *http.ResponseController
	part    int           // bytes
	left    time.Duration // to read the rest of the part
}

func (d *download) Write(b []byte) (int, error) {
	if d.part -= len(b); d.part < 0 {
		d.part, d.left = downloadPart, downloadWrite
	}
	begin := time.Now()
	_ = d.control.SetWriteDeadline(begin.Add(d.left)) // an error: not supported, as in tests without a connection
	n, err := d.w.Write(b)
	d.left -= time.Since(begin)
	return n, err
}
