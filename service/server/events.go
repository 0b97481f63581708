package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"vitrine/service/eventlog"
	"vitrine/service/feed"
	"vitrine/service/keys"
)

const (
	heartbeat  = 15 * time.Second
	eventWrite = 10 * time.Second // for a listener to read an event
	retryAfter = 2 * time.Second  // for a listener to come back
)

// listen sends events until the listener disconnects, cannot keep up, or loses its key. A listener that names the last
// event that it saw first gets the later ones from the log.
func (s *Server) listen(c *call) error {
	key := c.key.Name
	if _, err := s.listeners.take(key, s.limits.Subscribers, s.share(s.limits.KeySubscribers,
		s.limits.Subscribers)); err != nil {
		return err
	}
	defer s.listeners.leave(key)
	sub := s.feed.Subscribe(c.URL.Query().Get("placement"), c.key.Placements)
	defer s.feed.Leave(sub)
	after, resumes, err := s.lastEvent(c)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	if c.Method == http.MethodHead { // it would wait for events that it never gets
		c.w.WriteHeader(http.StatusOK)
		return nil
	}
	l := &listener{Server: s, c: c, sub: sub, covered: c.key.Placements,
		control: http.NewResponseController(&c.w), sent: after}
	greeting := ": from now on"
	if resumes {
		greeting = fmt.Sprintf(": after entry %d", after)
	} else {
		s.feed.GoLive(sub)
		l.sent = s.engine.Sequence()
	}
	if !l.send(fmt.Appendf(nil, "%s\nretry: %d\n\n", greeting, retryAfter.Milliseconds())) || l.control.Flush() != nil {
		return nil
	}
	if resumes && !l.catchUp() {
		return nil
	}
	l.follow()
	return nil
}

// lastEvent returns the last event that a listener saw, from the header Last-Event-ID. Without the header resumes is
// false.
func (s *Server) lastEvent(c *call) (after uint64, resumes bool, err error) {
	text := c.Header.Get("Last-Event-ID")
	if text == "" {
		return 0, false, nil
	}
	after, err = strconv.ParseUint(text, 10, 64)
	if err == nil && after > s.engine.Sequence() { // another process may have sent it
		ctx, cancel := context.WithTimeout(c.ctx, s.limits.Answer)
		defer cancel()
		if err := s.engine.CatchUp(ctx); err != nil {
			return 0, false, err
		}
	}
	if end := s.engine.Sequence(); err != nil || after > end {
		return 0, false, problemf(http.StatusBadRequest, "header", "Last-Event-ID: %q: must be the id of an event "+
			"of this service, from 0 to %d", readable(text), end)
	}
	for _, err := range s.engine.Events(c.ctx, after+1) {
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

// pass sends an event. Its id is its entry.
func (l *listener) pass(sequence uint64, text []byte) bool {
	l.sent = sequence
	return l.send(fmt.Appendf(nil, "id: %d\n%s", sequence, text))
}

// catchUp sends the log's entries after the last sent one, until the rest arrives live. It reports whether the listener
// stays.
func (l *listener) catchUp() bool {
	for !l.sub.IsLive() {
		if l.sent+feed.Backlog/2 > l.engine.Sequence() {
			l.feed.GoLive(l.sub) // later events arrive live, and earlier ones are part of the state
		}
		if !l.read() {
			return false
		}
		if l.control.Flush() != nil {
			return false
		}
	}
	return true
}

// read sends the log's entries up to its end.
func (l *listener) read() bool {
	for e, err := range l.engine.Events(l.c.ctx, l.sent+1) {
		wants := err == nil && l.sub.Wants(e.Placement)
		if err != nil || wants && !l.may() {
			l.end()
			return false
		}
		if time.Since(l.spoke) >= l.heartbeat && !l.beat() { // a long log may not concern this listener
			return false
		}
		if l.sent = e.Sequence; wants && !l.pass(e.Sequence, feed.Text(e.Event)) {
			return false
		}
	}
	return true
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
			if m.Sequence > l.sent && !l.pass(m.Sequence, m.Text) {
				return
			}
		}
		if len(l.sub.Messages()) == 0 && l.control.Flush() != nil {
			return
		}
	}
}
