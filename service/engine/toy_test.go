package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"vitrine"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/setup"
)

// toy is a predictable learner: its one number moves with every round, and it shows the items with the nearest first
// feature.
type toy struct {
	size   int
	level  float64
	before func(x *vitrine.Context) // called before Observe, or nil
}

// Items with these first features make a toy panic, or refuse the round.
const (
	poison = 13
	sour   = 17
)

var errSour = errors.New("sour")

func (l *toy) Observe(r vitrine.Round) error {
	if l.before != nil {
		l.before(r.Context)
	}
	for _, i := range r.Offer.Assortment {
		if r.Context.Features.At(i, 0) == sour {
			return errSour // unchanged
		}
	}
	for k, i := range r.Offer.Assortment {
		x := r.Context.Features.At(i, 0)
		l.level = 0.75*l.level + x // half done when it panics
		if x == poison {
			panic(fmt.Sprint("poison at position ", k))
		}
		if int(r.Choice) == k+1 {
			l.level += 0.1
		}
	}
	for _, c := range r.More {
		l.level += 0.01 * float64(c)
	}
	return nil
}

func (l *toy) Policy() vitrine.Policy { return near{l.size, l.level} }

func (l *toy) MarshalBinary() ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, math.Float64bits(l.level)), nil
}

func (l *toy) UnmarshalBinary(data []byte) error {
	if len(data) != 8 {
		return errors.New("not of a toy")
	}
	l.level = math.Float64frombits(binary.BigEndian.Uint64(data))
	return nil
}

type near struct {
	size  int
	level float64
}

func (p near) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer {
	gain := make([]float64, x.NumItems())
	for i := range gain {
		gain[i] = 1 / (1 + math.Abs(x.Features.At(i, 0)-p.level))
	}
	return vitrine.Offer{Assortment: x.Feasible.MaxGain(nil, gain), Propensity: 1}
}

func (p near) Utilities(dst []float64, x *vitrine.Context) {
	for i := range dst {
		dst[i] = -math.Abs(x.Features.At(i, 0) - p.level)
	}
}

func buildToy(s setup.Spec) (vitrine.Learner, error) {
	if string(s.Policy) == `{"name":"none"}` {
		return nil, errors.New("there is no such toy")
	}
	return &toy{size: s.Size}, nil
}

// gated builds toys that stop in Observe until the gate is opened.
func gated(gate chan struct{}, waiting *atomic.Int64) func(setup.Spec) (vitrine.Learner, error) {
	return func(s setup.Spec) (vitrine.Learner, error) {
		return &toy{size: s.Size, before: func(*vitrine.Context) {
			waiting.Add(1)
			<-gate
		}}, nil
	}
}

// always offers one set, whatever is asked.
type always struct {
	toy
	offer func(x *vitrine.Context) vitrine.Offer
}

func (a *always) Policy() vitrine.Policy { return a }

func (a *always) Offer(x *vitrine.Context, _ *rand.Rand) vitrine.Offer { return a.offer(x) }

// unnamed is a log without an identity, so that its entries need not match a snapshot's.
type unnamed struct{ *memlog.Store }

func (s unnamed) Position(ctx context.Context, sequence uint64) (eventlog.Position, error) {
	p, err := s.Store.Position(ctx, sequence)
	return eventlog.Position{Sequence: p.Sequence}, err
}

// named is a log of another identity.
type named struct{ *memlog.Store }

func (s named) Position(ctx context.Context, sequence uint64) (eventlog.Position, error) {
	p, err := s.Store.Position(ctx, sequence)
	p.Log[0]++
	return p, err
}
