package state

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"

	"vitrine/internal/fields"
	"vitrine/service/catalogue"
	"vitrine/service/earnings/abtest"
	"vitrine/service/eventlog"
	"vitrine/service/expiry"
	"vitrine/service/feature"
	"vitrine/service/learner"
	"vitrine/service/offer"
	"vitrine/service/past"
	"vitrine/service/setup"
)

// SnapshotKind names the encoding of a snapshot. Rename it whenever the encoding changes.
const SnapshotKind = "decision engine 20"

// openSnapshot reads the head of a snapshot, and returns the fields of its placements.
func openSnapshot(data []byte) (*Frozen, *fields.Fields, error) {
	s := new(Frozen)
	kind, f, err := fields.Open(data)
	if err != nil {
		return s, nil, err
	}
	if kind != SnapshotKind {
		return s, nil, fields.UnknownFormat("snapshot", strconv.Quote(kind), strconv.Quote(SnapshotKind))
	}
	s.head(f)
	return s, f, f.Err()
}

// head passes over what a snapshot says of itself.
func (s *Frozen) head(f *fields.Fields) {
	f.Uvarint(&s.At.Sequence)
	f.Raw(s.At.Log[:])
	f.Raw(s.At.Hash[:])
	f.Strings(&s.machines)
	f.Uvarint(&s.oldest)
	fields.List(f, &s.relearned, func(r *relearned, f *fields.Fields) { f.Uvarint(&r.begun, &r.from) })
	f.Check(!s.At.Log.IsZero() || s.At.Hash == [16]byte{}, "it names no log, and has a hash of its entries")
	fields.Ascending(f, "the machines", s.machines, func(name *string) string { return *name })
	f.Check(s.oldest > 0 && s.oldest <= s.At.Sequence+1, "a snapshot of entry %d with an open decision of entry %d",
		s.At.Sequence, s.oldest)
	for _, r := range s.relearned {
		f.Check(r.from <= r.begun && r.begun <= s.At.Sequence, "a learner that entry %d began learned from entry %d on",
			r.begun, r.from)
	}
	fields.Ascending(f, "second learners", s.relearned, func(r *relearned) uint64 { return r.begun })
	fields.Ascending(f, "second learners", s.relearned, func(r *relearned) uint64 { return r.from })
}

func (s *Frozen) fields(f *fields.Fields) {
	s.head(f)
	fields.Pointers(f, &s.placements, (*frozenPlacement).fields)
}

func (p *frozenPlacement) fields(f *fields.Fields) {
	f.String(&p.Name)
	f.Uvarint(&p.born, &p.Changed, &p.Learner, &p.lastLogged, &p.learnedThrough, &p.Rows, &p.currentVersion)
	if f.Reads() {
		p.configuration = new(configuration)
	}
	p.configuration.fields(f)
	p.Earnings.Fields(f)
	f.Uvarint(&p.held.After, &p.held.From, &p.held.Rounds)
	fields.List(f, &p.outages, (*learner.Outage).Fields)
	f.Check(len(p.outages) <= maxOutages, "%d outages", len(p.outages))
	p.historyFields(f)
	fields.List(f, &p.moves, (*expiry.Move).Fields)
	fields.List(f, &p.open, (*Record).fields)
	fields.List(f, &p.closed, (*Record).fields)
	fields.Pointers(f, &p.learners, (*frozenLearner).fields)
	fields.Optional(f, &p.relearning, func(r *relearning, f *fields.Fields) {
		f.String(&r.note)
		f.Int64(&r.time)
	})
	fields.List(f, &p.versions, (*version).fields)
	fields.Integers(f, &p.keepers)
	p.itemFields(f)
	f.Strings(&p.past)
	hasExperiment := p.experiment != nil
	if f.Flag(&hasExperiment); f.Reads() && f.Err() == nil {
		f.Check(hasExperiment == (p.configuration.of.Experiment != nil), "the experiment is missing, or there is "+
			"one in another mode")
	}
	if hasExperiment && f.Err() == nil {
		if f.Reads() {
			p.experiment = abtest.Empty(p.configuration.of.Experiment)
		}
		p.experiment.Fields(f)
	}
	holdsOut := p.holdout != nil
	if f.Flag(&holdsOut); f.Reads() && f.Err() == nil {
		f.Check(holdsOut == (p.configuration.of.Holdout > 0),
			"the hold-out is missing, or there is one without a share")
	}
	if holdsOut && f.Err() == nil {
		if f.Reads() {
			p.holdout = abtest.EmptyHoldout(p.configuration.of.Holdout)
		}
		p.holdout.Fields(f)
	}
	fields.Pointers(f, &p.challengers, (*frozenLearner).fields)
	fields.Optional(f, &p.memory, (*past.Frozen).Fields)
	if f.Reads() && f.Err() == nil {
		f.Check((p.memory != nil) == (p.configuration.of.ShopperHistory != nil), "shoppers are remembered without "+
			"a setting, or not with it")
	}
}

// configuration is a configuration in a snapshot.
type configuration struct {
	canonical []byte
	values    []feature.Seen // learned by categories
	of        *setup.Config  // both together
}

func configurationOf(c *setup.Config) *configuration {
	return &configuration{c.Canonical(), c.Schema().Learned(), c}
}

func (c *configuration) fields(f *fields.Fields) {
	f.Bytes(&c.canonical)
	fields.List(f, &c.values, func(s *feature.Seen, f *fields.Fields) {
		f.String(&s.Feature)
		f.Strings(&s.Values)
	})
	if !f.Reads() || f.Err() != nil {
		return
	}
	parsed, err := setup.Parse(c.canonical)
	if err == nil && !bytes.Equal(parsed.Canonical(), c.canonical) {
		err = errors.New("a configuration is not in its canonical form")
	}
	if err == nil {
		c.of, err = parsed.Learn(c.values...)
	}
	f.Fail(err)
}

func (l *frozenLearner) fields(f *fields.Fields) {
	f.Uvarint(&l.began)
	fields.Optional(f, &l.own, (*configuration).fields)
	l.State.Fields(f)
}

func (v *version) fields(f *fields.Fields) {
	f.Uvarint(&v.number, &v.taught, &v.rounds)
	f.Flag(&v.routine)
	f.String(&v.note)
	f.Int64(&v.time)
	f.Float(&v.revenue)
}

// itemFields passes over the catalogue.
func (p *frozenPlacement) itemFields(f *fields.Fields) {
	version, n := uint64(0), 0
	if !f.Reads() {
		version, n = p.items.Version, p.items.Len()
	}
	f.Uvarint(&version)
	if n = f.Length(n, 1); !f.Reads() {
		for record := range p.items.Records() {
			f.String(&record)
			f.Flush()
		}
		return
	}
	if f.Check(n <= catalogue.MaxItems, "a catalogue of %d items", n); f.Err() != nil {
		return
	}
	c, err := catalogue.Restore(p.configuration.of.Schema(), version, func(yield func(string) bool) {
		for range n {
			var record string
			if f.String(&record); f.Err() != nil || !yield(record) {
				return
			}
		}
	})
	var misfit *catalogue.ItemError
	if err != nil && !errors.As(err, &misfit) {
		f.Fail(err)
	}
	p.catalogue = c
}

func (r *Record) fields(f *fields.Fields) {
	f.String(&r.id)
	f.Uvarint(&r.Entry)
	f.Int64(&r.time)
	shown := f.Bounded(int(r.shown), setup.MaxSize)
	choice := f.Bounded(int(r.choice), shown)
	status, basket := byte(r.Status), r.rare().basket
	if basket != nil {
		status |= withBasket
	}
	if f.Byte(&status); f.Reads() {
		r.shown, r.choice, r.Status = uint16(shown), int16(choice), statusOf(f, status&^withBasket)
	}
	f.Check(r.Entry > 0, "decision %q has no entry", r.id)
	f.Check(choice == 0 && status&withBasket == 0 || r.Status == chosen || r.Status == late, "decision %q has "+
		"status %d and choice %d", r.id, status, choice)
	if r.Status.Waits() {
		f.Byte(&r.mode)
		f.Check(r.mode >= offer.ByPolicy && r.mode <= offer.ByImport, "decision %q has the mode %d", r.id, r.mode)
		for i := range r.marks {
			f.Byte(&r.marks[i])
			f.Check(r.marks[i] <= abtest.MaxMark, "decision %q has the mark %d", r.id, r.marks[i])
		}
		r.passedFields(f)
		r.measuredFields(f)
		return
	}
	if status&withBasket != 0 {
		if basket.Fields(f); f.Reads() {
			f.Fail(basket.Check(int32(choice), shown))
			f.Check(basket != nil, "decision %q has an empty basket", r.id)
		}
	}
	list := r.rare().corrections
	fields.List(f, &list, func(c *correction, f *fields.Fields) {
		f.String(&c.id)
		f.Float(&c.value)
		f.Flag(&c.withdraws, &c.adds)
		if place := f.Bounded(int(c.place), shown); f.Reads() {
			c.place = int16(place)
		}
	})
	if !f.Reads() || len(list)+len(basket) == 0 {
		return
	}
	f.Check(len(list) <= maxCorrections, "decision %q has %d corrections", r.id, len(list))
	r.extras = &recordExtras{basket: basket}
	for _, c := range list {
		was, _ := r.took(c.place)
		f.Check(c.id != "" && c.place > 0 && was != c.adds && !(c.adds && c.withdraws) && !r.isWithdrawn(c.place),
			"decision %q has the correction %q after %d others", r.id, c.id, len(r.rare().corrections))
		r.extras.corrections = append(r.extras.corrections, c)
	}
	r.extras.corrections = slices.Clip(r.extras.corrections)
}

// withBasket is added to the status of a decision with a basket.
const withBasket = 0x80

func statusOf(f *fields.Fields, b byte) status {
	f.Check(status(b) <= late, "the status %d of a decision", b)
	return min(status(b), late)
}

// measuredFields passes over measurements.
func (r *Record) measuredFields(f *fields.Fields) {
	list := r.rare().measured
	fields.List(f, &list, (*eventlog.Measurement).Fields)
	if !f.Reads() || len(list) == 0 {
		return
	}
	fields.Ascending(f, "measurements", list, func(m *eventlog.Measurement) string { return m.Name })
	if r.extras == nil {
		r.extras = new(recordExtras)
	}
	r.extras.measured = list
}

// passedFields passes over which of the items shown are reported as not taken, and their rewards.
func (r *Record) passedFields(f *fields.Fields) {
	var places []int
	if r.extras != nil {
		for k, passed := range r.extras.passed {
			if passed {
				places = append(places, k)
			}
		}
	}
	fields.Integers(f, &places)
	if len(places) == 0 {
		return
	}
	reported := r.rare().reported
	if f.Float(&reported); !f.Reads() {
		return
	}
	fields.Ascending(f, "passed items", places, func(k *int) int { return *k })
	f.Check(len(places) < int(r.shown) && places[len(places)-1] < int(r.shown), "decision %q has items %v of %d passed",
		r.id, places, r.shown)
	f.Check(reported >= 0 && reported <= 1 && r.Status == open, "decision %q has %d items passed with a reward of %v",
		r.id, len(places), reported)
	if f.Err() == nil {
		r.extras = &recordExtras{passed: make([]bool, r.shown), reported: reported}
		for _, k := range places {
			r.extras.passed[k] = true
		}
	}
}

// equal reports whether two placements are the same bytes in a snapshot.
func (p *frozenPlacement) equal(other *frozenPlacement) (bool, error) {
	x, y := fields.Snapshot(""), fields.Snapshot("")
	p.fields(x)
	other.fields(y)
	return bytes.Equal(x.Rest(), y.Rest()), cmp.Or(x.Err(), y.Err())
}

// SnapshotPosition returns the position of a snapshot in its log.
func SnapshotPosition(data []byte) (eventlog.Position, error) {
	s, _, err := openSnapshot(data)
	return s.At, err
}

// SnapshotMachines returns the kinds of machines that learned a snapshot's state, as [runtime.GOARCH] names them. The
// same log gives the same state on all machines of a kind; on other kinds the last digits of some policies differ.
func SnapshotMachines(data []byte) ([]string, error) {
	s, _, err := openSnapshot(data)
	return s.machines, err
}

// SnapshotOldest returns the first log entry that a snapshot's open decisions need, or the entry after the snapshot if
// they need none. A log that begins later cannot be replayed from the snapshot.
func SnapshotOldest(data []byte) (uint64, error) {
	s, _, err := openSnapshot(data)
	return s.oldest, err
}

// SnapshotNeeds returns the first log entry that second learners would read in a replay from a snapshot of the entry
// upTo, as far as the given snapshot knows. It is [math.MaxUint64] without second learners. See [Engine.Needs].
func SnapshotNeeds(data []byte, upTo uint64) (uint64, error) {
	s, _, err := openSnapshot(data)
	return (&State{Position: s.At, relearned: s.relearned}).Needs(upTo), err
}

// Frozen is the state at an entry.
type Frozen struct {
	At         eventlog.Position
	oldest     uint64 // the first entry that an open decision or a second learner needs, else the entry after at
	machines   []string
	relearned  []relearned
	placements []*frozenPlacement
}

// frozen is a placement at an entry.
type frozenPlacement struct {
	persisted
	configuration *configuration
	moves         []expiry.Move // of the clock
	open, closed  []Record
	learners      []*frozenLearner // the one that decides, the former ones, and the second one
	relearning    *relearning      // nil if there is no second one
	keepers       []int            // the learner of each version
	items         *catalogue.Frozen
	catalogue     *catalogue.Catalogue // of a snapshot that is read
	holdout       *abtest.Experiment   // nil without a hold-out
	experiment    *abtest.Experiment   // nil outside an experiment
	challengers   []*frozenLearner
	memory        *past.Frozen
}

// frozenLearner is a learner of a placement at an entry.
type frozenLearner struct {
	learner.State
	saved <-chan learner.State // a better one; nil if the learner is not expected to keep up
	of    *Worker
	began uint64
	own   *configuration // nil for the deciding learner and for variants: theirs follows from the placement's
}
