package utility

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
)

// Columns holds the features of n items, column by column. If several parameter vectors or families evaluate the same
// items, reading columns is cheaper than reading rows. Call Reset on the zero value before use. A Columns keeps its
// memory between resets.
type Columns struct {
	n, d    int
	squared bool // whether ‖x‖² is stored
	// ‖x‖², x_1, …, x_d, ones, and a family's own rows, n numbers each
	data []float64
}

// Columnar is implemented by models that can read items from columns. A model that embeds a Columnar and changes its
// utilities must override ColumnLinearize, too.
type Columnar interface {
	Model

	// ColumnLinearize stores f_w(x_i) in u[i] and ∂f_w(x_i)/∂w_j in g[j n + i] for all n items. It panics unless w and
	// c fit the model and u and g fit the items.
	ColumnLinearize(u, g, w []float64, c *Columns)
}

// Reset makes room for n items with d features. The entries are arbitrary until set.
func (c *Columns) Reset(n, d int) {
	c.n, c.d, c.squared = n, d, false
	c.data = slices.Grow(c.data[:0], (2+d)*n)[:(2+d)*n]
	kernel.Combine(c.data[(1+d)*n:], 1, nil, 1, nil, 0)
}

// Feature returns the column of feature j. You may write to it until a model reads the columns.
func (c *Columns) Feature(j int) []float64 { return c.data[(1+j)*c.n:][:c.n:c.n] }

// Affine returns the columns x_1, …, x_d, 1, one after the other: the gradients of aᵀx + b.
func (c *Columns) Affine() []float64 { return c.data[c.n:][:(c.d+1)*c.n] }

// SetRows copies the n×d matrix x into the columns.
func (c *Columns) SetRows(x *mat.Dense) {
	c.Reset(x.Dims())
	columns(c.features(), x, 0, c.n)
}

// Dims returns n and d.
func (c *Columns) Dims() (n, d int) { return c.n, c.d }

// Rows copies the items into the rows of the n×d matrix dst.
func (c *Columns) Rows(dst *mat.Dense) {
	for j := range c.d {
		for i, v := range c.Feature(j) {
			dst.Set(i, j, v)
		}
	}
}

func (c *Columns) features() []float64 { return c.data[c.n:][:c.d*c.n] }

// with returns the data with room for more columns. If squares is true, it also computes ‖x‖².
func (c *Columns) with(more int, squares bool) []float64 {
	size := (2 + c.d + more) * c.n
	if size > len(c.data) {
		c.data = slices.Grow(c.data, size-len(c.data))[:size]
	}
	if squares && !c.squared {
		clear(c.data[:c.n])
		kernel.AddSquares(c.data[:c.n], c.features(), c.d)
		c.squared = true
	}
	return c.data
}

// checkColumns panics unless u, w and c fit the model.
func checkColumns(m Model, u, w []float64, c *Columns) {
	checkParams(m, w)
	if len(u) != c.n || c.d != m.NumFeatures() {
		panic(fmt.Sprintf("utility: %d utilities of %d items with %d features, for a model of %d",
			len(u), c.n, c.d, m.NumFeatures()))
	}
}

// checkColumnGradients panics unless u, g, w and c fit the model.
func checkColumnGradients(m Model, u, g, w []float64, c *Columns) {
	checkColumns(m, u, w, c)
	if len(g) != c.n*len(w) {
		panic(fmt.Sprintf("utility: room for %d derivatives of %d items by %d parameters", len(g), c.n, len(w)))
	}
}
