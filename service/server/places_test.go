package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A key never takes the places of the others.
func TestPlaces(t *testing.T) {
	p := places{what: "exports"}
	for i, c := range []struct {
		key  string
		free int // -1: refused
	}{{"a", 1}, {"a", 0}, {"a", -1}, {"b", 0}, {"b", -1}, {"c", -1}} {
		free, err := p.take(c.key, 3, 2)
		if (err != nil) != (c.free < 0) || err == nil && free != c.free {
			t.Errorf("%d: key %s: %d places are free, %v; want %d", i, c.key, free, err, c.free)
		}
	}
	p.leave("a")
	if _, err := p.take("c", 3, 2); err != nil || p.taken() != 3 {
		t.Errorf("a place that was left is not free: %v", err)
	}
}

// timed notes the deadline of the next write.
type timed struct {
	httptest.ResponseRecorder
	deadline time.Time
}

func (w *timed) SetWriteDeadline(at time.Time) error { w.deadline = at; return nil }

// Each part of a download gets its own deadline, so a reader who stalls loses its place.
func TestDownloadDeadline(t *testing.T) {
	w := &timed{ResponseRecorder: *httptest.NewRecorder()}
	d := &download{w, http.NewResponseController(w)}
	for range 2 {
		begin := time.Now()
		w.deadline = time.Time{}
		_, _ = io.WriteString(d, "x")
		if after := w.deadline.Sub(begin); after < downloadWrite {
			t.Errorf("the deadline of a part is after %v, want %v", after, downloadWrite)
		}
	}
}
