// Package abtest has the experiments of placements: it divides units among the variants, and compares what these earn.
//
//	check.go       what an experiment compares
//	allocate.go    units → buckets → variants
//	routes.go      which variant a unit is shown
//	results.go     what the variants earn, and the differences, as confidence sequences
//	ratio.go       whether the units are divided as they should be
//	experiment.go  the state of an experiment: cohorts of decisions → results
//	report.go      what it has found
//	verdict.go     the stop rule
//	codec.go       the state in a snapshot
package abtest

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Buckets is the number of parts into which the units of an experiment are hashed. Shares are multiples of 1/Buckets.
const Buckets = 10_000

// MaxVariants is the largest number of variants of an experiment.
const MaxVariants = 20

// Unit is the hash of a unit: the first 64 bits of SHA-256 of the placement's name, a zero byte and the unit.
func Unit(placement, unit string) uint64 {
	b := make([]byte, 0, 128)
	b = append(append(append(b, placement...), 0), unit...)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// Bucket returns the bucket of a unit in an experiment with a number: the first 64 bits of SHA-256 of the number
// and the unit, modulo Buckets. So the buckets of two experiments are independent.
//
// The number 0 is that of the holdout, which all experiments of a placement share: the units whose bucket is
// below Buckets times its share.
func Bucket(unit, experiment uint64) int {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], experiment)
	binary.LittleEndian.PutUint64(b[8:], unit)
	sum := sha256.Sum256(b[:])
	return int(binary.LittleEndian.Uint64(sum[:]) % Buckets)
}

// Count returns the number of buckets of a share; ok is false if it is no multiple of 1/Buckets in [0, 1].
func Count(share float64) (n int, ok bool) {
	n = int(math.Round(min(max(share, -1), 2) * Buckets))
	return n, n >= 0 && n <= Buckets && math.Abs(share*Buckets-float64(n)) < 1e-6
}

// Allocate gives each variant its count of buckets; the counts sum to Buckets. before is the present table of the
// variant of each bucket, nil if there is none. Each variant with too many buckets gives up the last of them, and
// those with too few take these in order. So the least possible number of buckets moves, Σ max(0, has − count),
// and a bucket moves only if the count of its variant shrinks.
func Allocate(before []uint8, counts []int) (table []uint8, moved int) {
	const free = math.MaxUint8
	table = make([]uint8, Buckets)
	lacks := make([]int, len(counts))
	copy(lacks, counts)
	for b := range table {
		table[b] = free
		if before != nil {
			if v := before[b]; lacks[v] > 0 {
				table[b] = v
				lacks[v]--
			}
		}
	}
	next := 0
	for b := range table {
		if table[b] != free {
			continue
		}
		for lacks[next] == 0 {
			next++
		}
		table[b] = uint8(next)
		lacks[next]--
		moved++
	}
	if before == nil {
		moved = 0
	}
	return table, moved
}
