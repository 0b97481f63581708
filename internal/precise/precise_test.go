package precise_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"vitrine/internal/precise"
	_ "vitrine/internal/rapidseed"
)

// Sums of values and of their squares, of which any are taken back or joined from other sums, agree with exact ones.
func TestSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sums, squares [2]precise.Sum
		exact, square := new(big.Float).SetPrec(2000), new(big.Float).SetPrec(2000)
		var values []float64
		total, totalSquares := 0.0, 0.0 // without signs
		add := func(x, sign float64) {
			total, totalSquares = total+x, totalSquares+x*x
			k := rapid.IntRange(0, 1).Draw(t, "sum")
			sums[k].Add(sign * x)
			big1 := new(big.Float).SetPrec(2000).SetFloat64(x)
			big2 := new(big.Float).SetPrec(2000).Mul(big1, big1)
			if sign > 0 {
				squares[k].Join(precise.Square(x))
				exact.Add(exact, big1)
				square.Add(square, big2)
			} else {
				squares[k].Join(precise.Square(x).Minus())
				exact.Sub(exact, big1)
				square.Sub(square, big2)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if n := len(values); n > 0 && rapid.Bool().Draw(t, "take back") {
				at := rapid.IntRange(0, n-1).Draw(t, "which")
				add(values[at], -1)
				values[at] = values[n-1]
				values = values[:n-1]
				continue
			}
			x := rapid.OneOf(rapid.Float64Range(1, 100), rapid.Float64Range(1e9, 1e12), rapid.Just(1e12)).Draw(t, "value")
			values = append(values, x)
			add(x, 1)
		}
		sums[0].Join(sums[1])
		squares[0].Join(squares[1])
		near(t, "the sum", sums[0], exact, total)
		near(t, "the sum of squares", squares[0], square, totalSquares)
	})
}

// near allows for an error of 2⁻¹⁰⁰ of the terms. It is invisible among values of usual size.
func near(t *rapid.T, what string, s precise.Sum, exact *big.Float, total float64) {
	want, _ := exact.Float64()
	if math.Abs(s.Value()-want) > 0x1p-52*math.Abs(want)+0x1p-100*total {
		t.Fatalf("%s is %v, want %v", what, s.Value(), want)
	}
}

// A mistyped value leaves no trace in the sums over a million sales before, while and after it counts.
func TestManySales(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var sum, squares precise.Sum
	cents, squared := int64(0), new(big.Int)
	sell := func() {
		for range 400_000 {
			c := 1 + rng.Int64N(10_000)
			x := float64(c) / 128 // exact in binary
			sum.Add(x)
			squares.Join(precise.Square(x))
			cents += c
			squared.Add(squared, big.NewInt(c*c))
		}
	}
	sell()
	sum.Add(1e12)
	squares.Join(precise.Square(1e12))
	sell()
	sum.Add(-1e12)
	squares.Join(precise.Square(1e12).Minus())
	sell()
	want, _ := new(big.Float).SetInt(squared).Float64()
	if want /= 128 * 128; sum.Value() != float64(cents)/128 || math.Abs(squares.Value()-want) > 1e-12*want {
		t.Errorf("the sums are %v and %v, want %v and %v", sum.Value(), squares.Value(), float64(cents)/128, want)
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	var s precise.Sum
	if n := testing.AllocsPerRun(100, func() {
		s.Add(1.5)
		s.Join(precise.Product(0.1, 0.3))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	var s precise.Sum
	for b.Loop() {
		s.Join(precise.Square(19.99))
	}
}
