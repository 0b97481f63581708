package theory

import (
	"fmt"
	"maps"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/utility"
)

// Witness is ONL-MNL with an observer that knows the truth. It offers and learns like the learner. In every round of
// Phase II it compares the learner's estimates with f_w*, and Diagnostics returns:
//
//	pilot             ‖ŵ_0 − w̃*‖², where w̃* ∈ W* is the nearest to ŵ_0
//	pilot_error       the mean of (f_ŵ0(x) − f_w*(x))² over the items of the first round of Phase II
//	final             ‖ŵ_T − w̃*‖²
//	covered           share of the rounds with ‖ŵ_t − w̃*‖²_{V_t} ≤ β_t
//	always            1 where all rounds are covered
//	needed            the largest ‖ŵ_t − w̃*‖²_{V_t}: the β that covers all of them
//	optimistic        share of z_ti ≥ f_w*(x_ti) over all rounds and items
//	optimistic_best   the same over the items of S*_t
//	revenue           share of the rounds with R̃_t(S_t) ≥ R_t(S*_t)
//	potential, potential_bound   see [Potential]
//	gradient          the largest ‖∇f‖ among the items offered
//	trace             Σ_s Σ_{i∈S_s} ‖∇f_ŵs(x_si)‖²_{V_T⁻¹} = d_w − λ tr V_T⁻¹ ≤ d_w
//	kappa             the learner's own, of its data
//
// and at each of ten rounds t, evenly spaced, distance.t = ‖ŵ_t − w̃*‖²_{V_t}, potential.t and bound.t.
type Witness struct {
	learner    *bandit.ONL
	problem    bandit.Problem
	model      utility.Model
	world      env.Environment
	symmetries Symmetries
	star       []float64 // w*

	t         int       // rounds observed
	nearest   []float64 // w̃*, in Phase II
	seen      map[string]float64
	phase2    float64 // rounds of Phase II
	potential Potential

	truth, z, norms []float64
	all, best       vitrine.Assortment
	g               *mat.Dense
}

// NewWitness observes a learner of the problem and the model in a world with the truth f_star. It returns an error if
// the symmetries are not known.
func NewWitness(l *bandit.ONL, p bandit.Problem, m utility.Model, s Symmetries, world env.Environment,
	star []float64) (*Witness, error) {
	if _, _, err := s.Nearest(star, star); err != nil {
		return nil, err
	}
	return &Witness{
		learner: l, problem: p, model: m, world: world, symmetries: s, star: star, seen: map[string]float64{},
	}, nil
}

// Policy implements vitrine.Learner.
func (w *Witness) Policy() vitrine.Policy { return w.learner.Policy() }

// Observe implements vitrine.Learner. It compares before the learner learns.
func (w *Witness) Observe(r vitrine.Round) error {
	if e, ok := w.learner.Ellipsoid(); ok {
		if err := w.look(e, r); err != nil {
			return err
		}
	}
	if err := w.learner.Observe(r); err != nil {
		return err
	}
	w.t++
	return nil
}

// look compares the learner's estimates for the coming round with the truth.
func (w *Witness) look(e bandit.Ellipsoid, r vitrine.Round) error {
	if w.nearest == nil {
		nearest, distance, err := w.symmetries.Nearest(e.Pilot, w.star)
		if err != nil {
			return err
		}
		w.nearest, w.seen["pilot"], w.seen["always"] = nearest, distance*distance, 1
	}
	w.phase2++
	w.linearize(e, r.Context)
	w.cover(e)
	w.compare(e, r)
	w.add(e, r.Offer.Assortment)
	return nil
}

// linearize computes f_w*, z and the norms for all items.
func (w *Witness) linearize(e bandit.Ellipsoid, x *vitrine.Context) {
	n := x.NumItems()
	if len(w.z) != n {
		w.truth, w.z, w.norms = make([]float64, n), make([]float64, n), make([]float64, n)
		w.g = mat.NewDense(n, len(e.Center), nil)
		w.all = w.all[:0]
		for i := range n {
			w.all = append(w.all, i)
		}
	}
	env.At(w.world, w.t+1).Utilities(w.truth, x)
	utility.Linearize(w.model, w.z, w.g, e.Center, x.Features)
	if w.phase2 == 1 {
		w.seen["pilot_error"] = math.Pow(floats.Distance(w.z, w.truth, 2), 2) / float64(n)
	}
	e.Gram.Inverse().Norms(w.norms, w.g)
	for i, norm := range w.norms {
		w.z[i] += math.Sqrt(e.Beta) * norm
	}
}

// cover measures the distance of the truth from the centre.
func (w *Witness) cover(e bandit.Ellipsoid) {
	distance := quadratic(e.Gram.Sym(nil), e.Center, w.nearest)
	if distance <= e.Beta {
		w.seen["covered"]++
	} else {
		w.seen["always"] = 0
	}
	w.seen["needed"] = max(w.seen["needed"], distance)
	w.seen["final"] = math.Pow(floats.Distance(e.Center, w.nearest, 2), 2)
	w.record("distance", distance)
}

// compare counts where the optimistic utilities and revenues are optimistic.
func (w *Witness) compare(e bandit.Ellipsoid, r vitrine.Round) {
	family := r.Context.Feasible
	if family == nil {
		family = w.problem.Constraint
	}
	var optimum float64
	w.best, optimum = assortment.Maximize(w.best, family, w.truth, r.Context.Revenue)
	if vitrine.ExpectedRevenue(r.Offer.Assortment, w.z, r.Context.Revenue) >= optimum {
		w.seen["revenue"]++
	}
	w.seen["optimistic"] += w.share(w.all)
	w.seen["optimistic_best"] += w.share(w.best)
}

// share returns how many of the items satisfy z ≥ f_w*.
func (w *Witness) share(items vitrine.Assortment) float64 {
	if len(items) == 0 {
		return 1
	}
	above := 0
	for _, i := range items {
		if w.z[i] >= w.truth[i] {
			above++
		}
	}
	return float64(above) / float64(len(items))
}

// add adds the offer to the elliptical potential.
func (w *Witness) add(e bandit.Ellipsoid, s vitrine.Assortment) {
	var norms, gradients []float64
	for _, i := range s {
		norms = append(norms, w.norms[i])
		gradients = append(gradients, floats.Norm(w.g.RawRowView(i), 2))
	}
	w.potential.Add(norms, gradients)
	w.record("potential", w.potential.Sum)
	w.record("bound", w.potential.Bound(len(e.Center), e.Lambda))
}

// record keeps a value for the coming round, if it is one of the ten.
func (w *Witness) record(name string, value float64) {
	if t := w.t + 1; t*10%w.problem.Rounds < 10 {
		w.seen[fmt.Sprintf("%s.%d", name, t)] = value
	}
}

// Diagnostics implements experiment.Diagnoser.
func (w *Witness) Diagnostics() map[string]float64 {
	e, ok := w.learner.Ellipsoid()
	if !ok || w.phase2 == 0 {
		return nil
	}
	d := maps.Clone(w.seen)
	for _, name := range []string{"covered", "optimistic", "optimistic_best", "revenue"} {
		d[name] /= w.phase2
	}
	d["potential"], d["gradient"] = w.potential.Sum, w.potential.Gradient
	d["potential_bound"] = w.potential.Bound(len(e.Center), e.Lambda)
	d["trace"] = float64(len(e.Center)) - e.Lambda*e.Gram.Inverse().Trace()
	maps.Copy(d, w.learner.Diagnostics())
	return d
}

func quadratic(v mat.Symmetric, a, b []float64) float64 {
	d := mat.NewVecDense(len(a), nil)
	d.SubVec(mat.NewVecDense(len(a), a), mat.NewVecDense(len(b), b))
	return mat.Inner(d, v, d)
}
