package state

import (
	"testing"

	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
	"vitrine/service/feature"
	"vitrine/service/setup"
)

// Values of many items of a category are logged only as long as it has room, also if other callers took the room that
// was there when the items came.
func TestLogValuesOfManyItems(t *testing.T) {
	s := NewState(setup.NewLearner, func(func()) {})
	c := fatal.Or(setup.Parse([]byte(`{"max_size":1,"features":[{"name":"brand","kind":"category","columns":3,"own_columns":2}],` +
		`"policy":{"name":"uniform"}}`)))(t)
	apply := func(e *eventlog.Event, entry []byte) {
		t.Helper()
		fatal.If(t, s.Apply(entry, e, nil))
	}
	put := &eventlog.Event{Placement: "home", Body: &eventlog.PlacementPut{Config: c.Canonical()}}
	apply(put, encoded(put))
	p := s.Placements["home"]
	b := &Batch{State: s}
	b.Reset()
	one := func(value string) feature.Seen { return feature.Seen{Feature: "brand", Values: []string{value}} }
	fatal.If(t, b.LogValues("home", p.Changed, []feature.Seen{one("a"), one("b"), one("b"), one("c")}, 1))
	for i, e := range b.Events {
		apply(e, b.Entries[i])
	}
	if learned := p.Config.Schema().Learned(); len(learned) != 1 || len(learned[0].Values) != 2 {
		t.Errorf("it has learned %q", learned)
	}
	s.Stop()
}
