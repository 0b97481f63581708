package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

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
	Fields  []ChangedField `json:"fields,omitempty" doc:"settings that differ from those before; left out of the first configuration, and if the log no longer has the one before"`
}

// ChangedField is a setting before and after a change.
type ChangedField struct {
	Field  string         `json:"field"`
	Before jsontext.Value `json:"before,omitzero" doc:"left out if it was not set"`
	After  jsontext.Value `json:"after,omitzero" doc:"left out if it is no longer set"`
}

// PastAlarm is an alarm that a placement's guard has or had.
type PastAlarm struct {
	Check  string     `json:"check" enum:"no-sale,sales,chance,baseline,first-week,predictions"`
	Detail string     `json:"detail"`
	Chance float64    `json:"chance" doc:"how unlikely it was: see Alarm"`
	Began  time.Time  `json:"began"`
	Ended  *time.Time `json:"ended,omitempty" doc:"left out while it lasts"`
}
