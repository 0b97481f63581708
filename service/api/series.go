package api

import "time"

// Series holds a placement's sums over time. All lists hold one value a point, the oldest first. Everything that a
// decision earns counts in the point of the decision, so points of the last attribution window contain open decisions.
type Series struct {
	Placement string    `json:"placement"`
	Now       time.Time `json:"now"`
	Window    float64   `json:"attribution_window_seconds" doc:"the attribution window in seconds"`

	Times     []int64  `json:"start_unix_seconds" doc:"when the points begin, in seconds since 1970"`
	Seconds   []int64  `json:"length_seconds" doc:"how long the points are"`
	Decisions []uint64 `json:"decisions"`
	Open      []uint64 `json:"open" doc:"decisions whose outcomes are awaited"`

	Policy   *SeriesMeans `json:"policy,omitempty" doc:"decisions whose set the policy chose; left out if there are none, as the next ones"`
	Chance   *SeriesMeans `json:"chance,omitempty" doc:"decisions whose set was drawn uniformly"`
	Baseline *SeriesMeans `json:"baseline,omitempty" doc:"decisions whose set was the caller's"`

	OverChance   *SeriesSums `json:"over_chance,omitempty" doc:"how much more the policy has earned in all decisions until then than chance would have: the total of the gain over chance, by the time when decisions were made. Left out while an experiment runs, whose report compares its variants"`
	OverBaseline *SeriesSums `json:"over_baseline,omitempty" doc:"the same over the caller's sets. These were shown at another time, whose difference counts too"`
}

// SeriesMeans are mean revenues a decision.
type SeriesMeans struct {
	Rounds        []uint64   `json:"rounds" doc:"decisions that have an outcome or have expired"`
	Mean          []*float64 `json:"mean" doc:"revenue a decision; null without rounds"`
	StandardError []*float64 `json:"standard_error" doc:"null for fewer than two rounds"`
}

// SeriesSums are sums since the beginning, with the intervals of [Gain].
type SeriesSums struct {
	Low      []*float64 `json:"low" doc:"null, like the estimate, while too many decisions left memory before an outcome"`
	Estimate []*float64 `json:"estimate"`
	High     []*float64 `json:"high"`
}

// Overview shows a page of placements at a glance.
type Overview struct {
	Now        time.Time       `json:"now"`
	Total      int             `json:"total" doc:"placements that were asked for; the answer has some of them"`
	Placements []OverviewEntry `json:"placements"`
	Health     []Health        `json:"health,omitempty" doc:"health of the answering process, shown to keys for all placements: whether alerts reach their receiver"`
}

// AlertTest is the answer to a test message that the receiver of alerts took.
type AlertTest struct {
	Seconds float64 `json:"seconds" doc:"time until the receiver answered, in seconds"`
}

// OverviewEntry is a placement of an [Overview].
type OverviewEntry struct {
	Name      string `json:"name"`
	Mode      string `json:"mode"`
	Policy    string `json:"policy"`
	Decisions uint64 `json:"decisions"`

	Rate     float64  `json:"decisions_per_second" doc:"decisions a second, over the last ten"`
	Currency string   `json:"currency,omitzero" doc:"what revenues are in: of its configuration"`
	Explored float64  `json:"explore_share,omitzero" doc:"in the mode explore, the share of requests that see random pages or items"`
	Explore  string   `json:"explore,omitzero" doc:"in the mode explore, what is drawn: sets, also if left out, or swaps, as under a capacity of the placement"`
	Holdout  float64  `json:"holdout_share,omitzero" doc:"the share of shoppers who always see the caller's own page"`
	ByPolicy Totals   `json:"by_policy" doc:"decisions of the policy over the time that was asked for, up to the first that waits for its outcome: of the later ones those that sold end first"`
	Latency  *Latency `json:"latency,omitempty" doc:"of decisions since the service started"`

	Revenue       *float64 `json:"mean_revenue" doc:"a decision of the policy, over the time that was asked for; null if there is none, as the next one"`
	StandardError *float64 `json:"standard_error"`
	Gains         []Gain   `json:"gains" doc:"what the placement earns more, over the time that was asked for; of an experiment or a hold-out, since it began"`

	Unwatched  uint64              `json:"unwatched_decisions,omitzero" doc:"the least number of further decisions before a check of the guard can fail"`
	Experiment *OverviewExperiment `json:"experiment,omitempty" doc:"the running experiment, with the numbers of its report"`

	Health []Health `json:"health" doc:"the worst first; empty if all is well"`
	Series Series   `json:"series"`
}

// OverviewExperiment summarises an experiment's report, with the placement's gains.
type OverviewExperiment struct {
	Name    string    `json:"name"`
	Starts  time.Time `json:"starts,omitzero" format:"date-time" doc:"when it starts, if the configuration says so"`
	Ends    time.Time `json:"ends,omitzero" format:"date-time" doc:"when it ends, if the configuration says so"`
	Control string    `json:"control"`
	Verdict Verdict   `json:"verdict"`
}

// Health is something that an operator should know.
type Health struct {
	Level string     `json:"level" enum:"bad,warning,waiting,note"`
	Text  string     `json:"text" doc:"what happened, what the service has done about it, and what to do"`
	Title string     `json:"title,omitzero" doc:"of an alarm of the guard: what happened, in a sentence with which the text begins"`
	Since *time.Time `json:"since,omitempty" doc:"of an alarm: when it was raised"`
	Key   string     `json:"-"` // tells the problem from others while its text changes
}
