package utility

// Prior is implemented by families with an independent Gaussian prior, mean 0, on each parameter. It assumes features
// with mean 0 and standard deviation 1.
type Prior interface {
	// Precisions stores the inverse variances ρ_j > 0 of the parameters in dst, of length d_w.
	Precisions(dst []float64)
}

// Precisions stores the precisions of the model's [Prior] in dst, or 1 for every parameter if the model defines no
// prior.
func Precisions(m Model, dst []float64) {
	if p, ok := m.(Prior); ok {
		p.Precisions(dst)
		return
	}
	for j := range dst {
		dst[j] = 1
	}
}

// Prior standard deviations of the parameters of a linear part aᵀx + b. The intercept's is wider, so that slopes do not
// have to make up for a level.
const (
	slopeSD     = 0.5
	interceptSD = 1
)

// linearPrecisions stores the precisions of a, of length d, and b in dst.
func linearPrecisions(dst []float64, d int) {
	for j := range d {
		dst[j] = precision(slopeSD)
	}
	for j := d; j < len(dst); j++ {
		dst[j] = precision(interceptSD)
	}
}

func precision(sd float64) float64 { return 1 / (sd * sd) }
