package natslog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vitrine/internal/replace"
)

// Copy copies the log of a directory to a new directory. The log is not opened, so nothing is changed or
// repaired, and it may be in use: the copy has every entry acknowledged before the call. Progress, if not
// nil, is called with the copied and the total bytes.
//
// Errors are those of the file system or ctx, and fs.ErrNotExist if there is no log.
func Copy(ctx context.Context, to, from string, progress func(done, total int64)) error {
	if info, err := os.Stat(filepath.Join(from, "jetstream")); err != nil || !info.IsDir() {
		return fmt.Errorf("natslog: %s: %w: it has no log, which is a directory %q and what is in it", from, fs.ErrNotExist, "jetstream")
	}
	// The mark is copied first: the end that it guards is already in the files. The beginning is read again
	// after the files.
	before, err := copyMark(to, from)
	if err != nil {
		return err
	}
	files, total, err := logFiles(from)
	if err != nil {
		return err
	}
	done := int64(0)
	for _, name := range files {
		err := copyFile(to, from, name, func(n int) error {
			if done += int64(n); progress != nil {
				progress(min(done, total), total)
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	if _, after, err := readMark(from); err == nil && before.first > 0 && after.first > before.first {
		return replace.Private(filepath.Join(to, "mark"), bounds{before.next, after.first}.encode())
	}
	return nil
}

// copyMark copies the mark, and returns its bounds.
func copyMark(to, from string) (bounds, error) {
	data, b, err := readMark(from)
	if err != nil || data == nil {
		return bounds{}, err
	}
	out, err := create(to, "mark")
	if err != nil {
		return bounds{}, err
	}
	_, err = out.Write(data)
	return b, errors.Join(err, out.Sync(), out.Close())
}

// readMark reads the mark of a directory, nil if there is none. A mark that is being written may look damaged
// for a moment; a damaged one guards nothing.
func readMark(dir string) (data []byte, b bounds, err error) {
	for range 10 {
		if data, err = os.ReadFile(filepath.Join(dir, "mark")); errors.Is(err, fs.ErrNotExist) {
			return nil, bounds{}, nil
		} else if err != nil {
			return nil, bounds{}, err
		}
		if b, err = decodeMark(data); err == nil {
			break
		}
	}
	return data, b, nil
}

// Hold keeps the entries of a directory's log, which may be in use, until release: TruncateBefore returns
// eventlog.ErrHeld. A snapshot that is read before the log is copied then contains all entries that the copy
// lacks.
func Hold(dir string) (release func() error, err error) {
	l, err := hold(dir)
	if errors.Is(err, fs.ErrNotExist) { // nobody has the log open
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	return l.release, nil
}

// logFiles lists the server's files except its summaries. The last block of messages, the only one that
// grows, comes first: if a new block is begun during the copy, there is no gap.
func logFiles(dir string) (files []string, total int64, err error) {
	err = filepath.WalkDir(filepath.Join(dir, "jetstream"), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!entry.Type().IsRegular() || entry.Name() == "index.db") {
			return nil
		}
		if err != nil {
			return err
		}
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
		name, err := filepath.Rel(dir, path)
		files = append(files, name)
		return err
	})
	slices.SortStableFunc(files, func(a, b string) int { return cmp.Compare(block(b), block(a)) })
	return files, total, err
}

// block returns the number of a block of messages, 0 of another file.
func block(name string) uint64 {
	number, ok := strings.CutSuffix(filepath.Base(name), ".blk")
	if !ok {
		return 0
	}
	n, _ := strconv.ParseUint(number, 10, 64)
	return n
}

// create makes a new file, and its directory.
func create(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// copyFile copies a file to its place in another directory, and reports the number of bytes. A file removed
// meanwhile is skipped.
func copyFile(to, from, name string, copied func(n int) error) error {
	in, err := os.Open(filepath.Join(from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := create(to, name)
	if err != nil {
		return err
	}
	buffer := make([]byte, 1<<20)
	for err == nil {
		var n int
		n, err = in.Read(buffer)
		if n > 0 {
			_, failed := out.Write(buffer[:n])
			err = cmp.Or(failed, copied(n), err)
		}
	}
	if errors.Is(err, io.EOF) {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}
