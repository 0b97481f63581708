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

func (g *guard) numbers() (integers []*uint64, times []*int64, floats []*float64) {
	integers, times, floats = []*uint64{&g.since, &g.period, &g.entry}, []*int64{&g.start, &g.begun}, []*float64{&g.predicted}
	for _, m := range []*confseq.Mean{&g.earned, &g.estimated, &g.lead, &g.first, &g.baseline} {
		integers = append(integers, &m.N)
		floats = append(floats, &m.Sum, &m.Squares, &m.First, &m.Bound)
	}
	return integers, times, floats
}

func (c *cohort) numbers() (integers []*uint64, times []*int64, floats []*float64) {
	integers, times, floats = []*uint64{&c.open}, []*int64{&c.number}, []*float64{&c.predicted}
	for _, b := range []*confseq.Block{&c.earned, &c.estimated, &c.lead, &c.baseline} {
		integers = append(integers, &b.N)
		floats = append(floats, &b.Centre, &b.Sum, &b.Squares, &b.First, &b.Bound)
	}
	return integers, times, floats
}

func encodeNumbers(e *state.Encoder, integers []*uint64, times []*int64, floats []*float64) {
	for _, v := range integers {
		e.Uint64(*v)
	}
	for _, v := range times {
		e.Uint64(uint64(*v))
	}
	for _, v := range floats {
		e.Float(*v)
	}
}

func decodeNumbers(d decoder, integers []*uint64, times []*int64, floats []*float64) {
	for _, v := range integers {
		*v = d.Uint64()
	}
	for _, v := range times {
		*v = int64(d.Uint64())
	}
	for _, v := range floats {
		*v = d.Float()
	}
}

func (g *guard) encode(e *state.Encoder) {
	integers, times, floats := g.numbers()
	encodeNumbers(e, integers, times, floats)
	flag(e, g.late)
	e.Count(len(g.cohorts))
	for _, c := range g.cohorts {
		integers, times, floats := c.numbers()
		encodeNumbers(e, integers, times, floats)
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
	integers, times, floats := g.numbers()
	decodeNumbers(d, integers, times, floats)
	g.late = flagged(d.Decoder)
	for range d.Count() {
		if d.Err() != nil {
			return
		}
		c := new(cohort)
		integers, times, floats := c.numbers()
		decodeNumbers(d, integers, times, floats)
		if n := len(g.cohorts); n > 0 && g.cohorts[n-1].number >= c.number {
			d.Fail(errors.New("the cohorts of a guard are not in order"))
		}
		g.cohorts = append(g.cohorts, c)
	}
	if flagged(d.Decoder) {
		g.alarm = &alarm{check: d.String(), detail: d.String(), time: int64(d.Uint64()), entry: d.Uint64(), version: d.Uint64()}
	}
}
