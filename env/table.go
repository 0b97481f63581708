package env

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Table draws the choices of a [Pool]: the items of a context are the alternatives of one of the
// choices that have as many, each equally likely.
type Table struct {
	pool *Pool
	sets map[int][][]int32 // by size
}

// NewTable returns the contexts of a pool with Sets.
func NewTable(p *Pool) *Table {
	t := &Table{pool: p, sets: map[int][][]int32{}}
	for _, set := range p.Sets {
		t.sets[len(set)] = append(t.sets[len(set)], set)
	}
	return t
}

// Sizes returns the numbers of alternatives that choices have, increasing.
func (t *Table) Sizes() []int { return slices.Sorted(maps.Keys(t.sets)) }

// Draw implements [Contexts]. It panics if no choice has as many alternatives as x has rows, or if x
// has other features.
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

// Relative is a truth of customers whose walking away has the utility Outside: what counts in MNL is
// the difference,
//
//	u_i = f_i − Outside
type Relative struct {
	Truth
	Outside float64
}

// Utilities implements [Truth].
func (r Relative) Utilities(dst []float64, x *mat.Dense) {
	r.Truth.Utilities(dst, x)
	for i := range dst {
		dst[i] -= r.Outside
	}
}
