package decision

import (
	"errors"

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

func (g *guard) numbers() (n numbers) {
	n.count(&g.since, &g.period, &g.entry)
	n.time(&g.start, &g.begun)
	n.sum(&g.predicted)
	n.means(&g.earned, &g.estimated, &g.lead, &g.first, &g.baseline)
	return n
}

func (c *cohort) numbers() (n numbers) {
	n.count(&c.open)
	n.time(&c.number)
	n.sum(&c.predicted)
	n.blocks(&c.earned, &c.estimated, &c.lead, &c.baseline)
	return n
}

func (g *guard) encode(e *state.Encoder) {
	g.numbers().encode(e)
	flag(e, g.late)
	e.Count(len(g.cohorts))
	for _, c := range g.cohorts {
		c.numbers().encode(e)
	}
	a := g.alarm
	if flag(e, a != nil); a != nil {
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
	g.numbers().decode(d)
	g.late = flagged(d.Decoder)
	for range d.Count() {
		if d.Err() != nil {
			return
		}
		c := new(cohort)
		c.numbers().decode(d)
		if n := len(g.cohorts); n > 0 && g.cohorts[n-1].number >= c.number {
			d.Fail(errors.New("the cohorts of a guard are not in order"))
		}
		g.cohorts = append(g.cohorts, c)
	}
	if flagged(d.Decoder) {
		g.alarm = &alarm{check: d.String(), detail: d.String(), time: int64(d.Uint64()), entry: d.Uint64(), version: d.Uint64()}
	}
}
