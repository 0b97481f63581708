package portable_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"golang.org/x/sys/cpu"

	"vitrine/internal/portable"
)

var functions = []struct {
	name       string
	here, math func(x float64) float64
}{
	{"Exp", portable.Exp, math.Exp},
	{"Log", portable.Log, math.Log},
	{"Log1p", portable.Log1p, math.Log1p},
}

// arguments returns numbers of any size and sign, the points at which the functions switch algorithms, and numbers out
// of range.
func arguments() []float64 {
	rng := rand.New(rand.NewPCG(1, 2))
	var x []float64
	for range 100_000 {
		x = append(x, math.Float64frombits(rng.Uint64()),
			1500*(rng.Float64()-0.5), 3*rng.NormFloat64(), rng.ExpFloat64(),
			1+math.Ldexp(rng.Float64()-0.5, -rng.IntN(60)), math.Ldexp(rng.Float64()-0.5, -rng.IntN(70)))
	}
	for k := range 64 {
		x = append(x, float64(k)*math.Pi/4, -float64(k)*math.Pi/4)
	}
	for _, edge := range []float64{0, 1, 1 << 29, 2, 0x1p-54, 0x1p-29, 0x1p-20,
		math.Sqrt2/2 - 1, math.Sqrt2 - 1, math.Sqrt2 / 2, math.Sqrt2, 1 << 53,
		7.09782712893384e+02, 708.3964185322641, 744.4400719213812,
		745.1332191019411, 746, math.MaxFloat64, math.Inf(1), 0x1p-1022} {
		for _, v := range []float64{edge, math.Nextafter(edge, -1), math.Nextafter(edge, math.Inf(1))} {
			x = append(x, v, -v)
		}
	}
	return append(x, math.NaN())
}

// The functions return the bits of package math wherever that fuses the same operations, and are close to it
// everywhere. On amd64, package math is wrong for the logarithms of subnormal numbers and for exp above 2^1023 √2.
func TestFunctionsAreThoseOfMath(t *testing.T) {
	// A compiler that fuses, as with GOAMD64=v3, changes math.Log1p, but not these functions.
	same := runtime.GOARCH == "amd64" && cpu.X86.HasFMA && !fuses()
	for _, f := range functions {
		for _, x := range arguments() {
			got, want := f.here(x), f.math(x)
			switch {
			case f.name == "Log" && 0 < x && x < 0x1p-1022:
				if want = math.Log(x*0x1p60) - 60*math.Ln2; math.Abs(got-want) > 1e-12 {
					t.Fatalf("Log(%v) = %v, want %v", x, got, want)
				}
			case f.name == "Exp" && 709.4 < x && x < 709.8 && math.IsInf(want, 1):
				if want = 2 * math.Exp(x-math.Ln2); math.Abs(got-want) > 1e-13*want && got != want {
					t.Fatalf("Exp(%v) = %v, want %v", x, got, want)
				}
			case math.IsNaN(got) && math.IsNaN(want), got == want && math.Signbit(got) == math.Signbit(want):
			case same || !(math.Abs(got-want) <= 4e-16*math.Abs(want) || math.Abs(got-want) <= 5e-324):
				t.Fatalf("%s(%v) = %x, want %x", f.name, x, got, want)
			}
		}
	}
}

// Sine and cosine also return the bits of package math, and are close to it everywhere.
func TestSincosIsThatOfMath(t *testing.T) {
	near := 0.0
	if runtime.GOARCH != "amd64" || fuses() {
		near = 4e-16
	}
	for _, x := range arguments() {
		sin, cos := portable.Sincos(x)
		wantSin, wantCos := math.Sincos(x)
		if math.IsNaN(wantSin) && math.IsNaN(sin) && math.IsNaN(cos) {
			continue
		}
		if !(math.Abs(sin-wantSin) <= near && math.Abs(cos-wantCos) <= near) ||
			math.Signbit(sin) != math.Signbit(wantSin) && near == 0 {
			t.Fatalf("Sincos(%v) = %v, %v, want %v, %v", x, sin, cos, wantSin, wantCos)
		}
	}
}

// fuses reports whether the compiler of this program fuses a product with an addition.
func fuses() bool {
	x := 1 + 0x1p-30
	return plus(x, -float64(x*x)) != 0
}

//go:noinline
func plus(x, y float64) float64 { return x*x + y }
