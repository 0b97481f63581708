package abtest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"vitrine/internal/hint"
	"vitrine/service/api"
)

// Check validates an experiment and fills in its defaults. isLegal decides on variants' names.
func Check(e *api.Experiment, isLegal func(name string) bool) error {
	switch {
	case e.Name == "" || len(e.Name) > 100 || !utf8.ValidString(e.Name) ||
		strings.ContainsFunc(e.Name, func(r rune) bool { return r < ' ' }):
		return api.Fieldf("/experiment/name", "%q: must have from 1 to 100 bytes of UTF-8 without control characters",
			api.Abbreviate(e.Name, 100))
	case len(e.Variants) < 2 || len(e.Variants) > MaxVariants:
		return api.Fieldf("/experiment/variants",
			"has %d variants: must have from 2 to %d", len(e.Variants), MaxVariants)
	case !(e.MinGain >= 0 && e.MinGain <= math.MaxFloat64):
		return api.Fieldf("/experiment/min_gain", "%v: must not be negative", e.MinGain)
	}
	if err := cmp.Or(checkSchedule(e), checkMetrics(e.Metrics, isLegal), checkVariants(e.Variants, isLegal)); err != nil {
		return err
	}
	e.Learn = cmp.Or(e.Learn, api.LearnOwn)
	if err := api.OneOf("/experiment/learn_from", e.Learn, api.LearnOwn, api.LearnAll); err != nil {
		return err
	}
	if e.Control == "" {
		e.Control = e.Variants[max(slices.IndexFunc(e.Variants,
			func(v api.Variant) bool { return v.Show == api.ShowBaseline }), 0)].Name
	}
	if Of(e, e.Control) < 0 {
		return api.Fieldf("/experiment/control", "%q: is no variant%s", e.Control, hint.Legal(e.Control, Names(e)))
	}
	return nil
}

func checkSchedule(e *api.Experiment) error {
	if !e.Ends.IsZero() && !e.Ends.After(e.Starts) {
		return api.Fieldf("/experiment/ends", "%s: must be later than the start", e.Ends.Format(time.RFC3339))
	}
	if e.Outside == "" {
		return nil
	}
	if e.Starts.IsZero() && e.Ends.IsZero() {
		return api.Fieldf("/experiment/outside", "%q: is for experiments that have a start or an end", e.Outside)
	}
	return api.OneOf("/experiment/outside", e.Outside, api.ShowPolicy, api.ShowBaseline)
}

const maxMetrics = 5

func checkMetrics(list []api.Metric, isLegal func(string) bool) error {
	if len(list) > maxMetrics {
		return api.Fieldf("/experiment/metrics", "has %d metrics: must have at most %d", len(list), maxMetrics)
	}
	for i := range list {
		m, field := &list[i], fmt.Sprintf("/experiment/metrics/%d", i)
		m.Better = cmp.Or(m.Better, api.BetterHigher)
		switch {
		case !isLegal(m.Name) || m.Name == api.Conversion || m.Name == api.ItemsTaken ||
			slices.ContainsFunc(list[:i], func(o api.Metric) bool { return o.Name == m.Name }):
			return api.Fieldf(field+"/name", "%q: must have from 1 to %d letters, digits, '.', '_', '-' and ':', "+
				"and no other metric's name", api.Abbreviate(m.Name, maxName), maxName)
		case !(m.Max > 0 && m.Max <= api.MaxAmount):
			return api.Fieldf(field+"/max", "%v: must be positive and at most %v", m.Max, api.MaxAmount)
		}
		if err := api.OneOf(field+"/better", m.Better, api.BetterHigher, api.BetterLower); err != nil {
			return err
		}
	}
	return nil
}

func checkVariants(list []api.Variant, isLegal func(string) bool) error {
	total := 0
	for i := range list {
		if err := checkVariant(fmt.Sprintf("/experiment/variants/%d", i), list[:i+1], isLegal); err != nil {
			return err
		}
		n, _ := Count(list[i].Share)
		total += n
	}
	if total != Buckets {
		return api.Fieldf("/experiment/variants", "the shares sum to %v: must sum to 1", float64(total)/Buckets)
	}
	return nil
}

// checkVariant validates the last variant of a list.
func checkVariant(field string, list []api.Variant, isLegal func(string) bool) error {
	v := &list[len(list)-1]
	if v.Name == api.Holdout {
		return api.Fieldf(field+"/name", "%q: is the name of the shoppers who are held out", v.Name)
	}
	if !isLegal(v.Name) {
		return api.Fieldf(field+"/name", "%q: must have from 1 to %d letters, digits, '.', '_', '-' and ':'",
			api.Abbreviate(v.Name, maxName), maxName)
	}
	for j, o := range list[:len(list)-1] {
		if o.Name == v.Name {
			return api.Fieldf(field+"/name", "%q is the name of variant %d too", v.Name, j)
		}
	}
	if err := api.OneOf(field+"/show", v.Show, api.ShowPolicy, api.ShowBaseline, api.ShowUniform); err != nil {
		return err
	}
	if _, ok := Count(v.Share); !ok {
		return api.Fieldf(field+"/share", "%v: must be from 0 to 1, in steps of 0.0001", v.Share)
	}
	if v.Policy != nil && v.Show != api.ShowPolicy {
		return api.Fieldf(field+"/policy", "is for variants that show %q, and this one shows %q", api.ShowPolicy,
			v.Show)
	}
	return nil
}

// Of returns the index of the variant with a name, or -1.
func Of(e *api.Experiment, name string) int {
	return slices.IndexFunc(e.Variants, func(v api.Variant) bool { return v.Name == name })
}

func Names(e *api.Experiment) []string {
	list := make([]string, len(e.Variants))
	for i := range list {
		list[i] = e.Variants[i].Name
	}
	return list
}

// IsShown reports whether one of an experiment's variants shows the given value.
func IsShown(e *api.Experiment, show string) bool {
	return e != nil && slices.ContainsFunc(e.Variants, func(v api.Variant) bool {
		return v.Show == show && v.Policy == nil
	})
}

const maxName = 64 // bytes
