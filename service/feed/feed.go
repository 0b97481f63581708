// Package feed passes a log's events to those who listen to them.
package feed

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/keys"
	"vitrine/service/offer"
)

// Feed passes events to listeners. Pass its method Applied as engine.Options.Applied. The zero value is ready.
//
// The engine never waits for a listener: one that cannot keep up is disconnected. When it returns with the last event
// that it saw, it first gets the later ones from the log.
type Feed struct {
	listening atomic.Int64

	mu     sync.Mutex
	closed bool
	to     map[*Subscription]struct{}
}

// Subscription is a listener's part of a feed.
type Subscription struct {
	placement  string   // "" is every one
	placements []string // of the listener's key; nil is all
	ended      func()
	messages   chan Message
	live       bool // whether it receives events; before that it reads the log
}

// Message is an event's text, and its entry, which is its id.
type Message struct {
	Sequence uint64
	Text     []byte // without the id
}

// Messages returns the channel of events while the subscription is live. It is closed when the subscription ends.
func (s *Subscription) Messages() <-chan Message { return s.messages }

// IsLive reports whether the listener receives events. Before that it reads the log.
func (s *Subscription) IsLive() bool { return s.live }

// Wants reports whether a listener gets the events of a placement.
func (s *Subscription) Wants(placement string) bool {
	return (s.placement == "" || s.placement == placement) && keys.Covers(s.placements, placement)
}

// Backlog is how many events a listener may be behind.
const Backlog = 1024

// Applied sends an entry of the log to the listeners.
func (f *Feed) Applied(sequence uint64, e *eventlog.Event) {
	if f.listening.Load() == 0 {
		return
	}
	text := Text(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.to {
		if !s.live || !s.Wants(e.Placement) {
			continue
		}
		select {
		case s.messages <- Message{sequence, text}:
		default:
			f.drop(s)
		}
	}
}

// drop ends a subscription. The caller holds mu.
func (f *Feed) drop(s *Subscription) {
	if _, ok := f.to[s]; ok {
		delete(f.to, s)
		f.listening.Add(-1)
		close(s.messages)
		s.ended()
	}
}

// Subscribe adds a listener to the events of a placement, "" for every one, as far as its key covers them. In a closed
// feed the subscription has ended. Ended is called when the subscription ends, and must not block.
func (f *Feed) Subscribe(placement string, covered []string, ended func()) *Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.to == nil {
		f.to = map[*Subscription]struct{}{}
	}
	s := &Subscription{placement: placement, placements: covered, ended: ended,
		messages: make(chan Message, Backlog)}
	f.to[s] = struct{}{}
	f.listening.Add(1)
	if f.closed {
		f.drop(s)
	}
	return s
}

// GoLive sends a listener all events from now on.
func (f *Feed) GoLive(s *Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.live = true
}

// Leave ends a subscription.
func (f *Feed) Leave(s *Subscription) {
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

// Text returns a server-sent event without its id.
func Text(e *eventlog.Event) []byte {
	data, err := json.Marshal(eventOf(e), json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("feed: an event does not marshal: %v", err))
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kindOf(e.Body), data)
}

// Kinds returns the kinds of events in alphabetical order.
func Kinds() []string {
	kinds := []string{"corrected"} // the other kind of an eventlog.Corrected
	for _, body := range eventlog.Bodies() {
		kinds = append(kinds, kindOf(body))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func kindOf(b eventlog.Body) string {
	switch b := b.(type) {
	case *eventlog.LearnerRolledBack:
		return "rolled-back"
	case *eventlog.Corrected:
		if b.Correction == "" {
			return "late-outcome"
		}
	}
	return eventlog.Word(b)
}

// eventOf returns the event that listeners receive. A body without a case here adds nothing to its kind.
func eventOf(e *eventlog.Event) (t api.Event) {
	t = api.Event{Time: time.Unix(0, e.Time).UTC(), Placement: e.Placement, By: e.By}
	config := e.Configuration()
	switch body := e.Body.(type) {
	case *eventlog.Offered:
		t.Decision, t.Candidates, t.Source, t.PolicyEntry, t.Shown = body.Decision, body.Candidates,
			offer.SourceNames[body.Mode], body.PolicyEntry, make([]string, len(body.Shown))
		for k, i := range body.Shown {
			t.Shown[k] = body.ItemIDs[i]
		}
	case *eventlog.Chosen:
		t.Decision, t.Position, t.Taken = body.Decision, new(int(body.Choice)), takenOf(body.Basket)
	case *eventlog.Expired:
		t.Decision = body.Decision
	case *eventlog.Evicted:
		t.Decision = body.Decision
	case *eventlog.Corrected:
		t.Decision, t.Correction, t.Position, t.Value = body.Decision, body.Correction, new(int(body.Choice)),
			new(body.Value)
		t.Taken = takenOf(body.Basket)
	case *eventlog.ClockMoved:
		t.Seconds = time.Duration(body.By).Seconds()
	case *eventlog.CategoryValuesAdded:
		t.Feature, t.Values = body.Feature, body.Values
	case *eventlog.VersionSaved:
		t.Version, t.Note = body.Version, body.Note
	case *eventlog.LearnerRolledBack:
		t.Version = body.Version
	case *eventlog.RelearningBegun:
		config = body.Config // of the second learner
	case *eventlog.RelearningEnded:
		t.Note = body.Reason
	case *eventlog.Activated:
		t.Decision = body.Decision
	case *eventlog.Measured:
		t.Decision = body.Decision
	case *eventlog.ItemsChanged:
		t.Items = len(body.Put) + len(body.Deleted)
	case *eventlog.ItemsDeclined:
		t.Decision = body.Decision
		for _, i := range body.Items {
			t.Positions = append(t.Positions, int(i))
		}
	}
	if len(config) > 0 {
		t.Config = configOf(config)
	}
	return t
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
		panic(fmt.Sprintf("feed: a configuration of the log does not unmarshal: %v", err))
	}
	return p
}
