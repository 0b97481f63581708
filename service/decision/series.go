package decision

import (
	"errors"
	"math"
	"slices"
	"time"

	"vitrine/internal/state"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// series are a placement's sums over time, in buckets that double in width as they age: the width of a bucket is at
// most a thirty-second of its age, and a second at least. Ten years are some 800 buckets.
//
// A decision counts in the bucket of its own time, also what it earns later. The series is part of the state: its
// buckets depend on the times in the log only.
type series struct {
	buckets []bucket // the oldest first; seconds without decisions have none
	policy  struct { // of all closed decisions of the policy, for the centre of leads
		rounds  uint64
		revenue float64
	}
	late bool // whether it began with a snapshot of an earlier program, and not with the placement
}

// bucket sums the decisions of 2^level seconds.
type bucket struct {
	start int64 // seconds since 1970, a multiple of the width
	level uint64

	offered   uint64
	abandoned uint64       // withdrawn and evicted ones
	arms      [3]api.Group // offer.ByPolicy, offer.ByChance, offer.ByBaseline
	leads     uint64       // rounds with a lead of the policy over chance
	lead      float64      // Σ lead
	squares   float64      // Σ lead²
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
func (s *series) offered(time int64) {
	at := secondOf(time)
	if n := len(s.buckets); n == 0 || s.buckets[n-1].end() <= at {
		s.age(at)
		s.buckets = append(s.buckets, bucket{start: at})
	}
	s.buckets[len(s.buckets)-1].offered++
}

// at returns the bucket of a time, nil if there is none.
func (s *series) at(time int64) *bucket {
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
func (s *series) age(now int64) {
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

// closed adds the outcome of a decision. o is nil if there is no round of it.
func (s *series) closed(p *placement, r *record, o *offer.Closed) {
	b := s.at(r.time)
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
	earned := o.Earned()
	b.arms[o.Mode-offer.ByPolicy].Add(o.Group())
	if r.entry > p.guard.since {
		centre := 0.0
		if s.policy.rounds > 0 {
			centre = s.policy.revenue / float64(s.policy.rounds)
		}
		if lead, ok := p.config.lead(o.Mode, earned, centre); ok {
			b.leads++
			b.lead += lead
			b.squares += float64(lead * lead)
		}
	}
	if o.Mode == offer.ByPolicy {
		s.policy.rounds++
		s.policy.revenue += earned
	}
}

// Series returns what a placement did in some time before now, all of it if span is 0, in at most points points and one more.
func (e *Engine) Series(name string, now int64, span time.Duration, points int) (api.Series, error) {
	v, err := e.view(name)
	if err != nil {
		return api.Series{}, err
	}
	e.mu.RLock()
	buckets := slices.Clone(v.series.buckets)
	e.mu.RUnlock()
	return seriesOf(name, v.config.window, buckets, now, span, points), nil
}

func seriesOf(name string, window time.Duration, buckets []bucket, now int64, span time.Duration, points int) api.Series {
	s := api.Series{
		Placement: name, Now: time.Unix(0, now).UTC(), Window: window.Seconds(),
		Times: []int64{}, Seconds: []int64{}, Decisions: []uint64{}, Open: []uint64{},
	}
	to := secondOf(now) + 1
	from := to - int64(span/time.Second)
	if span == 0 && len(buckets) > 0 {
		from = buckets[0].start
	}
	width := max((to-from+int64(points)-1)/int64(points), 1)
	var before, shown bucket // the sums of what is before the first point, and of all until the present one
	var all []bucket
	ends := []int64{}
	for i := range buckets {
		b := &buckets[i]
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
	for k, group := range []**api.SeriesMeans{&s.Policy, &s.Chance, &s.Baseline} {
		if shown.arms[k].Rounds > 0 {
			*group = new(api.SeriesMeans)
		}
	}
	if shown.leads > 0 {
		s.OverChance = new(api.SeriesSums)
	}
	if shown.arms[0].Rounds > 0 && shown.arms[2].Rounds > 0 {
		s.OverBaseline = new(api.SeriesSums)
	}
	sum := before
	for i := range all {
		b := &all[i]
		sum.add(b)
		s.Times, s.Seconds = append(s.Times, b.start), append(s.Seconds, ends[i]-b.start)
		s.Decisions, s.Open = append(s.Decisions, b.offered), append(s.Open, b.offered-min(b.closed(), b.offered))
		for k, group := range []*api.SeriesMeans{s.Policy, s.Chance, s.Baseline} {
			if group != nil {
				mean, standardError := b.arms[k].Mean()
				group.Rounds = append(group.Rounds, b.arms[k].Rounds)
				group.Mean, group.StandardError = append(group.Mean, number(mean)), append(group.StandardError, number(standardError))
			}
		}
		if s.OverChance != nil {
			estimate, standardError := sum.overChance()
			s.OverChance.Estimate, s.OverChance.StandardError = append(s.OverChance.Estimate, estimate), append(s.OverChance.StandardError, standardError)
		}
		if s.OverBaseline != nil {
			estimate, standardError := sum.overBaseline()
			s.OverBaseline.Estimate, s.OverBaseline.StandardError = append(s.OverBaseline.Estimate, estimate), append(s.OverBaseline.StandardError, standardError)
		}
	}
	return s
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

// Recent returns what the decisions in a span of time before now have earned, by the way that found the assortment:
// offer.ByPolicy, offer.ByChance and offer.ByBaseline. A span of 0 means all decisions. rate is the number of decisions a second in
// the last ten full seconds.
func (e *Engine) Recent(name string, now int64, span time.Duration) (groups [3]api.Group, rate float64, err error) {
	v, err := e.view(name)
	if err != nil {
		return groups, 0, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	var sum bucket
	to := secondOf(now)
	last := uint64(0)
	for i := range v.series.buckets {
		b := &v.series.buckets[i]
		if span == 0 || b.end() > to+1-int64(span/time.Second) {
			sum.add(b)
		}
		if b.start >= to-10 && b.end() <= to {
			last += b.offered
		}
	}
	return sum.arms, float64(last) / 10, nil
}

func (s *series) copy() series {
	c := *s
	c.buckets = slices.Clone(s.buckets)
	return c
}

func (b *bucket) numbers() (n state.Numbers) {
	n.Integers(&b.level, &b.offered, &b.abandoned, &b.leads)
	n.Times(&b.start)
	n.Floats(&b.lead, &b.squares)
	groups(&n, b.arms[:])
	return n
}

func (s *series) encode(e *state.Encoder) {
	e.Flag(s.late)
	e.Uint64(s.policy.rounds)
	e.Float(s.policy.revenue)
	e.Count(len(s.buckets))
	for i := range s.buckets {
		s.buckets[i].numbers().Encode(e)
	}
}

// decode reads the series of a snapshot, which in earlier formats begins after it.
func (s *series) decode(d decoder) {
	if d.format < 11 {
		s.late = true
		return
	}
	s.late = d.Flag()
	s.policy.rounds, s.policy.revenue = d.Uint64(), d.Float()
	for range d.Count() {
		var b bucket
		b.numbers().Decode(d.Decoder)
		if d.Err() != nil {
			return
		}
		if n := len(s.buckets); b.level > seriesLevel || mod(b.start, 1<<b.level) != 0 || n > 0 && s.buckets[n-1].end() > b.start {
			d.Fail(errors.New("the buckets of a series are not in order"))
			return
		}
		s.buckets = append(s.buckets, b)
	}
}
