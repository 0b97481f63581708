package offpolicy

// Bootstrap is the interval of the mean by resampling.
var Bootstrap = bootstrap

// Deviation bounds a sum.
var Deviation = deviation

// Influence returns the influence of each round.
func (e *Estimate) Influence() []float64 { return e.influence }
