package assortment

import (
	"fmt"
	"math"
	"slices"
)

// Rules bound the number of items shown, in all and from groups. [NewLaminar] makes a
// family of them.
type Rules struct {
	Items    int                // N
	Min, Max int                // Min ≤ |S| ≤ Max
	Groups   []Group            // any two are disjoint, or one contains the other
	Include  []int              // pinned items, which every set has
	Exclude  []int              // items that no set has
	Name     func(i int) string // what errors call item i; nil is "item 3"
}

// Group bounds the number of items shown from a group,
//
//	Min ≤ |S ∩ Items| ≤ Max
type Group struct {
	Name     string // what errors call it, such as "group shoes"
	Items    []int
	Min, Max int
}

// NoLimit as a Max means that there is no upper bound.
const NoLimit = math.MaxInt

// clone returns rules that share no slice with r.
func (r Rules) clone() Rules {
	r.Include, r.Exclude, r.Groups = slices.Clone(r.Include), slices.Clone(r.Exclude), slices.Clone(r.Groups)
	for k := range r.Groups {
		r.Groups[k].Items = slices.Clone(r.Groups[k].Items)
	}
	return r
}

func (r Rules) name(i int) string {
	if r.Name == nil {
		return fmt.Sprintf("item %d", i)
	}
	return r.Name(i)
}

// plural returns "1 item" or "2 items".
func plural(n int) string {
	if n == 1 {
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}
