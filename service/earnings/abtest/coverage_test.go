package abtest_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"vitrine/internal/long"
	"vitrine/service/earnings/abtest"
)

var (
	runs  = flag.Int("coverage.runs", 60, "runs of each world of TestCoverage")
	table = flag.Bool("coverage.table", false, "print the table of docs/experiments.md")
)

// world is a shop in an experiment with variant 0 as the control.
type world struct {
	name      string
	shares    []float64
	later     []float64 // from half-time on; nil for no change
	shoppers  int       // returning shoppers, all equally often; 0 if every shopper is new
	tastes    bool      // whether each shopper buys at a rate of their own
	decisions int
	rate      func(t, v int) float64
	price     func(rng *rand.Rand) float64
	bound     float64
}

func same(p float64) func(int, int) float64 { return func(int, int) float64 { return p } }
func one(*rand.Rand) float64                { return 1 }

var worlds = []world{
	{name: "equal variants, 5% buy", shares: []float64{0.5, 0.5}, decisions: 20_000, rate: same(0.05), price: one,
		bound: 1},
	{name: "equal variants, 1% buy", shares: []float64{0.5, 0.5}, decisions: 20_000, rate: same(0.01), price: one,
		bound: 1},
	{name: "5% and 6%, prices from 1 to 100", shares: []float64{0.5, 0.5}, decisions: 20_000, bound: 100,
		rate:  func(_, v int) float64 { return 0.05 + 0.01*float64(v) },
		price: func(rng *rand.Rand) float64 { return math.Pow(100, rng.Float64()) }},
	{name: "a share of 5%", shares: []float64{0.95, 0.05}, decisions: 20_000, rate: same(0.05), price: one, bound: 1},
	{name: "four variants", shares: []float64{0.4, 0.3, 0.2, 0.1}, decisions: 20_000, rate: same(0.05), price: one,
		bound: 1},
	{name: "four variants, one of which has no share at first", shares: []float64{0.5, 0.3, 0.2, 0},
		later: []float64{0.3, 0.2, 0.1, 0.4}, decisions: 20_000, rate: same(0.05), price: one, bound: 1},
	{name: "rates drift, and shares change half-way", shares: []float64{0.9, 0.1}, later: []float64{0.3, 0.7},
		decisions: 20_000, bound: 1,
		rate: func(t, v int) float64 { return 0.05 + 0.1*float64(t)/20_000 + 0.01*float64(v) }, price: one},
	{name: "2000 shoppers come back 10 times", shares: []float64{0.5, 0.5}, shoppers: 2000, tastes: true,
		decisions: 20_000, rate: same(0.05), price: one, bound: 1},
	{name: "200 shoppers come back 100 times", shares: []float64{0.5, 0.5}, shoppers: 200, tastes: true,
		decisions: 20_000, rate: same(0.05), price: one, bound: 1},
	{name: "the same, and shares change half-way", shares: []float64{0.8, 0.2}, later: []float64{0.4, 0.6},
		shoppers: 200, tastes: true, decisions: 20_000, rate: same(0.05), price: one, bound: 1},
}

// outcome says which intervals held at all looks during a run.
type outcome struct {
	held, withoutBuckets, naive bool
	width                       float64 // width of variant 1's last interval over the control
	naiveWidth                  float64
}

// play runs an experiment and looks at it every 100 decisions.
func (w *world) play(seed uint64) outcome {
	const alpha, look = 0.05, 100
	rng := rand.New(rand.NewPCG(seed, 17))
	k := len(w.shares)
	taste := make([]float64, w.shoppers) // mean 1; few shoppers buy often
	for i := range taste {
		if taste[i] = 1; w.tastes {
			taste[i] = rng.ExpFloat64()
		}
	}
	shares := w.shares
	assigned, _ := abtest.Allocate(nil, bucketsOf(shares))
	r := abtest.NewResults(k)
	pairs := float64(abtest.PairCount(k))
	truth := make([]float64, k)
	sums := make([]struct{ n, x, xx float64 }, k)
	o := outcome{held: true, withoutBuckets: true, naive: true}
	for t := 0; t < w.decisions; {
		if w.later != nil && t == w.decisions/2 {
			shares = w.later
			next, _ := abtest.Allocate(assigned, bucketsOf(shares))
			r.Move(assigned, next)
			assigned = next
		}
		b := r.Begin()
		for range look {
			shopper, own := t, 1.0
			if w.shoppers > 0 {
				shopper = rng.IntN(w.shoppers)
				own = taste[shopper]
			}
			bucket := abtest.Bucket(abtest.Unit("home", fmt.Sprint(seed, shopper)), 1)
			v := int(assigned[bucket])
			x := 0.0
			if rng.Float64() < w.rate(t, v)*own {
				x = w.price(rng)
			}
			b.Add(v, x, w.bound, shares)
			r.Cluster(bucket, v, x, b.Centre, shares)
			for u := range truth {
				truth[u] += own * (w.rate(t, u) - w.rate(t, 0)) * w.meanPrice()
			}
			s := &sums[v]
			s.n, s.x, s.xx = s.n+1, s.x+x, s.xx+x*x
			t++
		}
		r.Take(b)
		bare := abtest.Results{Variants: slices.Clone(r.Variants), Pairs: r.Pairs} // without sums by bucket
		for v := range bare.Variants {
			bare.Variants[v].Part = abtest.Squares{}
		}
		for v := range k {
			for u := range v {
				at := (truth[v] - truth[u]) / float64(t)
				if low, _, high, ok := r.Difference(v, u, alpha/pairs); ok {
					o.held = o.held && low <= at && at <= high
					if v == 1 {
						o.width = (high - low) / 2
					}
					low, _, high, _ = bare.Difference(v, u, alpha/pairs)
					o.withoutBuckets = o.withoutBuckets && low <= at && at <= high
				}
				if a, c := &sums[v], &sums[u]; a.x > 0 && c.x > 0 && t >= 500 {
					se := math.Sqrt((a.xx/a.n-a.x/a.n*a.x/a.n)/a.n + (c.xx/c.n-c.x/c.n*c.x/c.n)/c.n)
					z := math.Sqrt2 * math.Erfinv(1-alpha/pairs)
					o.naive = o.naive && math.Abs(a.x/a.n-c.x/c.n-at) <= z*se
					if v == 1 {
						o.naiveWidth = z * se
					}
				}
			}
		}
	}
	return o
}

// meanPrice returns the mean of price: 1, or ∫ 100^u du.
func (w *world) meanPrice() float64 {
	if w.bound == 1 {
		return 1
	}
	return 99 / math.Log(100)
}

func bucketsOf(shares []float64) (counts []int) {
	for _, s := range shares {
		n, _ := abtest.Count(s)
		counts = append(counts, n)
	}
	return counts
}

// In at least 95% of experiments, the true differences of all pairs lie in their intervals at all looks
// simultaneously, even if shoppers come back, revenues drift and shares change.
func TestCoverage(t *testing.T) {
	if *table {
		fmt.Println("| experiment | held at all looks | without sums by buckets | an interval for one look | " +
			"half-width at the end | of one look |\n|---|---|---|---|---|---|")
	}
	for i := range worlds {
		if !*table && !long.Wanted() && !slices.Contains([]int{4, 6, 8}, i) {
			continue
		}
		w := &worlds[i]
		t.Run(w.name, func(t *testing.T) { w.cover(t) })
	}
}

// cover plays a world repeatedly, and counts how often the intervals held.
func (w *world) cover(t *testing.T) {
	var held, without, naive, width, naiveWidth float64
	for seed := range uint64(*runs) {
		o := w.play(seed)
		for sum, is := range map[*float64]bool{&held: o.held, &without: o.withoutBuckets, &naive: o.naive} {
			if is {
				*sum++
			}
		}
		width += o.width
		naiveWidth += o.naiveWidth
	}
	n := float64(*runs)
	if *table {
		fmt.Printf("| %s | %.1f%% | %.1f%% | %.1f%% | %.4f | %.4f |\n",
			w.name, 100*held/n, 100*without/n, 100*naive/n, width/n, naiveWidth/n)
	}
	if least := 0.95*n - 3*math.Sqrt(0.95*0.05*n); held < least {
		t.Errorf("the intervals held in %.0f of %.0f runs, want at least %.0f", held, n, least)
	}
}
