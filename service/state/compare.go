package state

import (
	"fmt"
	"maps"
	"slices"
)

// Different returns the placements with different bytes in two states of one entry.
func (f *Frozen) Different(other *Frozen) (names []string, err error) {
	if f.At != other.At {
		return nil, fmt.Errorf("the states are of entries %d and %d, or of two logs", f.At.Sequence, other.At.Sequence)
	}
	mine, its := f.byName(), other.byName()
	all := maps.Clone(mine)
	maps.Copy(all, its)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, q := mine[name], its[name]
		same := p != nil && q != nil
		if same {
			if same, err = p.equal(q); err != nil {
				return nil, err
			}
		}
		if !same {
			names = append(names, name)
		}
	}
	return names, nil
}

func (f *Frozen) byName() map[string]*frozenPlacement {
	all := map[string]*frozenPlacement{}
	for _, p := range f.placements {
		all[p.Name] = p
	}
	return all
}
