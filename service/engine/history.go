package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// History returns a placement's changes with their authors and times, read from the log, and the alarms of its guard.
// Changes that were removed from the log are left out, also where this process remembers them. Errors are ErrNotFound,
// ErrUnread and ctx's.
func (e *Engine) History(ctx context.Context, name string) (*api.History, error) {
	v, err := e.View(name)
	if err != nil {
		return nil, err
	}
	first, err := e.firstEntry(ctx)
	if err != nil {
		return nil, err
	}
	h := &api.History{Placement: name, Changes: []api.PastEvent{}}
	e.mu.RLock()
	var entries []uint64
	entries, h.Alarms = v.Placement.History()
	e.mu.RUnlock()
	var before []byte // the configuration
	for _, entry := range slices.Backward(entries) {
		if entry < first {
			continue
		}
		event, err := e.event(ctx, entry)
		switch {
		case errors.Is(err, eventlog.ErrRemoved): // just now
			continue
		case err != nil:
			return nil, err
		}
		x, after := pastEvent(event)
		if x.Entry = entry; entry == v.Page.Born {
			x.Kind = "created"
		}
		if len(after) > 0 && before != nil {
			x.Fields = difference(before, after)
		}
		if len(after) > 0 && x.Kind != "relearning-begun" {
			before = after
		}
		h.Changes = append(h.Changes, x)
	}
	slices.Reverse(h.Changes)
	return h, nil
}

// event returns an entry's event. Its errors are ErrUnread, which may wrap [eventlog.ErrRemoved], and ctx's.
func (e *Engine) event(ctx context.Context, entry uint64) (*eventlog.Event, error) {
	data, err := e.store.Entry(ctx, entry)
	var event eventlog.Event
	if err == nil {
		event, err = eventlog.Decode(data)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%w: entry %d: %w", ErrUnread, entry, err)
	}
	return &event, nil
}

// pastEvent describes an event's effects. config is the configuration after it, or empty if the event leaves all
// configurations as they are.
func pastEvent(event *eventlog.Event) (x api.PastEvent, config []byte) {
	x = api.PastEvent{Time: time.Unix(0, event.Time).UTC(), By: event.By,
		Kind: strings.TrimPrefix(eventlog.Word(event.Body), "learner-")}
	config = event.Configuration()
	switch b := event.Body.(type) {
	case *eventlog.PlacementPut:
		x.Kind = "changed"
	case *eventlog.VersionSaved:
		x.Version, x.Note = b.Version, b.Note
	case *eventlog.LearnerRolledBack:
		x.Version = b.Version
	case *eventlog.RelearningBegun:
		config = b.Config // of the second learner
	case *eventlog.RelearningEnded:
		x.Note = b.Reason
	case *eventlog.LearnerAdopted:
		x.Note = b.Variant
	}
	return x, config
}

// difference lists the settings in which two configurations differ, by name.
func difference(before, after []byte) (list []api.ChangedField) {
	var a, b map[string]jsontext.Value
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil {
		return nil
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !bytes.Equal(a[name], b[name]) { // both are canonical
			list = append(list, api.ChangedField{Field: name, Before: a[name], After: b[name]})
		}
	}
	return list
}
