package feature

import (
	"slices"

	"vitrine/service/api"
)

// Equal reports whether two features make columns of the same meaning. Bounds may differ: a
// learner goes on with new ones. Their defaults are numbers or strings, if they have any.
func Equal(f, o api.Feature) bool {
	return f.Name == o.Name && f.Kind == o.Kind && f.From == o.From && f.Center == o.Center && f.Scale == o.Scale &&
		slices.Equal(f.Values, o.Values) && f.Other == o.Other && f.Buckets == o.Buckets && slices.Equal(f.Of, o.Of) &&
		f.Default == o.Default
}
