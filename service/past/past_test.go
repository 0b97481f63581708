package past

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/service/feature"
)

// A shopper's items are those of a plain count of all notes, without the items that leave one by one while there are too
// many: first those that were not bought, the oldest first.
func TestItemsOfAShopper(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m, want := New(time.Hour, 1<<20), map[string]visit{}
	for now := range int64(400) {
		var ids []string
		seen, bought := 1, 0
		for _, i := range rng.Perm(900)[:1+rng.IntN(30)*rng.IntN(30)] {
			ids = append(ids, fmt.Sprint(i))
		}
		if now%3 > 0 {
			seen, bought = 0, 1-2*rng.IntN(2)
			ids = ids[:min(len(ids), 4)]
		}
		m.Note("anna", now/5, ids, seen, bought)
		for _, id := range ids {
			v, ok := want[id]
			if !ok && bought < 0 {
				continue
			}
			v.ID, v.last, v.Seen, v.Bought = id, now/5, v.Seen+uint32(seen), uint32(max(0, int(v.Bought)+bought))
			want[id] = v
		}
		for len(want) > maxVisits {
			var first *visit
			for _, v := range want {
				if first == nil || cmp.Or(cmp.Compare(min(v.Bought, 1), min(first.Bought, 1)),
					cmp.Compare(v.last, first.last), cmp.Compare(v.ID, first.ID)) < 0 {
					first = &v
				}
			}
			delete(want, first.ID)
		}
		var list []feature.Past
		for _, v := range want {
			if v.Seen+v.Bought > 0 {
				list = append(list, v.Past)
			}
		}
		slices.SortFunc(list, func(a, b feature.Past) int { return cmp.Compare(a.ID, b.ID) })
		if have := m.Of("anna", now/5); !slices.Equal(have, list) {
			t.Fatalf("after note %d: %d items %v, want %d %v", now, len(have), have, len(list), list)
		}
	}
	expect.Equal(t, len(want), maxVisits, "the shopper has n items")
}

// The writer, for which all callers wait, notes pages of a shopper who has seen many items.
func BenchmarkNote(b *testing.B) {
	for _, size := range []int{10, 1000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m := New(time.Hour, 1<<24)
			now := int64(0)
			page := make([]string, size)
			for b.Loop() {
				now++
				for k := range page {
					page[k] = fmt.Sprint("item ", (now*int64(size)+int64(k))%3000)
				}
				m.Note("anna", now, page, 1, 0)
			}
		})
	}
}
