package server

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// Feed passes events to the listeners of /v1/events. Pass its method Applied as decision.Options.Applied.
// The zero value is ready.
//
// The engine waits for no listener: a listener that does not keep up is disconnected. Events before a
// listener connects are not replayed; they are in the log.
type Feed struct {
	listening atomic.Int64

	mu     sync.Mutex
	closed bool
	to     map[*subscriber]struct{}
}

type subscriber struct {
	key        string   // the listener's
	placement  string   // "" is every one
	placements []string // of the listener's key; nil is all
	messages   chan []byte
}

// backlog is how many events a listener may be behind.
const backlog = 1024

// Applied sends an entry of the log to the listeners.
func (f *Feed) Applied(sequence uint64, e *eventlog.Event) {
	if f.listening.Load() == 0 {
		return
	}
	text := message(sequence, e)
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.to {
		if s.placement != "" && s.placement != e.Placement || !covers(s.placements, e.Placement) {
			continue
		}
		select {
		case s.messages <- text:
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

// subscribe adds a listener, unless there are limit of all keys or perKey of this one.
func (f *Feed) subscribe(c *call, limit, perKey int) (*subscriber, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	same := 0
	for s := range f.to {
		if s.key == c.key {
			same++
		}
	}
	if f.closed || len(f.to) >= limit || same >= perKey {
		return nil, false
	}
	if f.to == nil {
		f.to = map[*subscriber]struct{}{}
	}
	s := &subscriber{c.key, c.URL.Query().Get("placement"), c.placements, make(chan []byte, backlog)}
	f.to[s] = struct{}{}
	f.listening.Add(1)
	return s, true
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

// message returns a server-sent event.
func message(sequence uint64, e *eventlog.Event) []byte {
	kind, event := eventOf(e)
	data, err := json.Marshal(event, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("server: an event does not marshal: %v", err))
	}
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", sequence, kind, data)
}

// eventOf returns the event that listeners receive, and its kind.
func eventOf(e *eventlog.Event) (kind string, t api.Event) {
	t = api.Event{Time: time.Unix(0, e.Time).UTC(), Placement: e.Placement}
	switch body := e.Body.(type) {
	case *eventlog.PlacementPut:
		kind, t.Config = "placement-put", configOf(body.Config)
	case *eventlog.PlacementDeleted:
		kind = "placement-deleted"
	case *eventlog.Offered:
		kind, t.Decision = "offered", body.Decision
		t.Candidates, t.By, t.PolicyVersion, t.Shown = body.Candidates, by[body.Mode], body.PolicyVersion, make([]string, len(body.Shown))
		for k, i := range body.Shown {
			t.Shown[k] = body.ItemIDs[i]
		}
	case *eventlog.Chosen:
		kind, t.Decision, t.Position = "chosen", body.Decision, new(int(body.Choice))
	case *eventlog.Expired:
		kind, t.Decision = "expired", body.Decision
	case *eventlog.Evicted:
		kind, t.Decision = "evicted", body.Decision
	case *eventlog.AlarmCleared:
		kind = "alarm-cleared"
	case *eventlog.ValuesSeen:
		kind, t.Feature, t.Values = "values-seen", body.Feature, body.Values
	case *eventlog.SnapshotTaken:
		kind, t.Version = "version-kept", body.Version
	case *eventlog.VersionKept:
		kind, t.Version, t.Note = "version-kept", body.Version, body.Note
	case *eventlog.PolicyRolledBack:
		kind, t.Version = "rolled-back", body.Version
	case *eventlog.LearnerRolledBack:
		kind, t.Version = "rolled-back", body.Version
		if len(body.Config) > 0 {
			t.Config = configOf(body.Config)
		}
	case *eventlog.LearnerReset:
		kind, t.Config = "learner-reset", configOf(body.Config)
	case *eventlog.RelearningBegun:
		kind, t.Config = "relearning-begun", configOf(body.Config)
	case *eventlog.LearnerExchanged:
		kind, t.Config = "learner-exchanged", configOf(body.Config)
	case *eventlog.RelearningEnded:
		kind, t.Note = "relearning-ended", body.Reason
	case *eventlog.Activated:
		kind, t.Decision = "activated", body.Decision
	case *eventlog.ItemsChanged:
		kind, t.Items = "items-changed", len(body.Put)+len(body.Deleted)
	case *eventlog.Passed:
		kind, t.Decision = "passed", body.Decision
		for _, i := range body.Items {
			t.Positions = append(t.Positions, int(i))
		}
	default:
		panic(fmt.Sprintf("server: an event of type %T", body))
	}
	return kind, t
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
)

// listen sends events until the listener disconnects, does not keep up, or loses its key.
func (s *Server) listen(c *call) error {
	each := s.share(s.limits.KeySubscribers, s.limits.Subscribers)
	sub, ok := s.feed.subscribe(c, s.limits.Subscribers, each)
	if !ok {
		p := problemf(http.StatusServiceUnavailable, "busy", "there are too many listeners: at most %d, and at most %d with one key", s.limits.Subscribers, each)
		p.retry = "5"
		return p
	}
	defer s.feed.leave(sub)
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	control := http.NewResponseController(&c.w)
	send := func(message []byte) bool {
		// An error means that deadlines are not supported, as in tests without a connection.
		_ = control.SetWriteDeadline(time.Now().Add(eventWrite))
		_, err := c.w.Write(message)
		return err == nil
	}
	if !send([]byte(": from now on\n\n")) || control.Flush() != nil {
		return nil
	}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-c.Context().Done():
			return nil
		case <-ticker.C:
			if !send([]byte(": still here\n\n")) {
				return nil
			}
		case message, ok := <-sub.messages:
			if !ok || s.authorize(c, ScopeRead) != nil || !slices.Equal(c.placements, sub.placements) { // a key may be withdrawn or changed
				_ = send([]byte("event: end\ndata: {}\n\n"))
				_ = control.Flush()
				return nil
			}
			if !send(message) {
				return nil
			}
		}
		if len(sub.messages) == 0 && control.Flush() != nil {
			return nil
		}
	}
}
