package state

import (
	"context"

	"vitrine/service/api"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
	"vitrine/service/page"
)

// Lookup is a decision at the time of its lookup.
type Lookup struct {
	Record *Record // its mutable fields belong to the writer
	Was    Record
	Offer  *offer.Offer // nil if it was not read, or the log no longer holds it
}

// Read reads the offer, unless it is known.
func (f *Lookup) Read(ctx context.Context, log eventlog.Reader) (err error) {
	if f.Offer == nil {
		f.Offer, err = f.Was.read(ctx, log)
	}
	return err
}

// LookUp returns a remembered decision, or nil.
func (s *State) LookUp(placement, id string) *Lookup {
	r := s.decisions.find(s.Placements[placement], id)
	if r == nil {
		return nil
	}
	return &Lookup{Record: r, Was: *r, Offer: s.Offers.Of(r.Entry)}
}

// Decision is the state of a decision.
type Decision struct {
	Placement string
	Offer     *offer.Offer // shared: do not change it
	Time      int64
	Status    string       // "open", "chosen", "expired", "deferred", "withdrawn", "evicted" or "late"
	Choice    string       // the item that was taken, "" for none
	Choices   []api.Choice // all items taken, if the outcome is a basket

	Earned      float64 // by what was taken, with its corrections
	Corrections []api.Correction
}

// Decision returns the state of a decision with an offer.
func (f *Lookup) Decision() Decision {
	d := Decision{Placement: f.Was.placement.Name, Offer: f.Offer, Time: f.Was.time, Status: f.Was.Status.String()}
	ids := f.Offer.IDs()
	if d.Earned = f.Was.earned(f.Offer); f.Was.choice > 0 {
		d.Choice = ids[f.Was.choice-1]
	}
	d.Choices = offer.Given(ids, f.Was.rare().basket)
	for _, c := range f.Was.rare().corrections {
		given := api.Correction{ID: c.id, Item: ids[c.place-1]}
		if !c.withdraws {
			given.Value = &c.value
		}
		d.Corrections = append(d.Corrections, given)
	}
	return d
}

// Forgotten returns a decision that is no longer remembered, by the entry of its offer in the log.
func Forgotten(p *Placement, entry uint64, time int64, o *offer.Offer) *Lookup {
	f := &Lookup{Offer: o, Was: Record{placement: p, id: o.Decision, Entry: entry, time: time,
		shown: uint16(len(o.Shown))}}
	if o.Deferred {
		f.Was.Status = Deferred
	}
	return f
}

// Add applies an event to a forgotten decision. It ignores events of other decisions.
func (f *Lookup) Add(b eventlog.Body) {
	r := &f.Was
	become := func(decision string, to status) {
		if decision == r.id {
			r.Status = to
		}
	}
	switch b := b.(type) {
	case *eventlog.Activated:
		become(b.Decision, open)
	case *eventlog.ItemsDeclined:
		become(b.Decision, open)
	case *eventlog.Evicted:
		become(b.Decision, evicted)
	case *eventlog.Expired:
		to := expired
		if r.Status == Deferred {
			to = withdrawn
		}
		become(b.Decision, to)
	case *eventlog.Chosen:
		if b.Decision == r.id {
			r.Status, r.choice = chosen, int16(b.Choice)
			r.keep(b.Basket)
		}
	case *eventlog.Corrected:
		if b.Decision == r.id {
			r.amend(b)
		}
	}
}

// RowsOf reports whether a decision's rows use the placement's present features, and whether they suit its learner.
func (p *Placement) RowsOf(f *Lookup) (present, own bool) {
	return f.Was.Entry > p.Rows, f.Was.isOf(p.Learner)
}

// Still reports a decision that is no longer the one that was looked up, or that the batch changes already.
func (b *Batch) Still(f *Lookup) error {
	switch r := f.Record; {
	case b.touched[r.key()]:
		return ErrRetryBatch
	case b.State.decisions.find(r.placement, r.id) != r:
		return page.ErrStale
	}
	return nil
}
