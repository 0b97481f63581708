package search

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"vitrine/assortment"
	"vitrine/internal/panics"
)

// MinSlots is the number of items above which [Slots] pays.
const MinSlots = minItems

// Blocks calls block for blocks that together cover all n items. If there are many items, it uses several goroutines.
// Each goroutine calls begin with its number first, and done at the end.
func Blocks(n int, begin func(worker int) (block func(from, to int), done func())) {
	blocks(n, numWorkers(n), begin)
}

// blocks is Blocks with a given number of goroutines.
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

// Each calls do for every task. If n, the number of items, is large, it uses several goroutines.
func Each(tasks, n int, do func(task int)) {
	var next atomic.Int64
	parallel(max(1, min(tasks, numWorkers(n))), func(int) {
		for task := int(next.Add(1)) - 1; task < tasks; task = int(next.Add(1)) - 1 {
			do(task)
		}
	})
}

// parallel calls work once per worker, each on its own goroutine. If a worker panics, parallel panics after all have
// ended.
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

// Best is the set with the largest values in a slot, in no particular order, and its values.
type Best struct {
	Items  []int
	Values []float64
}

// Slots finds, for each slot, the set of items with the largest values that the rules allow. Among equal values it
// prefers lower items. An item's value must exceed the slot's entry in least; a nil least means −∞. Memory does not
// grow with n.
//
// Each goroutine calls begin first and done at the end. In between, values stores the values of the items
// from ≤ i < to, one slot after another. If values is deterministic, the result does not depend on the number of
// goroutines.
func Slots(
	n, slots int, rules assortment.Rules, least []float64,
	begin func() (values func(z []float64, from, to int), done func()),
) []Best {
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
