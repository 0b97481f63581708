package offpolicy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
)

// Support says how much a log can tell about a policy.
type Support struct {
	Rounds          int
	KnownLaw        int // rounds with a known law
	KnownPropensity int // rounds with the propensity of the page shown
	// rounds in which the log could have shown the items of the policy's page, on pages that determine its weight
	Possible       int
	PagePossible   int      // rounds in which it could have shown exactly that page
	Shown          int      // rounds in which it did
	ItemsSeen      int      // rounds in which every item of the policy's page was shown in some round of the log
	Unseen         []string // items on the policy's pages that were never shown, most frequent first
	LeastInclusion float64  // smallest probability of an item on the policy's pages; NaN if no law is known

	Weights WeightCheck // pseudo-inverse weights, in rounds with a known law
	ESS     float64     // their effective sample size (Σw)²/Σw², but at most (ΣE w)²/ΣE w² under the laws
	Sales   float64     // (Σ|w|)²/Σw² over the rounds that earned something

	SetWeights WeightCheck // weights 1{S_t = π(x_t)}/μ(S_t) of pages, in rounds with a propensity
	SetESS     float64     // their effective sample size, but at most its expectation n²/Σ 1/μ(π(x_t))
	SetSales   float64     // as Sales

	Listed    int    // rounds that list items not shown
	Unbounded int    // rounds that earned more than the item taken, or less than 0, as baskets and corrections do
	Tail      string // says that one round, or shopper, with an unusual revenue decides an estimate; "" if none does
}

// WeightCheck compares the mean of weights with its expectation under the laws or the propensities.
type WeightCheck struct {
	Mean, Expected float64
	// of the mean: the standard deviation under the laws, or the standard error if only propensities are known
	Error     float64
	Low, High float64 // range of means that chance explains
}

// Wrong reports whether the pages were not drawn as the log says.
func (c *WeightCheck) Wrong() bool { return c.Mean < c.Low || c.Mean > c.High }

// enoughRounds is the effective sample size from which on normal intervals, and the alarm, are close to their level.
const enoughRounds = 30

// lawError is the probability of a false alarm in each check of laws.
const lawError = 0.001

// deviation returns the smallest t for which Bernstein's inequality bounds P(|sum| > t) by alpha, for a sum of
// independent numbers with mean 0, the given total variance, and values within ±bound,
//
//	2 exp(−t² / (2 (variance + bound t/3))) = alpha
func deviation(variance, bound, alpha float64) float64 {
	l := math.Log(2 / alpha)
	return bound*l/3 + math.Sqrt(bound*bound*l*l/9+2*variance*l)
}

// underLaws checks the sum of n weights against its expectation and variance under their laws. No weight is farther
// than bound from its expectation.
func underLaws(n, sum, expected, variance, bound float64) WeightCheck {
	c := WeightCheck{Mean: sum / n, Expected: expected / n, Error: math.Sqrt(max(variance, 0)) / n}
	limit := deviation(max(variance, 0), bound, lawError)/n + 1e-6 // allows for rounding
	c.Low, c.High = c.Expected-limit, c.Expected+limit
	return c
}

// underPropensities checks n weights, given their sum and the sum of their squares. The expected mean is 1. The weights
// are skewed, so the logarithm of their mean is closer to normal: it may be off by 4 standard errors.
func underPropensities(n, sum, squares float64) WeightCheck {
	c := WeightCheck{Mean: sum / n, Expected: 1}
	c.Error = math.Sqrt(max(squares/n-c.Mean*c.Mean, 0) / (n - 1))
	off := 4 * ratio(c.Error, c.Mean)
	c.Low, c.High = math.Exp(-off), math.Exp(off)
	return c
}

// percent returns a share of the rounds as text.
func (s *Support) percent(n int) string {
	text := fmt.Sprintf("%.1f%%", 100*float64(n)/float64(s.Rounds))
	if n > 0 && n < s.Rounds && (text == "0.0%" || text == "100.0%") {
		return fmt.Sprintf("%d of %d", n, s.Rounds)
	}
	return text
}

// Words describes the support, one sentence per string.
func (s *Support) Words() []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch {
	case s.KnownLaw == 0 && s.KnownPropensity == 0:
		say("The log does not say how pages were drawn: only the direct method has a number, and nothing checks " +
			"its model.")
	case s.KnownLaw == 0:
		say("The log has the propensities of %s of pages but not how pages were drawn, so item weights are unknown.",
			s.percent(s.KnownPropensity))
	case s.KnownLaw < s.Rounds:
		say("The log says how pages were drawn in %s of rounds; in the others the model is trusted.",
			s.percent(s.KnownLaw))
	default:
		say("The log says how every page was drawn.")
	}
	if s.KnownLaw > 0 {
		switch s.Possible {
		case s.Rounds:
			say("Every item of the policy's pages could have been shown, the rarest with probability %.3g.",
				s.LeastInclusion)
		case 0:
			say("No page of the policy consists of items that the log could have shown: the log cannot check the model.")
		default:
			say("The items of the policy's page could have been shown in %s of rounds; in the others the model is trusted.", s.percent(s.Possible))
		}
	}
	say("The policy's page was shown in %s of rounds.", s.percent(s.Shown))
	if c := s.SetWeights; s.KnownPropensity == s.Rounds && s.SetESS >= MinESS {
		if why := s.wrongPropensities(); why != "" {
			say("The mean weight of its pages is %.3g ± %.2g instead of %.3g: %s.", c.Mean, c.Error, c.Expected, why)
		} else {
			say("The mean weight of its pages is %.3g ± %.2g, and %.3g is expected.", c.Mean, c.Error, c.Expected)
		}
		if s.SetSales < MinSales {
			say("The page weights count %.0f sales: too few for normal and bootstrap intervals.", s.SetSales)
		}
	}
	if s.ItemsSeen < s.Rounds && len(s.Unseen) > 0 {
		const named = 5
		names := strings.Join(s.Unseen[:min(named, len(s.Unseen))], ", ")
		if n := len(s.Unseen) - named; n > 0 {
			names += fmt.Sprintf(" and %d more", n)
		}
		say("The log never showed these items of its pages: %s. They are on %s of pages, and the model "+
			"extrapolates to them.", names, s.percent(s.Rounds-s.ItemsSeen))
	}
	if s.Possible > 0 {
		few := ""
		if s.Sales < MinSales {
			few = fmt.Sprintf(" and count %.0f sales: too few for normal and bootstrap intervals", s.Sales)
		} else if !(s.ESS >= enoughRounds) {
			few = ": too few for normal and bootstrap intervals"
		}
		say("The item weights are worth %.0f rounds%s.", s.ESS, few)
		if c := s.Weights; c.Wrong() {
			say("Their mean is %.3g ± %.2g instead of %.3g: the pages were not drawn as the log says.",
				c.Mean, c.Error, c.Expected)
		} else {
			say("Their mean is %.3g ± %.2g, and %.3g is expected.", c.Mean, c.Error, c.Expected)
		}
	}
	if s.Unbounded > 0 {
		say("%d pages earned more than the revenue of one item, or less than 0: no interval holds at any time.", s.Unbounded)
	}
	if s.Tail != "" {
		list = append(list, s.Tail)
	}
	return list
}

// wrongPropensities says what the mean weight of pages refutes, or returns "".
func (s *Support) wrongPropensities() string {
	switch c := s.SetWeights; {
	case !c.Wrong():
		return ""
	case s.Listed == 0:
		return "the log lists only the items that were shown, and not what else could have been"
	case c.Mean < c.Low && s.KnownLaw < s.Rounds:
		return "the propensities are too large, or the log never shows some of the policy's pages"
	}
	return "the propensities are not those with which the pages were drawn"
}

// tail names the round of a revenue far above the median of the sales that makes up over a quarter of a method's
// variance, or returns "". Few sales also make single rounds large: see [MinSales].
func (r *Report) tail(j *judgement) string {
	const unusual, enough, share = 5, 8, 0.25 // times the median; sales; of the variance
	largest, usual := slices.Clone(j.price), []float64(nil)
	for t, v := range j.earned {
		if v != 0 {
			usual = append(usual, math.Abs(v))
		}
		largest[t] = max(largest[t], math.Abs(v))
	}
	if len(usual) < enough { // prices, which say little where sales have values of their own
		usual = slices.Clone(largest)
	}
	slices.Sort(usual)
	limit := unusual * usual[len(usual)/2]
	at, most, method := 0, share, ""
	for _, e := range r.Estimates {
		if e.None != "" {
			continue
		}
		sums := r.shoppers.sums(e.influence)
		total := floats.Dot(sums, sums)
		for t, v := range e.influence {
			if r.shoppers.of != nil {
				v = sums[r.shoppers.of[t]]
			}
			if part := v * v / total; part > most && largest[t] > limit {
				at, most, method = t, part, e.Method
			}
		}
	}
	if method == "" {
		return ""
	}
	who := fmt.Sprintf("round %d", at+1)
	if name := j.log.Rounds[at].Decision; name != "" {
		who = fmt.Sprintf("decision %q", name)
	}
	if r.shoppers.of != nil {
		who = "the shopper of " + who
	}
	return fmt.Sprintf("A revenue is far from the others: %s makes up %.0f%% of the variance of %s, so intervals may "+
		"miss the truth.", who, 100*most, method)
}

// AlarmWords describes the alarm, or returns "".
func (r *Report) AlarmWords() string {
	switch {
	case r.AlarmMethod == "":
		return "Nothing in the log checks the model of the direct method."
	case math.IsNaN(r.Alarm):
		return fmt.Sprintf("The log is too small to check the model: the weights of %s count %.0f sales.",
			r.AlarmMethod, r.Estimate(r.AlarmMethod).Sales)
	case !(r.Estimate(r.AlarmMethod).ESS >= enoughRounds):
		return fmt.Sprintf("The log is too small to check the model: the weights of %s are worth %.0f rounds.",
			r.AlarmMethod, r.Estimate(r.AlarmMethod).ESS)
	case math.Abs(r.Alarm) > 2:
		return fmt.Sprintf("The model is probably wrong: %s and direct differ by %.1f standard errors. Trust "+
			"%[1]s, or give the model another family.", r.AlarmMethod, math.Abs(r.Alarm))
	}
	return fmt.Sprintf("The model agrees with the residuals: %s and direct differ by %.1f standard errors.",
		r.AlarmMethod, math.Abs(r.Alarm))
}
