package learner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vitrine"
	"vitrine/internal/panics"
	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
)

// New builds a learner with its first policy, within the configuration's share of memory. The error is the policy's
// *[api.FieldError].
func New(build Build, c *setup.Config) (*Learner, error) {
	l := &Learner{build: build, spec: c.Spec(), queue: queue{limit: c.Share()}}
	l.changed.L = &l.mu
	l.context, l.cancel = context.WithCancel(context.Background())
	var err error
	if l.learner, err = l.restored(); err == nil {
		err = l.mark()
	}
	if err == nil {
		if l.publish(); l.current.Load() == nil {
			err = fmt.Errorf("the learner has no first policy: %s", l.seen.Problem)
		}
	}
	if err != nil {
		return nil, api.Fieldf("/policy", "%v", err)
	}
	l.saved = *l.newCheckpoint()
	return l, nil
}

// restored builds a learner with a saved state, or a fresh one.
func (l *Learner) restored(saved ...[]byte) (s saver, err error) {
	err, _ = panics.Safely(func() error {
		built, err := l.build(l.spec)
		if err != nil {
			return err
		}
		var ok bool
		if s, ok = built.(saver); !ok {
			return errors.New("the learner cannot be saved, so it cannot serve")
		}
		if len(saved) == 0 {
			return nil
		}
		return s.UnmarshalBinary(saved[0])
	})
	return s, err
}

// policyOf makes the policy of a learner, unless the learner could not be built.
func policyOf(s saver, err error) (pi vitrine.Policy, _ error) {
	if err == nil {
		err, _ = panics.Safely(func() error { pi = s.Policy(); return nil })
	}
	if err == nil && pi == nil {
		err = errors.New("the learner has no policy")
	}
	return pi, err
}

// Begin sets the entry at which a new learner begins. Call it before Run.
func (l *Learner) Begin(entry uint64) {
	l.progress.Entry, l.saved.Entry = entry, entry
	l.show("")
	l.current.Store(&Published{l.current.Load().Policy, entry})
}

// Run does the tasks until Stop. It reads the log for a placement; a nil log is empty.
func (l *Learner) Run(log eventlog.Log, placement string) {
	l.log, l.placement = log, placement
	for {
		t, last, ok := l.pop()
		switch {
		case !ok:
			return
		case t.what == toObserve && l.isStopped():
		case t.what == toObserve:
			l.learn(&t)
			l.given++
			if l.behind++; last || l.behind >= publishRounds {
				l.publish()
			}
		default:
			l.publish()
			if l.do(&t); t.what != toCall {
				l.publish()
			}
		}
		l.end(l.newCheckpoint())
	}
}

// do does a task other than a round.
func (l *Learner) do(t *task) {
	switch t.what {
	case toKeep:
		l.save()
		l.kept = append(l.kept, kept{t.version, l.progress.Learned, l.checkpoint})
	case toForget:
		l.kept = slices.DeleteFunc(l.kept, func(k kept) bool { return k.version == t.version })
	case toReturn:
		l.returnTo(t.entry, t.version)
	case toRetire:
		l.retire()
	case toFollow:
		l.follow(t.entry, t.outages)
	case toCatchUp:
		l.catchUp(t.entry, t.gap)
	case toEndReplay:
		l.history = nil
	case toSkip:
		l.skipDoubtful(t)
	default:
		t.call()
	}
}

// publish makes the learner's policy and progress visible. If making the policy fails, the last one stays.
func (l *Learner) publish() {
	l.behind = 0
	problem := ""
	if !l.progress.Broken && !l.progress.Retired {
		if pi, err := policyOf(l.learner, nil); err != nil {
			problem = err.Error()
		} else {
			l.current.Store(&Published{pi, l.progress.Entry})
			l.families.note(pi, l.progress.Learned)
		}
	}
	l.show(problem)
}

// show makes the progress visible, with a problem that passes unless it is empty.
func (l *Learner) show(problem string) {
	seen := l.progress
	if problem != "" {
		seen.Problem = problem
	}
	l.holding(func() {
		l.lag -= l.given
		l.seen = seen
	})
	l.given = 0
}

// learn learns a round. It makes a checkpoint when the rounds since the last one take as many bytes as the checkpoint,
// which keeps saving cheap, or three quarters of their bound, because the next round may take a quarter.
func (l *Learner) learn(t *task) {
	l.observe(t)
	n, bytes, limit := len(l.saved.since)+1, l.noted+t.bytes, 0
	l.holding(func() { limit = l.limit })
	if n >= checkpointRounds && bytes >= len(l.checkpoint) || bytes > limit*3/4 {
		l.save()
	}
}

func (l *Learner) observe(t *task) {
	l.progress.Entry = t.entry
	if l.progress.Broken {
		l.skip(1)
		return
	}
	err, panicked := panics.Safely(func() error { return l.learner.Observe(t.round) })
	if err == nil {
		l.progress.Learned++
		l.progress.Since++
		return
	}
	l.skip(1)
	l.report(err)
	if panicked {
		l.rebuild()
	}
}

func (l *Learner) skip(rounds uint64) {
	l.progress.Skipped += rounds
	l.progress.Since = 0
}

// skipDoubtful skips rounds in doubt. That is no problem of the learner's, and must not hide one.
func (l *Learner) skipDoubtful(t *task) {
	l.progress.Entry = t.entry
	l.skip(t.rounds)
}

func (l *Learner) report(err error) {
	l.progress.Problem = api.Abbreviate(err.Error(), MaxProblem)
}

// fail ends the learning.
func (l *Learner) fail(err error) {
	l.progress.Broken = true
	l.report(err)
}

// rebuild restores the state before the round on which the learner panicked. It depends on the rounds only, not on when
// checkpoints were made.
func (l *Learner) rebuild() {
	s, err := l.restored(l.checkpoint)
	for _, t := range l.saved.since {
		if err == nil && t.what == toObserve {
			if failed, panicked := panics.Safely(func() error { return s.Observe(t.round) }); panicked {
				err = failed
			}
		}
	}
	if err == nil {
		l.learner = s
		err = l.mark()
	}
	if err != nil {
		l.fail(fmt.Errorf("after %s the learner could not be restored: %w", l.progress.Problem, err))
	}
}

// mark makes a checkpoint.
func (l *Learner) mark() error {
	var data []byte
	err, _ := panics.Safely(func() (err error) { data, err = l.learner.MarshalBinary(); return err })
	if err != nil {
		return fmt.Errorf("the learner cannot be saved: %w", err)
	}
	l.checkpoint, l.marked = data, true
	return nil
}

// save makes a checkpoint of a learner that learns. One that cannot be saved is broken.
func (l *Learner) save() {
	switch {
	case l.progress.Retired:
		l.marked = true
	case l.progress.Broken:
	default:
		if err := l.mark(); err != nil {
			l.fail(err)
		}
	}
}

// Progress returns how far the learner is. It names a problem if the policy could not be made or the log could not be
// read.
func (l *Learner) Progress() (p Progress) {
	l.holding(func() { p = l.seen; p.Lag, p.Waiting = l.lag, uint64(len(l.ordering.held)) })
	return p
}

// Current returns the policy that was published last.
func (l *Learner) Current() *Published { return l.current.Load() }
