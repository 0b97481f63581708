package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/natslog/natstest"
)

// A service that is ended while it opens its log, or before it opens the log again, ends without an error. Any other
// error at that moment is returned.
func TestEndWhileOpening(t *testing.T) {
	broken := errors.New("broken")
	for _, test := range []struct{ opening, want error }{
		{context.Canceled, nil},
		{eventlog.ErrReopen, eventlog.ErrReopen},
		{broken, broken},
	} {
		ctx, stop := context.WithCancel(t.Context())
		c := Default()
		c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
		err := Run(ctx, c, Options{Opened: func(*engine.Engine) error {
			stop()
			return test.opening
		}})
		if !errors.Is(err, test.want) || test.want == nil && err != nil {
			t.Errorf("%v: %v, want %v", test.opening, err, test.want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	c := Default()
	c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
	expect.Error(t, Run(ctx, c, Options{Logger: slog.New(slog.NewTextHandler(stopper(stop), nil)),
		Opened: func(*engine.Engine) error { return eventlog.ErrReopen }}), nil, "between two attempts")
}

// stopper is called when a service says that it will open its log again.
type stopper func()

func (stop stopper) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(" will be opened again")) {
		stop()
	}
	return len(line), nil
}

// A server of a cluster that is behind may say that the log is too short: it is opened again for a while, and then the
// error is final.
func TestShortLog(t *testing.T) {
	for patience, shorts := range map[time.Duration]int{time.Minute: 2, time.Second: 1000} {
		ctx, stop := context.WithCancel(t.Context())
		c := Default()
		c.Data, c.Listen, c.Log.URL = t.TempDir(), "127.0.0.1:0", natstest.URL(t)
		attempts := 0
		err := Run(ctx, c, Options{Patience: patience, Opened: func(*engine.Engine) error {
			if attempts++; attempts <= shorts {
				return eventlog.ErrBeyond
			}
			return nil
		}, Serving: func(context.Context, string) { stop() }})
		if isFinal := shorts > 2; isFinal != errors.Is(err, eventlog.ErrBeyond) ||
			!isFinal && (err != nil || attempts != 3) {
			t.Errorf("with a patience of %v: %v after %d attempts", patience, err, attempts)
		}
	}
}
