package offpolicy_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/offpolicy"
	"vitrine/utility"
)

// shop is a world of n items with two features and linear true utilities.
type shop struct{ n, size int }

var tastes = []float64{0.8, -0.6}

func (s shop) context(rng *rand.Rand) *vitrine.Context {
	x := &vitrine.Context{Features: mat.NewDense(s.n, 2, nil), Revenue: make([]float64, s.n)}
	for i := range s.n {
		x.Features.Set(i, 0, rng.Float64()*2-1)
		x.Features.Set(i, 1, rng.Float64()*2-1)
		x.Revenue[i] = 1 + rng.Float64()
	}
	return x
}

func (s shop) probabilities(x *vitrine.Context, page vitrine.Assortment) []float64 {
	u := make([]float64, len(page))
	for k, i := range page {
		for j, w := range tastes {
			u[k] += w * x.Features.At(i, j)
		}
	}
	p := make([]float64, len(page)+1)
	vitrine.Probabilities(p, u)
	return p
}

func (s shop) value(x *vitrine.Context, page vitrine.Assortment) (v float64) {
	p := s.probabilities(x, page)
	for k, i := range page {
		v += p[k+1] * x.Revenue[i]
	}
	return v
}

// first and best are the pages of the logging policy and of the judged policy.
func (s shop) first() vitrine.Assortment {
	page := make(vitrine.Assortment, s.size)
	for k := range page {
		page[k] = k
	}
	return page
}

func (s shop) best(x *vitrine.Context) vitrine.Assortment {
	u := make([]float64, s.n)
	for i := range u {
		u[i] = x.Features.At(i, 0)
	}
	page, _ := assortment.Maximize(nil, assortment.AtMost(s.size), u, x.Revenue)
	return page
}

// log draws rounds that show the first items, or a uniform page in a share of them.
func (s shop) log(rounds int, share float64,
	rng *rand.Rand) (log []offpolicy.Round, pages []vitrine.Assortment, truth float64) {
	names := make([]string, s.n)
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	for range rounds {
		x := s.context(rng)
		r := offpolicy.Round{Context: x, Items: names, Shown: s.first(),
			SamplingLaw: offpolicy.EpsilonPages(share, s.n, s.size, s.first())}
		if rng.Float64() < share {
			r.Shown = rng.Perm(s.n)[:s.size]
			slices.Sort(r.Shown)
		}
		left := rng.Float64()
		for k, p := range s.probabilities(x, r.Shown) {
			if left -= p; left < 0 {
				r.Choice = vitrine.Choice(k)
				break
			}
		}
		page := s.best(x)
		log, pages, truth = append(log, r), append(pages, page), truth+s.value(x, page)/float64(rounds)
	}
	return log, pages, truth
}

func newLog(t *testing.T, rounds []offpolicy.Round, o offpolicy.Options) *offpolicy.Log {
	t.Helper()
	return fatal.Or(offpolicy.NewLog(t.Context(), rounds, o))(t)
}

func evaluate(t *testing.T, l *offpolicy.Log, pages []vitrine.Assortment) *offpolicy.Report {
	t.Helper()
	return fatal.Or(l.Evaluate("judged", pages))(t)
}

// Every method with support is within a few standard errors of the truth, and the doubly robust one is closer than
// weights without a model. Standard errors agree with the spread over repeated logs.
func TestEvaluateFindsTheTruth(t *testing.T) {
	const logs = 30
	off := map[string][]float64{}
	errors := map[string]float64{}
	rng := rand.New(rand.NewPCG(3, 4))
	for range logs {
		rounds, pages, truth := shop{5, 2}.log(500, 0.5, rng)
		r := evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 50}), pages)
		for _, e := range r.Estimates {
			if e.None != "" {
				continue
			}
			off[e.Method] = append(off[e.Method], e.Value-truth)
			errors[e.Method] += e.StandardError / logs
			if !(e.Normal.Low < e.Value && e.Value < e.Normal.High && e.Bootstrap.Low < e.Value &&
				e.Value < e.Bootstrap.High) {
				t.Errorf("%s: %v not inside its intervals %v, %v", e.Method, e.Value, e.Normal, e.Bootstrap)
			}
			if a := e.Anytime; !math.IsNaN(a.Low) && (a.Low > e.Normal.Low || a.High < e.Normal.High) {
				t.Errorf("%s: the interval at any time %v is narrower than the normal one %v", e.Method, a, e.Normal)
			}
		}
	}
	for _, method := range []string{"direct", "dr-pi"} {
		mean, sd := stat.MeanStdDev(off[method], nil)
		if math.Abs(mean) > 4*sd/math.Sqrt(logs) {
			t.Errorf("%s: a bias of %v ± %v", method, mean, sd/math.Sqrt(logs))
		}
		// The truth is taken over each log's contexts, so the spread is slightly smaller.
		if ratio := sd / errors[method]; ratio < 0.6 || ratio > 1.4 {
			t.Errorf("%s: a standard error of %v, and a spread of %v", method, errors[method], sd)
		}
	}
	if a, b := stat.StdDev(off["dr-pi"], nil), stat.StdDev(off["pi"], nil); a > b {
		t.Errorf("dr-pi has the spread %v, and pi %v", a, b)
	}
	if a, b := stat.StdDev(off["direct"], nil), stat.StdDev(off["dr-pi"], nil); a > b {
		t.Errorf("direct has the spread %v, and dr-pi %v", a, b)
	}
}

// If the log's law is known in few rounds, dr-pi trusts the model in the others, and its standard error contains that
// of the model's parameters: it is the spread over repeated logs.
func TestErrorOfATrustedModel(t *testing.T) {
	const logs = 60
	var off []float64
	mean := 0.0
	rng := rand.New(rand.NewPCG(7, 8))
	for range logs {
		rounds, pages, truth := shop{5, 2}.log(400, 1, rng)
		for t := range rounds {
			if t%10 > 0 {
				rounds[t].SamplingLaw = nil
			}
		}
		e := evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 2, Folds: 3}), pages).Estimate("dr-pi")
		off, mean = append(off, e.Value-truth), mean+e.StandardError/logs
	}
	// The truth is taken over each log's contexts, so the spread is slightly smaller. Without the parameters, the ratio
	// is 1.7.
	if ratio := stat.StdDev(off, nil) / mean; ratio < 0.75 || ratio > 1.25 {
		t.Errorf("a standard error of %v, and a spread of %v", mean, stat.StdDev(off, nil))
	}
}

// A log without a sale has no spread, and gives no number. Wrong propensities give none by weights.
func TestNoNumber(t *testing.T) {
	rounds, pages, _ := shop{5, 2}.log(600, 1, rand.New(rand.NewPCG(1, 9)))
	for t := range rounds {
		rounds[t].Choice = vitrine.Outside
	}
	r := evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 2}), pages)
	for _, e := range r.Estimates {
		if e.None == "" || !math.IsNaN(e.Value) {
			t.Errorf("%s: %v without a sale", e.Method, e.Value)
		}
	}
	// The pages were drawn, and the log says that each was certain. To the check, the log never shows the other pages.
	rounds, pages, _ = shop{5, 2}.log(3000, 0.5, rand.New(rand.NewPCG(1, 9)))
	for t := range rounds {
		rounds[t].SamplingLaw, rounds[t].Propensity = nil, 1
	}
	r = evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 2}), pages)
	for _, method := range []string{"snips", "dr-sets"} {
		if e := r.Estimate(method); !strings.HasSuffix(e.None,
			"instead of 1: the propensities are too large, or the log "+
				"never shows some of the policy's pages") {
			t.Errorf("%s: %v, %q", method, e.Value, e.None)
		}
	}
	// The propensities are right, and the log lists only the items shown.
	for t := range rounds {
		r := &rounds[t]
		shown, x := r.Shown, mat.NewDense(2, 2, nil)
		revenue := make([]float64, 2)
		for k, i := range shown {
			x.SetRow(k, r.Context.Features.RawRowView(i))
			revenue[k] = r.Context.Revenue[i]
		}
		r.Context, r.Items = &vitrine.Context{Features: x, Revenue: revenue}, []string{r.Items[shown[0]],
			r.Items[shown[1]]}
		r.Shown, r.Propensity, pages[t] = vitrine.Assortment{0, 1}, 0.1, vitrine.Assortment{0, 1}
	}
	r = evaluate(t, newLog(t, rounds, offpolicy.Options{Resamples: 2}), pages)
	if e := r.Estimate("snips"); !strings.HasSuffix(e.None,
		"instead of 1: the log lists only the items that were shown, and "+
			"not what else could have been") {
		t.Errorf("snips of a log of items shown: %v, %q", e.Value, e.None)
	}
}

// A round's influence on the direct method is n times the change from leaving it out.
func TestDirectInfluenceIsTheJackknife(t *testing.T) {
	rounds, pages, _ := shop{4, 2}.log(40, 1, rand.New(rand.NewPCG(1, 1)))
	o := offpolicy.Options{Ridge: 0.5, Resamples: 10}
	whole := evaluate(t, newLog(t, rounds, o), pages).Estimate("direct")
	var left []float64
	for out := range rounds {
		r := append(slices.Clone(rounds[:out]), rounds[out+1:]...)
		p := append(slices.Clone(pages[:out]), pages[out+1:]...)
		left = append(left, evaluate(t, newLog(t, r, o), p).Estimate("direct").Value)
	}
	n := float64(len(rounds))
	jackknife := stat.StdDev(left, nil) * (n - 1) / math.Sqrt(n)
	if ratio := whole.StandardError / jackknife; ratio < 0.85 || ratio > 1.15 {
		t.Errorf("a standard error of %v, and %v by the jackknife", whole.StandardError, jackknife)
	}
}

// If a page's earnings are the sum of its items' earnings, pseudo-inverse weights are unbiased: exactly, over all the
// law's pages and all choices.
func TestPseudoInverseIsUnbiasedOnSums(t *testing.T) {
	const n = 5
	gain := []float64{0.05, 0.3, 0.1, 0.2, 0.25} // probability that an item is taken, whatever the others
	revenue := []float64{3, 1, 2, 5, 4}
	page, target := vitrine.Assortment{0, 1}, vitrine.Assortment{1, 3}
	for name, law := range map[string]offpolicy.SamplingLaw{
		"sets":  offpolicy.EpsilonSets(0.2, n, 3, page),
		"slots": offpolicy.Swaps(0.2, n, page, nil),
	} {
		z := make([]float64, n)
		if !offpolicy.Solve(law, z, target) {
			t.Fatal("no weights")
		}
		mean := 0.0
		for _, s := range subsets(n, 1, 3) {
			weight, earns := 0.0, 0.0
			for _, i := range s {
				weight += z[i]
				earns += gain[i] * revenue[i]
			}
			mean += law.Propensity(s) * weight * earns
		}
		if want := gain[1]*revenue[1] + gain[3]*revenue[3]; math.Abs(mean-want) > 1e-9 {
			t.Errorf("%s: the mean is %v, want %v", name, mean, want)
		}
	}
}

// Estimates do not depend on the features' units.
func TestUnitsOfFeatures(t *testing.T) {
	s := shop{8, 2}
	rounds, pages, _ := s.log(600, 0.5, rand.New(rand.NewPCG(1, 8)))
	one := newLog(t, rounds, offpolicy.Options{Resamples: 10})
	in := evaluate(t, one, pages)
	rounds = slices.Clone(rounds)
	for i := range rounds {
		x := *rounds[i].Context
		x.Features = mat.DenseCopyOf(x.Features)
		x.Features.Apply(func(_, j int, v float64) float64 { return []float64{v/1000 + 2, 300*v - 2000}[j] },
			x.Features)
		rounds[i].Context = &x
	}
	other := newLog(t, rounds, offpolicy.Options{Resamples: 10})
	out := evaluate(t, other, pages)
	for _, e := range in.Estimates {
		f := out.Estimate(e.Method)
		if e.None == "" && (math.Abs(f.Value-e.Value) > 1e-6 || math.Abs(f.StandardError-e.StandardError) > 1e-6 ||
			math.Abs(f.Anytime.Low-e.Anytime.Low) > 1e-6) {
			t.Errorf("%s: %v ± %v from %v, want %v ± %v from %v", e.Method, f.Value, f.StandardError, f.Anytime.Low,
				e.Value,
				e.StandardError, e.Anytime.Low)
		}
	}
	u, v := make([]float64, 8), make([]float64, 8)
	one.Utilities(u, 7)
	other.Utilities(v, 7)
	if !floats.EqualApprox(u, v, 1e-6) {
		t.Errorf("utilities are %v, want %v", v, u)
	}
	if a, b := one.Balance(), other.Balance(); math.Abs(a.Z-b.Z) > 1e-6 || math.Abs(a.Limit-b.Limit) > 1e-6 {
		t.Errorf("balance %+v, want %+v", b, a)
	}
}

// By hand: two items on pages of one, shown with probabilities 3/4 and 1/4.
func TestEvaluateByHand(t *testing.T) {
	x := &vitrine.Context{Features: mat.NewDense(2, 1, []float64{0, 0}), Revenue: []float64{2, 4}}
	law := offpolicy.EpsilonPages(0.5, 2, 1, vitrine.Assortment{0})
	var rounds []offpolicy.Round
	var pages []vitrine.Assortment
	for t := range 400 {
		r := offpolicy.Round{Context: x, Items: []string{"a", "b"}, Shown: vitrine.Assortment{0}, Choice: 1,
			SamplingLaw: law}
		if t%4 == 0 { // b is shown, and taken every second time
			r.Shown, r.Choice = vitrine.Assortment{1}, vitrine.Choice(t/4%2)
		}
		rounds, pages = append(rounds, r), append(pages, vitrine.Assortment{1})
	}
	r := evaluate(t, newLog(t, rounds, offpolicy.Options{}), pages)
	for method, want := range map[string]float64{"pi": 2, "items": 2, "snips": 2, "dr-pi": 2, "dr-sets": 2} {
		if got := r.Estimate(method); got.None != "" || math.Abs(got.Value-want) > 0.02 {
			t.Errorf("%s = %v %s, want %v", method, got.Value, got.None, want)
		}
	}
	// w = 4 in 100 of 400 rounds, with revenues 0 and 4: terms 0, 0 and 16.
	pi := r.Estimate("pi")
	variance := (50*14*14.0 + 350*2*2) / 399
	if want := math.Sqrt(variance / 400); math.Abs(pi.StandardError-want) > 1e-9 {
		t.Errorf("the standard error is %v, want %v", pi.StandardError, want)
	}
	if math.Abs(pi.ESS-100) > 1e-9 || math.Abs(r.Support.SetESS-100) > 1e-9 {
		t.Errorf("effective sample sizes %v, %v, want 100", pi.ESS, r.Support.SetESS)
	}
	s := r.Support
	if s.Shown != 100 || s.Possible != 400 || s.PagePossible != 400 || s.ItemsSeen != 400 || math.Abs(s.LeastInclusion-
		0.25) > 1e-12 || math.Abs(s.Weights.Mean-1) > 1e-12 || math.Abs(s.Weights.Expected-1) > 1e-12 {
		t.Errorf("the support is %+v", s)
	}
	same := fatal.Or(r.Difference(r))(t)
	for _, d := range same {
		if d.None == "" && (d.Value != 0 || d.StandardError != 0) {
			t.Errorf("%s differs from itself by %v ± %v", d.Method, d.Value, d.StandardError)
		}
	}
}

// A paired difference has the spread of the differences rather than of the two values.
func TestDifferenceIsPaired(t *testing.T) {
	s := shop{5, 2}
	rounds, pages, _ := s.log(2000, 0.5, rand.New(rand.NewPCG(8, 8)))
	l := newLog(t, rounds, offpolicy.Options{Resamples: 200})
	own := make([]vitrine.Assortment, len(pages))
	for t := range own {
		own[t] = s.first()
		if t%10 == 0 {
			own[t] = pages[t]
		}
	}
	mostly := slices.Clone(pages)
	mostly[0] = s.first()
	a, b, c := evaluate(t, l, pages), evaluate(t, l, own), evaluate(t, l, mostly)
	close := fatal.Or(a.Difference(c))(t)
	far, _ := a.Difference(b)
	for i, d := range far {
		if d.None != "" || d.Method == "snips" {
			continue
		}
		expect.Equal(t, d.Value, a.Estimates[i].Value-b.Estimates[i].Value, d.Method)
		if close[i].StandardError > a.Estimates[i].StandardError/5 {
			t.Errorf("%s: policies that agree on all rounds but one differ by %v ± %v",
				d.Method, close[i].Value, close[i].StandardError)
		}
	}
	other := newLog(t, rounds, offpolicy.Options{Resamples: 200})
	expect.Refused(a.Difference(evaluate(t, other, pages)))(t, "reports of two logs are compared")
}

func TestBadLogs(t *testing.T) {
	s := shop{4, 2}
	good := func() []offpolicy.Round {
		rounds, _, _ := s.log(20, 1, rand.New(rand.NewPCG(1, 2)))
		return rounds
	}
	refused := func(want string, rounds []offpolicy.Round, o offpolicy.Options) {
		t.Helper()
		expect.Part(offpolicy.NewLog(t.Context(), rounds, o))(t, want)
	}
	refused("no decision with an outcome", nil, offpolicy.Options{})
	for want, change := range map[string]func(r []offpolicy.Round){
		"round 3: the propensity is 1.2": func(r []offpolicy.Round) { r[2].Propensity = 1.2 },
		"round 3: the propensity is NaN": func(r []offpolicy.Round) { r[2].Propensity = math.NaN() },
		"round 3: 1 names for 4 items":   func(r []offpolicy.Round) { r[2].Items = []string{"a"} },
		"round 3: the earnings are NaN": func(r []offpolicy.Round) {
			r[2].Earned = make([]float64, len(r[2].Shown))
			r[2].Earned[0] = math.NaN()
		},
		"round 3: 9 earnings for":             func(r []offpolicy.Round) { r[2].Earned = make([]float64, 9) },
		"round 4: choice 3 is not a position": func(r []offpolicy.Round) { r[3].Choice = 3 },
		"round 4: order":                      func(r []offpolicy.Round) { r[3].Order = []int{9, 9} },
		"round 1 has no items":                func(r []offpolicy.Round) { r[0].Context = nil },
		"round 2: assortment has item 9": func(r []offpolicy.Round) {
			r[1].Shown, r[1].Choice = vitrine.Assortment{9}, 0
		},
		"round 2: the law is one of 9 items": func(r []offpolicy.Round) {
			r[1].SamplingLaw = offpolicy.EpsilonPages(1, 9, 2, nil)
		},
		"round 2: the law gives the page": func(r []offpolicy.Round) {
			r[1].SamplingLaw = offpolicy.EpsilonPages(1, 4, 1, nil)
		},
	} {
		rounds := good()
		change(rounds)
		refused(want, rounds, offpolicy.Options{})
	}
	for want, o := range map[string]offpolicy.Options{
		"the model has 3 features, and the log 2": {Model: utility.NewLinear(3, true)},
		"the level is 2":        {Level: 2},
		"the ridge is -1":       {Ridge: -1},
		"30 folds of 20 rounds": {Folds: 30},
		"-1 resamples":          {Resamples: -1},
	} {
		refused(want, good(), o)
	}
	l := newLog(t, good(), offpolicy.Options{})
	expect.Message(l.Evaluate("p", nil))(t, "0 pages for 20 rounds")
	pages := make([]vitrine.Assortment, 20)
	pages[4] = vitrine.Assortment{4}
	expect.Part(l.Evaluate("p", pages))(t, "round 5: the policy's page")
}

// A learning policy replayed on a uniform log earns the same as live. Errors name a page that it cannot learn from, and
// a log that is not uniform.
func TestReplay(t *testing.T) {
	s := shop{4, 1}
	rounds, _, _ := s.log(4000, 1, rand.New(rand.NewPCG(7, 7)))
	p := bandit.Problem{NumFeatures: 2, Items: 4, MaxShown: 1, Rounds: 4000, Constraint: assortment.AtMost(1)}
	learner := func() vitrine.Learner {
		return fatal.Or(bandit.NewUCB(p, bandit.DefaultUCBOptions()))(t)
	}
	got, err := offpolicy.Replay(t.Context(), rounds, learner(), offpolicy.Options{})
	if err != nil || got.None != "" {
		t.Fatal(err, got.None)
	}
	if got.ESS < 900 || got.ESS > 1100 {
		t.Errorf("%v rounds count, want a quarter of 4000", got.ESS)
	}
	// Play as many rounds live in the same world.
	live, rng := 0.0, rand.New(rand.NewPCG(9, 9))
	const runs = 5
	for range runs {
		l := learner()
		for range int(got.ESS) {
			x := s.context(rng)
			page := l.Policy().Offer(x, rng).Assortment
			r := vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: page}}
			if rng.Float64() < s.probabilities(x, page)[1] {
				r.Choice = 1
				live += x.Revenue[page[0]] / got.ESS / runs
			}
			fatal.If(t, l.Observe(r))
		}
	}
	if z := (got.Value - live) / got.StandardError; math.Abs(z) > 4 {
		t.Errorf("replayed %v ± %v, live %v", got.Value, got.StandardError, live)
	}
	if few, err := offpolicy.Replay(t.Context(), rounds[:100], learner(), offpolicy.Options{}); err != nil ||
		!strings.HasPrefix(few.None, "no support: ") {
		t.Errorf("25 rounds: %v, %v", few.None, err)
	}
	// A policy that knows the log's pages counts too often, or never.
	for item, count := range []int{4000, 0} {
		peeking := make([]offpolicy.Round, len(rounds))
		for k, r := range rounds {
			x := *r.Context
			x.Revenue = make([]float64, 4)
			x.Revenue[(r.Shown[0]+item)%4] = 1
			r.Context = &x
			peeking[k] = r
		}
		want := fmt.Sprintf("the policy's page is that of the log in %d of 4000 rounds, and 1000.0 are expected: the pages "+
			"were not drawn as the log says", count)
		if got, err := offpolicy.Replay(t.Context(), peeking, learner(),
			offpolicy.Options{}); err != nil || got.None != want {
			t.Errorf("%v, %v", got.None, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	expect.Fails(offpolicy.Replay(ended, rounds, learner(), offpolicy.Options{}))(t, context.Canceled)
	rounds[6].SamplingLaw = offpolicy.EpsilonPages(0.9, 4, 1, rounds[6].Shown)
	expect.Part(offpolicy.Replay(t.Context(), rounds, learner(), offpolicy.Options{}))(t,
		"round 7: the page was not drawn uniformly")
}

// A round's influence is n−1 times the change from leaving it out: to first order for the direct method, and also for
// self-normalised weights.
func TestInfluenceOfEachRound(t *testing.T) {
	rounds, pages, _ := shop{3, 1}.log(300, 1, rand.New(rand.NewPCG(1, 4)))
	o := offpolicy.Options{Ridge: 0.5, Resamples: 10}
	whole := evaluate(t, newLog(t, rounds, o), pages)
	for _, method := range []string{"direct", "snips"} {
		e := whole.Estimate(method)
		expect.Equal(fatal.T(t), e.None, "")
		var influence, left []float64
		for out := 0; out < len(rounds); out += 6 {
			r := append(slices.Clone(rounds[:out]), rounds[out+1:]...)
			p := append(slices.Clone(pages[:out]), pages[out+1:]...)
			without := evaluate(t, newLog(t, r, o), p).Estimate(method)
			influence = append(influence, e.Influence()[out])
			left = append(left, (e.Value-without.Value)*float64(len(rounds)-1))
		}
		if r := stat.Correlation(influence, left, nil); r < 0.98 {
			t.Errorf("%s: the correlation with what leaving out changes is %v", method, r)
		}
		if _, slope := stat.LinearRegression(influence, left, nil, false); math.Abs(slope-1) > 0.1 {
			t.Errorf("%s: leaving out changes %v times the influence", method, slope)
		}
	}
}

// A round's utilities come from rounds in other folds: its own outcome does not matter.
func TestCrossFit(t *testing.T) {
	rounds, _, _ := shop{4, 2}.log(50, 1, rand.New(rand.NewPCG(1, 5)))
	u, changed := make([]float64, 4), make([]float64, 4)
	newLog(t, rounds, offpolicy.Options{}).Utilities(u, 7)
	rounds[7].Choice = (rounds[7].Choice + 1) % 3
	l := newLog(t, rounds, offpolicy.Options{})
	if l.Utilities(changed, 7); !slices.Equal(u, changed) {
		t.Errorf("utilities %v, and %v with another outcome of the round", u, changed)
	}
	if l.Utilities(changed, 8); slices.Equal(u, changed) {
		t.Error("another fold has the same model")
	}
}

// Long logs are resampled in blocks; the interval for the mean stays the same.
func TestBootstrapOfLongLogs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for _, n := range []int{5_000, 35_000} {
		influence := make([]float64, n)
		for i := range influence {
			influence[i] = rng.NormFloat64()
		}
		i := offpolicy.Bootstrap(3, influence, 0.95, 400, 1)
		want := 2 * 1.96 / math.Sqrt(float64(n))
		if width := i.High - i.Low; math.Abs(width/want-1) > 0.2 || i.Low > 3 || i.High < 3 {
			t.Errorf("%d rounds: %v, want 3 ± %v", n, i, want/2)
		}
	}
}

// largest returns the k items with the largest u, in order.
func largest(u []float64, k int) vitrine.Assortment {
	page := make(vitrine.Assortment, len(u))
	for i := range page {
		page[i] = i
	}
	slices.SortFunc(page, func(a, b int) int { return cmp.Compare(u[b], u[a]) })
	page = page[:k]
	slices.Sort(page)
	return page
}
