package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

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
