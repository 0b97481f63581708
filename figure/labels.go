package figure

import (
	"cmp"
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"
)

// labelHeight is that of a label at the end of a curve, in points.
const labelHeight = 15

// label names a policy.
type label struct {
	policy string
	final  float64 // its mean regret in round T, and of several panels the mean of these
	note   string  // the same in words, in a lone panel
}

// labels names every policy once, in the order of the regrets in round T, the
// largest first, which is how the curves end.
func labels(panels ...Panel) []label {
	var all []label
	finals := map[string][]float64{}
	for _, p := range panels {
		for _, c := range p.Curves {
			if finals[c.Policy] == nil {
				all = append(all, label{policy: c.Policy})
			}
			finals[c.Policy] = append(finals[c.Policy], c.Mean[len(c.Mean)-1])
		}
	}
	for i := range all {
		l := &all[i]
		for _, v := range finals[l.policy] {
			l.final += v / float64(len(finals[l.policy]))
		}
		if len(panels) == 1 {
			l.note = note(panels[0].Curves[i], decimals(panels[0].highest()))
		}
	}
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(b.final, a.final) })
	return all
}

// note is the regret in round T, with its standard deviation where it has one.
func note(c Curve, decimals int) string {
	last := len(c.Mean) - 1
	if c.SD == nil {
		return fmt.Sprintf("%.*f", decimals, c.Mean[last])
	}
	return fmt.Sprintf("%.*f ± %.*f", decimals, c.Mean[last], decimals, c.SD[last])
}

// decimals of a note, for regrets up to highest.
func decimals(highest float64) int {
	switch {
	case highest < 1:
		return 3
	case highest < 10:
		return 2
	default:
		return 1
	}
}

// policyWidth is that of the widest policy name.
func policyWidth(labels []label) (w vg.Length) {
	for _, l := range labels {
		w = max(w, faces().text.Width(l.policy))
	}
	return w
}

// noteWidth is that of the widest note, with what stands before it.
func noteWidth(labels []label) (w vg.Length) {
	for _, l := range labels {
		if l.note != "" {
			w = max(w, 2*space+faces().small.Width(l.note))
		}
	}
	return w
}

// ends names the curves of a lone panel where they end.
func (a axes) ends(labels []label, styles map[string]style) {
	ends := make([]vg.Length, len(labels))
	for k, l := range labels {
		ends[k] = a.at(a.x.high, l.final).Y
	}
	notes := sample + space + policyWidth(labels) + noteWidth(labels)
	for k, y := range spread(ends, labelHeight, a.Min.Y, a.Max.Y) {
		l := labels[k]
		a.StrokeLine2(leader, a.Max.X+3, ends[k], a.Max.X+gap-3, y)
		pt := vg.Point{X: a.Max.X + gap, Y: y}
		entry{line(styles[l.policy].line()), l.policy}.draw(a.Canvas, pt)
		pt = pt.Add(vg.Point{X: notes, Y: -ascent / 2 * faces().text.Font.Size})
		write(a, faces().small, faint, pt, fromEnd, l.note)
	}
}

// spread moves heights, which fall, as little as possible in the sense of
// least squares, such that neighbours stand at least gap apart and all lie in
// [low, high]:
//
//	minimise Σ_k (h_k - y_k)²  over  h_{k-1} - h_k ≥ gap,  low ≤ h_k ≤ high
//
// In z_k = h_k + k·gap this is isotonic regression in a box, which pools
// adjacent violators and then clamps (Barlow, Bartholomew, Bremner and Brunk
// 1972). It returns new heights, and assumes that they have room.
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
