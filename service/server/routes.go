package server

import (
	"net/http"
	"strings"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/feed"
	"vitrine/service/keys"
	"vitrine/service/personalizer"
)

// route is a method and a path with their handler, and its description in the OpenAPI document.
type route struct {
	method, path string
	handle       handler // within its wrappers
	operation

	contract *personalizer.Route // the contract that sets keys and errors of the route; nil is our own

	// Noted by the wrappers:
	scope                         string // "" needs no key
	limited, timed, reads, writes bool
}

// The wrappers that a call passes before its handler, from left to right.
var (
	public    = []wrapper{origin, deadline}
	list      = []wrapper{origin, key(keys.ScopeRead), limit, deadline, upToDate}
	read      = []wrapper{origin, key(keys.ScopeRead), limit, own, deadline, upToDate, catchUp}
	decide    = []wrapper{origin, key(keys.ScopeDecide), limit, own, deadline, change, catchUp}
	report    = []wrapper{origin, key(keys.ScopeOutcome), limit, own, deadline, change, catchUp}
	admin     = []wrapper{origin, key(keys.ScopeAdmin), limit, own, deadline, change, catchUp, lead}
	keyholder = []wrapper{origin, key(keys.ScopeAdmin), limit, own, deadline} // concerns its keys
	export    = []wrapper{origin, key(keys.ScopeRead), limit, own}
	errand    = []wrapper{origin, key(keys.ScopeAdmin), limit, own}
	scrape    = []wrapper{origin, key(keys.ScopeRead), own, deadline} // callers must not hide themselves from the operator
	stream    = []wrapper{origin, key(keys.ScopeRead)}
)

const (
	examplePlacement = `{"max_size":3,"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category"}],"policy":{"name":"onl-mnl","lambda":3,"beta":1,"warmup":20},"attribution_window":"30m","mode":"learn"}`
	exampleRequest   = `{"decision_id":"abc","items":[{"id":"sku1","features":{"price":1.2,"brand":"acme"},"revenue":2.5},{"id":"sku2","features":{"price":0.7,"brand":"zenith"},"revenue":1.5}]}`
	exampleAnswer    = `{"decision_id":"abc","assortment":[{"id":"sku1","position":1,"choice_probability":0.2}],"outside_probability":0.8,"expected_revenue":0.5,"propensity":null,"policy_entry":17}`
	exampleItems     = `{"items":[{"id":"sku1","features":{"price":1.2,"brand":"acme"},"revenue":2.5,"attributes":{"season":"winter"},"payload":{"title":"Boots"}}]}`
	examplePatches   = `{"items":[{"id":"sku1","features":{"price":0.9},"revenue":1.9}]}`
)

// Parameters of several routes.
var (
	ifMatch   = parameter{"If-Match", "the ETag of the placement's configuration: 412 if it has changed since"}
	ifNoMatch = parameter{"If-None-Match", "* for a placement that must not exist: 412 if it does"}
	searchLog = parameter{"search", "log: search the whole log if the decision is no longer remembered, " +
		"in turn with other keys' searches"}
	overTime   = parameter{"seconds", "how long before now; 0, the default, is since the beginning"}
	withPoints = parameter{"points", "how many points at most, but for one more; 120 by default"}
)

func (s *Server) routes() (all []*route) {
	e := s.engine
	add := func(rt *route, via []wrapper, h handler) {
		rt.handle = rt.within(s, via, h)
		all = append(all, rt)
	}
	on := func(pattern string, via []wrapper, h handler, of *operation) {
		method, path, _ := strings.Cut(pattern, " ")
		rt := &route{method: method, path: path, operation: *of}
		if rt.id != "" { // probes, scrapers and links to pages may carry any query
			h = rt.queried(h)
		}
		add(rt, via, h)
	}
	const placement = "/v1/placements/{name}"

	on("GET /v1/placements", list, s.listPlacements, op("listPlacements",
		"The placements that the key is for, by name.").
		gives(200, api.PlacementList{}))
	on("GET "+placement, read, s.getPlacement, op("getPlacement", "The configuration of a placement, with its "+
		"defaults filled in, and its ETag.").
		under(parameter{"If-None-Match", "an ETag: 304 if the placement has not changed"}).gives(200,
		api.Placement{}).gives(304, nil))
	on("PUT "+placement, admin, s.putPlacement, op("putPlacement", "Create or change a placement. A change of its "+
		"features, size, policy, horizon or seed would begin its learner again: 409 with the problem loss, which "+
		"says what would be lost, unless the query has reset=true or relearn=log. The learner before is then kept "+
		"as a version. The ETag of the answer is for If-Match. A configuration that the placement has already is no "+
		"change and gets 200, even if If-Match or If-None-Match does not hold, so that a PUT may be repeated.").
		with(parameter{"reset", "true: the learner may begin again"},
			parameter{"relearn", "log: another learner learns from the log while the present one decides, and " +
				"takes its place once it has caught up and learned half as many rounds. The answer is 202, and " +
				"relearning in the statistics has the progress. The present configuration gives it up. accept, with " +
				"the same configuration as log, lets it decide with fewer rounds once it has caught up"}).
		under(ifMatch, ifNoMatch).takes(api.Placement{}, examplePlacement).gives(200, api.Placement{}).gives(201,
		api.Placement{}).gives(202, api.Placement{}).fails(409))
	on("POST "+placement+"/preview", admin, s.previewPlacement, op("previewPlacement", "What a PUT of this "+
		"configuration would do: its defaults, and what becomes of the learner. Nothing changes.").
		under(ifMatch, ifNoMatch).takes(api.Placement{}, examplePlacement).gives(200, api.Preview{}).fails(409))
	on("DELETE "+placement, admin, s.deletePlacement, op("deletePlacement", "Delete a placement and its decisions. 422 if "+
		"others use its catalogue.").
		under(ifMatch, ifNoMatch).gives(204, nil).fails(422))
	on("GET /v1/policies", public, s.listPolicies, op("listPolicies", "The policies that a placement may have, "+
		"and the families of utilities, with their parameters.").
		under(parameter{"If-None-Match", "an ETag: 304 if the program is the same"}).gives(200,
		api.PolicyList{}).gives(304, nil))

	on("POST "+placement+"/decisions", decide, s.decide, op("decide", "Decide which items to show. Repeating a "+
		"request with the same decision_id returns the same answer, with the status 200. With a public key a request "+
		"must not set revenues, its filter must not read revenue, seen or bought, and the answer leaves out "+
		"estimates: choice_probability, outside_probability and expected_revenue are null.").
		takes(api.Request{}, exampleRequest).gives(200, api.Answer{}).gives(201,
		content{asJSON, api.Answer{}, exampleAnswer}).fails(409))
	on("POST "+placement+"/try", read, s.try, op("tryRequest", "The answer that a request would get now, and why. "+
		"Nothing is recorded and nothing is learned. In the mode shadow a request without a baseline gets the "+
		"policy's set.").
		takes(api.Request{}, exampleRequest).gives(200, api.Trial{}))
	on("POST "+placement+"/decisions/{id}/outcome", report, s.outcome, op("outcome", "Report what became of a "+
		"decision. The choice is the id of the item that was taken, or null for none. If several items were taken, "+
		"or several units of one, choices take its place. Reporting the same again changes nothing. An outcome that "+
		"comes after the decision has ended gets 200: it is recorded and its revenue counts, but the policy does not "+
		"learn from it. That works for as long as the placement remembers the decision, which depends on the "+
		"placement's memory; later it is 404. With a public key choices must not set values, nor quantities above 20.").
		takes(api.Outcome{}, `{"choice":"sku1"}`).gives(200, api.LateOutcome{}).gives(204, nil).fails(409))
	on("POST "+placement+"/decisions/{id}/activate", report, s.activate, op("activate", "Report that what a deferred "+
		"decision offered was shown. From then on its outcome is waited for. Its outcome activates it too.").
		gives(204, nil).fails(409))
	on("GET "+placement+"/decisions/{id}", read, s.getDecision, op("getDecision", "A decision that is remembered, and "+
		"its outcome.").
		with(searchLog).gives(200, api.Decision{}))
	on("GET "+placement+"/decisions/{id}/explanation", read, func(c *call) error {
		ctx, err := c.searching()
		if err != nil {
			return err
		}
		return c.reply(e.Explain(ctx, c.placement, c.PathValue("id"), c.now, c.turn))
	},
		op("explain", "Why a decision that is remembered shows what it shows: utilities by feature, the best other "+
			"set, what rules cost.").
			with(searchLog).gives(200, api.Explanation{}))
	on("POST "+placement+"/decisions/{id}/rewards", report, s.rewards, op("rewards", "Report what became of a "+
		"decision by numbers: what items shown have earned, as shares of a choice. They become a choice of at most "+
		"one item by chance, which is the rewards in expectation. If they sum to more than 1, they are divided by "+
		"the sum: report several sales as an outcome with choices. The decision stays open for items without a "+
		"reward. The first reward of an item counts; later ones, and rewards after the attribution "+
		"window, get 204 and change nothing.").
		takes(api.Rewards{}, `{"rewards":[{"item":"sku1","value":0.5}]}`).gives(204, nil).fails(409))
	on("POST "+placement+"/decisions/{id}/metrics", report, s.measure, op("measure", "Report what an experiment "+
		"compares besides revenue, by the names of its metrics, before the outcome of the decision: 409 after it. "+
		"Other names are ignored, so a caller may report them whether or not an experiment runs. 403 with a "+
		"public key.").
		takes(api.Measurements{}, `{"metrics":{"margin":4.2,"seconds":1.3}}`).gives(204, nil).fails(409))
	on("POST "+placement+"/decisions/{id}/corrections", report, s.correct, op("correct", "Correct what a decision "+
		"has earned after its outcome was reported: add a value to what an item has earned, negative for a "+
		"return, or withdraw its sale. An item of the page that was bought later counts as taken from then on. "+
		"Sending a correction again under its id changes nothing. The policy does not learn from corrections. 403 "+
		"with a public key.").
		takes(api.Correction{}, `{"id":"return-4711","item":"sku1","value":-5.1}`).gives(204, nil).fails(409))

	on("GET "+placement+"/stats", read, func(c *call) error { return c.reply(e.StatsNow(c.ctx, c.placement)) },
		op("stats", "The counters of a placement: decisions, outcomes, learning, calibration, revenue.").gives(200,
			api.Stats{}))
	on("GET "+placement+"/series", read, s.series, op("series", "What a placement did over time: decisions, "+
		"revenue a decision, and how much more the policy has earned than chance or the baseline. The service "+
		"sums seconds, which become longer as they age: at most a thirty-second of their age.").
		with(overTime, withPoints).gives(200, api.Series{}))
	on("GET "+placement+"/experiment", read, func(c *call) error { return c.reply(e.Experiments(c.placement)) },
		op("experiment", "The experiment of a placement, if one runs, and the last ones that have ended: what the "+
			"variants earned, the differences with intervals that may be looked at any time, whether the units "+
			"are divided rightly, and what the stop rule says. It begins, changes and ends with the configuration "+
			"of the placement, by its mode experiment.").
			gives(200, api.Experiments{}))
	on("GET "+placement+"/experiment/plan", read, s.plan, op("planExperiment", "How long an experiment would take "+
		"to show a gain, by the revenue that the placement had in the last four weeks. An experiment that runs "+
		"longer shows smaller gains: for half the gain it takes four times as long.").
		with(parameter{"shares", "the shares of the variants, the control's first, such as 0.5,0.5; the default"},
			parameter{"gains", "the gains, as shares of the mean revenue, such as 0.02,0.1; 0.01 to 0.5 by default"}).gives(200, api.ExperimentPlan{}))
	on("GET "+placement+"/experiment/{experiment}/report", read, s.experimentPage,
		op("experimentReport", "The page about an experiment that runs, or one of the last that ended, by the "+
			"entry that began it: one file that prints well, for people without a desk.").
			gives(200, content{mediaType: asHTML}))
	on("GET "+placement+"/insight", read, func(c *call) error { return c.reply(e.Insight(c.ctx, c.placement, c.now)) },
		op("insight", "What a placement has sold, by item and by place, and what its policy has learned: "+
			"utilities, effects of features, calibration. It is computed at most once in three seconds.").
			gives(200, api.Insight{}))
	on("GET /v1/overview", list, s.overview, op("overview", "A page of the placements that the key is for, those "+
		"in trouble first and then by name: how they are, what they earn and did over time.").
		with(parameter{"contains", "only placements whose name contains this, in upper or lower case"},
			parameter{"name", "only the placement with this name"}, parameter{"from", "how many placements to skip"},
			parameter{"limit", "how many to show, from 1 to 100; 20 by default"}, overTime,
			withPoints).gives(200, api.Overview{}))

	on("GET "+placement+"/history", read, func(c *call) error { return c.reply(e.History(c.ctx, c.placement)) },
		op("history", "Who changed what of a placement and when, from the log, and the alarms of its guard.").gives(200,
			api.History{}))
	on("GET "+placement+"/versions", read, s.listVersions, op("listVersions", "The versions of a placement to "+
		"roll back to, the oldest first, with the warnings of a roll back.").
		gives(200, api.VersionList{}))
	on("POST "+placement+"/versions", admin, s.keepVersion, op("keepVersion", "Keep what the placement has "+
		"learned as a version to roll back to. The answer has its number. If that state is a version already, the "+
		"answer has its number: a version of the timer gets the note and stays, a version with a note keeps its own.").
		takes(api.Note{}, `{"note":"before the sale"}`).gives(200, api.Kept{}))
	on("POST "+placement+"/rollback", admin, s.rollBack, op("rollBack", "Return a placement to one of its "+
		"versions: it forgets what it has learned since, and gets the configuration of the version's learner if "+
		"that is another one. The state before is kept as a version. The ETag changes only if the configuration does: "+
		"If-Match doesn't notice another roll back.").
		under(ifMatch, ifNoMatch).takes(api.Rollback{}, `{"version":17}`).gives(204, nil).fails(409))
	on("DELETE "+placement+"/alarm", admin, s.clearAlarm, op("clearAlarm", "Clear the alarm of a placement's "+
		"guard: the policy decides again, and the guard begins again. A policy that has paused learns from the "+
		"log what it has missed.").
		with(parameter{"learn", "all: after the alarm no-sale the policy also learns the decisions without a " +
			"sale; by default it skips them, because their sales were probably not reported"}).gives(204,
		nil).fails(422))
	on("GET "+placement+"/model", read, s.model, op("model", "What the learner has learned, as it saves itself, "+
		"with the configuration of a learner that reads it.").
		gives(200, api.LearnerState{}))
	if s.options.Export != nil {
		on("GET "+placement+"/export", export, s.export, op("export", "The decisions of a placement that are in "+
			"the log, with their outcomes, a line of JSON each, as vitrine export writes them. A deleted "+
			"placement of the same name does not count. Four exports run at a time, two of them with the same key; "+
			"one more gets 503. An export ends if its reader stops reading for ten seconds.").
			gives(200, content{mediaType: asLines}))
	}

	on("PUT "+placement+"/items", admin, s.changeItems((*engine.Engine).PutItems), op("putItems", "Put items into "+
		"the placement's catalogue. Items with an id that it has are replaced, the others stay. A body of up to "+
		"256 KiB becomes durable as a whole; a larger one in parts, in its order.").
		takes(itemList{}, exampleItems).takesLines().gives(200, api.ItemsChanged{}))
	on("PATCH "+placement+"/items", admin, s.changeItems((*engine.Engine).PatchItems),
		op("patchItems", "Change some fields of items, such as prices. Features, attributes and the members of "+
			"a payload are merged by name, and null removes one. Null gives groups, available, valid_from, valid_until and a whole payload their "+
			"defaults: valid_until no end, for example. To return revenue or space to the default, send 1. Items that the catalogue does not have are named in the answer.").
			takes(itemList{}, examplePatches).takesLines().gives(200, api.ItemsChanged{}))
	on("DELETE "+placement+"/items", admin, s.deleteItems, op("deleteItems", "Delete items from the placement's "+
		"catalogue. Items that it does not have are named in the answer.").
		takes(api.ItemIDs{}, `{"ids":["sku1"]}`).gives(200, api.ItemsChanged{}))
	on("GET "+placement+"/items", read, s.listItems,
		op("listItems", "A page of the catalogue that the placement uses.").
			with(parameter{"from", "the place of the first item, from 0 on; next of the page before"},
				parameter{"limit", "the max number of items, at most 1000 (100)"}).gives(200, api.ItemPage{}))
	on("GET "+placement+"/shelf", read, s.shelf, op("shelf", "A page of the items that the placement may show, "+
		"with what they have sold and why they are not shown: those of its catalogue, and then others that were shown.").
		with(parameter{"contains", "only items that have this text in their id, groups, texts or payload, in " +
			"upper or lower case"}, parameter{"only", "only items in this state: available, unavailable, shown, " +
			"unseen, pinned or excluded"},
			parameter{"sort", "earned or shown: those that earn the most a page, or were shown most, first; in " +
				"the order of the catalogue if left out"},
			parameter{"id", "only items with these ids, in this order: once for each id, at most 200"},
			parameter{"from", "how many items to skip"}, parameter{"limit",
				"how many to return, at most 200 (100)"}).gives(200, api.Shelf{}))
	on("GET "+placement+"/items/{item}", read,
		func(c *call) error { return c.reply(e.Item(c.placement, c.PathValue("item"))) },
		op("getItem", "An item of the catalogue that the placement uses.").gives(200, api.CatalogueItem{}))
	on("DELETE "+placement+"/items/{item}", admin, s.deleteItem, op("deleteItem", "Delete an item from the "+
		"placement's catalogue.").
		gives(204, nil).fails(422))

	on("GET /v1/session", public, s.getSession, op("getSession", "Who a page of the desk is signed in as: its "+
		"key's name, scopes and placements. Nobody is no error.").
		gives(200, api.Session{}))
	on("POST /v1/session", public, s.signIn, op("signIn", "Begin a session of the desk: the cookie of the answer "+
		"stands for the key, in requests of the service's own pages, for twelve hours or until the key is "+
		"removed. Other callers send the key with each request.").
		takes(api.SignIn{}, `{"key":"vitrine_…"}`).gives(200, api.Session{}))
	on("DELETE /v1/session", public, s.signOut, op("signOut", "End the session of the request's cookie.").gives(204,
		nil))
	on("GET /v1/keys", keyholder, s.listKeys, op("listKeys", "The names, scopes and placements of the keys. Their "+
		"tokens are stored nowhere.").
		gives(200, api.KeyList{}))
	on("POST /v1/erasures", keyholder, s.erase, op("eraseShopper", "Erase a shopper for good in all placements: "+
		"the key is deleted that leads from the id to what was remembered, so that nobody can say whose the "+
		"entries of the log, the snapshots and the backups are. A later visit is a new shopper's. Unknown "+
		"shoppers get 204, too.").
		takes(api.Erasure{}, `{"shopper_id":"shopper-7"}`).gives(204, nil))
	if s.feed != nil {
		on("GET /v1/events", stream, s.listen, op("events", "Events as server-sent events; their data has the "+
			"schema Event, and their names are "+strings.Join(feed.Kinds(), ", ")+". The id of an event is its entry in the log; ids are missing that belong to other "+
			"placements. With Last-Event-ID the events after it come first, from the log: 410 if they were "+
			"removed. Otherwise they begin now.").
			under(parameter{"Last-Event-ID",
				"the id of the last event that was seen; 0 is the beginning of the log"}).with(
			parameter{"placement", "only events of this placement, which must exist"}).
			gives(200, content{mediaType: "text/event-stream"}).fails(404, 410))
	}
	if s.options.Alerts != nil {
		on("POST /v1/alerts/test", errand, s.testAlert, op("testAlert", "Send a test message to the receiver of "+
			"alerts, from the process that answers: 502 with the problem alert, which says why, if it does not arrive.").
			gives(200, api.AlertTest{}).fails(502))
	}
	for _, of := range personalizer.Routes() {
		rt := &route{method: of.Method, path: of.Path, contract: &of, operation: *operationOf(&of)}
		via := []wrapper{origin, key(of.Scope), limit, own, deadline, change, catchUp, lead}
		if of.Method == http.MethodGet {
			via = []wrapper{origin, key(of.Scope), limit, own, deadline, catchUp}
		}
		add(rt, via, s.adapted(&of))
	}

	on("GET /metrics", scrape, s.serveMetrics, new(operation))
	on("GET /healthz", public, (*call).healthy, new(operation))
	on("GET /readyz", public, s.ready, new(operation))
	on("GET /openapi.json", public, func(c *call) error { return c.answer(http.StatusOK, asJSON, s.document()) },
		new(operation))
	on("GET /docs", public, desktop, new(operation))
	on("GET /{$}", public, desktop, new(operation))
	on("GET /desk/{file}", public, asset, new(operation))
	for _, of := range s.options.Demo {
		on(of.Pattern, public, demonstrated(of), new(operation))
	}
	return all
}

// adapted returns the handler of a route of Personalizer's contract.
func (s *Server) adapted(of *personalizer.Route) handler {
	adapter := &personalizer.Adapter{Engine: s.engine, Create: s.options.Personalizer}
	return func(c *call) error {
		answer, err := of.Handle(adapter, c)
		if err != nil {
			return err
		}
		if answer.Decision != "" {
			c.w.Header()["Location"] = []string{api.DecisionPath(c.placement, answer.Decision)}
		}
		if answer.Body == nil {
			return c.nothing()
		}
		return c.answerJSON(of.Status, answer.Body)
	}
}

var noRoute = problemf(http.StatusNotFound, "no-route", "there is nothing at this path: see /docs")

var noAlerts = problemf(http.StatusNotFound, "no-alerts", "no receiver of alerts is configured: name its url and a "+
	"secret file under [alerts] in the service's configuration, and restart the service")

// nowhere answers requests without a route, below Personalizer's paths in that service's shape.
func nowhere(c *call) error {
	if personalizer.Owns(c.Request) {
		c.contract = &personalizer.Below
		return personalizer.ErrVersion
	}
	if c.URL.Path == "/v1/alerts/test" { // a route only of services with a receiver
		return noAlerts
	}
	return noRoute
}

// unknown answers requests without a route: OPTIONS, 405 if the path supports other methods, and 404 otherwise.
func (s *Server) unknown(mux *http.ServeMux) handler {
	return func(c *call) error {
		missing := nowhere(c) // sets the shape of errors
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
