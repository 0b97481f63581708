package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/gram"
	"vitrine/internal/panics"
	_ "vitrine/internal/rapidseed"
	"vitrine/utility"
)

// exhaustive returns all optimistic utilities, computed from all gradients at once.
func exhaustive(o *Optimistic, x *mat.Dense) []float64 {
	n, _ := x.Dims()
	if o.Radius == 0 {
		z := make([]float64, n)
		o.Model.Utilities(z, o.Params, x)
		for i := range z {
			z[i] += o.Slack
		}
		return z
	}
	z, norms, g := make([]float64, n), make([]float64, n), mat.NewDense(n, len(o.Params), nil)
	utility.Linearize(o.Model, z, g, o.Params, x)
	o.Inverse.Norms(norms, g)
	for i := range z {
		z[i] += float64(o.Radius * norms[i])
		z[i] += o.Slack
	}
	return z
}

// pruned returns the result of a search with the given number of workers.
func pruned(o *Optimistic, x *mat.Dense, k, workers int) vitrine.Assortment {
	return new(search).top(o, o.Model.(utility.Sketcher), x, assortment.Rules{Max: k}, workers)
}

// hardItems draws items with equal rows, rows close to each other, and rows of very different size.
func hardItems(rng *rand.Rand, n, d int) *mat.Dense {
	x := mat.NewDense(n, d, nil)
	scale := []float64{1, 1, 1, 1e4, 1e-3, 1e-160, 0}[rng.IntN(7)]
	distinct := n
	if rng.IntN(2) == 0 {
		distinct = 1 + rng.IntN(20)
	}
	nearly := rng.IntN(3) == 0
	sorted := rng.IntN(4)
	for i := range n {
		row := x.RawRowView(i)
		if i >= distinct {
			copy(row, x.RawRowView(rng.IntN(distinct)))
			if nearly {
				row[0] = math.Nextafter(row[0], 2)
			}
			continue
		}
		for j := range row {
			row[j] = scale * rng.NormFloat64()
		}
		switch sorted {
		case 1: // every item's bound exceeds the best found so far
			row[0] = scale * float64(i) / float64(n)
		case 2:
			row[0] = -scale * float64(i) / float64(n)
		}
		if rng.IntN(500) == 0 {
			for j := range row {
				row[j] = 1e4 * rng.NormFloat64()
			}
		}
	}
	return x
}

// hardPolicy draws a policy with V anywhere between λI and nearly singular.
func hardPolicy(rng *rand.Rand, m utility.Model) *Optimistic {
	w := make([]float64, m.NumParams())
	m.Init(w, rng)
	size := []float64{1, 1, 5, 0, 1e3}[rng.IntN(5)]
	for i := range w {
		w[i] *= size
	}
	v := gram.New(len(w), []float64{1, 10, 1e-9, 1e-3, 1e6}[rng.IntN(5)])
	g := mat.NewDense(1, len(w), nil)
	scale := []float64{1, 1, 1e-3, 1e4}[rng.IntN(4)]
	for range rng.IntN(3 * len(w)) {
		m.Gradients(g, w, hardItems(rng, 1, m.NumFeatures()))
		v.Add(scale*scale, g.RawRowView(0))
	}
	return &Optimistic{
		Model: m, Params: w, Inverse: v.Inverse(),
		Radius: []float64{1, 3, 0.01, 1e-12, 1e6, 0}[rng.IntN(6)],
		Slack:  []float64{0, 0.5, 1e6}[rng.IntN(3)],
	}
}

func hardModel(rng *rand.Rand) utility.Model {
	d := 1 + rng.IntN(6)
	switch rng.IntN(4) {
	case 0:
		return utility.NewLinear(d, rng.IntN(2) == 0)
	case 1:
		return utility.NewMLP(d, []int{1 + rng.IntN(5), 1 + rng.IntN(4)}, utility.Activation(rng.IntN(5)))
	}
	return utility.NewMLP(d, []int{1 + rng.IntN(8)}, utility.Activation(rng.IntN(5)))
}

// sizes draws a number of items up to 5000, usually small and near the boundary of a block or a claim.
func sizes(rng *rand.Rand) int {
	switch rng.IntN(60) {
	case 0:
		return claimItems + rng.IntN(3) - 1
	case 1:
		return rng.IntN(5000)
	case 2, 3, 4:
		return BlockRows*(1+rng.IntN(3)) + rng.IntN(3) - 1
	}
	return rng.IntN(200)
}

// For any items, V and number of workers, the search finds the same K items as the full computation.
func TestSearchIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
			o := hardPolicy(rng, hardModel(rng))
			n, k := 1+sizes(rng), 1+rng.IntN(20)
			x := hardItems(rng, n, o.Model.NumFeatures())
			z := exhaustive(o, x)
			got := o.Utilities(nil, &vitrine.Context{Features: x})
			for i := range z {
				expect.Equal(fatal.T(t), math.Float64bits(got[i]), math.Float64bits(z[i]), "z of item", i, "is",
					got[i], "by blocks", z[i], "all at once")
			}
			want, _ := assortment.Maximize(nil, assortment.AtMost(k), z, nil)
			for workers := 1; workers <= 3; workers++ {
				expect.List(fatal.T(t), pruned(o, x, k, workers), want, o.Model, "N", n, "K", k, workers, "workers")
			}
			q, same := quota(t, rng, n, k)
			want, _ = assortment.Maximize(nil, same, z, nil)
			for workers := 1; workers <= 3; workers++ {
				expect.List(fatal.T(t), new(search).top(o, o.Model.(utility.Sketcher), x, q, workers), want, o.Model,
					"N", n, q, workers, "workers")
			}
		}
	})
}

// quota returns a quota over n items, of at most k, and the same family as a tree.
func quota(t fatal.TB, rng *rand.Rand, n, k int) (assortment.Rules, vitrine.Constraint) {
	q := assortment.Rules{Max: k}
	rules := assortment.Rules{Items: n, Max: k}
	groups := 1 + rng.IntN(20)
	of := make([]int32, n)
	for i := range of {
		of[i] = int32(rng.IntN(groups+1) - 1)
	}
	for inner := int32(1); inner <= 4; inner += 1 + rng.Int32N(3)*inner { // groups of groups
		l := assortment.Limit{Group: make([]int32, n), Max: 1 + rng.IntN(3)}
		limited := make([]assortment.Group, groups)
		for i, g := range of {
			if l.Group[i] = -1; g >= 0 {
				l.Group[i] = g / inner
				limited[g/inner].Items, limited[g/inner].Max = append(limited[g/inner].Items, i), l.Max
			}
		}
		if inner > 1 && rng.IntN(2) == 0 || inner == 3 { // groups may cross
			continue
		}
		q.Limits, rules.Groups = append(q.Limits, l), append(rules.Groups, limited...)
		if inner > 1 {
			break
		}
	}
	for i := range n {
		if rng.IntN(10) == 0 {
			q.Exclude = append(q.Exclude, i)
		}
	}
	if i := rng.IntN(n); rng.IntN(3) == 0 && !slices.Contains(q.Exclude, i) {
		q.Include = []int{i}
	}
	rules.Exclude, rules.Include = q.Exclude, q.Include
	q.Items = n
	p := fatal.Or(assortment.NewQuota(q))(t)
	same := fatal.Or(assortment.NewQuota(rules))(t)
	q, _ = assortment.Ranked(p)
	return q, same
}

// The best set among a few items either earns as much as the best of all or is reported as uncertain.
func TestFewItemsSuffice(t *testing.T) {
	var found, missed int
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := utility.NewLinear(1+rng.IntN(4), rng.IntN(2) == 0)
		o := hardPolicy(rng, m)
		o.Radius, o.Slack = []float64{0.01, 1, 3, 0}[rng.IntN(4)], 0
		n, k := 1+rng.IntN(600), 1+rng.IntN(12)
		x := &vitrine.Context{Features: hardItems(rng, n, m.NumFeatures()), Revenue: make([]float64, n)}
		tail := []float64{0, 0.1, 1, 3}[rng.IntN(4)]
		for i := range x.Revenue {
			x.Revenue[i] = math.Exp(tail * rng.NormFloat64())
			if tail == 0 {
				x.Revenue[i] = math.Floor(4 * rng.Float64())
			}
		}
		z := exhaustive(o, x.Features)
		if slices.Max(z) > 700 || slices.Min(z) < -700 {
			continue
		}
		q, family := assortment.Rules{Max: k}, vitrine.Constraint(assortment.AtMost(k))
		if seed%3 == 0 {
			q, family = quota(t, rng, n, k)
		}
		_, want := assortment.Maximize(nil, family, z, x.Revenue)
		got, ok := new(search).prune(o, m, q, max(2, n/64), x, 1+rng.IntN(2))
		if !ok {
			missed++
			continue
		}
		found++
		if have := vitrine.ExpectedRevenue(got, z, x.Revenue); !slices.IsSorted(got) ||
			!family.Contains(got) || !(have >= want*(1-1e-9)) {
			t.Fatalf("seed %d, N = %d, K = %d: %v earns %v, the best set %v", seed, n, k, got, have, want)
		}
	}
	if found < 500 || missed < 100 {
		t.Errorf("found %d times, missed %d times", found, missed)
	}
}

// Utilities that are not finite neither stop the search nor hide other items.
func TestSearchAmongUtilitiesThatAreNotFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	for range 200 {
		m := utility.NewLinear(3, false)
		o := hardPolicy(rng, m)
		x := hardItems(rng, 400, 3)
		for range 20 {
			v := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e200, -1e200, 1e154, -1e154}[rng.IntN(7)]
			x.Set(rng.IntN(400), rng.IntN(3), v)
		}
		want, _ := assortment.Maximize(nil, assortment.AtMost(10), exhaustive(o, x), nil)
		expect.List(fatal.T(t), pruned(o, x, 10, 2), want)
	}
}

// Searching a view of a wider matrix gives the same result as searching its copy.
func TestSearchOfAView(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	o := hardPolicy(rng, utility.NewMLP(3, []int{4}, utility.Sigmoid))
	wide := hardItems(rng, 3000, 7)
	x := wide.Slice(5, 2900, 2, 5).(*mat.Dense)
	want := pruned(o, mat.DenseCopyOf(x), 7, 1)
	expect.List(t, pruned(o, x, 7, 2), want)
}

func unequal(rng *rand.Rand, n int) []float64 {
	r := make([]float64, n)
	for i := range r {
		r[i] = math.Floor(8*rng.Float64()) / 2
	}
	return r
}

// One policy serves many concurrent searches. The first ones compute its bound.
func TestSearchesAreConcurrent(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	for range 5 {
		o := hardPolicy(rng, utility.NewMLP(4, []int{6}, utility.Sigmoid))
		x := hardItems(rng, 3*claimItems, 4)
		z := exhaustive(o, x)
		var all sync.WaitGroup
		for c := range 6 {
			x := &vitrine.Context{Features: x}
			if c%2 == 1 {
				x.Revenue = unequal(rng, 3*claimItems)
			}
			want, _ := assortment.Maximize(nil, assortment.AtMost(9), z, x.Revenue)
			all.Go(func() {
				expect.List(t, o.Maximize(assortment.AtMost(9), x), want, "call", c)
			})
		}
		all.Wait()
	}
}

// The search distinguishes items with utilities that differ only in their last digits: the margin for rounding keeps
// any item that may be better. Under V = I the bounds equal the norms, up to that margin.
func TestSearchTellsLastDigitsApart(t *testing.T) {
	const n = 3 * claimItems
	for _, step := range []float64{0x1p-52, 0x1p-50, 0x1p-46} {
		for _, slack := range []float64{0, 0.5} {
			for _, w := range []float64{0, 0.5, -0.5} {
				m := utility.NewLinear(1, false)
				o := &Optimistic{
					Model: m, Params: []float64{w}, Inverse: gram.New(1, 1).Inverse(), Radius: 1, Slack: slack,
				}
				x := mat.NewDense(n, 1, nil)
				for i := range n {
					x.Set(i, 0, 1+step*float64(i)) // each item slightly better than all before it
				}
				for workers := 1; workers <= 2; workers++ {
					want, _ := assortment.Maximize(nil, assortment.AtMost(5), exhaustive(o, x), nil)
					expect.List(t, pruned(o, x, 5, workers), want, "steps of", step, "slack", slack, "w", w, workers,
						"workers")
				}
			}
		}
	}
}

// A worker's panic reaches the caller. After recovering, the caller can search again.
func TestSearchPanics(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	const n = 3 * claimItems
	o := hardPolicy(rng, utility.NewMLP(3, []int{4}, utility.Sigmoid))
	wrong, x := hardItems(rng, n, 4), hardItems(rng, n, 3)
	sketcher, s := o.Model.(utility.Sketcher), new(search)
	for name, call := range map[string]func(x *mat.Dense) vitrine.Assortment{
		"equal revenues": func(x *mat.Dense) vitrine.Assortment {
			return s.top(o, sketcher, x, assortment.Rules{Max: 5}, 3)
		},
		"unequal revenues": func(x *mat.Dense) vitrine.Assortment {
			r := unequal(rand.New(rand.NewPCG(11, 5)), n)
			best, _ := s.prune(o, sketcher, assortment.Rules{Max: 5}, 512, &vitrine.Context{Features: x, Revenue: r}, 3)
			return best
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := call(x)
			for range 20 {
				if v := panics.Value(func() { call(wrong) }); v != "utility: 4 features an item, want 3" {
					t.Errorf("panic of %v, want that of 4 features", v)
				}
				expect.List(fatal.T(t), call(x), want, "after a panic")
			}
		})
	}
}

// Glances change no answer, whether few items survive them or, by a large radius, too many.
func TestGlancesAreExact(t *testing.T) {
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 7))
		m := utility.NewMLP(1+rng.IntN(3), []int{1 + rng.IntN(4)}, utility.Activation(seed%5))
		dw, n := m.NumParams(), minRoughItemsPerParam*m.NumParams()+rng.IntN(claimItems)
		w, v := make([]float64, dw), gram.New(dw, 1)
		m.Init(w, rng)
		x, g := hardItems(rng, n, m.NumFeatures()), mat.NewDense(2000, dw, nil)
		m.Gradients(g, w, x.Slice(0, 2000, 0, m.NumFeatures()).(*mat.Dense))
		for i := range 2000 {
			v.Add(1, g.RawRowView(i))
		}
		o := &Optimistic{Model: m, Params: w, Inverse: v.Inverse(), Radius: []float64{0.3, 3, 300}[seed%3]}
		want, _ := assortment.Maximize(nil, assortment.AtMost(10), exhaustive(o, x), nil)
		for workers := 1; workers <= 2; workers++ {
			expect.List(fatal.T(t), pruned(o, x, 10, workers), want, m, "N", n, workers, "workers")
		}
	}
}

// If V has seen many similar items before, the bounds leave few norms to compute.
func TestSearchComputesFewNorms(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	m := utility.NewMLP(4, []int{5}, utility.Sigmoid)
	w := make([]float64, m.NumParams())
	m.Init(w, rng)
	v := gram.New(len(w), 1)
	x := mat.NewDense(20000, 4, nil)
	x.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, x)
	g := mat.NewDense(5000, len(w), nil)
	m.Gradients(g, w, x.Slice(0, 5000, 0, 4).(*mat.Dense))
	for i := range 5000 {
		v.Add(1, g.RawRowView(i))
	}
	o := &Optimistic{Model: m, Params: w, Inverse: v.Inverse(), Radius: 1}
	s := new(search)
	s.top(o, m, x, assortment.Rules{Max: 10}, 1)
	if n := s.numNorms.Load(); n > 2000 {
		t.Errorf("%d norms of 20000 items", n)
	}
	few, ok := s.prune(o, m, assortment.Rules{Max: 10}, 512,
		&vitrine.Context{Features: x, Revenue: unequal(rng, 20000)}, 1)
	if n := s.numNorms.Load(); n > 4000 || !ok || len(few) != 10 {
		t.Errorf("%d norms of 20000 items of unequal revenues, %v", n, few)
	}
}

// An item is found even if it ties with another worker's items, because the lower item wins.
func TestEqualUtilitiesOfTwoWorkers(t *testing.T) {
	o := &Optimistic{Model: utility.NewLinear(1, false), Params: []float64{2}}
	s := &search{o: o, x: mat.NewDense(10, 1, slices.Repeat([]float64{3}, 10)), rules: assortment.Rules{Max: 3}}
	w := &worker{search: s}
	w.best.Reset(s.rules, math.Inf(-1))
	s.raise(6)
	if w.rankKnown(0, 10); len(w.best.Items) != 3 || slices.Max(w.best.Items) != 2 {
		t.Errorf("the best are %v", w.best.Items)
	}
}

// Under a capacity, the set earns as much as the best set of the full computation.
func TestShelfIsExact(t *testing.T) {
	found := 0
	for seed := range uint64(48) {
		rng := rand.New(rand.NewPCG(seed, 6))
		o := hardPolicy(rng, utility.NewLinear(1+rng.IntN(4), true))
		o.Radius, o.Slack = []float64{0, 0.1, 1}[seed%3], 0
		n := 8192 + rng.IntN(3000)
		x := &vitrine.Context{Features: hardItems(rng, n, o.Model.NumFeatures())}
		if seed%4 > 0 {
			x.Revenue = make([]float64, n)
			for i := range x.Revenue {
				x.Revenue[i] = math.Exp(0.3 * rng.NormFloat64())
			}
		}
		z := exhaustive(o, x.Features)
		if slices.Max(z) > 700 || slices.Min(z) < -700 {
			continue
		}
		q, _ := quota(t, rng, n, 1+rng.IntN(8))
		found++
		kind := make([]int32, n)
		for i := range kind {
			kind[i] = int32(rng.IntN(10))
		}
		of := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 30}
		q.Weights = &assortment.Weights{Kind: kind, Of: of, Count: slices.Repeat([]int{n}, len(of)), Capacity: 10}
		c := fatal.Or(assortment.NewQuota(q))(t)
		q.Groups = []assortment.Group{{Max: assortment.NoLimit}} // so that it becomes a tree of all items
		k := fatal.Or(assortment.NewQuota(q))(t)
		_, want := assortment.Maximize(nil, k, z, x.Revenue)
		got := o.Maximize(c, x)
		if have := vitrine.ExpectedRevenue(got, z, x.Revenue); !k.Contains(got) || !(have >= want*(1-1e-9)) {
			t.Errorf("seed %d: %v earns %v, the best set %v", seed, got, have, want)
		}
	}
	if found < 10 {
		t.Errorf("%d shelves", found)
	}
}

// With a negative radius, the result matches the full computation: sketches bound utilities from above only if norms
// raise them.
func TestLowerBoundsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 20 {
		o := hardPolicy(rng, hardModel(rng))
		o.Radius, o.Slack = -1, 0
		x := &vitrine.Context{Features: hardItems(rng, 2500, o.Model.NumFeatures())}
		c := assortment.AtMost(1 + rng.IntN(5))
		want, _ := assortment.Maximize(nil, c, exhaustive(o, x.Features), nil)
		expect.List(fatal.T(t), o.Maximize(c, x), want)
	}
}
