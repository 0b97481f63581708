package api

// PolicyList lists what a placement's policy may be.
type PolicyList struct {
	Policies  []PolicyEntry `json:"policies"`
	Utilities []PolicyEntry `json:"utilities" doc:"families of utilities, for the setting utility of some policies"`
}

// PolicyEntry is a policy or a family of utilities.
type PolicyEntry struct {
	Name    string         `json:"name" doc:"of a family of utilities, its kind"`
	Doc     string         `json:"doc"`
	Choose  string         `json:"choose_when,omitzero" doc:"when to choose it"`
	Offer   string         `json:"offer_cost,omitzero" doc:"what an offer costs: O of it"`
	Round   string         `json:"round_cost,omitzero" doc:"what an observed round costs: O of it"`
	Options []PolicyOption `json:"options"`
	Default bool           `json:"default,omitzero" doc:"whether placements have it that name none"`
}

// PolicyOption is a setting.
type PolicyOption struct {
	Key     string `json:"key"`
	Type    string `json:"type" doc:"integer, number, string, true or false, list of integers, table"`
	Range   string `json:"range,omitzero" doc:"the legal values"`
	Default any    `json:"default,omitzero" doc:"in a placement; left out if it follows from the placement, or if there is none"`
	Doc     string `json:"doc"`
}
