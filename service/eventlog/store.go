// Package eventlog is the durable log of the decision service: its events, their encoding, and the Log that keeps
// them. docs/eventlog-format.md documents every byte.
//
// A log keeps entries, which are bytes, and numbers them 1, 2, 3, … without gaps. An entry's number is its sequence.
// The service's state is a fold over the entries in order. Packages filelog and natslog provide durable logs, in a
// directory and on NATS servers. Package memlog provides one in memory.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
	"time"
)

// Log is a log of entries with one writer. It is safe for concurrent use.
//
// If a log cannot tell whether an entry was written, because the disk is full or the server does not answer, it rejects
// all later appends with ErrReopen. Open the log again to see its contents.
type Log interface {
	Reader

	// Append adds all entries next to each other at the end, or fails without adding any. It returns the sequence of
	// the last entry. After a nil error the entries survive a crash. Without entries, Append returns the sequence of
	// the log's last entry.
	//
	// Errors are ErrTooLarge, ErrFenced, ErrReadOnly, ErrReopen, ErrClosed, or ctx's error. After an error that wraps
	// ErrUnknown or ErrReopen the entries may be in the log; after any other error they are not.
	Append(ctx context.Context, entries ...[]byte) (last uint64, err error)

	// Entries yields the entries from a sequence on, up to the last one acknowledged when the iteration began. The
	// caller must not change them. At most one error is yielded, at the end: ErrRemoved, ErrBeyond, ErrClosed, a
	// *DamageError, or ctx's error.
	Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error]

	// Position returns the position after an entry, or before the log's first entry. Its identity is zero if the entry
	// is older than the log's identity. Errors are as for Entries.
	Position(ctx context.Context, sequence uint64) (Position, error)

	// Extent describes the contents. Errors are ErrClosed and ctx's error.
	Extent(ctx context.Context) (Extent, error)

	// TruncateBefore removes entries before a sequence, at most one after the last. A log may keep some of them, but
	// never removes others. Errors are ErrFenced, ErrHeld and ErrReadOnly. After an error all entries are still there.
	TruncateBefore(ctx context.Context, sequence uint64) error

	// FirstWithin returns the first sequence from which on the log takes at most the given bytes, as measured by
	// Extent. It reads the entries before.
	FirstWithin(ctx context.Context, bytes uint64) (sequence uint64, err error)

	// Close waits for running appends. Later calls to other methods return ErrClosed.
	Close() error
}

// Reader reads single entries of a log.
type Reader interface {
	// Entry returns an acknowledged entry, which the caller must not change. Errors are as for Log.Entries.
	Entry(ctx context.Context, sequence uint64) ([]byte, error)
}

// Iterate returns an iterator over the values that run yields, which ends with run's error. After yield returned false,
// run returns nil.
func Iterate[V any](run func(yield func(V) bool) error) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		if err := run(func(v V) bool { return yield(v, nil) }); err != nil {
			var none V
			yield(none, err)
		}
	}
}

// Followed is a log that other processes may write while this one follows it.
type Followed interface {
	// Follow yields the entries from a sequence on and then, as they arrive, the ones appended later, including those
	// from other processes. Entries come in order, several at once if they arrive together. Follow ends with an error
	// or with the iteration. Errors are as for Entries.
	Follow(ctx context.Context, from uint64) iter.Seq2[[][]byte, error]

	// Synced returns an entry that Follow has yielded or is about to yield, and the last time at which the log was known
	// to end there. The time is zero until it is known.
	Synced() (sequence uint64, at time.Time)
}

// Extent describes the contents of a log: the entries [First, Last], and their approximate size in bytes. If the log is
// empty, Last is First − 1.
type Extent struct {
	First, Last uint64
	Bytes       uint64
	Epoch       uint64 // the writer's epoch; 0 in a log without epochs
	Missing     int    // replicas of the log that are down or behind
}

// FirstSince returns the first new entry of a log, or the sequence after the last one. It bisects, so isNew must be
// monotone.
func FirstSince(ctx context.Context, log Log, isNew func(entry []byte) (bool, error)) (sequence uint64, err error) {
	x, err := log.Extent(ctx)
	if err != nil {
		return 0, err
	}
	n := sort.Search(int(x.Last+1-x.First), func(i int) bool {
		if err != nil {
			return true
		}
		var entry []byte
		found, at := false, x.First+uint64(i)
		if entry, err = log.Entry(ctx, at); err == nil {
			if found, err = isNew(entry); err != nil {
				err = fmt.Errorf("entry %d: %w", at, err)
			}
		}
		return found
	})
	return x.First + uint64(n), err
}

var (
	// ErrTooLarge is returned for entries that do not fit into one frame.
	ErrTooLarge = errors.New("eventlog: entries are too large for one append")
	// ErrFenced is returned to a writer after another one took over the log.
	ErrFenced = errors.New("eventlog: another writer has taken the log over")
	// ErrFollower is returned for an append to a log that another process writes.
	ErrFollower = errors.New("eventlog: this process follows the log, and does not write it")
	// ErrLease is returned if it is impossible to know who should write a log.
	ErrLease = errors.New("eventlog: the lease of the log cannot be used")
	// ErrAlive is returned on opening a log that another process is writing.
	ErrAlive = errors.New("eventlog: another process writes the log")
	// ErrLost is returned by a writer after its log was moved or removed.
	ErrLost = errors.New("eventlog: the log is not where it was opened")
	// ErrReopen is returned by a log that does not know where it ends.
	ErrReopen = errors.New("eventlog: the log must be opened again")
	// ErrUnknown is returned for an append that was abandoned halfway, or that wrote entries but could not confirm
	// them.
	ErrUnknown = errors.New("eventlog: it is not known whether the entries are in the log")
	// ErrRemoved is returned for entries that were removed from the log.
	ErrRemoved = errors.New("eventlog: entries were removed")
	// ErrBeyond is returned for entries beyond the end of the log.
	ErrBeyond = errors.New("eventlog: the log ends before")
	// ErrHeld is returned for a removal while another process reads the log.
	ErrHeld = errors.New("eventlog: another process is reading the log")
	// ErrReadOnly is returned for an append to a log opened for reading.
	ErrReadOnly = errors.New("eventlog: the log is open for reading only")
	// ErrUnfinished is returned on opening a copy that lacks entries for writing.
	ErrUnfinished = errors.New("eventlog: the log is an unfinished copy: finish it with vitrine log copy FROM TO, or " +
		"copy its entries to a new place, or remove the copy")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("eventlog: the log is closed")
)

// DamageError reports that a log is unreadable from an entry on. Earlier entries are intact.
type DamageError struct {
	Sequence uint64
	Err      error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("eventlog: the log cannot be read from entry %d on: %v", e.Sequence, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// CheckFrom returns ErrRemoved or ErrBeyond if entries cannot be read from a sequence on. Starting one after the last
// entry is valid.
func (e Extent) CheckFrom(sequence uint64) error {
	switch {
	case sequence < e.First:
		return fmt.Errorf("%w: entry %d is asked for, the first one left is %d", ErrRemoved, sequence, e.First)
	case sequence > e.Last+1:
		return fmt.Errorf("%w: entry %d is asked for, the last one is %d", ErrBeyond, sequence, e.Last)
	}
	return nil
}

// CheckEntry returns ErrRemoved or ErrBeyond if the log lacks the entry.
func (e Extent) CheckEntry(sequence uint64) error {
	if sequence == e.Last+1 {
		return fmt.Errorf("%w: entry %d is asked for, the last one is %d", ErrBeyond, sequence, e.Last)
	}
	return e.CheckFrom(sequence)
}
