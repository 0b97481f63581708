package decision

import (
	"context"
	"fmt"
	"slices"

	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Unless a placement records all candidates, the log limits what it holds of each decision.
const (
	maxSet        = 2 << 10 // bytes of the candidates' slots
	maxShortRules = 1 << 10 // bytes of the request's rules
)

// knowsCandidates reports whether the log says which items of a catalogue were an offer's candidates.
func knowsCandidates(o *offer.Offer) bool { return o.Catalogue != nil && o.Catalogue.NumItems > 0 }

// maxUndone limits how many changed items an explanation undoes.
var maxUndone = 100_000

// Rewind undoes the changes that the log holds after the entry version, so that items become that version of their catalogue. It
// returns an error if the changes concern more than most items, or if the catalogue never had the version.
func Rewind(ctx context.Context, log eventlog.Reader, items *catalogue.Frozen, version uint64, most int) error {
	for left := most; items.Version > version; {
		entry, err := log.Entry(ctx, items.Version)
		if err != nil {
			return fmt.Errorf("entry %d: %w", items.Version, err)
		}
		event, err := eventlog.Decode(entry)
		if err != nil {
			return fmt.Errorf("entry %d: %w", items.Version, err)
		}
		change, ok := event.Body.(*eventlog.ItemsChanged)
		if !ok || change.Before >= items.Version {
			return fmt.Errorf("entry %d does not change a catalogue", items.Version)
		}
		if left -= 1 + len(change.Put) + len(change.Deleted); left < 0 {
			return fmt.Errorf("more than %d items of the catalogue have changed since", most)
		}
		if err := items.Revert(change.Before, change.Put, change.Deleted, change.Undo); err != nil {
			return fmt.Errorf("entry %d: %w", items.Version, err)
		}
	}
	return nil
}

// Whole returns an offer with the rows of all candidates. The log lacks the rows of catalogue items that were not shown, and items
// supplies them: it must be the catalogue at the offer's version.
func Whole(o *offer.Offer, items *catalogue.Frozen) (*eventlog.Offered, error) {
	c, split := o.Catalogue, items.Split()
	n, d := o.Candidates, o.Width
	from := n - c.Candidates()
	if items.Version != c.Version || items.Len() != c.NumItems || split.Schema().Width() != d || len(o.ItemIDs) < max(from, 1) {
		return nil, fmt.Errorf("decision %q has %d candidates of version %d of a catalogue of %d items, but the catalogue at hand is version %d with %d items", o.Decision, c.Candidates(), c.Version, c.NumItems, items.Version, items.Len())
	}
	w := *o.Offered
	w.ItemIDs, w.Features, w.Shown = make([]string, n), make([]float64, n*d), make([]int32, len(o.Shown))
	if o.Revenue != nil {
		w.Revenue = make([]float64, n)
	}
	user := split.UserOf(o.Features[:d])
	at, finite := make(map[string]int, len(o.ItemIDs)), true
	for _, id := range o.ItemIDs[from:] {
		at[id] = -1
	}
	i := from
	err := items.Each(c.EachSlot(), func(id string, columns []float64, revenue float64) {
		w.ItemIDs[i] = id
		finite = split.Complete(w.Features[i*d:(i+1)*d], user, columns) && finite
		if w.Revenue != nil {
			w.Revenue[i] = revenue
		}
		if _, ok := at[id]; ok {
			at[id] = i
		}
		i++
	})
	for k, id := range o.ItemIDs { // their rows are in the log
		i, row := at[id], o.Features[k*d:(k+1)*d]
		if k < from {
			i, at[id] = k, k
			copy(w.Features[i*d:(i+1)*d], row)
		}
		if i < 0 || !finite || err != nil || !slices.Equal(w.Features[i*d:(i+1)*d], row) {
			return nil, fmt.Errorf("item %q of decision %q is not in version %d of the catalogue as it was shown", id, o.Decision, c.Version)
		}
		w.ItemIDs[i] = id
		if w.Revenue != nil {
			w.Revenue[i] = o.Revenue[k]
		}
	}
	for k, i := range o.Shown {
		w.Shown[k] = int32(at[o.ItemIDs[i]])
	}
	return &w, nil
}

// said returns what the log will say about the candidates.
func (c *candidates) said(all bool) *offer.FromCatalogue {
	if c.items == nil {
		return nil
	}
	said := &offer.FromCatalogue{Version: c.version, Unknown: c.Unknown, Unavailable: c.Unavailable, Missing: c.Missing, NumItems: c.n, All: all}
	if !c.All && len(c.Slots) < c.n {
		said.Slots = slices.Clip(c.Slots)
		if said.Slots == nil {
			said.Slots = []int32{}
		}
	}
	if !all && (c.from > 0 || said.Size() > maxSet) { // the rows that a request brings are not in the log
		said.NumItems, said.Slots = 0, nil
	}
	return said
}
