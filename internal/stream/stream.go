// Package stream gives every random draw of a simulation an address. A stream is named by (seed, round, purpose). All
// learners under one seed therefore meet the same contexts and customers, and a run is repeatable bit for bit, however
// its work is scheduled.
package stream

import "math/rand/v2"

// Purpose separates the draws of one round.
type Purpose uint64

// The purposes. Their values are part of every published figure: append, never renumber.
const (
	World       Purpose = 1 // the truth of a seed (round 0)
	Contexts    Purpose = 2 // X_t and r_t
	Customers   Purpose = 3 // the Gumbel shocks of round t
	Policy      Purpose = 4 // the policy's own draws in round t
	Learner     Purpose = 5 // the learner's initial weights (round 0)
	Theory      Purpose = 6 // estimates that the theory needs (round 0), and intervals (round 1)
	Exploration Purpose = 7 // whether a decision of the service explores, and its uniformly drawn set
	Rewards     Purpose = 8 // turns the rewards of a decision of the service into a choice
	Takers      Purpose = 9 // the takes of the visit of round t after the first
)

// Stream is a generator that moves to any address without allocating. The zero value is ready to use.
type Stream struct {
	pcg rand.PCG
	rng *rand.Rand
}

// At moves the stream to the start of (seed, round, purpose) and returns its generator, which is valid until the next
// call of At.
func (s *Stream) At(seed uint64, round int, purpose Purpose) *rand.Rand {
	return s.Numbered(seed, uint64(round), purpose)
}

// Numbered is At for round numbers that may need 64 bits.
func (s *Stream) Numbered(seed, round uint64, purpose Purpose) *rand.Rand {
	if s.rng == nil {
		s.rng = rand.New(&s.pcg)
	}
	hi := mix(mix(seed) + uint64(purpose))
	lo := mix(hi + round)
	s.pcg.Seed(hi, lo)
	return s.rng
}

// New returns a generator at the start of (seed, round, purpose).
func New(seed uint64, round int, purpose Purpose) *rand.Rand {
	return new(Stream).At(seed, round, purpose)
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014) after one step of its Weyl sequence.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
