package env_test

import (
	"fmt"
	"math/rand/v2"

	"vitrine"
	"vitrine/env"
	"vitrine/utility"
)

// A hundred shoppers see the first three of ten items.
func Example() {
	rng := rand.New(rand.NewPCG(1, 1))
	world := &env.World{
		Items:    10,
		Contexts: env.Gaussian{},
		Truth:    env.NewFamily(utility.NewLinear(4, true), -1, 1, rng),
		Revenues: env.One{},
	}
	shoppers := env.Shoppers{World: world, Seed: 7}
	var shopper env.Shopper
	sales := 0
	for t := range 100 {
		if err := shoppers.Meet(&shopper, t+1); err != nil {
			panic(err)
		}
		if shopper.Choose(vitrine.Assortment{0, 1, 2}) != vitrine.Outside {
			sales++
		}
	}
	fmt.Println(sales, "of 100 shoppers take an item")
	// Output: 91 of 100 shoppers take an item
}
