package variants

import (
	"errors"
	"fmt"
	"slices"

	"vitrine/internal/confseq"
	"vitrine/internal/state"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Numbers adds the fields to those of a snapshot, without the clusters.
func (r *Results) Numbers(n *state.Numbers) {
	confseq.Means(n, &r.Mean)
	n.Floats(&r.All)
	for v := range r.Variants {
		e := &r.Variants[v]
		confseq.Means(n, &e.Mean)
		for _, q := range []*Squares{&e.Sum, &e.Part} {
			n.Floats(&q.SS, &q.SN, &q.NN)
		}
	}
	for k := range r.Pairs {
		confseq.Means(n, &r.Pairs[k])
	}
}

// Numbers adds the fields to those of a snapshot.
func (b *Block) Numbers(n *state.Numbers) {
	n.Floats(&b.Centre)
	confseq.Blocks(n, &b.Mean)
	for v := range b.Variants {
		confseq.Blocks(n, &b.Variants[v])
	}
	for k := range b.Pairs {
		confseq.Blocks(n, &b.Pairs[k])
	}
}

// Copy returns a copy that shares nothing with e that changes.
func (e *Experiment) Copy() *Experiment {
	c := *e
	c.phases, c.points = slices.Clone(e.phases), slices.Clone(e.points)
	c.Results, c.held = e.Results.Copy(), e.held.Copy()
	c.groups, c.later, c.asked, c.units, c.seen = slices.Clone(e.groups), slices.Clone(e.later), slices.Clone(e.asked), slices.Clone(e.units), slices.Clone(e.seen)
	c.Ratio.Counts = slices.Clone(e.Ratio.Counts)
	c.samples = make([]*sample, len(e.samples))
	for i, s := range e.samples {
		c.samples[i] = &sample{s.number, s.open, s.block.Copy(), s.held.Copy(), slices.Clone(s.groups), slices.Clone(s.units)}
	}
	return &c
}

// numbers are those of the experiment that do not depend on the number of something else than its
func (e *Experiment) numbers() (n state.Numbers) {
	e.Results.Numbers(&n)
	if e.heldOut() {
		e.held.Numbers(&n)
	}
	offer.Groups(&n, e.groups)
	for class := range e.later {
		n.Floats(&e.later[class])
	}
	n.Counts(e.asked)
	n.Counts(e.units)
	n.Counts(e.Ratio.Counts)
	n.Floats(&e.Ratio.Log, &e.Ratio.Max)
	return n
}

// heldOut reports whether a phase has had a holdout.
func (e *Experiment) heldOut() bool {
	return slices.ContainsFunc(e.phases, func(p phase) bool { return p.holdout > 0 }) || e.asked[len(e.shares)] > 0
}

func (s *sample) numbers() (n state.Numbers) {
	n.Integers(&s.open)
	s.block.Numbers(&n)
	s.held.Numbers(&n)
	offer.Groups(&n, s.groups)
	n.Counts(s.units)
	return n
}

// Encode writes the experiment to a snapshot.
func (e *Experiment) Encode(w *state.Encoder) {
	w.Uint64(e.Number)
	w.Uint64(uint64(e.begun))
	w.Uint64(uint64(e.step))
	w.String(string(e.Table))
	w.Flag(e.heldOut())
	w.Count(len(e.phases))
	for _, p := range e.phases {
		w.Uint64(p.entry)
		w.Uint64(uint64(p.time))
		w.Count(p.holdout)
		w.Count(p.moved)
		for _, share := range p.shares {
			w.Float(share)
		}
	}
	e.numbers().Encode(w)
	for _, r := range []*Results{e.Results, e.held} {
		encodeSparse(w, r.Clusters, func(c *Cluster) {
			w.Float(c.N)
			w.Float(c.Sum)
			w.Float(c.Part)
		})
	}
	encodeSparse(w, e.seen, func(word *uint64) { w.Uint64(*word) })
	w.Count(len(e.samples))
	for _, s := range e.samples {
		w.Uint64(uint64(s.number))
		s.numbers().Encode(w)
	}
	w.Count(len(e.points))
	for _, p := range e.points {
		w.Uint64(uint64(p.time))
		w.Uint64(p.decisions)
		for _, list := range [][]api.Interval{p.means, p.differences} {
			for _, i := range list {
				w.Float(i.Low)
				w.Float(i.Estimate)
				w.Float(i.High)
			}
		}
	}
}

// encodeSparse writes the elements of a list that are not zero, with their places.
func encodeSparse[T comparable](w *state.Encoder, list []T, encode func(*T)) {
	var zero T
	n := 0
	for i := range list {
		if list[i] != zero {
			n++
		}
	}
	w.Count(n)
	for i := range list {
		if list[i] != zero {
			w.Count(i)
			encode(&list[i])
		}
	}
}

func decodeSparse[T comparable](d *state.Decoder, list []T, decode func(*T)) {
	var zero T
	next := 0
	for range d.Count() {
		i := d.Count()
		if d.Err() != nil {
			return
		}
		if i < next || i >= len(list) {
			d.Fail(fmt.Errorf("snapshot has element %d of %d after element %d", i, len(list), next-1))
			return
		}
		if decode(&list[i]); list[i] == zero {
			d.Fail(fmt.Errorf("snapshot has an empty element %d", i))
		}
		next = i + 1
	}
}

// Decode reads the experiment of a design from a snapshot.
func Decode(d *state.Decoder, design *api.Experiment) (*Experiment, error) {
	k := len(design.Variants)
	e := newExperiment(d.Uint64(), int64(d.Uint64()), design, int64(d.Uint64()))
	e.Table = []uint8(d.String())
	if len(e.Table) != Buckets || slices.ContainsFunc(e.Table, func(v uint8) bool { return int(v) >= k }) {
		return nil, errors.New("the buckets of an experiment are not those of its variants")
	}
	held := d.Flag()
	n := d.Count()
	if n > maxPhases || n == 0 {
		return nil, fmt.Errorf("snapshot has an experiment of %d phases", n)
	}
	for range n {
		q := phase{entry: d.Uint64(), time: int64(d.Uint64()), holdout: d.Count(), moved: d.Count(), shares: make([]float64, k)}
		for v := range q.shares {
			q.shares[v] = d.Float()
		}
		if m := len(e.phases); m > 0 && e.phases[m-1].entry >= q.entry {
			return nil, errors.New("the phases of an experiment are not in order")
		}
		e.phases = append(e.phases, q)
	}
	last := &e.phases[len(e.phases)-1]
	e.shares, e.holdout = last.shares, last.holdout
	counts := make([]float64, k)
	for _, v := range e.Table {
		counts[v]++
	}
	for v, share := range e.shares {
		if share != counts[v]/Buckets {
			return nil, fmt.Errorf("variant %q has %v of %d buckets, and the share %v", design.Variants[v].Name, counts[v], Buckets, share)
		}
	}
	e.Ratio.Begin(k + 1)
	if held {
		e.asked[k] = 1 // so that its numbers are there
	}
	e.numbers().Decode(d)
	for _, r := range []*Results{e.Results, e.held} {
		decodeSparse(d, r.Clusters, func(c *Cluster) { c.N, c.Sum, c.Part = d.Float(), d.Float(), d.Float() })
	}
	decodeSparse(d, e.seen, func(word *uint64) { *word = d.Uint64() })
	for range d.Count() {
		if d.Err() != nil {
			return nil, d.Err()
		}
		s := e.newSample(int64(d.Uint64()))
		if m := len(e.samples); m > 0 && e.samples[m-1].number >= s.number {
			return nil, errors.New("the cohorts of an experiment are not in order")
		}
		s.numbers().Decode(d)
		e.samples = append(e.samples, s)
	}
	if n = d.Count(); n > maxPoints {
		return nil, fmt.Errorf("snapshot has an experiment of %d points", n)
	}
	for range n {
		q := point{time: int64(d.Uint64()), decisions: d.Uint64(), means: make([]api.Interval, k), differences: make([]api.Interval, k)}
		for _, list := range [][]api.Interval{q.means, q.differences} {
			for i := range list {
				list[i] = api.Interval{Low: d.Float(), Estimate: d.Float(), High: d.Float()}
			}
		}
		e.points = append(e.points, q)
	}
	return e, d.Err()
}
