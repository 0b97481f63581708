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

// partHeader is in each part of a request that is larger than a message: a name of the request, how many parts follow, and how
// many came before. A part is answered by nothing, and the last one by the answer.
const partHeader = "Vitrine-Part"

// The parts of a request are kept for partTime, and all of them may have maxParts bytes.
var (
	partTime = time.Minute
	maxParts = 256 << 20
)

// refusalHeader is in an answer that is none, and says why.
const refusalHeader = "Vitrine-Refusal"

// ErrNobody is returned for a request that no process has taken, and ErrRefused for one that the writer cannot take, or whose
// answer it cannot send.
var (
	ErrNobody  = errors.New("no process writes the log")
	ErrRefused = errors.New("the writer of the log refuses the request")
)

// Ask sends a request to the process that writes the log, and returns its answer. Errors are ErrNobody, ErrRefused, those of NATS, and
// that of ctx. After ErrRefused and those of ctx and NATS the request may have been carried out.
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

// maxHeaders are the bytes of a message that are left for its headers.
const maxHeaders = 1000

// Answer answers requests to the writer of the log, each in a goroutine of its own, until stop is called or the store is
// closed.
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
	_ = s.conn.FlushTimeout(attempt) // so that who asks from now on reaches it
	return func() {
		unsubscribe()
		running.Wait()
	}, nil
}

// respond answers a request. Who asked is not left without an answer if it is too large for a message.
func (s *Store) respond(m *nats.Msg, answer []byte) {
	switch err := s.conn.PublishMsg(&nats.Msg{Subject: m.Reply, Data: answer}); {
	case errors.Is(err, nats.ErrMaxPayload):
		s.refuse(m, fmt.Errorf("it is done, but the answer of %d bytes is larger than a message of the log's server: raise its max_payload of %d", len(answer), s.conn.MaxPayload()))
	case err != nil && !s.isClosed(): // who asked asks again
		s.options.Logger.Warn("a request of a follower is not answered", "cause", err.Error())
	}
}

// refuse answers a request with the reason why there is no answer.
func (s *Store) refuse(m *nats.Msg, why error) {
	refusal := nats.NewMsg(m.Reply)
	refusal.Header.Set(refusalHeader, why.Error())
	if err := s.conn.PublishMsg(refusal); err != nil && !s.isClosed() {
		s.options.Logger.Warn("a request of a follower is not answered", "cause", err.Error())
	}
}

// assembly has the requests of which parts have come, by their names.
type assembly struct {
	mu   sync.Mutex
	of   map[string]*partial
	size int // of all parts
}

// partial has the parts of a request that have come, from the first one on.
type partial struct {
	data    []byte
	parts   int
	forgets *time.Timer
}

// add returns the request of a message, if it is complete. An error is the asker's to know.
func (a *assembly) add(m *nats.Msg) (request []byte, complete bool, err error) {
	header := m.Header.Get(partHeader)
	if header == "" {
		return m.Data, true, nil
	}
	var id string
	var left, before int
	if _, err := fmt.Sscanf(header, "%s %d %d", &id, &left, &before); err != nil {
		return nil, false, fmt.Errorf("the part %q of a request is not one that this program knows: use one release for all", header)
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
		return nil, false, fmt.Errorf("part %d of a request came without those before: parts are kept for %v", before+1, partTime)
	case a.size+len(m.Data) > maxParts:
		a.forget(id)
		return nil, false, fmt.Errorf("parts of requests have %d bytes, at most %d fit: send smaller requests, or fewer at once", a.size+len(m.Data), maxParts)
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

// forget removes a request, if it is there. The caller holds mu.
func (a *assembly) forget(id string) {
	if p := a.of[id]; p != nil {
		p.forgets.Stop()
		a.size -= len(p.data)
		delete(a.of, id)
	}
}

const replicaKey = "replicas"

// NewReplica returns a number that no other process at the log has had. It counts in the bucket of the lease. If the bucket
// was lost, the count begins again with the hours since 2025. That is larger than any number before unless a process has
// started more than once an hour.
func (s *Store) NewReplica(ctx context.Context) (uint64, error) {
	hours := uint64(time.Since(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)) / time.Hour)
	for begin := time.Now(); ; {
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
		if isUnanswered(err) { // as in lease.take
			s.turn(begin)
		}
		if err := wait(ctx, pause); err != nil {
			return 0, err
		}
	}
}
