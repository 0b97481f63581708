package decision

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/state"
	"vitrine/service/setup"
)

// encode writes a task after a learner's checkpoint.
func (t *task) encode(e *state.Encoder) {
	e.Count(int(t.what))
	e.Uint64(t.sequence)
	if t.what == toCatchUp {
		t.gap.encode(e)
		return
	}
	if t.what != toObserve {
		e.Uint64(t.version)
		return
	}
	e.Count(t.bytes)
	x := t.round.Context
	if x.Features == nil {
		e.Count(0)
		e.Floats(nil)
	} else {
		e.Count(x.NumItems())
		e.Floats(x.Features.RawMatrix().Data)
	}
	e.Flag(x.Revenue != nil)
	if x.Revenue != nil {
		e.Floats(x.Revenue)
	}
	e.Count(len(t.round.Offer.Order))
	for _, i := range t.round.Offer.Order {
		e.Count(i)
	}
	e.Float(t.round.Offer.Propensity)
	e.Count(int(t.round.Choice))
}

func (g *gap) encode(e *state.Encoder) {
	for _, v := range []uint64{g.after, g.from, g.rounds, g.doubtful[0], g.doubtful[1]} {
		e.Uint64(v)
	}
	if e.Flag(g.only != nil); g.only != nil {
		e.Count(len(g.only))
		for _, variant := range g.only {
			e.String(variant)
		}
	}
}

func restoreGap(d decoder) *gap {
	g := &gap{backlog: backlog{d.Uint64(), d.Uint64(), d.Uint64()}, doubtful: [2]uint64{d.Uint64(), d.Uint64()}}
	if d.Flag() {
		g.only = []string{}
		for range d.Count() {
			if d.Err() != nil {
				break
			}
			g.only = append(g.only, d.String())
		}
	}
	return g
}

// restoreSince reads the tasks after the checkpoint.
func (f *frozenWorker) restoreSince(d decoder, c *setup.Config) {
	for range d.Count() {
		t, err := restoreTask(d, c)
		if err = cmp.Or(d.Err(), err); err != nil {
			d.Fail(err)
			return
		}
		f.since = append(f.since, t)
	}
}

func restoreTask(d decoder, c *setup.Config) (task, error) {
	t := task{what: whatTask(min(d.Count(), 255)), sequence: d.Uint64()}
	switch t.what {
	case toObserve:
	case toKeep, toForget, toReturn, toRetire, toFollow, toEndHistory:
		t.version = d.Uint64()
		return t, nil
	case toCatchUp:
		t.gap = restoreGap(d)
		t.gap.config = c
		return t, nil
	default:
		return t, fmt.Errorf("snapshot has task %d of a learner", t.what)
	}
	t.bytes = d.Count()
	n, rows := d.Count(), d.FloatSlice()
	if width := c.Schema().Width(); len(rows)%width != 0 || len(rows)/width != n {
		return t, fmt.Errorf("snapshot has a round of %d items with %d numbers, of %d each", n, len(rows), width)
	}
	x := new(vitrine.Context)
	if n > 0 {
		x.Features = mat.NewDense(n, len(rows)/n, rows)
	}
	if d.Flag() {
		x.Revenue = make([]float64, n)
		d.Floats(x.Revenue)
	}
	k := d.Count()
	if k > n || k > c.MaxSize {
		return t, fmt.Errorf("snapshot has a round that shows %d of %d items", k, n)
	}
	order := make([]int, k)
	for i := range order {
		if order[i] = d.Count(); order[i] >= n || slices.Contains(order[:i], order[i]) {
			return t, fmt.Errorf("snapshot has a round that shows item %d of %d", order[i], n)
		}
	}
	s := vitrine.Assortment(slices.Sorted(slices.Values(order)))
	t.round = vitrine.Round{Context: x, Offer: vitrine.Offer{Assortment: s, Order: order, Propensity: d.Float()}, Choice: vitrine.Choice(d.Count())}
	if int(t.round.Choice) > k {
		return t, errors.New("snapshot has a round in which an item was chosen that was not shown")
	}
	return t, nil
}

// versions returns the versions kept after all tasks are done.
func (f *frozenWorker) versions() []uint64 {
	v := []uint64{}
	for _, k := range f.kept {
		v = append(v, k.version)
	}
	for _, t := range f.since {
		switch t.what {
		case toKeep:
			v = append(v, t.version)
		case toForget:
			v = slices.DeleteFunc(v, func(number uint64) bool { return number == t.version })
		}
	}
	return v
}
