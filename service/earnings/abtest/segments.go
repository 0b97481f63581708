package abtest

import (
	"cmp"
	"slices"

	"vitrine/internal/confseq"
	"vitrine/internal/fields"
	"vitrine/internal/precise"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/offer"
)

// maxSegments limits the number of segments. The last one contains all values without one of their own.
const maxSegments = 8

// maxSegmentSums limits the values in a cohort, which become segments when it counts.
const maxSegmentSums = 4 * maxSegments

// segment holds the earnings from shoppers with one value of a feature, or a cohort's part of them.
type segment[T any] struct {
	value  string
	groups []offer.Totals // by variant
	leads  []T            // by variant: D over the control, as in [Results]; blocks are around 0
}

type (
	segmentMeans = segment[confseq.Mean]
	segmentSums  = segment[confseq.Block]
)

// segmentOf returns the index of a value's segment in a list. After most values, further ones share the value "".
func segmentOf[T any](list *[]segment[T], value string, most, variants int) int {
	at := slices.IndexFunc(*list, func(p segment[T]) bool { return p.value == value })
	if at < 0 {
		if len(*list) >= most && value != "" {
			return segmentOf(list, "", most, variants)
		}
		at = len(*list)
		*list = append(*list, segment[T]{value, make([]offer.Totals, variants), make([]T, variants)})
	}
	return at
}

// copySegments returns a deep copy.
func copySegments[T any](list []segment[T]) []segment[T] {
	list = slices.Clone(list)
	for i := range list {
		p := &list[i]
		p.groups, p.leads = slices.Clone(p.groups), slices.Clone(p.leads)
	}
	return list
}

// segmentFields encodes or decodes segments.
func segmentFields[T any](f *fields.Fields, list *[]segment[T], variants int, lead func(*T, *fields.Fields)) {
	fields.List(f, list, func(p *segment[T], f *fields.Fields) {
		if f.Reads() {
			p.groups, p.leads = make([]offer.Totals, variants), make([]T, variants)
		}
		f.String(&p.value)
		offer.GroupFields(f, p.groups)
		for v := range p.leads {
			lead(&p.leads[v], f)
		}
	})
}

// contrasts calls f for each variant's contrast with the control. side is the side that a class is on.
func (e *Experiment) contrasts(class int, shares []float64, f func(v, side int, c earnings.Contrast)) {
	control := Of(e.Design, e.Design.Control)
	for v, share := range shares {
		if v != control && share > 0 && shares[control] > 0 {
			f(v, sideOf(class, v, control), earnings.Contrast{P: share, Q: shares[control]})
		}
	}
}

// addToSegment adds a decision. centre is the mean revenue before it.
func (e *Experiment) addToSegment(s *segmentSums, o *offer.Closed, centre float64, shares []float64) {
	class := e.ClassOf(o.Variant)
	s.groups[class].Count(o)
	x, bound := o.Earned(), o.PageBound()
	e.contrasts(class, shares, func(v, side int, c earnings.Contrast) { c.Add(&s.leads[v], side, x, centre, bound) })
}

// partOf returns 1 + the index of the segment that contains a value, or 0.
func (s *sample) partOf(value string) int {
	at := func(value string) int {
		return 1 + slices.IndexFunc(s.parts, func(p segmentSums) bool { return p.value == value })
	}
	return cmp.Or(at(value), at(""))
}

// recountSegment changes the revenue of a decision of a segment.
func (e *Experiment) recountSegment(s *sample, at place, n earnings.Recount, shares []float64) {
	k := at.part - 1
	if k < 0 {
		return
	}
	n.In(&s.parts[k].groups[at.class])
	e.contrasts(at.class, shares, func(v, side int, c earnings.Contrast) {
		c.Replace(&s.parts[k].leads[v].Sums, side, n.Before, n.After, s.block.Centre)
	})
}

// segmentReports compares the variants in each segment, values with the most decisions first. All differences share the
// error, whatever the number of segments. Clusters are not counted for each segment: V_n grows by their factor in the
// whole experiment.
func (e *Experiment) segmentReports(control int) (list []api.SegmentReport) {
	alpha, most := experimentError/float64(maxSegments*(len(e.shares)-1)), e.Results.Mean.Bound
	for i := range e.parts {
		p := &e.parts[i]
		r := api.SegmentReport{Value: p.value}
		for v := range e.shares {
			of := api.SegmentVariant{Variant: e.Name(v), Group: p.groups[v].Report()}
			whole, _, ok := e.Results.lead(v, control)
			if m := p.leads[v]; ok && p.groups[v].Rounds > 0 && p.groups[control].Rounds > 0 {
				m.Squares = precise.Of(m.Squares.Value() * e.Results.dispersion(v, control, whole.Squares.Value()))
				low, high := m.Interval(alpha)
				of.Difference = &api.Interval{Low: max(low, -most), Estimate: m.Average(), High: min(high, most)}
			}
			r.Variants = append(r.Variants, of)
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b api.SegmentReport) int {
		switch {
		case a.Value == "":
			return 1
		case b.Value == "":
			return -1
		}
		return cmp.Compare(rounds(b), rounds(a))
	})
	return list
}

func rounds(r api.SegmentReport) (n uint64) {
	for i := range r.Variants {
		n += r.Variants[i].Group.Rounds
	}
	return n
}

// Dispersion returns the factor by which returning units add to the variance of a difference, so far; at least 1.
func (e *Experiment) Dispersion() float64 {
	m, _, ok := e.Results.lead(0, 1)
	if !ok {
		return 1
	}
	return e.Results.dispersion(0, 1, m.Squares.Value())
}

// dispersion returns the factor by which clusters make a pair's V_n larger, given its V_n with clusters.
func (r *Results) dispersion(v, u int, clustered float64) float64 {
	own := r.Pairs[pairOf(min(v, u), max(v, u))].Squares.Value()
	if own <= 0 {
		return 1
	}
	return max(1, clustered/own)
}
