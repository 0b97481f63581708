package engine

import (
	"context"
	"strings"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/page"
	"vitrine/service/setup"
	"vitrine/service/state"
)

func checkNote(note string) error {
	if len(note) > state.MaxVersionNote || strings.ContainsFunc(note, func(r rune) bool { return r < ' ' }) {
		return api.Fieldf("/note", "%q: must have at most %d bytes, without line breaks", note, state.MaxVersionNote)
	}
	return nil
}

// Keep saves the knowledge of a placement's learner from all outcomes so far, and returns its version to roll back to.
// If that state is a version already, Keep returns that version; a version of the timer gets the note, and a version
// with a note keeps its own. An empty note is the timer's: its versions are dropped first if there are more than the
// placement keeps. It returns *api.FieldError for the note, ErrNotFound, ErrStopped or ctx's error.
func (e *Engine) Keep(ctx context.Context, name, note string, now int64) (number uint64, err error) {
	if err := checkNote(note); err != nil {
		return 0, err
	}
	kept := new(uint64) // owned by the writer until it answers
	err = e.about(ctx, name, now, func(p *state.Placement) (eventlog.Body, error) {
		body := eventlog.Body(nil)
		*kept, body = p.KeepEvent(note)
		return body, nil
	})
	if err != nil {
		return 0, err
	}
	return *kept, nil
}

// RollBack returns a placement to a version: its learner forgets everything learned since, and the version's
// configuration comes back. The state before is kept as a version, with a note. If the learner is already in the
// version's state, it stays. It returns ErrNotFound, ErrRelearning, ErrExperiment for another learner's version, an
// *api.FieldError if the catalogue forbids the configuration, because others share it or an item lacks a feature,
// ErrMemory, the errors of how.Match, ErrStopped or ctx's error.
func (e *Engine) RollBack(ctx context.Context, name string, number uint64, how *Change, now int64) error {
	if how == nil {
		how = new(Change)
	}
	for {
		w, c, err := e.ready(ctx, name, number)
		if err != nil {
			return err
		}
		_, held, err := e.checkItems(ctx, name, c, how)
		e.state.Budget.Charge(-held)
		if err != nil {
			return err
		}
		err = e.about(ctx, name, now, func(p *state.Placement) (eventlog.Body, error) {
			body, err := p.RollBackEvent(number, w, how.Match)
			if err == nil && body != nil {
				_, _, err = e.state.CheckItems(name, w.Config, how)
			}
			return body, err
		})
		if err != page.ErrStale {
			return err
		}
	}
}

// ready makes a former learner publish the policy of a version, so that it can decide at once. It returns the learner
// with its configuration, which the writer may exchange.
func (e *Engine) ready(ctx context.Context, name string,
	number uint64) (w *state.Worker, c *setup.Config, err error) {
	e.mu.RLock()
	w, isFormer, err := e.state.LearnerOf(name, number)
	if err == nil {
		c = w.Config
	}
	e.mu.RUnlock()
	if isFormer {
		err = wait(ctx, w.Show(number))
	}
	return w, c, err
}

// Versions returns the versions of a placement to roll back to, the oldest first, with the warnings of a roll back now.
func (e *Engine) Versions(name string, now int64) ([]api.Version, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	p, err := e.state.Named(name)
	if err != nil {
		return nil, err
	}
	list := p.List()
	for k, v := range list {
		if w, isFormer, err := e.state.LearnerOf(name, v.Version); err == nil && isFormer {
			list[k].Warnings = e.changeWarnings(name, w.Config, now)
		}
	}
	return list, nil
}
