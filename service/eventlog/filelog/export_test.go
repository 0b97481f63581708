package filelog

import (
	"testing"
	"time"

	"github.com/hashicorp/raft-wal/types"

	"vitrine/service/eventlog"
)

// SetSegmentBytes changes the size of segments during a test.
func SetSegmentBytes(t testing.TB, n uint32) {
	before := segmentBytes
	segmentBytes = n
	t.Cleanup(func() { segmentBytes = before })
}

// On lets a log be opened on another file system.
func (o Options) On(wrap func(types.VFS) types.VFS) Options {
	o.wrap = wrap
	return o
}

// Exports for tests.
var (
	EncodeMark = encodeMark
	DecodeMark = decodeMark
)

// SetFormat changes the format that is written and read during a test.
func SetFormat(t testing.TB, n uint64) {
	before := format
	format = n
	t.Cleanup(func() { format = before })
}

func EncodeRecord(start eventlog.Position, entry []byte, ends bool) []byte {
	r := record{ends: ends, start: start, entry: entry}
	return r.encode(nil)
}

func DecodeRecord(sequence uint64, data []byte) (start eventlog.Position, entry []byte, ends bool, err error) {
	r, err := decodeRecord(sequence, data)
	return r.start, r.entry, r.ends, err
}

func init() { watchEvery = 50 * time.Millisecond }
