package personalizer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog/memlog"
	"vitrine/service/personalizer"
	"vitrine/service/setup"
)

// call is a request as a server without keys and limits would let it in.
type call struct {
	ctx      context.Context
	path     map[string]string
	body     string
	full     error // the error of Reserve
	reserved int64
}

func (c *call) Context() context.Context     { return c.ctx }
func (c *call) PathValue(name string) string { return c.path[name] }
func (c *call) Now() int64                   { return 1 + int64(len(c.path["event"])) }
func (c *call) Placement() string            { return cmp.Or(c.path["name"], personalizer.Placement) }
func (c *call) Decode(body any) error        { return json.Unmarshal([]byte(c.body), body) }
func (c *call) Reserve(bytes int64) error    { c.reserved = bytes; return c.full }

func opened(t *testing.T) *engine.Engine {
	t.Helper()
	e := fatal.Or(engine.Open(t.Context(), engine.Options{Store: new(memlog.Store), Build: setup.NewLearner}))(t)
	t.Cleanup(e.Close)
	return e
}

// adapted is a route with its adapter.
type adapted struct {
	personalizer.Route
	of *personalizer.Adapter
}

func (a *adapted) Handle(c personalizer.Call) (personalizer.Answer, error) {
	return a.Route.Handle(a.of, c)
}

// routeOf returns the last route at the root with a path that ends so.
func routeOf(t *testing.T, a *personalizer.Adapter, end string) *adapted {
	t.Helper()
	var found *adapted
	for _, rt := range personalizer.Routes() {
		if rt.Path == "/personalizer/{version}/"+end {
			found = &adapted{rt, a}
		}
	}
	if found == nil {
		t.Fatalf("no route %s", end)
	}
	return found
}

func path(event string) map[string]string {
	return map[string]string{"version": "v1.1-preview.3", "event": event}
}

const actions = `"actions":[{"id":"a","features":[{"kind":"x"}]},{"id":"b","features":[]},{"id":"c"}]`

// A Rank answered by the adapter is a decision of the engine, and a Reward is its outcome.
func TestAdapter(t *testing.T) {
	e := opened(t)
	a := &personalizer.Adapter{Engine: e, Create: true}
	rank := &call{ctx: t.Context(), path: path(""), body: `{` + actions + `,"eventId":"e"}`}
	fatal.Or(routeOf(t, a, "rank").Handle(rank))(t)
	config := fatal.Or(e.Config(personalizer.Placement))(t)
	expect.Equal(t, rank.reserved, config.RequestSize(3), "reserved n bytes for three actions")
	d, err := e.Decision(t.Context(), personalizer.Placement, "personalizer:e")
	if err != nil || d.Status != "open" || len(d.Offer.IDs()) != 1 || d.Time != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	answer, err := routeOf(t, a, "events/{event}/reward").Handle(&call{ctx: t.Context(), path: path("e"),
		body: `{"value":1}`})
	if answer.Body != nil || err != nil {
		t.Fatal(answer, err)
	}
	if d, err = e.Decision(t.Context(), personalizer.Placement, "personalizer:e"); err != nil || d.Status != "chosen" ||
		d.Choice != d.Offer.IDs()[0] {
		t.Errorf("%+v, %v", d, err)
	}
}

// The engine makes no decision for a call without memory or a placement.
func TestRefusedCalls(t *testing.T) {
	e, full := opened(t), errors.New("no memory")
	for _, rank := range []struct{ path, body string }{
		{"rank", `{` + actions + `}`},
		{"multislot/rank", `{` + actions + `,"slots":[{"id":"s","baselineAction":"a"}]}`},
	} {
		_, err := routeOf(t, &personalizer.Adapter{Engine: e}, rank.path).Handle(
			&call{ctx: t.Context(), path: path(""), body: rank.body})
		if !errors.Is(err, engine.ErrNotFound) || !strings.Contains(err.Error(), "personalizer = true") {
			t.Errorf("%s: %v", rank.path, err)
		}
	}
	expect.Equal(fatal.T(t), len(e.Placements()), 0, "placements")
	fatal.If(t, e.Create(t.Context(), personalizer.Placement,
		[]byte(`{"max_size":1,"features":[{"name":"action","kind":"object"}],"policy":{"name":"ucb-mnl"}}`), 0))
	before := e.Sequence()
	expect.Fails(routeOf(t, &personalizer.Adapter{Engine: e}, "rank").Handle(
		&call{ctx: t.Context(), path: path(""), body: `{` + actions + `}`, full: full}))(t, full)
	if after := e.Sequence(); after != before {
		t.Errorf("the log has %d entries, and had %d", after, before)
	}
}

// The versions are the contract's, and the first does not support slots.
func TestVersions(t *testing.T) {
	a := &personalizer.Adapter{Engine: opened(t)}
	for version, known := range map[string][2]bool{ // without and with slots
		"v1.0": {true, false}, "v1.1-preview.1": {true, true}, "v1.1-preview.2": {true, true},
		"v1.1-preview.3":     {true, true},
		"2022-09-01-preview": {true, true},
		"":                   {}, "v1.1": {}, "v2.0": {}, "V1.0": {},
	} {
		for _, rt := range personalizer.Routes() {
			want := known[0]
			if strings.Contains(rt.Path, "/multislot/") {
				want = known[1]
			}
			_, err := rt.Handle(a, &call{ctx: t.Context(), path: map[string]string{"version": version,
				"name": "nowhere"}, body: `{}`})
			if err == nil || errors.Is(err, personalizer.ErrVersion) == want {
				t.Errorf("%s of version %q: %v", rt.Path, version, err)
			}
		}
	}
}

// With a share ε of uniform draws among N actions the policy's own gets the probability 1 − ε + ε/N and the others ε/N
// each, whichever is shown. A policy that learns nothing keeps its own.
func TestProbabilities(t *testing.T) {
	const share, n = 0.6, 3
	e := opened(t)
	fatal.Or(e.Put(t.Context(), personalizer.Placement, fmt.Appendf(nil,
		`{"max_size":1,"features":[{"name":"action","kind":"object","columns":4}],"policy":{"name":"ucb-mnl"},"mode":"explore","explore_share":%v}`, share), 0))(t)
	rank := routeOf(t, &personalizer.Adapter{Engine: e}, "rank")
	var first map[string]float64
	shown := map[string]int{}
	for range 60 {
		answer := fatal.Or(rank.Handle(&call{ctx: t.Context(), path: path(""),
			body: `{"actions":[{"id":"out"},` + actions[len(`"actions":[`):] + `,"excludedActions":["out"]}`}))(t)
		text := fatal.Or(json.Marshal(answer.Body))(t)
		var r struct {
			Ranking []struct {
				ID          string  `json:"id"`
				Probability float64 `json:"probability"`
			} `json:"ranking"`
		}
		if err := json.Unmarshal(text, &r); err != nil || len(r.Ranking) != n+1 || r.Ranking[n].ID != "out" {
			t.Fatalf("%s, %v", text, err)
		}
		p := map[string]float64{}
		for _, a := range r.Ranking {
			p[a.ID] = a.Probability
		}
		if first == nil {
			first = p
		}
		expect.Equal(fatal.T(t), p, first, text, cmpopts.EquateApprox(0, 1e-12))
		shown[r.Ranking[0].ID]++
	}
	sorted := slices.Sorted(maps.Values(first))
	expect.Equal(t, sorted, []float64{0, share / n, share / n, 1 - share + share/n}, cmpopts.EquateApprox(0, 1e-12))
	expect.Equal(t, len(shown), n, "actions shown", shown)
}

// The forms of a path: with the version in it or in the query, and behind an endpoint with a slash.
func TestCanonicalPaths(t *testing.T) {
	const newest = "?api-version=2022-09-01-preview"
	for from, want := range map[string]string{
		"/personalizer/v1.0/rank":     "/personalizer/v1.0/rank",
		"/personalizer/rank" + newest: "/personalizer/2022-09-01-preview/rank",
		"/personalizer/multislot/events/a%2Fb/reward" +
			newest: "/personalizer/2022-09-01-preview/multislot/events/a%2Fb/reward",
		"//personalizer/model/properties" + newest: "/personalizer/2022-09-01-preview/model/properties",
		"//personalizer/v1.0/rank":                 "/personalizer/v1.0/rank",
		"/v1/placements/shop/personalizer/rank" +
			newest: "/v1/placements/shop/personalizer/2022-09-01-preview/rank",
		"/v1/placements/a%2Fb//personalizer/v1.0/rank":       "/v1/placements/a%2Fb/personalizer/v1.0/rank",
		"/personalizer/v1.0/rank" + newest:                   "/personalizer/v1.0/rank",
		"/personalizer/rank":                                 "/personalizer/rank",
		"/personalizer/rank?api-version=2021-01-01":          "/personalizer/rank",
		"/personalizer/rank?api-version=../../v1/placements": "/personalizer/rank",
		"/v1/placements/personalizer" + newest:               "/v1/placements/personalizer",
		"/v1/placements/personalizer/decisions" + newest:     "/v1/placements/personalizer/decisions",
		"/v1/placements/personalizer/personalizer/rank" +
			newest: "/v1/placements/personalizer/personalizer/2022-09-01-preview/rank",
		"/v1/decisions/personalizer/rank" + newest: "/v1/decisions/personalizer/rank",
		"/x//personalizer/v1.0/rank":               "/x//personalizer/v1.0/rank",
		"/personalizer":                            "/personalizer",
	} {
		r := httptest.NewRequest("POST", "http://localhost"+from, nil)
		got := personalizer.Canonical(r)
		expect.Equal(t, got.URL.EscapedPath(), want, from, "became")
		if again := personalizer.Canonical(got); again.URL.EscapedPath() != want {
			t.Errorf("%s became %s, and %s again", from, want, again.URL.EscapedPath())
		}
		if owns := strings.Contains(want, "/personalizer/") && !strings.Contains(want,
			"placements/personalizer/decisions") && !strings.HasPrefix(want, "/x") &&
			!strings.HasPrefix(want, "/v1/decisions"); personalizer.Owns(got) != owns {
			t.Errorf("%s is Personalizer's: %v", want, !owns)
		}
	}
}

// A configuration of a resource is the window, the mode and the exploration of a placement.
func TestServiceConfiguration(t *testing.T) {
	e := opened(t)
	a := &personalizer.Adapter{Engine: e, Create: true}
	put := routeOf(t, a, "configurations/service") // the last one of this path
	get := func() (service map[string]any) {
		t.Helper()
		for _, rt := range personalizer.Routes() {
			if rt.Path == put.Path && rt.Method == "GET" {
				answer := fatal.Or(rt.Handle(a, &call{ctx: t.Context(), path: path("")}))(t)
				text, _ := json.Marshal(answer.Body)
				fatal.If(t, json.Unmarshal(text, &service))
			}
		}
		return service
	}
	for _, c := range []struct {
		body                 string
		wait, mode           string
		share                float64
		window, placementsIs string
	}{
		{`{"defaultReward":0}`, "PT10M", "Online", 0.2, "10m0s", "explore"},
		{`{"rewardWaitTime":"PT1H30M","modelExportFrequency":"PT5M","logRetentionDays":90,"logMirrorEnabled":true}`,
			"PT1H30M", "Online", 0.2, "1h30m0s", "explore"},
		{`{"explorationPercentage":0.5,"rewardWaitTime":"P1DT0.5S"}`, "P1DT0.5S", "Online", 0.5, "24h0m0.5s",
			"explore"},
		{`{"learningMode":"Apprentice"}`, "P1DT0.5S", "Apprentice", 0.2, "24h0m0.5s", "shadow"},
		{`{"learningMode":"Online"}`, "P1DT0.5S", "Online", 0.2, "24h0m0.5s", "explore"},
		{`{"explorationPercentage":1,"rewardAggregation":"earliest","defaultReward":0,"rewardWaitTime":"P2W"}`, "P14D",
			"Online", 1, "336h0m0s", "explore"},
		{`{"explorationPercentage":0}`, "P14D", "Online", 0, "336h0m0s", "learn"},
		{`{"learningMode":"Online"}`, "P14D", "Online", 0, "336h0m0s", "learn"},
		{`{"learningMode":"Apprentice"}`, "P14D", "Apprentice", 0.2, "336h0m0s", "shadow"},
		{`{"learningMode":"Online","explorationPercentage":0.1}`, "P14D", "Online", 0.1, "336h0m0s", "explore"},
	} {
		fatal.Or(put.Handle(&call{ctx: t.Context(), path: path(""), body: c.body}))(t, c.body)
		s := get()
		if s["rewardWaitTime"] != c.wait || s["learningMode"] != c.mode || s["explorationPercentage"] != c.share ||
			s["rewardAggregation"] != "earliest" || s["defaultReward"] != 0.0 || s["logRetentionDays"] != -1.0 {
			t.Errorf("%s: %v", c.body, s)
		}
		if config, err := e.Config(personalizer.Placement); err != nil || config.AttributionWindow != c.window ||
			config.Mode != c.placementsIs {
			t.Errorf("%s: %+v, %v", c.body, config, err)
		}
	}
	before := e.Sequence()
	for body, field := range map[string]string{
		`{"rewardWaitTime":"10m"}`: "/rewardWaitTime", `{"rewardWaitTime":"PT"}`: "/rewardWaitTime",
		`{"rewardWaitTime":"P"}`: "/rewardWaitTime", `{"rewardWaitTime":"P1DT"}`: "/rewardWaitTime",
		`{"rewardWaitTime":"P1Y"}`: "/rewardWaitTime", `{"rewardWaitTime":"PT0S"}`: "/rewardWaitTime",
		`{"rewardWaitTime":"P366DT1S"}`:               "/rewardWaitTime",
		`{"rewardWaitTime":"P99999999999999999999D"}`: "/rewardWaitTime",
		`{}`: "", `{"logRetentionDays":7}`: "",
		`{"defaultReward":1}`: "/defaultReward", `{"rewardAggregation":"sum"}`: "/rewardAggregation",
		`{"explorationPercentage":1.5}`:  "/explorationPercentage",
		`{"explorationPercentage":-1}`:   "/explorationPercentage",
		`{"learningMode":"LoggingOnly"}`: "/learningMode",
	} {
		_, err := put.Handle(&call{ctx: t.Context(), path: path(""), body: body})
		if wrong := new(api.FieldError); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v, want one of %s", body, err, field)
		}
	}
	expect.Equal(t, e.Sequence(), before, "a refused configuration is in the log")
}

// A reset model starts over, and the former one is kept as a version.
func TestResetModel(t *testing.T) {
	e := opened(t)
	a := &personalizer.Adapter{Engine: e, Create: true}
	ask := func(end, event, body string) personalizer.Answer {
		t.Helper()
		answer := fatal.Or(routeOf(t, a, end).Handle(&call{ctx: t.Context(), path: path(event), body: body}))(t)
		return answer
	}
	properties := func() string {
		t.Helper()
		text, _ := json.Marshal(ask("model/properties", "", "").Body)
		return string(text)
	}
	ask("rank", "", `{`+actions+`,"eventId":"e"}`)
	expect.Equal(t, properties(),
		`{"creationTime":"1970-01-01T00:00:00.000000001Z","lastModifiedTime":"1970-01-01T00:00:00.000000001Z"}`, "a new model")
	ask("events/{event}/reward", "e", `{"value":1}`)
	fatal.If(t, e.Wait(t.Context()))
	expect.Equal(t, properties(),
		`{"creationTime":"1970-01-01T00:00:00.000000001Z","lastModifiedTime":"1970-01-01T00:00:00.000000002Z"}`, "a model that has learned")
	before, err := e.Stats(personalizer.Placement)
	if err != nil || before.Learned != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	ask("model", "", "")
	fatal.If(t, e.Wait(t.Context()))
	after, err := e.Stats(personalizer.Placement)
	if err != nil || after.Learned != 0 || len(after.Versions) != 1 {
		t.Errorf("%+v, %v", after, err)
	}
	for _, end := range []string{"model", "model/properties"} {
		expect.Fails(routeOf(t, a, end).Handle(
			&call{ctx: t.Context(), path: map[string]string{"version": "v1.0", "name": "nowhere"}}))(t, engine.ErrNotFound, end)
	}
}

// Problems use the codes of docs/personalizer.md, and fields the contract's names.
func TestErrors(t *testing.T) {
	a := &personalizer.Adapter{}
	for _, c := range []struct {
		route, kind, pointer string
		status               int // of the problem
		want                 int
		code, target         string
	}{
		{"rank", "invalid", "#/items/3/id", 422, 400, "InvalidRankRequest", "/actions/3/id"},
		{"rank", "invalid", "#/shopper/my%20age", 422, 400, "InvalidRankRequest", "/contextFeatures/my age"},
		{"rank", "invalid", "#/shopper/context", 422, 400, "InvalidRankRequest", "/contextFeatures"},
		{"rank", "invalid", "#/items/0/features/action/1/price", 422, 400, "InvalidRankRequest", "/actions/0/features/1/price"},
		{"rank", "invalid", "#/items/0/features/actions", 422, 400, "InvalidRankRequest", "/actions/0/features/actions"},
		{"multislot/rank", "invalid", "#/baseline/1", 422, 400, "InvalidRankRequest", "/slots/1"},
		{"rank", "conflict", "", 409, 400, "InvalidRankRequest", ""},
		{"events/{event}/reward", "late", "", 409, 400, "InvalidRewardRequest", ""},
		{"events/{event}/reward", "not-shown", "", 422, 400, "InvalidRewardRequest", ""},
		{"events/{event}/reward", "evicted", "", 409, 400, "InvalidRewardRequest", ""},
		{"events/{event}/reward", "not-found", "", 404, 404, "ResourceNotFound", ""},
		{"events/{event}/activate", "not-found", "", 404, 400, "InvalidEventIdToActivate", ""},
		{"rank", "malformed", "#/items", 400, 400, "BadRequest", "/actions"},
		{"rank", "body", "", 400, 400, "BadRequest", ""},
		{"rank", "too-large", "", 413, 413, "PayloadSizeExceeded", ""},
		{"rank", "policy", "", 500, 500, "ModelRankingError", ""},
		{"rank", "internal", "", 500, 500, "InternalServerError", ""},
		{"rank", "rate", "", 429, 429, "429", ""},
		{"rank", "unauthorized", "", 401, 401, "401", ""},
		{"rank", "method", "", 405, 405, "405", ""},
		{"rank", "no-route", "", 404, 404, "404", ""},
		{"configurations/service", "invalid", "#/learningMode", 422, 400, "InvalidServiceConfiguration",
			"/learningMode"},
	} {
		p := &api.Problem{Type: api.ProblemType + c.kind, Title: http.StatusText(c.status), Status: c.status,
			Detail: "wrong"}
		if c.pointer != "" {
			p.Errors = []api.ProblemField{{Pointer: c.pointer, Detail: "wrong"}}
		}
		status, body := routeOf(t, a, c.route).Error(p)
		text := fatal.Or(json.Marshal(body))(t)
		want := fmt.Sprintf(`{"error":{"code":%q,"message":"wrong","innerError":{"code":%q}}}`, c.code, c.kind)
		if c.target != "" {
			want = fmt.Sprintf(`{"error":{"code":%q,"message":"%s: wrong","target":%[2]q,"details":[{"code":%[1]q,"message":"wrong","target":%[2]q}],"innerError":{"code":%[3]q}}}`, c.code, c.target, c.kind)
		}
		if diff := gocmp.Diff(want, string(text)); diff != "" || status != c.want {
			t.Errorf("%s on %s: status %d, want %d\n%s", c.kind, c.route, status, c.want, diff)
		}
	}
}
