package natslog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// An answer that may have no end comes in parts, each a request of the process that answers to the one that has asked, which takes the
// next one when it has passed this one on. So no part waits in memory, and each of the two knows when the other is gone.

// answerHeader is in a request for such an answer, and in its parts it says what they are. An answer without it is whole: it is of an
// earlier program.
const (
	answerHeader = "Vitrine-Answer"
	partOfAnswer = "part"
	endOfAnswer  = "end"
	brokenAnswer = "broken" // it ends before its end
)

// The process that answers sends a part without bytes after answerBeat, and gives up on one that nobody takes after answerSlow. The
// one that asks gives up after answerSilence without a part.
var answerBeat, answerSlow, answerSilence = 5 * time.Second, 30 * time.Second, 15 * time.Second

// AskAtLength sends a request to one of the processes that have the log of a shard, and returns its answer as it comes. Errors are
// those of Ask; an answer that breaks off ends with io.ErrUnexpectedEOF, or the error of ctx.
func (p *Places) AskAtLength(ctx context.Context, shard int, request []byte) (io.ReadCloser, error) {
	stream := ShardStream(p.of.options.Stream, shard)
	for {
		to, err := p.answerer(ctx, stream)
		if err == nil {
			var a *longAnswer
			if a, err = p.begin(ctx, to.subject, request); err == nil {
				return a, nil
			}
			p.forget(stream, to)
			if errors.Is(err, nats.ErrNoResponders) { // it has gone since, and has not got the request
				continue
			}
		}
		return nil, p.unanswered(stream, err)
	}
}

// begin sends a request to a process, and waits for the first part of its answer.
func (p *Places) begin(ctx context.Context, subject string, request []byte) (*longAnswer, error) {
	inbox := p.of.conn.NewInbox() // whose only subscriber is this answer
	parts, err := p.of.conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	a := &longAnswer{ctx: ctx, parts: parts}
	m := nats.NewMsg(subject)
	m.Reply, m.Data = inbox, request
	m.Header.Set(answerHeader, partOfAnswer)
	if err = p.of.conn.PublishMsg(m); err == nil {
		err = a.next()
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// longAnswer is an answer that comes in parts.
type longAnswer struct {
	ctx   context.Context
	parts *nats.Subscription
	taken *nats.Msg // the part that is being read
	rest  []byte    // of it
	end   error     // after it; nil if another part follows
}

// next waits for a part.
func (a *longAnswer) next() error {
	if a.taken != nil {
		if err := a.taken.Respond(nil); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(a.ctx, answerSilence)
	defer cancel()
	m, err := a.parts.NextMsgWithContext(ctx)
	if err != nil {
		return err
	}
	a.taken, a.rest = m, m.Data
	switch m.Header.Get(answerHeader) {
	case partOfAnswer:
	case brokenAnswer:
		a.end = io.ErrUnexpectedEOF
	default:
		a.end = io.EOF
	}
	return nil
}

// Read implements io.Reader.
func (a *longAnswer) Read(b []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.end != nil {
			return 0, a.end
		}
		if err := a.next(); err != nil {
			if a.end = a.ctx.Err(); a.end == nil {
				a.end = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
			}
		}
	}
	n := copy(b, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// Close ends the answer: the process that sends it knows it by its next part.
func (a *longAnswer) Close() error {
	err := a.parts.Unsubscribe()
	if a.taken != nil {
		_ = a.taken.Respond(nil) // it does not wait for this one
	}
	return err
}

// answerAtLength answers a request in parts. The context of answer ends when nobody takes them any more.
func (s *Store) answerAtLength(ctx context.Context, m *nats.Msg, answer func(ctx context.Context, request []byte, to io.Writer) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to := &parts{conn: s.conn, inbox: m.Reply, ctx: ctx, cancel: cancel}
	var beside sync.WaitGroup
	beside.Go(to.beat)
	defer beside.Wait()
	err := answer(ctx, m.Data, to)
	defer cancel()
	what := endOfAnswer
	if err != nil || ctx.Err() != nil {
		what = brokenAnswer
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	_ = to.conn.PublishMsg(to.message(what, nil))
}

// parts send what is written, each part when the one before was taken.
type parts struct {
	conn   *nats.Conn
	inbox  string
	ctx    context.Context
	cancel context.CancelFunc

	mu sync.Mutex // held while a part is sent
}

func (p *parts) message(what string, data []byte) *nats.Msg {
	m := nats.NewMsg(p.inbox)
	m.Data = data
	m.Header.Set(answerHeader, what)
	return m
}

// Write implements io.Writer.
func (p *parts) Write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := int(p.conn.MaxPayload()) - maxHeaders
	for n < len(b) {
		part := b[n:min(n+most, len(b))]
		if err := p.send(part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// send sends a part and waits until it is taken. The caller holds mu.
func (p *parts) send(part []byte) error {
	ctx, cancel := context.WithTimeout(p.ctx, answerSlow)
	defer cancel()
	_, err := p.conn.RequestMsgWithContext(ctx, p.message(partOfAnswer, part))
	if err != nil {
		p.cancel()
	}
	return err
}

// beat sends parts without bytes while there are no others, until the answer ends.
func (p *parts) beat() {
	for wait(p.ctx, answerBeat) == nil {
		if p.mu.TryLock() {
			_ = p.send(nil) // which ends the answer
			p.mu.Unlock()
		}
	}
}
