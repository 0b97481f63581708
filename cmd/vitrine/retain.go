package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"vitrine/config"
	"vitrine/internal/replace"
	"vitrine/service/decision"
	"vitrine/service/eventlog"
)

// shrinkable is a log that knows its extent, and whose oldest entries can be removed: all are.
type shrinkable interface {
	eventlog.Store
	eventlog.Bounded
	eventlog.Truncater
}

// retention removes the oldest entries of a log: those beyond an age and a size. A log without
// its first entries needs a snapshot that has them, its base, which is on the disk before
// they are removed.
type retention struct {
	age  time.Duration // 0 is any
	size uint64        // 0 is any
	log  shrinkable
	data string // the data directory
}

// limits tells whether there are any.
func (r *retention) limits() bool { return r.age > 0 || r.size > 0 }

// begin forgets the bases of entries that the log has not: they are not of what it will have there. And it
// removes what a killed process left of one. A base that is damaged is put aside, and warned of: entries would be removed
// on the strength of it.
func (r *retention) begin(ctx context.Context, logger *slog.Logger) error {
	x, err := r.log.Extent(ctx)
	if err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(r.data, basesName, ".*"+baseSuffix+".*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	bases, failed := basesIn(r.data)
	err = errors.Join(err, failed)
	for _, upTo := range bases {
		path := basePath(r.data, upTo)
		if cause := r.checkBase(ctx, path, upTo); cause != nil {
			logger.Warn("a base is of no use, and is put aside", "base", path, "as", path+asideSuffix, "cause", cause.Error())
			err = errors.Join(err, os.Rename(path, path+asideSuffix))
		}
	}
	return errors.Join(err, r.tidy(x))
}

// asideSuffix is added to the name of a base that is of no use.
const asideSuffix = ".aside"

// checkBase reports a base that is not what its name says, or is of another log.
func (r *retention) checkBase(ctx context.Context, path string, upTo uint64) error {
	s, err := readSnapshot(path)
	if err != nil {
		return err
	}
	at, err := decision.SnapshotPosition(s.data)
	if err == nil && at.Sequence != upTo {
		err = fmt.Errorf("it is of entry %d", at.Sequence)
	}
	if err != nil {
		return err
	}
	if _, err = decision.Locate(ctx, r.log, at); errors.Is(err, eventlog.ErrRemoved) || errors.Is(err, eventlog.ErrBeyond) {
		return nil // there is nothing left to compare it with: it is tidied away
	}
	return err
}

// removal is what was removed.
type removal struct {
	from, to uint64 // entries; none where to is from − 1
	bytes    uint64
	base     uint64 // the last entry of the snapshot that has them
}

func (r removal) LogValue() slog.Value {
	return slog.GroupValue(slog.Uint64("from", r.from), slog.Uint64("to", r.to), slog.Uint64("bytes", r.bytes), slog.Uint64("base", r.base))
}

// apply removes what is beyond the limits, and is both in the service's snapshot, which has entries
// up to one, and in a base.
func (r *retention) apply(ctx context.Context, upTo uint64, now time.Time) (removal, error) {
	before, err := r.log.Extent(ctx)
	if err != nil {
		return removal{}, err
	}
	none := removal{from: before.First, to: before.First - 1}
	cut, err := r.cut(ctx, before.First, now)
	if err != nil {
		return none, err
	}
	cut = min(cut, upTo+1)
	bases, err := r.keepBase(before, cut, upTo)
	if err != nil {
		return none, err
	}
	if cut <= before.First {
		return none, r.tidy(before)
	}
	at, found := slices.BinarySearch(bases, cut-1)
	if !found && at == len(bases) {
		at--
		cut = bases[at] + 1
	}
	if err := r.log.TruncateBefore(ctx, cut); err != nil {
		return none, err
	}
	after, err := r.log.Extent(ctx)
	if err != nil {
		return none, err
	}
	return removal{before.First, after.First - 1, before.Bytes - min(before.Bytes, after.Bytes), bases[at]}, r.tidy(after)
}

// cut returns the entry before which entries are beyond the limits.
func (r *retention) cut(ctx context.Context, first uint64, now time.Time) (uint64, error) {
	cut := first
	if r.age > 0 {
		oldest := now.Add(-r.age).UnixNano()
		since, err := r.log.FirstSince(ctx, func(entry []byte) (bool, error) {
			e, err := eventlog.Decode(entry)
			return e.Time >= oldest, err
		})
		if err != nil {
			return 0, err
		}
		cut = max(cut, since)
	}
	if r.size > 0 {
		within, err := r.log.FirstWithin(ctx, r.size)
		if err != nil {
			return 0, err
		}
		cut = max(cut, within)
	}
	return cut, nil
}

// keepBase makes the service's snapshot a base, where half of the log's entries came after the last one or a
// cut needs it, and returns the bases. So what can be held to a base, and replayed from it, is
// about half of the log or more.
func (r *retention) keepBase(x eventlog.Extent, cut, upTo uint64) ([]uint64, error) {
	bases, err := basesIn(r.data)
	if err != nil {
		return nil, err
	}
	newest := x.First - 1
	if n := len(bases); n > 0 {
		newest = max(newest, bases[n-1])
	}
	if upTo <= newest || cut <= newest+1 && upTo-newest < (x.Last+1-x.First)/2 {
		if len(bases) == 0 && cut > x.First {
			return nil, fmt.Errorf("entries before %d are to be removed, and no snapshot has them", cut)
		}
		return bases, nil
	}
	data, err := os.ReadFile(filepath.Join(r.data, snapshotName))
	if err != nil {
		return nil, err
	}
	// Read as a start does: entries are removed on the strength of it.
	switch have, err := decision.VerifySnapshot(config.NewLearner, data); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", snapshotName, err)
	case have != upTo:
		return nil, fmt.Errorf("%s is of entry %d, want %d", snapshotName, have, upTo)
	}
	dir := filepath.Join(r.data, basesName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := replace.File(basePath(r.data, upTo), data); err != nil {
		return nil, err
	}
	return append(bases, upTo), errors.Join(replace.Sync(dir), replace.Sync(r.data))
}

// mostBases is how many are kept: the one that the log needs, and later ones for when it is shorter.
const mostBases = 3

// tidy removes the bases that a log cannot begin with any more, or does not have yet.
func (r *retention) tidy(x eventlog.Extent) error {
	bases, err := basesIn(r.data)
	for i, upTo := range bases {
		if upTo+1 < x.First || upTo > x.Last || i < len(bases)-mostBases {
			err = errors.Join(err, os.Remove(basePath(r.data, upTo)))
		}
	}
	return err
}

func basePath(data string, upTo uint64) string {
	return filepath.Join(data, basesName, fmt.Sprint(upTo)+baseSuffix)
}

// basesIn returns the last entries of the bases in a data directory, sorted.
func basesIn(data string) ([]uint64, error) {
	files, err := os.ReadDir(filepath.Join(data, basesName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var bases []uint64
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), baseSuffix)
		if upTo, err := strconv.ParseUint(name, 10, 64); ok && err == nil {
			bases = append(bases, upTo)
		}
	}
	slices.Sort(bases)
	return bases, nil
}

// snapshotsIn returns the paths of the snapshots in a data directory that a log can begin with: the
// service's, and the bases, the newest first.
func snapshotsIn(data string) ([]string, error) {
	var paths []string
	if path := filepath.Join(data, snapshotName); isFile(path) {
		paths = append(paths, path)
	}
	bases, err := basesIn(data)
	slices.SortFunc(bases, func(a, b uint64) int { return cmp.Compare(b, a) })
	for _, upTo := range bases {
		paths = append(paths, basePath(data, upTo))
	}
	return paths, err
}
