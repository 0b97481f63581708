package bandit

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/utility"
)

// A sketch ranks values within two percent of their rank among all values, in any order and with ties; its memory grows
// with the logarithm of their number.
func TestSketchRanks(t *testing.T) {
	const n = 100_000
	rng := newRand()
	for name, value := range map[string]func(i int) float64{
		"random":   func(int) float64 { return rng.NormFloat64() },
		"pareto":   func(int) float64 { return 1 / (1 - rng.Float64()) },
		"rising":   func(i int) float64 { return float64(i) },
		"falling":  func(i int) float64 { return -float64(i) },
		"periodic": func(i int) float64 { return float64(i % 64) },
		"ties":     func(int) float64 { return float64(rng.IntN(5)) },
	} {
		s, all := new(sketch), make([]float64, n)
		for i := range all {
			all[i] = value(i)
			s.add(all[i])
		}
		slices.Sort(all)
		below, kept := 0.0, 0
		for _, m := range s.masses() {
			first, _ := slices.BinarySearch(all, m.value)
			after := first
			for after < n && all[after] == m.value {
				after++
			}
			if rank := (below + m.weight/2) / n; rank < float64(first)/n-0.02 || rank > float64(after)/n+0.02 {
				t.Errorf("%s: %v has the rank %v, want %v to %v", name, m.value, rank, float64(first)/n,
					float64(after)/n)
			}
			below += m.weight
		}
		for _, level := range s.levels {
			kept += len(level)
		}
		if below != n || s.n != n || len(s.levels) > 13 || kept >= len(s.levels)*sketchWidth {
			t.Errorf("%s: %v items of weight %v, %d values in %d levels", name, s.n, below, kept, len(s.levels))
		}
	}
}

// The quantiles equal gonum's, which uses another algorithm.
func TestNormalQuantile(t *testing.T) {
	for _, p := range []float64{1e-9, 1e-5, 0.01, 0.07, 0.074, 0.076, 0.3, 0.5, 0.7, 0.926, 0.99, 1 - 1e-6} {
		wantNear(t, fmt.Sprintf("Φ⁻¹(%v)", p), normalQuantile(p), distuv.UnitNormal.Quantile(p), 3e-7)
	}
}

// Scores are standard normal for any distribution, increase with the value, do not depend on the unit, and go on beyond
// the extremes by at most one unit. Two values get standardised scores; constants are not bent.
func TestScoresAreNormal(t *testing.T) {
	rng := newRand()
	s, scaled := new(sketch), new(sketch)
	var values []float64
	for range 5000 {
		v := math.Exp(2 * rng.NormFloat64())
		values = append(values, v)
		s.add(v)
		scaled.add(1e6*v + 1e9)
	}
	b, r := s.bend()
	other, _ := scaled.bend()
	if r > 0.7 {
		t.Errorf("a log-normal feature has the correlation %v with its scores", r)
	}
	scores := make([]float64, len(values))
	for i, v := range values {
		scores[i] = b.of(v)
		if want := math.Log(v) / 2; math.Abs(want) < 2 && math.Abs(scores[i]-want) > 0.3 {
			t.Errorf("the score of %v is %v, want about %v", v, scores[i], want)
		}
		wantNear(t, "the score in another unit", other.of(1e6*v+1e9), scores[i], 1e-6)
	}
	mean, sd := stat.MeanStdDev(scores, nil)
	if math.Abs(mean) > 0.05 || math.Abs(sd-1) > 0.05 {
		t.Errorf("scores have the mean %v and the standard deviation %v", mean, sd)
	}
	for v, last := 0.0, math.Inf(-1); v < 100; v += 0.1 {
		if now := b.of(v); now < last {
			t.Fatalf("the score falls to %v at %v", now, v)
		} else {
			last = now
		}
	}
	k := len(b.x) - 1
	if b.of(1e300) != b.s[k]+1 || b.of(-1e300) != b.s[0]-1 {
		t.Errorf("beyond the extremes scores are %v and %v, of them %v and %v", b.of(-1e300), b.of(1e300), b.s[0],
			b.s[k])
	}
	two := new(sketch)
	for i := range 1000 {
		two.add(float64(i % 10 / 9))
	}
	if b, r := two.bend(); math.Abs(r-1) > 1e-9 || math.Abs(b.of(0)+1.0/3) > 0.05 || math.Abs(b.of(1)-3) > 0.3 {
		t.Errorf("an indicator in a tenth of the items has the scores %v and the correlation %v", b, r)
	}
	constant := new(sketch)
	constant.add(3)
	if _, r := constant.bend(); r != 1 {
		t.Errorf("a constant has the correlation %v", r)
	}
}

// A feature is bent by its distribution only: normal and uniform ones are not, log-normal and exponential ones are.
func TestBentFeatures(t *testing.T) {
	s := newMoments(4)
	s.sketches = newSketches(4)
	rng := newRand()
	for range 200 {
		x := mat.NewDense(20, 4, nil)
		for i := range 20 {
			x.SetRow(i, []float64{rng.NormFloat64(), rng.Float64(), math.Exp(rng.NormFloat64()), rng.ExpFloat64()})
		}
		s.add(x)
	}
	z, bent := s.scores(standardisation{})
	if !bent || len(z.bends[0].x)+len(z.bends[1].x) > 0 || len(z.bends[2].x) == 0 || len(z.bends[3].x) == 0 {
		t.Errorf("bends %v", z.bends)
	}
	later, _ := s.scores(z)
	if !z.stands(later) {
		t.Error("scores do not stand beside the same")
	}
	moved := later
	moved.bends = slices.Clone(later.bends)
	for s, want := range map[float64]bool{0.2: true, 0.3: false} {
		b := bend{later.bends[2].x, slices.Clone(later.bends[2].s)}
		floats.AddConst(s, b.s)
		if moved.bends[2] = b; z.stands(moved) != want {
			t.Errorf("scores that moved by %v stand: %v", s, !want)
		}
	}
}

// shopOf lets a learner meet customers in front of items with a log-normal feature and a normal one, in large units.
func shopOf(t testing.TB, l vitrine.Learner, from, to int, truth func(a, b float64) float64) {
	t.Helper()
	for s := from; s < to; s++ {
		rng := rand.New(rand.NewPCG(31, uint64(s)))
		x, u, shock := mat.NewDense(30, 2, nil), make([]float64, 30), make([]float64, 31)
		for i := range u {
			a, b := rng.NormFloat64(), rng.NormFloat64()
			x.SetRow(i, []float64{1e6 * math.Exp(1.5*a), 1.7e9 + 1e6*b})
			u[i] = truth(a, b)
		}
		vitrine.DrawShocks(shock, rng)
		c := &vitrine.Context{Features: x}
		offer := l.Policy().Offer(c, rng)
		fatal.If(t, l.Observe(vitrine.Round{Context: c, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u,
			shock)}))
	}
}

// If tastes follow logarithms, the beliefs in scores take the weight; if they follow the feature itself, those in
// moments do. A snapshot holds both, and a restored learner goes on as the other.
func TestBeliefsInScoresCompete(t *testing.T) {
	p := Problem{NumFeatures: 2, MaxShown: 3, Rounds: 1000, Constraint: assortment.AtMost(3)}
	for name, truth := range map[string]func(a, b float64) float64{
		"logarithms": func(a, b float64) float64 { return 1.5*a - b - 1 },
		"linear":     func(a, b float64) float64 { return math.Exp(1.5*a)/2 - b - 1 },
	} {
		l := newBMA(t, p, []Expert{{Model: utility.NewLinear(2, true)},
			{Model: utility.NewLinear(2, true), MemoryRounds: 200}, {Model: utility.NewSpectral(2, 1)}})
		shopOf(t, l, 0, 300, truth)
		if l.bent == nil {
			t.Fatalf("%s: no feature is bent", name)
		}
		ranks, total := 0.0, 0.0
		for family, weight := range l.Diagnostics() {
			total += weight
			if strings.HasSuffix(family, " of ranks") {
				ranks += weight
			}
		}
		if math.Abs(total-1) > 1e-9 || name == "logarithms" && ranks < 0.9 || name == "linear" && ranks > 0.1 {
			t.Errorf("%s: families of ranks have %v of %v", name, ranks, total)
		}
		if len(l.bent.experts) != 2 {
			t.Errorf("%d experts in scores, want those without a memory", len(l.bent.experts))
		}
		if linear := l.Policy().(*mixture).IsLinear(); linear && ranks > meanLeast {
			t.Error("a policy of scores says that it is linear")
		}
		data := fatal.Or(l.MarshalBinary())(t)
		twin := newBMA(t, p, []Expert{{Model: utility.NewLinear(2, true)},
			{Model: utility.NewLinear(2, true), MemoryRounds: 200}, {Model: utility.NewSpectral(2, 1)}})
		fatal.If(t, twin.UnmarshalBinary(data))
		shopOf(t, l, 300, 340, truth)
		shopOf(t, twin, 300, 340, truth)
		if !bytes.Equal(fatal.Or(l.MarshalBinary())(t), fatal.Or(twin.MarshalBinary())(t)) {
			t.Errorf("%s: a restored learner goes on otherwise", name)
		}
	}
}

// Features of any scale are learned by learners that standardise. Others refuse them, and say which learner does not.
func TestLargeFeatures(t *testing.T) {
	p := Problem{NumFeatures: 2, MaxShown: 3, Rounds: 1000, Constraint: assortment.AtMost(3)}
	l := fatal.Or(NewAuto(p, AutoOptions{}, newRand()))(t)
	truth := func(a, b float64) float64 { return 2*a - 2*b - 1 }
	shopOf(t, l, 0, 200, truth)
	x := &vitrine.Context{Features: mat.NewDense(3, 2, []float64{1e5, 1.702e9, 3e7, 1.6985e9, 1e6, 1.7e9})}
	u, sd := make([]float64, 3), make([]float64, 3)
	l.Policy().(*mixture).Value(u, sd, x.Features)
	if !(u[1] > u[2]+2 && u[1] > u[0]+2) {
		t.Errorf("utilities %v, want the second item far above the others", u)
	}
	ucb := fatal.Or(NewUCB(p, DefaultUCBOptions()))(t)
	expect.Part(ucb.Observe(vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{0}},
		Choice: vitrine.Outside}))(t, "use the policy auto")
}

// α falls from 1 to 0.3 with the spread of revenues, and not by one cent.
func TestOptimismFollowsRevenues(t *testing.T) {
	for _, c := range []struct {
		revenue []float64
		want    float64
	}{
		{nil, 1}, {[]float64{5}, 1}, {[]float64{2, 2, 2}, 1}, {[]float64{0, 0}, 1}, {[]float64{1, 2, 3}, 0.3},
		{[]float64{95, 105}, 0.65}, {[]float64{90, 110}, 0.3}, {[]float64{0, 1}, 0.3}, {[]float64{950, 1050}, 0.65},
	} {
		wantNear(t, fmt.Sprintf("α of %v", c.revenue), optimismOf(c.revenue), c.want, 1e-12)
	}
	if a := optimismOf([]float64{10, 10.01, 10}); a < 0.99 || a == 1 {
		t.Errorf("for one cent α is %v", a)
	}
}

// Before the first round every second slot shows items by chance, however extreme others are; later none does.
func TestFirstPagesSpread(t *testing.T) {
	p := Problem{NumFeatures: 1, MaxShown: 4, Rounds: 1000, Constraint: assortment.AtMost(4)}
	l := fatal.Or(NewAuto(p, AutoOptions{}, newRand()))(t)
	x := &vitrine.Context{Features: mat.NewDense(50, 1, nil)}
	for i := range 50 {
		x.Features.Set(i, 0, float64(i))
	}
	shown := map[int]bool{}
	for range 200 {
		for _, i := range l.Policy().Offer(x, newRandFrom(uint64(len(shown)))).Assortment {
			shown[i] = true
		}
	}
	rng := newRand()
	for range 200 {
		for _, i := range l.Policy().Offer(x, rng).Assortment {
			shown[i] = true
		}
	}
	if len(shown) < 45 {
		t.Errorf("200 pages show %d of 50 items", len(shown))
	}
	known := fatal.Or(NewAuto(p, AutoOptions{PriorMean: []float64{1, 0}, PriorCovariance: []float64{0.01, 0, 0, 0.01}},
		newRand()))(t)
	for range 20 {
		expect.List(t, known.Policy().Offer(x, rng).Assortment, vitrine.Assortment{46, 47, 48, 49},
			"with a known utility the first page is")
	}
}

func newRandFrom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

// An expert with one unit more than another waits until that one holds most of the weight, and then starts from it.
func TestUnitsAreAddedOneAtATime(t *testing.T) {
	p := Problem{NumFeatures: 2, MaxShown: 3, Rounds: 1000, Constraint: assortment.AtMost(3)}
	experts := []Expert{{Model: utility.NewLinear(2, true)}, {Model: utility.NewSpectral(2, 1)},
		{Model: utility.NewSpectral(2, 2)}}
	waves := func(x []float64) float64 { return 2*math.Sin(2*x[0]) + 2*math.Sin(2*x[1]) - 1 }
	l := newBMA(t, p, experts)
	if l.experts[2].wake != waiting || l.weights()[2] != 0 {
		t.Errorf("before the first round two units have the wake %d and the weight %v", l.experts[2].wake,
			l.weights()[2])
	}
	playOf(t, 2, l, func(x []float64) float64 { return x[0] - x[1] }, 0, 200)
	if w := l.weights(); w[2] > 0.01 {
		t.Errorf("beside a line two waves have the weights %v", w)
	}
	l = newBMA(t, p, experts)
	playOf(t, 2, l, waves, 0, 600)
	if w := l.weights(); w[2] < 0.9 {
		t.Errorf("two waves have the weights %v", w)
	}
}

// An expert that starts from another's mode takes over its utilities, except for the new unit.
func TestANewUnitStartsFromTheOthers(t *testing.T) {
	p := Problem{NumFeatures: 2, MaxShown: 3, Rounds: 1000, Constraint: assortment.AtMost(3)}
	experts := []Expert{{Model: utility.NewLinear(2, true)}, {Model: utility.NewRadial(2, 1)},
		{Model: utility.NewRadial(2, 2)}}
	o := DefaultBMAOptions()
	o.PositionEffects = true
	l := fatal.Or(NewBMA(p, experts, o, newRand()))(t)
	playOf(t, 2, l, func(x []float64) float64 { return 2*math.Exp(-floats.Dot(x, x)) - 1 }, 0, 80)
	l.wait()
	one, two := l.experts[1], l.experts[2]
	f := fitting{beliefs: l.beliefs, o: l.o, before: map[*expert]*expert{two: one}}
	starts := f.starts(two, l.history.Transformed(l.z.row), newRand())
	if len(starts) == 0 {
		t.Fatal("no starts")
	}
	more, fewer := two.Model.(*utility.Additive), one.Model.(*utility.Additive)
	for _, s := range starts {
		w := slices.Clone(s.w)
		if floats.Norm(more.Gamma(w, 1), 2) == 0 {
			t.Error("the new unit has no amplitude")
		}
		clear(more.Gamma(w, 1))
		x, have, want := mat.NewDense(5, 4, nil), make([]float64, 5), make([]float64, 5)
		for i := range 5 {
			x.SetRow(i, []float64{float64(i) - 2, 1, float64(i % 2), 0})
		}
		two.model.Utilities(have, w, x)
		one.model.Utilities(want, one.posterior.Mode, x)
		for i := range want {
			wantNear(t, "a utility without the new unit", have[i], want[i], 1e-9)
		}
	}
	if fewer.Units() != 1 || l.fewer(two) != one || l.fewer(one) != nil {
		t.Error("the expert of two units does not extend that of one")
	}
}

// The reasons of a shown item come from the slot that took it: its family is the slot's, and no other item left is
// better under the slot's utilities.
func TestReasonsAreTheSlots(t *testing.T) {
	l := newBMA(t, paperProblem(), DefaultExperts(paperFeatures))
	play(t, l, product, 0, 25)
	pi := l.Policy().(*mixture)
	for s := range 40 {
		x := paperContext(s)
		if s%2 == 0 {
			x.Revenue = nil
		}
		shown := pi.Offer(x, newRandFrom(uint64(s))).Assortment
		why := pi.Reasons(x, newRandFrom(uint64(s)))
		w := new(mixtureScratch)
		pi.begin(w, x, newRandFrom(uint64(s)))
		pi.fillSlots(w, x.Features, 0, len(w.expert))
		for i, family := range why.Family {
			expect.Equal(fatal.T(t), slices.Contains(shown, i), family != "", "page", shown, "item", i,
				"has the family", family)
			fits := family == ""
			for k, b := range w.expert {
				fits = fits || pi.name(&pi.beliefs[b]) == family && w.z[k*w.n+i] == why.Index[i]
			}
			if !fits {
				t.Errorf("page %v: item %d has the utility %v and the family %s, which no slot has", shown, i,
					why.Index[i], family)
			}
		}
	}
}
