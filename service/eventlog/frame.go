package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"

	"vitrine/internal/fields"
)

// MaxFrame is the maximal size of a frame in bytes. It leaves room for headers in the default 1 MiB of a message.
const MaxFrame = 1_000_000

const (
	frameMagic   = "VLOG"
	frameVersion = 1
	headerSize   = 64
	sumSize      = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frame is a commit group, the unit that is written, acknowledged and verified:
//
//	magic     4 bytes   "VLOG"
//	version   1 byte    1
//	reserved  3 bytes   0
//	epoch     8 bytes   of the writer; it never decreases along a log
//	first     8 bytes   the sequence of the first entry
//	count     4 bytes   entries
//	length    4 bytes   of the entries
//	log       16 bytes  the log's identity, not 0
//	before    16 bytes  the running hash before the first entry
//	entries   each a length as an unsigned varint, and its bytes
//	crc       4 bytes   CRC-32C of all before
//
// Integers are little endian. A frame without entries opens an epoch or confirms the
// frame before it; its first is the next sequence.
type Frame struct {
	Epoch, First uint64
	Log          Identity
	Before       [16]byte // the running hash before the first entry
	Entries      [][]byte
}

// Start returns the position before the frame's first entry.
func (f *Frame) Start() Position { return Position{f.Log, f.First - 1, f.Before} }

// End returns the position after the frame's last entry.
func (f *Frame) End() Position { return f.Start().After(f.Entries...) }

// Next returns the sequence after the frame.
func (f *Frame) Next() uint64 { return f.First + uint64(len(f.Entries)) }

// EmptyFrame is the size of a frame without entries.
const EmptyFrame = headerSize + sumSize

// MaxBatch bounds the total size of the entries in one append.
const MaxBatch = MaxFrame - EmptyFrame

// EntrySize returns an entry's size in a frame.
func EntrySize(entry []byte) int {
	return max(1, (bits.Len(uint(len(entry)))+6)/7) + len(entry)
}

// EntriesSize returns the entries' size in a frame, or ErrTooLarge if they do not fit into one.
func EntriesSize(entries ...[]byte) (int, error) {
	size := 0
	for i, e := range entries {
		if size += EntrySize(e); size > MaxFrame-EmptyFrame {
			return 0, fmt.Errorf("%w: the first %d of %d take %d bytes, at most %d fit",
				ErrTooLarge, i+1, len(entries), size, MaxFrame-EmptyFrame)
		}
	}
	return size, nil
}

// Encode appends the frame to dst. It panics if the frame exceeds MaxFrame or lacks an identity.
func (f *Frame) Encode(dst []byte) []byte {
	size, err := EntriesSize(f.Entries...)
	if err != nil {
		panic(err)
	}
	if f.Log.IsZero() {
		panic("eventlog: a frame of a log without identity is encoded")
	}
	start := len(dst)
	dst = slices.Grow(dst, EmptyFrame+size)
	dst = append(dst, frameMagic...)
	dst = append(dst, frameVersion, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, f.Epoch)
	dst = binary.LittleEndian.AppendUint64(dst, f.First)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(f.Entries)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	dst = append(dst, f.Log[:]...)
	dst = append(dst, f.Before[:]...)
	for _, e := range f.Entries {
		dst = binary.AppendUvarint(dst, uint64(len(e)))
		dst = append(dst, e...)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// DecodeFrame decodes a frame that fills data. Its entries share data's memory.
func DecodeFrame(data []byte) (Frame, error) {
	if len(data) < EmptyFrame {
		return Frame{}, fmt.Errorf("a frame of %d bytes is truncated", len(data))
	}
	if string(data[:4]) != frameMagic {
		return Frame{}, errors.New("not a frame of an event log")
	}
	if version := data[4]; version != frameVersion {
		return Frame{}, fields.UnknownFormat("the frame", version, frameVersion)
	}
	body, sum := data[:len(data)-sumSize], binary.LittleEndian.Uint32(data[len(data)-sumSize:])
	if have := crc32.Checksum(body, castagnoli); have != sum {
		return Frame{}, fmt.Errorf("the frame's checksum is %08x, its bytes have %08x", sum, have)
	}
	f := Frame{Epoch: binary.LittleEndian.Uint64(data[8:]), First: binary.LittleEndian.Uint64(data[16:])}
	count, length := binary.LittleEndian.Uint32(data[24:]), binary.LittleEndian.Uint32(data[28:])
	copy(f.Log[:], data[32:])
	copy(f.Before[:], data[48:])
	rest := body[headerSize:]
	switch {
	case f.Log.IsZero():
		return Frame{}, errors.New("the frame names no log")
	case data[5] != 0 || data[6] != 0 || data[7] != 0:
		return Frame{}, errors.New("the frame's reserved bytes are not 0")
	case uint64(length) != uint64(len(rest)):
		return Frame{}, fmt.Errorf("the frame's length is %d, it has %d bytes", length, len(rest))
	case uint64(count) > uint64(len(rest)):
		return Frame{}, fmt.Errorf("the frame counts %d entries in %d bytes", count, len(rest))
	case f.First == 0 || f.First+uint64(count) < f.First:
		return Frame{}, fmt.Errorf("the frame's first sequence is %d", f.First)
	}
	if count > 0 {
		f.Entries = make([][]byte, count)
	}
	for i := range f.Entries {
		n, size, err := fields.Uvarint(rest)
		if err != nil || n > uint64(len(rest)-size) {
			return Frame{}, fmt.Errorf("entry %d of the frame ends early", i)
		}
		end := size + int(n)
		f.Entries[i], rest = rest[size:end:end], rest[end:]
	}
	if len(rest) > 0 {
		return Frame{}, fmt.Errorf("the frame has %d bytes too many", len(rest))
	}
	return f, nil
}
