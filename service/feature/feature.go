package feature

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Feature describes a feature of items or of the user. Its kind says which columns of an item's
// row its value v becomes:
//
//	number              (v' − center) / scale with v' = min(max(v, min), max). If center or scale is given,
//	                    min and max are center ± 10 scale by default; otherwise there are no bounds
//	category, values    e_k in ℝ^m for the k-th of m values. With other = true, e_{m+1} in ℝ^{m+1} for any
//	                    other value, which is an error otherwise
//	category            e_b in ℝ^B, b = h(v) mod B
//	text                z / ‖z‖ in ℝ^B, z_b = Σ_w σ(w) 1{h(w) mod B = b} over the words w of the text
//	                    ([text.Tokens]); 0 if there are no words
//	object              z / max(1, ‖z‖) in ℝ^B, z_b = Σ σ(v) x(v) 1{h(v) mod B = b} over the values of a
//	                    JSON object; 0 if there are none, or if it is missing
//	cross               vec(x yᵀ), x and y the columns of two earlier features
//
// The name of a value inside an object is the names of the members that lead to it, joined by dots.
// A string, true or false is v = "name=value" with x = 1; a number is v = "name" with x = asinh of
// the number; null is ignored. An element of a list has the name of the list, and a number that is
// the k-th element, from 0, has the name "list.k". The objects of a list therefore share their names.
//
// The hash is h = mix(FNV-1a(name, 0, v)) in 64 bits, with mix the finaliser of SplitMix64, and the
// sign σ = ±1 is the highest bit of h. Features of the user are columns of every item's row: they
// tell users who buy from users who do not, and, in crosses, which items a user buys.
type Feature struct {
	Name    string         `json:"name"`
	Kind    string         `json:"kind"`
	From    string         `json:"from,omitzero"`    // "item", the default, or "user"
	Center  float64        `json:"center,omitzero"`  // number
	Scale   float64        `json:"scale,omitzero"`   // number, 1 by default
	Min     *float64       `json:"min,omitzero"`     // number: a smaller value counts as min
	Max     *float64       `json:"max,omitzero"`     // number: a larger value counts as max
	Values  []string       `json:"values,omitempty"` // category
	Other   bool           `json:"other,omitzero"`   // category with values
	Buckets int            `json:"buckets,omitzero"` // B, by default 16 for a category, 64 for a text or an object
	Of      []string       `json:"of,omitempty"`     // cross
	Default jsontext.Value `json:"default,omitzero"` // replaces a missing value, which is an error otherwise
}

// Equal reports whether two features make columns of the same meaning. Bounds may differ: a
// learner goes on with new ones.
func (f Feature) Equal(o Feature) bool {
	return f.Name == o.Name && f.Kind == o.Kind && f.From == o.From && f.Center == o.Center && f.Scale == o.Scale &&
		slices.Equal(f.Values, o.Values) && f.Other == o.Other && f.Buckets == o.Buckets && slices.Equal(f.Of, o.Of) &&
		bytes.Equal(f.Default, o.Default)
}
