package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHealth(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			w.Write([]byte("ok\n"))
		case "/readyz":
			http.Error(w, "the log is read: 40%", http.StatusServiceUnavailable)
		default:
			<-r.Context().Done() // it is never answered
		}
	}))
	defer service.Close()
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{service.URL, 0, "ok\n"},
		{"--ready " + service.URL, 1, service.URL + "/readyz answers 503 Service Unavailable: the log is read: 40%\n"},
		{"--timeout 10ms " + service.URL + "/elsewhere", 1, "deadline exceeded"},
		{"http://127.0.0.1:1", 1, "is the service running"},
		{"127.0.0.1:8080", 2, "is not an address"},
		{"http://", 2, "is not an address"},
	} {
		began := time.Now()
		if out, code := command(t, append([]string{"health"}, strings.Fields(c.args)...)...); code != c.code ||
			!strings.Contains(out, c.says) {
			t.Errorf("health %s: exit status %d after %v: %s", c.args, code, time.Since(began), out)
		}
	}
}
