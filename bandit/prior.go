package bandit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine/mle"
	"vitrine/utility"
)

// linearPrior is prior knowledge of a linear utility of unscaled features:
//
//	u = aᵀx + b,   (a, b) ~ N(mean, covariance)
//
// A parameter of variance 0 is unknown and keeps its usual prior.
type linearPrior struct {
	mean       []float64
	covariance *mat.SymDense
}

// newLinearPrior returns the prior of d features in the options, or nil.
func newLinearPrior(mean, covariance []float64, d int) (*linearPrior, error) {
	n := d + 1
	switch {
	case len(mean) == 0 && len(covariance) == 0:
		return nil, nil
	case len(mean) != n:
		return nil, fmt.Errorf("prior_mean: has %d numbers, must have one for each of %d features and the "+
			"intercept", len(mean), d)
	}
	c, err := readCovariance("prior_covariance", covariance, n)
	if err != nil {
		return nil, err
	}
	p := &linearPrior{slices.Clone(mean), c}
	for j, v := range mean {
		if !(math.Abs(v) <= maxPilot) {
			return nil, fmt.Errorf("prior_mean: number %d is %v, must be finite and at most %v in size", j, v,
				float64(maxPilot))
		}
	}
	if _, err := p.at(standardisation{shift: make([]float64, d), scale: slices.Repeat([]float64{1}, d)}); err != nil {
		return nil, fmt.Errorf("prior_covariance: is not the covariance of %d parameters: must be positive "+
			"definite, but for rows of zeros, of which nothing is known", n)
	}
	return p, nil
}

// readCovariance returns the symmetric matrix of n rows that an option lists row after row.
func readCovariance(key string, covariance []float64, n int) (*mat.SymDense, error) {
	if len(covariance) != n*n {
		return nil, fmt.Errorf("%s: has %d numbers, must have the %d of a matrix of %d rows", key, len(covariance), n*n,
			n)
	}
	c := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range n {
			v, mirrored := covariance[i*n+j], covariance[j*n+i]
			if !(math.Abs(v) <= maxPilot*maxPilot) {
				return nil, fmt.Errorf("%s: row %d has %v, must be finite and at most %v in size", key, i, v,
					float64(maxPilot*maxPilot))
			}
			if math.Abs(v-mirrored) > 1e-9*math.Sqrt(math.Abs(covariance[i*n+i]*covariance[j*n+j])) {
				return nil, fmt.Errorf("%s: row %d has %v in column %d, and row %d has %v in column %d: it must "+
					"be symmetric", key, i, v, j, j, mirrored, i)
			}
			c.SetSym(i, j, v)
		}
	}
	return c, nil
}

// at returns the prior of the parameters of standardised features,
//
//	a'_j = s_j a_j,   b' = b + Σ_j m_j a_j
//
// where the sum is over what is known.
func (p *linearPrior) at(z standardisation) (*mle.Laplace, error) {
	n := len(p.mean)
	t, c := mat.NewDense(n, n, nil), mat.NewSymDense(n, nil)
	c.CopySym(p.covariance)
	defaults := make([]float64, n)
	utility.Precisions(utility.NewLinear(n-1, true), defaults)
	for j := range n {
		t.Set(j, j, 1)
		if p.covariance.At(j, j) == 0 {
			c.SetSym(j, j, 1/defaults[j])
		} else if j < n-1 {
			t.Set(j, j, z.scale[j])
			t.Set(n-1, j, z.shift[j])
		}
	}
	var mean mat.VecDense
	mean.MulVec(t, mat.NewVecDense(n, p.mean))
	var product, moved mat.Dense
	product.Mul(t, c)
	moved.Mul(&product, t.T())
	for i := range n {
		for j := i; j < n; j++ {
			c.SetSym(i, j, moved.At(i, j))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(c) {
		return nil, mle.ErrSingular
	}
	h := mat.NewSymDense(n, nil)
	if err := chol.InverseTo(h); err != nil {
		return nil, mle.ErrSingular
	}
	return mle.NewGaussian(mean.RawVector().Data, h)
}

// assume makes the known prior, if any, the anchor of all families that contain the linear one, in terms of the
// standardisation in use. The families start at it.
func (b *beliefs) assume() error {
	if b.known == nil {
		return nil
	}
	line, err := b.known.at(b.z)
	if err != nil {
		return err
	}
	d := len(b.known.mean) - 1
	places := b.base.prior[d+1:]
	if line, err = line.Extended(d+1, places); err != nil {
		return err
	}
	for _, e := range b.all() {
		anchor, own := line, e.Model.NumParams()
		switch e.Model.(type) {
		case *utility.Linear:
			if own == d {
				continue
			}
		case *utility.Additive, *utility.Expansion:
			if anchor, err = line.Extended(d+1, e.prior[d+1:own]); err != nil {
				return err
			}
		default:
			continue
		}
		e.anchor, e.start = anchor, slices.Clone(e.start)
		copy(e.start, line.Mode[:d+1])
		copy(e.start[own:], line.Mode[d+1:])
	}
	return nil
}
