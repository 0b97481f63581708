package earnings

import (
	"fmt"
	"math"
	"math/bits"
	"sort"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/portable"
	"vitrine/internal/precise"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// sales notices within a few hundred decisions that a placement sells much less than before, or nothing.
//
// Order. Sales are reported before other decisions expire, so the decisions closed so far contain too many sales. sales
// therefore judges decisions in the order in which they were made: a lot of decisions counts once each has closed, or
// once the last of them is older than wait, within which most sales are reported: nine tenths at first, and always four
// fifths of the latest ones, because nine tenths of few sales are too often too slow by chance.
//
// Late sales. A sale of a decision that was judged already, with no other sale judged since, shows that reports come
// later than before. wait grows beyond its delay, but at most doubles with each such sale, because a single one may be
// late by chance. All stretches restart, because their decisions were judged too early. In shops where other sales come
// in time, a late one changes nothing. wait shrinks by a 32nd a day, so that one slow hour does not delay alarms for
// good, and rhythms of a week are not forgotten.
//
// Amounts. A sale counts 1 in amount 0. In amount 1 it counts its revenue divided by an average sale during the
// apprenticeship, at most 1: that amount also falls when only cheap items sell. A page with several units taken counts
// as an average one of them.
//
// Tests. Each stretch of decisions compares its amounts x_1, …, x_n in [0, 1] with a rate r that was known before its
// first decision. While E[x_t | past] >= b for a boundary b = share · r, the process
//
//	E_n = θ^(Σ x) ((1 − θb)/(1 − b))^(n − Σ x),   0 <= θ < 1
//
// is a nonnegative supermartingale that begins at 1: a^x c^(1−x) <= x a + (1 − x) c, and for E x = b the mean of the
// right side is 1. A mean of such processes over several θ is one too. By Ville's inequality E_n ever reaches 1/α with
// a probability of at most α (Ville 1939; Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by
// betting, JRSS B 86(1), Section 4).
//
//   - no-sale: a stretch begins after each sale, the first one with the first known rate, and ends with the next sale.
//     θ = 0, so log E_n = −n log(1 − b).
//   - sales: stretches of 50 to 5,000 decisions, two of each length; the second begins in the middle of the first.
//     θ is 1/4, 1/2 and 3/4.
//
// Each stretch is tested against two rates, which are frozen when it begins. One is the policy's prediction in the
// stretch before it, because a learner's predictions fall along with the sales. It counts only once earlier predictions
// came true: in a shop that reports once a night, a learner may be wrong by a factor of ten for a day. The other is the
// lower confidence bound of the placement's own sales on the last whole day. Only decisions with a prediction are
// compared with predictions.
//
// Error. Stretch j of a length spends the share 2^−e/((e+1)(e+2)) of its error, e = ⌊log₂ j⌋, which sums to 1 over all
// j. The confidence bounds of day j spend 1/(j(j+1)) of theirs.
type sales struct {
	watched uint64                // decisions since the guard started; the apprenticeship's are not judged
	taught  uint64                // predicted decisions in complete cohorts, since the learner began
	delays  [delayOctaves]uint64  // latest sales by delay: element i counts those up to 2^i s, but above half of that
	revenue float64               // from sales before wait was known
	worth   float64               // revenue of an average sale among them
	wait    int64                 // nanoseconds; 0 until it is known
	faded   int64                 // when wait shrank last
	lots    []*lot                // not judged yet, oldest first
	judged  uint64                // number of decisions judged
	day     uint64                // number of the present day, from 1 on
	began   int64                 // start of the day
	today   [amounts]confseq.Mean // amounts sold today
	before  [amounts]confseq.Mean // amounts sold on the previous day
	claimed [amounts]float64      // amounts predicted for judged decisions
	kept    [amounts]float64      // amounts sold in those decisions
	frozen  float64               // the policy's predicted sales per decision in the last short stretch
	run     stretch               // decisions since the last sale
	runs    uint64                // number of such runs
	silent  uint64                // first entry judged since the last sale that came in time; 0 right after that sale
	octaves [len(lengths)]octave

	level  float64 // rate that ends the alarm in force
	lasted uint64  // decisions judged since that alarm
	rise   float64 // log evidence that sales are back
	back   uint64  // first entry of that evidence
	late   bool    // whether late sales are part of it
}

// A decision's amounts.
const (
	taken   = iota // 1 if an item was sold
	worthOf        // revenue in units of an average sale, at most 1
	amounts
)

// The rates that a stretch is compared with.
const (
	predicted = iota
	ofItself
	rates
)

// lot is a group of consecutive decisions.
type lot struct {
	compared    bool   // whether its predictions are compared
	entry       uint64 // log entry of the first decision
	n, open     uint64
	begun, last int64 // times of the first and last decision
	sum         [amounts]float64
	predicted   uint64           // number of decisions with a prediction
	hits        [amounts]float64 // amounts sold in those decisions
	foreseen    [amounts]float64 // amounts predicted
}

// stretch is a run of consecutively judged decisions.
type stretch struct {
	entry     uint64 // log entry of the first decision
	n         uint64
	sum       float64
	predicted uint64  // number of decisions with a prediction
	hit       float64 // amount sold in those decisions
	foreseen  [amounts]float64
	rates     [rates]float64 // frozen at the start; 0 if unknown
}

// octave holds the stretches of one length.
type octave struct {
	begun uint64 // number of stretches begun
	pair  [2]stretch
}

var (
	lengths = [...]uint64{50, 100, 200, 400, 800, 1600, 3200, 5000}
	shares  = [...]float64{1. / 4, 1. / 2, 3. / 4} // θ
)

const (
	salesError   = guardError / 5
	ratesError   = salesError / 4     // for the confidence bounds of both amounts
	noSaleError  = salesError * 3 / 8 // for both rates
	fallError    = salesError * 3 / 8 // for both rates and all lengths
	noSaleShare  = 3. / 4             // fraction of a rate that healthy sales reach
	fallShare    = 1. / 2
	delayOctaves = 26 // the last one covers the longest attribution window
	minSales     = 16 // needed before wait is known
	latestSales  = 128
	minClaimed   = 32   // predicted sales, before predictions count
	maxClaimed   = 1024 // predicted sales, beyond which the older ones weigh less
	fadeShare    = 32   // wait loses this fraction a day
	lotSize      = 16   // decisions, as long as there are few lots
	fewLots      = 128
	lotShare     = 16  // fraction of wait
	backError    = .01 // probability of mistaking low sales for recovered ones, per alarm
	backRatio    = 8   // of the rates that sales after a no-sale alarm are compared with
)

// Names of the checks.
const (
	noSale = "no-sale"
	fall   = "sales"
)

// again returns the knowledge of sales that outlasts a restart: their delays, the revenue of an average sale, and how far
// predictions came true.
func (s *sales) again(window time.Duration) sales {
	return sales{taught: s.taught, delays: s.delays, revenue: s.revenue, worth: s.worth, claimed: s.claimed,
		kept: s.kept, wait: min(s.wait, int64(window)), faded: s.faded}
}

// enter adds an open decision. own says whether the placement's learner predicted it.
func (s *sales) enter(entry uint64, now int64, o *offer.Offer, own bool) {
	if !counts(o) {
		return
	}
	if s.watched++; s.wait == 0 || s.watched <= apprenticeship {
		return
	}
	var l *lot
	if n := len(s.lots); n > 0 && s.accepts(s.lots[n-1], now) {
		l = s.lots[n-1]
	} else {
		l = &lot{compared: s.compares(), entry: entry, begun: now}
		s.lots = append(s.lots, l)
	}
	l.n++
	l.open++
	l.last = max(l.last, now)
	if l.compared && own && o.Probability != nil {
		l.predicted++
		for k, p := range o.Probability {
			l.foreseen[taken] += p
			l.foreseen[worthOf] += float64(p * s.amount(offer.Revenue(o.Revenue, int(o.Shown[k]))))
		}
	}
}

// counts reports whether a decision is watched. Other programs' decisions are over, and deferred ones may never be
// shown.
func counts(o *offer.Offer) bool { return o.Mode != offer.ByImport && !o.Deferred }

// compares reports whether the predictions for decisions made now are compared with their sales.
func (s *sales) compares() bool { return s.taught >= apprenticeship }

// accepts reports whether a decision made now belongs to the last lot.
func (s *sales) accepts(l *lot, now int64) bool {
	return now-l.begun < s.wait/lotShare && (l.n < lotSize || len(s.lots) >= fewLots)
}

// amount returns a sale's revenue in units of an average sale.
func (s *sales) amount(revenue float64) float64 {
	if s.worth == 0 {
		return 1
	}
	return min(revenue/s.worth, 1)
}

// move shifts the times of all decisions along with the clock: during an outage sales could not be reported.
func (s *sales) move(by int64) {
	s.began += by
	s.faded += by
	for _, l := range s.lots {
		l.begun += by
		l.last += by
	}
}

// leave adds a decision's outcome. age is the elapsed part of its attribution window. alarm is the current alarm about
// sales, or nil.
func (s *sales) leave(c *offer.Closed, age int64, window time.Duration, alarm *api.Alarm) {
	if !counts(c.Offer) {
		return
	}
	at := sort.Search(len(s.lots), func(i int) bool { return s.lots[i].entry > c.Entry }) - 1
	isSale := c.Choice > 0
	if isSale {
		silent := s.silent
		if alarm != nil && alarm.Check == noSale { // sales that came in time since then do not end its silence
			silent = alarm.Since
		}
		isLate := at < 0 && silent > 0 && c.Entry >= silent
		grew := s.learnDelay(age, isLate, c.PerUnit(), window)
		switch {
		case alarm == nil && (grew || isLate && s.run.n > 0):
			s.resume(false)
		case isLate && alarm != nil && alarm.Check == noSale:
			s.returns(c.Entry)
		}
	}
	if at < 0 {
		return
	}
	l := s.lots[at]
	if l.open = max(l.open, 1) - 1; isSale {
		amount := s.amount(c.PerUnit())
		l.sum[taken]++
		l.sum[worthOf] += amount
		if l.compared && c.Predicted {
			l.hits[taken]++
			l.hits[worthOf] += amount
		}
	}
}

// returns adds a late sale to the evidence that sales are back. Its lot counted as one without a sale.
func (s *sales) returns(entry uint64) {
	if s.rise == 0 || entry < s.back {
		s.back = entry
	}
	s.late = true
	s.rise += portable.Log(backRatio)
	s.run.n, s.run.predicted = 0, 0
}

// learnDelay counts a sale by its delay. It first sets wait after the apprenticeship, also after a later start. It
// reports whether wait has grown since.
func (s *sales) learnDelay(delay int64, isLate bool, revenue float64, window time.Duration) (grew bool) {
	seconds := uint64((max(delay, 0) + int64(time.Second) - 1) / int64(time.Second))
	s.delays[min(bits.Len64(max(seconds, 1)-1), delayOctaves-1)]++
	n := s.countDelays()
	if s.wait == 0 {
		s.revenue += revenue
	}
	if n == latestSales {
		for i := range s.delays {
			s.delays[i] /= 2
		}
		n = s.countDelays()
		s.revenue *= float64(n) / latestSales
	}
	before := s.wait
	switch {
	case before == 0 && (n < minSales || s.watched <= apprenticeship):
		return false
	case before == 0:
		s.worth, s.wait = s.revenue/float64(n), s.usual(9)
	case isLate:
		s.wait = max(s.wait, min(delay+delay/2, 2*s.wait))
	}
	s.wait = min(max(s.wait, s.usual(8)), int64(window))
	return before > 0 && s.wait > before
}

func (s *sales) countDelays() (n uint64) {
	for _, k := range s.delays {
		n += k
	}
	return n
}

// usual returns a time two to four times as long as some tenths of the latest delays.
func (s *sales) usual(tenths uint64) int64 {
	within, n := uint64(0), s.countDelays()
	for i, k := range s.delays {
		if within += k; n >= minSales && 10*within >= tenths*n {
			return int64(2*time.Second) << i
		}
	}
	return 0
}

// change is the result of judging.
type change uint8

const (
	unchanged change = iota
	rang             // a check failed
	ended            // the alarm raised by a check is over
)

// judge takes the lots that are due, until the alarm changes. alarm is the current alarm about sales, or nil.
func (s *sales) judge(now int64, alarm *api.Alarm) (change, *api.Alarm) {
	if alarm != nil && s.rise >= nats(backError) { // by late sales
		s.resume(false)
		return ended, nil
	}
	for len(s.lots) > 0 {
		l := s.lots[0]
		if len(s.lots) == 1 && s.accepts(l, now) || l.open > 0 && now-l.last <= s.wait {
			return unchanged, nil
		}
		s.lots[0] = nil
		s.lots = s.lots[1:]
		s.judged += l.n
		s.fade(l.begun)
		if alarm != nil {
			s.lengthen(l)
			s.lasted += l.n
			isNormal := alarm.Check == fall && s.lasted >= minPeriodSize &&
				now-alarm.Time.UnixNano() >= int64(minPeriod)
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
			s.rise, s.back, s.late, s.lasted = 0, 0, false, 0
			return rang, check
		}
	}
	return unchanged, nil
}

// fade lets wait shrink once a day.
func (s *sales) fade(now int64) {
	if s.faded != 0 && now-s.faded < int64(24*time.Hour) {
		return
	}
	if s.faded != 0 {
		s.wait = max(s.wait-s.wait/fadeShare, min(s.wait, s.usual(8)))
	}
	s.faded = now
}

// remember adds a lot to the placement's own sales.
func (s *sales) remember(l *lot) {
	if s.day == 0 || s.today[taken].N >= minPeriodSize && l.begun-s.began >= int64(minPeriod) {
		s.day++
		s.began, s.before, s.today = l.begun, s.today, [amounts]confseq.Mean{}
	}
	for i := range s.claimed {
		s.claimed[i] += l.foreseen[i]
		s.kept[i] += l.hits[i]
	}
	if s.claimed[taken] > maxClaimed {
		for i := range s.claimed {
			s.claimed[i] /= 2
			s.kept[i] /= 2
		}
	}
	for i := range s.today {
		b := s.today[i].Begin()
		n, sum := float64(l.n), l.sum[i]
		// Σ (x − centre)² for numbers in [0, 1]; their squares are no larger than the numbers
		squares := sum - float64(2*b.Centre*sum) + float64(n*b.Centre*b.Centre)
		b.Sums = confseq.Mean{N: l.n, Sum: precise.Of(sum), Squares: precise.Of(squares), First: 1, Bound: 1}
		s.today[i].Add(&b)
	}
}

// sold returns the lower confidence bound of an amount on the last whole day, or on the present day if it is the first.
func (s *sales) sold(amount int) float64 {
	m, day := &s.before[amount], float64(s.day)-1
	if m.N == 0 {
		m, day = &s.today[amount], float64(s.day)
	}
	return max(m.Low(ratesError/amounts/(day*(day+1))), 0)
}

// predictionsHold reports whether sales so far reached enough of the predictions to compare later sales with these.
func (s *sales) predictionsHold() bool {
	return s.claimed[taken] >= minClaimed && s.kept[taken] >= fallShare*s.claimed[taken] &&
		s.kept[worthOf] >= fallShare*s.claimed[worthOf]
}

// lengthen adds a lot to the stretch without a sale, or starts another one. It reports whether the lot is without a
// sale. The first stretch starts when a rate is known, even without a sale since the guard restarted.
func (s *sales) lengthen(l *lot) bool {
	isSale := l.sum[taken] > 0
	if isSale || s.runs == 0 && s.frozen > 0 {
		s.run = stretch{rates: [rates]float64{s.frozen, s.sold(taken)}}
		s.runs++
	}
	if isSale {
		s.silent = 0
		return false
	}
	if s.silent == 0 {
		s.silent = l.entry
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
		if n, _ := s.run.of(i); rate > 0 && n >= float64(MaxSilence(rate, s.runs)) {
			s.level = s.run.level(rate)
			detail, chance := s.silence()
			return &api.Alarm{Check: noSale, Detail: detail, Since: s.run.entry, Chance: chance}
		}
	}
	return nil
}

// silence describes the present run without a sale, and returns its probability at the usual rate.
func (s *sales) silence() (detail string, chance float64) {
	n := float64(s.run.n)
	return fmt.Sprintf("no sale in the last %d decisions, where at least %.3g were expected", s.run.n, s.level*n),
		portable.Exp(n * portable.Log1p(-min(s.level, 0.999)))
}

// MaxSilence returns how many consecutive decisions without a sale, the runs-th such row, are too many to be chance at a
// rate of sales.
func MaxSilence(rate float64, runs uint64) uint64 {
	return uint64(math.Ceil(nats(noSaleError/2*spent(runs)) / -portable.Log1p(-noSaleShare*min(rate, 1))))
}

// nats returns log(1/alpha).
func nats(alpha float64) float64 { return -portable.Log(alpha) }

// spent returns the share of the error for test j, from 1 on. The shares sum to 1.
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
				continue // the second stretch begins in the middle of the first
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
				if found != nil || rate <= 0 {
					continue
				}
				found = t.fallen(i, n, sum, nats(fallError/2/float64(len(lengths))*spent(o.begun)))
				if found != nil {
					s.level = t.level(rate)
				}
			}
			if t.n >= lengths[k] {
				s.renew(t, k)
			}
		}
	}
	return found
}

// fallen returns the alarm of a stretch of n decisions that sold sum, if the evidence against a rate is at least
// needed.
func (t *stretch) fallen(rate int, n, sum, needed float64) *api.Alarm {
	expected := t.rates[rate]
	e := evidence(n, min(sum, n), fallShare*min(expected, 1))
	if e < needed {
		return nil
	}
	return &api.Alarm{Check: fall, Detail: fmt.Sprintf("%.0f decisions sold as much as %.3g average sales, less "+
		"than half of the %.3g that were expected", n, sum, expected*n), Since: t.entry, Chance: portable.Exp(-e)}
}

// renew starts the stretch after t, and freezes its rates.
func (s *sales) renew(t *stretch, k int) {
	next := stretch{rates: [rates]float64{ofItself: s.sold(worthOf)}}
	if t.predicted > 0 && s.predictionsHold() {
		next.rates[predicted] = t.foreseen[worthOf] / float64(t.predicted)
		if k == 0 {
			s.frozen = t.foreseen[taken] / float64(t.predicted)
		}
	}
	*t = next
}

// longer returns the longer stretch.
func (o *octave) longer() *stretch {
	if o.pair[1].n > o.pair[0].n {
		return &o.pair[1]
	}
	return &o.pair[0]
}

// of returns the number of decisions compared with a rate, and their sales.
func (t *stretch) of(rate int) (n, sum float64) {
	if rate == predicted {
		return float64(t.predicted), t.hit
	}
	return float64(t.n), t.sum
}

// level returns the rate of sales that ends an alarm against a rate.
func (t *stretch) level(rate float64) float64 {
	if own := t.rates[ofItself]; own > 0 {
		return own
	}
	return rate
}

// evidence returns log E_n for n decisions that sold sum, against a boundary.
func evidence(n, sum, boundary float64) float64 {
	e := math.Inf(-1)
	if sum >= n*boundary {
		return e // at most 0
	}
	for _, share := range shares {
		one := float64(sum*portable.Log(share)) +
			float64((n-sum)*(portable.Log1p(-share*boundary)-portable.Log1p(-boundary)))
		e = max(e, one) + portable.Log1p(portable.Exp(-math.Abs(e-one)))
	}
	return e - portable.Log(float64(len(shares)))
}

// rises adds a lot to the evidence that sales are back, a cumulative sum of log likelihood ratios (Page 1954). After a
// no-sale alarm it compares half the rate with a sixteenth of it, and after any other alarm the rate with half of it.
// A late sale alone adds as much to it after a no-sale alarm: see returns.
func (s *sales) rises(l *lot, check string) bool {
	high, low, sum := min(s.level, 1), fallShare*min(s.level, 1), l.sum[worthOf]
	if check == noSale {
		high, low, sum = high/2, high/2/backRatio, l.sum[taken]
	}
	high = min(high, 0.999)
	if s.rise == 0 {
		s.back, s.late = l.entry, false
	}
	s.rise += float64(sum*portable.Log(high/low)) +
		float64((float64(l.n)-sum)*(portable.Log1p(-high)-portable.Log1p(-low)))
	s.rise = max(s.rise, 0)
	return s.rise >= nats(backError)
}

// resume restarts all stretches after an alarm or late sales, with their earlier rates. If isNormal, sales have been low
// for a day and 5,000 decisions, and that becomes the placement's normal level.
func (s *sales) resume(isNormal bool) {
	s.rise, s.level = 0, 0
	s.run.n, s.run.predicted = 0, 0
	if s.runs > 0 { // otherwise the first run still waits for a rate
		s.runs++
	}
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
