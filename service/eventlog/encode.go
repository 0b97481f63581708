package eventlog

import (
	"encoding/binary"
	"math"
)

const eventVersion = 1

// Encode appends the event as an entry to dst, or reports what Check finds.
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
	w := encoder{append(dst, eventVersion, byte(e.Body.kind()))}
	w.fixed64(uint64(e.Time))
	w.string(e.Placement)
	e.Body.encode(&w)
	return w.buf, nil
}

func (p *PlacementPut) encode(w *encoder)   { w.bytes(p.Config) }
func (*PlacementDeleted) encode(w *encoder) {}

func (o *Offered) encode(w *encoder) {
	w.string(o.Decision)
	w.sum(o.Request)
	w.uvarint(uint64(o.Candidates))
	w.uvarint(uint64(len(o.ItemIDs)))
	w.uvarint(uint64(o.Width))
	w.uvarint(uint64(len(o.Revenue)))
	w.uvarint(uint64(len(o.Shown)))
	w.strings(o.ItemIDs)
	w.floats(o.Features)
	w.floats(o.Revenue)
	for _, p := range o.Shown {
		w.uvarint(uint64(p))
	}
	w.float(o.Propensity)
	w.uvarint(o.PolicyVersion)
	w.byte(o.Mode)
	w.bytes(o.Answer)
}

func (c *Chosen) encode(w *encoder) {
	w.string(c.Decision)
	w.uvarint(uint64(c.Choice))
}

func (e *Expired) encode(w *encoder) { w.string(e.Decision) }

func (e *Evicted) encode(w *encoder) { w.string(e.Decision) }

func (v *ValuesSeen) encode(w *encoder) {
	w.string(v.Feature)
	w.uvarint(uint64(len(v.Values)))
	w.strings(v.Values)
}

func (*AlarmCleared) encode(*encoder) {}

func (s *SnapshotTaken) encode(w *encoder) {
	w.uvarint(s.Version)
	w.uvarint(s.UpTo)
	w.string(s.Name)
	w.sum(s.SHA256)
}

func (p *PolicyRolledBack) encode(w *encoder) { w.uvarint(p.Version) }

func (v *VersionKept) encode(w *encoder) {
	w.uvarint(v.Version)
	w.string(v.Note)
}

func (l *LearnerReset) encode(w *encoder) {
	w.bytes(l.Config)
	w.string(l.Note)
}

func (l *LearnerRolledBack) encode(w *encoder) {
	w.uvarint(l.Version)
	w.bytes(l.Config)
	w.string(l.Note)
}

func (r *RelearningBegun) encode(w *encoder) {
	w.bytes(r.Config)
	w.uvarint(r.From)
	w.string(r.Note)
}

func (l *LearnerExchanged) encode(w *encoder) { w.bytes(l.Config) }

func (r *RelearningEnded) encode(w *encoder) { w.string(r.Reason) }

func (l *LearnerAdopted) encode(w *encoder) {
	w.bytes(l.Config)
	w.string(l.Variant)
	w.string(l.Note)
}

func (i *ItemsChanged) encode(w *encoder) {
	w.uvarint(uint64(len(i.Put)))
	w.uvarint(uint64(len(i.Deleted)))
	w.strings(i.Put)
	w.strings(i.Deleted)
}

func (a *Activated) encode(w *encoder) { w.string(a.Decision) }

func (p *Passed) encode(w *encoder) {
	w.string(p.Decision)
	w.uvarint(uint64(len(p.Items)))
	for _, i := range p.Items {
		w.uvarint(uint64(i))
	}
	w.float(p.Reward)
}

// encoder appends fields.
type encoder struct{ buf []byte }

func (w *encoder) byte(v byte)      { w.buf = append(w.buf, v) }
func (w *encoder) uvarint(v uint64) { w.buf = binary.AppendUvarint(w.buf, v) }
func (w *encoder) fixed64(v uint64) { w.buf = binary.LittleEndian.AppendUint64(w.buf, v) }
func (w *encoder) float(v float64)  { w.fixed64(math.Float64bits(v)) }
func (w *encoder) sum(v [32]byte)   { w.buf = append(w.buf, v[:]...) }

func (w *encoder) floats(v []float64) {
	for _, f := range v {
		w.float(f)
	}
}

func (w *encoder) string(s string) {
	w.uvarint(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

// strings appends the lengths of all strings, and then their bytes.
func (w *encoder) strings(v []string) {
	for _, s := range v {
		w.uvarint(uint64(len(s)))
	}
	for _, s := range v {
		w.buf = append(w.buf, s...)
	}
}

func (w *encoder) bytes(b []byte) {
	w.uvarint(uint64(len(b)))
	w.buf = append(w.buf, b...)
}
