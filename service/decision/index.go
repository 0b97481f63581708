package decision

import (
	"fmt"
	"slices"
	"strings"

	"vitrine/service/api"
)

// index finds the decisions that are remembered. Ids belong to placements: a placement gives an id to one decision,
// and others may give it to theirs.
type index map[string]*record // by the id: the first of a chain, whose next is its twin

// find returns the decision that a placement calls id, or nil.
func (x index) find(p *placement, id string) *record {
	r := x[id]
	for r != nil && r.placement != p {
		r = r.twin
	}
	return r
}

func (x index) add(r *record) {
	r.twin = x[r.id]
	x[r.id] = r
}

func (x index) remove(r *record) {
	first := x[r.id]
	switch {
	case first != r:
		for first.twin != r {
			first = first.twin
		}
		first.twin = r.twin
	case r.twin == nil:
		delete(x, r.id)
	default:
		x[r.id] = r.twin
	}
	r.twin = nil
}

// placementOf returns the placement that a caller has named, or the one that Find returns.
func (e *Engine) placementOf(placement, id string) (string, error) {
	if placement != "" {
		return placement, nil
	}
	return e.Find(id, nil)
}

// Find returns the placement that a decision is of, by its id: of all placements, or of those that may reports. If the
// decisions of several have the id, the error is ErrAmbiguous, and ErrNotFound if none has.
func (e *Engine) Find(id string, may func(placement string) bool) (placement string, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	var names []string
	add := func(name string) {
		if may == nil || may(name) {
			names = append(names, name)
		}
	}
	for r := e.state.decisions[id]; r != nil; r = r.twin {
		add(r.placement.name)
	}
	if names == nil {
		for p := range e.state.evicted.of {
			if e.state.evicted.has(p, id) {
				add(p.name)
			}
		}
	}
	switch len(names) {
	case 0:
		return "", unknownDecision(id)
	case 1:
		return names[0], nil
	}
	slices.Sort(names)
	return "", fmt.Errorf("decision %q: %w: name one of %s", api.Abbreviate(id, largestDecision), ErrAmbiguous, strings.Join(names, ", "))
}
