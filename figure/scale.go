package figure

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// maxSteps is the maximal number of values of a parameter with one step for each.
const maxSteps = 12

// scale places the values of a parameter in [0, 1]: few values, or words, on even steps, and many numbers on
// a line, which is logarithmic if they span a factor of 20.
type scale struct {
	key       string
	steps     []string // in order
	line      bool
	low, high float64 // of a line, in the logarithm where log
	log       bool
}

// newScale makes the scale of the values. Words keep their order.
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
	s.low, s.high = numbers[s.steps[0]], numbers[s.steps[len(s.steps)-1]]
	if len(s.steps) <= maxSteps || s.low == s.high {
		return s
	}
	s.line = true
	if s.low > 0 && s.high/s.low >= 20 {
		s.log, s.low, s.high = true, math.Log10(s.low), math.Log10(s.high)
	}
	return s
}

func parseNumber(word string) (float64, bool) {
	x, err := strconv.ParseFloat(word, 64)
	return x, err == nil && math.Abs(x) <= maxValue
}

// at returns the place of a value; ok is false if it has none.
func (s scale) at(value string) (place float64, ok bool) {
	if !s.line {
		i := slices.Index(s.steps, value)
		return (float64(i) + 0.5) / float64(len(s.steps)), i >= 0
	}
	x, ok := parseNumber(value)
	if ok && s.log {
		x, ok = math.Log10(x), x > 0
	}
	margin := 0.04 * (s.high - s.low)
	place = (x - s.low + margin) / (s.high - s.low + 2*margin)
	return place, ok && place >= 0 && place <= 1
}

// few reports whether every value has a step with room for a cell.
func (s scale) few() bool { return !s.line && len(s.steps) <= maxSteps }

// tick is a labelled value at its place.
type tick struct {
	place float64
	text  string
}

func (s scale) ticks() []tick {
	var words []string
	switch {
	case !s.line:
		every := (len(s.steps) + maxSteps - 1) / maxSteps
		for i := 0; i < len(s.steps); i += every {
			words = append(words, s.steps[i])
		}
	case s.log:
		mantissas := []float64{1}
		if s.high-s.low < 3 {
			mantissas = []float64{1, 3}
		}
		every := 1 + int(s.high-s.low)/8
		for power := int(math.Floor(s.low)); power <= int(s.high); power += every {
			for _, m := range mantissas {
				words = append(words, word(m*math.Pow10(power)))
			}
		}
	default:
		for _, v := range ticks(span{s.low, s.high}) {
			words = append(words, word(v))
		}
	}
	var all []tick
	for _, w := range words {
		if place, ok := s.at(w); ok {
			all = append(all, tick{place, w})
		}
	}
	return all
}

// word formats a number as files do.
func word(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
