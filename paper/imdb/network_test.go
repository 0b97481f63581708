package imdb

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/mle"
)

// spy is the family f_w(x) = w x. It remembers the x in every evaluation.
type spy struct{ seen []float64 }

func (*spy) NumFeatures() int                                    { return 1 }
func (*spy) NumParams() int                                      { return 1 }
func (*spy) Init([]float64, *rand.Rand)                          {}
func (*spy) Gradients(dst *mat.Dense, _ []float64, x *mat.Dense) { dst.Copy(x) }
func (s *spy) Utilities(dst, w []float64, x *mat.Dense) {
	s.seen = append(s.seen, mat.Col(nil, 0, x)...)
	for i := range dst {
		dst[i] = w[0] * x.At(i, 0)
	}
}

// An epoch visits all rows once, in batches and in random order, and a batch's loss is that batch's logistic regression
// loss.
func TestMinibatches(t *testing.T) {
	const n = 2*batch + 7
	x, label := mat.NewDense(n, 1, nil), make([]int, n)
	all, order := make([]float64, n), make([]int, n)
	for i := range n {
		all[i], label[i], order[i] = float64(i)/n, i%2, i
		x.Set(i, 0, all[i])
	}
	s, epochs := &spy{}, 0
	b := &minibatches{
		ctx:      context.Background(),
		loss:     mle.NLL{Model: s, Choices: mle.NewChoices(1)},
		x:        x,
		label:    label,
		order:    order,
		rng:      rand.New(rand.NewPCG(1, 1)),
		progress: func(epoch int) { epochs = epoch },
	}
	var previous []float64
	for epoch := range 3 {
		s.seen = nil
		for k, size := range []int{batch, batch, 7} {
			var gradient [1]float64
			before := len(s.seen)
			loss := b.Gradient(gradient[:], []float64{1.5})
			seen := s.seen[before:]
			expect.Equal(fatal.T(t), len(seen), size, "batch", k, "has n rows")
			want := [2]float64{}
			for _, x := range seen {
				sign := float64(1 - 2*(int(math.Round(x*n))%2))
				want[0] += math.Log1p(math.Exp(sign * 1.5 * x))
				want[1] += sign * x / (1 + math.Exp(-sign*1.5*x))
			}
			if !scalar.EqualWithinRel(loss, want[0], 1e-12) || !scalar.EqualWithinRel(gradient[0], want[1], 1e-12) {
				t.Errorf("batch %d has loss %v and gradient %v, want %v", k, loss, gradient[0], want)
			}
		}
		if slices.Equal(s.seen, previous) {
			t.Error("two epochs in the same order")
		}
		previous = slices.Clone(s.seen)
		expect.Equal(t, slices.Sorted(slices.Values(s.seen)), all, "rows of an epoch")
		if epochs != epoch+1 {
			t.Errorf("progress says epoch %d after %d", epochs, epoch+1)
		}
	}
}
