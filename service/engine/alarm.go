package engine

import (
	"context"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
)

// restartGuard restarts the guard after an entry, and ends its alarm.
func (p *placement) restartGuard(sequence uint64) {
	p.earnings.Guard.Restart(sequence)
	p.worker.ClearSubstitute()
}

// advance gives the guard the decisions that are due by a time.
func (s *fold) advance(p *placement, now int64, sequence uint64) {
	raised, over := p.earnings.Advance(now, sequence)
	switch {
	case raised:
		a := p.earnings.Guard.Alarm()
		a.Version = p.lastGood(a)
		p.fallBack()
		if p.earnings.Guard.Sales != nil && !p.config.LearnInAlarm && p.held.After == 0 {
			// The learner does not learn from decisions made for an earlier learner: their rows may come from other features.
			p.held = learner.Gap{After: sequence, From: max(p.open.oldest(sequence+1), p.learner+1)}
		}
	case over != nil:
		s.resume(p, sequence, *over)
		if p.worker.ClearSubstitute(); p.earnings.Guard.Alarm() != nil {
			p.fallBack()
		}
	}
}

// lastGood returns the version that decides after an alarm: the last one of the learner from before the decisions in doubt,
// or else its oldest one; 0 if it has none.
func (p *placement) lastGood(a *api.Alarm) (number uint64) {
	before := p.earnings.Guard.Entry
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
	if p.earnings.Guard.Alarm() == nil {
		return ""
	}
	return p.config.Fallback
}

// fallBack has the learner make the policy of the last good version, if it is needed.
func (p *placement) fallBack() {
	if p.fallsBack() != api.FallbackVersion || p.earnings.Guard.Alarm().Version == 0 {
		return
	}
	p.worker.SetSubstitute(p.earnings.Guard.Alarm().Version)
}

// ClearAlarm ends a placement's alarm: its policy decides again, and the guard begins again. The learner now learns the rounds
// that were held back, except those of decisions in doubt after an alarm that nothing was sold; all says whether it learns
// those, too. Without an alarm nothing changes. Errors are ErrNotFound, ErrStopped and that of ctx.
func (e *Engine) ClearAlarm(ctx context.Context, name string, all bool, now int64) error {
	return e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
		if p.earnings.Guard.Alarm() == nil {
			return nil, nil
		}
		return &eventlog.AlarmCleared{All: all}, nil
	})
}

// resume gives the learners of a placement the rounds that are held, except those of the decisions in doubt.
func (s *fold) resume(p *placement, sequence uint64, doubtful [2]uint64) {
	held := p.held
	if p.held = (learner.Gap{}); held.Rounds == 0 {
		return
	}
	held.Doubtful = doubtful
	for _, w := range append([]*worker{p.worker}, p.challengers()...) {
		held.Only = p.lessons(w)
		w.CatchUp(sequence, held)
	}
	p.learned, p.standing = sequence, 0
	s.relearned = remember(s.relearned, relearned{sequence, held.From})
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
