package figure

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// maxSteps is the maximum number of values of a parameter with a step for each.
const maxSteps = 12

// scale places a parameter's values in [0, 1]. Words and small numbers of values are placed on even steps. Many numbers
// are placed on a line, which is logarithmic if they span a factor of 20.
type scale struct {
	key   string
	steps []string // in order
	line  bool
	span  span // for a line
}

// newScale makes the scale for the values. Words keep their order.
func newScale(key string, values []string) scale {
	s := scale{key: key}
	numbers := map[string]float64{}
	for _, v := range values {
		if !slices.Contains(s.steps, v) {
			s.steps = append(s.steps, v)
		}
		if x, ok := parseNumber(v); ok {
			numbers[v] = x
		}
	}
	if len(numbers) < len(s.steps) {
		return s
	}
	slices.SortStableFunc(s.steps, func(a, b string) int { return cmp.Compare(numbers[a], numbers[b]) })
	low, high := numbers[s.steps[0]], numbers[s.steps[len(s.steps)-1]]
	if s.line = len(s.steps) > maxSteps && low < high; s.line {
		s.span = spanOf(low > 0 && high/low >= 20, []float64{low, high}).widened(0.04)
	}
	return s
}

func parseNumber(word string) (float64, bool) {
	x, err := strconv.ParseFloat(word, 64)
	return x, err == nil && math.Abs(x) <= maxValue
}

// at returns a value's place; ok is false if it is not on the scale.
func (s scale) at(value string) (place float64, ok bool) {
	if !s.line {
		i := slices.Index(s.steps, value)
		return (float64(i) + 0.5) / float64(len(s.steps)), i >= 0
	}
	x, ok := parseNumber(value)
	place = s.span.at(x)
	return place, ok && place >= 0 && place <= 1
}

// few reports whether every value gets a step with room for a cell.
func (s scale) few() bool { return !s.line && len(s.steps) <= maxSteps }

// ticks returns the scale's ticks on an axis from 0 to 1.
func (s scale) ticks() (all []tick) {
	if s.line {
		for _, t := range s.span.ticks() {
			all = append(all, tick{s.span.at(t.value), t.text})
		}
		return all
	}
	every := (len(s.steps) + maxSteps - 1) / maxSteps
	for i := 0; i < len(s.steps); i += every {
		place, _ := s.at(s.steps[i])
		all = append(all, tick{place, s.steps[i]})
	}
	return all
}
