package api

import "time"

// Event is a log entry in the stream of events. The kind, which is also the server-sent event's name, determines its
// fields next to Time and Placement:
//
//	placement-put       config
//	placement-deleted, alarm-cleared
//	offered             decision_id, candidates, source, policy_entry, shown
//	chosen              decision_id, position, taken
//	items-declined      decision_id, positions
//	late-outcome        decision_id, position, taken, value
//	corrected           decision_id, correction, position, value
//	activated, expired, evicted  decision_id
//	version-saved       version, note
//	rolled-back         version, config if it is another one
//	learner-reset, relearning-begun, learner-swapped, learner-adopted  config
//	relearning-ended    note
//	items-changed       items
//	category-values-added  feature, values
//	clock-moved         seconds
type Event struct {
	Time        time.Time  `json:"time"`
	Placement   string     `json:"placement"`
	By          string     `json:"by,omitzero" doc:"the name of the API key that asked for a change"`
	Config      *Placement `json:"config,omitempty"`
	Decision    string     `json:"decision_id,omitzero"`
	Candidates  int        `json:"candidates,omitzero" doc:"items of the request"`
	Source      string     `json:"source,omitzero" enum:"policy,chance,baseline"`
	PolicyEntry uint64     `json:"policy_entry,omitzero"`
	Shown       []string   `json:"shown,omitzero" doc:"ids in display order"`
	Position    *int       `json:"position,omitempty" doc:"of the item that was taken, or the first one of several; 0 for none"`
	Taken       []Taken    `json:"taken,omitempty" doc:"all that was taken; left out for nothing, and for one unit of one item at its revenue"`
	Correction  string     `json:"correction,omitzero" doc:"the caller's id of a correction"`
	Value       *float64   `json:"value,omitempty" doc:"what a late outcome or a correction adds to the revenue"`
	Positions   []int      `json:"positions,omitzero" doc:"of items that were reported not to have been taken"`
	Version     uint64     `json:"version,omitzero"`
	Note        string     `json:"note,omitzero" doc:"why a version was kept, or a relearning given up"`
	Items       int        `json:"items,omitzero" doc:"items of the catalogue that were put or deleted"`
	Feature     string     `json:"feature,omitzero" doc:"a category"`
	Values      []string   `json:"values,omitzero" doc:"that have columns of their own from now on"`
	Seconds     float64    `json:"seconds,omitzero" doc:"seconds by which the attribution windows of the open decisions move, because the clock moved"`
}

// Taken is an item that was taken from a page.
type Taken struct {
	Position int     `json:"position" doc:"on the page, from 1 on"`
	Quantity int     `json:"quantity" doc:"units that were taken"`
	Value    float64 `json:"value" doc:"what all units earned together"`
}
