package choice

import (
	"errors"
	"fmt"
	"slices"
)

// unit is a decision maker: choices [from, to) in a block, and a number.
type unit struct{ from, to, number int }

// units calls f for each decision maker in a block.
func units(b *block, f func(u unit)) {
	for s := 0; s < b.choices(); {
		u := unit{s, s + 1, b.first + s}
		if b.panel != nil {
			u.number = int(b.panel[s])
			for u.to < b.choices() && b.panel[u.to] == b.panel[s] {
				u.to++
			}
		}
		f(u)
		s = u.to
	}
}

// rowsOf returns the rows [lo, hi) of a decision maker.
func (b *block) rowsOf(u unit) (lo, hi int) {
	lo, _ = b.span(u.from)
	_, hi = b.span(u.to - 1)
	return lo, hi
}

// varying names a decision maker among whose rows variable v varies, or is "".
func (d *Data) varying(v int) (who string) {
	for _, b := range d.blocks {
		units(b, func(u unit) {
			lo, hi := b.rowsOf(u)
			if x := b.x[v][lo:hi]; who == "" && slices.ContainsFunc(x, func(y float64) bool { return y != x[0] }) {
				who = fmt.Sprintf("choice %d", u.number+1)
				if u.number < len(d.PanelNames) {
					who = "panel " + d.PanelNames[u.number]
				}
			}
		})
	}
	return who
}

// checkPanelWeights returns an error if weights differ within a panel.
func checkPanelWeights(d *Data) error {
	for _, b := range d.blocks {
		for s := 1; b.panel != nil && s < b.choices(); s++ {
			if b.panel[s] == b.panel[s-1] && b.weightOf(s) != b.weightOf(s-1) {
				return errors.New("the weights of the choices of a panel differ: this model has one weight for " +
					"each decision maker")
			}
		}
	}
	return nil
}
