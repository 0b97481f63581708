package earnings

import (
	"slices"
	"time"

	"vitrine/internal/fields"
	"vitrine/service/api"
)

const maxAlarms = 50

// Alarms are the last alarms of a placement's guard, the oldest first.
type Alarms []pastAlarm

type pastAlarm struct {
	check, detail string
	chance        float64
	began, ended  int64 // the second one once it is over
	entry         uint64
	over          bool
}

// Follow notes the alarm that is in force from a time on; nil means that no alarm is.
func (a *Alarms) Follow(now *api.Alarm, time int64) {
	if n := len(*a); n > 0 && !(*a)[n-1].over {
		last := &(*a)[n-1]
		if now != nil && now.Entry == last.entry && now.Check == last.check {
			return
		}
		last.ended, last.over = time, true
	}
	if now == nil {
		return
	}
	*a = append(*a, pastAlarm{check: now.Check, detail: now.Detail, chance: now.Chance, began: now.Time.UnixNano(),
		entry: now.Entry})
	*a = (*a)[max(0, len(*a)-maxAlarms):]
}

// Report returns the alarms, the latest first.
func (a Alarms) Report() []api.PastAlarm {
	list := []api.PastAlarm{}
	for _, a := range slices.Backward(a) {
		past := api.PastAlarm{Check: a.check, Detail: a.detail, Chance: a.chance, Began: time.Unix(0, a.began).UTC()}
		if a.over {
			past.Ended = new(time.Unix(0, a.ended).UTC())
		}
		list = append(list, past)
	}
	return list
}

// Fields passes over the alarms in a snapshot.
func (a *Alarms) Fields(f *fields.Fields) {
	fields.List(f, (*[]pastAlarm)(a), func(a *pastAlarm, f *fields.Fields) {
		f.String(&a.check, &a.detail)
		f.Float(&a.chance)
		f.Int64(&a.began, &a.ended)
		f.Uvarint(&a.entry)
		f.Flag(&a.over)
	})
	f.Check(len(*a) <= maxAlarms, "a history of %d alarms", len(*a))
}
