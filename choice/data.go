package choice

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Data hold choices. A choice consists of rows, one for each available alternative, and each row holds a value for
// every variable. If Outside is true, every choice also includes the outside option, which takes no row.
//
// Data are immutable once built, and safe for concurrent use. A [Builder] or [Load] creates them.
type Data struct {
	Alternatives []string // labels of the alternatives
	Variables    []string // names of the variables
	Outside      bool     // whether there is an outside option with utility 0
	Panels       int      // number of decision makers; 0 if choices are not grouped
	PanelNames   []string // their names in the table; nil for data from a Builder
	Clusters     int      // number of clusters; 0 without clusters
	Choices      int
	Rows         int
	Dropped      int      // number of choices left out by [Layout.Exclude]: they took or offered only its alternatives
	Unmet        []string // the alternatives of [Layout.Exclude] that no row offers
	Unobserved   bool     // whether the chosen alternatives are unknown, as in a table to predict
	Kept         []bool   // by row of the table, whether it is an item; nil except from [Result.LoadItems]

	columns []string // see Result.Columns
	blocks  []*block
}

// none stands for the outside option in place of a chosen row.
const none = -1

// blockRows is the number of rows after which a block ends: its variables then fit in the second-level cache, and a
// vector of utilities in the first.
const blockRows = 2048

// block is a run of consecutive choices, and of complete panels if the data are grouped. The variables are stored one
// after the other, so that a utility is a sum of vectors.
type block struct {
	first   int         // number of choices before the block
	end     []int32     // by choice: one past its last row
	alt     []int32     // by row: the alternative
	chosen  []int32     // by choice: the chosen row of the block, or none
	weight  []float64   // by choice; nil if all weights are 1
	panel   []int32     // by choice; nil without panels
	cluster []int32     // by choice; nil without clusters
	x       [][]float64 // by variable, then by row
}

func (b *block) rows() int    { return len(b.alt) }
func (b *block) choices() int { return len(b.end) }

// span returns the rows [lo, hi) of a choice.
func (b *block) span(s int) (lo, hi int) {
	if s > 0 {
		lo = int(b.end[s-1])
	}
	return lo, int(b.end[s])
}

func (b *block) weightOf(s int) float64 {
	if b.weight == nil {
		return 1
	}
	return b.weight[s]
}

// Case is a choice as a Go value.
type Case struct {
	Alternatives []int     // indices of the available ones in Data.Alternatives, each at most once
	X            []float64 // len(Alternatives) × len(Variables), row-major
	Chosen       int       // index into Alternatives, or -1 for the outside option
	Weight       float64   // positive; 0, the zero value, means 1
	Panel        int       // decision maker; used if Builder.Panels is set
	Cluster      int       // used if Builder.Clusters is set
}

// Builder builds Data from Go values, case by case.
type Builder struct {
	// Panels and Clusters say whether cases carry panels and clusters, numbered from 0. A panel's cases must be
	// consecutive.
	Panels, Clusters bool

	data     *Data
	open     *block
	x        [][]float64 // variables of the open block
	weighted bool
	closed   []bool // by panel: whether a later panel has begun
	checks   int
	seen     []int // by alternative: the last check that met it
}

// NewBuilder returns a Builder for choices among the alternatives, with or without an outside
// option.
func NewBuilder(alternatives, variables []string, outside bool) *Builder {
	return &Builder{data: &Data{Alternatives: alternatives, Variables: variables, Outside: outside}, open: &block{},
		x: make([][]float64, len(variables))}
}

// Add adds a case. It returns an error without adding the case if the case is not a choice among its alternatives with
// finite variables and a finite weight that is not negative, or if its panel was already left for another one. The
// weight 0 means 1: leave out a case that shall not count.
func (b *Builder) Add(c Case) error {
	if err := b.check(c); err != nil {
		return fmt.Errorf("choice %d: %w", b.data.Choices+1, err)
	}
	width := len(b.data.Variables)
	for i, alt := range c.Alternatives {
		b.row(alt, c.X[i*width:(i+1)*width])
	}
	c.Weight = cmp.Or(c.Weight, 1)
	b.close(c)
	return nil
}

func (b *Builder) check(c Case) error {
	d := b.data
	if err := b.checkAlternatives(c.Alternatives); err != nil {
		return err
	}
	minimum := 0
	if d.Outside {
		minimum = none
	}
	switch {
	case len(c.X) != len(c.Alternatives)*len(d.Variables):
		return fmt.Errorf("%d values for %d alternatives of %d variables", len(c.X), len(c.Alternatives),
			len(d.Variables))
	case c.Chosen < minimum || c.Chosen >= len(c.Alternatives):
		return fmt.Errorf("chosen is %d: want a position among %d alternatives, or -1 for an outside option", c.Chosen,
			len(c.Alternatives))
	case !(c.Weight >= 0) || math.IsInf(c.Weight, 1):
		return fmt.Errorf("the weight is %v: want a finite number, at least 0", c.Weight)
	case b.Panels && uint(c.Panel) >= math.MaxInt32 || b.Clusters && uint(c.Cluster) >= math.MaxInt32:
		return fmt.Errorf("panels and clusters are numbered from 0, without gaps")
	}
	for i, v := range c.X {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s of alternative %q is %v", d.Variables[i%len(d.Variables)],
				d.Alternatives[c.Alternatives[i/len(d.Variables)]], v)
		}
	}
	if b.Panels && b.returns(c.Panel) {
		return fmt.Errorf("panel %d has choices further up, and another panel's lie between: sort by panel", c.Panel)
	}
	return nil
}

// checkAlternatives checks that a choice has alternatives, each once.
func (b *Builder) checkAlternatives(list []int) error {
	d := b.data
	if len(list) == 0 {
		return fmt.Errorf("no alternative is available")
	}
	for len(b.seen) < len(d.Alternatives) {
		b.seen = append(b.seen, 0)
	}
	b.checks++
	for _, alt := range list {
		if alt < 0 || alt >= len(d.Alternatives) {
			return fmt.Errorf("alternative %d: there are %d", alt, len(d.Alternatives))
		}
		if b.seen[alt] == b.checks {
			return fmt.Errorf("alternative %q is available twice", d.Alternatives[alt])
		}
		b.seen[alt] = b.checks
	}
	return nil
}

// returns reports whether a panel was already left.
func (b *Builder) returns(panel int) bool { return panel < len(b.closed) && b.closed[panel] }

// row adds a row to the choice that a later call of close ends.
func (b *Builder) row(alt int, x []float64) {
	b.open.alt = append(b.open.alt, int32(alt))
	for j, v := range x {
		b.x[j] = append(b.x[j], v)
	}
}

// close ends a choice. c.Chosen is the index among the choice's rows; of the other fields, only Weight, Panel and
// Cluster are used.
func (b *Builder) close(c Case) {
	o, d := b.open, b.data
	lo := 0
	if n := len(o.end); n > 0 {
		lo = int(o.end[n-1])
	}
	// A block ends before a choice that would make it too long, but never within a panel.
	if lo > 0 && len(o.alt) > blockRows && !(b.Panels && int(o.panel[len(o.panel)-1]) == c.Panel) {
		b.flush(lo)
		lo, o = 0, b.open
	}
	o.end = append(o.end, int32(len(o.alt)))
	chosen := int32(none)
	if c.Chosen != none {
		chosen = int32(lo + c.Chosen)
	}
	o.chosen = append(o.chosen, chosen)
	o.weight = append(o.weight, c.Weight)
	b.weighted = b.weighted || c.Weight != 1
	if b.Panels {
		if n := len(o.panel); n > 0 && int(o.panel[n-1]) != c.Panel {
			b.leave(int(o.panel[n-1]))
		}
		o.panel = append(o.panel, int32(c.Panel))
		d.Panels = max(d.Panels, c.Panel+1)
	}
	if b.Clusters {
		o.cluster = append(o.cluster, int32(c.Cluster))
		d.Clusters = max(d.Clusters, c.Cluster+1)
	}
	d.Choices++
}

func (b *Builder) leave(panel int) {
	for len(b.closed) <= panel {
		b.closed = append(b.closed, false)
	}
	b.closed[panel] = true
}

// forget drops the last n rows.
func (b *Builder) forget(n int) {
	b.open.alt = b.open.alt[:len(b.open.alt)-n]
	for j, x := range b.x {
		b.x[j] = x[:len(x)-n]
	}
}

// flush ends the open block after n rows, and opens another with the remaining ones.
func (b *Builder) flush(n int) {
	o, rest := b.open, b.open.alt[n:]
	done := &block{
		first: b.data.Choices - len(o.end), end: clip(o.end), alt: clip(o.alt[:n]),
		chosen: clip(o.chosen), panel: clip(o.panel), cluster: clip(o.cluster),
	}
	if b.weighted {
		done.weight = clip(o.weight)
	}
	done.x = make([][]float64, len(b.x))
	for j, x := range b.x {
		done.x[j] = append(make([]float64, 0, n), x[:n]...)
		b.x[j] = append(x[:0], x[n:]...)
	}
	b.data.blocks = append(b.data.blocks, done)
	b.data.Rows += n
	if b.Panels {
		b.leave(int(o.panel[len(o.panel)-1]))
	}
	b.open = &block{
		end: o.end[:0], alt: append(o.alt[:0], rest...), chosen: o.chosen[:0],
		weight: o.weight[:0], panel: o.panel[:0], cluster: o.cluster[:0],
	}
}

// clip returns a copy of s without spare capacity, or nil if s is empty.
func clip[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return append(make([]T, 0, len(s)), s...)
}

// Data returns the choices. Without a choice, or with a name given twice, it returns an error. The Builder must not be
// used afterwards.
func (b *Builder) Data() (*Data, error) {
	if b.data.Choices == 0 {
		return nil, fmt.Errorf("there are no choices")
	}
	for _, names := range [][]string{b.data.Alternatives, b.data.Variables} {
		if len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names) {
			return nil, fmt.Errorf("the alternatives' and the variables' names must differ: %q", names)
		}
	}
	b.flush(len(b.open.alt))
	return b.data, nil
}

// order numbers the alternatives as labels lists them. Without labels they keep their numbers.
func (d *Data) order(labels []string) {
	ordered := slices.Clone(d.Alternatives)
	slices.SortStableFunc(ordered, func(a, b string) int {
		return slices.Index(labels, a) - slices.Index(labels, b)
	})
	if slices.Equal(ordered, d.Alternatives) {
		return
	}
	number := make([]int32, len(ordered))
	for a, label := range d.Alternatives {
		number[a] = int32(slices.Index(ordered, label))
	}
	for _, b := range d.blocks {
		for i, a := range b.alt {
			b.alt[i] = number[a]
		}
	}
	d.Alternatives = ordered
}

// Choice returns the alternatives of choice s, as indices, and the chosen one's position among them, or -1 for the
// outside option. It panics unless 0 ≤ s < d.Choices.
func (d *Data) Choice(s int) (alternatives []int, chosen int) {
	b, s := d.locate(s)
	lo, hi := b.span(s)
	for _, a := range b.alt[lo:hi] {
		alternatives = append(alternatives, int(a))
	}
	if b.chosen[s] == none {
		return alternatives, none
	}
	return alternatives, int(b.chosen[s]) - lo
}

// indices returns the indices of variables, or an error that begins with the specification's field that names them.
func (d *Data) indices(field string, names []string) (list []int, err error) {
	for _, name := range names {
		v := slices.Index(d.Variables, name)
		if v < 0 {
			return nil, fmt.Errorf("%s: the data have no variable %q: they have %q", field, name, d.Variables)
		}
		list = append(list, v)
	}
	return list, nil
}

// locate returns the block that contains choice s, and the choice's index there.
func (d *Data) locate(s int) (*block, int) {
	if s < 0 || s >= d.Choices {
		panic(fmt.Sprintf("choice: choice %d of %d", s, d.Choices))
	}
	after := sort.Search(len(d.blocks), func(k int) bool { return d.blocks[k].first > s })
	b := d.blocks[after-1]
	return b, s - b.first
}

// Filter returns the choices for which keep returns true, or an error if there are none. Panels and clusters keep their
// numbers.
func (d *Data) Filter(keep func(s int) bool) (*Data, error) {
	return d.reduce(nil, func(s int) float64 { return indicator(keep(s)) })
}

// reduce multiplies the weights of choices by their shares and leaves out choices with share 0. It also drops the rows
// of dropped alternatives. A choice that took one becomes a choice of the outside option, or of the first remaining
// row.
func (d *Data) reduce(dropped func(a int) bool, share func(s int) float64) (*Data, error) {
	var labels []string
	number := make([]int, len(d.Alternatives)) // index in the result, or none
	for a, label := range d.Alternatives {
		if number[a] = none; dropped == nil || !dropped(a) {
			number[a] = len(labels)
			labels = append(labels, label)
		}
	}
	b := NewBuilder(labels, d.Variables, d.Outside)
	b.Panels, b.Clusters = d.Panels > 0, d.Clusters > 0
	x := make([]float64, len(d.Variables))
	for _, o := range d.blocks {
		for s := range o.choices() {
			part := share(o.first + s)
			if part == 0 {
				continue
			}
			c, n := Case{Chosen: none, Weight: part * o.weightOf(s)}, 0
			lo, hi := o.span(s)
			for i := lo; i < hi; i++ {
				a, chosen := number[o.alt[i]], int(o.chosen[s]) == i
				if a == none {
					if chosen && !d.Outside {
						c.Chosen = 0
					}
					continue
				}
				for v := range x {
					x[v] = o.x[v][i]
				}
				b.row(a, x)
				if chosen {
					c.Chosen = n
				}
				n++
			}
			if n == 0 {
				continue
			}
			if b.Panels {
				c.Panel = int(o.panel[s])
			}
			if b.Clusters {
				c.Cluster = int(o.cluster[s])
			}
			b.close(c)
		}
	}
	kept, err := b.Data()
	if err != nil {
		return nil, err
	}
	kept.Panels, kept.PanelNames, kept.Clusters, kept.Unobserved = d.Panels, d.PanelNames, d.Clusters, d.Unobserved
	return kept, nil
}
