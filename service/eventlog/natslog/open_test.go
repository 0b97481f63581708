package natslog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"vitrine/service/eventlog"
	"vitrine/service/eventlog/logtest"
	"vitrine/service/eventlog/natslog"
)

func TestOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		options natslog.Options
		want    string
	}{
		{natslog.Options{}, "a directory or the URL"},
		{natslog.Options{Dir: "x", URL: "nats://x"}, "one of them"},
		{natslog.Options{URL: "nats://127.0.0.1:1"}, "nats://127.0.0.1:1"},
		{natslog.Options{Dir: file}, file},
		{natslog.Options{Dir: t.TempDir(), ReadOnly: true}, "not found"},
		{natslog.Options{Dir: t.TempDir(), Stream: "a b"}, `stream "a b"`},
	} {
		if s, err := natslog.Open(t.Context(), c.options); err == nil || s != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c.options, err, c.want)
		}
	}
}

// A server that cannot start is not waited for, and says why.
func TestSpoiltDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "jetstream"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := natslog.Open(t.Context(), natslog.Options{Dir: dir, Patience: time.Hour})
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("%v, want what the server says", err)
	}
}

// A directory is for one store. Another is refused, and does it no harm.
func TestDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := natslog.Open(t.Context(), natslog.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), dir+" is open") {
		t.Errorf("opened twice: %v", err)
	}
	fill(t, s, 1, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	defer s.Close()
	logtest.Want(t, s, 1, numbered(1, 3)...)
}

// A restored log goes on with the numbers of its snapshots.
func TestFirst(t *testing.T) {
	dir := t.TempDir()
	s := connect(t, natslog.Options{Dir: dir, First: 1001})
	if x, err := s.Extent(t.Context()); err != nil || x.First != 1001 || x.Last != 1000 {
		t.Errorf("a new log from 1001 on is [%d, %d], %v", x.First, x.Last, err)
	}
	if last, err := s.Append(t.Context(), entry(1), entry(2)); err != nil || last != 1002 {
		t.Fatalf("sequence %d, %v", last, err)
	}
	s.Close()
	s = connect(t, natslog.Options{Dir: dir})
	logtest.Want(t, s, 1001, numbered(1, 2)...)
	if _, err := logtest.Read(s, 1000); !errors.Is(err, eventlog.ErrRemoved) {
		t.Errorf("%v, want ErrRemoved", err)
	}
}

// A log spans many files of the server, and is read from anywhere.
func TestManyBlocks(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	defer s.Close()
	for i := range 40 {
		e := make([]byte, 500_000)
		e[0] = byte(i)
		if _, err := s.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if blocks, _ := filepath.Glob(strings.ReplaceAll(inMsgs(dir, "*.blk"), "$", "?")); len(blocks) < 2 {
		t.Errorf("%d files", len(blocks))
	}
	for from := uint64(1); from <= 40; from += 13 {
		have, err := logtest.Read(s, from)
		if err != nil || len(have) != int(41-from) || have[0][0] != byte(from-1) {
			t.Errorf("from %d on: %d entries, %v", from, len(have), err)
		}
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := open(t, t.TempDir())
	fill(t, s, 1, 5)
	logtest.Want(t, s, 1, numbered(1, 5)...)
	for range s.Entries(t.Context(), 1) {
		break
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}

// A server that needs longer for an answer than the first attempts wait is heard nevertheless.
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
		}
	})
}

// A server that was away for long is asked again soon: no attempt outlasts it by much.
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
			if n, err := natslog.Ask(t.Context(), 5*time.Minute, request); n != 7 || err != nil || time.Since(begin) > away+6*time.Second {
				t.Errorf("away for %v: %d, %v after %v", away, n, err, time.Since(begin))
			}
		})
	}
}

// Errors of a cluster that is not ready are no refusals.
func TestAnsweredLater(t *testing.T) {
	for refused, want := range map[*server.ApiError]bool{
		server.NewJSClusterNoPeersError(errors.New("")):   true,
		server.NewJSClusterNotAvailError():                true,
		server.NewJSClusterNotLeaderError():               true,
		server.NewJSStreamDuplicateMessageConflictError(): true,
		server.NewJSStreamNotFoundError():                 false,
	} {
		if got := natslog.IsUnanswered(&jetstream.APIError{ErrorCode: jetstream.ErrorCode(refused.ErrCode)}); got != want {
			t.Errorf("%v: asked again: %v", refused, got)
		}
	}
}
