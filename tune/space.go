package tune

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// Grid returns all combinations of the parameters' values, with the last parameter varying fastest.
func Grid(values [][]any) [][]any {
	points := [][]any{nil}
	for _, list := range values {
		var longer [][]any
		for _, p := range points {
			for _, v := range list {
				longer = append(longer, append(p[:len(p):len(p)], v))
			}
		}
		points = longer
	}
	return points
}

// Range is a distribution of a parameter's values: uniform on a list or, if that is nil, on [Low, High], possibly in
// the logarithm. Numbers lie in the range and are rounded to four significant digits, so that they can be copied; whole
// ones are rounded to integers.
type Range struct {
	List      []any
	Low, High float64 // finite, Low < High, and 0 < Low if Log
	Log       bool
	Whole     bool
}

// Draw returns a value: an int64 if Whole, a float64, or an entry from the list.
func (r Range) Draw(rng *rand.Rand) any {
	if r.List != nil {
		return r.List[rng.IntN(len(r.List))]
	}
	if r.Whole && !r.Log {
		return int64(r.Low) + rng.Int64N(int64(r.High)-int64(r.Low)+1)
	}
	q := rng.Float64()
	v := r.Low*(1-q) + r.High*q
	if r.Log {
		v = math.Exp(math.Log(r.Low)*(1-q) + math.Log(r.High)*q)
	}
	if r.Whole {
		return int64(min(max(math.Round(v), r.Low), r.High))
	}
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		panic("tune: " + err.Error()) // this function formatted it
	}
	return min(max(v, r.Low), r.High)
}
