package filelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"vitrine/service/eventlog"
)

// format is the version of a record, in each segment's header. Tests change it.
var format uint64 = 1

// record is an entry in a segment:
//
//	flags   1 byte    1 on the last of an append, else 0
//	log     16 bytes  the log's identity, not 0
//	before  16 bytes  the running hash before the entry
//	entry
//	crc     4 bytes   CRC-32C of all before, little endian
type record struct {
	ends  bool
	start eventlog.Position // before the entry
	entry []byte
}

const (
	headSize = 1 + 16 + 16
	sumSize  = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r *record) encode(dst []byte) []byte {
	begin := len(dst)
	flags := byte(0)
	if r.ends {
		flags = 1
	}
	dst = append(dst, flags)
	dst = append(dst, r.start.Log[:]...)
	dst = append(dst, r.start.Hash[:]...)
	dst = append(dst, r.entry...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[begin:], castagnoli))
}

// decodeRecord decodes an entry's record, which shares data's memory.
func decodeRecord(sequence uint64, data []byte) (r record, err error) {
	if len(data) < headSize+sumSize {
		return r, fmt.Errorf("a record of %d bytes is truncated", len(data))
	}
	body := data[:len(data)-sumSize]
	if sum, have := binary.LittleEndian.Uint32(data[len(body):]), crc32.Checksum(body, castagnoli); have != sum {
		return r, fmt.Errorf("the record's checksum is %08x, its bytes have %08x", sum, have)
	}
	r.start.Sequence = sequence - 1
	copy(r.start.Log[:], body[1:])
	copy(r.start.Hash[:], body[1+16:])
	r.ends, r.entry = body[0] == 1, body[headSize:len(body):len(body)]
	switch {
	case body[0] > 1:
		return r, fmt.Errorf("the record has the flags %d", body[0])
	case r.start.Log.IsZero():
		return r, errors.New("the record names no log")
	}
	return r, nil
}

// encode returns an append of entries to a segment, and the position after it.
func (s *Store) encode(p *part, entries [][]byte) (appended, eventlog.Position) {
	size, end := headerSize+frameHead, s.end
	for _, e := range entries {
		size += int(recordSize(e, false))
	}
	return p.encode(len(entries), size, func(dst []byte, i int) []byte {
		r := record{ends: i == len(entries)-1, start: end, entry: entries[i]}
		end = end.After(r.entry)
		return r.encode(dst)
	}), end
}

// recordSize returns the size of an entry's frame in a segment, with the commit frame after the last one of an append.
func recordSize(entry []byte, ends bool) int64 {
	size := frameSize(headSize + len(entry) + sumSize)
	if ends {
		size += frameHead
	}
	return size
}
