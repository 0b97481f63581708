package tune

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Score holds a setting's regrets.
type Score struct {
	Setting int
	Rung    int         // last rung played, from 1
	Regret  [][]float64 // by panel and seed, in the order of the seeds
}

// Estimate is a mean over seeds with its standard error, which is NaN for a
// single seed.
type Estimate struct{ Mean, SE float64 }

// Seeds returns the number of seeds that the setting has played.
func (s Score) Seeds() int { return len(s.Regret[0]) }

// add appends the regrets on further seeds.
func (s *Score) add(regret [][]float64) {
	if s.Regret == nil {
		s.Regret = make([][]float64, len(regret))
	}
	for p := range regret {
		s.Regret[p] = append(s.Regret[p], regret[p]...)
	}
}

// Estimate returns the mean regret over the seeds and over the given panels, by default all. Panels share their seeds,
// so the standard error is computed from the seeds' means over the panels,
//
//	y_s = (1/P) Σ_p regret_ps,   mean = (1/n) Σ_s y_s,   se = sd(y)/√n
func (s Score) Estimate(panels ...int) Estimate { return estimate(s.bySeed(panels)) }

// Difference returns the estimate of this score minus the other, paired by seed, over the seeds that both have played.
func (s Score) Difference(other Score, panels ...int) Estimate {
	a, b := s.bySeed(panels), other.bySeed(panels)
	n := min(len(a), len(b))
	return estimate(floats.SubTo(make([]float64, n), a[:n], b[:n]))
}

// bySeed returns each seed's mean over the panels, by default all.
func (s Score) bySeed(panels []int) []float64 {
	if len(panels) == 0 {
		for p := range s.Regret {
			panels = append(panels, p)
		}
	}
	mean := make([]float64, s.Seeds())
	for _, p := range panels {
		floats.Add(mean, s.Regret[p])
	}
	floats.Scale(1/float64(len(panels)), mean)
	return mean
}

func estimate(y []float64) Estimate {
	mean, sd := stat.MeanStdDev(y, nil)
	return Estimate{mean, sd / math.Sqrt(float64(len(y)))}
}
