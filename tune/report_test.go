package tune

import (
	"math"
	"testing"

	"vitrine/internal/expect"
)

// Values from tables of Student's t.
func TestErrorsAtLevel(t *testing.T) {
	for n, want := range map[int]float64{2: 12.706, 10: 2.262, 100: 1.984} {
		if got := errorsAtLevel(n); math.Abs(got-want) > 5e-4 {
			t.Errorf("%d seeds: %v, want %v", n, got, want)
		}
	}
	if got := errorsAtLevel(1); !math.IsInf(got, 1) {
		t.Errorf("one seed: %v, want no verdict", got)
	}
}

func TestAtEnd(t *testing.T) {
	rows := []Row{
		{Outcome: Winner, Values: []string{"3", "1", "10", "0", "relu", "1"}},
		{Outcome: Finished, Values: []string{"1", "2", "1", "1", "2", "1"}},
		{Outcome: Stopped, Values: []string{"0.3", "0", "9", "2", "3", "2"}},
		{Outcome: Configured, Values: []string{"1/3", "1", "100", "1", "1", "1"}},
	}
	expect.Equal(t, atEnd(Table{Parameters: []string{"largest", "middle", "of-numbers-not-words", "zero", "words", "two"},
		Rows: rows}), []string{"largest", "of-numbers-not-words"})
}
