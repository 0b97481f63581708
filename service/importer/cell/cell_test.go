package cell_test

import (
	"fmt"
	"testing"
	"time"

	"vitrine/internal/expect"
	"vitrine/service/api"
	"vitrine/service/importer/cell"
)

// Times are read in the forms of other programs, and integers by their size in seconds to nanoseconds.
func TestTime(t *testing.T) {
	want := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for _, text := range []string{
		"2026-01-02T15:04:05Z", "2026-01-02T16:04:05+01:00", "2026-01-02 15:04:05", "2026-01-02T15:04:05",
		"2026-01-02 16:04:05+01", "2026-01-02 15:04:05.000000 UTC", "2026-01-02T16:04:05+0100",
		"2026-01-02 16:04:05+0100",
		"2026-01-02 16:04:05+01:00",
		"1/2/2026 3:04:05 PM", "1767366245", "1767366245.0", "1767366245000", "1767366245000000", "1767366245000000000",
	} {
		if at, err := cell.Time("time", api.Text("", text)); err != nil || at != want.UnixNano() {
			t.Errorf("%s is %v, %v", text, time.Unix(0, at).UTC(), err)
		}
	}
	for text, fraction := range map[string]int64{".25": 25e7, ".1": 1e8, ".0000000019": 1, ".999999999": 999999999} {
		if at, err := cell.Time("time", api.Text("", "1767366245"+text)); err != nil || at != want.UnixNano()+fraction {
			t.Errorf("%s is %v, %v", text, time.Unix(0, at).UTC(), err)
		}
	}
	for _, text := range []string{"yesterday", "0001-01-01T00:00:00Z", "1e300"} {
		expect.Refused(cell.Time("time", api.Text("", text)))(t, text, "is a time")
	}
	for text, would := range map[string]string{"45000": "1970-01-01T12:30:00Z", "45000.5": "1970-01-01T12:30:00Z",
		"-1767366245": "1913-12-30T08:55:55Z", "1969-12-31": "1969-12-31T00:00:00Z"} {
		expect.Prefix(cell.Time("time", api.Text("", text)))(t, fmt.Sprintf("column time: %q would be %s: write",
			text, would))
	}
	if at, err := cell.Time("time", api.Value{}); at != 0 || err != nil {
		t.Errorf("an empty cell is %d, %v", at, err)
	}
}

// A cell is a condition, a position or a number in few forms; anything else is an error that names the column.
func TestForms(t *testing.T) {
	for text, want := range map[string]struct{ flag, position, number bool }{
		"1": {true, true, true}, "Yes": {true, false, false}, "false": {true, true, false}, "": {true, true, false},
		"2.5": {false, true, true}, "-1": {false, false, true}, "NA": {false, false, false}, "x": {false, false, false},
	} {
		v := api.Text("", text)
		if _, is := cell.Number(v); is != want.number || cell.IsFlag(v) != want.flag || cell.IsPosition(v) != want.position {
			t.Errorf("%q is a number %v, a condition %v, a position %v, want %+v", text, is, cell.IsFlag(v),
				cell.IsPosition(v), want)
		}
	}
	const want = `column chosen: "maybe" is neither 0 nor 1`
	expect.Message(cell.Flag("chosen", api.Text("", "maybe")))(t, want)
}
