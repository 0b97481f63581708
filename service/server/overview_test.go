package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/keys"
	"vitrine/service/server"
)

func (s *service) overview(query string) (v api.Overview) {
	s.Helper()
	fatal.If(s, json.Unmarshal([]byte(s.want(200, "GET", "/v1/overview"+query, "").body), &v))
	return v
}

// The overview has a page of the placements of the key, with what they earned in the time that was asked for.
func TestOverview(t *testing.T) {
	token, key := keys.New("shop", keys.Scopes...)
	key.Placements = []string{"p3", "P31", "p4"}
	owner, ownersKey := keys.New("owner", keys.Scopes...)
	s, _ := locked(t, key.Table()+ownersKey.Table())
	s.token = owner
	for i := range 45 {
		s.want(201, "PUT", fmt.Sprintf("/v1/placements/p%d", i), plain)
	}
	s.want(201, "PUT", "/v1/placements/P31", plain)
	names := func(v api.Overview) (list []string) {
		for _, p := range v.Placements {
			list = append(list, p.Name)
		}
		return list
	}
	for query, want := range map[string]string{
		"":                            "46: P31 p0 p1 p10 p11 p12 p13 p14 p15 p16 p17 p18 p19 p2 p20 p21 p22 p23 p24 p25",
		"?from=44":                    "46: p8 p9",
		"?from=400":                   "46:",
		"?contains=P3&limit=3":        "12: P31 p3 p30",
		"?contains=p3&from=3&limit=2": "12: p31 p32",
		"?contains=elsewhere":         "0:",
	} {
		v := s.overview(query)
		if got := strings.TrimSpace(fmt.Sprintf("%d: %s", v.Total, strings.Join(names(v), " "))); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	s.problem(422, "invalid", "#/limit", "GET", "/v1/overview?limit=101", "")
	s.problem(422, "invalid", "#/points", "GET", "/v1/placements/p1/series?points=0", "")

	for i := range 4 {
		s.want(201, "POST", "/v1/placements/p3/decisions", fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":1},"revenue":8}]}`, i))
	}
	s.want(204, "POST", "/v1/decisions/d0/outcome", `{"choice":"a"}`)
	s.want(204, "POST", "/v1/decisions/d1/outcome", `{"choice":null}`)
	s.clock.advance(time.Second)
	s.token = token
	v := s.overview("")
	if got := strings.Join(names(v), " "); got != "P31 p3 p4" {
		t.Fatalf("a key that is limited sees %s", got)
	}
	p := v.Placements[1]
	if p.Decisions != 4 || p.Rate != 0.4 || p.Revenue == nil || *p.Revenue != 4 || p.Chance != nil || p.Policy != "ucb-mnl" || p.Mode != "learn" || len(p.Series.Times) != 1 || p.Series.Open[0] != 2 {
		t.Errorf("%+v", p)
	}
	if len(p.Health) != 0 {
		t.Errorf("health %+v", p.Health)
	}
	s.problem(404, "not-found", "", "GET", "/v1/placements/p5/series", "")
	s.clock.advance(time.Hour)
	if p := s.overview("?contains=p3&seconds=60").Placements[0]; p.Revenue != nil || len(p.Series.Times) != 0 || p.Rate != 0 {
		t.Errorf("an hour later the last minute has %+v", p)
	}
}

// Each fault of a placement is said, the worst first.
func TestHealth(t *testing.T) {
	if got := server.HealthOf(&api.Stats{Outcomes: 1, Guard: new(api.Guard), Learned: 50_000, Lag: 4000, Drift: new(api.Drift)}); len(got) != 0 || got == nil {
		t.Errorf("a placement without a fault: %+v", got)
	}
	alarm := &api.Guard{Alarm: &api.Alarm{Detail: "in 900 decisions the policy earned less", Fallback: "baseline"}}
	got := server.HealthOf(&api.Stats{
		Outcomes: 1, Guard: alarm, Broken: true, Unsound: true, Problem: "V is singular", Forgotten: 2, ExpiredEarly: 3, Unlearned: 4, Lag: 1001, Skipped: 6, Relearning: &api.Relearning{Entry: 7, To: 8},
	}, "a warning")
	want := []string{
		"bad: The guard has an alarm: in 900 decisions the policy earned less; the caller's sets are shown.",
		"bad: The learner has failed, and its last good policy decides: V is singular.",
		"bad: The predictions cannot be right: V is singular.",
		"warning: The learner lost 2 rounds",
		"warning: 3 decisions left memory",
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
	for since, level := range map[uint64]string{7: "warning", 1000: "note"} {
		got := server.HealthOf(&api.Stats{Outcomes: 1, Outliers: &api.Outliers{Values: 40, Feature: "price", Since: since, Rounds: 3}})
		if want := fmt.Sprintf(`40 values of features were far beyond all others, the last one of "price", %d rounds ago.`, since); len(got) != 1 || got[0].Level != level || !strings.HasPrefix(got[0].Text, want) {
			t.Errorf("%v", got)
		}
	}
	if got := server.HealthOf(&api.Stats{Outcomes: 1, Skipped: 6, Problem: "x"}); len(got) != 1 || got[0].Text != "The learner refused 6 rounds: x." {
		t.Errorf("%+v", got)
	}
}

// A placement without an outcome is not well: it waits. Nobody can tell yet.
func TestHealthWaits(t *testing.T) {
	for _, c := range []struct {
		stats api.Stats
		want  string
	}{
		{api.Stats{}, "waiting: Waiting for the first outcome: 0 decisions so far, and no outcome reported yet."},
		{api.Stats{Decisions: 40, Expired: 40}, "waiting: Waiting for the first outcome: 40 decisions so far, and no outcome reported yet."},
		{api.Stats{Decisions: 90, Expired: 70}, "warning: Waiting for the first outcome: 70 decisions have ended, and no outcome was ever reported. Is the page reporting what was bought?"},
	} {
		got := server.HealthOf(&c.stats)
		if len(got) != 1 || got[0].Level+": "+got[0].Text != c.want {
			t.Errorf("%d decisions: %+v, want %s", c.stats.Decisions, got, c.want)
		}
	}
}

// What the guard knows of sales has words of its own, with the true number of decisions.
func TestHealthOfSales(t *testing.T) {
	group := func(rounds, purchases uint64) api.Span {
		return api.Span{ByPolicy: api.Group{Rounds: rounds, Purchases: purchases}}
	}
	for _, c := range []struct {
		stats api.Stats
		want  string
	}{
		{
			api.Stats{Guard: &api.Guard{WithoutSale: 200, Held: 180, Alarm: &api.Alarm{Check: "no-sale", Detail: "no sale in the last 74 decisions"}}},
			"bad: No sale in the last 200 decisions: is the checkout reporting? The alarm ends once sales are back; the policy's sets are still shown. The policy has not learned from 180 outcomes since, and will read them from the log when the alarm ends.",
		},
		{
			api.Stats{Guard: &api.Guard{Alarm: &api.Alarm{Check: "sales", Detail: "the last 90 decisions sold 10", Fallback: "version"}}},
			"bad: Sales have fallen: the last 90 decisions sold 10. The alarm ends once they are back; the sets of an earlier version are shown.",
		},
		{
			api.Stats{Guard: &api.Guard{FarOff: &api.Calibrated{Predicted: .42, Observed: .2, Rounds: 900}}},
			"warning: Predictions are far off: where 42% of the shoppers should have bought, 20% of 900 did. A feature is missing, or tastes have changed.",
		},
		{
			api.Stats{Drift: &api.Drift{Fell: true, Recent: group(1000, 100), Before: group(4000, 1200)}},
			"warning: Sales drift: 10.0% of the policy's last 1000 pages sold, 30.0% before.",
		},
	} {
		c.stats.Outcomes = 1
		if got := server.HealthOf(&c.stats); len(got) != 1 || got[0].Level+": "+got[0].Text != c.want {
			t.Errorf("%+v, want %s", got, c.want)
		}
	}
}

// While an experiment runs, the overview answers with the numbers of its report, and with no others: means of all that policies have
// shown are no comparison.
func TestOverviewOfAnExperiment(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ts-mnl"},"mode":"experiment","attribution_window":"30m",
		"experiment":{"name":"summer","variants":[{"name":"shop","show":"baseline","share":0.4},{"name":"ours","show":"policy","share":0.3},{"name":"rival","show":"policy","policy":{"name":"ucb-mnl"},"share":0.3}]}}`)
	for i := range 300 {
		id := fmt.Sprint("d", i)
		s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"`+id+`","unit":"`+id+`","baseline":["a"],"items":[{"id":"a","features":{"x":1},"revenue":2},{"id":"b","features":{"x":0}}]}`)
		if i%3 == 0 {
			var d api.Decision
			fatal.If(t, json.Unmarshal([]byte(s.want(200, "GET", "/v1/decisions/"+id, "").body), &d))
			s.want(204, "POST", "/v1/decisions/"+id+"/outcome", `{"choice":"`+d.Assortment[0].ID+`"}`)
		}
	}
	s.clock.advance(time.Hour)
	fatal.Or(s.engine.Expire(t.Context(), s.clock.now().UnixNano()))(t)
	s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"last","unit":"last","baseline":["a"],"items":[{"id":"a","features":{"x":1}}]}`)
	var all api.Experiments
	fatal.If(t, json.Unmarshal([]byte(s.want(200, "GET", "/v1/placements/home/experiment", "").body), &all))
	p, r := s.overview("").Placements[0], all.Experiment
	if r.Decisions != 300 || p.Experiment == nil || p.Experiment.Name != "summer" || p.Experiment.Control != "shop" || len(p.Experiment.Variants) != 2 {
		t.Fatalf("%+v, of %+v", p.Experiment, r)
	}
	if diff := cmp.Diff(r.Verdict, p.Experiment.Verdict); diff != "" {
		t.Error(diff)
	}
	for i, v := range p.Experiment.Variants {
		if diff := cmp.Diff(r.Variants[i+1].Difference, v.Difference); diff != "" || v.Difference == nil || v.Name != r.Variants[i+1].Name {
			t.Errorf("%s: %s", v.Name, diff)
		}
	}
	if p.Revenue == nil || p.Chance != nil || p.Baseline != nil || p.Series.OverChance != nil || p.Series.OverBaseline != nil {
		t.Errorf("the overview has other answers: %+v", p)
	}
}

// The operator says whether the policy learns from decisions in doubt; what that may be is said, too.
func TestClearAlarmLearns(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	s.want(204, "DELETE", "/v1/placements/home/alarm", "") // there is none
	s.want(204, "DELETE", "/v1/placements/home/alarm?learn=all", "")
	s.problem(422, "invalid", "#/learn", "DELETE", "/v1/placements/home/alarm?learn=some", "")
}
