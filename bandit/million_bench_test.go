package bandit

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// The benchmarks of this file choose 10 of a million items with 10 features,
// after 10 000 rounds of learning from 100 items each.
const (
	millionItems    = 1_000_000
	millionFeatures = 10
	millionSize     = 10
	millionRounds   = 10_000
)

func millionContext(s, n int) *vitrine.Context {
	rng := stream.New(4, s, stream.Contexts)
	x := mat.NewDense(n, millionFeatures, nil)
	x.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, x)
	return &vitrine.Context{Features: x}
}

// benchMillion runs a benchmark of the policy of ONL-MNL over linear utilities
// and over a network, learned where customers follow a network that is not in
// reach of either.
func benchMillion(b *testing.B, bench func(b *testing.B, o *optimistic, x *vitrine.Context)) {
	x := millionContext(millionRounds, millionItems)
	for _, m := range []utility.Model{
		utility.NewLinear(millionFeatures, false),
		utility.NewLinear(millionFeatures, true),
		utility.NewMLP(millionFeatures, []int{10}, utility.Sigmoid),
	} {
		var o *optimistic
		b.Run(fmt.Sprintf("%v,dw=%d", m, m.NumParams()), func(b *testing.B) {
			if o == nil {
				o = millionPolicy(b, m)
			}
			bench(b, o, x)
		})
	}
}

var millionPolicies sync.Map // by name of the model

func millionPolicy(b *testing.B, m utility.Model) *optimistic {
	b.Helper()
	if o, ok := millionPolicies.Load(fmt.Sprint(m)); ok {
		return o.(*optimistic)
	}
	p := Problem{NumFeatures: millionFeatures, MaxShown: millionSize, Rounds: millionRounds,
		Constraint: assortment.AtMost(millionSize)}
	options := DefaultONLOptions()
	options.Pilot, options.Update = "map", "online"
	l, err := NewONL(p, m, options, newRand())
	fatal.If(b, err)
	truth := utility.NewMLP(millionFeatures, []int{10}, utility.Sigmoid)
	w := make([]float64, truth.NumParams())
	truth.Init(w, newRand())
	for i := range w {
		w[i] *= 3
	}
	u, shock := make([]float64, 100), make([]float64, 101)
	for s := range millionRounds {
		x, rng := millionContext(s, 100), stream.New(4, s, stream.Customers)
		offer := l.Policy().Offer(x, rng)
		truth.Utilities(u, w, x.Features)
		vitrine.DrawShocks(shock, rng)
		fatal.If(b, l.Observe(vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u,
			shock)}))
	}
	o := l.freeze().(*optimistic)
	millionPolicies.Store(fmt.Sprint(m), o)
	return o
}

// BenchmarkMillion is a decision with equal revenues. Its metrics are the least time
// and that time in units of the floor: reading the context once with as many
// goroutines.
func BenchmarkMillion(b *testing.B) {
	for workers := 1; workers <= runtime.NumCPU(); workers++ {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			benchMillion(b, func(b *testing.B, o *optimistic, x *vitrine.Context) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
				took := minTime(b, func() { o.Offer(x, nil) })
				b.ReportMetric(float64(took)/float64(millionFloor(x.Features, workers)), "floors")
			})
		})
	}
}

// BenchmarkMillionUnequal is a decision with unequal revenues.
func BenchmarkMillionUnequal(b *testing.B) {
	benchMillion(b, func(b *testing.B, o *optimistic, x *vitrine.Context) {
		rng := stream.New(4, 1, stream.Contexts)
		y := &vitrine.Context{Features: x.Features, Revenue: make([]float64, millionItems)}
		for i := range y.Revenue {
			y.Revenue[i] = rng.Float64()
		}
		minTime(b, func() { o.Offer(y, nil) })
	})
}

// BenchmarkMillionExhaustive computes all optimistic utilities, on one goroutine.
func BenchmarkMillionExhaustive(b *testing.B) {
	benchMillion(b, func(b *testing.B, o *optimistic, x *vitrine.Context) {
		var z []float64
		minTime(b, func() {
			z = o.z.Utilities(z, x)
			assortment.Maximize(nil, o.p.Constraint, z, nil)
		})
	})
}

// BenchmarkMillionUtilities computes the utilities without their bonus, on one
// goroutine.
func BenchmarkMillionUtilities(b *testing.B) {
	benchMillion(b, func(b *testing.B, o *optimistic, x *vitrine.Context) {
		u := make([]float64, millionItems)
		minTime(b, func() { o.z.Model.Utilities(u, o.z.Params, x.Features) })
	})
}

// minTime runs f and reports the least time that it took. The first run, which
// computes what a policy needs once, does not count.
func minTime(b *testing.B, f func()) time.Duration {
	f()
	minimum := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		f()
		minimum = min(minimum, time.Since(start))
	}
	b.ReportMetric(minimum.Seconds()*1e3, "least-ms")
	return minimum
}

// BenchmarkMillionFloor reads the context.
func BenchmarkMillionFloor(b *testing.B) {
	x := millionContext(millionRounds, millionItems)
	for workers := 1; workers <= runtime.GOMAXPROCS(0); workers++ {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			for b.Loop() {
				readAll(x.Features, workers)
			}
			b.ReportMetric(millionFloor(x.Features, workers).Seconds()*1e3, "least-ms")
		})
	}
}

// millionFloor returns the least of 20 times that reading x takes.
func millionFloor(x *mat.Dense, workers int) time.Duration {
	minimum := time.Duration(math.MaxInt64)
	for range 20 {
		start := time.Now()
		readAll(x, workers)
		minimum = min(minimum, time.Since(start))
	}
	return minimum
}

// readAll sums the entries of x, each worker its part, four at a time so that
// the additions do not wait for each other.
func readAll(x *mat.Dense, workers int) float64 {
	data := x.RawMatrix().Data
	sums := make([]float64, workers)
	var all sync.WaitGroup
	for k := range workers {
		all.Go(func() {
			part := data[k*len(data)/workers : (k+1)*len(data)/workers]
			var s0, s1, s2, s3 float64
			for ; len(part) >= 8; part = part[8:] {
				s0 += part[0] + part[4]
				s1 += part[1] + part[5]
				s2 += part[2] + part[6]
				s3 += part[3] + part[7]
			}
			sums[k] = s0 + s1 + s2 + s3
		})
	}
	all.Wait()
	total := 0.0
	for _, s := range sums {
		total += s
	}
	return total
}
