package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/bandit"
	"vitrine/bandit/policy"
	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// reasoned is a placement of a policy with all candidates' rows in the log.
func reasoned(policy, more string) string {
	return `{"max_size":2,"max_request_items":20,"log_items":"all","horizon":2000,"policy":` + policy + `,"features":[{"name":"age","kind":"number","from":"shopper"},{"name":"x","kind":"number"},
	{"name":"both","kind":"cross","of":["age","x"]},{"name":"brand","kind":"category","values":["a","b"]},{"name":"words","kind":"text","columns":4}]` + more + `}`
}

// asking is a request of a reasoned placement.
func asking(rng *rand.Rand) *api.Request {
	r := &api.Request{User: aged(rng.NormFloat64())}
	for i := range 6 {
		r.Items = append(r.Items, api.Item{
			ID: itemID(i), Revenue: new(0.5 + rng.Float64()),
			Features: api.Values{api.Number("x", rng.NormFloat64()), api.Text("brand", []string{"a", "b"}[rng.IntN(2)]),
				api.Text("words", []string{"red shoe", "blue hat", ""}[rng.IntN(3)])},
		})
	}
	return r
}

// teach plays decisions until the learner learned their outcomes.
func teach(t *testing.T, e *engine.Engine, name string, decisions int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 3))
	for range decisions {
		a := decide(t, e, name, asking(rng), 0)
		item := ""
		if len(a.IDs()) > 0 && rng.IntN(2) == 0 {
			item = a.IDs()[0]
		}
		fatal.If(t, e.Outcome(t.Context(), name, a.Decision, item, 0))
	}
	wait(t, e)
}

// checkReasons checks what holds of every explanation.
func checkReasons(t *testing.T, x *api.Explanation) {
	t.Helper()
	for _, item := range x.Items {
		if item.Utility == nil {
			continue
		}
		sum := *item.Base
		for _, c := range item.Contributions {
			if sum += c.Utility; !x.Typical && c.Feature == "age" {
				t.Errorf("%s: the age, which all candidates share, adds %v to %s", x.Policy, c.Utility, item.ID)
			}
		}
		if math.Abs(sum-*item.Utility) > 1e-9*(1+math.Abs(sum)) {
			t.Errorf("%s: base and contributions of %s sum to %v, the utility is %v", x.Policy, item.ID, sum,
				*item.Utility)
		}
	}
}

// A trial gives the answer that a decision would, and changes neither the log nor the state. The decision's explanation
// equals the trial's, also if only memory holds its candidates. Both hold for every policy, before and after it has
// learned.
func TestTry(t *testing.T) {
	for _, p := range policy.All {
		if p.Learner.Unfit != "" {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			store := new(memlog.Store)
			e := opened(t, engine.Options{Store: store})
			text := reasoned(fmt.Sprintf(`{"name":%q}`, p.Name), "")
			if p.Name != "feel-good-ts" && p.Name != "log-barrier-mnl" { // which need all candidates
				text = strings.Replace(text, `"log_items":"all"`, `"log_items":"shown"`, 1)
			}
			put(t, e, "home", text)
			rng := rand.New(rand.NewPCG(9, 9))
			for _, decisions := range []int{0, 80} {
				teach(t, e, "home", decisions)
				before, at := snapshot(t, e), e.Sequence()
				r := asking(rng)
				if decisions > 0 {
					r.Exclude, r.MaxSize, r.Limits = []string{"sku1", "gone"}, 1,
						[]api.Limit{{Feature: "brand", Max: new(1)}}
				}
				tried, why, err := try(t.Context(), e, "home", r, 0)
				fatal.If(t, err)
				checkReasons(t, why)
				if after := snapshot(t, e); !bytes.Equal(before, after) || e.Sequence() != at {
					t.Fatal("a trial has changed the state")
				}
				a := decide(t, e, "home", r, 0)
				tried.Decision = a.Decision
				expect.Equal(t, asSeen(tried), asSeen(a), "after", decisions, "decisions")
				explained := fatal.Or(e.Explain(t.Context(), "home", a.Decision, 0, nil))(t)
				if !explained.SamePolicy {
					t.Error("the policy that decided a moment ago is not there")
				}
				expect.Equal(t, explained, why, "after", decisions, "decisions",
					cmpopts.IgnoreFields(api.Explanation{}, "Decision"))
				if p.Name == "uniform" != (why.Cause == "chance" && why.Attribution == "none") && decisions > 0 {
					t.Errorf("chooses by %s, and splits utilities by %s", why.Cause, why.Attribution)
				}
			}
		})
	}
}

// The log holds a request's rules next to all its candidates, unless there are too many.
func TestExplainRules(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", reasoned(`{"name":"ucb-mnl"}`, ""))
	for _, n := range []int{1, 20} {
		r := asking(rand.New(rand.NewPCG(5, 1)))
		r.Slots = []api.Slot{{ID: "left", Exclude: []string{"sku2"}}, {ID: "right"}}
		for k := range n - 1 {
			r.Slots[1].Exclude = append(r.Slots[1].Exclude, strings.Repeat("x", 1000)+fmt.Sprint(k))
		}
		a := decide(t, e, "home", r, 0)
		why := fatal.Or(e.Explain(t.Context(), "home", a.Decision, 0, nil))(t)
		if known := n == 1; known != (len(why.Rules) == 1 && len(why.Unknown) == 0 && len(why.Next.Items) == 2) ||
			known == slices.ContainsFunc(why.Unknown, func(u string) bool {
				return strings.Contains(u, "the log does not have them")
			}) {
			t.Errorf("with %d rules: %+v, %v", n, why.Rules, why.Unknown)
		}
	}
}

// An explanation says why it knows no candidate of a page that shows nothing.
func TestExplainEmptyPage(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", strings.Replace(reasoned(`{"name":"auto"}`, ""), `"all"`, `"shown"`, 1))
	r := asking(rand.New(rand.NewPCG(5, 1)))
	for i := range r.Items {
		r.Items[i].Revenue = new(0.0)
	}
	first := decide(t, e, "home", r, 0).Decision
	for range 300 { // more than the process remembers candidates of
		decide(t, e, "home", r, 0)
	}
	why := fatal.Or(e.Explain(t.Context(), "home", first, 0, nil))(t)
	if len(why.Items) > 0 || why.Known > 0 || len(why.Unknown) != 1 {
		t.Errorf("the page shows %v, %d candidates are known, and unknown is %q", why.Items, why.Known, why.Unknown)
	}
}

// A decision is explained by the rules of its time: later pins and exclusions take no part.
func TestExplainFormerRules(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", reasoned(`{"name":"ucb-mnl"}`, ""))
	put(t, e, "home", reasoned(`{"name":"ucb-mnl"}`, `,"exclude":["sku5"]`))
	fatal.Or(e.Keep(t.Context(), "home", "a change without settings", 0))(t)
	a := decide(t, e, "home", asking(rand.New(rand.NewPCG(5, 1))), 0)
	explained := func() *api.Explanation {
		t.Helper()
		return fatal.Or(e.Explain(t.Context(), "home", a.Decision, 0, nil))(t)
	}
	before := explained()
	if len(before.Rules) != 1 || before.Rules[0].Item != "sku5" {
		t.Fatalf("the rules are %+v", before.Rules)
	}
	put(t, e, "home", reasoned(`{"name":"ucb-mnl"}`, fmt.Sprintf(`,"min_size":1,"exclude":[%q]`, a.IDs()[0])))
	expect.Equal(t, explained(), before, "after another item is excluded")
}

// Contributions of a linear policy are weight times difference from the mean candidate, which has the base.
func TestLinearContributions(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":2,"policy":{"name":"ucb-mnl"},"features":[{"name":"x","kind":"number"},{"name":"x1","kind":"number"}]}`)
	r := &api.Request{}
	for i, v := range [][2]float64{{1, 0}, {0, 1}, {2, 0}, {0, 0}} {
		r.Items = append(r.Items, api.Item{ID: itemID(i), Features: api.Values{api.Number("x", v[0]),
			api.Number("x1", v[1])}})
	}
	for range 20 {
		a := decide(t, e, "home", r, 0)
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, a.IDs()[0], 0))
	}
	wait(t, e)
	utility := func(i int) *api.Explained {
		_, why, err := try(t.Context(), e, "home", &api.Request{Items: r.Items, Include: []string{itemID(i)}}, 0)
		fatal.If(t, err)
		checkReasons(t, why)
		expect.Equal(fatal.T(t), why.Attribution, "linear", "splits utilities by")
		return &why.Items[slices.IndexFunc(why.Items, func(x api.Explained) bool { return x.ID == itemID(i) })]
	}
	one, two, none := utility(0), utility(2), utility(3)
	weight := (*two.Utility - *none.Utility) / 2
	for _, c := range []struct {
		of *api.Explained
		x  float64
	}{{one, 1}, {two, 2}, {none, 0}} {
		at := slices.IndexFunc(c.of.Contributions, func(c api.Contribution) bool { return c.Feature == "x" })
		if got := c.of.Contributions[at]; got.Value != c.x || math.Abs(got.Utility-weight*(c.x-0.75)) > 1e-12 ||
			*c.of.Base != *one.Base {
			t.Errorf("x = %v contributes %v to %v, its weight is %v and the mean 0.75", c.x, got, *c.of.Base, weight)
		}
	}
}

// Contributions compare with the mean shopper of late: that shopper adds nothing, and has the base of all others.
func TestTypicalShopper(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":1,"policy":{"name":"ucb-mnl"},"features":[{"name":"age","kind":"number","from":"shopper"},{"name":"x","kind":"number"},{"name":"both","kind":"cross","of":["age","x"]}]}`)
	visit := func(age float64) *api.Request {
		return &api.Request{User: aged(age), Items: []api.Item{{ID: "only", Features: api.Values{api.Number("x", 1)}}}}
	}
	explain := func(age float64, now int64) *api.Explanation {
		_, why, err := try(t.Context(), e, "home", visit(age), now)
		fatal.If(t, err)
		checkReasons(t, why)
		return why
	}
	if why := explain(3, 0); why.Typical || len(why.Items[0].Contributions) > 0 {
		t.Errorf("before the first shopper: %+v", why.Items[0])
	}
	for k := range 20 {
		a := decide(t, e, "home", visit(float64(k%3)), 0)
		fatal.If(t, e.Outcome(t.Context(), "home", a.Decision, []string{"only", ""}[k%2], 0))
	}
	wait(t, e)
	last := explain(1, 10*second) // the age of the last shopper, who is all that is known of the only item
	other := explain(3, 10*second)
	if !last.Typical || len(last.Items[0].Contributions) > 0 || len(other.Items[0].Contributions) != 2 ||
		*other.Items[0].Base != *last.Items[0].Utility || *other.Items[0].Utility == *last.Items[0].Utility {
		t.Errorf("the typical shopper: %+v, another one: %+v", last.Items[0], other.Items[0])
	}
	if want := []api.FeatureValue{{Feature: "age", Value: 3.0}}; !cmp.Equal(want, other.Shopper) {
		t.Errorf("who came: %v", other.Shopper)
	}
}

// Of the utility xy, two features share the product of their differences from the mean in halves:
//
//	xy − ab = b(x − a) + a(y − b) + (x − a)(y − b)
func TestShapley(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store), Build: func(setup.Spec) (vitrine.Learner, error) {
		return &stuck{policy: product{near{2, 0}}}, nil
	}})
	put(t, e, "home", `{"max_size":2,"features":`+numbers(2)+`}`)
	r := &api.Request{}
	for i, v := range [][2]float64{{1, 3}, {-1, 1}, {3, 2}} { // of the mean (1, 2)
		r.Items = append(r.Items, api.Item{ID: itemID(i), Features: api.Values{api.Number("x", v[0]),
			api.Number("x1", v[1])}})
	}
	_, why, err := try(t.Context(), e, "home", r, 0)
	fatal.If(t, err)
	checkReasons(t, why)
	for _, item := range why.Items {
		v := map[string][2]float64{"sku0": {1, 3}, "sku1": {-1, 1}, "sku2": {3, 2}}[item.ID]
		dx, dy := v[0]-1, v[1]-2
		want := map[string]float64{"x": dx*2 + dx*dy/2, "x1": dy*1 + dx*dy/2}
		for _, c := range item.Contributions {
			if math.Abs(c.Utility-want[c.Feature]) > 1e-12 {
				t.Errorf("%s adds %v to %s, want %v", c.Feature, c.Utility, item.ID, want[c.Feature])
			}
		}
	}
}

// product is the utility x y.
type product struct{ near }

func (product) Value(mean, _ []float64, x *mat.Dense) (hasMean, hasSD bool) {
	for i := range mean {
		mean[i] = x.At(i, 0) * x.At(i, 1)
	}
	return true, false
}
func (product) IsLinear() bool { return false }
func (product) Reasons(*vitrine.Context, *rand.Rand) bandit.Reasons {
	return bandit.Reasons{By: bandit.ByWeight}
}

// An explanation lists unknown facts: missing candidates, a policy that is gone, changed features. The policy of a kept
// version explains again.
func TestExplainLater(t *testing.T) {
	store := new(memlog.Store)
	e := opened(t, engine.Options{Store: store})
	text := strings.Replace(reasoned(`{"name":"auto"}`, ""), `"log_items":"all",`, "", 1)
	put(t, e, "home", text)
	teach(t, e, "home", 20)
	version := fatal.Or(e.Keep(t.Context(), "home", "a good one", 0))(t)
	wait(t, e)
	a := decide(t, e, "home", asking(rand.New(rand.NewPCG(4, 4))), 0)
	if a.PolicyEntry != version {
		t.Fatalf("version %d decides, %d is kept", a.PolicyEntry, version)
	}
	explain := func() *api.Explanation {
		x := fatal.Or(e.Explain(t.Context(), "home", a.Decision, 0, nil))(t)
		checkReasons(t, x)
		return x
	}
	if at := explain(); at.Known != 6 || at.Next == nil {
		t.Errorf("of a moment ago: %+v", at)
	}
	e.Close()
	e = opened(t, engine.Options{Store: store})
	wait(t, e)
	at := explain()
	if at.Known != len(a.IDs()) || at.Candidates != 6 || at.Next != nil || len(at.Unknown) < 2 || !at.SamePolicy ||
		at.Items[0].Index != nil || at.Items[0].Utility == nil {
		t.Errorf("of a log without the other candidates: %+v", at)
	}
	teach(t, e, "home", 5)
	if later := explain(); !later.SamePolicy || !cmp.Equal(at.Items, later.Items) {
		t.Errorf("of a kept version (-before +after):\n%s", cmp.Diff(at, later))
	}
	b := decide(t, e, "home", asking(rand.New(rand.NewPCG(4, 4))), 0)
	teach(t, e, "home", 5)
	x := fatal.Or(e.Explain(t.Context(), "home", b.Decision, 0, nil))(t)
	if x.SamePolicy || x.PolicyEntry != b.PolicyEntry || x.ExplainedByEntry <= x.PolicyEntry ||
		x.Items[0].Utility == nil {
		t.Errorf("of a version that has gone: %+v", x)
	}
	put(t, e, "home", strings.Replace(text, `"columns":4`, `"columns":5`, 1))
	if x := explain(); x.Items[0].Utility != nil || len(x.Unknown) == 0 || x.Items[0].ID != a.IDs()[0] {
		t.Errorf("of other features: %+v", x)
	}
	expect.Fails(e.Explain(t.Context(), "home", "none", 0, nil))(t, engine.ErrNotFound, "of an unknown decision")
}

// Trials of the catalogue's items are trials of these items; rules and filters hold.
func TestTryCatalogue(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", window+`,"log_items":"all"}`)
	putItems(t, e, "home", goods(1, 40))
	for _, r := range []*api.Request{
		{User: aged(1)}, {User: aged(-1), Candidates: []string{"sku3", "sku7", "gone"}, Payload: true},
		{User: aged(1), Filter: "half == 1", Exclude: []string{"sku1"}},
		{User: aged(2), Candidates: []string{"sku9"},
			Items: []api.Item{{ID: "own", Features: api.Values{api.Number("x", 1), api.Number("x1", 1),
				api.Text("brand", "c")}}}},
	} {
		before, at := snapshot(t, e), e.Sequence()
		tried, why, err := try(t.Context(), e, "home", r, 0)
		fatal.If(t, err)
		checkReasons(t, why)
		if !bytes.Equal(before, snapshot(t, e)) || e.Sequence() != at {
			t.Fatal("a trial has changed the state")
		}
		a := decide(t, e, "home", r, 0)
		tried.Decision = a.Decision
		expect.Equal(t, asSeen(tried), asSeen(a))
	}
	for field, r := range map[string]*api.Request{
		"/filter": {Filter: "half ="}, "/include/0": {User: aged(1), Include: []string{"gone"}}, "/shopper/age": {},
		"/baseline/0": {User: aged(1), Baseline: []string{"gone"}},
		"/items":      {User: aged(1), Items: make([]api.Item, 10_001)},
		"/limits/0":   {User: aged(1), Limits: []api.Limit{{Group: "g"}}},
		"/limits/1": {User: aged(1), Limits: []api.Limit{{Feature: "brand", Max: new(1)}, {Attribute: "half"}},
			Items: []api.Item{{ID: "own", Features: api.Values{api.Number("x", 1), api.Number("x1", 1),
				api.Text("brand", "c")}}}, Candidates: []string{"sku9"}},
	} {
		_, _, err := try(t.Context(), e, "home", r, 0)
		var f *api.FieldError
		if !errors.As(err, &f) || f.Field != field ||
			strings.HasSuffix(field, "e/0") && !strings.Contains(f.Message, "is not a candidate") {
			t.Errorf("%s: the error is %v", field, err)
		}
	}
	if _, _, err := try(t.Context(), e, "away", &api.Request{}, 0); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("of an unknown placement: %v", err)
	}
}

// A catalogue can be tried that has more items than a request may bring, and a trial with a rule states the rule's cost.
func TestTryLargeCatalogue(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", `{"max_size":2,"policy":{"name":"ucb-mnl"},"features":`+numbers(1)+`}`)
	items := make([]api.CatalogueItem, 12_000)
	for i := range items {
		items[i] = api.CatalogueItem{ID: itemID(i), Features: api.Values{api.Number("x", float64(i%100)/100)}}
	}
	putItems(t, e, "home", items)
	r := &api.Request{Include: []string{itemID(11_000)}}
	tried, why, err := try(t.Context(), e, "home", r, 0)
	fatal.If(t, err)
	checkReasons(t, why)
	if why.Candidates != len(items) || len(why.Rules) != 1 || why.Rules[0].Item != r.Include[0] || why.Next == nil {
		t.Errorf("%d candidates, rules %+v, next %+v", why.Candidates, why.Rules, why.Next)
	}
	a := decide(t, e, "home", r, 0)
	tried.Decision = a.Decision
	expect.Equal(t, asSeen(tried), asSeen(a))
}

// A trial in the mode shadow needs no baseline, and one with a baseline shows it.
func TestTryShadow(t *testing.T) {
	e := opened(t, engine.Options{Store: new(memlog.Store)})
	put(t, e, "home", reasoned(`{"name":"ucb-mnl"}`, `,"mode":"shadow"`))
	r := asking(rand.New(rand.NewPCG(1, 1)))
	a, _, err := try(t.Context(), e, "home", r, 0)
	if err != nil || a.Mode != offer.ByPolicy {
		t.Errorf("without a baseline: %+v, %v", a, err)
	}
	r.Baseline = []string{"sku5", "sku0"}
	a, why, err := try(t.Context(), e, "home", r, 0)
	if err != nil || a.Mode != offer.ByBaseline || !slices.Equal(a.IDs(), r.Baseline) || why.Source != "baseline" {
		t.Errorf("with a baseline: %+v, %v", a, err)
	}
	if why.Next == nil || why.Next.MissedBy > 0 && slices.Equal(why.Next.Items, a.IDs()) {
		t.Errorf("beside the baseline: %+v", why.Next)
	}
}

// An explanation by a policy that panics, or that is not one of ours, names the items shown and the unknown facts.
func TestExplainForeign(t *testing.T) {
	for name, policy := range map[string]vitrine.Policy{"no explainer": near{2, 0}, "a panic": panicking{near{2, 0}}} {
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: func(setup.Spec) (vitrine.Learner, error) {
			return &stuck{policy: policy}, nil
		}})
		put(t, e, "home", `{"max_size":2,"features":`+numbers(1)+`}`)
		_, why, err := try(t.Context(), e, "home", stock("", 4), 0)
		fatal.If(t, err)
		if len(why.Items) != 2 || len(why.Unknown) != 1 || why.Attribution != "none" {
			t.Errorf("%s: %+v", name, why)
		}
	}
}

// stuck is a learner with one policy.
type stuck struct {
	toy
	policy vitrine.Policy
}

func (l *stuck) Policy() vitrine.Policy { return l.policy }

// panicking cannot explain itself.
type panicking struct{ near }

func (panicking) Value(_, _ []float64, _ *mat.Dense) (hasMean, hasSD bool) { panic("no value") }
func (panicking) IsLinear() bool                                           { return false }
func (panicking) Reasons(*vitrine.Context, *rand.Rand) bandit.Reasons      { return bandit.Reasons{} }

// An explanation leaves out a number that JSON cannot express.
func TestExplainInfinite(t *testing.T) {
	for _, u := range []float64{math.NaN(), math.Inf(1), 800} {
		e := opened(t, engine.Options{Store: new(memlog.Store), Build: func(setup.Spec) (vitrine.Learner, error) {
			return &stuck{policy: level{near{2, 0}, u}}, nil
		}})
		put(t, e, "home", `{"max_size":2,"features":`+numbers(1)+`}`)
		_, why, err := try(t.Context(), e, "home", stock("", 4), 0)
		fatal.If(t, err)
		if _, err := json.Marshal(why); err != nil || why.Items[0].Utility != nil || why.Compared != "none" {
			t.Errorf("of a utility of %v: %+v, %v", u, why, err)
		}
	}
}

// level is one utility for all items.
type level struct {
	near
	u float64
}

func (l level) Value(mean, _ []float64, _ *mat.Dense) (hasMean, hasSD bool) {
	for i := range mean {
		mean[i] = l.u
	}
	return true, false
}
func (level) IsLinear() bool { return false }
func (l level) Reasons(x *vitrine.Context, _ *rand.Rand) bandit.Reasons {
	return bandit.Reasons{By: bandit.ByEstimate, IsBest: true, Index: slices.Repeat([]float64{l.u}, x.NumItems())}
}
