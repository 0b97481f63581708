package bandit

import (
	"iter"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/mle"
	"vitrine/utility"
)

func newFeelGood(t *testing.T, p Problem, m utility.Model, change func(o *FeelGoodOptions)) *FeelGood {
	t.Helper()
	o := DefaultFeelGoodOptions()
	change(&o)
	l := fatal.Or(NewFeelGood(p, m, o, newRand()))(t)
	return l
}

// naivePotential is U(w) from its definition, Equation 29 of Zhang and Luo (2024) or with the log
// loss: max R over all sets by enumeration, all rounds again.
func naivePotential(l *FeelGood, rounds []vitrine.Round, w []float64) float64 {
	total := 0.0
	for _, v := range w {
		total += l.o.Ridge / 2 * v * v
	}
	for _, r := range rounds {
		n := r.Context.NumItems()
		u, gamma, m := make([]float64, n), []float64{0}, l.model
		if l.o.PositionEffects {
			sum := m.(*utility.Sum)
			m, gamma = sum.Base(), append(gamma, w[sum.Base().NumParams():]...)
		}
		m.Utilities(u, w[:m.NumParams()], r.Context.Features)
		first := slices.Clone(u)
		for p, i := range r.Offer.Order {
			u[i] += vitrine.PlaceEffect(gamma, p)
		}
		sum, chosen := 1.0, 1.0
		for k, i := range r.Offer.Assortment {
			sum += math.Exp(u[i])
			if int(r.Choice) == k+1 {
				chosen = math.Exp(u[i])
			}
		}
		takes := append([]vitrine.Choice{r.Choice}, r.More...)
		if l.o.Loss == "log" {
			total -= l.o.Eta * math.Log(chosen/sum)
			for _, y := range r.More {
				total -= l.o.Eta * math.Log(math.Exp(u[r.Offer.Assortment[y-1]])/(sum-1))
			}
		} else if m := float64(len(takes)); m > 1 {
			// The mean over which take is the first, without the part that is the same for all w.
			error := func(y vitrine.Choice, sum float64) (e float64) {
				for k, i := range r.Offer.Assortment {
					p := math.Exp(u[i]) / sum
					if int(y) == k+1 {
						p--
					}
					e += p * p
				}
				return e
			}
			mean, equal := 0.0, 0.0
			for a, first := range takes {
				for b, y := range takes {
					if a == b {
						mean += error(first, sum) / m
					} else {
						mean += error(y, sum-1) / m
					}
					if y == first {
						equal += 1 / (m * m)
					}
				}
			}
			total += l.o.Eta * (mean - m*(1-equal)) / (8 * float64(l.p.MaxShown))
		} else {
			for k, i := range r.Offer.Assortment {
				e := math.Exp(u[i]) / sum
				if int(r.Choice) == k+1 {
					e--
				}
				total += l.o.Eta * e * e / (8 * float64(l.p.MaxShown))
			}
		}
		if r.Context.Feasible != nil {
			continue
		}
		sets, err := assortment.Enumerate(nil, l.p.Constraint, l.p.MaxShown, n, 1000)
		if err != nil {
			panic(err)
		}
		best := 0.0
		for m := range sets.Len() {
			for order := range orders(sets.At(m)) {
				best = max(best, vitrine.OrderedRevenue(order, first, gamma, r.Context.Revenue))
			}
		}
		total -= l.o.FeelGood * best
	}
	return total
}

// orders are the permutations of a set.
func orders(s vitrine.Assortment) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		order := slices.Clone([]int(s))
		var from func(k int) bool
		from = func(k int) bool {
			if k == len(order) {
				return yield(slices.Clone(order))
			}
			for i := k; i < len(order); i++ {
				order[k], order[i] = order[i], order[k]
				if !from(k + 1) {
					return false
				}
				order[k], order[i] = order[i], order[k]
			}
			return true
		}
		from(0)
	}
}

// jacobianOnly hides a model's optional interfaces.
type jacobianOnly struct{ utility.Model }

// U is its definition, with its gradient, for any model; a round of its own feasible family and one with an empty page
// are in the likelihood. With position effects places count, and max R is over all orders; a round without an order
// puts all items in the first place.
func TestFeelGoodPotential(t *testing.T) {
	t.Run("without places", func(t *testing.T) { potential(t, false) })
	t.Run("with position effects", func(t *testing.T) { potential(t, true) })
}

func potential(t *testing.T, effects bool) {
	rounds := linearHistory(t, 12)
	if effects {
		rng := newRand()
		for s := range rounds[1:] {
			offer := &rounds[s].Offer
			offer.Order = slices.Clone([]int(offer.Assortment))
			rng.Shuffle(len(offer.Order),
				func(a, b int) { offer.Order[a], offer.Order[b] = offer.Order[b], offer.Order[a] })
		}
	}
	for s, r := range rounds {
		if r.Choice != vitrine.Outside && s%2 == 1 {
			rounds[s].More = slices.Repeat([]vitrine.Choice{r.Choice, vitrine.Choice(len(r.Offer.Assortment))}, s%4)
		}
	}
	own := *rounds[3].Context
	own.Feasible = assortment.AtMost(paperSize)
	rounds[3].Context = &own
	rounds[5].Offer, rounds[5].Choice, rounds[5].More = vitrine.Offer{}, vitrine.Outside, nil
	plain := *rounds[7].Context
	plain.Revenue = nil
	rounds[7].Context = &plain
	for _, m := range []utility.Model{paperModel(), jacobianOnly{paperModel()},
		utility.NewLinear(paperFeatures, true)} {
		for _, c := range []struct {
			loss string
			feel float64
		}{{"log", 0}, {"log", 0.7}, {"squared", 0}, {"squared", 0.7}} {
			l := newFeelGood(t, paperProblem(), m, func(o *FeelGoodOptions) {
				o.Loss, o.Ridge, o.Eta, o.FeelGood, o.PositionEffects = c.loss, 0.4, 1.3, c.feel, effects
			})
			observeAll(t, l, rounds)
			rng := newRand()
			w, grad := make([]float64, len(l.w)), make([]float64, len(l.w))
			for j := range w {
				w[j] = rng.NormFloat64()
			}
			f := func(w []float64) float64 { return naivePotential(l, rounds, w) }
			wantNear(t, "U", l.past.Gradient(grad, w), f(w), 1e-12)
			for j, want := range fd.Gradient(nil, f, w, &fd.Settings{Formula: fd.Central}) {
				wantNear(t, "∇U", grad[j], want, 1e-6)
			}
		}
	}
}

// The draws match the mean and the variance of the posterior on a grid, and how often each set of the next round is
// best.
func TestFeelGoodChainAgainstAGrid(t *testing.T) {
	for _, loss := range []string{"log", "squared"} {
		t.Run(loss, func(t *testing.T) { chainAgainstAGrid(t, loss) })
	}
}

func chainAgainstAGrid(t *testing.T, loss string) {
	const d, n, feel = 2, 5, 2
	p := Problem{NumFeatures: d, MaxShown: 2, Rounds: 100, Constraint: assortment.AtMost(2)}
	l := newFeelGood(t, p, utility.NewLinear(d, false), func(o *FeelGoodOptions) {
		o.Loss, o.FeelGood, o.Moves = loss, feel, 200
	})
	rng := newRand()
	context := func() *vitrine.Context {
		x := &vitrine.Context{Features: mat.NewDense(n, d, nil), Revenue: make([]float64, n)}
		for i := range n {
			x.Revenue[i] = rng.Float64()
			for j := range d {
				x.Features.Set(i, j, rng.NormFloat64())
			}
		}
		return x
	}
	var rounds []vitrine.Round
	for s := range 15 {
		r := vitrine.Round{Context: context(), Offer: vitrine.Offer{Assortment: vitrine.Assortment{s % 4, 4}},
			Choice: vitrine.Choice(s % 3)}
		rounds = append(rounds, r)
	}
	observeAll(t, l, rounds)

	var mass, mean, square [d]float64
	const side, step = 4.0, 0.1 // the sums of so smooth a density do not depend on the step
	for a := -side; a <= side; a += step {
		for b := -side; b <= side; b += step {
			w := []float64{a, b}
			density := math.Exp(-naivePotential(l, rounds, w))
			for j, v := range w {
				mass[j] += density
				mean[j] += density * v
				square[j] += density * v * v
			}
		}
	}
	const moves = 30_000
	var got, got2 [d]float64
	rate := l.chain().Run(l.past, l.w, moves, stream.New(9, 9, stream.Learner), func(w []float64, _ float64) {
		for j, v := range w {
			got[j] += v / moves
			got2[j] += v * v / moves
		}
	})
	for j := range d {
		m := mean[j] / mass[j]
		sd := math.Sqrt(square[j]/mass[j] - m*m)
		if math.Abs(got[j]-m) > 0.06*sd {
			t.Errorf("mean of w_%d: %v, on the grid %v of standard deviation %v", j, got[j], m, sd)
		}
		wantNear(t, "standard deviation", math.Sqrt(got2[j]-got[j]*got[j]), sd, 0.05)
	}
	if math.Abs(rate-0.574) > 0.2 {
		t.Errorf("acceptance %v after adaptation, want about 0.574", rate)
	}
	diagnostics := l.Diagnostics()
	if a, e := diagnostics["acceptance"], diagnostics["effective_size"]; !(a > 0.2 && a < 1) || !(e > 10 && e <= 200) {
		t.Errorf("diagnostics %v", diagnostics)
	}
}

// The step finds the scale of the posterior however far from it it begins: its
// changes sum up without bound.
func TestFeelGoodStepAdaptsFromAfar(t *testing.T) {
	for _, factor := range []float64{math.Exp(6), math.Exp(-6)} {
		l := newFeelGood(t, paperProblem(), utility.NewLinear(paperFeatures, true),
			func(o *FeelGoodOptions) { o.FeelGood = 0 })
		l.step *= factor
		observeAll(t, l, linearHistory(t, 100))
		rate := l.chain().Run(l.past, slices.Clone(l.w), 2000, stream.New(9, 9, stream.Learner), nil)
		if math.Abs(rate-mle.TargetAcceptance) > 0.2 {
			t.Errorf("a step that begins %v times too large is %v after 100 rounds, with the acceptance %v", factor,
				l.step, rate)
		}
	}
}

// The term of λ draws parameters that promise more.
func TestFeelGoodFeelsGood(t *testing.T) {
	promise := func(feel float64) float64 {
		l := newFeelGood(t, paperProblem(), utility.NewLinear(paperFeatures, true),
			func(o *FeelGoodOptions) { o.FeelGood = feel })
		total := 0.0
		for s, r := range linearHistory(t, 60) {
			observeAll(t, l, []vitrine.Round{r})
			u := make([]float64, paperItems)
			l.model.Utilities(u, l.w, paperContext(s).Features)
			_, best := assortment.Maximize(nil, l.p.Constraint, u, paperContext(s).Revenue)
			total += best
		}
		return total
	}
	if with, without := promise(20), promise(0); with < 1.05*without {
		t.Errorf("max R summed over the draws is %v, and %v without the term", with, without)
	}
}

func TestFeelGoodDiagnosticsChangeNothing(t *testing.T) {
	l := newFeelGood(t, paperProblem(), paperModel(), func(*FeelGoodOptions) {})
	if l.Diagnostics() != nil {
		t.Error("diagnostics of no rounds")
	}
	observeAll(t, l, linearHistory(t, 5))
	before := fatal.Or(l.MarshalBinary())(t)
	l.Diagnostics()
	if after, _ := l.MarshalBinary(); string(after) != string(before) {
		t.Error("diagnostics moved the chain")
	}
}

func TestFeelGoodOffersHaveNoPropensity(t *testing.T) {
	l := newFeelGood(t, paperProblem(), paperModel(), func(*FeelGoodOptions) {})
	expect.Equal(t, l.Policy().Offer(paperContext(1), newRand()).Propensity, 0, "propensity")
}

// A round of other items than the family's is refused, unless it brings a family of its own.
func TestFeelGoodRefusesRoundsOfAnotherFamily(t *testing.T) {
	family := fatal.Or(assortment.NewQuota(assortment.Rules{Items: 5, Max: paperSize}))(t)
	p := paperProblem()
	p.Constraint = family
	l := newFeelGood(t, p, paperModel(), func(*FeelGoodOptions) {})
	r := linearHistory(t, 1)[0]
	expect.Part(l.Observe(r))(t, "the round has 8 items, its feasible "+
		"family has 5")
	x := *r.Context
	x.Feasible = assortment.AtMost(paperSize)
	r.Context = &x
	observeAll(t, l, []vitrine.Round{r})
}

// The feasible family is not in a snapshot's name: rounds of another one are
// refused with the snapshot, and not where max R is first computed.
func TestFeelGoodRefusesSnapshotsOfAnotherFamily(t *testing.T) {
	learner := func(items int) *FeelGood {
		family := fatal.Or(assortment.NewQuota(assortment.Rules{Items: items, Max: paperSize}))(t)
		p := paperProblem()
		p.Constraint = family
		return newFeelGood(t, p, paperModel(), func(*FeelGoodOptions) {})
	}
	history := linearHistory(t, 2)
	l := learner(history[0].Context.NumItems())
	observeAll(t, l, history)
	data := fatal.Or(l.MarshalBinary())(t)
	expect.Part(learner(5).UnmarshalBinary(data))(t, "the round has 8 "+
		"items, its feasible family has 5")
}

// At the flattest prior there is no round that a draw from it makes unlearnable.
func TestFeelGoodLearnsAtTheFlattestPrior(t *testing.T) {
	l := newFeelGood(t, paperProblem(), paperModel(), func(o *FeelGoodOptions) { o.Ridge = 1e-6 })
	observeAll(t, l, linearHistory(t, 40))
}

// The shape of the proposal is the information of the loss: for the squared error Gauss and Newton's, by finite
// differences of the probabilities.
func TestFeelGoodInformation(t *testing.T) {
	const eta = 1.3
	for _, r := range linearHistory(t, 5) {
		l := newFeelGood(t, paperProblem(), paperModel(), func(o *FeelGoodOptions) { o.Eta, o.Ridge = eta, 2 })
		w := append([]float64(nil), l.w...)
		s := r.Offer.Assortment
		probabilities := func(y, w []float64) {
			u, all := make([]float64, paperItems), make([]float64, len(s)+1)
			l.model.Utilities(u, w, r.Context.Features)
			offered := make([]float64, len(s))
			for k, i := range s {
				offered[k] = u[i]
			}
			vitrine.Probabilities(all, offered)
			copy(y, all[1:])
		}
		observeAll(t, l, []vitrine.Round{r})
		j, want := mat.NewDense(len(s), len(w), nil), mat.NewDense(len(w), len(w), nil)
		fd.Jacobian(j, probabilities, w, &fd.JacobianSettings{Formula: fd.Central})
		want.Mul(j.T(), j)
		want.Scale(eta/(4*paperSize), want)
		have := l.v.Sym(nil)
		for a := range w {
			want.Set(a, a, want.At(a, a)+2)
			for b := range w {
				wantNear(t, "V", have.At(a, b), want.At(a, b), 1e-6)
			}
		}
	}
}
