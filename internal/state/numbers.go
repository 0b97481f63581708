package state

import "fmt"

// Numbers are the numeric fields of a part of a state, by which a snapshot of it is written and read: first the integers, then
// the times, then the floats.
type Numbers struct {
	integers []*uint64
	times    []*int64
	floats   []*float64
}

// Integers adds integers.
func (n *Numbers) Integers(list ...*uint64) { n.integers = append(n.integers, list...) }

// Times adds times, which may be negative.
func (n *Numbers) Times(list ...*int64) { n.times = append(n.times, list...) }

// Floats adds floats.
func (n *Numbers) Floats(list ...*float64) { n.floats = append(n.floats, list...) }

// Counts adds the elements of a list.
func (n *Numbers) Counts(list []uint64) {
	for i := range list {
		n.Integers(&list[i])
	}
}

// Encode writes the fields.
func (n Numbers) Encode(e *Encoder) {
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

// Decode reads them.
func (n Numbers) Decode(d *Decoder) {
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

// Flag appends 0 or 1.
func (e *Encoder) Flag(v bool) {
	if v {
		e.Count(1)
	} else {
		e.Count(0)
	}
}

// Flag reads what Encoder.Flag has written.
func (d *Decoder) Flag() bool {
	v := d.Count()
	if v > 1 {
		d.Fail(fmt.Errorf("snapshot has %d where there is 0 or 1", v))
	}
	return v == 1
}
