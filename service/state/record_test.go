package state

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fields"
	_ "vitrine/internal/rapidseed"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/offer"
)

// The items taken are those of the outcome and those bought later, counted one by one.
func TestTook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const shown = 6
		r := &Record{shown: shown, Status: chosen, extras: new(recordExtras)}
		taken, withdrawn := map[int16]bool{}, map[int16]bool{}
		for place := int16(1); place <= shown; place++ {
			if rapid.Bool().Draw(t, "taken") {
				taken[place] = true
				r.extras.basket = append(r.extras.basket, eventlog.Take{Place: int32(place), Quantity: 1})
			}
		}
		if len(r.extras.basket) == 1 && rapid.Bool().Draw(t, "alone") {
			r.choice, r.extras.basket = int16(r.extras.basket[0].Place), nil
		}
		for range rapid.IntRange(0, 12).Draw(t, "corrections") {
			place := rapid.Int16Range(1, shown).Draw(t, "place")
			was, others := r.took(place)
			want := 0
			for other := range taken {
				if other != place && !withdrawn[other] {
					want++
				}
			}
			if was != taken[place] || others != want {
				t.Fatalf("item %d of %+v: taken %v beside %d others, want %v and %d", place, r, was, others,
					taken[place], want)
			}
			if withdrawn[place] {
				continue
			}
			c := correction{place: place, adds: !was, withdraws: was && rapid.Bool().Draw(t, "withdraws")}
			r.extras.corrections = append(r.extras.corrections, c)
			taken[place], withdrawn[place] = true, c.withdraws
		}
	})
}

// A record with a mark beyond those of all variants, or without a mode, is refused.
func TestMarks(t *testing.T) {
	for r, valid := range map[struct{ mark, mode uint8 }]bool{{abtest.MaxMark, offer.ByPolicy}: true, {0, offer.ByImport}: true,
		{abtest.MaxMark + 1, offer.ByPolicy}: false, {0, 0}: false, {0, offer.ByImport + 1}: false} {
		out := fields.Writer(nil)
		(&Record{id: "d", Entry: 1, shown: 1, mode: r.mode, marks: [numComparisons]abtest.Mark{r.mark}}).fields(&out)
		in := fields.Reader(out.Rest())
		new(Record).fields(&in)
		expect.Equal(t, in.Err() == nil, valid, r, in.Err())
	}
}

// Snapshots of decisions with large baskets are read in time proportional to their bytes, however many corrections
// there are.
func BenchmarkReadingCorrections(b *testing.B) {
	for _, n := range []int{1, maxCorrections} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := &Record{id: "d", Entry: 1, shown: 1000, choice: 1, Status: chosen, extras: new(recordExtras)}
			for place := range int32(r.shown) {
				r.extras.basket = append(r.extras.basket, eventlog.Take{Place: place + 1, Quantity: 1})
			}
			for k := range int16(n) {
				r.extras.corrections = append(r.extras.corrections, correction{id: fmt.Sprint(k), place: k + 1,
					withdraws: true})
			}
			out := fields.Writer(nil)
			r.fields(&out)
			data := out.Rest()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				again, in := new(Record), fields.Reader(slices.Clone(data))
				if again.fields(&in); in.Err() != nil {
					b.Fatal(in.Err())
				}
			}
		})
	}
}
