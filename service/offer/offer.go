// Package offer is an offer in the log: the page, how it was found, and the policy's expectations.
//
//	offer.go      an offer, and the round that a learner observes
//	estimates.go  the part of an answer that the log keeps in bytes
//	law.go        how the set was drawn; named.go in exports and mappings
//	explore.go    draws of other sets than the policy's own
//	closed.go     an offer with its outcome; totals.go sums of them; reward.go a choice drawn from rewards
//	cache.go      the candidates of the last offers, in memory
package offer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/eventlog"
)

// The ways to find an assortment: [eventlog.Offered.Mode].
const (
	ByPolicy   uint8 = 1 + iota
	ByChance         // drawn uniformly from the nonempty sets
	ByBaseline       // the caller's
	ByImport         // in the log of another program
)

// SourceNames are the ways to find an assortment, as in answers.
var SourceNames = map[uint8]string{ByPolicy: "policy", ByChance: "chance", ByBaseline: "baseline", ByImport: "import"}

// Offer is an offer in the log with its estimates.
type Offer struct {
	*eventlog.Offered
	Estimates
	Decoded bool // from an entry, so that its memory is its own
}

// Of decodes the answer of an offer that was decoded.
func Of(o *eventlog.Offered) (*Offer, error) {
	e, err := Decode(o.Answer, len(o.Shown))
	return &Offer{o, e, true}, err
}

// Read reads the offer of a decision from its entry of the log.
func Read(ctx context.Context, log eventlog.Reader, entry uint64, placement, decision string) (*Offer, error) {
	data, err := log.Entry(ctx, entry)
	if err != nil {
		return nil, err
	}
	event, err := eventlog.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", entry, err)
	}
	offered, ok := event.Body.(*eventlog.Offered)
	if !ok || offered.Decision != decision || event.Placement != placement {
		return nil, fmt.Errorf("entry %d is not the offer of decision %q", entry, decision)
	}
	return Of(offered)
}

// Encode appends the log entry of an offer's event to dst. The error is a *api.FieldError if the entry would be too
// large.
func Encode(dst []byte, event *eventlog.Event) (entry []byte, err error) {
	o := event.Body.(*eventlog.Offered)
	size := 8 * (len(o.Features) + len(o.Revenue))
	if size <= eventlog.MaxBatch { // otherwise the entry is useless
		if dst, err = event.Encode(dst); err != nil {
			return dst, api.Fieldf("/items", "%v", err)
		}
		size = eventlog.EntrySize(dst)
	}
	if size > eventlog.MaxBatch {
		return dst, api.Fieldf("/items", "the decision takes %d bytes of the log, at most %d fit: send fewer "+
			"items, record only the items shown, or do not ask for payloads", size, eventlog.MaxBatch)
	}
	return dst, nil
}

// Check reports an offer that is impossible for a placement with rows of a width and pages of at most maxSize items.
func (o *Offer) Check(width, maxSize int) error {
	if len(o.Shown) > maxSize || o.Width != width {
		return fmt.Errorf("the offer is of %d items of %d features, the placement shows %d of %d", len(o.Shown),
			o.Width, maxSize, width)
	}
	if o.Mode < ByPolicy || o.Mode > ByImport {
		return fmt.Errorf("the offer was found in way %d, which this program does not know", o.Mode)
	}
	if c := o.Catalogue; c != nil && c.NumItems > 0 && (c.Candidates() > o.Candidates ||
		len(o.ItemIDs) < max(o.Candidates-c.Candidates(), 1)) {
		return fmt.Errorf("the offer has %d rows of %d candidates, and %d of them come from a catalogue",
			len(o.ItemIDs), o.Candidates, c.Candidates())
	}
	for i, v := range o.Revenue {
		if v > vitrine.MaxRevenue {
			return fmt.Errorf("item %d has the revenue %v, the largest is %v", i, v, vitrine.MaxRevenue)
		}
	}
	return nil
}

// Place returns the place of an item among those shown, from 1 on, 0 if it was not shown.
func (o *Offer) Place(item string) int {
	return slices.IndexFunc(o.Shown, func(i int32) bool { return o.ItemIDs[i] == item }) + 1
}

// Outcome converts choices, which name each item once, to the event for the log. One unit of one item at its revenue needs
// no basket. wrong is the index of the first choice whose item was not shown, or -1.
func (o *Offer) Outcome(choices []api.Choice) (end *eventlog.Chosen, wrong int) {
	end = &eventlog.Chosen{Decision: o.Decision}
	for k, c := range choices {
		t := eventlog.Take{Place: int32(o.Place(c.Item)), Quantity: 1}
		if t.Place == 0 {
			return nil, k
		}
		price := Revenue(o.Revenue, int(o.Shown[t.Place-1]))
		if c.Quantity != nil {
			t.Quantity = int32(*c.Quantity)
		}
		if t.Value = float64(price * float64(t.Quantity)); c.Value != nil {
			t.Value = *c.Value + 0 // and not -0
		}
		if end.Choice = t.Place; len(choices) == 1 && t.Quantity == 1 && t.Value == price {
			return end, -1
		}
		end.Basket = append(end.Basket, t)
	}
	if len(choices) > 0 {
		slices.SortFunc(end.Basket, func(a, b eventlog.Take) int { return cmp.Compare(a.Place, b.Place) })
		end.Choice = end.Basket[0].Place
	}
	return end, -1
}

// Given converts a basket to the choices that callers report, given the ids of the items shown.
func Given(ids []string, basket eventlog.Basket) (choices []api.Choice) {
	for _, t := range basket {
		choices = append(choices, api.Choice{Item: ids[t.Place-1], Quantity: new(int(t.Quantity)), Value: new(t.Value)})
	}
	return choices
}

// MaxTakes limits the units of a page that a learner learns from, so that no page outweighs all others.
const MaxTakes = 20

// taken returns the places of the units to learn from: one unit of each item, then a second unit of items with two or more,
// and so on, up to MaxTakes.
func taken(basket eventlog.Basket) (places []int32) {
	for turn := int32(1); ; turn++ {
		before := len(places)
		for _, t := range basket {
			if len(places) == MaxTakes {
				return places
			}
			if t.Quantity >= turn {
				places = append(places, t.Place)
			}
		}
		if len(places) == before {
			return places
		}
	}
}

// Round returns the round that the learner observes: the recorded rows, in the order of the request. It moves
// them out of the offer. basket is nil for a single choice.
func (o *Offer) Round(choice int, basket eventlog.Basket) vitrine.Round {
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
	r := vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: s, Order: order, Propensity: o.Propensity}}
	r.Choice, r.More = Choices(s, o.Shown, choice, basket)
	return r
}

// Choices converts an outcome to the first choice and the further takes of a [vitrine.Round]: positions in an assortment s
// whose items are displayed in the order shown.
func Choices(s vitrine.Assortment, shown []int32, choice int,
	basket eventlog.Basket) (first vitrine.Choice, more []vitrine.Choice) {
	at := func(place int32) vitrine.Choice {
		k, _ := slices.BinarySearch(s, int(shown[place-1]))
		return vitrine.Choice(k + 1)
	}
	switch {
	case choice == 0:
		return vitrine.Outside, nil
	case basket == nil:
		return at(int32(choice)), nil
	}
	for k, place := range taken(basket) {
		if k == 0 {
			first = at(place)
		} else {
			more = append(more, at(place))
		}
	}
	return first, more
}

// IDs returns the ids of the items shown, in their order.
func (o *Offer) IDs() []string {
	ids := make([]string, len(o.Shown))
	for k, i := range o.Shown {
		ids[k] = o.ItemIDs[i]
	}
	return ids
}

// Reply returns the offer as the caller of the service gets it. Both share memory.
func (o *Offer) Reply() *api.Answer {
	a := &api.Answer{Decision: o.Decision, Assortment: make([]api.Shown, len(o.Shown)), PolicyEntry: o.PolicyEntry,
		Variant: o.Variant, Unmet: o.Unmet}
	if c := o.Catalogue; c != nil {
		a.CatalogueEntry, a.Unknown, a.Unavailable, a.Missing = c.Version, c.Unknown, c.Unavailable, c.Missing
	}
	slots := SlotIDs(o.Note)
	for k, i := range o.Shown {
		s := api.Shown{ID: o.ItemIDs[i], Position: k + 1}
		if o.Probability != nil {
			s.Probability = &o.Probability[k]
		}
		if slots != nil {
			s.Slot = slots[k]
		}
		if o.Payload != nil && o.Payload[k] != "" {
			s.Payload = jsontext.Value(o.Payload[k])
		}
		a.Assortment[k] = s
	}
	if o.Probability != nil {
		a.OutsideProbability, a.ExpectedRevenue = &o.Outside, &o.Expected
	}
	if o.Propensity != 0 {
		a.Propensity = &o.Propensity
	}
	return a
}

// WithoutRows returns the offer without its rows and candidates, which share memory with the decider. It removes them
// from the event, too: call it when the event is in the log.
func (o Offer) WithoutRows() *Offer {
	o.Features, o.Revenue, o.Answer = nil, nil, nil
	if o.Catalogue != nil {
		o.Catalogue.Slots = nil
	}
	return &o
}

// Revenue returns the revenue of an item, which is 1 if r is nil.
func Revenue(r []float64, i int) float64 {
	if r == nil {
		return 1
	}
	return r[i]
}

// SlotIDs returns the ids of the slots in a note, or nil.
func SlotIDs(note string) (ids []string) {
	if note == "" || json.Unmarshal([]byte(note), &ids) != nil {
		return nil
	}
	return ids
}
