package filelog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"vitrine/service/eventlog"
)

// A segment is a file of a header and appends. An append is a frame for each of its records and a commit frame; the one
// that makes the segment too large also ends it, with an index frame before the commit frame. All numbers are little
// endian.
//
//	header   4 bytes   0x58eb6b0d
//	         4 bytes   0
//	         8 bytes   the first sequence, twice
//	         8 bytes   the version of the records
//	frame    1 byte    1 a record, 2 an index, 3 a commit
//	         3 bytes   0
//	         4 bytes   the length of its content; of a commit, CRC-32C of the append before this frame, with the header
//	                   before the first append
//	         content   filled with zeros up to a multiple of 8 bytes
//
// An index has the place of each record's frame in the file, 4 bytes each. raft-wal calls this layout segment format 0.
const (
	magic      = 0x58eb6b0d
	headerSize = 32
	frameHead  = 8

	recordFrame = 1
	indexFrame  = 2
	commitFrame = 3

	// maxRecord is the largest content of a frame that is read.
	maxRecord = headSize + eventlog.MaxBatch + sumSize
)

const suffix = ".wal" // file name suffix of segments

// segmentBytes is the size after which an append ends its segment. It is part of the format; tests change it.
var segmentBytes uint32 = 16 << 20

type part struct {
	first  uint64 // sequence of its first entry
	path   string
	size   int64    // bytes of its whole appends
	places []uint32 // of its records' frames, while no index has them
	index  int64    // where the places in its index begin; 0 while more may be appended
}

// newPart returns the segment that starts with an entry.
func newPart(dir string, first uint64) *part {
	return &part{first: first, path: filepath.Join(dir, fmt.Sprintf("%020d-%016x"+suffix, first, first))}
}

func (p *part) sealed() bool { return p.index > 0 }

// grow adds an append to the segment.
func (p *part) grow(a appended) {
	p.size += int64(len(a.data))
	p.places = append(p.places, a.places...)
	if p.index = a.index; p.sealed() {
		p.places = nil
	}
}

// appended is an append in bytes, at the end of a segment.
type appended struct {
	data   []byte
	places []uint32 // of its records' frames, in the file
	index  int64    // where the places in the index begin; 0 if the segment goes on
}

// encode returns the next append of n records, in at least size bytes of memory. record appends record i to dst.
func (p *part) encode(n, size int, record func(dst []byte, i int) []byte) appended {
	a := appended{data: make([]byte, 0, size), places: make([]uint32, n)}
	if p.size == 0 {
		a.data = binary.LittleEndian.AppendUint64(a.data, magic)
		a.data = binary.LittleEndian.AppendUint64(a.data, p.first)
		a.data = binary.LittleEndian.AppendUint64(a.data, p.first)
		a.data = binary.LittleEndian.AppendUint64(a.data, format)
	}
	for i := range n {
		a.places[i] = uint32(p.size) + uint32(len(a.data))
		a.frame(recordFrame, func(dst []byte) []byte { return record(dst, i) })
	}
	if p.size+int64(len(a.data))+frameSize(4*(len(p.places)+n)) > int64(segmentBytes) {
		a.index = p.size + int64(len(a.data)) + frameHead
		a.frame(indexFrame, func(dst []byte) []byte {
			for _, places := range [][]uint32{p.places, a.places} {
				for _, at := range places {
					dst = binary.LittleEndian.AppendUint32(dst, at)
				}
			}
			return dst
		})
	}
	sum := crc32.Checksum(a.data, castagnoli)
	a.data = append(a.data, commitFrame, 0, 0, 0)
	a.data = binary.LittleEndian.AppendUint32(a.data, sum)
	return a
}

// frame adds a frame with a content.
func (a *appended) frame(kind byte, content func(dst []byte) []byte) {
	begin := len(a.data)
	a.data = content(append(a.data, kind, 0, 0, 0, 0, 0, 0, 0))
	size := len(a.data) - begin - frameHead
	binary.LittleEndian.PutUint32(a.data[begin+4:], uint32(size))
	for range frameSize(size) - frameHead - int64(size) {
		a.data = append(a.data, 0)
	}
}

// frameSize returns the size of a frame with a content of some bytes.
func frameSize(content int) int64 { return frameHead + int64(content+7)&^7 }

// list returns the segments in the directory, ordered by first entry.
func (s *Store) list() (parts []*part, err error) {
	list, err := os.ReadDir(s.options.Dir)
	for _, f := range list {
		if f.IsDir() || filepath.Ext(f.Name()) != suffix {
			continue
		}
		path := filepath.Join(s.options.Dir, f.Name())
		var first, id uint64
		_, err := fmt.Sscanf(f.Name(), "%020d-%016x"+suffix, &first, &id)
		p := newPart(s.options.Dir, first)
		switch {
		case err == nil && id == first && first > 0 && p.path == path:
			parts = append(parts, p)
		case err == nil && (id != first || first == 0):
			return nil, fmt.Errorf("filelog: segment %d of %s is named %d: give it its old name",
				first, s.options.Dir, id)
		default:
			return nil, fmt.Errorf("filelog: a file %s has a name that no segment has: move it away", path)
		}
	}
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.first, b.first) })
	return parts, err
}

// errStop stops reading a segment.
var errStop = errors.New("stopped")

// dump reads the records of a segment's complete appends in order, starting at a sequence. A record is valid only
// during its call. The version comes from the segment's header. The first frame that is none ends the segment.
func dump(p *part, from uint64, each func(version, sequence uint64, data []byte) error) error {
	file, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer file.Close()
	w := &window{file: file}
	var head [headerSize]byte
	if _, err := w.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return err
	}
	version := uint64(0)
	if binary.LittleEndian.Uint64(head[:]) == magic {
		version = binary.LittleEndian.Uint64(head[24:])
	}
	var data []byte
	var waiting []int64 // frames of the records of an append that may not be complete
	for at, next := int64(headerSize), p.first; ; {
		kind, size, err := w.frame(at)
		if err != nil || kind == 0 {
			return err
		}
		switch kind {
		case recordFrame:
			waiting = append(waiting, at)
		case commitFrame:
			for _, at := range waiting {
				if next++; next <= from {
					continue
				}
				_, n, err := w.frame(at)
				if err != nil {
					return err
				}
				data = slices.Grow(data[:0], n)[:n]
				if _, err := w.ReadAt(data, at+frameHead); err != nil {
					return err
				}
				if err := each(version, next-1, data); err != nil {
					return err
				}
			}
			waiting = waiting[:0]
		}
		at += frameSize(size)
	}
}

// frame reads the head of the frame at a place. The kind is 0 where the file has no frame.
func (w *window) frame(at int64) (kind byte, size int, err error) {
	var h [frameHead]byte
	switch _, err := w.ReadAt(h[:], at); {
	case err == io.EOF:
		return 0, 0, nil
	case err != nil:
		return 0, 0, err
	}
	return frameOf(h[:])
}

// frameOf decodes the head of a frame.
func frameOf(h []byte) (kind byte, size int, err error) {
	n := binary.LittleEndian.Uint32(h[4:])
	switch kind = h[0]; {
	case kind == commitFrame:
		return kind, 0, nil
	case kind != recordFrame && kind != indexFrame || n > maxRecord && kind == recordFrame || n > 1<<30:
		return 0, 0, nil
	}
	return kind, int(n), nil
}

// window reads a file in large pieces.
type window struct {
	file   *os.File
	at     int64
	buffer []byte
}

const windowBytes = 256 << 10

func (w *window) ReadAt(b []byte, at int64) (int, error) {
	if len(b) > windowBytes/2 {
		return w.file.ReadAt(b, at)
	}
	if at < w.at || at+int64(len(b)) > w.at+int64(len(w.buffer)) {
		if w.buffer == nil {
			w.buffer = make([]byte, windowBytes)
		}
		n, err := w.file.ReadAt(w.buffer[:windowBytes], at)
		if w.at, w.buffer = at, w.buffer[:n]; err != nil && err != io.EOF {
			return 0, err
		}
	}
	n := copy(b, w.buffer[at-w.at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// system opens segments for writing. Tests have one that fails.
type system interface {
	Create(path string) (writable, error)
	Open(path string) (writable, error)
}

type writable interface {
	io.WriterAt
	Sync() error
}

// Create and Open implement system. The files stay open until the log is closed, for readers, too.
func (f *files) Create(path string) (writable, error) {
	return f.open(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (f *files) Open(path string) (writable, error) { return f.open(path, os.O_RDWR) }

func (f *files) open(path string, flag int) (writable, error) {
	file, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	f.add(file)
	return file, nil
}
