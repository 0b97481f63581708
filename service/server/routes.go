package server

import (
	"net/http"
	"reflect"
	"strings"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/personalizer"
)

// route is a method and a path, their handler, and their description in the OpenAPI document.
type route struct {
	method, path string
	scope        Scope // "" needs no key
	handle       func(*call) error
	stream       bool // has no deadline
	free         bool // is exempt from the limits, so that callers without a key cannot exhaust them
	chooses      bool // concerns all placements, and selects those of the key

	contract *personalizer.Route // whose errors and keys the route has; nil is our own

	id, summary string
	query       []parameter
	headers     []parameter
	body        []content
	answers     map[int][]content // by status; nil is an empty body
	errors      []int
}

// parameter is a parameter of a query.
type parameter struct{ name, doc string }

// conditions are the headers of a change that is made only if the placement is as its caller knows it.
var conditions = []parameter{
	{"If-Match", "the ETag of the placement: 412 if it has changed since"},
	{"If-None-Match", "* for a placement that must not exist: 412 if it does"},
}

// content is a body in one media type.
type content struct {
	mediaType string
	of        reflect.Type // nil if there is no Go type
	example   string       // JSON
}

func jsonOf[T any](example string) content { return content{asJSON, reflect.TypeFor[T](), example} }

const (
	examplePlacement = `{"max_size":3,"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category"}],"policy":{"name":"onl-mnl","lambda":3,"beta":1,"warmup":20},"attribution_window":"30m","mode":"learn"}`
	exampleRequest   = `{"decision_id":"abc","items":[{"id":"sku1","features":{"price":1.2,"brand":"acme"},"revenue":2.5},{"id":"sku2","features":{"price":0.7,"brand":"zenith"},"revenue":1.5}]}`
	exampleAnswer    = `{"decision_id":"abc","assortment":[{"id":"sku1","position":1,"choice_probability":0.2}],"outside_probability":0.8,"expected_revenue":0.5,"propensity":null,"policy_version":17}`
)

// routes returns all routes.
func (s *Server) routes() []route {
	list := []route{
		{
			method: "PUT", path: "/v1/placements/{name}", scope: ScopeAdmin, handle: s.putPlacement,
			id: "putPlacement", summary: "Create or change a placement. A change of its features, size, policy, horizon or seed would begin its learner again: 409 with the problem loss, which says what would be lost, unless the query has reset=true or relearn=log. The learner before is then kept as a version. The ETag of the answer is for If-Match.",
			query: []parameter{
				{"reset", "true: the learner may begin again"},
				{"relearn", "log: another learner learns from the log while the present one decides, and takes its place when it has caught up. The answer is 202, and relearning in the statistics has the progress. The present configuration gives it up"},
			},
			headers: conditions,
			body:    []content{jsonOf[api.Placement](examplePlacement)},
			answers: map[int][]content{200: {jsonOf[api.Placement]("")}, 201: {jsonOf[api.Placement]("")}, 202: {jsonOf[api.Placement]("")}}, errors: []int{400, 404, 409, 412, 413, 415, 422},
		},
		{
			method: "POST", path: "/v1/placements/{name}/preview", scope: ScopeAdmin, handle: s.previewPlacement,
			id: "previewPlacement", summary: "What a PUT of this configuration would do: its defaults, and what becomes of the learner. Nothing changes.",
			headers: conditions,
			body:    []content{jsonOf[api.Placement](examplePlacement)},
			answers: map[int][]content{200: {jsonOf[api.Preview]("")}}, errors: []int{400, 404, 409, 412, 413, 415, 422},
		},
		{
			method: "GET", path: "/v1/policies", handle: s.listPolicies, free: true,
			id: "listPolicies", summary: "The policies that a placement may have, and the families of utilities, with their parameters.",
			headers: []parameter{{"If-None-Match", "an ETag: 304 if the program is the same"}},
			answers: map[int][]content{200: {jsonOf[api.PolicyList]("")}, 304: nil}, errors: []int{400},
		},
		{
			method: "GET", path: "/v1/placements/{name}", scope: ScopeRead, handle: s.getPlacement,
			id: "getPlacement", summary: "The configuration of a placement, with its defaults filled in, and its ETag.",
			headers: []parameter{{"If-None-Match", "an ETag: 304 if the placement has not changed"}},
			answers: map[int][]content{200: {jsonOf[api.Placement]("")}, 304: nil}, errors: []int{400, 404},
		},
		{
			method: "DELETE", path: "/v1/placements/{name}", scope: ScopeAdmin, handle: s.deletePlacement,
			id: "deletePlacement", summary: "Delete a placement and its decisions.",
			headers: conditions,
			answers: map[int][]content{204: nil}, errors: []int{400, 404, 412},
		},
		{
			method: "GET", path: "/v1/placements", scope: ScopeRead, handle: s.listPlacements, chooses: true,
			id: "listPlacements", summary: "The placements that the key is for, by name.",
			answers: map[int][]content{200: {jsonOf[api.PlacementList]("")}},
		},
		{
			method: "POST", path: "/v1/placements/{name}/decisions", scope: ScopeDecide, handle: s.decide,
			id:      "decide",
			summary: "Decide which items to show. Repeating a request with the same decision_id returns the same answer, with the status 200.",
			body:    []content{jsonOf[api.Request](exampleRequest)},
			answers: map[int][]content{
				200: {jsonOf[api.Answer]("")},
				201: {jsonOf[api.Answer](exampleAnswer)},
			},
			errors: []int{400, 404, 409, 413, 415, 422},
		},
		{
			method: "POST", path: "/v1/placements/{name}/try", scope: ScopeRead, handle: s.try,
			id: "tryRequest", summary: "The answer that a request would get now, and why. Nothing is recorded and nothing is learned. In the mode shadow a request without a baseline gets the policy's set.",
			body:    []content{jsonOf[api.Request](exampleRequest)},
			answers: map[int][]content{200: {jsonOf[api.Trial]("")}}, errors: []int{400, 404, 413, 415, 422},
		},
		{
			method: "GET", path: "/v1/placements/{name}/stats", scope: ScopeRead, handle: s.stats,
			id: "stats", summary: "The counters of a placement: decisions, outcomes, learning, calibration, revenue.",
			answers: map[int][]content{200: {jsonOf[api.Stats]("")}}, errors: []int{404},
		},
		{
			method: "GET", path: "/v1/placements/{name}/experiment", scope: ScopeRead, handle: s.experiments,
			id: "experiment", summary: "The experiment of a placement, if one runs, and the last ones that have ended: what the variants earned, the differences with intervals that may be looked at any time, whether the units are divided rightly, and what the stop rule says. It begins, changes and ends with the configuration of the placement, by its mode experiment.",
			answers: map[int][]content{200: {jsonOf[api.Experiments]("")}}, errors: []int{404},
		},
		{
			method: "GET", path: "/v1/placements/{name}/insight", scope: ScopeRead, handle: s.insight,
			id: "insight", summary: "What a placement has sold, by item and by place, and what its policy has learned: utilities, effects of features, calibration. It is computed at most once in three seconds.",
			answers: map[int][]content{200: {jsonOf[api.Insight]("")}}, errors: []int{404},
		},
		{
			method: "POST", path: "/v1/placements/{name}/rollback", scope: ScopeAdmin, handle: s.rollBack,
			id: "rollBack", summary: "Return a placement to one of its versions: it forgets what it has learned since, and gets the configuration of the version's learner if that is another one. The state before is kept as a version.",
			headers: conditions,
			body:    []content{jsonOf[api.Rollback](`{"version":17}`)},
			answers: map[int][]content{204: nil}, errors: []int{400, 404, 412, 413, 415, 422},
		},
		{
			method: "DELETE", path: "/v1/placements/{name}/alarm", scope: ScopeAdmin, handle: s.clearAlarm,
			id: "clearAlarm", summary: "Clear the alarm of a placement's guard: the policy decides again, and the guard begins again. A policy that has paused learns from the log what it has missed.",
			query:   []parameter{{"learn", "all: after the alarm no-sale the policy also learns the decisions without a sale; by default it skips them, because their sales were probably not reported"}},
			answers: map[int][]content{204: nil}, errors: []int{404, 422},
		},
		{
			method: "GET", path: "/v1/placements/{name}/versions", scope: ScopeRead, handle: s.listVersions,
			id: "listVersions", summary: "The versions of a placement to roll back to, the oldest first.",
			answers: map[int][]content{200: {jsonOf[api.VersionList]("")}}, errors: []int{404},
		},
		{
			method: "POST", path: "/v1/placements/{name}/versions", scope: ScopeAdmin, handle: s.keepVersion,
			id: "keepVersion", summary: "Keep what the placement has learned as a version to roll back to. The answer has its number. If that state is a version already, the answer has its number: a version of the timer gets the note and stays, a version with a note keeps its own.",
			body:    []content{jsonOf[api.Note](`{"note":"before the sale"}`)},
			answers: map[int][]content{200: {jsonOf[api.Kept]("")}}, errors: []int{400, 404, 413, 415, 422},
		},
		{method: "GET", path: "/metrics", scope: ScopeRead, handle: s.serveMetrics},
		{method: "GET", path: "/healthz", handle: (*call).healthy, free: true},
		{method: "GET", path: "/readyz", handle: s.ready, free: true},
		{method: "GET", path: "/openapi.json", handle: s.openAPI, free: true},
		{
			method: "GET", path: "/v1/session", handle: s.getSession, free: true,
			id: "getSession", summary: "Who a page of the desk is signed in as: its key's name, scopes and placements. Nobody is no error.",
			answers: map[int][]content{200: {jsonOf[api.Session]("")}},
		},
		{
			method: "POST", path: "/v1/session", handle: s.signIn, free: true,
			id: "signIn", summary: "Begin a session of the desk: the cookie of the answer stands for the key, in requests of the service's own pages, for twelve hours or until the key is removed. Other callers send the key with each request.",
			body:    []content{jsonOf[api.SignIn](`{"key":"vitrine_…"}`)},
			answers: map[int][]content{200: {jsonOf[api.Session]("")}}, errors: []int{400, 413},
		},
		{
			method: "DELETE", path: "/v1/session", handle: s.signOut, free: true,
			id: "signOut", summary: "End the session of the request's cookie.",
			answers: map[int][]content{204: nil},
		},
		{
			method: "GET", path: "/v1/keys", scope: ScopeAdmin, handle: s.listKeys,
			id: "listKeys", summary: "The names, scopes and placements of the keys. Their tokens are stored nowhere.",
			answers: map[int][]content{200: {jsonOf[api.KeyList]("")}},
		},
		{method: "GET", path: "/docs", handle: page, free: true},
		{method: "GET", path: "/{$}", handle: page, free: true},
		{method: "GET", path: "/desk/{file}", handle: asset, free: true},
	}
	if s.options.Demo != nil {
		for _, method := range []string{"GET", "PUT", "POST"} {
			list = append(list, route{method: method, path: "/demo/{path...}", handle: demonstrate, free: true})
		}
	}
	if s.options.Alerts != nil {
		list = append(list, route{
			method: "POST", path: "/v1/alerts/test", scope: ScopeAdmin, handle: s.testAlert, stream: true,
			id: "testAlert", summary: "Send a test message to the receiver of alerts, from the process that answers: 502 with the problem alert, which says why, if it does not arrive.",
			answers: map[int][]content{200: {jsonOf[api.AlertTest]("")}}, errors: []int{502},
		})
	}
	list = append(list, s.itemRoutes()...)
	list = append(list, s.overviewRoutes()...)
	list = append(list, s.downloadRoutes()...)
	list = append(list, s.decisionRoutes("/v1/placements/{name}/decisions/{id}", "OfPlacement", "")...)
	list = append(list, s.decisionRoutes("/v1/decisions/{id}", "", ", by its id only: 409 if several placements have given it")...)
	list = append(list, route{
		method: "POST", path: "/v1/placements/{name}/decisions/{id}/rewards", scope: ScopeOutcome, handle: s.rewards,
		id: "rewards", summary: "Report what became of a decision by numbers: what items shown have earned, as shares of a choice. They become a choice by chance, which is the rewards in expectation; 0 and 1 are exact. The decision stays open for items without a reward. The first reward of an item counts; later ones, and rewards after the attribution window, get 204 and change nothing.",
		body:    []content{jsonOf[api.Rewards](`{"rewards":[{"item":"sku1","value":0.5}]}`)},
		answers: map[int][]content{204: nil}, errors: []int{400, 404, 409, 413, 415, 422},
	})
	list = append(list, route{
		method: "POST", path: "/v1/placements/{name}/decisions/{id}/corrections", scope: ScopeOutcome, handle: s.correct,
		id: "correct", summary: "Correct what a decision has earned after its outcome was reported: add a value to it, negative for a return, or withdraw the sale. Sending a correction again under its id changes nothing. The policy does not learn from corrections.",
		body:    []content{jsonOf[api.Correction](`{"id":"return-4711","item":"sku1","value":-5.1}`)},
		answers: map[int][]content{204: nil}, errors: []int{400, 404, 409, 413, 415, 422},
	})
	for _, rt := range personalizer.Routes() {
		list = append(list, personalizerRoute(&rt))
	}
	if s.feed != nil {
		list = append(list, route{
			method: "GET", path: "/v1/events", scope: ScopeRead, handle: s.listen, stream: true, free: true, chooses: true,
			id: "events", summary: "Events as server-sent events; their data has the schema Event. The id of an event is its entry in the log; ids are missing that belong to other placements. With Last-Event-ID the events after it come first, from the log: 410 if they were removed. Otherwise they begin now.",
			headers: []parameter{{"Last-Event-ID", "the id of the last event that was seen; 0 is the beginning of the log"}},
			query:   []parameter{{"placement", "only events of this placement"}},
			answers: map[int][]content{200: {{mediaType: "text/event-stream"}}}, errors: []int{400, 410},
		})
	}
	return list
}

// decisionRoutes returns the routes of a decision that was made. They exist twice: below the placement,
// and with only the id of the decision, for callers that do not know the placement.
func (s *Server) decisionRoutes(path, of, where string) []route {
	return []route{
		{
			method: "POST", path: path + "/outcome", scope: ScopeOutcome, handle: s.outcome,
			id: "outcome" + of, summary: "Report what became of a decision" + where + ". The choice is the id of the item that was taken, or null for none. Reporting it again changes nothing. An outcome that comes after the decision has ended gets 200: it is recorded and its revenue counts, but the policy does not learn from it. That works for as long as the placement remembers the decision, which depends on the placement's memory; later it is 404.",
			body:    []content{jsonOf[api.Outcome](`{"choice":"sku1"}`)},
			answers: map[int][]content{200: {jsonOf[api.LateOutcome]("")}, 204: nil}, errors: []int{400, 404, 409, 413, 415, 422},
		},
		{
			method: "POST", path: path + "/activate", scope: ScopeOutcome, handle: s.activate,
			id: "activate" + of, summary: "Report that what a deferred decision offered was shown" + where + ". From then on its outcome is waited for. Its outcome activates it too.",
			answers: map[int][]content{204: nil}, errors: []int{404, 409},
		},
		{
			method: "GET", path: path, scope: ScopeRead, handle: s.getDecision,
			id: "getDecision" + of, summary: "A decision that is remembered, and its outcome" + where + ".",
			answers: map[int][]content{200: {jsonOf[api.Decision]("")}}, errors: []int{404, 409},
		},
		{
			method: "GET", path: path + "/explanation", scope: ScopeRead, handle: s.explain,
			id: "explain" + of, summary: "Why a decision that is remembered shows what it shows" + where + ": utilities by feature, the best other set, what rules cost.",
			answers: map[int][]content{200: {jsonOf[api.Explanation]("")}}, errors: []int{404, 409},
		},
	}
}

// personalizerRoute returns a route of Personalizer's contract as one of ours.
func personalizerRoute(of *personalizer.Route) route {
	rt := route{
		method: of.Method, path: of.Path, scope: Scope(of.Scope), contract: of,
		id: of.ID, summary: of.Summary, answers: map[int][]content{of.Status: nil}, errors: []int{404},
	}
	if of.Body != nil {
		rt.body, rt.errors = []content{{asJSON, of.Body, of.Example}}, []int{400, 404, 413, 415}
	}
	if of.Invalid != "" && of.Body == nil {
		rt.errors = append(rt.errors, 400)
	}
	if of.Answer != nil {
		rt.answers[of.Status] = []content{{asJSON, of.Answer, ""}}
	}
	rt.handle = func(c *call) error {
		answer, err := of.Handle(&personalizer.Adapter{Engine: c.server.engine, Create: c.server.options.Personalizer}, c)
		if err != nil {
			return err
		}
		if answer.Decision != "" {
			c.w.Header()["Location"] = []string{decisionPath(c.Placement(), answer.Decision)}
		}
		if answer.Body == nil {
			return c.nothing()
		}
		return c.answerJSON(of.Status, answer.Body)
	}
	return rt
}

// Placement returns the placement of a route of Personalizer's contract: the one in the path, or else the only one that
// the key is for, or else the contract's own.
func (c *call) Placement() string {
	if name := c.PathValue("name"); name != "" {
		return name
	}
	if len(c.placements) == 1 {
		return c.placements[0]
	}
	return personalizer.Placement
}

var noRoute = problemf(http.StatusNotFound, "no-route", "there is nothing at this path: see /docs")

// nowhere answers requests without a route, below Personalizer's paths in that service's shape.
func (c *call) nowhere() error {
	if personalizer.Owns(c.Request) {
		c.contract = &personalizer.Below
		return personalizer.ErrVersion
	}
	return noRoute
}

// unknown answers requests without a route: OPTIONS, 405 if the path has other methods, and 404 otherwise.
func (s *Server) unknown(mux *http.ServeMux) func(*call) error {
	return func(c *call) error {
		missing := c.nowhere() // which has the shape of errors
		var allowed []string
		for _, method := range []string{"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"} {
			other := *c.Request
			other.Method = method
			if _, pattern := mux.Handler(&other); pattern != "/" {
				allowed = append(allowed, method)
			}
		}
		if allowed == nil {
			return missing
		}
		allowed = append(allowed, "OPTIONS")
		if c.Method == "OPTIONS" {
			return s.preflight(c, strings.Join(allowed, ", "))
		}
		c.w.Header().Set("Allow", strings.Join(allowed, ", "))
		return problemf(http.StatusMethodNotAllowed, "method", "the method must be %s", hint.List(allowed))
	}
}

func (c *call) healthy() error { return c.answer(http.StatusOK, "text/plain", []byte("ok\n")) }
