package decision

import (
	"errors"

	"vitrine/internal/confseq"
	"vitrine/internal/state"
)

// copy returns the guard of a snapshot, which the writer does not change.
func (g *guard) copy() guard {
	c := *g
	c.cohorts = make([]*cohort, len(g.cohorts))
	for i, from := range g.cohorts {
		own := *from
		c.cohorts[i] = &own
	}
	return c
}

func (g *guard) numbers() (n state.Numbers) {
	n.Integers(&g.since, &g.period, &g.entry)
	n.Times(&g.start, &g.begun)
	n.Floats(&g.predicted)
	confseq.Means(&n, &g.earned, &g.estimated, &g.lead, &g.first, &g.baseline)
	return n
}

func (c *cohort) numbers() (n state.Numbers) {
	n.Integers(&c.open)
	n.Times(&c.number)
	n.Floats(&c.predicted)
	confseq.Blocks(&n, &c.earned, &c.estimated, &c.lead, &c.baseline)
	return n
}

func (g *guard) encode(e *state.Encoder) {
	g.numbers().Encode(e)
	e.Flag(g.late)
	e.Count(len(g.cohorts))
	for _, c := range g.cohorts {
		c.numbers().Encode(e)
	}
	a := g.alarm
	if e.Flag(a != nil); a != nil {
		e.String(a.check)
		e.String(a.detail)
		e.Uint64(uint64(a.time))
		e.Uint64(a.entry)
		e.Uint64(a.version)
	}
}

// decode reads a guard of a snapshot, which in earlier formats begins after the snapshot's last entry.
func (g *guard) decode(d decoder, last uint64) {
	if d.format < 10 {
		g.late = true
		g.restart(last)
		return
	}
	g.numbers().Decode(d.Decoder)
	g.late = d.Flag()
	for range d.Count() {
		if d.Err() != nil {
			return
		}
		c := new(cohort)
		c.numbers().Decode(d.Decoder)
		if n := len(g.cohorts); n > 0 && g.cohorts[n-1].number >= c.number {
			d.Fail(errors.New("the cohorts of a guard are not in order"))
		}
		g.cohorts = append(g.cohorts, c)
	}
	if d.Flag() {
		g.alarm = &alarm{check: d.String(), detail: d.String(), time: int64(d.Uint64()), entry: d.Uint64(), version: d.Uint64()}
	}
}
