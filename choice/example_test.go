package choice_test

import (
	"context"
	"fmt"

	"vitrine/choice"
)

// Eight trips by bus or car, and the value of a minute of travel. choice.Load reads such data from a file.
func Example() {
	spec, err := choice.ReadSpec("trips.toml", []byte(`
[data]
form = "long"
choice = ["trip"]
chosen = "chosen"
[utility]
generic = ["cost", "minutes"]
`))
	if err != nil {
		panic(err)
	}
	build := choice.NewBuilder([]string{"bus", "car"}, []string{"cost", "minutes"}, false)
	for _, trip := range []struct {
		chosen   int
		bus, car [2]float64 // cost and minutes
	}{
		{0, [2]float64{2, 40}, [2]float64{6, 30}}, {1, [2]float64{2, 55}, [2]float64{5, 20}},
		{0, [2]float64{1, 30}, [2]float64{7, 25}}, {1, [2]float64{3, 60}, [2]float64{6, 25}},
		{1, [2]float64{2, 45}, [2]float64{4, 30}}, {0, [2]float64{2, 50}, [2]float64{9, 20}},
		{0, [2]float64{2, 35}, [2]float64{4, 30}}, {1, [2]float64{1, 40}, [2]float64{5, 20}},
	} {
		x := append(trip.bus[:], trip.car[:]...)
		if err := build.Add(choice.Case{Alternatives: []int{0, 1}, X: x, Chosen: trip.chosen}); err != nil {
			panic(err)
		}
	}
	data, err := build.Data()
	if err != nil {
		panic(err)
	}
	result, err := choice.Fit(context.Background(), spec, data, choice.Options{})
	if err != nil {
		panic(err)
	}
	worth, err := result.WillingnessToPay("minutes", "cost")
	if err != nil {
		panic(err)
	}
	fmt.Printf("a minute less is worth %.2f\n", -worth.Value)
	// Output: a minute less is worth 0.22
}
