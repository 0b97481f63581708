package imdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"vitrine/internal/replace"
)

// Stage is a stage of [Prepare].
type Stage string

// The stages, in order.
const (
	Reading     Stage = "reading reviews" // counts bytes or files
	Counting    Stage = "counting words"  // counts reviews
	Decomposing Stage = "decomposing"     // counts singular values
	Training    Stage = "training"        // counts epochs
)

// Reporter receives progress and warnings. Its functions may be nil.
type Reporter struct {
	Progress func(stage Stage, done, total int)
	Warn     func(err error) // about problems that do not change the result
}

func (r Reporter) progress(stage Stage, done, total int) {
	if r.Progress != nil {
		r.Progress(stage, done, total)
	}
}

func (r Reporter) warn(format string, args ...any) {
	if r.Warn != nil {
		r.Warn(fmt.Errorf(format, args...))
	}
}

// Prepare returns the world made from the reviews at path, in any form that [Read] accepts. The same reviews give the
// same world, in any form and with any number of processors.
//
// The result is kept in the directory cache, unless that is "", and reused for the same reviews. A failure of the cache
// is only a warning, and a damaged file is replaced.
//
// It returns an error from [Read], the context's error, or an error if there are too few reviews.
func Prepare(ctx context.Context, path, cache string, report Reporter) (*Dataset, error) {
	reviews, err := Read(ctx, path, func(done, total int) { report.progress(Reading, done, total) })
	if err != nil {
		return nil, err
	}
	if len(reviews) != Published {
		report.warn("%s: %d labelled reviews, where the data set has %d: the data is %s",
			path, len(reviews), Published, Source)
	}
	key := digest(reviews)
	if len(reviews) == Published && key != publishedDigest {
		report.warn("%s: the reviews are not those of the data set, some are changed or damaged: the data is %s",
			path, Source)
	}
	file := filepath.Join(cache, fmt.Sprintf("imdb-v%d-%.16s.bin", version, key))
	if cache != "" {
		d, err := load(file, key)
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			report.warn("%w: computing it again", err)
		}
	}
	d, err := compute(ctx, reviews, report)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if cache != "" {
		if err := store(file, key, d); err != nil {
			report.warn("%s: the result is not kept for the next time: %w", cache, err)
		}
	}
	return d, nil
}

// load reads a dataset that store wrote.
func load(file, key string) (*Dataset, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d, err := decode(content, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

func store(file, key string, d *Dataset) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	content, err := d.encode(key)
	if err != nil {
		return err
	}
	return replace.File(file, content)
}
