package filelog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"sync"

	"vitrine/service/eventlog"
)

// mark is a file that records the first and the last entry of the log. Without it, a log with damaged last bytes would
// look like one with an interrupted last append, and a log that lost its first segments like one with its oldest
// entries removed.
//
// The mark is written after every append but not synced. It survives the process, but after a power failure it may be
// older than the log and fail to guard the last entries. It is synced before entries are removed.
//
//	magic  8 bytes   "VLOGMARK"
//	next   8 bytes   the sequence after the last acknowledged, little endian
//	first  8 bytes   entries before it may have been removed
//	crc    4 bytes   CRC-32C of all before
type mark struct {
	path        string
	file        *os.File // nil if the log is open for reading
	mu          sync.Mutex
	next, first uint64 // zeros guard no entries
}

const (
	markName  = "mark"
	markMagic = "VLOGMARK"
	markSize  = len(markMagic) + 8 + 8 + 4
)

// openMark opens a mark for writing, or creates one that guards no entries. A damaged mark is an error.
func openMark(path string) (*mark, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	m := &mark{path: path, file: file}
	data, err := io.ReadAll(io.LimitReader(file, int64(markSize)+1))
	if err == nil && len(data) > 0 {
		m.next, m.first, err = decodeMark(data)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("filelog: %s: %w", path, err)
	}
	return m, nil
}

// readMark reads a mark; a missing file guards no entries. A mark that is being written may briefly look damaged.
func readMark(path string) (*mark, error) {
	m := &mark{path: path}
	var err error
	for range 100 {
		var data []byte
		if data, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
			return m, nil
		}
		if err == nil {
			m.next, m.first, err = decodeMark(data)
		}
		if err == nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("filelog: %s: %w", path, err)
}

func encodeMark(next, first uint64) []byte {
	data := binary.LittleEndian.AppendUint64([]byte(markMagic), next)
	data = binary.LittleEndian.AppendUint64(data, first)
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

func decodeMark(data []byte) (next, first uint64, err error) {
	if len(data) != markSize || string(data[:len(markMagic)]) != markMagic ||
		binary.LittleEndian.Uint32(data[markSize-4:]) != crc32.Checksum(data[:markSize-4], castagnoli) {
		return 0, 0, errors.New("the mark of the first and the last entry is damaged: verify the log, then remove the file")
	}
	return binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:]), nil
}

// begin records the first and the next entry of an opened log, and syncs the file.
func (m *mark) begin(first, next uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first, m.next = first, next
	return errors.Join(m.write(), m.file.Sync())
}

// set records a new end.
func (m *mark) set(next uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = next
	return m.write()
}

// cut records a new beginning and syncs the file, before entries are removed.
func (m *mark) cut(first uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.first = max(m.first, first)
	return errors.Join(m.write(), m.file.Sync())
}

func (m *mark) write() error {
	_, err := m.file.WriteAt(encodeMark(m.next, m.first), 0)
	return err
}

// missing returns the error for a log that lacks its first entries, or the entries from a sequence on.
func (m *mark) missing(first, next uint64) error {
	switch {
	case next < m.next:
		return &eventlog.DamageError{Sequence: next, Err: fmt.Errorf("its files end there, and %s", m.advice())}
	case m.first > 0 && first > m.first:
		return &eventlog.DamageError{Sequence: m.first, Err: fmt.Errorf(
			"its files begin with entry %d, and those from %d on were not removed: restore a backup, or remove %s "+
				"to go on without them", first, m.first, m.path)}
	}
	return nil
}

// advice tells the operator what to do about missing acknowledged entries.
func (m *mark) advice() string {
	return fmt.Sprintf("entries up to %d were acknowledged: restore a backup, or remove %s to go on without them",
		m.next-1, m.path)
}

func (m *mark) close() error {
	if m == nil || m.file == nil {
		return nil
	}
	return m.file.Close()
}
