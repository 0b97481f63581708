package client

import (
	"io"
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/api"
)

// A request with only an id, which decides among all items of a catalogue, is JSON too.
func TestEmptyRequest(t *testing.T) {
	for want, r := range map[string]*api.Request{`{"decision_id":"d"}`: {},
		`{"decision_id":"d","max_size":2}`: {MaxSize: 2, Decision: "other"}} {
		p := fatal.Or(Prepare(r))(t)
		if got, err := io.ReadAll(p.body("d").open()); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
