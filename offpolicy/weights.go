package offpolicy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"vitrine"
	"vitrine/assortment"
)

// judgement holds the inputs of the weighted methods, round by round.
type judgement struct {
	log     *Log
	pages   []vitrine.Assortment
	support Support

	earned   []float64 // ρ_t
	target   []float64 // R̂(π(x_t))
	shown    []float64 // R̂(S_t)
	weight   []float64 // w_t by pseudo-inverse
	up, down []float64 // largest w and −w among pages that μ could have shown
	set      []float64 // 1{S_t = π(x_t)}/μ(S_t)
	least    float64   // smallest positive μ(π(x_t)); 0 if no law is known
	price    []float64 // largest revenue
	most     []float64 // largest revenue on the policy's page
	bounded  bool      // whether every ρ_t is between 0 and the revenue of the chosen item, and there is only one
	item     []float64 // Σ_{i ∈ S_t ∩ π} e_i / P(i ∈ S_t), where i earned e_i
	itemMost []float64 // its largest possible value
}

// lawSums sum up weights, and what the laws say of them.
type lawSums struct {
	weight             float64 // of item weights
	expected, variance float64 // of item weights, by the laws
	second             float64 // Σ E w², by the laws
	most               float64 // how far an item weight may be from its expectation
	inverse            float64 // Σ 1/μ(π(x_t))
}

// judge computes the weights and the support for a policy's pages.
func (l *Log) judge(pages []vitrine.Assortment) *judgement {
	n := len(pages)
	j := &judgement{log: l, pages: pages, bounded: true}
	for _, dst := range []*[]float64{&j.earned, &j.target, &j.shown, &j.weight, &j.up, &j.down, &j.set, &j.price,
		&j.most, &j.item, &j.itemMost} {
		*dst = make([]float64, n)
	}
	s := &j.support
	s.Rounds, s.LeastInclusion = n, 1
	var sum lawSums
	var z []float64
	for t := range l.Rounds {
		r, page := &l.Rounds[t], pages[t]
		w := l.folds[t%l.o.Folds]
		j.earned[t], j.target[t], j.shown[t] = r.Revenue(), l.revenue(w, t, page), l.revenue(w, t, r.Shown)
		for i := range r.Context.NumItems() {
			j.price[t] = max(j.price[t], r.price(i))
		}
		for _, i := range page {
			j.most[t] = max(j.most[t], r.price(i))
		}
		if len(r.Shown) < r.Context.NumItems() {
			s.Listed++
		}
		if !r.isBounded() {
			j.bounded = false
			s.Unbounded++
		}
		j.weighPage(t, &sum)
		if r.SamplingLaw != nil {
			z = slices.Grow(z[:0], r.SamplingLaw.Items())[:r.SamplingLaw.Items()]
			j.weighItems(t, z, &sum)
		}
	}
	j.findUnseen()
	if s.KnownLaw > 0 {
		s.Weights = underLaws(float64(s.KnownLaw), sum.weight, sum.expected, sum.variance, sum.most)
		// A log may lack the rare pages with large weights, which makes its weights similar by chance. With laws, the
		// means of w and w² are known; of a page's weight they are 1 and 1/μ(π(x)).
		s.ESS = min(effective(j.weight), ratio(sum.expected*sum.expected, sum.second))
	} else {
		s.LeastInclusion = nan
	}
	s.Sales, s.SetSales = j.sales(j.weight), j.sales(j.set)
	s.SetESS = effective(j.set)
	shown, squares := sums(j.set)
	switch {
	case s.KnownLaw == n && sum.inverse > 0:
		s.SetESS = min(s.SetESS, float64(n)*float64(n)/sum.inverse)
		possible := float64(s.PagePossible)
		s.SetWeights = underLaws(float64(n), shown, possible, sum.inverse-possible, 1/j.least)
	case s.KnownPropensity > 1:
		s.SetWeights = underPropensities(float64(s.KnownPropensity), shown, squares)
	}
	return j
}

// weighPage weighs a round's page as a whole.
func (j *judgement) weighPage(t int, sum *lawSums) {
	s, r, page := &j.support, &j.log.Rounds[t], j.pages[t]
	same := equal(page, r.Shown)
	if same {
		s.Shown++
	}
	mu, ok := r.propensity(page)
	if !ok {
		return
	}
	s.KnownPropensity++
	if same {
		j.set[t] = min(1/mu, math.MaxFloat64)
	}
	if mu > 0 && (j.least == 0 || mu < j.least) {
		j.least = mu
	}
	if mu > 0 && r.SamplingLaw != nil {
		s.PagePossible++
		sum.inverse += 1 / mu
	}
}

// weighItems weighs the items of a round's page, with z as scratch for the law's items.
func (j *judgement) weighItems(t int, z []float64, sum *lawSums) {
	s, r, page := &j.support, &j.log.Rounds[t], j.pages[t]
	law := r.SamplingLaw
	s.KnownLaw++
	for _, i := range page {
		p := law.Inclusion(i)
		s.LeastInclusion = min(s.LeastInclusion, p)
		if p > 0 {
			j.itemMost[t] = max(j.itemMost[t], r.price(i)/p)
			j.item[t] += r.earnedBy(i) / p
		}
	}
	if !Solve(law, z, page) {
		return
	}
	s.Possible++
	for _, i := range r.Shown {
		j.weight[t] += z[i]
	}
	one, two := 0.0, 0.0 // E w and E w² = zᵀΓz = 1_πᵀz
	for i, v := range z {
		one += v * law.Inclusion(i)
	}
	for _, i := range page {
		two += z[i]
	}
	sum.weight += j.weight[t]
	sum.expected += one
	sum.variance += two - one*one
	sum.second += two
	j.up[t], j.down[t] = largestSums(z, law.MaxSize())
	sum.most = max(sum.most, max(j.up[t], j.down[t])+math.Abs(one))
}

// findUnseen finds the items of the policy's pages that the log never showed.
func (j *judgement) findUnseen() {
	seen, unseen := map[string]bool{}, map[string]int{}
	for t := range j.log.Rounds {
		if r := &j.log.Rounds[t]; r.Items != nil {
			for _, i := range r.Shown {
				seen[r.Items[i]] = true
			}
		}
	}
	for t, page := range j.pages {
		r := &j.log.Rounds[t]
		if r.Items == nil {
			continue
		}
		all := true
		for _, i := range page {
			if id := r.Items[i]; !seen[id] {
				all = false
				unseen[id]++
			}
		}
		if all {
			j.support.ItemsSeen++
		}
	}
	j.support.Unseen = mostFrequent(unseen)
}

// effective returns (Σw)²/Σw², or 0 without weights. It scales by a power of two, which changes no digit, since squares
// may overflow.
func effective(w []float64) float64 {
	most := 0.0
	for _, v := range w {
		most = max(most, math.Abs(v))
	}
	_, exponent := math.Frexp(most)
	sum, squares := 0.0, 0.0
	for _, v := range w {
		v = math.Ldexp(v, -exponent)
		sum += v
		squares += float64(v * v)
	}
	return ratio(sum*sum, squares)
}

// sums returns Σw and Σw².
func sums(w []float64) (sum, squares float64) {
	for _, v := range w {
		sum += v
		squares += v * v
	}
	return sum, squares
}

// largestSums bounds Σ_{i∈S} z_i over sets of at most k items: above by up, below by −down.
func largestSums(z []float64, k int) (up, down float64) {
	sorted := slices.Sorted(slices.Values(z))
	n := len(sorted)
	for i := range min(k, n) {
		up += max(sorted[n-1-i], 0)
		down += max(-sorted[i], 0)
	}
	return up, down
}

// mostFrequent returns names, most frequent first.
func mostFrequent(count map[string]int) (names []string) {
	return slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a, b))
	})
}

// sales returns the effective sample size of the weights of rounds that earned something.
func (j *judgement) sales(weight []float64) float64 {
	sold := make([]float64, len(weight))
	for t, w := range weight {
		if j.earned[t] != 0 {
			sold[t] = math.Abs(w)
		}
	}
	return effective(sold)
}

// mean returns the mean of one term per round as an estimate.
func (j *judgement) mean(method string, terms []float64, ess, sales float64) Estimate {
	e := Estimate{Method: method, ESS: ess, Sales: sales, influence: terms}
	for _, v := range terms {
		e.Value += v / float64(len(terms))
	}
	for t := range terms {
		terms[t] -= e.Value
	}
	return e
}

// steps returns a step per round, or nil if the revenues are not bounded.
func (j *judgement) steps(of func(t int) step) []step {
	if !j.bounded {
		return nil
	}
	list := make([]step, len(j.pages))
	for t := range list {
		list[t] = of(t)
	}
	return list
}

// early returns the predictions by the model fitted before round t, for the policy's page, the page shown, and the best
// page.
func (j *judgement) early(t int) (target, shown, best float64) {
	l := j.log
	w, r := l.before(t), &l.Rounds[t]
	u := make([]float64, r.Context.NumItems())
	l.utilities(u, w.w, t)
	_, best = assortment.Maximize(nil, assortment.AtMost(min(r.SamplingLaw.MaxSize(), len(u))), u, r.Context.Revenue)
	return l.revenue(w, t, j.pages[t]), l.revenue(w, t, r.Shown), best
}

// needsLaw explains why weights of items cannot be computed.
func (j *judgement) needsLaw() string {
	s := &j.support
	switch {
	case s.KnownLaw < s.Rounds:
		return fmt.Sprintf("the log does not say how %d of %d pages were drawn", s.Rounds-s.KnownLaw, s.Rounds)
	case s.Possible < s.Rounds:
		return fmt.Sprintf("the log could not show all items of the policy's page in %d of %d rounds",
			s.Rounds-s.Possible, s.Rounds)
	}
	return ""
}

// refuted explains why the weights of items are wrong.
func (j *judgement) refuted() string {
	if c := j.support.Weights; c.Wrong() {
		return fmt.Sprintf("the item weights have the mean %.3g instead of %.3g: the pages were not drawn as the log says",
			c.Mean, c.Expected)
	}
	return ""
}

// doublyRobust averages the terms
//
//	R̂(π(x_t)) + w_t (ρ_t − R̂(S_t)),  w_t = 1_πᵀ Γ_t† 1_{S_t}
//
// If the law does not determine a round's page, w_t = 0 and the model is trusted there, with the error of its
// parameters. In other rounds the weights balance this error. Source: Swaminathan et al. (2017) for w, applied to the
// model's residuals.
func (j *judgement) doublyRobust() Estimate {
	if j.support.Possible == 0 {
		return Estimate{Method: "dr-pi", ESS: 0, None: j.needsLaw()}
	} else if why := j.refuted(); why != "" {
		return Estimate{Method: "dr-pi", ESS: j.support.ESS, None: why}
	}
	terms := make([]float64, len(j.pages))
	for t := range terms {
		terms[t] = j.target[t] + j.weight[t]*(j.earned[t]-j.shown[t])
	}
	e := j.mean("dr-pi", terms, j.support.ESS, j.support.Sales)
	if j.needsLaw() != "" {
		j.log.addParameters(e.influence, func(t int, of func(c float64, page vitrine.Assortment)) {
			of(1, j.pages[t])
			of(-j.weight[t], j.log.Rounds[t].Shown)
		})
	} else {
		e.steps = j.steps(func(t int) step {
			target, shown, best := j.early(t)
			return both(target, j.weight[t]*(j.earned[t]-shown), max(j.up[t]*best, j.down[t]*j.price[t]),
				max(j.up[t]*j.price[t], j.down[t]*best))
		})
	}
	return e
}

// pseudoInverse averages the terms w_t ρ_t.
func (j *judgement) pseudoInverse() Estimate {
	if why := cmp.Or(j.needsLaw(), j.refuted()); why != "" {
		return Estimate{Method: "pi", ESS: j.support.ESS, None: why}
	}
	terms := make([]float64, len(j.pages))
	for t := range terms {
		terms[t] = j.weight[t] * j.earned[t]
	}
	e := j.mean("pi", terms, j.support.ESS, j.support.Sales)
	e.steps = j.steps(func(t int) step {
		return both(0, j.weight[t]*j.earned[t], j.down[t]*j.price[t], j.up[t]*j.price[t])
	})
	return e
}

// items averages the terms of independent item weights,
//
//	Σ_{i ∈ S_t ∩ π(x_t)} n_i r_i / P(i ∈ S_t)
//
// where n_i counts the takes of item i. It assumes that an item's earnings are independent of the other items on the
// page.
func (j *judgement) items() Estimate {
	if why := cmp.Or(j.needsLaw(), j.refuted()); why != "" {
		return Estimate{Method: "items", ESS: nan, None: why}
	}
	weight := slices.Clone(j.item)
	for t := range weight {
		weight[t] = ratio(weight[t], j.earned[t])
	}
	e := j.mean("items", slices.Clone(j.item), nan, j.sales(weight))
	e.steps = j.steps(func(t int) step {
		return both(j.itemMost[t]/2, j.item[t]-j.itemMost[t]/2, j.itemMost[t]/2, j.itemMost[t]/2)
	})
	return e
}

// tooFew explains why weights of pages give no estimate.
func (j *judgement) tooFew() string {
	s := &j.support
	switch {
	case s.KnownPropensity < s.Rounds:
		return fmt.Sprintf("the log has no propensity of %d of %d pages", s.Rounds-s.KnownPropensity, s.Rounds)
	case s.PagePossible < s.KnownLaw:
		return fmt.Sprintf("no support: the log could not show the policy's page in %d of %d rounds",
			s.KnownLaw-s.PagePossible, s.Rounds)
	case !(s.SetESS >= MinESS):
		return fmt.Sprintf("no support: the log has %.3g effective rounds with the policy's page, and %d are needed",
			s.SetESS, MinESS)
	case s.SetWeights.Wrong():
		return fmt.Sprintf("the page weights have the mean %.3g instead of %.3g: %s", s.SetWeights.Mean,
			s.SetWeights.Expected, s.wrongPropensities())
	}
	return ""
}

// snips is Σ w ρ / Σ w with w = 1{S_t = π(x_t)}/μ(S_t). Its anytime interval builds on the mean (1/n) Σ w ρ. The lower
// bound uses w ρ ≥ 0. The upper bound uses w (p − ρ) ≥ 0, which has the largest revenue p minus the value as its mean,
// so that no weight needs a bound (Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro 2024, Anytime-valid off-policy
// inference for contextual bandits).
func (j *judgement) snips() Estimate {
	e := Estimate{Method: "snips", ESS: j.support.SetESS, Sales: j.support.SetSales, None: j.tooFew()}
	if e.None != "" {
		return e
	}
	sum, earned := 0.0, 0.0
	for t, w := range j.set {
		sum += w
		earned += w * j.earned[t]
	}
	e.Value = earned / sum
	e.influence = make([]float64, len(j.set))
	for t, w := range j.set {
		e.influence[t] = w * (j.earned[t] - e.Value) * float64(len(j.set)) / sum
	}
	e.steps = j.steps(func(t int) step {
		p, w := j.most[t], j.set[t]
		guess := p / 2
		return step{guess, w*j.earned[t] - guess, p - guess - w*(p-j.earned[t]), guess, p - guess}
	})
	return e
}

// setsRobust averages the terms R̂(π(x_t)) + w_t (ρ_t − R̂(S_t)) with page weights.
func (j *judgement) setsRobust() Estimate {
	if why := j.tooFew(); why != "" {
		return Estimate{Method: "dr-sets", ESS: j.support.SetESS, None: why}
	}
	terms := make([]float64, len(j.set))
	for t, w := range j.set {
		terms[t] = j.target[t] + w*(j.earned[t]-j.shown[t])
	}
	e := j.mean("dr-sets", terms, j.support.SetESS, j.support.SetSales)
	if j.support.KnownLaw == j.support.Rounds {
		e.steps = j.steps(func(t int) step {
			target, _, _ := j.early(t)
			heaviest := 1 / j.log.Rounds[t].SamplingLaw.Propensity(j.pages[t])
			return both(target, j.set[t]*(j.earned[t]-target), target*heaviest, (j.most[t]-target)*heaviest)
		})
	}
	return e
}
