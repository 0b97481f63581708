package decision

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/service/eventlog"
)

// Audit holds the entries of a log to the rules of the state, those of a replay: a decision is
// made once, of its placement's features, and has one outcome, of what it showed. It is a replay
// that learns nothing, and goes on after an unlawful entry as if it were not there. Not safe for concurrent use.
type Audit struct{ state *fold }

// NewAudit begins before the first entry, or with a snapshot after the last one
// that is in it. Policies are built, to see that they can be.
func NewAudit(build func(Spec) (vitrine.Learner, error), snapshot []byte) (*Audit, error) {
	onlyBuilt := func(s Spec) (vitrine.Learner, error) {
		l, err := build(s)
		if _, ok := l.(snapshotter); err != nil || !ok {
			return l, err
		}
		return idle{}, nil
	}
	a := &Audit{newFold(onlyBuilt)}
	if snapshot != nil {
		if err := a.state.restore(snapshot); err != nil {
			a.Close()
			return nil, fmt.Errorf("snapshot: %w", err)
		}
	}
	return a, nil
}

// Sequence returns that of the last entry.
func (a *Audit) Sequence() uint64 { return a.state.position.Sequence }

// Entry takes the next entry and returns its event, nil where it is none, and
// what is unlawful about it.
func (a *Audit) Entry(entry []byte) (*eventlog.Event, error) {
	next := a.state.position.After(entry)
	defer func() { a.state.position = next }()
	event, err := eventlog.Decode(entry)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", next.Sequence, err)
	}
	return &event, a.state.apply(entry, &event, nil)
}

// Tally counts the decisions of a placement, by what became of them.
type Tally struct {
	Placement                                      string
	Decisions, Chosen, Expired, Evicted, Withdrawn uint64
	Open                                           int // deferred ones too
}

// Tallies returns those of the placements that there are, sorted by name.
func (a *Audit) Tallies() []Tally {
	var tallies []Tally
	for _, name := range slices.Sorted(maps.Keys(a.state.placements)) {
		p := a.state.placements[name]
		tallies = append(tallies, Tally{name, p.counts.Offered, p.counts.Chosen, p.counts.Expired, p.counts.Evicted, p.counts.Withdrawn, len(p.open.heap)})
	}
	return tallies
}

// Unchanged returns the configurations of the placements that have had them since before an entry.
func (a *Audit) Unchanged(before uint64) map[string]*Config {
	configs := map[string]*Config{}
	for name, p := range a.state.placements {
		if p.changed < before {
			configs[name] = p.config
		}
	}
	return configs
}

// Close ends the audit.
func (a *Audit) Close() { a.state.end() }

// idle has the place of a learner that is not needed.
type idle struct{}

func (idle) Policy() vitrine.Policy            { return idle{} }
func (idle) Observe(vitrine.Round) error       { return nil }
func (idle) MarshalBinary() ([]byte, error)    { return nil, nil }
func (idle) UnmarshalBinary(data []byte) error { return nil }

func (idle) Offer(*vitrine.Context, *rand.Rand) vitrine.Offer { return vitrine.Offer{} }
