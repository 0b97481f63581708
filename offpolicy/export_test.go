package offpolicy

import "vitrine/internal/confseq"

// Bootstrap is the interval of the mean by resampling.
var Bootstrap = bootstrap

// Deviation bounds a sum.
var Deviation = deviation

// Looks returns the interval at any time after every round.
func (e *Estimate) Looks(level float64) (list []Interval) {
	var low, high confseq.Lower
	for _, s := range e.steps {
		s.add(&low, &high)
		list = append(list, between(&low, &high, level))
	}
	return list
}

// Influence returns the influence of each round.
func (e *Estimate) Influence() []float64 { return e.influence }
