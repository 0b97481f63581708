package page

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"vitrine"
	"vitrine/assortment"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/setup"
)

// Capacity. The spaces of the items shown sum to at most the placement's capacity, and at most the request's.
//
// An exact knapsack program, which counts whole units, finds the best set. A unit is the greatest common divisor of the
// spaces of the candidates that fit and are not excluded, so no space is rounded.

// maxTable bounds the program's table, in bits: a call takes some 0.1 s, and a decision under auto makes several.
const maxTable = 1 << 26

// capacity returns the smaller of the request's own capacity and the placement's, or nil without either.
func (r *Request) capacity(c *setup.Config) *float64 {
	if r.Capacity == nil || c.Capacity != nil && *c.Capacity < *r.Capacity {
		return c.Capacity
	}
	return r.Capacity
}

// within returns the sets that obey rules and fit. free says that the rules bound only the size, to at most size.
func (r *Request) within(rules assortment.Rules, capacity float64, size int, free bool) (vitrine.Constraint, error) {
	s := r.spaces()
	r.leaveOut(&s, rules.Exclude)
	most, _ := catalogue.SpaceUnits(capacity)
	if err := r.checkSpaces(&s, capacity); err != nil {
		return nil, err
	}
	if err := r.checkInclude(&s, most, rules.Include); err != nil {
		return nil, err
	}
	unit, largest := int64(0), int64(0)
	for _, units := range s.units {
		if units >= 0 && units <= most {
			unit, largest = gcd(unit, units), max(largest, units)
		}
	}
	unit = max(unit, 1)
	room := min(most, largest*int64(size)) / unit
	tooFine := func() error {
		return api.Fieldf("/capacity", "%v: the spaces of the candidates are multiples of %v, and the exact "+
			"search cannot count that many: round spaces to larger steps", capacity, catalogue.SpaceOf(unit))
	}
	if room >= math.MaxInt32 {
		return nil, tooFine()
	}
	weight := make([]int, len(s.units))
	for k, units := range s.units {
		if weight[k] = int(room + 1); units >= 0 && units <= most { // a larger space is no number of units
			weight[k] = int(min(units/unit, room+1))
		}
	}
	rules.Weights, rules.MaxTable = &assortment.Weights{Kind: s.kind, Of: weight, Count: s.count, Capacity: int(room)},
		maxTable
	family, err := assortment.NewQuota(rules)
	var crossing *assortment.CrossingError
	switch {
	case errors.As(err, &crossing):
		return nil, api.Fieldf("/capacity", "%v: cannot be combined with limits whose groups cross, as these do: "+
			"drop the capacity or one of these limits", capacity)
	case errors.Is(err, assortment.ErrTable):
		return nil, tooFine()
	case err != nil:
		return nil, api.Fieldf("/include", "%v", err)
	}
	if _, ok := assortment.Ranked(family); ok && free { // the capacity excludes no set
		return assortment.AtMost(rules.Max), nil
	}
	return family, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// spaces holds the candidates' spaces.
type spaces struct {
	kind  []int32   // the number of each candidate's space
	of    []float64 // by number
	count []int     // of candidates, by number
	units []int64   // the spaces in millionths; −1 for a space without candidates
}

// spaces returns the candidates' spaces. The request's own items are numbered after the catalogue's.
func (r *Request) spaces() spaces {
	s := spaces{}
	if r.stock.items != nil {
		stored := r.stock.groups[catalogue.GroupsBy{Space: true}]
		if s.of, s.count = stored.Spaces(); r.stock.inPlace() {
			s.kind = stored.Of
			return s
		}
		s.kind = make([]int32, r.len())
		for i := len(r.Items); i < len(s.kind); i++ {
			s.kind[i] = stored.Of[r.stock.slot(i)]
		}
		s.of = slices.Clone(s.of)
	} else {
		s.kind = make([]int32, r.len())
	}
	number := map[float64]int32{}
	for i := range r.Items {
		space := r.spaceOf(i)
		k, ok := number[space]
		if !ok {
			k = int32(len(s.of))
			number[space], s.of = k, append(s.of, space)
		}
		s.kind[i] = k
	}
	s.count = make([]int, len(s.of))
	for _, k := range s.kind {
		s.count[k]++
	}
	return s
}

// leaveOut drops the excluded candidates, which need no units.
func (r *Request) leaveOut(s *spaces, exclude []int) {
	if len(exclude) > 0 {
		s.count = slices.Clone(s.count)
		for _, i := range slices.Compact(slices.Sorted(slices.Values(exclude))) {
			s.count[s.kind[i]]--
		}
	}
}

func (r *Request) spaceOf(i int) float64 {
	switch {
	case i >= len(r.Items):
		return r.stock.items.Space(r.stock.slot(i))
	case r.Items[i].Space == nil:
		return catalogue.DefaultSpace
	}
	return *r.Items[i].Space
}

// spacesOf returns the spaces of the first n candidates if there is a capacity.
func (r *Request) spacesOf(c *setup.Config, n int) []float64 {
	if r.capacity(c) == nil || n == 0 {
		return nil
	}
	of := make([]float64, n)
	for i := range of {
		of[i] = r.spaceOf(i)
	}
	return of
}

// checkSpaces finds the units of the candidates' spaces. A space that may fit must be a whole number of units.
func (r *Request) checkSpaces(s *spaces, capacity float64) error {
	s.units = slices.Repeat([]int64{-1}, len(s.of))
	for k, n := range s.count {
		if n == 0 {
			continue
		}
		units, ok := catalogue.SpaceUnits(s.of[k])
		if !ok && s.of[k] <= capacity {
			return api.Fieldf("/capacity", "item %q has the space %v: with a capacity it must have at most 6 decimals",
				r.id(slices.Index(s.kind, int32(k))), s.of[k])
		}
		if s.units[k] = units; !ok {
			s.units[k] = math.MaxInt64
		}
	}
	return nil
}

// checkInclude returns an error if items that must be shown do not fit.
func (r *Request) checkInclude(s *spaces, most int64, include []int) error {
	sum, list := int64(0), []string(nil)
	for _, i := range slices.Compact(slices.Sorted(slices.Values(include))) {
		units := min(s.units[s.kind[i]], math.MaxInt64/2)
		sum = min(sum+units, math.MaxInt64/2)
		list = append(list, fmt.Sprintf("item %q takes %v", r.id(i), s.of[s.kind[i]]))
	}
	if sum <= most {
		return nil
	}
	const few = 5
	if len(list) > few {
		list = append(list[:few], fmt.Sprintf("and %d more", len(list)-few))
	}
	return api.Fieldf("/include", "these items do not fit into the capacity of %v: %s", catalogue.SpaceOf(most),
		strings.Join(list, ", "))
}
