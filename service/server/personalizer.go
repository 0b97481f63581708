package server

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"vitrine/service/api"
	"vitrine/service/budget"
	"vitrine/service/decision"
)

// The contract of Azure Personalizer, a service that has been retired: a shop
// that asked it changes one URL. Rank is a decision with slots, Reward an outcome
// told by rewards, Activate is that of a deferred decision. docs/personalizer.md says what differs.

// personalizerRoutes are its routes, at the root for one placement and below each
// placement: a placement is what was a resource.
func (s *Server) personalizerRoutes() []route {
	var list []route
	for _, at := range []struct{ prefix, id, where string }{
		{"", "personalizer", ""},
		{"/v1/placements/{name}", "placementPersonalizer", ", for a placement"},
	} {
		base := at.prefix + "/personalizer/{version}"
		list = append(list, []route{
			{
				path: base + "/rank", scope: ScopeDecide, handle: s.rank(false), invalid: "InvalidRankRequest",
				id: at.id + "Rank", summary: "Azure Personalizer's Rank" + at.where + ".",
				body: []content{jsonOf[rankDocument](exampleRank)}, answers: map[int][]content{201: {jsonOf[rankedDocument]("")}},
			},
			{
				path: base + "/events/{event}/reward", scope: ScopeOutcome, handle: s.reward, invalid: "InvalidRewardRequest",
				id: at.id + "Reward", summary: "Azure Personalizer's Reward" + at.where + ".",
				body: []content{jsonOf[eventRewardDocument](`{"value":1}`)}, answers: map[int][]content{204: nil},
			},
			{
				path: base + "/events/{event}/activate", scope: ScopeOutcome, handle: s.activateEvent, invalid: "InvalidEventIdToActivate",
				id: at.id + "Activate", summary: "Azure Personalizer's Activate" + at.where + ".", answers: map[int][]content{204: nil},
			},
			{
				path: base + "/multislot/rank", scope: ScopeDecide, handle: s.rank(true), invalid: "InvalidRankRequest",
				id: at.id + "RankSlots", summary: "Azure Personalizer's multi-slot Rank" + at.where + ".",
				body: []content{jsonOf[slotsRankDocument](exampleSlotsRank)}, answers: map[int][]content{201: {jsonOf[slotsRankedDocument]("")}},
			},
			{
				path: base + "/multislot/events/{event}/reward", scope: ScopeOutcome, handle: s.rewardSlots, invalid: "InvalidRewardRequest",
				id: at.id + "RewardSlots", summary: "Azure Personalizer's multi-slot Reward" + at.where + ".",
				body: []content{jsonOf[slotRewardsDocument](`{"reward":[{"slotId":"hero","value":1}]}`)}, answers: map[int][]content{204: nil},
			},
			{
				path: base + "/multislot/events/{event}/activate", scope: ScopeOutcome, handle: s.activateEvent, invalid: "InvalidEventIdToActivate",
				id: at.id + "ActivateSlots", summary: "Azure Personalizer's multi-slot Activate" + at.where + ".", answers: map[int][]content{204: nil},
			},
		}...)
	}
	for i := range list {
		list[i].method, list[i].errors = "POST", []int{400, 404, 413, 415}
		list[i].handle, list[i].placement = ofVersion(list[i].handle), personalizerName
	}
	return list
}

// joined returns a request as if the endpoint before Personalizer's path had no slash at its
// end. That service's portal gave it with one, and clients put another one after it.
func joined(r *http.Request) *http.Request {
	const twice = "//personalizer/"
	if !strings.Contains(r.URL.Path, twice) {
		return r
	}
	at := *r.URL
	at.RawPath = strings.Replace(at.EscapedPath(), twice, twice[1:], 1)
	at.Path, _ = url.PathUnescape(at.RawPath) // which was escaped well
	again := *r
	again.URL = &at
	return &again
}

// personalizerName is the placement of the routes at the root. With [Options].Personalizer the first Rank makes it.
const personalizerName = "personalizer"

// personalizerConfig is what that service did by default, as far as this one does it: a
// fifth of the answers explore, and rewards are waited for ten minutes. Its
// features are any JSON.
const personalizerConfig = `{
	"max_size": 10, "max_items": 50, "mode": "explore", "explore_share": 0.2, "record": "shown", "attribution_window": "10m",
	"features": [
		{"name": "id", "kind": "category", "buckets": 32},
		{"name": "action", "kind": "object", "buckets": 16},
		{"name": "context", "kind": "object", "from": "user", "buckets": 16},
		{"name": "action in context", "kind": "cross", "of": ["action", "context"]}
	],
	"policy": {"name": "eps-greedy-mnl", "epsilon": 0, "floor": 0}
}`

var personalizerVersions = []string{"v1.0", "v1.1-preview.1", "v1.1-preview.2", "v1.1-preview.3"}

// ofVersion lets in what the version of a path has.
func ofVersion(handle func(*call) error) func(*call) error {
	return func(c *call) error {
		v := c.PathValue("version")
		if !slices.Contains(personalizerVersions, v) || v == "v1.0" && strings.Contains(c.Pattern, "/multislot/") {
			return problemf(http.StatusNotFound, "no-route", "there is nothing at this path: the versions are %q, and multi-slot ones after the first", personalizerVersions)
		}
		return handle(c)
	}
}

// placementOf returns the placement of a path.
func placementOf(c *call) string {
	return cmp.Or(c.PathValue("name"), personalizerName)
}

// personalizer returns the placement of a Rank and its configuration.
func (s *Server) personalizer(c *call) (name string, config *decision.Config, err error) {
	name = placementOf(c)
	config, err = s.engine.Config(name)
	if !errors.Is(err, decision.ErrNotFound) || c.PathValue("name") != "" {
		return name, config, err
	}
	if !s.options.Personalizer {
		return name, nil, problemf(http.StatusNotFound, "not-found",
			"placement %q: not found: make it with a PUT, or set personalizer = true in the configuration of the service, and the first Rank makes it", name)
	}
	if err := s.engine.Create(c.Context(), name, []byte(personalizerConfig), c.now); err != nil {
		return name, nil, err
	}
	config, err = s.engine.Config(name)
	return name, config, err
}

// rank answers both kinds of Rank. One without slots has a single one.
func (s *Server) rank(slots bool) func(*call) error {
	return func(c *call) error {
		body, err := c.jsonBody()
		if err != nil {
			return err
		}
		q, err := parseRank(body, slots)
		if err != nil {
			return malformed(body, err)
		}
		event := q.EventID
		if event == "" {
			event = newEvent()
		}
		a, err := s.decideRank(c, q, event)
		if err != nil {
			return err
		}
		if slots {
			return c.answerJSON(http.StatusCreated, q.filled(event, a))
		}
		return c.answerJSON(http.StatusCreated, q.ranked(event, a))
	}
}

// decideRank decides a Rank by the schema that the placement has now.
func (s *Server) decideRank(c *call, q *rankQuery, event string) (*decision.Answer, error) {
	name, config, err := s.personalizer(c)
	if err != nil {
		return nil, err
	}
	c.keep(budget.Work, 0)
	if err := c.take(budget.Work, config.RequestSize(len(q.Actions))+c.taken[budget.Body]); err != nil {
		return nil, err
	}
	r, err := q.request(config)
	if err != nil {
		return nil, err
	}
	r.Decision = decisionOf(name, event)
	return s.engine.Decide(c.Context(), name, r, c.now)
}

// decisionOf returns the id of an event's decision. Events of two placements
// are different ones, and may have ids that a decision cannot: these stand as their
// SHA-256. So do those with a ':', which would be that of another placement: "a:b" has one in its name.
func decisionOf(placement, event string) string {
	plain := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c)
	}
	const most = 128 // of a decision's id
	if len(placement)+1+len(event) > most || strings.ContainsFunc(event, func(c rune) bool { return !plain(c) }) {
		sum := sha256.Sum256([]byte(event))
		event = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return placement + ":" + event
}

// newEvent draws an id in the form of a UUID, as that service did.
func newEvent() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// event returns what was answered of the event of a path.
func (s *Server) event(c *call) (*decision.Answer, error) {
	name := placementOf(c)
	d, err := s.engine.Decision(c.Context(), name, decisionOf(name, c.PathValue("event")))
	if err != nil && !errors.Is(err, decision.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("event: %w: there is none of this id, or there no longer is", decision.ErrNotFound)
	}
	return d.Answer, nil
}

func (s *Server) reward(c *call) error {
	var q eventRewardDocument
	if err := c.read(&q); err != nil {
		return err
	}
	value, err := rewardOf("/value", q.Value)
	if err != nil {
		return err
	}
	a, err := s.event(c)
	if err != nil {
		return err
	}
	if a.Slots != nil || len(a.Shown) != 1 {
		return &api.FieldError{Message: "the event has slots: tell its rewards to multislot/events"}
	}
	return s.tellRewards(c, a, []api.Reward{{Item: a.Shown[0], Value: value}})
}

func (s *Server) rewardSlots(c *call) error {
	var q slotRewardsDocument
	if err := c.read(&q); err != nil {
		return err
	}
	if len(q.Reward) == 0 {
		return &api.FieldError{Field: "/reward", Message: "must have at least one reward"}
	}
	a, err := s.event(c)
	if err != nil {
		return err
	}
	slots := a.Slots
	if len(slots) != len(a.Shown) {
		return &api.FieldError{Message: "the event has no slots: tell its reward to events"}
	}
	rewards := make([]api.Reward, len(q.Reward))
	for k, w := range q.Reward {
		field := fmt.Sprintf("/reward/%d", k)
		at := slices.Index(slots, w.SlotID)
		if at < 0 {
			return &api.FieldError{Field: field + "/slotId", Message: "the event has no such slot"}
		}
		value, err := rewardOf(field+"/value", w.Value)
		if err != nil {
			return err
		}
		rewards[k] = api.Reward{Item: a.Shown[at], Value: value}
	}
	return s.tellRewards(c, a, rewards)
}

// rewardOf returns a reward as a share of a choice: of less than nothing there is none.
func rewardOf(field string, v *float64) (float64, error) {
	switch {
	case v == nil:
		return 0, api.Fieldf(field, "is missing")
	case !(*v >= -1 && *v <= 1):
		return 0, api.Fieldf(field, "%v: must be in [-1, 1]", *v)
	}
	return max(*v, 0), nil
}

func (s *Server) tellRewards(c *call, a *decision.Answer, rewards []api.Reward) error {
	if err := s.engine.Reward(c.Context(), a.Placement, a.Decision, rewards, c.now); err != nil {
		return err
	}
	return c.nothing()
}

// activateEvent activates an event. One that comes too late is like a reward that does: it changes
// nothing.
func (s *Server) activateEvent(c *call) error {
	a, err := s.event(c)
	if err != nil {
		return err
	}
	if err := s.engine.Activate(c.Context(), a.Placement, a.Decision, c.now); err != nil && !errors.Is(err, decision.ErrLate) {
		return err
	}
	return c.nothing()
}
