package host

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
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

// A service that is ended before it binds, or while it does, leaves its address free.
func TestEndFreesTheAddress(t *testing.T) {
	free := fatal.Or(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := free.Addr().String()
	fatal.If(t, free.Close())
	c := Default()
	c.Data, c.Listen = t.TempDir(), address
	ctx, stop := context.WithCancel(t.Context())
	stop()
	expect.Error(t, Run(ctx, c, Options{}), nil)
	expect.Equal(t, len(fatal.Or(os.ReadDir(c.Data))(t)), 0, "files of a service that ended before it began")
	again := fatal.Or(net.Listen("tcp", address))(t)
	fatal.If(t, again.Close())
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

// The pause before the log is opened again grows, as long as no session writes: on a full disk each would read the log
// and fail at once.
func TestPauseGrows(t *testing.T) {
	for writes, want := range map[bool]string{false: "[100ms 200ms 400ms]", true: "[100ms 100ms 100ms]"} {
		ctx, stop := context.WithCancel(t.Context())
		c, sessions, said := Default(), 0, new(bytes.Buffer)
		c.Data, c.Listen = t.TempDir(), "127.0.0.1:0"
		err := Run(ctx, c, Options{Logger: slog.New(slog.NewTextHandler(said, nil)),
			Serve: func(ctx context.Context, e *engine.Engine, now func() time.Time) error {
				if sessions++; sessions > 3 {
					stop()
					return nil
				}
				if writes {
					_, err := e.Put(ctx, fmt.Sprint("p", sessions), []byte(
						`{"max_size":1,"features":[{"name":"x","kind":"number"}]}`), now().UnixNano())
					return cmp.Or(err, eventlog.ErrReopen)
				}
				return eventlog.ErrReopen
			}})
		var pauses []string
		for _, match := range regexp.MustCompile(`opened again" in=(\S+)`).FindAllStringSubmatch(said.String(), -1) {
			pauses = append(pauses, match[1])
		}
		if got := fmt.Sprint(pauses); got != want || err != nil {
			t.Errorf("a service that writes, %v, pauses %s, want %s: %v", writes, got, want, err)
		}
	}
}
