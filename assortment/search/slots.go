package search

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"vitrine/assortment"
	"vitrine/internal/panics"
)

// MinSlots is the number of items from which on [Slots] pays.
const MinSlots = minItems

// Blocks calls block for blocks of n items, which together are all items. If they are many, several goroutines do. Each
// calls begin with its number, and in the end done.
func Blocks(n int, begin func(worker int) (block func(from, to int), done func())) {
	blocks(n, numWorkers(n), begin)
}

// blocks is Blocks with a number of goroutines.
func blocks(n, workers int, begin func(worker int) (block func(from, to int), done func())) {
	var next atomic.Int64
	parallel(workers, func(worker int) {
		block, done := begin(worker)
		defer done()
		for {
			end := int(next.Add(claimItems))
			for from := end - claimItems; from < min(end, n); from += BlockRows {
				block(from, min(from+BlockRows, n))
			}
			if end >= n {
				return
			}
		}
	})
}

// Each calls do for each of some tasks among n items. If the items are many, several goroutines do.
func Each(tasks, n int, do func(task int)) {
	var next atomic.Int64
	parallel(max(1, min(tasks, numWorkers(n))), func(int) {
		for task := int(next.Add(1)) - 1; task < tasks; task = int(next.Add(1)) - 1 {
			do(task)
		}
	})
}

// parallel calls work for each worker, on a goroutine each. If a worker panics, it panics after all have ended.
func parallel(workers int, work func(worker int)) {
	var ended sync.WaitGroup
	var caught panics.Catcher
	run := func(worker int) {
		defer ended.Done()
		defer caught.Catch()
		work(worker)
	}
	ended.Add(workers)
	for w := 1; w < workers; w++ {
		go run(w)
	}
	run(0)
	ended.Wait()
	caught.Repanic()
}

// numWorkers returns the number of goroutines for n items.
func numWorkers(n int) int { return max(1, min(runtime.GOMAXPROCS(0), n/(2*claimItems))) }

// Best is the set with the largest values of a slot, in no order, and these values.
type Best struct {
	Items  []int
	Values []float64
}

// Slots finds for each of some slots the set that the rules allow, among n items, with the largest values above those of least,
// nil for −∞, of equal ones the lower items. It takes little memory, however large n is.
//
// Each goroutine calls begin, and in the end done. Between, values stores the values of the items from ≤ i < to, one slot
// after another. The result does not depend on the number of goroutines if values does not.
func Slots(n, slots int, rules assortment.Rules, least []float64, begin func() (values func(z []float64, from, to int), done func())) []Best {
	rankings := make([][]assortment.Ranking, numWorkers(n)) // the number of processors may change
	blocks(n, len(rankings), func(worker int) (func(from, to int), func()) {
		best, z := make([]assortment.Ranking, slots), make([]float64, slots*BlockRows)
		for s := range best {
			minimum := math.Inf(-1)
			if least != nil {
				minimum = least[s]
			}
			best[s].Reset(rules, minimum)
		}
		rankings[worker] = best
		values, done := begin()
		return func(from, to int) {
			size := to - from
			values(z[:slots*size], from, to)
			for s := range best {
				best[s].AddAll(from, z[s*size:(s+1)*size])
			}
		}, done
	})
	all := make([]Best, slots)
	for s := range all {
		r := &rankings[0][s]
		for _, other := range rankings[1:] {
			for j, i := range other[s].Items {
				r.Add(i, other[s].Values[j])
			}
		}
		all[s] = Best{r.Items, r.Values}
	}
	return all
}
