package decision_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"vitrine"
	"vitrine/service/api"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// An engine that carries offers has the state of one that does not, unless an offer is another one in what is needed of
// it, the other way round too. Its closed decisions may be forgotten.
func TestCompare(t *testing.T) {
	store := new(memlog.Store)
	o := decision.Options{Store: store, Build: buildToy}
	e := opened(t, o)
	ctx := t.Context()
	put(t, e, "away", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{}}`)
	put(t, e, "home", `{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{},"memory":12000}`)
	const closed = 40
	for i := range closed + 4 {
		a, err := e.Decide(ctx, "home", stock(fmt.Sprint("d", 60-i), 3), int64(i/2)) // two at a time
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case i < closed:
			err = e.Outcome(ctx, "home", a.Decision, a.Shown[0], int64(i))
		case i == closed:
			err = e.Reward(ctx, "home", a.Decision, []api.Reward{{Item: a.Shown[0], Value: 0}}, int64(i))
		}
		is(t, "outcome", err, nil)
		wait(t, e)
	}
	keep := func(string, *eventlog.Offered) {}
	same, none := []string{}, []string{"home"}
	for _, c := range []struct {
		what   string
		change func(status string, o *eventlog.Offered)
		want   []string
	}{
		{"nothing", keep, same},
		{"rows of the closed", func(status string, o *eventlog.Offered) {
			if status == "chosen" {
				o.Features[0]++
			}
		}, same},
		{"rows of the open", func(status string, o *eventlog.Offered) {
			if status == "open" {
				o.Features[0]++
			}
		}, none},
		{"revenues", func(_ string, o *eventlog.Offered) { o.Revenue = slices.Repeat([]float64{2}, len(o.ItemIDs)) }, none},
		{"requests", func(_ string, o *eventlog.Offered) { o.Request[0]++ }, none},
		{"versions", func(_ string, o *eventlog.Offered) { o.PolicyVersion++ }, none},
		{"modes", func(_ string, o *eventlog.Offered) { o.Mode = offer.ByChance }, none},
		{"propensities", func(_ string, o *eventlog.Offered) { o.Propensity /= 2 }, none},
		{"items", func(_ string, o *eventlog.Offered) { slices.Reverse(o.Shown) }, none},
	} {
		other := opened(t, o)
		is(t, c.what, other.Carry(ctx, c.change), nil)
		if bytes.Equal(snapshot(t, e), snapshot(t, other)) {
			t.Errorf("%s: nothing is carried", c.what)
		}
		for k, pair := range [][2]*decision.Engine{{e, other}, {other, e}} {
			if have, err := decision.Compare(ctx, pair[0], pair[1]); err != nil || !slices.Equal(have, c.want) {
				t.Errorf("%s, %d: %q, %v, want %q", c.what, k, have, err, c.want)
			}
		}
		if s, err := other.Stats("home"); err != nil || s.Pending != 4 || s.Memory > 12000 {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err := other.Decision(ctx, "home", "d60"); err == nil {
			t.Error("nothing was forgotten")
		}
	}

	level := o
	level.Build = func(s setup.Spec) (vitrine.Learner, error) { return &toy{size: s.Size, level: 7}, nil }
	if have, err := decision.Compare(ctx, e, opened(t, level)); err != nil || !slices.Equal(have, []string{"away", "home"}) {
		t.Errorf("other learners: %q, %v", have, err)
	}
	before := opened(t, o)
	is(t, "delete", e.Delete(ctx, "away", nil, 99), nil)
	if have, err := decision.Compare(ctx, before, e); err == nil {
		t.Errorf("states of two entries: %q", have)
	}
}
