// Package assortmenttest tests the contract of feasible families and of the optimiser over them. Its reference is
// exhaustive search, which calls only the family's Contains.
package assortmenttest

import (
	"slices"
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
	run(t, "MaxGain is exact", items, c, checkMaxGain)
	run(t, "arguments are not changed", items, c, checkArguments)
	run(t, "the destination is used", items, c, checkDestination)
	run(t, "calls are concurrent", items, c, checkConcurrency)
	t.Run("Maximize", func(t *testing.T) { TestMaximize(t, c, items...) })
	if s, ok := assortment.SamplerOf(c); ok {
		run(t, "Sample is uniform", items, s, checkSample)
	}
}

// TestMaximize tests [assortment.Maximize] over a family on thousands of instances, under the conditions of
// [TestConstraint].
func TestMaximize(t *testing.T, c vitrine.Constraint, items ...int) {
	items = orAny(items)
	run(t, "is optimal", items, c, checkMaximize)
	run(t, "allocates just the answer", []int{slices.Max(items)}, c, checkAllocations)
}

func orAny(items []int) []int {
	if len(items) == 0 {
		return []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 40}
	}
	return items
}

func run[C vitrine.Constraint](t *testing.T, name string, items []int, c C, check func(c C, n int) error) {
	t.Run(name, func(t *testing.T) {
		expect.Error(t, each(items, c, check), nil)
	})
}

// each returns the first error of a check among the numbers of items.
func each[C vitrine.Constraint](items []int, c C, check func(c C, n int) error) error {
	for _, n := range items {
		if err := check(c, n); err != nil {
			return err
		}
	}
	return nil
}
