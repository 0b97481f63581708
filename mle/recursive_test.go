package mle_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
	"vitrine/mle"
)

// soldRounds draws rounds of 1 to 5 items whose customers choose by the utilities Gw, and sometimes take an item more.
func soldRounds(rng *rand.Rand, n int, w []float64) []round {
	var rounds []round
	for _, r := range randomRounds(rng, n, len(w)) {
		if len(r.a) == 0 {
			continue
		}
		u, shock := make([]float64, len(r.a)), make([]float64, len(r.a)+1)
		s := make(vitrine.Assortment, len(u))
		for k := range u {
			r.a[k], s[k] = 0, k
			u[k] = mat.Dot(r.g.RowView(k), mat.NewVecDense(len(w), w))
		}
		vitrine.DrawShocks(shock, rng)
		if r.y = vitrine.Choose(s, u, shock); r.y == vitrine.Outside {
			r.more = nil
		}
		rounds = append(rounds, r)
	}
	return rounds
}

// distance returns the number of standard errors √((v−w)ᵀH(v−w)) between estimates.
func distance(v, w []float64, h *mat.SymDense) float64 {
	off := mat.NewVecDense(len(w), nil)
	off.SubVec(mat.NewVecDense(len(v), v), mat.NewVecDense(len(w), w))
	return math.Sqrt(mat.Inner(off, h, off))
}

// The estimate is the maximum of the likelihood after a fit, and stays near it between fits and when rounds are dropped.
// The encoding stops growing.
func TestRecursiveIsTheMaximum(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	const d, lambda = 3, 0.5
	r, exact := mle.NewRecursive(lambda, d), mle.NewNewton(lambda, make([]float64, d), 1e-12)
	fitted, size := 0, 0
	for s, x := range soldRounds(rng, 14_000, []float64{1, -0.7, 0.4}) {
		r.Update(x.g, x.y, x.more...)
		exact.Append(x.a, x.g, x.y, x.more...)
		if s > 2000 && s%1000 != 0 {
			continue
		}
		exact.Minimize()
		exact.Tighten(0)
		h, _ := exact.Hessian()
		off := distance(r.Params(), exact.Params(), h.Sym(nil))
		if off < 1e-3 {
			fitted++
		}
		if limit := 0.25; s > 100 && !(off < limit) {
			t.Fatalf("after %d rounds the estimate is %.3f standard errors from the maximum", s+1, off)
		}
		near := math.Abs(r.Hessian().Trace()/h.Trace() - 1)
		if s > 100 && !(near < 0.05) {
			t.Fatalf("after %d rounds the trace of the Hessian is %v, want %v", s+1, r.Hessian().Trace(), h.Trace())
		}
		if s == 6000 {
			size = len(saved(r))
		}
	}
	if fitted < 30 {
		t.Errorf("after %d rounds the estimate is the maximum, want that after each fit", fitted)
	}
	if now := len(saved(r)); now > size*3/2 {
		t.Errorf("a state of %d bytes after 6,000 rounds grows to %d", size, now)
	}
}

func saved(r *mle.Recursive) []byte {
	w := fields.Writer(nil)
	r.Fields(&w)
	return w.Rest()
}

// An estimate that is saved and read goes on with the same bytes, also when rounds are dropped.
func TestRecursiveGoesOn(t *testing.T) {
	rounds := soldRounds(rand.New(rand.NewPCG(9, 2)), 8000, []float64{1, -0.7})
	r, again := mle.NewRecursive(1, 2), mle.NewRecursive(1, 2)
	for s, x := range rounds {
		r.Update(x.g, x.y, x.more...)
		again.Update(x.g, x.y, x.more...)
		if s%700 == 0 {
			f := fields.Reader(saved(again))
			again = mle.NewRecursive(1, 2)
			again.Fields(&f)
			fatal.If(t, f.Close())
		}
	}
	if !bytes.Equal(saved(r), saved(again)) {
		t.Error("an estimate that was saved and read has other bytes")
	}
	f := fields.Reader(saved(r)[:40])
	again.Fields(&f)
	if f.Err() == nil {
		t.Error("half an estimate is read")
	}
}

// Features that rounding cannot bear stop neither the filter nor the bound of memory.
func TestRecursiveOfExtremeFeatures(t *testing.T) {
	r := mle.NewRecursive(1e-9, 2)
	g := mat.NewDense(2, 2, []float64{1e160, 1, -1e160, 1})
	for s := range 9000 {
		r.Update(g, vitrine.Choice(s%3))
	}
	for _, w := range r.Params() {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			t.Fatalf("the estimate is %v", r.Params())
		}
	}
	if n := len(saved(r)); n > 200_000 {
		t.Errorf("the state has %d bytes", n)
	}
}
