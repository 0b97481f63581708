package feature

import (
	"math"

	"vitrine/internal/text"
)

// words stores the hashed words of a text in to, which must be zero.
func (c *column) words(to []float64, s string) {
	for w := range text.Tokens(s) {
		h := c.hash(w)
		sign := 1.0
		if h>>63 == 1 {
			sign = -1
		}
		to[h%uint64(len(to))] += sign
	}
	sum := 0.0
	for _, v := range to {
		sum += v * v
	}
	if sum == 0 {
		return
	}
	norm := math.Sqrt(sum)
	for b := range to {
		to[b] /= norm
	}
}

// hash is the function h in [Schema]'s documentation.
func (c *column) hash(value string) uint64 {
	return splitMix(fnv1a(c.prefix(), value))
}

// prefix is the hash of the bytes before a value.
func (c *column) prefix() uint64 { return fnv1a(fnv1a(14695981039346656037, c.Name), "\x00") }

// splitMix is the function mix in [Schema]'s documentation.
func splitMix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func fnv1a(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
