// Package setup handles the configurations of placements: it validates them, says what a change of one means, and
// builds learners.
//
//	config.go      a validated configuration
//	experiment.go  its experiment, and the configurations of the variants
//	memory.go      the bytes that a placement takes
//	names.go       the names of placements and decisions
//	learner.go     the learner of a configuration
package setup

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine"
	"vitrine/bandit/policy"
	"vitrine/internal/hint"
	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/feature"
)

// Config is a validated placement. Fields missing in its JSON take the defaults of [api.Placement].
type Config struct {
	api.Placement

	window time.Duration
	keep   time.Duration // for pages and sales of shoppers
	schema *feature.Schema
}

const (
	MaxSize     = 1000
	maxItems    = 1_000_000
	maxRounds   = 100_000_000
	maxKeep     = 1000
	maxMinima   = 32 // lower bounds of groups, which are searched one after the other where they are out of reach
	maxWindow   = 366 * 24 * time.Hour
	maxRows     = 1 << 26 // numbers: 512 MiB in each concurrent request
	minShoppers = 1 << 20 // bytes
	minMemory   = 16      // decisions of the largest size
	maxMemory   = min(1<<40, math.MaxInt/2)
)

// Parse reads the JSON of a placement, strictly: unknown keys, duplicate keys and wrong types are errors that name the
// field. Missing members, and missing settings of the policy, take their defaults. Errors of a policy come from its
// learner's builder.
func Parse(text []byte) (*Config, error) {
	c := &Config{Placement: api.Placement{MaxItems: 1000, Horizon: 100_000, AttributionWindow: "30m", Mode: api.Learn,
		MemoryBytes: 64 << 20, MaxVersions: 8}}
	if err := json.Unmarshal(text, &c.Placement, json.RejectUnknownMembers(true)); err != nil {
		err := api.JSONError(err)
		if field, ok := errors.AsType[*api.FieldError](err); ok && field.Field == "/policy" {
			return nil, api.Fieldf("/policy", `must be an object such as {"name": "onl-mnl"}`)
		}
		return nil, err
	}
	if c.Policy == nil {
		c.Policy = map[string]any{"name": policy.Default}
	}
	c.Notes, c.Warnings = nil, nil // those that were answered before
	feature.Complete(c.Features)
	if err := c.check(); err != nil {
		return nil, err
	}
	c.complete()
	return c, nil
}

// complete gives the policy all its settings. One that cannot be built stays as it is.
func (c *Config) complete() {
	s := c.Spec()
	if all, err := policy.Complete(s.Policy, s.problem(), s.All); err == nil {
		c.Policy = all
	}
	if c.Experiment == nil {
		return
	}
	for i := range c.Experiment.Variants {
		v := &c.Experiment.Variants[i]
		if s.Policy = Canonical(v.Policy); v.Policy != nil {
			if all, err := policy.Complete(s.Policy, s.problem(), s.All); err == nil {
				v.Policy = all
			}
		}
	}
}

// Learn returns the configuration with a schema that learned category values.
func (c *Config) Learn(values ...feature.Seen) (*Config, error) {
	schema, err := c.schema.Learn(values...)
	if err != nil {
		return nil, err
	}
	learned := *c
	learned.schema = schema
	return &learned, nil
}

// Inherit returns the configuration with a schema that also knows the values learned by another one's.
func (c *Config) Inherit(o *Config) *Config {
	heir := *c
	heir.schema = c.schema.Inherit(o.schema)
	return &heir
}

// hidesLaw reports whether the placement draws sets under rules, so that the log does not tell how. Limits of several
// groupings may cross: then swaps are drawn, and the log tells.
func (c *Config) hidesLaw() bool {
	if c.Mode != api.Explore || c.Explore == api.BySwaps || c.LogItems != "all" || c.Capacity != nil || len(c.Limits) > 1 {
		return false
	}
	h := c.ShopperHistory
	return len(c.Limits)+len(c.Include)+len(c.Exclude) > 0 || c.MinSize > 0 && c.MinSize < c.MaxSize || h != nil && h.HideBought
}

// Answer returns the placement for answers, with warnings.
func (c *Config) Answer() api.Placement {
	p := c.Placement
	p.Policy = policy.Effective(p.Policy)
	p.Warnings = policy.Warnings(c.Policy)
	for _, k := range c.schema.Categories() {
		if k.OwnColumns > 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: the first %d values have columns of their own (%d have), "+
				"and all others share %d: give values, or raise own_columns and columns, if there are more", k.Feature,
				k.OwnColumns, k.Learned, k.SharedColumns))
		} else {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: all values are hashed and share %d columns: give values or "+
				"own_columns, so that each has its own", k.Feature, k.SharedColumns))
		}
		if k.Collisions > 0 {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s: %d times the policy took two values for the same, "+
				"because they share a column: list them under values, or raise own_columns and columns, with "+
				"?reset=true, because the learner then begins again", k.Feature, k.Collisions))
		}
	}
	p.Notes = append(p.Notes, new(Config).NewDuties(c, time.Time{})...)
	if c.hidesLaw() {
		p.Notes = append(p.Notes, "explore: under the placement's rules, the log does not tell how random sets were drawn, "+
			"and evaluate cannot weigh the items: explore by swaps")
	}
	if len(c.Limits) > 2 {
		p.Notes = append(p.Notes, "limits: items may be grouped in two ways that cross, not in three: if a change of the "+
			"catalogue makes three of these limits cross, the service refuses every request to /decisions")
	}
	decision, item, bits := c.LogBytes()
	note := fmt.Sprintf("a decision takes up to about %s of the log, for the rows of %s shown, and ", size(decision),
		hint.Count(c.MaxSize, "item"))
	if c.LogItems == "all" {
		note += fmt.Sprintf("%s for each item that a request brings. A choice among some items of the catalogue takes "+
			"%s for each of the catalogue's", size(item), hint.Count(bits, "bit"))
	} else {
		note += "at most 2 kB for which items of the catalogue were candidates"
	}
	p.Notes = append(p.Notes, note)
	return p
}

func size(bytes int) string {
	if bytes < 1000 {
		return fmt.Sprint(bytes, " bytes")
	}
	return fmt.Sprintf("%.1f kB", float64(bytes)/1000)
}

// Canonical returns the configuration with all its values, keys in order (RFC 8785): configurations of the same meaning
// are the same bytes.
func (c *Config) Canonical() []byte {
	return Canonical(c.Placement)
}

// Canonical returns the canonical JSON of a value that was decoded from JSON.
func Canonical(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("decision: %T does not marshal: %v", v, err))
	}
	if err := (*jsontext.Value)(&text).Canonicalize(); err != nil {
		panic(fmt.Sprintf("decision: %T is not JSON: %v", v, err))
	}
	return text
}

// EndsHoldout reports whether the comparison with the shoppers who are held out ends if next follows c: the share
// becomes 0, decisions count after another time, or shoppers are known by other names.
func (c *Config) EndsHoldout(next *Config) bool {
	return next.Holdout == 0 || c.Window() != next.Window() || (c.ShopperHistory == nil) != (next.ShopperHistory == nil)
}

// WaitsOtherwise reports whether an experiment or a hold-out of next is another than that of c, or waits for outcomes in
// another window or memory.
func (c *Config) WaitsOtherwise(next *Config) bool {
	return (next.Experiment != nil || next.Holdout > 0) && (next.MemoryBytes != c.MemoryBytes || next.Window() != c.Window() ||
		next.Holdout != c.Holdout || !bytes.Equal(Canonical(next.Experiment), Canonical(c.Experiment)))
}

// Window returns the attribution window.
func (c *Config) Window() time.Duration { return c.window }

// Schema returns the schema that turns the placement's features into rows.
func (c *Config) Schema() *feature.Schema { return c.schema }

// FeatureNames returns the names of the features of items and of users, without crosses.
func (c *Config) FeatureNames() (items, users []string) {
	for _, f := range c.Features {
		switch {
		case f.Kind == "cross":
		case f.From == "shopper":
			users = append(users, f.Name)
		default:
			items = append(items, f.Name)
		}
	}
	return items, users
}

func (c *Config) check() error {
	for _, n := range []struct {
		field             string
		value, least, max int
	}{
		{"/max_size", c.MaxSize, 1, MaxSize}, {"/min_size", c.MinSize, 0, c.MaxSize},
		{"/max_request_items", c.MaxItems, 1, maxItems}, {"/horizon", c.Horizon, 1, maxRounds},
		{"/max_versions", c.MaxVersions, 1, maxKeep},
	} {
		if err := api.InRange(n.field, n.value, n.least, n.max); err != nil {
			return err
		}
	}
	if c.Seed > 1<<53 {
		return api.Fieldf("/seed", "%d: must be at most 2⁵³, which JSON has exactly", c.Seed)
	}
	var err error
	if c.window, err = time.ParseDuration(c.AttributionWindow); err != nil || c.window <= 0 || c.window > maxWindow {
		return api.Fieldf("/attribution_window", `%q: must be a duration such as "30m", positive and at most %v`,
			c.AttributionWindow, maxWindow)
	}
	c.AttributionWindow = c.window.String()
	if err := cmp.Or(c.checkMode(), c.checkExperiment(), c.checkHoldout()); err != nil {
		return err
	}
	if c.schema, err = feature.New(c.Features); err != nil {
		return err
	}
	if err := cmp.Or(c.checkShoppers(), c.checkSegments()); err != nil {
		return err
	}
	if !c.takesAnyScale() {
		c.schema.Bound(vitrine.MaxUnscaled)
	}
	if err := cmp.Or(c.checkRules(), c.checkPinned()); err != nil {
		return err
	}
	if maximum := maxRows / c.schema.Width(); c.MaxItems > maximum {
		return api.Fieldf("/max_request_items", "%d: must be at most %d of %d columns each", c.MaxItems, maximum,
			c.schema.Width())
	}
	if c.MemoryBytes > maxMemory {
		return api.Fieldf("/memory_bytes", "%d: must be at most %d bytes", c.MemoryBytes, int64(maxMemory))
	}
	if minimum := minMemory * c.maxRecord(); c.MemoryBytes < minimum {
		return api.Fieldf("/memory_bytes", "%d: must be at least %d bytes, %d decisions of the largest size",
			c.MemoryBytes, minimum, minMemory)
	}
	return nil
}

// KeepShoppers returns how long the placement remembers a view or a purchase.
func (c *Config) KeepShoppers() time.Duration { return c.keep }

// checkShoppers checks the settings of the memory of shoppers.
func (c *Config) checkShoppers() (err error) {
	h := c.ShopperHistory
	if h == nil {
		for i, f := range c.Features {
			if f.History != "" {
				return api.Fieldf(fmt.Sprintf("/features/%d/history", i), "%q: set shopper_history, or nothing is "+
					"remembered to count", f.History)
			}
		}
		return nil
	}
	if c.keep, err = time.ParseDuration(h.Keep); err != nil || c.keep <= 0 || c.keep > maxWindow {
		return api.Fieldf("/shopper_history/keep", `%q: must be a duration such as "720h", positive and at most %v`,
			h.Keep, maxWindow)
	}
	h.Keep, h.MemoryBytes = c.keep.String(), cmp.Or(h.MemoryBytes, 16<<20)
	return api.InRange("/shopper_history/memory_bytes", h.MemoryBytes, minShoppers, maxMemory)
}

// maxExcluded is the max number of items that a placement never shows.
const maxExcluded = 1000

// checkPinned checks the pinned and the excluded items, and the currency.
func (c *Config) checkPinned() error {
	seen := map[string]string{}
	for _, list := range []struct {
		field string
		ids   []string
		most  int
	}{{"/include", c.Include, c.MaxSize}, {"/exclude", c.Exclude, maxExcluded}} {
		if err := api.CheckLength(list.field, len(list.ids), list.most); err != nil {
			return err
		}
		for i, id := range list.ids {
			field := fmt.Sprintf("%s/%d", list.field, i)
			if id == "" || len(id) > MaxID || !utf8.ValidString(id) {
				return api.Fieldf(field, "must have from 1 to %d bytes of UTF-8", MaxID)
			}
			if before, ok := seen[id]; ok {
				return api.Fieldf(field, "%q is in %s already", api.Abbreviate(id, 40), before[1:])
			}
			seen[id] = list.field
		}
	}
	if len(c.Currency) != 0 && (len(c.Currency) != 3 || strings.Trim(c.Currency, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "") {
		return api.Fieldf("/currency", "%q: must be three capital letters of ISO 4217, such as EUR",
			api.Abbreviate(c.Currency, 40))
	}
	return nil
}

// checkRules checks the limits and the capacity, which need the schema.
func (c *Config) checkRules() error {
	for i, l := range c.Limits {
		field := fmt.Sprintf("/limits/%d", i)
		if l.Items != nil {
			return api.Fieldf(field+"/items", "only requests have items: name a feature, an attribute or a group")
		}
		if err := CheckLimit(c.Limits[:i], l, field, c.schema); err != nil {
			return err
		}
	}
	if c.Capacity == nil {
		return nil
	}
	if c.MinSize > 0 || len(minima(c.Limits)) > 0 {
		return api.Fieldf("/capacity", "cannot be combined with min_size or a limit's min: leave out one of them")
	}
	return catalogue.CheckSpace("/capacity", *c.Capacity)
}

func (c *Config) checkMode() error {
	switch c.Mode {
	case api.Learn, api.Shadow, api.Experimenting:
		if c.ExploreShare != nil && *c.ExploreShare != 0 {
			return api.Fieldf("/explore_share", "%v: is for the mode %q", *c.ExploreShare, api.Explore)
		}
		c.ExploreShare = nil
	case api.Explore:
		if c.ExploreShare == nil {
			c.ExploreShare = new(0.05)
		}
		if !(*c.ExploreShare > 0 && *c.ExploreShare <= 1) {
			return api.Fieldf("/explore_share", "%v: must be in (0, 1]", *c.ExploreShare)
		}
	default:
		return api.OneOf("/mode", c.Mode, api.Learn, api.Shadow, api.Explore, api.Experimenting)
	}
	if c.Explore != "" {
		if c.Mode != api.Explore {
			return api.Fieldf("/explore", "%q: is for the mode %q", c.Explore, api.Explore)
		}
		if err := api.OneOf("/explore", c.Explore, api.BySets, api.BySwaps); err != nil {
			return err
		}
	}
	if c.Fallback != "" {
		if err := api.OneOf("/fallback", c.Fallback, api.FallbackBaseline, api.FallbackVersion); err != nil {
			return err
		}
	}
	switch {
	case c.LogItems != "":
		return api.OneOf("/log_items", c.LogItems, "shown", "all")
	case c.Mode == api.Explore:
		c.LogItems = "all"
	default:
		c.LogItems = "shown"
	}
	return nil
}

// SameLearner reports whether a learner of one configuration can continue under the other: it is built in the
// same way and sees the same rows.
func (c *Config) SameLearner(o *Config) bool { return len(c.LearnerFields(o)) == 0 }

// LearnerFields returns the fields that make the learners of two configurations differ. For another policy its name is
// enough, because its settings are others.
func (c *Config) LearnerFields(o *Config) (fields []string) {
	keys := maps.Clone(c.Policy)
	maps.Copy(keys, o.Policy)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !bytes.Equal(Canonical(c.Policy[key]), Canonical(o.Policy[key])) {
			fields = append(fields, "policy/"+api.Pointer(key))
		}
	}
	if slices.Contains(fields, "policy/name") {
		fields = []string{"policy/name"}
	}
	for _, f := range []struct {
		name string
		same bool
	}{
		{"max_size", c.MaxSize == o.MaxSize}, {"horizon", c.Horizon == o.Horizon}, {"seed", c.Seed == o.Seed},
		{"features", slices.EqualFunc(c.Features, o.Features, feature.Equal)},
	} {
		if !f.same {
			fields = append(fields, f.name)
		}
	}
	return fields
}

func minima(limits []api.Limit) []api.Limit {
	return slices.DeleteFunc(slices.Clone(limits), func(l api.Limit) bool { return l.Min == 0 })
}

// CheckLimit checks a limit after others. A grouping may be limited only once, because its groups would cross
// themselves.
func CheckLimit(before []api.Limit, l api.Limit, field string, s *feature.Schema) error {
	given := 0
	for _, has := range []bool{l.Items != nil, l.Feature != "", l.Attribute != "", l.Group != ""} {
		if has {
			given++
		}
	}
	switch {
	case given != 1:
		return api.Fieldf(field, "must have one of items, feature, attribute and group")
	case l.Check(field) != nil:
		return l.Check(field)
	case l.Min > 0 && (l.Feature != "" || l.Attribute != ""):
		return api.Fieldf(field+"/min", "needs items or a group: %q has many groups, which cannot all be on a page",
			l.By())
	case l.Min > 0 && len(minima(before)) == maxMinima:
		return api.Fieldf(field+"/min", "at most %d limits may have a min", maxMinima)
	case l.Feature != "" && !s.IsCategory(l.Feature):
		return api.Fieldf(field+"/feature", "%q: must be a category of items", l.Feature)
	case l.Items != nil:
		return nil
	}
	for _, b := range before {
		if GroupsBy(b) == GroupsBy(l) {
			return api.Fieldf(field, "%q has a limit already", l.By())
		}
	}
	return nil
}

// takesAnyScale reports whether all policies accept features of any scale.
func (c *Config) takesAnyScale() bool {
	takes := func(settings map[string]any) bool {
		name, _ := settings["name"].(string)
		p, ok := policy.Named(name)
		return !ok || p.AnyScale
	}
	if c.Experiment != nil {
		for _, v := range c.Experiment.Variants {
			if v.Policy != nil && !takes(v.Policy) {
				return false
			}
		}
	}
	return takes(c.Policy)
}

func (c *Config) Spec() Spec {
	return Spec{Policy: Canonical(c.Policy), Features: c.schema.Width(), Numeric: c.schema.Numeric(),
		Customer: c.schema.Customer(), Size: c.MaxSize, Items: c.MaxItems, All: c.LogItems == "all", Rounds: c.Horizon,
		Seed: c.Seed}
}

// IsLogged reports whether a configuration is the logged one.
func (c *Config) IsLogged(text []byte) bool {
	logged, err := Parse(text)
	return err == nil && bytes.Equal(logged.Canonical(), c.Canonical())
}

// SameRows reports whether a learner of a configuration o can learn from decisions made under c.
func (c *Config) SameRows(o *Config) bool {
	return c.MaxSize <= o.MaxSize && c.schema.Equal(o.schema)
}

// RequestSize bounds the bytes that a request with the given number of items takes while it is read and
// decided, in addition to its text: the values of its features, N·d numbers of rows, and a constant for each
// item.
func (c *Config) RequestSize(items int) int64 {
	const value, item = 96, 200
	return int64(items) * int64(8*c.schema.Width()+value*c.schema.NumItem()+item)
}
