package personalizer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

const (
	exampleRank      = `{"contextFeatures":[{"timeOfDay":"morning"},{"device":{"kind":"mobile"}}],"actions":[{"id":"pasta","features":[{"taste":"salty","spice":"medium"},{"nutrition":5}]},{"id":"ice cream","features":[{"taste":"sweet","spice":"none"},{"nutrition":2}]}],"excludedActions":["ice cream"],"eventId":"abc","deferActivation":false}`
	exampleSlotsRank = `{"contextFeatures":[{"timeOfDay":"morning"}],"actions":[{"id":"boots","features":[{"price":80}]},{"id":"sandals","features":[{"price":30}]}],"slots":[{"id":"hero","features":[{"size":"large"}],"excludedActions":["sandals"],"baselineAction":"boots"},{"id":"footer","baselineAction":"sandals"}],"eventId":"def","deferActivation":false}`
)

type rankDocument struct {
	ContextFeatures []map[string]any `json:"contextFeatures,omitempty" nullable:"true" doc:"any features of the context"`
	Actions         []actionDocument `json:"actions" minItems:"1"`
	ExcludedActions []string         `json:"excludedActions,omitempty" nullable:"true"`
	EventID         string           `json:"eventId,omitempty" nullable:"true" maxLength:"256" doc:"one is made where it is left out"`
	DeferActivation bool             `json:"deferActivation,omitempty" nullable:"true"`
}

type actionDocument struct {
	ID       string           `json:"id"`
	Features []map[string]any `json:"features" doc:"any features of the action"`
}

type rankedDocument struct {
	Ranking        []rankedAction `json:"ranking"`
	EventID        string         `json:"eventId"`
	RewardActionID string         `json:"rewardActionId"`
}

type rankedAction struct {
	ID          string   `json:"id"`
	Probability *float64 `json:"probability,omitempty" doc:"that it is the one of rewardActionId; left out where it is not known"`
}

type slotsRankDocument struct {
	ContextFeatures []map[string]any   `json:"contextFeatures,omitempty" nullable:"true"`
	Actions         []actionDocument   `json:"actions" minItems:"1"`
	Slots           []pageSlotDocument `json:"slots" minItems:"1"`
	EventID         string             `json:"eventId,omitempty" nullable:"true" maxLength:"256"`
	DeferActivation bool               `json:"deferActivation,omitempty" nullable:"true"`
}

type pageSlotDocument struct {
	ID              string           `json:"id"`
	Features        []map[string]any `json:"features,omitempty" doc:"accepted, and not used"`
	ExcludedActions []string         `json:"excludedActions,omitempty" nullable:"true"`
	BaselineAction  string           `json:"baselineAction"`
}

type slotsRankedDocument struct {
	Slots   []filledSlot `json:"slots"`
	EventID string       `json:"eventId"`
}

type filledSlot struct {
	ID             string `json:"id"`
	RewardActionID string `json:"rewardActionId"`
}

type eventRewardDocument struct {
	Value *float64 `json:"value" nullable:"false" minimum:"-1" maximum:"1"`
}

type slotRewardsDocument struct {
	Reward bounded[slotReward] `json:"reward"`
}

type slotReward struct {
	SlotID string   `json:"slotId"`
	Value  *float64 `json:"value" nullable:"false" minimum:"-1" maximum:"1"`
}

// rankQuery is a Rank of either kind, with undecoded features.
type rankQuery struct {
	ContextFeatures jsontext.Value      `json:"contextFeatures"`
	Actions         bounded[rankAction] `json:"actions"`
	ExcludedActions bounded[string]     `json:"excludedActions"`
	Slots           bounded[rankSlot]   `json:"slots"`
	EventID         string              `json:"eventId"`
	DeferActivation bool                `json:"deferActivation"`
}

type rankAction struct {
	ID       string         `json:"id"`
	Features jsontext.Value `json:"features"`
}

type rankSlot struct {
	ID              string          `json:"id"`
	ExcludedActions bounded[string] `json:"excludedActions"`
	BaselineAction  string          `json:"baselineAction"`
}

// bounded is a list that fails to decode before it takes much more memory than a placement accepts.
type bounded[T any] []T

const maxList = 10_000

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *bounded[T]) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	switch token, err := in.ReadToken(); {
	case err != nil:
		return err
	case token.Kind() == 'n':
		return nil
	case token.Kind() != '[':
		return errors.New("wrong type: want a list")
	}
	for in.PeekKind() != ']' {
		if len(*l) == maxList {
			return api.Fieldf(string(in.StackPointer().Parent()), "has more than %d elements", maxList)
		}
		var v T
		if err := json.UnmarshalDecode(in, &v); err != nil {
			return err
		}
		*l = append(*l, v)
	}
	_, err := in.ReadToken()
	return err
}

const maxEvent = 256 // characters of the id of an event or a slot

func (q *rankQuery) checkEvent() error {
	if utf8.RuneCountInString(q.EventID) > maxEvent {
		return api.Fieldf("/eventId", "must have at most %d characters", maxEvent)
	}
	return nil
}

// ids returns the set of the ids of the actions.
func (q *rankQuery) ids() map[string]bool {
	ids := map[string]bool{}
	for i := range q.Actions {
		ids[q.Actions[i].ID] = true
	}
	return ids
}

// single checks a Rank without slots and gives it a single slot, with the first action that is not excluded as
// baseline.
func (q *rankQuery) single() error {
	if err := q.checkEvent(); err != nil {
		return err
	}
	ids := q.ids()
	for _, id := range q.ExcludedActions {
		delete(ids, id)
	}
	if len(ids) == 0 && len(q.Actions) > 0 {
		return api.Fieldf("/excludedActions", "excludes all actions")
	}
	first := slices.IndexFunc(q.Actions, func(a rankAction) bool { return ids[a.ID] })
	q.Slots = []rankSlot{{ExcludedActions: q.ExcludedActions}}
	if first >= 0 {
		q.Slots[0].BaselineAction = q.Actions[first].ID
	}
	return nil
}

func (q *rankQuery) checkSlots() error {
	if err := q.checkEvent(); err != nil {
		return err
	}
	if len(q.Slots) == 0 {
		return api.Fieldf("/slots", "must have at least one slot")
	}
	actions, slots, baselines := q.ids(), map[string]bool{}, map[string]bool{}
	for k, s := range q.Slots {
		field := fmt.Sprintf("/slots/%d", k)
		switch base := s.BaselineAction; {
		case s.ID == "" || utf8.RuneCountInString(s.ID) > maxEvent:
			return api.Fieldf(field+"/id", "must have from 1 to %d characters", maxEvent)
		case slots[s.ID]:
			return api.Fieldf(field+"/id", "is that of an earlier slot too")
		case base == "":
			return api.Fieldf(field+"/baselineAction", "is missing")
		case !actions[base]:
			return api.Fieldf(field+"/baselineAction", "is not among the actions")
		case baselines[base]:
			return api.Fieldf(field+"/baselineAction", "is that of an earlier slot too")
		case slices.Contains(s.ExcludedActions, base):
			return api.Fieldf(field+"/baselineAction", "is excluded from the slot")
		}
		slots[s.ID], baselines[s.BaselineAction] = true, true
	}
	return nil
}

// request returns the engine's request, without the decision's id.
func (q *rankQuery) request(c *setup.Config) (*api.Request, error) {
	items, users := FeaturesOf(c, true), FeaturesOf(c, false)
	r := &api.Request{Items: make([]api.Item, len(q.Actions)), Defer: q.DeferActivation}
	var err error
	if r.User, err = users.values(q.ContextFeatures, "", "/contextFeatures"); err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(q.Actions))
	for i := range q.Actions {
		a := &q.Actions[i]
		there[a.ID] = true
		r.Items[i].ID = a.ID
		if r.Items[i].Features, err = items.values(a.Features, a.ID, fmt.Sprintf("/actions/%d/features",
			i)); err != nil {
			return nil, err
		}
	}
	for _, s := range q.Slots {
		slot := api.Slot{ID: s.ID}
		for _, id := range s.ExcludedActions {
			if there[id] { // a list of sold-out items can name unknown ones
				slot.Exclude = append(slot.Exclude, id)
			}
		}
		r.Slots = append(r.Slots, slot)
		if c.Mode == api.Shadow || c.Fallback == api.FallbackBaseline {
			r.Baseline = append(r.Baseline, s.BaselineAction)
		}
	}
	return r, nil
}

// Features are a placement's features of items, or of the user, as the features of a Rank.
type Features struct {
	kinds  map[string]string // by name
	item   bool
	rest   string // the object feature for members without a feature of their own, or ""
	logged bool   // whether the Rank comes from a log: values that do not fit are accepted
}

// Object features for the members of a Rank that no feature is named after.
const (
	RestOfActions = "action"
	RestOfContext = "context"
)

// FeaturesOf returns the features of a placement's items, or of its users.
func FeaturesOf(c *setup.Config, item bool) Features {
	from, rest := "shopper", RestOfContext
	if item {
		from, rest = "item", RestOfActions
	}
	f := Features{kinds: map[string]string{}, item: item}
	for i := range c.Features {
		if its := &c.Features[i]; its.From == from {
			f.kinds[its.Name] = its.Kind
			if its.Name == rest && its.Kind == "object" {
				f.rest = rest
			}
		}
	}
	return f
}

// Logged returns the values of a Rank in a log of Personalizer, from the list of features of an action with an id, or
// of the context. Members without a feature are left out, and values of another kind stay as they are.
func (f Features) Logged(features jsontext.Value, id string) (api.Values, error) {
	f.logged = true
	return f.values(features, id, "")
}

// values returns the values in a list of objects. A member is the feature of its name, or else part of the
// rest. An action's id is the feature "id" if that is a category or a text.
func (f *Features) values(features jsontext.Value, id, field string) (api.Values, error) {
	values := api.Values{}
	rest := []byte{'['}
	switch kind := features.Kind(); {
	case features == nil, kind == 'n':
		features = jsontext.Value("[]")
	case kind != '[':
		return nil, api.Fieldf(field, "must be a list")
	}
	in := jsontext.NewDecoder(bytes.NewBuffer(features)) // valid JSON: rankQuery decoded it
	_, _ = in.ReadToken()
	for in.PeekKind() != ']' {
		if in.PeekKind() != '{' {
			_ = in.SkipValue()
			return nil, api.Fieldf(field+string(in.StackPointer()), "must be an object")
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		var err error
		if values, rest, err = f.members(values, rest, in, field); err != nil {
			return nil, err
		}
	}
	if f.rest != "" {
		values = append(values, api.Object(f.rest, string(append(rest, ']'))))
	}
	if kind := f.kinds["id"]; f.item && (kind == "category" || kind == "text") {
		values = append(values, api.Text("id", id))
	}
	return values, nil
}

// members decodes the next object of a list.
func (f *Features) members(values api.Values, rest []byte, in *jsontext.Decoder,
	field string) (api.Values, []byte, error) {
	_, _ = in.ReadToken()
	rest = append(rest, '{')
	for first := true; in.PeekKind() == '"'; {
		quoted, _ := in.ReadValue()
		quoted = slices.Clone(quoted)
		value, _ := in.ReadValue()
		text, _ := jsontext.AppendUnquote(nil, quoted)
		name := string(text)
		kind, ok := f.kinds[name]
		switch {
		case ok && name != f.rest && (name != "id" || !f.item):
			if slices.ContainsFunc(values, func(v api.Value) bool { return v.Name == name && v.Kind != api.Missing }) {
				if f.logged {
					continue
				}
				return nil, nil, api.Fieldf(field+string(in.StackPointer()), "is in an earlier object too")
			}
			v, ok := valueOf(name, kind, value)
			if !ok && f.logged {
				v, ok = valueOf(name, map[jsontext.Kind]string{'0': "number", '"': "text", 't': "category",
					'f': "category", '{': "object", '[': "object"}[value.Kind()], value)
			}
			if !ok {
				return nil, nil, api.Fieldf(field+string(in.StackPointer()), "is of another type than the "+
					"placement's feature, which is of the kind %q", kind)
			}
			values = append(values, v)
		case f.rest == "" && f.logged:
		case f.rest == "":
			return nil, nil, api.Fieldf(field+string(in.StackPointer()), "the placement has no such feature, and "+
				"no object %q or %q for others", RestOfActions, RestOfContext)
		default:
			if !first {
				rest = append(rest, ',')
			}
			first = false
			rest = append(append(append(rest, quoted...), ':'), value...)
		}
	}
	_, _ = in.ReadToken()
	return values, append(rest, '}'), nil
}

// valueOf returns a member as the value of a feature of the kind.
func valueOf(name, of string, v jsontext.Value) (api.Value, bool) {
	kind := v.Kind()
	switch {
	case kind == 'n':
		return api.Value{Name: name}, true
	case of == "object" && (kind == '{' || kind == '['):
		return api.Object(name, string(v)), true
	case of == "number" && kind == '0':
		x, err := strconv.ParseFloat(string(v), 64)
		return api.Number(name, x), err == nil
	case (of == "category" || of == "text") && kind == '"':
		text, err := jsontext.AppendUnquote(nil, v)
		return api.Text(name, string(text)), err == nil
	case of == "category" && (kind == 't' || kind == 'f'):
		return api.Text(name, string(v)), true
	}
	return api.Value{}, false
}

// probabilities returns each action's probability of being shown, or nil if unknown. Let N' actions not be excluded.
// The action shown has its propensity π. If it is the policy's own choice, the others share the rest equally, (1 −
// π)/(N' − 1) each; otherwise the others have π, and the policy's own choice the rest.
func (q *rankQuery) probabilities(o *offer.Offer) []float64 {
	p := make([]float64, len(q.Actions))
	shown := o.IDs()[0]
	own := shown
	if o.Own != nil {
		own = o.Own[0]
	}
	left := 1.0
	pi := o.Propensity
	switch {
	case o.Mode == offer.ByBaseline:
		pi = 1
	case !o.Certain || pi == 0:
		return nil
	}
	var others []int
	mine := -1
	for i := range q.Actions {
		switch id := q.Actions[i].ID; {
		case id == shown:
			p[i] = pi
			left -= pi
		case id == own:
			mine = i
		case !slices.Contains(q.ExcludedActions, id):
			others = append(others, i)
		}
	}
	for _, i := range others {
		if p[i] = left / float64(len(others)); mine >= 0 {
			p[i] = pi
		}
	}
	if mine >= 0 {
		p[mine] = left - pi*float64(len(others))
	}
	return p
}

// ranked returns the answer to a Rank: all actions, first the one to show, and then the others by decreasing
// probability, in the order of the request if it is equal.
func (q *rankQuery) ranked(o *offer.Offer) *rankedDocument {
	p, shown := q.probabilities(o), o.IDs()[0]
	r := &rankedDocument{EventID: q.EventID, RewardActionID: shown}
	for i, a := range q.Actions {
		action := rankedAction{ID: a.ID}
		if p != nil {
			action.Probability = &p[i]
		}
		r.Ranking = append(r.Ranking, action)
	}
	before := func(a rankedAction) float64 {
		switch {
		case a.ID == shown:
			return 2
		case a.Probability != nil:
			return *a.Probability
		}
		return 0
	}
	slices.SortStableFunc(r.Ranking, func(a, b rankedAction) int { return cmp.Compare(before(b), before(a)) })
	return r
}

// filled returns the answer to a Rank with slots.
func (q *rankQuery) filled(o *offer.Offer) *slotsRankedDocument {
	r := &slotsRankedDocument{EventID: q.EventID}
	for k, id := range o.IDs() {
		r.Slots = append(r.Slots, filledSlot{q.Slots[k].ID, id})
	}
	return r
}
