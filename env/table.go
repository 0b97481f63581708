package env

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Table draws the choices of a [Pool]: a context's items are the alternatives of a choice with the right number of
// alternatives. All such choices are equally likely.
type Table struct {
	pool *Pool
	sets map[int][][]int32 // by size
}

// NewTable returns the contexts of a pool, which must define Sets.
func NewTable(p *Pool) *Table {
	t := &Table{pool: p, sets: map[int][][]int32{}}
	for _, set := range p.Sets {
		t.sets[len(set)] = append(t.sets[len(set)], set)
	}
	return t
}

// Sizes returns the numbers of alternatives that occur in the choices, in increasing order.
func (t *Table) Sizes() []int { return slices.Sorted(maps.Keys(t.sets)) }

// Draw implements [Contexts]. It panics if no choice offers as many alternatives as x has rows, or if the number of
// features differs.
func (t *Table) Draw(x *mat.Dense, rng *rand.Rand) {
	n, _ := x.Dims()
	sets := t.sets[n]
	if len(sets) == 0 {
		panic(fmt.Sprintf("env: no choice of the table has %d alternatives", n))
	}
	for k, i := range sets[rng.IntN(len(sets))] {
		x.SetRow(k, t.pool.Features.RawRowView(int(i)))
	}
}
