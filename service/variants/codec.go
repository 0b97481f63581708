package variants

import (
	"vitrine/internal/confseq"
	"vitrine/internal/state"
)

// Numbers adds the fields to those of a snapshot, without the clusters.
func (r *Results) Numbers(n *state.Numbers) {
	confseq.Means(n, &r.Mean)
	n.Floats(&r.All)
	for v := range r.Variants {
		e := &r.Variants[v]
		confseq.Means(n, &e.Mean, &e.Lead)
		for _, q := range []*Squares{&e.Sum, &e.Part} {
			n.Floats(&q.SS, &q.SN, &q.NN)
		}
	}
}

// Numbers adds the fields to those of a snapshot.
func (b *Block) Numbers(n *state.Numbers) {
	n.Floats(&b.Centre)
	confseq.Blocks(n, &b.Mean)
	for v := range b.Variants {
		confseq.Blocks(n, &b.Variants[v].Mean, &b.Variants[v].Lead)
	}
}
