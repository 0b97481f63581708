package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"vitrine/internal/replace"
	"vitrine/service/engine"
	"vitrine/service/eventlog"
	"vitrine/service/setup"
	"vitrine/service/state"
)

// Retention removes the oldest entries of a log, beyond an age or a size. A snapshot with the removed
// entries, called a base, is written to the disk before they are removed.
type Retention struct {
	Age  time.Duration // 0 is no limit
	Size uint64        // bytes; 0 is no limit
	Log  eventlog.Log
	Data string // the data directory

	// Needs returns the first entry that must stay for learners that read the log, now or in a replay from a
	// snapshot of the entry upTo: see engine.Engine.Needs. Nil stands for no such learners.
	Needs func(upTo uint64) uint64

	// Evict ends the wait for the outcomes of decisions from before an entry and with attribution windows that began
	// before a time, so that the next snapshot does not need their entries, and returns their number. Nil evicts none.
	Evict func(ctx context.Context, before uint64, since int64) (int, error)
}

func (r *Retention) limits() bool { return r.Age > 0 || r.Size > 0 }

// Begin discards bases beyond the end of the log, because their sequence numbers will be reused, and bases that a
// killed process left unfinished. It renames damaged bases, with a warning.
func (r *Retention) Begin(ctx context.Context, logger *slog.Logger) error {
	x, err := r.Log.Extent(ctx)
	if err != nil {
		return err
	}
	left, err := os.ReadDir(filepath.Join(r.Data, BasesDir))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, f := range left {
		if isLeft, _ := filepath.Match(".*"+baseSuffix+".*", f.Name()); isLeft {
			err = errors.Join(err, os.Remove(filepath.Join(r.Data, BasesDir, f.Name())))
		}
	}
	bases, failed := basesIn(r.Data)
	err = errors.Join(err, failed)
	for _, upTo := range bases {
		path := basePath(r.Data, upTo)
		if cause := r.checkBase(ctx, path, upTo); cause != nil {
			logger.Warn("a base is unusable and is renamed", "base", path, "as", path+asideSuffix, "cause",
				cause.Error())
			err = errors.Join(err, os.Rename(path, path+asideSuffix))
		}
	}
	return errors.Join(err, r.tidy(x))
}

// asideSuffix is added to the name of an unusable base.
const asideSuffix = ".aside"

// checkBase returns an error if the base at path is damaged, does not end with entry upTo, or belongs
// to another log.
func (r *Retention) checkBase(ctx context.Context, path string, upTo uint64) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at, err := state.SnapshotPosition(data)
	if err == nil && at.Sequence != upTo {
		err = fmt.Errorf("its last entry is %d", at.Sequence)
	}
	if err != nil {
		return err
	}
	if _, err = eventlog.Locate(ctx, r.Log, at); errors.Is(err, eventlog.ErrRemoved) ||
		errors.Is(err, eventlog.ErrBeyond) {
		return nil // it cannot be compared, and tidy removes it
	}
	return err
}

// Removal says which entries were removed.
type Removal struct {
	From, To uint64 // the first and the last; empty if To is From − 1
	Bytes    uint64 // by how much the log is smaller
	Base     uint64 // the last entry of the base that covers them
	Evicted  int    // open decisions that were given up: a later snapshot does not need their entries
}

// LogValue implements slog.LogValuer.
func (r Removal) LogValue() slog.Value {
	return slog.GroupValue(slog.Uint64("from", r.From), slog.Uint64("to", r.To), slog.Uint64("bytes", r.Bytes),
		slog.Uint64("base", r.Base))
}

// Apply removes entries beyond the limits, after making a base if they need one. upTo is the last entry of the snapshot
// in the data directory. It returns errors of the log and of files.
//
// Entries that the snapshot's open decisions need stay. A later call removes them, with a snapshot from after these
// decisions were evicted.
func (r *Retention) Apply(ctx context.Context, upTo uint64, now time.Time) (Removal, error) {
	before, err := r.Log.Extent(ctx)
	if err != nil {
		return Removal{}, err
	}
	none := Removal{From: before.First, To: before.First - 1}
	since := now.Add(-r.Age).UnixNano()
	byAge, bySize, err := r.cuts(ctx, before, since)
	if err != nil {
		return none, err
	}
	most := min(upTo+1, r.needs(upTo))
	byAge, bySize = min(byAge, most), min(bySize, most)
	oldest, err := oldestOf(filepath.Join(r.Data, SnapshotFile))
	if err != nil {
		return none, err
	}
	removed, err := r.remove(ctx, before, min(max(byAge, bySize), oldest), upTo)
	evict := func(cut uint64, since int64) {
		if err == nil && oldest < cut && r.Evict != nil {
			var n int
			n, err = r.Evict(ctx, cut, since)
			removed.Evicted += n
		}
	}
	evict(bySize, math.MaxInt64)
	evict(byAge, since)
	return removed, err
}

// excess returns the bytes of a log that exceeds its size, and 0 for a log within it.
func (r *Retention) excess(ctx context.Context) (uint64, error) {
	if r.Size == 0 {
		return 0, nil
	}
	x, err := r.Log.Extent(ctx)
	if err != nil || x.Bytes <= r.Size {
		return 0, err
	}
	return x.Bytes, nil
}

// remove removes the entries before a cut, or fewer, of a log as it is.
func (r *Retention) remove(ctx context.Context, before eventlog.Extent, cut, upTo uint64) (Removal, error) {
	none := Removal{From: before.First, To: before.First - 1}
	bases, err := r.keepBase(before, cut, upTo)
	if err != nil {
		return none, err
	}
	if cut <= before.First {
		return none, r.tidy(before)
	}
	cut, base := r.within(bases, cut)
	if cut <= before.First {
		return none, r.tidy(before)
	}
	if err := r.Log.TruncateBefore(ctx, cut); err != nil {
		return none, err
	}
	after, err := r.Log.Extent(ctx)
	if err != nil {
		return none, err
	}
	return Removal{From: before.First, To: after.First - 1, Bytes: before.Bytes - min(before.Bytes, after.Bytes),
		Base: base}, r.tidy(after)
}

// needs is Needs, and the end of all entries without it.
func (r *Retention) needs(upTo uint64) uint64 {
	if r.Needs == nil {
		return math.MaxUint64
	}
	return r.Needs(upTo)
}

// oldestOf returns the first entry that a snapshot needs of the log.
func oldestOf(path string) (uint64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	oldest, err := state.SnapshotOldest(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return oldest, err
}

// within returns a cut that is not beyond another one, as late as it may be for the log to begin with one of the
// bases, and that base. One that cannot be read is ignored.
func (r *Retention) within(bases []uint64, maximum uint64) (cut, base uint64) {
	for _, upTo := range slices.Backward(bases) {
		oldest, err := oldestOf(basePath(r.Data, upTo))
		if c := min(maximum, upTo+1, oldest, r.needs(upTo)); err == nil && c >= cut {
			cut, base = c, upTo
		}
	}
	return cut, base
}

// sizeShare is the part of the size, in tenths, to which a log that exceeds it is cut: each snapshot makes some room.
const sizeShare = 9

// cuts returns the first entries within the limits, or the log's first: the first one written since a time, and the
// first one within the size.
func (r *Retention) cuts(ctx context.Context, x eventlog.Extent, since int64) (byAge, bySize uint64, err error) {
	byAge, bySize = x.First, x.First
	if r.Age > 0 {
		byAge, err = eventlog.FirstSince(ctx, r.Log, func(entry []byte) (bool, error) {
			e, err := eventlog.Decode(entry)
			return e.Time >= since, err
		})
	}
	if err == nil && r.Size > 0 && x.Bytes > r.Size {
		bySize, err = r.Log.FirstWithin(ctx, r.Size/10*sizeShare)
	}
	return max(byAge, x.First), max(bySize, x.First), err
}

// keepBase makes the snapshot a base if a cut needs it, or if half of the log's entries came after the
// last base, and returns the bases. At least about half of the log can therefore be replayed from a
// base and compared with a later one.
func (r *Retention) keepBase(x eventlog.Extent, cut, upTo uint64) ([]uint64, error) {
	bases, err := basesIn(r.Data)
	if err != nil {
		return nil, err
	}
	newest := x.First - 1
	if n := len(bases); n > 0 {
		newest = max(newest, bases[n-1])
	}
	isNeeded := false
	if cut > x.First {
		allowed, _ := r.within(bases, cut) // less than newest+1 if that base contains open decisions
		isNeeded = allowed < cut
	}
	if upTo <= newest || !isNeeded && upTo-newest < (x.Last+1-x.First)/2 {
		if len(bases) == 0 && cut > x.First {
			return nil, fmt.Errorf("entries before %d are not removed, because no snapshot has them", cut)
		}
		return bases, nil
	}
	data, err := os.ReadFile(filepath.Join(r.Data, SnapshotFile))
	if err != nil {
		return nil, err
	}
	// It must be usable by a start: the entries that it stands for are removed.
	switch have, err := engine.VerifySnapshot(setup.NewLearner, data); {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", SnapshotFile, err)
	case have != upTo:
		return nil, fmt.Errorf("%s ends with entry %d, want %d", SnapshotFile, have, upTo)
	}
	dir := filepath.Join(r.Data, BasesDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := replace.Private(basePath(r.Data, upTo), data); err != nil {
		return nil, err
	}
	return append(bases, upTo), errors.Join(replace.Sync(dir), replace.Sync(r.Data))
}

// maxBases is the number of bases that are kept: the one that the log needs, and later ones for a
// shorter log.
const maxBases = 3

// tidy removes bases that are too old or too many, or beyond the end of the log.
func (r *Retention) tidy(x eventlog.Extent) error {
	bases, err := basesIn(r.Data)
	for i, upTo := range bases {
		oldest, failed := oldestOf(basePath(r.Data, upTo))
		if failed == nil && min(oldest, r.needs(upTo)) < x.First || upTo > x.Last || i < len(bases)-maxBases {
			err = errors.Join(err, os.Remove(basePath(r.Data, upTo)))
		}
	}
	return err
}
