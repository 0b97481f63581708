package natslog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vitrine/internal/wait"
)

// ask sends a repeatable request until it is answered or the store's patience ends. A server never answers a request
// that came while its cluster lacked a leader, so one long wait would outlast the election in vain. Each wait is longer
// than the one before, up to longAttempt, because a busy server may need more time than the first wait.
func ask[T any](ctx context.Context, s *Store, request func(context.Context) (T, error)) (T, error) {
	patient, cancel := context.WithTimeout(ctx, s.options.Patience)
	defer cancel()
	begin := time.Now()
	for attemptTime := min(attempt, shortAttempt); ; attemptTime = longer(attemptTime) {
		answer, err := within(patient, attemptTime, request)
		if err == nil || !isUnanswered(err) || s.life.Closed() {
			return answer, err
		}
		s.turn(begin)
		switch {
		case wait.For(patient, pause) == nil:
		case ctx.Err() != nil:
			return answer, fmt.Errorf("%w: %v", ctx.Err(), err)
		default:
			return answer, fmt.Errorf("%w within %v: %v", errUnanswered, s.options.Patience, err)
		}
	}
}

// askFor is ask for a request with an argument.
func askFor[A, T any](ctx context.Context, s *Store, request func(context.Context, A) (T, error), about A) (T, error) {
	return ask(ctx, s, func(ctx context.Context) (T, error) { return request(ctx, about) })
}

// errUnanswered means that a server or its cluster did not answer.
var errUnanswered = errors.New("no answer")

// shortAttempt is the first wait for an answer to a request that changes no data.
var shortAttempt = 500 * time.Millisecond

// longAttempt is the longest wait for an answer.
const longAttempt = 5 * time.Second

// longer returns the next wait after one without an answer.
func longer(d time.Duration) time.Duration { return max(d, min(d+d/2, longAttempt)) }

// trusted is how long a server may leave requests unanswered before we ask another one. It is longer than an election.
// A server may be cut off from its cluster and still be connected to this process.
const trusted = 10 * time.Second

// turn connects to another server if requests have been unanswered for too long since begin.
func (s *Store) turn(begin time.Time) {
	if s.conn == nil || len(s.conn.Servers()) < 2 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(begin) < trusted || time.Since(s.turned) < trusted {
		return
	}
	s.turned = time.Now()
	s.options.Logger.Warn("the log's server does not answer: another one is asked",
		"server", s.conn.ConnectedUrlRedacted())
	_ = s.conn.ForceReconnect() // if the connection is closed, look returns ErrReopen
}

// within sends a request once.
func within[T any](ctx context.Context, limit time.Duration, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return request(ctx)
}

// Error codes from errors.json in nats-server: the cluster has too few servers online, the server cannot reach the
// cluster's leader, or the cluster has not yet stored an earlier copy of the message.
const (
	noPeers             = 10005
	clusterNotAvailable = 10008
	clusterNotLeader    = 10009
	duplicateInProcess  = 10158
)

// Error codes of a server whose storage is full.
const (
	noRoom    = 10023
	noStorage = 10047
)

var answeredLater = []jetstream.ErrorCode{noPeers, clusterNotAvailable, clusterNotLeader, duplicateInProcess}

// isUnanswered reports whether repeating the request may help.
func isUnanswered(err error) bool {
	if refused, ok := errors.AsType[*jetstream.APIError](err); ok {
		return slices.Contains(answeredLater, refused.ErrorCode)
	}
	return errors.Is(err, errLeaderless) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrTimeout) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, jetstream.ErrNoStreamResponse)
}

// errLeaderless means that a server in a cluster knows no leader of the stream. A server that is cut off still answers
// from its own data, which may be old.
var errLeaderless = errors.New("the server knows no leader of the stream")

// info asks for the stream's state, and notes its first message.
func (s *Store) info(ctx context.Context) (jetstream.StreamState, error) {
	info, err := ask(ctx, s, func(ctx context.Context) (*jetstream.StreamInfo, error) {
		info, err := s.stream.Info(ctx)
		if err == nil && info.Cluster != nil && info.Cluster.Leader == "" {
			err = errLeaderless
		}
		return info, err
	})
	if err != nil {
		return jetstream.StreamState{}, err
	}
	s.memory.removed(info.State.FirstSeq)
	s.absent.Store(missing(info))
	return info.State, nil
}

// missing returns how many of a stream's replicas are down or behind. During writes a healthy replica lacks the last
// few messages, and NATS does not call it current.
func missing(info *jetstream.StreamInfo) int64 {
	if info.Cluster == nil {
		return 0
	}
	n := info.Config.Replicas - 1
	for _, p := range info.Cluster.Replicas {
		isClose := p.Active > 0 && p.Active < 5*time.Second && p.Lag < 1000 // NATS sets 0 for a replica it never heard of
		if (p.Current || isClose) && !p.Offline {
			n--
		}
	}
	return int64(max(n, 0))
}

func (s *Store) get(ctx context.Context, sequence uint64) (*jetstream.RawStreamMsg, error) {
	return ask(ctx, s, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.stream.GetMsg(ctx, sequence)
	})
}
