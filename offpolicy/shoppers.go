package offpolicy

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"vitrine/internal/hint"
)

// shoppers groups rounds by shopper. A shopper's rounds depend on each other, so standard errors and the bootstrap take
// the sums of a shopper's influences as one number (Liang and Zeger 1986, Biometrika 73):
//
//	SE² = G/(G−1) Σ_g (Σ_{t∈g} ψ_t)² / n²,   G shoppers, n rounds
//
// A round of an unknown shopper is a group of its own. Normal intervals then use the quantiles of Student's t with G − 1
// degrees of freedom. The sums of fewer than minShoppers say too little about other shoppers.
type shoppers struct {
	of []int // by round; nil if no shopper is known to return
	n  int   // G
}

const minShoppers = 20

// few returns why there are too few shoppers for a standard error, or "".
func (s shoppers) few() string {
	if s.of == nil || s.n >= minShoppers {
		return ""
	}
	return fmt.Sprintf("all decisions belong to %s, and %d are needed for a standard error",
		hint.Count(s.n, "shopper"), minShoppers)
}

// quantile returns the number of standard errors within which estimates lie with a probability.
func (s shoppers) quantile(level float64) float64 {
	if s.of == nil {
		return distuv.UnitNormal.Quantile((1 + level) / 2)
	}
	return distuv.StudentsT{Sigma: 1, Nu: float64(s.n - 1)}.Quantile((1 + level) / 2)
}

func shoppersOf(rounds []Round) shoppers {
	s := shoppers{of: make([]int, len(rounds))}
	known := map[string]int{}
	for t := range rounds {
		g, ok := known[rounds[t].Shopper]
		if !ok || rounds[t].Shopper == "" {
			g = s.n
			known[rounds[t].Shopper] = g
			s.n++
		}
		s.of[t] = g
	}
	if s.n == len(rounds) {
		s.of = nil
	}
	return s
}

// sums returns the sums of the shoppers' numbers, scaled so that their mean is the mean of the numbers.
func (s shoppers) sums(of []float64) []float64 {
	if s.of == nil {
		return of
	}
	sums := make([]float64, s.n)
	for t, v := range of {
		sums[s.of[t]] += v * float64(s.n) / float64(len(of))
	}
	return sums
}

// Logged returns the mean earnings of the rounds' pages, and the standard error: NaN if they belong to too few shoppers.
func Logged(rounds []Round) (mean, se float64) {
	earned := make([]float64, len(rounds))
	for t := range earned {
		earned[t] = rounds[t].Revenue()
	}
	mean = stat.Mean(earned, nil)
	for t := range earned {
		earned[t] -= mean
	}
	s := shoppersOf(rounds)
	if s.few() != "" {
		return mean, nan
	}
	sums := s.sums(earned)
	return mean, stat.StdDev(sums, nil) / math.Sqrt(float64(len(sums)))
}

// Shoppers returns the number of shoppers by whom standard errors are clustered; a round of an unknown shopper counts
// as one. It is 0 if no shopper is known to return: then every round is independent.
func (l *Log) Shoppers() int {
	if l.shoppers.of == nil {
		return 0
	}
	return l.shoppers.n
}
