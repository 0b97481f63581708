package bandit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
)

// store is a kind of store.
type store struct {
	items, size, features int
	numeric               int // of the features, the first
	revenue               bool
	// open returns a store, which stores the features of an item in x, and returns its utility.
	open func(rng *rand.Rand) func(x []float64, rng *rand.Rand) float64
}

// storeOfIDs offers numbers with a linear utility, and one id an item.
func storeOfIDs(items, size, numbers, ids int, sd float64) store {
	return store{items: items, size: size, features: numbers + ids, numeric: numbers,
		open: func(rng *rand.Rand) func(x []float64, rng *rand.Rand) float64 {
			effect, slope := normals(ids, sd, rng), normals(numbers, 0.5, rng)
			return func(x []float64, rng *rand.Rand) float64 {
				u := -2.0
				for k, s := range slope {
					v := rng.NormFloat64()
					x[k] = 10 + 5*v
					u += s * v
				}
				j := rng.IntN(ids)
				x[numbers+j] = 1
				return u + effect[j]
			}
		}}
}

// storeOfWords offers three numbers, and about six words of a vocabulary an item, some far more frequent than others.
func storeOfWords(vocabulary int) store {
	return store{items: 50, size: 4, features: 3 + vocabulary, numeric: 3,
		open: func(rng *rand.Rand) func(x []float64, rng *rand.Rand) float64 {
			effect := normals(vocabulary, 0.5, rng)
			return func(x []float64, rng *rand.Rand) float64 {
				u := -2.0
				for k := range 3 {
					x[k] = rng.NormFloat64()
					u += 0.3 * x[k]
				}
				for range 6 {
					v := rng.Float64()
					if j := int(float64(vocabulary) * v * v); x[3+j] == 0 {
						x[3+j] = 1
						u += effect[j]
					}
				}
				return u
			}
		}}
}

// storeOfNumbers offers numbers with a linear utility of the given standard deviation: independent ones, or, for an
// embedding, sums of eight factors and noise.
func storeOfNumbers(d int, sd float64, embedding bool) store {
	return store{items: 50, size: 4, features: d, numeric: d,
		open: func(rng *rand.Rand) func(x []float64, rng *rand.Rand) float64 {
			factors := d
			if embedding {
				factors = 8
			}
			w := mat.NewVecDense(factors, normals(factors, 1, rng))
			w.ScaleVec(sd/mat.Norm(w, 2), w)
			loading := mat.NewDense(d, factors, normals(d*factors, 1/math.Sqrt(float64(factors)), rng))
			return func(x []float64, rng *rand.Rand) float64 {
				z := mat.NewVecDense(factors, normals(factors, 1, rng))
				if embedding {
					mat.NewVecDense(d, x).MulVec(loading, z)
					for j := range x {
						x[j] += 0.3 * rng.NormFloat64()
					}
				} else {
					copy(x, z.RawVector().Data)
				}
				return mat.Dot(z, w) - 2
			}
		}}
}

// storeOfBends offers five numbers with a non-linear utility.
func storeOfBends() store {
	return store{items: 50, size: 4, features: 5, numeric: 5,
		open: func(*rand.Rand) func(x []float64, rng *rand.Rand) float64 {
			return func(x []float64, rng *rand.Rand) float64 {
				copy(x, normals(5, 1, rng))
				return -2 - x[0]*x[0] + x[1]*x[2]
			}
		}}
}

// storeOfIdeals offers numbers, such as a price, with an ideal value: the nearer the better.
func storeOfIdeals(d int) store {
	return store{items: 50, size: 4, features: d, numeric: d,
		open: func(rng *rand.Rand) func(x []float64, rng *rand.Rand) float64 {
			ideal := normals(d, 0.7, rng)
			return func(x []float64, rng *rand.Rand) float64 {
				u := -2.0
				copy(x, normals(d, 1, rng))
				for j, v := range x {
					u -= 0.8 * (v - ideal[j]) * (v - ideal[j])
				}
				return u
			}
		}}
}

// storeOfSegments offers four numbers, with different slopes for each of some segments of customers. A category of the
// customer names the segment.
func storeOfSegments(segments int) store {
	const numbers, items = 4, 30
	return store{items: items, size: 4, features: numbers + segments, numeric: numbers,
		open: func(rng *rand.Rand) func(x []float64, rng *rand.Rand) float64 {
			slope := mat.NewDense(segments, numbers, normals(segments*numbers, 0.7, rng))
			segment, drawn := 0, 0
			return func(x []float64, rng *rand.Rand) float64 {
				if drawn%items == 0 { // another customer
					segment = rng.IntN(segments)
				}
				drawn++
				x[numbers+segment] = 1
				copy(x, normals(numbers, 1, rng))
				return mat.Dot(slope.RowView(segment), mat.NewVecDense(numbers, x[:numbers])) - 2
			}
		}}
}

// beside returns a store of items with the features of a and of b, which offers numeric ones only if all of a's are
// numeric. The base utility is a's.
func (a store) beside(b store) store {
	c := a
	c.features += b.features
	c.numeric += b.numeric
	c.open = func(rng *rand.Rand) func(x []float64, rng *rand.Rand) float64 {
		first, second := a.open(rng), b.open(rng)
		return func(x []float64, rng *rand.Rand) float64 {
			return first(x[:a.features], rng) + second(x[a.features:], rng) + 2
		}
	}
	return c
}

func (a store) withRevenues() store {
	a.revenue = true
	return a
}

func normals(n int, sd float64, rng *rand.Rand) []float64 {
	v := make([]float64, n)
	for j := range v {
		v[j] = sd * rng.NormFloat64()
	}
	return v
}

func (a store) problem() Problem {
	p := Problem{NumFeatures: a.features, MaxShown: a.size, Rounds: 1000, Constraint: assortment.AtMost(a.size)}
	for j := range a.numeric {
		p.Numeric = append(p.Numeric, j)
	}
	return p
}

// regret returns a learner's regret after 1000 rounds in a store.
func (a store) regret(tb testing.TB, l vitrine.Learner, seed uint64) float64 {
	draw, total := a.open(stream.New(seed, 0, stream.Contexts)), 0.0
	for s := range 1000 {
		rng := stream.New(seed, s+1, stream.Contexts)
		x, u, shock := mat.NewDense(a.items, a.features, nil), make([]float64, a.items), make([]float64, a.items+1)
		c := &vitrine.Context{Features: x}
		for i := range u {
			u[i] = draw(x.RawRowView(i), rng)
		}
		if a.revenue {
			c.Revenue = make([]float64, a.items)
			for i := range c.Revenue {
				c.Revenue[i] = 1 + 2*rng.Float64()
			}
		}
		vitrine.DrawShocks(shock, rng)
		offer := l.Policy().Offer(c, rng)
		fatal.If(tb, l.Observe(vitrine.Round{Context: c, Offer: offer,
			Choice: vitrine.Choose(offer.Assortment, u, shock)}))
		_, best := assortment.Maximize(nil, assortment.AtMost(a.size), u, c.Revenue)
		total += best - vitrine.ExpectedRevenue(offer.Assortment, u, c.Revenue)
	}
	return total
}

// BenchmarkAuto plays b.N stores of each kind, from the seed 301 on, and reports the mean regret after 1000 rounds and
// its standard error, of auto and of UCB-MNL on all columns with three pairs of constants. bench/auto.sh runs it.
func BenchmarkAuto(b *testing.B) {
	learners := []string{"auto"}
	create := map[string]func(p Problem, rng *rand.Rand) (vitrine.Learner, error){
		"auto": func(p Problem, rng *rand.Rand) (vitrine.Learner, error) { return NewAuto(p, AutoOptions{}, rng) },
	}
	for _, c := range []struct{ radius, lambda float64 }{{0, 1}, {0, 10}, {0.3, 3}} {
		name := fmt.Sprintf("ucb-mnl,radius=%v,lambda=%v", c.radius, c.lambda)
		learners = append(learners, name)
		create[name] = func(p Problem, _ *rand.Rand) (vitrine.Learner, error) {
			o := DefaultUCBOptions()
			o.Constants, o.Intercept, o.Radius, o.Lambda = "tuned", true, c.radius, c.lambda
			return NewUCB(p, o)
		}
	}
	for _, c := range []struct {
		name  string
		store store
	}{
		{"25-ids", storeOfIDs(30, 4, 2, 25, 0.8)},
		{"60-ids", storeOfIDs(30, 4, 2, 60, 0.8)},
		{"60-ids-revenues", storeOfIDs(30, 4, 2, 60, 0.8).withRevenues()},
		{"100-ids", storeOfIDs(30, 3, 3, 100, 0.8)},
		{"500-ids", storeOfIDs(100, 5, 12, 500, 0.7)},
		{"500-ids-revenues", storeOfIDs(100, 5, 12, 500, 0.7).withRevenues()},
		{"200-words", storeOfWords(200)},
		{"2000-words", storeOfWords(2000)},
		{"45-numbers", storeOfNumbers(45, 1.5, false)},
		{"150-numbers", storeOfNumbers(150, 1.5, false)},
		{"embedding-ids", storeOfNumbers(64, 1.2, true).beside(storeOfIDs(50, 4, 0, 200, 0.7))},
		{"bends", storeOfBends()},
		{"bends-categories", storeOfBends().beside(storeOfIDs(50, 4, 0, 8, 0.5)).beside(storeOfIDs(50, 4, 0, 8, 0.5))},
		{"ideals-numbers", storeOfIdeals(3).beside(storeOfNumbers(17, 1.2, false))},
		{"ideals-embedding-ids", storeOfIdeals(2).beside(storeOfNumbers(32, 1.2, true)).beside(
			storeOfIDs(50, 4, 0, 200, 0.7))},
		{"8-segments", storeOfSegments(8)},
		{"bends-ids", storeOfBends().beside(storeOfIDs(50, 4, 0, 100, 0.7))},
	} {
		for _, name := range learners {
			if name != "auto" && c.store.features > 400 {
				continue // UCB-MNL keeps d² numbers, and takes a minute a store of 500 ids
			}
			b.Run(c.name+"/"+name, func(b *testing.B) {
				sum, square := 0.0, 0.0
				for k := range b.N {
					seed := uint64(301 + k)
					l := fatal.Or(create[name](c.store.problem(), stream.New(seed, 0, stream.Learner)))(b)
					regret := c.store.regret(b, l, seed)
					sum, square = sum+regret, square+regret*regret
				}
				n := float64(b.N)
				b.ReportMetric(sum/n, "regret")
				b.ReportMetric(math.Sqrt(max(0, square/n-sum*sum/n/n)/max(1, n-1)), "±regret")
			})
		}
	}
}
