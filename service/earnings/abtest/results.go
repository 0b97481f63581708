package abtest

import (
	"slices"

	"vitrine/internal/confseq"
	"vitrine/service/earnings"
)

// Results are what the variants of an experiment have earned.
//
// The difference of two variants is the mean D of their [earnings.Contrast], over the decisions made while both had a share:
// P and Q are the shares then, and m is the mean revenue before. Every pair of variants keeps its own D, because a pair in which
// one variant had no share for a while has fewer decisions than the others.
//
// That holds for units with one decision each. A unit that comes back stays in its variant, and then the D of its
// decisions are not independent. V_n, the sum of their squares, is therefore at least the sum of squares by buckets,
//
//	V = Σ_b (Σ_{t in b} (D_t − D̄))²
//
// as in cluster-robust standard errors: with independent decisions both have the same expectation. The intervals are
// then those of the same boundary with an estimated V. docs/experiments.md has their coverage in simulations.
type Results struct {
	Mean     confseq.Mean // of all variants
	Variants []Earned
	Pairs    []confseq.Mean // D of each pair: see pairOf
	Clusters []Cluster      // of Buckets
	All      float64        // Σ n² over clusters
}

// Earned is what a variant has earned.
type Earned struct {
	Mean confseq.Mean
	Sum  Squares // of Σ x
	Part Squares // of Σ (x − m)/p
}

// Copy returns a copy.
func (r *Results) Copy() *Results {
	c := *r
	c.Variants, c.Pairs, c.Clusters = slices.Clone(r.Variants), slices.Clone(r.Pairs), slices.Clone(r.Clusters)
	return &c
}

// Copy returns a copy.
func (b *Block) Copy() *Block {
	c := *b
	c.Variants, c.Pairs = slices.Clone(b.Variants), slices.Clone(b.Pairs)
	return &c
}

// Squares are sums over the clusters of a variant, of a sum s of n decisions each.
type Squares struct {
	SS, SN, NN float64 // Σ s², Σ s n, Σ n²
}

// Cluster sums the decisions of a bucket since it has had its present variant.
type Cluster struct {
	N, Sum, Part float64
}

// NewResults returns the results of a number of variants without decisions.
func NewResults(variants int) *Results {
	return &Results{Variants: make([]Earned, variants), Pairs: make([]confseq.Mean, PairCount(variants)), Clusters: make([]Cluster, Buckets)}
}

// PairCount returns the number of pairs of variants.
func PairCount(variants int) int { return variants * (variants - 1) / 2 }

// pairOf returns the place of the pair u < v in a list of all pairs.
func pairOf(u, v int) int { return PairCount(v) + u }

// Block sums decisions that are taken together, so that their order does not matter.
type Block struct {
	Centre   float64 // m
	Mean     confseq.Block
	Variants []confseq.Block
	Pairs    []confseq.Block
}

// Begin returns a block of decisions that come after those that were taken.
func (r *Results) Begin() *Block {
	b := &Block{Mean: r.Mean.Begin(), Variants: make([]confseq.Block, len(r.Variants)), Pairs: make([]confseq.Block, len(r.Pairs))}
	b.Centre = b.Mean.Centre
	for v := range b.Variants {
		b.Variants[v] = r.Variants[v].Mean.Begin()
	}
	return b
}

// Add adds a decision of variant v with the revenue x ≤ bound. shares are those of the variants when it was made.
func (b *Block) Add(v int, x, bound float64, shares []float64) {
	b.Mean.Add(x, bound)
	b.Variants[v].Add(x, bound)
	for other := range b.Variants {
		for u := range other {
			if shares[u] == 0 || shares[other] == 0 {
				continue
			}
			way := earnings.Neither
			switch v {
			case other:
				way = earnings.First
			case u:
				way = earnings.Second
			}
			earnings.Contrast{P: shares[other], Q: shares[u]}.Add(&b.Pairs[pairOf(u, other)], way, x, b.Centre, bound)
		}
	}
}

// Cluster notes a decision of variant v, for the sums of squares by buckets. bucket is the bucket of its unit if it
// still has that variant; −1 stands for a bucket that has another one by now, so that the decision is a cluster of
// its own. centre is that of the decision's block.
func (r *Results) Cluster(bucket, v int, x, centre float64, shares []float64) {
	part := (x - centre) / shares[v]
	c := &Cluster{}
	if bucket >= 0 {
		c = &r.Clusters[bucket]
	}
	e := &r.Variants[v]
	e.Sum.add(c.N, c.Sum, x)
	e.Part.add(c.N, c.Part, part)
	r.All += float64(2*c.N) + 1
	c.N++
	c.Sum += x
	c.Part += part
}

// add changes the sums for a cluster of n decisions with the sum s that gets another one.
func (q *Squares) add(n, s, x float64) {
	q.SS += float64(2*s*x) + float64(x*x)
	q.SN += s + float64(n*x) + x
	q.NN += float64(2*n) + 1
}

// Move ends the clusters of the buckets that have another variant.
func (r *Results) Move(before, after []uint8) {
	for b := range after {
		if before[b] != after[b] {
			r.Clusters[b] = Cluster{}
		}
	}
}

// Take adds a block whose decisions have all closed.
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
	return q.SS - float64(2*mean*q.SN) + float64(float64(mean*mean)*q.NN)
}

// Earns returns bounds of the revenue a decision of a variant, with the error alpha at all times; infinite ones
// before its first decision.
func (r *Results) Earns(v int, alpha float64) (low, high float64) {
	m := r.Variants[v].Mean
	if m.N > 0 {
		m.Squares = max(m.Squares, r.Variants[v].Sum.around(m.Average()))
	}
	return m.Interval(alpha)
}

// Difference returns the estimate and bounds of what variant v earns a decision above variant u; ok is false before
// there are decisions of both. The bounds are wrong at any time with a probability of at most alpha.
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

// lead returns D of a pair with a V_n that allows for units that come back: that of v over u if sign is 1, of u over v if it is −1.
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
	m.Squares = max(m.Squares, one.SS+other.SS-float64(2*estimate*(one.SN-other.SN))+float64(float64(estimate*estimate)*r.All))
	return m, 1, true
}
