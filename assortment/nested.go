package assortment

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"vitrine"
)

// Nests groups items with correlated unobserved utilities, as in the nested logit model. An item outside every nest
// forms a nest of its own, and so does the outside option.
type Nests struct {
	Of            []int     // N: an item's nest, or negative
	Dissimilarity []float64 // by nest: λ in (0, 1]
}

// Revenue returns the expected revenue of S under the nested logit model with utilities u and revenues r (nil means 1
// for all),
//
//	R(S) = Σ_k P_k R_k,  P_k = exp(A_k) / (1 + Σ_l exp(A_l)),  A_k = λ_k log Σ_{i∈S∩k} exp(u_i/λ_k)
//
// where R_k is the mean revenue of nest k's items in S, weighted by exp(u_i/λ_k).
func (n Nests) Revenue(s vitrine.Assortment, u, r []float64) float64 {
	members := make(map[int][]int)
	for _, i := range s {
		members[n.group(i)] = append(members[n.group(i)], i)
	}
	var parts []part
	for _, i := range s { // in the order of the items, so that the sum is deterministic
		if g := n.group(i); members[g] != nil {
			parts = append(parts, n.part(g, members[g], u, r))
			members[g] = nil
		}
	}
	return total(parts)
}

// group returns the number of an item's nest, or a unique number for an item outside every nest.
func (n Nests) group(i int) int {
	if n.Of[i] < 0 {
		return len(n.Dissimilarity) + i
	}
	return n.Of[i]
}

// lambda returns the dissimilarity of a group.
func (n Nests) lambda(group int) float64 {
	if group >= len(n.Dissimilarity) {
		return 1
	}
	return n.Dissimilarity[group]
}

// part summarises the shown items of a nest.
type part struct {
	utility float64 // A
	revenue float64 // the items' mean revenue
}

// part returns the summary of the given items of a group.
func (n Nests) part(group int, items []int, u, r []float64) part {
	lambda, top := n.lambda(group), math.Inf(-1)
	for _, i := range items {
		top = max(top, u[i]/lambda)
	}
	if math.IsInf(top, -1) {
		return part{top, 0}
	}
	sum, earned := 0.0, 0.0
	for _, i := range items {
		v := math.Exp(u[i]/lambda - top)
		sum += v
		earned += float64(v * vitrine.RevenueOf(r, i))
	}
	return part{lambda * (top + math.Log(sum)), earned / sum}
}

// total returns the expected revenue of the parts together.
func total(parts []part) float64 {
	top := 0.0
	for _, p := range parts {
		top = max(top, p.utility)
	}
	sum, earned := math.Exp(-top), 0.0
	for _, p := range parts {
		v := math.Exp(p.utility - top)
		sum += v
		earned += float64(v * p.revenue)
	}
	return earned / sum
}

// MaximizeNested returns the assortment S with the largest expected revenue under the nested logit model, among all
// sets of items, and its revenue (see [Nests.Revenue]). r ≥ 0; nil means 1 for all.
//
// R(S) > z holds exactly if Σ_k exp(A_k) (R_k − z) > z, which splits into a problem for each nest. With dissimilarities
// of at most 1, the best set of a nest consists of its items with the largest revenues, some number of them (Davis,
// Gallego and Topaloglu 2014, Theorem 4). Starting from z = 0, the best sets at z give the next z = R(S), until it does
// not grow. This takes O(N log N) and a few passes.
//
// MaximizeNested returns an error that names the first invalid item or nest. It rejects dissimilarities above 1,
// because the problem is then NP-hard, and utilities with an infinite u_i/λ_k.
func MaximizeNested(dst vitrine.Assortment, n Nests, u, r []float64) (vitrine.Assortment, float64, error) {
	if err := n.check(u, r); err != nil {
		return nil, 0, err
	}
	groups := n.prefixes(u, r)
	best := make([]int, len(groups)) // by group: number of items shown
	z := 0.0
	for {
		next := make([]int, len(groups))
		var parts []part
		for g, group := range groups {
			next[g] = group.best(z * (1 + rounding(len(u))))
			if next[g] > 0 {
				parts = append(parts, group.parts[next[g]-1])
			}
		}
		revenue := total(parts)
		if !(revenue > z) {
			break
		}
		z, best = revenue, next
	}
	dst = dst[:0]
	for g, group := range groups {
		dst = append(dst, group.items[:best[g]]...)
	}
	slices.Sort(dst)
	return dst, n.Revenue(dst, u, r), nil
}

// check returns an error that names the first invalid item or nest.
func (n Nests) check(u, r []float64) error {
	if len(n.Of) != len(u) || r != nil && len(r) != len(u) {
		return fmt.Errorf("%d items have a nest, %d a utility and %d a revenue", len(n.Of), len(u), len(r))
	}
	for k, lambda := range n.Dissimilarity {
		if !(lambda > 0 && lambda <= 1) {
			return fmt.Errorf(
				"the dissimilarity of nest %d is %v: want a number in (0, 1], beyond which the optimum is NP-hard",
				k, lambda,
			)
		}
	}
	for i, k := range n.Of {
		if k >= len(n.Dissimilarity) {
			return fmt.Errorf("item %d is in nest %d: there are %d", i, k, len(n.Dissimilarity))
		}
	}
	if err := checkItems(u, r); err != nil {
		return err
	}
	for i, v := range u {
		if lambda := n.lambda(n.group(i)); !math.IsInf(v, -1) && math.IsInf(v/lambda, 0) {
			return fmt.Errorf("item %d has utility %v: with dissimilarity %v, want at most %.3g in magnitude",
				i, v, lambda, lambda*math.MaxFloat64)
		}
	}
	return nil
}

// checkItems returns an error that names the first item with an invalid utility or revenue.
func checkItems(u, r []float64) error {
	for i := range u {
		switch {
		case math.IsNaN(u[i]) || math.IsInf(u[i], 1):
			return fmt.Errorf("item %d has utility %v", i, u[i])
		case !(vitrine.RevenueOf(r, i) >= 0) || math.IsInf(vitrine.RevenueOf(r, i), 1):
			return fmt.Errorf("item %d has revenue %v: want a finite number, at least 0", i, r[i])
		}
	}
	return nil
}

// prefix is a nest with its items in the order of their revenues, and a summary for each number of leading items.
type prefix struct {
	items []int
	parts []part // parts[j−1] summarises the first j items
}

// prefixes returns the nests that contain items.
func (n Nests) prefixes(u, r []float64) (groups []prefix) {
	order := make([]int, 0, len(u))
	for i, v := range u {
		if !math.IsInf(v, -1) {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(n.group(a), n.group(b)),
			cmp.Compare(vitrine.RevenueOf(r, b), vitrine.RevenueOf(r, a)), cmp.Compare(a, b))
	})
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && n.group(order[to]) == n.group(order[from]) {
			to++
		}
		groups = append(groups, n.grow(order[from:to], u, r))
		from = to
	}
	return groups
}

// grow computes the parts of the leading items of a nest, adding one item at a time.
func (n Nests) grow(items []int, u, r []float64) prefix {
	p := prefix{items: items}
	lambda := n.lambda(n.group(items[0]))
	inclusive, revenue := math.Inf(-1), 0.0
	for _, i := range items {
		v := u[i] / lambda
		top := max(inclusive, v)
		had, more := math.Exp(inclusive-top), math.Exp(v-top)
		revenue = (float64(revenue*had) + float64(vitrine.RevenueOf(r, i)*more)) / (had + more)
		inclusive = top + math.Log(had+more)
		p.parts = append(p.parts, part{lambda * inclusive, revenue})
	}
	return p
}

// best returns the number of leading items with the largest exp(A)(R − z). It may be 0.
func (p prefix) best(z float64) (count int) {
	largest := math.Inf(-1)
	for j, s := range p.parts {
		if s.revenue > z {
			if v := s.utility + math.Log(s.revenue-z); v > largest {
				count, largest = j+1, v
			}
		}
	}
	return count
}
