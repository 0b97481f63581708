package offpolicy

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
)

// Law is the distribution μ of the page S ⊂ {0, …, N−1} in one round. With 1_S ∈ {0, 1}ᴺ, it knows
//
//	Γ = E_μ 1_S 1_Sᵀ
//
// whose diagonal has the probabilities that an item is shown.
type Law interface {
	// Items returns N.
	Items() int

	// MaxSize returns the size of the largest page of positive probability.
	MaxSize() int

	// Inclusion returns P(i ∈ S).
	Inclusion(i int) float64

	// Propensity returns μ(s).
	Propensity(s vitrine.Assortment) float64

	// Square returns vᵀΓv = E_μ (Σ_{i∈S} v_i)² of a vector of length N.
	Square(v []float64) float64

	// Solve stores in dst, of length N, a solution z of Γz = 1_T. It returns false if there is
	// none: then pages of T's items are not combinations of the pages that μ shows. All solutions
	// have the same weight Σ_{i∈S} z_i of every page S of positive probability.
	Solve(dst []float64, page vitrine.Assortment) bool
}

// solves reports whether a residual of Γz = q is due to rounding only.
const tolerance = 1e-8

// overlap returns |s ∩ t| of two sorted sets.
func overlap(s, t vitrine.Assortment) (n int) {
	for i, j := 0, 0; i < len(s) && j < len(t); {
		switch {
		case s[i] < t[j]:
			i++
		case s[i] > t[j]:
			j++
		default:
			n, i, j = n+1, i+1, j+1
		}
	}
	return n
}

// sets shows the policy's page g with probability 1−ε, and otherwise a page drawn uniformly.
//
//	Γ = ε(a−b) I + εb 11ᵀ + (1−ε) ggᵀ
//
// where a and b are the probabilities that a uniform page has an item, and a pair of items.
type sets struct {
	epsilon float64
	n       int
	sizes   []float64 // the probability of each size of a uniform page
	page    vitrine.Assortment
	a, b    float64
}

// EpsilonSets returns the law that shows the page with probability 1−ε, and otherwise a set drawn
// uniformly from the nonempty sets of at most k of n items. It panics unless 0 ≤ ε ≤ 1 and
// 1 ≤ k ≤ n.
func EpsilonSets(epsilon float64, n, k int, page vitrine.Assortment) Law {
	sizes := make([]float64, k+1)
	total := 0.0
	for l := 1; l <= k; l++ {
		sizes[l] = math.Exp(logChoose(n, l) - logChoose(n, k))
		total += sizes[l]
	}
	for l := range sizes {
		sizes[l] /= total
	}
	return newSets(epsilon, n, sizes, page)
}

// EpsilonPages returns the law that shows the page with probability 1−ε, and otherwise exactly k
// of n items drawn uniformly. It panics unless 0 ≤ ε ≤ 1 and 1 ≤ k ≤ n.
func EpsilonPages(epsilon float64, n, k int, page vitrine.Assortment) Law {
	sizes := make([]float64, k+1)
	sizes[k] = 1
	return newSets(epsilon, n, sizes, page)
}

func newSets(epsilon float64, n int, sizes []float64, page vitrine.Assortment) Law {
	if k := len(sizes) - 1; !(epsilon >= 0 && epsilon <= 1) || k < 1 || k > n {
		panic(fmt.Sprintf("offpolicy: a law of ε = %v on sets of %d of %d items", epsilon, k, n))
	}
	s := &sets{epsilon: epsilon, n: n, sizes: sizes, page: page}
	for l, p := range sizes {
		l := float64(l)
		s.a += p * l / float64(n)
		if n > 1 {
			s.b += p * l * (l - 1) / (float64(n) * float64(n-1))
		}
	}
	return s
}

// logChoose returns log C(n, k).
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

func (l *sets) Items() int   { return l.n }
func (l *sets) MaxSize() int { return max(len(l.page), len(l.sizes)-1) }

func (l *sets) Inclusion(i int) float64 {
	p := l.epsilon * l.a
	if _, own := slices.BinarySearch(l.page, i); own {
		p += 1 - l.epsilon
	}
	return p
}

func (l *sets) Propensity(s vitrine.Assortment) float64 {
	p := 0.0
	if k := len(s); k < len(l.sizes) && l.sizes[k] > 0 {
		p = l.epsilon * l.sizes[k] * math.Exp(-logChoose(l.n, k))
	}
	if slices.Equal(s, l.page) {
		p += 1 - l.epsilon
	}
	return p
}

func (l *sets) Square(v []float64) float64 {
	sum, squares := sums(v)
	own := sumOf(v, l.page)
	return l.epsilon*((l.a-l.b)*squares+l.b*sum*sum) + (1-l.epsilon)*own*own
}

// sumOf returns Σ_{i∈s} v_i.
func sumOf(v []float64, s vitrine.Assortment) (sum float64) {
	for _, i := range s {
		sum += v[i]
	}
	return sum
}

// Solve implements Law. The items of g are alike, and so are the others. So Γ is α I on the vectors
// whose entries sum to 0 on g and on the rest, and on the two vectors 1_g/√k and 1_rest/√m it is a
// 2×2 matrix.
func (l *sets) Solve(dst []float64, page vitrine.Assortment) bool {
	alpha := l.epsilon * (l.a - l.b)
	k := float64(len(l.page))
	m := float64(l.n) - k
	own := float64(overlap(l.page, page))
	other := float64(len(page)) - own
	// In the basis 1_g, 1_rest the equations of the sums are (α + kβ) x + m c y = own/k and so on.
	beta, rest := l.epsilon*l.b+1-l.epsilon, l.epsilon*l.b
	x, y := solve2(alpha+k*beta, m*rest, k*rest, alpha+m*rest, ratio(own, k), ratio(other, m))
	scale := 0.0
	if alpha > tolerance*l.epsilon {
		scale = 1 / alpha
	}
	for i := range dst {
		dst[i] = y - scale*ratio(other, m)
	}
	for _, i := range l.page {
		dst[i] = x - scale*ratio(own, k)
	}
	for _, i := range page {
		dst[i] += scale
	}
	return l.solved(dst, page)
}

// solved reports whether Γz = 1_T.
func (l *sets) solved(z []float64, page vitrine.Assortment) bool {
	alpha, own := l.epsilon*(l.a-l.b), sumOf(z, l.page)
	sum, _ := sums(z)
	t, g := 0, 0
	for i, v := range z {
		r := alpha*v + l.epsilon*l.b*sum
		if g < len(l.page) && l.page[g] == i {
			r += (1 - l.epsilon) * own
			g++
		}
		if t < len(page) && page[t] == i {
			r--
			t++
		}
		if !(math.Abs(r) < tolerance) {
			return false
		}
	}
	return true
}

// ratio returns a/b, and 0 for b = 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// solve2 returns a solution of ax + by = p, cx + dy = q; of a singular system a solution of as many
// of the equations as it has.
func solve2(a, b, c, d, p, q float64) (x, y float64) {
	det := a*d - b*c
	if math.Abs(det) > 1e-14*max(math.Abs(a*d), math.Abs(b*c)) {
		return (p*d - b*q) / det, (a*q - p*c) / det
	}
	switch {
	case a != 0:
		return p / a, 0
	case d != 0:
		return 0, q / d
	}
	return 0, 0
}

// swaps shows the policy's page g with probability 1−ε, and otherwise g with one of its items
// replaced, by a swap (out, in) drawn uniformly from F feasible ones. With B_ij = 1 if item i of g
// may be replaced by item j, c = B1 and d = Bᵀ1,
//
//	Γ_gg = 11ᵀ − (ε/F)(c1ᵀ + 1cᵀ − diag c),  Γ_gj = (ε/F)(d_j 1 − B_j),  Γ_jj = (ε/F) d_j
//
// and 0 for two items outside g.
type swaps struct {
	epsilon float64
	n       int
	page    vitrine.Assortment
	place   []int    // of each item: its place in the page, or -1
	may     [][]bool // B by places; nil if all swaps are feasible
	c       []float64
	d       []float64 // by item
	count   float64   // F
}

// Swaps returns the law that shows the page of some of n items with probability 1−ε, and otherwise
// a page in which one item of it is replaced by one outside it, by a swap drawn uniformly. may[k][j]
// says whether item j may replace the k-th item of the page; nil allows all swaps. If no swap is
// feasible, the page is shown with probability 1. It panics unless 0 ≤ ε ≤ 1 and may has N columns.
func Swaps(epsilon float64, n int, page vitrine.Assortment, may [][]bool) Law {
	if !(epsilon >= 0 && epsilon <= 1) || may != nil && len(may) != len(page) {
		panic(fmt.Sprintf("offpolicy: a law of ε = %v on swaps of %d items, with rules for %d", epsilon, len(page), len(may)))
	}
	s := &swaps{epsilon: epsilon, n: n, page: page, may: may, place: make([]int, n), c: make([]float64, len(page)), d: make([]float64, n)}
	for i := range s.place {
		s.place[i] = -1
	}
	for k, i := range page {
		s.place[i] = k
	}
	for k := range page {
		for j := range n {
			if s.feasible(k, j) {
				s.c[k]++
				s.d[j]++
				s.count++
			}
		}
	}
	if s.count == 0 {
		s.epsilon, s.count = 0, 1
	}
	return s
}

func (l *swaps) feasible(k, j int) bool {
	return l.place[j] < 0 && (l.may == nil || l.may[k][j])
}

func (l *swaps) Items() int   { return l.n }
func (l *swaps) MaxSize() int { return len(l.page) }

func (l *swaps) Inclusion(i int) float64 {
	if k := l.place[i]; k >= 0 {
		return 1 - l.epsilon*l.c[k]/l.count
	}
	return l.epsilon * l.d[i] / l.count
}

func (l *swaps) Propensity(s vitrine.Assortment) float64 {
	same := overlap(s, l.page)
	switch {
	case len(s) != len(l.page):
		return 0
	case same == len(s):
		return 1 - l.epsilon
	case same < len(s)-1:
		return 0
	}
	out, in := -1, -1
	for k, i := range l.page {
		if _, ok := slices.BinarySearch(s, i); !ok {
			out = k
		}
	}
	for _, i := range s {
		if l.place[i] < 0 {
			in = i
		}
	}
	if !l.feasible(out, in) {
		return 0
	}
	return l.epsilon / l.count
}

func (l *swaps) Square(v []float64) float64 {
	own := sumOf(v, l.page)
	square := (1 - l.epsilon) * own * own
	for k, i := range l.page {
		for j := range v {
			if l.feasible(k, j) {
				swapped := own - v[i] + v[j]
				square += l.epsilon / l.count * swapped * swapped
			}
		}
	}
	return square
}

// Solve implements Law. The items outside g are eliminated, which leaves the equations of g,
//
//	(Γ_gg − Σ_j Γ_gj Γ_gjᵀ / Γ_jj) z_g = q_g − Σ_j Γ_gj q_j / Γ_jj
func (l *swaps) Solve(dst []float64, page vitrine.Assortment) bool {
	clear(dst)
	q := make([]float64, l.n)
	for _, i := range page {
		q[i] = 1
	}
	each := l.epsilon / l.count
	k := len(l.page)
	if k == 0 {
		return len(page) == 0
	}
	s, right := mat.NewSymDense(k, nil), make([]float64, k)
	for a := range k {
		right[a] = q[l.page[a]]
		for b := a; b < k; b++ {
			v := 1 - each*(l.c[a]+l.c[b])
			if a == b {
				v += each * l.c[a]
			}
			s.SetSym(a, b, v)
		}
	}
	column := make([]float64, k)
	for j, d := range l.d {
		if d == 0 || each == 0 {
			if q[j] != 0 && l.place[j] < 0 {
				return false
			}
			continue
		}
		l.column(column, j)
		for a, u := range column {
			right[a] -= u * q[j] / d
			for b := a; b < k; b++ {
				s.SetSym(a, b, s.At(a, b)-each*u*column[b]/d)
			}
		}
	}
	z := solveSymmetric(s, right)
	for a, i := range l.page {
		dst[i] = z[a]
	}
	for j, d := range l.d {
		if d == 0 || each == 0 {
			continue
		}
		l.column(column, j)
		v := q[j] / each
		for a, u := range column {
			v -= u * z[a]
		}
		dst[j] = v / d
	}
	// The equations of g; the others hold by construction.
	for a, i := range l.page {
		r := -q[i]
		for b, j := range l.page {
			v := 1 - each*(l.c[a]+l.c[b])
			if a == b {
				v += each * l.c[a]
			}
			r += v * dst[j]
		}
		for j, d := range l.d {
			if d > 0 {
				v := d
				if l.feasible(a, j) {
					v--
				}
				r += each * v * dst[j]
			}
		}
		if !(math.Abs(r) < tolerance) {
			return false
		}
	}
	return true
}

// column stores Γ_gj F/ε = d_j 1 − B_j in dst.
func (l *swaps) column(dst []float64, j int) {
	for a := range dst {
		dst[a] = l.d[j]
		if l.feasible(a, j) {
			dst[a]--
		}
	}
}

// solveSymmetric returns the solution of least norm of Sz = q, of its projection if there is none.
func solveSymmetric(s *mat.SymDense, q []float64) []float64 {
	n := len(q)
	z := make([]float64, n)
	var e mat.EigenSym
	if !e.Factorize(s, true) {
		return z
	}
	var v mat.Dense
	e.VectorsTo(&v)
	values := e.Values(nil)
	largest := max(math.Abs(values[0]), math.Abs(values[n-1]))
	for m, value := range values {
		if math.Abs(value) <= 1e-11*largest {
			continue
		}
		dot := 0.0
		for i := range q {
			dot += v.At(i, m) * q[i]
		}
		for i := range z {
			z[i] += dot / value * v.At(i, m)
		}
	}
	return z
}

// independent draws the item of each slot by itself, from items of the slot's own.
type independent struct {
	slot  []int
	p     []float64
	slots int
}

// Independent returns the law of a page that has an item from each slot, drawn by itself: item i is in its slot, slot[i], with
// probability p[i]. The probabilities of a slot's items have the sum 1. With one slot it is the law of a contextual bandit.
//
//	Γ_ij = p_i 1{i = j} + p_i p_j 1{slots of i and j differ}
//
// It panics unless there are as many slots as probabilities, numbered from 0 without gaps.
func Independent(slot []int, p []float64) Law {
	l := &independent{slot: slot, p: p}
	if len(slot) != len(p) {
		panic(fmt.Sprintf("offpolicy: %d slots for %d probabilities", len(slot), len(p)))
	}
	seen := map[int]bool{}
	for _, k := range slot {
		seen[k] = true
		l.slots = max(l.slots, k+1)
	}
	if len(seen) != l.slots || seen[-1] {
		panic(fmt.Sprintf("offpolicy: slots %v are not numbered from 0", slot))
	}
	return l
}

func (l *independent) Items() int              { return len(l.p) }
func (l *independent) MaxSize() int            { return l.slots }
func (l *independent) Inclusion(i int) float64 { return l.p[i] }

func (l *independent) Propensity(s vitrine.Assortment) float64 {
	if len(s) != l.slots {
		return 0
	}
	filled, all := make([]bool, l.slots), 1.0
	for _, i := range s {
		if k := l.slot[i]; filled[k] {
			return 0
		} else {
			filled[k] = true
		}
		all *= l.p[i]
	}
	return all
}

// Square implements Law: the slots add their variances to the square of their means' sum.
func (l *independent) Square(v []float64) (square float64) {
	means := make([]float64, l.slots)
	for i, p := range l.p {
		means[l.slot[i]] += p * v[i]
		square += p * v[i] * v[i]
	}
	sum := 0.0
	for _, m := range means {
		sum += m
		square -= m * m
	}
	return square + sum*sum
}

// Solve stores z_i = 1{i ∈ T}/p_i − m(K − 1)/K, where K is the number of slots and m that of T's items in each of them. It
// returns false if T has more items of one slot than of another. With m = 1 a page has the weight Σ_k 1{s_k = t_k}/p − (K − 1)
// of Swaminathan et al. (2017).
func (l *independent) Solve(dst []float64, page vitrine.Assortment) bool {
	count := make([]int, l.slots)
	for _, i := range page {
		if count[l.slot[i]]++; l.p[i] == 0 {
			return false
		}
	}
	for _, m := range count {
		if m != count[0] {
			return false
		}
	}
	for i := range dst {
		dst[i] = -float64(count[0]*(l.slots-1)) / float64(l.slots)
	}
	for _, i := range page {
		dst[i] += 1 / l.p[i]
	}
	return true
}
