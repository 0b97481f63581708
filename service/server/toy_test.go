package server_test

import (
	"context"
	"encoding"
	"math/rand/v2"
	"strings"

	"vitrine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// brokenUnder builds learners with a policy that panics under a name, and others as usual.
func brokenUnder(name string) func(setup.Spec) (vitrine.Learner, error) {
	return func(s setup.Spec) (vitrine.Learner, error) {
		if strings.Contains(string(s.Policy), name) {
			return broken{}, nil
		}
		return setup.NewLearner(s)
	}
}

type broken struct{}

func (broken) Policy() vitrine.Policy                                 { return broken{} }
func (broken) Observe(vitrine.Round) error                            { return nil }
func (broken) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer { panic("boom") }
func (broken) MarshalBinary() ([]byte, error)                         { return nil, nil }
func (broken) UnmarshalBinary([]byte) error                           { return nil }

// gatedStore is a log with appends that wait for the gate, if any.
type gatedStore struct {
	memlog.Store
	gate    chan struct{}
	waiting chan struct{} // receives a value for each append that waits
}

func (s *gatedStore) Append(ctx context.Context, entries ...[]byte) (uint64, error) {
	if s.gate != nil {
		s.waiting <- struct{}{}
		<-s.gate
	}
	return s.Store.Append(ctx, entries...)
}

// offers builds learners with policies that call offered before each offer.
type offers struct{ offered func() }

func (c *offers) build(s setup.Spec) (vitrine.Learner, error) {
	l, err := setup.NewLearner(s)
	if err != nil {
		return nil, err
	}
	return &offering{l.(saver), c}, nil
}

// saver is a learner that can be saved.
type saver interface {
	vitrine.Learner
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

type offering struct {
	saver
	offers *offers
}

func (l *offering) Policy() vitrine.Policy { return offeringPolicy{l.saver.Policy(), l.offers} }

type offeringPolicy struct {
	vitrine.Policy
	offers *offers
}

func (p offeringPolicy) Offer(x *vitrine.Context, rng *rand.Rand) vitrine.Offer {
	p.offers.offered()
	return p.Policy.Offer(x, rng)
}
