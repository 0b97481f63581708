package choice

import (
	"context"
	"math"
	"slices"
)

// null returns the log-likelihood of random choices,
//
//	−Σ_s w_s log J_s
//
// where J_s is the number of available alternatives, including the outside option.
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

// zeroWeight returns the number of choices with weight 0.
func (d *Data) zeroWeight() (n int) {
	for _, b := range d.blocks {
		for _, w := range b.weight {
			n += int(indicator(w == 0))
		}
	}
	return n
}

// frequencies returns, by alternative, the weight of the choices that offer it and of the choices that take it. The
// outside option, if there is one, comes last.
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

// maxConstants is the maximum number of alternatives for the comparison with a constants-only model.
const maxConstants = 100

// constantsOnly returns the largest log-likelihood with a constant per alternative, or NaN if there are too many
// alternatives. An alternative that was never chosen gets the constant −∞.
func constantsOnly(ctx context.Context, d *Data, offered, chosen []float64, workers int) (float64, error) {
	if len(d.Alternatives) > maxConstants {
		return nan, nil
	}
	largest, ll, total := slices.Max(offered), 0.0, 0.0
	if slices.ContainsFunc(offered, func(n float64) bool { return n != 0 && n != largest }) {
		return varyingConstants(ctx, d, chosen, workers)
	}
	// The choice sets are all the same, so the estimates are the logarithms of the shares.
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

// varyingConstants estimates the constants of the chosen alternatives if choice sets vary.
func varyingConstants(ctx context.Context, d *Data, chosen []float64, workers int) (float64, error) {
	bare := *d // an outside option that was never taken is left out like an alternative
	bare.Variables, bare.Panels, bare.Clusters = nil, 0, 0
	bare.Outside = d.Outside && chosen[len(d.Alternatives)] > 0
	data, err := bare.reduce(func(a int) bool { return chosen[a] == 0 }, func(int) float64 { return 1 })
	if err != nil || len(data.Alternatives) == 1 && !data.Outside {
		return 0, nil // no choices, or just one alternative
	}
	g, err := newDesign(&Utility{Constants: true}, data.Alternatives, data.Outside, data)
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
