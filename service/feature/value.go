package feature

import "vitrine/service/api"

// Value is the value of a feature in its place. The zero value is missing.
type Value struct {
	Kind   api.ValueKind
	Number float64
	Text   string
}

// The types of values.
const (
	Missing  = api.Missing
	IsNumber = api.IsNumber
	IsText   = api.IsText
	IsObject = api.IsObject
)

// Number returns the value of a number.
func Number(v float64) Value { return Value{Kind: IsNumber, Number: v} }

// Text returns the value of a category or a text.
func Text(s string) Value { return Value{Kind: IsText, Text: s} }

// Object returns the value of an object: the JSON of an object or of a list of objects, as it was sent.
func Object(json string) Value { return Value{Kind: IsObject, Text: json} }

// Item is a candidate of a request.
type Item struct {
	ID       string
	Features []Value // by [Schema.Item]
}
