package bandit

import (
	"math"
	"testing"

	"vitrine"
)

// Until three rounds are learned, a full page is drawn from the items with revenue, each as likely as another, in random
// order if places matter. Neither the prior nor a high price prefers any.
func TestFirstPages(t *testing.T) {
	const draws = 4000
	for _, name := range []string{"bma-mnl", "wide", "places"} {
		t.Run(name, func(t *testing.T) {
			l := learners()[name]
			if name == "places" {
				o := DefaultBMAOptions()
				o.PositionEffects = true
				l = func(p Problem) vitrine.Learner {
					return must(NewBMA(p, DefaultExperts(p.NumFeatures), o, newRand()))
				}
			}
			x := paperContext(0)
			n := x.NumItems()
			x.Revenue = []float64{1, 0.5, 200, 0.7, 1.1, 0, 3, 0.2}
			for _, rounds := range []int{0, 2} {
				pi := taught(t, l(paperProblem()), rounds)
				shown, first := make([]int, n), make([]int, n)
				rng := newRand()
				for range draws {
					offer := pi.Offer(x, rng)
					if len(offer.Assortment) != paperSize {
						t.Fatalf("after %d rounds a page shows %v", rounds, offer.Assortment)
					}
					for _, i := range offer.Assortment {
						shown[i]++
					}
					if name == "places" {
						first[offer.Order[0]]++
					}
				}
				near := func(what string, i, got int, p float64) {
					if want := draws * p; math.Abs(float64(got)-want) > 5*math.Sqrt(want*(1-p)) {
						t.Errorf("after %d rounds item %d is %s %d times of %d, want about %.0f", rounds, i, what, got,
							draws, want)
					}
				}
				for i := range n {
					if x.Revenue[i] == 0 {
						near("shown", i, shown[i], 0)
						continue
					}
					near("shown", i, shown[i], float64(paperSize)/float64(n-1))
					if name == "places" {
						near("first", i, first[i], 1/float64(n-1))
					}
				}
			}
			if by := why(taught(t, l(paperProblem()), 3)); by != BySlot {
				t.Errorf("after 3 rounds pages are chosen by %s", by)
			}
		})
	}
}
