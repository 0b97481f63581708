package mle

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
	"vitrine/internal/portable"
	"vitrine/utility"
)

// ScoreTest estimates the evidence that a unit of a [utility.Additive] would add to a
// linear fit, without fitting the unit: from the quadratic model of the loss in the
// unit's amplitudes γ at γ = 0, minimised over the linear parameters (Rao's score test,
// with priors),
//
//	gain(θ) = ½ sᵀJ⁻¹s − ½ log det J + ½ log det P_γ − ½ Σ_j ρ_j θ_j²
//	s = Σ_i (y_i − p_i) h_i,   J = Cov(h, h) − Cov(h, z) A⁻¹ Cov(z, h) + P_γ
//
// where h = h(θᵀψ(x)) are the unit's outputs, z = (x, 1), Cov sums the rounds'
// covariances under their choice probabilities, and A is the precision of the
// linear fit. Rounds may be a sample: sums are scaled to all of them. Not safe
// for concurrent use.
type ScoreTest struct {
	m     *utility.Additive
	psi   []float64 // the inputs of units
	o     outcomes
	scale float64

	p, r         []float64 // n: probabilities, y − p
	z            []float64 // (d+1)×n: rows of U⁻ᵀ p (z − z̄), UᵀU = A
	gamma, theta []float64 // precisions of a unit
	h            []float64 // scratch
}

// NewScoreTest returns the test of units of m in addition to the linear fit with the
// parameters (a, b) to all rounds of c. It uses at most the given number of rounds,
// evenly spaced from the offset on.
func NewScoreTest(m *utility.Additive, c *Choices, linear *Laplace, maximum, offset int) *ScoreTest {
	t := &ScoreTest{m: m, scale: 1}
	features := c.features
	t.o = c.outcomes
	if n := c.Rounds(); n > maximum {
		sample := NewChoices(c.d)
		for k := range maximum {
			s := (k*n/maximum + offset) % n
			sample.features = append(sample.features, c.features[c.start(s)*c.d:c.end[s]*c.d]...)
			sample.append(c.end[s]-c.start(s), c.choice[s])
		}
		features, t.o, t.scale = sample.features, sample.outcomes, float64(n)/float64(maximum)
	}
	n := t.o.Rows()
	if n == 0 {
		return nil
	}
	x := mat.NewDense(n, c.d, features)
	t.psi = m.Psi(x)

	u := make([]float64, n)
	family := utility.NewLinear(c.d, true)
	family.Utilities(u, linear.Mode, x)
	t.p = append([]float64(nil), u...)
	out := make([]float64, t.o.Rounds())
	t.o.probabilities(t.p, out, 0, t.o.Rounds())
	t.o.residuals(u, out, 0, t.o.Rounds())
	t.r = u
	for i := range u {
		u[i] = -u[i]
	}

	d := c.d + 1
	g := mat.NewDense(n, d, nil)
	family.Gradients(g, linear.Mode, x)
	t.z = make([]float64, d*n)
	mean := make([]float64, d)
	for s := range t.o.Rounds() {
		lo, hi := t.o.start(s), t.o.end[s]
		clear(mean)
		for i := lo; i < hi; i++ {
			for j, v := range g.RawRowView(i) {
				mean[j] += float64(t.p[i] * v)
			}
		}
		for i := lo; i < hi; i++ {
			for j, v := range g.RawRowView(i) {
				t.z[j*n+i] = t.p[i] * (v - mean[j])
			}
		}
	}
	blas64.Trsm(blas.Left, blas.Trans, 1, linear.root.RawTriangular(), blas64.General{Rows: d, Cols: n, Stride: n, Data: t.z})

	prior := make([]float64, m.NumParams())
	m.Precisions(prior)
	t.gamma, t.theta = m.Gamma(prior, 0), m.Theta(prior, 0)
	t.h = make([]float64, m.Outputs()*n)
	return t
}

// Gain returns the gain of the unit θ, and stores the amplitudes γ = J⁻¹s that attain
// it in gamma.
func (t *ScoreTest) Gain(gamma, theta []float64) float64 {
	n, o := len(t.p), len(gamma)
	t.m.Unit(t.h, theta, t.psi)
	j := mat.NewSymDense(o, nil)
	s := mat.NewVecDense(o, gamma)
	gain := 0.0
	for a := range o {
		ha := t.h[a*n:][:n]
		gamma[a] = t.scale * kernel.Dot(t.r, ha)
		for b := range a + 1 {
			j.SetSym(a, b, float64(t.scale*t.covariance(ha, t.h[b*n:][:n]))-t.explained(ha, t.h[b*n:][:n]))
		}
		j.SetSym(a, a, j.At(a, a)+t.gamma[a])
		gain += float64(portable.Log(t.gamma[a]) / 2)
	}
	for k, v := range theta {
		gain -= float64(t.theta[k] * v * v / 2)
	}
	var chol mat.Cholesky
	if !chol.Factorize(j) {
		return math.Inf(-1)
	}
	score := append([]float64(nil), gamma...)
	_ = chol.SolveVecTo(s, s)
	return gain + float64(kernel.Dot(score, gamma)/2) - float64(chol.LogDet()/2)
}

// covariance returns the sum of the rounds' covariances of a and b.
func (t *ScoreTest) covariance(a, b []float64) float64 {
	sum := 0.0
	lo := 0
	for _, hi := range t.o.end {
		var ab, ma, mb float64
		for i := lo; i < hi; i++ {
			pa := float64(t.p[i] * a[i])
			ab += float64(pa * b[i])
			ma += pa
			mb += float64(t.p[i] * b[i])
		}
		sum += ab - float64(ma*mb)
		lo = hi
	}
	return sum
}

// explained returns Cov(a, z) A⁻¹ Cov(z, b).
func (t *ScoreTest) explained(a, b []float64) float64 {
	n, sum := len(t.p), 0.0
	for lo := 0; lo < len(t.z); lo += n {
		z := t.z[lo:][:n]
		sum += float64(t.scale * kernel.Dot(z, a) * t.scale * kernel.Dot(z, b))
	}
	return sum
}
