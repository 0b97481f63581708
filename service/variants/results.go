package variants

import (
	"slices"

	"vitrine/internal/confseq"
)

// Results are what the variants of an experiment have earned.
//
// The difference of variant v and the control c is the mean of
//
//	D = (x − m)(A_v/p_v − A_c/p_c)
//
// over the decisions of the experiment. x is the revenue, A_v says that the decision was of variant v, whose share
// then was p_v, and m is the mean revenue before. The expectation of D given the past is the difference of the
// two revenues that the decision would have had. So neither a change of the shares nor a drift of the revenues biases
// its mean, and [confseq.Mean] gives its interval.
//
// That holds for units with one decision each. A unit that comes back stays in its variant, and then the D of its
// decisions are not independent. V_n, the sum of their squares, is therefore at least the sum of squares by buckets,
//
//	V = Σ_b (Σ_{t in b} (D_t − D̄))²
//
// as in cluster-robust standard errors: with independent decisions both have the same expectation. The intervals are
// then those of the same boundary with an estimated V. docs/experiments.md has their coverage in simulations.
type Results struct {
	Control  int
	Mean     confseq.Mean // of all variants
	Variants []Earned
	Clusters []Cluster // of Buckets
	All      float64   // Σ n² over clusters
}

// Earned is what a variant has earned.
type Earned struct {
	Mean confseq.Mean
	Lead confseq.Mean // D of this variant and the control
	Sum  Squares      // of Σ x
	Part Squares      // of Σ (x − m)/p
}

// Copy returns a copy.
func (r *Results) Copy() *Results {
	c := *r
	c.Variants, c.Clusters = slices.Clone(r.Variants), slices.Clone(r.Clusters)
	return &c
}

// Copy returns a copy.
func (b *Block) Copy() *Block {
	c := *b
	c.Variants = slices.Clone(b.Variants)
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

// NewResults returns those of a number of variants without decisions.
func NewResults(variants, control int) *Results {
	return &Results{Control: control, Variants: make([]Earned, variants), Clusters: make([]Cluster, Buckets)}
}

// Block sums decisions that are taken together, so that their order does not matter.
type Block struct {
	Centre   float64 // m
	Mean     confseq.Block
	Variants []EarnedBlock
}

// EarnedBlock is the part of a block of a variant.
type EarnedBlock struct {
	Mean confseq.Block
	Lead confseq.Block
}

// Begin returns a block of decisions that come after those that were taken.
func (r *Results) Begin() *Block {
	b := &Block{Mean: r.Mean.Begin(), Variants: make([]EarnedBlock, len(r.Variants))}
	b.Centre = b.Mean.Centre
	for v := range b.Variants {
		b.Variants[v].Mean = r.Variants[v].Mean.Begin()
	}
	return b
}

// Add adds a decision of variant v with the revenue x ≤ bound. shares are those of the variants when it was made.
func (b *Block) Add(v int, x, bound float64, shares []float64, control int) {
	b.Mean.Add(x, bound)
	b.Variants[v].Mean.Add(x, bound)
	for u := range b.Variants {
		if u == control || shares[u] == 0 || shares[control] == 0 {
			continue
		}
		lead := 0.0
		switch v {
		case u:
			lead = (x - b.Centre) / shares[u]
		case control:
			lead = -(x - b.Centre) / shares[control]
		}
		b.Variants[u].Lead.Add(lead, max(bound, b.Centre)/min(shares[u], shares[control]))
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
		r.Variants[v].Mean.Add(&b.Variants[v].Mean)
		r.Variants[v].Lead.Add(&b.Variants[v].Lead)
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

// Difference returns the estimate and bounds of what variant v earns a decision above the control; ok is false before
// there are decisions of both.
func (r *Results) Difference(v int, alpha float64) (low, estimate, high float64, ok bool) {
	m := r.Variants[v].Lead
	if v == r.Control || m.N == 0 || r.Variants[v].Mean.N == 0 || r.Variants[r.Control].Mean.N == 0 {
		return 0, 0, 0, false
	}
	estimate = m.Average()
	one, other := &r.Variants[v].Part, &r.Variants[r.Control].Part
	m.Squares = max(m.Squares, one.SS+other.SS-float64(2*estimate*(one.SN-other.SN))+float64(float64(estimate*estimate)*r.All))
	low, high = m.Interval(alpha)
	return low, estimate, high, true
}
