package mle_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/fields"
	"vitrine/mle"
	"vitrine/utility"
)

// A further take c is a choice from an MNL page of the other items with the differences of utilities to c, of which the
// outside option was taken. docs/algorithms/baskets.md, "One likelihood".
func TestAFurtherTakeIsARoundOfDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(38, 1))
	const d, lambda = 4, 0.5
	w, center := normals(rng, d), normals(rng, d)
	takes, differences := mle.NewAffine(lambda, center), mle.NewAffine(lambda, center)
	for _, r := range randomRounds(rng, 300, d) {
		takes.Append(r.a, r.g, r.y, r.more...)
		differences.Append(r.a, r.g, r.y)
		for _, c := range r.more {
			of := int(c) - 1
			var a, g []float64
			for k := range r.a {
				if k == of {
					continue
				}
				a = append(a, r.a[k]-r.a[of])
				for j := range d {
					g = append(g, r.g.At(k, j)-r.g.At(of, j))
				}
			}
			if len(a) > 0 {
				differences.Append(a, mat.NewDense(len(a), d, g), vitrine.Outside)
			}
		}
	}
	got, want := make([]float64, d), make([]float64, d)
	near(t, "ℓ", takes.Gradient(got, w), differences.Gradient(want, w), 1e-12)
	near(t, "Value", takes.Value(w), differences.Value(w), 1e-12)
	nearAll(t, "∇ℓ", got, want, 1e-12)
	nearAll(t, "∇²ℓ", mat.DenseCopyOf(takes.Hessian(nil, w)).RawMatrix().Data,
		mat.DenseCopyOf(differences.Hessian(nil, w)).RawMatrix().Data, 1e-12)
}

func TestExpectedTakes(t *testing.T) {
	u := []float64{0.5, -1, 2}
	p, got := make([]float64, 4), make([]float64, 4)
	vitrine.Probabilities(p, u)
	for further := range 4 {
		want := slices.Clone(p)
		for k := 1; k < len(want); k++ {
			want[k] += float64(further) * p[k] / (1 - p[0])
		}
		mle.ExpectedTakes(got, u, further)
		nearAll(t, "takes", got, want, 1e-14)
	}
}

// Over all baskets that a page can have, weighted by their probabilities, the likelihood sums to 1, the score to 0, and
// its square to the Hessian.
func TestThePageLikelihoodOverAllBaskets(t *testing.T) {
	rng := rand.New(rand.NewPCG(38, 2))
	const d, k = 3, 3
	number := []float64{0.5, 0.3, 0.2} // of takers, 1 to 3, if there is one
	g, a, w := mat.NewDense(k, d, normals(rng, k*d)), normals(rng, k), normals(rng, d)
	total, score, square, information := 0.0, make([]float64, d), mat.NewSymDense(d, nil), mat.NewSymDense(d, nil)
	visit := func(law float64, takes []vitrine.Choice) {
		l := mle.NewAffine(1e-300, w)
		l.Append(a, g, takes[0], takes[1:]...)
		grad := make([]float64, d)
		p := law * math.Exp(-l.Gradient(grad, w))
		total += p
		for j := range score {
			score[j] += p * grad[j]
		}
		square.SymRankOne(square, p, mat.NewVecDense(d, grad))
		h := l.Hessian(nil, w)
		h.ScaleSym(p, h)
		information.AddSym(information, h)
	}
	visit(1, []vitrine.Choice{vitrine.Outside})
	var all func(law float64, takes []vitrine.Choice, left int)
	all = func(law float64, takes []vitrine.Choice, left int) {
		if left == 0 {
			visit(law, takes)
			return
		}
		for c := vitrine.Choice(1); c <= k; c++ {
			all(law, append(slices.Clone(takes), c), left-1)
		}
	}
	for m, law := range number {
		all(law, nil, m+1)
	}
	near(t, "the sum of probabilities", total, 1, 1e-12)
	nearAll(t, "E[score]", score, make([]float64, d), 1e-12)
	nearAll(t, "E[score²]", square.RawSymmetric().Data, information.RawSymmetric().Data, 1e-12)
}

// The likelihood does not depend on the order of the takes, not even on which is the first.
func TestTakesHaveNoOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(38, 3))
	m := utility.NewMLP(3, []int{4}, utility.Sigmoid)
	w := make([]float64, m.NumParams())
	m.Init(w, rng)
	x := mat.NewDense(4, 3, normals(rng, 12))
	loss := func(takes ...vitrine.Choice) float64 {
		c := mle.NewChoices(3)
		c.AppendRows(x, takes[0], takes[1:]...)
		return (&mle.NLL{Model: m, Choices: c, Ridge: 1}).Value(w)
	}
	for _, other := range [][]vitrine.Choice{{2, 2, 4}, {4, 2, 2}, {2, 4, 2}} {
		near(t, "the loss", loss(other...), loss(2, 4, 2), 1e-14)
	}
	if loss(2, 4, 2) == loss(2, 4, 4) {
		t.Error("the takes do not matter")
	}
}

// A network's gradient is that of the definition, by finite differences, and the Fisher information of a linear family
// its Hessian.
func TestNLLOfTakes(t *testing.T) {
	rng := rand.New(rand.NewPCG(38, 4))
	c := manyChoices(rng, 80, []float64{0.5, -1})
	for _, m := range []utility.Model{utility.NewMLP(2, []int{3}, utility.Sigmoid), utility.NewLinear(2, true)} {
		w := make([]float64, m.NumParams())
		m.Init(w, rng)
		l := &mle.NLL{Model: m, Choices: c, Ridge: 0.3}
		naive := func(w []float64) float64 {
			loss := 0.0
			for _, v := range w {
				loss += 0.15 * v * v
			}
			for s := range c.Rounds() {
				u, p := make([]float64, 3), make([]float64, 4)
				m.Utilities(u, w, c.Round(s).Features())
				vitrine.Probabilities(p, u)
				loss -= math.Log(p[c.Choice(s)])
				for _, y := range c.More(s) {
					loss -= math.Log(p[y] / (p[1] + p[2] + p[3]))
				}
			}
			return loss
		}
		got := make([]float64, len(w))
		near(t, "Value", l.Value(w), naive(w), 1e-12)
		near(t, "Gradient's value", l.Gradient(got, w), naive(w), 1e-12)
		nearAll(t, "Gradient", got, fd.Gradient(nil, naive, w, &fd.Settings{Formula: fd.Central}), 1e-6)
		if _, linear := m.(*utility.Linear); linear {
			var want mat.Dense
			want.ReuseAs(len(w), len(w))
			fd.Jacobian(&want, func(y, x []float64) { l.Gradient(y, x) }, w, &fd.JacobianSettings{Formula: fd.Central})
			nearAll(t, "Fisher", mat.DenseCopyOf(l.Fisher(nil, w)).RawMatrix().Data, want.RawMatrix().Data, 1e-6)
		}
	}
}

// Takes go where their round goes, and survive a snapshot.
func TestTakesStayWithTheirRound(t *testing.T) {
	more := func(s int) []vitrine.Choice {
		return slices.Repeat([]vitrine.Choice{vitrine.Choice(s%3 + 1)}, []int{0, 2, 0, 0, 1}[s%5])
	}
	x := mat.NewDense(3, 1, []float64{1, 2, 3})
	c := mle.NewChoices(1)
	for s := range 40 {
		c.AppendRows(x, 1, more(s)...)
	}
	same := func(what string, c *mle.Choices, round func(k int) int, n int) {
		t.Helper()
		expect.Equal(t, c.Rounds(), n, what, "rounds")
		for k := range c.Rounds() {
			if got := c.Round(k).More(0); !slices.Equal(got, more(round(k))) || !slices.Equal(c.More(k), got) {
				t.Errorf("%s: round %d has the further takes %v, want %v", what, k, got, more(round(k)))
			}
		}
	}
	same("Slice", c.Slice(3, 30), func(k int) int { return 3 + k }, 27)
	same("Sample", c.Sample(8, 2), func(k int) int { return (5*k + 2) % 40 }, 8)
	same("Transformed", c.Transformed(func([]float64) {}), func(k int) int { return k }, 40)
	all := c.Room(10)
	all.AppendAll(c)
	same("AppendAll", all, func(k int) int { return k }, 40)
	w := fields.Writer(nil)
	c.Fields(&w)
	read, f := mle.NewChoices(1), fields.Reader(w.Rest())
	read.Fields(&f)
	fatal.If(t, f.Close())
	same("a snapshot", read, func(k int) int { return k }, 40)
	all.Drop(11)
	same("Drop", all, func(k int) int { return 11 + k }, 29)
	all.AppendRows(x, 1, more(40)...)
	same("after Drop", all, func(k int) int { return 11 + k }, 30)
	all.Reset()
	all.AppendRows(x, 1)
	same("Reset", all, func(int) int { return 0 }, 1)
}

// Snapshots with a further take that no round can have are refused: features of one item, two rounds that end after it,
// two choices.
func TestSnapshotWithAFurtherTakeOfNothingIsRefused(t *testing.T) {
	for choices, valid := range map[[2]byte]bool{{1, 1}: true, {1, 2}: false, {0, 1}: false} {
		f := fields.Reader([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, choices[0], choices[1]})
		c := mle.NewChoices(1)
		c.Fields(&f)
		if err := f.Close(); (err == nil) != valid {
			t.Errorf("choice %d and further take %d of one item: %v", choices[0], choices[1], err)
		} else if valid && (c.Rounds() != 1 || len(c.More(0)) != 1) {
			t.Errorf("%d rounds", c.Rounds())
		}
	}
}
