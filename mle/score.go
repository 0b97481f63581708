package mle

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"vitrine/internal/kernel"
	"vitrine/internal/portable"
	"vitrine/internal/state"
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
// parameters (a, b) to all rounds of c. Features of c beyond those of m have parameters after b in the linear
// fit, and units do not have them. It uses at most the given number of rounds,
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
	var family utility.Model = utility.NewLinear(c.d, true)
	if own := m.NumFeatures(); own < c.d {
		family = utility.NewSum(utility.NewLinear(own, true), utility.NewLinear(c.d-own, false))
	}
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

// Amplitudes are the posterior of the amplitudes of a unit θ beside a linear fit with the
// precision A = UᵀU, from the quadratic model of a [ScoreTest]:
//
//	γ ~ N(γ̂, J⁻¹),  γ̂ = J⁻¹s
//	the linear parameters given γ ~ N(ŵ − U⁻¹c̃γ, A⁻¹),  c̃ = U⁻ᵀ Cov(z, h)
type Amplitudes struct {
	Mode []float64 // γ̂, of length o
	// Gain is what the unit adds to the log evidence at this θ,
	//
	//	½ sᵀJ⁻¹s − ½ log det J + ½ log det P_γ
	Gain float64
	// Cross is c̃, a row of d+1 numbers for each of the o outputs.
	Cross []float64
	// Root is the upper triangular R with RᵀR = J, row after row.
	Root []float64
}

// Deviation stores in dst a draw of scale · N(0, J⁻¹).
func (a *Amplitudes) Deviation(dst []float64, scale float64, rng *rand.Rand) {
	for k := range dst {
		dst[k] = scale * rng.NormFloat64()
	}
	o := len(a.Mode)
	root := blas64.Triangular{N: o, Stride: o, Data: a.Root, Uplo: blas.Upper, Diag: blas.NonUnit}
	blas64.Trsv(blas.NoTrans, root, blas64.Vector{N: o, Data: dst, Inc: 1})
}

// LogMoment returns log(E[γᵀP_γγ] / o) for the prior precisions P_γ of the o amplitudes, with γ ~ N(γ̂, J⁻¹). It is 0 if the data
// say nothing of γ. It is what the prior p(γ) ∝ γᵀP_γγ exp(−½γᵀP_γγ), which excludes γ = 0, adds to the log evidence of
// N(0, P_γ⁻¹) (Johnson and Rossell 2010).
func (a *Amplitudes) LogMoment(prior []float64) float64 {
	o, sum := len(prior), 0.0
	root := blas64.Triangular{N: o, Stride: o, Data: a.Root, Uplo: blas.Upper, Diag: blas.NonUnit}
	v := make([]float64, o)
	for k, rho := range prior {
		clear(v)
		v[k] = 1
		blas64.Trsv(blas.Trans, root, blas64.Vector{N: o, Data: v, Inc: 1})
		sum += float64(rho * (float64(a.Mode[k]*a.Mode[k]) + kernel.Dot(v, v)))
	}
	return portable.Log(sum / float64(o))
}

// Encode appends the posterior to a snapshot.
func (a *Amplitudes) Encode(e *state.Encoder) {
	e.Floats(a.Mode)
	e.Float(a.Gain)
	e.Floats(a.Cross)
	e.Floats(a.Root)
}

// DecodeAmplitudes reads what Encode wrote for o outputs beside d+1 linear parameters.
// Errors go to the decoder.
func DecodeAmplitudes(d *state.Decoder, outputs, linear int) Amplitudes {
	a := Amplitudes{Mode: make([]float64, outputs), Cross: make([]float64, outputs*linear), Root: make([]float64, outputs*outputs)}
	d.Floats(a.Mode)
	a.Gain = d.Float()
	d.Floats(a.Cross)
	d.Floats(a.Root)
	for k := range outputs {
		if r := a.Root[k*outputs+k]; d.Err() == nil && !(r > 0) {
			d.Fail(fmt.Errorf("snapshot has the root %v of a precision, which must be positive", r))
		}
	}
	return a
}

// Amplitudes returns the posterior of the amplitudes of the unit θ, and false if J is not
// positive definite to the precision of a float64.
func (t *ScoreTest) Amplitudes(theta []float64) (a Amplitudes, ok bool) {
	n, o := len(t.p), len(t.gamma)
	rows := len(t.z) / n
	t.m.Unit(t.h, theta, t.psi)
	a = Amplitudes{Mode: make([]float64, o), Cross: make([]float64, o*rows), Root: make([]float64, o*o)}
	j := mat.NewSymDense(o, a.Root)
	for k := range o {
		h, cross := t.h[k*n:][:n], a.Cross[k*rows:][:rows]
		a.Mode[k] = t.scale * kernel.Dot(t.r, h)
		for i := range cross {
			cross[i] = t.scale * kernel.Dot(t.z[i*n:][:n], h)
		}
		for b := range k + 1 {
			j.SetSym(k, b, float64(t.scale*t.covariance(h, t.h[b*n:][:n]))-kernel.Dot(cross, a.Cross[b*rows:][:rows]))
		}
		j.SetSym(k, k, j.At(k, k)+t.gamma[k])
		a.Gain += float64(portable.Log(t.gamma[k]) / 2)
	}
	root, ok := lapack64.Potrf(blas64.Symmetric{N: o, Stride: o, Data: a.Root, Uplo: blas.Upper})
	if !ok {
		return a, false
	}
	mode := blas64.Vector{N: o, Data: a.Mode, Inc: 1}
	blas64.Trsv(blas.Trans, root, mode)
	a.Gain += float64(kernel.Dot(a.Mode, a.Mode) / 2)
	blas64.Trsv(blas.NoTrans, root, mode)
	for k := range o {
		a.Gain -= portable.Log(a.Root[k*o+k])
	}
	return a, finite(a.Gain)
}

// Gain returns the gain of the unit θ, and stores the amplitudes γ = J⁻¹s that attain
// it in gamma.
func (t *ScoreTest) Gain(gamma, theta []float64) float64 {
	a, ok := t.Amplitudes(theta)
	if !ok {
		return math.Inf(-1)
	}
	copy(gamma, a.Mode)
	for k, v := range theta {
		a.Gain -= float64(t.theta[k] * v * v / 2)
	}
	return a.Gain
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
