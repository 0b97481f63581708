package earnings

import (
	"time"

	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/offer"
)

// Eras lists the last periods in which a placement decided in one way, oldest first. A decision belongs to the era in
// which it was made.
type Eras []era

type era struct {
	entry      uint64 // log entry that began it
	time       int64
	began      string // api.BegunByMode, …
	mode       string
	experiment string // name of the experiment, in the mode "experiment"
	decisions  uint64
	groups     [3]offer.Totals // by policy, by chance, by baseline
	shadow     api.Comparison
}

// maxEras is the number of eras that a placement remembers.
const maxEras = 20

// Begin starts an era at an entry. experiment is a name or "".
func (l *Eras) Begin(entry uint64, time int64, began, mode, experiment string) {
	*l = append(*l, era{entry: entry, time: time, began: began, mode: mode, experiment: experiment})
	*l = (*l)[max(0, len(*l)-maxEras):]
}

// of returns a decision's era, given its offer's entry, or nil if the era is forgotten.
func (l Eras) of(entry uint64) *era {
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].entry < entry {
			return &l[i]
		}
	}
	return nil
}

// Report returns the eras for the statistics.
func (l Eras) Report() []api.Era {
	list := make([]api.Era, len(l))
	for i := range l {
		e, g := &l[i], &l[i].groups
		list[i] = api.Era{Entry: e.entry, Time: time.Unix(0, e.time).UTC(), Began: e.began, Mode: e.mode,
			Experiment: e.experiment, Decisions: e.decisions, ByPolicy: g[0].Report(), ByChance: g[1].Report(),
			ByBaseline: g[2].Report()}
		if e.shadow.Rounds > 0 {
			list[i].Shadow = new(e.shadow)
		}
	}
	return list
}

func (e *era) fields(f *fields.Fields) {
	f.Uvarint(&e.entry, &e.decisions)
	f.Int64(&e.time)
	f.String(&e.began, &e.mode, &e.experiment)
	comparison(f, &e.shadow)
	offer.GroupFields(f, e.groups[:])
}

func (l *Eras) fields(f *fields.Fields) {
	fields.List(f, (*[]era)(l), (*era).fields)
	f.Check(len(*l) <= maxEras, "%d eras", len(*l))
}
