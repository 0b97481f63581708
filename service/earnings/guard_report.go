package earnings

import (
	"math"
	"slices"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/fields"
	"vitrine/service/api"
)

// Report returns the guard for the statistics. fallback names the policy that decides during an alarm, or is "" for the
// policy itself.
func (g *Guard) Report(fallback string) *api.Guard {
	r := &api.Guard{
		Period: g.period, Decisions: g.earned.N, WithoutSale: g.sales.run.n,
		Overdue: time.Duration(g.sales.wait).Seconds(),
		Checks:  g.sales.checks(),
	}
	for _, c := range g.checks() {
		r.Checks = append(r.Checks, c.GuardCheck)
	}
	for _, name := range g.policyChecks() {
		if slices.ContainsFunc(r.Checks, func(c api.GuardCheck) bool { return c.Name == name }) {
			continue
		}
		c := api.GuardCheck{Name: name, Decisions: g.earned.N}
		switch {
		case g.period == 0:
			c.Needs = apprenticeship + 1 - min(g.earned.N, apprenticeship)
		case name == predictions:
			c.Needs = apprenticeship + 1 - min(g.sales.taught, apprenticeship)
		case name == "first-week" && !g.isOver:
			c.From = new(time.Unix(0, g.began+int64(week)).UTC())
		default:
			c.Needs = 1
		}
		r.Checks = append(r.Checks, c)
	}
	r.FarOff = g.farOff()
	if a := g.Alarm(); a != nil {
		r.Alarm = new(*a)
		if a.Check == noSale && g.sales.run.n > 0 && g.sales.run.entry == a.Since { // still without a sale
			r.Alarm.Detail, r.Alarm.Chance = g.sales.silence()
		}
		if r.Alarm.Fallback = fallback; fallback != api.FallbackVersion {
			r.Alarm.Version = 0
		}
	}
	return r
}

// minBin is the number of decisions from which on predictions may be far off: fewer are no reason to act.
const minBin = 100

// farOff returns the bin with the most decisions among those with certainly wrong predictions, or nil. A prediction is
// wrong if it is off by more than a fifth of the shoppers that buy or of those that do not, whichever are fewer. The
// probability that farOff ever errs in a period is at most guardError/(j(j+1)).
func (g *Guard) farOff() (worst *api.Calibrated) {
	if g.period == 0 {
		return nil
	}
	for i, b := range g.bins {
		n, k := float64(b.Rounds), float64(b.Purchases)
		if b.Rounds < minBin || worst != nil && b.Rounds <= worst.Rounds {
			continue
		}
		p := min(b.Predicted/n, 1)
		low, high := confseq.Share(k, n, guardError/float64(2*len(g.bins))/float64(g.period*(g.period+1))/(n*(n+1)))
		if off := min(p, 1-p) / 5; high < p-off || low > p+off {
			worst = new(calibrated(i, b))
		}
	}
	return worst
}

// policyChecks lists the checks of the policy's earnings that will or may take place.
func (g *Guard) policyChecks() (names []string) {
	if g.Watch.Mode == api.Shadow {
		return nil // the policy's sets are not shown
	}
	if g.Watch.drawsSets() {
		names = append(names, "chance")
	}
	if g.baseline.N > 0 {
		names = append(names, "baseline")
	}
	names = append(names, "first-week")
	if g.period == 0 || g.sales.taught > 0 {
		names = append(names, predictions)
	}
	return names
}

// checks returns the tests of sales.
func (s *sales) checks() []api.GuardCheck {
	silent := api.GuardCheck{Name: noSale, Decisions: s.judged}
	for _, rate := range s.run.rates {
		if rate > 0 {
			if n := MaxSilence(rate, max(s.runs, 1)); silent.Silence == 0 || n < silent.Silence {
				silent.Silence = n
			}
		}
	}
	fallen := api.GuardCheck{Name: fall, Decisions: s.judged}
	for k := range s.octaves {
		o := &s.octaves[k]
		for _, rate := range o.pair[0].rates {
			if sees, ok := smallestFall(k, o.begun, rate); ok && (fallen.Sees == nil || sees < *fallen.Sees) {
				fallen.Sees = &sees
			}
		}
	}
	if silent.Silence == 0 {
		silent.Needs = s.needs(0)
	}
	if fallen.Sees == nil {
		fallen.Needs = s.needs(lengths[0])
	}
	return []api.GuardCheck{silent, fallen}
}

// predictedOctave is long enough to know how many sales the policy predicts.
const predictedOctave = 3

// needs returns the minimum number of further decisions before a rate is known, followed by another length of them. If
// the placement's own sales are too few, predictions must count first.
func (s *sales) needs(length uint64) uint64 {
	n := apprenticeship - min(s.watched, apprenticeship)
	if s.wait > 0 {
		t := s.octaves[predictedOctave].longer()
		if missing := minClaimed - s.claimed[taken]; missing > 0 && t.foreseen[taken] > 0 && s.sold(taken) == 0 {
			n = max(n, uint64(min(missing*float64(t.n)/t.foreseen[taken], 1<<40)))
		}
		return n + length + max(lengths[0], s.octaves[0].pair[0].n+1) - s.octaves[0].pair[0].n
	}
	sales := s.countDelays()
	n++
	if sales > 0 && sales < minSales {
		n = max(n, (minSales-sales)*s.watched/sales)
	}
	return n + lengths[0] + length
}

// smallestFall returns the smallest fall from a rate, as a share of it, that a complete stretch of a length notices. ok
// is false if the stretch would not notice a complete loss of sales.
func smallestFall(k int, begun uint64, rate float64) (share float64, ok bool) {
	if rate <= 0 {
		return 0, false
	}
	n, level := float64(lengths[k]), min(rate, 1)
	needed := nats(fallError / 2 / float64(len(lengths)) * spent(max(begun, 1)))
	notices := func(fall float64) bool { return evidence(n, n*level*(1-fall), fallShare*level) >= needed }
	if !notices(1) {
		return 0, false
	}
	low, high := 0.0, 1.0
	for high-low > 0.001 {
		if middle := (low + high) / 2; notices(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return math.Ceil(high*1000) / 1000, true
}

const maxAlarms = 50

// Alarms are the last alarms of a placement's guard, the oldest first.
type Alarms []pastAlarm

type pastAlarm struct {
	check, detail string
	chance        float64
	began, ended  int64 // the second one once it is over
	entry         uint64
	over          bool
}

// Follow notes the alarm that is in force from a time on; nil means that no alarm is.
func (a *Alarms) Follow(now *api.Alarm, time int64) {
	if n := len(*a); n > 0 && !(*a)[n-1].over {
		last := &(*a)[n-1]
		if now != nil && now.Entry == last.entry && now.Check == last.check {
			return
		}
		last.ended, last.over = time, true
	}
	if now == nil {
		return
	}
	*a = append(*a, pastAlarm{check: now.Check, detail: now.Detail, chance: now.Chance, began: now.Time.UnixNano(),
		entry: now.Entry})
	*a = (*a)[max(0, len(*a)-maxAlarms):]
}

// Report returns the alarms, the latest first.
func (a Alarms) Report() []api.PastAlarm {
	list := []api.PastAlarm{}
	for _, a := range slices.Backward(a) {
		past := api.PastAlarm{Check: a.check, Detail: a.detail, Chance: a.chance, Began: time.Unix(0, a.began).UTC()}
		if a.over {
			past.Ended = new(time.Unix(0, a.ended).UTC())
		}
		list = append(list, past)
	}
	return list
}

// Fields passes over the alarms in a snapshot.
func (a *Alarms) Fields(f *fields.Fields) {
	fields.List(f, (*[]pastAlarm)(a), func(a *pastAlarm, f *fields.Fields) {
		f.String(&a.check, &a.detail)
		f.Float(&a.chance)
		f.Int64(&a.began, &a.ended)
		f.Uvarint(&a.entry)
		f.Flag(&a.over)
	})
	f.Check(len(*a) <= maxAlarms, "a history of %d alarms", len(*a))
}
