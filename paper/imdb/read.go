package imdb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"vitrine/internal/decompress"
)

// longest is the maximum size of a review and of its line in bytes; the longest in the data set takes 13,704.
const longest = 1 << 20

// Read returns the labelled reviews at path: train before test, negative before positive, then by id. The path may be
//
//   - the data set's directory aclImdb, with {train,test}/{pos,neg}/<id>_<rating>.txt,
//   - aclImdb_v1.tar.gz, the data set as distributed,
//   - imdb.jsonl or imdb.jsonl.zst, with a [Review] as JSON in each line,
//   - a directory that contains one of these under that name.
//
// A file's content, not its name, determines its form. Reviews without a label, and all other files in the data set,
// are skipped. progress, if not nil, is called with the amount read so far and the total.
//
// Errors name the file, and the line or the entry, and say what to do.
func Read(ctx context.Context, path string, progress func(done, total int)) ([]Review, error) {
	if progress == nil {
		progress = func(int, int) {}
	}
	path, err := find(path)
	if err != nil {
		return nil, err
	}
	var reviews []Review
	if hasLayout(path) {
		reviews, err = readFolder(ctx, path, progress)
	} else {
		reviews, err = readFile(ctx, path, progress)
	}
	if err != nil {
		return nil, err
	}
	if err := complete(reviews); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return reviews, nil
}

// find returns the file of reviews, or the directory with the layout, at path or inside the directory at path.
func find(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s does not exist: the data is %s", path, Source)
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() || hasLayout(path) {
		return path, nil
	}
	if inside := filepath.Join(path, "aclImdb"); hasLayout(inside) {
		return inside, nil
	}
	for _, name := range []string{"imdb.jsonl.zst", "imdb.jsonl", "aclImdb_v1.tar.gz"} {
		inside := filepath.Join(path, name)
		if info, err := os.Stat(inside); err == nil && !info.IsDir() {
			return inside, nil
		}
	}
	return "", fmt.Errorf("%s has neither the folders train and test of aclImdb nor imdb.jsonl.zst, imdb.jsonl or "+
		"aclImdb_v1.tar.gz: the data is %s", path, Source)
}

// readFile returns a file's reviews, in any order.
func readFile(ctx context.Context, path string, progress func(done, total int)) ([]Review, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(&watched{ctx, f, func(done int) { progress(done, int(info.Size())) }, 0}, 1<<16)
	if _, err := r.Peek(1); err != nil && err != io.EOF {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	plain, coding, err := decompress.Reader(r)
	switch {
	case err != nil:
		return nil, broken(path, err)
	case coding == decompress.Gzip:
		return readTar(plain, path)
	}
	return readLines(plain, path)
}

// broken returns the error for a damaged compressed file or archive.
func broken(path string, err error) error {
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s is truncated: get it again", path)
	default:
		return fmt.Errorf("%s is damaged, get it again: %w", path, err)
	}
}

// watched is a reader that reports its progress and stops with its context.
type watched struct {
	ctx      context.Context
	r        io.Reader
	progress func(done int)
	done     int
}

func (w *watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(p)
	w.done += n
	w.progress(w.done)
	return n, err
}
