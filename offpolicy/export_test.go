package offpolicy

// Bootstrap is the interval of the mean by resampling.
var Bootstrap = bootstrap

// Influence returns the influence of each round.
func (e *Estimate) Influence() []float64 { return e.influence }
