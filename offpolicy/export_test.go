package offpolicy

import "vitrine/internal/confseq"

// Bootstrap returns the interval of a mean by resampling.
var Bootstrap = bootstrap

// Deviation bounds a sum.
var Deviation = deviation

// Looks returns the anytime interval after every round.
func (e *Estimate) Looks(level float64) (list []Interval) {
	var low, high confseq.Lower
	for _, s := range e.steps {
		s.add(&low, &high)
		list = append(list, between(&low, &high, level))
	}
	return list
}

func (e *Estimate) Influence() []float64 { return e.influence }
