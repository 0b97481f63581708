package earnings

import (
	"math"
	"slices"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/fields"
	"vitrine/internal/precise"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Series holds a placement's sums over time, in buckets that double in width as they age: a bucket's width is at least
// a second, and at most a thirty-second of its age above that. Ten years take some 800 buckets.
//
// A decision counts in the bucket of its own time, and so do its later earnings. The series is part of the state: its
// buckets depend only on the times in the log.
type Series struct {
	buckets []bucket // oldest first; seconds without decisions have no bucket
	policy  struct { // all closed decisions by the policy, for the leads' centre
		rounds  uint64
		revenue precise.Sum
	}
	since uint64         // only later entries are in cohorts
	leads Cohorts[leads] // leads of the policy over chance

	now       int64 // when the series advanced last
	elsewhere bool  // whether the caller's sets were ever shown outside the mode shadow
}

// leads is a cohort's leads, around the policy's earlier earnings per decision.
type leads struct {
	centre float64
	block  confseq.Block // around 0
}

// bucket sums the decisions in 2^level seconds.
type bucket struct {
	start int64 // seconds since 1970, a multiple of the width
	level uint64

	offered   uint64
	abandoned uint64          // withdrawn or evicted decisions
	arms      [3]offer.Totals // offer.ByPolicy, offer.ByChance, offer.ByBaseline
	timely    offer.Totals    // of the policy, without late outcomes and corrections
	evicted   [3]uint64       // decisions that were evicted, even if an outcome came later, by arm
	bound     float64         // largest revenue of a shown item
	peaks     Peaks[led]
	// of the policy over chance, around 0: see Contrast. A cohort counts in the bucket in which it began
	lead confseq.Mean
}

// led describes a decision's lead over chance, if any.
type led struct {
	factor float64 // 1/min(P, Q)
	centre float64
}

const (
	seriesShare = 32 // a bucket's width is at most this fraction of its age
	seriesLevel = 40 // maximum level
)

func (b *bucket) end() int64 { return b.start + 1<<b.level }

// add adds the sums of another bucket.
func (b *bucket) add(o *bucket) {
	b.offered += o.offered
	b.abandoned += o.abandoned
	for i := range b.arms {
		b.arms[i].Add(&o.arms[i])
		b.evicted[i] += o.evicted[i]
	}
	b.timely.Add(&o.timely)
	b.bound = max(b.bound, o.bound)
	b.lead.Join(&o.lead)
	for _, p := range o.peaks {
		b.peak(p)
	}
}

// peak notes a decision's earnings, if they exceed the bounds without it.
func (b *bucket) peak(p Peak[led]) {
	if b.peaks.Correct(p.Entry, p.Value) || p.Value <= b.bound && float64(p.Value*p.Of.factor) <= b.lead.Bound {
		return
	}
	if out, isFull := b.peaks.Add(p); isFull {
		b.bound = max(b.bound, out.Value)
		b.lead.Widen(out.Value * out.Of.factor)
	}
}

// most returns the largest revenue of a shown item or of a decision.
func (b *bucket) most() float64 {
	most := b.bound
	for _, p := range b.peaks {
		most = max(most, p.Value)
	}
	return most
}

// leads returns the leads over chance with the bounds of all decisions.
func (b *bucket) leads() confseq.Mean {
	m := b.lead
	for _, p := range b.peaks {
		m.Widen(p.Value * p.Of.factor)
	}
	return m
}

// closed returns the number of decisions that are no longer open.
func (b *bucket) closed() uint64 {
	n := b.abandoned
	for i := range b.arms {
		n += b.arms[i].Rounds
	}
	return n
}

// secondOf converts nanoseconds to seconds, rounding down.
func secondOf(t int64) int64 { return (t - mod(t, int64(time.Second))) / int64(time.Second) }

// offered adds a decision. Its time is before the previous decision's if the clock was set back.
func (s *Series) offered(entry uint64, time int64, w *Watch) {
	b := s.at(time)
	if b == nil {
		at := secondOf(time)
		s.age(at)
		i := s.from(time)
		s.buckets = slices.Insert(s.buckets, i, bucket{start: at})
		b = &s.buckets[i]
	}
	b.offered++
	if entry > s.since && w.drawsSets() {
		s.leads.Enter(time/w.Cohort(), func() leads { return leads{centre: s.centre()} })
	}
}

// from returns the index of the first bucket that does not end before a time.
func (s *Series) from(time int64) int {
	i, _ := slices.BinarySearchFunc(s.buckets, secondOf(time), func(b bucket, second int64) int {
		if b.end() <= second {
			return -1
		}
		return 1
	})
	return i
}

// at returns the bucket for a time, or nil.
func (s *Series) at(time int64) *bucket {
	i := s.from(time)
	if i == len(s.buckets) || s.buckets[i].start > secondOf(time) {
		return nil
	}
	return &s.buckets[i]
}

// age widens the buckets that are old enough at a second. Two halves of a wider bucket reach that age together, and
// merge.
func (s *Series) age(now int64) {
	kept := s.buckets[:0]
	for _, b := range s.buckets {
		for b.level < seriesLevel {
			width := int64(2) << b.level // the wider bucket's
			start := b.start - mod(b.start, width)
			if now-(start+width) < seriesShare*width {
				break
			}
			b.start, b.level = start, b.level+1
		}
		if n := len(kept); n > 0 && kept[n-1].end() > b.start {
			kept[n-1].add(&b)
		} else {
			kept = append(kept, b)
		}
	}
	clear(s.buckets[len(kept):])
	s.buckets = kept
}

// mod returns a modulo b, never negative.
func mod(a, b int64) int64 { return (a%b + b) % b }

// closed adds a decision's outcome. o is nil if there is no round for it.
func (s *Series) closed(entry uint64, time int64, o *offer.Closed, w *Watch) {
	if o != nil && o.Mode == offer.ByImport {
		return
	}
	var counts *leads
	if entry > s.since && w.drawsSets() {
		counts = s.leads.Leave(time / w.Cohort())
	}
	b := s.at(time)
	switch {
	case b == nil:
		return
	case o == nil:
		b.abandoned++
		return
	}
	b.arms[o.Mode-offer.ByPolicy].Count(o)
	peak, bound := Peak[led]{Entry: o.Entry, Value: o.Earned()}, o.PageBound()
	b.bound = max(b.bound, bound)
	if way := wayOf(o.Mode); counts != nil && way != Neither {
		w.contrast().Add(&counts.block, way, peak.Value, counts.centre, bound)
		peak.Of = led{w.contrast().factor(), counts.centre}
	}
	if peak.Value > bound {
		s.peak(b, time, peak, w)
	}
	if o.Mode == offer.ByPolicy {
		b.timely.Count(o)
		s.policy.rounds++
		s.policy.revenue.Add(peak.Value)
	}
}

// evicted notes that a decision made at a time left memory before its outcome. Call it before closed.
func (s *Series) evicted(entry uint64, time int64, mode uint8, w *Watch) {
	if entry > s.since && w.drawsSets() {
		s.leads.Lose(time / w.Cohort())
	}
	if b := s.at(time); b != nil && mode != offer.ByImport {
		b.evicted[mode-offer.ByPolicy]++
	}
}

// peak notes a decision's earnings in its bucket b, and in the bucket that counts its lead: where its cohort began.
func (s *Series) peak(b *bucket, time int64, p Peak[led], w *Watch) {
	if lead := s.leading(time, w); p.Of.factor > 0 && lead != b {
		lead.peak(p)
		p.Of = led{}
	}
	b.peak(p)
}

// leading returns the bucket that counts the lead of a decision made at a time. It is the decision's bucket or an older
// one.
func (s *Series) leading(time int64, w *Watch) *bucket {
	return &s.buckets[s.from(time/w.Cohort()*w.Cohort())]
}

// advance adds the cohorts of a length that are complete at a time.
func (s *Series) advance(now, length int64) {
	s.now = now
	for c := s.leads.Next(now / length); c != nil; c = s.leads.Next(now / length) {
		s.buckets[s.from(c.Number*length)].lead.Add(&c.Sums.block)
	}
}

// centre returns the policy's earnings per decision so far, but at most the largest revenue of a shown item: beyond that,
// a value that is still mistyped doesn't move the centre of a cohort that begins now.
func (s *Series) centre() float64 {
	if s.policy.rounds == 0 {
		return 0
	}
	mean, most := s.policy.revenue.Value()/float64(s.policy.rounds), 0.0
	for i := range s.buckets {
		most = max(most, s.buckets[i].bound)
	}
	return min(mean, most)
}

// Report returns the placement's sums for a span of time before now (the whole series if span is 0), in at most points
// + 1 points.
func (s *Series) Report(name string, window time.Duration, now int64, span time.Duration, points int) api.Series {
	r := api.Series{
		Placement: name, Now: time.Unix(0, now).UTC(), Window: window.Seconds(),
		Times: []int64{}, Seconds: []int64{}, Decisions: []uint64{}, Open: []uint64{},
	}
	to := secondOf(now) + 1
	from := to - int64(span/time.Second)
	if span == 0 && len(s.buckets) > 0 {
		from = s.buckets[0].start
	}
	width := max((to-from+int64(points)-1)/int64(points), 1)
	var before, shown bucket // sums before the first point, and up to the present one
	var all []bucket
	ends := []int64{}
	for i := range s.buckets {
		b := &s.buckets[i]
		if b.end() <= from {
			before.add(b)
			continue
		}
		start := b.start - mod(b.start, width)
		if n := len(all); n > 0 && start < ends[n-1] {
			all[n-1].add(b)
			ends[n-1] = max(ends[n-1], b.end())
			continue
		}
		own := *b
		own.start = max(start, min(from, b.start))
		if n := len(all); n > 0 {
			own.start = max(own.start, ends[n-1])
		}
		all, ends = append(all, own), append(ends, max(b.end(), start+width))
	}
	shown.add(&before)
	for i := range all {
		shown.add(&all[i])
	}
	for k, group := range []**api.SeriesMeans{&r.Policy, &r.Chance, &r.Baseline} {
		if shown.arms[k].Rounds > 0 {
			*group = new(api.SeriesMeans)
		}
	}
	gains := map[string]*api.SeriesSums{}
	for _, g := range s.gains(&shown) {
		gains[g.Over] = new(api.SeriesSums)
	}
	r.OverChance, r.OverBaseline = gains[api.OverChance], gains[api.OverBaseline]
	sum := before
	for i := range all {
		b := &all[i]
		sum.add(b)
		r.Times, r.Seconds = append(r.Times, b.start), append(r.Seconds, ends[i]-b.start)
		r.Decisions, r.Open = append(r.Decisions, b.offered), append(r.Open, b.offered-min(b.closed(), b.offered))
		for k, group := range []*api.SeriesMeans{r.Policy, r.Chance, r.Baseline} {
			if group != nil {
				mean, standardError := b.arms[k].Report().Mean()
				group.Rounds = append(group.Rounds, b.arms[k].Rounds)
				group.Mean, group.StandardError = append(group.Mean, number(mean)), append(group.StandardError,
					number(standardError))
			}
		}
		now := map[string]api.Interval{}
		for _, g := range s.gains(&sum) {
			now[g.Over] = g.Total
		}
		for over, sums := range gains {
			var low, estimate, high *float64
			if total, ok := now[over]; ok || sum.evicted == [3]uint64{} {
				low, estimate, high = &total.Low, &total.Estimate, &total.High
			}
			sums.Low, sums.Estimate, sums.High = append(sums.Low, low), append(sums.Estimate, estimate), append(sums.High, high)
		}
	}
	return r
}

// number returns a value for JSON, or nil if JSON cannot express it.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Recent describes a placement's recent decisions.
type Recent struct {
	Policy api.Totals // decisions by the policy, up to the first that waits for its outcome
	Gains  []api.Gain
	Rate   float64 // decisions per second in the last ten complete seconds

	Latency *api.Latency // since the process began; nil before the first decision
}

// settled returns the number of buckets before the first decision that waits for its outcome in an attribution window.
// Of the decisions after it those that sold have ended, and the others have not.
func (s *Series) settled(now int64, window time.Duration) int {
	from := secondOf(now) - int64(window/time.Second)
	for i := range s.buckets {
		if b := &s.buckets[i]; b.closed() < b.offered && b.end() > from {
			return i
		}
	}
	return len(s.buckets)
}

// Recent returns the earnings from decisions in a span of time before now. A span of 0 means all decisions. The policy's
// totals are settled.
func (s *Series) Recent(now int64, span, window time.Duration) Recent {
	var sum bucket
	var policy offer.Totals
	to, settled := secondOf(now), s.settled(now, window)
	last := uint64(0)
	for i := range s.buckets {
		b := &s.buckets[i]
		if span == 0 || b.end() > to+1-int64(span/time.Second) {
			sum.add(b)
			if i < settled {
				policy.Add(&b.arms[0])
			}
		}
		if b.start >= to-10 && b.end() <= to {
			last += b.offered
		}
	}
	return Recent{Policy: policy.Report(), Gains: s.gains(&sum), Rate: float64(last) / 10}
}

// Past returns the settled sums of all decisions in a span of time before now, the largest revenue of a shown item or a
// decision, and the decisions per second in the seconds since the first of them.
func (s *Series) Past(now int64, span, window time.Duration) (all api.Totals, bound, rate, seconds float64) {
	var sum offer.Totals
	to, settled := secondOf(now)+1, s.settled(now, window)
	offered, from := uint64(0), to
	for i := range s.buckets {
		b := &s.buckets[i]
		if b.end() <= to-int64(span/time.Second) || b.start >= to { // the latter if the clock was set back
			continue
		}
		from, offered, bound = min(from, b.start), offered+b.offered, max(bound, b.most())
		for k := range b.arms {
			if i < settled {
				sum.Add(&b.arms[k])
			}
		}
	}
	if seconds = float64(to - from); seconds > 0 {
		rate = float64(offered) / seconds
	}
	return sum.Report(), bound, rate, seconds
}

// Copy returns a deep copy.
func (s *Series) Copy() Series {
	c := *s
	c.buckets, c.leads = slices.Clone(s.buckets), s.leads.Copy(func(l *leads) leads { return *l })
	return c
}

func (b *bucket) fields(f *fields.Fields) {
	f.Uvarint(&b.level, &b.offered, &b.abandoned, &b.evicted[0], &b.evicted[1], &b.evicted[2])
	f.Int64(&b.start)
	f.Float(&b.bound)
	b.peaks.Fields(f, func(l *led, f *fields.Fields) { f.Float(&l.factor, &l.centre) })
	b.lead.Fields(f)
	offer.GroupFields(f, b.arms[:])
	b.timely.Fields(f)
	f.Check(b.level <= seriesLevel && mod(b.start, 1<<min(b.level, seriesLevel)) == 0,
		"a bucket of a series begins at %d and has the level %d", b.start, b.level)
}

func (s *Series) fields(f *fields.Fields) {
	f.Uvarint(&s.policy.rounds, &s.since)
	f.Float(s.policy.revenue.Parts())
	f.Int64(&s.now)
	f.Flag(&s.elsewhere)
	s.leads.Fields(f, func() (l leads) { return l }, func(l *leads, f *fields.Fields) {
		f.Float(&l.centre)
		l.block.Fields(f)
	})
	fields.List(f, &s.buckets, (*bucket).fields)
	for i := range s.buckets {
		f.Check(i == 0 || s.buckets[i-1].end() <= s.buckets[i].start, "the buckets of a series are not in order")
	}
}
