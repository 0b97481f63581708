package bandit

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"vitrine/internal/fields"
	"vitrine/internal/kernel"
	"vitrine/internal/portable"
	"vitrine/mle"
	"vitrine/utility"
)

// unitPosterior is a posterior over one unit of an additive family next to the linear fit: a population of units θ_i
// with weights. Laplace's approximation sits at one unit, and until the data show that unit, at amplitude 0: it
// proposes no bump elsewhere. The population does, in proportion to each unit's evidence. It never changes.
//
// A full fit draws θ_i from a mixture q of the prior p and of noise about the previous units, and weighs by importance
// (population Monte Carlo, Cappé and others 2004),
//
//	log w_i = ½ sᵀJ⁻¹s − ½ log det J + ½ log det P_γ + log p(θ_i) − log q(θ_i)
//
// with the quantities of [mle.ScoreTest]. The mean of the w_i estimates the evidence of the linear family with a unit
// over the linear family's own.
type unitPosterior struct {
	theta      [][]float64
	amplitudes []mle.Amplitudes
	weight     []float64 // of the units, sums to 1
	logMean    float64   // log of the mean of the w_i
}

// How a population is drawn.
const (
	population   = 60
	shareOfPrior = 0.4 // of the units, drawn from the prior
)

// amplitudeWidth is the least width of a slot's draws of amplitudes, in posterior standard deviations. Without it, a
// bump that no page has shown would never be shown.
const amplitudeWidth = 0.6

// unitNoise are the standard deviations of the noise about the previous units, relative to the prior's. One of them is
// drawn for each unit.
var unitNoise = [...]float64{0.05, 0.2, 0.6}

// newUnits returns the population before the first round: draws from the prior, with the prior's amplitudes. The linear
// fit includes the given number of effects of places.
func newUnits(m *utility.Additive, prior []float64, places int, rng *rand.Rand) *unitPosterior {
	p := new(unitPosterior)
	gamma := m.Gamma(prior, 0)
	o := len(gamma)
	for range population {
		p.theta = append(p.theta, p.propose(m.Theta(prior, 0), rng))
		a := mle.Amplitudes{Mode: make([]float64, o), Cross: make([]float64, o*(m.Linear()+places)),
			Root: make([]float64, o*o)}
		for k, rho := range gamma {
			a.Root[k*o+k] = math.Sqrt(rho)
		}
		p.amplitudes = append(p.amplitudes, a)
		p.weight = append(p.weight, 1.0/population)
	}
	return p
}

// next returns the population after the rounds of a test, or nil if no unit's weight is finite; other units are left
// out. The receiver may be nil: then all units are drawn from the prior.
func (p *unitPosterior) next(m *utility.Additive, prior []float64, test *mle.ScoreTest, rng *rand.Rand) *unitPosterior {
	if p == nil {
		p = new(unitPosterior)
	}
	n := new(unitPosterior)
	rho := m.Theta(prior, 0)
	q := p.proposal(rho)
	theta := make([][]float64, population)
	for i := range theta {
		theta[i] = p.propose(rho, rng)
	}
	for i, a := range test.Amplitudes(theta...) {
		if a == nil {
			continue
		}
		weight := a.Gain + q.logPriorOver(theta[i])
		if math.IsNaN(weight) || math.IsInf(weight, 0) {
			continue
		}
		n.theta, n.amplitudes, n.weight = append(n.theta, theta[i]), append(n.amplitudes, *a), append(n.weight, weight)
	}
	if len(n.theta) == 0 {
		return nil
	}
	n.logMean = softmax(n.weight) - portable.Log(population)
	return n
}

// propose draws a unit from q.
func (p *unitPosterior) propose(rho []float64, rng *rand.Rand) []float64 {
	theta := make([]float64, len(rho))
	spread := 1.0
	if len(p.theta) > 0 && rng.Float64() >= shareOfPrior {
		copy(theta, p.theta[p.draw(rng)])
		spread = unitNoise[rng.IntN(len(unitNoise))]
	}
	for j := range theta {
		theta[j] += float64(spread * rng.NormFloat64() / math.Sqrt(rho[j]))
	}
	return theta
}

// proposal computes the density q of the units that a population proposes.
type proposal struct {
	p        *unitPosterior
	rho      []float64 // the precisions of the prior
	logShare []float64 // log(ω_i (1 − shareOfPrior) / 3) − d log τ_k of unit i, row after row
	logs     []float64 // scratch
}

// proposal returns q for a prior of the given precisions.
func (p *unitPosterior) proposal(rho []float64) *proposal {
	q := &proposal{p: p, rho: rho}
	if len(p.theta) == 0 {
		return q
	}
	for _, weight := range p.weight {
		share := portable.Log(weight * (1 - shareOfPrior) / float64(len(unitNoise)))
		for _, tau := range unitNoise {
			q.logShare = append(q.logShare, share-float64(float64(len(rho))*portable.Log(tau)))
		}
	}
	q.logs = make([]float64, 1+len(q.logShare))
	return q
}

// logPriorOver returns log p(θ) − log q(θ).
func (q *proposal) logPriorOver(theta []float64) float64 {
	if len(q.p.theta) == 0 {
		return 0
	}
	square := 0.0
	for j, v := range theta {
		square += float64(q.rho[j] * v * v)
	}
	logPrior := float64(-square / 2) // up to ½ log det ρ − ½ d log 2π, as all densities here
	logs := q.logs[:0]
	for i, centre := range q.p.theta {
		square := 0.0
		for j, v := range theta {
			square += float64(q.rho[j] * (v - centre[j]) * (v - centre[j]))
		}
		for k, tau := range unitNoise {
			logs = append(logs, q.logShare[i*len(unitNoise)+k]-float64(square/(2*tau*tau)))
		}
	}
	logs = append(logs, portable.Log(shareOfPrior)+logPrior)
	return logPrior - softmax(logs)
}

// draw returns a unit by weight.
func (p *unitPosterior) draw(rng *rand.Rand) int { return drawIndex(p.weight, rng) }

// sample stores unit i in w, parameters of the family, with a draw of its amplitudes, of width posterior standard
// deviations, and of the linear parameters given these, of lineWidth. linear is the posterior of the linear family.
//
//	γ = γ̂ + width J^{−1/2} ξ,  (a, b) = ŵ + U⁻¹(lineWidth ξ' − c̃γ)
func (p *unitPosterior) sample(w []float64, i int, m *utility.Additive, linear *mle.Laplace, width, lineWidth float64,
	rng *rand.Rand) {
	clear(w)
	copy(m.Theta(w, 0), p.theta[i])
	a, gamma := &p.amplitudes[i], m.Gamma(w, 0)
	a.Deviation(gamma, width, rng)
	floats.Add(gamma, a.Mode)
	line := w[:m.Linear()]
	if len(linear.Mode) > len(line) {
		line = make([]float64, len(linear.Mode))
	}
	for j := range line {
		line[j] = lineWidth * rng.NormFloat64()
	}
	for k, g := range gamma {
		for j, c := range a.Cross[k*len(line):][:len(line)] {
			line[j] -= float64(g * c)
		}
	}
	linear.Colour(line)
	floats.Add(line, linear.Mode)
	m.CopyLinear(w, line)
}

// fields passes over the population of units of m.
func (p *unitPosterior) fields(f *fields.Fields, m *utility.Additive, linear int) {
	f.Float(&p.logMean)
	f.Floats(&p.weight)
	if f.Check(len(p.weight) > 0, "a population without units"); f.Reads() {
		p.theta, p.amplitudes = make([][]float64, len(p.weight)), make([]mle.Amplitudes, len(p.weight))
	}
	for i := range p.theta {
		if f.Err() != nil {
			return
		}
		if f.Reads() {
			p.theta[i] = make([]float64, m.Inputs())
		}
		f.Vector(&p.theta[i])
		p.amplitudes[i].Fields(f, m.Outputs(), linear)
	}
}

// drawIndex returns i with probability π_i.
func drawIndex(pi []float64, rng *rand.Rand) int {
	i, _ := quantile(pi, rng.Float64())
	return i
}

// quantile returns the first i with π_0 + … + π_i > v, and v's place within π_i as a share of it. If v is uniform on
// [0, 1), i is drawn with probability π_i, and the share is again uniform.
func quantile(pi []float64, v float64) (i int, within float64) {
	for i, p := range pi {
		if v < p {
			return i, v / p
		}
		v -= p
	}
	return len(pi) - 1, 0
}

// systematic stores in v, in random order, numbers that are each uniform on [0, 1): the same place in each of len(v)
// equal parts (Kitagawa 1996).
func systematic(v []float64, rng *rand.Rand) {
	place := float64(rng.Float64())
	for k := range v {
		v[k] = (float64(k) + place) / float64(len(v))
	}
	rng.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
}

// softmax turns the v_i into exp(v_i) / Σ_j exp(v_j) and returns log Σ_j exp(v_j).
func softmax(v []float64) (logSum float64) {
	maximum := slices.Max(v)
	floats.AddConst(-maximum, v)
	kernel.Exp(v, v)
	sum := kernel.Sum(v)
	for i := range v {
		v[i] /= sum
	}
	return maximum + portable.Log(sum)
}
