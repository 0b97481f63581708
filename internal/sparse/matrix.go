// Package sparse holds matrices with mostly zero entries, their products with vectors, and their largest singular
// values.
package sparse

import (
	"fmt"
	"math"
	"runtime"
	"sort"
	"sync"
)

// Matrix is an m×n matrix in compressed rows: for Start[i] ≤ p < Start[i+1], row i contains the entry Value[p] in
// column Column[p]. A column that occurs twice in a row counts as the sum.
type Matrix struct {
	Columns int       // n
	Start   []int     // m+1 long, from 0 to the number of entries, nondecreasing
	Column  []int32   // in [0, n)
	Value   []float64 // as long as Column
}

// Dims returns m and n.
func (a *Matrix) Dims() (m, n int) { return len(a.Start) - 1, a.Columns }

// T returns a transposed copy. The entries in its rows are sorted by column.
func (a *Matrix) T() *Matrix {
	m, n := a.Dims()
	t := &Matrix{
		Columns: m,
		Start:   make([]int, n+1),
		Column:  make([]int32, len(a.Column)),
		Value:   make([]float64, len(a.Value)),
	}
	for _, j := range a.Column {
		t.Start[j+1]++
	}
	for j := range n {
		t.Start[j+1] += t.Start[j]
	}
	next := append([]int(nil), t.Start...)
	for i := range m {
		for p := a.Start[i]; p < a.Start[i+1]; p++ {
			q := &next[a.Column[p]]
			t.Column[*q], t.Value[*q] = int32(i), a.Value[p]
			*q++
		}
	}
	return t
}

// MulVec stores A x in dst, of length m, and returns it. It allocates if dst is nil. Each entry is summed in the order
// of its row, so the result does not depend on the number of processors. MulVec panics unless len(x) = n.
func (a *Matrix) MulVec(dst, x []float64) []float64 {
	m, n := a.Dims()
	if dst == nil {
		dst = make([]float64, m)
	}
	if len(x) != n || len(dst) != m {
		panic(fmt.Sprintf("sparse: product of a %d×%d matrix, a vector of %d and a result of %d",
			m, n, len(x), len(dst)))
	}
	// Divide the work by entries, not rows.
	inParallel(len(a.Value)+m, func(from, to int) {
		for i := a.row(from); i < a.row(to); i++ {
			sum := 0.0
			for p := a.Start[i]; p < a.Start[i+1]; p++ {
				sum += a.Value[p] * x[a.Column[p]]
			}
			dst[i] = sum
		}
	})
	return dst
}

// row returns the first row with at least the given number of rows and entries before it.
func (a *Matrix) row(before int) int {
	return sort.Search(len(a.Start)-1, func(i int) bool { return a.Start[i]+i >= before })
}

// share is the smallest amount of work worth a goroutine.
const share = 1 << 13

// inParallel calls f for consecutive shares [from, to) of the work [0, n), on all available processors. The result must
// not depend on the boundaries of the shares.
func inParallel(n int, f func(from, to int)) {
	workers := min(runtime.GOMAXPROCS(0), int(math.Ceil(float64(n)/share)))
	if workers <= 1 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() { f(k*n/workers, (k+1)*n/workers) })
	}
	wg.Wait()
}
