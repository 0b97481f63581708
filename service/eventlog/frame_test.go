package eventlog_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/minio/highwayhash"
	"pgregory.net/rapid"

	"vitrine/internal/expect"
	"vitrine/internal/fatal"
	"vitrine/service/eventlog"
)

var log = eventlog.Identity{15: 7}

// The CRC-32C of this frame comes from an independent implementation below: bitwise division by the reversed polynomial
// 0x82f63b78.
func TestFrameBytes(t *testing.T) {
	f := eventlog.Frame{Epoch: 3, First: 258, Log: log, Before: [16]byte{9},
		Entries: [][]byte{[]byte("ab"), {}, bytes.Repeat([]byte{'z'}, 128)}}
	want, _ := hex.DecodeString("564c4f47" + "01" + "000000" + "0300000000000000" + "0201000000000000" + "03000000" +
		"86000000" +
		strings.Repeat("00", 15) + "07" + "09" + strings.Repeat("00", 15) +
		"026162" + "00" + "8001" + strings.Repeat("7a", 128))
	want = binary.LittleEndian.AppendUint32(want, bitwiseCRC(want))
	if have := f.Encode(nil); !bytes.Equal(have, want) {
		t.Errorf("frame is\n%x, want\n%x", have, want)
	}
	expect.Equal(t, f.Next(), 261, "after 3 entries from 258 on comes")
}

// The running hash equals the same function through another interface, applied to the bytes that the format names.
func TestPositions(t *testing.T) {
	f := eventlog.Frame{Epoch: 1, First: 5, Log: log, Before: [16]byte{1, 2},
		Entries: [][]byte{[]byte("ab"), {}, []byte("c")}}
	want := f.Before
	for _, e := range f.Entries {
		h := fatal.Or(highwayhash.New128(append(want[:], log[:]...)))(t)
		h.Write(e)
		want = [16]byte(h.Sum(nil))
	}
	if have := f.End(); have != (eventlog.Position{Log: log, Sequence: 7, Hash: want}) {
		t.Errorf("after it %+v, want the hash %x", have, want)
	}
	if have := f.Start().After(f.Entries[:1]...).After(f.Entries[1:]...); have != f.End() {
		t.Errorf("in two steps %+v, want %+v", have, f.End())
	}
	known := map[[16]byte]string{f.End().Hash: "itself"}
	for name, other := range map[string]eventlog.Frame{
		"another log":     {First: 5, Log: eventlog.Identity{1}, Before: f.Before, Entries: f.Entries},
		"another history": {First: 5, Log: log, Entries: f.Entries},
		"other borders": {First: 5, Log: log, Before: f.Before,
			Entries: [][]byte{[]byte("a"), []byte("b"), []byte("c")}},
		"another order":       {First: 5, Log: log, Before: f.Before, Entries: [][]byte{[]byte("c"), {}, []byte("ab")}},
		"without the last":    {First: 5, Log: log, Before: f.Before, Entries: f.Entries[:2]},
		"without entries":     {First: 5, Log: log, Before: f.Before},
		"with an empty entry": {First: 5, Log: log, Before: f.Before, Entries: append(slices.Clone(f.Entries), nil)},
	} {
		if same, ok := known[other.End().Hash]; ok {
			t.Errorf("%s has the hash of %s", name, same)
		}
		known[other.End().Hash] = name
	}
}

func bitwiseCRC(data []byte) uint32 {
	crc := ^uint32(0)
	for _, b := range data {
		crc ^= uint32(b)
		for range 8 {
			crc = crc>>1 ^ 0x82f63b78*(crc&1)
		}
	}
	return ^crc
}

func TestBitwiseCRC(t *testing.T) { // RFC 3720, appendix B.4: 32 bytes of 0
	expect.Equal(t, bitwiseCRC(make([]byte, 32)), 0x8a9136aa)
}

func TestFramesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := eventlog.Frame{
			Epoch:   rapid.Uint64().Draw(t, "epoch"),
			First:   rapid.Uint64Range(1, 1<<63).Draw(t, "first"),
			Log:     eventlog.Identity{rapid.ByteRange(1, 255).Draw(t, "log")},
			Before:  [16]byte{rapid.Byte().Draw(t, "before")},
			Entries: rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 1, 10).Draw(t, "entries"),
		}
		data := f.Encode(nil)
		have, err := eventlog.DecodeFrame(data)
		fatal.If(t, err)
		expect.Equal(fatal.T(t), have, f)
		size, err := eventlog.EntriesSize(f.Entries...)
		if err != nil || size+eventlog.EmptyFrame != len(data) {
			t.Fatalf("entries take %d bytes (%v) of a frame of %d", size, err, len(data))
		}
		expect.Refused(eventlog.DecodeFrame(data[:rapid.IntRange(0, len(data)-1).Draw(t, "cut")]))(fatal.T(t),
			"a truncated frame is accepted")
		// CRC-32C detects every burst of up to 32 bits.
		damaged := slices.Clone(data)
		damaged[rapid.IntRange(0, len(data)-1).Draw(t, "where")] ^= rapid.ByteRange(1, 255).Draw(t, "bits")
		expect.Refused(eventlog.DecodeFrame(damaged))(fatal.T(t), "a damaged frame is accepted")
	})
}

func TestFrameOfNoEntries(t *testing.T) {
	want := eventlog.Frame{Epoch: 2, First: 1, Log: log}
	data := want.Encode([]byte("prefix"))[6:]
	expect.Equal(t, len(data), eventlog.EmptyFrame, "bytes")
	expect.Equal(t, fatal.Or(eventlog.DecodeFrame(data))(t), want)
}

// A frame with a correct checksum but invalid content is rejected.
func TestUnlawfulFrames(t *testing.T) {
	good := (&eventlog.Frame{Epoch: 1, First: 5, Log: log, Entries: [][]byte{[]byte("ab"), []byte("c")}}).Encode(nil)
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		want   string
	}{
		{"another file", func(b []byte) []byte { b[0] = 'X'; return b }, "not a frame"},
		{"a later version", func(b []byte) []byte { b[4] = 2; return b }, "format 2, and this program reads format 1"},
		{"version 0", func(b []byte) []byte { b[4] = 0; return b }, "format 0"},
		{"no identity", func(b []byte) []byte { clear(b[32:48]); return b }, "names no log"},
		{"no position", func(b []byte) []byte { return b[:60] }, "is truncated"},
		{"reserved", func(b []byte) []byte { b[6] = 1; return b }, "reserved"},
		{"sequence 0", func(b []byte) []byte { clear(b[16:24]); return b }, "first sequence is 0"},
		{"sequence overflow", func(b []byte) []byte { binary.LittleEndian.PutUint64(b[16:], ^uint64(1)); return b },
			"first sequence"},
		{"fewer entries", func(b []byte) []byte { b[24] = 1; return b }, "2 bytes too many"},
		{"more entries", func(b []byte) []byte { b[24] = 3; return b }, "entry 2 of the frame ends early"},
		{"a billion entries", func(b []byte) []byte { b[27] = 0x40; return b }, "counts 1073741826 entries in 5 bytes"},
		{"length", func(b []byte) []byte { b[28]++; return b }, "length is 6, it has 5"},
		{"entry too long", func(b []byte) []byte { b[67] = 100; return b }, "entry 1 of the frame ends early"},
	} {
		data := c.change(slices.Clone(good[:len(good)-4]))
		data = binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
		expect.Part(eventlog.DecodeFrame(data))(t, c.want, c.name)
	}
	bad := slices.Clone(good)
	bad[65] ^= 1
	expect.Part(eventlog.DecodeFrame(bad))(t, "checksum", "a flipped bit")
}

// A frame can be filled to the last byte, but not beyond.
func TestFrameCanBeFilled(t *testing.T) {
	for _, entries := range [][][]byte{
		{make([]byte, eventlog.MaxFrame-eventlog.EmptyFrame-3)}, // a length of three bytes
		{make([]byte, 100), make([]byte, eventlog.MaxFrame-eventlog.EmptyFrame-101-3)},
	} {
		f := eventlog.Frame{Epoch: 1, First: 1, Log: log, Entries: entries}
		if size, err := eventlog.EntriesSize(entries...); err != nil || size != eventlog.MaxFrame-eventlog.EmptyFrame {
			t.Fatalf("%d entries take %d bytes (%v)", len(entries), size, err)
		}
		data := f.Encode(nil)
		if have, err := eventlog.DecodeFrame(data); err != nil || len(data) != eventlog.MaxFrame ||
			len(have.Entries) != len(entries) {
			t.Errorf("a frame of %d bytes has %d entries (%v), want %d bytes and %d",
				len(data), len(have.Entries), err, eventlog.MaxFrame, len(entries))
		}
		expect.Fails(eventlog.EntriesSize(append(entries, nil)...))(t, eventlog.ErrTooLarge)
	}
}

func TestFrameTooLargePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a frame over MaxFrame is encoded")
		}
	}()
	(&eventlog.Frame{First: 1, Log: log, Entries: [][]byte{make([]byte, eventlog.MaxFrame)}}).Encode(nil)
}

func FuzzDecodeFrame(f *testing.F) {
	f.Add((&eventlog.Frame{Epoch: 1, First: 5, Log: log, Entries: [][]byte{[]byte("ab"), {}}}).Encode(nil))
	f.Add((&eventlog.Frame{Epoch: 1, First: 5, Log: log}).Encode(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		// A corrected checksum lets the fuzzer reach the code behind it.
		if len(data) > 4 {
			body := data[:len(data)-4]
			data = binary.LittleEndian.AppendUint32(slices.Clone(body),
				crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		}
		frame, err := eventlog.DecodeFrame(data)
		if err != nil {
			return
		}
		if len(data) > eventlog.MaxFrame {
			return
		}
		if have := frame.Encode(nil); !bytes.Equal(have, data) {
			t.Errorf("%x is encoded as %x", data, have)
		}
	})
}

// Sizes that add up to more than 32 bits.
func TestManyLargeEntriesAreTooLarge(t *testing.T) {
	e := make([]byte, eventlog.MaxFrame/2)
	expect.Fails(eventlog.EntriesSize(slices.Repeat([][]byte{e}, 5000)...))(t, eventlog.ErrTooLarge)
}
