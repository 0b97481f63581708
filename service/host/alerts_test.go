package host

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/alert"
	"vitrine/service/eventlog/filelog"
	"vitrine/service/eventlog/natslog/natstest"
)

// alerting is the configuration of a service with a receiver of its alerts.
func alerting(t *testing.T) (c *Config, told chan string) {
	told = make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.Error(t, err, nil)
		told <- string(body)
	}))
	t.Cleanup(receiver.Close)
	c = Default()
	c.Listen, c.Data = "127.0.0.1:0", t.TempDir()
	c.Alerts.URL, c.Alerts.Secret = receiver.URL, filepath.Join(c.Data, "secret")
	fatal.If(t, os.WriteFile(c.Alerts.Secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 0o600))
	return c, told
}

// A second start of a running service ends, but the service does not: no alert says so.
func TestStartedTwice(t *testing.T) {
	c, told := alerting(t)
	ctx, stop := context.WithCancel(t.Context())
	at, ended := make(chan string), make(chan error)
	go func() {
		ended <- Run(ctx, c, Options{Serving: func(ctx context.Context,
			address string) {
			at <- address
			<-ctx.Done()
		}})
	}()
	for _, address := range []string{<-at, "127.0.0.1:0"} {
		second := *c
		second.Listen = address
		expect.Refused(Run(t.Context(), &second, Options{}))(t, "a second service listens on", address)
	}
	stop()
	fatal.If(t, <-ended)
	expect.Equal(t, len(told), 0, "alerts are sent")
	expect.Contains(t, string(fatal.Or(os.ReadFile(filepath.Join(c.Data, alertsFile)))(t)), `"told":[]`, "the file of alerts")
}

// Two services on one log need a data directory each.
func TestDataDirectoryIsLocked(t *testing.T) {
	t.Parallel()
	first := runs(t, natstest.URL(t), t.TempDir(), nil)
	c := Default()
	c.Listen, c.Data, c.Log.URL = "127.0.0.1:0", first.data, "nats://127.0.0.1:1"
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second) // a second one that starts would go on
	defer stop()
	expect.Error(t, Run(ctx, c, Options{}), filelog.ErrInUse)
	first.stop()
	runs(t, natstest.URL(t), first.data, nil)
}

// A service that cannot go on says so before it ends, and does not repeat itself each time that it is started again.
func TestLastAlert(t *testing.T) {
	c, told := alerting(t)
	mark := filepath.Join(c.Data, LogDir, "mark")
	fatal.If(t, os.MkdirAll(filepath.Dir(mark), 0o700))
	fatal.If(t, os.WriteFile(mark, []byte("damaged, and too long for a mark"), 0o600))
	for range 3 {
		expect.Refused(Run(t.Context(), c, Options{}))(fatal.T(t), "it runs with a damaged log")
	}
	expect.Equal(fatal.T(t), len(told), 1, "it rang n times in three starts")
	if got := <-told; !strings.Contains(got, "the service has ended") || !strings.Contains(got, "mark") {
		t.Error(got)
	}
}

// A log on a full disk opens again each time that it failed. It rings all the same, and a log that takes entries again
// does not.
func TestLogOpensAndFails(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	fatal.If(t, os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 0o600))
	for wrote, rings := range map[bool]bool{false: true, true: false} {
		synctest.Test(t, func(t *testing.T) {
			sender := fatal.Or(alert.Open(alert.Options{URL: "http://127.0.0.1:1", Secret: secret,
				File: filepath.Join(t.TempDir(), "alerts.json")}))(t)
			s := &service{alerts: sender}
			for range 5 {
				s.logFails(errors.New("no space left on device"))
				l := &session{service: s}
				l.wrote.Store(wrote)
				ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
				l.works(ctx)
				<-ctx.Done()
				stop()
			}
			expect.Equal(t, sender.Stats().Waiting == 1, rings, "it took an entry", wrote, "it rings")
			begin := time.Now()
			(&session{service: s}).works(t.Context())
			expect.Equal(t, time.Since(begin), calm, "an idle log works after")
		})
	}
}
