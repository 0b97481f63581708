package api

import "time"

// Insight holds a placement's sales and its policy's beliefs. It counts decisions that closed. The counts are part of
// the state: a replay of the log gives the same.
type Insight struct {
	Placement   string    `json:"placement"`
	Mode        string    `json:"mode"`
	Policy      string    `json:"policy" doc:"its name"`
	PolicyEntry uint64    `json:"policy_entry"`
	Time        time.Time `json:"time" doc:"when it was computed: it may be some seconds old"`

	Gains   []Gain        `json:"gains" doc:"those of the statistics"`
	Items   []ItemInsight `json:"items" doc:"those that were shown most, first; at most 1000"`
	Others  *ItemInsight  `json:"others,omitempty" doc:"the items that are not counted any more, because there were too many, together"`
	Dropped uint64        `json:"others_count,omitzero" doc:"their number"`

	Effects     []Effect        `json:"effects,omitempty" doc:"of numbers and categories on the utility; at most 30 features"`
	Background  int             `json:"background_rows,omitzero" doc:"over how many rows, of items that were shown, the effects are averaged"`
	Families    []FamilyHistory `json:"families,omitempty" doc:"of a policy that averages utility families: their weights, since the service started"`
	Positions   []Position      `json:"positions" doc:"places of the display, from the first one on; at most 50"`
	Calibration []Calibrated    `json:"calibration" doc:"by the predicted probability of a purchase; without bins that have no decisions"`
	Drift       *Drift          `json:"drift,omitempty" doc:"once there are decisions before the recent ones"`

	ExplorationShare float64  `json:"exploration_share" doc:"share of the decisions whose set was drawn uniformly"`
	Lag              uint64   `json:"lag_rounds" doc:"outcomes that the learner has not processed yet"`
	Waiting          int      `json:"waiting_requests" doc:"requests to the whole service that wait for the log"`
	Latency          *Latency `json:"latency,omitempty" doc:"of decisions of the placement since the service started"`
}

// ItemInsight holds an item's sales and value.
type ItemInsight struct {
	ID        string   `json:"id,omitzero"`
	Shown     uint64   `json:"shown"`
	Taken     uint64   `json:"taken"`
	Revenue   float64  `json:"revenue" doc:"earned"`
	Utility   *float64 `json:"utility" doc:"the mean, with the features with which it was shown last; null if the policy has none, of an item beyond the first 100, and if the log no longer has them"`
	SD        *float64 `json:"sd" doc:"the standard deviation of the utility under what the policy believes"`
	SlotWorth *float64 `json:"solo_revenue" doc:"the expected revenue of showing only this item"`
}

// Effect is the partial dependence of the utility on a feature.
type Effect struct {
	Feature string        `json:"feature"`
	Kind    string        `json:"kind" enum:"number,category"`
	Points  []EffectPoint `json:"points"`

	By       string          `json:"by,omitzero" doc:"the category whose values change the effect most, of shoppers if possible; left out if none does"`
	Segments []EffectSegment `json:"segments,omitempty" doc:"the effect by the values of that category; at most 8"`
}

// EffectSegment is an effect among the shoppers or the items with a value of a category.
type EffectSegment struct {
	Value  string        `json:"value"`
	Points []EffectPoint `json:"points"`
}

// EffectPoint is the mean utility over the background, each row with this value of the feature.
type EffectPoint struct {
	Value   any      `json:"value" doc:"a number or a category"`
	Utility float64  `json:"utility"`
	SD      *float64 `json:"sd" doc:"the mean of the standard deviations of these utilities, which bounds that of their mean; null if the policy has none"`
	Share   float64  `json:"buy_share" doc:"the share of shoppers who would buy such an item if it were the only one on the page: the mean of 1/(1+exp(−u))"`
	Low     *float64 `json:"buy_share_low,omitempty" doc:"that share with every utility a standard deviation lower; left out if the policy has none"`
	High    *float64 `json:"buy_share_high,omitempty" doc:"that share with every utility a standard deviation higher"`
}

// FamilyHistory is the weight of a utility family over time.
type FamilyHistory struct {
	Family string        `json:"family"`
	Points []FamilyPoint `json:"points" doc:"at most 128, the oldest first"`
}

// FamilyPoint is the weight of a utility family after some rounds.
type FamilyPoint struct {
	Learned uint64  `json:"learned" doc:"rounds that the learner had learned"`
	Weight  float64 `json:"weight"`
}

// Position holds the sales of a page position.
type Position struct {
	Position int      `json:"position" minimum:"1"`
	Shown    uint64   `json:"shown"`
	Taken    uint64   `json:"taken"`
	Effect   *float64 `json:"effect" doc:"what the policy has learned that the place adds to the utility; null without position_effects"`
}

// Calibrated compares a bin of predictions with outcomes.
type Calibrated struct {
	Low           float64 `json:"low"`
	High          float64 `json:"high"`
	Rounds        uint64  `json:"rounds"`
	Predicted     float64 `json:"predicted" doc:"the mean predicted probability of a purchase"`
	Observed      float64 `json:"observed" doc:"the share of purchases"`
	StandardError float64 `json:"standard_error" doc:"of the share, if the predictions are right"`
}

// Span sums up decisions that closed one after the other.
type Span struct {
	Decisions  uint64  `json:"decisions"`
	Estimated  uint64  `json:"estimated" doc:"of these, decisions with a prediction"`
	Earned     float64 `json:"earned" doc:"by these"`
	Predicted  float64 `json:"predicted" doc:"for these, Σ R(S)"`
	ByPolicy   Totals  `json:"by_policy"`
	ByChance   Totals  `json:"by_chance"`
	ByBaseline Totals  `json:"by_baseline"`
}

// Drift compares the last decisions, 1000 or more, with all before. Decisions are grouped by time, a sixteenth of the
// attribution window per group. A group counts once all its decisions and all earlier groups end: sales are reported
// before other decisions end.
type Drift struct {
	Recent Span `json:"recent"`
	Before Span `json:"before"`
}

// Latency is how long decisions take, from the request to the log.
type Latency struct {
	Decisions uint64  `json:"decisions"`
	P50       float64 `json:"p50_seconds" doc:"seconds, as the next ones: an upper bound that is at most a fifth too large"`
	P95       float64 `json:"p95_seconds"`
	P99       float64 `json:"p99_seconds"`
}
