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

	"vitrine/internal/wait"
)

// Followers send requests to the log's writer as messages and wait for the answer. The subject contains the writer's
// epoch, which a follower knows from the log. A fenced process therefore gets no requests meant for its successor.

// subjectOf returns the subject for requests to the writer.
func (s *Store) subjectOf(service string) string {
	return fmt.Sprintf("%s.leader.%d.%s", s.options.Stream, s.Epoch(), service)
}

// partHeader is in each part of a request that does not fit in one message: the request's name, the number of parts to
// follow, and the number of parts before. Only the last part is answered.
const partHeader = "Vitrine-Part"

// Parts of a request are kept for partTime. All parts together may take maxParts bytes.
var (
	partTime = time.Minute
	maxParts = 256 << 20
)

// refusalHeader marks a refusal instead of an answer, and gives the reason.
const refusalHeader = "Vitrine-Refusal"

// ErrNobody is returned for a request that did not reach any process. ErrRefused is returned if the writer cannot
// accept a request or cannot send its answer.
var (
	ErrNobody  = errors.New("no process writes the log")
	ErrRefused = errors.New("the writer of the log refuses the request")
)

// Ask sends a request to the log's writer, and returns its answer. Errors are ErrNobody, ErrRefused, errors from NATS,
// and ctx's error. After any of them but ErrNobody, the request may have been carried out.
func (s *Store) Ask(ctx context.Context, service string, request []byte) ([]byte, error) {
	m := nats.NewMsg(s.subjectOf(service))
	most := int(s.conn.MaxPayload()) - maxHeaders
	id := ""
	if len(request) > most {
		id = rand.Text()
	}
	for before := 0; ; before++ {
		n := min(most, len(request))
		m.Data, request = request[:n], request[n:]
		if id != "" {
			m.Header.Set(partHeader, fmt.Sprintf("%s %d %d", id, (len(request)+most-1)/most, before))
		}
		answer, err := s.conn.RequestMsgWithContext(ctx, m)
		if errors.Is(err, nats.ErrNoResponders) {
			return nil, fmt.Errorf("%w: %s, epoch %d", ErrNobody, s.where(), s.Epoch())
		}
		if err != nil {
			return nil, fmt.Errorf("asking the writer of %s: %w", s.where(), err)
		}
		if refusal := answer.Header.Get(refusalHeader); refusal != "" {
			return nil, fmt.Errorf("%w: %s", ErrRefused, refusal)
		}
		if len(request) == 0 {
			return answer.Data, nil
		}
	}
}

// maxHeaders is the room for headers in a message, in bytes.
const maxHeaders = 1000

// Answer answers requests to the log's writer, each in its own goroutine, until stop is called or the store is closed.
func (s *Store) Answer(service string, handle func(request []byte) []byte) (stop func(), err error) {
	var running sync.WaitGroup
	parts := assembly{of: map[string]*partial{}}
	unsubscribe, err := s.conn.Listen(s.subjectOf(service), func(m *nats.Msg) {
		request, complete, err := parts.add(m)
		switch {
		case err != nil:
			s.refuse(m, err)
		case complete:
			running.Go(func() { s.respond(m, handle(request)) })
		default:
			s.respond(m, nil)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("natslog: %s: %w", s.where(), err)
	}
	_ = s.conn.FlushTimeout(attempt) // so that later requests reach it
	return func() {
		unsubscribe()
		running.Wait()
	}, nil
}

// respond answers a request. If the answer does not fit in one message, respond sends a refusal instead.
func (s *Store) respond(m *nats.Msg, answer []byte) {
	switch err := s.conn.PublishMsg(&nats.Msg{Subject: m.Reply, Data: answer}); {
	case errors.Is(err, nats.ErrMaxPayload):
		s.refuse(m, fmt.Errorf("it is done, but the answer of %d bytes is larger than a message of the log's "+
			"server: raise its max_payload of %d", len(answer), s.conn.MaxPayload()))
	case err != nil && !s.life.Closed(): // the follower will ask again
		s.options.Logger.Warn("a request of a follower is not answered", "cause", err.Error())
	}
}

// refuse answers a request with the reason for the refusal.
func (s *Store) refuse(m *nats.Msg, why error) {
	refusal := nats.NewMsg(m.Reply)
	refusal.Header.Set(refusalHeader, why.Error())
	if err := s.conn.PublishMsg(refusal); err != nil && !s.life.Closed() {
		s.options.Logger.Warn("a request of a follower is not answered", "cause", err.Error())
	}
}

// assembly collects parts of requests, by name.
type assembly struct {
	mu   sync.Mutex
	of   map[string]*partial
	size int // total size of the parts
}

// partial holds the parts of one request that have arrived, from the first one on.
type partial struct {
	data    []byte
	parts   int
	forgets *time.Timer
}

// add adds a message and returns the whole request once it is complete. Errors go back to the sender.
func (a *assembly) add(m *nats.Msg) (request []byte, complete bool, err error) {
	header := m.Header.Get(partHeader)
	if header == "" {
		return m.Data, true, nil
	}
	var id string
	var left, before int
	if _, err := fmt.Sscanf(header, "%s %d %d", &id, &left, &before); err != nil {
		return nil, false, fmt.Errorf("the part %q of a request is not one that this program knows: use one "+
			"release for all", header)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.of[id]
	if p == nil && before == 0 {
		p = new(partial)
		p.forgets = time.AfterFunc(partTime, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.forget(id)
		})
		a.of[id] = p
	}
	switch {
	case p == nil || before != p.parts:
		a.forget(id)
		return nil, false, fmt.Errorf("part %d of a request came without those before: parts are kept for %v",
			before+1, partTime)
	case a.size+len(m.Data) > maxParts:
		a.forget(id)
		return nil, false, fmt.Errorf("parts of requests have %d bytes, at most %d fit: send smaller requests, or "+
			"fewer at once", a.size+len(m.Data), maxParts)
	}
	p.data = append(p.data, m.Data...)
	p.parts++
	a.size += len(m.Data)
	if left > 0 {
		return nil, false, nil
	}
	a.forget(id)
	return p.data, true, nil
}

// forget drops a request, if present. The caller holds mu.
func (a *assembly) forget(id string) {
	if p := a.of[id]; p != nil {
		p.forgets.Stop()
		a.size -= len(p.data)
		delete(a.of, id)
	}
}

const replicaKey = "replicas"

// NewReplica returns a number that no other process on the log ever got. The counter is in the lease's bucket. If the
// bucket is lost, counting resumes from the hours since 2025. That exceeds every earlier number unless processes
// started more than once an hour.
func (s *Store) NewReplica(ctx context.Context) (uint64, error) {
	hours := uint64(time.Since(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Hour)
	for begin := time.Now(); ; {
		entry, err := askFor(ctx, s, s.lease.bucket.Get, replicaKey)
		n, revision := hours, uint64(0)
		switch {
		case err == nil && len(entry.Value()) == 8:
			n, revision = binary.BigEndian.Uint64(entry.Value()), entry.Revision()
		case err == nil:
			revision = entry.Revision()
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return 0, reopens(ctx, fmt.Errorf("natslog: the lease of %s: %w", s.where(), err))
		}
		n++
		value := binary.BigEndian.AppendUint64(nil, n)
		if _, err = s.lease.set(ctx, replicaKey, value, revision, attempt); err == nil {
			return n, nil
		}
		if !isWrongRevision(err) && !isUnanswered(err) {
			return 0, fmt.Errorf("natslog: the lease of %s: %w", s.where(), refused(err))
		}
		if isUnanswered(err) { // as in lease.take
			s.turn(begin)
		}
		if err := wait.For(ctx, pause); err != nil {
			return 0, err
		}
	}
}
