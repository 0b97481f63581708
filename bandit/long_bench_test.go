package bandit

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/env"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// longWorld is a shop for a long run.
type longWorld struct {
	items, features int
	ids             int // indicators after the features, one of them set for each item
	effects         []float64
	direction       *mat.VecDense
}

func newLongWorld(items, features, ids int) *longWorld {
	w := &longWorld{items: items, features: features, ids: ids, direction: mat.NewVecDense(features, nil)}
	for j := range features {
		w.direction.SetVec(j, newRand().NormFloat64()+float64(j%3)-1)
	}
	w.direction.ScaleVec(2/mat.Norm(w.direction, 2), w.direction)
	rng := newRand()
	for range ids {
		w.effects = append(w.effects, 0.7*rng.NormFloat64())
	}
	return w
}

func (w *longWorld) problem() Problem {
	p := Problem{NumFeatures: w.features + w.ids, MaxShown: 5, Rounds: 1 << 20, Constraint: assortment.AtMost(5)}
	for j := range w.features {
		p.Numeric = append(p.Numeric, j)
	}
	return p
}

// draw stores the true utilities of a context in u: a wave along one direction, and the effects of ids.
func (w *longWorld) draw(u *mat.VecDense, rng *rand.Rand) *vitrine.Context {
	numbers := mat.NewDense(w.items, w.features, nil)
	env.Gaussian{}.Draw(numbers, rng)
	u.MulVec(numbers, w.direction)
	for i := range w.items {
		u.SetVec(i, 1.5*math.Cos(u.AtVec(i))-1)
	}
	if w.ids == 0 {
		return &vitrine.Context{Features: numbers}
	}
	x := mat.NewDense(w.items, w.features+w.ids, nil)
	for i := range w.items {
		copy(x.RawRowView(i), numbers.RawRowView(i))
		j := rng.IntN(w.ids)
		x.Set(i, w.features+j, 1)
		u.SetVec(i, u.AtVec(i)+w.effects[j])
	}
	return &vitrine.Context{Features: x}
}

// BenchmarkLongRun plays learners for b.N rounds of K = 5, and reports the regret, the mean time of an offer and of a
// round learned, the longest Observe, how many took more than 5 ms, the longest and the 99.9% quantile by processor
// time of its thread (without waits and fits, and without other work on the machine), and the heap at the end.
// bench/long.sh runs it.
//
// The truth is a wave along one direction, cos(2 xᵀw) with ‖w‖ = 1, which no linear learner knows.
func BenchmarkLongRun(b *testing.B) {
	small, wide := newLongWorld(20, 10, 0), newLongWorld(100, 12, 288)
	large := newLongWorld(100, 20, 0)
	for _, c := range []struct {
		name   string
		w      *longWorld
		create func(p Problem) (vitrine.Learner, error)
	}{
		{"N=20,d=10/auto", small, func(p Problem) (vitrine.Learner, error) {
			return NewAuto(p, AutoOptions{}, newRand())
		}},
		{"N=20,d=10/ucb-mnl", small, func(p Problem) (vitrine.Learner, error) {
			o := DefaultUCBOptions()
			o.Constants, o.Radius, o.Intercept = "tuned", 0, true
			return NewUCB(p, o)
		}},
		{"N=20,d=10/ofu-mnl-plus", small, func(p Problem) (vitrine.Learner, error) {
			o := DefaultOFUOptions()
			o.Constants, o.Radius, o.Lambda, o.Intercept = "tuned", 0, 100, true // as tuned for the worlds
			return NewOFU(p, o)
		}},
		{"N=20,d=10/onl-mnl", small, func(p Problem) (vitrine.Learner, error) {
			o := DefaultONLOptions()
			o.Pilot, o.Update = "map", "online"
			return NewONL(p, utility.NewMLP(p.NumFeatures, []int{8}, utility.Sigmoid), o, newRand())
		}},
		{"N=100,d=20/auto", large, func(p Problem) (vitrine.Learner, error) {
			return NewAuto(p, AutoOptions{}, newRand())
		}},
		{"N=100,d=300/auto", wide, func(p Problem) (vitrine.Learner, error) {
			return NewAuto(p, AutoOptions{}, newRand())
		}},
	} {
		b.Run(c.name, func(b *testing.B) { playLong(b, c.w, c.create) })
	}
}

func playLong(b *testing.B, w *longWorld, create func(p Problem) (vitrine.Learner, error)) {
	l, err := create(w.problem())
	fatal.If(b, err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var longest, learning, offering time.Duration
	var busy []time.Duration
	regret, slow := 0.0, 0
	u, shock := mat.NewVecDense(w.items, nil), make([]float64, w.items+1)
	for s := range b.N {
		rng := stream.New(5, s, stream.Contexts)
		c := w.draw(u, rng)
		vitrine.DrawShocks(shock, rng)
		pi := l.Policy()
		begun := time.Now()
		offer := pi.Offer(c, rng)
		offering += time.Since(begun)
		r := vitrine.Round{Context: c, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u.RawVector().Data,
			shock)}
		begun = time.Now()
		before := threadTime()
		fatal.If(b, l.Observe(r))
		busy = append(busy, threadTime()-before)
		took := time.Since(begun)
		learning, longest = learning+took, max(longest, took)
		if took > 5*time.Millisecond {
			slow++
		}
		_, best := assortment.Maximize(nil, assortment.AtMost(5), u.RawVector().Data, nil)
		regret += best - vitrine.ExpectedRevenue(offer.Assortment, u.RawVector().Data, nil)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(regret, "regret")
	b.ReportMetric(float64(offering.Microseconds())/float64(b.N), "µs/offer")
	b.ReportMetric(float64(learning.Microseconds())/float64(b.N), "µs/observe")
	b.ReportMetric(float64(longest.Microseconds())/1e3, "ms-longest")
	b.ReportMetric(float64(slow), "over-5ms")
	slices.Sort(busy)
	b.ReportMetric(float64(busy[len(busy)-1].Microseconds())/1e3, "cpu-ms-longest")
	b.ReportMetric(float64(busy[(len(busy)-1)*999/1000].Microseconds())/1e3, "cpu-ms-99.9%")
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-heap")
	runtime.KeepAlive(l)
}
