package decision

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/service/eventlog"
)

// Log is an event log that also reads single entries.
type Log interface {
	eventlog.Store
	eventlog.Reader
}

// offer is an offer in the log with its estimates.
type offer struct {
	*eventlog.Offered
	estimates
}

// estimated decodes the answer of an offer.
func estimated(o *eventlog.Offered) (*offer, error) {
	e, err := decodeEstimates(o.Answer, len(o.Shown))
	return &offer{o, e}, err
}

// offerOf is estimated for an offer that was made under a configuration.
func offerOf(c *Config, o *eventlog.Offered) (*offer, error) {
	decoded, err := estimated(o)
	if err != nil {
		return nil, err
	}
	return decoded, decoded.check(c)
}

// check reports an offer that a placement of this configuration cannot have made.
func (o *offer) check(c *Config) error {
	k, d := len(o.Shown), o.Width
	if d != c.schema.Width() || k > c.MaxSize {
		return fmt.Errorf("the offer is of %d items of %d features, the placement shows %d of %d", k, d, c.MaxSize, c.schema.Width())
	}
	if o.Mode < ByPolicy || o.Mode > ByImport {
		return fmt.Errorf("the offer was found in way %d, which this program does not know", o.Mode)
	}
	for i, v := range o.Revenue {
		if v > vitrine.MaxRevenue {
			return fmt.Errorf("item %d has the revenue %v, the largest is %v", i, v, vitrine.MaxRevenue)
		}
	}
	return nil
}

// read reads the offer of a decision from the log. The error wraps eventlog.ErrRemoved if the entry was
// removed, and is that of ctx or ErrUnread otherwise.
func (r *record) read(ctx context.Context, log eventlog.Reader) (*offer, error) {
	var data []byte
	var err error
	if r.entry == 0 {
		data = r.rare.carried
	} else if data, err = log.Entry(ctx, r.entry); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("decision %q: %w: %w", r.id, ErrUnread, err)
	}
	event, err := eventlog.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("decision %q: %w: entry %d: %w", r.id, ErrUnread, r.entry, err)
	}
	o, ok := event.Body.(*eventlog.Offered)
	if !ok || o.Decision != r.id || event.Placement != r.placement.name {
		return nil, fmt.Errorf("decision %q: %w: entry %d is not its offer", r.id, ErrUnread, r.entry)
	}
	decoded, err := estimated(o)
	if err != nil {
		return nil, fmt.Errorf("decision %q: %w: entry %d: %w", r.id, ErrUnread, r.entry, err)
	}
	return decoded, nil
}

// place returns the place of an item among those shown, from 1 on, 0 if it was not shown.
func (o *offer) place(item string) int {
	return slices.IndexFunc(o.Shown, func(i int32) bool { return o.ItemIDs[i] == item }) + 1
}

// roundBytes returns the bytes of the round while it waits for the learner.
func (o *offer) roundBytes() int {
	return roundBytes(len(o.Features)+len(o.Revenue), len(o.Shown))
}

// earned returns the revenue of a choice.
func (o *offer) earned(choice int) float64 {
	switch {
	case choice == 0:
		return 0
	case o.Revenue == nil:
		return 1
	}
	return o.Revenue[o.Shown[choice-1]]
}

// round returns the round that the learner observes: the recorded rows, in the order of the request. It moves
// them out of the offer.
func (o *offer) round(choice int) vitrine.Round {
	x := &vitrine.Context{Revenue: o.Revenue}
	if n := len(o.ItemIDs); n > 0 {
		x.Features = mat.NewDense(n, o.Width, o.Features)
	}
	s := make(vitrine.Assortment, len(o.Shown))
	for k, i := range o.Shown {
		s[k] = int(i)
	}
	order := slices.Clone([]int(s))
	slices.Sort(s)
	c := vitrine.Outside
	if choice > 0 {
		at, _ := slices.BinarySearch(s, int(o.Shown[choice-1]))
		c = vitrine.Choice(at + 1)
	}
	return vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: s, Order: order, Propensity: o.Propensity}, Choice: c}
}
