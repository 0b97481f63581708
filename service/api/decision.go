package api

import (
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Answer is the answer to a [Request]: the items to show.
type Answer struct {
	Decision           string   `json:"decision_id"`
	Assortment         []Shown  `json:"assortment" doc:"in display order"`
	OutsideProbability *float64 `json:"outside_probability" doc:"p(0|S), that nothing is taken; null if the policy has no estimate, and with a public key"`
	ExpectedRevenue    *float64 `json:"expected_revenue" doc:"R(S), from shoppers who take at most one unit. With baskets a page earns it times the mean number of units of those who take any. null if the policy has no estimate, and with a public key"`
	Propensity         *float64 `json:"propensity" doc:"π(S), the probability with which the set was chosen; null if it has no closed form"`
	PolicyEntry        uint64   `json:"policy_entry" doc:"the last entry of the log that the policy had learned from"`
	Variant            string   `json:"variant,omitzero" doc:"the variant of the experiment that the shopper is shown; holdout for a shopper who is held out"`

	Unmet []Unmet `json:"unmet,omitzero" doc:"rules of the request and lower bounds that the candidates and the other rules could not meet; the page has as many items as they allow"`

	CatalogueEntry uint64   `json:"catalogue_entry,omitzero" doc:"the last entry of the log that had changed the catalogue; left out if no candidate was from it"`
	Unknown        []string `json:"unknown,omitzero" doc:"candidates that the catalogue does not have, the first 100"`
	Unavailable    []string `json:"unavailable,omitzero" doc:"candidates that may not be shown now, the first 100"`
	Missing        int      `json:"missing,omitzero" doc:"the number of unknown and unavailable candidates"`

	Repeated bool `json:"-"` // this answer was given before, under the same decision id: the status was 200
}

// Unmet is a lower bound that no page could meet. An included item has the bound 1.
type Unmet struct {
	Rule    string `json:"rule" enum:"include,limit,min_size"`
	On      string `json:"on,omitzero" doc:"of a limit, the group, or the number of the request's limit; of an include, the item that the placement excludes"`
	Min     int    `json:"min" doc:"the bound"`
	Reached int    `json:"reached" doc:"the most items that a page could show"`
}

// Shown is an item that is shown.
type Shown struct {
	ID          string   `json:"id"`
	Slot        string   `json:"slot,omitzero" doc:"the id of its slot"`
	Position    int      `json:"position" minimum:"1"`
	Probability *float64 `json:"choice_probability" doc:"p(i|S), that it is taken; null if the policy has no estimate, and with a public key"`

	Payload jsontext.Value `json:"payload,omitzero" doc:"the payload that the catalogue stores, if the request asks for it"`
}

// AppendJSON appends the answer as json v2 encodes it. It writes the usual members by hand, in a third of the time.
func (a *Answer) AppendJSON(b []byte) ([]byte, error) {
	start, rare := len(b), a.Unknown != nil || a.Unavailable != nil || a.Missing != 0 || a.Unmet != nil
	var bad error
	text := func(before, s string) {
		var err error
		if b, err = jsontext.AppendQuote(append(b, before...), s); err != nil {
			bad = err
		}
	}
	number := func(before string, v *float64) {
		if b = append(b, before...); v == nil {
			b = append(b, "null"...)
			return
		}
		rare = rare || math.IsNaN(*v) || math.IsInf(*v, 0)
		b = jsontext.AppendFloat(b, *v, 64)
	}
	text(`{"decision_id":`, a.Decision)
	b = append(b, `,"assortment":[`...)
	for k := range a.Assortment {
		shown := &a.Assortment[k]
		rare = rare || shown.Slot != "" || shown.Payload != nil
		if k > 0 {
			b = append(b, ',')
		}
		text(`{"id":`, shown.ID)
		b = strconv.AppendInt(append(b, `,"position":`...), int64(shown.Position), 10)
		number(`,"choice_probability":`, shown.Probability)
		b = append(b, '}')
	}
	number(`],"outside_probability":`, a.OutsideProbability)
	number(`,"expected_revenue":`, a.ExpectedRevenue)
	number(`,"propensity":`, a.Propensity)
	b = strconv.AppendUint(append(b, `,"policy_entry":`...), a.PolicyEntry, 10)
	if a.Variant != "" {
		text(`,"variant":`, a.Variant)
	}
	if a.CatalogueEntry != 0 {
		b = strconv.AppendUint(append(b, `,"catalogue_entry":`...), a.CatalogueEntry, 10)
	}
	if rare || bad != nil {
		all, err := json.Marshal(a, json.Deterministic(true))
		return append(b[:start], all...), err
	}
	return append(b, '}'), nil
}

// Items returns the ids of the items shown, in display order.
func (a *Answer) Items() []string {
	ids := make([]string, len(a.Assortment))
	for k := range ids {
		ids[k] = a.Assortment[k].ID
	}
	return ids
}

// Decision is a decision that the service remembers, and its outcome.
type Decision struct {
	Answer
	Placement string    `json:"placement"`
	Source    string    `json:"source" enum:"policy,chance,baseline,import" doc:"how the set was found"`
	Time      time.Time `json:"time"`
	Status    string    `json:"status" enum:"open,chosen,expired,deferred,withdrawn,evicted,late" doc:"late: the outcome came after the decision had expired, or had been withdrawn or evicted. It counts, and the policy does not learn from it"`
	Choice    *string   `json:"choice" doc:"the item that was taken, or the first one on the page of several, as reported; null for none"`
	Choices   []Choice  `json:"choices,omitempty" doc:"all items that were taken, with their quantities and values as reported; left out for one unit of one item at its revenue"`

	Earned      float64      `json:"earned" doc:"the revenue of what was taken, with its corrections"`
	Corrections []Correction `json:"corrections,omitempty" doc:"corrections in the order in which they came; items of them that the outcome lacks were bought later"`
}

// Outcome reports the customer's choice, or choices.
type Outcome struct {
	Choice  *string  `json:"choice" required:"false" minLength:"1" doc:"the id of the item that was taken, one unit at its revenue; null for none, or if choices lists them. One of the two is required"`
	Choices []Choice `json:"choices" required:"false" nullable:"true" maxItems:"1000" doc:"in place of choice: the items that were taken, each once; [] or null for none. Null next to a choice is ignored"`
}

// MarshalJSONTo implements json.MarshalerTo. An outcome without choices always names its choice.
func (o Outcome) MarshalJSONTo(out *jsontext.Encoder) error {
	if o.Choices == nil {
		return json.MarshalEncode(out, struct {
			Choice *string `json:"choice"`
		}{o.Choice})
	}
	return json.MarshalEncode(out, struct {
		Choices []Choice `json:"choices"`
	}{o.Choices})
}

// Choice is an item that was taken.
type Choice struct {
	Item     string   `json:"item" minLength:"1" doc:"the id of an item that was shown"`
	Quantity *int     `json:"quantity,omitempty" minimum:"1" maximum:"1000" doc:"the units that were taken; 1 if left out. The policy learns from the first 20 units of a page"`
	Value    *float64 `json:"value,omitempty" minimum:"0" maximum:"1e12" doc:"what all units earned together; the item's revenue times the quantity if left out"`
}

// LateOutcome answers an outcome that came too late to be learned. Its revenue counts all the same.
type LateOutcome struct {
	Status  string `json:"status" enum:"late" doc:"the decision's status from now on"`
	Learned bool   `json:"learned" doc:"false: the policy has learned already that nothing was taken, or learns nothing from the decision"`
	Detail  string `json:"detail"`
}

// Erasure asks to erase a shopper.
type Erasure struct {
	ShopperID string `json:"shopper_id" minLength:"1" maxLength:"200" doc:"of the shopper's requests"`
}

// Correction changes a decision's earnings after its outcome: a return, a refund, a sale that did not happen, another item
// of the page that was bought later. Reports change with it. The policy does not learn from it.
type Correction struct {
	ID    string   `json:"id" minLength:"1" maxLength:"128" doc:"the caller's id for the correction, of letters, digits, '.', '_', '-' and ':'. A correction that is sent again under its id changes nothing"`
	Item  string   `json:"item" doc:"the id of an item that was shown"`
	Value *float64 `json:"value,omitempty" minimum:"-1e12" maximum:"1e12" doc:"what is added to the revenue, negative for a return, positive for a subscription's next month. If the item was not taken before, it counts as taken from now on, for a value of at least 0. If left out, the sale is withdrawn: the item counts as not taken, and has earned nothing"`
}

// Rewards report a decision's outcome as numbers, for callers without a choice to report: clicks that count in part,
// minutes watched, a return of goods.
type Rewards struct {
	Rewards []Reward `json:"rewards" minItems:"1" maxItems:"1000" doc:"of items shown, all of them or some; the first reward of an item counts"`
}

// Reward is an item's reward, as a share of a choice.
type Reward struct {
	Item  string  `json:"item" doc:"its id"`
	Value float64 `json:"value" minimum:"0" maximum:"1"`
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. A value that is left out becomes NaN.
func (r *Reward) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	type reward Reward // without this method
	v := reward{Value: math.NaN()}
	if err := json.UnmarshalDecode(in, &v); err != nil {
		return err
	}
	*r = Reward(v)
	return nil
}

// Request asks for a decision: which of the items to show.
type Request struct {
	Decision  string   `json:"decision_id,omitzero" maxLength:"128" doc:"the caller's id for the decision, of letters, digits, '.', '_', '-' and ':'; the same id and request have the same answer. Whoever knows an id may report its outcome, so draw it by chance, such as a UUID. If left out, the service draws one"`
	Items     []Item   `json:"items,omitzero" doc:"candidates with their features. An empty list is an error without candidates or a filter"`
	User      Values   `json:"shopper,omitzero" doc:"features of the shopper, by name"`
	MaxSize   int      `json:"max_size,omitzero" minimum:"1" doc:"the max number of items to show; the placement's max_size if left out"`
	MinSize   int      `json:"min_size,omitzero" minimum:"0" maximum:"1000" doc:"the min number of items to show, in addition to the placement's min_size"`
	Include   []string `json:"include,omitzero" doc:"ids of items that must be shown: 422 if one is not a candidate, such as an item that is not available now"`
	Exclude   []string `json:"exclude,omitzero" doc:"ids of items that must not be shown"`
	Limits    []Limit  `json:"limits,omitzero" doc:"limits in addition to the placement's"`
	Capacity  *float64 `json:"capacity,omitempty" minimum:"0" maximum:"1e9" doc:"the spaces of the items shown sum to at most this, in addition to the placement's capacity: a number with at most 6 decimals"`
	Slots     []Slot   `json:"slots,omitzero" minItems:"1" doc:"places on a page, all of which are filled: the k-th item shown is in the k-th slot. They cannot be combined with min_size, max_size, include, limits and capacity"`
	Baseline  []string `json:"baseline,omitzero" doc:"the ids that the caller shows by itself, in display order, [] if it shows nothing: used in the mode shadow, by experiments with a baseline or a holdout, and by the fallback baseline. It is shown as sent: only the placement's max_size, the number of slots and the candidates bind it. The request gets 422 if an id is not a candidate, even where the baseline is not used"`
	ShopperID string   `json:"shopper_id,omitzero" maxLength:"200" doc:"at most 200 bytes of UTF-8: who is shown the same variant of an experiment each time, such as a shopper's id. Required in the mode experiment; a placement with shopper_history also remembers by it what the shopper has seen and bought, and others ignore it. With shopper_history the log keeps a hash of it under a key that an erasure deletes, and a repeated decision_id with another shopper gets 409; without it an experiment or a hold-out logs an unkeyed hash, and a repeated decision_id gets the first answer whoever the shopper is"`
	Defer     bool     `json:"defer,omitzero" doc:"whether the decision waits for its outcome only after it is activated"`

	Candidates []string `json:"candidates,omitzero" minItems:"1" doc:"ids of candidates in the placement's catalogue. Without candidates, a filter and items, all items of the catalogue are candidates"`
	Filter     string   `json:"filter,omitzero" maxLength:"4000" doc:"a condition on the candidates of the catalogue, not on the request's own items, such as price <= 20 and not (brand in [\"acme\"]). In a placement with shopper_history, seen and bought are how often the shopper has seen and bought the item, and the page is empty if such a filter leaves nothing: see the documentation of catalogues"`
	Strict     bool     `json:"strict,omitzero" doc:"whether an unknown or unavailable candidate, an included item that the placement excludes, or a min that no page can meet, is an error; otherwise the answer names it"`
	Payload    bool     `json:"payload,omitzero" doc:"whether the answer has the stored payloads of the items shown"`

	Public bool `json:"-"` // came with a public key: the filter must not read the shop's private values
}

// Item is a candidate of a request.
type Item struct {
	ID       string   `json:"id" minLength:"1" maxLength:"1024" doc:"at most 1024 bytes of UTF-8"`
	Features Values   `json:"features,omitzero" doc:"numbers, strings and objects by the features' names"`
	Revenue  *float64 `json:"revenue,omitempty" minimum:"0" maximum:"1e12" doc:"the revenue if it is taken; 1 if left out"`
	Space    *float64 `json:"space,omitempty" minimum:"0" maximum:"1e9" doc:"the space that it takes of a capacity: a number with at most 6 decimals; 1 if left out"`
}

// Slot is a place on a page.
type Slot struct {
	ID      string   `json:"id,omitzero" maxLength:"1024" doc:"names the slot in the answer; either all slots of a request have one, or none has"`
	Exclude []string `json:"exclude,omitzero" doc:"ids of items that must not be shown in it"`
}
