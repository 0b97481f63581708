package theory

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Slope is a power law's exponent, with an interval.
type Slope struct {
	Estimate float64 `json:"estimate"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// resamples is the number of bootstrap draws in [FitSlope].
const resamples = 2000

// FitSlope fits mean(y) ∝ x^slope by least squares on the logarithms,
//
//	log mean_s y[i][s] = a + slope · log x_i
//
// where y[i][s] is the value for seed s at x_i. Seeds are paired over i. Low and High are the 2.5% and 97.5% points
// of the slope over bootstrap draws of whole seeds from rng (Efron 1979); for one seed they equal the estimate.
// FitSlope panics for fewer than two points. If a mean is not positive the slope is NaN.
func FitSlope(x []float64, y [][]float64, rng *rand.Rand) Slope {
	if len(x) < 2 || len(x) != len(y) {
		panic("theory: a slope needs two points, and values at each")
	}
	seeds := len(y[0])
	draw := make([]int, seeds)
	for s := range draw {
		draw[s] = s
	}
	result := Slope{Estimate: slope(x, y, draw)}
	slopes := make([]float64, resamples)
	for k := range slopes {
		for s := range draw {
			draw[s] = rng.IntN(seeds)
		}
		slopes[k] = slope(x, y, draw)
	}
	slices.Sort(slopes)
	result.Low, result.High = slopes[resamples/40], slopes[resamples-1-resamples/40]
	return result
}

// slope fits the means over the drawn seeds.
func slope(x []float64, y [][]float64, draw []int) float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range x {
		mean := 0.0
		for _, s := range draw {
			mean += y[i][s]
		}
		a, b := math.Log(x[i]), math.Log(mean/float64(len(draw)))
		n, sx, sy, sxx, sxy = n+1, sx+a, sy+b, sxx+a*a, sxy+a*b
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
