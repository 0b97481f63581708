package bandit

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// data is a world with features as shops have them, not as learners like them.
type data struct {
	// draw stores the features of the items of round s in x, and their utilities in u.
	draw func(x *mat.Dense, u []float64, s int, rng *rand.Rand)
	// items returns the number of items in round s.
	items    func(s int) int
	features int
}

// visit plays rounds with a learner, which must not refuse any, and returns the regret of each.
func (w data) visit(t *testing.T, l vitrine.Learner, seed uint64, rounds int) (regret []float64) {
	t.Helper()
	refused := 0
	for s := range rounds {
		rng := rand.New(rand.NewPCG(seed, uint64(s)))
		n := w.items(s)
		x, u, shock := mat.NewDense(n, w.features, nil), make([]float64, n), make([]float64, n+1)
		w.draw(x, u, s, rng)
		vitrine.DrawShocks(shock, rng)
		context := &vitrine.Context{Features: x}
		offer := l.Policy().Offer(context, rng)
		if err := l.Observe(vitrine.Round{Context: context, Offer: offer,
			Choice: vitrine.Choose(offer.Assortment, u, shock)}); err != nil {
			if refused++; refused == 1 {
				t.Errorf("seed %d, round %d: %v", seed, s, err)
			}
		}
		_, best := assortment.Maximize(nil, assortment.AtMost(paperSize), u, nil)
		regret = append(regret, best-vitrine.ExpectedRevenue(offer.Assortment, u, nil))
	}
	if refused > 0 {
		t.Errorf("seed %d: %d of %d rounds were refused", seed, refused, rounds)
	}
	return regret
}

func thirty(int) int { return 30 }

// normal stores n standard normal numbers in row.
func normal(row []float64, rng *rand.Rand) {
	for j := range row {
		row[j] = rng.NormFloat64()
	}
}

func logNormal(median, spread float64, rng *rand.Rand) float64 {
	return median * math.Exp(spread*rng.NormFloat64())
}

// For any first context and any finite features, no round is refused and the learner learns.
func TestNoFeaturesPoisonBMA(t *testing.T) {
	for name, w := range map[string]data{
		"two items of price 2 and 2.5 come first": {
			features: 2,
			items: func(s int) int {
				if s == 0 {
					return 2
				}
				return 30
			},
			draw: func(x *mat.Dense, u []float64, s int, rng *rand.Rand) {
				for i := range u {
					price := logNormal(33, 1, rng)
					if s == 0 {
						price = 2 + 0.5*float64(i)
					}
					x.SetRow(i, []float64{price, rng.NormFloat64()})
					u[i] = 1 - price/30 + x.At(i, 1)
				}
			},
		},
		"a first context of a hundredth of the spread": {
			features: 3, items: thirty,
			draw: func(x *mat.Dense, u []float64, s int, rng *rand.Rand) {
				for i := range u {
					row := x.RawRowView(i)
					normal(row, rng)
					if s == 0 {
						for j := range row {
							row[j] /= 100
						}
					}
					u[i] = 1.5*row[0] - row[1] - 1
				}
			},
		},
		"what the first customer spends": {
			features: 3, items: thirty,
			draw: func(x *mat.Dense, u []float64, s int, rng *rand.Rand) {
				spends := logNormal(20, 1.5, rng)
				if s == 0 {
					spends = 0
				}
				for i := range u {
					row := x.RawRowView(i)
					normal(row, rng)
					row[2] = spends
					u[i] = row[0] - row[1] + math.Log1p(spends)/4 - 2
				}
			},
		},
		"a constant, and one almost": {
			features: 4, items: thirty,
			draw: func(x *mat.Dense, u []float64, s int, rng *rand.Rand) {
				for i := range u {
					row := x.RawRowView(i)
					normal(row, rng)
					row[2], row[3] = 4000, 1e-3+1e-12*rng.NormFloat64()
					if s == 100 {
						row[2] = -1e4 // not so constant
					}
					u[i] = 1.5*row[0] - row[1] - 1
				}
			},
		},
		"heavy tails": {
			features: 2, items: thirty,
			draw: func(x *mat.Dense, u []float64, s int, rng *rand.Rand) {
				for i := range u {
					row := x.RawRowView(i)
					row[0] = rng.NormFloat64()
					row[1] = max(-1e4, min(1e4, rng.NormFloat64()/rng.NormFloat64())) // Cauchy's
					u[i] = 1.5*row[0] - 1 + math.Tanh(row[1])
				}
			},
		},
		"units of 1e4 and 1e-3": {
			features: 2, items: thirty,
			draw: func(x *mat.Dense, u []float64, s int, rng *rand.Rand) {
				for i := range u {
					row := x.RawRowView(i)
					row[0], row[1] = 2e3*rng.NormFloat64(), 1e-3*rng.NormFloat64()
					row[0] = max(-1e4, min(1e4, row[0]))
					u[i] = row[0]/2e3 + 1e3*row[1] - 1
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			const seeds, rounds = 4, 300
			late, chance := 0.0, 0.0
			for seed := range uint64(seeds) {
				p := Problem{NumFeatures: w.features, MaxShown: paperSize, Rounds: rounds,
					Constraint: assortment.AtMost(paperSize)}
				l := newBMA(t, p, DefaultExperts(w.features))
				late += mean(w.visit(t, l, seed, rounds)[rounds/2:]) / seeds
				chance += mean(w.visit(t, must(NewUniform(p)), seed, rounds)) / seeds
				saved := fatal.Or(l.MarshalBinary())(t)
				expect.Error(t, newBMA(t, p, DefaultExperts(w.features)).UnmarshalBinary(saved), nil)
			}
			if !(late < 0.25*chance) {
				t.Errorf("a round of the second half has the regret %.4f, a uniform one %.4f", late, chance)
			}
			t.Logf("a round of the second half has the regret %.4f, a uniform one %.4f", late, chance)
		})
	}
}

// A first context unlike all others costs only a few rounds: after it, the regret is as without it.
func TestAFirstContextIsSoonForgotten(t *testing.T) {
	const rounds, seeds = 400, 6
	small := func(first bool) data {
		return data{features: 3, items: thirty, draw: func(x *mat.Dense, u []float64, s int, rng *rand.Rand) {
			for i := range u {
				row := x.RawRowView(i)
				normal(row, rng)
				if s == 0 && first {
					for j := range row {
						row[j] /= 100
					}
				}
				u[i] = 1.5*row[0] - row[1] - 1
			}
		}}
	}
	sum := map[bool]float64{}
	for _, first := range []bool{false, true} {
		for seed := range uint64(seeds) {
			l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
			sum[first] += mean(small(first).visit(t, l, seed, rounds)) * rounds / seeds
		}
	}
	if !(sum[true] < 1.5*sum[false]+0.5) {
		t.Errorf("regret %.2f after a first context of a hundredth of the spread, %.2f without", sum[true], sum[false])
	}
	t.Logf("regret %.2f after a first context of a hundredth of the spread, %.2f without", sum[true], sum[false])
}

// The moments equal a computation over all items at once, and the standardisation in use is never far from them at a
// full fit.
func TestMomentsAreThoseOfAllItems(t *testing.T) {
	const d = 3
	rng := rand.New(rand.NewPCG(8, 8))
	s := newMoments(d)
	var all []float64
	for k := range 40 {
		n := k % 5
		if n == 0 {
			s.add(nil)
			continue
		}
		x := mat.NewDense(n, d, nil)
		for i := range n {
			x.SetRow(i, []float64{1e4 - rng.Float64(), 1e-3 * rng.NormFloat64(), 7})
		}
		all = append(all, x.RawMatrix().Data...)
		s.add(x)
	}
	rows := mat.NewDense(len(all)/d, d, all)
	z := s.standardisation()
	for j := range d {
		column := mat.Col(nil, j, rows)
		sum, square := 0.0, 0.0
		for _, v := range column {
			sum += v
		}
		sum /= float64(len(column))
		for _, v := range column {
			square += (v - sum) * (v - sum)
		}
		sd := math.Sqrt(square / float64(len(column)))
		if j == 0 && sd < 1e-6*sum || j == 2 {
			sd = math.Abs(sum)
		}
		wantNear(t, "mean", z.shift[j], sum, 1e-12)
		wantNear(t, "standard deviation", z.scale[j], sd, 1e-9)
	}
	for i, v := range standardisedRows(z, rows).RawMatrix().Data {
		wantNear(t, "a feature there and back", float64(v*z.scale[i%d])+z.shift[i%d], all[i], 1e-12)
	}
}

// A feature with a deviation that is a small share of its mean is constant: its rounding must not become its values.
// Its scale is the size of the mean, or 1, and it gets no bounds.
func TestConstantFeaturesAreNotStandardizedByNoise(t *testing.T) {
	for _, c := range []struct{ mean, deviation, scale float64 }{
		{1e6, 1e-3, 1e6}, {-1e6, 1e-3, 1e6}, {1e6, 0.9, 1e6}, {1e6, 1.1, 1.1}, {1, 1e-3, 1e-3}, {0, 1e-3, 1e-3},
		{0, 1e-13, 1}, {0, 0, 1}, {1e-13, 1e-14, 1}, {5, 0, 5},
	} {
		s := newMoments(1)
		s.extremes = newExtremes(1)
		for range 2 * boundRounds {
			s.add(mat.NewDense(4, 1, []float64{c.mean - c.deviation, c.mean + c.deviation, c.mean - c.deviation,
				c.mean + c.deviation}))
		}
		z := s.standardisation()
		wantNear(t, "mean", z.shift[0], c.mean, 1e-12)
		if math.Abs(z.scale[0]-c.scale) > 1e-6*c.scale {
			t.Errorf("mean %v, deviation %v: the scale is %v, want %v", c.mean, c.deviation, z.scale[0], c.scale)
		}
		if varies := c.scale == c.deviation; (s.bounds() != nil) != varies {
			t.Errorf("mean %v, deviation %v: bounds %v", c.mean, c.deviation, s.bounds())
		}
	}
}

// Moments stand still within a quarter of a standard deviation; a feature that
// begins to vary is noticed.
func TestStandstill(t *testing.T) {
	z := standardisation{shift: []float64{10, 0}, scale: []float64{4, 1}}
	for _, c := range []struct {
		mean, sd float64
		stands   bool
	}{{10, 4, true}, {10.99, 4, true}, {11.01, 4, false}, {8.99, 4, false}, {10, 4.99, true}, {10, 5.01, false},
		{10, 3.21, true}, {10, 3.19, false}} {
		expect.Equal(t, z.stands(standardisation{shift: []float64{c.mean, 0}, scale: []float64{c.sd, 1}}), c.stands,
			"mean 10 →", c.mean, "standard deviation 4 →", c.sd, "stands")
	}
}

// After the standardisation moved, a learner is as if it had used the new one from the first round on: the filter of an
// expert with a memory is played again, and the linear fit uses the new prior.
func TestMovedMomentsAreLearnedFromTheFirstRound(t *testing.T) {
	d := paperFeatures
	experts := []Expert{{Model: utility.NewLinear(d, true)}, {Model: utility.NewLinear(d, true), MemoryRounds: 40}}
	l := newBMA(t, paperProblem(), experts)
	wide := func(x []float64) float64 { return x[0] }
	play(t, l, wide, 0, 60) // of 100 rounds the learner knows that what follows is out of bounds
	before := l.z
	x := paperContext(0)
	x.Features.Scale(3000, x.Features)
	begun := 0
	var job *fitJob
	for moved := false; !moved; moved = before.scale[0] != l.z.scale[0] {
		if l.job != nil && l.job != job {
			job, begun = l.job, l.rounds
		}
		if l.rounds > 95 {
			t.Fatal("the standardisation never moved")
		}
		fatal.If(t, l.Observe(vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{0, 1}},
			Choice: 1}))
	}
	twin := newBMA(t, paperProblem(), experts)
	twin.z, twin.history, twin.rounds = l.z, l.history, l.rounds
	f := fitting{beliefs: twin.beliefs, o: l.o, seed: l.seed, rounds: begun, moved: true, workers: 1}
	f.run(l.history.Slice(0, begun), 0)
	for s := begun; s < l.rounds; s++ {
		twin.beliefs.learn(l.history.Round(s), false, new(tangent))
	}
	for i, e := range l.experts {
		for j, v := range e.posterior.Mode {
			wantNear(t, "a parameter", v, twin.experts[i].posterior.Mode[j], 0.02)
		}
		wantNear(t, "the evidence", e.posterior.LogEvidence, twin.experts[i].posterior.LogEvidence, 1e-4)
	}
}

// standardisedRows returns standardised rows of x.
func standardisedRows(z standardisation, x *mat.Dense) *mat.Dense {
	var items utility.Columns
	items.SetRows(x)
	z.of(&items)
	rows := mat.DenseCopyOf(x)
	items.Rows(rows)
	return rows
}
