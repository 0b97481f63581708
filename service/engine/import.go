package engine

import (
	"context"
	"errors"

	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/page"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// CheckImport reports why [Engine.Import] would not import a decision into a placement of a
// configuration.
func CheckImport(name string, c *setup.Config, m *page.Imported) error {
	d := page.NewDecider()
	defer d.Release()
	_, _, err := d.Import(&page.View{Name: name, Config: c}, m)
	if _, ok := errors.AsType[*page.UnseenError](err); ok {
		return nil
	}
	return err
}

// ImportedEvents returns the decision and the outcome that [Engine.Import] would log, and the configuration with the
// category values that the decision adds.
func ImportedEvents(name string, c *setup.Config,
	m *page.Imported) (*eventlog.Offered, *eventlog.Chosen, *setup.Config, error) {
	d := page.NewDecider()
	defer d.Release()
	for {
		events, _, err := d.Import(&page.View{Name: name, Config: c}, m)
		if unseen, ok := errors.AsType[*page.UnseenError](err); ok {
			if c, err = c.Learn(unseen.Values...); err == nil {
				continue
			}
		}
		if err != nil {
			return nil, nil, c, err
		}
		return events[0].Body.(*eventlog.Offered), events[1].Body.(*eventlog.Chosen), c, nil
	}
}

// Recorded reads a log, and returns the ids of a placement's decisions since it was made, and the time of the log's last
// entry.
func Recorded(ctx context.Context, log eventlog.Log, name string) (ids map[string]bool, last int64, err error) {
	ids = map[string]bool{}
	extent, err := log.Extent(ctx)
	if err != nil {
		return nil, 0, err
	}
	for entry, err := range log.Entries(ctx, extent.First) {
		if err != nil {
			return nil, 0, err
		}
		event, err := eventlog.Decode(entry)
		if err != nil {
			return nil, 0, err
		}
		last = max(last, event.Time)
		if event.Placement != name {
			continue
		}
		switch o := event.Body.(type) {
		case *eventlog.Offered:
			ids[o.Decision] = true
		case *eventlog.PlacementDeleted: // what it learned is gone
			clear(ids)
		}
	}
	return ids, last, nil
}

// Import adds decisions and their outcomes to a placement's log, marked as imported. The learner learns from them as
// from any others. Several decisions share a commit. Import waits while the learner's queue is full. It returns
// *api.FieldError for an invalid decision, ErrConflict if the placement remembers a different decision under the id,
// ErrNotFound, ErrStopped or ctx's error. After an error the decisions before the failed one are in the log.
func (e *Engine) Import(ctx context.Context, name string, decisions ...*page.Imported) error {
	d := page.NewDecider()
	defer d.Release()
	for len(decisions) > 0 {
		v, err := e.View(name)
		if err != nil {
			return err
		}
		list, err := importedTogether(d, &v.Page, decisions)
		if unseen, ok := errors.AsType[*page.UnseenError](err); ok && len(list) == 0 {
			if err := e.logValues(ctx, name, v.Changed, unseen.Values, decisions[0].Time); err != nil &&
				!errors.Is(err, page.ErrStale) {
				return err
			}
			continue
		}
		if len(list) == 0 {
			return err
		}
		err = e.submit(ctx, func(b *state.Batch) error { return b.Imported(v, list) })
		switch {
		case errors.Is(err, state.ErrBehind):
			if err := e.Wait(ctx); err != nil {
				return err
			}
		case errors.Is(err, page.ErrStale):
		case err != nil:
			return err
		default:
			decisions = decisions[len(list):]
		}
	}
	return nil
}

// importedTogether returns the first decisions: as many as fit into a commit and half of the learner's queue, but at
// least one. The error belongs to the decision after them.
func importedTogether(d *page.Decider, v *page.View,
	decisions []*page.Imported) (list []state.ImportedEvents, err error) {
	bytes, rounds := 0, 0
	ids := map[string]bool{}
	for _, m := range decisions {
		var i state.ImportedEvents
		if i.Events, i.Entries, err = d.Import(v, m); err != nil {
			return list, err
		}
		if i.Offer, err = state.OfferOf(v.Config, i.Events[0].Body.(*eventlog.Offered)); err != nil {
			return list, err
		}
		bytes += eventlog.EntrySize(i.Entries[0]) + eventlog.EntrySize(i.Entries[1])
		rounds += learner.RoundBytes(i.Offer)
		if len(list) > 0 && (bytes > eventlog.MaxBatch/2 || rounds > v.Config.Share()/2 || ids[m.Request.Decision]) {
			return list, nil
		}
		ids[m.Request.Decision] = true
		list = append(list, i)
	}
	return list, nil
}
