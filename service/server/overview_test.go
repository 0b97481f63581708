package server_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"vitrine/internal/expect"
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

// The overview pages through the key's placements, with their earnings in the given time.
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
		expect.Equal(t, strings.TrimSpace(fmt.Sprintf("%d: %s", v.Total, strings.Join(names(v), " "))), want, query)
	}
	s.problem(422, "invalid", "#/limit", "GET", "/v1/overview?limit=101", "")
	s.problem(422, "invalid", "#/points", "GET", "/v1/placements/p1/series?points=0", "")

	for i := range 4 {
		s.want(201, "POST", "/v1/placements/p3/decisions",
			fmt.Sprintf(`{"decision_id":"d%d","items":[{"id":"a","features":{"x":1},"revenue":8}]}`, i))
	}
	s.want(204, "POST", "/v1/placements/p3/decisions/d0/outcome", `{"choice":"a"}`)
	s.want(204, "POST", "/v1/placements/p3/decisions/d1/outcome", `{"choice":null}`)
	if p := s.overview("?name=p3").Placements[0]; p.Revenue != nil || p.Series.Open[0] != 2 {
		t.Errorf("while decisions of the same second wait: %+v", p)
	}
	s.want(204, "POST", "/v1/placements/p3/decisions/d2/outcome", `{"choice":null}`)
	s.want(204, "POST", "/v1/placements/p3/decisions/d3/outcome", `{"choice":null}`)
	s.clock.advance(time.Second)
	s.token = token
	v := s.overview("")
	expect.Equal(fatal.T(t), strings.Join(names(v), " "), "P31 p3 p4", "a key that is limited sees")
	p := v.Placements[1]
	if p.Decisions != 4 || p.Rate != 0.4 || p.Revenue == nil || *p.Revenue != 2 || len(p.Gains) != 0 ||
		p.Policy != "ucb-mnl" || p.Mode != "learn" || len(p.Series.Times) != 1 || p.Series.Open[0] != 0 {
		t.Errorf("%+v", p)
	}
	expect.Equal(t, len(p.Health), 0, "health", p.Health)
	s.problem(404, "not-found", "", "GET", "/v1/placements/p5/series", "")
	s.clock.advance(time.Hour)
	if p := s.overview("?contains=p3&seconds=60").Placements[0]; p.Revenue != nil || len(p.Series.Times) != 0 ||
		p.Rate != 0 {
		t.Errorf("an hour later the last minute has %+v", p)
	}
}

// A placement in trouble is on the first page of the overview, wherever its name is.
func TestTroubleFirst(t *testing.T) {
	s := started(t, nil)
	for i := range 3 {
		s.want(201, "PUT", fmt.Sprintf("/v1/placements/p%d", i), plain)
	}
	s.run(server.Listen{Maintain: time.Millisecond})
	// The theory's constants are a warning of the placement.
	s.want(201, "PUT", "/v1/placements/shelf",
		`{"max_size":2,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ucb-mnl","constants":"theory"}}`)
	first := func() string { return s.overview("?limit=1").Placements[0].Name }
	for deadline := time.Now().Add(time.Minute); first() != "shelf"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the overview begins with %s", first())
		}
	}
	var rest []string
	for _, p := range s.overview("?from=1").Placements {
		rest = append(rest, p.Name)
	}
	expect.Equal(t, strings.Join(rest, " "), "p0 p1 p2", "the others are")
}

// While an experiment runs, the overview shows only the numbers of its report: means over all of a policy's decisions
// are no comparison.
func TestOverviewOfAnExperiment(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ts-mnl"},"mode":"experiment","attribution_window":"30m",
		"experiment":{"name":"summer","variants":[{"name":"shop","show":"baseline","share":0.4},{"name":"ours","show":"policy","share":0.3},{"name":"rival","show":"policy","policy":{"name":"ucb-mnl"},"share":0.3}]}}`)
	for i := range 300 {
		id := fmt.Sprint("d", i)
		s.want(201, "POST", "/v1/placements/home/decisions",
			`{"decision_id":"`+id+`","shopper_id":"`+id+`","baseline":["a"],"items":[{"id":"a","features":{"x":1},"revenue":2},{"id":"b","features":{"x":0}}]}`)
		if i%3 == 0 {
			var d api.Decision
			fatal.If(t, json.Unmarshal([]byte(s.want(200, "GET", "/v1/placements/home/decisions/"+id, "").body), &d))
			s.want(204, "POST", "/v1/placements/home/decisions/"+id+"/outcome", `{"choice":"`+d.Assortment[0].ID+`"}`)
		}
	}
	s.clock.advance(time.Hour)
	fatal.Or(s.engine.Expire(t.Context(), s.clock.now().UnixNano()))(t)
	s.want(201, "POST", "/v1/placements/home/decisions",
		`{"decision_id":"last","shopper_id":"last","baseline":["a"],"items":[{"id":"a","features":{"x":1}}]}`)
	var all api.Experiments
	fatal.If(t, json.Unmarshal([]byte(s.want(200, "GET", "/v1/placements/home/experiment", "").body), &all))
	p, r := s.overview("").Placements[0], all.Experiment
	if r.Decisions != 300 || p.Experiment == nil || p.Experiment.Name != "summer" || p.Experiment.Control != "shop" {
		t.Fatalf("%+v, of %+v", p.Experiment, r)
	}
	expect.Equal(t, p.Experiment.Verdict, r.Verdict)
	stats := fatal.Or(s.engine.Stats("home"))(t)
	if diff := cmp.Diff(stats.Gains, p.Gains); diff != "" || len(p.Gains) != 2 {
		t.Errorf("the statistics have other gains: %s", diff)
	}
	for i, g := range p.Gains {
		v := r.Variants[i+1]
		if want := (api.Gain{Variant: v.Name, Over: "shop", Randomized: true, Since: r.Begun, Decisions: 300,
			PerDecision: *v.Difference, Total: v.Difference.Times(300)}); g != want {
			t.Errorf("the gain is %+v, want %+v", g, want)
		}
	}
	if p.Revenue == nil || p.Series.OverChance != nil || p.Series.OverBaseline != nil {
		t.Errorf("the overview has other answers: %+v", p)
	}
}

// A check that waits for a time is not the next one to watch a placement.
func TestOverviewUnwatched(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", strings.Replace(plain, "ucb-mnl", "uniform", 1))
	for i := range 520 {
		id := fmt.Sprint("d", i)
		s.want(201, "POST", "/v1/placements/home/decisions", `{"decision_id":"`+id+`","items":[{"id":"a","features":{"x":1}}]}`)
		s.want(204, "POST", "/v1/placements/home/decisions/"+id+"/outcome", `{"choice":"a"}`)
		if i == 500 {
			s.clock.advance(time.Hour)
		}
	}
	s.clock.advance(time.Hour)
	fatal.Or(s.engine.Expire(t.Context(), s.clock.now().UnixNano()))(t)
	checks, least, waits := fatal.Or(s.engine.Stats("home"))(t).Guard.Checks, uint64(math.MaxUint64), false
	for _, c := range checks {
		if waits = waits || c.From != nil; c.From == nil {
			least = min(least, c.Needs)
		}
	}
	if got := s.overview("").Placements[0].Unwatched; !waits || least == 0 || got != least {
		t.Errorf("%d decisions are unwatched, of %+v", got, checks)
	}
}

// The plan of an experiment is made from what the placement sold, and its page is for people without a desk.
func TestExperimentRoutes(t *testing.T) {
	s := started(t, nil)
	const config = `{"max_size":1,"features":[{"name":"x","kind":"number"}],"policy":{"name":"ts-mnl"},"attribution_window":"30m"`
	s.want(201, "PUT", "/v1/placements/home", config+`}`)
	var plan api.ExperimentPlan
	read := func(query string) *api.ExperimentPlan {
		t.Helper()
		plan = api.ExperimentPlan{}
		fatal.If(t, json.Unmarshal([]byte(s.want(200, "GET", "/v1/placements/home/experiment/plan"+query, "").body),
			&plan))
		return &plan
	}
	if p := read(""); p.Decisions != 0 || len(p.Gains) != 0 {
		t.Errorf("without a sale: %+v", p)
	}
	for i := range 40 {
		id := fmt.Sprint("d", i)
		s.want(201, "POST", "/v1/placements/home/decisions",
			`{"decision_id":"`+id+`","items":[{"id":"a","features":{"x":1},"revenue":2}]}`)
		s.want(204, "POST", "/v1/placements/home/decisions/"+id+"/outcome",
			[]string{`{"choice":"a"}`, `{"choice":null}`}[i%2])
	}
	if p := read("?gains=0.1,0.2&shares=0.9,0.1"); p.Decisions != 40 || p.Mean != 1 || p.SD != 1 ||
		p.Conversion != 0.5 || len(p.Gains) != 2 || p.Gains[1].Gain != 0.2 || p.Gains[1].Decisions == nil ||
		*p.Gains[0].Decisions < 3*(*p.Gains[1].Decisions) || p.Observed < 1 || math.Abs(p.PerDay*p.Observed-40*86_400) > 1 {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{"shares=0.5", "shares=a,b", "gains=-1", "shares=NaN,1"} {
		s.want(422, "GET", "/v1/placements/home/experiment/plan?"+bad, "")
	}

	entry := s.want(200, "PUT", "/v1/placements/home",
		config+`,"mode":"experiment","experiment":{"name":"<summer>","ends":"`+s.clock.now().Add(time.Hour).Format(
			time.RFC3339)+`","variants":[{"name":"a","show":"uniform","share":0.5},{"name":"b","show":"policy","share":0.5}]}}`).header.Get(api.EntryHeader)
	page := s.want(200, "GET", "/v1/placements/home/experiment/"+entry+"/report", "")
	if !strings.Contains(page.body, "&lt;summer&gt;") ||
		page.header.Get("Content-Type") != "text/html; charset=utf-8" ||
		!strings.HasPrefix(page.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%v: %.300s", page.header, page.body)
	}
	s.want(404, "GET", "/v1/placements/home/experiment/9999/report", "")
	s.clock.advance(2 * time.Hour)
	if h := s.overview("").Placements[0].Health; !slices.ContainsFunc(h,
		func(h api.Health) bool { return strings.Contains(h.Text, "The experiment “<summer>” ended on") }) {
		t.Errorf("an experiment that is over: %+v", h)
	}
	s.want(200, "PUT", "/v1/placements/home", config+`}`)
	s.want(200, "GET", "/v1/placements/home/experiment/"+entry+"/report", "")
}

// The operator decides whether the policy learns from decisions in doubt; other values are refused.
func TestClearAlarmLearns(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/home", plain)
	s.want(204, "DELETE", "/v1/placements/home/alarm", "") // no alarm
	s.want(204, "DELETE", "/v1/placements/home/alarm?learn=all", "")
	s.problem(422, "invalid", "#/learn", "DELETE", "/v1/placements/home/alarm?learn=some", "")
}
