package state

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"vitrine/internal/hint"
	"vitrine/service/api"
)

// version returns a version by its number, or nil.
func (p *Placement) version(number uint64) *version {
	for i := range p.versions {
		if p.versions[i].number == number {
			return &p.versions[i]
		}
	}
	return nil
}

// numbersOf returns the numbers of the versions that a learner keeps, nil for all of them.
func (p *Placement) numbersOf(w *Worker) []uint64 {
	numbers := []uint64{}
	for _, v := range p.versions {
		if w == nil || v.learner == w {
			numbers = append(numbers, v.number)
		}
	}
	return numbers
}

// hasLearned reports whether the deciding learner was given a round since it began.
func (p *Placement) hasLearned() bool { return p.learnedThrough > p.Worker.began }

// keep makes the learner that decides remember its state. The version spare is not dropped for it.
func (s *State) keep(p *Placement, v version, spare uint64) {
	v.number, v.learner = p.learnedThrough, p.Worker
	v.taught = p.Earnings.Guard.Taught()
	v.rounds, v.revenue = p.Earnings.Counts.Earned()
	p.versions, p.currentVersion = append(p.versions, v), v.number
	v.learner.Keep(v.number)
	s.trim(p, spare)
}

// keepBefore keeps the deciding learner's state before a change, if it learned anything. If that state is already a
// version, the version stays, with the note.
func (s *State) keepBefore(p *Placement, time int64, note string, spare uint64) {
	switch v := p.version(p.currentVersion); {
	case v != nil:
		v.annotate(note)
	case p.hasLearned():
		s.keep(p, version{time: time, note: note}, spare)
	}
}

// keepAt makes the learner remember its state, as the version that the log says.
func (s *State) keepAt(p *Placement, number uint64, v version) error {
	if had := p.version(number); had != nil && number == p.currentVersion && !v.routine {
		had.annotate(v.note)
		return nil
	}
	if s.isAudit() && number <= s.Position.Sequence { // it does not know how long the learner waited for an alarm
		p.learnedThrough = number
	}
	if number != p.learnedThrough {
		return fmt.Errorf("version %d is kept while the learner is at %d", number, p.learnedThrough)
	}
	s.keep(p, v, 0)
	return nil
}

// annotate gives a version of the timer the note. A version with a note keeps it.
func (v *version) annotate(note string) {
	if v.routine {
		v.routine, v.note = false, note
	}
}

// trim drops versions down to the number that the placement keeps: first the timer's oldest, then the oldest. It never
// drops the last one, spare, or the one that decides during an alarm, now or once another alarm is over. An audit knows
// no alarms, so it keeps all versions.
func (s *State) trim(p *Placement, spare uint64) {
	for len(p.versions) > p.Config.MaxVersions && !s.isAudit() {
		at := p.expendable(spare)
		if at < 0 {
			return
		}
		v := p.versions[at]
		p.versions = slices.Delete(p.versions, at, at+1)
		v.learner.Forget(v.number)
		if p.currentVersion == v.number {
			p.currentVersion = 0
		}
		s.dismiss(p, v.learner)
	}
}

func (p *Placement) expendable(spare uint64) int {
	oldest := -1
	for i, v := range p.versions[:len(p.versions)-1] {
		switch {
		case v.number == spare, p.Earnings.Guard.Needs(v.number):
		case v.routine:
			return i
		case oldest < 0:
			oldest = i
		}
	}
	return oldest
}

// retire turns the deciding learner into a former one, which only keeps versions.
func (s *State) retire(p *Placement) {
	w := p.Worker
	w.Retire()
	p.former = append(p.former, w)
	s.dismiss(p, w)
}

// dismiss ends a former learner without versions.
func (s *State) dismiss(p *Placement, w *Worker) {
	at := slices.Index(p.former, w)
	if at >= 0 && len(p.numbersOf(w)) == 0 {
		w.Stop()
		p.former = slices.Delete(p.former, at, at+1)
	}
}

// MaxVersionNote is the maximal length of the note of a version.
const MaxVersionNote = 500 // bytes

func noVersion(p *Placement, number uint64) error {
	var kept []string
	for _, version := range p.numbersOf(nil) {
		kept = append(kept, strconv.FormatUint(version, 10))
	}
	advice := "the placement has none yet"
	if kept != nil {
		advice = "must be " + hint.List(kept)
	}
	return fmt.Errorf("placement %q, version %d: %w: %s", p.Name, number, ErrNotFound, advice)
}

// LearnerOf returns the learner that keeps a placement's version, and whether it is a former one.
func (s *State) LearnerOf(name string, number uint64) (w *Worker, isFormer bool, err error) {
	p, err := s.Named(name)
	if err != nil {
		return nil, false, err
	}
	v := p.version(number)
	if v == nil {
		return nil, false, noVersion(p, number)
	}
	return v.learner, v.learner != p.Worker, nil
}

// List returns the versions, the oldest first.
func (p *Placement) List() []api.Version {
	rounds, revenue := p.Earnings.Counts.Earned()
	list := []api.Version{}
	for _, v := range p.versions {
		a := api.Version{Version: v.number, Time: time.Unix(0, v.time).UTC(), RoundsSince: rounds - v.rounds,
			Note: v.note, Automatic: v.routine, Policy: v.learner.Config.Policy, OtherLearner: v.learner != p.Worker}
		if a.OtherLearner {
			a.Config = new(v.learner.Config.Answer())
		}
		if learned, ok := v.learner.Learned(v.number); ok {
			a.Learned = &learned
		}
		if rounds > v.rounds {
			a.RevenueSince = new((revenue - v.revenue) / float64(rounds-v.rounds))
		}
		list = append(list, a)
	}
	return list
}
