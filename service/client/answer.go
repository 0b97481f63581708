package client

import (
	"encoding/json"
	"time"
)

// Answer is what to show.
type Answer struct {
	Decision      string
	Shown         []string  // ids in display order
	Probability   []float64 // p(i|S) of each, estimated; nil where the policy has no estimate,
	Outside       float64   // p(0|S),
	Revenue       float64   // and the expected revenue R(S): then these are 0
	Propensity    float64   // of the set, in (0, 1]; 0 where it has no closed form
	PolicyVersion uint64    // the last entry of the log that the policy had learned from
	Repeated      bool      // the request was answered before, and this is that answer
}

// Decision is what the service remembers of a decision.
type Decision struct {
	Answer
	Placement string
	By        string // how the set was found: "policy", "chance" or "baseline"
	Time      time.Time
	Status    string // "open", "chosen", "expired", "deferred", "withdrawn" or "evicted"
	Choice    string // the item that was taken, "" for none
}

// told is an Answer, or a Decision, in JSON.
type told struct {
	Decision   string `json:"decision_id"`
	Assortment []struct {
		ID          string   `json:"id"`
		Probability *float64 `json:"choice_probability"`
	} `json:"assortment"`
	Outside       *float64  `json:"outside_probability"`
	Revenue       *float64  `json:"expected_revenue"`
	Propensity    *float64  `json:"propensity"`
	PolicyVersion uint64    `json:"policy_version"`
	Placement     string    `json:"placement"`
	By            string    `json:"by"`
	Time          time.Time `json:"time"`
	Status        string    `json:"status"`
	Choice        *string   `json:"choice"`
}

// UnmarshalJSON reads an answer of the service.
func (a *Answer) UnmarshalJSON(text []byte) error {
	var t told
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	t.answer(a)
	return nil
}

func (t *told) answer(a *Answer) {
	a.Decision, a.PolicyVersion = t.Decision, t.PolicyVersion
	for _, shown := range t.Assortment {
		a.Shown = append(a.Shown, shown.ID)
		if shown.Probability != nil {
			a.Probability = append(a.Probability, *shown.Probability)
		}
	}
	for _, v := range []struct {
		to   *float64
		from *float64
	}{{&a.Outside, t.Outside}, {&a.Revenue, t.Revenue}, {&a.Propensity, t.Propensity}} {
		if v.from != nil {
			*v.to = *v.from
		}
	}
}

// UnmarshalJSON reads a decision of the service.
func (d *Decision) UnmarshalJSON(text []byte) error {
	var t told
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	t.answer(&d.Answer)
	d.Placement, d.By, d.Time, d.Status = t.Placement, t.By, t.Time, t.Status
	if t.Choice != nil {
		d.Choice = *t.Choice
	}
	return nil
}
