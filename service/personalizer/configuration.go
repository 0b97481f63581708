package personalizer

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
)

// serviceDocument is the configuration of a resource: the placement's values, and fixed ones for the rest.
type serviceDocument struct {
	RewardWaitTime        string  `json:"rewardWaitTime" doc:"the attribution window, a duration of ISO 8601"`
	DefaultReward         float64 `json:"defaultReward" doc:"0, the reward of the outside option"`
	RewardAggregation     string  `json:"rewardAggregation" enum:"earliest"`
	ExplorationPercentage float64 `json:"explorationPercentage" minimum:"0" maximum:"1" doc:"the share of requests that explore"`
	ModelExportFrequency  string  `json:"modelExportFrequency" doc:"PT1S: what was learned decides at once"`
	ModelRetrainDays      int     `json:"modelRetrainDays" doc:"0: the learner forgets nothing"`
	LogMirrorEnabled      bool    `json:"logMirrorEnabled" doc:"false"`
	LogRetentionDays      int     `json:"logRetentionDays" doc:"-1: the service's [retention] bounds the log"`
	LearningMode          string  `json:"learningMode" enum:"Online,Apprentice" doc:"Apprentice is the mode shadow"`
	AutoOptimization      bool    `json:"isAutoOptimizationEnabled" doc:"false"`
}

// serviceChange holds the members of a resource's configuration that change a placement. Missing ones stay; others are
// ignored.
type serviceChange struct {
	RewardWaitTime        *string  `json:"rewardWaitTime,omitempty" doc:"a duration of ISO 8601, such as PT10M"`
	DefaultReward         *float64 `json:"defaultReward,omitempty" minimum:"0" maximum:"0"`
	RewardAggregation     *string  `json:"rewardAggregation,omitempty" enum:"earliest"`
	ExplorationPercentage *float64 `json:"explorationPercentage,omitempty" minimum:"0" maximum:"1"`
	LearningMode          *string  `json:"learningMode,omitempty" enum:"Online,Apprentice"`
}

const (
	online     = "Online"
	apprentice = "Apprentice"
	earliest   = "earliest"
)

// serviceOf returns a placement's configuration as a resource's.
func serviceOf(c *setup.Config) *serviceDocument {
	window, _ := time.ParseDuration(c.AttributionWindow) // already checked by the Config
	s := &serviceDocument{
		RewardWaitTime: isoDuration(window), RewardAggregation: earliest, ModelExportFrequency: "PT1S",
		LogRetentionDays: -1, LearningMode: online,
	}
	if c.Mode == api.Shadow {
		s.LearningMode, s.ExplorationPercentage = apprentice, 0.2 // Personalizer's default, for a later change to Online
	}
	if c.ExploreShare != nil {
		s.ExplorationPercentage = *c.ExploreShare
	}
	return s
}

func (a *Adapter) getService(c Call) (Answer, error) {
	config, err := a.Engine.Config(c.Placement())
	if err != nil {
		return Answer{}, err
	}
	return Answer{Body: serviceOf(config)}, nil
}

func (a *Adapter) putService(c Call) (Answer, error) {
	var change serviceChange
	if err := c.Decode(&change); err != nil {
		return Answer{}, err
	}
	if change == (serviceChange{}) {
		return Answer{}, &api.FieldError{Message: "must have rewardWaitTime, explorationPercentage or " +
			"learningMode: the rest of a configuration cannot be changed"}
	}
	if _, err := a.view(c); err != nil {
		return Answer{}, err
	}
	if err := a.change(c, c.Placement(), false, change.apply); err != nil {
		return Answer{}, err
	}
	return a.getService(c)
}

// change changes a placement, unless another caller changed it meanwhile.
func (a *Adapter) change(c Call, name string, reset bool, apply func(*api.Placement) error) error {
	config, revision, err := a.Engine.Revision(name)
	if err != nil {
		return err
	}
	placement := config.Placement
	if err := apply(&placement); err != nil {
		return err
	}
	text, err := json.Marshal(placement, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("a placement does not marshal: %w", err)
	}
	same := func(now uint64) error {
		if now != revision {
			return fmt.Errorf("%w: the placement was changed meanwhile: try again", engine.ErrConflict)
		}
		return nil
	}
	_, err = a.Engine.Change(c.Context(), name, text, engine.Change{Reset: reset, Match: same}, c.Now())
	return err
}

// apply changes a placement's window, mode and exploration.
func (s *serviceChange) apply(p *api.Placement) error {
	if s.RewardWaitTime != nil {
		wait, err := parseISO(*s.RewardWaitTime)
		if err != nil {
			return api.Fieldf("/rewardWaitTime", "%q: %v", *s.RewardWaitTime, err)
		}
		p.AttributionWindow = wait.String()
	}
	if s.DefaultReward != nil && *s.DefaultReward != 0 {
		return api.Fieldf("/defaultReward", "%v: must be 0, the reward of a customer who takes nothing",
			*s.DefaultReward)
	}
	if s.RewardAggregation != nil && *s.RewardAggregation != earliest {
		return api.Fieldf("/rewardAggregation", "%q: must be %q: the first reward counts", *s.RewardAggregation,
			earliest)
	}
	now := serviceOf(&setup.Config{Placement: *p})
	if s.ExplorationPercentage != nil {
		now.ExplorationPercentage = *s.ExplorationPercentage
	}
	if !(now.ExplorationPercentage >= 0 && now.ExplorationPercentage <= 1) {
		return api.Fieldf("/explorationPercentage", "%v: must be in [0, 1]", now.ExplorationPercentage)
	}
	if s.LearningMode != nil {
		now.LearningMode = *s.LearningMode
	}
	p.ExploreShare = nil
	switch {
	case now.LearningMode == apprentice:
		p.Mode, p.Explore = api.Shadow, ""
	case now.LearningMode != online:
		return api.Fieldf("/learningMode", "%q: must be %q or %q", now.LearningMode, online, apprentice)
	case now.ExplorationPercentage == 0:
		p.Mode, p.Explore = api.Learn, ""
	default:
		p.Mode, p.ExploreShare = api.Explore, &now.ExplorationPercentage
	}
	return nil
}

// resetModel restarts the learner with the next seed, and keeps its knowledge as a version.
func (a *Adapter) resetModel(c Call) (Answer, error) {
	return Answer{}, a.change(c, c.Placement(), true, func(p *api.Placement) error { p.Seed++; return nil })
}

// modelDocument holds the times of a learner.
type modelDocument struct {
	CreationTime     *time.Time `json:"creationTime,omitempty" doc:"when the placement got its configuration; left out if the log no longer has it"`
	LastModifiedTime *time.Time `json:"lastModifiedTime,omitempty" doc:"when the last outcome came that it has learned from"`
}

func (a *Adapter) modelProperties(c Call) (Answer, error) {
	_, changed, err := a.Engine.Revision(c.Placement())
	if err != nil {
		return Answer{}, err
	}
	stats, err := a.Engine.Stats(c.Placement())
	if err != nil {
		return Answer{}, err
	}
	var model modelDocument
	for _, t := range []struct {
		to    **time.Time
		entry uint64
	}{{&model.CreationTime, changed}, {&model.LastModifiedTime, stats.PolicyEntry}} {
		if t.entry == 0 {
			continue
		}
		switch at, err := a.Engine.Time(c.Context(), t.entry); {
		case err == nil:
			*t.to = &at
		case !errors.Is(err, eventlog.ErrRemoved):
			return Answer{}, err
		}
	}
	return Answer{Body: model}, nil
}

// maxWait is the longest attribution window.
const maxWait = 366 * 24 * time.Hour

var isoPattern = regexp.MustCompile(`^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// parseISO parses a duration of ISO 8601 in weeks, days, hours, minutes and seconds: years and months vary in length.
func parseISO(text string) (time.Duration, error) {
	parts := isoPattern.FindStringSubmatch(text)
	seconds := 0.0
	for i, unit := range []float64{7 * 86400, 86400, 3600, 60, 1} {
		if parts != nil && parts[i+1] != "" {
			v, err := strconv.ParseFloat(parts[i+1], 64)
			if err != nil {
				v = math.Inf(1)
			}
			seconds += v * unit
		}
	}
	if !(seconds > 0) || strings.HasSuffix(text, "T") {
		return 0, errors.New("must be a positive duration such as PT10M or P1D")
	}
	if seconds > maxWait.Seconds() {
		return 0, fmt.Errorf("must be at most %s", isoDuration(maxWait))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// isoDuration returns a positive duration in the form of ISO 8601.
func isoDuration(d time.Duration) string {
	text := "P"
	if days := d / (24 * time.Hour); days > 0 {
		text += fmt.Sprint(int64(days), "D")
	}
	if d %= 24 * time.Hour; d == 0 {
		return text
	}
	text += "T"
	if hours := d / time.Hour; hours > 0 {
		text += fmt.Sprint(int64(hours), "H")
	}
	if minutes := d % time.Hour / time.Minute; minutes > 0 {
		text += fmt.Sprint(int64(minutes), "M")
	}
	if seconds := d % time.Minute; seconds > 0 {
		text += strconv.FormatFloat(seconds.Seconds(), 'f', -1, 64) + "S"
	}
	return text
}
