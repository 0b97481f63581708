package state

import (
	"slices"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/eventlog"
)

const maxChanges = 100

// follow remembers an entry that an operator may ask about, and the alarm that is in force after it.
func (p *Placement) follow(sequence uint64, e *eventlog.Event) {
	if isChange(e.Body) {
		p.changes = append(p.changes, sequence)
		p.changes = p.changes[max(0, len(p.changes)-maxChanges):]
	}
	p.alarms.Follow(p.Earnings.Guard.Alarm(), e.Time)
}

// isChange reports whether an event belongs into the history of changes. Items change too often.
func isChange(b eventlog.Body) bool {
	switch b.(type) {
	case *eventlog.ItemsChanged:
		return false
	case *eventlog.LearnerSwapped, *eventlog.RelearningEnded:
		return true
	}
	return eventlog.IsCommand(b)
}

// History returns the entries of a placement's changes, the latest first, and its alarms.
func (p *Placement) History() (changes []uint64, alarms []api.PastAlarm) {
	changes = slices.Clone(p.changes)
	slices.Reverse(changes)
	return changes, p.alarms.Report()
}

func (p *persisted) historyFields(f *fields.Fields) {
	fields.Integers(f, &p.changes)
	p.alarms.Fields(f)
	fields.Ascending(f, "changes", p.changes, func(entry *uint64) uint64 { return *entry })
	f.Check(len(p.changes) <= maxChanges, "a history of %d changes", len(p.changes))
}
