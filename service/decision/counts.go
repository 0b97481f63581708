package decision

import (
	"vitrine/service/api"
	"vitrine/service/offer"
)

// counts are the counters that are part of the state.
type counts struct {
	Offered, Chosen, Expired, Stale uint64
	Withdrawn, Evicted, Unlearned   uint64
	Chance                          uint64
	Arms                            [3]api.Group // offer.ByPolicy, offer.ByChance, offer.ByBaseline
	Calibration                     api.Calibration
	Shadow                          api.Comparison
}

func (c *counts) offered(o *offer.Offer) {
	c.Offered++
	if o.Mode == offer.ByChance {
		c.Chance++
	}
	compare(&c.Shadow, o)
}

// compare adds a decision that showed the caller's set to a comparison with the policy's own one.
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

func (c *counts) abandoned(to status) {
	if to == evicted {
		c.Evicted++
	} else {
		c.Withdrawn++
	}
}

// closed counts a decision with an outcome. The rest is counted only with its offer, unless that is nil.
func (c *counts) closed(isChosen bool, o *offer.Closed) {
	if isChosen {
		c.Chosen++
	} else {
		c.Expired++
	}
	if o == nil {
		return
	}
	if o.Mode != offer.ByImport {
		c.Arms[o.Mode-offer.ByPolicy].Add(o.Group())
	}
	if !o.Predicted {
		return
	}
	c.Calibration.Revenue += o.Earned()
	c.Calibration.Predicted += o.Expected
	bin := &c.Calibration.Bins[min(int(10*(1-o.Outside)), 9)]
	bin.Rounds++
	if o.Choice > 0 {
		bin.Purchases++
	}
	bin.Predicted += 1 - o.Outside
}
