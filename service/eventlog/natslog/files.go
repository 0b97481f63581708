package natslog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"vitrine/internal/replace"
	"vitrine/service/eventlog"
)

// files are the files of a log in a directory. They are kept open: a file that somebody removes while the log is open
// can be put back with all that was written to it.
type files struct {
	dir  string
	mu   sync.Mutex
	held map[string]*held
}

// held is a file as it was seen last.
type held struct {
	file *os.File // nil if too many are open
	info os.FileInfo
}

// patterns match the files without which a log does not open, or lacks entries.
var patterns = []string{"mark", "jetstream/*/streams/*/meta.*", "jetstream/*/streams/*/msgs/*.blk"}

// maxHeld bounds the files that are kept open, of 8 MB each. A file beyond that is missed, but not put back.
const maxHeld = 2048

// look compares the directory with what it was. The error names a file that was removed or cut, or the last block if
// another file is in its place: the server still writes to the one that it has opened.
func (f *files) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, h := range f.held {
		info, err := os.Stat(filepath.Join(f.dir, path))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s was removed while the log was open", eventlog.ErrReopen, filepath.Join(f.dir, path))
		case err != nil:
			return fmt.Errorf("%w: %w", eventlog.ErrReopen, err)
		case os.SameFile(info, h.info) && info.Size() < h.info.Size():
			return fmt.Errorf("%w: %s has lost its last %d bytes while the log was open", eventlog.ErrReopen, filepath.Join(f.dir, path), h.info.Size()-info.Size())
		case !os.SameFile(info, h.info) && path == f.last():
			return fmt.Errorf("%w: another file is in the place of %s", eventlog.ErrReopen, filepath.Join(f.dir, path))
		case !os.SameFile(info, h.info): // the server has written it anew
			h.close()
			delete(f.held, path)
		default:
			h.info = info
		}
	}
	return f.hold()
}

// hold opens the files that are new.
func (f *files) hold() error {
	if f.held == nil {
		f.held = map[string]*held{}
	}
	for _, pattern := range patterns {
		paths, err := fs.Glob(os.DirFS(f.dir), pattern)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if f.held[path] != nil || strings.HasSuffix(path, ".tmp") {
				continue
			}
			h := new(held)
			if len(f.held) < maxHeld {
				h.file, _ = os.Open(filepath.Join(f.dir, path))
			}
			if h.info, err = os.Stat(filepath.Join(f.dir, path)); err != nil { // it was there for a moment
				h.close()
				continue
			}
			f.held[path] = h
		}
	}
	return nil
}

// last returns the block that is being written.
func (f *files) last() string {
	last := ""
	for path := range f.held {
		if filepath.Ext(path) == ".blk" && (last == "" || block(path) > block(last)) {
			last = path
		}
	}
	return last
}

// removing calls remove, which removes files or writes them anew.
func (f *files) removing(remove func() error) error {
	if f == nil {
		return remove()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := remove()
	f.release()
	return errors.Join(err, f.hold())
}

func (f *files) release() {
	for _, h := range f.held {
		h.close()
	}
	clear(f.held)
}

func (h *held) close() {
	if h.file != nil {
		h.file.Close()
	}
}

// end puts back the files that were removed, if the directory is still the store's, and closes all. The server must have
// ended.
func (f *files) end(isMine bool, logger *slog.Logger) (err error) {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.release()
	for path, h := range f.held {
		path = filepath.Join(f.dir, path)
		if _, missing := os.Stat(path); !isMine || h.file == nil || !errors.Is(missing, fs.ErrNotExist) {
			continue
		}
		failed := os.MkdirAll(filepath.Dir(path), 0o700)
		if failed == nil {
			failed = replace.PrivateStream(path, func(w io.Writer) error {
				_, err := io.Copy(w, io.NewSectionReader(h.file, 0, 1<<62))
				return err
			})
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("natslog: a removed file is lost: %w", failed))
			continue
		}
		logger.Warn("a file of the log was removed while the service ran, and is put back", "file", path)
	}
	return err
}
