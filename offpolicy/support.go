package offpolicy

import (
	"fmt"
	"math"
	"strings"
)

// Support says how much of a policy a log can tell.
type Support struct {
	Rounds          int
	KnownLaw        int      // rounds whose law is known
	KnownPropensity int      // rounds with the propensity of the page shown
	Possible        int      // rounds in which the log could have shown the items of the policy's page, in pages that determine its weight
	PagePossible    int      // rounds in which it could have shown that very page
	Shown           int      // rounds in which it did
	ItemsSeen       int      // rounds with a page of items that were each shown in some round
	Unseen          []string // the items of the policy's pages that were never shown, the most frequent first
	LeastInclusion  float64  // the least probability of an item of the policy's pages; NaN if no law is known

	MeanWeight, WeightError float64 // of the pseudo-inverse weights
	ExpectedWeight          float64 // the mean weight if the laws are those by which pages were drawn
	ESS                     float64 // their effective sample size (Σw)²/Σw²
	SetESS                  float64 // that of the weights of pages, and at most n²/Σ 1/μ(π(x_t)), its expectation

	MeanSetWeight, SetWeightError float64 // mean of 1{S_t = π(x_t)}/μ(S_t) over rounds with a propensity; 1 is expected where the log could show the page
}

// minShown is the number of rounds with the policy's page from which on the mean of their weights is nearly normal.
const minShown = 30

// Words describes the support, a sentence each.
func (s *Support) Words() []string {
	percent := func(n int) string {
		p := 100 * float64(n) / float64(s.Rounds)
		text := fmt.Sprintf("%.1f %%", p)
		if n > 0 && n < s.Rounds && (text == "0.0 %" || text == "100.0 %") {
			text = fmt.Sprintf("%d of %d", n, s.Rounds)
		}
		return text
	}
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch {
	case s.KnownLaw == 0 && s.KnownPropensity == 0:
		say("The log does not say how pages were drawn: only the direct method has a number, and nothing checks its model.")
	case s.KnownLaw == 0:
		say("The log has the propensities of %s of pages but not how pages were drawn, so item weights are unknown.", percent(s.KnownPropensity))
	case s.KnownLaw < s.Rounds:
		say("The log says how pages were drawn in %s of rounds; in the others the model is trusted.", percent(s.KnownLaw))
	default:
		say("The log says how every page was drawn.")
	}
	if s.KnownLaw > 0 {
		switch s.Possible {
		case s.Rounds:
			say("Every item of the policy's pages could have been shown, the rarest with probability %.3g.", s.LeastInclusion)
		case 0:
			say("No page of the policy consists of items that the log could have shown: the log cannot check the model.")
		default:
			say("The items of the policy's page could have been shown in %s of rounds; in the others the model is trusted.", percent(s.Possible))
		}
	}
	say("The policy's page was shown in %s of rounds.", percent(s.Shown))
	if s.KnownPropensity == s.Rounds && s.Shown >= minShown {
		expected := 1.0
		if s.KnownLaw == s.Rounds {
			expected = float64(s.PagePossible) / float64(s.Rounds)
		}
		switch off := s.MeanSetWeight - expected; {
		case !(math.Abs(off) > 4*s.SetWeightError):
			say("The mean weight of its pages is %.3g ± %.2g, and %.3g is expected.", s.MeanSetWeight, s.SetWeightError, expected)
		case off < 0 && s.KnownLaw < s.Rounds:
			say("The mean weight of its pages is %.3g ± %.2g instead of %.3g: the propensities are too large, or the log never shows some of its pages.", s.MeanSetWeight, s.SetWeightError, expected)
		default:
			say("The mean weight of its pages is %.3g ± %.2g instead of %.3g: the propensities are not those with which the pages were drawn.", s.MeanSetWeight, s.SetWeightError, expected)
		}
	}
	if s.ItemsSeen < s.Rounds && len(s.Unseen) > 0 {
		const named = 5
		names := strings.Join(s.Unseen[:min(named, len(s.Unseen))], ", ")
		if n := len(s.Unseen) - named; n > 0 {
			names += fmt.Sprintf(" and %d more", n)
		}
		say("The log never showed these items of its pages: %s. They are on %s of pages, and the model extrapolates to them.", names, percent(s.Rounds-s.ItemsSeen))
	}
	if s.Possible > 0 {
		say("The item weights are worth %.0f rounds.", s.ESS)
		if off := math.Abs(s.MeanWeight - s.ExpectedWeight); off > 4*s.WeightError && off > 1e-6 {
			say("Their mean is %.3g ± %.2g instead of %.3g: the pages were not drawn as the log says.", s.MeanWeight, s.WeightError, s.ExpectedWeight)
		} else {
			say("Their mean is %.3g ± %.2g, and %.3g is expected.", s.MeanWeight, s.WeightError, s.ExpectedWeight)
		}
	}
	return list
}

// AlarmWords describes the alarm, "" if there is nothing to say.
func (r *Report) AlarmWords() string {
	switch {
	case math.IsNaN(r.Alarm):
		return "Nothing in the log checks the model of the direct method."
	case math.Abs(r.Alarm) > 2:
		return fmt.Sprintf("The model is probably wrong: %s and direct differ by %.1f standard errors. Trust %[1]s, or give the model another family.", r.AlarmMethod, math.Abs(r.Alarm))
	}
	return fmt.Sprintf("The model agrees with the residuals: %s and direct differ by %.1f standard errors.", r.AlarmMethod, math.Abs(r.Alarm))
}
