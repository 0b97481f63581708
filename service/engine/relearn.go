package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/setup"
)

// relearning is a second learner of a placement, which learns from the log while the first one decides.
type relearning struct {
	worker *worker
	note   string // of the version of the first learner
	time   int64  // when it began
	lost   bool   // whether the log no longer has what it learns from
}

// relearned is a second learner that began with an entry, and learned from the log from another one on.
type relearned struct{ begun, from uint64 }

// remember notes a second learner. One that reads less than a later one is covered by it.
func remember(list []relearned, r relearned) []relearned {
	return append(slices.DeleteFunc(slices.Clone(list), func(before relearned) bool { return before.from >= r.from }), r)
}

// beginRelearning gives a placement a second learner.
func (s *fold) beginRelearning(p *placement, sequence uint64, time int64, b *eventlog.RelearningBegun) error {
	c, err := setup.Parse(b.Config)
	switch {
	case err != nil:
		return err
	case p.relearning != nil:
		return errors.New("a relearning is under way already")
	case b.From < p.rows || b.From > sequence:
		return fmt.Errorf("a relearning from entry %d on of a placement whose features entry %d has changed", b.From, p.rows)
	case !p.config.Schema().Equal(c.Schema()):
		return errors.New("a relearning of other features")
	}
	r, err := s.prepared(p, c, true)
	if err != nil {
		return err
	}
	w := r.worker
	w.began = sequence
	w.Replay(b.From)
	p.relearning = &relearning{worker: w, note: b.Note, time: time, lost: r.placement == nil && s.lacks(b.From)}
	s.relearned = remember(s.relearned, relearned{sequence, b.From})
	s.start(p, w)
	w.Follow(sequence)
	s.recharge(p, s.chargeOf(p), r.held)
	return nil
}

// lacks reports whether the log has been cut after an entry. Errors of another kind come again.
func (s *fold) lacks(entry uint64) bool {
	if s.log == nil {
		return false
	}
	_, err := s.log.Entry(context.Background(), entry)
	return errors.Is(err, eventlog.ErrRemoved)
}

// exchange makes the second learner the one that decides.
func (s *fold) exchange(p *placement, sequence uint64, time int64, b *eventlog.LearnerSwapped) error {
	r := p.relearning
	switch {
	case r == nil || !r.worker.config.IsLogged(b.Config):
		return errors.New("no second learner of this configuration can decide")
	case r.lost:
		return fmt.Errorf("the learner has learned from entry %d on: %w", r.worker.Replaying().From, eventlog.ErrRemoved)
	}
	s.keepBefore(p, time, r.note, 0)
	s.retire(p)
	if !p.config.SameRows(r.worker.config) {
		p.learner = sequence
	}
	p.worker, p.relearning = r.worker, nil
	p.learned, p.standing = sequence, 0
	p.configure(r.worker.config, sequence)
	p.worker.Follow(sequence)
	p.worker.EndReplay()
	s.conduct(p, sequence, time, nil)
	s.replaced(p, sequence, time, api.BegunByRelearning, 0, 0)
	return nil
}

// endRelearning gives a relearning up, if one is under way.
func (s *fold) endRelearning(p *placement) {
	if p.relearning != nil {
		p.relearning.worker.Stop()
		p.relearning = nil
		s.recharge(p, s.chargeOf(p), 0)
	}
}

// needs returns the first entry that second learners read if the log is replayed from a snapshot of an entry on, and that
// those that read now need, [math.MaxUint64] if there are none.
func (s *fold) needs(upTo uint64) uint64 {
	first := uint64(math.MaxUint64)
	for _, r := range s.relearned {
		if r.begun > upTo {
			first = min(first, r.from)
		}
	}
	for _, p := range s.placements {
		if p.held.After > 0 {
			first = min(first, p.held.From)
		}
		for _, w := range p.all() {
			first = min(first, w.Needs())
		}
	}
	return first
}

// Needs returns the first entry that must stay in the log for second learners, which learn from it. These are the
// ones that learn now, and those that learned after the entry upTo, because a replay from a snapshot of that entry
// lets them learn again. It is [math.MaxUint64] if there are none.
func (e *Engine) Needs(upTo uint64) uint64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state.needs(upTo)
}

// caughtUp is how many entries a second learner may be behind when it becomes the one that decides.
const caughtUp = 256

// Exchange makes the second learners that have caught up with the log the ones that decide, and ends the relearning of
// those that cannot. It returns the placements. Call it now and then. Errors are ErrStopped and that of ctx.
func (e *Engine) Exchange(ctx context.Context, now int64) (exchanged, ended []string, err error) {
	for _, name := range e.relearning() {
		var event eventlog.Body // the writer's until submit has its answer
		err := e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
			event = p.nextOfRelearning()
			return event, nil
		})
		switch {
		case errors.Is(err, ErrNotFound):
			continue
		case err != nil:
			return exchanged, ended, err
		}
		switch event.(type) {
		case *eventlog.LearnerSwapped:
			exchanged = append(exchanged, name)
		case *eventlog.RelearningEnded:
			ended = append(ended, name)
		}
	}
	return exchanged, ended, nil
}

// relearning returns the placements with a second learner, sorted.
func (e *Engine) relearning() (names []string) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for name, p := range e.state.placements {
		if p.relearning != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// nextOfRelearning returns the event that a relearning has come to, nil if none.
func (p *placement) nextOfRelearning() eventlog.Body {
	r := p.relearning
	if r == nil {
		return nil
	}
	seen, at := r.worker.Progress(), r.worker.Replaying()
	switch {
	case at.Lost || r.lost:
		return &eventlog.RelearningEnded{Reason: "entries of the log that it needs were removed"}
	case seen.Broken:
		return &eventlog.RelearningEnded{Reason: api.Abbreviate("the learner has broken: "+seen.Problem, learner.MaxProblem)}
	case at.UpTo > at.Reached+caughtUp:
		return nil
	}
	return &eventlog.LearnerSwapped{Config: r.worker.config.Canonical()}
}

// progress returns how far a relearning is.
func (r *relearning) progress() *api.Relearning {
	seen, at := r.worker.Progress(), r.worker.Replaying()
	return &api.Relearning{
		Since: time.Unix(0, r.time).UTC(), From: at.From, Entry: at.Reached, To: at.UpTo,
		Learned: seen.Learned, Skipped: seen.Skipped, Problem: seen.Problem, Policy: r.worker.config.Policy,
	}
}

// Relearning returns the configuration that a placement will have after its relearning, nil if none is under way.
func (e *Engine) Relearning(name string) *setup.Config {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if p := e.state.placements[name]; p != nil && p.relearning != nil {
		return p.relearning.worker.config
	}
	return nil
}
