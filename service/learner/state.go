package learner

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/fields"
	"vitrine/service/api"
	"vitrine/service/offer"
	"vitrine/service/setup"
)

// newCheckpoint returns the present state, or nil if the queue holds the same one. A broken learner needs no tasks.
func (l *Learner) newCheckpoint() *State {
	if !l.marked && !l.progress.Broken {
		return nil
	}
	l.marked = false
	s := l.state()
	return &s
}

// state returns the state at the checkpoint, which is that at this point.
func (l *Learner) state() State {
	return State{Progress: l.progress, Data: l.checkpoint, kept: slices.Clone(l.kept), from: l.replaying.From}
}

// View returns the state after all tasks up to now. It does not wait for the learner.
func (l *Learner) View() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.saved
	s.from, s.ordering = l.replaying.From, l.ordering.clone()
	s.since = slices.DeleteFunc(slices.Concat(s.since, l.tasks), func(t task) bool { return t.what == toCall })
	return s
}

// Freeze asks the learner to save itself after all present tasks, and to send its state to the channel. An ended
// learner sends no state, nor does a request with once while an earlier one is still queued.
func (l *Learner) Freeze(once bool) <-chan State {
	saved := make(chan State, 1)
	var o ordering
	l.holding(func() { o = l.ordering.clone() })
	freeze := func() {
		defer close(saved)
		l.asked.Store(false)
		if !l.isStopped() {
			l.save()
			s := l.state()
			s.ordering = o
			saved <- s
		}
	}
	if once && l.asked.Swap(true) || !l.push(task{what: toCall, call: freeze}) {
		close(saved)
	}
	return saved
}

// IsBehind reports whether there are tasks after the checkpoint.
func (s *State) IsBehind() bool { return len(s.since) > 0 }

// Needs returns the first log entry that the tasks read, or [math.MaxUint64].
func (s State) Needs() uint64 {
	first := uint64(math.MaxUint64)
	if s.from > 0 {
		first = s.from
	}
	for _, t := range s.since {
		if t.gap != nil {
			first = min(first, t.gap.From)
		}
	}
	return first
}

// Versions returns the versions that are kept after all tasks.
func (s State) Versions() []uint64 {
	v := []uint64{}
	for _, k := range s.kept {
		v = append(v, k.version)
	}
	for _, t := range s.since {
		switch t.what {
		case toKeep:
			v = append(v, t.version)
		case toForget:
			v = slices.DeleteFunc(v, func(number uint64) bool { return number == t.version })
		}
	}
	return v
}

// Fields passes over the state.
func (s *State) Fields(f *fields.Fields) {
	f.Uvarint(&s.Entry, &s.Learned, &s.Skipped, &s.Since, &s.Forgotten)
	f.Flag(&s.Broken, &s.Retired)
	f.String(&s.Problem)
	f.Bytes(&s.Data)
	fields.List(f, &s.kept, func(k *kept, f *fields.Fields) {
		f.Uvarint(&k.version, &k.learned)
		f.Bytes(&k.data)
	})
	fields.List(f, &s.since, (*task).fields)
	f.Uvarint(&s.from)
	s.ordering.fields(f)
	f.Check(!s.Retired || !s.Broken && len(s.Data) == 0, "a learner that has retired has a state")
	f.Check(s.from > 0 || !slices.ContainsFunc(s.since, func(t task) bool {
		return t.what == toFollow || t.what == toEndReplay
	}), "a learner follows the log from no entry on")
}

func (t *task) fields(f *fields.Fields) {
	what := t.what
	if what == toObserve && len(t.round.More) > 0 {
		what = toObserveBasket
	}
	f.Byte((*byte)(&what))
	f.Uvarint(&t.entry)
	if f.Reads() {
		if t.what = what; what == toObserveBasket {
			t.what = toObserve
		}
	}
	switch what {
	case toObserve, toObserveBasket:
		f.Count(&t.bytes)
		if roundFields(f, &t.round); what == toObserveBasket {
			moreFields(f, &t.round)
		}
	case toKeep, toForget, toReturn, toRetire, toEndReplay:
		f.Uvarint(&t.version)
	case toSkip:
		f.Uvarint(&t.rounds)
	case toFollow:
		fields.List(f, &t.outages, (*Outage).Fields)
	case toCatchUp:
		if f.Reads() {
			t.gap = new(Gap)
		}
		t.gap.fields(f)
	default:
		f.Fail(fmt.Errorf("task %d of a learner", t.what))
	}
}

// roundFields passes over a round. Its assortment follows from its order.
func roundFields(f *fields.Fields, r *vitrine.Round) {
	if f.Reads() {
		r.Context = new(vitrine.Context)
	}
	x, o := r.Context, &r.Offer
	var rows []float64
	n := x.NumItems()
	if n > 0 && x.Features != nil {
		rows = x.Features.RawMatrix().Data
	}
	f.Count(&n)
	f.Floats(&rows)
	f.Floats(&x.Revenue)
	fields.Integers(f, &o.Order)
	f.Float(&o.Propensity)
	f.Count((*int)(&r.Choice))
	if !f.Reads() {
		return
	}
	f.Check(n == 0 && len(rows) == 0 || n > 0 && len(rows) > 0 && len(rows)%n == 0,
		"a round of %d items with %d numbers", n, len(rows))
	f.Check(x.Revenue == nil || len(x.Revenue) == n, "a round of %d items with %d revenues", n, len(x.Revenue))
	f.Check(int(r.Choice) <= len(o.Order), "a round in which an item was chosen that was not shown")
	if f.Err() != nil {
		return
	}
	if n > 0 {
		x.Features = mat.NewDense(n, len(rows)/n, rows)
	}
	o.Assortment = slices.Sorted(slices.Values(o.Order))
	if err := o.Assortment.Check(n); err != nil {
		f.Fail(fmt.Errorf("a round that shows %v: %w", o.Order, err))
	}
}

// moreFields passes over the further choices of a round.
func moreFields(f *fields.Fields, r *vitrine.Round) {
	fields.Integers(f, &r.More)
	f.Check(len(r.More) > 0 && len(r.More) < offer.MaxTakes, "a round with %d further choices", len(r.More))
	for _, c := range r.More {
		f.Check(c > 0 && int(c) <= len(r.Offer.Order) && r.Choice > 0, "a round in which item %d was chosen, "+
			"after item %d, of %d", c, r.Choice, len(r.Offer.Order))
	}
}

// Fields passes over the outage.
func (o *Outage) Fields(f *fields.Fields) {
	f.Uvarint(&o.After, &o.UpTo)
	o.Doubtful.Fields(f)
}

func (g *Gap) fields(f *fields.Fields) {
	f.Uvarint(&g.After, &g.From, &g.Rounds)
	g.Doubtful.Fields(f)
	hasOnly := g.Only != nil
	if f.Flag(&hasOnly); hasOnly {
		if f.Strings(&g.Only); g.Only == nil {
			g.Only = []string{}
		}
	}
}

// fit returns an error if the queued rounds do not suit a configuration.
func (s *State) fit(spec *setup.Spec) error {
	tasks := slices.Clone(s.since)
	for _, h := range s.ordering.held {
		tasks = append(tasks, h.task)
	}
	for _, t := range tasks {
		if t.what != toObserve {
			continue
		}
		if x := t.round.Context.Features; x != nil && x.RawMatrix().Cols != spec.Features {
			return fmt.Errorf("the state has a round of items with %d numbers, of %d each", x.RawMatrix().Cols,
				spec.Features)
		}
		if k := len(t.round.Offer.Order); k > spec.Size {
			return fmt.Errorf("the state has a round that shows %d items, at most %d are possible", k, spec.Size)
		}
	}
	return nil
}

// Restore builds a learner of a configuration with a state. If the state's data are unreadable and beginAgain is set,
// the learner and its versions begin again.
func Restore(s *State, build Build, c *setup.Config, beginAgain bool) (*Learner, error) {
	spec := c.Spec()
	if err := s.fit(&spec); err != nil {
		return nil, err
	}
	l, err := New(build, c)
	if err != nil {
		return nil, err
	}
	if err := l.read(s, beginAgain); err != nil {
		return nil, err
	}
	l.progress, l.kept, l.checkpoint = s.Progress, s.kept, s.Data
	if s.Retired {
		l.retire()
	}
	l.progress.Broken = false // its last good policy decides
	l.publish()
	l.progress.Broken, l.marked = s.Broken, true
	l.show("")
	l.replaying = Replaying{From: s.from, Reached: s.Entry, UpTo: s.Entry}
	l.ordering = s.ordering
	l.saved = *l.newCheckpoint()
	for _, t := range s.since {
		l.add(t)
	}
	return l, nil
}

// read restores the learner of a state, or changes the state to one that begins again.
func (l *Learner) read(s *State, beginAgain bool) error {
	restored, err := l.restored(s.Data)
	switch {
	case s.Retired: // and needs no state
	case err == nil:
		l.learner = restored
	case !beginAgain:
		return err
	default:
		s.Forgotten, s.Learned, s.Broken = s.Forgotten+s.Learned, 0, false
		s.Problem = api.Abbreviate(fmt.Sprintf("its state could not be read, and it began again: %v", err), MaxProblem)
		s.Data = l.checkpoint
	}
	for i, k := range s.kept {
		if !beginAgain {
			break
		}
		if _, err := l.restored(k.data); err != nil {
			s.kept[i].learned, s.kept[i].data = 0, l.checkpoint
		}
	}
	return nil
}
