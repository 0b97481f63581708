package decision

import "vitrine/service/api"

// counts are the counters that are part of the state.
type counts struct {
	Offered, Chosen, Expired, Stale uint64
	Withdrawn, Evicted, Unlearned   uint64
	Chance                          uint64
	Arms                            [3]api.Group // ByPolicy, ByChance, ByBaseline
	Calibration                     api.Calibration
	Shadow                          api.Comparison
}

func (c *counts) offered(o *offer) {
	c.Offered++
	if o.Mode == ByChance {
		c.Chance++
	}
	if !o.shadowed {
		return
	}
	c.Shadow.Rounds++
	if o.agrees {
		c.Shadow.Agreements++
	}
	if o.probability != nil {
		c.Shadow.Estimated++
		c.Shadow.Policy += o.shadow
		c.Shadow.Baseline += o.estimates.revenue
	}
}

func (c *counts) abandoned(to status) {
	if to == evicted {
		c.Evicted++
	} else {
		c.Withdrawn++
	}
}

// closed counts a decision with an outcome. The rest is counted only with its offer.
func (c *counts) closed(r *record, o *offer) {
	if r.status == chosen {
		c.Chosen++
	} else {
		c.Expired++
	}
	if o == nil {
		return
	}
	earned := o.earned(int(r.choice))
	purchases := uint64(0)
	if r.choice > 0 {
		purchases = 1
	}
	if o.Mode != ByImport {
		arm := &c.Arms[o.Mode-ByPolicy]
		arm.Rounds++
		arm.Purchases += purchases
		arm.Revenue += earned
		arm.Squares += float64(earned * earned)
	}
	if o.probability == nil {
		return
	}
	c.Calibration.Revenue += earned
	c.Calibration.Predicted += o.estimates.revenue
	bin := &c.Calibration.Bins[min(int(10*(1-o.outside)), 9)]
	bin.Rounds++
	bin.Purchases += purchases
	bin.Predicted += 1 - o.outside
}
