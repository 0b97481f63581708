package bandit

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/assortment/search"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// familiesOfMany are families of the rows of a, each with the same sets in another form.
func familiesOfMany(t *testing.T, a *mat.Dense) []struct{ limit, same vitrine.Constraint } {
	n, _ := a.Dims()
	limit, pairs := assortment.Limit{Group: make([]int32, n), Max: 1}, assortment.Limit{Group: make([]int32, n), Max: 2}
	groups := make([]assortment.Group, 8)
	for i := range n {
		g := i % 7 % 5
		limit.Group[i], pairs.Group[i] = int32(g), int32(g/2)
		groups[g].Items, groups[g].Max = append(groups[g].Items, i), 1
		groups[5+g/2].Items, groups[5+g/2].Max = append(groups[5+g/2].Items, i), 2
	}
	partition := fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Max: 4, Limits: []assortment.Limit{limit}}))(t)
	tree := fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Max: 4, Groups: groups[:5]}))(t)
	pinned := fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Max: 4, Limits: []assortment.Limit{pairs, limit},
		Include: []int{7, 9001}}))(t)
	pins := fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Max: 4, Groups: groups, Include: []int{7, 9001}}))(
		t)
	var exclude []int
	for i := range n { // the best are hidden, or the worst
		if a.At(i, 0) > 0 {
			exclude = append(exclude, i)
		}
	}
	rest := fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Max: 4, Exclude: exclude}))(t)
	same := fatal.Or(assortment.NewQuota(assortment.Rules{Items: n, Max: 4, Exclude: exclude}))(t)
	return []struct{ limit, same vitrine.Constraint }{
		{assortment.AtMost(4), assortment.AtMost(4)}, {assortment.AtMost(2), assortment.AtMost(2)}, {partition, tree},
		{rest, same}, {pinned, pins},
	}
}

// Among many items the offer is the one that the utilities of all items give, with any number of processors and for
// short rows too.
func TestManyItems(t *testing.T) {
	const d, short, n = paperFeatures, 2, 20_000
	p := Problem{NumFeatures: d, MaxShown: 4, Rounds: 1000, Constraint: assortment.AtMost(4)}
	l := newBMA(t, p, DefaultExperts(d))
	play(t, l, product, 0, 60)
	mixed := *l.Policy().(*mixture)
	pi := &mixed
	pi.weights = slices.Repeat([]float64{1 / float64(len(pi.weights))}, len(pi.weights)) // all experts take part
	rng := rand.New(rand.NewPCG(6, 6))
	a := mat.NewDense(n, short, nil)
	a.Apply(func(int, int, float64) float64 { return max(-1, min(1, math.Round(4*rng.NormFloat64())/4)) },
		a) // many are equal
	m := mat.NewDense(d, short, []float64{1, 0, 0, 0.3, 0, 0})
	c := []float64{0.25, 0, 0.7}
	x := mat.NewDense(n, d, nil)
	x.Mul(a, m.T())
	for i := range n {
		x.Set(i, 0, x.At(i, 0)+c[0])
		x.Set(i, 2, c[2])
	}
	given := pi.Given(m, c)
	revenues := func(tail float64) []float64 {
		r := make([]float64, n)
		for i := range r {
			r[i] = math.Exp(tail * rng.NormFloat64())
		}
		return r
	}
	families := familiesOfMany(t, a)
	levels := revenues(0) // many equal items
	for i := range levels {
		levels[i] = float64(1 + rng.IntN(2))
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, r := range [][]float64{nil, revenues(0.01), revenues(0.1), revenues(0.5), revenues(3), levels} {
		seeds := uint64(4)
		if slices.Equal(r, levels) {
			seeds = 2
		}
		for seed := range seeds {
			draws := func() *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }
			for _, family := range families {
				limit := family.limit
				whole, mapped := &vitrine.Context{Features: x, Revenue: r, Feasible: limit},
					&vitrine.Context{Features: a, Revenue: r, Feasible: limit}
				w := new(mixtureScratch)
				pi.begin(w, whole, draws())
				if _, ok := pi.many(w, limit, whole); !ok && seeds > 2 {
					t.Errorf("seed %d, %T: a slot does not find its set", seed, limit)
				}
				pi.begin(w, whole, draws())
				runtime.GOMAXPROCS(1)
				pi.fillSlots(w, x, 0, len(w.expert))
				want := pi.pick(w, family.same, r).Assortment
				for _, processors := range []int{1, 2} {
					runtime.GOMAXPROCS(processors)
					expect.List(t, pi.Offer(whole, draws()).Assortment, want, "seed", seed, limit)
					expect.List(t, given.Offer(mapped, draws()).Assortment, want, "seed", seed, limit, "short rows")
				}
			}
		}
	}
	if newBMA(t, p, DefaultExperts(d)).Policy().(*mixture).Given(m, c) != nil {
		t.Error("before the first round rows are short")
	}
}

// A sample misjudges the revenue of wide draws' sets.
func TestManyItemsOfWideDraws(t *testing.T) {
	const n = 20_000
	p := Problem{NumFeatures: paperFeatures, MaxShown: 5, Rounds: 1000, Constraint: assortment.AtMost(5)}
	l := newBMA(t, p, DefaultExperts(paperFeatures))
	play(t, l, product, 0, 4)
	pi := l.Policy().(*mixture)
	rng := rand.New(rand.NewPCG(8, 8))
	for seed := range uint64(40) {
		x := &vitrine.Context{Features: mat.NewDense(n, paperFeatures, nil), Revenue: make([]float64, n),
			Feasible: p.Constraint}
		x.Features.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, x.Features)
		for i := range x.Revenue {
			x.Revenue[i] = 0.5 + 0.5*rng.Float64()
		}
		wantAll(t, pi, x, seed)
	}
}

// If most items are unlike those in the sample, some slots look at all items again, without the others.
func TestManyItemsUnlikeTheSample(t *testing.T) {
	const n = 20_000
	p := Problem{NumFeatures: 1, MaxShown: 5, Rounds: 1000, Constraint: assortment.AtMost(5)}
	l := newBMA(t, p, []Expert{{Model: utility.NewLinear(1, true)}})
	mode := *l.experts[0].posterior
	mode.Mode = []float64{1, 0}
	pi := &mixture{p: p, beliefs: []belief{{family: l.base.Model, model: l.base.model, posterior: &mode}},
		weights: []float64{1}, views: []view{{z: standardisation{shift: []float64{0}, scale: []float64{1}}}}}
	for _, test := range []struct {
		attractive int     // items outside the sample that are attractive
		large      float64 // their attraction, next to that of two others
		small      float64
	}{
		{3, 1, 0.001}, {5, 1, 2}, {300, 1, 2}, {0, 1, 0.001},
	} {
		x := &vitrine.Context{Features: mat.NewDense(n, 1, nil), Revenue: make([]float64, n), Feasible: p.Constraint}
		attractive, others := test.attractive, 2
		for i := range n {
			attraction := 1e-9
			switch sample := i/search.BlockRows%thin == 0; {
			case sample && i%4 == 0:
				attraction = 1000 + 0.01*float64(i)
			case !sample && attractive > 0:
				attraction, x.Revenue[i] = test.large*(1+1e-4*float64(i)), 99
				attractive--
			case !sample && others > 0:
				attraction, x.Revenue[i] = test.small, 99
				others--
			}
			x.Revenue[i]++
			x.Features.Set(i, 0, math.Log(attraction))
		}
		wantAll(t, pi, x, 1)
	}
}

// wantAll tests that a policy offers what the utilities of all items give.
func wantAll(t *testing.T, pi *mixture, x *vitrine.Context, seed uint64) {
	t.Helper()
	w := new(mixtureScratch)
	pi.begin(w, x, rand.New(rand.NewPCG(seed, 3)))
	got, ok := pi.many(w, x.Feasible, x)
	if !ok {
		t.Errorf("seed %d: no set", seed)
		return
	}
	pi.begin(w, x, rand.New(rand.NewPCG(seed, 3)))
	pi.fillSlots(w, x.Features, 0, len(w.expert))
	expect.List(t, got, pi.pick(w, x.Feasible, x.Revenue).Assortment, "seed", seed)
}

func TestClamp(t *testing.T) {
	z := []float64{-maxSample - 1, math.Inf(-1), -maxSample, 0, maxSample, maxSample + 1, math.Inf(1)}
	clamp(z)
	expect.List(t, z, []float64{-maxSample, -maxSample, -maxSample, 0, maxSample, maxSample, maxSample})
}
