package bandit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fields"
	"vitrine/internal/kernel"
	"vitrine/internal/scratch"
	"vitrine/utility"
)

// posterior is the density of Feel-Good Thompson sampling, of potential
//
//	U(w) = (ρ/2) ‖w‖² + Σ_s (η ℓ_s(w) − λ max_{S∈𝒮} R_s(S; w))
//	ℓ_s(w) = −log p(i_s | S_s, w)    or    c Σ_{i∈S_s} (p(i | S_s, w) − 1{i = i_s})²
//
// up to a constant. With further takes, ℓ_s sums the losses of all takes, where q(i) = p(i | S_s, w) / (1 − p(0 | S_s,
// w)) replaces p for each further one; the squared error is the mean over all orders of the takes. The posterior needs
// the items of all rounds, offered or not: a value and its gradient cost Σ_s N_s d_w and an optimisation a round. max
// R_s is differentiable except where two sets tie, with the gradient of the best of them,
//
//	∇_w R_s(S; w) = Σ_{i∈S} p(i | S, w) (r_i − R_s(S; w)) ∇f_w(x_i)
//
// With position effects the set is in its best order, and f_w(x_i) + γ_p(i) replaces f_w(x_i).
type posterior struct {
	model            utility.Model
	family           vitrine.Constraint // 𝒮
	ridge, eta, feel float64            // ρ, η, λ
	squared          float64            // c, 0 for the log loss
	places           places

	d        int       // with the features of places
	features []float64 // of all rows
	rows     *mat.Dense
	rounds   []pastRound

	u, p, y []float64 // scratch, of a set
	best    vitrine.Assortment

	effects []float64 // γ, γ_1 = 0 first; nil without position effects
	pull    []float64 // derivatives of the potential in γ, by max R
	first   scratch.Matrix
}

// pastRound is a round as the posterior keeps it: its items, or only the offered ones if it does not enter max R. With
// position effects the items are in the first place, and the offered ones are kept again behind them, in their places.
type pastRound struct {
	items    int // with the offered ones
	feelGood bool
	revenue  []float64 // of feelGood; nil is 1 for all
	offered  vitrine.Assortment
	choice   vitrine.Choice
	more     []vitrine.Choice
}

// check returns an error if max R of a round cannot be computed.
func (p *posterior) check(r vitrine.Round) error {
	if r.Context == nil || r.Context.Feasible != nil {
		return nil
	}
	return p.checkItems(r.Context.NumItems())
}

// checkItems reports a number of items that the feasible family is not of.
func (p *posterior) checkItems(n int) error {
	if family, ok := p.family.(interface{ Items() int }); ok && family.Items() != n {
		return fmt.Errorf("the round has %d items, its feasible family has %d", n, family.Items())
	}
	return nil
}

// candidates returns the number of items over which max R runs.
func (p *posterior) candidates(r pastRound) int {
	if p.places > 0 {
		return r.items - len(r.offered)
	}
	return r.items
}

// finite reports whether all utilities with which a round enters the potential at w
// are finite.
func (p *posterior) finite(r vitrine.Round, w []float64) bool {
	n := r.Context.NumItems()
	p.u = scratch.Grow(p.u, n)
	if n > 0 {
		p.model.Utilities(p.u, w, p.places.first(&p.first, r.Context).Features)
	}
	return !math.IsInf(largest(0, p.u), 0)
}

// add adds a round that passes check. If its context names its own feasible family, the round counts only in the
// likelihood. offered is the round with the features of the places.
func (p *posterior) add(r, offered vitrine.Round) {
	past := pastRound{choice: r.Choice, more: r.More, feelGood: p.feel > 0 && r.Context.Feasible == nil}
	if past.feelGood {
		past.items = r.Context.NumItems()
		past.revenue = append([]float64(nil), r.Context.Revenue...)
		if past.items > 0 {
			all := p.places.first(&p.first, r.Context).Features
			for i := range past.items {
				p.features = append(p.features, all.RawRowView(i)...)
			}
		}
	}
	if past.feelGood && p.places == 0 {
		past.offered = append(past.offered, r.Offer.Assortment...)
	} else {
		for _, i := range offered.Offer.Assortment {
			p.features = append(p.features, offered.Context.Features.RawRowView(i)...)
			past.offered = append(past.offered, past.items)
			past.items++
		}
	}
	p.rounds = append(p.rounds, past)
	p.stack()
}

// stack makes rows a view of the features.
func (p *posterior) stack() {
	if n := len(p.features) / p.d; n > 0 {
		p.rows = mat.NewDense(n, p.d, p.features)
	}
}

// Gradient implements mle.Target.
func (p *posterior) Gradient(dst, w []float64) float64 {
	u := 0.0
	clear(dst)
	if p.places > 0 {
		p.effects = p.places.effects(w)
		p.pull = scratch.Grow(p.pull, len(p.effects))
		clear(p.pull)
	}
	if p.rows != nil {
		u = backpropagate(p.model, dst, w, p.rows, p.cotangents)
	}
	for k := range int(p.places) {
		dst[len(dst)-int(p.places)+k] += p.pull[1+k]
	}
	for j, v := range w {
		dst[j] += float64(p.ridge * v)
		u += float64(p.ridge / 2 * v * v)
	}
	return u
}

// cotangents returns the potential without the penalty as a function of the
// utilities of all rows, and its derivatives in them.
func (p *posterior) cotangents(cotangent, u []float64) float64 {
	clear(cotangent)
	total := 0.0
	for _, r := range p.rounds {
		us, cs := u[:r.items], cotangent[:r.items]
		u, cotangent = u[r.items:], cotangent[r.items:]

		p.choose(r.offered, us)
		if p.squared > 0 {
			total = p.addSquaredError(total, cs, r)
		} else {
			total = p.addLogLoss(total, cs, us, r)
		}
		if !r.feelGood {
			continue
		}
		total -= p.addLargest(cs, us[:p.candidates(r)], r)
	}
	return total
}

// addLargest returns λ max R_s, and subtracts its derivatives in the utilities from cs and those in the effects
// from p.pull.
func (p *posterior) addLargest(cs, us []float64, r pastRound) float64 {
	var best float64
	if p.places == 0 {
		p.best, best = assortment.Maximize(p.best, p.family, us, r.revenue)
	} else {
		p.best, best = assortment.MaximizeOrdered(p.best, p.family, us, p.effects, r.revenue)
	}
	p.choose(p.best, us)
	if p.places > 0 {
		for k := range p.best {
			p.u[k] += vitrine.PlaceEffect(p.effects, k)
		}
		vitrine.Probabilities(p.p, p.u)
	}
	for k, i := range p.best {
		slope := float64(p.feel * p.p[k+1] * (vitrine.RevenueOf(r.revenue, i) - best))
		cs[i] -= slope
		if p.places > 0 {
			p.pull[min(k, int(p.places))] -= slope
		}
	}
	return float64(p.feel * best)
}

// addLogLoss returns total + η ℓ_s(w) and adds the derivatives in the utilities to cs, for the offered set seen by
// choose.
func (p *posterior) addLogLoss(total float64, cs, us []float64, r pastRound) float64 {
	total += float64(p.eta * vitrine.LogSumExp1(p.u))
	for k, i := range r.offered {
		cs[i] += float64(p.eta * p.p[k+1])
	}
	if r.choice != vitrine.Outside {
		i := r.offered[r.choice-1]
		total -= float64(p.eta * us[i])
		cs[i] -= p.eta
	}
	if further := float64(len(r.more)); further > 0 {
		total += float64(p.eta * further * kernel.LogSumExp(p.u))
		q := p.conditional(len(r.more))
		for k, i := range r.offered {
			cs[i] += float64(p.eta * further * q[k])
		}
		for _, y := range r.more {
			i := r.offered[y-1]
			total -= float64(p.eta * us[i])
			cs[i] -= p.eta
		}
	}
	return total
}

// conditional returns the q of the set that choose has seen. It uses p.u.
func (p *posterior) conditional(further int) []float64 {
	kernel.Takes(p.u, further)
	floats.Scale(1/floats.Sum(p.u), p.u)
	return p.u
}

// addSquaredError is addLogLoss of the squared error. With the errors e_i = p_i − y_i, where y is the choice,
//
//	∂/∂u_k Σ_i e_i² = 2 p_k (e_k − Σ_i e_i p_i)
//
// and alike for q. With n further takes, y is the share of each item in the takes, and the mean over their orders is
// Σ_i (p_i − y_i)² + n Σ_i (q_i − y_i)² up to a constant.
func (p *posterior) addSquaredError(total float64, cs []float64, r pastRound) float64 {
	p.y = scratch.Grow(p.y, len(r.offered))
	y := p.y
	clear(y)
	if r.choice != vitrine.Outside {
		y[r.choice-1] = 1
	}
	if len(r.more) > 0 {
		for _, c := range r.more {
			y[c-1]++
		}
		floats.Scale(1/float64(len(r.more)+1), y)
	}
	add := func(weight float64, p []float64) {
		mean := 0.0
		for k, share := range y {
			e := p[k] - share
			total += float64(weight * e * e)
			mean += float64(e * p[k])
		}
		for k, i := range r.offered {
			cs[i] += float64(2 * weight * p[k] * (p[k] - y[k] - mean))
		}
	}
	weight := float64(p.eta * p.squared)
	if add(weight, p.p[1:]); len(r.more) > 0 {
		add(float64(weight*float64(len(r.more))), p.conditional(len(r.more)))
	}
	return total
}

// choose leaves the utilities of a set and its choice probabilities in p.u, p.p.
func (p *posterior) choose(s vitrine.Assortment, u []float64) {
	p.u, p.p = scratch.Grow(p.u, len(s)), scratch.Grow(p.p, len(s)+1)
	for k, i := range s {
		p.u[k] = u[i]
	}
	vitrine.Probabilities(p.p, p.u)
}

// backpropagate is [utility.Backpropagator], of any model.
func backpropagate(m utility.Model, dst, w []float64, x *mat.Dense, loss func(cotangent, u []float64) float64) float64 {
	if b, ok := m.(utility.Backpropagator); ok {
		return b.Backpropagate(dst, w, x, loss)
	}
	n, _ := x.Dims()
	u, cotangent, g := make([]float64, n), mat.NewVecDense(n, nil), mat.NewDense(n, len(w), nil)
	utility.Linearize(m, u, g, w, x)
	value := loss(cotangent.RawVector().Data, u)
	mat.NewVecDense(len(w), dst).MulVec(g.T(), cotangent)
	return value
}

// fields passes over the rounds. A further take follows its round as a round without items, but with a choice.
func (p *posterior) fields(f *fields.Fields) {
	f.Floats(&p.features)
	list := p.rounds
	if !f.Reads() && slices.ContainsFunc(list, func(r pastRound) bool { return len(r.more) > 0 }) {
		list = nil
		for _, r := range p.rounds {
			list = append(list, r)
			for _, y := range r.more {
				list = append(list, pastRound{choice: y})
			}
		}
	}
	rows, takes := 0, 0 // takes: the items that a further take may be of
	fields.List(f, &list, func(r *pastRound, f *fields.Fields) {
		f.Count(&r.items, (*int)(&r.choice))
		fields.Integers(f, (*[]int)(&r.offered))
		hasRevenue := r.revenue != nil
		f.Flag(&r.feelGood, &hasRevenue)
		if !f.Reads() {
			f.Vector(&r.revenue)
			return
		}
		rows += r.items
		err := r.offered.Check(r.items)
		f.Check(r.items <= len(p.features) && rows <= len(p.features)/p.d, "%d items, and the features of %d", rows,
			len(p.features)/p.d)
		most := len(r.offered)
		if r.isFurther() {
			most = takes
		} else if takes = 0; r.choice != vitrine.Outside {
			takes = most
		}
		f.Check(err == nil && int(r.choice) <= most && (r.feelGood || !hasRevenue), "a round of %d items and "+
			"choice %d: %v", r.items, r.choice, err)
		if r.feelGood && f.Err() == nil {
			if err := p.checkItems(p.candidates(*r)); err != nil {
				f.Fail(fmt.Errorf("another feasible family: %w", err))
			}
		}
		if hasRevenue && f.Err() == nil {
			r.revenue = make([]float64, p.candidates(*r))
			f.Vector(&r.revenue)
		}
	})
	if f.Check(rows*p.d == len(p.features), "%d numbers for %d items of %d features", len(p.features), rows,
		p.d); f.Reads() && f.Err() == nil {
		p.rounds = nil
		for _, r := range list {
			if last := len(p.rounds) - 1; r.isFurther() {
				p.rounds[last].more = append(p.rounds[last].more, r.choice)
			} else {
				p.rounds = append(p.rounds, r)
			}
		}
		p.stack()
	}
}

// isFurther reports a further take, as fields writes it.
func (r *pastRound) isFurther() bool {
	return r.items == 0 && !r.feelGood && r.choice != vitrine.Outside
}
