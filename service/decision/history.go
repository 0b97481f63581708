package decision

import (
	"context"
	"fmt"
	"slices"

	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// history reads from the log what a second learner of a placement learns from: the outcomes of all decisions since an
// entry, whichever learner they were made with. The placement has had the same features since then. One goroutine
// reads it.
type history struct {
	log     Log // nil reads nothing, for audits
	name    string
	from    uint64
	maxSize int // of the learner

	gap  *gap               // what it is limited to, nil for everything
	next uint64             // the next entry
	open map[string]waiting // decisions that it can learn from
}

// waiting is a decision without an outcome.
type waiting struct {
	entry    uint64 // of the offer
	deferred bool   // and not activated
}

func newHistory(log Log, name string, from uint64, c *setup.Config) *history {
	return &history{log: log, name: name, from: from, maxSize: c.MaxSize, next: from, open: map[string]waiting{}}
}

// read calls learn for each round up to an entry, until it returns false. After an error it may be called again.
func (h *history) read(ctx context.Context, upTo uint64, learn func(task) bool) error {
	if h.log == nil || h.next > upTo {
		return nil
	}
	for entry, err := range h.log.Entries(ctx, h.next) {
		if err != nil {
			return err
		}
		t, err := h.entry(ctx, entry)
		if err != nil {
			return fmt.Errorf("entry %d: %w", h.next, err)
		}
		h.next++
		if t.what == toObserve && !learn(t) || h.next > upTo {
			return nil
		}
	}
	return nil
}

// entry returns the round of an entry, and a call if there is none.
func (h *history) entry(ctx context.Context, entry []byte) (task, error) {
	none := task{what: toCall}
	event, err := eventlog.Decode(entry)
	if err != nil || event.Placement != h.name {
		return none, err
	}
	switch b := event.Body.(type) {
	case *eventlog.Offered:
		if delete(h.open, b.Decision); len(b.Shown) <= h.maxSize {
			h.open[b.Decision] = waiting{h.next, offer.IsDeferred(b)}
		}
	case *eventlog.Activated:
		h.activate(b.Decision)
	case *eventlog.Passed:
		h.activate(b.Decision)
	case *eventlog.Evicted:
		delete(h.open, b.Decision)
	case *eventlog.Chosen:
		return h.round(ctx, b.Decision, int(b.Choice))
	case *eventlog.Expired:
		if !h.open[b.Decision].deferred {
			return h.round(ctx, b.Decision, 0)
		}
		delete(h.open, b.Decision)
	}
	return none, nil
}

func (h *history) activate(decision string) {
	if d, ok := h.open[decision]; ok {
		h.open[decision] = waiting{entry: d.entry}
	}
}

// round returns what is learned from the outcome of a decision, which the entry that is read reports.
func (h *history) round(ctx context.Context, decision string, choice int) (task, error) {
	d, ok := h.open[decision]
	if ok && h.gap != nil && (h.next <= h.gap.after || d.entry >= h.gap.doubtful[0] && d.entry < h.gap.doubtful[1]) {
		delete(h.open, decision)
		ok = false
	}
	if !ok {
		return task{what: toCall}, nil
	}
	entry, err := h.log.Entry(ctx, d.entry)
	if err != nil {
		return task{}, err
	}
	event, err := eventlog.Decode(entry)
	if err != nil {
		return task{}, err
	}
	offered, ok := event.Body.(*eventlog.Offered)
	if !ok || offered.Decision != decision || choice > len(offered.Shown) {
		return task{}, fmt.Errorf("entry %d is not the offer of decision %q", d.entry, decision)
	}
	delete(h.open, decision)
	o := offer.Offer{Offered: offered}
	if h.gap != nil && h.gap.only != nil {
		if o.Estimates, err = offer.Decode(offered.Answer, len(offered.Shown)); err != nil {
			return task{}, err
		}
		if !slices.Contains(h.gap.only, o.Variant) {
			return task{what: toCall}, nil
		}
	}
	return task{sequence: h.next, round: o.Round(choice), bytes: bytesOf(&o)}, nil
}

// relearned is a second learner that began with an entry, and learned from the log from another one on.
type relearned struct{ begun, from uint64 }

// remember notes a second learner. One that reads less than a later one is covered by it.
func remember(list []relearned, r relearned) []relearned {
	return append(slices.DeleteFunc(slices.Clone(list), func(before relearned) bool { return before.from >= r.from }), r)
}
