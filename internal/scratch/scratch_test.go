package scratch_test

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/scratch"
)

func TestGrowKeepsItsStorage(t *testing.T) {
	v := scratch.Grow([]int(nil), 10)
	expect.Equal(fatal.T(t), len(v), 10, "length")
	if w := scratch.Grow(v[:3], 8); len(w) != 8 || &w[0] != &v[0] {
		t.Errorf("length %d, want 8 in the same storage", len(w))
	}
	expect.Equal(t, len(scratch.Grow(v, 1000)), 1000, "length")
}

func TestMatrix(t *testing.T) {
	x := mat.NewDense(4, 3, []float64{0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32})
	wide := x.Slice(0, 4, 1, 3).(*mat.Dense) // rows are not adjacent in memory
	var m scratch.Matrix
	if got, want := m.Rows(wide, []int{3, 1}), mat.NewDense(2, 2, []float64{31, 32, 11, 12}); !mat.Equal(got, want) {
		t.Errorf("rows 3 and 1 are %v, want %v", got, want)
	}
	if got, want := m.View(wide, 1, 3), wide.Slice(1, 3, 0, 2); !mat.Equal(got, want) {
		t.Errorf("the view is %v, want %v", got, want)
	}
	m.Set(0, 0, 5)
	expect.Equal(t, x.At(1, 1), 5, "the view is a copy")
	m.Reshape(1, 4).Set(0, 0, 7)
	expect.Equal(t, x.At(1, 1), 5, "a shape after a view writes to what was viewed")
	if r, c := m.Dims(); r != 1 || c != 4 {
		t.Errorf("the shape is %d×%d, want 1×4", r, c)
	}
	if got := testing.AllocsPerRun(10, func() { m.Reshape(2, 2); m.Rows(x, []int{0}); m.View(x, 0, 2) }); got > 0 {
		t.Errorf("smaller shapes allocate %v times", got)
	}
}
