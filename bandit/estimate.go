package bandit

import "vitrine"

// Policies of learners with an estimate ŵ implement a method Utilities, which stores f_ŵ(x_i) of each item in dst,
// without optimism and without draws. Callers find it by a type assertion. Uniform policies, including Phase I's, make
// no estimate, and Feel-Good Thompson sampling makes only draws. BMA-MNL's method returns the utilities that give its
// families' mean probabilities.

// Utilities stores the estimated utilities in dst.
func (o *optimistic) Utilities(dst []float64, x *vitrine.Context) {
	o.p.checkWidth(x)
	o.z.Model.Utilities(dst, o.z.Params, x.Features)
}

// Utilities stores the utilities of the mean parameters in dst.
func (o *sampling) Utilities(dst []float64, x *vitrine.Context) {
	o.p.checkWidth(x)
	o.places.utilities(dst, o.model, o.mean, x)
}

// Utilities stores the estimated utilities in dst.
func (o *epsGreedy) Utilities(dst []float64, x *vitrine.Context) { o.greedy.Utilities(dst, x) }

// Utilities stores the estimated utilities in dst.
func (o *logBarrier) Utilities(dst []float64, x *vitrine.Context) { o.greedy.Utilities(dst, x) }
