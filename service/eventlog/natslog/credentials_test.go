package natslog_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"vitrine/internal/fatal"
	"vitrine/internal/freeport"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

// until waits until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// An operator changes the server's token, and changes it back: the writer and the follower go on.
func TestTokenReturns(t *testing.T) {
	t.Parallel()
	o := server.Options{Port: freeport.Local(t), StoreDir: t.TempDir(), NoLog: true, NoSystemAccount: true}
	start := func(token string) *server.Server {
		o.Authorization = token
		s, err := natstest.Start(*o.Clone())
		fatal.If(t, err)
		return s
	}
	running := start("right")
	t.Cleanup(func() { natstest.Stop(running) })
	var refused [2]atomic.Int64
	open := func(i int) *natslog.Store {
		return connect(t, natslog.Options{URL: running.ClientURL(), Standby: true, Connect: []nats.Option{
			nats.Token("right"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
				if errors.Is(err, nats.ErrAuthorization) {
					refused[i].Add(1)
				}
			})}})
	}
	writer, follower := open(0), open(1)
	fill(t, writer, 1, 2)
	natstest.Stop(running)
	running = start("wrong")
	until(t, "each is refused three times", func() bool { return refused[0].Load() >= 3 && refused[1].Load() >= 3 })
	natstest.Stop(running)
	running = start("right")
	fill(t, writer, 3, 4)
	var have [][]byte
	for entries, err := range follower.Follow(t.Context(), 1) {
		fatal.If(t, err)
		if have = append(have, entries...); len(have) == 4 {
			break
		}
	}
	logtest.Want(t, follower, 1, numbered(1, 4)...)
}

// If a connection is closed all the same, the store loses its log, so that the service opens it again.
func TestConnectionIsClosed(t *testing.T) {
	url := natstest.URL(t)
	writer := connect(t, natslog.Options{URL: url})
	follower := connect(t, natslog.Options{URL: url, Standby: true})
	for _, s := range []*natslog.Store{follower, writer} {
		natslog.Abandon(s)
		select {
		case <-s.Lost():
		case <-time.After(patience):
			t.Fatal("the store keeps a log that it cannot reach")
		}
		if err := s.Loss(); !errors.Is(err, eventlog.ErrReopen) {
			t.Error(err)
		}
	}
}
