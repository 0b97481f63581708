package catalogue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
	"vitrine/service/feature"
)

// BenchmarkLearn lets the schema of a catalogue of 100,000 items learn a value, which items may or may not carry. It
// also rebuilds the catalogue, as a change of features does.
func BenchmarkLearn(b *testing.B) {
	s := schemaOf(b, `[{"name":"brand","kind":"category","own_columns":12,"columns":16},{"name":"x","kind":"number"},{"name":"place","kind":"category","from":"shopper","own_columns":2,"columns":4}]`)
	c := New(s)
	for from := 0; from < 100_000; from += 1000 {
		var put []string
		for i := range 1000 {
			record, err := Encode(&api.CatalogueItem{ID: fmt.Sprint(from + i),
				Features: api.Values{api.Number("x", float64(i)), api.Text("brand", fmt.Sprint(i%100))}}, s, "")
			fatal.If(b, err)
			put = append(put, record)
		}
		change, err := c.NewChange(put, nil)
		fatal.If(b, err)
		c.Apply(1, change)
	}
	for _, name := range []string{"brand", "place"} {
		seen := []feature.Seen{{Feature: name, Values: []string{"7"}}}
		learned, err := s.Learn(seen[0])
		fatal.If(b, err)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c.Learn(learned, seen)
			}
		})
	}
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := c.WithSchema(context.Background(), s); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFilter evaluates a filter on 100,000 items.
func BenchmarkFilter(b *testing.B) {
	s := schemaOf(b, shop)
	c := New(s)
	rng := rand.New(rand.NewPCG(1, 2))
	var put []string
	for i := range 100_000 {
		put = append(put, record(b, draw(rng, fmt.Sprint("sku", i)), s))
	}
	apply(b, c, 1, put, nil)
	for name, text := range map[string]string{
		"plain": `price < 4 and season == "summer"`, "300 numbers": strings.Repeat("price < 0 or ", 299) + "price > 20",
		"300 values": "price in [" + strings.Repeat("0, ", 299) + "20]",
	} {
		b.Run(name, func(b *testing.B) {
			p, err := c.compile(text)
			fatal.If(b, err)
			for b.Loop() {
				for slot := range int32(c.Len()) {
					p.fit(c.Len())
					p.look(c, slot)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.Len()), "ns/item")
		})
	}
}
