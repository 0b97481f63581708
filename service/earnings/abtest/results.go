package abtest

import (
	"slices"

	"vitrine/internal/confseq"
	"vitrine/internal/precise"
	"vitrine/service/earnings"
)

// Results hold the earnings of an experiment's variants.
//
// The difference of two variants is the mean D of their [earnings.Contrast] over the decisions made while both had a
// share. P and Q are the shares at that time, and m is the mean revenue before it. Every pair keeps its own D: if one
// of its variants was without a share for a while, it counts fewer decisions than other pairs.
//
// This is enough for units with one decision each. A returning unit stays in its variant, and then the D of its
// decisions are not independent. V_n, the sum of their squares, is therefore at least the sum of squares by buckets,
//
//	V = Σ_b (Σ_{t in b} (D_t − D̄))²
//
// as in cluster-robust standard errors: with independent decisions both have the same expectation. The intervals then
// use the same boundary with an estimated V. docs/experiments.md reports their coverage in simulations.
type Results struct {
	Mean     confseq.Mean // over all variants
	Variants []Earned
	Pairs    []confseq.Mean // D per pair: see pairOf
	Clusters []Cluster      // one per bucket
	All      float64        // Σ n² over clusters
}

// Earned holds one variant's earnings.
type Earned struct {
	Mean confseq.Mean
	Sum  Squares // for s = Σ x
	Part Squares // for s = Σ (x − m)/p
}

// Copy returns a deep copy.
func (r *Results) Copy() *Results {
	c := *r
	c.Variants, c.Pairs, c.Clusters = slices.Clone(r.Variants), slices.Clone(r.Pairs), slices.Clone(r.Clusters)
	return &c
}

// Copy returns a deep copy.
func (b *Block) Copy() *Block {
	c := *b
	c.Variants, c.Pairs = slices.Clone(b.Variants), slices.Clone(b.Pairs)
	return &c
}

// Squares sum over a variant's clusters. A cluster of n decisions contributes a sum s.
type Squares struct {
	SS, SN precise.Sum // Σ s², Σ s n
	NN     float64     // Σ n²
}

// Cluster sums a bucket's decisions since it joined its current variant.
type Cluster struct {
	N, Sum, Part float64
}

// NewResults returns empty results for a number of variants.
func NewResults(variants int) *Results {
	r := newResults(variants)
	r.Clusters = make([]Cluster, Buckets)
	return r
}

// newResults returns empty results without clusters, for units with one decision each.
func newResults(variants int) *Results {
	return &Results{Variants: make([]Earned, variants), Pairs: make([]confseq.Mean, PairCount(variants))}
}

// PairCount returns the number of pairs of variants.
func PairCount(variants int) int { return variants * (variants - 1) / 2 }

// pairOf returns the index of the pair u < v in a list of all pairs.
func pairOf(u, v int) int { return PairCount(v) + u }

// Block sums decisions that are added together, so that their order does not matter.
type Block struct {
	Centre   float64 // m
	Mean     confseq.Block
	Variants []confseq.Block
	Pairs    []confseq.Block
}

// Begin returns a block for decisions after those already taken.
func (r *Results) Begin() *Block {
	b := &Block{Mean: r.Mean.Begin(), Variants: make([]confseq.Block, len(r.Variants)),
		Pairs: make([]confseq.Block, len(r.Pairs))}
	b.Centre = b.Mean.Centre
	for v := range b.Variants {
		b.Variants[v] = r.Variants[v].Mean.Begin()
	}
	return b
}

// Add adds a decision of variant v with the revenue x ≤ bound. shares are the variants' shares when it was made.
func (b *Block) Add(v int, x, bound float64, shares []float64) {
	b.Mean.Add(x, bound)
	b.Variants[v].Add(x, bound)
	b.pairs(shares, func(k, u, other int, c earnings.Contrast) {
		c.Add(&b.Pairs[k], sideOf(v, other, u), x, b.Centre, bound)
	})
}

// Replace replaces the revenue of a decision of variant v.
func (b *Block) Replace(v int, before, after float64, shares []float64) {
	b.Mean.Sums.Replace(before, after, b.Mean.Centre)
	b.Variants[v].Sums.Replace(before, after, b.Variants[v].Centre)
	b.pairs(shares, func(k, u, other int, c earnings.Contrast) {
		c.Replace(&b.Pairs[k].Sums, sideOf(v, other, u), before, after, b.Centre)
	})
}

// Widen takes the bound of a decision of variant v that was added with a smaller one.
func (b *Block) Widen(v int, bound float64, shares []float64) {
	b.Mean.Sums.Widen(bound)
	b.Variants[v].Sums.Widen(bound)
	b.pairs(shares, func(k, _, _ int, c earnings.Contrast) { c.Widen(&b.Pairs[k].Sums, bound) })
}

// pairs calls f for each pair k of the variants u < other with positive shares.
func (b *Block) pairs(shares []float64, f func(k, u, other int, c earnings.Contrast)) {
	for other := range b.Variants {
		for u := range other {
			if shares[u] > 0 && shares[other] > 0 {
				f(pairOf(u, other), u, other, earnings.Contrast{P: shares[other], Q: shares[u]})
			}
		}
	}
}

// sideOf returns the side of a contrast of two variants that a third one, or one of them, is on.
func sideOf(v, first, second int) int {
	switch v {
	case first:
		return earnings.First
	case second:
		return earnings.Second
	}
	return earnings.Neither
}

// Cluster adds a decision of variant v to the sums of squares by bucket. bucket is the unit's bucket if it still
// belongs to that variant. If the bucket moved, bucket is −1 and the decision forms its own cluster. centre is the
// centre of the decision's block.
func (r *Results) Cluster(bucket, v int, x, centre float64, shares []float64) {
	part := (x - centre) / shares[v]
	c := &Cluster{}
	if bucket >= 0 {
		c = &r.Clusters[bucket]
	}
	e := &r.Variants[v]
	r.All += float64(2*c.N) + 1
	e.Sum.add(c.N, &c.Sum, x)
	e.Part.add(c.N, &c.Part, part)
	c.N++
}

// Recluster adds to the revenue of a decision that Cluster added. If its cluster has ended, the change forms a cluster
// without decisions, and isOpen is false. V then remains a sum of squares, but not by buckets: it is smaller than that if
// most of a returning shopper's changes have one sign.
func (r *Results) Recluster(bucket, v int, by float64, shares []float64) (isOpen bool) {
	c := &Cluster{}
	if isOpen = bucket >= 0 && r.Clusters[bucket].N > 0; isOpen {
		c = &r.Clusters[bucket]
	}
	e := &r.Variants[v]
	e.Sum.change(c.N, c.N, &c.Sum, by)
	e.Part.change(c.N, c.N, &c.Part, by/shares[v])
	return isOpen
}

// change adds to the sum s of a cluster, which grows from n to m decisions. It takes the squares of rounded sums in and
// out, so that their rounding does not add up.
func (q *Squares) change(n, m float64, s *float64, by float64) {
	if by == 0 {
		q.SN.Join(precise.Product(m-n, *s))
		return
	}
	before := *s
	*s += by
	q.SS.Join(precise.Product(*s, *s))
	q.SS.Join(precise.Product(before, before).Minus())
	q.SN.Join(precise.Product(m, *s))
	q.SN.Join(precise.Product(n, before).Minus())
}

// add adds a decision to a cluster of n decisions with the sum s.
func (q *Squares) add(n float64, s *float64, x float64) {
	q.change(n, n+1, s, x)
	q.NN += float64(2*n) + 1
}

// Move ends the clusters of buckets that changed their variant.
func (r *Results) Move(before, after []uint8) {
	for b := range after {
		if before[b] != after[b] {
			r.Clusters[b] = Cluster{}
		}
	}
}

// Take adds a block after all its decisions closed.
func (r *Results) Take(b *Block) {
	r.Mean.Add(&b.Mean)
	for v := range b.Variants {
		r.Variants[v].Mean.Add(&b.Variants[v])
	}
	for k := range b.Pairs {
		r.Pairs[k].Add(&b.Pairs[k])
	}
}

// around returns Σ (s − n·mean)².
func (q *Squares) around(mean float64) float64 {
	return q.SS.Value() - float64(2*mean*q.SN.Value()) + float64(float64(mean*mean)*q.NN)
}

// Earns returns bounds for a variant's revenue per decision that hold at all times with error alpha. They are infinite
// before its first decision.
func (r *Results) Earns(v int, alpha float64) (low, high float64) {
	m := r.Variants[v].Mean
	if m.N > 0 {
		m.Squares = precise.Of(max(m.Squares.Value(), r.Variants[v].Sum.around(m.Average())))
	}
	return m.Interval(alpha)
}

// Difference estimates how much more variant v earns per decision than variant u, with bounds; ok is false until both
// have decisions. The probability that the bounds are ever wrong is at most alpha.
func (r *Results) Difference(v, u int, alpha float64) (low, estimate, high float64, ok bool) {
	m, sign, ok := r.lead(v, u)
	if !ok {
		return 0, 0, 0, false
	}
	low, high = m.Interval(alpha)
	if sign < 0 {
		low, high = -high, -low
	}
	return low, sign * m.Average(), high, true
}

// lead returns a pair's D with a V_n that allows for returning units. sign is 1 if D is for v over u, and −1 if it is
// for u over v.
func (r *Results) lead(v, u int) (m confseq.Mean, sign float64, ok bool) {
	if v < u {
		m, _, ok = r.lead(u, v)
		return m, -1, ok
	}
	if v == u || r.Variants[v].Mean.N == 0 || r.Variants[u].Mean.N == 0 {
		return m, 1, false
	}
	m = r.Pairs[pairOf(u, v)]
	if m.N == 0 {
		return m, 1, false
	}
	estimate := m.Average()
	one, other := &r.Variants[v].Part, &r.Variants[u].Part
	m.Squares = precise.Of(max(m.Squares.Value(), one.SS.Value()+other.SS.Value()-
		float64(2*estimate*(one.SN.Value()-other.SN.Value()))+float64(float64(estimate*estimate)*r.All)))
	return m, 1, true
}
