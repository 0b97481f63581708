package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"vitrine/internal/expect"
)

// timed notes the deadline of the next write.
type timed struct {
	httptest.ResponseRecorder
	deadline time.Time
}

func (w *timed) SetWriteDeadline(at time.Time) error { w.deadline = at; return nil }

func (w *timed) Write(b []byte) (int, error) { time.Sleep(time.Second); return len(b), nil }

// Each part of a download gets its own deadline, so a reader who stalls or crawls loses its place.
func TestDownloadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &timed{ResponseRecorder: *httptest.NewRecorder()}
		d := &download{w: w, control: http.NewResponseController(w)}
		for k, want := range []time.Duration{10, 9, 8, 7, 10, 9} {
			begin := time.Now()
			_, _ = d.Write(make([]byte, downloadPart/3))
			expect.Equal(t, w.deadline.Sub(begin), want*time.Second, "time for write", k)
			time.Sleep(time.Minute) // of the server's own
		}
	})
}
