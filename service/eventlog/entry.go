package eventlog

import (
	"fmt"
	"reflect"

	"vitrine/internal/fields"
)

const eventVersion = 1

// Encode appends the event as an entry to dst, or returns the error of Check.
//
//	version    1 byte   1
//	kind       1 byte
//	time       8 bytes
//	placement  string
//	by         string
//	body       by kind; docs/eventlog-format.md
//
// Equal events have equal bytes.
func (e *Event) Encode(dst []byte) ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	f := fields.Writer(append(dst, eventVersion, kinds[reflect.TypeOf(e.Body)]))
	e.fields(&f)
	return f.Rest(), f.Err()
}

// IsCorrection reports whether an entry encodes a [Corrected].
func IsCorrection(entry []byte) bool {
	return len(entry) > 1 && entry[1] == kinds[reflect.TypeFor[*Corrected]()]
}

// Decode decodes an entry written by Encode. The event shares no memory with the entry. An entry that Encode cannot
// have written is an error.
func Decode(entry []byte) (Event, error) {
	if len(entry) < 2 {
		return Event{}, fmt.Errorf("an entry of %d bytes is truncated", len(entry))
	}
	if entry[0] != eventVersion {
		return Event{}, fields.UnknownFormat("the entry", entry[0], eventVersion)
	}
	kind := int(entry[1])
	if kind == 0 || kind >= len(bodies) {
		return Event{}, fields.UnknownFormat("the entry", fmt.Sprintf("%d with the kind %d", eventVersion, kind),
			fmt.Sprintf("%d up to the kind %d", eventVersion, len(bodies)-1))
	}
	e := Event{Body: bodies[kind]()}
	f := fields.Reader(entry[2:])
	e.fields(&f)
	err := f.Close()
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		return Event{}, fmt.Errorf("entry of kind %d: %w (perhaps from a build before 0.1.0, whose logs no release reads)",
			kind, err)
	}
	return e, nil
}

func (e *Event) fields(f *fields.Fields) {
	f.Int64(&e.Time)
	f.String(&e.Placement, &e.By)
	e.Body.fields(f)
}

func (p *PlacementPut) fields(f *fields.Fields) { f.Bytes(&p.Config) }

func (*PlacementDeleted) fields(*fields.Fields) {}

func (o *Offered) fields(f *fields.Fields) {
	f.String(&o.Decision)
	f.Sum(&o.Request)
	f.Count(&o.Candidates)
	f.Count(&o.Width)
	f.Strings(&o.ItemIDs)
	f.Rows(&o.Features, len(o.ItemIDs), o.Width)
	f.Floats(&o.Revenue)
	fields.Integers(f, &o.Shown)
	f.Float(&o.Propensity)
	f.Uvarint(&o.PolicyEntry)
	f.Byte(&o.Mode)
	f.Bytes(&o.Answer)
}

func (c *Chosen) fields(f *fields.Fields) {
	f.String(&c.Decision)
	f.Place(&c.Choice)
	c.Basket.Fields(f)
	f.Flag(&c.Unlearned)
}

func (e *Expired) fields(f *fields.Fields) {
	f.String(&e.Decision)
	f.Flag(&e.Unlearned)
}

func (e *Evicted) fields(f *fields.Fields) { f.String(&e.Decision) }

func (v *CategoryValuesAdded) fields(f *fields.Fields) {
	f.String(&v.Feature)
	f.Strings(&v.Values)
}

func (a *AlarmCleared) fields(f *fields.Fields) { f.Flag(&a.All) }

func (v *VersionSaved) fields(f *fields.Fields) {
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

func (l *LearnerSwapped) fields(f *fields.Fields) { f.Bytes(&l.Config) }

func (r *RelearningEnded) fields(f *fields.Fields) { f.String(&r.Reason) }

func (l *LearnerAdopted) fields(f *fields.Fields) {
	f.Bytes(&l.Config)
	f.String(&l.Variant, &l.Note)
}

func (c *ClockMoved) fields(f *fields.Fields) { f.Int64(&c.By) }

func (c *Corrected) fields(f *fields.Fields) {
	f.String(&c.Decision, &c.Correction)
	f.Uvarint(&c.Entry)
	f.Int64(&c.Made)
	f.Byte(&c.Mode)
	f.String(&c.Variant, &c.Shopper)
	f.Strings(&c.Shown)
	f.Place(&c.Choice)
	c.Basket.Fields(f)
	f.Count(&c.Others)
	f.Float(&c.Before, &c.Value)
	f.Flag(&c.Adds, &c.Withdraws, &c.Counts, &c.Viewed, &c.InTime)
	if c.InTime {
		f.Float(&c.Bound)
		f.Fixed64(&c.Unit)
		f.String(&c.Segment)
	}
}

func (i *ItemsChanged) fields(f *fields.Fields) {
	f.Uvarint(&i.Before)
	f.Strings(&i.Put)
	f.Strings(&i.Deleted)
	f.Strings(&i.Undo)
}

func (a *Activated) fields(f *fields.Fields) { f.String(&a.Decision) }

func (m *Measured) fields(f *fields.Fields) {
	f.String(&m.Decision)
	fields.List(f, &m.List, (*Measurement).Fields)
}

// Fields encodes or decodes a measurement.
func (m *Measurement) Fields(f *fields.Fields) {
	f.String(&m.Name)
	f.Float(&m.Value)
}

func (p *ItemsDeclined) fields(f *fields.Fields) {
	f.String(&p.Decision)
	fields.Integers(f, &p.Items)
	f.Float(&p.Reward)
}
