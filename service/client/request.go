package client

import (
	"github.com/go-json-experiment/json"

	"vitrine/service/api"
)

// Flat is an [api.Request] of N items for the binary form. The values of features are in flat slices,
// in row-major order: all values of the first item, then all values of the second, and so on. Within
// a row they are in the order of the placement's configuration. No value may be missing.
type Flat struct {
	Decision    string
	Items       []string  // N ids
	Numbers     []float64 // N × n, where n is the number of item features of kind "number"
	Texts       []string  // N × m, where m is the number of other item features, without crosses
	Revenues    []float64 // N; nil if every item has the revenue 1
	UserNumbers []float64 // the user's features of kind "number"
	UserTexts   []string  // the user's other features; both nil if nothing is known about the user
	Size        int       // this and the other fields are those of api.Request
	Include     []string
	Exclude     []string
	AtMost      []api.Limit
	Baseline    []string
}

// Prepared is an encoded request without its decision id. A caller that asks the same question many
// times encodes it once, and calls [Client.DecidePrepared].
type Prepared struct {
	mediaType string
	rest      []byte
}

// The types of bodies.
const (
	asJSON   = "application/json"
	asBinary = "application/x-protobuf"
)

// Prepare encodes a request as JSON, without its decision id. It returns an error if a number is not
// finite or an object is not JSON.
func Prepare(r *api.Request) (*Prepared, error) {
	rest := *r
	rest.Decision = ""
	text, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	return &Prepared{asJSON, text[1:]}, nil // without the brace: body puts decision_id first
}

// Prepare encodes a request in the binary form, without its decision id.
func (r *Flat) Prepare() *Prepared { return &Prepared{asBinary, r.appendBinary(nil)} }

// body returns the request with a decision id.
func (p *Prepared) body(id string) payload {
	if p.mediaType == asBinary {
		return payload{mediaType: p.mediaType, head: string(appendText(nil, decisionField, id)), rest: p.rest}
	}
	return payload{mediaType: p.mediaType, head: `{"decision_id":` + quote(id) + `,`, rest: p.rest}
}

func quote(s string) string {
	text, _ := json.Marshal(s) // a string always encodes
	return string(text)
}
