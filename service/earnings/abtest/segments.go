package abtest

import (
	"slices"

	"vitrine/internal/confseq"
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/offer"
)

// maxSegments limits the number of segments. The last one contains all values without one of their own.
const maxSegments = 8

// maxSegmentSums limits the values in a cohort, which become segments when it counts.
const maxSegmentSums = 4 * maxSegments

// segment holds the earnings from shoppers with one value of a feature.
type segment struct {
	value  string
	groups []api.Totals   // by variant
	leads  []confseq.Mean // by variant: D over the control, as in [Results]
}

// segmentSums are a cohort's part of a segment.
type segmentSums struct {
	value  string
	groups []api.Totals
	leads  []confseq.Block // around 0
}

// part returns a cohort's sums for a value.
func (s *sample) part(value string, variants int) *segmentSums {
	at := slices.IndexFunc(s.parts, func(p segmentSums) bool { return p.value == value })
	if at < 0 {
		if len(s.parts) >= maxSegmentSums && value != "" {
			return s.part("", variants)
		}
		at = len(s.parts)
		s.parts = append(s.parts, segmentSums{value, make([]api.Totals, variants), make([]confseq.Block, variants)})
	}
	return &s.parts[at]
}

// add adds a decision of a variant with the revenue x ≤ bound. centre is the mean revenue before it.
func (s *segmentSums) add(variant, control int, x, centre, bound float64, shares []float64, group *api.Totals) {
	s.groups[variant].Add(group)
	for v, share := range shares {
		if v == control || share == 0 || shares[control] == 0 {
			continue
		}
		way := earnings.Neither
		switch variant {
		case v:
			way = earnings.First
		case control:
			way = earnings.Second
		}
		earnings.Contrast{P: share, Q: shares[control]}.Add(&s.leads[v], way, x, centre, bound)
	}
}

// part returns the segment of a value.
func (e *Experiment) part(value string) *segment {
	at := slices.IndexFunc(e.parts, func(p segment) bool { return p.value == value })
	if at < 0 {
		if len(e.parts) >= maxSegments-1 && value != "" {
			return e.part("")
		}
		at = len(e.parts)
		e.parts = append(e.parts, segment{value, make([]api.Totals, len(e.shares)), make([]confseq.Mean, len(e.shares))})
	}
	return &e.parts[at]
}

// take adds a cohort's sums.
func (p *segment) take(s *segmentSums) {
	for v := range p.groups {
		p.groups[v].Add(&s.groups[v])
		p.leads[v].Add(&s.leads[v])
	}
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
			of := api.SegmentVariant{Variant: e.Name(v), Group: p.groups[v]}
			whole, _, ok := e.Results.lead(v, control)
			if m := p.leads[v]; ok && p.groups[v].Rounds > 0 && p.groups[control].Rounds > 0 {
				m.Squares *= e.Results.dispersion(v, control, whole.Squares)
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
		return int(rounds(b)) - int(rounds(a))
	})
	return list
}

func rounds(r api.SegmentReport) (n uint64) {
	for i := range r.Variants {
		n += r.Variants[i].Group.Rounds
	}
	return n
}

// dispersion returns the factor by which clusters make a pair's V_n larger, given its V_n with clusters.
func (r *Results) dispersion(v, u int, clustered float64) float64 {
	own := r.Pairs[pairOf(min(v, u), max(v, u))].Squares
	if own == 0 {
		return 1
	}
	return max(1, clustered/own)
}

func (p *segment) fields(f *fields.Fields) {
	f.String(&p.value)
	offer.GroupFields(f, p.groups)
	for v := range p.leads {
		p.leads[v].Fields(f)
	}
}

func (s *segmentSums) fields(f *fields.Fields) {
	f.String(&s.value)
	offer.GroupFields(f, s.groups)
	for v := range s.leads {
		s.leads[v].Fields(f)
	}
}
