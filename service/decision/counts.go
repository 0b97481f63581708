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
	compare(&c.Shadow, o)
}

// compare adds a decision that showed the caller's set to a comparison with the policy's own one.
func compare(c *api.Comparison, o *offer) {
	if !o.shadowed {
		return
	}
	c.Rounds++
	if o.agrees {
		c.Agreements++
	}
	if o.probability != nil {
		c.Estimated++
		c.Policy += o.shadow
		c.Baseline += o.estimates.revenue
	}
}

func (c *counts) abandoned(to status) {
	if to == evicted {
		c.Evicted++
	} else {
		c.Withdrawn++
	}
}

// closed counts a decision with an outcome. The rest is counted only with its offer; own says that it has the estimates of
// the placement's learner.
func (c *counts) closed(r *record, o *offer, own bool) {
	if r.status == chosen {
		c.Chosen++
	} else {
		c.Expired++
	}
	if o == nil {
		return
	}
	earned := o.earned(int(r.choice))
	if o.Mode != ByImport {
		count(&c.Arms[o.Mode-ByPolicy], r, earned)
	}
	if o.probability == nil || !own {
		return
	}
	c.Calibration.Revenue += earned
	c.Calibration.Predicted += o.estimates.revenue
	bin := &c.Calibration.Bins[min(int(10*(1-o.outside)), 9)]
	bin.Rounds++
	if r.choice > 0 {
		bin.Purchases++
	}
	bin.Predicted += 1 - o.outside
}
