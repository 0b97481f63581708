package natslog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"vitrine/eventlog"
)

// mark is a file beside the server's with the last sequence that was
// acknowledged. The server cuts off what it finds damaged at the end of its
// files, and what is left looks like a shorter log; the mark tells.
//
// It is written after every frame and not synced: it outlives the process, and after a
// power failure may be older than the log, which it then guards that much less.
//
//	magic  8 bytes   "VLOGMARK"
//	next   8 bytes   the sequence after the last acknowledged, little endian
//	crc    4 bytes   CRC-32C of all before
type mark struct {
	file *os.File
	next uint64
}

const (
	markMagic = "VLOGMARK"
	markSize  = len(markMagic) + 8 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openMark opens a mark or creates one that guards nothing. A damaged one is
// an error.
func openMark(path string) (*mark, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	m := &mark{file: file}
	data, err := io.ReadAll(io.LimitReader(file, int64(markSize)+1))
	if err == nil && len(data) > 0 {
		m.next, err = decodeMark(data)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("natslog: %s: %w", path, err)
	}
	return m, nil
}

func encodeMark(next uint64) []byte {
	data := binary.LittleEndian.AppendUint64([]byte(markMagic), next)
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

func decodeMark(data []byte) (next uint64, err error) {
	if len(data) != markSize || string(data[:len(markMagic)]) != markMagic ||
		binary.LittleEndian.Uint32(data[markSize-4:]) != crc32.Checksum(data[:markSize-4], castagnoli) {
		return 0, errors.New("the mark of the last acknowledged entry is damaged: verify the log, then remove the file")
	}
	return binary.LittleEndian.Uint64(data[len(markMagic):]), nil
}

func (m *mark) set(end tail) error {
	_, err := m.file.WriteAt(encodeMark(end.next), 0)
	m.next = end.next
	return err
}

// check compares the mark with where the log ends.
func (m *mark) check(end tail) error {
	if end.next >= m.next {
		return nil
	}
	return &eventlog.DamageError{Sequence: end.next, Err: fmt.Errorf(
		"its files end there, and entries up to %d were acknowledged: restore a backup, or remove %s to go on without them", m.next-1, m.file.Name())}
}

func (m *mark) close() error {
	if m == nil {
		return nil
	}
	return m.file.Close()
}
