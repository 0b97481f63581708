package earnings

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/portable"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// sales notices within a few hundred decisions that a placement sells much less than it did, or nothing.
//
// Order. Sales are reported before other decisions expire, so the decisions that have closed sell too much. sales therefore
// judges decisions in the order in which they were made: a lot of them counts once each decision has closed, or once the last
// of them is older than wait, within which nine tenths of all sales are reported. Later sales do not count, neither in the
// past nor now.
//
// Amounts. A sale counts 1 in amount 0. In amount 1 it counts its revenue over that of an average sale of the apprenticeship,
// 1 at most: that amount also falls when only cheap items sell.
//
// Tests. Each stretch of decisions compares its amounts x_1, …, x_n in [0, 1] with a rate r that was known before its first
// decision. While E[x_t | past] >= b for a boundary b = share · r, the process
//
//	E_n = θ^(Σ x) ((1 − θb)/(1 − b))^(n − Σ x),   0 <= θ < 1
//
// is a nonnegative supermartingale that begins at 1: a^x c^(1−x) <= x a + (1 − x) c, whose mean at E x = b is 1. So is a mean
// of such processes over several θ. By Ville's inequality E_n ever reaches 1/α with a probability of at most α (Ville 1939;
// Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting, JRSS B 86(1), Section 4).
//
//   - no-sale: a stretch begins after each sale and ends with the next one. θ = 0, so log E_n = −n log(1 − b).
//   - sales: stretches of 50 to 5,000 decisions, two of each length, the second of which begins in the middle of the first.
//     θ is 1/4, 1/2 and 3/4.
//
// Each stretch is tested against two rates, which are frozen when it begins: what the policy of the stretch before it
// predicted, because a learner's predictions fall along with the sales, and the lower confidence bound of what the placement
// itself has sold on the last whole day. Only decisions with a prediction are compared with predictions.
//
// Error. Stretch j of a length has the share 2^−e/((e+1)(e+2)) of its error, e = ⌊log₂ j⌋, which sums to 1 over all j. The
// confidence bounds of day j have 1/(j(j+1)) of theirs.
type sales struct {
	watched uint64                // decisions since the guard began
	delays  [delayOctaves]uint64  // sales: element i counts those reported within 2^i seconds, but not within half of that
	revenue float64               // of the sales before wait was known
	worth   float64               // revenue of an average one of them
	wait    int64                 // nanoseconds; 0 while it is not known
	lots    []*lot                // that are not judged yet, the oldest first
	judged  uint64                // decisions
	day     uint64                // number of the present one, from 1 on
	began   int64                 // time of the day
	today   [amounts]confseq.Mean // sold
	before  [amounts]confseq.Mean // on the day before
	frozen  float64               // sales a decision that the policy predicted in the last short stretch
	run     stretch               // since the last sale
	runs    uint64                // how many there were
	octaves [len(lengths)]octave

	level  float64 // rate at which sales are back after the alarm in force
	lasted uint64  // decisions judged since that alarm
	rise   float64 // log evidence that sales are back
	back   uint64  // first entry of that evidence
}

// The amounts of a decision.
const (
	taken   = iota // 1 if something was sold
	worthOf        // the revenue in average sales, 1 at most
	amounts
)

// The rates with which a stretch is compared.
const (
	predicted = iota
	ofItself
	rates
)

// lot are decisions made one after the other.
type lot struct {
	entry       uint64 // of the first
	n, open     uint64
	begun, last int64 // time of the first and of the last
	sum         [amounts]float64
	predicted   uint64           // decisions that have a prediction
	hits        [amounts]float64 // what these sold
	foreseen    [amounts]float64 // and what was predicted
}

// stretch are decisions judged one after the other.
type stretch struct {
	entry     uint64 // of the first
	n         uint64
	sum       float64
	predicted uint64  // decisions that have a prediction
	hit       float64 // what these sold
	foreseen  [amounts]float64
	rates     [rates]float64 // frozen when it began; 0 if not known
}

// octave are the stretches of one length.
type octave struct {
	begun uint64 // how many
	pair  [2]stretch
}

var (
	lengths = [...]uint64{50, 100, 200, 400, 800, 1600, 3200, 5000}
	shares  = [...]float64{1. / 4, 1. / 2, 3. / 4} // θ
)

const (
	salesError   = guardError / 5
	ratesError   = salesError / 4     // of the confidence bounds of both amounts
	noSaleError  = salesError * 3 / 8 // of both rates
	fallError    = salesError * 3 / 8 // of both rates and all lengths
	noSaleShare  = 3. / 4             // of a rate, which sound sales reach
	fallShare    = 1. / 2
	delayOctaves = 26 // the last has the longest attribution window
	minSales     = 16 // from which wait is known
	lotSize      = 16 // decisions, while there are few lots
	fewLots      = 128
	lotShare     = 16  // of wait
	backError    = .01 // of taking sales for back that are not, each time that they might be
)

// Names of the checks.
const (
	noSale = "no-sale"
	fall   = "sales"
)

// enter adds an open decision. own says whether the placement's learner predicted it.
func (s *sales) enter(entry uint64, now int64, o *offer.Offer, own bool) {
	if !counts(o) {
		return
	}
	s.watched++
	if s.wait == 0 {
		return
	}
	var l *lot
	if n := len(s.lots); n > 0 && s.accepts(s.lots[n-1], now) {
		l = s.lots[n-1]
	} else {
		l = &lot{entry: entry, begun: now}
		s.lots = append(s.lots, l)
	}
	l.n++
	l.open++
	l.last = max(l.last, now)
	if own && o.Probability != nil {
		l.predicted++
		for k, p := range o.Probability {
			l.foreseen[taken] += p
			l.foreseen[worthOf] += float64(p * s.amount(offer.Revenue(o.Revenue, int(o.Shown[k]))))
		}
	}
}

// counts reports whether a decision is watched: other programs' are over, and deferred ones may never be shown.
func counts(o *offer.Offer) bool { return o.Mode != offer.ByImport && !o.Deferred }

// accepts reports whether a decision made now belongs to the last lot.
func (s *sales) accepts(l *lot, now int64) bool {
	return now-l.begun < s.wait/lotShare && (l.n < lotSize || len(s.lots) >= fewLots)
}

// amount returns the revenue of a sale in average ones.
func (s *sales) amount(revenue float64) float64 {
	if s.worth == 0 {
		return 1
	}
	return min(revenue/s.worth, 1)
}

// move moves the times of all decisions with the clock: nobody could report a sale during an outage.
func (s *sales) move(by int64) {
	s.began += by
	for _, l := range s.lots {
		l.begun += by
		l.last += by
	}
}

// leave adds the outcome of a decision of an age: the part of its attribution window that is over.
func (s *sales) leave(c *offer.Closed, age int64, window time.Duration) {
	if !counts(c.Offer) {
		return
	}
	isSale := c.Choice > 0
	if isSale {
		s.learnDelay(age, c.Earned(), window)
	}
	at := sort.Search(len(s.lots), func(i int) bool { return s.lots[i].entry > c.Entry }) - 1
	if at < 0 || age > s.wait+s.wait/lotShare {
		return
	}
	l := s.lots[at]
	if l.open = max(l.open, 1) - 1; isSale {
		amount := s.amount(c.Earned())
		l.sum[taken]++
		l.sum[worthOf] += amount
		if c.Predicted {
			l.hits[taken]++
			l.hits[worthOf] += amount
		}
	}
}

// learnDelay counts a sale by its delay, and sets wait: from the apprenticeship on, and each time that sales have doubled. It
// is twice to four times as long as nine tenths of the delays, and only grows.
func (s *sales) learnDelay(delay int64, revenue float64, window time.Duration) {
	seconds := uint64((max(delay, 0) + int64(time.Second) - 1) / int64(time.Second))
	s.delays[min(bits.Len64(max(seconds, 1)-1), delayOctaves-1)]++
	if s.wait == 0 {
		s.revenue += revenue
	}
	n := uint64(0)
	for _, k := range s.delays {
		n += k
	}
	if s.watched <= apprenticeship || n < minSales || s.wait > 0 && n&(n-1) != 0 {
		return
	}
	if s.wait == 0 {
		s.worth = s.revenue / float64(n)
	}
	within := uint64(0)
	for i, k := range s.delays {
		if within += k; 10*within >= 9*n {
			s.wait = max(s.wait, min(int64(2*time.Second)<<i, int64(window)))
			return
		}
	}
}

// change is what judging has found.
type change uint8

const (
	unchanged change = iota
	rang             // a check failed
	ended            // the alarm of such a check is over
)

// judge takes the lots that are due, until something changes. alarm is the alarm of a check of sales, nil if there is none.
func (s *sales) judge(now int64, alarm *api.Alarm) (change, *api.Alarm) {
	for len(s.lots) > 0 {
		l := s.lots[0]
		if len(s.lots) == 1 && s.accepts(l, now) || l.open > 0 && now-l.last <= s.wait {
			return unchanged, nil
		}
		s.lots[0] = nil
		s.lots = s.lots[1:]
		s.judged += l.n
		if alarm != nil {
			s.lengthen(l)
			s.lasted += l.n
			isNormal := alarm.Check == fall && s.lasted >= minPeriodSize && now-alarm.Time.UnixNano() >= int64(minPeriod)
			if s.rises(l, alarm.Check) || isNormal {
				s.resume(isNormal)
				return ended, nil
			}
			continue
		}
		s.remember(l)
		check := s.noSale(l)
		if check == nil {
			check = s.falls(l)
		}
		if check != nil {
			s.rise, s.back, s.lasted = 0, 0, 0
			return rang, check
		}
	}
	return unchanged, nil
}

// remember adds a lot to what the placement has sold.
func (s *sales) remember(l *lot) {
	if s.day == 0 || s.today[taken].N >= minPeriodSize && l.begun-s.began >= int64(minPeriod) {
		s.day++
		s.began, s.before, s.today = l.begun, s.today, [amounts]confseq.Mean{}
	}
	for i := range s.today {
		b := s.today[i].Begin()
		b.N, b.Sum, b.First, b.Bound = l.n, l.sum[i], 1, 1
		// Σ (x − centre)² of numbers in [0, 1], whose squares are at most as large
		b.Squares = b.Sum - float64(2*b.Centre*b.Sum) + float64(float64(b.N)*b.Centre*b.Centre)
		s.today[i].Add(&b)
	}
}

// sold returns the lower confidence bound of an amount on the last whole day, of the present one if it is the first.
func (s *sales) sold(amount int) float64 {
	m, day := &s.before[amount], float64(s.day)-1
	if m.N == 0 {
		m, day = &s.today[amount], float64(s.day)
	}
	return max(m.Low(ratesError/amounts/(day*(day+1))), 0)
}

// lengthen adds a lot to the stretch without a sale, or begins another one. It reports whether nothing was sold.
func (s *sales) lengthen(l *lot) bool {
	if l.sum[taken] > 0 {
		s.run = stretch{rates: [rates]float64{s.frozen, s.sold(taken)}}
		s.runs++
		return false
	}
	if s.run.n == 0 {
		s.run.entry = l.entry
	}
	s.run.n += l.n
	s.run.predicted += l.predicted
	return true
}

// noSale tests the stretch since the last sale.
func (s *sales) noSale(l *lot) *api.Alarm {
	if !s.lengthen(l) {
		return nil
	}
	for i, rate := range s.run.rates {
		if n, _ := s.run.of(i); rate > 0 && n >= float64(silence(rate, s.runs)) {
			s.level = s.run.level(rate)
			return &api.Alarm{Check: noSale, Detail: fmt.Sprintf("no sale in the last %d decisions, where %.3g were expected", s.run.n, s.level*float64(s.run.n)), Since: s.run.entry}
		}
	}
	return nil
}

// silence returns how many decisions in a row without a sale are an alarm.
func silence(rate float64, runs uint64) uint64 {
	return uint64(math.Ceil(nats(noSaleError/2*spent(runs)) / -portable.Log1p(-noSaleShare*min(rate, 1))))
}

// nats returns log(1/alpha).
func nats(alpha float64) float64 { return -portable.Log(alpha) }

// spent returns the share of the error of test j, from 1 on. All of them sum to 1.
func spent(j uint64) float64 {
	e := bits.Len64(j) - 1
	return math.Ldexp(1/float64((e+1)*(e+2)), -e)
}

// falls tests the stretches of all lengths.
func (s *sales) falls(l *lot) (found *api.Alarm) {
	for k := range s.octaves {
		o := &s.octaves[k]
		for half := range o.pair {
			t := &o.pair[half]
			if t.n == 0 && half == 1 && o.pair[0].n < lengths[k]/2 {
				continue // it begins in the middle of the first one
			}
			if t.n == 0 {
				t.entry = l.entry
				o.begun++
			}
			t.n += l.n
			t.sum += l.sum[worthOf]
			t.predicted += l.predicted
			t.hit += l.hits[worthOf]
			for i := range t.foreseen {
				t.foreseen[i] += l.foreseen[i]
			}
			for i, rate := range t.rates {
				n, sum := t.of(i)
				if found == nil && rate > 0 && evidence(n, min(sum, n), fallShare*min(rate, 1)) >= nats(fallError/2/float64(len(lengths))*spent(o.begun)) {
					s.level = t.level(rate)
					found = &api.Alarm{Check: fall, Detail: fmt.Sprintf("%.0f decisions sold as much as %.3g average sales, less than half of the %.3g that were expected", n, sum, rate*n), Since: t.entry}
				}
			}
			if t.n >= lengths[k] {
				s.renew(t, k)
			}
		}
	}
	return found
}

// renew begins the stretch after t, and freezes what it is compared with.
func (s *sales) renew(t *stretch, k int) {
	next := stretch{rates: [rates]float64{ofItself: s.sold(worthOf)}}
	if t.predicted > 0 {
		next.rates[predicted] = t.foreseen[worthOf] / float64(t.predicted)
		if k == 0 {
			s.frozen = t.foreseen[taken] / float64(t.predicted)
		}
	}
	*t = next
}

// of returns the decisions that are compared with a rate, and what they sold.
func (t *stretch) of(rate int) (n, sum float64) {
	if rate == predicted {
		return float64(t.predicted), t.hit
	}
	return float64(t.n), t.sum
}

// level returns the rate at which sales are back after an alarm against a rate.
func (t *stretch) level(rate float64) float64 {
	if own := t.rates[ofItself]; own > 0 {
		return own
	}
	return rate
}

// evidence returns log E_n of n decisions that sold sum, against a boundary.
func evidence(n, sum, boundary float64) float64 {
	e := math.Inf(-1)
	if sum >= n*boundary {
		return e // at most 0
	}
	for _, share := range shares {
		one := float64(sum*portable.Log(share)) + float64((n-sum)*(portable.Log1p(-share*boundary)-portable.Log1p(-boundary)))
		e = max(e, one) + portable.Log1p(portable.Exp(-math.Abs(e-one)))
	}
	return e - portable.Log(float64(len(shares)))
}

// rises adds a lot to the evidence that sales are back, a cumulative sum of log likelihood ratios (Page 1954): of half the
// rate to a sixteenth after an alarm that nothing was sold, of the rate to half of it after another one.
func (s *sales) rises(l *lot, check string) bool {
	high, low, sum := min(s.level, 1), fallShare*min(s.level, 1), l.sum[worthOf]
	if check == noSale {
		high, low, sum = high/2, high/16, l.sum[taken]
	}
	high = min(high, 0.999)
	if s.rise == 0 {
		s.back = l.entry
	}
	s.rise += float64(sum*portable.Log(high/low)) + float64((float64(l.n)-sum)*(portable.Log1p(-high)-portable.Log1p(-low)))
	s.rise = max(s.rise, 0)
	return s.rise >= nats(backError)
}

// resume begins all stretches again after an alarm, with the rates of before it. If isNormal sales have been low for a day and
// 5,000 decisions: that is what the placement sells from now on.
func (s *sales) resume(isNormal bool) {
	s.rise, s.level = 0, 0
	s.run.n, s.run.predicted = 0, 0
	s.runs++
	if isNormal {
		s.run.rates, s.frozen = [rates]float64{}, 0
		s.day++
		s.before, s.today = [amounts]confseq.Mean{}, [amounts]confseq.Mean{}
	}
	for k := range s.octaves {
		for half := range s.octaves[k].pair {
			t := &s.octaves[k].pair[half]
			if *t = (stretch{rates: t.rates}); isNormal {
				t.rates = [rates]float64{}
			}
		}
	}
}
