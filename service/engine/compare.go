package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// Compare returns the placements whose states differ between a and b, two engines at the same entry of the
// same log: those with different bytes in a snapshot.
func Compare(ctx context.Context, a, b *Engine) (different []string, err error) {
	x, err := a.freeze(ctx, -1)
	if err != nil {
		return nil, err
	}
	y, err := b.freeze(ctx, -1)
	if err != nil {
		return nil, err
	}
	if x.at != y.at {
		return nil, fmt.Errorf("the states are of entries %d and %d, or of two logs", x.at.Sequence, y.at.Sequence)
	}
	mine, its := x.byName(), y.byName()
	names := maps.Clone(mine)
	maps.Copy(names, its)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		p, q := mine[name], its[name]
		same := p != nil && q != nil
		if same {
			if same, err = p.equal(q); err != nil {
				return nil, err
			}
		}
		if !same {
			different = append(different, name)
		}
	}
	return different, nil
}

func (f *frozenState) byName() map[string]*frozen {
	all := map[string]*frozen{}
	for _, p := range f.placements {
		all[p.name] = p
	}
	return all
}
