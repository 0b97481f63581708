package setup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vitrine/service/api"
	"vitrine/service/catalogue"
	"vitrine/service/earnings"
	"vitrine/service/earnings/abtest"
)

// checkExperiment checks what an experiment compares, and fills in its defaults.
func (c *Config) checkExperiment() error {
	switch e := c.Experiment; {
	case c.Mode != api.Experimenting && e != nil:
		return api.Fieldf("/experiment", "is for the mode %q, and the mode is %q: leave it out", api.Experimenting,
			c.Mode)
	case c.Mode != api.Experimenting:
		return nil
	case e == nil:
		return api.Fieldf("/experiment", "is missing: in the mode %q it says what is compared", api.Experimenting)
	default:
		return abtest.Check(e, IsName)
	}
}

// checkHoldout checks the share of shoppers who always see the caller's baseline.
func (c *Config) checkHoldout() error {
	if n, ok := abtest.Count(c.Holdout); !ok || n > abtest.Buckets/2 {
		return api.Fieldf("/holdout_share", "%v: must be from 0 to 0.5, in steps of 0.0001", c.Holdout)
	}
	if c.Holdout > 0 && c.Mode == api.Shadow {
		return api.Fieldf("/holdout_share", "%v: in the mode %q all shoppers see the baseline: leave it out", c.Holdout,
			api.Shadow)
	}
	return nil
}

func (c *Config) checkSegments() error {
	if c.Experiment == nil || c.Experiment.Segments == "" {
		return nil
	}
	by := c.Experiment.Segments
	if k := slices.IndexFunc(c.Features, func(f api.Feature) bool { return f.Name == by }); k < 0 ||
		c.Features[k].Kind != "category" || c.Features[k].From != "shopper" {
		return api.Fieldf("/experiment/segment_by", "%q: must be a feature of shoppers that is a category", by)
	}
	return nil
}

// WhyBaseline says why requests must contain the caller's baseline, or returns "". While an experiment does not run,
// outside is true.
func (c *Config) WhyBaseline(outside bool) string {
	switch {
	case !outside && abtest.IsShown(c.Experiment, api.ShowBaseline):
		return "the experiment shows your own page to some shoppers, so every request must contain it"
	case c.Experiment != nil && c.Experiment.Outside == api.ShowBaseline:
		return "your own page is shown before the experiment starts and after it ends, so every request must contain it"
	case c.Holdout > 0:
		return "the placement always shows your own page to some shoppers (holdout_share), so every request must contain it"
	case c.Mode == api.Shadow:
		return fmt.Sprintf("in the mode %q it is what the caller shows", api.Shadow)
	case c.Fallback == api.FallbackBaseline:
		return fmt.Sprintf("with the fallback %q it is what the placement shows while its guard has an alarm",
			api.FallbackBaseline)
	}
	return ""
}

// required lists the optional fields that each request at a time must contain.
func (c *Config) required(at time.Time) (fields []string) {
	runs := c.Experiment != nil && abtest.Runs(c.Experiment, at)
	if c.WhyBaseline(!runs) != "" {
		fields = append(fields, "baseline")
	}
	if runs || c.Holdout > 0 {
		fields = append(fields, "shopper_id")
	}
	return fields
}

// NewDuties says which fields each request must contain under the next configuration from a time on, but need not under
// this one.
func (c *Config) NewDuties(next *Config, now time.Time) (list []string) {
	times, known := []time.Time{now}, []string(nil)
	if c.Experiment != nil {
		times = append(times, c.Experiment.Ends)
	}
	if next.Experiment != nil {
		times = append(times, next.Experiment.Starts)
	}
	slices.SortFunc(times, time.Time.Compare)
	for _, from := range times {
		fields := slices.DeleteFunc(next.required(from), func(f string) bool {
			return from.Before(now) || slices.Contains(c.required(from), f) || slices.Contains(known, f)
		})
		if len(fields) == 0 {
			continue
		}
		known = append(known, fields...)
		const minute = "2006-01-02 15:04 UTC"
		begin, on := "", ""
		if from.After(now) {
			begin, on = "from "+from.UTC().Format(minute)+" ", "on, "
		}
		say := func(when string, fields []string) {
			if len(fields) > 0 {
				list = append(list, when+"each request to /decisions must contain "+strings.Join(fields, " and "))
			}
		}
		e := next.Experiment
		if e == nil || e.Ends.IsZero() {
			say(begin+on, fields)
			continue
		}
		after, ending := next.required(e.Ends), slices.Clone(fields)
		say(begin+on, slices.DeleteFunc(fields, func(f string) bool { return !slices.Contains(after, f) }))
		say(begin+"until "+e.Ends.UTC().Format(minute)+", ",
			slices.DeleteFunc(ending, func(f string) bool { return slices.Contains(after, f) }))
	}
	return list
}

// Plain returns the configuration without an experiment, in which the policy decides. A learner that decided during an
// experiment is kept under it, and a rollback brings it back.
func (c *Config) Plain() *Config {
	if c.Mode != api.Experimenting {
		return c
	}
	p := *c
	p.Mode, p.Experiment = api.Learn, nil
	return &p
}

// OfVariants calls f with the configuration of each learner of a variant. An error of a policy names the variant.
func (c *Config) OfVariants(f func(i int, c *Config) error) error {
	if c.Experiment == nil {
		return nil
	}
	for i, v := range c.Experiment.Variants {
		if v.Policy == nil {
			continue
		}
		own := *c.Plain()
		own.Policy = v.Policy
		if err := f(i, &own); err != nil {
			if field, ok := errors.AsType[*api.FieldError](err); ok {
				return api.Fieldf(fmt.Sprintf("/experiment/variants/%d", i)+field.Field, "%s", field.Message)
			}
			return err
		}
	}
	return nil
}

// MayBecome reports what of an experiment must not change while it runs.
func MayBecome(before, after *Config) error {
	e, o := before.Experiment, after.Experiment
	const end = "cannot change while the experiment %q runs: end it with another mode, or begin another one under " +
		"another name"
	if !slices.Equal(abtest.Names(e), abtest.Names(o)) {
		return api.Fieldf("/experiment/variants", "the variants are %q, not %q, and "+end, abtest.Names(e),
			abtest.Names(o), e.Name)
	}
	for i := range e.Variants {
		field := fmt.Sprintf("/experiment/variants/%d", i)
		switch v, w := &e.Variants[i], &o.Variants[i]; {
		case v.Show != w.Show:
			return api.Fieldf(field+"/show", "is %q, not %q, and "+end, v.Show, w.Show, e.Name)
		case !bytes.Equal(Canonical(v.Policy), Canonical(w.Policy)):
			return api.Fieldf(field+"/policy", "of variant %q "+end, v.Name, e.Name)
		}
	}
	switch {
	case e.Control != o.Control:
		return api.Fieldf("/experiment/control", "is %q, not %q, and "+end, e.Control, o.Control, e.Name)
	case !slices.Equal(e.Metrics, o.Metrics):
		return api.Fieldf("/experiment/metrics", "are %v, not %v, and "+end, e.Metrics, o.Metrics, e.Name)
	case e.Segments != o.Segments:
		return api.Fieldf("/experiment/segment_by", "is %q, not %q, and "+end, e.Segments, o.Segments, e.Name)
	case e.Learn != o.Learn:
		return api.Fieldf("/experiment/learn_from", "is %q, not %q, and "+end, e.Learn, o.Learn, e.Name)
	case (before.ShopperHistory == nil) != (after.ShopperHistory == nil): // which divides shoppers by other names
		return api.Fieldf("/shopper_history", end, e.Name)
	case before.window != after.window:
		return api.Fieldf("/attribution_window", "is %s, not %s, and "+end, before.AttributionWindow,
			after.AttributionWindow, e.Name)
	}
	return nil
}

// Watch says how a placement of this configuration is watched.
func (c *Config) Watch() earnings.Watch {
	w := earnings.Watch{Mode: c.Mode, Explore: c.Explore, Window: c.window}
	if c.ExploreShare != nil {
		w.Share = *c.ExploreShare
	}
	if c.Mode == api.Explore && c.Capacity != nil { // whole sets cannot be drawn: see offer.ExploreSets
		w.Explore = api.BySwaps
	}
	return w
}

// GroupsBy returns what groups the items of a limit without ids.
func GroupsBy(l api.Limit) catalogue.GroupsBy {
	return catalogue.GroupsBy{Category: l.Feature, Attribute: l.Attribute, Group: l.Group}
}
