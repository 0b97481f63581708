package bandit

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

const (
	traceItems  = 6
	traceSize   = 2
	traceWidth  = 3
	traceRounds = 25
)

// traceContext and traceChoice are customers without chance: c buys the c-th of the set, 0 no item.
func traceContext(t int) *vitrine.Context {
	x := mat.NewDense(traceItems, traceWidth, nil)
	for i := range traceItems {
		for j := range traceWidth {
			x.Set(i, j, 3*math.Sin(float64(1+7*t+3*i+5*j+t*i*j)))
		}
	}
	return &vitrine.Context{Features: x}
}

func traceChoice(t int) vitrine.Choice { return vitrine.Choice(t * t % (traceSize + 1)) }

// referenceOFU is OFU-MNL+ a second time, dense and from the definitions: Lee and Oh (2024),
// Algorithm 1 with a step of σ, offers under equal revenues, and a given radius.
type referenceOFU struct {
	eta, sigma float64
	w          *mat.VecDense
	h          *mat.Dense
}

func newReferenceOFU(sigma float64) *referenceOFU {
	eta := math.Log(traceSize+1)/2 + 2
	r := &referenceOFU{eta: eta, sigma: sigma * eta, w: mat.NewVecDense(traceWidth, nil),
		h: mat.NewDense(traceWidth, traceWidth, nil)}
	for j := range traceWidth {
		r.h.Set(j, j, 84*math.Sqrt2*traceWidth*eta)
	}
	return r
}

// offer returns the K items of the largest x·w + radius √(xᵀH⁻¹x), and these values.
func (r *referenceOFU) offer(x *mat.Dense, radius float64) (vitrine.Assortment, []float64) {
	var inverse mat.Dense
	if err := inverse.Inverse(r.h); err != nil {
		panic(err)
	}
	z, order := make([]float64, traceItems), make([]int, traceItems)
	for i := range z {
		row := mat.NewVecDense(traceWidth, x.RawRowView(i))
		z[i], order[i] = mat.Dot(row, r.w)+radius*math.Sqrt(mat.Inner(row, &inverse, row)), i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(z[b], z[a]) })
	s := vitrine.Assortment(order[:traceSize])
	slices.Sort(s)
	return s, z
}

// moments returns the choice probabilities of the rows of x under w, and ∇²ℓ = Σ_i p_i x_i x_iᵀ −
// Σ_ij p_i p_j x_i x_jᵀ.
func (r *referenceOFU) moments(x [][]float64) (p []float64, hessian *mat.Dense) {
	total := 1.0
	for _, row := range x {
		p = append(p, math.Exp(mat.Dot(mat.NewVecDense(traceWidth, row), r.w)))
		total += p[len(p)-1]
	}
	for i := range p {
		p[i] /= total
	}
	hessian = mat.NewDense(traceWidth, traceWidth, nil)
	for a := range traceWidth {
		for b := range traceWidth {
			v := 0.0
			for i := range x {
				v += p[i] * x[i][a] * x[i][b]
				for j := range x {
					v -= p[i] * p[j] * x[i][a] * x[j][b]
				}
			}
			hessian.Set(a, b, v)
		}
	}
	return p, hessian
}

// update makes w ← w − σ (H + η ∇²ℓ(w))⁻¹ ∇ℓ(w) and H ← H + ∇²ℓ at the new w.
func (r *referenceOFU) update(x [][]float64, y vitrine.Choice) {
	p, hessian := r.moments(x)
	gradient := mat.NewVecDense(traceWidth, nil)
	for i, row := range x {
		if int(y) == i+1 {
			p[i]--
		}
		gradient.AddScaledVec(gradient, p[i], mat.NewVecDense(traceWidth, row))
	}
	var tilde mat.Dense
	tilde.Scale(r.eta, hessian)
	tilde.Add(&tilde, r.h)
	var step mat.VecDense
	if err := step.SolveVec(&tilde, gradient); err != nil {
		panic(err)
	}
	r.w.AddScaledVec(r.w, -r.sigma, &step)
	_, hessian = r.moments(x)
	r.h.Add(r.h, hessian)
}

// The learner and the second implementation live the same life and agree in every round: with the step of the paper, σ
// = η, and with the step of its authors' code, σ = 2η and the radius at t = 1.
func TestOFUTrace(t *testing.T) {
	final := map[string][]float64{}
	for constants, sigma := range map[string]float64{"theory": 1, "frozen": 1, "published": 2} {
		p := Problem{NumFeatures: traceWidth, MaxShown: traceSize, Rounds: traceRounds,
			Constraint: assortment.AtMost(traceSize)}
		l := fatal.Or(NewOFU(p, OFUOptions{LinearOptions: LinearOptions{Constants: constants}}))(t)
		reference := newReferenceOFU(sigma)
		for round := 1; round <= traceRounds; round++ {
			x, at := traceContext(round), 1.0
			if constants == "theory" {
				at = float64(round)
			}
			s, z := reference.offer(x.Features, l.beta(at))
			for i, got := range l.Policy().(*optimistic).z.Utilities(nil, x) {
				wantNear(t, constants+": z", got, z[i], 1e-12)
			}
			offer := l.Policy().Offer(x, nil)
			expect.List(fatal.T(t), offer.Assortment, s, constants, "round", round, "offers")
			observeAll(t, l, []vitrine.Round{{Context: x, Offer: offer, Choice: traceChoice(round)}})
			var rows [][]float64
			for _, i := range s {
				rows = append(rows, x.Features.RawRowView(i))
			}
			reference.update(rows, traceChoice(round))
			for j, got := range l.est.Params() {
				wantNear(t, constants+": w", got, reference.w.AtVec(j), 1e-12)
			}
		}
		final[constants] = l.est.Params()
	}
	// The update and the index of the authors' code (oh-lab/OFU-MNL-plus, models_uniform.py)
	// after these rounds.
	for j, want := range []float64{-0.006266214276173987, 0.019564313175576824, 0.04047469999522155} {
		wantNear(t, "w of the authors' code", final["published"][j], want, 1e-11)
		if math.Abs(final["frozen"][j]-want) < 1e-4 {
			t.Errorf("w_%d of the paper's step is that of the code", j)
		}
	}
}
