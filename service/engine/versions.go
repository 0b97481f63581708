package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// version is a state of a learner to roll back to. The learner keeps the state itself.
type version struct {
	number  uint64 // the last entry that the learner was given
	learner *worker
	routine bool // whether it was kept by the clock: such versions are dropped first
	note    string

	time    int64   // when it was kept
	rounds  uint64  // decisions of the placement that had ended until then
	revenue float64 // what they had earned
}

// version returns a version by its number, nil if there is none.
func (p *placement) version(number uint64) *version {
	for i := range p.versions {
		if p.versions[i].number == number {
			return &p.versions[i]
		}
	}
	return nil
}

// numbersOf returns the numbers of the versions that a learner keeps, nil for all of them.
func (p *placement) numbersOf(w *worker) []uint64 {
	numbers := []uint64{}
	for _, v := range p.versions {
		if w == nil || v.learner == w {
			numbers = append(numbers, v.number)
		}
	}
	return numbers
}

// hasLearned reports whether the learner that decides has been given anything since it began.
func (p *placement) hasLearned() bool { return p.learned > p.worker.began }

// keep makes the learner that decides remember its state. The version spare is not dropped for it.
func (s *fold) keep(p *placement, v version, spare uint64) {
	v.number, v.learner = p.learned, p.worker
	v.rounds, v.revenue = p.earnings.Counts.Earned()
	p.versions, p.standing = append(p.versions, v), v.number
	v.learner.Keep(v.number)
	s.trim(p, spare)
}

// keepBefore keeps the state of the learner that decides before a change, if it has learned anything. If that state is
// already a version, the version stays, with the note.
func (s *fold) keepBefore(p *placement, time int64, note string, spare uint64) {
	switch v := p.version(p.standing); {
	case v != nil:
		v.annotate(note)
	case p.hasLearned():
		s.keep(p, version{time: time, note: note}, spare)
	}
}

// annotate turns a version of the timer into one that is kept for the reason in the note. A version with a note keeps it.
func (v *version) annotate(note string) {
	if v.routine {
		v.routine, v.note = false, note
	}
}

// trim drops versions until there are as many as the placement keeps: the oldest that was kept by the clock, if there
// is one, and the oldest otherwise. The last one stays, and spare, and the one that decides while there is an alarm.
// An audit, which does not know of alarms, drops none.
func (s *fold) trim(p *placement, spare uint64) {
	for len(p.versions) > p.config.MaxVersions && !s.isAudit() {
		at := p.expendable(spare)
		if at < 0 {
			return
		}
		v := p.versions[at]
		p.versions = slices.Delete(p.versions, at, at+1)
		v.learner.Forget(v.number)
		if p.standing == v.number {
			p.standing = 0
		}
		s.dismiss(p, v.learner)
	}
}

func (p *placement) expendable(spare uint64) int {
	oldest := -1
	for i, v := range p.versions[:len(p.versions)-1] {
		switch {
		case v.number == spare, p.earnings.Guard.Alarm() != nil && v.number == p.earnings.Guard.Alarm().Version:
		case v.routine:
			return i
		case oldest < 0:
			oldest = i
		}
	}
	return oldest
}

// retire makes the learner that decides a former one, which only has versions.
func (s *fold) retire(p *placement) {
	w := p.worker
	w.Retire()
	p.former = append(p.former, w)
	s.dismiss(p, w)
}

// dismiss ends a former learner that has no versions.
func (s *fold) dismiss(p *placement, w *worker) {
	at := slices.Index(p.former, w)
	if at >= 0 && len(p.numbersOf(w)) == 0 {
		w.Stop()
		p.former = slices.Delete(p.former, at, at+1)
	}
}

// rollBack returns to a version. One of a former learner brings its configuration back.
func (s *fold) rollBack(p *placement, sequence uint64, time int64, b *eventlog.LearnerRolledBack) error {
	v := p.version(b.Version)
	if v == nil {
		return fmt.Errorf("version %d: %w", b.Version, ErrNotFound)
	}
	w := v.learner
	if same := w == p.worker; same != (len(b.Config) == 0) || !same && !w.config.IsLogged(b.Config) {
		return fmt.Errorf("version %d is not of the configuration %s", b.Version, b.Config)
	}
	s.endRelearning(p)
	s.keepBefore(p, time, b.Note, b.Version)
	if w != p.worker {
		before := p.config
		s.retire(p)
		p.former = slices.DeleteFunc(p.former, func(f *worker) bool { return f == w })
		p.worker = w
		p.configure(w.config, sequence)
		s.conduct(p, sequence, time, nil)
		if !before.SameRows(w.config) {
			p.learner = sequence
		}
	}
	p.learned, p.standing = sequence, b.Version
	w.ReturnTo(sequence, b.Version)
	s.replaced(p, sequence, time, api.BegunByRollback, b.Version, 0)
	return nil
}

const maxVersionNote = 500 // bytes

func checkNote(note string) error {
	if len(note) > maxVersionNote || strings.ContainsFunc(note, func(r rune) bool { return r < ' ' }) {
		return api.Fieldf("/note", "%q: must have at most %d bytes, without line breaks", note, maxVersionNote)
	}
	return nil
}

// Keep keeps what a placement's learner has learned from all outcomes so far, and returns its version to roll back
// to. If that state is a version already, Keep returns that version; a version of the timer gets the note, and a version
// with a note keeps its own. An empty note is the timer's: its versions are dropped first if there are more than the
// placement keeps.
// Errors are *api.FieldError for the note, ErrNotFound, ErrStopped and that of ctx.
func (e *Engine) Keep(ctx context.Context, name, note string, now int64) (number uint64, err error) {
	if err := checkNote(note); err != nil {
		return 0, err
	}
	kept := new(uint64) // the writer's until it has answered
	err = e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
		*kept = p.learned
		switch {
		case note == "" && p.earnings.Guard.Alarm() != nil: // what is bad is not worth keeping, and the last good version stays
			if n := len(p.versions); n > 0 {
				*kept = p.versions[n-1].number
			}
			return nil, nil
		case p.version(p.standing) != nil:
			if *kept = p.standing; note != "" && p.version(p.standing).routine {
				return &eventlog.VersionSaved{Version: p.standing, Note: note}, nil
			}
			return nil, nil
		case note != "":
			return &eventlog.VersionSaved{Version: p.learned, Note: note}, nil
		}
		return &eventlog.SnapshotTaken{Version: p.learned, UpTo: e.state.position.Sequence, Name: fmt.Sprintf("%s@%d", name, p.learned)}, nil
	})
	if err != nil {
		return 0, err
	}
	return *kept, nil
}

// RollBack returns a placement to a version: its learner forgets what it has learned since, and the configuration under
// which the version was learned comes back. The state before is kept as a version, with a note. A learner whose state is that
// of the version stays as it is. Errors are ErrNotFound,
// those of match, ErrStopped and that of ctx.
func (e *Engine) RollBack(ctx context.Context, name string, number uint64, match Match, now int64) error {
	for {
		w, err := e.ready(ctx, name, number)
		if err != nil {
			return err
		}
		err = e.about(ctx, name, now, func(p *placement) (eventlog.Body, error) {
			if err := match.check(p); err != nil {
				return nil, err
			}
			v := p.version(number)
			if v == nil {
				return nil, noVersion(p, number)
			}
			if v.learner != p.worker && v.learner != w {
				return nil, errMoved
			}
			if v.learner != p.worker && p.experiment != nil {
				return nil, fmt.Errorf("placement %q, version %d, which is of another learner: %w", name, number, ErrExperiment)
			}
			if p.standing == number {
				return nil, nil
			}
			b := &eventlog.LearnerRolledBack{Version: number, Note: fmt.Sprintf("before the roll back to version %d", number)}
			if v.learner != p.worker {
				b.Config = v.learner.config.Canonical()
			}
			return b, nil
		})
		if err != errMoved {
			return err
		}
	}
}

func noVersion(p *placement, number uint64) error {
	return fmt.Errorf("placement %q, version %d: %w: there are %v", p.name, number, ErrNotFound, p.numbersOf(nil))
}

// ready makes a former learner publish the policy of a version, so that it can decide at once, and returns the learner.
func (e *Engine) ready(ctx context.Context, name string, number uint64) (*worker, error) {
	e.mu.RLock()
	w, isFormer, err := e.state.learnerOf(name, number)
	e.mu.RUnlock()
	if err != nil || !isFormer {
		return w, err
	}
	return w, wait(ctx, w.Show(number))
}

// learnerOf returns the learner that has a version of a placement, and whether it is a former one.
func (s *fold) learnerOf(name string, number uint64) (w *worker, isFormer bool, err error) {
	p, err := s.named(name)
	if err != nil {
		return nil, false, err
	}
	v := p.version(number)
	if v == nil {
		return nil, false, noVersion(p, number)
	}
	return v.learner, v.learner != p.worker, nil
}

// Versions returns the versions of a placement to roll back to, the oldest first.
func (e *Engine) Versions(name string) ([]api.Version, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.named(name)
	if err != nil {
		return nil, err
	}
	rounds, revenue := p.earnings.Counts.Earned()
	list := []api.Version{}
	for _, v := range p.versions {
		a := api.Version{Version: v.number, Time: time.Unix(0, v.time).UTC(), RoundsSince: rounds - v.rounds, Note: v.note, Automatic: v.routine, Policy: v.learner.config.Policy, OtherLearner: v.learner != p.worker}
		if learned, ok := v.learner.Learned(v.number); ok {
			a.Learned = &learned
		}
		if rounds > v.rounds {
			a.RevenueSince = new((revenue - v.revenue) / float64(rounds-v.rounds))
		}
		list = append(list, a)
	}
	return list, nil
}
