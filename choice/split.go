package choice

import (
	"fmt"
	"math/rand/v2"
)

// Split divides the choices into two parts. The second gets about the given share in (0, 1). Each choice, or each panel
// if there are panels, goes to a random part; the same seed gives the same parts. It is an error if a part would be
// empty.
func (d *Data) Split(share float64, seed uint64) (rest, part *Data, err error) {
	if !(share > 0 && share < 1) {
		return nil, nil, fmt.Errorf("the share is %v: want a number between 0 and 1", share)
	}
	taken := make([]bool, 0, d.Choices)
	for _, b := range d.blocks {
		for s := range b.end {
			unit := b.first + s
			if b.panel != nil {
				unit = int(b.panel[s])
			}
			taken = append(taken, rand.New(rand.NewPCG(seed, uint64(unit))).Float64() < share)
		}
	}
	if part, err = d.Filter(func(s int) bool { return taken[s] }); err == nil {
		rest, err = d.Filter(func(s int) bool { return !taken[s] })
	}
	if err != nil {
		return nil, nil, fmt.Errorf("a share of %v of %d choices leaves one part empty", share, d.Choices)
	}
	return rest, part, nil
}
