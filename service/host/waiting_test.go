package host

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// While the servers of its log are away, a service answers 503, and stays alive for its supervisor.
func TestLogServersAreAway(t *testing.T) {
	t.Parallel()
	free := fatal.Or(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := free.Addr().String()
	fatal.If(t, free.Close())
	c := Default()
	c.Listen, c.Data, c.Log.URL = address, t.TempDir(), "nats://127.0.0.1:1"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	log := &running{TB: t}
	go func() { ended <- Run(ctx, c, Options{Logger: slog.New(slog.NewTextHandler(log, nil))}) }()
	ask := func(path string) (int, error) {
		r := fatal.Or(http.NewRequest("GET", "http://"+address+path, nil))(t)
		a, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			return 0, err
		}
		return a.StatusCode, a.Body.Close()
	}
	for _, err := ask("/healthz"); err != nil; _, err = ask("/healthz") { // until it is bound
		time.Sleep(time.Millisecond)
	}
	for ; !log.said("in=400ms"); time.Sleep(10 * time.Millisecond) { // until the third attempt failed
		for path, want := range map[string]int{"/healthz": 200, "/v1/placements": 503} {
			if status, err := ask(path); err != nil || status != want {
				t.Fatalf("GET %s: %d, %v, want %d", path, status, err, want)
			}
		}
	}
	stop()
	expect.Error(t, <-ended, nil)
}
