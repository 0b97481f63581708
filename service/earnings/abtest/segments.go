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

// segmentBuckets is the number of buckets for V_n in a segment: fewer than Buckets, which would take much memory.
const segmentBuckets = 512

// leastBuckets is how many of these need decisions before a difference is reported: of a few, all may buy by chance.
const leastBuckets = 8

// segment holds the earnings from shoppers with one value of a feature.
type segment struct {
	value  string
	groups []offer.Totals // by variant
	leads  []confseq.Mean // by variant: D over the control, as in [Results]
	sizes  []float64      // number of decisions by bucket
	sums   [][]float64    // Σ D by variant and bucket
}

// part holds a cohort's earnings in a segment.
type part struct {
	groups []offer.Totals
	leads  []confseq.Block // around 0
}

func newSegment(variants int) segment {
	s := segment{groups: make([]offer.Totals, variants), leads: make([]confseq.Mean, variants),
		sizes: make([]float64, segmentBuckets), sums: make([][]float64, variants)}
	for v := range s.sums {
		s.sums[v] = make([]float64, segmentBuckets)
	}
	return s
}

// segmentOf returns the index of a value's segment. After most values, further ones share the segment of "".
func (e *Experiment) segmentOf(value string) int {
	at := slices.IndexFunc(e.parts, func(s segment) bool { return s.value == value })
	if at < 0 {
		if len(e.parts) >= maxSegments-1 && value != "" {
			return e.segmentOf("")
		}
		at = len(e.parts)
		e.parts = append(e.parts, newSegment(len(e.shares)))
		e.parts[at].value = value
	}
	return at
}

// copySegments returns a deep copy.
func copySegments(list []segment) []segment {
	list = slices.Clone(list)
	for i := range list {
		s := &list[i]
		s.groups, s.leads, s.sizes, s.sums = slices.Clone(s.groups), slices.Clone(s.leads), slices.Clone(s.sizes),
			slices.Clone(s.sums)
		for v := range s.sums {
			s.sums[v] = slices.Clone(s.sums[v])
		}
	}
	return list
}

// copyParts returns a deep copy.
func copyParts(list []part) []part {
	list = slices.Clone(list)
	for i := range list {
		list[i] = part{slices.Clone(list[i].groups), slices.Clone(list[i].leads)}
	}
	return list
}

// fields encodes or decodes a segment of a number of variants.
func (s *segment) fields(f *fields.Fields, variants int) {
	value := func(v *float64, f *fields.Fields) { f.Float(v) }
	if f.Reads() {
		*s = newSegment(variants)
	}
	f.String(&s.value)
	offer.GroupFields(f, s.groups)
	sparse(f, s.sizes, value)
	for v := range s.leads {
		s.leads[v].Fields(f)
		sparse(f, s.sums[v], value)
	}
}

func (p *part) fields(f *fields.Fields, variants int) {
	if f.Reads() {
		*p = part{make([]offer.Totals, variants), make([]confseq.Block, variants)}
	}
	offer.GroupFields(f, p.groups)
	for v := range p.leads {
		p.leads[v].Fields(f)
	}
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

// addToSegment adds a decision to a cohort's part of a segment.
func (e *Experiment) addToSegment(s *sample, k int, o *offer.Closed, shares []float64) {
	for len(s.parts) <= k {
		s.parts = append(s.parts, part{make([]offer.Totals, len(shares)), make([]confseq.Block, len(shares))})
	}
	class, p, to := e.ClassOf(o.Variant), &s.parts[k], &e.parts[k]
	p.groups[class].Count(o)
	x, bound, bucket := o.Earned(), o.PageBound(), e.bucket(o.Unit)%segmentBuckets
	to.sizes[bucket]++
	e.contrasts(class, shares, func(v, side int, c earnings.Contrast) {
		c.Add(&p.leads[v], side, x, s.block.Centre, bound)
		to.sums[v][bucket] += c.Lead(side, x, s.block.Centre)
	})
}

// recountSegment changes the revenue of a unit's decision in a segment.
func (e *Experiment) recountSegment(s *sample, at place, unit uint64, n earnings.Recount, shares []float64) {
	k, m := at.part-1, s.block.Centre
	if k < 0 {
		return
	}
	n.In(&s.parts[k].groups[at.class])
	e.contrasts(at.class, shares, func(v, side int, c earnings.Contrast) {
		c.Replace(&s.parts[k].leads[v].Sums, side, n.Before, n.After, m)
		e.parts[k].sums[v][e.bucket(unit)%segmentBuckets] += c.Lead(side, n.After, m) - c.Lead(side, n.Before, m)
	})
}

// around returns V by buckets for a variant's D around its mean.
func (s *segment) around(v int, mean float64) (sum float64) {
	for b, n := range s.sizes {
		d := s.sums[v][b] - float64(mean*n)
		sum += float64(d * d)
	}
	return sum
}

// segmentReports compares the variants in each segment, values with the most decisions first. All differences share the
// error, whatever the number of segments.
func (e *Experiment) segmentReports(control int) (list []api.SegmentReport) {
	alpha, most := experimentError/float64(maxSegments*(len(e.shares)-1)), e.Results.Mean.Bound
	for i := range e.parts {
		p := &e.parts[i]
		r, used := api.SegmentReport{Value: p.value}, 0
		for _, n := range p.sizes {
			if n > 0 {
				used++
			}
		}
		for v := range e.shares {
			of := api.SegmentVariant{Variant: e.Name(v), Group: p.groups[v].Report()}
			if m := p.leads[v]; v != control && used >= leastBuckets && m.N > 0 && p.groups[v].Rounds > 0 && p.groups[control].Rounds > 0 {
				m.Squares = precise.Of(max(m.Squares.Value(), p.around(v, m.Average())))
				low, high := m.Interval(alpha)
				of.Difference = &api.Interval{Low: max(low, -most), Estimate: m.Average(), High: min(high, most)}
			}
			r.Variants = append(r.Variants, of)
		}
		if rounds(r) > 0 {
			list = append(list, r)
		}
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
	if own := e.Results.Pairs[0].Squares.Value(); ok && own > 0 {
		return max(1, m.Squares.Value()/own)
	}
	return 1
}
