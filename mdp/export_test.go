package mdp

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/fatal"
)

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

// Estimate returns ŵ and A.
func (s *Swimmer) Estimate() ([]float64, *mat.SymDense) {
	w, a := s.core.estimate()
	if w == nil {
		return nil, nil
	}
	return w, a.Sym(nil)
}

// Move returns the probabilities and the bonus of a move in the last plan.
func (s *Swimmer) Move(state, action int) ([]float64, float64) {
	m := &s.water[state][action]
	return m.p, m.bonus
}

// Longest returns the longest g of a move, and its length.
func (s *Swimmer) Longest(state, action int) (int, float64) {
	return s.longest(&s.water[state][action])
}

// NewBatchONL returns onl-mdp with update mle.
func NewBatchONL(t *testing.T, r *River, o SwimmerOptions, sessions int) *Swimmer {
	o.Algorithm = "onl-mdp"
	rng := rand.New(rand.NewPCG(1, 1))
	s := fatal.Or(NewSwimmer(r, o, sessions, rng))(t)
	s.core = fatal.Or(newONL("mle")(s, rng))(t)
	return s
}
