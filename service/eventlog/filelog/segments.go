package filelog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"vitrine/internal/replace"
	"vitrine/service/eventlog"
)

const suffix = ".wal" // file name suffix of segments

// segmentBytes is the size after which an append ends its segment. It is part of the format; tests change it.
var segmentBytes uint32 = 16 << 20

type part struct {
	info   types.SegmentInfo
	path   string
	size   int64               // bytes of its file
	begin  eventlog.Position   // before its first entry
	end    eventlog.Position   // of a sealed segment
	intact os.FileInfo         // its file when it was sealed, or verified as sealed; nil before
	reader types.SegmentReader // set after the first read from a sealed segment
}

// newPart returns the segment that starts with an entry.
func newPart(dir string, first uint64) *part {
	info := types.SegmentInfo{ID: first, BaseIndex: first, MinIndex: first, Codec: format, SizeLimit: segmentBytes}
	return &part{info: info, path: filepath.Join(dir, segment.FileName(info))}
}

const headerSize = 32 // bytes before a segment's first record

func (p *part) sealed() bool { return !p.info.SealTime.IsZero() }

// seal records that the library ended the segment with an index.
func (p *part) seal(index, last uint64) {
	p.size += 8 + int64(4*(last-p.info.BaseIndex+1)+7)&^7
	p.info.IndexStart, p.info.MaxIndex, p.info.SealTime = index, last, time.Unix(0, 0)
}

// sealedAt records the end of a sealed segment, and the state of its file.
func (p *part) sealedAt(end eventlog.Position) {
	p.end = end
	p.intact, _ = os.Stat(p.path) // without it, the segment is verified again
}

// known returns a segment as the earlier store left it, or nil if it must be verified: its file may have changed since,
// it follows other entries, or some of its entries are removed.
func (s *Store) known(p *part) *part {
	if s.options.Earlier == nil || p.info.BaseIndex < s.first {
		return nil
	}
	earlier := s.options.Earlier.segments
	i, found := slices.BinarySearchFunc(earlier, p.info.BaseIndex, func(e *part, first uint64) int {
		return cmp.Compare(e.info.BaseIndex, first)
	})
	if !found || earlier[i].intact == nil {
		return nil
	}
	e := *earlier[i]
	e.reader = nil
	isNext := s.end == e.begin || s.end == eventlog.Position{Sequence: e.begin.Sequence} // the latter for a first segment
	now, err := os.Stat(p.path)
	if err != nil || !isNext || !os.SameFile(now, e.intact) || now.Size() != e.intact.Size() ||
		!now.ModTime().Equal(e.intact.ModTime()) {
		return nil
	}
	return &e
}

// misnamed lists the files of a directory with a segment's suffix but another name than a segment's.
func misnamed(dir string) string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*"+suffix)) // the pattern is valid
	return strings.Join(slices.DeleteFunc(paths, func(path string) bool {
		var first, id uint64
		n, _ := fmt.Sscanf(filepath.Base(path), "%020d-%016x"+suffix, &first, &id)
		return n == 2
	}), " and ")
}

// list returns the segments in the directory, ordered by first entry.
func (s *Store) list() (parts []*part, err error) {
	ids, err := s.filer.List()
	if errors.Is(err, types.ErrCorrupt) {
		return nil, fmt.Errorf("filelog: %s has a name that no segment has: move it away",
			misnamed(s.options.Dir))
	}
	if err != nil {
		return nil, err
	}
	for id, first := range ids {
		if id != first || first == 0 {
			return nil, fmt.Errorf("filelog: segment %d of %s is named %d: give it its old name",
				first, s.options.Dir, id)
		}
		parts = append(parts, newPart(s.options.Dir, first))
	}
	slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.info.BaseIndex, b.info.BaseIndex) })
	return parts, nil
}

// disk is the library's file system. It leaves the files to the store, which keeps them open, and does not preallocate:
// a file ends with its last append.
type disk struct {
	files    *files
	readOnly bool
}

func (d disk) ListDir(dir string) (names []string, err error) {
	list, err := os.ReadDir(dir)
	for _, f := range list {
		if !f.IsDir() {
			names = append(names, f.Name())
		}
	}
	return names, err
}

func (d disk) Create(dir, name string, _ uint64) (types.WritableFile, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	d.files.add(file)
	return &created{shared: shared{file}, dir: dir}, nil
}

func (d disk) OpenWriter(dir, name string) (types.WritableFile, error) {
	flag := os.O_RDWR
	if d.readOnly {
		flag = os.O_RDONLY
	}
	file, err := os.OpenFile(filepath.Join(dir, name), flag, 0)
	if err != nil {
		return nil, err
	}
	d.files.add(file)
	return shared{file}, nil
}

func (d disk) OpenReader(dir, name string) (types.ReadableFile, error) {
	return &lazy{d.files, filepath.Join(dir, name)}, nil
}

func (d disk) Delete(dir, name string) error { return d.files.remove(filepath.Join(dir, name)) }

// shared is a file that the store closes.
type shared struct{ *os.File }

func (shared) Close() error { return nil }

// created is a new file. Its name is synced with its first contents.
type created struct {
	shared
	dir   string
	named bool
}

func (c *created) Sync() error {
	err := c.shared.Sync()
	if err == nil && !c.named {
		err = replace.Sync(c.dir)
		c.named = err == nil
	}
	return err
}

// lazy is a file that is opened for each read, unless the store keeps it open.
type lazy struct {
	files *files
	path  string
}

func (*lazy) Close() error { return nil }

func (l *lazy) ReadAt(b []byte, at int64) (int, error) { return l.files.readAt(l.path, b, at) }

var errStop = errors.New("stopped")

// dump reads the records of a segment's complete appends in order, starting at a sequence. A record is valid only
// during its call. The version comes from the segment's header.
func dump(p *part, from uint64, each func(version, sequence uint64, data []byte) error) error {
	file, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer file.Close()
	return dumpFile(file, p, from, each)
}

func dumpFile(file *os.File, p *part, from uint64, each func(version, sequence uint64, data []byte) error) error {
	reader := segment.NewFiler("", reading{file: &window{file: file}})
	var failed error
	err := reader.DumpSegment(p.info.BaseIndex, p.info.ID, from-1, 0,
		func(info types.SegmentInfo, e types.LogEntry) (bool, error) {
			failed = each(info.Codec, e.Index, e.Data)
			return failed == nil, nil
		})
	if failed != nil {
		return failed
	}
	return err
}

// reading is a file system with a single file, which the library only reads.
type reading struct {
	types.VFS // nil
	file      *window
}

func (r reading) OpenReader(string, string) (types.ReadableFile, error) { return r.file, nil }

// window reads a file in large pieces.
type window struct {
	file   *os.File
	at     int64
	buffer []byte
}

const windowBytes = 256 << 10

func (*window) Close() error { return nil }

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
