package decision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// restartGuard restarts the guard after an entry, and ends its alarm.
func (p *placement) restartGuard(sequence uint64) {
	p.guard.Restart(sequence)
	p.worker.substitute.Store(nil)
}

// advance gives the guard the decisions that are due by a time. It reports a new alarm.
func (s *fold) advance(p *placement, now int64, sequence uint64) bool {
	raised, over := p.guard.Advance(now, sequence)
	switch {
	case raised:
		a := p.guard.Alarm()
		a.Version = p.lastGood(a)
		p.fallBack()
		if p.guard.Sales != nil && !p.config.LearnInAlarm && p.held.after == 0 {
			// The learner does not learn from decisions made for an earlier learner: their rows may come from other features.
			p.held = backlog{after: sequence, from: max(p.open.oldest(sequence+1), p.learner+1)}
		}
	case over != nil:
		s.resume(p, sequence, *over)
		if p.worker.substitute.Store(nil); p.guard.Alarm() != nil {
			p.fallBack()
		}
	}
	return raised
}

// lastGood returns the version that decides after an alarm: the last one of the learner from before the decisions in doubt,
// or else its oldest one; 0 if it has none.
func (p *placement) lastGood(a *api.Alarm) (number uint64) {
	before := p.guard.Entry
	if a.Since > 0 {
		before = a.Since
	}
	for _, v := range p.versions {
		if v.learner == p.worker && (number == 0 || v.number <= before) {
			number = v.number
		}
	}
	return number
}

// fallsBack returns what decides instead of the policy: "" unless there is an alarm and a fallback.
func (p *placement) fallsBack() string {
	if p.guard.Alarm() == nil {
		return ""
	}
	return p.config.Fallback
}

// fallBack has the learner make the policy of the last good version, if it is needed.
func (p *placement) fallBack() {
	if p.fallsBack() != api.FallbackVersion || p.guard.Alarm().Version == 0 {
		return
	}
	version := p.guard.Alarm().Version
	p.worker.send(task{what: toCall, call: func(w *worker) { w.recallPolicy(version) }})
}

// recallPolicy makes the policy of a kept version the substitute of the current one.
func (w *worker) recallPolicy(version uint64) {
	k := stateOf(w.kept, version)
	if k == nil {
		return
	}
	_, _ = safely(func() error {
		l, err := w.restored(k.data)
		if err == nil {
			w.substitute.Store(&published{l.Policy(), version})
		}
		return err
	})
}

// ClearAlarm ends a placement's alarm: its policy decides again, and the guard begins again. The learner now learns the rounds
// that were held back, except those of decisions in doubt after an alarm that nothing was sold; all says whether it learns
// those, too. Without an alarm nothing changes. Errors are ErrNotFound, ErrStopped and that of ctx.
func (e *Engine) ClearAlarm(ctx context.Context, name string, all bool, now int64) error {
	return e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
		if p.guard.Alarm() == nil {
			return nil, nil
		}
		return &eventlog.AlarmCleared{All: all}, nil
	})
}

// backlog describes the rounds that a placement's learners do not get while an alarm about sales is in force. They stay in the
// log, from which the learners read them when it is over.
type backlog struct {
	after  uint64 // rounds that end after this entry are held; 0 holds none
	from   uint64 // the oldest open decision of the present learner when the alarm began: earlier offers are not learned
	rounds uint64
}

// resume gives the learners of a placement the rounds that are held, except those of the decisions in doubt.
func (s *fold) resume(p *placement, sequence uint64, doubtful [2]uint64) {
	h := p.held
	if p.held = (backlog{}); h.rounds == 0 {
		return
	}
	for _, w := range append([]*worker{p.worker}, p.challengers()...) {
		w.send(task{what: toCatchUp, sequence: sequence, gap: &gap{backlog: h, doubtful: doubtful, only: p.lessons(w), config: w.config}})
	}
	p.learned, p.standing = sequence, 0
	s.relearned = remember(s.relearned, relearned{sequence, h.from})
}

// lessons returns the variants from whose decisions a learner learns, nil for all decisions.
func (p *placement) lessons(w *worker) (only []string) {
	if p.experiment == nil || p.experiment.Design.Learn == api.LearnAll {
		return nil
	}
	names := []string{""}
	for _, v := range p.experiment.Design.Variants {
		names = append(names, v.Name)
	}
	only = []string{}
	for _, name := range names {
		o := &offer.Offer{Estimates: offer.Estimates{Variant: name}}
		for _, taught := range p.taught(o) {
			if taught == w {
				only = append(only, name)
			}
		}
	}
	return only
}

// gap describes the held rounds that a learner catches up on.
type gap struct {
	backlog
	doubtful [2]uint64 // decisions from the first entry on, before the second, are not learned
	only     []string  // variants, nil for all

	config *setup.Config // the learner's when the gap ended: the state changes the worker's own meanwhile
}

// catchUp learns the rounds of a gap up to an entry from the log. It waits for a log that cannot be read. If entries it still
// needs were removed from the log, the remaining rounds are skipped.
func (w *worker) catchUp(upTo uint64, g *gap) {
	h := newHistory(w.log, w.placement, g.from, g.config)
	h.gap = g
	var read uint64
	for !w.stopped.Load() {
		err := h.read(w.context, upTo, func(t task) bool {
			read++
			if t.sequence > w.version { // or it was learned before a restart
				w.learn(t, w.queue.hold)
			}
			if w.behind++; w.behind >= publishRounds {
				w.publish()
			}
			return !w.stopped.Load()
		})
		if err == nil {
			return
		}
		if errors.Is(err, eventlog.ErrRemoved) {
			w.lose(g, read, err)
			return
		}
		text := err.Error()
		w.fault.Store(&text)
		select {
		case <-w.context.Done():
		case <-time.After(followPause):
		}
	}
}

// lose counts the rounds of a gap that could not be read as skipped. Rounds of decisions in doubt are among them: without the log
// the learner cannot tell which ones they were. The checkpoint makes the next snapshot count them, too.
func (w *worker) lose(g *gap, read uint64, err error) {
	lost := g.rounds - min(read, g.rounds)
	w.skipped += lost
	w.report(fmt.Errorf("%d rounds held back during a sales alarm are lost: %w", lost, err))
	w.save()
}

// needs returns the first entry that a learner still reads, [math.MaxUint64] if there is none.
func (w *worker) needs() uint64 {
	first := uint64(math.MaxUint64)
	if from := w.following.Load(); from > 0 {
		first = from
	}
	w.queue.look(func(tasks []task) { first = min(first, gaps(tasks)) })
	return first
}

// gaps returns the first entry that tasks read to catch up, [math.MaxUint64] if there is none.
func gaps(tasks []task) uint64 {
	first := uint64(math.MaxUint64)
	for _, t := range tasks {
		if t.gap != nil {
			first = min(first, t.gap.from)
		}
	}
	return first
}
