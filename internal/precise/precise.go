// Package precise sums numbers so that a large one can be taken back: the sum of the others then is as if it had never
// been there. A plain float64 would have rounded them away.
package precise

import "math"

// Sum is a sum of float64 numbers. It keeps twice their precision as an unevaluated sum of two numbers, the nearest
// float64 and the rest. Each addition has a relative error of at most 2⁻¹⁰⁴ (Joldes, Muller and Popescu 2017, Tight and
// rigorous error bounds for basic building blocks of double-word arithmetic, ACM TOMS 44(2), Algorithms 4 and 6). While
// the sum is as large as 10¹², an addition is therefore off by at most 10⁻¹⁹, and while it is as large as the square of
// 10¹², by at most 10⁻⁷. The bits are the same on all machines.
//
// The zero value is 0.
type Sum struct{ high, low float64 }

// Of returns the sum of one number.
func Of(x float64) Sum { return Sum{high: x} }

// Square returns x² exactly.
func Square(x float64) Sum { return Product(x, x) }

// Product returns x y exactly.
func Product(x, y float64) Sum {
	high := float64(x * y)
	return Sum{high, math.FMA(x, y, -high)}
}

// Value returns the nearest float64.
func (s Sum) Value() float64 { return s.high }

// Minus returns −s.
func (s Sum) Minus() Sum { return Sum{-s.high, -s.low} }

// Add adds a number.
func (s *Sum) Add(x float64) {
	high, low := two(s.high, x)
	s.high, s.low = fast(high, low+s.low)
}

// Join adds another sum.
func (s *Sum) Join(o Sum) {
	if o.high == 0 {
		return
	}
	high, low := two(s.high, o.high)
	middle, rest := two(s.low, o.low)
	high, low = fast(high, low+middle)
	s.high, s.low = fast(high, low+rest)
}

// Equal reports whether both sums consist of the same parts.
func (s Sum) Equal(o Sum) bool { return s == o }

// Parts returns the two numbers, to encode or decode them.
func (s *Sum) Parts() (high, low *float64) { return &s.high, &s.low }

// two returns a + b exactly: the nearest float64 and the rest (Knuth 1969).
func two(a, b float64) (sum, rest float64) {
	sum = a + b
	of := sum - a
	return sum, (a - (sum - of)) + (b - of)
}

// fast is two for |a| ≥ |b|, or a = 0 (Dekker 1971).
func fast(a, b float64) (sum, rest float64) {
	sum = a + b
	return sum, b - (sum - a)
}
