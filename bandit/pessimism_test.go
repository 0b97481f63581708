package bandit_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// careful returns the options of a given pilot with a random covariance, of less than full rank, and pessimism c.
func careful(m utility.Model, c float64, rng *rand.Rand) bandit.GreedyOptions {
	d := m.NumParams()
	o := bandit.DefaultGreedyOptions()
	o.Pilot, o.Update, o.Pessimism = "given", "none", c
	o.PilotWeights = make([]float64, d)
	root := mat.NewDense(d, d-1, nil)
	for i := range d {
		o.PilotWeights[i] = rng.NormFloat64()
		for j := range d - 1 {
			root.Set(i, j, rng.NormFloat64()/2)
		}
	}
	var sigma mat.Dense
	sigma.Mul(root, root.T())
	o.PilotCovariance = sigma.RawMatrix().Data
	return o
}

// lowered returns the utilities f − c √(∇fᵀ Σ ∇f), with gradients by differences.
func lowered(m utility.Model, o bandit.GreedyOptions, x *mat.Dense) []float64 {
	n, _ := x.Dims()
	d := m.NumParams()
	z, up, down := make([]float64, n), make([]float64, n), make([]float64, n)
	g := mat.NewDense(n, d, nil)
	const h = 1e-5
	for j := range d {
		w := slices.Clone(o.PilotWeights)
		w[j] += h
		m.Utilities(up, w, x)
		w[j] -= 2 * h
		m.Utilities(down, w, x)
		for i := range n {
			g.Set(i, j, (up[i]-down[i])/(2*h))
		}
	}
	m.Utilities(z, o.PilotWeights, x)
	for i := range n {
		variance := 0.0
		for j := range d {
			for k := range d {
				variance += g.At(i, j) * o.PilotCovariance[j*d+k] * g.At(i, k)
			}
		}
		z[i] -= o.Pessimism * math.Sqrt(max(0, variance))
	}
	return z
}

// bestPair returns the best page of at most two items, by trying all.
func bestPair(z, revenue []float64) (best vitrine.Assortment, value float64) {
	for i := range z {
		for j := i; j < len(z); j++ {
			s := vitrine.Assortment{i, j}
			if i == j {
				s = s[:1]
			}
			total, sum := 1.0, 0.0
			for _, k := range s {
				total += math.Exp(z[k])
				sum += math.Exp(z[k]) * revenue[k]
			}
			if sum/total > value {
				best, value = s, sum/total
			}
		}
	}
	return best, value
}

// The offer is the best page under utilities lowered by hand, for linear utilities and a network, for few items and for
// enough that optimistic utilities are pruned. Estimates stay f_ŵ.
func TestPessimismMaximizesTheLowerBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	differ := 0
	for _, m := range []utility.Model{utility.NewLinear(3, true), utility.NewMLP(3, []int{2}, utility.Tanh)} {
		for _, c := range []float64{0, 0.5, 2} {
			for _, n := range []int{1, 6, 30, 2500} {
				o := careful(m, c, rng)
				p := bandit.Problem{NumFeatures: 3, MaxShown: 2, Rounds: 100, Constraint: assortment.AtMost(2)}
				l := fatal.Or(bandit.NewGreedy(p, m, o, rng))(t)
				x := &vitrine.Context{Features: mat.NewDense(n, 3, nil), Revenue: make([]float64, n)}
				x.Features.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, x.Features)
				for i := range x.Revenue {
					x.Revenue[i] = 1
					if n < 2500 {
						x.Revenue[i] = rng.Float64()
					}
				}
				z, u := lowered(m, o, x.Features), make([]float64, n)
				want, value := bestPair(z, x.Revenue)
				got := l.Policy().Offer(x, rng).Assortment
				if !slices.Equal(got, want) {
					t.Errorf("c = %v, %d items: offers %v, want %v of %v", c, n, got, want, value)
				}
				m.Utilities(u, o.PilotWeights, x.Features)
				plain, _ := bestPair(u, x.Revenue)
				if !slices.Equal(plain, want) {
					differ++
				}
				if c == 0 && !slices.Equal(got, plain) {
					t.Errorf("without pessimism it offers %v, greedy %v", got, plain)
				}
				estimate, mean, sd := make([]float64, n), make([]float64, n), make([]float64, n)
				l.Policy().(interface {
					Utilities([]float64, *vitrine.Context)
				}).Utilities(estimate, x)
				why := l.Policy().(bandit.Explainer)
				why.Value(mean, sd, x.Features)
				if !slices.Equal(estimate, u) || !slices.Equal(mean, u) {
					t.Error("the estimates are not those of the pilot")
				}
				r := why.Reasons(x, rng)
				if r.By != bandit.ByEstimate || !r.IsBest {
					t.Errorf("explained by %+v", r)
				}
				for i := range z {
					if math.Abs(r.Index[i]-z[i]) > 1e-6 || math.Abs(mean[i]-c*sd[i]-z[i]) > 1e-6 {
						t.Fatalf("item %d has the index %v and %v ± %v, want %v", i, r.Index[i], mean[i], sd[i], z[i])
					}
				}
			}
		}
	}
	if differ < 4 {
		t.Errorf("pessimism changes only %d pages", differ)
	}
}

// Rounds move nothing, position effects start at 0, and a snapshot names its pessimism and covariance.
func TestPessimismStays(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := utility.NewLinear(2, true)
	p := bandit.Problem{NumFeatures: 2, MaxShown: 2, Rounds: 100, Constraint: assortment.AtMost(2)}
	o := careful(m, 1, rng)
	for _, o.PositionEffects = range []bool{false, true} {
		l := fatal.Or(bandit.NewGreedy(p, m, o, rng))(t)
		x := &vitrine.Context{Features: mat.NewDense(7, 2, nil)}
		x.Features.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, x.Features)
		z := lowered(m, o, x.Features)
		want, _ := bestPair(z, slices.Repeat([]float64{1}, 7))
		for range 20 {
			offer := l.Policy().Offer(x, rng)
			if got := slices.Sorted(slices.Values(offer.Assortment)); !slices.Equal(got, want) {
				t.Fatalf("offers %v, want %v", got, want)
			}
			fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: 1}))
		}
		data := fatal.Or(l.MarshalBinary())(t)
		for name, change := range map[string]func(o *bandit.GreedyOptions){
			"":                                func(*bandit.GreedyOptions) {},
			"snapshot is of pessimism = 1":    func(o *bandit.GreedyOptions) { o.Pessimism = 2 },
			"snapshot is of pilot_covariance": func(o *bandit.GreedyOptions) { o.PilotCovariance = make([]float64, 9) },
			`snapshot is of "greedy"`:         func(o *bandit.GreedyOptions) { o.Pessimism = 0 },
		} {
			other := o
			change(&other)
			again := fatal.Or(bandit.NewGreedy(p, m, other, rng))(t)
			if err := again.UnmarshalBinary(data); (err == nil) != (name == "") ||
				err != nil && !strings.Contains(err.Error(), name) {
				t.Errorf("error %v, want %q", err, name)
			}
		}
	}
}

func TestPessimismOptions(t *testing.T) {
	m := utility.NewLinear(1, true)
	p := bandit.Problem{NumFeatures: 1, MaxShown: 2, Rounds: 100, Constraint: assortment.AtMost(2)}
	numbers := func(v ...float64) func(o *bandit.GreedyOptions) {
		return func(o *bandit.GreedyOptions) { o.PilotCovariance = v }
	}
	for _, c := range []struct {
		want   string
		change func(o *bandit.GreedyOptions)
	}{
		{"", numbers(4, 2, 2, 1)},
		{"", numbers(0, 0, 0, 1e-12)},
		{"pessimism = -1: must be finite and at least 0", func(o *bandit.GreedyOptions) { o.Pessimism = -1 }},
		{"pessimism = NaN: must be finite and at least 0", func(o *bandit.GreedyOptions) { o.Pessimism = math.NaN() }},
		{"pessimism = 1: needs pilot_covariance", numbers()},
		{`need pilot = "given" and update = "none"`, func(o *bandit.GreedyOptions) { o.Update = "online" }},
		{`need pilot = "given" and update = "none"`, func(o *bandit.GreedyOptions) {
			o.Pilot, o.PilotWeights = "map", nil
		}},
		{"pilot_covariance: has 3 numbers, must have the 4 of a matrix of 2 rows", numbers(1, 0, 0)},
		{"pilot_covariance: row 1 has +Inf, must be finite", numbers(1, 0, 0, math.Inf(1))},
		{"pilot_covariance: row 0 has NaN, must be finite", numbers(math.NaN(), 0, 0, 1)},
		{"it must be symmetric", numbers(1, 0.5, 0.4, 1)},
		{"must be positive semi-definite", numbers(1, 2, 2, 1)},
		{"must be positive semi-definite", numbers(-1, 0, 0, 1)},
		{"must be positive semi-definite", numbers(-1, 0, 0, -1)},
		{"must be positive semi-definite", numbers(1e6, 1e-3, 1e-3, 1e-13)},
	} {
		o := careful(m, 1, rand.New(rand.NewPCG(1, 1)))
		c.change(&o)
		_, err := bandit.NewGreedy(p, m, o, rand.New(rand.NewPCG(1, 1)))
		checked := o.Check(p, m.NumParams())
		for _, err := range []error{err, checked} {
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		}
	}
}
