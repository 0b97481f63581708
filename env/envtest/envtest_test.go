package envtest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/utility"
)

const items, features = 8, 3

// sound returns a world that keeps the contract.
func sound() *env.World {
	return &env.World{
		Items: items, Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{High: 1},
		Truth: env.NewFamily(utility.NewLinear(features, true), -1, 1, newRand(7)),
	}
}

// flawed is a sound world with one method replaced.
type flawed struct {
	*env.World
	context   func(rng *rand.Rand) *vitrine.Context
	utilities func(dst []float64, x *vitrine.Context)
}

func (w flawed) Context(rng *rand.Rand) *vitrine.Context {
	if w.context != nil {
		return w.context(rng)
	}
	return w.World.Context(rng)
}

func (w flawed) Utilities(dst []float64, x *vitrine.Context) {
	if w.utilities != nil {
		w.utilities(dst, x)
		return
	}
	w.World.Utilities(dst, x)
}

func TestBatteryAcceptsASoundWorld(t *testing.T) { TestEnvironment(t, sound(), items, features) }

// Each flawed world breaks one clause of the contract, and the battery reports it.
func TestBatteryFindsFlaws(t *testing.T) {
	s := sound()
	var (
		sink       []float64
		calls      atomic.Int64
		concurrent atomic.Int64
	)
	change := func(f func(x *vitrine.Context)) flawed {
		return flawed{World: s, context: func(rng *rand.Rand) *vitrine.Context {
			x := s.Context(rng)
			f(x)
			return x
		}}
	}
	stale := s.Context(newRand(9))
	cache := map[uint64]*vitrine.Context{}
	buffer := mat.NewDense(items, features, nil)
	for _, c := range []struct {
		flaw  string
		world env.Environment
		want  string // the clause and the beginning of the complaint
	}{
		{"an item is missing", change(func(x *vitrine.Context) {
			x.Features, x.Revenue = x.Features.Slice(0, items-1, 0, features).(*mat.Dense), nil
		}), "ContextsAreLawful: context has 7 items, want 8"},
		{"a feature is missing", change(func(x *vitrine.Context) {
			x.Features = x.Features.Slice(0, items, 0, features-1).(*mat.Dense)
		}), "ContextsAreLawful: context has 2 features an item, want 3"},
		{"a revenue is negative", change(func(x *vitrine.Context) { x.Revenue[2] = -1 }),
			"ContextsAreLawful: revenue of item 2 is -1"},
		{"a feature has no value", change(func(x *vitrine.Context) { x.Features.Set(1, 2, math.NaN()) }),
			"ContextsAreLawful: feature 2 of item 1 is NaN"},
		{"a generator of its own", change(func(x *vitrine.Context) { x.Features.Set(0, 0, float64(calls.Add(1))) }),
			"ContextsComeFromRng: one state of rng gave two contexts"},
		{"one context for all", flawed{World: s, context: func(*rand.Rand) *vitrine.Context { return stale }},
			"ContextsComeFromRng: draws in a row gave the same context"},
		{"contexts share a buffer", change(func(x *vitrine.Context) {
			buffer.Copy(x.Features)
			x.Features = buffer
		}), "ContextsAreTheCallers: two contexts share memory"},
		{"contexts are cached", flawed{World: s, context: func(rng *rand.Rand) *vitrine.Context {
			key := rng.Uint64()
			if cache[key] == nil {
				cache[key] = s.Context(rng)
			}
			return cache[key]
		}}, "ContextsAreTheCallers: the world shares memory with its context"},
		{"utilities overflow", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			s.Utilities(dst, x)
			dst[3] = math.Inf(1)
		}}, "UtilitiesAreFinite: utility of item 3 is +Inf"},
		{"utilities are noisy", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			s.Utilities(dst, x)
			dst[0] += float64(calls.Add(1))
		}}, "UtilitiesAreRepeatable: utilities are"},
		{"utilities are added to the destination", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			u := make([]float64, len(dst))
			s.Utilities(u, x)
			for i, v := range u {
				dst[i] += v
			}
		}}, "UtilitiesAreRepeatable: utilities are"},
		{"utilities are centred", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			s.Utilities(dst, x)
			mean := 0.0
			for _, v := range dst {
				mean += v / float64(len(dst))
			}
			for i := range dst {
				dst[i] -= mean
			}
		}}, "BatchIsSingleItems: utility of item 0"},
		{"the first item is always there", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			x.Features.RawRowView(0)
			s.Utilities(dst, x)
		}}, "NoItemsAreLawful: a call of Utilities without items panics"},
		{"features are scaled in place", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			x.Features.Scale(2, x.Features)
			s.Utilities(dst, x)
		}}, "ContextIsKept: a call of Utilities changed its context"},
		{"revenues are scaled in place", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			s.Utilities(dst, x)
			x.Revenue[0] /= 2
		}}, "ContextIsKept: a call of Utilities changed its context"},
		{"a long destination is accepted", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			s.Utilities(dst[:min(len(dst), x.NumItems())], x)
		}}, "WrongShapesPanic: a call of Utilities with too many items"},
		{"every call allocates", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			sink = make([]float64, len(dst))
			s.Utilities(sink, x)
			copy(dst, sink)
		}}, "NothingIsAllocated: a call of Utilities allocates 1 times"},
		// Simulates scratch shared between two calls, but without a data race, which would stop the race detector.
		{"calls disturb each other", flawed{World: s, utilities: func(dst []float64, x *vitrine.Context) {
			s.Utilities(dst, x)
			if concurrent.Add(1) > 4 {
				dst[0]++
			}
		}}, "ConcurrentCallsAgree: the same context got other utilities"},
		{"the round is drawn", unsteady{sound(), &calls},
			"RoundsAreRepeatable: the utilities of a round are not always the same"},
	} {
		t.Run(c.flaw, func(t *testing.T) {
			name, want, _ := strings.Cut(c.want, ": ")
			k := slices.IndexFunc(contract, func(c clause) bool { return c.name == name })
			if k < 0 {
				t.Fatalf("no clause %q", name)
			}
			expect.Prefix(contract[k].check(world{c.world, items, features}))(t, want, name)
		})
	}
}

// unsteady moves with each call rather than with the round.
type unsteady struct {
	*env.World
	calls *atomic.Int64
}

func (w unsteady) At(int) env.Environment {
	now := *w.World
	now.Truth = env.NewFamily(utility.NewLinear(features, true), -1, 1, newRand(uint64(w.calls.Add(1))))
	return &now
}
