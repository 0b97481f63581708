package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"vitrine"
	"vitrine/assortment"
	"vitrine/service/api"
	"vitrine/service/setup"
)

// alternatives compares the set shown with other sets, by the utilities u and the position effects.
type alternatives struct {
	request       *Request
	config        *setup.Config
	index         map[string]int // of the candidates' ids
	u, effects, r []float64
}

// best returns the best set under the rules of a request and a configuration. ok is false if no set satisfies them, or if
// the request's searches have taken too many steps.
func (v *alternatives) best(q *Request, c *setup.Config) (s vitrine.Assortment, revenue float64, ok bool) {
	family, err := q.family(c, v.index)
	if err != nil {
		return nil, 0, false
	}
	return v.bestOf(family, q)
}

// bestOf is best for the family of a request.
func (v *alternatives) bestOf(family vitrine.Constraint, q *Request) (s vitrine.Assortment, revenue float64, ok bool) {
	if len(v.effects) > 0 {
		s, revenue = assortment.MaximizeOrdered(nil, family, v.u, v.effects, v.r)
		slices.Sort(s)
	} else {
		s, revenue = assortment.Maximize(nil, family, v.u, v.r)
	}
	if !family.Contains(s) || q.work.Exceeded() {
		return nil, 0, false
	}
	return s, revenue, true
}

// next returns the best set other than the one shown, without position effects. If the best set of all is shown, the next
// best one drops one of its items or adds one:
//
//	R(S∪T) is a mean of R(S) and the revenues r_j of j in T, weighted by exp(u_j): a single j loses the least
func (v *alternatives) next(shown vitrine.Assortment) (s vitrine.Assortment, revenue float64, ok bool) {
	family, err := v.request.family(v.config, v.index)
	if err != nil {
		return nil, 0, false
	}
	if s, revenue, ok = v.bestOf(family, v.request); !ok || !slices.Equal(s, shown) {
		return s, revenue, ok
	}
	ok = false
	note := func(other vitrine.Assortment, earns float64) { // unless a bound was lowered for want of an item
		if (!ok || earns > revenue) && family.Contains(other) {
			s, revenue, ok = other, earns, true
		}
	}
	for _, i := range shown {
		q := v.request.copy()
		q.Exclude = append(slices.Clone(q.Exclude), q.id(i))
		if other, earns, ok := v.best(q, v.config); ok {
			note(other, earns)
		}
	}
	for j := range v.u {
		if at, found := slices.BinarySearch(shown, j); !found {
			more := slices.Insert(slices.Clone(shown), at, j)
			note(more, vitrine.ExpectedRevenue(more, v.u, v.r))
		}
	}
	return s, revenue, ok
}

// maxRules bounds how many rules get a cost.
const maxRules = 32

// rules returns the cost of each rule: how much more the best set would earn without it.
func (v *alternatives) rules() []api.RuleCost {
	_, with, ok := v.best(v.request, v.config)
	if !ok {
		return nil
	}
	var list []api.RuleCost
	without := func(rule api.RuleCost, change func(q *Request, c *setup.Config)) {
		if len(list) == maxRules {
			return
		}
		q, c := v.request.copy(), *v.config
		change(q, &c)
		if _, earns, ok := v.best(q, &c); ok {
			rule.Cost = max(0, earns-with) // rounding may make it negative
			list = append(list, rule)
		}
	}
	q := v.request
	if q.MaxSize != 0 && q.MaxSize < v.config.MaxSize {
		without(api.RuleCost{Rule: "max_size", On: strconv.Itoa(q.MaxSize)},
			func(q *Request, _ *setup.Config) { q.MaxSize = 0 })
	}
	if least := max(q.MinSize, v.config.MinSize); least > 0 {
		without(api.RuleCost{Rule: "min_size", On: strconv.Itoa(least)},
			func(q *Request, c *setup.Config) { q.MinSize, c.MinSize = 0, 0 })
	}
	// each drops the ids of a rule one by one. An id that is no candidate costs nothing.
	each := func(rule api.RuleCost, ids []string, of func(q *Request, c *setup.Config) *[]string) {
		for k, id := range ids {
			if _, ok := v.index[id]; ok {
				rule.Item = id
				without(rule, func(q *Request, c *setup.Config) {
					*of(q, c) = slices.Delete(slices.Clone(ids), k, k+1)
				})
			}
		}
	}
	each(api.RuleCost{Rule: "include"}, q.Include, func(q *Request, _ *setup.Config) *[]string { return &q.Include })
	each(api.RuleCost{Rule: "exclude"}, q.Exclude, func(q *Request, _ *setup.Config) *[]string { return &q.Exclude })
	if q.Slots == nil {
		each(api.RuleCost{Rule: "pinned"}, v.config.Include, func(_ *Request, c *setup.Config) *[]string {
			return &c.Include
		})
	}
	each(api.RuleCost{Rule: "excluded"}, v.config.Exclude, func(_ *Request, c *setup.Config) *[]string {
		return &c.Exclude
	})
	for k, l := range q.Limits {
		on := cmp.Or(l.By(), fmt.Sprint(k))
		without(api.RuleCost{Rule: "limit", On: on}, func(q *Request, _ *setup.Config) {
			q.Limits = slices.Delete(slices.Clone(q.Limits), k, k+1)
		})
	}
	for k, l := range v.config.Limits {
		without(api.RuleCost{Rule: "limit", On: l.By()}, func(_ *Request, c *setup.Config) {
			c.Limits = slices.Delete(slices.Clone(c.Limits), k, k+1)
		})
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	if q.Capacity != nil {
		without(api.RuleCost{Rule: "capacity", On: number(*q.Capacity)},
			func(q *Request, _ *setup.Config) { q.Capacity = nil })
	}
	if v.config.Capacity != nil {
		without(api.RuleCost{Rule: "capacity", On: number(*v.config.Capacity)},
			func(_ *Request, c *setup.Config) { c.Capacity = nil })
	}
	for k, s := range q.Slots {
		each(api.RuleCost{Rule: "slot", On: fmt.Sprint(k + 1)}, s.Exclude, func(q *Request, _ *setup.Config) *[]string {
			q.Slots = slices.Clone(q.Slots)
			return &q.Slots[k].Exclude
		})
	}
	return list
}

// copy returns a request with rules that may be replaced.
func (r *Request) copy() *Request {
	c := *r
	c.Request = new(*r.Request)
	return &c
}
