package demo

import (
	"fmt"
	"math/rand/v2"

	"vitrine/internal/stream"
)

// product is a drawn product of the shop. Its features are all that a learner knows of it.
type product struct {
	ID    string  `json:"id"`
	Title string  `json:"title"`
	Round float64 `json:"-"`     // from −1, angular, to 1, round
	Warm  float64 `json:"-"`     // from −1, blue, to 1, red
	Busy  float64 `json:"-"`     // from −1, plain, to 1, full of pattern
	Price float64 `json:"price"` // in euros, all revenue
}

// numProducts is the size of the catalogue.
const numProducts = 30

// The prices of products are uniform in this interval.
const minPrice, maxPrice = 10, 40

// catalogue draws the products of a seed. Features are rounded, as in a shop.
func catalogue(seed uint64) []product {
	rng := stream.New(seed, 0, stream.World)
	side := func(rng *rand.Rand) float64 { return float64(rng.IntN(21)-10) / 10 }
	products := make([]product, numProducts)
	for i := range products {
		p := product{ID: fmt.Sprintf("vase-%02d", i+1), Round: side(rng), Warm: side(rng), Busy: side(rng),
			Price: minPrice + float64(rng.IntN(maxPrice-minPrice+1))}
		p.Title = p.describe()
		products[i] = p
	}
	return products
}

// describe names a product by its look.
func (p *product) describe() string {
	word := func(v float64, low, middle, high string) string {
		switch {
		case v < -0.33:
			return low
		case v > 0.33:
			return high
		}
		return middle
	}
	return fmt.Sprintf("%s %s vase, %s", word(p.Round, "angular", "oval", "round"),
		word(p.Warm, "blue", "violet", "red"), word(p.Busy, "plain", "striped", "dotted"))
}
