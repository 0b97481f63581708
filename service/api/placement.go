package api

// Placement is a place where assortments are shown: its configuration.
type Placement struct {
	MaxSize           int            `json:"max_size" minimum:"1" maximum:"1000" doc:"K, the most items that are shown"`
	MaxItems          int            `json:"max_items,omitzero" default:"1000" minimum:"1" maximum:"1000000" doc:"the most items of a request"`
	Features          []Feature      `json:"features" minItems:"1" doc:"what is known of items and users"`
	AtMost            []Limit        `json:"at_most,omitempty" doc:"how many items of each value of a category are shown"`
	Policy            map[string]any `json:"policy" doc:"name, and its options: see vitrine list policies"`
	Rounds            int            `json:"rounds,omitzero" default:"100000" minimum:"1" doc:"T, the horizon, for policies that have one"`
	Seed              uint64         `json:"seed" required:"false" doc:"of all random draws"`
	AttributionWindow string         `json:"attribution_window,omitzero" default:"30m" doc:"how long an outcome is waited for"`
	Mode              string         `json:"mode,omitzero" enum:"learn,shadow,explore" default:"learn" doc:"learn: the policy decides; shadow: the caller's baseline is shown, and the policy learns from it; explore: the policy decides but for a share of uniformly drawn sets"`
	ExploreShare      *float64       `json:"explore_share,omitempty" minimum:"0" maximum:"1" doc:"in the mode explore, the share of uniformly drawn sets; 0.05 if left out"`
	Record            string         `json:"record,omitzero" enum:"shown,all" doc:"whose features the log keeps, and the learner sees: those of the items shown, or of all items of the request; all if left out in the mode explore, and shown in the others"`
	Memory            int            `json:"memory,omitzero" default:"67108864" doc:"the most bytes of remembered decisions"`
	Keep              int            `json:"keep,omitzero" default:"8" minimum:"1" maximum:"1000" doc:"how many versions are kept to roll back to"`
}

// The modes of a placement.
const (
	Learn   = "learn"   // the policy decides
	Shadow  = "shadow"  // the caller's baseline is shown, the policy learns from it and says what it would have shown
	Explore = "explore" // the policy decides but for a share of uniformly drawn sets
)

// Feature is something known of an item or a user. A kind has some of the fields:
//
//	number    from, center, scale, min, max, default
//	category  from, values and other or buckets, default
//	text      from, buckets, default
//	object    from, buckets
//	cross     of
type Feature struct {
	Name    string   `json:"name" maxLength:"100"`
	Kind    string   `json:"kind" enum:"number,category,text,object,cross"`
	From    string   `json:"from,omitzero" enum:"item,user" doc:"whose feature it is, except of a cross; item if left out"`
	Center  float64  `json:"center,omitzero" doc:"of a number: what is subtracted from it; 0 if left out"`
	Scale   float64  `json:"scale,omitzero" doc:"of a number: what it is divided by after that; 1 if left out"`
	Min     *float64 `json:"min,omitempty" doc:"of a number: smaller values count as this one; center − 10 scale if left out where a center or a scale is given"`
	Max     *float64 `json:"max,omitempty" doc:"of a number: larger values count as this one; center + 10 scale if left out where a center or a scale is given"`
	Values  []string `json:"values,omitempty" doc:"of a category: its values; without them they are hashed"`
	Other   bool     `json:"other,omitzero" doc:"of a category with values: whether it may have other ones too"`
	Buckets int      `json:"buckets,omitzero" doc:"of a hashed category, a text or an object: its columns; if left out 16 of a category, 64 of the others"`
	Of      []string `json:"of,omitempty" doc:"of a cross: the names of two earlier features"`
	Default any      `json:"default,omitzero" doc:"of a number, a category or a text: what a missing value stands for; without it a missing value is refused"`
}

// Limit is the most items of a group that are shown: of the given items, or of each value of a category.
type Limit struct {
	Items   []string `json:"items,omitempty" doc:"ids, in a request only"`
	Feature string   `json:"feature,omitzero" doc:"a category of items"`
	Most    int      `json:"most" minimum:"0"`
}

// PlacementList is all placements, by name.
type PlacementList struct {
	Placements []PlacementEntry `json:"placements"`
}

// PlacementEntry is one of them.
type PlacementEntry struct {
	Name   string    `json:"name"`
	Config Placement `json:"config"`
}

// Rollback makes a placement forget what it has learned since a version was kept.
type Rollback struct {
	Version uint64 `json:"version" doc:"one of the versions of the placement's statistics"`
}
