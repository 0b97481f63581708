package offpolicy

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
)

// Listed is a law given by its pages and their probabilities, for small numbers of pages.
type Listed struct {
	N           int
	Pages       []vitrine.Assortment
	Probability []float64 // by page; they sum to 1
}

// Items implements Law.
func (l *Listed) Items() int { return l.N }

// MaxSize implements Law.
func (l *Listed) MaxSize() (size int) {
	for m, s := range l.Pages {
		if l.Probability[m] > 0 {
			size = max(size, len(s))
		}
	}
	return size
}

// Inclusion implements Law.
func (l *Listed) Inclusion(i int) (p float64) {
	for m, s := range l.Pages {
		if _, ok := slices.BinarySearch(s, i); ok {
			p += l.Probability[m]
		}
	}
	return p
}

// Propensity implements Law.
func (l *Listed) Propensity(s vitrine.Assortment) (p float64) {
	for m, t := range l.Pages {
		if slices.Equal(s, t) {
			p += l.Probability[m]
		}
	}
	return p
}

// Gamma returns Γ.
func (l *Listed) Gamma() *mat.SymDense {
	g := mat.NewSymDense(l.N, nil)
	for m, s := range l.Pages {
		for a, i := range s {
			for _, j := range s[a:] {
				g.SetSym(i, j, g.At(i, j)+l.Probability[m])
			}
		}
	}
	return g
}

// Moment implements Law.
func (l *Listed) Moment(dst, v []float64) {
	mat.NewVecDense(l.N, dst).MulVec(l.Gamma(), mat.NewVecDense(l.N, v))
}
