package offer

import (
	"fmt"
	"math"
	"slices"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/offpolicy"
	"vitrine/service/eventlog"
)

// SamplingLaw says how the set of an offer was drawn, given the policy's own one. In bytes:
//
//	kind     1 byte    1 sets, 2 slots, 3 pages, 4 items
//	ε        8 bytes   a float, little endian, in [0, 1]
//	size     uvarint   of sets the largest size, of pages the size, of items the number of slots
//	page     uvarint   the number of items of the policy's own set, and where they are, as uvarints
//	                   that increase
//	swaps    bytes     of slots: a bit for each item of the page and each item of the request, which
//	                   may replace it; empty if all may
//	items    if the kind is 4: their number as a uvarint and a float for each; and again, and the slot of each as a uvarint
type SamplingLaw struct {
	Kind    uint8
	Epsilon float64  // the probability that the set is drawn, and is not the policy's own
	Size    int      // K
	Page    []uint32 // the policy's own set: positions in Offered.ItemIDs, increasing
	Swaps   []byte   // nil if all swaps are allowed

	Probability []float64 // of DrawItems: each item's in its slot; they sum to 1 in each slot
	Slot        []uint32  // of DrawItems: the slot of each item, below Size
}

// Kinds of a [SamplingLaw].
const (
	DrawSets  = 1 + iota // uniformly from the nonempty sets of at most Size items
	DrawSwaps            // the page with one item replaced
	DrawPages            // uniformly from the sets of exactly Size items
	DrawItems            // the item of each slot by itself, from items of its own
)

// DrawNames are the ways to draw a page, as in exports and mappings.
var DrawNames = map[uint8]string{DrawSets: "sets", DrawSwaps: "swaps", DrawPages: "pages", DrawItems: "items"}

// Tolerance bounds the distance of a slot's sum of probabilities from 1: other programs log them rounded.
const Tolerance = 1e-3

// Allows reports whether item j of n may replace the k-th item of the page.
func (l *SamplingLaw) Allows(k, j, n int) bool {
	at := k*n + j
	return l.Swaps == nil || at/8 < len(l.Swaps) && l.Swaps[at/8]>>(at%8)&1 == 1
}

func (l *SamplingLaw) fields(f *fields.Fields) {
	f.Byte(&l.Kind)
	f.Float(&l.Epsilon)
	f.Count(&l.Size)
	fields.Integers(f, &l.Page)
	f.Bytes(&l.Swaps)
	if l.Kind == DrawItems {
		f.Floats(&l.Probability)
		fields.Integers(f, &l.Slot)
	}
}

// valid reports whether the law is one of a request with enough items.
func (l *SamplingLaw) valid() bool {
	for k := range l.Page[min(1, len(l.Page)):] {
		if l.Page[k+1] <= l.Page[k] {
			return false
		}
	}
	return l.Kind >= DrawSets && l.Kind <= DrawItems && l.Epsilon >= 0 && l.Epsilon <= 1 &&
		(l.Swaps == nil || l.Kind == DrawSwaps) && (l.Kind != DrawItems || l.checkItems(len(l.Slot)) == nil)
}

// checkItems reports probabilities of n items that do not belong to slots.
func (l *SamplingLaw) checkItems(n int) error {
	if len(l.Probability) != n || len(l.Slot) != n || l.Size < 1 || l.Size > n {
		return fmt.Errorf("%d probabilities and %d slots of %d in all for %d items", len(l.Probability), len(l.Slot),
			l.Size, n)
	}
	sum := make([]float64, l.Size)
	for i, p := range l.Probability {
		if !(p >= 0 && p <= 1) || int(l.Slot[i]) >= l.Size {
			return fmt.Errorf("item %d has the probability %v in slot %d of %d", i, p, l.Slot[i], l.Size)
		}
		sum[l.Slot[i]] += p
	}
	for k, v := range sum {
		if !(math.Abs(v-1) <= Tolerance) {
			return fmt.Errorf("the probabilities of the items of slot %d have the sum %v: must be 1", k, v)
		}
	}
	return nil
}

// RecordedLawOf returns how the set of an offer was drawn, or nil if the log does not tell: for offers without the rows
// of all candidates, and for uniform sets under rules.
func RecordedLawOf(o *eventlog.Offered) *SamplingLaw {
	e, err := Decode(o.Answer, len(o.Shown))
	if err != nil || e.Law == nil || e.Law.Check(len(o.ItemIDs)) != nil {
		return nil
	}
	return e.Law
}

// Check reports an invalid law for a request of n items.
func (l *SamplingLaw) Check(n int) error {
	for k, i := range l.Page {
		if int(i) >= n || k > 0 && i <= l.Page[k-1] {
			return fmt.Errorf("the policy's own set %v is not one of %d items", l.Page, n)
		}
	}
	switch {
	case l.Kind == DrawItems:
		return l.checkItems(n)
	case l.Kind < DrawSets || l.Kind > DrawPages:
		return fmt.Errorf("sets of kind %d are not known", l.Kind)
	case !(l.Epsilon >= 0 && l.Epsilon <= 1):
		return fmt.Errorf("the share of drawn sets is %v: must be in [0, 1]", l.Epsilon)
	case l.Kind != DrawSwaps && (l.Size < 1 || l.Size > n):
		return fmt.Errorf("sets of %d of %d items cannot be drawn", l.Size, n)
	case l.Swaps != nil && (l.Kind != DrawSwaps || len(l.Swaps) != (len(l.Page)*n+7)/8):
		return fmt.Errorf("%d bytes of swaps for %d items of %d", len(l.Swaps), len(l.Page), n)
	}
	return nil
}

// Law returns the law of the set that is shown, of n items.
func (l *SamplingLaw) Law(n int) offpolicy.SamplingLaw {
	page := make(vitrine.Assortment, len(l.Page))
	for k, i := range l.Page {
		page[k] = int(i)
	}
	switch {
	case l.Kind == DrawItems:
		slots := make([]int, n)
		for i, slot := range l.Slot {
			slots[i] = int(slot)
		}
		return offpolicy.Independent(slots, l.Probability)
	case l.Kind == DrawSwaps && l.Swaps == nil:
		return offpolicy.Swaps(l.Epsilon, n, page, nil)
	case l.Kind == DrawSwaps:
		may := make([][]bool, len(page))
		for k := range may {
			may[k] = make([]bool, n)
			for j := range n {
				may[k][j] = l.Allows(k, j, n)
			}
		}
		return offpolicy.Swaps(l.Epsilon, n, page, may)
	case l.Kind == DrawPages:
		return offpolicy.EpsilonPages(l.Epsilon, n, l.Size, page)
	}
	return offpolicy.EpsilonSets(l.Epsilon, n, l.Size, page)
}

// LawOf returns the law by which the set of an offer was drawn, or nil if the log does not tell. In the mode learn, a
// policy that showed its set with probability 1 follows a law, too.
func LawOf(o *eventlog.Offered) offpolicy.SamplingLaw {
	n := len(o.ItemIDs)
	if n < o.Candidates || n == 0 {
		return nil
	}
	l := RecordedLawOf(o)
	if l == nil && o.Propensity == 1 && o.Mode == ByPolicy && len(o.Shown) > 0 {
		l = &SamplingLaw{Kind: DrawPages, Size: len(o.Shown)}
		for _, i := range o.Shown {
			l.Page = append(l.Page, uint32(i))
		}
		slices.Sort(l.Page)
	}
	if l == nil {
		return nil
	}
	return l.Law(n)
}
