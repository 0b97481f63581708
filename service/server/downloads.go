package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	downloadWrite = 30 * time.Second // for a caller to read a part of a download

	maxExports    = 4               // at once; each reads the log and holds a snapshot in memory
	maxKeyExports = 2               // at once, of one of several keys
	stalled       = 5 * time.Second // after which a reader who does not take the next part may lose its place
)

func (s *Server) model(c *call) error {
	m, err := s.engine.Model(c.ctx, c.placement)
	if err != nil {
		return err
	}
	c.attach(".model.json")
	return c.answerJSON(http.StatusOK, m)
}

// attach names the file in which a browser stores the answer: the placement, whose name needs no escape, and a suffix.
func (c *call) attach(suffix string) {
	c.w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", c.placement+suffix))
}

func (s *Server) export(c *call) error {
	if _, err := s.engine.Config(c.placement); err != nil {
		return err
	}
	to := newDownload(c)
	if err := s.exports.begin(to, c.key.name, s.share(maxKeyExports, maxExports)); err != nil {
		return err
	}
	defer s.exports.end(to)
	c.attach(".jsonl")
	h := c.w.Header()
	h.Set("Content-Type", asLines)
	h["Cache-Control"] = noStore
	if err := s.options.Export(c.ctx, to, c.placement); err != nil {
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

// exports are the exports in progress, with the keys of their callers.
type exports struct {
	mu      sync.Mutex
	running map[*download]string
}

// begin admits an export, unless its key runs perKey already. If all places are taken, the export whose reader has stalled the longest
// is broken off and gives its place to the new one.
func (e *exports) begin(d *download, key string, perKey int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	ofKey := 0
	for _, of := range e.running {
		if of == key {
			ofKey++
		}
	}
	var slowest *download
	longest := stalled
	for other, of := range e.running {
		if ofKey >= perKey && of != key {
			continue // a key at its limit can only replace an export of its own
		}
		if took := other.writing(); took >= longest {
			slowest, longest = other, took
		}
	}
	if ofKey >= perKey || len(e.running) >= maxExports {
		if slowest == nil {
			return problemf(http.StatusServiceUnavailable, "busy", "%d exports are in progress, %d of them with this key: wait until one has ended", len(e.running), ofKey)
		}
		slowest.breakOff()
		delete(e.running, slowest)
	}
	if e.running == nil {
		e.running = map[*download]string{}
	}
	e.running[d] = key
	return nil
}

func (e *exports) end(d *download) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.running, d)
}

// download gives the caller time for each part of a long answer.
type download struct {
	w       io.Writer
	control *http.ResponseController

	mu     sync.Mutex
	since  time.Time // when the write in progress began; zero between writes
	broken bool
}

func newDownload(c *call) *download {
	return &download{w: &c.w, control: http.NewResponseController(&c.w)}
}

var errStalled = errors.New("its reader stalled, and another export needed the place")

func (d *download) Write(b []byte) (int, error) {
	if err := d.begin(); err != nil {
		return 0, err
	}
	n, err := d.w.Write(b)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = time.Time{}
	if d.broken {
		err = errStalled
	}
	return n, err
}

func (d *download) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return errStalled
	}
	d.since = time.Now()
	// An error means that deadlines are not supported, as in tests without a connection.
	_ = d.control.SetWriteDeadline(d.since.Add(downloadWrite))
	return nil
}

// writing returns how long the reader has kept the write in progress waiting, 0 between writes.
func (d *download) writing() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() {
		return 0
	}
	return time.Since(d.since)
}

// breakOff lets the write in progress fail, and all later ones.
func (d *download) breakOff() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = true
	_ = d.control.SetWriteDeadline(time.Now())
}
