package state

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

// remember notes a second learner. One that reads less than a later one is covered by it.
func remember(list []relearned, r relearned) []relearned {
	return append(slices.DeleteFunc(slices.Clone(list), func(before relearned) bool { return before.from >= r.from }),
		r)
}

// beginRelearning gives a placement a second learner.
func (s *State) beginRelearning(p *Placement, sequence uint64, time int64, b *eventlog.RelearningBegun) error {
	c, err := setup.Parse(b.Config)
	switch {
	case err != nil:
		return err
	case p.Relearning != nil:
		return errors.New("a relearning is under way already")
	case b.From < p.Rows || b.From > sequence:
		return fmt.Errorf("a relearning from entry %d on of a placement whose features entry %d has changed", b.From,
			p.Rows)
	case !p.Config.Schema().Equal(c.Schema()):
		return errors.New("a relearning of other features")
	}
	r, err := s.prepared(p, c, true)
	if err != nil {
		return err
	}
	w := r.Worker
	w.began = sequence
	w.Replay(b.From)
	p.Relearning = &relearning{Worker: w, note: b.Note, time: time, lost: r.Placement == nil && s.Lost}
	s.relearned = remember(s.relearned, relearned{sequence, b.From})
	s.start(p, w)
	if p.held.After > 0 {
		sequence = p.held.After
	}
	w.Follow(sequence, p.outages)
	s.recharge(p, s.chargeOf(p), r.Held)
	return nil
}

// IsLost reports whether the log no longer holds the entries that a RelearningBegun reads. It may ask the log's server, so call it
// before the state is locked.
func (s *State) IsLost(event *eventlog.Event) bool {
	b, ok := event.Body.(*eventlog.RelearningBegun)
	return ok && s.lacks(b.From)
}

// lacks reports whether the log was cut after an entry. Other errors will come again.
func (s *State) lacks(entry uint64) bool {
	if s.Log == nil {
		return false
	}
	_, err := s.Log.Entry(context.Background(), entry)
	return errors.Is(err, eventlog.ErrRemoved)
}

// swap makes the second learner the one that decides.
func (s *State) swap(p *Placement, sequence uint64, time int64, b *eventlog.LearnerSwapped) error {
	r := p.Relearning
	switch {
	case r == nil || !r.Worker.Config.IsLogged(b.Config):
		return errors.New("no second learner of this configuration can decide")
	case p.held.After > 0:
		return errors.New("a second learner cannot decide while an alarm holds rounds back")
	case r.lost:
		return fmt.Errorf("the learner has learned from entry %d on: %w", r.Worker.Replaying().From,
			eventlog.ErrRemoved)
	}
	s.keepBefore(p, time, r.note, 0)
	p.restartGuard(sequence) // before its alarm could name a version of this learner to the second one
	s.retire(p)
	if !p.Config.SameRows(r.Worker.Config) {
		p.Learner = sequence
	}
	p.Worker, p.Relearning = r.Worker, nil
	p.learnedThrough, p.currentVersion = sequence, 0
	p.configure(r.Worker.Config, sequence)
	p.Worker.Follow(sequence, p.outages)
	p.Worker.EndReplay()
	s.conduct(p, sequence, time, nil)
	s.replaced(p, sequence, 0, 0)
	return nil
}

// endRelearning gives a relearning up, if one is under way.
func (s *State) endRelearning(p *Placement) {
	if p.Relearning != nil {
		p.Relearning.Worker.Stop()
		p.Relearning = nil
		s.recharge(p, s.chargeOf(p), 0)
	}
}

// Needs returns the first entry that second learners read, now or in a replay from an entry, or [math.MaxUint64].
func (s *State) Needs(upTo uint64) uint64 {
	first := uint64(math.MaxUint64)
	for _, r := range s.relearned {
		if r.begun > upTo {
			first = min(first, r.from)
		}
	}
	for _, p := range s.Placements {
		if p.held.After > 0 {
			first = min(first, p.held.From)
		}
		for _, w := range p.all() {
			first = min(first, w.Needs())
		}
	}
	return first
}

// NextOfRelearning returns the relearning's next event, or nil. A second learner that learned much less than the present
// one decides only if that is accepted.
func (p *Placement) NextOfRelearning(accepted bool) eventlog.Body {
	r := p.Relearning
	if r == nil {
		return nil
	}
	seen, at := r.Worker.Progress(), r.Worker.Replaying()
	switch {
	case at.Lost || r.lost:
		return &eventlog.RelearningEnded{Reason: "entries of the log that it needs were removed"}
	case seen.Broken:
		return &eventlog.RelearningEnded{Reason: api.Abbreviate("the learner has broken: "+seen.Problem,
			learner.MaxProblem)}
	}
	now := p.relearningProgress()
	if !now.Ready || !accepted && now.LearnedLess(p.Worker.Progress().Learned) {
		return nil
	}
	return &eventlog.LearnerSwapped{Config: r.Worker.Config.Canonical()}
}

// caughtUp is how many entries a second learner may be behind when it becomes the one that decides.
const caughtUp = 256

// relearningProgress returns how far the relearning is, which must be under way.
func (p *Placement) relearningProgress() *api.Relearning {
	r := p.Relearning
	seen, at := r.Worker.Progress(), r.Worker.Replaying()
	return &api.Relearning{
		Since: time.Unix(0, r.time).UTC(), From: at.From, Entry: at.Reached, To: at.UpTo,
		Learned: seen.Learned, Skipped: seen.Skipped, Problem: seen.Problem, Policy: r.Worker.Config.Policy,
		MaxSize: p.Smaller(r.Worker.Config),
		Ready:   at.UpTo <= at.Reached+caughtUp && p.held.After == 0, // to decide would end the alarm
	}
}

// relearningEnded gives a relearning up, which must be under way.
func (s *State) relearningEnded(p *Placement) error {
	if p.Relearning == nil {
		return errors.New("no relearning is under way")
	}
	s.endRelearning(p)
	return nil
}
