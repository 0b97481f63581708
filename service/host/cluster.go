package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"vitrine/internal/replace"
	"vitrine/internal/wait"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/natslog"
	"vitrine/service/server"
	"vitrine/service/state"
)

// A follower's requests to the leader.
const (
	toPropose = "propose" // a decision or an outcome: engine.Engine.Accept
	toForward = "forward" // another request of a caller: server.Server.Forwarded
)

// answerFollowers answers the processes that follow the log, until stop is called.
func (l *session) answerFollowers(ctx context.Context, s *server.Server) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	unlisten, err := l.shared.Answer(toPropose, func(proposal []byte) []byte {
		ctx, cancel := context.WithTimeout(ctx, acceptTime)
		defer cancel()
		return l.engine.Accept(ctx, proposal, l.clock.now().UnixNano())
	})
	if err != nil {
		cancel()
		return nil, err
	}
	end := func() { cancel(); unlisten() }
	if s == nil {
		return end, nil
	}
	unlistenForwards, err := l.shared.Answer(toForward, s.Forwarded)
	if err != nil {
		end()
		return nil, err
	}
	return func() { end(); unlistenForwards() }, nil
}

// acceptTime is how long a proposal may take, which a follower repeats.
const acceptTime = 10 * time.Second

// propose asks the leader to write this process's decision.
func (l *session) propose(ctx context.Context, proposal []byte) ([]byte, error) {
	return l.shared.Ask(ctx, toPropose, proposal)
}

// forward passes a request on to the leader. It waits for a leader as long as a take-over may take. A request that
// reached a process is not repeated, because not every change may be made twice.
func (l *session) forward(ctx context.Context, request []byte) ([]byte, error) {
	for begin := time.Now(); ; {
		answer, err := l.ask(ctx, request)
		switch {
		case err == nil || errors.Is(err, natslog.ErrRefused) || errors.Is(ctx.Err(), context.Canceled):
			return answer, err
		case !errors.Is(err, natslog.ErrNobody): // not wrapped, because callers repeat a change that was merely slow
			return nil, fmt.Errorf("%w: %v", engine.ErrUnanswered, err)
		case time.Since(begin) > leaderPatience:
			return nil, fmt.Errorf("%w: %w", engine.ErrNoLeader, err)
		}
		if err := wait.For(ctx, minPause); err != nil {
			return nil, err
		}
	}
}

// ask asks the leader once, until another process leads.
func (l *session) ask(ctx context.Context, request []byte) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	epoch := l.shared.Epoch()
	go func() {
		for wait.For(ctx, minPause) == nil {
			if l.shared.Epoch() != epoch {
				cancel()
			}
		}
	}()
	return l.shared.Ask(ctx, toForward, request)
}

// leaderPatience is how long a caller waits for a leader.
const leaderPatience = 5 * time.Second

// lookDeadline limits the search for a snapshot on the log's servers: they may be ill, and the one on the disk will do.
const lookDeadline = 5 * time.Second

// firstRead is how long the first attempt to read a snapshot may take.
const firstRead = 5 * time.Second

// patiently reads until ctx ends. If the servers elect a leader, earlier requests are lost without notice, so each
// attempt gets a limited time, and the next one twice that.
func patiently(ctx context.Context, wait time.Duration, read func(context.Context) error) error {
	for ; ; wait *= 2 {
		attempt, cancel := context.WithTimeout(ctx, wait)
		err := read(attempt)
		isOver := attempt.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !isOver {
			return err
		}
	}
}

// fetchSnapshot copies the servers' snapshot to the data directory, if the directory holds none or an earlier one, and
// returns its position, or the zero position if there is no snapshot.
func (l *session) fetchSnapshot(ctx context.Context) (eventlog.Position, error) {
	looking, cancel := context.WithTimeout(ctx, lookDeadline)
	defer cancel()
	at, read, err := l.shared.LastSnapshot(looking)
	if errors.Is(err, natslog.ErrNoSnapshot) {
		return at, nil
	}
	if err != nil {
		return at, err
	}
	path := filepath.Join(l.Data, SnapshotFile)
	own, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return at, err
	}
	if have, err := state.SnapshotPosition(own); err == nil && have.Sequence >= at.Sequence {
		if _, err := eventlog.Locate(ctx, l.store, have); err == nil {
			return at, nil
		}
	}
	if _, err := eventlog.Locate(ctx, l.store, at); err != nil {
		return at, err
	}
	ctx, cancel = context.WithTimeout(ctx, shareDeadline)
	defer cancel()
	if err := patiently(ctx, firstRead, func(ctx context.Context) error {
		return replace.PrivateStream(path, func(w io.Writer) error { return read(ctx, w) })
	}); err != nil {
		return at, err
	}
	l.Logger.Info("the state begins with the snapshot beside the log", "entry", at.Sequence)
	return at, nil
}
