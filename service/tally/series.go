package tally

import (
	"math"
	"slices"
	"time"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Series are a placement's sums over time, in buckets that double in width as they age: the width of a bucket is at
// most a thirty-second of its age, and a second at least. Ten years are some 800 buckets.
//
// A decision counts in the bucket of its own time, also what it earns later. The series is part of the state: its
// buckets depend on the times in the log only.
type Series struct {
	buckets []bucket // the oldest first; seconds without decisions have none
	policy  struct { // of all closed decisions of the policy, for the centre of leads
		rounds  uint64
		revenue float64
	}
}

// bucket sums the decisions of 2^level seconds.
type bucket struct {
	start int64 // seconds since 1970, a multiple of the width
	level uint64

	offered   uint64
	abandoned uint64        // withdrawn and evicted ones
	arms      [3]api.Totals // offer.ByPolicy, offer.ByChance, offer.ByBaseline
	leads     uint64        // rounds with a lead of the policy over chance
	lead      float64       // Σ lead
	squares   float64       // Σ lead²
}

const (
	seriesShare = 32 // of its age is the width of a bucket, at most
	seriesLevel = 40 // at most
)

func (b *bucket) end() int64 { return b.start + 1<<b.level }

// add adds the sums of another bucket.
func (b *bucket) add(o *bucket) {
	b.offered += o.offered
	b.abandoned += o.abandoned
	for i := range b.arms {
		b.arms[i].Add(&o.arms[i])
	}
	b.leads += o.leads
	b.lead += o.lead
	b.squares += o.squares
}

// closed is the number of decisions that are not open any more.
func (b *bucket) closed() uint64 {
	n := b.abandoned
	for i := range b.arms {
		n += b.arms[i].Rounds
	}
	return n
}

// secondOf returns the second of a time in nanoseconds.
func secondOf(t int64) int64 { return (t - mod(t, int64(time.Second))) / int64(time.Second) }

// offered adds a decision of a time, which is not before the last one's.
func (s *Series) offered(time int64) {
	at := secondOf(time)
	if n := len(s.buckets); n == 0 || s.buckets[n-1].end() <= at {
		s.age(at)
		s.buckets = append(s.buckets, bucket{start: at})
	}
	s.buckets[len(s.buckets)-1].offered++
}

// at returns the bucket of a time, nil if there is none.
func (s *Series) at(time int64) *bucket {
	second := secondOf(time)
	i, _ := slices.BinarySearchFunc(s.buckets, second, func(b bucket, second int64) int {
		if b.end() <= second {
			return -1
		}
		return 1
	})
	if i == len(s.buckets) || s.buckets[i].start > second {
		return nil
	}
	return &s.buckets[i]
}

// age widens the buckets that are old enough at a second. Buckets of one parent have the same age, so they widen
// together, and are one from then on.
func (s *Series) age(now int64) {
	kept := s.buckets[:0]
	for _, b := range s.buckets {
		for b.level < seriesLevel {
			width := int64(2) << b.level // of the parent
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

// mod is a modulo b, from 0 on.
func mod(a, b int64) int64 { return (a%b + b) % b }

// closed adds the outcome of a decision of a time. o is nil if there is no round of it.
func (s *Series) closed(time int64, o *offer.Closed, lead Lead) {
	b := s.at(time)
	if b == nil {
		return
	}
	if o == nil {
		b.abandoned++
		return
	}
	if o.Mode == offer.ByImport {
		return
	}
	b.arms[o.Mode-offer.ByPolicy].Add(o.Group())
	if lead, ok := lead(o, s.centre()); ok {
		b.leads++
		b.lead += lead
		b.squares += float64(lead * lead)
	}
	if o.Mode == offer.ByPolicy {
		s.policy.rounds++
		s.policy.revenue += o.Earned()
	}
}

// centre is what a decision of the policy has earned so far.
func (s *Series) centre() float64 {
	if s.policy.rounds == 0 {
		return 0
	}
	return s.policy.revenue / float64(s.policy.rounds)
}

// Report returns what the placement did in some time before now, all of it if span is 0, in at most points points and one
// more.
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
	var before, shown bucket // the sums of what is before the first point, and of all until the present one
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
	if shown.leads > 0 {
		r.OverChance = new(api.SeriesSums)
	}
	if shown.arms[0].Rounds > 0 && shown.arms[2].Rounds > 0 {
		r.OverBaseline = new(api.SeriesSums)
	}
	sum := before
	for i := range all {
		b := &all[i]
		sum.add(b)
		r.Times, r.Seconds = append(r.Times, b.start), append(r.Seconds, ends[i]-b.start)
		r.Decisions, r.Open = append(r.Decisions, b.offered), append(r.Open, b.offered-min(b.closed(), b.offered))
		for k, group := range []*api.SeriesMeans{r.Policy, r.Chance, r.Baseline} {
			if group != nil {
				mean, standardError := b.arms[k].Mean()
				group.Rounds = append(group.Rounds, b.arms[k].Rounds)
				group.Mean, group.StandardError = append(group.Mean, number(mean)), append(group.StandardError, number(standardError))
			}
		}
		if r.OverChance != nil {
			estimate, standardError := sum.overChance()
			r.OverChance.Estimate, r.OverChance.StandardError = append(r.OverChance.Estimate, estimate), append(r.OverChance.StandardError, standardError)
		}
		if r.OverBaseline != nil {
			estimate, standardError := sum.overBaseline()
			r.OverBaseline.Estimate, r.OverBaseline.StandardError = append(r.OverBaseline.Estimate, estimate), append(r.OverBaseline.StandardError, standardError)
		}
	}
	return r
}

// number is a value for JSON, nil if it is none.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// overChance returns Σ lead and its standard error: of n leads with mean d̄ the sum has the variance Σ(d − d̄)².
func (b *bucket) overChance() (estimate, standardError float64) {
	if b.leads == 0 {
		return 0, 0
	}
	return b.lead, math.Sqrt(max(b.squares-b.lead*b.lead/float64(b.leads), 0))
}

// overBaseline returns n(x̄ − ȳ) of n decisions of the policy, and its standard error; zeros until both have two rounds.
func (b *bucket) overBaseline() (estimate, standardError float64) {
	if b.arms[0].Rounds < 2 || b.arms[2].Rounds < 2 {
		return 0, 0
	}
	n := float64(b.arms[0].Rounds)
	x, ex := b.arms[0].Mean()
	y, ey := b.arms[2].Mean()
	return n * (x - y), n * math.Hypot(ex, ey)
}

// Recent returns what the decisions in a span of time before now have earned, by policy, by chance and by baseline. A span of 0
// means all decisions. rate is the number of decisions a second in the last ten full seconds.
func (s *Series) Recent(now int64, span time.Duration) (groups [3]api.Totals, rate float64) {
	var sum bucket
	to := secondOf(now)
	last := uint64(0)
	for i := range s.buckets {
		b := &s.buckets[i]
		if span == 0 || b.end() > to+1-int64(span/time.Second) {
			sum.add(b)
		}
		if b.start >= to-10 && b.end() <= to {
			last += b.offered
		}
	}
	return sum.arms, float64(last) / 10
}

// Copy returns a copy that shares nothing with s.
func (s *Series) Copy() Series {
	c := *s
	c.buckets = slices.Clone(s.buckets)
	return c
}

func (b *bucket) fields(f *fields.Fields) {
	f.Uvarint(&b.level, &b.offered, &b.abandoned, &b.leads)
	f.Int64(&b.start)
	f.Float(&b.lead, &b.squares)
	offer.GroupFields(f, b.arms[:])
	f.Check(b.level <= seriesLevel && mod(b.start, 1<<min(b.level, seriesLevel)) == 0, "a bucket of a series begins at %d and has the level %d", b.start, b.level)
}

func (s *Series) fields(f *fields.Fields) {
	f.Uvarint(&s.policy.rounds)
	f.Float(&s.policy.revenue)
	fields.List(f, &s.buckets, (*bucket).fields)
	for i := range s.buckets {
		f.Check(i == 0 || s.buckets[i-1].end() <= s.buckets[i].start, "the buckets of a series are not in order")
	}
}
