package abtest

import (
	"fmt"
	"math"
	"slices"

	"vitrine/internal/confseq"
	"vitrine/internal/portable"
	"vitrine/service/api"
	"vitrine/service/earnings"
	"vitrine/service/offer"
)

// signs show whether a variant's decisions and sales are what they should be.
type signs struct {
	fallback uint64  // decisions that showed the baseline during an alarm
	silent   uint64  // latest decisions in a row without a sale, while other variants sold
	lost     uint64  // the longest such row beyond its limit that has ended
	valued   uint64  // sales with a declared revenue
	logs     float64 // Σ log of their values over their declared revenues
}

const (
	manyValued = 32 // sales, before their values are compared
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
		s.logs += portable.Log(x / declared)
	}
}

// listen adds a cohort's sales. Cohorts in which no variant sold say something about the shop.
func (e *Experiment) listen(groups []api.Totals) {
	if !slices.ContainsFunc(groups, func(g api.Totals) bool { return g.Purchases > 0 }) {
		return
	}
	for class := range groups {
		s := &e.signs[class]
		if groups[class].Purchases == 0 {
			s.silent += groups[class].Rounds
			continue
		}
		if e.groups[class].Purchases > 0 && s.silent >= e.limit(class) {
			s.lost = max(s.lost, s.silent)
		}
		s.silent = 0
	}
}

// limit returns how many decisions in a row without a sale are no chance, by the variant's earlier sales, or by the
// others' if it never sold.
func (e *Experiment) limit(class int) uint64 {
	g, rarer := e.groups[class], 1.0
	if g.Rounds -= e.signs[class].silent; g.Purchases == 0 {
		g, rarer = api.Totals{}, rarest
		for other := range e.groups {
			if other != class {
				g.Add(&e.groups[other])
			}
		}
	}
	sales := float64(g.Purchases)
	rate, _ := confseq.Share(sales, float64(g.Rounds), ratioError/(sales+1)/(sales+2))
	if rate == 0 {
		return math.MaxUint64
	}
	return earnings.MaxSilence(rate/rarer, max(e.groups[class].Purchases, 1))
}

func (s *signs) report(v *api.VariantReport, limit uint64) {
	v.Fallback, v.WithoutSale, v.Silence = s.fallback, s.silent, s.lost
	if s.silent >= limit {
		v.Silence = max(s.lost, s.silent)
	}
	if s.valued >= manyValued {
		v.Worth = new(portable.Exp(s.logs / float64(s.valued)))
	}
}

// misreported returns why sales cannot be compared, or "".
func misreported(r *api.ExperimentReport) string {
	var least, most *api.VariantReport
	for i := range r.Variants {
		v := &r.Variants[i]
		if v.Silence > 0 {
			return fmt.Sprintf("no sale of %q in %d decisions in a row, while other variants sold", v.Name, v.Silence)
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
	return fmt.Sprintf("a sale of %q is worth %.3g times its declared revenue, one of %q %.3g times",
		most.Name, *most.Worth, least.Name, *least.Worth)
}
