package feature

import (
	"slices"

	"vitrine/service/api"
)

// Equal reports whether two features' columns mean the same. It ignores Min and Max, because a learner can go on with
// new bounds. Defaults must be nil, numbers or strings.
func Equal(f, o api.Feature) bool {
	return f.Name == o.Name && f.Kind == o.Kind && f.From == o.From && f.Center == o.Center && scaleOf(f) == scaleOf(o) &&
		slices.Equal(f.Values, o.Values) && f.AllowOther == o.AllowOther && f.Columns == o.Columns &&
		numNames(f) == numNames(o) && slices.Equal(f.Of, o.Of) &&
		f.Default == o.Default && f.History == o.History
}

// scaleOf returns what a number is divided by.
func scaleOf(f api.Feature) float64 {
	if f.Scale == nil {
		return 1
	}
	return *f.Scale
}
