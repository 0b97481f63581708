package natslog_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/eventlog/natslog/natstest"
)

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		options natslog.Options
		want    string
	}{
		{natslog.Options{}, "not a URL"},
		{natslog.Options{URL: "nats://127.0.0.1:1"}, "nats://127.0.0.1:1"},
		{natslog.Options{URL: natstest.URL(t), ReadOnly: true}, "not found"},
		{natslog.Options{URL: natstest.URL(t), Stream: "a b"}, `stream "a b"`},
	} {
		if s, err := natslog.Open(t.Context(), c.options); err == nil || s != nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c.options, err, c.want)
		}
	}
}

// A copy is unfinished from its first moment, until its maker says otherwise.
func TestCopyBegins(t *testing.T) {
	o := natslog.Options{URL: natstest.URL(t), Copies: true}
	for range 2 { // it may be interrupted at once, and repeated
		connect(t, o).Close()
		expect.Fails(natslog.Open(t.Context(), natslog.Options{URL: o.URL}))(t, eventlog.ErrUnfinished)
	}
	c := connect(t, o)
	fatal.If(t, errors.Join(c.MarkCopy(t.Context(), false), c.Close()))
	connect(t, natslog.Options{URL: o.URL})
}

// A log that continues another one keeps its identity, sequence and running hash.
func TestStart(t *testing.T) {
	start := eventlog.Position{Log: eventlog.NewIdentity(), Sequence: 1000, Hash: [16]byte{7}}
	o := natslog.Options{URL: natstest.URL(t), Start: start}
	for range 2 { // even if the first run appended no entries
		s := connect(t, o)
		if p, err := s.Position(t.Context(), 1000); err != nil || p != start {
			t.Errorf("%+v, %v", p, err)
		}
		s.Close()
	}
	s := connect(t, o)
	if last, err := s.Append(t.Context(), numbered(1, 2)...); err != nil || last != 1002 {
		t.Fatalf("sequence %d, %v", last, err)
	}
	s.Close()
	o.Start = eventlog.Position{}
	s = connect(t, o)
	logtest.Want(t, s, 1001, numbered(1, 2)...)
	if p, err := s.Position(t.Context(), 1002); err != nil || p != start.After(numbered(1, 2)...) {
		t.Errorf("%+v, %v", p, err)
	}
	expect.Fails(logtest.Read(s, 1000))(t, eventlog.ErrRemoved)
}

// An answer still counts if the server takes longer than the first attempts wait.
func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(2 * time.Second):
				return 7, nil
			}
		}
		if n, err := natslog.Ask(t.Context(), 30*time.Second, slow); n != 7 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if _, err := natslog.Ask(t.Context(), time.Second, slow); err == nil {
			t.Error("an answer after the end of patience")
		} else {
			once := natslog.Reopens(t.Context(), err)
			if expect.Error(t, once, eventlog.ErrReopen); natslog.Reopens(t.Context(), once) != once {
				t.Error("the error says twice that the log must be opened again")
			}
		}
	})
}

// A server that was away for long is soon asked again: no attempt outlasts its absence by much.
func TestAnswersAgain(t *testing.T) {
	for _, away := range []time.Duration{time.Second, 20 * time.Second, 4 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			request := func(ctx context.Context) (int, error) {
				if time.Since(begin) >= away {
					return 7, nil
				}
				<-ctx.Done()
				return 0, ctx.Err()
			}
			if n, err := natslog.Ask(t.Context(), 5*time.Minute, request); n != 7 || err != nil ||
				time.Since(begin) > away+6*time.Second {
				t.Errorf("away for %v: %d, %v after %v", away, n, err, time.Since(begin))
			}
		})
	}
}

// Errors from a cluster that is not ready do not count as refusals.
func TestAnsweredLater(t *testing.T) {
	for refused, want := range map[*server.ApiError]bool{
		server.NewJSClusterNoPeersError(errors.New("")):   true,
		server.NewJSClusterNotAvailError():                true,
		server.NewJSClusterNotLeaderError():               true,
		server.NewJSStreamDuplicateMessageConflictError(): true,
		server.NewJSStreamNotFoundError():                 false,
	} {
		if got := natslog.IsUnanswered(&jetstream.APIError{ErrorCode: jetstream.ErrorCode(
			refused.ErrCode)}); got != want {
			t.Errorf("%v: asked again: %v", refused, got)
		}
	}
}
