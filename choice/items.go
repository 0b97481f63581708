package choice

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"vitrine/internal/table"
	"vitrine/utility"
)

// Items are the distinct alternatives in data, as a multinomial logit sees them.
type Items struct {
	// X holds a row per item: the coefficients' variables in order, then the network's variables, standardised.
	X    [][]float64
	Sets [][]int32 // by choice: its alternatives, as row numbers in X
}

// Items returns the distinct alternatives in data, sorted. It returns an error for models other than the multinomial
// logit, because their choices depend on more than one utility per item.
func (r *Result) Items(d *Data) (*Items, error) {
	if !r.Spec.Model.plain() {
		return nil, errors.New("only a multinomial logit has items with a utility each: leave [model] out")
	}
	g, err := newDesign(&r.Spec.Utility, r.Alternatives, r.Outside, d)
	if err != nil {
		return nil, err
	}
	inputs, err := d.indices("utility.network", r.Spec.Utility.Network.variables())
	if err != nil {
		return nil, err
	}
	items := &Items{}
	index := map[string]int32{}
	row, key := make([]float64, g.dim()+len(inputs)), []byte(nil)
	var scratch matrix
	for _, b := range d.blocks {
		x := g.columns(&scratch, b)
		for s := range b.end {
			lo, hi := b.span(s)
			set := make([]int32, 0, hi-lo)
			for i := lo; i < hi; i++ {
				for j := range x {
					row[j] = x[j][i]
				}
				for k, v := range inputs {
					row[len(x)+k] = (b.x[v][i] - r.Scale.Mean[k]) / r.Scale.SD[k]
				}
				key = key[:0]
				for _, v := range row {
					key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v+0)) // −0 is 0
				}
				item, ok := index[string(key)]
				if !ok {
					item = int32(len(items.X))
					index[string(key)] = item
					items.X = append(items.X, slices.Clone(row))
				}
				set = append(set, item)
			}
			items.Sets = append(items.Sets, set)
		}
	}
	items.sort()
	return items, nil
}

func (items *Items) sort() {
	order := make([]int32, len(items.X))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return slices.Compare(items.X[a], items.X[b]) })
	sorted, place := make([][]float64, len(order)), make([]int32, len(order))
	for k, i := range order {
		sorted[k], place[i] = items.X[i], int32(k)
	}
	items.X = sorted
	for _, set := range items.Sets {
		for k, i := range set {
			set[k] = place[i]
		}
	}
}

// Utility returns the utility family for [Items], and its parameters: Σ_j θ_j x_j, plus the network applied to the last
// features if there is one. Errors are as for [Result.Items].
func (r *Result) Utility() (utility.Model, []float64, error) {
	if !r.Spec.Model.plain() {
		return nil, nil, errors.New("only a multinomial logit has items with a utility each: leave [model] out")
	}
	linear := r.Listed()
	n := r.Spec.Utility.Network
	switch {
	case n == nil:
		return utility.NewLinear(linear, false), r.Coefficients, nil
	case linear == 0:
		return n.model(), r.Coefficients, nil
	}
	return utility.NewSum(utility.NewLinear(linear, false), n.model()), r.Coefficients, nil
}

// LoadItems reads a table with one row per item. It needs the columns of the model's variables, and labels if
// alternatives differ in more than variables. If the model's layout names no column of labels, they are in the column
// "alternative". Other items without a label get their row number. Rows are not items if the model's filter, exclude or
// available leaves them out, as far as the table contains the columns. A row for the outside option is an error, and so
// are a model that uses position and membership variables that differ between the items. Each item becomes a choice
// with one alternative, for [Result.Classes].
func (r *Result) LoadItems(ctx context.Context, path string) (*Data, error) {
	l := r.Spec.Data
	l.Form, l.Alternative, l.each, l.labelled = "long", cmp.Or(l.Alternative, "alternative"), true, r.Labelled()
	l.Choice, l.Chosen, l.Names, l.Alternatives, l.Weight, l.Panel, l.Cluster = nil, "", "", nil, "", "", ""
	d, err := Read(ctx, path, l, r.Spec.Variables(), nil)
	if err != nil {
		return nil, err
	}
	for _, name := range r.Spec.Model.Membership {
		if err := d.oneCustomer(name); err != nil {
			return nil, fmt.Errorf("%s: model.membership: %w", path, err)
		}
	}
	return d, nil
}

// oneCustomer returns an error if a variable differs among items.
func (d *Data) oneCustomer(variable string) error {
	v := slices.Index(d.Variables, variable)
	var rows []int // by item
	for row, kept := range d.Kept {
		if kept {
			rows = append(rows, row+1)
		}
	}
	first := d.blocks[0].x[v][0]
	for _, b := range d.blocks {
		for i, x := range b.x[v] {
			if x != first {
				return fmt.Errorf("%s is %v in row %d and %v in row %d: all items are shown to one customer", variable, first,
					rows[0], x, rows[b.first+i])
			}
		}
	}
	return nil
}

// among returns the layout for a table of items, without conditions on columns that the table lacks.
func (l Layout) among(t table.Table, variables []Variable) (*Layout, error) {
	header := t.Header()
	names := slices.Clone(header)
	var model []string
	for _, v := range variables {
		model = append(model, v.Expression)
	}
	model = l.reached(model...)
	lacks := func(column string) bool { return !slices.Contains(header, column) && anyUses(model, column) }
	if lacks("position") {
		return nil, errors.New("the model uses position, and the place of an item is not known before the page is " +
			"chosen: fit a model without it")
	}
	if slices.Contains(header, l.Alternative) {
		names = append(names, "alternative")
	} else if l.labelled || lacks("alternative") {
		return nil, fmt.Errorf("data.alternative: %w", unknownColumn(l.Alternative, header, t.Nested()))
	} else {
		l.Alternative, l.Exclude, l.Outside, l.OutsideLabel = "", nil, "", ""
	}
	unknown := func(source string) bool {
		_, err := parseExpression(source, names, nil)
		return err != nil
	}
	l.Derive = slices.DeleteFunc(slices.Clone(l.Derive), func(entry string) bool {
		name, source, _ := derived(entry)
		if unknown(source) && !anyUses(model, name) {
			return true
		}
		names = append(names, name)
		return false
	})
	for _, condition := range []*string{&l.Filter, &l.Available} {
		if unknown(*condition) {
			*condition = ""
		}
	}
	l.labelled = l.labelled || len(l.Exclude) > 0 || l.OutsideLabel != "" ||
		anyUses(l.reached(append(model, l.Filter, l.Available)...), "alternative", l.Alternative)
	return &l, nil
}

// reached returns the sources, with the expressions of the derived columns that they use.
func (l *Layout) reached(sources ...string) []string {
	for _, entry := range slices.Backward(l.Derive) {
		if name, source, _ := derived(entry); anyUses(sources, name) {
			sources = append(sources, source)
		}
	}
	return sources
}

// anyUses reports whether an expression uses any of the columns.
func anyUses(sources []string, columns ...string) bool {
	return slices.ContainsFunc(sources, func(source string) bool { return uses(source, columns) })
}

// Labelled reports whether utilities depend on the alternative's label.
func (r *Result) Labelled() bool {
	u := &r.Spec.Utility
	return u.Constants || len(u.Individual)+len(u.Specific)+len(r.Spec.Model.Nests) > 0 ||
		slices.ContainsFunc(u.Terms, func(t Term) bool { return t.Alternatives != nil })
}

// Classes returns the utilities of the items in data (see [Result.LoadItems]) for each customer class, and the classes'
// shares. The multinomial and the nested logit have one class. A latent class model has its own, with shares for the
// customer of the items. For a mixed logit, the classes are the draws.
func (r *Result) Classes(d *Data) (shares []float64, u [][]float64, err error) {
	l, err := r.likelihood(d)
	if err != nil {
		return nil, nil, err
	}
	var w mnlWorker
	add := func(share float64, theta []float64) {
		var all []float64
		for _, b := range d.blocks {
			v := make([]float64, b.rows())
			w.linearize(v, b, theta)
			all = append(all, v...)
		}
		shares, u = append(shares, share), append(u, all)
	}
	switch l := l.(type) {
	case mnl:
		w.mnl = l
		add(1, r.Coefficients)
	case neural:
		w.mnl = l.mnl
		add(1, r.Coefficients)
	case *nested:
		w.mnl = mnl{design: l.design}
		add(1, r.Coefficients[:l.dim()])
	case *latent:
		w.mnl = mnl{design: l.design}
		classes := l.worker().(*latentWorker)
		classes.priors(d.blocks[0], unit{0, 1, 0}, r.Coefficients)
		for c, share := range classes.prior {
			add(share, classes.coefficients(r.Coefficients, c))
		}
	case *mixed:
		w.mnl = mnl{design: l.design}
		draws := l.worker().(*mixedWorker)
		draws.draw(0, r.Coefficients)
		theta := slices.Clone(r.Coefficients[:l.dim()])
		for k := range l.draws {
			for j, v := range l.random {
				theta[v.coefficient] = draws.beta.row[j][k]
			}
			add(1/float64(l.draws), theta)
		}
	}
	return shares, u, nil
}

// Nests returns each item's nest, or -1 without a nest, and the nests' dissimilarities. It returns nil for models other
// than the nested logit.
func (r *Result) Nests(d *Data) (of []int, dissimilarity []float64, err error) {
	l, err := r.likelihood(d)
	if err != nil {
		return nil, nil, err
	}
	n, ok := l.(*nested)
	if !ok {
		return nil, nil, nil
	}
	for _, b := range d.blocks {
		for _, a := range b.alt {
			of = append(of, n.nest[a])
		}
	}
	for _, p := range n.parameter {
		dissimilarity = append(dissimilarity, r.Coefficients[n.dim()+p])
	}
	return of, dissimilarity, nil
}
