package abtest

import (
	"slices"

	"vitrine/internal/confseq"
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Copy returns a deep copy of everything in e that changes.
func (e *Experiment) Copy() *Experiment {
	c := *e
	c.phases, c.points = slices.Clone(e.phases), slices.Clone(e.points)
	c.Results = e.Results.Copy()
	c.reported = slices.Clone(e.reported)
	c.metrics, c.parts = slices.Clone(e.metrics), copySegments(e.parts)
	for k := range c.metrics {
		c.metrics[k] = c.metrics[k].Copy()
	}
	c.firsts = e.firsts.Copy()
	c.groups, c.later, c.asked, c.units, c.seen = slices.Clone(e.groups), slices.Clone(e.later), slices.Clone(e.asked),
		slices.Clone(e.units), slices.Clone(e.seen)
	c.evicted, c.missing, c.signs = slices.Clone(e.evicted), slices.Clone(e.missing), slices.Clone(e.signs)
	c.Ratio.Counts = slices.Clone(e.Ratio.Counts)
	c.cohorts = e.cohorts.Copy(func(s **sample) *sample {
		return (*s).copy()
	})
	return &c
}

func (s *sample) copy() *sample {
	c := &sample{s.entry, s.block.Copy(), slices.Clone(s.metrics), s.firsts.Copy(), copyParts(s.parts),
		slices.Clone(s.groups), s.peaks}
	for k := range c.metrics {
		c.metrics[k] = c.metrics[k].Copy()
	}
	return c
}

// Fields encodes or decodes the results. Both sides know the number of variants.
func (r *Results) Fields(f *fields.Fields) {
	r.Mean.Fields(f)
	f.Float(&r.All)
	for v := range r.Variants {
		e := &r.Variants[v]
		e.Mean.Fields(f)
		for _, q := range []*Squares{&e.Sum, &e.Part} {
			f.Float(q.SS.Parts())
			f.Float(q.SN.Parts())
			f.Float(&q.NN)
		}
	}
	for k := range r.Pairs {
		r.Pairs[k].Fields(f)
	}
	sparse(f, r.Clusters, func(c *Cluster, f *fields.Fields) { f.Float(&c.N, &c.Sum, &c.Part) })
}

// Fields encodes or decodes a block of results.
func (b *Block) Fields(f *fields.Fields) {
	f.Float(&b.Centre)
	b.Mean.Fields(f)
	for _, list := range [][]confseq.Block{b.Variants, b.Pairs} {
		for k := range list {
			list[k].Fields(f)
		}
	}
}

func (s *sample) fields(f *fields.Fields, segments int) {
	f.Uvarint(&s.entry)
	s.block.Fields(f)
	for _, m := range s.metrics {
		m.Fields(f)
	}
	s.firsts.Fields(f)
	fields.List(f, &s.parts, func(p *part, f *fields.Fields) { p.fields(f, len(s.groups)) })
	f.Check(len(s.parts) <= segments, "a cohort of %d segments", len(s.parts))
	offer.GroupFields(f, s.groups)
	s.peaks.Fields(f, func(p *place, f *fields.Fields) {
		f.Count(&p.class, &p.part)
		f.Check(p.class < len(s.groups) && p.part <= len(s.parts), "a peak of variant %d in segment %d", p.class, p.part)
	})
}

func (p *phase) fields(f *fields.Fields) {
	f.Uvarint(&p.entry)
	f.Int64(&p.time)
	f.Count(&p.moved)
	f.Floats(&p.shares)
}

func (p *point) fields(f *fields.Fields) {
	f.Int64(&p.time)
	f.Uvarint(&p.decisions)
	for _, list := range []*[]api.Interval{&p.means, &p.differences} {
		fields.List(f, list, func(i *api.Interval, f *fields.Fields) { f.Float(&i.Low, &i.Estimate, &i.High) })
	}
}

// Fields encodes or decodes the experiment. Decoding keeps the design.
func (e *Experiment) Fields(f *fields.Fields) {
	k := len(e.Design.Variants)
	f.Uvarint(&e.Number)
	f.Int64(&e.begun, &e.step)
	f.Bytes(&e.Table)
	fields.List(f, &e.phases, (*phase).fields)
	e.Results.Fields(f)
	for _, m := range e.metrics {
		m.Fields(f)
	}
	e.firsts.Fields(f)
	fields.Elements(f, e.reported)
	fields.List(f, &e.parts, func(s *segment, f *fields.Fields) { s.fields(f, k) })
	f.Check(len(e.parts) <= maxSegments, "an experiment of %d segments", len(e.parts))
	offer.GroupFields(f, e.groups)
	for v := range e.later {
		f.Float(e.later[v].Parts())
	}
	f.Uvarint(&e.widest.Entry, &e.taken)
	f.Float(&e.widest.Value)
	fields.Elements(f, e.asked)
	fields.Elements(f, e.evicted)
	for v := range e.missing {
		f.Float(&e.missing[v])
	}
	for v := range e.units {
		f.Float(&e.units[v])
	}
	for i := range e.signs {
		n := &e.signs[i]
		f.Uvarint(&n.fallback, &n.lost, &n.valued)
		for _, r := range []*row{&n.row, &n.first} {
			f.Uvarint(&r.length, &r.others, &r.sold)
		}
		f.Float(&n.logs, &n.squares)
	}
	if f.Reads() {
		e.Ratio.Begin(k)
	}
	fields.Elements(f, e.Ratio.Counts)
	f.Float(&e.Ratio.Log, &e.Ratio.Max)
	sparse(f, e.seen, func(word *uint64, f *fields.Fields) { f.Fixed64(word) })
	f.Check(e.taken <= seenUnits, "%d unit hashes", e.taken)
	e.cohorts.Fields(f, e.newSample, func(s **sample, f *fields.Fields) { (*s).fields(f, len(e.parts)) })
	if fields.List(f, &e.points, (*point).fields); f.Reads() && f.Err() == nil {
		e.restored(f, k)
	}
}

// restored validates a decoded experiment of k variants, and makes its last phase the current one.
func (e *Experiment) restored(f *fields.Fields, k int) {
	f.Check(len(e.Table) == Buckets && !slices.ContainsFunc(e.Table, func(v uint8) bool { return int(v) >= k }),
		"the buckets of an experiment are not those of its variants")
	f.Check(len(e.phases) > 0 && len(e.phases) <= maxPhases, "an experiment of %d phases", len(e.phases))
	f.Check(len(e.points) <= maxPoints, "an experiment of %d points", len(e.points))
	fields.Ascending(f, "the phases of an experiment", e.phases, func(p *phase) uint64 { return p.entry })
	for _, p := range e.phases {
		f.Check(len(p.shares) == k, "the shares of %d variants, want %d", len(p.shares), k)
	}
	for _, p := range e.points {
		f.Check(len(p.means) == k && len(p.differences) == k, "a point of %d variants and %d differences, want %d",
			len(p.means), len(p.differences), k)
	}
	if f.Err() != nil {
		return
	}
	last := &e.phases[len(e.phases)-1]
	e.shares = last.shares
	counts := make([]float64, k)
	for _, v := range e.Table {
		counts[v]++
	}
	for v, share := range e.shares {
		f.Check(share == counts[v]/Buckets, "variant %q has %v of %d buckets, and the share %v",
			e.Design.Variants[v].Name, counts[v], Buckets, share)
	}
}

// sparse encodes or decodes the nonzero elements of a list, with their indices.
func sparse[T comparable](f *fields.Fields, list []T, element func(*T, *fields.Fields)) {
	var zero T
	var places []int
	for i := range list {
		if list[i] != zero {
			places = append(places, i)
		}
	}
	fields.Integers(f, &places)
	fields.Ascending(f, "places", places, func(i *int) int { return *i })
	for _, i := range places {
		if f.Check(i < len(list), "element %d of %d", i, len(list)); f.Err() != nil {
			return
		}
		element(&list[i], f)
		f.Check(list[i] != zero, "element %d is empty", i)
	}
}
