package env

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Formula is a truth u_i = f(x_i, w*) outside every utility family, so no learner's model contains it.
type Formula struct {
	name string
	d    int       // the number of features
	w    []float64 // w*
	f    func(x, w []float64) float64
}

// NumFeatures implements [Truth].
func (t *Formula) NumFeatures() int { return t.d }

// Utilities implements [Truth].
func (t *Formula) Utilities(dst []float64, x *mat.Dense) {
	checkShape(t.name, t.d, dst, x)
	for i := range dst {
		dst[i] = t.f(x.RawRowView(i), t.w)
	}
}

// Params implements [Truth].
func (t *Formula) Params() []float64 { return t.w }

// newFormula draws w* from U[−1, 1]^d. It panics if d is less than least.
func newFormula(name string, d, least int, rng *rand.Rand, f func(x, w []float64) float64) *Formula {
	if d < least {
		panic("env: a truth " + name + " needs more features")
	}
	return &Formula{name, d, direction(d, rng), f}
}

// direction draws w* from U[−1, 1]^d.
func direction(d int, rng *rand.Rand) []float64 {
	w := make([]float64, d)
	for j := range w {
		w[j] = uniform(-1, 1, rng)
	}
	return w
}

// NewCosine returns the truth of the paper's misspecified setting,
//
//	f(x) = cos(2π xᵀw*) − ½ xᵀw*
//
// with w* from U[−1, 1]^d. If norm is positive, w* is then multiplied by norm/√d, so that ‖w*‖ ≤ norm. With norm = 1
// the truth satisfies Assumption 2 of the paper, which the paper's experiments do not respect.
func NewCosine(d int, norm float64, rng *rand.Rand) *Formula {
	t := newFormula("cosine", d, 1, rng, func(x, w []float64) float64 {
		v := 0.0
		for j, xj := range x {
			v += float64(xj * w[j])
		}
		return math.Cos(2*math.Pi*v) - float64(v/2)
	})
	if norm > 0 {
		floats.Scale(norm/math.Sqrt(float64(d)), t.w)
	}
	return t
}

// NewAbs returns a truth with two kinks, f(x) = |xᵀw*| − |x_1 − x_2|. It panics unless d ≥ 2.
func NewAbs(d int, rng *rand.Rand) *Formula {
	return newFormula("abs", d, 2, rng, func(x, w []float64) float64 {
		return math.Abs(floats.Dot(x, w)) - math.Abs(x[0]-x[1])
	})
}

// NewThreshold returns a truth with one interval that customers like. Outside it all items are equal:
//
//	f(x) = 2·1{0.5 < xᵀw* < 1.2} − ½
func NewThreshold(d int, rng *rand.Rand) *Formula {
	return newFormula("threshold", d, 1, rng, func(x, w []float64) float64 {
		if v := floats.Dot(x, w); 0.5 < v && v < 1.2 {
			return 1.5
		}
		return -0.5
	})
}

// NewSawtooth returns a truth that repeatedly climbs and drops along one direction,
//
//	f(x) = 3 (xᵀw* − ⌊xᵀw*⌋) − 2
func NewSawtooth(d int, rng *rand.Rand) *Formula {
	return newFormula("sawtooth", d, 1, rng, func(x, w []float64) float64 {
		v := floats.Dot(x, w)
		return float64(3*(v-math.Floor(v))) - 2
	})
}

// NewRadial returns a truth with one ideal item, a bump around w*, f(x) = 2 exp(−‖x − w*‖²) − ½.
func NewRadial(d int, rng *rand.Rand) *Formula {
	return newFormula("radial", d, 1, rng, func(x, w []float64) float64 {
		return float64(2*math.Exp(-squaredDistance(x, w))) - 0.5
	})
}

// NewNeedle returns a truth with one narrow bump around w*, which few items of a context reach,
//
//	f(x) = 4 exp(−2 ‖x − w*‖²) − 3/2
func NewNeedle(d int, rng *rand.Rand) *Formula {
	return newFormula("needle", d, 1, rng, func(x, w []float64) float64 {
		return float64(4*math.Exp(-2*squaredDistance(x, w))) - 1.5
	})
}

func squaredDistance(x, w []float64) (sum float64) {
	for j, xj := range x {
		sum += float64((xj - w[j]) * (xj - w[j]))
	}
	return sum
}

// NewProduct returns a truth with an interaction of two features,
//
//	f(x) = (xᵀq_1)(xᵀq_2) − ½ xᵀq_3
//
// with orthonormal q_1, q_2, q_3, drawn uniformly: x_1 x_2 − ½ x_3 in other coordinates. No function of one direction
// of x approximates it. Its parameters are q_1, q_2 and q_3, one after the other. NewProduct panics unless d ≥ 3.
func NewProduct(d int, rng *rand.Rand) *Formula {
	if d < 3 {
		panic("env: a product needs at least 3 features")
	}
	return &Formula{"product", d, slices.Concat(frame(3, d, rng)...), func(x, q []float64) float64 {
		return float64(floats.Dot(x, q[:d])*floats.Dot(x, q[d:2*d])) - float64(floats.Dot(x, q[2*d:])/2)
	}}
}

// NewSegments returns a truth of two customer segments with different tastes. The last feature c is the customer's, and
// its sign determines the segment:
//
//	f(x) = 2 xᵀw_1 − ½ if c < 0,   2 xᵀw_2 − ½ otherwise
//
// where w_1 and w_2 are drawn from U[−1, 1]^{d−1}, or w_2 = −w_1 if the segments are opposed, and their last entries
// are 0. Its parameters are w_1 and w_2. NewSegments panics unless d ≥ 2.
func NewSegments(d int, opposed bool, rng *rand.Rand) *Formula {
	t := newFormula("segments", d, 2, rng, func(x, w []float64) float64 {
		own := w[d:]
		if x[d-1] < 0 {
			own = w[:d]
		}
		return float64(2*floats.Dot(x, own)) - 0.5
	})
	t.w = append(t.w, direction(d, rng)...)
	t.w[d-1], t.w[2*d-1] = 0, 0
	if opposed {
		floats.ScaleTo(t.w[d:], -1, t.w[:d])
	}
	return t
}
