package setup

import (
	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/bandit/policy"
	"vitrine/internal/stream"
)

// Spec says how to build a placement's learner.
type Spec struct {
	Policy   []byte // JSON, as configured
	Features int    // d, the width of a row
	Numeric  []int  // the columns that are numbers and not indicators; nil if that is not known
	Customer []int  // the columns that are the user's; nil if that is not known
	Size     int    // K
	Items    int    // the largest N of a request
	All      bool   // rounds contain the rows of all N items, not only of the items shown
	Rounds   int    // T
	Seed     uint64
}

// Size is the memory of a learner in bytes.
type Size struct {
	Learner int64 // the learner and its policies
	State   int64 // its saved state
}

// NewLearner builds the learner of a placement. The policy is a JSON object, {"name": "onl-mnl", "lambda": 3,
// …}, with the keys of a [[policy]] in an experiment's file.
func NewLearner(s Spec) (vitrine.Learner, error) {
	_, made, err := policy.Read(s.Policy, s.problem(), s.All)
	if err != nil {
		return nil, err
	}
	return made.New(stream.New(s.Seed, 0, stream.Learner))
}

// LearnerSize returns the size of a placement's learner without building it. It returns the errors of
// NewLearner for the policy's text.
func LearnerSize(s Spec) (Size, error) {
	p, made, err := policy.Read(s.Policy, s.problem(), s.All)
	if err != nil {
		return Size{}, err
	}
	size := func(matrices float64) int64 { return int64(min(8*matrices*made.Squares, 1<<50)) }
	return Size{Learner: size(p.Matrices.Live), State: size(p.Matrices.Saved)}, nil
}

func (s Spec) problem() bandit.Problem {
	return bandit.Problem{
		NumFeatures: s.Features, Numeric: s.Numeric, Customer: s.Customer, Items: s.Items, MaxShown: s.Size,
		Rounds: s.Rounds, Constraint: assortment.AtMost(s.Size),
	}
}
