package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit/bandittest"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/gram"
	"vitrine/utility"
)

// shop is a world for learners that must never refuse what it sends.
type shop struct {
	features, items int
	scale           float64 // of the features
	utility         func(x []float64) float64
}

// visit lets a learner live through the rounds from..to, and returns the regret of
// each. It fails the test at the first refusal.
func (w shop) visit(t *testing.T, l vitrine.Learner, size int, seed uint64, from, to int) (regret []float64) {
	t.Helper()
	for s := from; s < to; s++ {
		rng := rand.New(rand.NewPCG(seed, uint64(s)))
		x := &vitrine.Context{Features: mat.NewDense(w.items, w.features, nil)}
		u, shock := make([]float64, w.items), make([]float64, w.items+1)
		for i := range u {
			row := x.Features.RawRowView(i)
			for j := range row {
				row[j] = rng.NormFloat64()
			}
			u[i] = w.utility(row)
			for j := range row {
				row[j] *= w.scale
			}
		}
		vitrine.DrawShocks(shock, rng)
		offer := l.Policy().Offer(x, rng)
		fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u,
			shock)}), "seed", seed, "round", s)
		_, best := assortment.Maximize(nil, assortment.AtMost(size), u, nil)
		regret = append(regret, best-vitrine.ExpectedRevenue(offer.Assortment, u, nil))
	}
	return regret
}

// definite fails the test unless V and its V⁻¹ are positive definite.
func definite(t *testing.T, name string, v *gram.Matrix) {
	t.Helper()
	var chol mat.Cholesky
	if !chol.Factorize(v.Sym(nil)) {
		t.Errorf("%s: the matrix is not positive definite", name)
	}
	if _, err := v.Inverse().Cholesky(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x / float64(len(v))
	}
	return sum
}

// The utilities of a learner's own estimate are never a reason to refuse a round: after every one of many histories it
// is finite, and it has learned.
func TestNoLearnerRefusesForItsOwnEstimate(t *testing.T) {
	const d, size = 3, 3
	line := func(x []float64) float64 { return 1.5*x[0] - x[1] + 0.5*x[2] - 1 }
	bend := func(x []float64) float64 { return 2*math.Abs(x[0]) - x[1] - 1 }
	stepwise := DefaultEpsGreedyOptions()
	stepwise.Oracle = "online"
	eps := func(p Problem, m utility.Model, rng *rand.Rand) vitrine.Learner {
		return must(NewEpsGreedy(p, m, stepwise, rng))
	}
	loose := DefaultONLOptions()
	loose.Update, loose.Lambda, loose.PilotSteps = "online", 1e-3, 200
	for name, c := range map[string]struct {
		world  shop
		rounds int
		create func(p Problem, rng *rand.Rand) vitrine.Learner
	}{
		"ReLU network": {shop{d, 30, 1, bend}, 250, func(p Problem, rng *rand.Rand) vitrine.Learner {
			return eps(p, utility.NewMLP(d, []int{16}, utility.ReLU), rng)
		}},
		"features × 100": {shop{d, 30, 100, line}, 250, func(p Problem, rng *rand.Rand) vitrine.Learner {
			return eps(p, utility.NewLinear(d, true), rng)
		}},
		"λ = 1e-3": {shop{d, 30, 1, bend}, 600, func(p Problem, rng *rand.Rand) vitrine.Learner {
			return must(NewONL(p, utility.NewMLP(d, []int{5}, utility.Sigmoid), loose, rng))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Problem{NumFeatures: d, Items: 30, MaxShown: size, Rounds: c.rounds,
				Constraint: assortment.AtMost(size)}
			early, late := 0.0, 0.0
			const seeds = 20
			for seed := range uint64(seeds) {
				l := c.create(p, rand.New(rand.NewPCG(seed, 3)))
				regret := c.world.visit(t, l, size, seed, 0, c.rounds)
				chance := c.world.visit(t, must(NewUniform(p)), size, seed, 0, c.rounds)
				early += mean(chance) / seeds
				late += mean(regret[2*c.rounds/3:]) / seeds
				saved, err := l.(bandittest.Snapshotter).MarshalBinary()
				fatal.If(t, err, "seed", seed)
				expect.Error(t, c.create(p, rand.New(rand.NewPCG(seed, 3))).(bandittest.Snapshotter).UnmarshalBinary(
					saved), nil, "seed", seed)
				switch l := l.(type) {
				case *EpsGreedy:
					definite(t, "H", l.online.Hessian())
				case *ONL:
					definite(t, "V", l.v)
					definite(t, "H", l.est.(online).Hessian())
				}
			}
			t.Logf("regret a round: %.4f of %.4f by chance", late, early)
			if !(late < 0.5*early) {
				t.Errorf("in the last third a round has the regret %.4f, uniform %.4f", late, early)
			}
		})
	}
}

// cliff is a family of two parameters with the utility w_1 x and the given
// gradient.
type cliff struct {
	utility.Model
	slope float64
}

func (cliff) NumFeatures() int { return 1 }
func (cliff) NumParams() int   { return 2 }
func (m cliff) Utilities(dst, w []float64, x *mat.Dense) {
	for i := range dst {
		dst[i] = w[0] * x.At(i, 0)
	}
}
func (m cliff) Gradients(g *mat.Dense, _ []float64, x *mat.Dense) {
	for i := range x.RawMatrix().Rows {
		g.SetRow(i, []float64{x.At(i, 0), m.slope})
	}
}

// A row that is too steep keeps its utility and its direction, other rows keep every bit, and one that is not finite
// plays no part in a round.
func TestTangentsAreWithinTheBounds(t *testing.T) {
	x := &vitrine.Context{Features: mat.NewDense(3, 1, []float64{1, -2, 1e4})}
	r := vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{1, 2}}}
	for _, c := range []struct {
		weight, slope float64
		u             []float64
		g             []float64 // nil if the round teaches nothing
	}{
		{3, 7, []float64{-6, 3e4}, []float64{-2, 7, 1e4, 7}},
		{3, -4e4, []float64{-6, 3e4}, []float64{-0.5, -1e4, 2.5e3, -1e4}},
		{1e7, 1, []float64{-2e7, 1e8}, []float64{-2, 1, 1e4, 1}},
		{math.Inf(1), 1, nil, nil},
		{3, math.NaN(), nil, nil},
		{3, math.Inf(-1), nil, nil},
	} {
		var at tangent
		g := at.at(cliff{slope: c.slope}, []float64{c.weight, 0}, r)
		if (g == nil) != (c.g == nil) {
			t.Fatalf("w = %v, slope %v: gradients %v, want %v", c.weight, c.slope, g, c.g)
		}
		if g != nil && (!slices.Equal(g.RawMatrix().Data, c.g) || !slices.Equal(at.u, c.u)) {
			t.Errorf("w = %v, slope %v: utilities %v and gradients %v, want %v and %v", c.weight, c.slope, at.u,
				g.RawMatrix().Data, c.u, c.g)
		}
	}
}
