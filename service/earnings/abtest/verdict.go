package abtest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"vitrine/service/api"
)

// verdict applies the stop rule, in this order:
//
//	stop         the shoppers are not divided as the shares say, decisions leave memory before their outcome, one
//	             variant's pages are seen less often than another's, or its sales are reported otherwise
//	stop         no variant can gain what is worth a change
//	ship         a variant surely gains as much, and surely earns more than every other variant
//	tie          several variants surely gain as much, and surely earn more than all others, but cannot be told apart
//	continue     otherwise
//
// If the variant to ship is surely worse in another metric, or late revenue could reverse its gain, the verdict is weigh:
// see weighed and delayed.
//
// unseen is the reason to stop for pages that were not seen, or "". few names a variant with too few sales, or is "". In a
// tie the variant at own, which shows the placement's own policy, wins: keeping it requires no change. All intervals hold
// at all times at once, so the rule may be applied at any time and as often as you like. The probability of ever shipping
// a variant that does not gain, or is not the best, is at most the experiment's error.
func verdict(r *api.ExperimentReport, unseen, few string, own int, currency string) api.Verdict {
	paid := func(v float64) string { return api.Amount(v, currency) }
	if reason := cmp.Or(mismatched(r), forgotten(r), unseen, misreported(r)); reason != "" {
		return api.Verdict{Result: api.Stop, Untrusted: true, Reason: reason}
	}
	if few != "" {
		return api.Verdict{Result: api.Continue, Reason: fmt.Sprintf("too few sales of %q have been reported to tell whether some are lost", few)}
	}
	var list []*api.VariantReport // without the control, largest estimate first
	for i := range r.Variants {
		v := &r.Variants[i]
		switch {
		case v.Name == r.Control:
		case v.Difference == nil:
			return api.Verdict{Result: api.Continue,
				Reason: fmt.Sprintf("%q and %q cannot be compared before both have decisions that count",
					v.Name, r.Control)}
		default:
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b *api.VariantReport) int {
		return -cmp.Compare(a.Difference.Estimate, b.Difference.Estimate)
	})
	top := slices.MaxFunc(list, func(a, b *api.VariantReport) int {
		return cmp.Compare(a.Difference.High, b.Difference.High)
	})
	if most := top.Difference.High; most < r.MinGain {
		worth, side := "", "more"
		if r.MinGain > 0 {
			worth = paid(r.MinGain) + " "
		}
		if most < 0 {
			side = "less"
		}
		return api.Verdict{Result: api.Stop,
			Reason: fmt.Sprintf("no variant can earn %smore per visit than %q: at best, %q earns %s %s",
				worth, r.Control, top.Name, paid(math.Abs(most)), side)}
	}
	gains := func(v *api.VariantReport) bool { return v.Difference.Low > 0 && v.Difference.Low >= r.MinGain }
	first := slices.IndexFunc(list, gains)
	if first < 0 {
		v, worth := list[0], ""
		if r.MinGain > 0 {
			worth = " of " + paid(r.MinGain)
		}
		return api.Verdict{Result: api.Continue,
			Reason: fmt.Sprintf("no gain%s is certain yet: %q earns between %s and %s more per visit than %q",
				worth, v.Name, paid(v.Difference.Low), paid(v.Difference.High), r.Control)}
	}
	best := list[first]
	rivals := slices.DeleteFunc(slices.Clone(list), func(v *api.VariantReport) bool { // including best
		return slices.ContainsFunc(list, func(w *api.VariantReport) bool {
			return gains(w) && beats(r, w.Name, v.Name)
		})
	})
	open := slices.IndexFunc(rivals, func(v *api.VariantReport) bool { return !gains(v) })
	switch {
	case open >= 0:
		return api.Verdict{Result: api.Continue,
			Reason: fmt.Sprintf("%q earns at least %s more per visit than %q, but %q may earn still more",
				best.Name, paid(best.Difference.Low), r.Control, rivals[open].Name)}
	case len(rivals) == 1:
		best = rivals[0]
		reason := fmt.Sprintf("%q earns at least %s more per visit than %q",
			best.Name, paid(best.Difference.Low), r.Control)
		if len(list) > 1 {
			reason += ", and more than every other variant"
		}
		return api.Verdict{Result: api.Ship, Variant: best.Name, Gain: best.Difference.Estimate, Reason: reason}
	}
	return tie(r, rivals, own, paid)
}

// weighed returns the verdict for a variant to ship that is surely worse than the control in another metric: whether
// its revenue is worth that is for people to decide.
func weighed(r *api.ExperimentReport, v api.Verdict) api.Verdict {
	if v.Result != api.Ship {
		return v
	}
	worse := r.Worse(v.Variant)
	if worse == nil {
		return v
	}
	v.Result = api.Weigh
	v.Reason += fmt.Sprintf(", but its %s is surely worse", strings.Join(worse, " and "))
	return v
}

// delayed returns the verdict, given the revenue that came too late to count. If that could reverse the gain of the
// variant to ship, or its lead over another one, people decide.
func delayed(r *api.ExperimentReport, v api.Verdict, currency string) api.Verdict {
	names, words := v.Tied, "but revenue that came too late to count could reverse that"
	switch v.Result {
	case api.Ship:
		names = []string{v.Variant}
	case api.Weigh:
		names, words = []string{v.Variant}, "and revenue that came too late to count could reverse the gain"
	}
	for _, name := range names {
		of := r.Variant(name)
		over := r.Rival(of)
		if over == nil {
			continue
		}
		if v.Result == api.Ship {
			v.Result = api.Weigh
		}
		v.Reason += fmt.Sprintf(", %s: %s of %q, %s of %q", words, api.Amount(of.Later, currency), of.Name,
			api.Amount(over.Later, currency), over.Name)
		return v
	}
	return v
}

// tie returns the verdict about variants that surely gain and cannot be told apart.
func tie(r *api.ExperimentReport, tied []*api.VariantReport, own int, paid func(float64) string) api.Verdict {
	v := api.Verdict{Result: api.Tie}
	least := tied[0].Difference.Low
	for _, t := range tied {
		v.Tied = append(v.Tied, t.Name)
		least = min(least, t.Difference.Low)
	}
	quoted := make([]string, len(tied))
	for i := range tied {
		quoted[i] = fmt.Sprintf("%q", tied[i].Name)
	}
	last := len(quoted) - 1
	each := "both earn"
	if last > 1 {
		each = "each earn"
	}
	v.Reason = fmt.Sprintf("%s and %s %s at least %s more per visit than %q, and cannot be told apart",
		strings.Join(quoted[:last], ", "), quoted[last], each, paid(least), r.Control)
	for _, t := range tied {
		if own >= 0 && t.Name == r.Variants[own].Name {
			v.Variant, v.Gain = t.Name, t.Difference.Estimate
			v.Reason += fmt.Sprintf("; %q is the placement's own policy, so keeping it changes nothing", t.Name)
		}
	}
	return v
}

// beats reports whether one variant surely earns more than another.
func beats(r *api.ExperimentReport, variant, over string) bool {
	return slices.ContainsFunc(r.Pairs, func(p api.Pair) bool {
		return p.Variant == variant && p.Over == over && p.Difference.Low > 0
	})
}
