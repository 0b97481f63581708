package figure_test

import (
	"math"

	"vitrine/figure"
	"vitrine/paper/geometry"
)

// landscape returns a small, made-up landscape: two bowls, (x² − 1)² + y².
func landscape() figure.Landscape {
	bowls := func(w geometry.Params) float64 { return math.Pow(w[0]*w[0]-1, 2) + w[1]*w[1] }
	l := figure.Landscape{
		Constants: geometry.Constants{
			Setting:   geometry.Setting{Box: geometry.Box{Low: geometry.Params{-2, -1}, High: geometry.Params{2, 1}}},
			Condition: geometry.Condition{Mu: 1, Tau: 0.5, Gamma: 1},
			Global:    []geometry.Params{{-1, 0}, {1, 0}},
			Spurious:  []geometry.Minimum{{W: geometry.Params{0, 0.5}, Loss: 1.25}},
		},
	}
	for k := range 9 {
		x := -2 + float64(k)/2
		w := geometry.Params{x, 0}
		r := geometry.Distance(w, l.Global)
		l.Slice = append(l.Slice, geometry.Point{
			Position: x, W: w, Loss: bowls(w), Bound: l.Condition.Bound(r),
			StrongConvexity: l.Condition.StrongConvexity(r), Growth: l.Condition.Growth(r),
		})
	}
	l.Map = geometry.Grid{Box: l.Setting.Box, N: 9}
	for k := range 81 {
		l.Map.Value = append(l.Map.Value, bowls(l.Map.Params(k/9, k%9)))
	}
	return l
}
