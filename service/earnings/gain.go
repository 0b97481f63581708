package earnings

import (
	"vitrine/internal/confseq"
	"vitrine/internal/precise"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// gainError is the probability that an interval of a gain is ever wrong.
const gainError = 0.05

// gains returns how much more the policy earns, among the decisions in a bucket, than chance (if the placement drew
// between both) and than the caller's own sets (if they were shown only in the mode shadow). The interval over chance is
// the [Contrast]'s. The caller's sets are shown at other times: that interval is for the difference of the two means, by
// the same boundary with an estimated V.
//
// A hold-out or an experiment shows the caller's sets at the same time as the policy's, and a fallback shows them while
// the policy fails.
//
// There is no gain while too many decisions of either side left memory before their outcome: the others contain too many
// sales.
func (s *Series) gains(b *bucket) []api.Gain {
	list := []api.Gain{}
	if m := b.leads(); m.N > 0 && b.few(0) && b.few(1) {
		low, high := m.Interval(gainError)
		list = append(list, api.NewGain(api.OverChance, m.N, b.within(low, m.Average(), high)))
	}
	if mine, other := b.mean(&b.arms[0]), b.mean(&b.arms[2]); !s.elsewhere && min(mine.N, other.N) > 0 && b.few(0) && b.few(2) {
		difference := mine.Average() - other.Average()
		low, high := mine.Low(gainError/4)-other.High(gainError/4), mine.High(gainError/4)-other.Low(gainError/4)
		list = append(list, api.NewGain(api.OverBaseline, mine.N, b.within(low, difference, high)))
	}
	return list
}

// few reports whether few decisions of an arm left memory before their outcome.
func (b *bucket) few(arm int) bool { return api.FewLost*b.evicted[arm] <= b.arms[arm].Rounds }

// mean returns the mean revenue of some of the bucket's decisions.
func (b *bucket) mean(g *offer.Totals) *confseq.Mean {
	m := &confseq.Mean{N: g.Rounds, Sum: g.Revenue, First: b.most(), Bound: b.most()}
	if m.N > 0 {
		m.Squares = precise.Of(max(g.Squares.Value()-float64(m.Average()*g.Revenue.Value()), 0))
	}
	return m
}

// within returns the interval for a difference of two revenues.
func (b *bucket) within(low, estimate, high float64) api.Interval {
	most := b.most()
	return api.Interval{Low: max(low, min(-most, estimate)), Estimate: estimate, High: min(high, max(most, estimate))}
}
