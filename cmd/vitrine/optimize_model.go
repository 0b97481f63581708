package main

import (
	"context"
	"errors"
	"fmt"

	"vitrine"
	"vitrine/assortment"
	"vitrine/choice"
	"vitrine/internal/hint"
)

// demand says how customers choose among the items of a request. The zero value is the multinomial
// logit of the request's utilities.
type demand struct {
	mixture assortment.Mixture // of several classes; empty for the request's utilities
	nests   *assortment.Nests
}

// optimum is the best assortment that was found.
type optimum struct {
	shown       vitrine.Assortment
	revenue     float64
	probability []float64 // of the outside option, and of the items shown
	iterations  int       // 0 for a search without iterations
	bound       *float64  // of the revenue of every assortment; nil if revenue is the largest
}

// demand sets the utilities of a request's items to the model's.
func (c optimizeCmd) demand(ctx context.Context, t terminal, r *request, m *choice.Result) (*demand, error) {
	outside := 0.0
	switch {
	case c.Outside != nil:
		outside = *c.Outside
	case !m.Outside:
		return nil, hint.New(fmt.Errorf("%s: the data of the model had no outside option, and its utilities no zero",
			c.Model), "say with --outside what utility taking nothing has")
	}
	d, err := m.LoadItems(ctx, c.File)
	if err != nil {
		return nil, err
	}
	if len(d.Kept) != len(r.Items) {
		return nil, fmt.Errorf("%s: %d items, and %d rows of the model's variables", c.File, len(r.Items), len(d.Kept))
	}
	if out := r.keep(d.Kept); out > 0 {
		fmt.Fprintf(t.err, "vitrine: %s: %s left out by the model's filter, exclude or available\n", c.File,
			hint.Count(out, "row"))
	}
	c.label(t, r, m, d)
	shares, u, err := m.Classes(d)
	if err != nil {
		return nil, err
	}
	for _, class := range u {
		for i := range class {
			class[i] -= outside
			if legal := checkUtility(class[i]); legal != nil {
				return nil, fmt.Errorf("%s: %s has utility %v: %w", c.File, r.itemName(i), class[i], legal)
			}
		}
	}
	r.utility = u[0]
	found := &demand{}
	of, dissimilarity, err := m.Nests(d)
	switch {
	case err != nil:
		return nil, err
	case of != nil:
		for k, n := range m.Spec.Model.Nests {
			if dissimilarity[k] > 1 {
				return nil, fmt.Errorf("%s: the dissimilarity of nest %q is %v: finding the best assortment is NP-hard above 1",
					c.Model, n.Name, dissimilarity[k])
			}
		}
		found.nests = &assortment.Nests{Of: of, Dissimilarity: dissimilarity}
	case len(u) > 1:
		found.mixture = assortment.Mixture{Utility: u, Weight: shares}
	}
	return found, nil
}

// label names the items by their alternatives, if these differ (without labels they are row numbers), and warns of
// alternatives that the model lacks.
func (c optimizeCmd) label(t terminal, r *request, m *choice.Result, d *choice.Data) {
	if m.Labelled() {
		warnUnfitted(t, c.File, m, d)
	}
	if r.numbered && len(d.Alternatives) == d.Choices {
		for s := range r.Items {
			alternative, _ := d.Choice(s)
			r.Items[s].ID = d.Alternatives[alternative[0]]
		}
	}
}

// keep leaves out items, and returns how many.
func (r *request) keep(kept []bool) (out int) {
	for i, keep := range kept {
		r.Items[i-out], r.revenue[i-out] = r.Items[i], r.revenue[i]
		if !keep {
			out++
		}
	}
	r.Items, r.revenue = r.Items[:len(kept)-out], r.revenue[:len(kept)-out]
	return out
}

// maximize returns the best assortment of the family.
func (d *demand) maximize(r *request, family vitrine.Constraint) (optimum, error) {
	switch {
	case d.nests != nil:
		return d.maximizeNested(r)
	case d.mixture.Weight != nil:
		s, revenue, bound, err := assortment.MaximizeMixture(nil, family, d.mixture, r.revenue)
		best := optimum{shown: s, revenue: revenue, probability: make([]float64, len(s)+1), bound: &bound}
		p := make([]float64, len(s)+1)
		for c, share := range d.mixture.Weight {
			vitrine.Probabilities(p, at(d.mixture.Utility[c], s))
			for k, v := range p {
				best.probability[k] += share * v
			}
		}
		return best, err
	}
	s, revenue, iterations := assortment.MaximizeIterations(nil, family, r.utility, r.revenue)
	p := make([]float64, len(s)+1)
	vitrine.Probabilities(p, at(r.utility, s))
	return optimum{shown: s, revenue: revenue, probability: p, iterations: iterations}, nil
}

func (d *demand) maximizeNested(r *request) (optimum, error) {
	if r.hasRules() {
		return optimum{}, errors.New("the best assortment under nested logit is known without rules only: leave " +
			"them out, or leave out the rows of items that cannot be shown")
	}
	s, revenue, err := assortment.MaximizeNested(nil, *d.nests, r.utility, r.revenue)
	if err != nil {
		return optimum{}, err
	}
	// The revenue of one item, with all others earning 0, is its probability.
	best := optimum{shown: s, revenue: revenue, probability: []float64{1}}
	for _, i := range s {
		one := make([]float64, len(r.Items))
		one[i] = 1
		p := d.nests.Revenue(s, r.utility, one)
		best.probability = append(best.probability, p)
		best.probability[0] -= p
	}
	best.probability[0] = max(best.probability[0], 0)
	return best, nil
}

// at returns the entries of v at the items of s.
func at(v []float64, s vitrine.Assortment) []float64 {
	list := make([]float64, len(s))
	for k, i := range s {
		list[k] = v[i]
	}
	return list
}
