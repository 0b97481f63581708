package natslog

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Processes that follow a log ask the one that writes it by messages with an answer. Their subject has the epoch of the
// log's writer, which a follower knows from the log: a process that was fenced is asked nothing that its heir answers.

// subjectOf is the subject of requests to the writer.
func (s *Store) subjectOf(service string) string {
	return fmt.Sprintf("%s.leader.%d.%s", s.options.Stream, s.Epoch(), service)
}

// partHeader is in each part of a request that is larger than a message: a name of the request, and how many parts follow. A
// part is answered by nothing, and the last one by the answer. partTime is how long the parts of a request are kept.
const (
	partHeader = "Vitrine-Part"
	partTime   = time.Minute
)

// ErrNobody is returned for a request that no process has taken.
var ErrNobody = errors.New("no process writes the log")

// Ask sends a request to the process that writes the log, and returns its answer. Errors are ErrNobody, those of NATS, and that of
// ctx, after which the request may have been answered.
func (s *Store) Ask(ctx context.Context, service string, request []byte) ([]byte, error) {
	m := nats.NewMsg(s.subjectOf(service))
	most := int(s.conn.MaxPayload()) - maxHeaders
	id := ""
	if len(request) > most {
		id = rand.Text()
	}
	for {
		n := min(most, len(request))
		m.Data, request = request[:n], request[n:]
		if id != "" {
			m.Header.Set(partHeader, fmt.Sprintf("%s %d", id, (len(request)+most-1)/most))
		}
		answer, err := s.conn.RequestMsgWithContext(ctx, m)
		if errors.Is(err, nats.ErrNoResponders) {
			return nil, fmt.Errorf("%w: %s, epoch %d", ErrNobody, s.where(), s.Epoch())
		}
		if err != nil {
			return nil, fmt.Errorf("asking the writer of %s: %w", s.where(), err)
		}
		if len(request) == 0 {
			return answer.Data, nil
		}
	}
}

// maxHeaders are the bytes of a message that are left for its headers.
const maxHeaders = 1000

// Answer answers requests to the writer of the log, each in a goroutine of its own, until stop is called or the store is
// closed.
func (s *Store) Answer(service string, handle func(request []byte) []byte) (stop func(), err error) {
	var running sync.WaitGroup
	parts := assembly{of: map[string][]byte{}}
	sub, err := s.conn.Subscribe(s.subjectOf(service), func(m *nats.Msg) {
		request, complete := parts.add(m)
		if !complete {
			_ = m.Respond(nil) // who asked asks again
			return
		}
		running.Go(func() { _ = m.Respond(handle(request)) })
	})
	if err != nil {
		return nil, fmt.Errorf("natslog: %s: %w", s.where(), err)
	}
	_ = s.conn.FlushTimeout(attempt) // so that who asks from now on reaches it
	return func() {
		_ = sub.Unsubscribe() // a closed connection has no subscriptions
		running.Wait()
	}, nil
}

// assembly has the requests of which parts have come, by their names.
type assembly struct {
	mu sync.Mutex
	of map[string][]byte
}

// add returns the request of a message, if it is complete.
func (a *assembly) add(m *nats.Msg) (request []byte, complete bool) {
	var id string
	var left int
	if _, err := fmt.Sscanf(m.Header.Get(partHeader), "%s %d", &id, &left); err != nil {
		return m.Data, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	request, known := a.of[id]
	request = append(request, m.Data...)
	if left == 0 {
		delete(a.of, id)
		return request, true
	}
	a.of[id] = request
	if !known {
		time.AfterFunc(partTime, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.of, id)
		})
	}
	return nil, false
}

const replicaKey = "replicas"

// NewReplica returns a number that no other process at the log has had. It counts in the bucket of the lease. If that was
// lost, the hours since 2025 are larger than any number before, unless processes have started more often.
func (s *Store) NewReplica(ctx context.Context) (uint64, error) {
	hours := uint64(time.Since(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Hour)
	for {
		entry, err := ask(ctx, s, func(ctx context.Context) (jetstream.KeyValueEntry, error) { return s.lease.bucket.Get(ctx, replicaKey) })
		n, revision := hours, uint64(0)
		switch {
		case err == nil && len(entry.Value()) == 8:
			n, revision = binary.BigEndian.Uint64(entry.Value()), entry.Revision()
		case err == nil:
			revision = entry.Revision()
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return 0, fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
		}
		n++
		value := binary.BigEndian.AppendUint64(nil, n)
		_, err = within(ctx, attempt, func(ctx context.Context) (uint64, error) {
			if revision == 0 {
				return s.lease.bucket.Create(ctx, replicaKey, value)
			}
			return s.lease.bucket.Update(ctx, replicaKey, value, revision)
		})
		if err == nil {
			return n, nil
		}
		if !isWrongRevision(err) && !isUnanswered(err) {
			return 0, fmt.Errorf("natslog: the lease of %s: %w", s.where(), err)
		}
		if err := wait(ctx, pause); err != nil {
			return 0, err
		}
	}
}
