package client

import (
	"github.com/go-json-experiment/json"

	"vitrine/service/api"
)

// Flat is an [api.Request] of N items with the values of features in flat slices, by rows: those of
// the first item, then those of the second, … All have to be given.
type Flat struct {
	Decision    string
	Items       []string  // N ids
	Numbers     []float64 // N × the placement's features of kind "number" of items, in the order of its configuration
	Texts       []string  // N × its other features of items
	Revenues    []float64 // N; nil where every item has the revenue 1
	UserNumbers []float64 // the same of the user; nil
	UserTexts   []string  // where nothing is known
	Size        int
	Include     []string
	Exclude     []string
	AtMost      []api.Limit
	Baseline    []string
}

// Prepared is a request in bytes, all but its decision id: what is asked for again and again is
// encoded once.
type Prepared struct {
	mediaType string
	rest      []byte
}

// The types of bodies.
const (
	asJSON   = "application/json"
	asBinary = "application/x-protobuf"
)

// Prepare encodes a request as JSON, all but its decision id. Errors are those of values that JSON does not have.
func Prepare(r *api.Request) (*Prepared, error) {
	rest := *r
	rest.Decision = ""
	text, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	return &Prepared{asJSON, text[1:]}, nil // without the brace: decision_id comes before
}

// Prepare encodes a request in the binary form.
func (r *Flat) Prepare() *Prepared { return &Prepared{asBinary, r.appendBinary(nil)} }

// body returns the request under an id.
func (p *Prepared) body(id string) payload {
	if p.mediaType == asBinary {
		return payload{p.mediaType, string(appendText(nil, decisionField, id)), p.rest}
	}
	return payload{p.mediaType, `{"decision_id":` + quote(id) + `,`, p.rest}
}

func quote(s string) string {
	text, _ := json.Marshal(s) // of a string there is no error
	return string(text)
}
