package api

// Request asks what to show.
type Request struct {
	Decision string   `json:"decision_id,omitzero" maxLength:"128" doc:"the caller's id for the decision, of letters, digits, '.', '_', '-' and ':'; the same id and request have the same answer. One is made if it is left out"`
	Items    []Item   `json:"items" minItems:"1" doc:"the candidates"`
	User     Values   `json:"user,omitzero" doc:"features of the user, by name"`
	Size     int      `json:"size,omitzero" minimum:"1" doc:"the most items to show; the placement's max_size if left out"`
	Include  []string `json:"include,omitzero" doc:"ids of items that must be shown"`
	Exclude  []string `json:"exclude,omitzero" doc:"ids of items that must not be shown"`
	AtMost   []Limit  `json:"at_most,omitzero" doc:"beside the limits of the placement"`
	Slots    []Slot   `json:"slots,omitzero" doc:"places that are all filled: the k-th item shown is in the k-th. They do not go together with size, include and at_most"`
	Baseline []string `json:"baseline,omitzero" doc:"what the caller shows in the mode shadow, in display order"`
	Defer    bool     `json:"defer,omitzero" doc:"whether the outcome is waited for only once the decision is activated"`
}

// Item is a candidate.
type Item struct {
	ID       string   `json:"id" minLength:"1" maxLength:"200"`
	Features Values   `json:"features,omitzero" doc:"numbers, strings and objects by the features' names"`
	Revenue  *float64 `json:"revenue,omitempty" minimum:"0" default:"1" doc:"what it earns if it is taken"`
}

// Slot is a place on a page.
type Slot struct {
	ID      string   `json:"id,omitzero" maxLength:"1024" doc:"is with its item in the answer; all slots of a request have one, or none has"`
	Exclude []string `json:"exclude,omitzero" doc:"ids of items that it does not take"`
}
