package kernel_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine/internal/kernel"
	"vitrine/internal/portable"
)

// functions lists the elementwise kernels with their documented error bound, and the relative error of a result y for
// the argument x.
var functions = []struct {
	name  string
	apply func(dst, x []float64)
	bound float64
	error func(x, y float64) float64
}{
	{"Exp", kernel.Exp, 3e-16, func(x, y float64) float64 {
		return relative(y, exp(x))
	}},
	{"Sigmoid", kernel.Sigmoid, 4e-16, func(x, y float64) float64 {
		return relative(y, quo(exact(1), add(exact(1), exp(-x))))
	}},
	{"Tanh", kernel.Tanh, 5e-16, func(x, y float64) float64 {
		e := exp(2 * x)
		return relative(y, quo(add(e, exact(-1)), add(e, exact(1))))
	}},
	{"Softplus", kernel.Softplus, 6e-16, func(x, y float64) float64 {
		e := exp(x)
		if x < -40 { // log(1+e) = e(1 - e/2) up to e²/3
			return relative(y, mul(e, add(exact(1), mul(exact(-0.5), e))))
		}
		// log(v) - y = log(v/exp(y)), which is v/exp(y) - 1 up to its square.
		difference := add(quo(add(exact(1), e), exp(y)), exact(-1))
		return relative(y, add(exact(y), difference))
	}},
}

// The kernels agree with 400-bit arithmetic within their bounds (1.4 to 2.7 units in the last place) on a grid over the
// whole range of normal results, on random points of every magnitude, and around the multiples of ln 2 / 2, where the
// reduction changes k.
func TestElementwiseAccuracy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var x []float64
	for v := -708.0; v <= 709; v += 1.37 {
		x = append(x, v)
	}
	for range 1500 {
		x = append(x, 3*rng.NormFloat64(), math.Copysign(math.Exp(-40*rng.Float64()), rng.Float64()-0.5))
	}
	for k := -1021; k <= 1023; k += 7 {
		half := float64(k) * math.Ln2 / 2
		x = append(x, half, math.Nextafter(half, 1000), math.Nextafter(half, -1000))
	}
	for _, f := range functions {
		t.Run(f.name, func(t *testing.T) {
			y := make([]float64, len(x))
			f.apply(y, x)
			worst, at := 0.0, 0.0
			for i, v := range x {
				if e := f.error(v, y[i]); !(e <= worst) {
					worst, at = e, v
				}
			}
			t.Logf("largest relative error %.3g, at %v", worst, at)
			if !(worst < f.bound) {
				t.Errorf("relative error %g at %v, want below %g", worst, at, f.bound)
			}
			eachPath(t, func(t *testing.T) {
				again := make([]float64, len(x))
				f.apply(again, x)
				wantBits(t, f.name, again, y)
			})
		})
	}
}

// Exp performs the same sequence of roundings on every machine. At these arguments the last bit changes if a compiler
// fuses r² + c in the reduction, as compilers for arm64 and for amd64 with GOAMD64=v3 do.
func TestExpIsNotFused(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		for x, want := range map[float64]float64{
			-0.3044944471444365: 0x1.7999178623eccp-01, 0.30708669390303006: 0x1.5c057e431ab2ap+00,
			-0.34575884028319176: 0x1.6a557180cf23bp-01, 0.31741315168189704: 0x1.5fa247b30bc7cp+00,
		} {
			y := []float64{x, x, x, x, x, x, x, x}
			kernel.Exp(y, y)
			if y[0] != want {
				t.Errorf("exp(%v) = %x, want %x", x, y[0], want)
			}
		}
	})
}

// Sincos equals portable.Sincos bit for bit, at any position in a vector, and when it overwrites its argument.
func TestSincosIsPortable(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	x := []float64{0, math.Copysign(0, -1), 1 << 29, 1<<29 - 1, 1<<29 - 0.5, math.Inf(1), math.Inf(-1), math.NaN()}
	for k := range 200 {
		quarter := float64(k-100) * math.Pi / 4
		x = append(x, quarter, math.Nextafter(quarter, 1000), math.Nextafter(quarter, -1000))
	}
	for range 8000 {
		x = append(x, math.Float64frombits(rng.Uint64()), 3*rng.NormFloat64(), 1e9*(rng.Float64()-0.5))
	}
	wantSin, wantCos := make([]float64, len(x)), make([]float64, len(x))
	for i, v := range x {
		wantSin[i], wantCos[i] = portable.Sincos(v)
	}
	eachPath(t, func(t *testing.T) {
		sin, cos := slices.Clone(x), make([]float64, len(x))
		kernel.Sincos(sin, cos, sin)
		wantBits(t, "sine", sin, wantSin)
		wantBits(t, "cosine", cos, wantCos)
		sin, cos = make([]float64, len(x)), slices.Clone(x)
		kernel.Sincos(sin, cos, cos)
		wantBits(t, "sine, the cosine in the place of x", sin, wantSin)
		wantBits(t, "cosine in the place of x", cos, wantCos)
	})
}

// Subnormal results are within one unit in the last place.
func TestElementwiseSubnormal(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		for x := -745.1; x < -708.4; x += 0.0137 {
			for _, f := range functions {
				if f.name == "Tanh" {
					continue
				}
				y := []float64{0}
				f.apply(y, []float64{x})
				want, _ := exp(x).Float64()
				if math.Abs(y[0]-want) > 5e-324 {
					t.Errorf("%s(%v) = %v, want %v", f.name, x, y[0], want)
				}
			}
		}
	})
}

func TestElementwiseSpecialValues(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		inf, nan := math.Inf(1), math.NaN()
		x := []float64{0, 5e-324, -5e-324, 1e-20, 40, 710, math.MaxFloat64, inf, -746, -math.MaxFloat64, -inf, nan}
		for _, test := range []struct {
			name  string
			apply func(dst, x []float64)
			want  []float64
		}{
			{"Exp", kernel.Exp, []float64{1, 1, 1, 1, math.Exp(40), inf, inf, inf, 0, 0, 0, nan}},
			{"Sigmoid", kernel.Sigmoid, []float64{0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1, 0, 0, 0, nan}},
			{"Tanh", kernel.Tanh, []float64{0, 5e-324, -5e-324, 1e-20, 1, 1, 1, 1, -1, -1, -1, nan}},
			{"Softplus", kernel.Softplus, []float64{
				math.Ln2, math.Ln2, math.Ln2, math.Ln2, 40, 710, math.MaxFloat64, inf, 0, 0, 0, nan,
			}},
		} {
			got := make([]float64, len(x))
			test.apply(got, x)
			for i, want := range test.want {
				if !near(got[i], want) {
					t.Errorf("%s(%v) = %v, want %v", test.name, x[i], got[i], want)
				}
			}
		}
	})
}

// An entry of the result does not depend on its position, nor on whether the arguments are overwritten.
func TestElementwisePosition(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			x := rapid.SliceOf(rapid.Float64Range(-800, 800)).Draw(t, "x")
			for _, f := range functions {
				y := make([]float64, len(x))
				f.apply(y, x)
				inPlace := append([]float64(nil), x...)
				f.apply(inPlace, inPlace)
				for i, v := range x {
					alone := []float64{v}
					f.apply(alone, alone)
					if y[i] != alone[0] || y[i] != inPlace[i] {
						t.Fatalf("%s(%v) = %v at position %d, %v alone, %v in place",
							f.name, v, y[i], i, alone[0], inPlace[i])
					}
				}
			}
		})
	})
}

// LogSumExp1 agrees with 400-bit arithmetic at any magnitude.
func TestLogSumExp1Accuracy(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	eachPath(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 5, 64, 65, 300} {
			for _, shift := range []float64{-700, -50, -1, 0, 3, 300, 709} {
				x, sum := make([]float64, n), exact(1)
				for i := range x {
					x[i] = shift + 2*rng.NormFloat64()
					sum.Add(sum, exp(x[i]))
				}
				got := kernel.LogSumExp1(x)
				var wrong float64
				if excess, _ := add(sum, exact(-1)).Float64(); excess < 1e-10 { // log(1+e) = e - e²/2 up to e³/3
					e := add(sum, exact(-1))
					wrong = relative(got, mul(e, add(exact(1), mul(exact(-0.5), e))))
				} else { // log v - y = v/exp(y) - 1 up to its square
					wrong = relative(got, add(exact(got), add(quo(sum, exp(got)), exact(-1))))
				}
				if !(wrong < 1e-14) {
					t.Errorf("%d entries around %v: %v has relative error %g", n, shift, got, wrong)
				}
			}
		}
		inf := math.Inf(1)
		for _, test := range []struct{ x, want float64 }{
			{-inf, 0}, {inf, inf}, {math.MaxFloat64, math.MaxFloat64}, {math.NaN(), math.NaN()},
		} {
			if got := kernel.LogSumExp1([]float64{1, test.x, 2}[1:2]); !near(got, test.want) {
				t.Errorf("log(1 + exp(%v)) = %v, want %v", test.x, got, test.want)
			}
		}
	})
}

func BenchmarkElementwise(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float64, 1000), make([]float64, 1000)
	for i := range x {
		x[i] = 3 * rng.NormFloat64()
	}
	for _, f := range functions {
		b.Run(f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.apply(y, x)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(x)), "ns/entry")
		})
	}
}

// near reports whether a and b are equal, both NaN, or 5e-16 apart relatively.
func near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 5e-16*math.Abs(b)
}

const precision = 400

func exact(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

func add(a, b *big.Float) *big.Float { return new(big.Float).Add(a, b) }

func mul(a, b *big.Float) *big.Float { return new(big.Float).Mul(a, b) }

func quo(a, b *big.Float) *big.Float { return new(big.Float).Quo(a, b) }

// exp returns exp(x) to about 380 bits: the Taylor series at x/2^20, squared twenty times.
func exp(x float64) *big.Float {
	const halvings = 20
	r := exact(x)
	r.SetMantExp(r, -halvings)
	sum, term := exact(1), exact(1)
	for n := 1; n <= 30; n++ {
		term.Mul(term, r)
		term.Quo(term, exact(float64(n)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// relative returns |y - want| / |want|, or 0 if both are 0.
func relative(y float64, want *big.Float) float64 {
	if want.Sign() == 0 {
		return math.Abs(y)
	}
	e, _ := quo(add(exact(y), new(big.Float).Neg(want)), want).Float64()
	return math.Abs(e)
}
