package theory_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/env"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/paper/theory"
	"vitrine/utility"
)

const (
	rounds = 120
	warmup = 20
	size   = 3
)

// life records a learner's life in a world with known w*, as seen by an independent observer.
type life struct {
	witness    *theory.Witness
	symmetries theory.Symmetries
	world      *env.World
	options    bandit.ONLOptions
	pilot      []float64    // ŵ_0
	centers    [][]float64  // ŵ_t in Phase II
	gradients  []*mat.Dense // ∇f_ŵt for the items in S_t
}

// live plays ONL-MNL with options set by change.
func live(t *testing.T, change func(*bandit.ONLOptions)) *life {
	t.Helper()
	l := &life{symmetries: theory.Symmetries{Features: 2, Hidden: 2, Activation: utility.Sigmoid}}
	m := network(l.symmetries)
	truth := env.NewFamily(m, -1, 1, newRand(1))
	l.world = &env.World{Items: 8, Contexts: env.Gaussian{}, Truth: truth, Revenues: env.One{}}
	l.options = bandit.DefaultONLOptions()
	l.options.Warmup, l.options.PilotSteps, l.options.Lambda = warmup, 200, 2
	change(&l.options)
	p := bandit.Problem{NumFeatures: 2, MaxShown: size, Rounds: rounds, Constraint: assortment.AtMost(size)}
	onl, err := bandit.NewONL(p, m, l.options, newRand(2))
	fatal.If(t, err)
	if l.witness, err = theory.NewWitness(onl, p, m, l.symmetries, l.world,
		truth.Params()); err != nil {
		t.Fatal(err)
	}
	rng, u := newRand(3), make([]float64, 8)
	for range rounds {
		x := l.world.Context(rng)
		l.world.Utilities(u, x)
		offer := l.witness.Policy().Offer(x, rng)
		shock := make([]float64, 9)
		vitrine.DrawShocks(shock, rng)
		if e, ok := onl.Ellipsoid(); ok {
			l.pilot = append([]float64(nil), e.Pilot...)
			l.centers = append(l.centers, append([]float64(nil), e.Center...))
			rows := mat.NewDense(len(offer.Assortment), 2, nil)
			for k, i := range offer.Assortment {
				rows.SetRow(k, x.Features.RawRowView(i))
			}
			g := mat.NewDense(len(offer.Assortment), len(e.Center), nil)
			m.Gradients(g, e.Center, rows)
			l.gradients = append(l.gradients, g)
		}
		fatal.If(t, l.witness.Observe(vitrine.Round{Context: x, Offer: offer,
			Choice: vitrine.Choose(offer.Assortment, u, shock)}))
	}
	return l
}

// grams returns V_t in and after Phase II, summed from scratch.
func (l *life) grams() []*mat.SymDense {
	d := len(l.pilot)
	v := mat.NewSymDense(d, nil)
	for j := range d {
		v.SetSym(j, j, l.options.Lambda)
	}
	all := []*mat.SymDense{v}
	for _, g := range l.gradients {
		next := mat.NewSymDense(d, nil)
		next.CopySym(all[len(all)-1])
		for k := range g.RawMatrix().Rows {
			next.SymRankOne(next, 1, mat.NewVecDense(d, g.RawRowView(k)))
		}
		all = append(all, next)
	}
	return all
}

func inverse(t *testing.T, v mat.Matrix) *mat.Dense {
	t.Helper()
	var inv mat.Dense
	fatal.If(t, inv.Inverse(v))
	return &inv
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// The potential sum, its bounds and the trace agree with dense inverses of matrices summed from scratch in every round.
func TestPotentialAgainstBruteForce(t *testing.T) {
	l := live(t, func(*bandit.ONLOptions) {})
	d := l.witness.Diagnostics()
	grams := l.grams()
	sum, largest := 0.0, 0.0
	for s, g := range l.gradients {
		inv, round := inverse(t, grams[s]), 0.0
		for k := range g.RawMatrix().Rows {
			v := mat.NewVecDense(len(l.pilot), g.RawRowView(k))
			round = max(round, mat.Inner(v, inv, v))
			largest = max(largest, mat.Norm(v, 2))
		}
		sum += min(1, round)
	}
	params, lambda := float64(len(l.pilot)), l.options.Lambda
	near(t, "the potential", d["potential"], sum)
	near(t, "its bound", d["potential_bound"],
		2*params*math.Log(1+float64(rounds-warmup)*largest*largest/(params*lambda)))
	last, trace := inverse(t, grams[len(grams)-1]), 0.0
	for _, g := range l.gradients {
		for k := range g.RawMatrix().Rows {
			v := mat.NewVecDense(len(l.pilot), g.RawRowView(k))
			trace += mat.Inner(v, last, v)
		}
	}
	near(t, "the trace", d["trace"], trace)
	if trace > params {
		t.Errorf("Σ‖∇f‖² in the norm of V_T⁻¹ is %v, above d_w = %v", trace, params)
	}
}

// Coverage agrees with its definition, using the image of w* nearest to the pilot, found exhaustively.
func TestCoverageAgainstItsDefinition(t *testing.T) {
	for _, beta := range []float64{0, 3, 30, 1e6} {
		l := live(t, func(o *bandit.ONLOptions) { o.Beta = beta })
		star := l.world.Truth.Params()
		nearest, distance := star, math.Inf(1)
		permutations(2, func(order []int) {
			for flips := range uint(4) {
				image := l.symmetries.Image(star, order, flips)
				if r := floats.Distance(l.pilot, image, 2); r < distance {
					nearest, distance = image, r
				}
			}
		})
		covered, needed := 0.0, 0.0
		grams := l.grams()
		for s, center := range l.centers {
			v := mat.NewVecDense(len(center), nil)
			v.SubVec(mat.NewVecDense(len(center), center), mat.NewVecDense(len(center), nearest))
			q := mat.Inner(v, grams[s], v)
			if q <= beta*float64(warmup+s+1)/rounds {
				covered++
			}
			needed = max(needed, q)
		}
		d := l.witness.Diagnostics()
		near(t, "the distance of the pilot", d["pilot"], distance*distance)
		near(t, "what is covered", d["covered"], covered/float64(len(l.centers)))
		near(t, "what is needed", d["needed"], needed)
		expect.Equal(t, d["always"] == 1, d["covered"] == 1, "β_T", beta, "always", d["always"], "with", d["covered"],
			"covered")
		for _, round := range []int{36, 120} {
			if _, ok := d[fmt.Sprintf("distance.%d", round)]; !ok {
				t.Errorf("no distance in round %d", round)
			}
		}
	}
}

// Lemma "Optimistic utility": whenever the set contains w̃*, no optimistic utility is below the truth, here without
// the slack for curvature. With radius 0, only as many are optimistic as by chance.
func TestCoverageMakesOptimism(t *testing.T) {
	wide := live(t, func(o *bandit.ONLOptions) { o.Beta = 1e6 }).witness.Diagnostics()
	for _, name := range []string{"covered", "always", "optimistic", "optimistic_best", "revenue"} {
		expect.Equal(t, wide[name], 1, "β_T = 10⁶", name, "=")
	}
	none := live(t, func(o *bandit.ONLOptions) { o.Beta = 0 }).witness.Diagnostics()
	if none["covered"] != 0 || none["always"] != 0 {
		t.Errorf("β_T = 0: %v of the rounds covered", none["covered"])
	}
	if none["optimistic"] == 0 || none["optimistic"] == 1 {
		t.Errorf("β_T = 0: %v of the utilities are optimistic", none["optimistic"])
	}
}

// The witness offers and learns exactly as its learner does.
func TestWitnessChangesNothing(t *testing.T) {
	l := live(t, func(*bandit.ONLOptions) {})
	m := network(l.symmetries)
	p := bandit.Problem{NumFeatures: 2, MaxShown: size, Rounds: rounds, Constraint: assortment.AtMost(size)}
	alone := fatal.Or(bandit.NewONL(p, m, l.options, newRand(2)))(t)
	rng, u := newRand(3), make([]float64, 8)
	phase2 := 0
	for range rounds {
		x := l.world.Context(rng)
		l.world.Utilities(u, x)
		offer := alone.Policy().Offer(x, rng)
		shock := make([]float64, 9)
		vitrine.DrawShocks(shock, rng)
		if e, ok := alone.Ellipsoid(); ok {
			if !floats.Equal(e.Center, l.centers[phase2]) {
				t.Fatalf("round %d of Phase II has another estimate", phase2+1)
			}
			phase2++
		}
		fatal.If(t, alone.Observe(vitrine.Round{Context: x, Offer: offer,
			Choice: vitrine.Choose(offer.Assortment, u, shock)}))
	}
}

func TestWitnessReportsErrors(t *testing.T) {
	l := live(t, func(*bandit.ONLOptions) {})
	p := bandit.Problem{NumFeatures: 2, MaxShown: size, Rounds: rounds, Constraint: assortment.AtMost(size)}
	m := network(l.symmetries)
	onl := fatal.Or(bandit.NewONL(p, m, l.options, newRand(2)))(t)
	expect.Refused(theory.NewWitness(onl, p, m, theory.Symmetries{Features: 2, Hidden: 3, Activation: utility.Sigmoid},
		l.world, l.pilot))(t, "symmetries of another network are accepted")
	w := fatal.Or(theory.NewWitness(onl, p, m, l.symmetries, l.world, l.pilot))(t)
	if d := w.Diagnostics(); d != nil {
		t.Errorf("diagnostics %v before Phase II", d)
	}
	expect.Refused(w.Observe(vitrine.Round{Context: &vitrine.Context{Features: mat.NewDense(4, 3, nil)},
		Offer: vitrine.Offer{Assortment: vitrine.Assortment{0}}}))(t, "a round of another problem is accepted")
}
