package fields

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A snapshot stores the state of an object in a file:
//
//	magic    8 bytes   "vitrine" and the format's version, 1
//	kind     string    kind of object
//	fields             all floats are finite, and stored bit for bit
//	crc      4 bytes   CRC-32C of everything before it, little endian
const (
	magic   = "vitrine"
	version = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stream receives a snapshot while it is being written.
type stream struct {
	out io.Writer
	sum uint32 // of the bytes written
}

// part is the number of bytes to write at a time.
const part = 1 << 16

// Snapshot begins a snapshot of the given kind. Call [Fields.Seal] to end it.
func Snapshot(kind string) *Fields {
	f := &Fields{buf: []byte(magic + string(rune(version))), finite: true}
	f.String(&kind)
	return f
}

// SnapshotTo begins a snapshot that is passed to w while it is being written. Call [Fields.Seal] to end it.
func SnapshotTo(w io.Writer, kind string) *Fields {
	f := Snapshot(kind)
	f.to = &stream{out: w}
	return f
}

// Flush passes on pending bytes if there are many. [List] calls it for each element.
func (f *Fields) Flush() { f.flush(part) }

// flush passes on pending bytes if there are at least n.
func (f *Fields) flush(n int) {
	if f.to == nil || len(f.buf) < n || f.err != nil {
		return
	}
	f.to.sum = crc32.Update(f.to.sum, castagnoli, f.buf)
	_, err := f.to.out.Write(f.buf)
	f.buf = f.buf[:0]
	f.Fail(err)
}

// Seal ends a snapshot and returns the bytes not yet passed to a writer. If it returns an error, discard the output.
func (f *Fields) Seal() ([]byte, error) {
	if f.to == nil {
		f.buf = binary.LittleEndian.AppendUint32(f.buf, crc32.Checksum(f.buf, castagnoli))
		return f.buf, f.err
	}
	f.flush(0)
	if f.err == nil {
		_, f.err = f.to.out.Write(binary.LittleEndian.AppendUint32(nil, f.to.sum))
	}
	return nil, f.err
}

// Open checks a snapshot for damage and returns its kind and a reader for its fields.
func Open(data []byte) (kind string, f *Fields, err error) {
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
	f = &Fields{buf: body[len(magic)+1:], reads: true, finite: true, part: "snapshot"}
	f.String(&kind)
	return kind, f, f.err
}

// OpenKind returns a reader for the fields of a snapshot, which must be of the given kind.
func OpenKind(kind string, data []byte) (*Fields, error) {
	have, f, err := Open(data)
	if err == nil && have != kind {
		err = fmt.Errorf("snapshot is of %q, want %q", have, kind)
	}
	return f, err
}

// UnknownFormat returns the error for data in another release's format. Callers add the file's name.
func UnknownFormat(what string, have, reads any) error {
	return fmt.Errorf("%s is in format %v, and this program reads format %v: use the release of vitrine that wrote it",
		what, have, reads)
}
