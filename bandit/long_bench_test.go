package bandit

import (
	"math"
	"runtime"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// BenchmarkLongRun plays learners for b.N rounds of N = 20, K = 5 and d = 10, and reports the regret, the longest
// Observe and the heap at the end.
//
//	go test -run xxx -bench LongRun -benchtime 100000x ./bandit
//
// The truth is a wave along one direction, cos(2 xᵀw) with ‖w‖ = 1, which no linear learner knows.
func BenchmarkLongRun(b *testing.B) {
	const n, d = 20, 10
	p := Problem{Features: d, Size: 5, Rounds: 1 << 20, Constraint: assortment.AtMost(5)}
	for name, create := range map[string]func() (vitrine.Learner, error){
		"auto": func() (vitrine.Learner, error) { return NewAuto(p, newRand()) },
		"ucb-mnl": func() (vitrine.Learner, error) {
			o := DefaultUCBOptions()
			o.Constants, o.Radius, o.Intercept = "tuned", 0, true
			return NewUCB(p, o)
		},
		"onl-mnl": func() (vitrine.Learner, error) {
			o := DefaultONLOptions()
			o.Pilot, o.Update = "map", "online"
			return NewONL(p, utility.NewMLP(d, []int{8}, utility.Sigmoid), o, newRand())
		},
	} {
		b.Run(name, func(b *testing.B) {
			l, err := create()
			if err != nil {
				b.Fatal(err)
			}
			w := mat.NewVecDense(d, nil)
			for j := range d {
				w.SetVec(j, newRand().NormFloat64()+float64(j%3)-1)
			}
			w.ScaleVec(2/mat.Norm(w, 2), w)
			regret, longest := 0.0, time.Duration(0)
			u, shock := mat.NewVecDense(n, nil), make([]float64, n+1)
			for s := range b.N {
				rng := stream.New(5, s, stream.Contexts)
				x := mat.NewDense(n, d, nil)
				env.Gaussian{}.Draw(x, rng)
				u.MulVec(x, w)
				for i := range n {
					u.SetVec(i, 1.5*math.Cos(u.AtVec(i))-1)
				}
				vitrine.DrawShocks(shock, rng)
				c := &vitrine.Context{Features: x}
				offer := l.Policy().Offer(c, rng)
				r := vitrine.Round{Context: c, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u.RawVector().Data, shock)}
				start := time.Now()
				if err := l.Observe(r); err != nil {
					b.Fatal(err)
				}
				longest = max(longest, time.Since(start))
				_, best := assortment.Maximize(nil, assortment.AtMost(5), u.RawVector().Data, nil)
				regret += best - vitrine.ExpectedRevenue(offer.Assortment, u.RawVector().Data, nil)
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			b.ReportMetric(regret, "regret")
			b.ReportMetric(float64(longest.Milliseconds()), "ms-longest")
			b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-heap")
			runtime.KeepAlive(l)
		})
	}
}
