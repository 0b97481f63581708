package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Event is a log entry in the stream of events. The server-sent event's name, such as "chosen", says what happened.
// GET /v1/events lists the names.
type Event struct {
	Time        time.Time  `json:"time"`
	Placement   string     `json:"placement"`
	By          string     `json:"by,omitzero" doc:"the name of the API key that asked for a change"`
	Config      *Placement `json:"config,omitempty" doc:"the placement's new configuration; of relearning-begun, the second learner's"`
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
	Version     uint64     `json:"version,omitzero" doc:"the learner's version that was saved or rolled back to"`
	Note        string     `json:"note,omitzero" doc:"why a version was kept, or a relearning given up"`
	Items       int        `json:"items,omitzero" doc:"items of the catalogue that were put or deleted"`
	Feature     string     `json:"feature,omitzero" doc:"a category"`
	Values      []string   `json:"values,omitzero" doc:"that have columns of their own from now on"`
	Seconds     float64    `json:"seconds,omitzero" doc:"seconds by which the attribution windows of the open decisions move, because the clock moved; absent where the service stopped after a quiet time"`
}

// Taken is an item that was taken from a page.
type Taken struct {
	Position int     `json:"position" doc:"on the page, from 1 on"`
	Quantity int     `json:"quantity" doc:"units that were taken"`
	Value    float64 `json:"value" doc:"what all units earned together"`
}

// History lists a placement's changes, with their authors, and its guard's alarms, the latest first.
type History struct {
	Placement string      `json:"placement"`
	Changes   []PastEvent `json:"changes" doc:"from the log: the last 100, without those whose entries were removed from the log, and without changes of items"`
	Alarms    []PastAlarm `json:"alarms" doc:"the last 50"`
}

// PastEvent is a change of a placement.
type PastEvent struct {
	Entry   uint64         `json:"entry" doc:"of the log"`
	Time    time.Time      `json:"time"`
	Kind    string         `json:"kind" enum:"created,changed,version-saved,rolled-back,reset,relearning-begun,relearning-ended,swapped,adopted,alarm-cleared" doc:"what was done: the learner began again after reset, and learns the log after relearning-begun, which ends with swapped or relearning-ended; adopted ended an experiment with the learner of a variant"`
	By      string         `json:"by,omitzero" doc:"the name of the API key that asked for it; left out without keys, and if nobody asked"`
	Version uint64         `json:"version,omitzero"`
	Note    string         `json:"note,omitzero"`
	Fields  []ChangedField `json:"fields,omitempty" doc:"settings that differ from those before, or will once relearning-begun has ended with swapped; left out of the first configuration, and if the log no longer has the one before"`
}

// ChangedField is a setting before and after a change.
type ChangedField struct {
	Field  string         `json:"field"`
	Before jsontext.Value `json:"before,omitzero" doc:"left out if it was not set"`
	After  jsontext.Value `json:"after,omitzero" doc:"left out if it is no longer set"`
}

// PastAlarm is a past or present alarm of a placement's guard.
type PastAlarm struct {
	Check  string     `json:"check" enum:"no-sale,sales,chance,baseline,first-week,predictions"`
	Detail string     `json:"detail"`
	Chance float64    `json:"chance" doc:"how unlikely it was: see Alarm"`
	Began  time.Time  `json:"began"`
	Ended  *time.Time `json:"ended,omitempty" doc:"left out while it lasts"`
}
