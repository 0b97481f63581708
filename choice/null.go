package choice

import (
	"context"
	"math"
	"slices"
)

// null returns the log-likelihood of choices at random,
//
//	−Σ_s w_s log J_s
//
// with J_s the number of available alternatives, the outside option included.
func null(d *Data) (ll float64) {
	for _, b := range d.blocks {
		for s := range b.end {
			lo, hi := b.span(s)
			n := hi - lo
			if d.Outside {
				n++
			}
			ll -= b.weightOf(s) * math.Log(float64(n))
		}
	}
	return ll
}

// frequencies returns the weight of the choices that offer each alternative, and of those that took it; the outside option, if
// there is one, comes last.
func frequencies(d *Data) (offered, chosen []float64) {
	n := len(d.Alternatives)
	offered, chosen = make([]float64, n+1), make([]float64, n+1)
	for _, b := range d.blocks {
		for s := range b.end {
			weight := b.weightOf(s)
			lo, hi := b.span(s)
			for _, a := range b.alt[lo:hi] {
				offered[a] += weight
			}
			offered[n] += weight
			if c := b.chosen[s]; c != none {
				chosen[b.alt[c]] += weight
			} else {
				chosen[n] += weight
			}
		}
	}
	if !d.Outside {
		offered, chosen = offered[:n], chosen[:n]
	}
	return offered, chosen
}

// maxConstants is the most alternatives for which constants are estimated to compare with.
const maxConstants = 100

// constantsOnly returns the largest log-likelihood of utilities that are constants of the
// alternatives, NaN if these are too many. An alternative that nobody chose has the constant −∞.
func constantsOnly(ctx context.Context, d *Data, offered, chosen []float64, workers int) (float64, error) {
	if len(d.Alternatives) > maxConstants {
		return nan, nil
	}
	largest, ll, total := slices.Max(offered), 0.0, 0.0
	if slices.ContainsFunc(offered, func(n float64) bool { return n != 0 && n != largest }) {
		outside := 0.0
		if d.Outside {
			outside = chosen[len(d.Alternatives)]
		}
		return varyingConstants(ctx, d, chosen[:len(d.Alternatives)], outside, workers)
	}
	// Sets do not vary, and the estimates are the logarithms of the shares.
	for _, n := range chosen {
		total += n
		ll += xlogx(n)
	}
	return ll - xlogx(total), nil
}

func xlogx(x float64) float64 {
	if x == 0 {
		return 0
	}
	return x * math.Log(x)
}

// varyingConstants estimates the constants of the alternatives that were chosen, in choices whose
// sets vary.
func varyingConstants(ctx context.Context, d *Data, counts []float64, outside float64, workers int) (float64, error) {
	b := NewBuilder(d.Alternatives, nil, outside > 0)
	var chosenLabels []string
	for a, n := range counts {
		if n > 0 {
			chosenLabels = append(chosenLabels, d.Alternatives[a])
		}
	}
	for _, o := range d.blocks {
		for s := range o.end {
			lo, hi := o.span(s)
			c, n := Case{Chosen: none, Weight: o.weightOf(s)}, 0
			for i := lo; i < hi; i++ {
				if counts[o.alt[i]] == 0 {
					continue
				}
				if int(o.chosen[s]) == i {
					c.Chosen = n
				}
				b.row(int(o.alt[i]), nil)
				n++
			}
			if n > 0 {
				b.close(c)
			}
		}
	}
	u := &Utility{Constants: true}
	if outside > 0 {
		// The outside option is the reference: every alternative has a constant.
		u = &Utility{}
		for _, label := range chosenLabels {
			u.Terms = append(u.Terms, Term{label, "1", []string{label}})
		}
	}
	if b.data.Choices == 0 || len(chosenLabels) == 0 || !(outside > 0) && len(chosenLabels) == 1 {
		return 0, nil
	}
	data, err := b.Data()
	if err != nil {
		return 0, err
	}
	g, err := newDesign(u, chosenLabels, data)
	if err != nil {
		return 0, err
	}
	o := newObjective(mnl{design: g, outside: data.Outside}, data, workers)
	m := &minimiser{steps: 100, tolerance: 1e-8}
	best, err := m.newton(ctx, o, make([]float64, o.dim))
	if err != nil {
		return 0, err
	}
	return -best.value, nil
}
