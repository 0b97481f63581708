package offpolicy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"vitrine"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/offpolicy"
)

// returning draws uniform pages for shoppers with equally many visits. All utilities of a shopper are shifted by the
// same N(0, 1).
func (s shop) returning(shoppers, visits int, rng *rand.Rand) (log []offpolicy.Round, pages []vitrine.Assortment) {
	for g := range shoppers {
		shift := rng.NormFloat64()
		for range visits {
			x := s.context(rng)
			r := offpolicy.Round{Context: x, Shopper: fmt.Sprint(g), Shown: rng.Perm(s.n)[:s.size],
				SamplingLaw: offpolicy.EpsilonPages(1, s.n, s.size, s.first())}
			slices.Sort(r.Shown)
			u := make([]float64, s.size)
			for k, i := range r.Shown {
				u[k] = shift + tastes[0]*x.Features.At(i, 0) + tastes[1]*x.Features.At(i, 1)
			}
			p := make([]float64, s.size+1)
			vitrine.Probabilities(p, u)
			r.Choice = vitrine.Choice(draw(p, rng))
			log, pages = append(log, r), append(pages, s.best(x))
		}
	}
	return log, pages
}

// With shoppers who return, standard errors agree with the spread over repeated logs. Without their names they are too
// small.
func TestErrorOfReturningShoppers(t *testing.T) {
	const logs = 60
	rng := rand.New(rand.NewPCG(3, 1))
	values, errors, alone := map[string][]float64{}, map[string]float64{}, map[string]float64{}
	for range logs {
		log, pages := shop{6, 2}.returning(30, 10, rng)
		r := evaluate(t, newLog(t, log, offpolicy.Options{Resamples: 200}), pages)
		for t := range log {
			log[t].Shopper = ""
		}
		other := evaluate(t, newLog(t, log, offpolicy.Options{Resamples: 200}), pages)
		for _, method := range []string{"direct", "dr-pi"} {
			e, o := r.Estimate(method), other.Estimate(method)
			values[method] = append(values[method], e.Value)
			errors[method] += e.StandardError / logs
			alone[method] += o.StandardError / logs
			if width := (e.Bootstrap.High - e.Bootstrap.Low) / (e.Normal.High - e.Normal.Low); width < 0.7 || width > 1.3 {
				t.Errorf("%s: the bootstrap's interval is %.2f times as wide as the normal one", method, width)
			}
			if e.Value != o.Value {
				t.Errorf("%s: names of shoppers change the value from %v to %v", method, o.Value, e.Value)
			}
		}
	}
	for method, list := range values {
		spread := stat.StdDev(list, nil)
		if ratio := errors[method] / spread; ratio < 0.75 || ratio > 1.3 {
			t.Errorf("%s: the standard errors are %.2f times the spread", method, ratio)
		}
		t.Logf("%s: standard errors are %.2f times the spread, and %.2f times without names", method,
			errors[method]/spread, alone[method]/spread)
		if alone[method] > 0.9*errors[method] {
			t.Errorf("%s: standard errors of %v without names, and %v with them", method, alone[method], errors[method])
		}
	}
}

// fixed always shows the first item.
type fixed struct{}

func (fixed) Policy() vitrine.Policy      { return fixed{} }
func (fixed) Observe(vitrine.Round) error { return nil }
func (fixed) Offer(*vitrine.Context, *rand.Rand) vitrine.Offer {
	return vitrine.Offer{Assortment: vitrine.Assortment{0}}
}

// Standard errors follow the formula, in a replay, too; a round of an unknown shopper is a group of its own.
func TestShoppersByHand(t *testing.T) {
	log, pages := shop{4, 1}.returning(25, 12, rand.New(rand.NewPCG(4, 1)))
	for t := range log[:60] {
		log[t].Shopper = ""
	}
	l := newLog(t, log, offpolicy.Options{})
	expect.Equal(t, l.Shoppers(), 60+20)
	earned := make([]float64, len(log))
	for t := range log {
		earned[t] = log[t].Revenue()
	}
	// se returns √(G/(G−1) Σ_g (Σ ψ)²)/n.
	se := func(influence []float64) float64 {
		sums, squares := map[string]float64{}, 0.0
		for t, v := range influence {
			sums[log[t].Shopper+map[bool]string{true: fmt.Sprint("-", t)}[log[t].Shopper == ""]] += v
		}
		for _, v := range sums {
			squares += v * v
		}
		g := float64(len(sums))
		return math.Sqrt(g/(g-1)*squares) / float64(len(influence))
	}
	e := evaluate(t, l, pages).Estimate("pi")
	if want := se(e.Influence()); math.Abs(e.StandardError-want) > 1e-9*want {
		t.Errorf("the standard error is %v, want %v", e.StandardError, want)
	}
	mean, got := offpolicy.Logged(log)
	for t := range earned {
		earned[t] -= mean
	}
	if want := se(earned); math.Abs(got-want) > 1e-9*want {
		t.Errorf("the log's standard error is %v, want %v", got, want)
	}
	replayed := fatal.Or(offpolicy.Replay(t.Context(), log, fixed{}, offpolicy.Options{}))(t)
	log = slices.DeleteFunc(log, func(r offpolicy.Round) bool { return r.Shown[0] != 0 })
	if want := se(replayed.Influence()); math.Abs(replayed.StandardError-want) > 1e-9*want {
		t.Errorf("the standard error of a replay is %v, want %v", replayed.StandardError, want)
	}
	for t := range log {
		log[t].Shopper = fmt.Sprint(t)
	}
	expect.Equal(t, newLog(t, log, offpolicy.Options{}).Shoppers(), 0, "without anyone who returns")
}

// The intervals of 25 shoppers use Student's t, and hold in about 95% of logs. Fewer than 20 shoppers give no
// number.
func TestFewShoppers(t *testing.T) {
	const logs = 120
	rng := rand.New(rand.NewPCG(5, 1))
	truth, visits := 0.0, shop{6, 2}
	for range 20 {
		log, pages := visits.returning(1500, 1, rng)
		truth += evaluate(t, newLog(t, log, offpolicy.Options{Resamples: 1}), pages).Estimate("dr-pi").Value / 20
	}
	held := 0
	for k := range logs {
		log, pages := visits.returning(25, 12, rng)
		e := evaluate(t, newLog(t, log, offpolicy.Options{Resamples: 1}), pages).Estimate("dr-pi")
		if e.Normal.Low < truth && truth < e.Normal.High {
			held++
		}
		if ratio := (e.Normal.High - e.Value) / e.StandardError; k == 0 && math.Abs(ratio-2.0639) > 1e-3 {
			t.Errorf("an interval is ± %v standard errors, want t of 24 degrees of freedom", ratio)
		}
	}
	if held < 105 {
		t.Errorf("%d of %d intervals hold", held, logs)
	}
	log, pages := visits.returning(19, 20, rng)
	for _, e := range evaluate(t, newLog(t, log, offpolicy.Options{Resamples: 1}), pages).Estimates {
		const want = "all decisions belong to 19 shoppers, and 20 are needed for a standard error"
		if e.None != want && e.Method != "snips" && e.Method != "dr-sets" || !math.IsNaN(e.Value) {
			t.Errorf("%s: %v, %q, want %q", e.Method, e.Value, e.None, want)
		}
	}
	if _, se := offpolicy.Logged(log); !math.IsNaN(se) {
		t.Errorf("the log's standard error is %v", se)
	}
}
