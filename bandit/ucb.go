package bandit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"vitrine"
	"vitrine/assortment/search"
	"vitrine/internal/kernel"
	"vitrine/internal/portable"
	"vitrine/utility"
)

// UCBOptions are the options of UCB-MNL.
type UCBOptions struct {
	LinearOptions `range:"constants: theory|frozen|likelihood|tuned" doc:"constants: the paper's radius, its value at t = 1, that of the likelihood, or radius"`
	Update        string  `toml:"update,omitempty" range:"mle|online" zero:"mle" doc:"θ̂ from all rounds, or by a step a round and fits now and then"`
	Delta         float64 `toml:"delta,omitempty" range:"(0, 1)" zero:"0.05" doc:"δ of constants = likelihood: the probability that it ever misses θ*"`
	Bound         float64 `toml:"bound,omitempty" range:"(0, inf)" zero:"1" doc:"B of constants = likelihood, where ‖θ*‖ ≤ B"`
}

// DefaultUCBOptions returns λ = 1 and the radius of the paper.
func DefaultUCBOptions() UCBOptions {
	return UCBOptions{LinearOptions: LinearOptions{Constants: "theory", Lambda: 1}}
}

// UCB is UCB-MNL (Oh and Iyengar 2021, Algorithm 1): with the ridge-penalised maximum likelihood estimate θ̂_t of
// linear utilities it uses the index
//
//	z_ti = x_tiᵀ θ̂_t + α_t ‖x_ti‖_{V_t⁻¹},   V_t = λI + Σ_{s<t} Σ_{i∈S_s} x_si x_siᵀ
//	α_t  = (1/2κ) √(2 d log(1 + t/d) + 2 log t)
//
// Our constants "likelihood" replace the radius by one without κ, and V_t by the Hessian of the loss at θ̂_t: see
// docs/algorithms/ucb-mnl.md.
type UCB struct {
	linear
	o UCBOptions
}

// NewUCB returns a learner of linear utilities at its first round.
func NewUCB(p Problem, o UCBOptions) (*UCB, error) { return NewUCBOn(p, nil, o) }

// NewUCBOn returns a learner of the utilities θᵀφ(x) at its first round, where φ
// is the basis of m; nil is [NewUCB].
func NewUCBOn(p Problem, m utility.LinearInParams, o UCBOptions) (*UCB, error) {
	model, err := o.basis("NewUCBOn", &p, m)
	if err != nil {
		return nil, err
	}
	if err := p.checkOptions(o); err != nil {
		return nil, err
	}
	if o.Constants != likelihood && (o.Delta != 0 || o.Bound != 0) {
		name, value := "delta", o.Delta
		if o.Delta == 0 {
			name, value = "bound", o.Bound
		}
		return nil, fmt.Errorf("%s = %v: constants = %q does not use it: set constants = %q, or leave %[1]s out", name, value,
			o.Constants, likelihood)
	}
	if o.Update == "online" && o.Constants == likelihood {
		return nil, fmt.Errorf("update = \"online\": the radius of constants = %q is around the maximum of the "+
			"likelihood of all rounds: set update = \"mle\"", likelihood)
	}
	l := &UCB{o: o}
	id := p.identify("ucb-mnl", 1, utility.Identity(model), o)
	l.linear = newLinear(p, model, o.LinearOptions, l, id, regression(model.NumParams(), o.Lambda, o.Update))
	return l, nil
}

// maxMoved is how far utilities may move before the Hessian of the constants "likelihood" is computed again.
const maxMoved = 0.1

// learn implements algorithm.
func (l *UCB) learn(r vitrine.Round) {
	l.linear.learn(r)
	if l.o.Constants == likelihood {
		l.est.(newton).Tighten(maxMoved)
	}
}

// freeze implements algorithm.
func (l *UCB) freeze() vitrine.Policy {
	widths := l.v
	if l.o.Constants == likelihood {
		widths, _ = l.est.(newton).Hessian()
	}
	pi := &optimistic{p: l.p, z: search.Optimistic{
		Model:   l.model,
		Params:  slices.Clone(l.est.Params()),
		Inverse: widths.Inverse(),
		Radius:  l.radius(),
	}}
	return pi.inPlaces(l.places)
}

// radius returns α_t for the coming round t.
func (l *UCB) radius() float64 {
	if l.o.Constants == likelihood {
		return l.likelihoodRadius()
	}
	return l.o.radiusAt(l.rounds+1, func(t float64) float64 {
		return selfNormalized(t, l.model.NumParams(), l.p.MaxShown)
	})
}

const likelihood = "likelihood"

// likelihoodRadius returns r_t with ‖θ* − θ̂_t‖_{H_t} ≤ r_t in all rounds t with a probability of at least 1 − δ,
//
//	γ_t² = log(1/δ) + (d/2) log(½ + tr(V_t)/(2λd)) + λB²/2
//	r_t² ≤ (2 + R_t) γ_t²,   R_t = min(2X (B + ‖θ̂_t‖), 2X √tr(H_t⁻¹) r_t)
//
// where X is the largest ‖x‖ of the items offered, and ‖θ*‖ ≤ B. The proof is in docs/algorithms/ucb-mnl.md. H_t is the
// Hessian at an earlier estimate, which is that at θ̂_t within a factor exp(±2m).
func (l *UCB) likelihoodRadius() float64 {
	n := l.est.(newton)
	h, moved := n.Hessian()
	delta, bound := cmp.Or(l.o.Delta, 0.05), cmp.Or(l.o.Bound, 1)
	d, lambda := float64(l.model.NumParams()), l.o.Lambda
	square := float64(d/2*portable.Log(0.5+l.v.Trace()/(2*lambda*d))) - portable.Log(delta) +
		float64(lambda/2*bound*bound)
	reach, m := 2*n.Loss().Reach(), portable.Exp(moved)
	wide := math.Sqrt((2 + float64(reach*(bound+math.Sqrt(kernel.Dot(n.Params(), n.Params()))))) * square)
	b := float64(reach * m * math.Sqrt(h.Inverse().Trace()) * square)
	return m * min(wide, (b+math.Sqrt(float64(b*b)+float64(8*square)))/2)
}
