package mdp

// Draw exports draw.
var Draw = draw

// Values returns f_h(s,·) for the values of the next step.
func (a *Agent) Values(s int, next []float64) []float64 {
	a.values(s, next)
	return append([]float64(nil), a.f...)
}

// Know makes the rewards of state 0 exact, without weight of observations: (r + 0)/(0 + 1).
func (a *Agent) Know(rewards []float64) {
	clear(a.count[0])
	copy(a.earned[0], rewards)
}
