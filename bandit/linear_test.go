package bandit

import (
	"encoding"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
	"vitrine/utility/utilitytest"
)

// hinges is a basis of a user: (1, x_j, max(x_j, 0)).
type hinges struct{ d int }

func (hinges) LinearInParams()    {}
func (hinges) String() string     { return "hinges" }
func (h hinges) NumFeatures() int { return h.d }
func (h hinges) NumParams() int   { return 1 + 2*h.d }

func (h hinges) Init(w []float64, rng *rand.Rand) {
	utility.NewLinear(h.NumParams(), false).Init(w, rng)
}

func (h hinges) Utilities(dst, w []float64, x *mat.Dense) {
	if n, d := x.Dims(); len(dst) != n || d != h.d || len(w) != h.NumParams() {
		panic("shape")
	}
	for i := range dst {
		dst[i] = w[0]
		for j, v := range x.RawRowView(i) {
			dst[i] += w[1+2*j]*v + w[2+2*j]*max(v, 0)
		}
	}
}

func (h hinges) Gradients(dst *mat.Dense, w []float64, x *mat.Dense) {
	n, d := x.Dims()
	if r, c := dst.Dims(); r != n || d != h.d || c != h.NumParams() || len(w) != c {
		panic("shape")
	}
	for i := range n {
		g := dst.RawRowView(i)
		g[0] = 1
		for j, v := range x.RawRowView(i) {
			g[1+2*j], g[2+2*j] = v, max(v, 0)
		}
	}
}

// on are the learners that take a basis; nil is none.
var on = map[string]func(p Problem, m utility.LinearInParams) (vitrine.Learner, error){
	"ucb-mnl": func(p Problem, m utility.LinearInParams) (vitrine.Learner, error) {
		return NewUCBOn(p, m, UCBOptions{LinearOptions: LinearOptions{Constants: "theory", Lambda: 2}})
	},
	"ts-mnl": func(p Problem, m utility.LinearInParams) (vitrine.Learner, error) {
		return NewTSOn(p, m, TSOptions{LinearOptions: LinearOptions{Constants: "theory", Lambda: 2}})
	},
	"ofu-mnl-plus": func(p Problem, m utility.LinearInParams) (vitrine.Learner, error) {
		return NewOFUOn(p, m, DefaultOFUOptions())
	},
}

// expanded returns the round with the basis as features.
func expanded(m utility.LinearInParams, r vitrine.Round) vitrine.Round {
	n, w := r.Context.NumItems(), make([]float64, m.NumParams())
	g := mat.NewDense(n, len(w), nil)
	m.Gradients(g, w, r.Context.Features)
	x := *r.Context
	x.Features = g
	r.Context = &x
	return r
}

// A learner of the basis φ is the linear learner of the items φ(x), with the
// radius and the λ of their number of features.
func TestABasisIsLinearInItsFeatures(t *testing.T) {
	for name, learner := range on {
		for _, m := range []utility.LinearInParams{utility.NewQuadratic(paperFeatures), hinges{paperFeatures},
			utility.NewLinear(paperFeatures, true)} {
			p := paperProblem()
			q := p
			q.NumFeatures = m.NumParams()
			have := fatal.Or(learner(p, m))(t)
			want := fatal.Or(learner(q, nil))(t)
			for _, r := range linearHistory(t, 60) {
				observeAll(t, have, []vitrine.Round{r})
				observeAll(t, want, []vitrine.Round{expanded(m, r)})
			}
			x := paperContext(7)
			wide := expanded(m, vitrine.Round{Context: x}).Context
			got, ref := indexOf(have, x), indexOf(want, wide)
			for i := range got {
				wantNear(t, name, got[i], ref[i], 1e-9)
			}
		}
	}
}

// indexOf returns the optimistic or sampled utilities of a learner's policy.
func indexOf(l vitrine.Learner, x *vitrine.Context) []float64 {
	switch pi := l.Policy().(type) {
	case *optimistic:
		return pi.z.Utilities(nil, x)
	case *sampling:
		return pi.index(new(samplingScratch), x, newRand())
	}
	panic("a policy without an index")
}

func TestTheBasisOfTheTestIsOne(t *testing.T) { utilitytest.TestModel(t, hinges{2}) }

// A snapshot names its basis, and a learner without one writes the same snapshot as before there were any.
func TestSnapshotsAreOfTheirBasis(t *testing.T) {
	p := paperProblem()
	for name, learner := range on {
		linear := fatal.Or(learner(p, nil))(t)
		plain := fatal.Or(linear.(encoding.BinaryMarshaler).MarshalBinary())(t)
		for _, m := range []utility.LinearInParams{utility.NewQuadratic(paperFeatures), hinges{paperFeatures}} {
			l := fatal.Or(learner(p, m))(t)
			expect.Refused(l.(encoding.BinaryUnmarshaler).UnmarshalBinary(plain))(t, name, "on", m,
				"takes the snapshot of the linear learner")
			data := fatal.Or(l.(encoding.BinaryMarshaler).MarshalBinary())(t)
			expect.Refused(linear.(encoding.BinaryUnmarshaler).UnmarshalBinary(data))(t, name,
				"takes the snapshot of a learner on", m)
		}
	}
}

func TestBasesAreChecked(t *testing.T) {
	p := paperProblem()
	for name, learner := range on {
		expect.Part(learner(p, utility.NewQuadratic(5)))(t, "the utility has 5 features", name)
		expect.Part(learner(Problem{}, utility.NewQuadratic(5)))(t, "features = 0", name)
	}
	o := DefaultUCBOptions()
	o.Intercept = true
	expect.Prefix(NewUCBOn(p, utility.NewQuadratic(paperFeatures), o))(t,
		"intercept = true: the learner has a utility of its own,", "an intercept next to a basis")
}

// A legal feature with a product beyond the bound is learned from by a gentler slope: the utility at the estimate is
// the item's, and the learner goes on.
func TestLargeGradientsOfABasisAreGentle(t *testing.T) {
	for name, learner := range on {
		l := fatal.Or(learner(paperProblem(), utility.NewQuadratic(paperFeatures)))(t)
		history := linearHistory(t, 5)
		observeAll(t, l, history[:4])
		steep := history[4]
		steep.Context = &vitrine.Context{Features: mat.DenseCopyOf(steep.Context.Features)}
		steep.Context.Features.Set(steep.Offer.Assortment[0], 1, 1010)
		m := utility.NewQuadratic(paperFeatures)
		w := make([]float64, m.NumParams())
		w[1], w[len(w)-1] = 2, -0.5
		n := len(steep.Offer.Assortment)
		var at tangent
		g := at.basis(m, w, steep)
		u := make([]float64, n)
		m.Utilities(u, w, at.x.Rows(steep.Context.Features, steep.Offer.Assortment))
		for k := range n {
			row := g.RawRowView(k)
			if got := at.u[k] + mat.Dot(mat.NewVecDense(len(w), row), mat.NewVecDense(len(w), w)); math.Abs(
				got-u[k]) > 1e-9*(1+math.Abs(u[k])) {
				t.Errorf("item %d has the utility %v, want %v", k, got, u[k])
			}
			if (k == 0) != (at.u[k] != 0) || (k == 0) != (largest(0, row) > 0.999*vitrine.MaxUnscaled) {
				t.Errorf("item %d has the offset %v and the gradient %v", k, at.u[k], row)
			}
		}
		observeAll(t, l, []vitrine.Round{steep, history[4]})
		if _, err := l.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
