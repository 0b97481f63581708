package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

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
	r := decoder{buf: entry[2:]}
	e := Event{Time: int64(r.fixed64()), Placement: r.string(), Body: body}
	body.decode(&r)
	if r.err == nil && len(r.buf) > 0 {
		r.fail(fmt.Errorf("the entry has %d bytes too many", len(r.buf)))
	}
	if r.err == nil {
		r.fail(e.Check())
	}
	if r.err != nil {
		return Event{}, r.err
	}
	return e, nil
}

func (p *PlacementPut) decode(r *decoder)   { p.Config = r.bytes() }
func (*PlacementDeleted) decode(r *decoder) {}

func (o *Offered) decode(r *decoder) {
	o.Decision = r.string()
	o.Request = r.sum()
	o.Candidates = r.count(math.MaxInt32)
	items := r.count(len(r.buf))
	o.Width = r.count(math.MaxInt32)
	revenues := r.count(len(r.buf) / 8)
	shown := r.count(len(r.buf))
	o.ItemIDs = r.strings(items)
	if uint64(items)*uint64(o.Width) > uint64(len(r.buf)/8) {
		r.fail(errEarly)
		return
	}
	o.Features = r.floats(items * o.Width)
	o.Revenue = r.floats(revenues)
	if shown > 0 {
		o.Shown = make([]int32, shown)
	}
	for i := range o.Shown {
		o.Shown[i] = int32(r.count(math.MaxInt32))
	}
	o.Propensity = r.float()
	o.PolicyVersion = r.uvarint()
	o.Mode = r.byte()
	o.Answer = r.bytes()
}

func (c *Chosen) decode(r *decoder) {
	c.Decision = r.string()
	c.Choice = int32(r.count(math.MaxInt32))
}

func (e *Expired) decode(r *decoder) { e.Decision = r.string() }

func (e *Evicted) decode(r *decoder) { e.Decision = r.string() }

func (v *ValuesSeen) decode(r *decoder) {
	v.Feature = r.string()
	v.Values = r.strings(r.count(len(r.buf)))
}

func (*AlarmCleared) decode(*decoder) {}

func (s *SnapshotTaken) decode(r *decoder) {
	s.Version = r.uvarint()
	s.UpTo = r.uvarint()
	s.Name = r.string()
	s.SHA256 = r.sum()
}

func (p *PolicyRolledBack) decode(r *decoder) { p.Version = r.uvarint() }

func (v *VersionKept) decode(r *decoder) {
	v.Version = r.uvarint()
	v.Note = r.string()
}

func (l *LearnerReset) decode(r *decoder) {
	l.Config = r.bytes()
	l.Note = r.string()
}

func (l *LearnerRolledBack) decode(r *decoder) {
	l.Version = r.uvarint()
	l.Config = r.bytes()
	l.Note = r.string()
}

func (b *RelearningBegun) decode(r *decoder) {
	b.Config = r.bytes()
	b.From = r.uvarint()
	b.Note = r.string()
}

func (l *LearnerExchanged) decode(r *decoder) { l.Config = r.bytes() }

func (e *RelearningEnded) decode(r *decoder) { e.Reason = r.string() }

func (l *LearnerAdopted) decode(r *decoder) {
	l.Config = r.bytes()
	l.Variant = r.string()
	l.Note = r.string()
}

func (i *ItemsChanged) decode(r *decoder) {
	put := r.count(len(r.buf))
	deleted := r.count(len(r.buf))
	i.Put, i.Deleted = r.strings(put), r.strings(deleted)
}

func (a *Activated) decode(r *decoder) { a.Decision = r.string() }

func (p *Passed) decode(r *decoder) {
	p.Decision = r.string()
	if n := r.count(len(r.buf)); n > 0 {
		p.Items = make([]int32, n)
	}
	for k := range p.Items {
		p.Items[k] = int32(r.count(math.MaxInt32))
	}
	p.Reward = r.float()
}

var errEarly = errors.New("the entry ends early")

// decoder takes fields off a buffer. Its first error stays, and every later
// read returns zeros.
type decoder struct {
	buf []byte
	err error
}

func (r *decoder) fail(err error) {
	if r.err == nil && err != nil {
		r.err, r.buf = err, nil
	}
}

// take returns the next n bytes.
func (r *decoder) take(n int) []byte {
	if n > len(r.buf) {
		r.fail(errEarly)
		return nil
	}
	taken := r.buf[:n]
	r.buf = r.buf[n:]
	return taken
}

func (r *decoder) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *decoder) fixed64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *decoder) float() float64 { return math.Float64frombits(r.fixed64()) }

func (r *decoder) sum() (v [32]byte) {
	copy(v[:], r.take(len(v)))
	return v
}

func (r *decoder) uvarint() uint64 {
	v, size, err := uvarint(r.buf)
	if err != nil {
		r.fail(err)
		return 0
	}
	r.buf = r.buf[size:]
	return v
}

// count reads an integer of at most maximum.
func (r *decoder) count(maximum int) int {
	v := r.uvarint()
	if v > uint64(maximum) {
		r.fail(fmt.Errorf("the entry counts %d of what there can be %d", v, maximum))
		return 0
	}
	return int(v)
}

func (r *decoder) string() string { return string(r.take(r.count(len(r.buf)))) }

func (r *decoder) bytes() []byte {
	return append([]byte(nil), r.take(r.count(len(r.buf)))...)
}

// strings reads n strings, with one allocation besides the slice.
func (r *decoder) strings(n int) []string {
	if n == 0 {
		return nil
	}
	v := make([]string, n)
	lengths, total := decoder{buf: r.buf}, 0
	for range n {
		if total += r.count(len(r.buf)); total > len(r.buf) {
			r.fail(errEarly)
		}
	}
	all := string(r.take(total))
	if r.err != nil {
		return nil
	}
	for i := range v {
		size := lengths.count(len(all))
		v[i], all = all[:size], all[size:]
	}
	return v
}

// floats reads n floats; the caller has checked that the buffer holds them.
func (r *decoder) floats(n int) []float64 {
	b := r.take(8 * n)
	if len(b) == 0 {
		return nil
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return v
}
