package imdb

import (
	"context"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/mle"
	"vitrine/utility"
)

// The paper describes the network's shape but not its training. These are the defaults in scikit-learn's MLPClassifier.
const (
	hidden = 32
	epochs = 200
	batch  = 200
	rate   = 1e-3
	ridge  = 1e-4 // for a batch's summed loss
)

// newModel returns the true utility's family: two layers, 32 hidden units.
func newModel(d int) *utility.MLP { return utility.NewMLP(d, []int{hidden}, utility.ReLU) }

// train returns model parameters that separate the rows of x with label 1 from those with label 0. A review is a round
// with a one-item assortment, which the customer takes if the label is 1. The MNL model is then logistic regression,
//
//	p(1 | x) = exp(f_w(x)) / (1 + exp(f_w(x)))
//
// and the loss is its negative log-likelihood, minimised by Adam in minibatches.
func train(ctx context.Context, m *utility.MLP, x *mat.Dense, label []int, rng *rand.Rand,
	progress func(epoch int)) ([]float64, error) {
	w := make([]float64, m.NumParams())
	m.Init(w, rng)
	b := &minibatches{
		ctx:      ctx,
		loss:     mle.NLL{Model: m, Choices: mle.NewChoices(m.NumFeatures()), Ridge: ridge},
		x:        x,
		label:    label,
		order:    rng.Perm(len(label)),
		rng:      rng,
		progress: progress,
	}
	steps := (len(label) + batch - 1) / batch
	mle.Adam{Rate: rate, Steps: epochs * steps}.Minimize(b, w)
	return w, ctx.Err()
}

// minibatches is the loss on part of the data, a different part for every evaluation, so that Adam's steps are
// stochastic. An epoch is a pass over all data in random order.
type minibatches struct {
	ctx      context.Context
	loss     mle.NLL
	x        *mat.Dense
	label    []int
	order    []int
	next     int // index in the random order
	epoch    int
	rng      *rand.Rand
	progress func(epoch int)
}

// Dim implements [mle.Objective].
func (b *minibatches) Dim() int { return b.loss.Dim() }

// Gradient implements [mle.Objective]. Once the context has ended, the gradient is zero, so that the remaining steps
// cost no time.
func (b *minibatches) Gradient(dst, w []float64) float64 {
	if b.ctx.Err() != nil {
		clear(dst)
		return 0
	}
	b.loss.Choices.Reset()
	end := min(b.next+batch, len(b.order))
	for k := b.next; k < end; k++ {
		item := vitrine.Assortment(b.order[k : k+1])
		b.loss.Choices.Append(b.x, item, vitrine.Choice(b.label[item[0]]))
	}
	if b.next = end; end == len(b.order) {
		b.next = 0
		b.epoch++
		b.rng.Shuffle(len(b.order), func(i, j int) { b.order[i], b.order[j] = b.order[j], b.order[i] })
		b.progress(b.epoch)
	}
	return b.loss.Gradient(dst, w)
}
