package guard

import (
	"errors"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/state"
	"vitrine/service/api"
)

// Copy returns a copy that shares nothing with g.
func (g *Guard) Copy() Guard {
	c := *g
	c.cohorts = make([]*cohort, len(g.cohorts))
	for i, from := range g.cohorts {
		own := *from
		c.cohorts[i] = &own
	}
	if g.Alarm != nil {
		c.Alarm = new(*g.Alarm)
	}
	return c
}

func (g *Guard) numbers() (n state.Numbers) {
	n.Integers(&g.since, &g.period, &g.Entry)
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

// Encode writes the guard to a snapshot.
func (g *Guard) Encode(e *state.Encoder) {
	g.numbers().Encode(e)
	e.Count(len(g.cohorts))
	for _, c := range g.cohorts {
		c.numbers().Encode(e)
	}
	a := g.Alarm
	if e.Flag(a != nil); a != nil {
		e.String(a.Check)
		e.String(a.Detail)
		e.Uint64(uint64(a.Time.UnixNano()))
		e.Uint64(a.Entry)
		e.Uint64(a.Version)
	}
}

// Decode reads the guard of a snapshot.
func (g *Guard) Decode(d *state.Decoder) {
	g.numbers().Decode(d)
	for range d.Count() {
		if d.Err() != nil {
			return
		}
		c := new(cohort)
		c.numbers().Decode(d)
		if n := len(g.cohorts); n > 0 && g.cohorts[n-1].number >= c.number {
			d.Fail(errors.New("the cohorts of a guard are not in order"))
		}
		g.cohorts = append(g.cohorts, c)
	}
	if d.Flag() {
		g.Alarm = &api.Alarm{Check: d.String(), Detail: d.String(), Time: time.Unix(0, int64(d.Uint64())).UTC(), Entry: d.Uint64(), Version: d.Uint64()}
	}
}
