// Package theory compares the paper's theory with experiments: the distance of ONL-MNL's estimates from the equivalence
// set, the coverage of its confidence set, the optimism of its utilities, the sums and constants that the proofs bound,
// and the growth of regret.
package theory

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/stat/combin"

	"vitrine/utility"
)

// Symmetries are the symmetries of networks with one hidden layer of m units,
//
//	f_w(x) = Σ_k v_k a(θ_kᵀx + b_k) + c,   w = [θ, b, v, c] in the order of utility.MLP
//
// that leave f_w unchanged: the permutations of the units and, unit by unit, the sign, because tanh(−z) = −tanh(z) and
// sigmoid(−z) = 1 − sigmoid(z),
//
//	(θ_k, b_k, v_k) → −(θ_k, b_k, v_k)   and, for sigmoid, c → c + v_k
//
// A network that is not equal to any smaller one has no other symmetries (Sussmann 1992), so that the 2^m m! images of
// w* are the equivalence set W*.
type Symmetries struct {
	Features, Hidden int
	Activation       utility.Activation // Sigmoid or Tanh
}

// maxHidden bounds the enumeration of signs and permutations.
const maxHidden = 5

func (s Symmetries) check() error {
	if s.Features < 1 || s.Hidden < 1 || s.Hidden > maxHidden {
		return fmt.Errorf("theory: a hidden layer of %d units on %d features: want 1 to %d units and a feature",
			s.Hidden, s.Features, maxHidden)
	}
	if s.Activation != utility.Sigmoid && s.Activation != utility.Tanh {
		return fmt.Errorf("theory: the symmetries of activation %v are not known here: want sigmoid or tanh",
			s.Activation)
	}
	return nil
}

// NumParams returns d_w.
func (s Symmetries) NumParams() int { return s.Hidden*(s.Features+2) + 1 }

// unit copies (θ_k, b_k, v_k) to dst, which has length d + 2.
func (s Symmetries) unit(dst, w []float64, k int) {
	d, m := s.Features, s.Hidden
	copy(dst, w[k*d:(k+1)*d])
	dst[d], dst[d+1] = w[m*d+k], w[m*(d+1)+k]
}

// Image returns the image of w with unit order[k] of w as unit k, and with the opposite sign if bit order[k] of flips
// is set.
func (s Symmetries) Image(w []float64, order []int, flips uint) []float64 {
	d, m := s.Features, s.Hidden
	image, u := make([]float64, len(w)), make([]float64, d+2)
	for k, j := range order {
		s.unit(u, w, j)
		if flips>>j&1 == 1 {
			for i := range u {
				u[i] = -u[i]
			}
		}
		copy(image[k*d:], u[:d])
		image[m*d+k], image[m*(d+1)+k] = u[d], u[d+1]
	}
	image[len(w)-1] = s.output(w, flips)
	return image
}

// output returns c for the image of w.
func (s Symmetries) output(w []float64, flips uint) float64 {
	c := w[len(w)-1]
	if s.Activation == utility.Sigmoid {
		for f := flips; f != 0; f &= f - 1 {
			c += w[s.Hidden*(s.Features+1)+bits.TrailingZeros(f)]
		}
	}
	return c
}

// Nearest returns w̃ = argmin ‖w − w̃‖ over the images w̃ of star, and the distance. It returns an error for other
// shapes.
func (s Symmetries) Nearest(w, star []float64) (nearest []float64, distance float64, err error) {
	if err := s.check(); err != nil {
		return nil, 0, err
	}
	if d := s.NumParams(); len(w) != d || len(star) != d {
		return nil, 0, fmt.Errorf("theory: %d and %d parameters, want %d", len(w), len(star), d)
	}
	m := s.Hidden
	// kept[k][j] and flipped[k][j] are ‖unit k of w ∓ unit j of star‖².
	kept, flipped, cost := square(m), square(m), square(m)
	a, b := make([]float64, s.Features+2), make([]float64, s.Features+2)
	for k := range m {
		s.unit(a, w, k)
		for j := range m {
			s.unit(b, star, j)
			for i := range a {
				kept[k][j] += (a[i] - b[i]) * (a[i] - b[i])
				flipped[k][j] += (a[i] + b[i]) * (a[i] + b[i])
			}
		}
	}
	best := math.Inf(1)
	var order []int
	var flips uint
	for f := range uint(1) << m {
		offset := w[len(w)-1] - s.output(star, f)
		for k := range m {
			for j := range m {
				cost[k][j] = kept[k][j]
				if f>>j&1 == 1 {
					cost[k][j] = flipped[k][j]
				}
			}
		}
		if o, sum := assign(cost); sum+offset*offset < best {
			best, order, flips = sum+offset*offset, o, f
		}
	}
	return s.Image(star, order, flips), math.Sqrt(best), nil
}

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// assign returns the permutation with the smallest Σ_k cost[k][order[k]], and that sum.
func assign(cost [][]float64) (order []int, sum float64) {
	sum = math.Inf(1)
	rows := make([]int, len(cost))
	for all := combin.NewPermutationGenerator(len(cost), len(cost)); all.Next(); {
		total := 0.0
		for j, k := range all.Permutation(rows) {
			total += cost[k][j]
		}
		if total < sum {
			order, sum = slices.Clone(rows), total
		}
	}
	inverse := make([]int, len(order))
	for j, k := range order {
		inverse[k] = j
	}
	return inverse, sum
}
