package assortment

import (
	"math/rand/v2"
	"slices"

	"vitrine"
)

// subset draws a set of l of n items uniformly.
func subset(dst vitrine.Assortment, l, n int, rng *rand.Rand) vitrine.Assortment {
	const crossover = 64 // value of l²/n above which moving items costs more than one pass over all items
	dst = slices.Grow(dst[:0], l)
	if l == 0 || l <= crossover*n/l {
		return floyd(dst, l, n, rng)
	}
	return selection(dst, l, n, rng)
}

// floyd is Algorithm F2 of Bentley and Floyd (1987) on a sorted set.
func floyd(dst vitrine.Assortment, l, n int, rng *rand.Rand) vitrine.Assortment {
	for j := n - l; j < n; j++ {
		i := rng.IntN(j + 1)
		at, found := slices.BinarySearch(dst, i)
		if found { // j itself is new, and the largest so far
			dst = append(dst, j)
		} else {
			dst = slices.Insert(dst, at, i)
		}
	}
	return dst
}

// selection is Algorithm S of Knuth (The Art of Computer Programming, Section 3.4.2), a single pass over the items.
func selection(dst vitrine.Assortment, l, n int, rng *rand.Rand) vitrine.Assortment {
	for i := 0; l > 0; i++ {
		if rng.IntN(n-i) < l {
			dst = append(dst, i)
			l--
		}
	}
	return dst
}
