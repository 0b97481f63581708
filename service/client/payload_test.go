package client

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

func TestPayload(t *testing.T) {
	for _, p := range []payload{{}, {head: "head"}, {rest: []byte("rest")}, {head: "head", rest: []byte("rest")}} {
		want := []byte(p.head + string(p.rest))
		if err := iotest.TestReader(p.open(), want); err != nil {
			t.Error(err)
		}
		var b bytes.Buffer
		if n, err := io.Copy(&b, p.open()); err != nil || n != int64(len(want)) || b.String() != string(want) {
			t.Errorf("%q, %d, %v, want %q", b.String(), n, err, want)
		}
	}
}
