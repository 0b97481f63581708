package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"vitrine"
	"vitrine/service/catalogue"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// Audit checks a log's entries by the rules of the state: each decision is made once, with its placement's features,
// and gets one outcome, which names an item that was shown. An audit is a replay without learning, and skips invalid
// entries. It is not safe for concurrent use.
type Audit struct {
	state      *state.State
	goroutines goroutines
}

// NewAudit starts before the first entry, or after the last entry of a snapshot. It builds policies only to
// check that they can be built.
func NewAudit(build func(setup.Spec) (vitrine.Learner, error), snapshot []byte) (*Audit, error) {
	onlyBuilt := func(s setup.Spec) (vitrine.Learner, error) {
		if l, err := build(s); err != nil {
			return l, err
		}
		return idle{}, nil
	}
	a := new(Audit)
	a.state = state.NewState(onlyBuilt, a.goroutines.Go)
	if snapshot != nil {
		if err := a.state.Restore(snapshot); err != nil {
			a.Close()
			return nil, fmt.Errorf("snapshot: %w", err)
		}
	}
	return a, nil
}

// Sequence returns the sequence of the last entry.
func (a *Audit) Sequence() uint64 { return a.state.Position.Sequence }

// Entry takes the next entry of the log. It returns the event, or nil if the entry is not an event, and an error if
// it breaks a rule.
func (a *Audit) Entry(entry []byte) (*eventlog.Event, error) {
	next := a.state.Position.After(entry)
	defer func() { a.state.Position = next }()
	event, err := eventlog.Decode(entry)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", next.Sequence, err)
	}
	return &event, a.state.Apply(entry, &event, nil)
}

// Tally counts the decisions of a placement by their fate.
type Tally struct {
	Placement                                      string
	Decisions, Chosen, Expired, Evicted, Withdrawn uint64
	Open                                           int // including deferred ones
}

// Tallies returns the tallies of all placements, sorted by name.
func (a *Audit) Tallies() []Tally {
	var tallies []Tally
	for _, name := range slices.Sorted(maps.Keys(a.state.Placements)) {
		p := a.state.Placements[name]
		c := &p.Earnings.Counts
		tallies = append(tallies, Tally{name, c.Offered, c.Chosen, c.Expired, c.Evicted, c.Withdrawn, p.Open.Len()})
	}
	return tallies
}

// Remembered returns the number of shoppers that the placements remember.
func (a *Audit) Remembered() int { return a.state.Remembered() }

// Unchanged returns the configurations of the placements that no entry changed from before on, and the placements'
// catalogues at that entry. It leaves out a catalogue if the features of its items changed since.
func (a *Audit) Unchanged(ctx context.Context, log eventlog.Reader,
	before uint64) (map[string]*setup.Config, map[string]*catalogue.Catalogue, error) {
	configs, items := map[string]*setup.Config{}, map[string]*catalogue.Catalogue{}
	for name, p := range a.state.Placements {
		if p.Changed < before {
			configs[name] = p.Config
		}
		if p.Rows >= before {
			continue
		}
		f := p.Items.Of.Freeze()
		if err := Rewind(ctx, log, f, before-1, math.MaxInt); err != nil {
			return nil, nil, err
		}
		var misfit *catalogue.ItemError
		c, err := catalogue.Restore(f.Split().Schema(), f.Version, f.Records())
		if err != nil && !errors.As(err, &misfit) {
			return nil, nil, err
		}
		items[name] = c
	}
	return configs, items, nil
}

// Close ends the audit.
func (a *Audit) Close() {
	a.state.Stop()
	a.goroutines.rest()
}

// idle is a learner without effect.
type idle struct{}

func (idle) Policy() vitrine.Policy            { return idle{} }
func (idle) Observe(vitrine.Round) error       { return nil }
func (idle) MarshalBinary() ([]byte, error)    { return nil, nil }
func (idle) UnmarshalBinary(data []byte) error { return nil }

func (idle) Offer(*vitrine.Context, *rand.Rand) vitrine.Offer { return vitrine.Offer{} }
