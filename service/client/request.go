package client

import "encoding/json"

// Request asks for an assortment.
type Request struct {
	Decision string         `json:"-"` // the caller's id for it, of letters, digits, '.', '_', '-' and ':'; "" has one made
	Items    []Item         `json:"items"`
	User     map[string]any `json:"user,omitempty"`     // features by name; nil where nothing is known of the user
	Size     int            `json:"size,omitempty"`     // the most items to show; 0 for the placement's own
	Include  []string       `json:"include,omitempty"`  // ids of items that are shown
	Exclude  []string       `json:"exclude,omitempty"`  // and that are not
	AtMost   []Limit        `json:"at_most,omitempty"`  // beside those of the placement
	Baseline []string       `json:"baseline,omitempty"` // what is shown in the mode "shadow", in display order
	Defer    bool           `json:"defer,omitempty"`    // the outcome is waited for once it is activated: Client.Activate
}

// Item is a candidate.
type Item struct {
	ID       string         `json:"id"`
	Features map[string]any `json:"features,omitempty"` // numbers, strings and objects by name
	Revenue  *float64       `json:"revenue,omitempty"`  // nil is 1
}

// Limit bounds how many are shown of some items: those with the ids, or those of each value of
// a category.
type Limit struct {
	Items   []string `json:"items,omitempty"` // in a request alone
	Feature string   `json:"feature,omitempty"`
	Most    int      `json:"most"`
}

// Flat is a Request of N items with the values of features in flat slices, by rows: those of
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
	AtMost      []Limit
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

// Prepare encodes a request as JSON. Errors are those of values that JSON does not have.
func (r *Request) Prepare() (*Prepared, error) {
	text, err := json.Marshal(r)
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
