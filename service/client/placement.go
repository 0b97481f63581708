package client

// Config is a placement. What is left out has the value in parentheses.
type Config struct {
	MaxSize           int            `json:"max_size"`            // the most items that are shown
	MaxItems          int            `json:"max_items,omitempty"` // the most items of a request (1000)
	Features          []Feature      `json:"features"`
	AtMost            []Limit        `json:"at_most,omitempty"`            // how many items of each value of a category are shown
	Policy            map[string]any `json:"policy"`                       // name, and its parameters: see vitrine list policies
	Rounds            int            `json:"rounds,omitempty"`             // the horizon, for policies that have one (100000)
	Seed              uint64         `json:"seed,omitempty"`               // of all draws
	AttributionWindow string         `json:"attribution_window,omitempty"` // how long an outcome is waited for ("30m")
	Mode              string         `json:"mode,omitempty"`               // "learn", "shadow" or "explore" ("learn")
	ExploreShare      float64        `json:"explore_share,omitempty"`      // of uniformly drawn sets in the mode "explore" (0.05)
	Record            string         `json:"record,omitempty"`             // whose features the log keeps: "shown" or "all" ("shown"; "all" in the mode "explore")
	Memory            int            `json:"memory,omitempty"`             // bytes of remembered decisions (64 MiB)
	Keep              int            `json:"keep,omitempty"`               // how many versions there are to roll back to (8)
}

// Feature is something known of an item or a user.
type Feature struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`              // "number", "category", "text", "object" or "cross"
	From    string   `json:"from,omitempty"`    // "item" or "user" ("item")
	Center  float64  `json:"center,omitempty"`  // of a number
	Scale   float64  `json:"scale,omitempty"`   // of a number (1)
	Min     *float64 `json:"min,omitempty"`     // of a number: what is less counts as this
	Max     *float64 `json:"max,omitempty"`     // and what is more as this
	Values  []string `json:"values,omitempty"`  // of a category that is not hashed
	Other   bool     `json:"other,omitempty"`   // whether such a category may have other values too
	Buckets int      `json:"buckets,omitempty"` // columns of a hashed category (16), a text or an object (64)
	Of      []string `json:"of,omitempty"`      // the two features of a cross
	Default any      `json:"default,omitempty"` // what a missing value stands for; without one it is refused
}

// Stats are the counters of a placement.
type Stats struct {
	Placement string `json:"placement"`
	Mode      string `json:"mode"`

	Decisions uint64 `json:"decisions"`
	Outcomes  uint64 `json:"outcomes"`  // told in time
	Expired   uint64 `json:"expired"`   // counted as the outside option
	Withdrawn uint64 `json:"withdrawn"` // deferred, and not activated in time
	Pending   int    `json:"pending"`
	Memory    int    `json:"memory"` // bytes of decisions, of the placement's memory

	ExpiredEarly  uint64  `json:"expired_early"`            // left memory before the attribution window was over, and taught nothing
	MemorySeconds float64 `json:"memory_seconds,omitempty"` // how long memory holds open decisions at the rate of the last minute

	Clipped uint64 `json:"clipped"` // values of features beyond their bounds, since the start
	Unsound bool   `json:"unsound"` // what the policy predicts is no number, or was certain not to come

	PolicyVersion uint64   `json:"policy_version"`
	Lag           uint64   `json:"lag"`               // outcomes that the learner has not yet come to
	Learned       uint64   `json:"learned"`           // rounds
	Skipped       uint64   `json:"skipped"`           // that the learner refused
	Forgotten     uint64   `json:"forgotten"`         // that were learned before the saved state could not be read
	Stale         uint64   `json:"stale"`             // that were of an earlier learner
	Broken        bool     `json:"broken"`            // it learns no more, and its last good policy decides
	Problem       string   `json:"problem,omitempty"` // the last one of the learner
	Versions      []uint64 `json:"versions"`          // kept, to roll back to

	ExplorationShare float64 `json:"exploration_share"` // of uniformly drawn sets among the decisions
	ByPolicy         Arm     `json:"by_policy"`
	ByChance         Arm     `json:"by_chance"`
	ByBaseline       Arm     `json:"by_baseline"`
	Uplift           *Uplift `json:"uplift,omitempty"` // in the mode "explore"; nil before it can be told

	Calibration Calibration `json:"calibration"`
	Shadow      Comparison  `json:"shadow"`
}

// Arm are the decisions with an outcome, or expired, of which the sets were found in one way.
type Arm struct {
	Rounds    uint64  `json:"rounds"`
	Purchases uint64  `json:"purchases"`
	Revenue   float64 `json:"revenue"`
	Squares   float64 `json:"squares"` // Σ revenue²
}

// Uplift is what the policy earns more a decision than uniformly drawn sets do.
type Uplift struct {
	Estimate      float64 `json:"estimate"`
	StandardError float64 `json:"standard_error"`
}

// Calibration compares what was foretold with what came.
type Calibration struct {
	Revenue  float64 `json:"revenue"`  // earned
	Foretold float64 `json:"foretold"` // Σ R(S)
	Bins     [10]Bin `json:"bins"`     // bin b is of purchases foretold with a probability in [b/10, (b+1)/10)
}

// Bin are decisions of similar 1 − p(0|S).
type Bin struct {
	Rounds    uint64  `json:"rounds"`
	Purchases uint64  `json:"purchases"`
	Foretold  float64 `json:"foretold"` // Σ 1 − p(0|S)
}

// Comparison is of the policy's own sets with the baselines that were shown in the mode
// "shadow", by the policy's own estimates.
type Comparison struct {
	Rounds     uint64  `json:"rounds"`
	Agreements uint64  `json:"agreements"` // rounds in which the sets were the same
	Estimated  uint64  `json:"estimated"`  // rounds with estimates
	Policy     float64 `json:"policy"`     // Σ R(S) of the policy's own sets, over these
	Baseline   float64 `json:"baseline"`   // and of the baselines
}
