package eventlog

import (
	"fmt"

	"vitrine/internal/fields"
	"vitrine/internal/state"
)

const eventVersion = 1

// Encode appends the event as an entry to dst, or returns the error of Check.
//
//	version    1 byte   1
//	kind       1 byte
//	time       8 bytes
//	placement  string
//	body       by kind; docs/eventlog-format.md
//
// Equal events have equal bytes.
func (e *Event) Encode(dst []byte) ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	f := fields.Writer(append(dst, eventVersion, byte(e.Body.kind())))
	e.fields(&f)
	return f.Rest(), nil
}

// IsCorrection reports whether an entry is that of a [Corrected].
func IsCorrection(entry []byte) bool { return len(entry) > 1 && kind(entry[1]) == corrected }

// Decode decodes an entry written by Encode. The event shares no memory with it. An entry that Encode cannot
// write is an error.
func Decode(entry []byte) (Event, error) {
	if len(entry) < 2 {
		return Event{}, fmt.Errorf("an entry of %d bytes is truncated", len(entry))
	}
	if entry[0] != eventVersion {
		return Event{}, state.UnknownFormat("the entry", entry[0], eventVersion)
	}
	body := newBody(kind(entry[1]))
	if body == nil {
		return Event{}, state.UnknownFormat("the entry", fmt.Sprintf("%d with the kind %d", eventVersion, entry[1]), fmt.Sprintf("%d up to the kind %d", eventVersion, len(bodies)-1))
	}
	e := Event{Body: body}
	f := fields.Reader(entry[2:])
	e.fields(&f)
	if err := f.Close(); err != nil {
		return Event{}, err
	}
	if err := e.Check(); err != nil {
		return Event{}, err
	}
	return e, nil
}

func (e *Event) fields(f *fields.Fields) {
	time := uint64(e.Time)
	if f.Fixed64(&time); f.Reads() {
		e.Time = int64(time)
	}
	f.String(&e.Placement)
	e.Body.fields(f)
}

func (p *PlacementPut) fields(f *fields.Fields) { f.Bytes(&p.Config) }

func (*PlacementDeleted) fields(*fields.Fields) {}

func (o *Offered) fields(f *fields.Fields) {
	f.String(&o.Decision)
	f.Sum(&o.Request)
	f.Count(&o.Candidates)
	items := f.Length(len(o.ItemIDs), 1)
	f.Count(&o.Width)
	revenues := f.Length(len(o.Revenue), 8)
	shown := f.Length(len(o.Shown), 1)
	f.Strings(&o.ItemIDs, items)
	f.Rows(&o.Features, items, o.Width)
	f.Floats(&o.Revenue, revenues, 1)
	f.Places(&o.Shown, shown)
	f.Float(&o.Propensity)
	f.Uvarint(&o.PolicyVersion)
	f.Byte(&o.Mode)
	f.Bytes(&o.Answer)
}

func (c *Chosen) fields(f *fields.Fields) {
	f.String(&c.Decision)
	f.Place(&c.Choice)
}

func (e *Expired) fields(f *fields.Fields) { f.String(&e.Decision) }

func (e *Evicted) fields(f *fields.Fields) { f.String(&e.Decision) }

func (v *ValuesSeen) fields(f *fields.Fields) {
	f.String(&v.Feature)
	f.Strings(&v.Values, f.Length(len(v.Values), 1))
}

func (a *AlarmCleared) fields(f *fields.Fields) {
	all := 0
	if a.All {
		all = 1
	}
	if all = f.Bounded(all, 1); f.Reads() {
		a.All = all == 1
	}
}

func (s *SnapshotTaken) fields(f *fields.Fields) {
	f.Uvarint(&s.Version)
	f.Uvarint(&s.UpTo)
	f.String(&s.Name)
	f.Sum(&s.SHA256)
}

func (v *VersionKept) fields(f *fields.Fields) {
	f.Uvarint(&v.Version)
	f.String(&v.Note)
}

func (l *LearnerReset) fields(f *fields.Fields) {
	f.Bytes(&l.Config)
	f.String(&l.Note)
}

func (l *LearnerRolledBack) fields(f *fields.Fields) {
	f.Uvarint(&l.Version)
	f.Bytes(&l.Config)
	f.String(&l.Note)
}

func (r *RelearningBegun) fields(f *fields.Fields) {
	f.Bytes(&r.Config)
	f.Uvarint(&r.From)
	f.String(&r.Note)
}

func (l *LearnerExchanged) fields(f *fields.Fields) { f.Bytes(&l.Config) }

func (r *RelearningEnded) fields(f *fields.Fields) { f.String(&r.Reason) }

func (l *LearnerAdopted) fields(f *fields.Fields) {
	f.Bytes(&l.Config)
	f.String(&l.Variant)
	f.String(&l.Note)
}

func (c *ClockMoved) fields(f *fields.Fields) {
	by := uint64(c.By)
	if f.Fixed64(&by); f.Reads() {
		c.By = int64(by)
	}
}

func (c *Corrected) fields(f *fields.Fields) {
	f.String(&c.Decision)
	f.String(&c.Correction)
	f.Uvarint(&c.Entry)
	made := uint64(c.Made)
	if f.Fixed64(&made); f.Reads() {
		c.Made = int64(made)
	}
	f.Byte(&c.Mode)
	f.String(&c.Variant)
	f.Strings(&c.Shown, f.Length(len(c.Shown), 1))
	f.Place(&c.Choice)
	f.Float(&c.Before)
	f.Float(&c.Value)
	flags := byte(0)
	if c.Withdraws {
		flags |= withdraws
	}
	if c.Counts {
		flags |= counts
	}
	if f.Byte(&flags); flags > withdraws|counts {
		f.Fail(fmt.Errorf("a correction has the flags %d", flags))
	}
	if f.Reads() {
		c.Withdraws, c.Counts = flags&withdraws != 0, flags&counts != 0
	}
}

// Flags of a correction.
const (
	withdraws = 1 << iota
	counts
)

func (i *ItemsChanged) fields(f *fields.Fields) {
	put, deleted := f.Length(len(i.Put), 1), f.Length(len(i.Deleted), 1)
	f.Uvarint(&i.Before)
	f.Strings(&i.Put, put)
	f.Strings(&i.Deleted, deleted)
	f.Strings(&i.Undo, put+deleted)
}

func (a *Activated) fields(f *fields.Fields) { f.String(&a.Decision) }

func (p *Passed) fields(f *fields.Fields) {
	f.String(&p.Decision)
	f.Places(&p.Items, f.Length(len(p.Items), 1))
	f.Float(&p.Reward)
}
