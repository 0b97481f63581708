package abtest

import (
	"fmt"
	"math"

	"vitrine/internal/confseq"
	"vitrine/internal/portable"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/offer"
)

// signs show whether a variant's decisions and sales are what they should be.
type signs struct {
	fallback uint64 // decisions that showed the baseline during an alarm
	row      row    // the latest
	first    row    // the one before the first sale, once it has ended
	lost     uint64 // the longest of the later rows that ended beyond their limit
	valued   uint64 // sales with a declared revenue

	logs, squares float64 // Σ log of their values over their declared revenues, and of its square
}

// row is a row of a variant's decisions without a sale.
type row struct {
	length       uint64 // decisions, while other variants sold
	others, sold uint64 // decisions and sales of other variants during the row
}

const (
	manyValued = 32 // sales before their values are compared; times the variance of the logs, if above 1
	mostTimes  = 3  // by which the variants' values may differ, in declared revenues
	rarest     = 8  // a variant that never sold may sell this many times more rarely than the others
)

// value adds a sale's value.
func (s *signs) value(o *offer.Closed) {
	declared := 0.0
	for _, t := range o.Takes() {
		declared += float64(float64(t.Quantity) * offer.Revenue(o.Revenue, int(o.Shown[t.Place-1])))
	}
	if x := o.Earned(); x > 0 && declared > 0 && o.Revenue != nil {
		s.valued++
		log := portable.Log(x / declared)
		s.logs += log
		s.squares += float64(log * log)
	}
}

// listen adds a cohort's sales. Cohorts in which no variant sold say something about the shop.
func (e *Experiment) listen(groups []offer.Totals) {
	var all offer.Totals
	for class := range groups {
		all.Add(&groups[class])
	}
	for class := range groups {
		s, g := &e.signs[class], &groups[class]
		switch {
		case g.Purchases == 0:
			s.row.others += all.Rounds - g.Rounds
			s.row.sold += all.Purchases
			if all.Purchases > 0 {
				s.row.length += g.Rounds
			}
			continue
		case e.groups[class].Purchases == 0:
			s.first = s.row
		default:
			if surely, _ := e.limits(class, s.row, e.groups[class].Purchases); s.row.length >= surely {
				s.lost = max(s.lost, s.row.length)
			}
		}
		s.row = row{}
	}
}

// limits returns how many decisions in a row without a sale, the runs-th such row, are surely too many to be chance, and
// how many may be, by the variant's sales outside the row, or by the others' if it never sold. They rise if the others
// sold less during the row, too.
//
// A limit is only sure by the number of different shoppers who bought, because a variant may lack them by chance. Those
// of a variant that sold would buy again during the row. If it never sold, each of the others' shoppers counts once.
func (e *Experiment) limits(class int, r row, runs uint64) (surely, maybe uint64) {
	var others offer.Totals
	for other := range e.groups {
		if other != class {
			others.Add(&e.groups[other])
		}
	}
	own := &e.groups[class]
	_, high := share(own.Purchases, own.Rounds-r.length)
	fall := 1.0
	during, outside := ratio(r.sold, r.others), ratio(others.Purchases-r.sold, others.Rounds-r.others)
	if during < outside {
		fall = during / outside
	}
	limit := func(rate float64) uint64 {
		if rate < 1e-12 {
			return math.MaxUint64
		}
		return earnings.MaxSilence(rate, runs)
	}
	maybe = limit(high * fall)
	if r.length < maybe {
		return math.MaxUint64, maybe
	}
	mine, theirs := e.buyers(class)
	low, _ := share(mine, own.Rounds-r.length)
	low *= ratio(own.Purchases, mine)
	if own.Purchases == 0 {
		low, _ = share(theirs, others.Rounds)
		low /= rarest
	}
	return limit(low * fall), maybe
}

// buyers counts a variant's and the others' buckets with a sale.
func (e *Experiment) buyers(class int) (own, others uint64) {
	for b, c := range e.metrics[conversion].Clusters {
		switch {
		case c.Sum == 0:
		case int(e.Table[b]) == class:
			own++
		default:
			others++
		}
	}
	return own, others
}

// share returns bounds on a rate of sales, which hold after any number of sales.
func share(sales, decisions uint64) (low, high float64) {
	k := float64(sales)
	return confseq.Share(k, float64(decisions), ratioError/(k+1)/(k+2))
}

func ratio(sales, decisions uint64) float64 { return float64(sales) / float64(max(decisions, 1)) }

// look reports a variant's signs, and whether its sales are too few for a verdict.
func (e *Experiment) look(class int, v *api.VariantReport) (few bool) {
	s := &e.signs[class]
	v.Fallback, v.WithoutSale = s.fallback, s.row.length
	ended := s.lost
	surely, maybe := e.limits(class, s.first, 1)
	if s.first.length >= surely {
		ended = max(ended, s.first.length)
	}
	if api.FewLost*ended >= v.Group.Rounds { // a shorter row that has ended is ignored
		v.Silence = ended
	}
	now, soon := e.limits(class, s.row, max(v.Group.Purchases, 1))
	if s.row.length >= now {
		v.Silence = max(v.Silence, s.row.length)
	}
	n := float64(s.valued)
	if mean := s.logs / n; n >= manyValued*max(1, s.squares/n-float64(mean*mean)) {
		v.Worth = new(portable.Exp(mean))
	}
	return v.Group.Purchases == 0 && s.row.length > 0 || s.row.length >= soon ||
		s.first.length >= maybe && api.FewLost*s.first.length >= v.Group.Rounds
}

// unseen reports how many of a variant's first decisions were seen, and another variant whose first decisions surely
// were seen more often, by an estimate of at least 1/[api.FewLost] of its share. It returns the largest such estimate, or 0.
// The pairs share the error.
//
// A unit's first decision is seen, or not, before its variant can affect the unit otherwise. Each unit counts once, so
// returning units widen no interval and cause no false alarm. A decision counts with its cohort, so it does not matter
// how soon outcomes come. The difference allows for changing shares; the shares of seen decisions do not.
func (e *Experiment) unseen(class int, v *api.VariantReport) (less float64) {
	m := &e.firsts.Variants[class].Mean
	v.Deferred, v.Seen = m.N, uint64(m.Sum.Value())
	for other := range e.shares {
		low, by, _, ok := e.firsts.Difference(other, class, ratioError/float64(len(e.firsts.Pairs)))
		if ok && low > 0 && by > less && api.FewLost*by >= e.firsts.Variants[other].Mean.Average() {
			v.SeenLess, less = e.Name(other), by
		}
	}
	return less
}

// compareAgain says how to compare again once the cause is found.
func compareAgain(r *api.ExperimentReport) string {
	if r.Name == api.Holdout {
		return "set holdout_share to 0 and back to compare again"
	}
	return "begin another experiment"
}

// distrust is part of the reasons below.
const distrust = "do not trust the differences"

// mismatched returns that the shoppers are not divided as planned, or "".
func mismatched(r *api.ExperimentReport) string {
	if !r.Ratio.Mismatch {
		return ""
	}
	return fmt.Sprintf("the shoppers are not divided as the shares say (p = %.2g): "+distrust+", and find the cause first", r.Ratio.P)
}

// forgotten returns why the decisions that count cannot be compared, or "".
func forgotten(r *api.ExperimentReport) string {
	v := r.Forgets()
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d decisions of %q left memory before their outcome: "+
		distrust+", raise memory_bytes or the log's [retention], or report decisions without a sale, and %s",
		v.ExpiredEarly, v.Made, v.Name, compareAgain(r))
}

// misreported returns why sales cannot be compared, or "".
func misreported(r *api.ExperimentReport) string {
	var least, most *api.VariantReport
	for i := range r.Variants {
		v := &r.Variants[i]
		if v.Silence > 0 {
			way := "and find the cause first"
			if v.Silence > v.WithoutSale {
				way = "find the cause, and " + compareAgain(r)
			}
			return fmt.Sprintf("no sale of %q in %d decisions in a row, while other variants sold: "+
				distrust+", %s", v.Name, v.Silence, way)
		}
		if v.Worth != nil && (least == nil || *v.Worth < *least.Worth) {
			least = v
		}
		if v.Worth != nil && (most == nil || *v.Worth > *most.Worth) {
			most = v
		}
	}
	if least == nil || *most.Worth <= mostTimes**least.Worth {
		return ""
	}
	return fmt.Sprintf("a sale of %q is worth %.3g times its declared revenue, one of %q %.3g times: "+
		distrust+", and find the cause first",
		most.Name, *most.Worth, least.Name, *least.Worth)
}
