package earnings

import (
	"slices"
	"time"

	"vitrine/service/api"
)

const (
	recentWeeks = 4   // that are compared
	pastWeeks   = 12  // that they are compared with, at most
	leastPast   = 0.9 // least earnings as a multiple of earlier ones
)

// Fell compares the policy's earnings per decision in the last four whole weeks whose attribution window is over with
// the twelve weeks before, or with fewer if the policy is younger. It returns the ratio, or nil unless earnings
// certainly fell below leastPast. Over all weeks, it errs with a probability of at most guardError/5.
//
// A week begins with the second of the policy's first decision, or with the bucket that contains it. So weekdays weigh
// about the same on both sides. Earnings that stay low become the earlier ones within some months.
//
// Late outcomes and corrections do not count: they would be in the earlier weeks, and not yet in the last ones.
//
// If many of the policy's decisions left memory, too many of the others are sales, and Fell returns nil.
func (s *Series) Fell(window time.Duration) *api.Interval {
	const week = int64(week / time.Second)
	first := slices.IndexFunc(s.buckets, func(b bucket) bool { return b.arms[0].Rounds > 0 })
	if first < 0 {
		return nil
	}
	to, began := secondOf(s.now), s.buckets[first].start
	if i := s.settled(s.now, window); i < len(s.buckets) {
		to = min(to, s.buckets[i].start)
	}
	weeks := (to - began) / week
	if weeks <= recentWeeks {
		return nil
	}
	to = began + weeks*week
	from := to - recentWeeks*week
	var recent, before bucket
	for i := range s.buckets {
		switch b := &s.buckets[i]; {
		case b.end() > to:
		case b.start >= from:
			recent.add(b)
		case b.start >= from-pastWeeks*week:
			before.add(b)
		}
	}
	now, past := recent.mean(&recent.timely), before.mean(&before.timely)
	alpha := alphaOf(uint64(weeks-recentWeeks)) / 2
	low, high := past.Low(alpha), now.High(alpha)
	if low <= 0 || high >= leastPast*low || !recent.few(0) || !before.few(0) {
		return nil
	}
	return &api.Interval{
		Low: max(now.Low(alpha), 0) / past.High(alpha), Estimate: now.Average() / past.Average(), High: max(high, 0) / low,
	}
}
