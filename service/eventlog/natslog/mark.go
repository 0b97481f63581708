package natslog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"vitrine/service/eventlog"
)

// mark is a file beside the server's files with the beginning and the end of the log. The server cuts off
// damage at the end of its files, and the rest looks like a shorter log; without its first file it looks like
// a log whose oldest entries were removed. The mark shows the difference.
//
// It is written after every frame but not synced: it outlives the process, but after a power failure it may
// be older than the log, and then does not guard the last entries. Before entries are removed it is synced.
//
//	magic  8 bytes   "VLOGMARK"
//	next   8 bytes   the sequence after the last acknowledged, little endian
//	first  8 bytes   entries before it may have been removed; left out in earlier logs
//	crc    4 bytes   CRC-32C of all before
type mark struct {
	file *os.File
	mu   sync.Mutex
	bounds
}

// bounds are the beginning and the end in a mark; zeros guard nothing.
type bounds struct{ next, first uint64 }

const (
	markMagic   = "VLOGMARK"
	markSize    = len(markMagic) + 8 + 8 + 4
	oldMarkSize = markSize - 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openMark opens a mark or creates one that guards nothing. A damaged one is
// an error.
func openMark(path string) (*mark, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	m := &mark{file: file}
	data, err := io.ReadAll(io.LimitReader(file, int64(markSize)+1))
	if err == nil && len(data) > 0 {
		m.bounds, err = decodeMark(data)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("natslog: %s: %w", path, err)
	}
	return m, nil
}

func (b bounds) encode() []byte {
	data := binary.LittleEndian.AppendUint64([]byte(markMagic), b.next)
	data = binary.LittleEndian.AppendUint64(data, b.first)
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

func decodeMark(data []byte) (b bounds, err error) {
	size := len(data)
	if size != markSize && size != oldMarkSize || string(data[:len(markMagic)]) != markMagic ||
		binary.LittleEndian.Uint32(data[size-4:]) != crc32.Checksum(data[:size-4], castagnoli) {
		return bounds{}, errors.New("the mark of the first and the last entry is damaged: verify the log, then remove the file")
	}
	b.next = binary.LittleEndian.Uint64(data[len(markMagic):])
	if size == markSize {
		b.first = binary.LittleEndian.Uint64(data[len(markMagic)+8:])
	}
	return b, nil
}

// set moves the end.
func (m *mark) set(end tail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = end.next
	return m.write()
}

// cut moves the beginning and syncs the file. Entries are removed after it.
func (m *mark) cut(first uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first = max(m.first, first)
	return errors.Join(m.write(), m.file.Sync())
}

func (m *mark) write() error {
	_, err := m.file.WriteAt(m.encode(), 0)
	return err
}

// check compares the mark with the beginning and the end of the log. A mark without a beginning gets it.
func (m *mark) check(first uint64, end tail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == 0 {
		m.first = first
	}
	switch {
	case end.next < m.next:
		return &eventlog.DamageError{Sequence: end.next, Err: fmt.Errorf("its files end there, and %s", m.advice())}
	case first > m.first:
		return &eventlog.DamageError{Sequence: m.first, Err: fmt.Errorf(
			"its files begin with entry %d, and those from %d on were not removed: restore a backup, or remove %s to go on without them", first, m.first, m.file.Name())}
	}
	return nil
}

// advice says what to do if acknowledged entries are missing.
func (m *mark) advice() string {
	return fmt.Sprintf("entries up to %d were acknowledged: restore a backup, or remove %s to go on without them", m.next-1, m.file.Name())
}

func (m *mark) close() error {
	if m == nil {
		return nil
	}
	return m.file.Close()
}
