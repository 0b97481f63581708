package assortment_test

import (
	"fmt"

	"vitrine/assortment"
)

// Item 2 sells best, but would take customers away from the items that earn more.
func ExampleMaximize() {
	utility := []float64{0, 0.5, 2, 1}
	revenue := []float64{9, 8, 2, 7}
	s, earns := assortment.Maximize(nil, assortment.AtMost(3), utility, revenue)
	fmt.Printf("show %v, which earns %.2f a customer\n", s, earns)
	// Output: show [0 1 3], which earns 6.47 a customer
}

// Show at most one of the items 1 and 3, and always item 2.
func ExampleNewQuota() {
	family, err := assortment.NewQuota(assortment.Rules{
		Items:   4,
		Max:     3,
		Groups:  []assortment.Group{{Name: "shoes", Items: []int{1, 3}, Max: 1}},
		Include: []int{2},
	})
	if err != nil {
		panic(err)
	}
	s, _ := assortment.Maximize(nil, family, []float64{0, 0.5, 2, 1}, []float64{9, 8, 2, 7})
	fmt.Println(s)
	// Output: [0 2 3]
}
