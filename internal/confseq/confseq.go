// Package confseq provides confidence sequences: intervals for a mean that hold at all times simultaneously, so you may
// look after every observation and stop at any time.
package confseq

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"vitrine/internal/fields"
	"vitrine/internal/portable"
	"vitrine/internal/precise"
)

// Mean summarises observations x_1, …, x_n with |x_t − x̂_t| ≤ b_t, where the centre x̂_t and the bound b_t are known
// before x_t. For the average conditional mean μ_n = (1/n) Σ E[x_t | past], it computes the empirical-Bernstein
// confidence sequence of Howard, Ramdas, McAuliffe and Sekhon (2021, Time-uniform, nonparametric, nonasymptotic
// confidence sequences, Annals of Statistics 49(2), Theorem 4) with their stitched boundary (Theorem 1, Equation 10):
//
//	P(for some n: μ_n < x̄_n − S_α(V_n)/n) ≤ α,   the same above,   V_n = Σ (x_t − x̂_t)²
//	S_α(v) = √(k₁² v ℓ + k₂² c² ℓ²) + k₂ c ℓ,   v at least c²
//	ℓ      = log h(log_η(v/c²)) + log(1/α),   h(k) = (k+1)^s ζ(s)
//	k₁     = (η^(1/4) + η^(−1/4))/√2,   k₂ = (√η + 1)/2,   η = 2, s = 1.4
//
// The means may drift, and observations may depend on earlier ones. c bounds all b_t so far and need not be known in
// advance: c = 2^k b, where b is the first positive bound and k ≥ 0 is as small as possible. The sequence for this k
// uses the error α/((k+1)(k+2)), which sums to α over k.
//
// The zero value contains no observations.
type Mean struct {
	N       uint64
	Sum     precise.Sum
	Squares precise.Sum // V_n
	First   float64     // the first positive bound
	Bound   float64     // the largest bound
}

// Block summarises observations in any order, because they share one centre. The centre must be known before the first
// observation.
type Block struct {
	Sums   Mean // its Squares are Σ (x − Centre)²
	Centre float64
}

// Begin returns a block centred on the mean of the observations so far.
func (m *Mean) Begin() Block {
	if m.N == 0 {
		return Block{}
	}
	return Block{Centre: m.Average()}
}

// Add adds an observation within bound of the centre.
func (b *Block) Add(x, bound float64) {
	m := &b.Sums
	m.N++
	m.Sum.Add(x)
	m.Squares.Join(precise.Square(x - b.Centre))
	m.Widen(bound)
}

// Replace replaces an observation around a centre.
func (m *Mean) Replace(before, after, centre float64) {
	m.Sum.Add(after)
	m.Sum.Add(-before)
	m.Squares.Join(precise.Square(after - centre))
	m.Squares.Join(precise.Square(before - centre).Minus())
}

// Widen takes the bound of an observation that was added with a smaller one.
func (m *Mean) Widen(bound float64) {
	if m.First == 0 {
		m.First = bound
	}
	m.Bound = max(m.Bound, bound)
}

// Add adds the observations of a block.
func (m *Mean) Add(b *Block) { m.Join(&b.Sums) }

// Join adds later observations.
func (m *Mean) Join(o *Mean) {
	m.N += o.N
	m.Sum.Join(o.Sum)
	m.Squares.Join(o.Squares)
	if m.First == 0 {
		m.First = o.First
	}
	m.Bound = max(m.Bound, o.Bound)
}

// Average returns x̄_n, or NaN without observations.
func (m *Mean) Average() float64 { return m.Sum.Value() / float64(m.N) }

// Low returns a lower bound on μ_n. The probability that it ever exceeds μ_n is at most alpha.
func (m *Mean) Low(alpha float64) float64 {
	if m.N == 0 {
		return math.Inf(-1)
	}
	return m.Average() - m.width(alpha)
}

// High returns an upper bound on μ_n. The probability that it ever falls below μ_n is at most alpha.
func (m *Mean) High(alpha float64) float64 {
	if m.N == 0 {
		return math.Inf(1)
	}
	return m.Average() + m.width(alpha)
}

// Interval returns bounds that contain μ_n at all times with a probability of at least 1 − alpha.
func (m *Mean) Interval(alpha float64) (low, high float64) {
	return m.Low(alpha / 2), m.High(alpha / 2)
}

// Until returns the number of observations after which Interval(alpha) extends at most half to each side, assuming that
// V_n keeps growing at the same rate. The result is at least n, and +Inf if it exceeds 10¹².
func (m *Mean) Until(alpha, half float64) float64 {
	return first(float64(m.N), func(n float64) bool {
		later := *m
		later.Squares = precise.Of(m.Squares.Value() * (n / float64(m.N)))
		return later.width(alpha/2)*float64(m.N) <= half*n
	})
}

// Plan returns the number of observations after which the lower bound of Interval(alpha) exceeds zero with a
// probability of at least power, if the observations have the mean gain > 0, the mean square around their centres, and
// the bound:
//
//	the smallest n with S_{α/2}(n·square)/n + z √(square/n) ≤ gain,   Φ(z) = power
//
// The result is +Inf if it exceeds 10¹². The bound may exceed zero earlier and then stay above it or not, so that the
// probability of having seen that by n is larger.
func Plan(alpha, power, gain, square, bound float64) float64 {
	z := distuv.UnitNormal.Quantile(power)
	return first(1, func(n float64) bool {
		m := Mean{N: uint64(n), Squares: precise.Of(n * square), First: bound, Bound: bound}
		return m.width(alpha/2)+float64(z*math.Sqrt(square/n)) <= gain
	})
}

// first returns the smallest whole number n from the given one on for which ok holds, or +Inf if it exceeds 10¹². ok
// holds for all larger n.
func first(n float64, ok func(n float64) bool) float64 {
	low, high := n, n
	for ; !ok(high); high *= 2 {
		if low = high; !(high <= 1e12) {
			return math.Inf(1)
		}
	}
	for high-low > 1 {
		if middle := math.Floor((low + high) / 2); ok(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

const (
	eta   = 2
	power = 1.4                // s
	zeta  = 3.1055472779775810 // ζ(s)
)

var (
	k1 = (math.Sqrt(math.Sqrt(eta)) + 1/math.Sqrt(math.Sqrt(eta))) / math.Sqrt2
	k2 = (math.Sqrt(eta) + 1) / 2
)

// leastBound takes the place of smaller first bounds, which bounds may do, so that c² is not 0.
const leastBound = 1e-150

// width returns S_α(V_n)/n.
func (m *Mean) width(alpha float64) float64 {
	c, k := m.First, 0.0
	if c == 0 {
		return 0 // all observations were known in advance
	}
	for c = max(c, leastBound); c < m.Bound; {
		c *= 2
		k++
	}
	return stitched(m.Squares.Value(), c, alpha/((k+1)*(k+2))) / float64(m.N)
}

// stitched returns S_α(v).
func stitched(v, c, alpha float64) float64 {
	v = max(v, c*c)
	l := float64(power*portable.Log(portable.Log(v/(c*c))/math.Ln2+1)) + portable.Log(zeta/alpha)
	return math.Sqrt(float64(k1*k1*v*l)+float64(k2*k2*c*c*l*l)) + float64(k2*c*l)
}

// Share returns bounds on the mean probability of n events if k of them happened. Each bound is wrong with a
// probability of at most alpha: it is the q with n KL(k/n ‖ q) <= log(1/alpha) (Hoeffding 1963, Probability
// inequalities for sums of bounded random variables, Theorem 1). The bounds hold for a single n, or for all n
// simultaneously with alpha/(n(n+1)).
func Share(k, n, alpha float64) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	mean, most := k/n, -portable.Log(alpha)/n
	bound := func(inside, outside float64) float64 {
		for range 60 {
			if q := (inside + outside) / 2; divergence(mean, q) <= most {
				inside = q
			} else {
				outside = q
			}
		}
		return inside
	}
	return bound(mean, 0), bound(mean, 1)
}

// divergence returns KL(p ‖ q) for two coins.
func divergence(p, q float64) float64 {
	d := 0.0
	if p > 0 {
		d += float64(p * portable.Log(p/q))
	}
	if p < 1 {
		d += float64((1 - p) * portable.Log((1-p)/(1-q)))
	}
	return d
}

// Fields encodes or decodes a mean.
func (m *Mean) Fields(f *fields.Fields) {
	f.Uvarint(&m.N)
	f.Float(m.Sum.Parts())
	f.Float(m.Squares.Parts())
	f.Float(&m.First, &m.Bound)
}

// Fields encodes or decodes a block.
func (b *Block) Fields(f *fields.Fields) {
	f.Float(&b.Centre)
	b.Sums.Fields(f)
}
