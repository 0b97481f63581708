package geometry

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"
)

type Minimum struct {
	W    Params  `json:"w"`
	Loss float64 `json:"loss"`
}

// spacing is the minimum distance between distinct minima.
const spacing = 1e-4

// Minima returns the local minima of l inside the grid's box to six decimals, lowest first: BFGS descends from every
// grid point that is lower than its neighbours.
func Minima(ctx context.Context, l *Loss, g Grid) ([]Minimum, error) {
	var found []Minimum
	for _, at := range g.lowest() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		m, ok := descend(l, g.Params(at[0], at[1]))
		if ok && g.Box.contains(m.W) && !slices.ContainsFunc(found, func(o Minimum) bool {
			return distance(o.W, m.W) < spacing
		}) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b Minimum) int {
		return cmp.Or(cmp.Compare(a.Loss, b.Loss), slices.Compare(a.W[:], b.W[:]))
	})
	return found, nil
}

// descend follows l downhill from w. It reports whether it arrived.
func descend(l *Loss, w Params) (Minimum, bool) {
	problem := optimize.Problem{
		Func: func(x []float64) float64 { return l.At(Params(x)) },
		Grad: func(dst, x []float64) { g := l.Gradient(Params(x)); copy(dst, g[:]) },
	}
	// The line search fails if rounding hides the slope; the slope itself then shows whether the point is a minimum.
	result, _ := optimize.Minimize(problem, w[:], &optimize.Settings{GradientThreshold: 1e-10}, &optimize.BFGS{})
	if result == nil {
		return Minimum{}, false
	}
	w = Params(result.X)
	slope := l.Gradient(w)
	return Minimum{w.decimals(), decimals(result.F)}, math.Hypot(slope[0], slope[1]) < 1e-6
}

// decimals rounds to six decimals, which agree on every machine.
func decimals(v float64) float64 { return math.Round(v*1e6) / 1e6 }

func (w Params) decimals() Params { return Params{decimals(w[0]), decimals(w[1])} }

func distance(v, w Params) float64 { return math.Hypot(v[0]-w[0], v[1]-w[1]) }
