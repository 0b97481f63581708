package bandit

import (
	"math"
	"slices"

	"vitrine/assortment"
	"vitrine/internal/scratch"
)

// barrier solves the program of the log-barrier strategy over the distributions q on the M sets of a family,
//
//	maximise  Σ_S q_S R_S + (1/γ) Σ_i log w_i,   w_i = Σ_{S∋i} q_S
//
// where i runs over the n items that occur in some set. It is concave, and q is optimal exactly if no set is worth more
// than the average at the prices 1/(γ w_i) of being seen:
//
//	R_S + Σ_{i∈S} 1/(γ w_i) ≤ μ for all S,   μ = Σ_S q_S R_S + n/γ,
//
// with equality where q_S > 0. The largest excess of the left side over μ is the duality gap, which bounds the distance
// to the optimum.
//
// The method is a primal-dual interior point method (Boyd and Vandenberghe 2004, Section 11.7) in q, the prices z and
// μ, with the slack s_S = μ − R_S − Σ_{i∈S} z_i ≥ 0: Newton steps on
//
//	Σ_S q_S = 1,   w_i z_i = max(1/γ, τ),   q_S s_S = τ,   τ → 0.
//
// The sets are eliminated from a step, which costs M K² + N³.
type barrier struct {
	sets    *assortment.Sets
	epsilon float64 // 1/γ, in the unit of r
	seen    float64 // n

	r, q, dq, slack, ds []float64 // M
	w, z, price         []float64 // N

	hessian []float64 // (N+1)×(N+1), of the step in (μ, z); its lower triangle
	step    []float64 // N+1
}

const (
	// gapTolerance is the duality gap at which the program is solved, relative
	// to max_S R_S + n/γ, which bounds μ.
	gapTolerance = 1e-6
	// maxNewton bounds the steps; 10 to 50 suffice.
	maxNewton = 100
)

// solve returns q for the revenues R_S of the sets, at least one, of N items,
// and its relative duality gap. q is b's own.
func (b *barrier) solve(sets *assortment.Sets, revenue []float64, items int, gamma float64) (q []float64, gap float64) {
	b.start(sets, revenue, items, gamma)
	length := 1.0
	for range maxNewton {
		if b.gap() <= gapTolerance {
			break
		}
		center := 0.05 // of the mean of q_S s_S, which the step aims at
		if length < 0.5 {
			center = 0.5
		}
		if !b.newton(center) {
			break // at the limit of rounding
		}
		length = b.move()
	}
	return b.q, b.gap()
}

// start makes q uniform, with the prices that belong to it, in the unit
// max_S R_S + n/γ.
func (b *barrier) start(sets *assortment.Sets, revenue []float64, items int, gamma float64) {
	m := sets.Len()
	b.sets = sets
	b.r, b.q, b.dq, b.slack, b.ds = scratch.Grow(b.r, m), scratch.Grow(b.q, m), scratch.Grow(b.dq, m),
		scratch.Grow(b.slack, m), scratch.Grow(b.ds, m)
	b.w, b.z, b.price = scratch.Grow(b.w, items), scratch.Grow(b.z, items), scratch.Grow(b.price, items)
	b.hessian, b.step = scratch.Grow(b.hessian, (items+1)*(items+1)), scratch.Grow(b.step, items+1)
	for s := range b.q {
		b.q[s] = 1
	}
	b.normalize()
	b.seen = 0
	for _, w := range b.w {
		if w > 0 {
			b.seen++
		}
	}
	unit := slices.Max(revenue) + b.seen/gamma
	b.epsilon = 1 / gamma / unit
	for s, v := range revenue {
		b.r[s] = v / unit
	}
	b.prices(b.z, max(b.epsilon, 1/float64(m)))
	mu := 0.0
	for s := range b.r {
		b.slack[s] = -b.worth(s, b.z)
		mu = max(mu, -b.slack[s])
	}
	for s := range b.slack {
		b.slack[s] += mu + 1
	}
}

// normalize scales q to a sum of 1, and computes w.
func (b *barrier) normalize() {
	total := 0.0
	for _, v := range b.q {
		total += v
	}
	clear(b.w)
	for s := range b.q {
		b.q[s] /= total
		for _, i := range b.sets.At(s) {
			b.w[i] += b.q[s]
		}
	}
}

// prices stores ε/w_i in dst, 0 for items that are in no set.
func (b *barrier) prices(dst []float64, epsilon float64) {
	for i, w := range b.w {
		dst[i] = 0
		if w > 0 {
			dst[i] = epsilon / w
		}
	}
}

// worth returns R_S + Σ_{i∈S} price_i.
func (b *barrier) worth(s int, price []float64) float64 {
	worth := b.r[s]
	for _, i := range b.sets.At(s) {
		worth += price[i]
	}
	return worth
}

// gap returns the duality gap of q.
func (b *barrier) gap() float64 {
	b.prices(b.price, b.epsilon)
	best, mean := 0.0, 0.0
	for s, q := range b.q {
		best = max(best, b.worth(s, b.price))
		mean += float64(q * b.r[s])
	}
	return best - mean - float64(b.seen*b.epsilon)
}

// newton stores the Newton step towards τ = center · mean of q_S s_S, and
// reports whether there is one. With D = q/s, and A the incidence of items and
// sets, dq and ds are eliminated from
//
//	q ds + s dq = τ − qs,   ds = dμ − Aᵀdz,   Σ dq = 0,   z A dq + w dz = max(ε, τ) − wz
func (b *barrier) newton(center float64) bool {
	clear(b.hessian)
	clear(b.step)
	order := len(b.step)
	tau := 0.0
	for s, q := range b.q {
		tau += center * q * b.slack[s] / float64(len(b.q))
	}
	for s, q := range b.q {
		d, c := q/b.slack[s], tau/b.slack[s]-q
		set := b.sets.At(s)
		b.hessian[0] += d
		b.step[0] += c
		for k, i := range set {
			b.step[i+1] -= c
			row := b.hessian[(i+1)*order:]
			row[0] -= d
			for _, j := range set[:k+1] {
				row[j+1] += d
			}
		}
	}
	for i, z := range b.z {
		at := (i + 1) * (order + 1)
		if z == 0 {
			b.hessian[at] = 1
			continue
		}
		b.hessian[at] += b.w[i] / z
		b.step[i+1] += max(b.epsilon, tau)/z - b.w[i]
	}
	if !solveDefinite(b.hessian, b.step) {
		return false
	}
	for s, q := range b.q {
		b.ds[s] = b.step[0]
		for _, i := range b.sets.At(s) {
			b.ds[s] -= b.step[i+1]
		}
		b.dq[s] = (tau-float64(q*b.ds[s]))/b.slack[s] - q
	}
	return true
}

// move goes along the step: q and the prices each go as far as they stay positive. It returns the shorter of the two
// lengths.
func (b *barrier) move() float64 {
	dz := b.step[1:]
	primal := longest(1, b.q, b.dq)
	dual := longest(longest(1, b.slack, b.ds), b.z, dz)
	for s := range b.q {
		b.q[s] += float64(primal * b.dq[s])
		b.slack[s] += float64(dual * b.ds[s])
	}
	for i := range b.z {
		b.z[i] += float64(dual * dz[i])
	}
	b.normalize()
	return min(primal, dual)
}

// longest returns the length, of at most 1, at which v + length·d keeps a
// hundredth of v.
func longest(length float64, v, d []float64) float64 {
	const reserve = 0.99
	for i := range v {
		if v[i]+float64(length*d[i]) < (1-reserve)*v[i] {
			length = -reserve * v[i] / d[i]
		}
	}
	return length
}

// solveDefinite makes x the solution of A y = x by Cholesky's factors, for the
// positive definite A, stored as its lower triangle, which it overwrites. It
// reports whether rounding leaves A definite.
func solveDefinite(a, x []float64) bool {
	n := len(x)
	for i := range n {
		ri := a[i*n : i*n+i+1]
		for j := range i + 1 {
			rj := a[j*n : j*n+j+1]
			v := ri[j]
			for k, l := range rj[:j] {
				v -= float64(l * ri[k])
			}
			if j < i {
				ri[j] = v / rj[j]
			} else if v > 0 {
				ri[i] = math.Sqrt(v)
			} else {
				return false
			}
		}
		for k, l := range ri[:i] {
			x[i] -= float64(l * x[k])
		}
		x[i] /= ri[i]
	}
	for i := n - 1; i >= 0; i-- {
		x[i] /= a[i*n+i]
		for k, l := range a[i*n : i*n+i] {
			x[k] -= float64(l * x[i])
		}
	}
	return true
}
