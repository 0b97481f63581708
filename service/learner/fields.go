package learner

import (
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/service/setup"
)

// Fields passes over the state's fields.
func (s *State) Fields(f *fields.Fields) {
	f.Uvarint(&s.Entry, &s.Learned, &s.Skipped, &s.Forgotten, &s.from)
	f.Flag(&s.Broken, &s.Retired)
	f.String(&s.Problem)
	f.Bytes(&s.Data)
	fields.List(f, &s.kept, (*kept).fields)
	fields.List(f, &s.since, (*task).fields)
	f.Check(!s.Retired || !s.Broken && len(s.Data) == 0, "a learner that has retired has a state")
	f.Check(s.from > 0 || !slices.ContainsFunc(s.since, func(t task) bool { return t.what == toFollow || t.what == toEndReplay }), "a learner follows the log from no entry on")
}

func (k *kept) fields(f *fields.Fields) {
	f.Uvarint(&k.version, &k.learned)
	f.Bytes(&k.data)
}

func (t *task) fields(f *fields.Fields) {
	f.Byte((*byte)(&t.what))
	f.Check(t.what <= toCatchUp && t.what != toCall, "task %d of a learner", t.what)
	f.Uvarint(&t.entry, &t.version)
	switch t.what {
	case toObserve:
		f.Count(&t.bytes)
		roundFields(f, &t.round)
	case toCatchUp:
		if f.Reads() {
			t.gap = new(Gap)
		}
		t.gap.fields(f)
	}
}

func (g *Gap) fields(f *fields.Fields) {
	f.Uvarint(&g.After, &g.From, &g.Rounds, &g.Doubtful[0], &g.Doubtful[1])
	all := g.Only == nil
	if f.Flag(&all); !all {
		f.Strings(&g.Only)
	}
	if f.Reads() && !all && g.Only == nil {
		g.Only = []string{}
	}
}

func roundFields(f *fields.Fields, r *vitrine.Round) {
	if f.Reads() {
		r.Context = new(vitrine.Context)
	}
	x, n, choice := r.Context, 0, int(r.Choice)
	var rows []float64
	if x.Features != nil {
		n, rows = x.NumItems(), x.Features.RawMatrix().Data
	}
	f.Count(&n, &choice)
	f.Floats(&rows)
	f.Floats(&x.Revenue)
	fields.Integers(f, &r.Offer.Order)
	f.Float(&r.Offer.Propensity)
	if !f.Reads() {
		return
	}
	s := slices.Sorted(slices.Values(r.Offer.Order))
	k := len(s)
	f.Check((n == 0) == (len(rows) == 0) && (n == 0 || len(rows)%n == 0), "a round of %d items with %d numbers", n, len(rows))
	f.Check(x.Revenue == nil || len(x.Revenue) == n, "a round of %d items with %d revenues", n, len(x.Revenue))
	f.Check(k == 0 || s[k-1] < n && len(slices.Compact(slices.Clone(s))) == k, "a round that shows the items %v of %d", r.Offer.Order, n)
	f.Check(choice <= k, "a round of %d items in which item %d was chosen", k, choice)
	if f.Err() == nil && n > 0 {
		x.Features = mat.NewDense(n, len(rows)/n, rows)
	}
	r.Offer.Assortment, r.Choice = s, vitrine.Choice(choice)
}

// fits checks the rounds of a state that was read to be those of a learner.
func (s *State) fits(f *fields.Fields, spec *setup.Spec) {
	for _, t := range s.since {
		if x := t.round.Context; x != nil && f.Err() == nil {
			shown := len(t.round.Offer.Order)
			f.Check(shown <= spec.Size, "a round that shows %d items, at most %d are possible", shown, spec.Size)
			if x.Features != nil {
				_, width := x.Features.Dims()
				f.Check(width == spec.Features, "a round of items of %d features, not %d", width, spec.Features)
			}
		}
	}
}

// Read builds a learner of a configuration with a state that [State.Fields] has written. If the state cannot be read and beginAgain
// says so, the learner begins again, and so do its versions.
func Read(f *fields.Fields, build Build, c *setup.Config, beginAgain bool) (*Learner, error) {
	var s State
	spec := c.Spec()
	s.Fields(f)
	if s.fits(f, &spec); f.Err() != nil {
		return nil, f.Err()
	}
	return restore(&s, build, c, beginAgain)
}
