package kernel_test

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/kernel"
)

// eachPath runs a test on every path that the machine supports.
func eachPath(t *testing.T, test func(t *testing.T)) {
	for _, p := range kernel.Paths() {
		t.Run(p.String(), func(t *testing.T) {
			defer kernel.Use(p)()
			test(t)
		})
	}
}

// kernels lists all kernels. call passes arguments of shape n×d from a source of numbers, and returns the numbers
// changed or returned.
var kernels = []struct {
	name string
	call func(of source, n, d int) []float64
}{
	{"Exp", func(of source, n, d int) []float64 { return entrywise(kernel.Exp, of, n*d) }},
	{"Sigmoid", func(of source, n, d int) []float64 { return entrywise(kernel.Sigmoid, of, n*d) }},
	{"Tanh", func(of source, n, d int) []float64 { return entrywise(kernel.Tanh, of, n*d) }},
	{"Sincos", func(of source, n, d int) []float64 {
		sin, cos := of(n*d), of(n*d)
		kernel.Sincos(sin, cos, of(n*d))
		return append(slices.Clone(sin), cos...)
	}},
	{"Softplus", func(of source, n, d int) []float64 { return entrywise(kernel.Softplus, of, n*d) }},
	{"LogSumExp1", func(of source, n, d int) []float64 { return []float64{kernel.LogSumExp1(of(n * d))} }},
	{"Dot", func(of source, n, d int) []float64 { return []float64{kernel.Dot(of(n*d), of(n*d))} }},
	{"Sum", func(of source, n, d int) []float64 { return []float64{kernel.Sum(of(n * d))} }},
	{"Axpy", func(of source, n, d int) []float64 {
		dst := of(n * d)
		kernel.Axpy(dst, 0.7, of(n*d))
		return dst
	}},
	{"Mul", func(of source, n, d int) []float64 { return entrywise(kernel.Mul, of, n*d) }},
	{"MulComplement", func(of source, n, d int) []float64 { return entrywise(kernel.MulComplement, of, n*d) }},
	{"AddSquares", func(of source, n, d int) []float64 {
		dst := of(n)
		kernel.AddSquares(dst, of(d*n), d)
		return dst
	}},
	{"Columns", func(of source, n, d int) []float64 {
		dst := of(n * d)
		kernel.Columns(dst, of(max(0, n*(d+3)-3)), d+3, n, d)
		return dst
	}},
	{"Combine", func(of source, n, d int) []float64 {
		dst := of(n)
		kernel.Combine(dst, 0.3, of(d), 1, of(d*n), d)
		return dst
	}},
	{"Combine of a column", func(of source, n, d int) []float64 {
		dst := of(n)
		kernel.Combine(dst, 0.3, of(3*d), 3, of(d*n), d)
		return dst
	}},
	{"Bilinear", func(of source, n, d int) []float64 {
		dst := of(3 * n)
		kernel.Bilinear(dst, n, of(5*n), 5, of(d*n), d, of(3*(5*(d+1)+2)), 5*d+1, 5*(d+1)+2)
		return dst
	}},
	{"MulPairs", func(of source, n, d int) []float64 {
		pairs := make([]int32, 2*d)
		for j := range pairs {
			pairs[j] = int32((5*j + 3) % (d + 2))
		}
		dst := of(max(0, n*(d+3)-3))
		kernel.MulPairs(dst, d+3, of((d+2)*n), n, pairs)
		return dst
	}},
	{"Gemv", func(of source, n, d int) []float64 {
		dst := of(n)
		kernel.Gemv(dst, of(n), of(n*d), of(d), n, d)
		return dst
	}},
	{"GemvTrans", func(of source, n, d int) []float64 {
		dst := of(d)
		kernel.GemvTrans(dst, of(n*d), of(n), n, d)
		return dst
	}},
	{"SymMulVec", func(of source, n, d int) []float64 {
		dst := of(d)
		kernel.SymMulVec(dst, of(kernel.PackedLen(d)), of(d))
		return dst
	}},
	{"SymRankOne", func(of source, n, d int) []float64 {
		p := of(kernel.PackedLen(d))
		kernel.SymRankOne(p, 0.7, of(d))
		return p
	}},
	{"SymRankK", func(of source, n, d int) []float64 {
		p := of(kernel.PackedLen(d))
		kernel.SymRankK(p, of(n), of(n*d), n, d)
		return p
	}},
	{"SymQuadForms", func(of source, n, d int) []float64 {
		dst := of(n)
		kernel.SymQuadForms(dst, of(kernel.PackedLen(d)), of(n*d), n, d)
		return dst
	}},
}

// source returns slices of numbers.
type source func(n int) []float64

func entrywise(f func(dst, x []float64), of source, n int) []float64 {
	dst := of(n)
	f(dst, of(n))
	return dst
}

// positives is a source of numbers in (0, 1], so that sums do not cancel, in slices of the given storage.
func positives(storage func(n int) []float64) source {
	rng := rand.New(rand.NewPCG(1, 2))
	return func(n int) []float64 {
		v := storage(n)
		for i := range v {
			v[i] = 1 - rng.Float64()
		}
		return v
	}
}

// allShapes visits every d up to 33 and some larger ones, with batches around the sizes of tiles and blocks.
func allShapes(visit func(n, d int)) {
	for d := range 34 {
		for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 17, 31} {
			visit(n, d)
		}
	}
	for _, d := range []int{40, 47, 76, 121} {
		for _, n := range []int{3, 100, 193} {
			visit(n, d)
		}
	}
}

// sources draw numbers in three ways: in (0, 1], so that sums do not cancel; of either sign and very different size;
// and with arbitrary bits, many of them at the extremes of a float64.
var sources = []struct {
	name string
	of   func(rng *rand.Rand) float64
}{
	{"positive", func(rng *rand.Rand) float64 { return 1 - rng.Float64() }},
	{"mixed", func(rng *rand.Rand) float64 { return math.Ldexp(2*rng.Float64()-1, rng.IntN(12)) }},
	{"extreme", extreme},
	{"extreme here and there", func(rng *rand.Rand) float64 {
		if rng.IntN(40) == 0 {
			return extreme(rng)
		}
		return 2*rng.Float64() - 1
	}},
}

func extreme(rng *rand.Rand) float64 {
	ends := [...]float64{
		0, 5e-324, 0x1p-1022, 0x1p-1023, 0x1p-600, 1, 0x1p600, math.MaxFloat64, math.Inf(1), math.NaN(),
	}
	if v := rng.IntN(2 * len(ends)); v < len(ends) {
		return math.Copysign(ends[v], rng.Float64()-0.5)
	}
	return math.Float64frombits(rng.Uint64())
}

// onPath calls a kernel on a path with numbers drawn from a source and a seed. The slices start at the given offset.
func onPath(path, kernelIndex, sourceIndex int, seed uint64, n, d, offset int) []float64 {
	defer kernel.Use(kernel.Paths()[path])()
	rng := rand.New(rand.NewPCG(seed, 1))
	return kernels[kernelIndex].call(func(n int) []float64 {
		v := make([]float64, n+offset)[offset:]
		for i := range v {
			v[i] = sources[sourceIndex].of(rng)
		}
		return v
	}, n, d)
}

// All paths give the same bits for every shape, any numbers and any alignment. A NaN is a NaN on all paths, but its
// bits may differ.
func TestPathsAgree(t *testing.T) {
	for k, of := range kernels {
		t.Run(of.name, func(t *testing.T) {
			agree := func(n, d int) {
				for s := range sources {
					want := onPath(0, k, s, uint64(n), n, d, 0)
					for p := 1; p < len(kernel.Paths()); p++ {
						wantBits(t, fmt.Sprintf("%v, %s, n=%d, d=%d", kernel.Paths()[p], sources[s].name, n, d),
							onPath(p, k, s, uint64(n), n, d, (n+d)%8), want)
					}
				}
			}
			allShapes(agree)
			for length := range 201 {
				agree(length, 1)
				agree(1, length)
			}
		})
	}
}

// FuzzPathsAgree is TestPathsAgree for any shapes and seeds.
func FuzzPathsAgree(f *testing.F) {
	for k := range kernels {
		f.Add(uint(k), uint(2), uint64(k), uint8(17), uint8(31), uint8(3))
	}
	f.Fuzz(func(t *testing.T, k, s uint, seed uint64, n, d, offset uint8) {
		k, s = k%uint(len(kernels)), s%uint(len(sources))
		want := onPath(0, int(k), int(s), seed, int(n), int(d), 0)
		for p := 1; p < len(kernel.Paths()); p++ {
			wantBits(t, fmt.Sprintf("%s on %v", kernels[k].name, kernel.Paths()[p]),
				onPath(p, int(k), int(s), seed, int(n), int(d), int(offset%8)), want)
		}
	})
}

func wantBits(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i, w := range want {
		if math.Float64bits(got[i]) != math.Float64bits(w) && !(math.IsNaN(got[i]) && math.IsNaN(w)) {
			t.Fatalf("%s: entry %d is %x, want %x", what, i, got[i], w)
		}
	}
}

// The bits match those behind all published figures, on every machine.
func TestBitsDoNotChange(t *testing.T) {
	for k, of := range kernels {
		h := fnv.New64a()
		for _, shape := range [][2]int{{1, 1}, {3, 5}, {7, 12}, {9, 31}, {17, 76}, {193, 40}} {
			for s := range 2 {
				for _, v := range onPath(len(kernel.Paths())-1, k, s, 7, shape[0], shape[1], 0) {
					_ = binary.Write(h, binary.LittleEndian, v)
				}
			}
		}
		expect.Equal(t, fmt.Sprintf("%016x", h.Sum64()), bits[of.name], of.name)
	}
}

// Elementwise functions give the same bits on all paths, for arbitrary float64s and on a dense sweep.
func TestFunctionsAgreeOnAnyBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var x []float64
	for range 8000 {
		x = append(x, math.Float64frombits(rng.Uint64()), 1500*(rng.Float64()-0.5), 3*rng.NormFloat64())
	}
	for _, edge := range []float64{0, 20, 690, 708.3964185322641, 709.782712893384, 745.1332191019411, math.Inf(1)} {
		for _, v := range []float64{edge, math.Nextafter(edge, -1), math.Nextafter(edge, 1000)} {
			x = append(x, v, -v)
		}
	}
	for _, f := range functions {
		var want []float64
		eachPath(t, func(t *testing.T) {
			y := make([]float64, len(x))
			f.apply(y, x)
			if want == nil {
				want = y
			}
			for i, v := range y {
				if math.Float64bits(v) != math.Float64bits(want[i]) && !(math.IsNaN(v) && math.IsNaN(want[i])) {
					t.Fatalf("%s(%v) = %x, want %x", f.name, x[i], v, want[i])
				}
			}
		})
	}
}

// The kernels do not allocate.
func TestKernelsDoNotAllocate(t *testing.T) {
	of := make([][]float64, 4)
	for i := range of {
		of[i] = make([]float64, 121*122/2+193*126)
	}
	pairs := make([]int32, 2*121)
	eachPath(t, func(t *testing.T) {
		if n := testing.AllocsPerRun(10, func() {
			const n, d = 193, 121
			x := of[1][:n]
			for _, f := range functions {
				f.apply(of[0][:n], x)
			}
			kernel.LogSumExp1(x)
			kernel.AddSquares(of[0][:n], of[2], d)
			kernel.Columns(of[0], of[1], d+3, n, d)
			kernel.Combine(of[0][:n], 1, of[1], 1, of[2], d)
			kernel.Bilinear(of[0][:9*n], n, of[1], 4, of[2], d, of[3], 4*d, 5*d)
			kernel.MulPairs(of[0], d+3, of[1], n, pairs)
			kernel.Gemv(of[0], of[1], of[2], of[3], n, d)
			kernel.GemvTrans(of[0], of[1], of[2], n, d)
			kernel.SymMulVec(of[0][:d], of[1], of[2][:d])
			kernel.SymRankOne(of[0], 1, of[1][:d])
			kernel.SymRankK(of[0], of[1], of[2], n, d)
			kernel.SymQuadForms(of[0], of[1], of[2], n, d)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// The same arguments give the same bits, wherever they are in memory.
func TestKernelsAreDeterministic(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		for _, k := range kernels {
			shifted := 0
			first := k.call(positives(func(n int) []float64 { return make([]float64, n) }), 31, 76)
			again := k.call(positives(func(n int) []float64 {
				shifted = shifted%7 + 1
				return make([]float64, n+shifted)[shifted:]
			}), 31, 76)
			expect.List(t, first, again, k.name, "differs")
		}
	})
}

// Slices that are too short panic before the vector code reads them.
func TestKernelsPanicOnEveryPath(t *testing.T) {
	of := func(n int) []float64 { return make([]float64, n) }
	eachPath(t, func(t *testing.T) {
		for name, call := range map[string]func(){
			"Exp":                       func() { kernel.Exp(of(15), of(16)) },
			"Bilinear, short weights":   func() { kernel.Bilinear(of(64), 16, of(32), 2, of(48), 3, of(3*9+7), 6, 9) },
			"Bilinear, short left rows": func() { kernel.Bilinear(of(64), 16, of(31), 2, of(48), 3, of(3*9+8), 6, 9) },
			"Bilinear, short rows":      func() { kernel.Bilinear(of(64), 16, of(32), 2, of(47), 3, of(3*9+8), 6, 9) },
			"Bilinear, mixed weights":   func() { kernel.Bilinear(of(64), 16, of(32), 2, of(48), 3, of(3*9+8), 5, 9) },
			"AddSquares, short rows":    func() { kernel.AddSquares(of(16), of(255), 16) },
			"Columns, short rows":       func() { kernel.Columns(of(256), of(15*17+15), 17, 16, 16) },
			"Columns, short dst":        func() { kernel.Columns(of(255), of(256), 16, 16, 16) },
			"Columns, overlapping rows": func() { kernel.Columns(of(256), of(256), 15, 16, 16) },
			"Gemv with a short matrix":  func() { kernel.Gemv(of(16), of(16), of(255), of(16), 16, 16) },
			"Gemv with a short offset":  func() { kernel.Gemv(of(16), of(15), of(256), of(16), 16, 16) },
			"GemvTrans, short weights":  func() { kernel.GemvTrans(of(16), of(256), of(15), 16, 16) },
			"SymMulVec, short matrix":   func() { kernel.SymMulVec(of(16), of(135), of(16)) },
			"SymMulVec, short dst":      func() { kernel.SymMulVec(of(15), of(136), of(16)) },
			"SymRankOne, short matrix":  func() { kernel.SymRankOne(of(135), 1, of(16)) },
			"SymRankK, short matrix":    func() { kernel.SymRankK(of(135), of(16), of(256), 16, 16) },
			"SymRankK, short weights":   func() { kernel.SymRankK(of(136), of(15), of(256), 16, 16) },
			"SymQuadForms, short rows":  func() { kernel.SymQuadForms(of(16), of(136), of(255), 16, 16) },
			"SymQuadForms, short dst":   func() { kernel.SymQuadForms(of(15), of(136), of(256), 16, 16) },
			"Combine of -1 rows":        func() { kernel.Combine(of(16), 0, of(16), 1, of(16), -1) },
			"MulPairs beyond the rows": func() {
				kernel.MulPairs(of(256), 16, of(32), 16, append(make([]int32, 31), 2))
			},
			"MulPairs before the rows": func() {
				kernel.MulPairs(of(256), 16, of(32), 16, append(make([]int32, 31), -1))
			},
			"MulPairs, short dst":        func() { kernel.MulPairs(of(255), 16, of(32), 16, make([]int32, 32)) },
			"MulPairs, overlapping rows": func() { kernel.MulPairs(of(256), 15, of(32), 16, make([]int32, 32)) },
		} {
			t.Run(name, func(t *testing.T) {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				call()
			})
		}
	})
}

// If the environment asks for a path, this process really uses it.
func TestPathIsTheOneAskedFor(t *testing.T) {
	name := fatal.Or(kernel.Path())(t)
	if want := os.Getenv("VITRINE_KERNEL"); want != "" && name != want {
		t.Errorf("the path is %s, want %s", name, want)
	}
}

// A process that asks for an unknown path uses the best one, and the test above detects it.
func TestUnknownPathIsReported(t *testing.T) {
	self := fatal.Or(os.Executable())(t)
	run := func(value, test string) (string, error) {
		c := exec.Command(self, "-test.run=^"+test+"$")
		c.Env = append(os.Environ(), "VITRINE_KERNEL="+value)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for _, p := range kernel.Paths() {
		if out, err := run(p.String(), "TestPathIsTheOneAskedFor"); err != nil {
			t.Errorf("%v: %v, %s", p, err, out)
		}
	}
	if out, err := run("sse9", "TestBitsDoNotChange"); err != nil {
		t.Errorf("sse9 ends the process or changes what it computes: %v, %s", err, out)
	}
	out, err := run("sse9", "TestPathIsTheOneAskedFor")
	if err == nil || !strings.Contains(out, "VITRINE_KERNEL=sse9: want generic, avx2 or avx512, or unset it") {
		t.Errorf("sse9: %v, %s", err, out)
	}
}

// A machine that lacks a path uses the best one it supports, and reports its name.
func TestPathOfALesserMachine(t *testing.T) {
	const lackAVX2, lackAVX512 = ": this machine has no AVX2 with FMA and BMI2: unset it",
		": this machine has no AVX-512 F, DQ and VL: unset it"
	for _, c := range []struct {
		name        string
		paths       int
		want, error string
	}{
		{"", 1, "generic", ""},
		{"generic", 1, "generic", ""},
		{"avx2", 1, "generic", "VITRINE_KERNEL=avx2" + lackAVX2},
		{"avx512", 1, "generic", "VITRINE_KERNEL=avx512" + lackAVX512},
		{"", 2, "avx2", ""},
		{"generic", 2, "generic", ""},
		{"avx512", 2, "avx2", "VITRINE_KERNEL=avx512" + lackAVX512},
		{"sse9", 2, "avx2",
			"VITRINE_KERNEL=sse9: want generic, avx2 or avx512, or unset it for the best that the machine has"},
		{"avx2", 3, "avx2", ""},
		{"", 3, "avx512", ""},
	} {
		got, err := kernel.Choose(c.name, c.paths)
		if got != c.want || fmt.Sprint(err) != c.error && (err != nil || c.error != "") {
			t.Errorf("%q of %d paths: %s and the error %v, want %s and %s", c.name, c.paths, got, err, c.want, c.error)
		}
	}
}

// bits holds checksums of the kernels' results, computed with AVX-512 by an earlier version, when paths could still
// differ; the checksum of Sincos comes from portable.Sincos.
var bits = map[string]string{
	"Exp":                 "17586d0976f11b74",
	"Sigmoid":             "a6bdbd6d07fd06c7",
	"Tanh":                "b869c540040bca69",
	"Sincos":              "3e946d64dbc8b7fb",
	"Softplus":            "39db5237e344fecb",
	"LogSumExp1":          "85542985f0e5984f",
	"Dot":                 "0c09b0089b1ee48e",
	"Sum":                 "53e49693b72af485",
	"Axpy":                "06b28ec937d30ddc",
	"Mul":                 "fe2fb81215231012",
	"MulComplement":       "764291e1ae524227",
	"AddSquares":          "75be11b5519339ae",
	"Columns":             "cbe3b250b9922c19",
	"Combine":             "c15a0d4dbef6ea00",
	"Combine of a column": "a8fc2dac6553b83c",
	"Bilinear":            "6dfbc53046c3ae7d",
	"MulPairs":            "105f3010e20b54dc",
	"Gemv":                "903f2c3230124f64",
	"GemvTrans":           "6e161680735c3459",
	"SymMulVec":           "89f5156c26d22508",
	"SymRankOne":          "b8db2c3afa061fa9",
	"SymRankK":            "228a043282da2f93",
	"SymQuadForms":        "4adc56e86cdb807e",
}
