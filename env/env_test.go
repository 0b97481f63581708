package env_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/env"
	"vitrine/env/envtest"
	"vitrine/utility"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 21)) }

// realizable returns the truth of the paper's realizable setting.
func realizable(seed uint64) *env.Family {
	return env.NewFamily(utility.NewMLP(3, []int{3}, utility.Sigmoid), -1, 1, newRand(seed))
}

func TestWorldsKeepTheContract(t *testing.T) {
	for name, w := range map[string]*env.World{
		"realizable Gaussian": {Contexts: env.Gaussian{}, Truth: realizable(1), Revenues: env.One{}},
		"misspecified uniform": {
			Contexts: env.Uniform{Low: -3, High: 3}, Truth: env.NewCosine(3, 0, newRand(2)), Revenues: env.One{},
		},
		"linear, with revenues": {
			Contexts: env.Gaussian{}, Revenues: env.UniformRevenue{High: 1},
			Truth: env.NewFamily(utility.NewLinear(3, true), -1, 1, newRand(3)),
		},
		"deep": {
			Contexts: env.Gaussian{}, Revenues: env.One{},
			Truth: env.NewFamily(utility.NewMLP(3, []int{7, 5}, utility.Tanh), -1, 1, newRand(4)),
		},
		"the linear bandits'": {
			Contexts: env.ClippedGaussian{Bound: 1 / math.Sqrt(3)}, Revenues: env.UniformRevenue{High: 1},
			Truth: env.NewFamily(utility.NewLinear(3, false), -1, 1, newRand(11)).Within(1),
		},
		"product":   {Contexts: env.Gaussian{}, Revenues: env.One{}, Truth: env.NewProduct(3, newRand(5))},
		"threshold": {Contexts: env.Gaussian{}, Revenues: env.One{}, Truth: env.NewThreshold(3, newRand(6))},
		"radial":    {Contexts: env.Gaussian{}, Revenues: env.One{}, Truth: env.NewRadial(3, newRand(7))},
		"abs":       {Contexts: env.Gaussian{}, Revenues: env.One{}, Truth: env.NewAbs(3, newRand(12))},
		"needle":    {Contexts: env.Gaussian{}, Revenues: env.One{}, Truth: env.NewNeedle(3, newRand(13))},
		"sawtooth":  {Contexts: env.StudentT{Degrees: 2}, Revenues: env.One{}, Truth: env.NewSawtooth(3, newRand(14))},
		"segments":  {Contexts: env.Visits{}, Revenues: env.One{}, Truth: env.NewSegments(3, false, newRand(15))},
		"shifted": {Contexts: env.Gaussian{}, Revenues: env.One{},
			Truth: env.Shifted{Truth: env.NewSparse(3, 2, newRand(16)), By: -4}},
		"rotation": {
			Contexts: env.Gaussian{}, Revenues: env.One{},
			Truth: env.NewRotation(env.NewCosine(3, 0, newRand(8)), 0.01, newRand(9)),
		},
		"step": {
			Contexts: env.Gaussian{}, Revenues: env.One{},
			Truth: envtest.Step{Truth: realizable(1), After: env.NewRadial(3, newRand(10)), From: 5},
		},
	} {
		w.Items = 100
		t.Run(name, func(t *testing.T) { envtest.TestEnvironment(t, w, 100, 3) })
	}
}

// Worlds that differ only in their revenues draw the same features, so they can be compared in pairs.
func TestRevenuesLeaveTheFeaturesAlone(t *testing.T) {
	one := &env.World{Items: 10, Contexts: env.Gaussian{}, Truth: realizable(1), Revenues: env.One{}}
	want := one.Context(newRand(5)).Features
	for _, law := range []env.Revenues{env.UniformRevenue{High: 1}, nil} {
		other := *one
		other.Revenues = law
		if !mat.Equal(other.Context(newRand(5)).Features, want) {
			t.Errorf("the law of revenues %v gave other features", law)
		}
	}
}

// At the paper's size, a context allocates little more than its matrix.
func TestContextAllocatesItsMatrix(t *testing.T) {
	w := &env.World{Items: 100, Contexts: env.Gaussian{}, Truth: realizable(1), Revenues: env.One{}}
	rng := newRand(6)
	if got := testing.AllocsPerRun(100, func() { w.Context(rng) }); got > 3 {
		t.Errorf("Context allocates %v times, want the context, the matrix and its data", got)
	}
}

// One round at the size of the paper's panels.
func BenchmarkWorld(b *testing.B) {
	w := &env.World{Items: 100, Contexts: env.Gaussian{}, Truth: realizable(1), Revenues: env.One{}}
	rng, u := newRand(7), make([]float64, 100)
	x := w.Context(rng)
	b.Run("Context", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Context(rng)
		}
	})
	for _, c := range []struct {
		name  string
		truth env.Truth
	}{{"realizable", realizable(1)}, {"misspecified", env.NewCosine(3, 0, newRand(2))}} {
		b.Run("Utilities/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.truth.Utilities(u, x.Features)
			}
		})
	}
}
