package vitrine_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
)

// bestsellers learns how often shoppers take each item they are shown. It ignores features.
type bestsellers struct{ shown, taken []float64 }

// Observe counts the items shown and the item taken.
func (l *bestsellers) Observe(r vitrine.Round) error {
	if err := r.Check(1); err != nil {
		return err
	}
	for k, i := range r.Offer.Assortment {
		l.shown[i]++
		if r.Choice == vitrine.Choice(k+1) {
			l.taken[i]++
		}
	}
	return nil
}

// Policy freezes the current shares.
func (l *bestsellers) Policy() vitrine.Policy {
	share := make(favourite, len(l.shown))
	for i := range share {
		share[i] = (l.taken[i] + 1) / (l.shown[i] + 1)
	}
	return share
}

// favourite offers only the item with the largest share.
type favourite []float64

// Offer implements vitrine.Policy.
func (share favourite) Offer(*vitrine.Context, *rand.Rand) vitrine.Offer {
	best := 0
	for i, v := range share {
		if v > share[best] {
			best = i
		}
	}
	return vitrine.Offer{Assortment: vitrine.Assortment{best}, Propensity: 1}
}

// A learner offers, a customer chooses, and the learner observes. The most popular item is worth 2, so 88 in 100
// customers take it.
func Example() {
	x := &vitrine.Context{Features: mat.NewDense(3, 1, nil)}
	utilities := []float64{-1, 2, 0}
	rng := rand.New(rand.NewPCG(1, 1))
	learner := &bestsellers{shown: make([]float64, 3), taken: make([]float64, 3)}
	for range 500 {
		offer := learner.Policy().Offer(x, rng)
		shock := make([]float64, 4)
		vitrine.DrawShocks(shock, rng)
		choice := vitrine.Choose(offer.Assortment, utilities, shock)
		if err := learner.Observe(vitrine.Round{Context: x, Offer: offer, Choice: choice}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(learner.Policy().Offer(x, rng).Assortment)
	// Output: [1]
}

// One item is as good as walking away, the other twice as good.
func ExampleProbabilities() {
	u := []float64{0, math.Log(2)}
	p := make([]float64, 3)
	vitrine.Probabilities(p, u)
	fmt.Printf("%.2f\n", p)
	// Output: [0.25 0.25 0.50]
}

// The surplus of an assortment, in units of utility. An empty assortment is worth 0.
func ExampleLogSumExp1() {
	fmt.Println(vitrine.LogSumExp1(nil))
	fmt.Printf("%.4f\n", vitrine.LogSumExp1([]float64{0}))
	fmt.Println(vitrine.LogSumExp1([]float64{700}))
	// Output:
	// 0
	// 0.6931
	// 700
}

// Showing more can earn less: the cheap item takes customers away from the expensive one.
func ExampleExpectedRevenue() {
	u, r := []float64{0, math.Log(2)}, []float64{3, 1}
	fmt.Printf("%.2f\n", vitrine.ExpectedRevenue(vitrine.Assortment{0}, u, r))
	fmt.Printf("%.2f\n", vitrine.ExpectedRevenue(vitrine.Assortment{0, 1}, u, r))
	// Output:
	// 1.50
	// 1.25
}

// A customer who is fond of item 2 takes the second of the two items shown.
func ExampleChoose() {
	s := vitrine.Assortment{0, 2}
	u := []float64{0.5, 0.1, 0.2}
	shock := []float64{0.3, 0, 0, 1.5} // the outside option's, then one per item
	choice := vitrine.Choose(s, u, shock)
	fmt.Println(choice, s[choice-1])
	// Output: 2 2
}

func ExampleRound_Check() {
	x := &vitrine.Context{Features: mat.NewDense(4, 2, nil)}
	r := vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: vitrine.Assortment{1, 3}}, Choice: 3}
	fmt.Println(r.Check(2))
	// Output: choice 3 is not a position in an assortment of 2 items (0 is the outside option)
}
