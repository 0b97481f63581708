package earnings

import (
	"math"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Counts holds a placement's counters.
type Counts struct {
	Offered, Chosen, Expired, Stale uint64
	Withdrawn, Evicted, Unlearned   uint64
	SinceEvicted, SinceUnlearned    uint64  // decisions that ended after the last one
	Empty                           uint64  // decisions by the policy without an item
	EmptyShare                      float64 // of the last decisions: one weighs 1/emptyMemory less than the next
	EvictedShare                    float64 // of the last decisions that ended, with evictedMemory
	Late, Corrected                 uint64
	Chance                          uint64
	Arms                            [3]offer.Totals // offer.ByPolicy, offer.ByChance, offer.ByBaseline
	Calibration                     api.Calibration
	Shadow                          api.Comparison
}

// With evictedMemory a share of 1.5%, by chance, hardly ever reaches the fiftieth at which a placement's health is bad.
const (
	emptyMemory   = 256
	evictedMemory = 2048
)

func (c *Counts) offered(o *offer.Offer) {
	c.Offered++
	c.EmptyShare -= float64(c.EmptyShare / emptyMemory)
	if len(o.Shown) == 0 && o.Mode == offer.ByPolicy {
		c.Empty++
		c.EmptyShare += 1. / emptyMemory
	}
	if o.Mode == offer.ByChance {
		c.Chance++
	}
	compare(&c.Shadow, o)
}

// compare adds a decision that showed the caller's set to a comparison with the policy's own set.
func compare(c *api.Comparison, o *offer.Offer) {
	if !o.Shadowed {
		return
	}
	c.Rounds++
	if o.Agrees {
		c.Agreements++
	}
	if o.Probability != nil {
		c.Estimated++
		c.Policy += o.Shadow
		c.Baseline += o.Expected
	}
}

// closed counts a decision with an outcome. Everything beyond that needs its offer: o may be nil.
func (c *Counts) closed(isChosen bool, o *offer.Closed) {
	c.SinceEvicted++
	c.EvictedShare -= float64(c.EvictedShare / evictedMemory)
	c.SinceUnlearned++
	if isChosen {
		c.Chosen++
	} else {
		c.Expired++
	}
	if o == nil {
		return
	}
	if o.Mode != offer.ByImport {
		c.Arms[o.Mode-offer.ByPolicy].Count(o)
	}
	if !o.Predicted {
		return
	}
	c.Calibration.Revenue += o.PerUnit()
	c.Calibration.Predicted += o.Expected
	(*bins)(&c.Calibration.Bins).add(o)
}

// abandoned counts a decision that ended without an outcome.
func (c *Counts) abandoned(isEvicted bool) {
	if !isEvicted {
		c.Withdrawn++
		return
	}
	c.Evicted++
	c.SinceEvicted = 0
	c.EvictedShare += (1 - c.EvictedShare) / evictedMemory
}

// Earned returns the number of decisions that ended, with or without an outcome, and their earnings.
func (c *Counts) Earned() (rounds uint64, revenue float64) {
	var all offer.Totals
	for i := range c.Arms {
		all.Add(&c.Arms[i])
	}
	return all.Rounds, all.Revenue.Value()
}

// Calibrated returns the nonempty bins of the calibration.
func (c *Counts) Calibrated() []api.Calibrated {
	list := []api.Calibrated{}
	for b, bin := range c.Calibration.Bins {
		if bin.Rounds == 0 {
			continue
		}
		list = append(list, calibrated(b, bin))
	}
	return list
}

// calibrated compares a nonempty bin with its predictions.
func calibrated(b int, bin api.Bin) api.Calibrated {
	n := float64(bin.Rounds)
	p := min(bin.Predicted/n, 1)
	return api.Calibrated{
		Low: float64(b) / 10, High: float64(b+1) / 10, Rounds: bin.Rounds, Predicted: p,
		Observed:      float64(bin.Purchases) / n,
		StandardError: math.Sqrt(float64(p*(1-p)) / n),
	}
}

// bins group decisions by the predicted probability of a sale, as in [api.Calibration].
type bins [10]api.Bin

func (b *bins) bin(outside float64) *api.Bin { return &b[min(max(int(10*(1-outside)), 0), len(b)-1)] }

// add adds a decision with a prediction.
func (b *bins) add(o *offer.Closed) {
	to := b.bin(o.Outside)
	to.Rounds++
	if o.Choice > 0 {
		to.Purchases++
	}
	to.Predicted += 1 - o.Outside
}

// merge adds other bins.
func (b *bins) merge(other *bins) {
	for i, from := range other {
		b[i].Rounds, b[i].Purchases = b[i].Rounds+from.Rounds, b[i].Purchases+from.Purchases
		b[i].Predicted += from.Predicted
	}
}

func (b *bins) fields(f *fields.Fields) {
	for i := range b {
		f.Uvarint(&b[i].Rounds, &b[i].Purchases)
		f.Float(&b[i].Predicted)
	}
}

func (c *Counts) fields(f *fields.Fields) {
	f.Uvarint(&c.SinceUnlearned, &c.SinceEvicted, &c.Unlearned, &c.Evicted, &c.Withdrawn, &c.Late, &c.Corrected)
	f.Uvarint(&c.Empty, &c.Offered, &c.Chosen, &c.Expired, &c.Stale, &c.Chance)
	comparison(f, &c.Shadow)
	f.Float(&c.EmptyShare, &c.EvictedShare, &c.Calibration.Revenue, &c.Calibration.Predicted)
	offer.GroupFields(f, c.Arms[:])
	(*bins)(&c.Calibration.Bins).fields(f)
}
