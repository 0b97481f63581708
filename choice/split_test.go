package choice

import (
	"math"
	"testing"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
)

// A split contains every choice once, keeps panels whole, and is reproducible with the same seed.
func TestSplit(t *testing.T) {
	_, d := loadTrips(t, trips)
	rest, part, err := d.Split(0.25, 7)
	fatal.If(t, err)
	if rest.Choices+part.Choices != 240 || math.Abs(float64(part.Choices)-60) > 4*math.Sqrt(60*4*.75) {
		t.Errorf("%d and %d choices", rest.Choices, part.Choices)
	}
	in := map[int32]bool{}
	for _, b := range part.blocks {
		for _, p := range b.panel {
			in[p] = true
		}
	}
	for _, b := range rest.blocks {
		for _, p := range b.panel {
			if in[p] {
				t.Fatalf("panel %d is in both parts", p)
			}
		}
	}
	if part.Choices != 4*len(in) {
		t.Errorf("%d choices of %d panels of 4", part.Choices, len(in))
	}
	_, again, err := d.Split(0.25, 7)
	if err != nil || describe(again) != describe(part) {
		t.Errorf("the same seed gives another part, %v", err)
	}
	_, other, err := d.Split(0.25, 8)
	if err != nil || describe(other) == describe(part) {
		t.Errorf("another seed gives the same part, %v", err)
	}
	for _, share := range []float64{0, 1, math.NaN(), 1e-9} {
		expect.Refused(d.Split(share, 1))(t, "a share of", share)
	}
}
