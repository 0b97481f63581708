package client

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/api"
)

func TestPayload(t *testing.T) {
	for _, p := range []payload{{}, {head: "head"}, {rest: []byte("rest")}, {head: "head", rest: []byte("rest")}} {
		want := []byte(p.head + string(p.rest))
		expect.Error(t, iotest.TestReader(p.open(), want), nil)
		var b bytes.Buffer
		if n, err := io.Copy(&b, p.open()); err != nil || n != int64(len(want)) || b.String() != string(want) {
			t.Errorf("%q, %d, %v, want %q", b.String(), n, err, want)
		}
	}
}

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
