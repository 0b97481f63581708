package health_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vitrine/internal/expect"
	"vitrine/service/api"
	"vitrine/service/health"
)

// Each fault of a placement is said, the worst first.
func TestHealth(t *testing.T) {
	if got := health.Of(&api.Stats{Outcomes: 1, Guard: new(api.Guard), Learned: 50_000, Lag: 4000,
		Drift: new(api.Drift)}, nil); len(got) != 0 || got == nil {
		t.Errorf("a placement without a fault: %+v", got)
	}
	alarm := &api.Guard{Alarm: &api.Alarm{Check: "chance", Detail: "in 900 decisions the policy earned less", Chance: 0.004,
		Fallback: "baseline"}}
	got := health.Of(&api.Stats{
		Outcomes: 1, Guard: alarm, Broken: true, Unsound: true, Problem: "V is singular", Forgotten: 2, ExpiredEarly: 3,
		Unlearned: 4, Lag: 1001, Skipped: 6, Relearning: &api.Relearning{Entry: 7, To: 8},
	}, []string{"a warning"})
	want := []string{
		"bad: The policy earns too little: in 900 decisions the policy earned less. On a placement that sells as " +
			"it should, that happens about once in 250 times. Your own pages are shown until it is over. The " +
			"alarm stays until you clear it",
		"bad: The learner has failed, and its last good policy decides: V is singular.",
		"bad: The predictions cannot be right: V is singular.",
		"warning: 3 decisions left memory before an outcome, so experiments",
		"warning: The learner lost 2 rounds",
		"warning: The learner is too slow and missed 4 outcomes",
		"warning: The learner is 1001 outcomes behind.",
		"warning: a warning",
		"note: A second learner learns from the log: it is at entry 7 of 8.",
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if line := got[i].Level + ": " + got[i].Text; !strings.HasPrefix(line, want[i]) {
			t.Errorf("line %d is %q, want %q", i, line, want[i])
		}
	}
	// A second learner with few rounds waits to be accepted, once it has read the log and no alarm holds rounds back.
	few := func(ready bool) []api.Health {
		return health.Of(&api.Stats{Outcomes: 1, Learned: 10,
			Relearning: &api.Relearning{Ready: ready, Learned: 4, MaxSize: 2}}, nil)
	}
	expect.Equal(t, few(false)[0].Level, "note", "before")
	got = few(true)
	if len(got) != 1 || !strings.Contains(got[0].Text, "to cancel it. It skips decisions that showed more than 2 items: ") {
		t.Errorf("%+v", got)
	}
	for seconds, want := range map[float64]string{74: "ahead by 1m14s", -719 * 3600: "back by 719h0m0s"} {
		got := health.Of(&api.Stats{Outcomes: 1, Held: &api.Held{Decisions: 1, Seconds: seconds}}, nil)
		if len(got) != 1 || got[0].Key != health.Clock || !strings.HasPrefix(got[0].Text, "The clock moved "+want+", and ") {
			t.Errorf("%+v", got)
		}
	}
	for since, level := range map[uint64]string{7: "warning", 1000: "note"} {
		got := health.Of(&api.Stats{Outcomes: 1, Outliers: &api.Outliers{Values: 40, Feature: "price", Since: since,
			Rounds: 3}}, nil)
		if want := fmt.Sprintf(`40 values of features were far beyond all others, the last one of "price", %d rounds ago.`, since); len(got) != 1 || got[0].Level != level || !strings.HasPrefix(got[0].Text, want) {
			t.Errorf("%v", got)
		}
	}
	for since, level := range map[uint64]string{0: "warning", 999: "warning", 1000: "note"} { // counters never fall
		got := health.Of(&api.Stats{Outcomes: 1, Forgotten: 2, Learned: since, ExpiredEarly: 3, SinceExpiredEarly: since,
			Unlearned: 4, SinceUnlearned: since, Skipped: 6, SinceSkipped: since}, nil)
		if len(got) != 4 || slices.ContainsFunc(got, func(h api.Health) bool { return h.Level != level }) {
			t.Errorf("%d rounds after the last one: %+v, want the level %s", since, got, level)
		}
	}
	for share, want := range map[float64]string{0.019: "warning: 3 decisions left memory before an outcome, so experiments",
		0.02: "bad: 3 decisions left memory before an outcome, so experiments"} {
		got := health.Of(&api.Stats{Outcomes: 1, ExpiredEarly: 3, ExpiredEarlyShare: share}, nil)
		if len(got) != 1 || !strings.HasPrefix(got[0].Level+": "+got[0].Text, want) {
			t.Errorf("a share of %v: %+v", share, got)
		}
	}
	for problem, why := range map[string]string{
		"x": "x", "": "during an alarm about missing sales it was unknown whether they sold",
	} {
		if got := health.Of(&api.Stats{Outcomes: 1, Skipped: 6, Problem: problem}, nil); len(got) != 1 ||
			got[0].Text != "The learner skipped 6 rounds: "+why+"." {
			t.Errorf("%+v", got)
		}
	}
}

// Empty pages are a warning once one in twenty of the last ones is empty.
func TestEmptyPages(t *testing.T) {
	for share, want := range map[float64]string{
		0.04: "",
		0.05: "warning: 5% of the last pages show no item: no item is allowed, by the rules or by what the shopper bought, " +
			"or all revenues are 0.",
	} {
		got := health.Of(&api.Stats{Outcomes: 1, Empty: 40, EmptyShare: share}, nil)
		if (len(got) > 0) != (want != "") || len(got) > 0 && got[0].Level+": "+got[0].Text != want {
			t.Errorf("a share of %v: %+v", share, got)
		}
	}
}

// Probabilities are rounded before their unit is chosen.
func TestOdds(t *testing.T) {
	for chance, want := range map[float64]string{
		0.1: "now and then", 0.004: "about once in 250 times", 1 / 999.4: "about once in 999 times",
		1 / 999.6: "about once in 1,000 times", 1 / 1499.0: "about once in 1,000 times",
		1 / 999_400.0: "about once in 999,000 times",
		1 / 999_600.0: "about once in 1 million times", 1 / 1_600_000.0: "about once in 2 million times",
		1e-10: "less than once in a billion times",
	} {
		expect.Equal(t, health.Odds(chance), want, "a chance of", chance, "happens")
	}
}

// A placement without an outcome is waiting, not well.
func TestHealthWaits(t *testing.T) {
	for _, c := range []struct {
		stats api.Stats
		want  string
	}{
		{api.Stats{}, "waiting: Waiting for the first outcome: 0 decisions so far, and no outcome reported yet."},
		{api.Stats{Decisions: 40, Expired: 40}, "waiting: Waiting for the first outcome: 40 decisions so far, and " +
			"no outcome reported yet."},
		{api.Stats{Decisions: 90, Expired: 70}, "warning: Waiting for the first outcome: 70 decisions have ended, " +
			"and no outcome was ever reported. Is the page reporting what was bought?"},
	} {
		got := health.Of(&c.stats, nil)
		if len(got) != 1 || got[0].Level+": "+got[0].Text != c.want {
			t.Errorf("%d decisions: %+v, want %s", c.stats.Decisions, got, c.want)
		}
	}
}

// The guard's findings are put into words of their own, with the true number of decisions.
func TestHealthOfSales(t *testing.T) {
	for _, c := range []struct {
		stats api.Stats
		want  string
	}{
		{
			api.Stats{Guard: &api.Guard{WithoutSale: 200, Held: 180, Alarm: &api.Alarm{Check: "no-sale", Chance: 5e-7,
				Detail: "no sale in the last 74 decisions"}}},
			"bad: No sale in the last 74 decisions. On a placement that sells as it should, that happens about " +
				"once in 2 million times. Pages are chosen as before, and learning is paused: 180 " +
				"outcomes wait in the log until the alarm ends. Is the checkout reporting what was bought? The " +
				"alarm ends once sales are back.",
		},
		{
			api.Stats{Guard: &api.Guard{Alarm: &api.Alarm{Check: "sales", Chance: 1. / 3000,
				Detail: "the last 90 decisions sold 10", Fallback: "version", Version: 7}}},
			"bad: Sales have fallen: the last 90 decisions sold 10. On a placement that sells as it should, that " +
				"happens about once in 3,000 times. The pages of an earlier version are shown until it is over. " +
				"Does every page report its outcome, and can shoppers buy? The alarm ends once sales are back.",
		},
		{
			api.Stats{Guard: &api.Guard{Alarm: &api.Alarm{Check: "sales", Chance: 1. / 3000,
				Detail: "the last 90 decisions sold 10", Fallback: "version"}}},
			"bad: Sales have fallen: the last 90 decisions sold 10. On a placement that sells as it should, that " +
				"happens about once in 3,000 times. Pages are chosen as before, because no earlier version " +
				"was kept. Does every page report its outcome, and can shoppers buy? The alarm ends once sales are back.",
		},
		{
			api.Stats{Guard: &api.Guard{Alarm: &api.Alarm{Check: "first-week", Chance: 1. / 3000, Detail: "it fell"}}},
			"bad: The policy earns too little: it fell. On a placement that sells as it should, that happens about once " +
				"in 3,000 times. Pages are chosen as before. Do other pages sell less, too? Then demand has fallen, as " +
				"after Christmas: clear the alarm. Otherwise find the cause, or roll back to an earlier version.",
		},
		{
			api.Stats{Guard: &api.Guard{FarOff: &api.Calibrated{Predicted: .42, Observed: .2, Rounds: 900}}},
			"warning: Predictions are far off: where 42% of the shoppers should have bought, 20% of 900 did. A " +
				"feature is missing, or tastes have changed.",
		},
		{
			api.Stats{Fell: &api.Interval{Low: .612, Estimate: .65, High: .7}},
			"warning: The policy's pages earn less than before: in the last four weeks 0.61 to 0.70 times as much a decision " +
				"as in the weeks before. Do your other pages sell less, too? Then demand has fallen. Otherwise look for changes " +
				"of prices, stock and the reporting of outcomes. To see whether the policy is at fault, hold some shoppers out " +
				"or run an experiment. The warning ends by itself.",
		},
	} {
		c.stats.Outcomes = 1
		if got := health.Of(&c.stats, nil); len(got) != 1 || got[0].Level+": "+got[0].Text != c.want {
			t.Errorf("%+v, want %s", got, c.want)
		}
	}
}
