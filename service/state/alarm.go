package state

import (
	"fmt"
	"slices"

	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
)

// restartGuard restarts the guard after an entry, and ends its alarm. Rounds that are still held are not learned.
func (p *Placement) restartGuard(sequence uint64) {
	p.endHold(sequence, p.Earnings.Guard.Doubtful(sequence+1))
	p.Earnings.Guard.Restart(sequence)
	p.Worker.ClearSubstitute()
}

// advance gives the guard the decisions that are due by a time.
func (s *State) advance(p *Placement, now int64, sequence uint64) {
	raised, over := p.Earnings.Advance(now, sequence)
	switch {
	case s.isAudit():
		p.held = learner.Gap{}
	case raised:
		a := p.Earnings.Guard.Alarm()
		a.Version = p.lastGood(a)
		p.fallBack()
		if p.Earnings.Guard.Sales != nil && !p.Config.LearnInAlarm && p.held.After == 0 {
			// Decisions made for an earlier learner are left out: their rows may come from other features.
			p.held = learner.Gap{After: sequence, From: max(p.Open.Oldest(sequence+1), p.Learner+1)}
		}
	case over != nil:
		s.resume(p, sequence, *over)
		if p.Worker.ClearSubstitute(); p.Earnings.Guard.Alarm() != nil {
			p.fallBack()
		}
	}
}

// lastGood returns the version that decides during an alarm: the learner's last one from before the decisions in doubt,
// or else its oldest one; 0 without versions.
func (p *Placement) lastGood(a *api.Alarm) (number uint64) {
	before := p.Earnings.Guard.Entry
	if a.Since > 0 {
		before = a.Since
	}
	for _, v := range p.versions {
		if v.learner == p.Worker && (number == 0 || v.number <= before) {
			number = v.number
		}
	}
	return number
}

// fallsBack returns what decides instead of the policy: "" unless an alarm calls for the fallback, and there is one.
func (p *Placement) fallsBack() string {
	if !p.Earnings.Guard.FallsBack() {
		return ""
	}
	return p.Config.Fallback
}

// fallBack makes the learner prepare the policy of the last good version, if it is needed.
func (p *Placement) fallBack() {
	if p.fallsBack() == api.FallbackVersion && p.Earnings.Guard.Alarm().Version > 0 {
		p.Worker.SetSubstitute(p.Earnings.Guard.Alarm().Version)
	}
}

// resume gives a placement's learners the held rounds, except the rounds of decisions in doubt.
func (s *State) resume(p *Placement, sequence uint64, doubtful earnings.Doubt) {
	held := p.endHold(sequence, doubtful)
	if held.Rounds == 0 {
		return
	}
	for _, w := range p.deciders() {
		held.Only = p.lessons(w)
		w.CatchUp(sequence, held)
	}
	p.learnedThrough, p.currentVersion = sequence, 0
	s.relearned = remember(s.relearned, relearned{sequence, held.From})
}

// maxOutages bounds the outages that second learners leave out. A further one takes the place of the oldest.
const maxOutages = 100

// endHold ends the pause of learning and returns it. A second learner paused, too: it skips the rounds in doubt.
func (p *Placement) endHold(sequence uint64, doubtful earnings.Doubt) (held learner.Gap) {
	held, p.held = p.held, learner.Gap{}
	held.Doubtful = doubtful
	if held.Rounds > 0 && doubtful.Until > 0 {
		p.outages = append(slices.Clone(p.outages[max(len(p.outages)-maxOutages+1, 0):]),
			learner.Outage{After: held.After, UpTo: sequence, Doubtful: doubtful})
	}
	if held.After > 0 && p.Relearning != nil {
		p.Relearning.Worker.Follow(sequence, p.outages)
	}
	return held
}

// lessons returns the variants that teach a learner, or nil if all decisions do.
func (p *Placement) lessons(w *Worker) (only []string) {
	if p.Experiment == nil || p.Experiment.Design.Learn == api.LearnAll {
		return nil
	}
	names := []string{"", api.Holdout}
	for _, v := range p.Experiment.Design.Variants {
		names = append(names, v.Name)
	}
	only = []string{}
	for _, name := range names {
		o := &offer.Offer{Estimates: offer.Estimates{Variant: name}}
		if slices.Contains(p.Taught(o), w) {
			only = append(only, name)
		}
	}
	return only
}

// alarmCleared ends an alarm.
func (s *State) alarmCleared(p *Placement, sequence uint64, b *eventlog.AlarmCleared) error {
	if p.Earnings.Guard.Alarm() == nil && !s.isAudit() {
		return fmt.Errorf("an alarm: %w", ErrNotFound)
	}
	doubtful := p.Earnings.Guard.Doubtful(sequence + 1)
	if b.All {
		doubtful = earnings.Doubt{}
	}
	s.resume(p, sequence, doubtful)
	p.restartGuard(sequence)
	return nil
}
