package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/keys"
	"vitrine/service/offer"
)

// Feed passes events to the listeners of /v1/events. Pass its method Applied as engine.Options.Applied. The zero value
// is ready.
//
// The engine never waits for a listener: one that cannot keep up is disconnected. When it returns with the last event
// that it saw, it first gets the later ones from the log.
type Feed struct {
	listening atomic.Int64

	mu     sync.Mutex
	closed bool
	to     map[*subscriber]struct{}
}

type subscriber struct {
	placement  string   // "" is every one
	placements []string // of the listener's key; nil is all
	messages   chan numbered
	live       bool // whether it gets what comes; before that it reads the log
}

// numbered is the text of an event without its id, and its entry, which becomes the id.
type numbered struct {
	sequence uint64
	text     []byte
}

// wants reports whether a listener gets the events of a placement.
func (s *subscriber) wants(placement string) bool {
	return (s.placement == "" || s.placement == placement) && keys.Covers(s.placements, placement)
}

// backlog is how many events a listener may be behind.
const backlog = 1024

// Applied sends an entry of the log to the listeners.
func (f *Feed) Applied(sequence uint64, e *eventlog.Event) {
	if f.listening.Load() == 0 {
		return
	}
	text := message(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.to {
		if !s.live || !s.wants(e.Placement) {
			continue
		}
		select {
		case s.messages <- numbered{sequence, text}:
		default:
			f.drop(s)
		}
	}
}

// drop ends a subscription. The caller holds mu.
func (f *Feed) drop(s *subscriber) {
	if _, ok := f.to[s]; ok {
		delete(f.to, s)
		f.listening.Add(-1)
		close(s.messages)
	}
}

// subscribe adds a listener, or returns nil if the feed is closed.
func (f *Feed) subscribe(c *call) *subscriber {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.to == nil {
		f.to = map[*subscriber]struct{}{}
	}
	s := &subscriber{placement: c.URL.Query().Get("placement"), placements: c.key.Placements,
		messages: make(chan numbered, backlog)}
	f.to[s] = struct{}{}
	f.listening.Add(1)
	if f.closed {
		f.drop(s)
	}
	return s
}

// goLive lets a listener get what comes from now on.
func (f *Feed) goLive(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.live = true
}

func (f *Feed) leave(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(s)
}

// Close ends all subscriptions.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for s := range f.to {
		f.drop(s)
	}
}

// message returns a server-sent event but for its id.
func message(e *eventlog.Event) []byte {
	kind, event := eventOf(e)
	data, err := json.Marshal(event, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("server: an event does not marshal: %v", err))
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data)
}

// eventOf returns the event that listeners receive, and its kind.
func eventOf(e *eventlog.Event) (kind string, t api.Event) {
	t = api.Event{Time: time.Unix(0, e.Time).UTC(), Placement: e.Placement, By: e.By}
	switch body := e.Body.(type) {
	case *eventlog.PlacementPut:
		kind, t.Config = "placement-put", configOf(body.Config)
	case *eventlog.PlacementDeleted:
		kind = "placement-deleted"
	case *eventlog.Offered:
		kind, t.Decision = "offered", body.Decision
		t.Candidates, t.Source, t.PolicyEntry, t.Shown = body.Candidates, offer.SourceNames[body.Mode],
			body.PolicyEntry, make([]string, len(body.Shown))
		for k, i := range body.Shown {
			t.Shown[k] = body.ItemIDs[i]
		}
	case *eventlog.Chosen:
		kind, t.Decision, t.Position, t.Taken = "chosen", body.Decision, new(int(body.Choice)), takenOf(body.Basket)
	case *eventlog.Expired:
		kind, t.Decision = "expired", body.Decision
	case *eventlog.Evicted:
		kind, t.Decision = "evicted", body.Decision
	case *eventlog.Corrected:
		if kind = "corrected"; body.Correction == "" {
			kind = "late-outcome"
		}
		t.Decision, t.Correction, t.Position, t.Value = body.Decision, body.Correction, new(int(body.Choice)),
			new(body.Value)
		t.Taken = takenOf(body.Basket)
	case *eventlog.AlarmCleared:
		kind = "alarm-cleared"
	case *eventlog.ClockMoved:
		kind, t.Seconds = "clock-moved", time.Duration(body.By).Seconds()
	case *eventlog.CategoryValuesAdded:
		kind, t.Feature, t.Values = "category-values-added", body.Feature, body.Values
	case *eventlog.SnapshotTaken:
		kind, t.Version = "version-saved", body.Version
	case *eventlog.VersionSaved:
		kind, t.Version, t.Note = "version-saved", body.Version, body.Note
	case *eventlog.LearnerRolledBack:
		kind, t.Version = "rolled-back", body.Version
		if len(body.Config) > 0 {
			t.Config = configOf(body.Config)
		}
	case *eventlog.LearnerReset:
		kind, t.Config = "learner-reset", configOf(body.Config)
	case *eventlog.RelearningBegun:
		kind, t.Config = "relearning-begun", configOf(body.Config)
	case *eventlog.LearnerSwapped:
		kind, t.Config = "learner-swapped", configOf(body.Config)
	case *eventlog.LearnerAdopted:
		kind, t.Config = "learner-adopted", configOf(body.Config)
	case *eventlog.RelearningEnded:
		kind, t.Note = "relearning-ended", body.Reason
	case *eventlog.Activated:
		kind, t.Decision = "activated", body.Decision
	case *eventlog.Measured:
		kind, t.Decision = "measured", body.Decision
	case *eventlog.ItemsChanged:
		kind, t.Items = "items-changed", len(body.Put)+len(body.Deleted)
	case *eventlog.ItemsDeclined:
		kind, t.Decision = "items-declined", body.Decision
		for _, i := range body.Items {
			t.Positions = append(t.Positions, int(i))
		}
	default:
		panic(fmt.Sprintf("server: an event of type %T", body))
	}
	return kind, t
}

func takenOf(basket eventlog.Basket) (taken []api.Taken) {
	for _, t := range basket {
		taken = append(taken, api.Taken{Position: int(t.Place), Quantity: int(t.Quantity), Value: t.Value})
	}
	return taken
}

// configOf reads a configuration of the log.
func configOf(text []byte) *api.Placement {
	p := new(api.Placement)
	if err := json.Unmarshal(text, p); err != nil {
		panic(fmt.Sprintf("server: a configuration of the log does not unmarshal: %v", err))
	}
	return p
}

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
	sub := s.feed.subscribe(c)
	defer s.feed.leave(sub)
	after, resumes, err := s.lastEvent(c)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	l := &listener{Server: s, c: c, sub: sub, control: http.NewResponseController(&c.w), sent: after}
	greeting := ": from now on"
	if resumes {
		greeting = fmt.Sprintf(": after entry %d", after)
	} else {
		s.feed.goLive(sub)
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
	sub     *subscriber
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
	return l.authorize(l.c, keys.ScopeRead) == nil && slices.Equal(l.c.key.Placements, l.sub.placements)
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
	for !l.sub.live {
		if l.sent+backlog/2 > l.engine.Sequence() {
			l.feed.goLive(l.sub) // later events arrive live, and earlier ones are part of the state
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
		wants := err == nil && l.sub.wants(e.Placement)
		if err != nil || wants && !l.may() {
			l.end()
			return false
		}
		if time.Since(l.spoke) >= l.heartbeat && !l.beat() { // a long log may not concern this listener
			return false
		}
		if l.sent = e.Sequence; wants && !l.pass(e.Sequence, message(e.Event)) {
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
		case m, ok := <-l.sub.messages:
			if !ok || !l.may() {
				l.end()
				return
			}
			if m.sequence > l.sent && !l.pass(m.sequence, m.text) {
				return
			}
		}
		if len(l.sub.messages) == 0 && l.control.Flush() != nil {
			return
		}
	}
}
