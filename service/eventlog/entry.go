package eventlog

import (
	"errors"
	"fmt"
	"math"
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
	f := fields{buf: append(dst, eventVersion, byte(e.Body.kind()))}
	e.fields(&f)
	return f.buf, nil
}

// Decode decodes an entry written by Encode. The event shares no memory with it. An entry that Encode cannot
// write is an error.
func Decode(entry []byte) (Event, error) {
	if len(entry) < 2 {
		return Event{}, fmt.Errorf("an entry of %d bytes is truncated", len(entry))
	}
	if entry[0] != eventVersion {
		return Event{}, fmt.Errorf("the entry has version %d, this program reads %d: use a newer one", entry[0], eventVersion)
	}
	body := newBody(kind(entry[1]))
	if body == nil {
		return Event{}, fmt.Errorf("the entry is of kind %d, which this program does not know: use a newer one", entry[1])
	}
	e := Event{Body: body}
	f := fields{buf: entry[2:], reads: true}
	e.fields(&f)
	if f.err == nil && len(f.buf) > 0 {
		f.fail(fmt.Errorf("the entry has %d bytes too many", len(f.buf)))
	}
	if f.err == nil {
		f.fail(e.Check())
	}
	if f.err != nil {
		return Event{}, f.err
	}
	return e, nil
}

func (e *Event) fields(f *fields) {
	time := uint64(e.Time)
	if f.fixed64(&time); f.reads {
		e.Time = int64(time)
	}
	f.string(&e.Placement)
	e.Body.fields(f)
}

func (p *PlacementPut) fields(f *fields) { f.bytes(&p.Config) }

func (*PlacementDeleted) fields(*fields) {}

func (o *Offered) fields(f *fields) {
	f.string(&o.Decision)
	f.sum(&o.Request)
	f.count(&o.Candidates)
	items := f.length(len(o.ItemIDs), 1)
	f.count(&o.Width)
	revenues := f.length(len(o.Revenue), 8)
	shown := f.length(len(o.Shown), 1)
	f.strings(&o.ItemIDs, items)
	if f.reads && uint64(items)*uint64(o.Width) > uint64(len(f.buf)/8) {
		f.fail(errEarly)
		return
	}
	f.floats(&o.Features, items*o.Width)
	f.floats(&o.Revenue, revenues)
	f.places(&o.Shown, shown)
	f.float(&o.Propensity)
	f.uvarint(&o.PolicyVersion)
	f.byte(&o.Mode)
	f.bytes(&o.Answer)
}

func (c *Chosen) fields(f *fields) {
	f.string(&c.Decision)
	f.place(&c.Choice)
}

func (e *Expired) fields(f *fields) { f.string(&e.Decision) }

func (e *Evicted) fields(f *fields) { f.string(&e.Decision) }

func (v *ValuesSeen) fields(f *fields) {
	f.string(&v.Feature)
	f.strings(&v.Values, f.length(len(v.Values), 1))
}

func (*AlarmCleared) fields(*fields) {}

func (s *SnapshotTaken) fields(f *fields) {
	f.uvarint(&s.Version)
	f.uvarint(&s.UpTo)
	f.string(&s.Name)
	f.sum(&s.SHA256)
}

func (p *PolicyRolledBack) fields(f *fields) { f.uvarint(&p.Version) }

func (v *VersionKept) fields(f *fields) {
	f.uvarint(&v.Version)
	f.string(&v.Note)
}

func (l *LearnerReset) fields(f *fields) {
	f.bytes(&l.Config)
	f.string(&l.Note)
}

func (l *LearnerRolledBack) fields(f *fields) {
	f.uvarint(&l.Version)
	f.bytes(&l.Config)
	f.string(&l.Note)
}

func (r *RelearningBegun) fields(f *fields) {
	f.bytes(&r.Config)
	f.uvarint(&r.From)
	f.string(&r.Note)
}

func (l *LearnerExchanged) fields(f *fields) { f.bytes(&l.Config) }

func (r *RelearningEnded) fields(f *fields) { f.string(&r.Reason) }

func (l *LearnerAdopted) fields(f *fields) {
	f.bytes(&l.Config)
	f.string(&l.Variant)
	f.string(&l.Note)
}

func (i *ItemsChanged) fields(f *fields) {
	put, deleted := f.length(len(i.Put), 1), f.length(len(i.Deleted), 1)
	f.strings(&i.Put, put)
	f.strings(&i.Deleted, deleted)
}

func (a *Activated) fields(f *fields) { f.string(&a.Decision) }

func (p *Passed) fields(f *fields) {
	f.string(&p.Decision)
	f.places(&p.Items, f.length(len(p.Items), 1))
	f.float(&p.Reward)
}

var errEarly = errors.New("the entry ends early")

// count is a number that is at most 2³¹ − 1.
func (f *fields) count(v *int) {
	if n := f.bounded(*v, math.MaxInt32); f.reads {
		*v = n
	}
}

// place is a count.
func (f *fields) place(v *int32) {
	if n := f.bounded(int(*v), math.MaxInt32); f.reads {
		*v = int32(n)
	}
}

// length returns the length n of a list, or the one that is read. Elements have at least size bytes.
func (f *fields) length(n, size int) int { return f.bounded(n, len(f.buf)/size) }

// places are the n elements of a list.
func (f *fields) places(v *[]int32, n int) {
	if f.reads && n > 0 {
		*v = make([]int32, n)
	}
	for k := range *v {
		f.place(&(*v)[k])
	}
}
