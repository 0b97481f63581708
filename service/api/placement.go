package api

import "time"

// Placement is the configuration of a placement: a place where assortments are shown, with its own
// features, policy and learner.
type Placement struct {
	MaxSize           int             `json:"max_size" minimum:"1" maximum:"1000" doc:"K, the max number of items that are shown"`
	MinSize           int             `json:"min_size,omitzero" minimum:"0" maximum:"1000" doc:"the min number of items to show, even if fewer would earn more; with max_size as min_size every page is full. A page with too few candidates shows as many as the rules allow. It cannot be combined with a capacity"`
	MaxItems          int             `json:"max_request_items,omitzero" minimum:"1" maximum:"1000000" doc:"the max number of items that a request may bring, and of ids in its lists; 1000 if left out. It does not limit the catalogue"`
	Features          []Feature       `json:"features" minItems:"1" doc:"what is known about items and shoppers"`
	Include           []string        `json:"include,omitempty" doc:"pinned items: ids that every page shows while they are candidates, in this order of importance. A request that excludes one, or that has slots, is not bound by it, and a pin is left out if it breaks another rule, a lower bound or an earlier pin, or if hide_bought hides it; at most max_size"`
	Exclude           []string        `json:"exclude,omitempty" doc:"ids of items that no page shows, whatever a request includes; at most 1000"`
	Currency          string          `json:"currency,omitzero" doc:"what revenues are in, as the desk and reports write them: three letters of ISO 4217, such as EUR; numbers without a currency if left out"`
	Limits            []Limit         `json:"limits,omitempty" doc:"bounds on how many items of each value of a category or an attribute, or of a named group, are shown"`
	Capacity          *float64        `json:"capacity,omitempty" minimum:"0" maximum:"1e9" doc:"the spaces of the items shown sum to at most this: a number with at most 6 decimals. It does not go together with slots. If it is below the space of every item, nothing is shown"`
	Policy            map[string]any  `json:"policy,omitzero" doc:"name, and its settings: see vitrine list policies. In an answer, all of them; if left out, the default policy"`
	Horizon           int             `json:"horizon,omitzero" minimum:"1" maximum:"1e8" doc:"T, the horizon in decisions, for policies that have one; 100000 if left out"`
	Seed              uint64          `json:"seed" required:"false" maximum:"9007199254740992" doc:"the seed of all random draws"`
	AttributionWindow string          `json:"attribution_window,omitzero" doc:"how long a decision waits for its outcome; 30m if left out"`
	Mode              string          `json:"mode,omitzero" enum:"learn,shadow,explore,experiment" doc:"learn, the default: the policy decides; shadow: the caller's baseline is shown, and the policy learns from it; explore: the policy decides but for a share of requests, in which a set or an item is drawn; experiment: each shopper gets one of several variants, which are compared"`
	Holdout           float64         `json:"holdout_share,omitzero" minimum:"0" maximum:"0.5" doc:"the share of shoppers who always see the caller's baseline, whatever the mode and the experiment, so that there is always something to compare with; in steps of 0.0001. Every request then has a shopper_id and a baseline; not in the mode shadow"`
	Experiment        *Experiment     `json:"experiment,omitempty" doc:"of the mode experiment: what is compared"`
	Explore           string          `json:"explore,omitzero" enum:"sets,swaps" doc:"in the mode explore, what is drawn: sets, a whole set drawn uniformly, or one item as by swaps under a capacity or limits whose groups cross; swaps, one item of the policy's set is replaced by another, which costs less and says as much about policies that show similar sets; sets if left out"`
	ExploreShare      *float64        `json:"explore_share,omitempty" exclusiveMinimum:"0" maximum:"1" doc:"in the mode explore, the share of requests that explore; 0.05 if left out"`
	Fallback          string          `json:"fallback,omitzero" enum:"baseline,version" doc:"what is shown while the guard has an alarm, except for earning more than predicted: baseline, the caller's sets, which every request then has to have; version, the last good version's; if left out, the policy continues"`
	LearnInAlarm      bool            `json:"learn_in_alarm,omitzero" doc:"whether the policy goes on learning while the guard has an alarm about sales, no-sale or sales; if left out, it pauses, and reads from the log what it has missed once the alarm ends"`
	LogItems          string          `json:"log_items,omitzero" enum:"shown,all" doc:"which items' features the log keeps and the learner sees: shown is the items shown, all is every item that the request brings, too; of the catalogue's items that were not shown the log keeps the ids, from which exports compute the features; if left out, all in the mode explore and shown in the others"`
	MemoryBytes       int             `json:"memory_bytes,omitzero" doc:"the max number of bytes of remembered decisions; 67108864 if left out"`
	CatalogueOf       string          `json:"catalogue_of,omitzero" doc:"another placement, with the same features, whose catalogue this one uses; its own if left out"`
	ShopperHistory    *ShopperHistory `json:"shopper_history,omitempty" doc:"remember what shoppers have seen and bought, by the shopper_id of requests; if left out, nothing is remembered"`
	MaxVersions       int             `json:"max_versions,omitzero" minimum:"1" maximum:"1000" doc:"how many versions are kept to roll back to; 8 if left out"`
	Notes             []string        `json:"notes,omitempty" readOnly:"true" doc:"what follows from the settings; ignored in a request"`
	Warnings          []string        `json:"warnings,omitempty" readOnly:"true" doc:"why these settings may do harm; ignored in a request"`
}

// ShopperHistory says how long, and in how much memory, a placement remembers which items its shoppers saw and bought.
// The log holds random names in place of the shoppers' ids. Erasing a shopper deletes the key that leads to the name.
type ShopperHistory struct {
	Keep        string `json:"keep" doc:"how long it is remembered, such as 720h; at most 366 days"`
	MemoryBytes int    `json:"memory_bytes,omitzero" doc:"max bytes; 16777216 if left out, about 9000 shoppers with 20 items each. If it is full, the shoppers who came longest ago are forgotten"`
	HideBought  bool   `json:"hide_bought,omitzero" doc:"whether pages leave out what the shopper has bought, but for what a request includes"`
}

// Values of [Placement.Mode].
const (
	Learn   = "learn"   // the policy decides
	Shadow  = "shadow"  // shows the caller's baseline; the policy learns from it, and reports the set that it would have shown
	Explore = "explore" // the policy decides but for a share of requests

	Experimenting = "experiment" // each unit is shown one of several variants, which are compared
)

// Values of [Placement.Fallback]: the sets to show during the guard's alarm.
const (
	FallbackBaseline = "baseline" // the caller's sets
	FallbackVersion  = "version"  // the last good version's
)

// Values of [Placement.Explore]: how the mode Explore draws.
const (
	BySets  = "sets"  // a set, drawn uniformly
	BySwaps = "swaps" // an item, in the place of one of the policy's set
)

// Feature is a feature of items or of shoppers. Its kind determines its fields:
//
//	number    from, center, scale, min, max, default, history
//	category  from, values and allow_other, or columns and own_columns, default
//	text      from, columns, default
//	object    from, columns
//	cross     of
type Feature struct {
	Name       string   `json:"name" maxLength:"100"`
	Kind       string   `json:"kind" enum:"number,category,text,object,cross"`
	From       string   `json:"from,omitzero" enum:"item,shopper" doc:"whose feature it is, except of a cross; item if left out"`
	Center     float64  `json:"center,omitzero" doc:"of a number: what is subtracted from it; 0 if left out"`
	Scale      *float64 `json:"scale,omitempty" exclusiveMinimum:"0" doc:"of a number: what it is divided by after that; 1 if left out"`
	Min        *float64 `json:"min,omitempty" doc:"of a number: smaller values count as this one; if left out, center − 10 scale if a center or a scale is given, and no bound otherwise"`
	Max        *float64 `json:"max,omitempty" doc:"of a number: larger values count as this one; if left out, center + 10 scale if a center or a scale is given, and no bound otherwise"`
	Values     []string `json:"values,omitempty" doc:"of a category: its values; without them it learns the first ones and hashes the others"`
	OwnColumns *int     `json:"own_columns,omitempty" minimum:"0" doc:"of a category without values: how many of its columns belong to one value each, the first ones that requests have; other values are hashed into the remaining columns. Three quarters of the columns if left out; 0 hashes all"`
	AllowOther bool     `json:"allow_other,omitzero" doc:"of a category with values: whether other values are accepted"`
	Columns    int      `json:"columns,omitzero" doc:"of a hashed category, a text or an object: its number of columns; if left out, 16 for a category and 64 for the others"`
	Of         []string `json:"of,omitempty" doc:"of a cross: the names of two earlier features"`
	History    string   `json:"history,omitzero" enum:"seen,bought" doc:"of a number of items, in a placement with shopper_history: the service fills in how often the request's shopper has seen or bought the item, and 0 for an unknown shopper. Values in requests and in the catalogue count where that is 0"`
	Default    any      `json:"default,omitzero" doc:"of a number, a category or a text: the value if none is given; without it a missing value is an error"`
}

// Limit bounds how many items of a group are shown. The group is the items with the given ids, those of the catalogue
// in a named group, or those with the same value of a category or of an attribute in the catalogue. Requests,
// configurations and vitrine optimize, which takes the groups from its items, read limits in this form.
type Limit struct {
	Items     []string `json:"items,omitempty" doc:"ids, in a request only"`
	Feature   string   `json:"feature,omitzero" doc:"a category of items: each of its values is a group"`
	Attribute string   `json:"attribute,omitzero" doc:"an attribute of the catalogue's items: each of its values is a group. Items without it are not limited"`
	Group     string   `json:"group,omitzero" doc:"a name in the groups of the catalogue's items"`
	Min       int      `json:"min,omitzero" minimum:"0" doc:"the min number of the group's items to show, of items or a group only. If the candidates and the rules leave too few, the page shows as many as it can"`
	Max       *int     `json:"max,omitempty" minimum:"0" doc:"the max number of the group's items to show. A limit needs a min, a max or both"`
}

// Check reports impossible bounds. The error names a field of the limit at field.
func (l *Limit) Check(field string) error {
	switch {
	case l.Min == 0 && l.Max == nil:
		return Fieldf(field, "needs a min above 0, a max or both")
	case l.Min < 0:
		return Fieldf(field+"/min", "%d: must not be negative", l.Min)
	case l.Max != nil && *l.Max < 0:
		return Fieldf(field+"/max", "%d: must not be negative", *l.Max)
	case l.Max != nil && l.Min > *l.Max:
		return Fieldf(field+"/min", "%d: must be at most the max, %d", l.Min, *l.Max)
	}
	return nil
}

// By returns the name of the items' grouping, or "" if their ids are given.
func (l *Limit) By() string { return l.Feature + l.Attribute + l.Group }

// PlacementList lists placements, sorted by name.
type PlacementList struct {
	Placements []PlacementEntry `json:"placements"`
}

// PlacementEntry is a placement of a [PlacementList].
type PlacementEntry struct {
	Name   string    `json:"name"`
	Config Placement `json:"config"`
}

// Rollback asks a placement to return to a kept version and forget everything learned since.
type Rollback struct {
	Version uint64 `json:"version" doc:"one of the versions of the placement's statistics"`
}

// Loss lists the losses if a change of a placement restarts its learner.
type Loss struct {
	Rounds   uint64 `json:"rounds" doc:"rounds that the learner has learned"`
	Versions int    `json:"versions" doc:"versions that it has, to roll back to"`
	LogFrom  uint64 `json:"log_from_entry,omitzero" doc:"relearn=log would learn only rounds since this entry, because the log no longer holds the earlier ones"`
}

// Version is a state of a placement's learner to roll back to.
type Version struct {
	Version      uint64         `json:"version" doc:"the last entry of the log that the learner was given"`
	Time         time.Time      `json:"time" doc:"when it was kept"`
	Learned      *uint64        `json:"learned,omitempty" doc:"rounds that the learner had learned; left out while it is behind"`
	RoundsSince  uint64         `json:"rounds_since" doc:"decisions of the placement that have ended since"`
	RevenueSince *float64       `json:"mean_revenue_since,omitempty" doc:"what they have earned, per decision"`
	Note         string         `json:"note,omitzero" doc:"why it was kept"`
	Automatic    bool           `json:"automatic" doc:"whether the clock kept it; such versions are dropped before others"`
	OtherLearner bool           `json:"other_learner" doc:"whether it is of a learner that decided before, whose configuration a roll back brings back"`
	Policy       map[string]any `json:"policy" doc:"of its configuration"`
	Config       *Placement     `json:"config,omitempty" doc:"the configuration that a roll back brings back; left out if the present one stays"`
	Warnings     []string       `json:"warnings,omitempty" doc:"what a roll back to this version would change for your callers or end now: fields that requests must then have, the comparison of a hold-out, and a comparison that memory is too small for"`
}

// VersionList lists versions, the oldest first.
type VersionList struct {
	Versions []Version `json:"versions"`
}

// Kept is the answer to keeping a version.
type Kept struct {
	Version uint64 `json:"version"`
}

// Note is the body of a request that keeps a version: why it is kept.
type Note struct {
	Note string `json:"note" maxLength:"500" doc:"of the version"`
}

// Preview describes the effects of a change of a placement.
type Preview struct {
	Change     string    `json:"change" enum:"none,create,keep,restart,end,adopt" doc:"none: the placement has this configuration; create: there is no such placement; keep: the learner continues; restart: another learner begins, with reset=true or relearn=log if something is lost; end: an experiment ends, with reset=true, and what the learners of its variants have learned is lost; adopt: an experiment ends, and the learner of one of its variants decides"`
	Placement  Placement `json:"placement" doc:"the configuration with its defaults, notes and warnings"`
	Fields     []string  `json:"fields,omitempty" doc:"of restart: what changes that the learner depends on"`
	Lost       *Loss     `json:"lost,omitempty" doc:"of restart: what the learner has learned, which is kept as a version; left out if it has learned nothing. Of end: what is lost"`
	CanRelearn bool      `json:"can_relearn" doc:"whether relearn=log can learn it again from the log"`
	MaxSize    int       `json:"max_size,omitzero" doc:"relearn=log would skip decisions that showed more items: see the warnings"`
}

// Values of [Preview.Change].
const (
	PreviewNone    = "none"    // this is the placement's configuration
	PreviewCreate  = "create"  // there is no such placement
	PreviewKeep    = "keep"    // the learner goes on
	PreviewRestart = "restart" // another learner begins
	PreviewEnd     = "end"     // an experiment ends, and its learners' knowledge is lost
	PreviewAdopt   = "adopt"   // an experiment ends, and the learner of one of its variants decides
)

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

// LearnerState is the saved knowledge of a placement's learner.
type LearnerState struct {
	Placement   string    `json:"placement"`
	PolicyEntry uint64    `json:"policy_entry" doc:"the last entry of the log that it has learned from"`
	Learned     uint64    `json:"learned" doc:"rounds that it has learned"`
	Config      Placement `json:"config" doc:"the configuration of a learner that reads the state"`
	State       string    `json:"state" doc:"what the learner's MarshalBinary returns, in Base 64 (RFC 4648)"`
}
