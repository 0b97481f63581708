package decision

import (
	"vitrine/internal/state"
	"vitrine/service/api"
)

// era is a time in which a placement decided in one way. A decision belongs to the era in which it was made.
type era struct {
	entry      uint64 // that began it
	time       int64  // 0 if it began with a snapshot of an earlier program
	began      string // api.BegunByMode, …
	mode       string
	experiment string // its name, in the mode "experiment"
	decisions  uint64
	groups     [3]api.Group // offer.ByPolicy, offer.ByChance, offer.ByBaseline
	shadow     api.Comparison
}

// maxEras is how many eras a placement remembers.
const maxEras = 20

// turn begins an era.
func (p *placement) turn(sequence uint64, time int64, began string) {
	e := &era{entry: sequence, time: time, began: began, mode: p.config.Mode}
	if p.config.Experiment != nil {
		e.experiment = p.config.Experiment.Name
	}
	p.eras = append(p.eras, e)
	p.eras = p.eras[max(0, len(p.eras)-maxEras):]
}

// eraOf returns the era of a decision by the entry of its offer, nil if it is not remembered.
func (p *placement) eraOf(entry uint64) *era {
	for i := len(p.eras) - 1; i >= 0; i-- {
		if p.eras[i].entry < entry {
			return p.eras[i]
		}
	}
	return nil
}

func (e *era) report() api.Era {
	r := api.Era{Entry: e.entry, Began: e.began, Mode: e.mode, Experiment: e.experiment, Decisions: e.decisions, ByPolicy: e.groups[0], ByChance: e.groups[1], ByBaseline: e.groups[2]}
	if e.time != 0 {
		r.Time = timeOf(e.time)
	}
	if e.shadow.Rounds > 0 {
		r.Shadow = new(e.shadow)
	}
	return r
}

func (e *era) numbers() (n state.Numbers) {
	n.Integers(&e.entry, &e.decisions)
	n.Times(&e.time)
	comparison(&n, &e.shadow)
	groups(&n, e.groups[:])
	return n
}

func (e *era) encode(w *state.Encoder) {
	e.numbers().Encode(w)
	w.String(e.began)
	w.String(e.mode)
	w.String(e.experiment)
}

func (e *era) decode(d decoder) {
	e.numbers().Decode(d.Decoder)
	e.began, e.mode, e.experiment = d.String(), d.String(), d.String()
}
