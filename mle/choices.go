// Package mle holds the likelihoods of observed choices under the MNL model and their minimisers.
//
// There are two likelihoods: [NLL] for any utility family f_w, and [Affine] for utilities that are affine in w, such as
// linear models and linearised networks. Both include the outside option: a round in which nobody buys counts. [Adam]
// and [LevenbergMarquardt] minimise the first, [Newton] and [Online] the second. Around a minimum of the first,
// [Laplace] approximates the posterior and its evidence, and a [ScoreTest] searches for units that would increase the
// evidence.
//
// The Fields methods serve the snapshots of package bandit. Their argument is of an internal package's type, so other
// modules cannot call them.
package mle

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/internal/kernel"
	"vitrine/internal/portable"
)

// Choices holds observed choices among items of d features: the feature rows of the offered items, round after round.
type Choices struct {
	d        int
	features []float64 // n×d
	outcomes
}

// NewChoices returns an empty set of choices among items of d features.
func NewChoices(d int) *Choices { return &Choices{d: d} }

// Append adds a round with choice y, and any further takes, among the rows s of x. It panics, and adds nothing, unless
// x has these rows of d features, y is a position in S∪{0}, and the further takes are positions in S after a y in S.
func (c *Choices) Append(x *mat.Dense, s vitrine.Assortment, y vitrine.Choice, more ...vitrine.Choice) {
	if len(s) > 0 {
		c.checkWidth(x)
	}
	checkTakes(len(s), y, more)
	features := c.features
	for _, i := range s {
		features = append(features, x.RawRowView(i)...)
	}
	c.features = features
	c.append(len(s), y, slices.Clone(more))
}

// AppendRows adds a round that offered all rows of x, or no item if x is nil. It panics as Append does.
func (c *Choices) AppendRows(x *mat.Dense, y vitrine.Choice, more ...vitrine.Choice) {
	n := 0
	if x != nil {
		c.checkWidth(x)
		n, _ = x.Dims()
	}
	checkTakes(n, y, more)
	for i := range n {
		c.features = append(c.features, x.RawRowView(i)...)
	}
	c.append(n, y, slices.Clone(more))
}

// checkWidth panics unless x is d columns wide.
func (c *Choices) checkWidth(x *mat.Dense) {
	if _, d := x.Dims(); d != c.d {
		panic(fmt.Sprintf("mle: a round of %d features an item for choices of %d", d, c.d))
	}
}

// checkTakes panics unless y is a position in S∪{0} for an assortment of the given size, and more are positions in S,
// or empty if y is the outside option.
func checkTakes(size int, y vitrine.Choice, more []vitrine.Choice) {
	if y < vitrine.Outside || int(y) > size {
		panic(fmt.Sprintf("mle: choice %d is not a position in an assortment of %d items (0 is the outside option)",
			y, size))
	}
	for _, c := range more {
		if y == vitrine.Outside || c <= vitrine.Outside || int(c) > size {
			panic(fmt.Sprintf("mle: further take %d after choice %d in an assortment of %d items", c, y, size))
		}
	}
}

// Round returns only round s. It shares memory with c and must not be changed.
func (c *Choices) Round(s int) *Choices {
	from, to := c.start(s), c.end[s]
	round := &Choices{d: c.d, features: c.features[from*c.d : to*c.d],
		outcomes: outcomes{end: []int{to - from}, choice: c.choice[s : s+1]}}
	if s < len(c.more) {
		round.more = c.more[s : s+1]
	}
	return round
}

// Choice returns the choice made in round s.
func (c *Choices) Choice(s int) vitrine.Choice { return c.choice[s] }

// More returns the further takes of round s. They share memory with c and must not be changed.
func (c *Choices) More(s int) []vitrine.Choice { return c.further(s) }

// Features returns the n×d matrix of all rows, or nil if there are no rows. It shares memory with c and must not be
// changed.
func (c *Choices) Features() *mat.Dense {
	if c.Rows() == 0 {
		return nil
	}
	return mat.NewDense(c.Rows(), c.d, c.features)
}

// blockRounds is the number of rounds for which a likelihood holds gradients at a time.
const blockRounds = 1024

// blocks returns the rounds in blocks [from, to) of at most blockRounds, skipping blocks in which no item was offered.
func (c *Choices) blocks() iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		for from := 0; from < c.Rounds(); from += blockRounds {
			to := min(from+blockRounds, c.Rounds())
			if c.end[to-1] > c.start(from) && !yield(from, to) {
				return
			}
		}
	}
}

// rows returns the rows of the rounds [from, to), which must offer at least one item. They share memory with c.
func (c *Choices) rows(from, to int) *mat.Dense {
	lo, hi := c.start(from), c.end[to-1]
	return mat.NewDense(hi-lo, c.d, c.features[lo*c.d:hi*c.d])
}

// Slice returns the rounds [from, to). They share their features with c and must not be changed. Rounds appended to c
// later do not appear in the slice.
func (c *Choices) Slice(from, to int) *Choices {
	lo, hi := c.start(from), c.start(to)
	s := &Choices{d: c.d, features: c.features[lo*c.d : hi*c.d : hi*c.d]}
	for k := from; k < to; k++ {
		s.append(c.end[k]-c.start(k), c.choice[k], c.further(k))
	}
	return s
}

// Sample copies n rounds, evenly spaced, starting at offset and wrapping around. If c contains at most n rounds, Sample
// returns c itself.
func (c *Choices) Sample(n, offset int) *Choices {
	rounds := c.Rounds()
	if rounds <= n {
		return c
	}
	sample := c.Room(n)
	for k := range n {
		s := (k*rounds/n + offset) % rounds
		sample.features = append(sample.features, c.features[c.start(s)*c.d:c.end[s]*c.d]...)
		sample.append(c.end[s]-c.start(s), c.choice[s], c.further(s))
	}
	return sample
}

// Drop forgets the first n rounds and moves the others to their place. Anything that shares memory with c becomes
// invalid.
func (c *Choices) Drop(n int) {
	rows := c.start(n)
	c.features = append(c.features[:0], c.features[rows*c.d:]...)
	c.choice = append(c.choice[:0], c.choice[n:]...)
	c.more = slices.Delete(c.more, 0, min(n, len(c.more)))
	c.end = append(c.end[:0], c.end[n:]...)
	for s := range c.end {
		c.end[s] -= rows
	}
}

// HasRoom reports whether the memory of c could hold the given number of rounds of the average size so far.
func (c *Choices) HasRoom(rounds int) bool { return cap(c.features) >= c.size(rounds) }

// Room returns an empty set with room for the given number of rounds of c's average size. It shares no memory with c.
func (c *Choices) Room(rounds int) *Choices {
	return &Choices{d: c.d, features: slices.Grow([]float64(nil), c.size(rounds))}
}

// size returns the expected number of features in the given number of rounds, from the average so far.
func (c *Choices) size(rounds int) int {
	if c.Rounds() == 0 {
		return 0
	}
	return int(math.Ceil(float64(len(c.features)) / float64(c.Rounds()) * float64(rounds)))
}

// AppendAll adds all rounds of o. Items in o and c must be equally wide.
func (c *Choices) AppendAll(o *Choices) {
	c.features = append(c.features, o.features...)
	for s, y := range o.choice {
		c.append(o.end[s]-o.start(s), y, o.further(s))
	}
}

// Transformed returns the choices after change has replaced the features of each item. They
// share the outcomes of c and must not be changed.
func (c *Choices) Transformed(change func(x []float64)) *Choices {
	z := &Choices{d: c.d, features: slices.Clone(c.features), outcomes: c.outcomes}
	for from := 0; from < len(z.features); from += c.d {
		change(z.features[from:][:c.d])
	}
	return z
}

// Reset forgets all rounds.
func (c *Choices) Reset() {
	c.features = c.features[:0]
	c.outcomes.reset()
}

// Fields encodes or decodes the choices.
func (c *Choices) Fields(f *fields.Fields) {
	f.Floats(&c.features)
	c.outcomes.fields(f, len(c.features), c.d)
}

// outcomes records how stacked rows divide into rounds, and the choice of each round.
type outcomes struct {
	end    []int // end[s] is one past the last row of round s
	choice []vitrine.Choice
	more   [][]vitrine.Choice // further takes of round s; it ends after the last round that has any
}

// Rounds returns the number of rounds.
func (o *outcomes) Rounds() int { return len(o.end) }

// Rows returns the number n of items offered, summed over all rounds.
func (o *outcomes) Rows() int {
	if len(o.end) == 0 {
		return 0
	}
	return o.end[len(o.end)-1]
}

func (o *outcomes) append(size int, y vitrine.Choice, more []vitrine.Choice) {
	o.end = append(o.end, o.Rows()+size)
	o.choice = append(o.choice, y)
	if len(more) > 0 {
		o.more = append(o.more, make([][]vitrine.Choice, len(o.choice)-len(o.more))...)
		o.more[len(o.more)-1] = more
	}
}

// further returns the takes of round s after the first.
func (o *outcomes) further(s int) []vitrine.Choice {
	if s < len(o.more) {
		return o.more[s]
	}
	return nil
}

func (o *outcomes) reset() { o.end, o.choice, o.more = o.end[:0], o.choice[:0], nil }

// start returns the first row of round s.
func (o *outcomes) start(s int) int {
	if s == 0 {
		return 0
	}
	return o.end[s-1]
}

// loss returns −Σ_s log p(i_s | S_s) of the rounds [from, to), given the utilities u of their rows. A round with
// further takes c_2, …, c_m contributes −log p(i_s | S_s) − Σ_k log q(c_k | S_s), where q(i | S) = p(i | S) / (1 − p(0
// | S)).
func (o *outcomes) loss(u []float64, from, to int) float64 {
	loss := 0.0
	base := o.start(from)
	for s := from; s < to; s++ {
		us := u[o.start(s)-base : o.end[s]-base]
		loss += kernel.LogSumExp1(us)
		if y := o.choice[s]; y != vitrine.Outside {
			loss -= us[y-1]
		}
		if more := o.further(s); len(more) > 0 {
			all := kernel.LogSumExp(us)
			for _, y := range more {
				loss += all - us[y-1]
			}
		}
	}
	return loss
}

// probabilities replaces the utilities u of the rounds [from, to) by the choice probabilities p(i | S_s), or by the
// expected takes of [kernel.Takes] in rounds with further takes. It stores p(0 | S_s) in out, of length to − from, and
// returns the loss.
func (o *outcomes) probabilities(u, out []float64, from, to int) float64 {
	base := o.start(from)
	loss := 0.0
	lo, run := 0, 0
	for s := from; s < to; s++ {
		us := u[lo : o.end[s]-base]
		lo += len(us)
		if y := o.choice[s]; y != vitrine.Outside {
			loss -= us[y-1]
		}
		if more := o.further(s); len(more) > 0 {
			for _, y := range more {
				loss -= us[y-1]
			}
			before := lo - len(us)
			kernel.Exp(u[run:before], u[run:before])
			run = lo
			logOutside, rest := kernel.Takes(us, len(more))
			out[s-from] = logOutside
			loss += rest
			continue
		}
		m := 0.0
		for _, v := range us {
			if v > m {
				m = v
			}
		}
		for k := range us {
			us[k] -= m
		}
		out[s-from] = -m
		loss += m
	}
	kernel.Exp(u[run:lo], u[run:lo])
	kernel.Exp(out, out)
	// The sums lie between 1 and 1 + |S_s|. Taking one logarithm of their product is cheaper than taking one of each.
	product := 1.0
	lo = 0
	for s := from; s < to; s++ {
		ps := u[lo : o.end[s]-base]
		lo += len(ps)
		if len(o.further(s)) > 0 {
			continue
		}
		sum := out[s-from]
		for _, v := range ps {
			sum += v
		}
		scale := 1 / sum
		for k := range ps {
			ps[k] *= scale
		}
		out[s-from] *= scale
		if product *= sum; product > 1e150 {
			loss += portable.Log(product)
			product = 1
		}
	}
	return loss + portable.Log(product)
}

// residuals calls probabilities and then subtracts the indicator of the choice: u becomes p − y, the gradient of the
// loss in the utilities. With further takes it is the expected takes less the takes.
func (o *outcomes) residuals(u, out []float64, from, to int) float64 {
	loss := o.probabilities(u, out, from, to)
	o.subtractChoices(u, from, to)
	return loss
}

// subtractChoices subtracts the indicators of the choices from the rows' probabilities.
func (o *outcomes) subtractChoices(p []float64, from, to int) {
	base := o.start(from)
	for s := from; s < to; s++ {
		if y := o.choice[s]; y != vitrine.Outside {
			p[o.start(s)-base+int(y)-1]--
		}
		for _, y := range o.further(s) {
			p[o.start(s)-base+int(y)-1]--
		}
	}
}

// addFisher adds the information of the rounds [from, to) to the packed d×d matrix h. g holds the gradients of the
// rows' utilities and p what probabilities stored:
//
//	Σ_s (Σ_{i∈S_s} p_i g_i g_iᵀ − c_s ḡ_s ḡ_sᵀ),  ḡ_s = Σ_{i∈S_s} p_i g_i
//
// with c_s of [kernel.Shrinkage], which is 1 without further takes.
// mean is scratch of length d.
func (o *outcomes) addFisher(h, p, g, mean []float64, from, to int) {
	base, d := o.start(from), len(mean)
	rows := o.end[to-1] - base
	kernel.SymRankK(h, p, g, rows, d)
	for s := from; s < to; s++ {
		lo, hi := o.start(s)-base, o.end[s]-base
		clear(mean)
		kernel.GemvTrans(mean, g[lo*d:hi*d], p[lo:hi], hi-lo, d)
		kernel.SymRankOne(h, -o.shrinkage(s, p[lo:hi]), mean)
	}
}

// shrinkage returns the c_s of round s, in which p is what probabilities stored.
func (o *outcomes) shrinkage(s int, p []float64) float64 {
	return kernel.Shrinkage(p, len(o.further(s)))
}

// fields encodes or decodes the outcomes for stacked data of the given length, with rows of the given width. A further
// take follows its round as a round without rows, but with a choice.
func (o *outcomes) fields(f *fields.Fields, length, width int) {
	end, choice := o.end, o.choice
	if !f.Reads() && len(o.more) > 0 {
		end, choice = nil, nil
		for s, e := range o.end {
			for _, y := range append([]vitrine.Choice{o.choice[s]}, o.further(s)...) {
				end, choice = append(end, e), append(choice, y)
			}
		}
	}
	fields.Integers(f, &end)
	if !f.Reads() {
		fields.Elements(f, choice)
		return
	}
	choice = make([]vitrine.Choice, len(end))
	fields.Elements(f, choice)
	*o = outcomes{}
	for k, e := range end {
		y, size, last := choice[k], e-o.Rows(), len(o.end)-1
		if size == 0 && y != vitrine.Outside && last >= 0 && o.choice[last] != vitrine.Outside {
			f.Check(int(y) <= e-o.start(last), "a further take %d of a round of %d items", int(y), e-o.start(last))
			o.more = append(o.more, make([][]vitrine.Choice, last+1-len(o.more))...)
			o.more[last] = append(o.more[last], y)
			continue
		}
		f.Check(size >= 0 && e <= length/width && int(y) <= size,
			"a round ends at row %d with choice %d, after row %d", e, int(y), o.Rows())
		o.append(max(size, 0), y, nil)
	}
	f.Check(o.Rows()*width == length, "%d numbers for %d rows of %d", length, o.Rows(), width)
}
