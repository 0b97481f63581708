package choice

import (
	"context"
	"sync"
	"sync/atomic"

	"vitrine/internal/kernel"
	"vitrine/internal/panics"
	"vitrine/internal/parallel"
)

// likelihood is a family of choice models: its parameters, and workers that evaluate it on blocks.
type likelihood interface {
	names() []string
	worker() worker
}

// penalised is a likelihood with a penalty.
type penalised interface {
	// penalty returns the penalty at θ. Unless s is nil, it adds the penalty and its derivatives to s.
	penalty(s *sums, theta []float64) float64
}

// worker evaluates a likelihood in one goroutine, with its own scratch memory.
type worker interface {
	// add adds a block's part of the negative log-likelihood at θ to s.
	add(s *sums, b *block, theta []float64)
	// scores stores the scores in dst, choices × parameters: row s is the gradient in θ of choice s's log-likelihood,
	// without its weight.
	scores(dst []float64, b *block, theta []float64)
	// probabilities stores each row's probability in p. For each choice it stores the outside option's probability in
	// out and the expected largest utility in logsum.
	probabilities(p, out, logsum []float64, b *block, theta []float64)
}

// sums holds partial sums of the negative log-likelihood ℓ(θ) = −Σ_s w_s log p(chosen_s).
type sums struct {
	value    float64
	gradient []float64 // nil if not wanted
	hessian  []float64 // packed upper triangle; nil if not wanted
	moment   []float64 // along with the Hessian: the positive part of its diagonal, before rounding
}

func newSums(dim int, want order) *sums {
	s := &sums{}
	if want >= first {
		s.gradient = make([]float64, dim)
	}
	if want >= second {
		s.hessian, s.moment = make([]float64, kernel.PackedLen(dim)), make([]float64, dim)
	}
	return s
}

// order is the highest derivative wanted.
type order int

const (
	zeroth order = iota
	first
	second
)

// objective is the negative log-likelihood on data.
type objective struct {
	likelihood
	blocks  []*block
	workers int // 0 means one per processor
	dim     int
}

func newObjective(l likelihood, d *Data, workers int) *objective {
	return &objective{l, d.blocks, workers, len(l.names())}
}

// parts is the number of partial sums. They are added in order, so that the sum is the same for any number of workers.
const parts = 64

// at returns ℓ(θ) and its derivatives up to an order, or ctx's error.
func (o *objective) at(ctx context.Context, theta []float64, want order) (*sums, error) {
	partial := make([]*sums, min(parts, len(o.blocks)))
	err := o.each(ctx, len(partial), func(w worker, k int) {
		partial[k] = newSums(o.dim, want)
		for i := k * len(o.blocks) / len(partial); i < (k+1)*len(o.blocks)/len(partial) && ctx.Err() == nil; i++ {
			w.add(partial[k], o.blocks[i], theta)
		}
	})
	if err != nil {
		return nil, err
	}
	total := partial[0]
	for _, p := range partial[1:] {
		total.value += p.value
		kernel.Axpy(total.gradient, 1, p.gradient)
		kernel.Axpy(total.hessian, 1, p.hessian)
		kernel.Axpy(total.moment, 1, p.moment)
	}
	if l, ok := o.likelihood.(penalised); ok {
		l.penalty(total, theta)
	}
	return total, nil
}

// each calls f for 0 ≤ k < n, with one goroutine per worker.
func (o *objective) each(ctx context.Context, n int, f func(w worker, k int)) error {
	var next atomic.Int64
	var group sync.WaitGroup
	var catcher panics.Catcher
	for range parallel.Workers(o.workers, n) {
		group.Go(func() {
			defer catcher.Catch()
			w := o.worker()
			for k := int(next.Add(1)) - 1; k < n && ctx.Err() == nil; k = int(next.Add(1)) - 1 {
				f(w, k)
			}
		})
	}
	group.Wait()
	catcher.Repanic()
	return ctx.Err()
}

// thin returns the objective on every k-th block.
func (o *objective) thin(k int) *objective {
	thin := &objective{o.likelihood, nil, o.workers, o.dim}
	for i := 0; i < len(o.blocks); i += k {
		thin.blocks = append(thin.blocks, o.blocks[i])
	}
	return thin
}
