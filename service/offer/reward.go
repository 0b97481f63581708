package offer

import (
	"crypto/sha256"
	"encoding/binary"

	"vitrine/internal/stream"
)

// DrawReward returns the chosen place, or 0, for the rewards of the places shown in a decision. Earlier calls rewarded
// before items with the sum reported; each of them used a draw.
func DrawReward(seed uint64, decision string, before int, value []float64, reported float64) int32 {
	hash := sha256.Sum256([]byte(decision))
	rng := new(stream.Stream).Numbered(seed, binary.LittleEndian.Uint64(hash[:]), stream.Rewards)
	for range before {
		rng.Float64()
	}
	sum := 0.0
	for _, v := range value {
		sum += v
	}
	left := rng.Float64() * max(1-reported, sum)
	last := int32(0)
	for at, v := range value {
		if v == 0 {
			continue
		}
		last = int32(at + 1)
		if left -= v; left < 0 {
			return last
		}
	}
	if sum >= 1-reported { // without rounding it would have been one of them
		return last
	}
	return 0
}
