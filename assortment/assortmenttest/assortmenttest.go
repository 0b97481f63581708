// Package assortmenttest tests the contract of feasible families and of the optimiser over them. Its reference is
// exhaustive search, which calls only the family's Contains.
package assortmenttest

import (
	"testing"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
)

// maxEnumerated is the largest number of items for which all 2ⁿ sets are enumerated. With more items, sets are compared
// with their neighbours.
const maxEnumerated = 10

// TestConstraint tests a family, its optimum under [assortment.Maximize], and, if it is an [assortment.Sampler], its
// draws. items lists the numbers N of items for which the family is defined. If it is empty, the family is defined for
// any number.
func TestConstraint(t *testing.T, c vitrine.Constraint, items ...int) {
	items = orAny(items)
	run(t, "MaxGain is exact", func() error { return checkMaxGain(c, items) })
	run(t, "arguments are not changed", func() error { return checkArguments(c, items) })
	run(t, "the destination is used", func() error { return checkDestination(c, items) })
	run(t, "calls are concurrent", func() error { return checkConcurrency(c, items) })
	if assortment.Stable(c) {
		run(t, "answers are stable", func() error { return checkStability(c, items) })
		run(t, "bounds suffice", func() error { return checkBounds(c, items) })
	}
	t.Run("Maximize", func(t *testing.T) { TestMaximize(t, c, items...) })
	if s, ok := assortment.SamplerOf(c); ok {
		run(t, "Sample is uniform", func() error { return checkSample(s, items) })
	}
}

// TestMaximize tests [assortment.Maximize] over a family on thousands of instances, under the conditions of
// [TestConstraint].
func TestMaximize(t *testing.T, c vitrine.Constraint, items ...int) {
	items = orAny(items)
	run(t, "is optimal", func() error { return checkMaximize(c, items) })
	run(t, "allocates just the answer", func() error { return checkAllocations(c, items) })
}

func orAny(items []int) []int {
	if len(items) == 0 {
		return []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 40}
	}
	return items
}

func run(t *testing.T, name string, check func() error) {
	t.Run(name, func(t *testing.T) {
		expect.Error(t, check(), nil)
	})
}
