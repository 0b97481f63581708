package choice

import (
	"cmp"
	"fmt"
	"math"
)

// Data are choices. A choice has rows, one for each available alternative, and a row has a value
// of each variable. If Outside is true, every choice has the outside option too, which has no
// row.
//
// Data are immutable once built, and safe for concurrent use. A [Builder] or [Load] makes them.
type Data struct {
	Alternatives []string // the labels of the alternatives
	Variables    []string // the names of the variables
	Outside      bool     // whether there is an outside option, of utility 0
	Panels       int      // the number of decision makers; 0 if choices are not grouped
	PanelNames   []string // their names in the table; nil for data of a Builder
	Clusters     int      // the number of clusters; 0 if there are none
	Choices      int
	Rows         int
	Dropped      int  // choices that [Layout.Exclude] left out
	Unobserved   bool // whether it is not known what was chosen, as in a table to predict

	blocks []*block
}

// none is the chosen row of a choice of the outside option.
const none = -1

// blockRows is the number of rows after which a block ends: its variables stay in the second
// cache, and a vector of its utilities in the first.
const blockRows = 2048

// block is a run of consecutive choices, complete panels if the data have panels. The variables
// are stored one after the other, so that a utility is a sum of vectors.
type block struct {
	first   int         // the number of choices before the block
	end     []int32     // of each choice: one past its last row
	alt     []int32     // of each row: the alternative
	chosen  []int32     // of each choice: the chosen row of the block, or none
	weight  []float64   // of each choice; nil for 1
	panel   []int32     // of each choice; nil without panels
	cluster []int32     // of each choice; nil without clusters
	x       [][]float64 // of each variable: a value for each row
}

func (b *block) rows() int    { return len(b.alt) }
func (b *block) choices() int { return len(b.end) }

// span returns the rows [lo, hi) of choice s of the block.
func (b *block) span(s int) (lo, hi int) {
	if s > 0 {
		lo = int(b.end[s-1])
	}
	return lo, int(b.end[s])
}

// weightOf returns the weight of choice s of the block.
func (b *block) weightOf(s int) float64 {
	if b.weight == nil {
		return 1
	}
	return b.weight[s]
}

// A Case is a choice as a Go value.
type Case struct {
	Alternatives []int     // the available ones, as indices into Data.Alternatives, each at most once
	X            []float64 // len(Alternatives) × len(Variables), row-major
	Chosen       int       // an index into Alternatives, or -1 for the outside option
	Weight       float64   // 0 stands for 1
	Panel        int       // the decision maker; used if Builder.Panels is set
	Cluster      int       // used if Builder.Clusters is set
}

// Builder makes Data from Go values, case by case.
type Builder struct {
	// Panels and Clusters say whether the cases have panels and clusters, which are numbered from
	// 0. The cases of a panel are consecutive.
	Panels, Clusters bool

	data     *Data
	open     *block
	x        [][]float64 // the open block's variables
	weighted bool
	closed   []bool // by panel: whether another one has followed
	seen     []int  // by alternative: 1 + the last choice that has it
}

// NewBuilder returns a Builder for choices among the alternatives, with or without an outside
// option.
func NewBuilder(alternatives, variables []string, outside bool) *Builder {
	return &Builder{data: &Data{Alternatives: alternatives, Variables: variables, Outside: outside}, open: &block{}, x: make([][]float64, len(variables))}
}

// Add adds a case. It returns an error, and adds nothing, if the case is not a choice among its
// alternatives with finite variables and a finite weight ≥ 0, or if its panel began before the
// previous case's.
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
	for len(b.seen) < len(d.Alternatives) {
		b.seen = append(b.seen, 0)
	}
	for _, alt := range c.Alternatives {
		if alt < 0 || alt >= len(d.Alternatives) {
			return fmt.Errorf("alternative %d: there are %d", alt, len(d.Alternatives))
		}
		if b.seen[alt] == d.Choices+1 {
			return fmt.Errorf("alternative %q is available twice", d.Alternatives[alt])
		}
		b.seen[alt] = d.Choices + 1
	}
	minimum := 0
	if d.Outside {
		minimum = none
	}
	switch {
	case len(c.Alternatives) == 0:
		return fmt.Errorf("no alternative is available")
	case len(c.X) != len(c.Alternatives)*len(d.Variables):
		return fmt.Errorf("%d values for %d alternatives of %d variables", len(c.X), len(c.Alternatives), len(d.Variables))
	case c.Chosen < minimum || c.Chosen >= len(c.Alternatives):
		return fmt.Errorf("chosen is %d: want a position among %d alternatives, or -1 for an outside option", c.Chosen, len(c.Alternatives))
	case !(c.Weight >= 0) || math.IsInf(c.Weight, 1):
		return fmt.Errorf("the weight is %v: want a finite number, at least 0", c.Weight)
	case b.Panels && c.Panel < 0 || b.Clusters && c.Cluster < 0:
		return fmt.Errorf("panels and clusters are numbered from 0")
	}
	for i, v := range c.X {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s of alternative %q is %v", d.Variables[i%len(d.Variables)], d.Alternatives[c.Alternatives[i/len(d.Variables)]], v)
		}
	}
	if b.Panels && b.returns(c.Panel) {
		return fmt.Errorf("panel %d has choices further up, and another panel's lie between: sort by panel", c.Panel)
	}
	return nil
}

// returns reports whether a panel has ended already.
func (b *Builder) returns(panel int) bool { return panel < len(b.closed) && b.closed[panel] }

// row adds a row to the choice that [Builder.close] will end.
func (b *Builder) row(alt int, x []float64) {
	b.open.alt = append(b.open.alt, int32(alt))
	for j, v := range x {
		b.x[j] = append(b.x[j], v)
	}
}

// close ends a choice: Chosen counts its rows, and its other fields but Weight, Panel and Cluster
// are not read.
func (b *Builder) close(c Case) {
	o, d := b.open, b.data
	lo := 0
	if n := len(o.end); n > 0 {
		lo = int(o.end[n-1])
	}
	// A block ends before a choice that would make it too long, but not within a panel.
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

// leave marks a panel as ended.
func (b *Builder) leave(panel int) {
	for len(b.closed) <= panel {
		b.closed = append(b.closed, false)
	}
	b.closed[panel] = true
}

// forget takes back the last n rows.
func (b *Builder) forget(n int) {
	b.open.alt = b.open.alt[:len(b.open.alt)-n]
	for j, x := range b.x {
		b.x[j] = x[:len(x)-n]
	}
}

// flush ends the open block after its first n rows, and opens another with the rest.
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

// clip returns a copy of s without spare capacity, nil for an empty one.
func clip[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return append(make([]T, 0, len(s)), s...)
}

// Data returns the choices that were added, and an error if there are none. The Builder is not
// used afterwards.
func (b *Builder) Data() (*Data, error) {
	if b.data.Choices == 0 {
		return nil, fmt.Errorf("there are no choices")
	}
	b.flush(len(b.open.alt))
	return b.data, nil
}

// Choice returns the alternatives, as indices, of choice s, and the place among them of the
// chosen one, or -1 for the outside option. It panics unless 0 ≤ s < d.Choices.
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

// Value returns the variable v, an index into Variables, of the i-th available alternative of
// choice s.
func (d *Data) Value(s, i, v int) float64 {
	b, s := d.locate(s)
	lo, _ := b.span(s)
	return b.x[v][lo+i]
}

// locate returns the block that has choice s, and the number of the choice in it.
func (d *Data) locate(s int) (*block, int) {
	if s < 0 || s >= d.Choices {
		panic(fmt.Sprintf("choice: choice %d of %d", s, d.Choices))
	}
	lo, hi := 0, len(d.blocks)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; d.blocks[mid].first <= s {
			lo = mid
		} else {
			hi = mid
		}
	}
	return d.blocks[lo], s - d.blocks[lo].first
}

// Slice returns the choices [from, to) of d. Panels and clusters keep their numbers.
func (d *Data) Slice(from, to int) (*Data, error) {
	return d.Filter(func(s int) bool { return s >= from && s < to })
}

// Filter returns the choices of d that keep reports true for. It returns an error if there are
// none.
func (d *Data) Filter(keep func(s int) bool) (*Data, error) {
	return d.reduce(nil, func(s int) float64 { return indicator(keep(s)) })
}

// reduce returns the choices without those whose share is 0, with their weights times the share. The rows of alternatives that are
// dropped are left out, and a choice of one becomes a choice of the outside option or of the first other row.
func (d *Data) reduce(dropped func(a int) bool, share func(s int) float64) (*Data, error) {
	var labels []string
	number := make([]int, len(d.Alternatives)) // in the result, or none
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
