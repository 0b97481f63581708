package choice

import (
	"errors"
	"slices"
)

// Items returns the distinct alternatives of data as a multinomial logit sees them, one row of the
// variables of the coefficients each, in their order: the utility of an item is the scalar product
// with Coefficients. It returns an error for other models, whose utilities are more than that.
func (r *Result) Items(d *Data) ([][]float64, error) {
	if !r.Spec.Model.plain() {
		return nil, errors.New("only a multinomial logit has items with a utility each: leave [model] out")
	}
	g, err := newDesign(&r.Spec.Utility, r.Alternatives, d)
	if err != nil {
		return nil, err
	}
	var items [][]float64
	var scratch matrix
	for _, b := range d.blocks {
		x := g.columns(&scratch, b)
		for i := range b.rows() {
			row := make([]float64, len(x))
			for j := range x {
				row[j] = x[j][i]
			}
			items = append(items, row)
		}
		if len(items) > 2*blockRows {
			items = distinct(items)
		}
	}
	return distinct(items), nil
}

// distinct sorts rows and leaves out copies.
func distinct(rows [][]float64) [][]float64 {
	slices.SortFunc(rows, slices.Compare)
	return slices.CompactFunc(rows, slices.Equal)
}
