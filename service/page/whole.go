package page

import (
	"fmt"
	"slices"

	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/offer"
)

// KnowsCandidates reports whether the log says which items of a catalogue were an offer's candidates.
func KnowsCandidates(o *offer.Offer) bool { return o.Catalogue != nil && o.Catalogue.NumItems > 0 }

// Whole returns an offer with the rows of all candidates. The log lacks the rows of catalogue items that were not
// shown, and items supplies them: it must be the catalogue at the offer's version.
func Whole(o *offer.Offer, items *catalogue.Frozen) (*eventlog.Offered, error) {
	c, split := o.Catalogue, items.Split()
	n, d := o.Candidates, o.Width
	from := n - c.Candidates()
	if items.Version != c.Version || items.Len() != c.NumItems || split.Schema().Width() != d ||
		len(o.ItemIDs) < max(from, 1) {
		return nil, fmt.Errorf("decision %q has %d candidates of version %d of a catalogue of %d items, but the "+
			"catalogue at hand is version %d with %d items", o.Decision, c.Candidates(), c.Version, c.NumItems,
			items.Version, items.Len())
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
	past := make(map[string]*feature.Past, len(o.Past))
	for k := range o.Past {
		past[o.Past[k].ID] = &o.Past[k]
	}
	i := from
	err := items.Each(c.EachSlot(), func(id string, columns []float64, revenue float64) {
		w.ItemIDs[i] = id
		row := w.Features[i*d : (i+1)*d]
		if finite = split.Complete(row, user, columns) && finite; past[id] != nil {
			split.Schema().Remember(row, past[id])
		}
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
			return nil, fmt.Errorf("item %q of decision %q is not in version %d of the catalogue as it was shown", id,
				o.Decision, c.Version)
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
