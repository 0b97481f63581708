package server_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/engine"
	"vitrine/service/keys"
	"vitrine/service/server"
)

const (
	at      = "/personalizer/v1.1-preview.3"
	atSlots = at + "/multislot"
	pair    = `"actions":[{"id":"a","features":[{"kind":"x"}]},{"id":"b","features":[{"kind":"y"}]}]`
	trio    = `"actions":[{"id":"a","features":[]},{"id":"b","features":[]},{"id":"c","features":[]}]`
)

// ranked is the answer to a Rank as its caller reads it.
type ranked struct {
	Ranking []struct {
		ID          string   `json:"id"`
		Probability *float64 `json:"probability"`
	} `json:"ranking"`
	Slots []struct {
		ID             string `json:"id"`
		RewardActionID string `json:"rewardActionId"`
	} `json:"slots"`
	EventID        string `json:"eventId"`
	RewardActionID string `json:"rewardActionId"`
}

func (s *service) rank(path, body string) (r ranked) {
	s.Helper()
	a := s.want(201, "POST", path+"/rank", body)
	if err := json.Unmarshal([]byte(a.body), &r, json.RejectUnknownMembers(true)); err != nil {
		s.Fatalf("%v: %s", err, a.body)
	}
	return r
}

// fault is an error in that service's shape.
type fault struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Target  string `json:"target"`
		Details []struct {
			Code, Message, Target string
		} `json:"details"`
		InnerError struct {
			Code string `json:"code"`
		} `json:"innerError"`
	} `json:"error"`
}

// refused posts, and expects an error in the shape of that service.
func (s *service) refused(status int, code, target, path, body string, headers ...string) {
	s.Helper()
	s.refusedBy("POST", status, code, target, path, body, headers...)
}

// refusedBy is refused by another method.
func (s *service) refusedBy(method string, status int, code, target, path, body string, headers ...string) {
	s.Helper()
	a := s.want(status, method, path, body, headers...)
	var f fault
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		s.Fatalf("%v: %s", err, a.body)
	}
	if f.Error.Code != code || f.Error.Target != target || f.Error.Message == "" || f.Error.InnerError.Code == "" ||
		a.header.Get("Content-Type") != "application/json" {
		s.Errorf("%s %s: %s, want the code %s at %q", path, body, a.body, code, target)
	}
	if (target != "") != (len(f.Error.Details) == 1) {
		s.Errorf("%s %s: details %s", path, body, a.body)
	}
}

// An action is shown as often as its probability says.
func TestRankProbabilities(t *testing.T) {
	s := started(t, nil)
	const rounds = 600
	seen, expected, variance := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for range rounds {
		r := s.rank(at, `{`+trio+`}`)
		seen[r.RewardActionID]++
		total := 0.0
		for _, a := range r.Ranking {
			p := *a.Probability
			total += p
			expected[a.ID] += p
			variance[a.ID] += p * (1 - p)
		}
		if math.Abs(total-1) > 1e-12 {
			t.Fatalf("probabilities sum to %v", total)
		}
	}
	for id, n := range expected {
		if z := (seen[id] - n) / math.Sqrt(variance[id]); math.Abs(z) > 4 {
			t.Errorf("%s was shown %v times, expected %v", id, seen[id], n)
		}
	}
}

// A Rank that is too long, too deep or for another placement is refused in that service's shape. The conversation
// personalizer.txt contains smaller ones.
func TestRanksThatAreRefused(t *testing.T) {
	s := started(t, nil)
	many := `"actions":[{"id":"0"}`
	for i := 1; i <= 50; i++ {
		many += fmt.Sprintf(`,{"id":"%d"}`, i)
	}
	many += "]"
	deep := `{"actions":[{"id":"a","features":[` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `]}]}`
	for _, c := range []struct{ path, body, code, target string }{
		{at + "/rank", deep, "InvalidRankRequest", "/actions/0/features"},
		{at + "/rank", `{` + many + `}`, "InvalidRankRequest", "/actions"},
		{at + "/rank", `{"actions":[{"id":"` + strings.Repeat("🥾", 256) + `"},{"id":"` + strings.Repeat("a", 1025) + `"}]}`,
			"InvalidRankRequest", "/actions/1/id"},
		{at + "/rank", `{` + pair + `,"eventId":"` + strings.Repeat("e", 257) + `"}`, "InvalidRankRequest", "/eventId"},
		{at + "/rank", `{` + pair + `,` + pair + `}`, "BadRequest", "/actions"},
		{at + "/rank", `{"actions":[` + strings.Repeat("{},", 1_000_000) + `{}]}`, "InvalidRankRequest", "/actions"},
		{at + "/events/one/reward", `{"value":1e999}`, "InvalidRewardRequest", "/value"},
		{atSlots + "/events/two/reward", `{"reward":[` + strings.Repeat("{},", 10_000) + `{}]}`, "InvalidRewardRequest",
			"/reward"},
	} {
		s.refused(400, c.code, c.target, c.path, c.body)
	}
	s.want(201, "PUT", "/v1/placements/two",
		`{"max_size":2,"features":[{"name":"action","kind":"object"}],"policy":{"name":"ucb-mnl"}}`)
	two := "/v1/placements/two" + atSlots + "/rank"
	slots := func(exclude ...string) string {
		var list []string
		for k, x := range exclude {
			list = append(list, fmt.Sprintf(`{"id":"s%d","baselineAction":"%c","excludedActions":[%s]}`, k, "abc"[k],
				x))
		}
		return `{` + trio + `,"slots":[` + strings.Join(list, ",") + `]}`
	}
	s.refused(400, "InvalidRankRequest", "/slots", two, slots("", "", ""))
	s.want(201, "PUT", "/v1/placements/many",
		`{"max_size":30,"features":[{"name":"action","kind":"object"}],"policy":{"name":"ucb-mnl"}}`)
	var actions, long []string
	for i := range 30 {
		actions = append(actions, fmt.Sprintf(`{"id":"%d"}`, i))
		long = append(long, fmt.Sprintf(`{"id":"%d%s","baselineAction":"%d"}`, i, strings.Repeat("😀", 250), i))
	}
	s.refused(400, "InvalidRankRequest", "/slots", "/v1/placements/many"+atSlots+"/rank",
		`{"actions":[`+strings.Join(actions, ",")+`],"slots":[`+strings.Join(long, ",")+`]}`)
	s.want(201, "POST", two, slots(`"b","c"`, `"a","c"`))
	s.want(201, "POST", two, `{`+pair+`,"slots":[{"id":"s","baselineAction":"a"},{"id":"t","baselineAction":"b"}]}`)

	s.refused(413, "PayloadSizeExceeded", "", at+"/rank", `{"contextFeatures":[{"a":"`+strings.Repeat("x",
		5<<20)+`"}],`+pair+`}`)
	s.refused(415, "415", "", at+"/rank", `{`+pair+`}`, "Content-Type", "text/plain")
	s.refused(404, "404", "", "/personalizer/v2.0/rank", `{`+pair+`}`)
	s.refused(404, "404", "", "/personalizer/v1.0/multislot/rank", `{`+pair+`}`)
	s.refused(404, "ResourceNotFound", "", "/v1/placements/nowhere"+at+"/rank", `{`+pair+`}`)
}

// Features take the memory of their text, however small they are.
func TestSmallFeatures(t *testing.T) {
	s := started(t, nil)
	body := `{"actions":[` + strings.Repeat(`{"features":[`+strings.Repeat("{},", 9_999)+`{}]},`, 10) + `{}]}`
	allocs := testing.AllocsPerRun(1, func() {
		s.refused(400, "InvalidRankRequest", "/actions/0/id", at+"/rank", body)
	})
	if allocs > 10_000 {
		t.Errorf("%v allocations for a body of %d bytes", allocs, len(body))
	}
}

// By the rules of baselines every slot can get its own, whatever the slots exclude: if no other action is left, that is
// the answer.
func TestSlotsOfBaselines(t *testing.T) {
	s := started(t, nil)
	r := s.rank(atSlots, `{`+trio+`,"slots":[{"id":"s","baselineAction":"a","excludedActions":["b","c"]},{"id":"t","baselineAction":"b","excludedActions":["a","c"]},{"id":"u","baselineAction":"c","excludedActions":["a"]}]}`)
	for k, want := range []string{"a", "b", "c"} {
		expect.Equal(t, r.Slots[k].RewardActionID, want, "slots", r.Slots)
	}
}

// Members of features become the placement's features of the same names, and the rest goes to the object feature.
func TestRankWithSchema(t *testing.T) {
	s := started(t, nil)
	s.want(201, "PUT", "/v1/placements/strict",
		`{"max_size":1,"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category","default":""},{"name":"sale","kind":"category","default":"false"},{"name":"more","kind":"object"},{"name":"age","kind":"number","from":"shopper","default":30}],"policy":{"name":"ucb-mnl"}}`)
	strict := "/v1/placements/strict" + at + "/rank"
	s.want(201, "POST", strict, `{"contextFeatures":[{"age":3}],"actions":[{"id":"a","features":[{"price":1,"brand":"x"},{"sale":true,"more":{"b":[1]}}]},{"id":"b","features":[{"price":2,"brand":null}]}]}`)
	for body, target := range map[string]string{
		`{"actions":[{"id":"a","features":[{"colour":1}]}]}`:                                  "/actions/0/features/0/colour",
		`{"actions":[{"id":"a","features":[{"price":1},{"price":1}]}]}`:                       "/actions/0/features/1/price",
		`{"actions":[{"id":"a","features":[{"price":"1"}]}]}`:                                 "/actions/0/features/0/price",
		`{"actions":[{"id":"a","features":[{"price":1,"more":3}]}]}`:                          "/actions/0/features/0/more",
		`{"actions":[{"id":"a","features":[]}]}`:                                              "/actions/0/features/price",
		`{"contextFeatures":[{"size":3}],"actions":[{"id":"a","features":[{"price":1}]}]}`:    "/contextFeatures/0/size",
		`{"contextFeatures":[{"age":"old"}],"actions":[{"id":"a","features":[{"price":1}]}]}`: "/contextFeatures/0/age",
		`{"contextFeatures":[{"age":1e300}],"actions":[{"id":"a","features":[{"price":1}]}]}`: "/contextFeatures/age",
		`{"contextFeatures":[{"age":1e999}],"actions":[{"id":"a","features":[{"price":1}]}]}`: "/contextFeatures/0/age",
	} {
		s.refused(400, "InvalidRankRequest", target, strict, body)
	}
	s.want(201, "PUT", "/v1/placements/loose",
		`{"max_size":1,"features":[{"name":"id","kind":"text"},{"name":"price","kind":"number","default":0},{"name":"action","kind":"object"},{"name":"context","kind":"object","from":"shopper"}],"policy":{"name":"ucb-mnl"}}`)
	s.want(201, "POST", "/v1/placements/loose"+at+"/rank",
		`{"contextFeatures":[{"any":[1,2]}],"actions":[{"id":"a","features":[{"id":"b","price":1,"co\u006cour":"red"},{"action":3,"more":{"x":1}}]}]}`)
}

// The key is in that service's header, or in ours; errors of keys use the shape of its gateway.
func TestPersonalizerKeys(t *testing.T) {
	token, key := keys.New("shop", keys.ScopeDecide, keys.ScopeOutcome)
	reader, other := keys.New("reader", keys.ScopeRead)
	s, _ := locked(t, key.Table()+other.Table())
	body := `{` + pair + `,"eventId":"e"}`
	const header = "Ocp-Apim-Subscription-Key"
	s.refused(401, "401", "", at+"/rank", body)
	if a := s.ask("POST", at+"/rank", body); !strings.Contains(a.body, header) {
		t.Errorf("%s names no header", a.body)
	}
	s.refused(401, "401", "", at+"/rank", body, header, "wrong")
	s.refused(403, "403", "", at+"/rank", body, header, reader)
	s.refused(401, "401", "", at+"/events/e/reward", `{"value":1}`)
	s.refused(401, "401", "", atSlots+"/events/e/activate", "")
	s.want(201, "POST", at+"/rank", body, header, token)
	s.want(201, "POST", at+"/rank", body, "Authorization", "Bearer "+token)
	s.want(204, "POST", at+"/events/e/activate", "", header, token)
	s.want(204, "POST", at+"/events/e/reward", `{"value":1}`, header, token)
	s.problem(401, "unauthorized", "", "POST", "/v1/placements/personalizer/decisions", "{}", header, token)
	if strings.Contains(s.log.String(), token) {
		t.Error("the log has the token")
	}
}

// An endpoint may end with a slash, and clients put one after it.
func TestEndpointsWithASlash(t *testing.T) {
	s := started(t, nil)
	s.rank("/"+at, `{`+pair+`,"eventId":"a//personalizer/b"}`)
	s.want(204, "POST", "/"+at+"/events/a%2F%2Fpersonalizer%2Fb/reward", `{"value":1}`)
	s.want(204, "POST", at+"/events/a%2F%2Fpersonalizer%2Fb/activate", "")
	s.rank("/v1/placements/personalizer/"+at, `{`+pair+`}`)
}

// Failures of the engine get that service's codes, too.
func TestPersonalizerFailures(t *testing.T) {
	s := started(t, func(_ *server.Options, e *engine.Options) { e.Build = brokenUnder("uniform") })
	s.want(201, "PUT", "/v1/placements/broken",
		`{"max_size":1,"features":[{"name":"action","kind":"object"}],"policy":{"name":"uniform"}}`)
	s.refused(500, "ModelRankingError", "", "/v1/placements/broken"+at+"/rank", `{`+pair+`}`)
	s.engine.Close()
	s.refused(503, "503", "", at+"/rank", `{`+pair+`}`)
	limited := started(t, func(o *server.Options, _ *engine.Options) { o.Limits.Rate = 1e-9 })
	limited.want(201, "POST", at+"/rank", `{`+pair+`}`)
	limited.refused(429, "429", "", at+"/rank", `{`+pair+`}`)
}

// Shoppers who like another action in every context teach a placement to earn more than
// uniformly drawn actions would, only through the contract.
func TestPersonalizerLearns(t *testing.T) {
	s := started(t, nil)
	rng := rand.New(rand.NewPCG(3, 3))
	contexts := []string{"morning", "afternoon", "evening", "night"}
	actions := []string{"coffee", "salad", "steak", "tea"}
	like := func(c, a int) float64 {
		if a == c {
			return 0.8
		}
		return 0.1
	}
	body := ""
	for _, a := range actions {
		body += fmt.Sprintf(`,{"id":%q,"features":[{"dish":%q},{"price":%d}]}`, a, a, len(a))
	}
	const rounds = 900
	earned, uniform, late := 0.0, 0.0, 0.0
	for i := range rounds {
		c := rng.IntN(len(contexts))
		r := s.rank(at, fmt.Sprintf(`{"contextFeatures":[{"time":%q},{"weather":%q}],"actions":[%s]}`, contexts[c],
			[]string{"dry", "wet"}[rng.IntN(2)], body[1:]))
		v := like(c, slices.Index(actions, r.RewardActionID))
		earned += v
		for a := range actions {
			uniform += like(c, a) / float64(len(actions))
		}
		if i >= rounds*2/3 {
			late += v
		}
		s.want(204, "POST", at+"/events/"+r.EventID+"/reward", fmt.Sprintf(`{"value":%v}`, v))
		if i%10 == 0 {
			fatal.If(t, s.engine.Wait(t.Context()))
		}
	}
	t.Logf("%.3f a round, %.3f in the last third, uniform %.3f", earned/rounds, late/(rounds/3), uniform/rounds)
	if earned < 1.3*uniform || late/(rounds/3) < 1.8*uniform/rounds {
		t.Errorf("earned %v and in the end %v a round, uniform draws earn %v", earned/rounds, late/(rounds/3),
			uniform/rounds)
	}
}

// Every body of a Rank is answered in the shapes of the contract.
func FuzzRank(f *testing.F) {
	for _, body := range []string{
		`{` + pair + `}`, `{` + trio + `,"slots":[{"id":"s","baselineAction":"a","excludedActions":["b"]}],"eventId":"e","deferActivation":true}`,
		`{"contextFeatures":[{"a":{"b":[1,"c",null,true]}}],` + pair + `,"excludedActions":["a","z"]}`, ``, `{`, `null`,
		`[]`, `{"actions":[{}]}`, `{"actions":[null]}`,
		`{"actions":[{"id":"a","features":[null]}]}`, `{` + pair + `,"slots":[null]}`,
		"{\"actions\":[{\"id\":\"\xff\"}]}",
	} {
		for route := range uint8(3) {
			f.Add(route, []byte(body))
		}
	}
	s := started(f, nil)
	s.want(201, "PUT", "/v1/placements/strict",
		`{"max_size":2,"features":[{"name":"kind","kind":"category","default":"x"}],"policy":{"name":"ucb-mnl"}}`)
	paths := []string{at, atSlots, "/v1/placements/strict" + at}
	f.Fuzz(func(t *testing.T, route uint8, body []byte) {
		path := paths[int(route)%len(paths)] + "/rank"
		a := s.ask("POST", path, string(body), "Content-Type", "application/json")
		var r ranked
		var e fault
		switch err := json.Unmarshal([]byte(a.body), &r); {
		case a.status == 201 && (err != nil || r.EventID == "" || r.RewardActionID == "" && len(r.Slots) == 0):
			t.Fatalf("%s: %s, %v", body, a.body, err)
		case a.status == 201:
		case a.status >= 500:
			t.Fatalf("%s: %d %s", body, a.status, a.body)
		default:
			if err := json.Unmarshal([]byte(a.body), &e); err != nil || e.Error.Code == "" || e.Error.Message == "" {
				t.Fatalf("%s: %s, %v", body, a.body, err)
			}
		}
	})
}

// A key that is for one placement makes the root mean that placement: some clients take no endpoint with a path.
func TestRootOfAKey(t *testing.T) {
	one, shop := keys.New("shop", keys.Scopes...)
	shop.Placements = []string{"shop"}
	two, both := keys.New("both", keys.Scopes...)
	both.Placements = []string{"shop", "cart"}
	s, _ := locked(t, shop.Table()+both.Table())
	s.token = one
	s.want(404, "POST", at+"/rank", `{`+pair+`}`) // which no Rank makes
	s.want(201, "PUT", "/v1/placements/shop",
		`{"max_size":1,"features":[{"name":"action","kind":"object","columns":4}]}`)
	a := s.want(201, "POST", at+"/rank", `{`+pair+`,"eventId":"e"}`)
	expect.Equal(t, a.header.Get("Location"), "/v1/placements/shop/decisions/shop:e", "Location")
	s.want(200, "GET", a.header.Get("Location"), "")
	s.want(204, "POST", "/personalizer/events/e/reward?api-version=2022-09-01-preview", `{"value":1}`)
	s.want(200, "PUT", at+"/configurations/service", `{"rewardWaitTime":"PT1M"}`)
	s.want(204, "DELETE", at+"/model", "")
	if stats, err := s.engine.Stats("shop"); err != nil || stats.Decisions != 1 || stats.Outcomes != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	s.token = two // a key for several placements lacks a root
	s.refused(404, "ResourceNotFound", "", at+"/rank", `{`+pair+`}`)
}

// Unknown paths and methods below Personalizer's paths are refused in that service's shape, with or without a key;
// others are not.
func TestNowhereInPersonalizer(t *testing.T) {
	s := started(t, nil)
	for path, code := range map[string]string{
		"GET " + at + "/rank": "405", "DELETE " + at + "/configurations/service": "405",
		"POST " + at + "/evaluations": "404", "POST /personalizer/rank": "404",
		"GET /v1/placements/shop/personalizer/x": "404", "GET /v1/placements/shop" + at + "/rank": "405",
		"POST " + at + "//rank": "404", "POST /personalizer/": "404",
	} {
		method, path, _ := strings.Cut(path, " ")
		a := s.ask(method, path, "")
		var f fault
		if err := json.Unmarshal([]byte(a.body), &f); err != nil || fmt.Sprint(a.status) != code ||
			f.Error.Code != code || f.Error.Message == "" || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
		}
		if (code == "405") != (a.header.Get("Allow") != "") {
			t.Errorf("%s %s: Allow %q", method, path, a.header.Get("Allow"))
		}
	}
	s.problem(404, "no-route", "", "GET", "/v1/placements/personalizer/nothing", "")
	s.problem(404, "no-route", "", "GET", "/personalizer", "")
}
