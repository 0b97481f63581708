package personalizer

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/offer"
)

// Adapter answers the calls of the contract with an engine.
type Adapter struct {
	Engine *engine.Engine
	Create bool // whether the first Rank at the root creates the placement [Placement]
}

// Call is an authorised request.
type Call interface {
	Context() context.Context
	PathValue(name string) string
	Now() int64 // when the request came, Unix nanoseconds

	// Placement returns the placement that the call concerns: the one in the path, or else the only one that the
	// caller's key is for, or else [Placement].
	Placement() string

	// Decode decodes the JSON body. Like Personalizer it ignores unknown keys.
	Decode(body any) error

	// Reserve reserves memory for the work on the request, in addition to its body, and replaces an earlier
	// reservation. The server frees it.
	Reserve(bytes int64) error
}

// Route is a line of the table of routes.
type Route struct {
	Method, Path string
	Scope        string // that a key needs
	ID, Summary  string // for the OpenAPI document
	Body         any    // a value of the type of the request; nil if it is not read
	Example      string // a body, JSON
	Status       int    // of success
	Answer       any    // a value of the type of the answer; nil if it is empty
	Invalid      string // the error code of invalid requests

	Handle func(*Adapter, Call) (Answer, error)
}

// Answer is the answer to a call.
type Answer struct {
	Body     any    // nil if it is empty
	Decision string // the id of the decision that was made, if one was
}

// Placement is the placement that the routes at the root use, unless the caller's key is limited to one
// other placement.
const Placement = "personalizer"

// KeyHeader is the contract's header for API keys.
const KeyHeader = "Ocp-Apim-Subscription-Key"

// RequestHeader is the header in which callers give requests an id, which answers repeat.
const RequestHeader = "X-Ms-Client-Request-Id"

// Versions are the versions of the contract, as they stand in a path. The last one may stand in the query instead.
var Versions = []string{"v1.0", "v1.1-preview.1", "v1.1-preview.2", "v1.1-preview.3", "2022-09-01-preview"}

// ErrVersion is returned for an unknown path below Personalizer's.
var ErrVersion = fmt.Errorf("there is nothing at this path: only Rank, Reward, Activate, the service's configuration and "+
	"the model's properties and reset are implemented, and the version must be %s, the last one also as the "+
	"api-version of the query; multi-slot calls are in all but the first", hint.List(Versions))

// Below is the route of unknown paths below Personalizer's: it answers 404.
var Below Route

// Routes returns the routes of the contract, at the root and below each placement: a resource of Personalizer is a
// placement here.
func Routes() []Route {
	var list []Route
	for _, at := range []struct{ prefix, id, where string }{
		{"", "personalizer", ""},
		{"/v1/placements/{name}", "placementPersonalizer", ", for a placement"},
	} {
		base := at.prefix + "/personalizer/{version}"
		for _, rt := range []Route{
			{
				Path: "/rank", ID: "Rank", Summary: "Rank", Invalid: "InvalidRankRequest",
				Handle: rank((*rankQuery).single, (*rankQuery).ranked),
				Body:   rankDocument{}, Example: exampleRank, Answer: rankedDocument{}, Scope: "decide",
				Status: http.StatusCreated,
			},
			{
				Path: "/events/{event}/reward", ID: "Reward", Summary: "Reward", Invalid: "InvalidRewardRequest",
				Handle: (*Adapter).reward,
				Body:   eventRewardDocument{}, Example: `{"value":1}`,
			},
			{Path: "/events/{event}/activate", ID: "Activate", Summary: "Activate", Invalid: invalidActivate,
				Handle: (*Adapter).activate},
			{
				Path: "/multislot/rank", ID: "RankSlots", Summary: "multi-slot Rank", Invalid: "InvalidRankRequest",
				Handle: rank((*rankQuery).checkSlots, (*rankQuery).filled),
				Body:   slotsRankDocument{}, Example: exampleSlotsRank, Answer: slotsRankedDocument{}, Scope: "decide",
				Status: http.StatusCreated,
			},
			{
				Path: "/multislot/events/{event}/reward", ID: "RewardSlots", Summary: "multi-slot Reward",
				Invalid: "InvalidRewardRequest", Handle: (*Adapter).rewardSlots,
				Body: slotRewardsDocument{}, Example: `{"reward":[{"slotId":"hero","value":1}]}`,
			},
			{Path: "/multislot/events/{event}/activate", ID: "ActivateSlots", Summary: "multi-slot Activate",
				Invalid: invalidActivate, Handle: (*Adapter).activate},
			{
				Method: "GET", Path: "/configurations/service", ID: "GetService", Summary: "service configuration",
				Handle: (*Adapter).getService,
				Answer: serviceDocument{}, Scope: "read", Status: http.StatusOK,
			},
			{
				Method: "PUT", Path: "/configurations/service", ID: "PutService", Summary: "change of the service " +
					"configuration", Invalid: "InvalidServiceConfiguration", Handle: (*Adapter).putService,
				Body: serviceChange{}, Example: `{"rewardWaitTime":"PT10M","explorationPercentage":0.2,"learningMode":"Online"}`,
				Answer: serviceDocument{}, Scope: "admin", Status: http.StatusOK,
			},
			{Method: "DELETE", Path: "/model", ID: "ResetModel", Summary: "reset of the model",
				Invalid: "ModelResetFailed", Handle: (*Adapter).resetModel, Scope: "admin"},
			{
				Method: "GET", Path: "/model/properties", ID: "ModelProperties", Summary: "properties of the model",
				Handle: (*Adapter).modelProperties,
				Answer: modelDocument{}, Scope: "read", Status: http.StatusOK,
			},
		} {
			rt.Method, rt.Scope, rt.Status = cmp.Or(rt.Method, "POST"), cmp.Or(rt.Scope, "outcome"),
				cmp.Or(rt.Status, http.StatusNoContent)
			rt.Handle = ofVersion(rt.Handle, strings.HasPrefix(rt.Path, "/multislot/"))
			rt.Path, rt.ID = base+rt.Path, at.id+rt.ID
			rt.Summary = "Azure Personalizer's " + rt.Summary + at.where + "."
			list = append(list, rt)
		}
	}
	return list
}

// ofVersion refuses calls that do not exist in the version in the path.
func ofVersion(handle func(*Adapter, Call) (Answer, error), multislot bool) func(*Adapter, Call) (Answer, error) {
	return func(a *Adapter, c Call) (Answer, error) {
		v := c.PathValue("version")
		if !slices.Contains(Versions, v) || multislot && v == "v1.0" {
			return Answer{}, ErrVersion
		}
		return handle(a, c)
	}
}

// AnyFeatures are the features of a placement that takes any JSON.
const AnyFeatures = `[
    {"name": "id", "kind": "category", "columns": 32},
    {"name": "action", "kind": "object", "columns": 16},
    {"name": "context", "kind": "object", "from": "shopper", "columns": 16},
    {"name": "action in context", "kind": "cross", "of": ["action", "context"]}
  ]`

// defaults is the configuration of the placement that a Rank creates, with the defaults of Personalizer: a
// fifth of the answers explore, and rewards may come for ten minutes. Its features are any JSON.
const defaults = `{
	"max_size": 10, "max_request_items": 50, "mode": "explore", "explore_share": 0.2, "log_items": "shown", "attribution_window": "10m",
	"features": ` + AnyFeatures + `,
	"policy": {"name": "eps-greedy-mnl", "epsilon": 0, "floor": 0}
}`

// view returns the placement of a call. It makes the placement of the root, if it may.
func (a *Adapter) view(c Call) (*engine.View, error) {
	name := c.Placement()
	v, err := a.Engine.View(name)
	if !errors.Is(err, engine.ErrNotFound) || c.PathValue("name") != "" || name != Placement {
		return v, err
	}
	if !a.Create {
		return nil, fmt.Errorf("placement %q: %w: make it with a PUT, or set personalizer = true in the "+
			"configuration of the service, and the first Rank makes it", name, engine.ErrNotFound)
	}
	if err := a.Engine.Create(c.Context(), name, []byte(defaults), c.Now()); err != nil {
		return nil, err
	}
	return a.Engine.View(name)
}

// rank returns the handler of a Rank: check checks a query, and answer is the answer from its decision.
func rank[T any](check func(*rankQuery) error,
	answer func(*rankQuery, *offer.Offer) T) func(*Adapter, Call) (Answer, error) {
	return func(a *Adapter, c Call) (Answer, error) {
		var q rankQuery
		if err := c.Decode(&q); err != nil {
			return Answer{}, err
		}
		if err := check(&q); err != nil {
			return Answer{}, err
		}
		d, err := a.decide(c, &q)
		if err != nil {
			return Answer{}, err
		}
		return Answer{answer(&q, d), d.Decision}, nil
	}
}

// decide decides a Rank with the placement's present schema. It makes an id for an event without one.
func (a *Adapter) decide(c Call, q *rankQuery) (*offer.Offer, error) {
	if q.EventID == "" {
		q.EventID = newEvent()
	}
	v, err := a.view(c)
	if err != nil {
		return nil, err
	}
	if err := c.Reserve(v.Config().RequestSize(len(q.Actions))); err != nil {
		return nil, err
	}
	r, err := q.request(v.Config())
	if err != nil {
		return nil, err
	}
	r.Decision = DecisionOf(c.Placement(), q.EventID)
	return a.Engine.DecideFor(c.Context(), v, r, c.Now())
}

// DecisionOf returns the id of an event's decision. Events of different placements get different ids. Ids that are
// invalid for a decision are replaced by their SHA-256, as are ids with a ':', which could be confused with another
// placement's, because "a:b" is a legal name.
func DecisionOf(placement, event string) string {
	plain := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c)
	}
	const maximum = 128 // of a decision's id
	if len(placement)+1+len(event) > maximum || strings.ContainsFunc(event, func(c rune) bool { return !plain(c) }) {
		sum := sha256.Sum256([]byte(event))
		event = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return placement + ":" + event
}

// newEvent draws an id in the form of a UUID, like Personalizer.
func newEvent() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (a *Adapter) event(c Call) (*offer.Offer, error) {
	name := c.Placement()
	d, err := a.Engine.Decision(c.Context(), name, DecisionOf(name, c.PathValue("event")))
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("event: %w: there is none of this id, or there no longer is", engine.ErrNotFound)
	}
	return d.Offer, nil
}

func (a *Adapter) reward(c Call) (Answer, error) {
	var q eventRewardDocument
	if err := c.Decode(&q); err != nil {
		return Answer{}, err
	}
	value, err := rewardOf("/value", q.Value)
	if err != nil {
		return Answer{}, err
	}
	o, err := a.event(c)
	if err != nil {
		return Answer{}, err
	}
	if offer.SlotIDs(o.Note) != nil || len(o.Shown) != 1 {
		return Answer{}, &api.FieldError{Message: "the event has slots: tell its rewards to multislot/events"}
	}
	return Answer{}, a.report(c, o, []api.Reward{{Item: o.IDs()[0], Value: value}})
}

func (a *Adapter) rewardSlots(c Call) (Answer, error) {
	var q slotRewardsDocument
	if err := c.Decode(&q); err != nil {
		return Answer{}, err
	}
	if len(q.Reward) == 0 {
		return Answer{}, &api.FieldError{Field: "/reward", Message: "must have at least one reward"}
	}
	o, err := a.event(c)
	if err != nil {
		return Answer{}, err
	}
	slots, shown := offer.SlotIDs(o.Note), o.IDs()
	if len(slots) != len(shown) {
		return Answer{}, &api.FieldError{Message: "the event has no slots: tell its reward to events"}
	}
	rewards := make([]api.Reward, len(q.Reward))
	for k, w := range q.Reward {
		field := fmt.Sprintf("/reward/%d", k)
		at := slices.Index(slots, w.SlotID)
		if at < 0 {
			return Answer{}, &api.FieldError{Field: field + "/slotId", Message: "the event has no such slot"}
		}
		value, err := rewardOf(field+"/value", w.Value)
		if err != nil {
			return Answer{}, err
		}
		rewards[k] = api.Reward{Item: shown[at], Value: value}
	}
	return Answer{}, a.report(c, o, rewards)
}

// rewardOf returns a reward as a share of a choice. A negative one is 0.
func rewardOf(field string, v *float64) (float64, error) {
	switch {
	case v == nil:
		return 0, api.Fieldf(field, "is missing")
	case !(*v >= -1 && *v <= 1):
		return 0, api.Fieldf(field, "%v: must be in [-1, 1]", *v)
	}
	return max(*v, 0), nil
}

func (a *Adapter) report(c Call, o *offer.Offer, rewards []api.Reward) error {
	return a.Engine.Reward(c.Context(), c.Placement(), o.Decision, rewards, c.Now())
}

// activate activates an event. Like a late reward, a late activation changes nothing.
func (a *Adapter) activate(c Call) (Answer, error) {
	o, err := a.event(c)
	if err != nil {
		return Answer{}, err
	}
	if err := a.Engine.Activate(c.Context(), c.Placement(), o.Decision, c.Now()); err != nil &&
		!errors.Is(err, engine.ErrWithdrawn) {
		return Answer{}, err
	}
	return Answer{}, nil
}
