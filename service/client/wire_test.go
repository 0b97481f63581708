package client

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"vitrine/service/api"
)

func FuzzBinaryAnswer(f *testing.F) {
	f.Add([]byte("\x0a\x01d\x12\x01a\x1a\x08\x00\x00\x00\x00\x00\x00\xe0\x3f\x21\x00\x00\x00\x00\x00\x00\xe0\x3f\x38\x07"))
	f.Add([]byte("\x19\x00\x00\x00\x00\x00\x00\xe0\x3f\x42\x03new"))
	f.Add([]byte("\x1a\x03abc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := unmarshalBinary(new(api.Answer), b); err != nil && !errors.Is(err, errBinary) {
			t.Error(err)
		}
	})
}

func TestBadBinaryAnswers(t *testing.T) {
	good := "\x0a\x01d\x12\x01a\x38\x07"
	for _, text := range []string{good + "\x0a", good + "\x0a\x05ab", good + "\x1a\x03abc", good + "\x1a\x00\x19\x00\x00\x00\x00\x00\x00\xe0\x3f\x19\x00\x00\x00\x00\x00\x00\xe0\x3f", good + "\x21\x00", good + "\x07", "\x38"} {
		if err := unmarshalBinary(new(api.Answer), []byte(text)); !errors.Is(err, errBinary) {
			t.Errorf("%q: %v", text, err)
		}
	}
	var a api.Answer
	if err := unmarshalBinary(&a, []byte(good+"\x42\x03new\x19\x00\x00\x00\x00\x00\x00\xe0\x3f")); err != nil || a.Decision != "d" || a.PolicyVersion != 7 || *a.Assortment[0].Probability != 0.5 {
		t.Errorf("%+v, %v", a, err) // a field of a later service is skipped
	}
}

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
