package bandit

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/internal/fatal"
	"vitrine/internal/stream"
	"vitrine/utility"
)

// benchContext is a context of the paper's main panels: N = 100, d = 3.
func benchContext(s int) *vitrine.Context {
	rng := stream.New(3, s, stream.Contexts)
	x := mat.NewDense(100, 3, nil)
	for i := range 100 {
		for j := range 3 {
			x.Set(i, j, rng.NormFloat64())
		}
	}
	return &vitrine.Context{Features: x}
}

// benchONL returns ONL-MNL after t rounds of N = 100, K = 5 and d = 3, with the
// given number of hidden units.
func benchONL(b *testing.B, hidden, t int, update string) *ONL {
	b.Helper()
	o := DefaultONLOptions()
	o.Pilot, o.Update = "map", update
	p := Problem{NumFeatures: 3, MaxShown: 5, Rounds: 1 << 20, Constraint: assortment.AtMost(5)}
	l, err := NewONL(p, utility.NewMLP(3, []int{hidden}, utility.Sigmoid), o, newRand())
	fatal.If(b, err)
	for s := range t {
		fatal.If(b, l.Observe(benchRound(l, s)))
	}
	return l
}

func benchRound(l vitrine.Learner, s int) vitrine.Round {
	x, rng := benchContext(s), stream.New(3, s, stream.Customers)
	offer := l.Policy().Offer(x, rng)
	u, shock := make([]float64, 100), make([]float64, 101)
	for i := range u {
		u[i] = math.Sin(x.Features.At(i, 0)) / 2
	}
	vitrine.DrawShocks(shock, rng)
	return vitrine.Round{Context: x, Offer: offer, Choice: vitrine.Choose(offer.Assortment, u, shock)}
}

func BenchmarkONLOffer(b *testing.B) {
	for _, hidden := range []int{3, 15} {
		b.Run(fmt.Sprintf("dw=%d", 5*hidden+1), func(b *testing.B) {
			pi, x := benchONL(b, hidden, 200, "online").Policy(), benchContext(9999)
			b.ReportAllocs()
			for b.Loop() {
				pi.Offer(x, nil)
			}
		})
	}
}

// BenchmarkONLObserve learns one more round after t of them.
func BenchmarkONLObserve(b *testing.B) {
	for _, update := range []string{"online", "mle"} {
		for _, hidden := range []int{3, 15} {
			for _, t := range []int{200, 1000} {
				b.Run(fmt.Sprintf("%s,dw=%d,t=%d", update, 5*hidden+1, t), func(b *testing.B) {
					l := benchONL(b, hidden, t, update)
					saved, err := l.MarshalBinary()
					fatal.If(b, err)
					rounds := make([]vitrine.Round, 64)
					for s := range rounds {
						rounds[s] = benchRound(l, t+s)
					}
					b.ReportAllocs()
					s := 0
					for b.Loop() {
						if s == len(rounds) { // back to t rounds
							b.StopTimer()
							fatal.If(b, l.UnmarshalBinary(saved))
							s = 0
							b.StartTimer()
						}
						fatal.If(b, l.Observe(rounds[s]))
						s++
					}
				})
			}
		}
	}
}

func BenchmarkONLPublish(b *testing.B) {
	for _, hidden := range []int{3, 15} {
		b.Run(fmt.Sprintf("dw=%d", 5*hidden+1), func(b *testing.B) {
			l := benchONL(b, hidden, 200, "online")
			b.ReportAllocs()
			for b.Loop() {
				l.policy = nil
				l.Policy()
			}
		})
	}
}

// benchBMA returns the recommended BMA-MNL after t rounds of N = 100, K = 5 and
// d = 3, of customers that no expert knows.
func benchBMA(b *testing.B, t int) *BMA {
	b.Helper()
	p := Problem{NumFeatures: 3, MaxShown: 5, Rounds: 1 << 20, Constraint: assortment.AtMost(5)}
	l, err := NewBMA(p, DefaultExperts(3), DefaultBMAOptions(), newRand())
	fatal.If(b, err)
	for s := range t {
		fatal.If(b, l.Observe(benchRound(l, s)))
	}
	return l
}

func BenchmarkBMAOffer(b *testing.B) {
	pi, x, rng := benchBMA(b, 200).Policy(), benchContext(9999), newRand()
	b.ReportAllocs()
	for b.Loop() {
		pi.Offer(x, rng)
	}
}

// BenchmarkBMARun is a run of T = 1000 rounds, offers and fits and all.
func BenchmarkBMARun(b *testing.B) {
	for b.Loop() {
		benchBMA(b, 1000)
	}
}
