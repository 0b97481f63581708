package decision

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"vitrine/service/api"
	"vitrine/service/variants"
)

// checkExperiment checks what an experiment compares, and fills in its defaults.
func (c *Config) checkExperiment() error {
	e := c.Experiment
	switch {
	case c.Mode != api.Experimenting && e != nil:
		return api.Fieldf("/experiment", "is for the mode %q, and the mode is %q: leave it out", api.Experimenting, c.Mode)
	case c.Mode != api.Experimenting:
		return nil
	case e == nil:
		return api.Fieldf("/experiment", "is missing: in the mode %q it says what is compared", api.Experimenting)
	case e.Name == "" || len(e.Name) > 100 || !utf8.ValidString(e.Name) || strings.ContainsFunc(e.Name, func(r rune) bool { return r < ' ' }):
		return api.Fieldf("/experiment/name", "%q: must have from 1 to 100 bytes of UTF-8 without control characters", api.Abbreviate(e.Name, 100))
	case len(e.Variants) < 2 || len(e.Variants) > variants.MaxVariants:
		return api.Fieldf("/experiment/variants", "has %d variants: must have from 2 to %d", len(e.Variants), variants.MaxVariants)
	}
	if n, ok := variants.Count(e.Holdout); !ok || n > variants.Buckets/2 {
		return api.Fieldf("/experiment/holdout", "%v: must be from 0 to 0.5, in steps of 0.0001", e.Holdout)
	}
	if !(e.Worth >= 0 && e.Worth <= math.MaxFloat64) {
		return api.Fieldf("/experiment/worth", "%v: must not be negative", e.Worth)
	}
	total := 0
	for i := range e.Variants {
		if err := checkVariant(fmt.Sprintf("/experiment/variants/%d", i), e.Variants[:i+1]); err != nil {
			return err
		}
		n, _ := variants.Count(e.Variants[i].Share)
		total += n
	}
	if total != variants.Buckets {
		return api.Fieldf("/experiment/variants", "the shares sum to %v: must sum to 1", float64(total)/variants.Buckets)
	}
	e.Learn = cmp.Or(e.Learn, api.LearnOwn)
	if err := api.OneOf("/experiment/learn", e.Learn, api.LearnOwn, api.LearnAll); err != nil {
		return err
	}
	if e.Control == "" {
		e.Control = e.Variants[max(slices.IndexFunc(e.Variants, func(v api.Variant) bool { return v.Show == api.ShowBaseline }), 0)].Name
	}
	if variantOf(e, e.Control) < 0 {
		return api.Fieldf("/experiment/control", "%q: is no variant, must be one of %q", e.Control, names(e))
	}
	return nil
}

// checkVariant checks the last variant of a list.
func checkVariant(field string, list []api.Variant) error {
	v := &list[len(list)-1]
	if v.Name == api.Holdout {
		return api.Fieldf(field+"/name", "%q: is the name of the units that take no part", v.Name)
	}
	if v.Name == "" || len(v.Name) > maxPlacement || checkDecision(v.Name) != nil {
		return api.Fieldf(field+"/name", "%q: must have from 1 to %d letters, digits, '.', '_', '-' and ':'", api.Abbreviate(v.Name, maxPlacement), maxPlacement)
	}
	for j, o := range list[:len(list)-1] {
		if o.Name == v.Name {
			return api.Fieldf(field+"/name", "%q is the name of variant %d too", v.Name, j)
		}
	}
	if err := api.OneOf(field+"/show", v.Show, api.ShowPolicy, api.ShowBaseline, api.ShowUniform); err != nil {
		return err
	}
	if _, ok := variants.Count(v.Share); !ok {
		return api.Fieldf(field+"/share", "%v: must be from 0 to 1, in steps of 0.0001", v.Share)
	}
	if v.Policy != nil && v.Show != api.ShowPolicy {
		return api.Fieldf(field+"/policy", "is for variants that show %q, and this one shows %q", api.ShowPolicy, v.Show)
	}
	return nil
}

// variantOf returns which variant has a name, -1 if none has.
func variantOf(e *api.Experiment, name string) int {
	return slices.IndexFunc(e.Variants, func(v api.Variant) bool { return v.Name == name })
}

func names(e *api.Experiment) []string {
	list := make([]string, len(e.Variants))
	for i := range list {
		list[i] = e.Variants[i].Name
	}
	return list
}

// isShown reports whether an experiment has a variant that shows something.
func isShown(e *api.Experiment, show string) bool {
	return e != nil && slices.ContainsFunc(e.Variants, func(v api.Variant) bool { return v.Show == show && v.Policy == nil })
}

// needsBaseline reports whether each request must have the caller's baseline.
func (c *Config) needsBaseline() bool {
	return c.Mode == api.Shadow || isShown(c.Experiment, api.ShowBaseline) || c.Experiment != nil && c.Experiment.Holdout > 0
}

// plain is the configuration without an experiment, in which the policy decides. A learner has it that has decided
// during an experiment, and a roll back brings it back.
func (c *Config) plain() *Config {
	if c.Mode != api.Experimenting {
		return c
	}
	p := *c
	p.Mode, p.Experiment = api.Learn, nil
	return &p
}

// ofVariant is the configuration of the learner of a variant that has its own.
func (c *Config) ofVariant(i int) *Config {
	p := *c.plain()
	p.Policy = c.Experiment.Variants[i].Policy
	return &p
}

// ofVariants calls f with the configuration of each learner of a variant. An error of a policy names the variant.
func (c *Config) ofVariants(f func(i int, c *Config) error) error {
	if c.Experiment == nil {
		return nil
	}
	for i, v := range c.Experiment.Variants {
		if v.Policy == nil {
			continue
		}
		if err := f(i, c.ofVariant(i)); err != nil {
			if field := new(api.FieldError); errors.As(err, &field) {
				return api.Fieldf(fmt.Sprintf("/experiment/variants/%d", i)+field.Field, "%s", field.Message)
			}
			return err
		}
	}
	return nil
}

// mayBecome reports what of an experiment must not change while it runs.
func mayBecome(before, after *Config) error {
	e, o := before.Experiment, after.Experiment
	const end = "cannot change while the experiment %q runs: end it with another mode, or begin another one under another name"
	if !slices.Equal(names(e), names(o)) {
		return api.Fieldf("/experiment/variants", "the variants are %q, not %q, and "+end, names(e), names(o), e.Name)
	}
	for i := range e.Variants {
		field := fmt.Sprintf("/experiment/variants/%d", i)
		switch v, w := &e.Variants[i], &o.Variants[i]; {
		case v.Show != w.Show:
			return api.Fieldf(field+"/show", "is %q, not %q, and "+end, v.Show, w.Show, e.Name)
		case !bytes.Equal(canonical(v.Policy), canonical(w.Policy)):
			return api.Fieldf(field+"/policy", "of variant %q "+end, v.Name, e.Name)
		}
	}
	switch {
	case e.Control != o.Control:
		return api.Fieldf("/experiment/control", "is %q, not %q, and "+end, e.Control, o.Control, e.Name)
	case e.Learn != o.Learn:
		return api.Fieldf("/experiment/learn", "is %q, not %q, and "+end, e.Learn, o.Learn, e.Name)
	case before.window != after.window:
		return api.Fieldf("/attribution_window", "is %s, not %s, and "+end, before.AttributionWindow, after.AttributionWindow, e.Name)
	}
	return nil
}
