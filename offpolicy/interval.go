package offpolicy

import (
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"vitrine/internal/confseq"
)

// maxResampled bounds the bootstrap's draws: longer logs are resampled in blocks of consecutive rounds.
const maxResampled = 10_000

// bootstrap returns percentiles of the mean of resampled influences around a value.
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

// step is a round's evidence about a policy at the time of the round: base + low and base + high have the policy's
// earnings as their mean. base and the bounds −least ≤ low and high ≤ most are known before the page is drawn.
type step struct{ base, low, high, least, most float64 }

// both returns a step for a single number bounded on both sides.
func both(base, v, least, most float64) step { return step{base, v, v, least, most} }

// minus returns the step for the difference of two policies.
func (a step) minus(b step) step {
	return step{a.base - b.base, a.low - b.high, a.high - b.low, a.least + b.most, a.most + b.least}
}

// add adds the step to the sequence for a policy's earnings, and to the sequence for their negative.
func (a step) add(low, high *confseq.Lower) {
	low.Add(a.base, a.low, a.least)
	high.Add(-a.base, -a.high, a.most)
}

// anytime returns the interval that holds at all times with probability level, or NaN without steps.
func anytime(steps []step, level float64) Interval {
	if steps == nil {
		return Interval{nan, nan}
	}
	var low, high confseq.Lower
	for _, s := range steps {
		s.add(&low, &high)
	}
	return between(&low, &high, level)
}

// between returns the interval between a sequence and the sequence of its negative.
func between(low, high *confseq.Lower, level float64) Interval {
	alpha := (1 - level) / 2
	return Interval{low.Low(alpha), 0 - high.Low(alpha)} // 0 in place of −0
}
