package earnings

import (
	"vitrine/internal/confseq"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// Corrected applies a late outcome or a correction to the sums in which the decision was counted, at its time. The
// guard, the calibration and the recent decisions do not change, because they compare earnings within the attribution
// window with predictions and with earlier earnings.
func (t *Earnings) Corrected(c *eventlog.Corrected, maxItems int) {
	if c.Correction == "" {
		t.Counts.Late++
	} else {
		t.Counts.Corrected++
	}
	t.Items.corrected(c, maxItems)
	t.Series.corrected(c, &t.Guard.Watch)
	if c.Mode != offer.ByImport {
		correct(&t.Counts.Arms[c.Mode-offer.ByPolicy], c)
	}
}

// correct updates the totals of a corrected decision's group.
func correct(g *offer.Totals, c *eventlog.Corrected) {
	if c.Counts {
		g.Rounds++
	}
	g.Purchases = count(g.Purchases, c.Purchases())
	g.Revenue.Add(c.Value)
	g.Resquare(c.Before, c.Before+c.Value)
}

// count adds 1, 0 or -1 to a number, but not below 0.
func count(n uint64, by int) uint64 { return uint64(max(0, int64(n)+int64(by))) }

// corrected updates the counts for the items and their places. If the decision only counts from now on, it also counts
// its items as shown.
func (t *Items) corrected(c *eventlog.Corrected, maxItems int) {
	if c.Counts {
		t.show(c.Shown, c.Entry, c.Takes(), maxItems)
		return
	}
	for _, take := range c.Takes() {
		k := int(take.Place) - 1
		item := t.sold[c.Shown[k]]
		if item == nil { // the item was dropped
			item = &t.Others
		}
		of := []*Sold{item}
		if k < len(t.Places) {
			of = append(of, &t.Places[k])
		}
		for _, s := range of {
			s.Taken = count(s.Taken, c.Taken())
			s.Revenue.Add(take.Value)
		}
	}
}

// corrected updates the sums at the decision's time. Its lead becomes the lead for its present earnings.
func (s *Series) corrected(c *eventlog.Corrected, w *Watch) {
	b := s.at(c.Made)
	if b == nil || c.Mode == offer.ByImport {
		return
	}
	if c.Counts {
		b.abandoned = count(b.abandoned, -1)
	}
	correct(&b.arms[c.Mode-offer.ByPolicy], c)
	after := c.Before + c.Value
	peak := Peak[led]{Entry: c.Entry, Value: after}
	if way := wayOf(c.Mode); way != Neither && c.Entry > s.since && w.drawsSets() {
		peak.Of = led{w.contrast().factor(), s.correctLead(c, way, after, w)}
	}
	s.peak(b, c.Made, peak, w)
	if c.Mode == offer.ByPolicy {
		if c.Counts {
			s.policy.rounds++
		}
		s.policy.revenue.Add(c.Value)
	}
}

// correctLead updates the lead of a decision that has now earned x, in its cohort or in the bucket that absorbed the
// cohort. It returns the centre of the lead, which only peaks and cohorts know: otherwise it is the present one, and V_n
// must not shrink, because the lead was added around another centre.
func (s *Series) correctLead(c *eventlog.Corrected, way int, x float64, w *Watch) (centre float64) {
	number := c.Made / w.Cohort()
	b := s.leading(c.Made, w)
	m := &b.lead
	at, isOpen := s.leads.find(number)
	peak := b.peaks.find(c.Entry)
	switch {
	case isOpen:
		l := &s.leads[at].Sums
		centre, m = l.centre, &l.block.Sums
	case peak >= 0:
		centre = b.peaks[peak].Of.centre
	default:
		centre = s.centre()
	}
	if c.Counts {
		var one confseq.Block
		w.contrast().Add(&one, way, x, centre, 0)
		m.Add(&one)
		return centre
	}
	squares := m.Squares
	w.contrast().Replace(m, way, c.Before, x, centre)
	if !isOpen && peak < 0 && m.Squares.Value() < squares.Value() {
		m.Squares = squares
	}
	return centre
}

// Recount is a correction of a decision in a cohort that does not count yet. There the decision counts at least 0, and at
// most the bound known before its outcome, so that the confidence sequences keep their bounds.
type Recount struct {
	Before, After float64
	Rest          float64 // part of the correction that does not count in the cohort
}

// RecountOf returns the change of a decision's earnings.
func RecountOf(c *eventlog.Corrected) Recount {
	after := c.Before + c.Value
	n := Recount{Before: min(max(c.Before, 0), c.Bound), After: min(max(after, 0), c.Bound)}
	if n.Before != c.Before || n.After != after {
		n.Rest = c.Value - (n.After - n.Before)
	}
	return n
}

// In updates the totals of the decision's group.
func (n Recount) In(g *offer.Totals) {
	g.Revenue.Add(n.After)
	g.Revenue.Add(-n.Before)
	g.Resquare(n.Before, n.After)
}
