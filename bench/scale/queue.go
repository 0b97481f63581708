package main

import (
	"container/heap"
	"math/rand/v2"
	"slices"
)

// Times are in seconds. A station maps the times at which its jobs arrive, in order, to those at which they leave.

// poisson returns the arrivals of a Poisson process in [0, duration).
func poisson(rng *rand.Rand, rate, duration float64) (times []float64) {
	for t := rng.ExpFloat64() / rate; t < duration; t += rng.ExpFloat64() / rate {
		times = append(times, t)
	}
	return times
}

// cores is a station with one queue and n servers: jobs take a constant time, first come, first served (M/D/n if the
// arrivals are Poisson).
func cores(arrivals []float64, n int, service float64) (leave []float64) {
	free := make(freeTimes, n)
	leave = make([]float64, len(arrivals))
	for i, t := range arrivals {
		leave[i] = max(t, free[0]) + service
		free[0] = leave[i]
		heap.Fix(&free, 0)
	}
	return leave
}

// freeTimes is a heap of the times at which servers become free.
type freeTimes []float64

func (f freeTimes) Len() int           { return len(f) }
func (f freeTimes) Less(i, j int) bool { return f[i] < f[j] }
func (f freeTimes) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *freeTimes) Push(x any)        { *f = append(*f, x.(float64)) }
func (f *freeTimes) Pop() any          { panic("servers stay") }

// groups is the log: one append at a time, of all jobs that have come by then, at most limit of them. An append of n jobs takes
//
//	a + b n
//
// It returns how many appends there were, too.
func groups(arrivals []float64, limit int, a, b float64) (leave []float64, appends int) {
	leave = make([]float64, len(arrivals))
	free := 0.0
	for i := 0; i < len(arrivals); {
		start := max(free, arrivals[i])
		n := 1
		for i+n < len(arrivals) && n < limit && arrivals[i+n] <= start {
			n++
		}
		free = start + a + b*float64(n)
		for ; n > 0; n-- {
			leave[i] = free
			i++
		}
		appends++
	}
	return leave, appends
}

// inOrder sorts jobs by the time of their arrival at the next station, and returns their places before.
func inOrder(times []float64) (sorted []float64, place []int) {
	place = make([]int, len(times))
	for i := range place {
		place[i] = i
	}
	slices.SortStableFunc(place, func(i, j int) int {
		switch {
		case times[i] < times[j]:
			return -1
		case times[i] > times[j]:
			return 1
		}
		return 0
	})
	sorted = make([]float64, len(times))
	for k, i := range place {
		sorted[k] = times[i]
	}
	return sorted, place
}

// quantile returns the p-quantile of values, which it sorts.
func quantile(values []float64, p float64) float64 {
	slices.Sort(values)
	return values[min(int(p*float64(len(values))), len(values)-1)]
}
