package imdb

import (
	"cmp"
	"crypto/sha256"
	"slices"
)

// HeldOut reports for each review whether it is held out: a fifth of the reviews, rounded, namely those with the
// smallest sha256 of their keys. Programs in any language make the same choice.
func HeldOut(reviews []Review) []bool {
	type hashed struct {
		sum   [sha256.Size]byte
		index int
	}
	order := make([]hashed, len(reviews))
	for i, r := range reviews {
		order[i] = hashed{sha256.Sum256([]byte(r.Key())), i}
	}
	slices.SortFunc(order, func(a, b hashed) int {
		return cmp.Or(slices.Compare(a.sum[:], b.sum[:]), cmp.Compare(a.index, b.index))
	})
	held := make([]bool, len(reviews))
	for _, h := range order[:(len(reviews)+2)/5] {
		held[h.index] = true
	}
	return held
}
