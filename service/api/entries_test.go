package api_test

import (
	"maps"
	"testing"

	"vitrine/service/api"
)

// The text of entries is read back, and nothing else is entries.
func TestEntries(t *testing.T) {
	for text, want := range map[string]api.Entries{
		"0": {0: 0}, "812": {0: 812}, "18446744073709551615": {0: 1<<64 - 1}, "2:812": {2: 812}, "1:5,12:0": {1: 5, 12: 0},
	} {
		got, err := api.ParseEntries(text)
		if err != nil || !maps.Equal(got, want) || got.String() != text {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := api.ParseEntries("12:1,3:2"); err != nil || got.String() != "3:2,12:1" {
		t.Errorf("%v, %v: shards in their order", got, err)
	}
	for _, text := range []string{"", "x", "-1", "1:", ":1", "0:1", "-1:1", "1:2,1:2", "5,6", "5,1:6", "1:5,6", "1:2,", "99999999999:1", "1:2:3", " 1"} {
		if got, err := api.ParseEntries(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func FuzzEntries(f *testing.F) {
	f.Add("1:5,12:0")
	f.Add("7")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := api.ParseEntries(text)
		if err != nil {
			return
		}
		again, err := api.ParseEntries(got.String())
		if err != nil || !maps.Equal(got, again) {
			t.Errorf("%q is %v, whose text is %v, %v", text, got, again, err)
		}
	})
}
