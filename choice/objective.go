package choice

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"vitrine/internal/kernel"
	"vitrine/internal/panics"
)

// likelihood is a family of models of choice: its parameters, and workers that evaluate it on
// blocks.
type likelihood interface {
	names() []string
	worker() worker
}

// penalised is a likelihood with a penalty.
type penalised interface {
	// penalty returns the penalty at θ, and adds it and its derivatives to s unless that is nil.
	penalty(s *sums, theta []float64) float64
}

// worker evaluates a likelihood for one goroutine, with scratch of its own.
type worker interface {
	// add adds a block's part of the negative log-likelihood at θ to s.
	add(s *sums, b *block, theta []float64)
	// scores stores in row s of dst, which is choices × parameters, the gradient in θ of the
	// log-likelihood of choice s, without its weight.
	scores(dst []float64, b *block, theta []float64)
	// probabilities stores in p the probability of each row of the block, and in out and logsum for
	// each choice that of the outside option and the expected largest utility.
	probabilities(p, out, logsum []float64, b *block, theta []float64)
}

// sums are parts of the negative log-likelihood ℓ(θ) = −Σ_s w_s log p(chosen_s).
type sums struct {
	value    float64
	gradient []float64 // nil if it is not asked for
	hessian  []float64 // packed upper triangle; nil if it is not asked for
	moment   []float64 // with the Hessian: the positive part of its diagonal, before rounding
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

// order is the highest derivative that is wanted.
type order int

const (
	zeroth order = iota
	first
	second
)

// objective is the negative log-likelihood of data.
type objective struct {
	likelihood
	blocks  []*block
	workers int // 0 for one for each processor
	dim     int
}

func newObjective(l likelihood, d *Data, workers int) *objective {
	return &objective{l, d.blocks, workers, len(l.names())}
}

// parts is the number of partial sums, which are added in their order: the sum is the same with
// any number of workers.
const parts = 64

// at returns ℓ(θ) and its derivatives of up to an order. It returns the error of ctx.
func (o *objective) at(ctx context.Context, theta []float64, want order) (*sums, error) {
	partial := make([]*sums, min(parts, len(o.blocks)))
	err := o.each(ctx, len(partial), func(w worker, k int) {
		partial[k] = newSums(o.dim, want)
		for i := k * len(o.blocks) / len(partial); i < (k+1)*len(o.blocks)/len(partial); i++ {
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

// each calls f for 0 ≤ k < n, each worker from a goroutine of its own.
func (o *objective) each(ctx context.Context, n int, f func(w worker, k int)) error {
	workers := cmp.Or(o.workers, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var group sync.WaitGroup
	var catcher panics.Catcher
	for range min(workers, n) {
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

// thin returns the objective of every k-th block.
func (o *objective) thin(k int) *objective {
	thin := &objective{o.likelihood, nil, o.workers, o.dim}
	for i := 0; i < len(o.blocks); i += k {
		thin.blocks = append(thin.blocks, o.blocks[i])
	}
	return thin
}
