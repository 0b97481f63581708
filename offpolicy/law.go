package offpolicy

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"vitrine"
)

// SamplingLaw is the distribution μ of the page S ⊂ {0, …, N−1} in one round. With 1_S ∈ {0, 1}ᴺ, it determines
//
//	Γ = E_μ 1_S 1_Sᵀ
//
// with the items' probabilities of being shown on the diagonal.
type SamplingLaw interface {
	// Items returns N.
	Items() int

	// MaxSize returns the size of the largest page with positive probability.
	MaxSize() int

	// Inclusion returns P(i ∈ S).
	Inclusion(i int) float64

	// Propensity returns μ(s).
	Propensity(s vitrine.Assortment) float64

	// Moment stores Γv in dst, for a vector v of length N.
	Moment(dst, v []float64)
}

// tolerance is the largest residual of Γz = q that rounding explains.
const tolerance = 1e-8

// square returns vᵀΓv = E_μ (Σ_{i∈S} v_i)².
func square(l SamplingLaw, v []float64) float64 {
	moment := make([]float64, len(v))
	l.Moment(moment, v)
	return floats.Dot(v, moment)
}

// Solve stores in dst, of length N, a solution z of Γz = 1_T. It returns false if there is none: then the items of page
// T are not a linear combination of the pages that μ shows. All solutions give the same weight Σ_{i∈S} z_i to every
// page S of positive probability.
//
// The method is conjugate gradients in units that make Γ's diagonal 1. In these units, the laws in this package are the
// identity plus a matrix with rank about twice the size of a page, so that many steps are enough.
func Solve(l SamplingLaw, dst []float64, page vitrine.Assortment) bool {
	n := len(dst)
	vectors := make([]float64, 5*n)
	scale, q, residual, along, moment := vectors[:n], vectors[n:2*n], vectors[2*n:3*n], vectors[3*n:4*n], vectors[4*n:]
	for i := range scale {
		scale[i] = ratio(1, l.Inclusion(i))
	}
	for _, i := range page {
		if q[i] = 1; scale[i] == 0 {
			return false // item i is never shown
		}
	}
	clear(dst)
	copy(residual, q)
	last := 0.0
	for range n + 10 {
		size := 0.0
		for i, r := range residual {
			size += r * r * scale[i]
		}
		if !(size > tolerance*tolerance*1e-4) {
			break
		}
		for i, r := range residual {
			along[i] = r*scale[i] + ratio(size, last)*along[i]
		}
		l.Moment(moment, along)
		curvature := floats.Dot(along, moment)
		if !(curvature > 1e-14*size) {
			break // the rest is orthogonal to all pages
		}
		floats.AddScaled(dst, size/curvature, along)
		floats.AddScaled(residual, -size/curvature, moment)
		last = size
	}
	l.Moment(moment, dst)
	floats.Sub(moment, q)
	return floats.Norm(moment, math.Inf(1)) < tolerance
}

// overlap returns |s ∩ t| for two sorted sets.
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
// where a and b are the probabilities that a uniform page contains a given item, and a given pair of items.
type sets struct {
	epsilon float64
	n       int
	sizes   []float64 // probability of each size of a uniform page
	page    vitrine.Assortment
	a, b    float64
}

// EpsilonSets returns the law that shows the page with probability 1−ε, and otherwise a set drawn uniformly from the
// nonempty sets of at most k of n items. It panics unless 0 ≤ ε ≤ 1, 1 ≤ k ≤ n and the page is a set of the items.
func EpsilonSets(epsilon float64, n, k int, page vitrine.Assortment) SamplingLaw {
	sizes := make([]float64, k+1)
	total := 0.0
	for l := 1; l <= k; l++ {
		sizes[l] = math.Exp(logChoose(n, l) - logChoose(n, min(k, n/2))) // at most 1
		total += sizes[l]
	}
	for l := range sizes {
		sizes[l] /= total
	}
	return newSets(epsilon, n, sizes, page)
}

// EpsilonPages returns the law that shows the page with probability 1−ε, and otherwise exactly k
// of n items drawn uniformly. It panics unless 0 ≤ ε ≤ 1, 1 ≤ k ≤ n and the page is a set of the items.
func EpsilonPages(epsilon float64, n, k int, page vitrine.Assortment) SamplingLaw {
	sizes := make([]float64, k+1)
	sizes[k] = 1
	return newSets(epsilon, n, sizes, page)
}

func newSets(epsilon float64, n int, sizes []float64, page vitrine.Assortment) SamplingLaw {
	if k := len(sizes) - 1; !(epsilon >= 0 && epsilon <= 1) || k < 1 || k > n {
		panic(fmt.Sprintf("offpolicy: a law of ε = %v on sets of %d of %d items", epsilon, k, n))
	}
	if err := page.Check(n); err != nil {
		panic("offpolicy: " + err.Error())
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

func (l *sets) Items() int { return l.n }

func (l *sets) MaxSize() (size int) {
	if l.epsilon < 1 {
		size = len(l.page)
	}
	if l.epsilon > 0 {
		size = max(size, len(l.sizes)-1)
	}
	return size
}

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

func (l *sets) Moment(dst, v []float64) {
	sum, own := l.epsilon*l.b*floats.Sum(v), (1-l.epsilon)*sumOf(v, l.page)
	for i, x := range v {
		dst[i] = l.epsilon*(l.a-l.b)*x + sum
	}
	for _, i := range l.page {
		dst[i] += own
	}
}

// sumOf returns Σ_{i∈s} v_i.
func sumOf(v []float64, s vitrine.Assortment) (sum float64) {
	for _, i := range s {
		sum += v[i]
	}
	return sum
}

// ratio returns a/b, or 0 if b = 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// swaps shows the policy's page g with probability 1−ε, and otherwise g with one of its items replaced, by a swap (out,
// in) drawn uniformly from F feasible ones. With B_ij = 1 if item j may replace item i of g, c = B1 and d = Bᵀ1,
//
//	Γ_gg = 11ᵀ − (ε/F)(c1ᵀ + 1cᵀ − diag c),  Γ_gj = (ε/F)(d_j 1 − B_j),  Γ_jj = (ε/F) d_j
//
// and 0 for two items outside g.
type swaps struct {
	epsilon float64
	n       int
	page    vitrine.Assortment
	place   []int    // by item: its place in the page, or -1
	may     [][]bool // B by places; nil if all swaps are feasible
	c       []float64
	d       []float64 // by item
	count   float64   // F
}

// Swaps returns the law that shows the page with probability 1−ε, and otherwise replaces one of its items by an item
// outside it, by a swap drawn uniformly. may[k][j] says whether item j may replace the page's k-th item; nil allows all
// swaps. If no swap is feasible, the page is shown with probability 1. Swaps panics unless 0 ≤ ε ≤ 1, may has N
// columns and the page is a set of the items.
func Swaps(epsilon float64, n int, page vitrine.Assortment, may [][]bool) SamplingLaw {
	if !(epsilon >= 0 && epsilon <= 1) || may != nil && len(may) != len(page) {
		panic(fmt.Sprintf("offpolicy: a law of ε = %v on swaps of %d items, with rules for %d",
			epsilon, len(page), len(may)))
	}
	if err := page.Check(n); err != nil {
		panic("offpolicy: " + err.Error())
	}
	s := &swaps{epsilon: epsilon, n: n, page: page, may: may, place: make([]int, n), c: make([]float64, len(page)),
		d: make([]float64, n)}
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

func (l *swaps) Moment(dst, v []float64) {
	clear(dst)
	own := sumOf(v, l.page)
	all := (1 - l.epsilon) * own
	for k, i := range l.page {
		for j := range v {
			if l.feasible(k, j) {
				swapped := l.epsilon / l.count * (own - v[i] + v[j])
				all += swapped
				dst[i] -= swapped
				dst[j] += swapped
			}
		}
	}
	for _, i := range l.page {
		dst[i] += all
	}
}

// independent draws each slot's item independently, from the slot's own items.
type independent struct {
	slot  []int
	p     []float64
	slots int
}

// Independent returns the law of a page with one independently drawn item per slot: item i is in its slot, slot[i],
// with probability p[i]. The probabilities within a slot sum to 1. With one slot it is the law of a contextual bandit.
//
//	Γ_ij = p_i 1{i = j} + p_i p_j 1{slots of i and j differ}
//
// It panics unless there are as many slots as probabilities, numbered from 0 without gaps, and each slot's sum to 1
// within 0.001.
func Independent(slot []int, p []float64) SamplingLaw {
	l := &independent{slot: slot, p: p}
	if len(slot) != len(p) {
		panic(fmt.Sprintf("offpolicy: %d slots for %d probabilities", len(slot), len(p)))
	}
	sums := map[int]float64{}
	for i, k := range slot {
		if sums[k] += p[i]; !(p[i] >= 0) {
			panic(fmt.Sprintf("offpolicy: item %d has probability %v", i, p[i]))
		}
		l.slots = max(l.slots, k+1)
	}
	for k := range max(l.slots, len(sums)) {
		if sum, ok := sums[k]; !ok || !(math.Abs(sum-1) <= 1e-3) {
			panic(fmt.Sprintf("offpolicy: the probabilities in slot %d sum to %v", k, sum))
		}
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

func (l *independent) Moment(dst, v []float64) {
	means := make([]float64, l.slots)
	for i, p := range l.p {
		means[l.slot[i]] += p * v[i]
	}
	sum := floats.Sum(means)
	for i, p := range l.p {
		dst[i] = p * (v[i] + sum - means[l.slot[i]])
	}
}
