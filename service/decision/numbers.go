package decision

import (
	"vitrine/internal/confseq"
	"vitrine/internal/state"
	"vitrine/service/api"
)

// numbers are the numeric fields of a part of the state, by which a snapshot of it is written and read: first the integers, then
// the times, then the floats.
type numbers struct {
	integers []*uint64
	times    []*int64
	floats   []*float64
}

func (n *numbers) count(list ...*uint64) { n.integers = append(n.integers, list...) }
func (n *numbers) time(list ...*int64)   { n.times = append(n.times, list...) }
func (n *numbers) sum(list ...*float64)  { n.floats = append(n.floats, list...) }

func (n *numbers) counts(list []uint64) {
	for i := range list {
		n.count(&list[i])
	}
}

func (n *numbers) groups(list []api.Group) {
	for i := range list {
		n.count(&list[i].Rounds, &list[i].Purchases)
		n.sum(&list[i].Revenue, &list[i].Squares)
	}
}

func (n *numbers) comparison(c *api.Comparison) {
	n.count(&c.Rounds, &c.Agreements, &c.Estimated)
	n.sum(&c.Policy, &c.Baseline)
}

func (n *numbers) means(list ...*confseq.Mean) {
	for _, m := range list {
		n.count(&m.N)
		n.sum(&m.Sum, &m.Squares, &m.First, &m.Bound)
	}
}

func (n *numbers) blocks(list ...*confseq.Block) {
	for _, b := range list {
		n.count(&b.N)
		n.sum(&b.Centre, &b.Sum, &b.Squares, &b.First, &b.Bound)
	}
}

func (n numbers) encode(e *state.Encoder) {
	for _, v := range n.integers {
		e.Uint64(*v)
	}
	for _, v := range n.times {
		e.Uint64(uint64(*v))
	}
	for _, v := range n.floats {
		e.Float(*v)
	}
}

func (n numbers) decode(d decoder) {
	for _, v := range n.integers {
		*v = d.Uint64()
	}
	for _, v := range n.times {
		*v = int64(d.Uint64())
	}
	for _, v := range n.floats {
		*v = d.Float()
	}
}
