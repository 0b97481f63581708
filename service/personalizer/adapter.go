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
	"net/url"
	"reflect"
	"slices"
	"strings"

	"vitrine/service/api"
	"vitrine/service/decision"
)

// Adapter answers the calls of the contract with an engine.
type Adapter struct {
	Engine *decision.Engine
	Create bool // whether the first Rank at the root creates the placement [Placement]
}

// Call is a request that the server has authorised.
type Call interface {
	Context() context.Context
	PathValue(name string) string
	Now() int64 // when the request came, Unix nanoseconds

	// Decode decodes the JSON body. Like Personalizer it ignores unknown keys.
	Decode(body any) error

	// Reserve reserves memory for the work on the request, in addition to its body, and replaces an earlier
	// reservation. The server frees it.
	Reserve(bytes int64) error
}

// Route is a line of the table of routes. The method of all is POST.
type Route struct {
	Path        string
	ID, Summary string       // for the OpenAPI document
	Body        reflect.Type // of the request; nil if it is not read
	Example     string       // a body, JSON
	Answer      reflect.Type // of a Rank; nil for other calls, whose answer is empty
	Invalid     string       // the error code of invalid requests

	// Handle returns the answer, or nil for an empty one.
	Handle func(Call) (answer any, err error)
}

// Placement is the placement of the routes at the root.
const Placement = "personalizer"

// KeyHeader is the header in which the contract has API keys.
const KeyHeader = "Ocp-Apim-Subscription-Key"

var versions = []string{"v1.0", "v1.1-preview.1", "v1.1-preview.2", "v1.1-preview.3"}

// ErrVersion is returned if the version in a path is unknown, or has no multi-slot calls.
var ErrVersion = fmt.Errorf("there is nothing at this path: the versions are %q, and multi-slot ones after the first", versions)

// Routes returns the routes of the contract, at the root for one placement and below each
// placement: a resource of Personalizer is a placement here.
func (a *Adapter) Routes() []Route {
	var list []Route
	for _, at := range []struct{ prefix, id, where string }{
		{"", "personalizer", ""},
		{"/v1/placements/{name}", "placementPersonalizer", ", for a placement"},
	} {
		base := at.prefix + "/personalizer/{version}"
		for _, rt := range []Route{
			{
				Path: "/rank", ID: "Rank", Summary: "Rank", Invalid: "InvalidRankRequest", Handle: a.rank,
				Body: reflect.TypeFor[rankDocument](), Example: exampleRank, Answer: reflect.TypeFor[rankedDocument](),
			},
			{
				Path: "/events/{event}/reward", ID: "Reward", Summary: "Reward", Invalid: "InvalidRewardRequest", Handle: a.reward,
				Body: reflect.TypeFor[eventRewardDocument](), Example: `{"value":1}`,
			},
			{Path: "/events/{event}/activate", ID: "Activate", Summary: "Activate", Invalid: invalidActivate, Handle: a.activate},
			{
				Path: "/multislot/rank", ID: "RankSlots", Summary: "multi-slot Rank", Invalid: "InvalidRankRequest", Handle: a.rankSlots,
				Body: reflect.TypeFor[slotsRankDocument](), Example: exampleSlotsRank, Answer: reflect.TypeFor[slotsRankedDocument](),
			},
			{
				Path: "/multislot/events/{event}/reward", ID: "RewardSlots", Summary: "multi-slot Reward", Invalid: "InvalidRewardRequest", Handle: a.rewardSlots,
				Body: reflect.TypeFor[slotRewardsDocument](), Example: `{"reward":[{"slotId":"hero","value":1}]}`,
			},
			{Path: "/multislot/events/{event}/activate", ID: "ActivateSlots", Summary: "multi-slot Activate", Invalid: invalidActivate, Handle: a.activate},
		} {
			rt.Handle = ofVersion(rt.Handle, strings.HasPrefix(rt.Path, "/multislot/"))
			rt.Path, rt.ID = base+rt.Path, at.id+rt.ID
			rt.Summary = "Azure Personalizer's " + rt.Summary + at.where + "."
			list = append(list, rt)
		}
	}
	return list
}

// ofVersion refuses calls that do not exist in the version in the path.
func ofVersion(handle func(Call) (any, error), multislot bool) func(Call) (any, error) {
	return func(c Call) (any, error) {
		v := c.PathValue("version")
		if !slices.Contains(versions, v) || multislot && v == "v1.0" {
			return nil, ErrVersion
		}
		return handle(c)
	}
}

// Joined removes a double slash before Personalizer's path from a request. The service's portal showed
// endpoints with a slash at the end, and clients add another one.
func Joined(r *http.Request) *http.Request {
	const twice = "//personalizer/"
	if !strings.Contains(r.URL.Path, twice) {
		return r
	}
	at := *r.URL
	at.RawPath = strings.Replace(at.EscapedPath(), twice, twice[1:], 1)
	at.Path, _ = url.PathUnescape(at.RawPath) // the path was escaped correctly
	again := *r
	again.URL = &at
	return &again
}

// defaults is the configuration of the placement that a Rank creates, with the defaults of Personalizer: a
// fifth of the answers explore, and rewards may come for ten minutes. Its features are any JSON.
const defaults = `{
	"max_size": 10, "max_items": 50, "mode": "explore", "explore_share": 0.2, "record": "shown", "attribution_window": "10m",
	"features": [
		{"name": "id", "kind": "category", "buckets": 32},
		{"name": "action", "kind": "object", "buckets": 16},
		{"name": "context", "kind": "object", "from": "user", "buckets": 16},
		{"name": "action in context", "kind": "cross", "of": ["action", "context"]}
	],
	"policy": {"name": "eps-greedy-mnl", "epsilon": 0, "floor": 0}
}`

// placementOf returns the placement of a path.
func placementOf(c Call) string { return cmp.Or(c.PathValue("name"), Placement) }

// config returns the placement of a Rank and its configuration.
func (a *Adapter) config(c Call) (name string, config *decision.Config, err error) {
	name = placementOf(c)
	config, err = a.Engine.Config(name)
	if !errors.Is(err, decision.ErrNotFound) || c.PathValue("name") != "" {
		return name, config, err
	}
	if !a.Create {
		return name, nil, fmt.Errorf("placement %q: %w: make it with a PUT, or set personalizer = true in the configuration of the service, and the first Rank makes it", name, decision.ErrNotFound)
	}
	if err := a.Engine.Create(c.Context(), name, []byte(defaults), c.Now()); err != nil {
		return name, nil, err
	}
	config, err = a.Engine.Config(name)
	return name, config, err
}

// rank answers a Rank without slots, which is treated as one with a single slot.
func (a *Adapter) rank(c Call) (any, error) {
	var q rankQuery
	if err := c.Decode(&q); err != nil {
		return nil, err
	}
	if err := q.single(); err != nil {
		return nil, err
	}
	d, err := a.decide(c, &q)
	if err != nil {
		return nil, err
	}
	return q.ranked(d), nil
}

// rankSlots answers a Rank with slots.
func (a *Adapter) rankSlots(c Call) (any, error) {
	var q rankQuery
	if err := c.Decode(&q); err != nil {
		return nil, err
	}
	if err := q.checkSlots(); err != nil {
		return nil, err
	}
	d, err := a.decide(c, &q)
	if err != nil {
		return nil, err
	}
	return q.filled(d), nil
}

// decide decides a Rank with the present schema of the placement. It gives the event an id if it has none.
func (a *Adapter) decide(c Call, q *rankQuery) (*decision.Answer, error) {
	if q.EventID == "" {
		q.EventID = newEvent()
	}
	name, config, err := a.config(c)
	if err != nil {
		return nil, err
	}
	if err := c.Reserve(config.RequestSize(len(q.Actions))); err != nil {
		return nil, err
	}
	r, err := q.request(config)
	if err != nil {
		return nil, err
	}
	r.Decision = decisionOf(name, q.EventID)
	return a.Engine.Decide(c.Context(), name, r, c.Now())
}

// decisionOf returns the id of an event's decision. Events of different placements are distinct. Ids that a
// decision cannot have are replaced by their SHA-256, and so are ids with a ':', which could be confused with
// those of another placement, because "a:b" is a legal name.
func decisionOf(placement, event string) string {
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

// event returns the answer to the Rank of the event in the path.
func (a *Adapter) event(c Call) (*decision.Answer, error) {
	name := placementOf(c)
	d, err := a.Engine.Decision(c.Context(), name, decisionOf(name, c.PathValue("event")))
	if err != nil && !errors.Is(err, decision.ErrNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("event: %w: there is none of this id, or there no longer is", decision.ErrNotFound)
	}
	return d.Answer, nil
}

func (a *Adapter) reward(c Call) (any, error) {
	var q eventRewardDocument
	if err := c.Decode(&q); err != nil {
		return nil, err
	}
	value, err := rewardOf("/value", q.Value)
	if err != nil {
		return nil, err
	}
	d, err := a.event(c)
	if err != nil {
		return nil, err
	}
	if d.Slots != nil || len(d.Shown) != 1 {
		return nil, &api.FieldError{Message: "the event has slots: tell its rewards to multislot/events"}
	}
	return nil, a.report(c, d, []api.Reward{{Item: d.Shown[0], Value: value}})
}

func (a *Adapter) rewardSlots(c Call) (any, error) {
	var q slotRewardsDocument
	if err := c.Decode(&q); err != nil {
		return nil, err
	}
	if len(q.Reward) == 0 {
		return nil, &api.FieldError{Field: "/reward", Message: "must have at least one reward"}
	}
	d, err := a.event(c)
	if err != nil {
		return nil, err
	}
	if len(d.Slots) != len(d.Shown) {
		return nil, &api.FieldError{Message: "the event has no slots: tell its reward to events"}
	}
	rewards := make([]api.Reward, len(q.Reward))
	for k, w := range q.Reward {
		field := fmt.Sprintf("/reward/%d", k)
		at := slices.Index(d.Slots, w.SlotID)
		if at < 0 {
			return nil, &api.FieldError{Field: field + "/slotId", Message: "the event has no such slot"}
		}
		value, err := rewardOf(field+"/value", w.Value)
		if err != nil {
			return nil, err
		}
		rewards[k] = api.Reward{Item: d.Shown[at], Value: value}
	}
	return nil, a.report(c, d, rewards)
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

func (a *Adapter) report(c Call, d *decision.Answer, rewards []api.Reward) error {
	return a.Engine.Reward(c.Context(), d.Placement, d.Decision, rewards, c.Now())
}

// activate activates an event. Like a late reward, a late activation changes nothing.
func (a *Adapter) activate(c Call) (any, error) {
	d, err := a.event(c)
	if err != nil {
		return nil, err
	}
	if err := a.Engine.Activate(c.Context(), d.Placement, d.Decision, c.Now()); err != nil && !errors.Is(err, decision.ErrLate) {
		return nil, err
	}
	return nil, nil
}
