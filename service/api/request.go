package api

// Request asks for a decision: which of the items to show.
type Request struct {
	Decision  string   `json:"decision_id,omitzero" maxLength:"128" doc:"the caller's id for the decision, of letters, digits, '.', '_', '-' and ':'; the same id and request have the same answer. If left out, the service makes one"`
	Items     []Item   `json:"items,omitzero" doc:"candidates with their features"`
	User      Values   `json:"shopper,omitzero" doc:"features of the user, by name"`
	MaxSize   int      `json:"max_size,omitzero" minimum:"1" doc:"the max number of items to show; the placement's max_size if left out"`
	MinSize   int      `json:"min_size,omitzero" minimum:"0" maximum:"1000" doc:"the min number of items to show, in addition to the placement's min_size"`
	Include   []string `json:"include,omitzero" doc:"ids of items that must be shown"`
	Exclude   []string `json:"exclude,omitzero" doc:"ids of items that must not be shown"`
	Limits    []Limit  `json:"limits,omitzero" doc:"limits in addition to the placement's"`
	Capacity  *float64 `json:"capacity,omitempty" minimum:"0" maximum:"1e9" doc:"the spaces of the items shown sum to at most this, in addition to the placement's capacity: a number with at most 6 decimals"`
	Slots     []Slot   `json:"slots,omitzero" doc:"places on a page, all of which are filled: the k-th item shown is in the k-th slot. They cannot be combined with min_size, max_size, include, limits and capacity"`
	Baseline  []string `json:"baseline,omitzero" doc:"the ids that the caller shows by itself, in display order, [] if it shows nothing: for the mode shadow, for experiments with a baseline or a holdout, and for the fallback baseline; without effect otherwise"`
	ShopperID string   `json:"shopper_id,omitzero" maxLength:"200" doc:"at most 200 bytes of UTF-8: who is shown the same variant of an experiment each time, such as a shopper's id. Required in the mode experiment, and of no effect in the others. The log keeps a hash of it"`
	Defer     bool     `json:"defer,omitzero" doc:"whether the decision waits for its outcome only after it is activated"`

	Candidates []string `json:"candidates,omitzero" doc:"ids of candidates in the placement's catalogue. Without candidates, a filter and items, all items of the catalogue are candidates"`
	Filter     string   `json:"filter,omitzero" maxLength:"4000" doc:"a condition on the candidates of the catalogue, such as price <= 20 and not (brand in [\"acme\"]): see the documentation of catalogues"`
	Strict     bool     `json:"strict,omitzero" doc:"whether an unknown or unavailable candidate, or a min that no page can meet, is an error; otherwise the answer names it"`
	Payload    bool     `json:"payload,omitzero" doc:"whether the answer has the stored payloads of the items shown"`
}

// Item is a candidate of a request.
type Item struct {
	ID       string   `json:"id" minLength:"1" maxLength:"200" doc:"at most 200 bytes of UTF-8"`
	Features Values   `json:"features,omitzero" doc:"numbers, strings and objects by the features' names"`
	Revenue  *float64 `json:"revenue,omitempty" minimum:"0" doc:"the revenue if it is taken; 1 if left out"`
	Space    *float64 `json:"space,omitempty" minimum:"0" maximum:"1e9" doc:"the space that it takes of a capacity: a number with at most 6 decimals; 1 if left out"`
}

// Slot is a place on a page.
type Slot struct {
	ID      string   `json:"id,omitzero" maxLength:"1024" doc:"names the slot in the answer; either all slots of a request have one, or none has"`
	Exclude []string `json:"exclude,omitzero" doc:"ids of items that must not be shown in it"`
}
