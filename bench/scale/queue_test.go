package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// mean returns the mean over batches of values, and its standard error.
func mean(values []float64) (m, se float64) {
	const batches = 40
	size := len(values) / batches
	var means []float64
	for k := range batches {
		sum := 0.0
		for _, v := range values[k*size : (k+1)*size] {
			sum += v
		}
		means = append(means, sum/float64(size))
	}
	for _, v := range means {
		m += v / batches
	}
	for _, v := range means {
		se += (v - m) * (v - m)
	}
	return m, math.Sqrt(se / (batches - 1) / batches)
}

func waits(arrivals, leave []float64, service float64) (w []float64) {
	for i := range arrivals {
		w = append(w, leave[i]-arrivals[i]-service)
	}
	return w
}

// One core is the queue M/D/1, whose mean wait is that of Pollaczek and Khinchine, and so is a log that appends one entry at a time.
//
//	E W = ρ s / (2 (1 − ρ))
func TestOneCore(t *testing.T) {
	const s = 2e-3
	for _, load := range []float64{0.2, 0.5, 0.8} {
		arrivals := poisson(rand.New(rand.NewPCG(1, uint64(100*load))), load/s, 800)
		want := load * s / (2 * (1 - load))
		alone, appends := groups(arrivals, 1, 0.75*s, 0.25*s)
		for name, leave := range map[string][]float64{"core": cores(arrivals, 1, s), "log": alone} {
			if m, se := mean(waits(arrivals, leave, s)); math.Abs(m-want) > 4*se || se > 0.1*want {
				t.Errorf("%s, load %v: the mean wait is %v ± %v, want %v", name, load, m, se, want)
			}
		}
		if appends != len(arrivals) {
			t.Errorf("%d appends of %d entries", appends, len(arrivals))
		}
	}
}

// Many cores that are seldom all busy add no wait, and n cores take n jobs of one moment at once.
func TestManyCores(t *testing.T) {
	arrivals := poisson(rand.New(rand.NewPCG(2, 1)), 100, 20)
	for _, w := range waits(arrivals, cores(arrivals, 50, 0.01), 0.01) {
		if math.Abs(w) > 1e-9 {
			t.Fatalf("a job waited for %v", w)
		}
	}
	if got, want := cores([]float64{0, 0, 0, 0, 0.5}, 2, 1), []float64{1, 1, 2, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("jobs leave at %v, want %v", got, want)
	}
}

// A log that is always busy has groups of this mean size, because as many come during an append as the next one takes:
//
//	n = λ (a + b n) = λ a / (1 − λ b)
func TestGroups(t *testing.T) {
	const a, b = 2e-3, 5e-6
	for _, rate := range []float64{20_000, 100_000, 160_000} {
		arrivals := poisson(rand.New(rand.NewPCG(3, uint64(rate))), rate, 4)
		_, appends := groups(arrivals, math.MaxInt, a, b)
		want := rate * a / (1 - rate*b)
		if got := float64(len(arrivals)) / float64(appends); math.Abs(got-want) > 0.02*want {
			t.Errorf("%v a second: groups of %v, want %v", rate, got, want)
		}
	}
	leave, appends := groups([]float64{0, 1, 1.1, 1.2, 9}, 2, 1, 0.5)
	if want := []float64{1.5, 3.5, 3.5, 5, 10.5}; appends != 4 || !slices.Equal(leave, want) {
		t.Errorf("%d appends end at %v, want 4 at %v", appends, leave, want)
	}
}

func TestInOrder(t *testing.T) {
	sorted, place := inOrder([]float64{3, 1, 2, 1})
	if !slices.Equal(sorted, []float64{1, 1, 2, 3}) || !slices.Equal(place, []int{1, 3, 2, 0}) {
		t.Error(sorted, place)
	}
	if q := []float64{quantile([]float64{4, 1, 3, 2}, 0.5), quantile([]float64{4, 1, 3, 2}, 1)}; !slices.Equal(q, []float64{3, 4}) {
		t.Error(q)
	}
}
