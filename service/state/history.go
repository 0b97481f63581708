package state

import (
	"slices"
	"time"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/eventlog"
)

const (
	maxChanges = 100
	maxAlarms  = 50
)

// pastAlarm is an alarm of a placement's guard.
type pastAlarm struct {
	check, detail string
	chance        float64
	began, ended  int64 // the second one once it is over
	entry         uint64
	over          bool
}

// follow remembers an entry that an operator may ask about, and the alarm that is in force after it.
func (p *Placement) follow(sequence uint64, e *eventlog.Event) {
	if isChange(e.Body) {
		p.changes = append(p.changes, sequence)
		p.changes = p.changes[max(0, len(p.changes)-maxChanges):]
	}
	now := p.Earnings.Guard.Alarm()
	if n := len(p.alarms); n > 0 && !p.alarms[n-1].over {
		last := &p.alarms[n-1]
		if now != nil && now.Entry == last.entry && now.Check == last.check {
			return
		}
		last.ended, last.over = e.Time, true
	}
	if now == nil {
		return
	}
	p.alarms = append(p.alarms, pastAlarm{check: now.Check, detail: now.Detail, chance: now.Chance, began: now.Time.UnixNano(), entry: now.Entry})
	p.alarms = p.alarms[max(0, len(p.alarms)-maxAlarms):]
}

// isChange reports whether an event belongs into the history of changes. Items change too often, and have prices of
// their own.
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
	alarms = []api.PastAlarm{}
	for _, a := range slices.Backward(p.alarms) {
		past := api.PastAlarm{Check: a.check, Detail: a.detail, Chance: a.chance, Began: time.Unix(0, a.began).UTC()}
		if a.over {
			past.Ended = new(time.Unix(0, a.ended).UTC())
		}
		alarms = append(alarms, past)
	}
	return changes, alarms
}

func (a *pastAlarm) fields(f *fields.Fields) {
	f.String(&a.check, &a.detail)
	f.Float(&a.chance)
	f.Int64(&a.began, &a.ended)
	f.Uvarint(&a.entry)
	f.Flag(&a.over)
}

func (p *persisted) historyFields(f *fields.Fields) {
	fields.Integers(f, &p.changes)
	fields.List(f, &p.alarms, (*pastAlarm).fields)
	fields.Ascending(f, "changes", p.changes, func(entry *uint64) uint64 { return *entry })
	f.Check(len(p.changes) <= maxChanges && len(p.alarms) <= maxAlarms, "a history of %d changes and %d alarms", len(p.changes), len(p.alarms))
}
