// Package scratch provides slices and matrices that reuse their storage between calls, so that hot paths do not
// allocate.
package scratch

import (
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// Grow returns a slice of length n with arbitrary entries, in v's storage if its capacity suffices.
func Grow[T any](v []T, n int) []T { return slices.Grow(v[:0], n)[:n] }

// GrowAll replaces each slice by the result of [Grow].
func GrowAll[T any](n int, all ...*[]T) {
	for _, v := range all {
		*v = Grow(*v, n)
	}
}

// Matrix is a dense matrix that can be reshaped repeatedly. The zero value is ready to use.
type Matrix struct {
	mat.Dense
	buf []float64
}

// Reshape makes the matrix r×c, r, c ≥ 1, with arbitrary entries.
func (m *Matrix) Reshape(r, c int) *mat.Dense {
	m.buf = Grow(m.buf, r*c)
	m.SetRawMatrix(blas64.General{Rows: r, Cols: c, Stride: c, Data: m.buf})
	return &m.Dense
}

// Rows makes the matrix a copy of the given rows of x. There must be at least one.
func (m *Matrix) Rows(x *mat.Dense, rows []int) *mat.Dense {
	_, d := x.Dims()
	m.Reshape(len(rows), d)
	for k, i := range rows {
		copy(m.RawRowView(k), x.RawRowView(i))
	}
	return &m.Dense
}

// View makes the matrix a view of the rows from ≤ i < to of x. Writing to either changes both.
func (m *Matrix) View(x *mat.Dense, from, to int) *mat.Dense {
	raw := x.RawMatrix()
	m.SetRawMatrix(blas64.General{
		Rows: to - from, Cols: raw.Cols, Stride: raw.Stride,
		Data: raw.Data[from*raw.Stride : (to-1)*raw.Stride+raw.Cols],
	})
	return &m.Dense
}
