package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"time"

	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/feed"
	"vitrine/service/keys"
)

const (
	heartbeat  = 15 * time.Second
	eventWrite = 10 * time.Second // for a listener to read an event
	retryAfter = 2 * time.Second  // for a listener to come back

	oldEntries, oldBytes = 256, 256 << 10 // that a listener reads from the log in one turn
)

// listen sends events until the listener disconnects, cannot keep up, or loses its key. A listener that names the last
// event that it saw first gets the later ones from the log.
func (s *Server) listen(c *call) error {
	key := c.key.Name
	if err := s.admit(c, s.accounts.of(key), false); err != nil { // it takes a place among the listeners only
		return err
	}
	if _, err := s.listeners.Take(key, s.limits.Subscribers, s.share(s.limits.KeySubscribers,
		s.limits.Subscribers)); err != nil {
		return err
	}
	defer s.listeners.Leave(key)
	placement := c.URL.Query().Get("placement")
	ctx, end := context.WithCancel(c.ctx)
	defer end()
	sub := s.feed.Subscribe(placement, c.key.Placements, end)
	defer s.feed.Leave(sub)
	after, resumes, err := s.lastEvent(ctx, c, placement)
	if err != nil {
		if errors.Is(err, context.Canceled) && c.ctx.Err() == nil {
			return engine.ErrStopped // the feed ended
		}
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	if c.Method == http.MethodHead { // it would wait for events that it never gets
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	l := &listener{Server: s, c: c, ctx: ctx, sub: sub, covered: c.key.Placements,
		control: http.NewResponseController(&c.w), sent: after}
	greeting := ": from now on"
	if resumes {
		greeting = fmt.Sprintf(": after entry %d", after)
	} else {
		s.feed.GoLive(sub)
		l.sent = s.engine.Sequence()
	}
	if l.send(fmt.Appendf(nil, "%s\nretry: %d\n\n", greeting, retryAfter.Milliseconds())) && l.control.Flush() == nil &&
		(!resumes || l.catchUp()) {
		l.follow()
	}
	return nil
}

// lastEvent returns the last event that a listener saw, from the header Last-Event-ID. Without the header resumes is
// false. If the listener asks for one placement, it must exist.
func (s *Server) lastEvent(ctx context.Context, c *call, placement string) (after uint64, resumes bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Answer)
	defer cancel()
	text := c.Header.Get("Last-Event-ID")
	after, err = strconv.ParseUint(cmp.Or(text, "0"), 10, 64)
	isUnknown := func() bool {
		_, err := s.engine.Config(placement)
		return placement != "" && (err != nil || !c.mine(placement))
	}
	if err == nil && (after > s.engine.Sequence() || isUnknown()) { // another process may know more
		if err := s.engine.CatchUp(ctx); err != nil {
			return 0, false, err
		}
	}
	if isUnknown() {
		return 0, false, fmt.Errorf("placement %q: %w", placement, engine.ErrNotFound)
	}
	if text == "" {
		return 0, false, nil
	}
	if end := s.engine.Sequence(); err != nil || after > end {
		return 0, false, problemf(http.StatusBadRequest, "header", "Last-Event-ID: %q: must be the id of an event "+
			"of this service, from 0 to %d", readable(text), end)
	}
	leave, err := s.turns.Take(ctx, c.key.Name)
	if err != nil {
		return 0, false, err
	}
	defer leave()
	for _, err := range s.engine.Events(ctx, after+1) {
		if errors.Is(err, eventlog.ErrRemoved) {
			return 0, false, problemf(http.StatusGone, "removed", "Last-Event-ID: %d: events after it were "+
				"removed from the log: connect without it, and read the state again", after)
		}
		return after, true, err
	}
	return after, true, nil
}

// listener sends events to a subscriber.
type listener struct {
	*Server
	c       *call
	ctx     context.Context // until the subscription ends
	sub     *feed.Subscription
	covered []string // by the key at first
	control *http.ResponseController
	sent    uint64    // the last entry that was sent, or read from the log
	spoke   time.Time // when it sent something last
}

// send sends a message and reports whether the listener still reads.
func (l *listener) send(message []byte) bool {
	l.spoke = time.Now()
	// An error means that deadlines are not supported, as in tests without a connection.
	_ = l.control.SetWriteDeadline(l.spoke.Add(eventWrite))
	_, err := l.c.w.Write(message)
	return err == nil
}

// may reports whether the listener's key is still valid and for the same placements.
func (l *listener) may() bool {
	return l.authorize(l.c, keys.ScopeRead) == nil && slices.Equal(l.c.key.Placements, l.covered)
}

func (l *listener) end() {
	_ = l.send([]byte("event: end\ndata: {}\n\n"))
	_ = l.control.Flush()
}

// beat says that the stream is still there. It reports whether the listener still reads.
func (l *listener) beat() bool {
	return l.send([]byte(": still here\n\n")) && l.control.Flush() == nil
}

// identified appends an event with its id, which is its entry.
func identified(b []byte, entry uint64, text []byte) []byte {
	return fmt.Appendf(b, "id: %d\n%s", entry, text)
}

// catchUp sends the log's entries after the last sent one, until the rest arrives live. It reports whether the listener
// stays.
func (l *listener) catchUp() bool {
	for !l.sub.IsLive() {
		if l.sent+feed.Backlog/2 > l.engine.Sequence() {
			l.feed.GoLive(l.sub) // later events arrive live, and earlier ones are part of the state
		}
		if !l.read() || l.control.Flush() != nil {
			return false
		}
	}
	return true
}

// read sends the log's entries up to its end. It reads a few at each turn of its key, and sends them after the turn.
// Once events arrive live, it no longer waits for turns: the entries left are few, and meanwhile the events queue up.
func (l *listener) read() bool {
	next, stop := iter.Pull2(l.engine.Events(l.ctx, l.sent+1))
	defer stop()
	for more, ok := true, true; more; {
		var old []byte
		if old, more, ok = l.readSome(next); len(old) > 0 && !l.send(old) {
			return false
		}
		if !ok {
			l.end()
			return false
		}
		if time.Since(l.spoke) >= l.heartbeat && !l.beat() { // a long log may not concern this listener
			return false
		}
	}
	return true
}

// turn waits for the key's turn, and says meanwhile that the stream is still there. It fails once the subscription ends.
func (l *listener) turn() (leave func(), err error) {
	for {
		ctx, cancel := context.WithTimeout(l.ctx, l.heartbeat)
		leave, err = l.turns.Take(ctx, l.c.key.Name)
		cancel()
		if err == nil || l.ctx.Err() != nil || !l.beat() {
			return leave, err
		}
	}
}

// readSome returns the next events in one turn. If ok is false, the listener must leave after them.
func (l *listener) readSome(next func() (engine.Entry, error, bool)) (old []byte, more, ok bool) {
	if !l.sub.IsLive() {
		leave, err := l.turn()
		if err != nil {
			return nil, false, false
		}
		defer leave()
	}
	for range oldEntries {
		e, err, more := next()
		if !more {
			return old, false, true
		}
		wants := err == nil && l.sub.Wants(e.Placement)
		if err != nil || wants && !l.may() {
			return old, false, false
		}
		if l.sent = e.Sequence; wants {
			old = identified(old, e.Sequence, feed.Text(e.Event))
		}
		if len(old) >= oldBytes || time.Since(l.spoke) >= l.heartbeat {
			break
		}
	}
	return old, true, true
}

// follow sends what comes.
func (l *listener) follow() {
	ticker := time.NewTicker(l.heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-l.c.ctx.Done():
			return
		case <-ticker.C:
			if !l.beat() {
				return
			}
		case m, ok := <-l.sub.Messages():
			if !ok || !l.may() {
				l.end()
				return
			}
			if m.Sequence > l.sent && !l.send(identified(nil, m.Sequence, m.Text)) {
				return
			}
		}
		if len(l.sub.Messages()) == 0 && l.control.Flush() != nil {
			return
		}
	}
}
