package offpolicy

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// maxResampled bounds what the bootstrap draws: longer logs are resampled in blocks of consecutive
// rounds.
const maxResampled = 10_000

// bootstrap returns the percentiles of the mean of resampled influences around a value.
func bootstrap(value float64, influence []float64, level float64, resamples int, seed uint64) Interval {
	unit := influence
	if n := len(influence); n > maxResampled {
		unit = make([]float64, maxResampled)
		for b := range unit {
			part := influence[b*n/maxResampled : (b+1)*n/maxResampled]
			for _, v := range part {
				unit[b] += v
			}
			unit[b] *= float64(maxResampled) / float64(n)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	means := make([]float64, resamples)
	for b := range means {
		sum := 0.0
		for range unit {
			sum += unit[rng.IntN(len(unit))]
		}
		means[b] = value + sum/float64(len(unit))
	}
	slices.Sort(means)
	return Interval{
		stat.Quantile((1-level)/2, stat.LinInterp, means, nil),
		stat.Quantile((1+level)/2, stat.LinInterp, means, nil),
	}
}

// bernstein returns the two-sided empirical-Bernstein interval of the mean of n independent numbers
// whose range is at most width, with δ = 1 − level,
//
//	mean ± √(2 V ln(4/δ)/n) + 7 width ln(4/δ) / (3(n−1))
//
// for their sample variance V. Source: Maurer and Pontil (2009), Theorem 4.
func bernstein(mean float64, terms []float64, width, level float64) Interval {
	n := float64(len(terms))
	if n < 2 {
		return Interval{nan, nan}
	}
	log := math.Log(4 / (1 - level))
	half := math.Sqrt(2*stat.Variance(terms, nil)*log/n) + 7*width*log/(3*(n-1))
	return Interval{mean - half, mean + half}
}
