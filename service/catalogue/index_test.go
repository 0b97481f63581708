package catalogue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// An index agrees with a map after any additions and removals, even if many ids share a home.
func TestIndex(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ids := map[int32]string{}
		x := newIndex(func(slot int32) string { return ids[slot] })
		want := map[string]int32{}
		for step := range int32(2000) {
			id := fmt.Sprint(rng.IntN(300))
			if slot, ok := want[id]; !ok {
				ids[step], want[id] = id, step
				x.add(id, step)
			} else if rng.IntN(3) > 0 {
				x.remove(id)
				delete(want, id)
				delete(ids, slot)
			}
			if step%50 > 0 {
				continue
			}
			have := map[string]int32{}
			for i := range 300 {
				if slot, ok := x.find(fmt.Sprint(i)); ok {
					have[fmt.Sprint(i)] = slot
				}
			}
			if !maps.Equal(have, want) || x.n != len(want) {
				t.Fatalf("seed %d, step %d: %v of %d, want %v", seed, step, have, x.n, want)
			}
		}
	}
}
