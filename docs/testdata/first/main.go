// A shelf shows 3 of 20 wines. Shoppers like a sweetness near 1, which no linear utility can say.
package main

import (
	"fmt"
	"log"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/assortment"
	"vitrine/bandit"
)

func main() {
	rng := rand.New(rand.NewPCG(1, 2))
	problem := bandit.Problem{NumFeatures: 1, MaxShown: 3, Rounds: 1000, Constraint: assortment.AtMost(3)}
	learner, err := bandit.NewAuto(problem, bandit.AutoOptions{}, rng)
	if err != nil {
		log.Fatal(err)
	}
	sold := make([]int, 10) // to each hundred shoppers
	for t := range problem.Rounds {
		wines := &vitrine.Context{Features: mat.NewDense(20, 1, nil)}
		utilities, shock := make([]float64, 20), make([]float64, 21)
		vitrine.DrawShocks(shock, rng) // the taste of one shopper
		for i := range utilities {
			sweetness := rng.NormFloat64()
			wines.Features.Set(i, 0, sweetness)
			utilities[i] = 1 - 4*(sweetness-1)*(sweetness-1)
		}

		offer := learner.Policy().Offer(wines, rng)                  // three wines
		choice := vitrine.Choose(offer.Assortment, utilities, shock) // one of them, or none
		if err := learner.Observe(vitrine.Round{Context: wines, Offer: offer, Choice: choice}); err != nil {
			log.Fatal(err)
		}

		if choice != vitrine.Outside {
			sold[t/100]++
		}
	}
	fmt.Println("bought, of each hundred shoppers:", sold)
}
