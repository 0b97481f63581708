// Package state is the binary encoding of learners' snapshots:
//
//	magic    8 bytes   "vitrine" and the format's version, 1
//	kind     string    what the snapshot is of
//	fields   integers and floats, 64 bits, little endian; strings and slices
//	         with their length before them
//	crc      4 bytes   CRC-32C of all before it
//
// The reader of the fields knows their order. Floats are finite, and stored bit
// for bit. A snapshot is read by machines of any word length.
package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

const (
	magic   = "vitrine"
	version = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encoder writes a snapshot.
type Encoder struct {
	buf []byte
	err error
	out io.Writer // nil keeps all in buf
	sum uint32    // of what was written
}

// part is how many bytes are written at a time.
const part = 1 << 16

// NewEncoder begins a snapshot of the given kind.
func NewEncoder(kind string) *Encoder {
	e := &Encoder{buf: []byte(magic + string(rune(version)))}
	e.String(kind)
	return e
}

// NewWriter begins a snapshot that is written as it is encoded. Close it with End.
func NewWriter(kind string, w io.Writer) *Encoder {
	e := NewEncoder(kind)
	e.out = w
	return e
}

// Uint64 appends an unsigned integer.
func (e *Encoder) Uint64(v uint64) {
	e.buf = binary.LittleEndian.AppendUint64(e.buf, v)
	if e.out != nil && len(e.buf) >= part {
		e.write()
	}
}

// write passes on the bytes in buf.
func (e *Encoder) write() {
	e.sum = crc32.Update(e.sum, castagnoli, e.buf)
	if e.err == nil {
		_, e.err = e.out.Write(e.buf)
	}
	e.buf = e.buf[:0]
}

// Count appends an integer in [0, 2⁴⁸].
func (e *Encoder) Count(v int) { e.Uint64(uint64(v)) }

// Float appends a float64. One that is not finite is an error of Bytes.
func (e *Encoder) Float(v float64) {
	if e.err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		e.err = fmt.Errorf("the state has the number %v, and a snapshot of it could not be restored", v)
	}
	e.Uint64(math.Float64bits(v))
}

// Floats appends a slice.
func (e *Encoder) Floats(v []float64) {
	e.Count(len(v))
	for _, f := range v {
		e.Float(f)
	}
}

// String appends a string, of any bytes.
func (e *Encoder) String(s string) {
	e.Count(len(s))
	e.buf = append(e.buf, s...)
}

// End ends a snapshot of NewWriter. Its error is the first one; what was written is then of no use.
func (e *Encoder) End() error {
	e.write()
	if e.err == nil {
		_, e.err = e.out.Write(binary.LittleEndian.AppendUint32(nil, e.sum))
	}
	return e.err
}

// Bytes ends the snapshot and returns it, or the first error.
func (e *Encoder) Bytes() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	return binary.LittleEndian.AppendUint32(e.buf, crc32.Checksum(e.buf, castagnoli)), nil
}

// Decoder reads a snapshot. Its first error stays, and every later read
// returns zeros.
type Decoder struct {
	buf []byte
	err error
}

// NewDecoder checks data to be an undamaged snapshot of the given kind.
func NewDecoder(kind string, data []byte) (*Decoder, error) {
	have, d, err := Read(data)
	if err == nil && have != kind {
		err = fmt.Errorf("snapshot is of %q, want %q", have, kind)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Read checks data to be an undamaged snapshot, and returns its kind.
func Read(data []byte) (kind string, d *Decoder, err error) {
	if len(data) < len(magic)+1+4 {
		return "", nil, fmt.Errorf("snapshot of %d bytes is truncated", len(data))
	}
	if string(data[:len(magic)]) != magic {
		return "", nil, errors.New("not a snapshot")
	}
	if v := data[len(magic)]; v != version {
		return "", nil, UnknownFormat("snapshot", v, version)
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return "", nil, errors.New("snapshot is damaged or truncated: its checksum is wrong")
	}
	d = &Decoder{buf: body[len(magic)+1:]}
	kind = d.String()
	return kind, d, d.err
}

// UnknownFormat is the error about something in a format of another release. Callers add the file that holds it.
func UnknownFormat(what string, have, reads any) error {
	return fmt.Errorf("%s is in format %v, and this program reads format %v: use the release of vitrine that wrote it", what, have, reads)
}

// Uint64 reads an unsigned integer.
func (d *Decoder) Uint64() uint64 {
	if len(d.buf) < 8 {
		d.Fail(errors.New("snapshot ends early"))
		return 0
	}
	v := binary.LittleEndian.Uint64(d.buf)
	d.buf = d.buf[8:]
	return v
}

// maxCount leaves room to count on.
const maxCount = min(1<<48, math.MaxInt/2)

// Count reads an integer in [0, 2⁴⁸], or up to 2³⁰ where an int has 32 bits.
func (d *Decoder) Count() int {
	v := d.Uint64()
	if v > maxCount {
		d.Fail(fmt.Errorf("snapshot has a count of %d, which is negative or too large for this machine", int64(v)))
		return 0
	}
	return int(v)
}

// Float reads a float64, which must be finite.
func (d *Decoder) Float() float64 {
	v := math.Float64frombits(d.Uint64())
	if math.IsNaN(v) || math.IsInf(v, 0) {
		d.Fail(fmt.Errorf("snapshot has the number %v", v))
		return 0
	}
	return v
}

// Floats reads a slice of exactly the length of dst into it.
func (d *Decoder) Floats(dst []float64) {
	if n := d.length(8); d.err == nil && n != len(dst) {
		d.Fail(fmt.Errorf("snapshot has %d numbers but this learner has %d: it was made with another configuration", n, len(dst)))
	}
	for i := range dst {
		if d.err != nil {
			return
		}
		dst[i] = d.Float()
	}
}

// FloatSlice reads a slice of any length.
func (d *Decoder) FloatSlice() []float64 {
	v := make([]float64, d.length(8))
	for i := range v {
		v[i] = d.Float()
	}
	return v
}

// String reads a string.
func (d *Decoder) String() string {
	n := d.length(1)
	s := string(d.buf[:n])
	d.buf = d.buf[n:]
	return s
}

// length reads the number of elements of a field, each of size bytes, and
// checks that they are there.
func (d *Decoder) length(size int) int {
	n := d.Count()
	if d.err == nil && n > len(d.buf)/size {
		d.Fail(errors.New("snapshot ends early"))
	}
	if d.err != nil {
		return 0
	}
	return n
}

// Fail records err, unless there is an earlier error.
func (d *Decoder) Fail(err error) {
	if d.err == nil {
		d.err, d.buf = err, nil
	}
}

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// Close reports the first error, or that something is left unread.
func (d *Decoder) Close() error {
	if d.err == nil && len(d.buf) > 0 {
		d.Fail(fmt.Errorf("snapshot has %d bytes too many", len(d.buf)))
	}
	return d.err
}
