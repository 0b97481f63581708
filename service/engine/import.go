package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"vitrine/service/eventlog"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/page"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// CheckImport reports why [Engine.Import] would not import a decision into a placement of a
// configuration.
func CheckImport(name string, c *setup.Config, m *page.Imported) error {
	d := page.NewDecider()
	defer d.Release()
	_, err := importedAs(d, name, c, m)
	return err
}

// importedAs returns the events of a decision, which d may reuse. The configuration may not know all of its values yet.
func importedAs(d *page.Decider, name string, c *setup.Config, m *page.Imported) ([2]*eventlog.Event, error) {
	events, _, err := d.Import(&page.View{Name: name, Config: c}, m)
	if _, ok := errors.AsType[*page.UnseenError](err); ok {
		err = nil
	}
	return events, err
}

// Known identifies the contents of a logged decision.
type Known struct {
	time       int64
	moved      bool   // whether the import may have moved time, to the time of the entry before
	live       bool   // not imported
	page, ends uint64 // hashes of the decision, without its features, which depend on the configuration, and its outcome
}

// hash returns a hash of values.
func hash(values ...any) uint64 {
	sum := sha256.Sum256(fmt.Append(nil, values...))
	return binary.LittleEndian.Uint64(sum[:])
}

// knownAs returns the contents of a logged decision.
func knownAs(o *eventlog.Offered) Known {
	var shown []string
	for _, i := range o.Shown {
		shown = append(shown, strconv.Quote(o.ItemIDs[i]))
	}
	if o.Mode != offer.ByImport { // its request asked for more than an import's does
		return Known{live: true, page: hash(shown)}
	}
	return Known{page: hash(shown, o.Candidates, o.Propensity)}
}

// Is returns an error if an imported decision is not the known one. A decision that the configuration no longer allows
// counts as the known one.
func (k Known) Is(name string, c *setup.Config, m *page.Imported) error {
	d := page.NewDecider()
	defer d.Release()
	events, err := importedAs(d, name, c, m)
	if err != nil {
		return nil
	}
	o := *events[0].Body.(*eventlog.Offered)
	if k.live {
		o.Mode = 0
	}
	end := events[1].Body.(*eventlog.Chosen)
	const second = int64(time.Second) // a file may round times
	var part string
	switch other := knownAs(&o); {
	case k.page != other.page:
		part = "another page"
	case !k.live && k.ends != 0 && k.ends != hash(end.Choice, end.Basket):
		part = "another outcome"
	case !k.live && (m.Time > k.time+second || m.Time != 0 && m.Time < k.time-second && !k.moved):
		part = "the time " + time.Unix(0, k.time).UTC().Format(time.RFC3339Nano)
	default:
		return nil
	}
	return fmt.Errorf("the log contains this decision with %s: if the file reuses ids, make them unique, such as by its "+
		"date; if it corrects an earlier one, import it into a new placement", part)
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

// Recorded reads a log, and returns a placement's decisions since it was made, by their ids, and the time of the log's
// last entry.
func Recorded(ctx context.Context, log eventlog.Log, name string) (ids map[string]Known, last int64, err error) {
	ids = map[string]Known{}
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
		before := last
		last = max(last, event.Time)
		if event.Placement != name {
			continue
		}
		switch o := event.Body.(type) {
		case *eventlog.Offered:
			k := knownAs(o)
			k.time, k.moved = event.Time, event.Time == before
			ids[o.Decision] = k
		case *eventlog.Chosen:
			if k, ok := ids[o.Decision]; ok {
				k.ends = hash(o.Choice, o.Basket)
				ids[o.Decision] = k
			}
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
