package earnings

import (
	"vitrine/internal/confseq"
	"vitrine/internal/precise"
	"vitrine/service/api"
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
// There is no gain while too many decisions left memory before their outcome: the others contain too many sales. They may
// all be of one mode, and so there is a gain over the caller's sets only if they are few for each side.
func (s *Series) gains(b *bucket) []api.Gain {
	list := []api.Gain{}
	if api.FewLost*b.evicted >= b.closed() {
		return list
	}
	if m := b.leads(); m.N > 0 {
		low, high := m.Interval(gainError)
		list = append(list, api.NewGain(api.OverChance, m.N, b.within(low, m.Average(), high)))
	}
	if mine, other := b.mean(0), b.mean(2); !s.elsewhere && min(mine.N, other.N) > api.FewLost*b.evicted {
		difference := mine.Average() - other.Average()
		low, high := mine.Low(gainError/4)-other.High(gainError/4), mine.High(gainError/4)-other.Low(gainError/4)
		list = append(list, api.NewGain(api.OverBaseline, mine.N, b.within(low, difference, high)))
	}
	return list
}

func (b *bucket) mean(arm int) *confseq.Mean {
	g := &b.arms[arm]
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
