package offer_test

import (
	"fmt"
	"reflect"
	"testing"

	"vitrine/service/offer"
)

// Estimates that can be read are written back unchanged.
func FuzzEstimates(f *testing.F) {
	f.Add([]byte{1, 0, 1}, 0)
	f.Add([]byte{1, 6, 1}, 2)
	f.Add(append([]byte{1, 1, 9}, make([]byte, 24)...), 1)
	f.Add([]byte{2, 8, 1}, 0)
	f.Add([]byte("\x03\x80\x01\x02\x9a\x99\x99\x99\x99\x99\xb9\x3f\x02\x02\x00\x01\x01\x0c"), 2)
	f.Add([]byte("\x02\x70\x01\x02\x01i\x02jj\x04note"), 1)
	f.Add([]byte("\x06\x80\x08\x01\x0a{\"size\":1}"), 0)
	f.Add([]byte("\x05\x80\x04\x01\x05rival12345678"), 1)
	f.Fuzz(func(t *testing.T, data []byte, shown int) {
		if shown < 0 || shown > 100 {
			return
		}
		e, err := offer.Decode(data, shown)
		if err != nil {
			return
		}
		if again := e.Append(nil); string(again) != string(data) {
			t.Fatalf("%x is written as %x", data, again)
		}
	})
}

// The estimates of each version are read.
func TestDecode(t *testing.T) {
	for _, c := range []struct {
		data  string
		shown int
		want  string // an empty one is an error
	}{
		{"\x01\x00\x01", 0, "1"},
		{"\x01\x08\x01", 0, "deferred"},
		{"\x01\x60\x01\x01\x01i\x04note", 1, "note"},
		{"\x01\x80\x04\x01\x05rival12345678", 1, "rival"},
		{"\x01\x80\x08\x01\x0a{\"size\":1}", 0, `{"size":1}`},
		{"\x01\x80\x01\x01\x02\x9a\x99\x99\x99\x99\x99\xb9\x3f\x02\x02\x00\x01\x01\x0c", 2, "1"},
		{"\x01\x80\x01\x01\x02\x9a\x99\x99\x99\x99\x99\xb9\x3f\x02\x02\x01\x00\x01\x0c", 2, ""},
		// a page that does not increase
		{"\x01\x80\x01\x01\x02\x9a\x99\x99\x99\x99\x99\xb9\x3f\x02\x02\x01\x01\x01\x0c", 2, ""}, // twice the same item
		{"\x01\x80\x01\x01\x04\x9a\x99\x99\x99\x99\x99\xb9\x3f\x02\x02\x00\x01\x00", 2, ""},     // an unknown kind
		{"\x01\x80\x01\x01\x00\x9a\x99\x99\x99\x99\x99\xb9\x3f\x02\x02\x00\x01\x00", 2, ""},
		{"\x01\x80\x01\x01\x01\x9a\x99\x99\x99\x99\x99\xb9\x3f\x02\x02\x00\x01\x01\x0c", 2, ""}, // swaps of sets
		{"\x01\x80\x01\x01\x02\x9a\x99\x99\x99\x99\x99\xf9\x3f\x02\x02\x00\x01\x00", 2, ""},     // a share of 1.6
		{"\x01\x80\x10\x01\x01\x01p", 1, "p"},
		{"\x01\x80\x10\x01\x01\x01p", 2, ""}, // payloads of one item
		{"\x01\x80\x20\x01\x01\x05limit\x03new\x03\x02", 0, "[{limit new 3 2}]"},
		{"\x01\x80\x20\x01\x01\x08min_size\x00\x03\x02", 0, "[{min_size  3 2}]"},
		{"\x01\x80\x20\x01\x01\x08min_size\x00\x03\x03", 0, ""}, // a bound that was met
		{"\x01\x80\x20\x01\x00", 0, ""},                         // no bound
		{"\x01\x80\x40\x01\x10sixteen bytes :)", 0, "sixteen bytes :)[]"},
		{"\x01\x80\xc0\x01\x01\x10sixteen bytes :)\x01\x01a\x02\x03", 0, "sixteen bytes :)[{a 2 3}]"},
		{"\x01\x80\x40\x01\x03two", 0, ""},                      // a short name
		{"\x01\x80\xc0\x01\x01\x10sixteen bytes :)\x00", 0, ""}, // no counts
		{"\x01\x80\x80\x02\x01", 0, ""},                         // an unknown flag
		{"\x02\x08\x01", 0, ""},                                 // of another version
		{"\x01\x08\x01\x00", 0, ""},                             // longer
		{"\x01\x40\x01\x00", 0, ""},                             // an empty note
		{"\x01\x04\x01", 0, ""},                                 // agrees with no set
		{"\x01\x80\x04\x01\x0012345678", 1, "unit of "},
		{"\x01\x80\x04\x01\x00" + string(make([]byte, 8)), 1, ""}, // no unit
		{"\x01\x01\x01" + string(make([]byte, 24)), 2, ""},        // of one item
	} {
		e, err := offer.Decode([]byte(c.data), c.shown)
		have := ""
		switch {
		case err != nil:
		case e.Rules != "", e.Variant != "", e.Note != "":
			have = e.Rules + e.Variant + e.Note
		case e.Shopper != "":
			have = fmt.Sprint(e.Shopper, e.Past)
		case len(e.Unmet) > 0:
			have = fmt.Sprint(e.Unmet)
		case len(e.Payload) > 0:
			have = e.Payload[0]
		case e.Unit != 0:
			have = "unit of " + e.Variant
		case e.Deferred:
			have = "deferred"
		case e.Number == 1:
			have = "1"
		}
		if have != c.want {
			t.Errorf("%q is %q (%v), want %q", c.data, have, err, c.want)
		}
	}
}

// Lists without ids are nil again, so that a repeated answer leaves them out as the first one does.
func TestNoMissingCandidates(t *testing.T) {
	for _, unknown := range [][]string{nil, {"sku1"}} {
		was := offer.Estimates{Number: 1, Catalogue: &offer.FromCatalogue{Version: 3, Unknown: unknown,
			Missing: len(unknown)}}
		e, err := offer.Decode(was.Append(nil), 0)
		if err != nil || !reflect.DeepEqual(e.Catalogue, was.Catalogue) {
			t.Errorf("%+v is read as %+v (%v)", was.Catalogue, e.Catalogue, err)
		}
	}
}
