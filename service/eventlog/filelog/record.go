package filelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft-wal/types"

	"vitrine/service/eventlog"
)

// format is the version of a record, and the codec in each segment's header. Tests change it.
var format uint64 = 1

// maxFormat is beyond the formats of all releases to come.
const maxFormat = 1000

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

// records returns the records for an append, and the position after it.
func (s *Store) records(entries [][]byte) ([]types.LogEntry, eventlog.Position) {
	size := 0
	for _, e := range entries {
		size += headSize + len(e) + sumSize
	}
	buffer := make([]byte, 0, size)
	records, end := make([]types.LogEntry, len(entries)), s.end
	for i, e := range entries {
		begin := len(buffer)
		r := record{ends: i == len(entries)-1, start: end, entry: e}
		buffer = r.encode(buffer)
		end = end.After(e)
		records[i] = types.LogEntry{Index: end.Sequence, Data: buffer[begin:len(buffer):len(buffer)]}
	}
	return records, end
}

// recordSize returns the size of an entry's record in a segment: 8 bytes of header, and padding to a multiple of 8.
// Another 8 bytes follow the last record of an append.
func recordSize(entry []byte, ends bool) int64 {
	size := 8 + int64(headSize+len(entry)+sumSize+7)&^7
	if ends {
		size += 8
	}
	return size
}
