package decision

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"vitrine/service/api"
	"vitrine/service/feature"
)

// Config is a placement: where a learner shows assortments. What is left out
// has the value in parentheses.
type Config struct {
	// MaxSize is K ≥ 1, the most items that are shown.
	MaxSize int `json:"max_size"`
	// MaxItems bounds N of a request (1000).
	MaxItems int `json:"max_items"`
	// Features make the rows of items.
	Features []feature.Feature `json:"features"`
	// AtMost bounds how many items of a category are shown.
	AtMost []Limit `json:"at_most,omitempty"`
	// Policy says which learner there is, in the words of whoever builds it.
	Policy jsontext.Value `json:"policy"`
	// Rounds is T, the horizon of the policies that have one (100000).
	Rounds int `json:"rounds"`
	// Seed is that of all draws (0).
	Seed uint64 `json:"seed"`
	// AttributionWindow is how long an outcome is waited for, such as "30m" ("30m").
	AttributionWindow string `json:"attribution_window"`
	// Mode is "learn", "shadow" or "explore" ("learn").
	Mode string `json:"mode"`
	// ExploreShare is ε of the mode "explore", the share of uniformly drawn sets (0.05).
	ExploreShare float64 `json:"explore_share,omitzero"`
	// Record says which items' rows the log keeps, and the learner observes: those
	// "shown" ("shown"), or "all" candidates' ("all" in the mode "explore"). Most
	// learners look at the shown rows alone; the others, and the evaluation of other policies, need all of them.
	Record string `json:"record"`
	// Memory bounds the bytes of remembered decisions (64 MiB), see [Config.Bound].
	Memory int `json:"memory"`
	// Keep is how many states of the learner are there to roll back to (8).
	Keep int `json:"keep"`

	window time.Duration
	schema *feature.Schema
}

// The modes of a placement.
const (
	Learn   = "learn"   // the policy decides
	Shadow  = "shadow"  // the caller's baseline is shown, the policy learns from it and says what it would have shown
	Explore = "explore" // the policy decides but for a share of uniformly drawn sets
)

// Limit bounds how many items of a group are shown: of the given items, or for
// each value of a category of the given feature.
type Limit struct {
	Items   []string `json:"items,omitempty"`
	Feature string   `json:"feature,omitzero"`
	Most    int      `json:"most"`
}

const (
	largestSize   = 1000
	largestItems  = 1_000_000
	largestRounds = 100_000_000
	largestKeep   = 1000
	largestWindow = 366 * 24 * time.Hour
	largestRows   = 1 << 26 // numbers: 512 MiB in each request under way
	leastMemory   = 16      // decisions of the largest size
	largestMemory = min(1<<40, math.MaxInt/2)
)

// leftOut is an ExploreShare that is left out: JSON has no infinities.
var leftOut = math.Inf(-1)

// ParseConfig reads the JSON of a placement, strictly: unknown keys, keys
// that are there twice and wrong types are errors that name the field.
func ParseConfig(text []byte) (*Config, error) {
	c := &Config{MaxItems: 1000, Rounds: 100_000, AttributionWindow: "30m", Mode: Learn, Memory: 64 << 20, Keep: 8, ExploreShare: leftOut}
	if err := json.Unmarshal(text, c, json.RejectUnknownMembers(true)); err != nil {
		return nil, api.JSONError(err)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.Policy.Canonicalize(); err != nil {
		return nil, api.Fieldf("/policy", "%v", err)
	}
	return c, nil
}

// Canonical returns the configuration with all its values, keys in order
// (RFC 8785): configurations of the same meaning have the same bytes.
func (c *Config) Canonical() []byte {
	text, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("decision: a checked configuration does not marshal: %v", err))
	}
	v := jsontext.Value(text)
	if err := v.Canonicalize(); err != nil {
		panic(fmt.Sprintf("decision: a checked configuration is not JSON: %v", err))
	}
	return v
}

// Schema returns how the placement's features become rows.
func (c *Config) Schema() *feature.Schema { return c.schema }

func (c *Config) check() error {
	if err := api.InRange("/max_size", c.MaxSize, 1, largestSize); err != nil {
		return err
	}
	if err := api.InRange("/max_items", c.MaxItems, 1, largestItems); err != nil {
		return err
	}
	if err := api.InRange("/rounds", c.Rounds, 1, largestRounds); err != nil {
		return err
	}
	if err := api.InRange("/keep", c.Keep, 1, largestKeep); err != nil {
		return err
	}
	if c.Seed > 1<<53 {
		return api.Fieldf("/seed", "%d: must be at most 2⁵³, which JSON has exactly", c.Seed)
	}
	if c.Policy.Kind() != '{' {
		return api.Fieldf("/policy", `must be an object such as {"name": "onl-mnl"}`)
	}
	var err error
	if c.window, err = time.ParseDuration(c.AttributionWindow); err != nil || c.window <= 0 || c.window > largestWindow {
		return api.Fieldf("/attribution_window", `%q: must be a duration such as "30m", positive and at most %v`, c.AttributionWindow, largestWindow)
	}
	c.AttributionWindow = c.window.String()
	if err := c.checkMode(); err != nil {
		return err
	}
	if c.schema, err = feature.New(c.Features); err != nil {
		return err
	}
	limited := map[string]bool{}
	for i, l := range c.AtMost {
		field := fmt.Sprintf("/at_most/%d", i)
		if l.Items != nil {
			return api.Fieldf(field+"/items", "items are known to requests alone: name a feature")
		}
		if err := l.checkCategory(field, c.schema, limited); err != nil {
			return err
		}
	}
	if most := largestRows / c.schema.Width(); c.MaxItems > most {
		return api.Fieldf("/max_items", "%d: must be at most %d of %d columns each", c.MaxItems, most, c.schema.Width())
	}
	if c.Memory > largestMemory {
		return api.Fieldf("/memory", "%d: must be at most %d bytes", c.Memory, int64(largestMemory))
	}
	if least := leastMemory * c.largestRecord(); c.Memory < least {
		return api.Fieldf("/memory", "%d: must be at least %d bytes, %d decisions of the largest size", c.Memory, least, leastMemory)
	}
	return nil
}

func (c *Config) checkMode() error {
	switch c.Mode {
	case Learn, Shadow:
		if c.ExploreShare != 0 && c.ExploreShare != leftOut {
			return api.Fieldf("/explore_share", "%v: is for the mode %q", c.ExploreShare, Explore)
		}
		c.ExploreShare = 0
	case Explore:
		if c.ExploreShare == leftOut {
			c.ExploreShare = 0.05
		}
		if !(c.ExploreShare > 0 && c.ExploreShare <= 1) {
			return api.Fieldf("/explore_share", "%v: must be in (0, 1]", c.ExploreShare)
		}
	default:
		return api.OneOf("/mode", c.Mode, Learn, Shadow, Explore)
	}
	switch {
	case c.Record != "":
		return api.OneOf("/record", c.Record, "shown", "all")
	case c.Mode == Explore:
		c.Record = "all"
	default:
		c.Record = "shown"
	}
	return nil
}

// Spec is what there is to know to build a placement's learner.
type Spec struct {
	Policy   []byte // JSON, as configured
	Features int    // d, the width of a row
	Size     int    // K
	Items    int    // the largest N of a request
	All      bool   // rounds have the rows of all N items, not of those shown alone
	Rounds   int    // T
	Seed     uint64
}

func (c *Config) spec() Spec {
	return Spec{Policy: c.Policy, Features: c.schema.Width(), Size: c.MaxSize, Items: c.MaxItems, All: c.Record == "all", Rounds: c.Rounds, Seed: c.Seed}
}

// sameLearner reports whether a learner of one configuration can go on under
// the other: it is built alike and sees the same rows.
func (c *Config) sameLearner(o *Config) bool {
	return string(c.Policy) == string(o.Policy) && c.MaxSize == o.MaxSize && c.Rounds == o.Rounds && c.Seed == o.Seed &&
		slices.EqualFunc(c.Features, o.Features, feature.Feature.Equal)
}
