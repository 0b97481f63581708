package figure

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/vg"
)

// labelHeight is the height of a label at the end of a curve, in points.
const labelHeight = 15

// label names a policy.
type label struct {
	policy string
	name   string  // name in the picture
	final  float64 // mean regret in round T, averaged over panels
	note   string  // the same in words, if there is a single panel
}

// labels names every policy once, by decreasing regret in round T, which is the order of the curves' ends.
func labels(plots ...regretPlot) []label {
	var all []label
	finals := map[string][]float64{}
	for _, p := range plots {
		for _, tr := range p.traces {
			if finals[tr.policy] == nil {
				all = append(all, label{policy: tr.policy, name: p.look.name(tr.policy)})
			}
			finals[tr.policy] = append(finals[tr.policy], tr.last().mean)
		}
	}
	for i := range all {
		l := &all[i]
		l.final = stat.Mean(finals[l.policy], nil)
		if len(plots) == 1 {
			p := plots[0]
			l.note = p.look.Band.note(p.traces[i].last(), p.Curves[i].seeds(), p.format(), decimals(p.highest()))
		}
	}
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(b.final, a.final) })
	return all
}

// decimals returns the number of decimals in a note, for regrets up to highest, which is positive.
func decimals(highest float64) int {
	switch {
	case highest < 0.01:
		return 1 + decimals(10*highest)
	case highest < 1:
		return 3
	case highest < 10:
		return 2
	default:
		return 1
	}
}

func nameWidth(labels []label) (w vg.Length) {
	for _, l := range labels {
		w = max(w, textWidth(faces().text, l.name))
	}
	return w
}

// noteWidth returns the width of the widest note, including the space before it.
func noteWidth(labels []label) (w vg.Length) {
	for _, l := range labels {
		if l.note != "" {
			w = max(w, 2*space+textWidth(faces().small, l.note))
		}
	}
	return w
}

// ends labels the curves in a single panel at their ends.
func (p regretPlot) ends(a axes, labels []label, styles map[string]style) {
	ends := make([]vg.Length, len(labels))
	for k, l := range labels {
		ends[k] = a.Y(a.y.at(l.final))
	}
	notes := sample + space + nameWidth(labels) + noteWidth(labels)
	for k, y := range spread(ends, labelHeight, a.Min.Y, a.Max.Y) {
		l := labels[k]
		a.StrokeLine2(leader, a.Max.X+3, ends[k], a.Max.X+gap-3, y)
		pt := vg.Point{X: a.Max.X + gap, Y: y}
		e := entry{line(styles[l.policy].line()), l.name}
		e.draw(a.Canvas, pt, e.width())
		pt = pt.Add(vg.Point{X: notes, Y: -ascent / 2 * faces().text.Font.Size})
		write(a, faces().small, faint, pt, fromEnd, l.note)
	}
}

// spread moves decreasing heights as little as possible in the sense of least squares, so that neighbours are at least
// gap apart and all lie in [low, high]:
//
//	minimise Σ_k (h_k - y_k)²  over  h_{k-1} - h_k ≥ gap,  low ≤ h_k ≤ high
//
// In z_k = h_k + k·gap this is isotonic regression in a box, which pools adjacent violators and then clamps (Barlow,
// Bartholomew, Bremner and Brunk 1972). It returns new heights, and assumes that there is room for them.
func spread(heights []vg.Length, gap, low, high vg.Length) []vg.Length {
	type pool struct {
		mean vg.Length
		size int
	}
	var pools []pool
	for k, y := range heights {
		p := pool{y + vg.Length(k)*gap, 1}
		for n := len(pools); n > 0 && pools[n-1].mean <= p.mean; n-- {
			q := pools[n-1]
			size := q.size + p.size
			p = pool{(q.mean*vg.Length(q.size) + p.mean*vg.Length(p.size)) / vg.Length(size), size}
			pools = pools[:n-1]
		}
		pools = append(pools, p)
	}
	low += vg.Length(len(heights)-1) * gap
	spread := make([]vg.Length, 0, len(heights))
	for _, p := range pools {
		for range p.size {
			spread = append(spread, min(max(p.mean, low), high)-vg.Length(len(spread))*gap)
		}
	}
	return spread
}
