package learner

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"vitrine"
	"vitrine/internal/state"
	"vitrine/service/api"
	"vitrine/service/setup"
)

// State is a saved learner: a checkpoint, and the tasks after it.
type State struct {
	Progress        // of the checkpoint
	Data     []byte // of the vitrine.Learner
	kept     []kept
	since    []task // done since, and then those that wait
	from     uint64 // of its replay, 0 if there is none
}

// newCheckpoint returns the state at this point if the one in the queue is older, nil otherwise. A broken learner needs no tasks.
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
	s.from = l.replaying.From
	s.since = slices.DeleteFunc(slices.Concat(s.since, l.tasks), func(t task) bool { return t.what == toCall })
	return s
}

// Freeze asks the learner to save itself after all tasks up to now, and to send its state to the channel. A learner that has ended
// sends nothing. Of several requests with once, of which the first is still in the queue, the others get nothing either.
func (l *Learner) Freeze(once bool) <-chan State {
	saved := make(chan State, 1)
	freeze := func() {
		defer close(saved)
		l.asked.Store(false)
		if !l.isStopped() {
			l.save()
			saved <- l.state()
		}
	}
	if once && l.asked.Swap(true) || !l.push(task{what: toCall, call: freeze}) {
		close(saved)
	}
	return saved
}

// IsBehind reports whether there are tasks after the checkpoint.
func (s *State) IsBehind() bool { return len(s.since) > 0 }

// Needs returns the first log entry that the tasks read, [math.MaxUint64] if there is none.
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

// Encode writes the state.
func (s *State) Encode(e *state.Encoder) {
	for _, v := range []uint64{s.Entry, s.Learned, s.Skipped, s.Forgotten} {
		e.Uint64(v)
	}
	e.Flag(s.Broken)
	e.Flag(s.Retired)
	e.String(s.Problem)
	e.String(string(s.Data))
	e.Count(len(s.kept))
	for _, k := range s.kept {
		e.Uint64(k.version)
		e.Uint64(k.learned)
		e.String(string(k.data))
	}
	e.Count(len(s.since))
	for i := range s.since {
		s.since[i].encode(e)
	}
	e.Uint64(s.from)
}

func (s *State) decode(d *state.Decoder, spec *setup.Spec) {
	for _, v := range []*uint64{&s.Entry, &s.Learned, &s.Skipped, &s.Forgotten} {
		*v = d.Uint64()
	}
	s.Broken, s.Retired, s.Problem, s.Data = d.Flag(), d.Flag(), d.String(), []byte(d.String())
	for n := d.Count(); n > 0 && d.Err() == nil; n-- {
		s.kept = append(s.kept, kept{version: d.Uint64(), learned: d.Uint64(), data: []byte(d.String())})
	}
	for n := d.Count(); n > 0 && d.Err() == nil; n-- {
		t, err := decodeTask(d, spec)
		if s.since = append(s.since, t); err != nil {
			d.Fail(err)
		}
	}
	s.from = d.Uint64()
	if s.Retired && (s.Broken || len(s.Data) > 0) {
		d.Fail(errors.New("a learner that has retired has a state"))
	}
	if s.from == 0 && slices.ContainsFunc(s.since, func(t task) bool { return t.what == toFollow || t.what == toEndReplay }) {
		d.Fail(errors.New("a learner follows the log from no entry on"))
	}
}

// Restore builds a learner of a configuration with a state that [State.Encode] has written. If the state cannot be read and beginAgain says so,
// the learner begins again, and so do its versions.
func Restore(d *state.Decoder, build Build, c *setup.Config, beginAgain bool) (*Learner, error) {
	var s State
	spec := c.Spec()
	if s.decode(d, &spec); d.Err() != nil {
		return nil, d.Err()
	}
	return restore(&s, build, c, beginAgain)
}

func restore(s *State, build Build, c *setup.Config, beginAgain bool) (*Learner, error) {
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

func (t *task) encode(e *state.Encoder) {
	e.Count(int(t.what))
	e.Uint64(t.entry)
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

func (g *Gap) encode(e *state.Encoder) {
	for _, v := range []uint64{g.After, g.From, g.Rounds, g.Doubtful[0], g.Doubtful[1]} {
		e.Uint64(v)
	}
	if e.Flag(g.Only != nil); g.Only != nil {
		e.Count(len(g.Only))
		for _, variant := range g.Only {
			e.String(variant)
		}
	}
}

func decodeGap(d *state.Decoder) *Gap {
	g := &Gap{After: d.Uint64(), From: d.Uint64(), Rounds: d.Uint64(), Doubtful: [2]uint64{d.Uint64(), d.Uint64()}}
	if d.Flag() {
		g.Only = []string{}
		for n := d.Count(); n > 0 && d.Err() == nil; n-- {
			g.Only = append(g.Only, d.String())
		}
	}
	return g
}

func decodeTask(d *state.Decoder, spec *setup.Spec) (task, error) {
	t := task{what: what(min(d.Count(), 255)), entry: d.Uint64()}
	switch t.what {
	case toObserve:
	case toKeep, toForget, toReturn, toRetire, toFollow, toEndReplay:
		t.version = d.Uint64()
		return t, nil
	case toCatchUp:
		t.gap = decodeGap(d)
		return t, nil
	default:
		return t, fmt.Errorf("snapshot has task %d of a learner", t.what)
	}
	t.bytes = d.Count()
	n, rows := d.Count(), d.FloatSlice()
	if width := spec.Features; len(rows)%width != 0 || len(rows)/width != n {
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
	if k > n || k > spec.Size {
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
