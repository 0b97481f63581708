package env_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// utilities returns the truth's utilities of the rows of x.
func utilities(truth env.Truth, x *mat.Dense) []float64 {
	n, _ := x.Dims()
	u := make([]float64, n)
	truth.Utilities(u, x)
	return u
}

// items draws n items with three features.
func items(n int, seed uint64) *mat.Dense {
	x := mat.NewDense(n, 3, nil)
	env.Gaussian{}.Draw(x, newRand(seed))
	return x
}

// Section "Numerical Experiments": f(x) = linear2(sigmoid(linear1(x))) with three hidden neurons, written out with
// w* = [W_1, b_1, W_2, b_2].
func TestRealizableTruthIsThePapersNetwork(t *testing.T) {
	truth, x := realizable(1), items(20, 2)
	w := truth.Params()
	expect.Equal(fatal.T(t), len(w), 16, "w* has n entries")
	for i, got := range utilities(truth, x) {
		want := w[15]
		for k := range 3 {
			v := w[9+k]
			for j := range 3 {
				v += w[3*k+j] * x.At(i, j)
			}
			want += w[12+k] / (1 + math.Exp(-v))
		}
		if math.Abs(got-want) > 1e-14 {
			t.Errorf("f(x_%d) = %v, want %v", i, got, want)
		}
	}
}

func TestLinearTruthIsLinear(t *testing.T) {
	truth, x := env.NewFamily(utility.NewLinear(3, true), -1, 1, newRand(3)), items(20, 4)
	w := truth.Params()
	for i, got := range utilities(truth, x) {
		want := w[0]*x.At(i, 0) + w[1]*x.At(i, 1) + w[2]*x.At(i, 2) + w[3]
		if math.Abs(got-want) > 1e-15 {
			t.Errorf("f(x_%d) = %v, want %v", i, got, want)
		}
	}
}

// Section "Numerical Experiments": f(x) = cos(2π xᵀw*) − ½ xᵀw*, at the quarters of its first period, along w*.
func TestCosineByHand(t *testing.T) {
	truth := env.NewCosine(3, 0, newRand(5))
	w := mat.NewVecDense(3, truth.Params())
	along := []float64{0, 0.25, 0.5, 0.75, 1, -0.5} // xᵀw*
	want := []float64{1, -0.125, -1.25, -0.375, 0.5, -0.75}
	x := mat.NewDense(len(along), 3, nil)
	x.Outer(1/mat.Dot(w, w), mat.NewVecDense(len(along), along), w)
	for i, got := range utilities(truth, x) {
		if math.Abs(got-want[i]) > 1e-14 {
			t.Errorf("f = %v where xᵀw* = %v, want %v", got, along[i], want[i])
		}
	}
}

// Assumption 2 requires ‖w*‖ ≤ 1. At d = 3 the same draw w* becomes w*/√3.
func TestCosineNormBoundsItsParameters(t *testing.T) {
	for seed := range uint64(200) {
		drawn, bounded := env.NewCosine(3, 0, newRand(seed)).Params(), env.NewCosine(3, 1, newRand(seed)).Params()
		norm := mat.Norm(mat.NewVecDense(3, bounded), 2)
		if norm > 1 {
			t.Errorf("seed %d: ‖w*‖ = %v with norm = 1", seed, norm)
		}
		for j := range drawn {
			if math.Abs(bounded[j]-drawn[j]/math.Sqrt(3)) > 1e-15 {
				t.Errorf("seed %d: w*_%d = %v with norm = 1, want %v/√3", seed, j, bounded[j], drawn[j])
			}
		}
		twice := mat.Norm(mat.NewVecDense(3, env.NewCosine(3, 2, newRand(seed)).Params()), 2)
		if math.Abs(twice-2*norm) > 1e-15*norm*4 {
			t.Errorf("seed %d: ‖w*‖ = %v with norm = 2, want twice %v", seed, twice, norm)
		}
	}
}

// Assumption 2 for a family: a draw outside the ball is scaled back to its sphere; a draw inside stays.
func TestFamilyWithinABall(t *testing.T) {
	m := utility.NewMLP(3, []int{3}, utility.Sigmoid)
	outside := 0
	for seed := range uint64(200) {
		drawn := mat.NewVecDense(16, env.NewFamily(m, -0.45, 0.45, newRand(seed)).Params())
		bounded := mat.NewVecDense(16, env.NewFamily(m, -0.45, 0.45, newRand(seed)).Within(1).Params())
		want := mat.NewVecDense(16, nil)
		want.CopyVec(drawn)
		if norm := mat.Norm(drawn, 2); norm > 1 {
			outside++
			want.ScaleVec(1/norm, drawn)
		}
		if norm := mat.Norm(bounded, 2); norm > 1+1e-15 || !mat.EqualApprox(bounded, want, 1e-15) {
			t.Errorf("seed %d: w* = %v of norm %v, want %v",
				seed, bounded.RawVector().Data, norm, want.RawVector().Data)
		}
	}
	if outside < 50 || outside > 150 {
		t.Errorf("%d of 200 draws are outside the ball: the test is for both", outside)
	}
}

// The frame of a product is orthonormal, and along its axes the truth is x_1 x_2 − ½ x_3 of the coordinates.
func TestProductByHand(t *testing.T) {
	const d = 5
	truth := env.NewProduct(d, newRand(5))
	q := mat.NewDense(3, d, truth.Params())
	var gram mat.Dense
	gram.Mul(q, q.T())
	if eye := mat.NewDiagDense(3, []float64{1, 1, 1}); !mat.EqualApprox(&gram, eye, 1e-15) {
		t.Errorf("the frame has the Gram matrix\n%v", mat.Formatted(&gram))
	}
	along := mat.NewDense(4, 3, []float64{1, 0, 0, 2, 3, 0, -1, 2, 4, 0.5, 0.5, -1}) // coordinates
	want := []float64{0, 6, -4, 0.75}
	var x mat.Dense
	x.Mul(along, q)
	for i, got := range utilities(truth, &x) {
		if math.Abs(got-want[i]) > 1e-13 {
			t.Errorf("f = %v at the coordinates %v, want %v", got, along.RawRowView(i), want[i])
		}
	}
}

// f = 3/2 strictly inside (0.5, 1.2), along w*, and −½ elsewhere.
func TestThresholdByHand(t *testing.T) {
	truth := env.NewThreshold(3, newRand(5))
	w := mat.NewVecDense(3, truth.Params())
	along := []float64{-1, 0.49, 0.51, 1, 1.19, 1.21, 5} // xᵀw*
	x := mat.NewDense(len(along), 3, nil)
	x.Outer(1/mat.Dot(w, w), mat.NewVecDense(len(along), along), w)
	expect.Equal(t, utilities(truth, x), []float64{-0.5, -0.5, 1.5, 1.5, 1.5, -0.5, -0.5}, "f at xᵀw*", along)
	edge := env.NewThreshold(1, newRand(5))
	if u := utilities(edge, mat.NewDense(1, 1, []float64{0.5 / edge.Params()[0]})); u[0] != -0.5 {
		t.Errorf("f = %v at the edge", u[0])
	}
}

// f = 3/2 at w*, 2/e − ½ at distance 1, and −½ far away.
func TestRadialByHand(t *testing.T) {
	truth := env.NewRadial(3, newRand(5))
	x := mat.NewDense(3, 3, slices.Repeat(truth.Params(), 3))
	x.Set(1, 1, x.At(1, 1)-1)
	x.Set(2, 2, 1e4)
	want := []float64{1.5, 2/math.E - 0.5, -0.5}
	for i, got := range utilities(truth, x) {
		if math.Abs(got-want[i]) > 1e-14 {
			t.Errorf("f(x_%d) = %v, want %v", i, got, want[i])
		}
	}
}

// A truth is drawn once: the same seed gives the same world, and another seed a different one.
func TestTruthsComeFromRng(t *testing.T) {
	for name, draw := range map[string]func(seed uint64) env.Truth{
		"mlp":       func(seed uint64) env.Truth { return realizable(seed) },
		"cosine":    func(seed uint64) env.Truth { return env.NewCosine(3, 0, newRand(seed)) },
		"product":   func(seed uint64) env.Truth { return env.NewProduct(4, newRand(seed)) },
		"threshold": func(seed uint64) env.Truth { return env.NewThreshold(3, newRand(seed)) },
		"radial":    func(seed uint64) env.Truth { return env.NewRadial(3, newRand(seed)) },
		"abs":       func(seed uint64) env.Truth { return env.NewAbs(3, newRand(seed)) },
		"needle":    func(seed uint64) env.Truth { return env.NewNeedle(3, newRand(seed)) },
		"sawtooth":  func(seed uint64) env.Truth { return env.NewSawtooth(3, newRand(seed)) },
		"segments":  func(seed uint64) env.Truth { return env.NewSegments(3, false, newRand(seed)) },
		"sparse":    func(seed uint64) env.Truth { return env.NewSparse(9, 3, newRand(seed)) },
	} {
		expect.Equal(t, draw(1).Params(), draw(1).Params(), name, "one seed, two truths")
		if cmp.Equal(draw(1).Params(), draw(2).Params()) {
			t.Errorf("%s: two seeds, one truth", name)
		}
	}
}

// Truths outside the paper, written out for given items.
func TestHeldOutTruthsByHand(t *testing.T) {
	for _, c := range []struct {
		name  string
		truth env.Truth
		f     func(w, x []float64) float64
	}{
		{"abs", env.NewAbs(3, newRand(4)), func(w, x []float64) float64 {
			return math.Abs(w[0]*x[0]+w[1]*x[1]+w[2]*x[2]) - math.Abs(x[0]-x[1])
		}},
		{"needle", env.NewNeedle(3, newRand(4)), func(w, x []float64) float64 {
			return 4*math.Exp(-2*(math.Pow(x[0]-w[0], 2)+math.Pow(x[1]-w[1], 2)+math.Pow(x[2]-w[2], 2))) - 1.5
		}},
		{"sawtooth", env.NewSawtooth(3, newRand(4)), func(w, x []float64) float64 {
			v := w[0]*x[0] + w[1]*x[1] + w[2]*x[2]
			return 3*math.Mod(math.Mod(v, 1)+1, 1) - 2
		}},
		{"segments", env.NewSegments(3, false, newRand(4)), func(w, x []float64) float64 {
			if x[2] < 0 {
				return 2*(w[0]*x[0]+w[1]*x[1]) - 0.5
			}
			return 2*(w[3]*x[0]+w[4]*x[1]) - 0.5
		}},
		{"opposed segments", env.NewSegments(3, true, newRand(4)), func(w, x []float64) float64 {
			if x[2] < 0 {
				return 2*(w[0]*x[0]+w[1]*x[1]) - 0.5
			}
			return -2*(w[0]*x[0]+w[1]*x[1]) - 0.5
		}},
		{"shifted", env.Shifted{Truth: env.NewSparse(3, 2, newRand(4)), By: -4}, func(w, x []float64) float64 {
			return w[0]*x[0] + w[1]*x[1] + w[2]*x[2] - 4
		}},
	} {
		x := items(40, 5)
		for i, got := range utilities(c.truth, x) {
			if want := c.f(c.truth.Params(), x.RawRowView(i)); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: f(x_%d) = %v, want %v", c.name, i, got, want)
			}
		}
	}
}

// In a sparse truth exactly the given number of features matter, each by 1.
func TestSparseTruth(t *testing.T) {
	for seed := range uint64(20) {
		count := 0.0
		for _, w := range env.NewSparse(7, 3, newRand(seed)).Params() {
			if count += math.Abs(w); w != 0 && math.Abs(w) != 1 {
				t.Errorf("a slope of %v, want 0, 1 or −1", w)
			}
		}
		expect.Equal(t, count, 3, "features matter")
	}
}
