package figure

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"vitrine/internal/expect"
)

func texts(ticks []tick) []string {
	var all []string
	for _, t := range ticks {
		all = append(all, t.text)
	}
	return all
}

// spaced returns n numbers starting at low, with steps or factors between them.
func spaced(n int, low, step float64, log bool) []string {
	var all []string
	for i := range n {
		v := low + float64(i)*step
		if log {
			v = low * math.Pow(step, float64(i))
		}
		all = append(all, fmt.Sprint(v))
	}
	return all
}

func TestScaleTicks(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []string
		want   []string
	}{
		{"few numbers, by size", []string{"10", "0.3", "1", "0.3"}, []string{"0.3", "1", "10"}},
		{"words, as they come", []string{"relu", "10", "sigmoid"}, []string{"relu", "10", "sigmoid"}},
		{"one value", []string{"3"}, []string{"3"}},
		{"a line", spaced(21, 10, 2, false), []string{"10", "20", "30", "40", "50"}},
		{"below zero", spaced(13, -3, 0.5, false), []string{"−2", "0", "2"}},
		{"decades", spaced(13, 0.01, math.Sqrt(10), true), []string{"0.01", "0.1", "1", "10", "100", "1000", "10000"}},
		{"two decades", spaced(21, 0.1, math.Pow(10, 0.1), true), []string{"0.1", "0.3", "1", "3", "10"}},
		{"many words", append(spaced(24, 1, 1, false), "x"),
			[]string{"1", "4", "7", "10", "13", "16", "19", "22", "x"}},
	} {
		expect.Equal(t, texts(newScale("k", c.values).ticks()), c.want, c.name)
	}
}

// Every value has a place in [0, 1], and numbers are in order.
func TestScalePlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Float64Range(-1e100, 1e100), 1, 30).Draw(t, "numbers")
		var values []string
		for _, v := range numbers {
			values = append(values, fmt.Sprint(v))
		}
		s := newScale("k", values)
		for i, a := range values {
			at, ok := s.at(a)
			if !ok || !(at >= 0 && at <= 1) {
				t.Fatalf("%s stands at %v, %v", a, at, ok)
			}
			for j, b := range values {
				if other, _ := s.at(b); numbers[i] < numbers[j] && at > other {
					t.Fatalf("%s at %v stands above %s at %v", a, at, b, other)
				}
			}
		}
		if n := len(s.ticks()); n < 1 || n > maxSteps {
			t.Fatalf("%d ticks", n)
		}
	})
	if _, ok := newScale("k", []string{"1", "2"}).at("1/2"); ok {
		t.Error("a value that was not tried has a place")
	}
}
