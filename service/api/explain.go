package api

// Explanation says why a decision shows its items. Utilities are the placement's policy's: the outside option's utility
// is 0.
type Explanation struct {
	Decision         string `json:"decision_id,omitzero" doc:"left out for a decision that was only tried"`
	Placement        string `json:"placement"`
	Source           string `json:"source" enum:"policy,chance,baseline,import" doc:"how the set was found"`
	Policy           string `json:"policy" doc:"the name of the policy"`
	PolicyEntry      uint64 `json:"policy_entry" doc:"the version of the policy that decided"`
	ExplainedByEntry uint64 `json:"explained_by_entry" doc:"the version of the policy that explains"`
	SamePolicy       bool   `json:"same_policy" doc:"whether these are the same; otherwise the utilities are those of the present policy"`
	Cause            string `json:"cause,omitzero" enum:"bonus,estimate,draw,slots,weights,chance" doc:"how the policy chooses: the best set under utilities with a bonus, as estimated or as drawn; for each slot the best item left under utilities drawn for it; a set drawn from a distribution that prefers good ones; or a set drawn by chance"`

	Candidates int `json:"candidates" doc:"among which was decided"`
	Known      int `json:"known_candidates" doc:"of these, candidates whose features are known: the log keeps those of the items shown only, unless the placement has log_items: all"`

	Shopper     []FeatureValue `json:"shopper,omitempty" doc:"who came: the features of the shopper, as far as the log has them"`
	Typical     bool           `json:"typical_shopper" doc:"whether contributions compare with the mean shopper lately; otherwise they compare with this one, and features of shoppers add nothing"`
	Attribution string         `json:"attribution" enum:"linear,shapley,none" doc:"how contributions are found. They compare with base, the utility of the mean known candidate for the mean shopper. linear: weight times difference; shapley: the mean change of the utility when the feature takes its value, over 16 fixed random orders of the features and their reverses"`
	Items       []Explained    `json:"items" doc:"what is shown, in display order; at most the first 50"`
	Compared    string         `json:"compared_by" enum:"index,utility,none" doc:"by which utilities sets are compared in revenue, next and rules: those with the bonus or as drawn, if the policy maximised them, or else the means"`
	Revenue     *float64       `json:"revenue,omitempty" doc:"R(S) of the set shown, by these utilities"`
	Next        *OtherSet      `json:"next_best,omitempty" doc:"the best other set that the rules allow; left out with position effects"`
	Rules       []RuleCost     `json:"rules,omitempty" doc:"what each rule cost; at most the first 32; left out with position effects and slots"`
	Unmet       []Unmet        `json:"unmet,omitempty" doc:"rules of the request and lower bounds that no page could meet, as in the answer"`
	Unknown     []string       `json:"unknown,omitempty" doc:"what is not known, and why"`
	Families    []FamilyShare  `json:"families,omitempty" doc:"of a policy that averages utility families: their weights"`
}

// Explained is an item that is shown, and why.
type Explained struct {
	ID            string         `json:"id"`
	Slot          string         `json:"slot,omitzero"`
	Position      int            `json:"position" minimum:"1"`
	Revenue       float64        `json:"revenue"`
	Probability   *float64       `json:"choice_probability" doc:"p(i|S) as it was answered; null if the policy has no estimate"`
	Utility       *float64       `json:"utility" doc:"the mean; null if the policy has none"`
	SD            *float64       `json:"sd" doc:"the standard deviation of the utility under what the policy believes. It can be too small where no family of the policy fits. null if it has none"`
	Index         *float64       `json:"index" doc:"the utility by which the policy chose, with its bonus or as drawn; of a policy that draws for each slot, that of the slot that took the item. null if it is not known"`
	Family        string         `json:"family,omitzero" doc:"of a policy that draws a utility family for each slot: the family of the slot that took the item"`
	Base          *float64       `json:"base,omitempty" doc:"the utility before the contributions"`
	Contributions []Contribution `json:"contributions,omitempty" doc:"they and the base sum to the utility; those largest in size first"`
}

// FeatureValue is the value of a feature.
type FeatureValue struct {
	Feature string `json:"feature"`
	Value   any    `json:"value" doc:"a number or a category; null of other kinds, and of a category that shares its column with others"`
}

// Contribution is a feature's part of an item's utility.
type Contribution struct {
	Feature string  `json:"feature" doc:"its name; left empty, all features that are not listed"`
	Value   any     `json:"value,omitempty" doc:"a number or a category; left out of other kinds"`
	Utility float64 `json:"utility"`
}

// OtherSet is a set that is not shown.
type OtherSet struct {
	Items    []string `json:"items"`
	Revenue  float64  `json:"revenue" doc:"its expected revenue"`
	MissedBy float64  `json:"missed_by" doc:"how much less that is than what the set shown earns; negative if it is more, because the set shown was drawn"`
}

// RuleCost is the cost of a rule.
type RuleCost struct {
	Rule string  `json:"rule" enum:"max_size,min_size,include,exclude,pinned,excluded,limit,capacity,slot" doc:"of the request or of the placement; pinned and excluded are the placement's include and exclude"`
	Item string  `json:"item,omitzero" doc:"the id that it names"`
	On   string  `json:"on,omitzero" doc:"the feature, the size, the capacity, or the number of the limit or of the slot"`
	Cost float64 `json:"cost" doc:"the expected revenue of the best set without this rule, minus that of the best set with it. With position effects, the best sets under lower bounds, pins, a capacity or crossing limits are found only approximately"`
}

// FamilyShare is the weight of a utility family.
type FamilyShare struct {
	Family string  `json:"family"`
	Weight float64 `json:"weight"`
}

// Trial is the answer to a request that was not recorded, and its explanation.
type Trial struct {
	Answer      Answer      `json:"answer" doc:"its decision_id is that of the request, or empty"`
	Explanation Explanation `json:"explanation"`
}
