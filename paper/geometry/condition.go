package geometry

import (
	"context"
	"errors"
	"math"
)

// Condition holds the constants in Assumption "Generalized geometric condition on the squared loss": for every w,
//
//	min_{w̃∈W*} {μ/2 ‖w − w̃‖², τ/2 ‖w − w̃‖^γ} ≤ ℓ_sq(w)
//
// where μ, τ > 0 and 0 < γ < 2. Both terms grow with the distance, so only the nearest w̃ matters; ℓ_sq(w̃) is 0.
type Condition struct {
	Mu    float64 `json:"mu"`
	Tau   float64 `json:"tau"`
	Gamma float64 `json:"gamma"`
}

// StrongConvexity returns μ/2 r², the smaller term near W*.
func (c Condition) StrongConvexity(r float64) float64 { return c.Mu / 2 * r * r }

// Growth returns τ/2 r^γ, the smaller term far from W*.
func (c Condition) Growth(r float64) float64 { return c.Tau / 2 * math.Pow(r, c.Gamma) }

// Bound returns the smaller of the two terms at distance r from W*.
func (c Condition) Bound(r float64) float64 { return min(c.StrongConvexity(r), c.Growth(r)) }

// Distance returns min_{w̃∈W*} ‖w − w̃‖.
func Distance(w Params, equivalents []Params) float64 {
	r := math.Inf(1)
	for _, e := range equivalents {
		r = min(r, distance(w, e))
	}
	return r
}

// Fit returns constants, for a given γ, with which the condition holds on the grid's whole box, and the point at which
// τ is tight. A larger μ needs a smaller τ; the rule is
//
//	μ = share · min_{w̃∈W*} λ_min(∇²ℓ_sq(w̃)),  0 < share < 1
//	τ = inf {2 ℓ_sq(w) / dist(w, W*)^γ : μ/2 dist(w, W*)² > ℓ_sq(w)}
//
// so that μ is the loss's strong convexity near W*, minus a margin, and τ the largest constant that holds wherever μ
// does not. The infimum is taken on the loss's grid g, and then on finer grids around each local minimum. Both
// constants are rounded down to three digits.
//
// It is an error if the curvature at W* is 0, or if μ holds everywhere.
func Fit(ctx context.Context, l *Loss, g Grid, equivalents []Params,
	gamma, share float64) (c Condition, tight Params, err error) {
	curvature := math.Inf(1)
	for _, w := range equivalents {
		curvature = min(curvature, l.Curvature(w))
	}
	if !(curvature > 0) {
		return c, tight, errors.New("geometry: the loss is flat at a global minimum: no μ is positive")
	}
	c = Condition{Mu: down(share * curvature), Gamma: gamma}
	// ratio returns the upper bound of τ at w.
	ratio := func(w Params, loss float64) float64 {
		r := Distance(w, equivalents)
		if c.StrongConvexity(r) <= loss {
			return math.Inf(1)
		}
		return 2 * loss / math.Pow(r, gamma)
	}
	ratios := Grid{Box: g.Box, N: g.N}
	for i := range g.N {
		for j := range g.N {
			ratios.Value = append(ratios.Value, ratio(g.Params(i, j), g.At(i, j)))
		}
	}
	lowest := math.Inf(1)
	for _, at := range ratios.lowest() {
		if math.IsInf(ratios.At(at[0], at[1]), 1) {
			continue
		}
		w, value, err := zoom(ctx, func(w Params) float64 { return ratio(w, l.At(w)) }, ratios, at)
		if err != nil {
			return c, tight, err
		}
		if value < lowest {
			tight, lowest = w, value
		}
	}
	if math.IsInf(lowest, 1) {
		return c, tight, errors.New("geometry: strong convexity alone is a lower bound: no τ is the largest")
	}
	c.Tau = down(lowest)
	return c, tight, nil
}

// zoom minimises f around point at of g, first on a grid of the neighbouring cells and then on smaller and smaller
// grids around the best point so far.
func zoom(ctx context.Context, f func(Params) float64, g Grid, at [2]int) (best Params, lowest float64, err error) {
	const (
		points = 21
		levels = 10
	)
	best, lowest = g.Params(at[0], at[1]), g.At(at[0], at[1])
	var reach Params
	for axis := range reach {
		reach[axis] = (g.Box.High[axis] - g.Box.Low[axis]) / float64(g.N-1)
	}
	for range levels {
		box := g.Box
		for axis := range reach {
			box.Low[axis] = max(box.Low[axis], best[axis]-reach[axis])
			box.High[axis] = min(box.High[axis], best[axis]+reach[axis])
			reach[axis] *= 4. / points
		}
		near, err := sample(ctx, f, box, points)
		if err != nil {
			return best, lowest, err
		}
		for k, v := range near.Value {
			if v < lowest {
				best, lowest = near.Params(k/points, k%points), v
			}
		}
	}
	return best, lowest, nil
}

// down rounds a positive number down to three significant digits.
func down(v float64) float64 {
	scale := math.Pow10(2 - int(math.Floor(math.Log10(v))))
	return math.Floor(v*scale) / scale
}
