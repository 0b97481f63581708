package server

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"vitrine/service/eventlog"
)

// Feed passes on what happens to those who listen to /v1/events. Its Applied is
// that of decision.Options. The zero value is ready.
//
// Who does not keep up is let go: the engine waits for nobody. What a listener
// missed while it was away is in the log and not here.
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

// Applied tells the listeners of an entry of the log.
func (f *Feed) Applied(sequence uint64, e *eventlog.Event) {
	if f.listening.Load() == 0 {
		return
	}
	message := appendEvent(nil, sequence, e)
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.to {
		if s.placement != "" && s.placement != e.Placement || !covers(s.placements, e.Placement) {
			continue
		}
		select {
		case s.messages <- message:
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

// subscribe adds a listener, unless there are as many as may be, of all keys or of this one.
func (f *Feed) subscribe(c *call, most, each int) (*subscriber, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	same := 0
	for s := range f.to {
		if s.key == c.key {
			same++
		}
	}
	if f.closed || len(f.to) >= most || same >= each {
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

// appendEvent appends a server-sent event.
func appendEvent(b []byte, sequence uint64, e *eventlog.Event) []byte {
	b = append(b, "id: "...)
	b = strconv.AppendUint(b, sequence, 10)
	b = append(b, "\nevent: "...)
	member := func(name string) { b = append(append(append(b, `,"`...), name...), `":`...) }
	head := func(kind string) {
		b = append(b, kind...)
		b = append(b, "\ndata: {\"time\":"...)
		b = appendText(b, time.Unix(0, e.Time).UTC().Format(time.RFC3339Nano))
		member("placement")
		b = appendText(b, e.Placement)
	}
	switch body := e.Body.(type) {
	case *eventlog.PlacementPut:
		head("placement-put")
		member("config")
		b = append(b, body.Config...)
	case *eventlog.PlacementDeleted:
		head("placement-deleted")
	case *eventlog.Offered:
		head("offered")
		member("decision_id")
		b = appendText(b, body.Decision)
		member("candidates")
		b = strconv.AppendInt(b, int64(body.Candidates), 10)
		member("by")
		b = appendText(b, by[body.Mode])
		member("policy_version")
		b = strconv.AppendUint(b, body.PolicyVersion, 10)
		member("shown")
		b = append(b, '[')
		for k, i := range body.Shown {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendText(b, body.ItemIDs[i])
		}
		b = append(b, ']')
	case *eventlog.Chosen:
		head("chosen")
		member("decision_id")
		b = appendText(b, body.Decision)
		member("position")
		b = strconv.AppendInt(b, int64(body.Choice), 10)
	case *eventlog.Expired:
		head("expired")
		member("decision_id")
		b = appendText(b, body.Decision)
	case *eventlog.Evicted:
		head("evicted")
		member("decision_id")
		b = appendText(b, body.Decision)
	case *eventlog.SnapshotTaken:
		head("version-kept")
		member("version")
		b = strconv.AppendUint(b, body.Version, 10)
	case *eventlog.PolicyRolledBack:
		head("rolled-back")
		member("version")
		b = strconv.AppendUint(b, body.Version, 10)
	case *eventlog.Activated:
		head("activated")
		member("decision_id")
		b = appendText(b, body.Decision)
	case *eventlog.Passed:
		head("passed")
		member("decision_id")
		b = appendText(b, body.Decision)
		member("positions")
		b = append(b, '[')
		for k, i := range body.Items {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(i), 10)
		}
		b = append(b, ']')
	default:
		panic(fmt.Sprintf("server: an event of type %T", body))
	}
	return append(b, "}\n\n"...)
}

const (
	heartbeat  = 15 * time.Second
	eventWrite = 10 * time.Second // for a listener to take what it was sent
)

// listen answers with events until the listener leaves, does not keep up, or has lost its key.
func (s *Server) listen(c *call) error {
	each := s.share(s.limits.KeySubscribers, s.limits.Subscribers)
	sub, ok := s.feed.subscribe(c, s.limits.Subscribers, each)
	if !ok {
		p := problemf(http.StatusServiceUnavailable, "busy", "no more than %d may listen at once, and no more than %d with one key", s.limits.Subscribers, each)
		p.retry = "5"
		return p
	}
	defer s.feed.leave(sub)
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	control := http.NewResponseController(&c.w)
	send := func(message []byte) bool {
		// where deadlines are not supported there is no connection that could be slow
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
