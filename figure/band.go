package figure

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"vitrine/internal/quantile"
)

// Band is the area drawn around the mean over the seeds.
type Band int

const (
	SE        Band = iota // ± 2 standard errors of the mean
	SD                    // ± one sample standard deviation
	CI                    // the 95 % confidence interval of the mean by Student's t
	Quantiles             // from the 10 % to the 90 % quantile over the seeds
	NoBand
)

var bands = []string{SE: "se", SD: "sd", CI: "ci", Quantiles: "quantiles", NoBand: "none"}

// Bands returns the bands' names, the default first.
func Bands() []string { return slices.Clone(bands) }

// ParseBand returns the band with the given name, and whether it exists.
func ParseBand(name string) (b Band, ok bool) {
	i := slices.Index(bands, name)
	return Band(max(i, 0)), i >= 0
}

// Ends of the band of quantiles.
const lowQuantile, highQuantile = 0.1, 0.9

// interval is a mean over seeds with a band around it.
type interval struct{ mean, low, high float64 }

// of returns the mean of one value per seed, with its band. For a single seed the band is just the mean.
func (b Band) of(values []float64) interval {
	n := float64(len(values))
	if n == 1 || b == NoBand {
		mean := stat.Mean(values, nil)
		return interval{mean, mean, mean}
	}
	mean, sd := stat.MeanStdDev(values, nil)
	half := 0.0
	switch b {
	case SE:
		half = 2 * sd / math.Sqrt(n)
	case SD:
		half = sd
	case CI:
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
		half = t * sd / math.Sqrt(n)
	case Quantiles:
		return interval{mean, quantile.Of(lowQuantile, values), quantile.Of(highQuantile, values)}
	}
	return interval{mean, mean - half, mean + half}
}

// words describes the band; seeds is the number of seeds in words.
func (b Band) words(seeds string) string {
	switch b {
	case SE:
		return "mean ± 2 standard errors over " + seeds
	case SD:
		return "mean ± one standard deviation over " + seeds
	case CI:
		return "mean and its 95 % confidence interval over " + seeds
	case Quantiles:
		return fmt.Sprintf("mean, and the %.0f %% to %.0f %% quantiles over %s",
			100*lowQuantile, 100*highQuantile, seeds)
	default:
		return "mean over " + seeds
	}
}

// note formats an interval over a number of seeds for the band, with the given number format and decimals.
func (b Band) note(i interval, seeds int, format string, decimals int) string {
	mean := fmt.Sprintf(format, decimals, i.mean)
	switch {
	case i.low == i.high && i.mean == 0: // the oracle, or a policy minus itself
		mean = "0"
	case seeds == 1 || b == NoBand:
	case b == Quantiles:
		mean += fmt.Sprintf(" ("+format+" to "+format+")", decimals, i.low, decimals, i.high)
	default:
		mean += fmt.Sprintf(" ± %.*f", decimals, i.high-i.mean)
	}
	return minus(mean)
}
