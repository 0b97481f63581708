package assortmenttest

import (
	"fmt"
	"math"
	"slices"

	"vitrine"
	"vitrine/assortment"
)

// checkMember requires an assortment of n items that belongs to the family.
func checkMember(c vitrine.Constraint, s vitrine.Assortment, n int) error {
	if err := s.Check(n); err != nil {
		return err
	}
	if !c.Contains(s) {
		return fmt.Errorf("it is not in the family")
	}
	return nil
}

// checkMaxGain requires the oracle to find the largest sum without unnecessary items of gain 0 or less.
func checkMaxGain(c vitrine.Constraint, n int) error {
	compare := rivals(c, n)
	return gains(n, 300, func(gain []float64) error {
		sum := func(s vitrine.Assortment) (v, size float64) {
			for _, i := range s {
				v += gain[i]
				size += math.Abs(gain[i])
			}
			return v, size
		}
		got := c.MaxGain(nil, gain)
		if err := checkMember(c, got, n); err != nil {
			return fmt.Errorf("gains %v: answer %v: %w", gain, got, err)
		}
		mine, size := sum(got)
		for _, s := range compare(got) {
			// The rounding error of a sum is relative to the sizes of its terms.
			if v, theirs := sum(s); v > mine+1e-14*max(size, theirs) {
				return fmt.Errorf("gains %v: %v gains %v, but %v gains %v", gain, got, mine, s, v)
			}
		}
		for at, i := range got {
			if gain[i] <= 0 && c.Contains(slices.Delete(slices.Clone(got), at, at+1)) {
				return fmt.Errorf("gains %v: %v has item %d without need", gain, got, i)
			}
		}
		return nil
	})
}

// checkMaximize requires the largest expected revenue up to a relative error of 1e-13, some hundred roundings, and a
// value equal bit for bit to vitrine.ExpectedRevenue. For families that require items, it avoids utilities further
// apart than assortment.Maximize supports.
func checkMaximize(c vitrine.Constraint, n int) (err error) {
	trials := 20
	if n > maxEnumerated {
		trials = 2
	}
	compare := rivals(c, n)
	demanding := !c.Contains(nil)
	Instances(n, trials, func(name string, u, r []float64) {
		if err != nil || demanding && spread(u) > 400 {
			return
		}
		if err = checkOptimum(c, u, r, compare); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	})
	return err
}

func checkOptimum(c vitrine.Constraint, u, r []float64, compare func(vitrine.Assortment) []vitrine.Assortment) error {
	keptU, keptR := slices.Clone(u), slices.Clone(r)
	s, value := assortment.Maximize(nil, c, u, r)
	if err := checkMember(c, s, len(u)); err != nil {
		return fmt.Errorf("answer %v: %w", s, err)
	}
	if !slices.Equal(u, keptU) || !slices.Equal(r, keptR) {
		return fmt.Errorf("the utilities or the revenues were changed")
	}
	if want := vitrine.ExpectedRevenue(s, u, r); value != want {
		return fmt.Errorf("the value of %v is %v, ExpectedRevenue says %v", s, value, want)
	}
	if best := Best(compare(s), u, r); value < best*(1-1e-13) {
		return fmt.Errorf("%v earns %v, the best set %v", s, value, best)
	}
	return nil
}

// spread returns the largest difference between two finite utilities.
func spread(u []float64) float64 {
	minimum, maximum := math.Inf(1), math.Inf(-1)
	for _, v := range u {
		if !math.IsInf(v, 0) {
			minimum, maximum = min(minimum, v), max(maximum, v)
		}
	}
	return maximum - minimum
}
