package offpolicy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/panics"
	"vitrine/offpolicy"
)

// subsets returns the sets of at least from and at most k of n items.
func subsets(n, from, k int) (list []vitrine.Assortment) {
	for mask := range 1 << n {
		var s vitrine.Assortment
		for i := range n {
			if mask>>i&1 == 1 {
				s = append(s, i)
			}
		}
		if len(s) >= from && len(s) <= k {
			list = append(list, s)
		}
	}
	return list
}

// listed enumerates a law: the page with probability 1−ε, and the others in equal parts of ε.
func listed(epsilon float64, n int, page vitrine.Assortment, others []vitrine.Assortment) *offpolicy.Listed {
	l := &offpolicy.Listed{N: n, Pages: []vitrine.Assortment{page}, Probability: []float64{1 - epsilon}}
	for _, s := range others {
		l.Pages, l.Probability = append(l.Pages, s), append(l.Probability, epsilon/float64(len(others)))
	}
	return l
}

func replaced(page vitrine.Assortment, k, by int) vitrine.Assortment {
	s := append(vitrine.Assortment(nil), page...)
	s[k] = by
	for i := len(s) - 1; i > 0 && s[i] < s[i-1]; i-- {
		s[i], s[i-1] = s[i-1], s[i]
	}
	for i := 0; i < len(s)-1; i++ {
		if s[i] > s[i+1] {
			s[i], s[i+1] = s[i+1], s[i]
		}
	}
	return s
}

// law is a closed form and the same law as a list of its pages.
type law struct {
	name   string
	closed offpolicy.SamplingLaw
	listed *offpolicy.Listed
}

func laws() (laws []law) {
	for _, epsilon := range []float64{0, 0.1, 1} {
		for _, n := range []int{3, 6} {
			page := vitrine.Assortment{0, 2}
			laws = append(laws,
				law{"sets", offpolicy.EpsilonSets(epsilon, n, 3, page), listed(epsilon, n, page, subsets(n, 1, 3))},
				law{"pages", offpolicy.EpsilonPages(epsilon, n, 2, page), listed(epsilon, n, page, subsets(n, 2, 2))},
				law{"one item", offpolicy.EpsilonPages(epsilon, n, 1, vitrine.Assortment{1}),
					listed(epsilon, n, vitrine.Assortment{1}, subsets(n, 1, 1))},
			)
			var free, few []vitrine.Assortment
			may := [][]bool{make([]bool, n), make([]bool, n)}
			for k := range page {
				for j := range n {
					if j == 0 || j == 2 {
						continue
					}
					free = append(free, replaced(page, k, j))
					if may[k][j] = (j+k)%2 == 0; may[k][j] {
						few = append(few, replaced(page, k, j))
					}
				}
			}
			laws = append(laws, law{"swaps", offpolicy.Swaps(epsilon, n, page, nil), listed(epsilon, n, page, free)},
				law{"some swaps", offpolicy.Swaps(epsilon, n, page, may), listed(epsilon, n, page, few)})
		}
	}
	// If no swap is feasible, the page is certain: either the rules allow none, or the page contains all items.
	for _, epsilon := range []float64{0, 0.1, 1} {
		for _, page := range []vitrine.Assortment{{0, 2}, {0, 1, 2}} {
			for _, may := range [][][]bool{nil, make([][]bool, len(page))} {
				if may == nil && len(page) == 2 {
					continue // item 1 may replace either
				}
				for k := range may {
					may[k] = make([]bool, 3)
				}
				laws = append(laws, law{fmt.Sprintf("no swaps of %v, ε = %v",
					page, epsilon), offpolicy.Swaps(epsilon, 3, page, may), listed(0, 3, page, nil)})
			}
		}
	}
	one := offpolicy.Independent([]int{0, 0, 0, 0}, []float64{0.5, 0.3, 0.2, 0})
	laws = append(laws, law{"items", one,
		&offpolicy.Listed{N: 4, Pages: subsets(4, 1, 1), Probability: []float64{0.5, 0.3, 0.2, 0}}})
	p := []float64{0.6, 0.4, 0.3, 0.1, 0.6}
	two := law{"slots", offpolicy.Independent([]int{0, 1, 0, 0, 1}, p), &offpolicy.Listed{N: 5}}
	for _, i := range []int{0, 2, 3} {
		for _, j := range []int{1, 4} {
			two.listed.Pages, two.listed.Probability = append(two.listed.Pages,
				vitrine.Assortment{min(i, j), max(i, j)}), append(two.listed.Probability, p[i]*p[j])
		}
	}
	return append(laws, two)
}

// Closed forms agree with an enumeration.
func TestLawsAreThoseOfEnumeration(t *testing.T) {
	for _, l := range laws() {
		n, gamma := l.listed.N, l.listed.Gamma()
		if l.closed.Items() != n || l.closed.MaxSize() != l.listed.MaxSize() {
			t.Fatalf("%s: %d items, sets of %d, want %d, %d",
				l.name, l.closed.Items(), l.closed.MaxSize(), n, l.listed.MaxSize())
		}
		for i := range n {
			if got, want := l.closed.Inclusion(i), gamma.At(i, i); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: item %d is shown with %v, want %v", l.name, i, got, want)
			}
		}
		z := make([]float64, n)
		for i := range z {
			z[i] = float64(i*i) - 2.5
		}
		v := mat.NewVecDense(n, z)
		var want mat.VecDense
		want.MulVec(gamma, v)
		got := make([]float64, n)
		l.closed.Moment(got, z)
		for i := range got {
			if math.Abs(got[i]-want.AtVec(i)) > 1e-9 {
				t.Errorf("%s: Γv is %v, want %v", l.name, got, want.RawVector().Data)
			}
		}
		for _, target := range subsets(n, 0, 3) {
			if got, want := l.closed.Propensity(target), l.listed.Propensity(target); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: μ(%v) = %v, want %v", l.name, target, got, want)
			}
		}
	}
}

// Weights agree with the Moore–Penrose pseudo-inverse of the enumerated Γ, from its singular values.
func TestWeightsAreThoseOfThePseudoInverse(t *testing.T) {
	for _, l := range laws() {
		n, gamma := l.listed.N, l.listed.Gamma()
		var svd mat.SVD
		if !svd.Factorize(gamma, mat.SVDFull) {
			t.Fatal("no singular values")
		}
		rank := svd.Rank(1e-10)
		z, zListed := make([]float64, n), make([]float64, n)
		for _, target := range subsets(n, 0, 3) {
			q := mat.NewVecDense(n, nil)
			for _, i := range target {
				q.SetVec(i, 1)
			}
			var pinv, back mat.VecDense
			svd.SolveVecTo(&pinv, q, rank)
			back.MulVec(gamma, &pinv)
			back.SubVec(&back, q)
			determined := mat.Norm(&back, 2) < 1e-9
			if ok := offpolicy.Solve(l.closed, z, target); ok != determined {
				t.Errorf("%s of %d: Solve(%v) is %v, want %v", l.name, n, target, ok, determined)
			}
			if ok := offpolicy.Solve(l.listed, zListed, target); ok != determined {
				t.Errorf("%s: the listed Solve(%v) is %v, want %v", l.name, target, ok, determined)
			}
			if !determined {
				continue
			}
			for m, s := range l.listed.Pages {
				if l.listed.Probability[m] == 0 {
					continue
				}
				want, got, other := 0.0, 0.0, 0.0
				for _, i := range s {
					want, got, other = want+pinv.AtVec(i), got+z[i], other+zListed[i]
				}
				if math.Abs(got-want) > 1e-8*(1+math.Abs(want)) || math.Abs(other-want) > 1e-8*(1+math.Abs(want)) {
					t.Errorf("%s: the weight of %v for %v is %v and %v, want %v", l.name, s, target, got, other, want)
				}
			}
		}
	}
}

// Among thousands of items, each page that a law shows is a combination of its pages, and a page with an item that it
// never shows is not.
func TestWeightsAmongManyItems(t *testing.T) {
	const n = 3000
	page, other := vitrine.Assortment{3, 50, 700, 2999}, vitrine.Assortment{3, 50, 701, 2999}
	may := make2(len(page), n)
	for k := range may {
		for j := range may[k] {
			may[k][j] = (j*j+k)%7 < 3 || j == 701
		}
	}
	slots, p := make([]int, n), make([]float64, n)
	for i := range slots {
		slots[i], p[i] = i%4, 4.0/n
	}
	z := make([]float64, n)
	for _, epsilon := range []float64{1e-4, 0.05, 1} {
		for name, law := range map[string]offpolicy.SamplingLaw{
			"sets": offpolicy.EpsilonSets(epsilon, n, 4, page), "pages": offpolicy.EpsilonPages(epsilon, n, 4, page),
			"swaps": offpolicy.Swaps(epsilon, n, page, nil), "some swaps": offpolicy.Swaps(epsilon, n, page, may),
			"slots": offpolicy.Independent(slots, p),
		} {
			for _, target := range []vitrine.Assortment{page, other} {
				if name == "slots" {
					target = vitrine.Assortment{0, 5, 10, 15}
				}
				// A law that always swaps shows one item outside the page. The page itself contains no such item, so it
				// is not a combination of the law's pages.
				want := !(strings.HasSuffix(name, "swaps") && epsilon == 1 && slices.Equal(target, page))
				if offpolicy.Solve(law, z, target) != want {
					t.Errorf("%s, ε = %v: Solve(%v) finds weights or none, want %v", name, epsilon, target, want)
				}
			}
		}
	}
	if offpolicy.Solve(offpolicy.Swaps(0.1, n, page, make2(len(page), n)), z, other) {
		t.Error("without a swap the page of one has weights")
	}
}

func make2(rows, columns int) [][]bool {
	m := make([][]bool, rows)
	for k := range m {
		m[k] = make([]bool, columns)
	}
	return m
}

// The uniform part is the law by which families of at most K items are sampled.
func TestSetsAreTheSamplers(t *testing.T) {
	const n, k = 7, 3
	law := offpolicy.EpsilonSets(1, n, k, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	if got, want := law.Propensity(vitrine.Assortment{1,
		4}), assortment.AtMost(k).Propensity(n); math.Abs(got-want) > 1e-12 {
		t.Errorf("μ = %v, want %v", got, want)
	}
	// Of 2,000 items, there are 2⁹⁹⁹·² times more sets of half the items than of all.
	if p := offpolicy.EpsilonSets(1, 2000, 2000, nil).Inclusion(3); math.Abs(p-0.5) > 1e-9 {
		t.Errorf("an item is in a set of all with probability %v, want half", p)
	}
	hits := 0
	const draws = 20000
	for range draws {
		for _, i := range assortment.AtMost(k).Sample(nil, n, rng) {
			if i == 3 {
				hits++
			}
		}
	}
	p := law.Inclusion(3)
	if se := math.Sqrt(p * (1 - p) / draws); math.Abs(float64(hits)/draws-p) > 5*se {
		t.Errorf("item 3 is in %d of %d sets, want a share of %v", hits, draws, p)
	}
}

func TestLawsThatCannotBe(t *testing.T) {
	for name, f := range map[string]func(){
		"a share above 1":       func() { offpolicy.EpsilonSets(1.1, 4, 2, nil) },
		"more than all":         func() { offpolicy.EpsilonPages(0.1, 2, 3, nil) },
		"slots without an item": func() { offpolicy.Independent([]int{0, 2}, []float64{1, 1}) },
		"half a slot":           func() { offpolicy.Independent([]int{0}, []float64{0.5}) },
		"a negative share":      func() { offpolicy.Independent([]int{0, 0}, []float64{-1, 2}) },
		"an unknown item":       func() { offpolicy.EpsilonSets(0.1, 4, 2, vitrine.Assortment{4}) },
		"a page out of order":   func() { offpolicy.Swaps(0.1, 4, vitrine.Assortment{2, 1}, nil) },
		"rules of others":       func() { offpolicy.Swaps(0.1, 4, vitrine.Assortment{1, 2}, make([][]bool, 3)) },
	} {
		if panics.Value(f) == nil {
			t.Errorf("%s: no panic", name)
		}
	}
}
