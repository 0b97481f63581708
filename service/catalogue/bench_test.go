package catalogue

import (
	"context"
	"fmt"
	"testing"

	"vitrine/service/api"
	"vitrine/service/feature"
)

// BenchmarkLearn has the schema of a catalogue of 100,000 items learn a value that items may have, or users; and makes
// the catalogue again, as other features do.
func BenchmarkLearn(b *testing.B) {
	s := schemaOf(b, `[{"name":"brand","kind":"category","names":12,"buckets":16},{"name":"x","kind":"number"},{"name":"place","kind":"category","from":"user","names":2,"buckets":4}]`)
	c := New(s)
	for from := 0; from < 100_000; from += 1000 {
		var put []string
		for i := range 1000 {
			record, err := Encode(&api.CatalogueItem{ID: fmt.Sprint(from + i), Features: api.Values{api.Number("x", float64(i)), api.Text("brand", fmt.Sprint(i%100))}}, s, "")
			if err != nil {
				b.Fatal(err)
			}
			put = append(put, record)
		}
		change, err := c.NewChange(put, nil)
		if err != nil {
			b.Fatal(err)
		}
		c.Apply(1, change)
	}
	for _, name := range []string{"brand", "place"} {
		seen := []feature.Seen{{Feature: name, Values: []string{"7"}}}
		learned, err := s.Learn(seen[0])
		if err != nil {
			b.Fatal(err)
		}
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
