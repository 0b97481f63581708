package experiment

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"vitrine"
	"vitrine/internal/expect"
)

func TestDecodeOffer(t *testing.T) {
	for _, c := range []struct {
		line    string
		ordered bool
		want    vitrine.Offer
	}{
		{`{"assortment": [3, 17], "propensity": 0.25}`, false,
			vitrine.Offer{Assortment: vitrine.Assortment{3, 17}, Propensity: 0.25}},
		{`{"assortment": [17, 3]}`, false, vitrine.Offer{Assortment: vitrine.Assortment{3, 17}}},
		{`{"assortment": [17, 3]}`, true, vitrine.Offer{Assortment: vitrine.Assortment{3, 17}, Order: []int{17, 3}}},
		{`{"assortment": []}`, false, vitrine.Offer{}},
	} {
		have, err := decodeOffer([]byte(c.line), c.ordered)
		if err != nil || !cmp.Equal(have, c.want) {
			t.Errorf("%s is %+v, %v, want %+v", c.line, have, err, c.want)
		}
	}
	for line, want := range map[string]string{
		``:                                       `want {"assortment": [3, 17]}`,
		`[3]`:                                    `want {"assortment": [3, 17]}, with whole numbers, and with or without a "propensity": the line does not fit`,
		`{"assortment": [1, 3.0]}`:               `want {"assortment": [3, 17]}, with whole numbers, and with or without a "propensity": "/assortment/1" does not fit`,
		`{"assortment": [1], "assortment": [2]}`: `want {"assortment": [3, 17]}`,
		`{"assortment": [1], "propensities": 1}`: `want {"assortment": [3, 17]}, with whole numbers, and with or without a "propensity": "/propensities" does not fit`,
		"{\"\\u001b[31m\": 1}":                   `want {"assortment": [3, 17]}, with whole numbers, and with or without a "propensity": "/\x1b[31m" does`,
		`{"assortment": [1]} {}`:                 `want {"assortment": [3, 17]}`,
		`{"assortment": null}`:                   `"assortment" is missing`,
		`{}`:                                     `"assortment" is missing`,
		`{"assortment": [1], "propensity": -1}`:  `propensity = -1: must be from 0 to 1`,
		`{"assortment": [1], "propensity": 1.5}`: `propensity = 1.5: must be from 0 to 1`,
		`{"assortment": [1, 2, 1]}`:              `item 1 is in the assortment twice`,
	} {
		expect.Prefix(decodeOffer([]byte(line), false))(t, want, line)
	}
}

// A decoded answer offers distinct items in order, from among the items that the program listed.
func FuzzDecodeOffer(f *testing.F) {
	for _, line := range []string{`{"assortment": [3, 17], "propensity": 0.25}`, `{"assortment": [17, 3]}`,
		`{"assortment": []}`, `{"propensity": 1e-400, "assortment": [0]}`, `{"assortment": [-1, 9007199254740993]}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		o, err := decodeOffer(line, true)
		if err != nil {
			return
		}
		if !(o.Propensity >= 0 && o.Propensity <= 1) {
			t.Errorf("propensity %v", o.Propensity)
		}
		if !slices.Equal(slices.Sorted(slices.Values(o.Order)), o.Assortment) {
			t.Errorf("items %v in the order %v", o.Assortment, o.Order)
		}
		if n := len(o.Assortment); n > 0 && o.Assortment[0] >= 0 && o.Assortment[n-1] < 1<<30 {
			expect.Error(t, o.Check(o.Assortment[n-1]+1), nil)
		}
	})
}
