// Package abtest runs experiments in a placement: it divides units among the variants, and compares the variants'
// earnings.
//
//	plan.go        how long an experiment takes to show a gain
//	check.go       validates an experiment
//	allocate.go    units → buckets → variants
//	routes.go      the variant for a unit
//	results.go     earnings of the variants, and their differences, as confidence sequences
//	metrics.go     what else the variants change
//	segments.go    the earnings by segment of the shoppers
//	ratio.go       whether the units are divided as they should be
//	signs.go       whether the variants' sales are reported as they should be
//	experiment.go  the state of an experiment: cohorts of decisions → results
//	report.go      the findings
//	verdict.go     the stop rule
//	codec.go       the state in a snapshot
package abtest

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Buckets is the number of hash buckets for an experiment's units. Shares are multiples of 1/Buckets.
const Buckets = 10_000

// MaxVariants is the maximum number of variants in an experiment.
const MaxVariants = 20

// Unit returns a unit's hash: the first 64 bits of SHA-256 over the placement's name, a zero byte and the unit.
func Unit(placement, unit string) uint64 {
	b := make([]byte, 0, 128)
	b = append(append(append(b, placement...), 0), unit...)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}

// Bucket returns a unit's bucket in the experiment with the given number: the first 64 bits of SHA-256 over the number
// and the unit, modulo Buckets. The buckets in two experiments are therefore independent.
//
// Number 0 is the placement's hold-out: its units stay the same whichever experiment runs.
func Bucket(unit, experiment uint64) int {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], experiment)
	binary.LittleEndian.PutUint64(b[8:], unit)
	sum := sha256.Sum256(b[:])
	return int(binary.LittleEndian.Uint64(sum[:]) % Buckets)
}

// Count returns the number of buckets for a share; ok is false if the share is not a multiple of 1/Buckets in [0, 1].
func Count(share float64) (n int, ok bool) {
	n = int(math.Round(min(max(share, -1), 2) * Buckets))
	return n, n >= 0 && n <= Buckets && math.Abs(share*Buckets-float64(n)) < 1e-6
}

// Allocate gives each variant its count of buckets; the counts sum to Buckets. before is the current table from buckets
// to variants, or nil. Each variant with too many buckets gives up its last ones, and the variants with too few take
// these in order. This moves the fewest buckets possible, Σ max(0, current − count), and a bucket moves only if its
// variant's count shrinks.
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
