package earnings

import (
	"slices"

	"vitrine/internal/confseq"
	"vitrine/internal/fields"
	"vitrine/service/api"
)

// Copy returns a deep copy.
func (g *Guard) Copy() Guard {
	c := *g
	c.cohorts = g.cohorts.Copy(func(d *guarded) guarded { return *d })
	c.sales.lots = slices.Clone(g.sales.lots)
	for i, l := range c.sales.lots {
		c.sales.lots[i] = copyOf(l)
	}
	c.Earnings, c.Sales = copyOf(g.Earnings), copyOf(g.Sales)
	return c
}

func copyOf[T any](v *T) *T {
	if v == nil {
		return nil
	}
	return new(*v)
}

func (c *guarded) fields(f *fields.Fields) {
	f.Flag(&c.compared)
	f.Float(&c.predicted)
	for _, b := range []*confseq.Block{&c.earned, &c.estimated, &c.lead, &c.baseline} {
		b.Fields(f)
	}
	c.bins.fields(f)
}

func (s *sales) fields(f *fields.Fields) {
	f.Uvarint(&s.watched, &s.taught, &s.judged, &s.day, &s.runs, &s.silent, &s.lasted, &s.back)
	fields.Elements(f, s.delays[:])
	f.Int64(&s.wait, &s.faded, &s.began)
	f.Float(&s.revenue, &s.worth, &s.claimed[0], &s.claimed[1], &s.kept[0], &s.kept[1], &s.frozen, &s.level, &s.rise)
	f.Flag(&s.late)
	for i := range s.today {
		s.today[i].Fields(f)
		s.before[i].Fields(f)
	}
	s.run.fields(f)
	for k := range s.octaves {
		o := &s.octaves[k]
		f.Uvarint(&o.begun)
		o.pair[0].fields(f)
		o.pair[1].fields(f)
	}
	fields.Pointers(f, &s.lots, (*lot).fields)
	fields.Ascending(f, "the lots of a guard", s.lots, func(l **lot) uint64 { return (*l).entry })
}

func (t *stretch) fields(f *fields.Fields) {
	f.Uvarint(&t.entry, &t.n, &t.predicted)
	f.Float(&t.sum, &t.hit, &t.foreseen[0], &t.foreseen[1], &t.rates[0], &t.rates[1])
}

func (l *lot) fields(f *fields.Fields) {
	f.Flag(&l.compared)
	f.Uvarint(&l.entry, &l.n, &l.open, &l.predicted)
	f.Int64(&l.begun, &l.last)
	f.Float(&l.sum[0], &l.sum[1], &l.hits[0], &l.hits[1], &l.foreseen[0], &l.foreseen[1])
}

// Fields encodes or decodes the guard.
func (g *Guard) Fields(f *fields.Fields) {
	f.Flag(&g.keeps, &g.isOver)
	f.Uvarint(&g.since, &g.period, &g.Entry)
	f.Int64(&g.start, &g.began)
	f.Float(&g.predicted)
	for _, m := range []*confseq.Mean{&g.earned, &g.estimated, &g.lead, &g.first, &g.baseline} {
		m.Fields(f)
	}
	g.bins.fields(f)
	g.cohorts.Fields(f, func() (d guarded) { return d }, (*guarded).fields)
	g.sales.fields(f)
	for _, a := range []**api.Alarm{&g.Earnings, &g.Sales} {
		fields.Optional(f, a, func(a *api.Alarm, f *fields.Fields) {
			f.String(&a.Check, &a.Detail)
			f.Time(&a.Time)
			f.Uvarint(&a.Entry, &a.Since, &a.Version)
			f.Float(&a.Chance)
		})
	}
}
