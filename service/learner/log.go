package learner

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"vitrine/internal/wait"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// CatchUp learns the rounds of a gap from the log, up to an entry. It waits while the log cannot be read. If the log
// lost entries that the learner needs, it skips the remaining rounds.
func (l *Learner) CatchUp(upTo uint64, g Gap) {
	l.push(task{what: toCatchUp, entry: upTo, gap: &g})
}

func (l *Learner) catchUp(upTo uint64, g *Gap) {
	h := newHistory(g.From)
	h.gap, h.outages = g, []Outage{{g.After, upTo, g.Doubtful}}
	err := l.replay(h, upTo)
	if !errors.Is(err, eventlog.ErrRemoved) {
		return
	}
	// Without the log the learner cannot tell which of the lost rounds are of decisions in doubt.
	lost := g.Rounds - min(h.rounds, g.Rounds)
	l.skip(lost)
	l.report(fmt.Errorf("%d rounds held back during a sales alarm are lost: %w", lost, err))
	l.save() // so that later states count them, too
}

// Replay makes a new learner learn all rounds from an entry on, whichever learner decided them. Call it before Run, and
// Follow later.
func (l *Learner) Replay(from uint64) {
	l.Begin(from - 1) // as if it had learned from it
	l.replaying.From = from
}

// Follow lets a replaying learner continue up to an entry, without the rounds of outages, which must not change later. It
// waits while the log cannot be read. If the log lost entries that the learner needs, the learner is lost: it learns no
// more.
func (l *Learner) Follow(upTo uint64, outages []Outage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.tasks) - 1; last >= 0 && l.tasks[last].what == toFollow && !(last == 0 && l.busy) {
		l.tasks[last].entry, l.tasks[last].outages, l.replaying.UpTo = upTo, outages, upTo
		return
	}
	l.add(task{what: toFollow, entry: upTo, outages: outages})
	l.changed.Broadcast()
}

// EndReplay makes the learner learn what it is given from now on.
func (l *Learner) EndReplay() { l.push(task{what: toEndReplay}) }

// Replaying returns how far a replay is.
func (l *Learner) Replaying() (r Replaying) {
	l.holding(func() { r = l.replaying })
	return r
}

// Needs returns the first entry that the learner still reads, or [math.MaxUint64].
func (l *Learner) Needs() uint64 { return l.View().Needs() }

func (l *Learner) follow(upTo uint64, outages []Outage) {
	if l.history == nil {
		l.history = newHistory(l.replaying.From)
	}
	l.history.outages = outages
	if l.replaying.Lost {
		return
	}
	switch err := l.replay(l.history, upTo); {
	case err == nil:
		l.publish() // first: a learner at its goal may decide
		l.reach(upTo)
	case errors.Is(err, eventlog.ErrRemoved):
		l.holding(func() { l.replaying.Lost = true })
	}
}

func (l *Learner) reach(entry uint64) { l.holding(func() { l.replaying.Reached = entry }) }

// pause is how long a log that cannot be read is left alone.
const pause = time.Second

// replay learns the rounds of a history up to an entry. It waits while the log cannot be read. Its errors are
// [eventlog.ErrRemoved] and, after Stop, the context's.
func (l *Learner) replay(h *history, upTo uint64) error {
	for {
		err := h.read(l, upTo, func(t task) {
			if t.entry > l.progress.Entry { // or it was learned before a restart
				if t.what == toSkip {
					l.skipDoubtful(&t)
				} else {
					l.learn(&t)
				}
				l.holding(func() { l.note(t, l.newCheckpoint()) })
			}
			if l.behind++; l.behind >= publishRounds {
				l.publish()
				l.reach(t.entry)
			}
		})
		if err == nil || errors.Is(err, eventlog.ErrRemoved) {
			return err
		}
		l.show(err.Error())
		if err := wait.For(l.context, pause); err != nil {
			return err
		}
	}
}

// history reads the outcomes of a placement's decisions from the log, since an entry, whichever learner decided them.
// The placement's features are the same since then.
type history struct {
	gap     *Gap               // its limits; nil reads everything
	outages []Outage           // left out
	next    uint64             // the next entry
	rounds  uint64             // read
	open    map[string]waiting // decisions that can be learned from
}

// waiting is a decision without an outcome.
type waiting struct {
	entry    uint64 // of the offer
	deferred bool   // and not activated
}

func newHistory(from uint64) *history { return &history{next: from, open: map[string]waiting{}} }

// read calls learn for each round up to an entry, until the learner is stopped. After an error it may be called again.
func (h *history) read(l *Learner, upTo uint64, learn func(task)) error {
	if l.log == nil || h.next > upTo {
		return nil
	}
	for entry, err := range l.log.Entries(l.context, h.next) {
		if err != nil {
			return err
		}
		t, err := h.entry(l, entry)
		if err != nil {
			return fmt.Errorf("entry %d: %w", h.next, err)
		}
		h.next++
		if t != nil {
			h.rounds++
			learn(*t)
		}
		if h.next > upTo || t != nil && l.isStopped() {
			return nil
		}
	}
	return nil
}

// entry returns the round that an entry reports, or nil.
func (h *history) entry(l *Learner, entry []byte) (*task, error) {
	event, err := eventlog.Decode(entry)
	if err != nil || event.Placement != l.placement {
		return nil, err
	}
	switch b := event.Body.(type) {
	case *eventlog.Offered:
		if delete(h.open, b.Decision); len(b.Shown) <= l.spec.Size {
			h.open[b.Decision] = waiting{h.next, offer.IsDeferred(b)}
		}
	case *eventlog.Activated:
		h.activate(b.Decision)
	case *eventlog.ItemsDeclined:
		h.activate(b.Decision)
	case *eventlog.Evicted:
		delete(h.open, b.Decision)
	case *eventlog.Chosen:
		return h.round(l, b, false)
	case *eventlog.Expired:
		if !h.open[b.Decision].deferred {
			return h.round(l, &eventlog.Chosen{Decision: b.Decision}, true)
		}
		delete(h.open, b.Decision)
	}
	return nil, nil
}

func (h *history) activate(decision string) {
	if d, ok := h.open[decision]; ok {
		h.open[decision] = waiting{entry: d.entry}
	}
}

// round returns the round to learn, or to skip, from the outcome of a decision, which the next entry reports.
func (h *history) round(l *Learner, c *eventlog.Chosen, isExpired bool) (*task, error) {
	decision := c.Decision
	d, ok := h.open[decision]
	if !ok || h.gap != nil && h.next <= h.gap.After {
		delete(h.open, decision)
		return nil, nil
	}
	o, err := offer.Read(l.context, l.log, d.entry, l.placement, decision)
	if err == nil {
		if err = c.Basket.Check(c.Choice, len(o.Shown)); int(c.Choice) > len(o.Shown) {
			err = fmt.Errorf("decision %q shows no item %d", decision, c.Choice)
		}
	}
	if err != nil {
		return nil, err
	}
	delete(h.open, decision)
	if h.gap != nil && h.gap.Only != nil && !slices.Contains(h.gap.Only, o.Variant) {
		return nil, nil
	}
	if slices.ContainsFunc(h.outages, func(o Outage) bool {
		return h.next > o.After && h.next <= o.UpTo && o.Doubtful.Has(d.entry, isExpired)
	}) {
		return &task{what: toSkip, entry: h.next, rounds: 1}, nil
	}
	return &task{entry: h.next, round: o.Round(int(c.Choice), c.Basket), bytes: RoundBytes(o)}, nil
}
