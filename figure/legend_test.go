package figure

import (
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"

	"vitrine/internal/expect"
)

// There are as few rows as the width permits, as even as possible. A column is as wide as its widest name.
func TestLegendRows(t *testing.T) {
	short, long := entry{name: "a"}, entry{name: strings.Repeat("a", 20)}
	s, l := short.width(), long.width()
	for _, test := range []struct {
		name    string
		entries []entry
		width   vg.Length
		columns []vg.Length
		height  vg.Length
	}{
		{"a row", []entry{short, long, short}, 2*s + l + 2*between, []vg.Length{s, l, s}, rowHeight},
		{"a little too narrow", []entry{short, long, short}, 2*s + l + 2*between - 1, []vg.Length{s, l}, 2 * rowHeight},
		{"two and two, not three and one", []entry{short, short, short, short}, 3*s + 2*between, []vg.Length{s, s},
			2 * rowHeight},
		{"no room at all", []entry{short, long}, 1, []vg.Length{l}, 2 * rowHeight},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := newLegend(test.entries, test.width)
			expect.Equal(t, got.columns, test.columns, "columns")
			expect.Equal(t, got.height(), test.height, "height")
		})
	}
}
