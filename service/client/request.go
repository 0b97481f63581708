package client

import (
	"github.com/go-json-experiment/json"

	"vitrine/service/api"
)

// Prepared is an encoded request without its decision id. A caller that asks the same question many
// times encodes it once, and calls [Client.DecidePrepared].
type Prepared struct{ rest []byte }

const asJSON = "application/json"

// Prepare encodes a request as JSON, without its decision id. It returns an error if a number is not
// finite or an object is not JSON.
func Prepare(r *api.Request) (*Prepared, error) {
	rest := *r
	rest.Decision = ""
	text, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	return &Prepared{text[1:]}, nil // without the brace: body puts decision_id first
}

// body returns the request with a decision id.
func (p *Prepared) body(id string) payload {
	head := `{"decision_id":` + quote(id)
	if len(p.rest) > 1 { // more than a brace
		head += ","
	}
	return payload{mediaType: asJSON, head: head, rest: p.rest}
}

func quote(s string) string {
	text, _ := json.Marshal(s) // a string always encodes
	return string(text)
}
