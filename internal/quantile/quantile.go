// Package quantile returns quantiles of a sample.
package quantile

import "slices"

// Of interpolates between the order statistics: the k-th of n, from 0, is the quantile k/(n−1) (type 7 in Hyndman
// and Fan 1996).
func Of(p float64, values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	at := p * float64(len(values)-1)
	i := min(int(at), len(values)-1)
	j := min(i+1, len(values)-1)
	return values[i] + (at-float64(i))*(values[j]-values[i])
}
