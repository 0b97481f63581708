package guard

import (
	"errors"
	"slices"
	"time"

	"vitrine/internal/confseq"
	"vitrine/internal/state"
	"vitrine/service/api"
)

// Copy returns a copy that shares nothing with g.
func (g *Guard) Copy() Guard {
	c := *g
	c.cohorts, c.sales.lots = copied(g.cohorts), copied(g.sales.lots)
	c.Earnings, c.Sales = copyOf(g.Earnings), copyOf(g.Sales)
	return c
}

func copied[T any](list []*T) []*T {
	own := slices.Clone(list)
	for i := range own {
		own[i] = copyOf(own[i])
	}
	return own
}

func copyOf[T any](v *T) *T {
	if v == nil {
		return nil
	}
	return new(*v)
}

func (g *Guard) numbers() (n state.Numbers) {
	n.Integers(&g.since, &g.period, &g.Entry)
	n.Times(&g.start, &g.begun)
	n.Floats(&g.predicted)
	confseq.Means(&n, &g.earned, &g.estimated, &g.lead, &g.first, &g.baseline)
	g.bins.add(&n)
	return n
}

func (c *cohort) numbers() (n state.Numbers) {
	n.Integers(&c.open)
	n.Times(&c.number)
	n.Floats(&c.predicted)
	confseq.Blocks(&n, &c.earned, &c.estimated, &c.lead, &c.baseline)
	c.bins.add(&n)
	return n
}

// add adds the fields of bins to those of a snapshot.
func (b *bins) add(n *state.Numbers) {
	for i := range b {
		n.Integers(&b[i].Rounds, &b[i].Purchases)
		n.Floats(&b[i].Predicted)
	}
}

func (s *sales) numbers() (n state.Numbers) {
	n.Integers(&s.watched, &s.judged, &s.day, &s.runs, &s.lasted, &s.back)
	n.Counts(s.delays[:])
	n.Times(&s.wait, &s.began)
	n.Floats(&s.revenue, &s.worth, &s.frozen, &s.level, &s.rise)
	for i := range s.today {
		confseq.Means(&n, &s.today[i], &s.before[i])
	}
	s.run.add(&n)
	for k := range s.octaves {
		o := &s.octaves[k]
		n.Integers(&o.begun)
		o.pair[0].add(&n)
		o.pair[1].add(&n)
	}
	return n
}

// add adds the fields of a stretch to those of a snapshot.
func (t *stretch) add(n *state.Numbers) {
	n.Integers(&t.entry, &t.n, &t.predicted)
	n.Floats(&t.sum, &t.hit, &t.foreseen[0], &t.foreseen[1], &t.rates[0], &t.rates[1])
}

func (l *lot) numbers() (n state.Numbers) {
	n.Integers(&l.entry, &l.n, &l.open, &l.predicted)
	n.Times(&l.begun, &l.last)
	n.Floats(&l.sum[0], &l.sum[1], &l.hits[0], &l.hits[1], &l.foreseen[0], &l.foreseen[1])
	return n
}

// Encode writes the guard to a snapshot.
func (g *Guard) Encode(e *state.Encoder) {
	g.numbers().Encode(e)
	e.Count(len(g.cohorts))
	for _, c := range g.cohorts {
		c.numbers().Encode(e)
	}
	g.sales.numbers().Encode(e)
	e.Count(len(g.sales.lots))
	for _, l := range g.sales.lots {
		l.numbers().Encode(e)
	}
	for _, a := range []*api.Alarm{g.Earnings, g.Sales} {
		if e.Flag(a != nil); a != nil {
			e.String(a.Check)
			e.String(a.Detail)
			e.Uint64(uint64(a.Time.UnixNano()))
			e.Uint64(a.Entry)
			e.Uint64(a.Since)
			e.Uint64(a.Version)
		}
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
	g.sales.numbers().Decode(d)
	for range d.Count() {
		if d.Err() != nil {
			return
		}
		l := new(lot)
		l.numbers().Decode(d)
		if n := len(g.sales.lots); n > 0 && g.sales.lots[n-1].entry >= l.entry {
			d.Fail(errors.New("the lots of a guard are not in order"))
		}
		g.sales.lots = append(g.sales.lots, l)
	}
	for _, a := range []**api.Alarm{&g.Earnings, &g.Sales} {
		if d.Flag() {
			*a = &api.Alarm{Check: d.String(), Detail: d.String(), Time: time.Unix(0, int64(d.Uint64())).UTC(), Entry: d.Uint64(), Since: d.Uint64(), Version: d.Uint64()}
		}
	}
}
