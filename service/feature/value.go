package feature

import "vitrine/service/api"

// Value is the value of a feature whose index is known; an [api.Value] has a name. The zero Value is
// missing.
type Value struct {
	Kind   api.ValueKind
	Number float64 // of the kind IsNumber
	Text   string  // of the kinds IsText and IsObject
}

// The kinds of values.
const (
	Missing  = api.Missing
	IsNumber = api.IsNumber
	IsText   = api.IsText
	IsObject = api.IsObject
)

// Number returns a value of the kind IsNumber.
func Number(v float64) Value { return Value{Kind: IsNumber, Number: v} }

// Text returns a value of the kind IsText, for a category or a text.
func Text(s string) Value { return Value{Kind: IsText, Text: s} }

// Object returns a value of the kind IsObject: the JSON of an object or of a list of objects.
func Object(json string) Value { return Value{Kind: IsObject, Text: json} }

// Item is a candidate of a request.
type Item struct {
	ID       string
	Features []Value // indexed by [Schema.Item]; length [Schema.NumItem]
}
