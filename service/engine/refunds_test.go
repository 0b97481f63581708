package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
)

// refunding is a shop whose variant B shows a cheap or an expensive item, by chance. Every buyer of the expensive one
// gets the money back after a delay.
type refunding struct {
	free  bool    // the expensive item is sold for 0 in place of being refunded
	delay int     // in visits, one a minute
	typed float64 // value of some sales of the cheap item, mistyped
	every int     // number of sales from one mistake to the next; 0 without any
	late  int     // visits before the mistake is corrected
	store memlog.Store
}

const refundingShop = `{"max_size":1,"features":[{"name":"x","kind":"number"},{"name":"device","kind":"category",
	"from":"shopper","values":["phone","desk"],"allow_other":true}],"policy":{"name":"1"},"attribution_window":"30m",
	"learn_in_alarm":true,"holdout_share":0.2,"mode":"experiment","experiment":{"name":"x","segment_by":"device","variants":[
	{"name":"A","show":"baseline","share":0.5},{"name":"B","show":"uniform","share":0.5}]}}`

func (c *refunding) serve(t *testing.T, visits int) *engine.Engine {
	t.Helper()
	e := opened(t, engine.Options{Store: &c.store, Build: buildFixed})
	put(t, e, "home", refundingShop)
	rng, now := rand.New(rand.NewPCG(9, 1)), int64(1e18)
	refunds, typed := map[int]string{}, map[int]string{}
	cheap := 0
	for k := range visits {
		now += minute
		r := stock(fmt.Sprint("d", k), 2)
		r.Items[0].Revenue, r.Items[1].Revenue = new(1.0), new(3.0)
		r.ShopperID, r.Baseline = fmt.Sprint("shopper-", rng.IntN(visits/3)), []string{itemID(0)}
		r.User = api.Values{api.Text("device", []string{"phone", "desk", "other"}[rng.IntN(3)])} // other is the segment ""
		a := fatal.Or(e.Decide(t.Context(), "home", r, now))(t)
		if choice := (api.Choice{Item: a.IDs()[0]}); rng.Float64() < 0.7 && k+c.delay < visits {
			if choice.Item == itemID(1) && c.free {
				choice.Value = new(0.0)
			} else if choice.Item == itemID(1) {
				refunds[k+c.delay] = a.Decision
			}
			if choice.Item == itemID(0) {
				if cheap++; c.every > 0 && cheap%c.every == 0 {
					choice.Value, typed[k+c.late] = &c.typed, a.Decision
				}
			}
			fatal.If(t, e.Choose(t.Context(), "home", a.Decision, []api.Choice{choice}, now))
		}
		if id := typed[k]; id != "" {
			fatal.If(t, e.Correct(t.Context(), "home", id, api.Correction{ID: "t", Item: itemID(0), Value: new(1 - c.typed)},
				now))
		}
		if id := refunds[k]; id != "" {
			fatal.If(t, e.Correct(t.Context(), "home", id, api.Correction{ID: "r", Item: itemID(1)}, now))
		}
		fatal.Or(e.Expire(t.Context(), now))(t)
	}
	wait(t, e)
	return e
}

// money returns all amounts of an experiment and of the hold-out.
func money(t *testing.T, e *engine.Engine) (list []float64) {
	t.Helper()
	all := fatal.Or(e.Experiments("home"))(t)
	for _, r := range []*api.ExperimentReport{all.Experiment, all.Holdout} {
		for _, v := range r.Variants {
			list = append(list, v.Group.Revenue, v.Group.Squares, v.Mean.Low, v.Mean.Estimate, v.Mean.High)
			if d := v.Difference; d != nil {
				list = append(list, d.Low, d.Estimate, d.High)
			}
		}
		for _, s := range r.Segments {
			for _, v := range s.Variants {
				list = append(list, v.Group.Revenue, v.Group.Squares)
				if d := v.Difference; d != nil {
					list = append(list, d.Low, d.Estimate, d.High)
				}
			}
		}
	}
	for _, g := range fatal.Or(e.Stats("home"))(t).Gains {
		list = append(list, g.PerDecision.Low, g.PerDecision.Estimate, g.PerDecision.High, g.Late)
	}
	return list
}

// Refunds before a decision's cohort counts make no difference to a sale for nothing, in all amounts and intervals, while
// shoppers come back. So no verdict ships a variant that sells more and keeps less.
func TestRefundsInTime(t *testing.T) {
	refunded := refunding{delay: 5}
	e := refunded.serve(t, 3000)
	if s := fatal.Or(e.Stats("home"))(t); s.Corrected < 300 {
		t.Errorf("%d corrections prove little", s.Corrected)
	}
	have, want := money(t, e), money(t, (&refunding{free: true, delay: refunded.delay}).serve(t, 3000))
	if len(have) < 40 {
		t.Fatalf("%v are too few", have)
	}
	agree(t, have, want, 1e-9)
	r := fatal.Or(e.Experiments("home"))(t).Experiment
	if b := r.Variants[1]; r.Verdict.Result == api.Ship || b.Later != 0 || b.Difference.Estimate >= 0 {
		t.Errorf("%+v, %+v", r.Verdict, b)
	}
	replays(t, e, engine.Options{Store: &refunded.store, Build: buildFixed})
}

// Refunds of decisions that count already turn ship into weigh. The reason and the gains contain their sum.
func TestLateRefunds(t *testing.T) {
	refunded := refunding{delay: 120}
	e := refunded.serve(t, 3000)
	r := fatal.Or(e.Experiments("home"))(t).Experiment
	b := r.Variants[1]
	if r.Verdict.Result != api.Weigh || r.Verdict.Variant != "B" || b.Difference.Low <= 0 || b.Later > -1000 ||
		!strings.Contains(r.Verdict.Reason, fmt.Sprintf("could reverse that: %s of \"B\", 0 of \"A\"",
			api.Amount(b.Later, ""))) {
		t.Errorf("%+v, %+v", r.Verdict, b)
	}
	for _, g := range fatal.Or(e.Stats("home"))(t).Gains {
		if g.Variant == "B" && math.Abs(g.Late-float64(g.Decisions)*b.Later/float64(b.Group.Rounds)) > 1e-6 ||
			g.Variant == "" && !(g.Late < 0 && g.Total.Estimate+g.Late < 0) {
			t.Errorf("%+v", g)
		}
	}
	replays(t, e, engine.Options{Store: &refunded.store, Build: buildFixed})
}

// Mistyped values that are corrected in time leave no trace in sums, intervals, verdicts and plans.
func TestMistypedInTime(t *testing.T) {
	type numbers struct {
		sums, intervals []float64
		reasons         []string
	}
	of := func(c *refunding) (n numbers) {
		e := c.serve(t, 2000)
		s, all := fatal.Or(e.Stats("home"))(t), fatal.Or(e.Experiments("home"))(t)
		for _, g := range []api.Totals{s.ByPolicy, s.ByChance, s.ByBaseline} {
			n.sums = append(n.sums, float64(g.Purchases), g.Revenue, g.Squares)
		}
		x := fatal.Or(e.Insight(t.Context(), "home", int64(1e18)+2000*minute))(t)
		for _, item := range x.Items {
			n.sums = append(n.sums, item.Revenue)
		}
		plan := fatal.Or(e.Plan("home", []float64{0.5, 0.5}, nil, int64(1e18)+2000*minute))(t)
		n.sums = append(n.sums, plan.Mean, plan.SD)
		for _, g := range plan.Gains {
			n.intervals = append(n.intervals, *g.Decisions)
		}
		n.intervals = append(n.intervals, money(t, e)...)
		for _, r := range []*api.ExperimentReport{all.Experiment, all.Holdout} {
			n.reasons = append(n.reasons, r.Verdict.Result+": "+r.Verdict.Reason)
		}
		replays(t, e, engine.Options{Store: &c.store, Build: buildFixed})
		return n
	}
	want := of(&refunding{delay: 5})
	for _, late := range []int{0, 7} {
		have := of(&refunding{delay: 5, typed: 1e9, every: 50, late: late})
		agree(t, have.sums, want.sums, 1e-9)
		agree(t, have.intervals, want.intervals, 1e-6)
		expect.Equal(t, have.reasons, want.reasons)
	}
}

func agree(t *testing.T, have, want []float64, tolerance float64) {
	t.Helper()
	if len(have) != len(want) {
		t.Fatalf("%v, want %v", have, want)
	}
	for i := range have {
		if math.Abs(have[i]-want[i]) > tolerance*(1+math.Abs(want[i])) {
			t.Errorf("amount %d is %v, want %v", i, have[i], want[i])
		}
	}
}

// If a mistyped value is corrected after it counts, the verdict names the decision and says what to do.
func TestMistypedTooLate(t *testing.T) {
	c := &refunding{delay: 5, typed: 1e9, every: 700, late: 60}
	e := c.serve(t, 2000)
	v := fatal.Or(e.Experiments("home"))(t).Experiment.Verdict
	if v.Result != api.Continue || !strings.Contains(v.Reason, "; all intervals are wide because the decision of log entry ") ||
		!strings.Contains(v.Reason, "end this experiment and begin another one") {
		t.Errorf("%+v", v)
	}
	for _, g := range fatal.Or(e.Plan("home", []float64{0.5, 0.5}, nil, int64(1e18)+2000*minute))(t).Gains {
		if g.Decisions == nil || *g.Decisions > 1e9 {
			t.Errorf("the plan for a gain of %v asks for too many decisions", g.Relative)
		}
	}
}
