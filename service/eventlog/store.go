// Package eventlog is the durable log of the decision service: its events, their
// encoding, and the Store that keeps them. docs/eventlog-format.md has every
// byte.
//
// A store keeps entries, which are bytes, and numbers them 1, 2, 3, ... without
// a hole: the sequence. State is a fold of the entries in their order.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Store is a log of entries with one writer. It is safe for concurrent use.
//
// A store that cannot tell what became of an entry, because the disk is full or
// the server does not answer, refuses all later appends with ErrReopen; what it
// holds is seen by opening it again.
type Store interface {
	// Append adds the entries at the end, next to one another and all or none, and returns
	// the sequence of the last. After a nil error they survive a crash. No
	// entries append nothing and return the sequence of the last entry there is.
	//
	// Errors are ErrTooLarge, ErrFenced, ErrReadOnly, ErrReopen, ErrClosed, or that of ctx:
	// one that wraps ErrUnknown or ErrReopen leaves open whether the entries
	// are in the log, after all others they are not.
	Append(ctx context.Context, entries ...[]byte) (last uint64, err error)

	// Entries yields the entries from a sequence on, up to the last that was
	// acknowledged when the iteration began. They are not to be changed. An
	// error is yielded once, and last: ErrRemoved, ErrBeyond, ErrClosed, a
	// *DamageError, or that of ctx.
	Entries(ctx context.Context, from uint64) iter.Seq2[[]byte, error]

	// Position returns the position after an entry that the log has, or after the one before its first. Its
	// identity is zero where the entry is older than the log's identity. Other errors are those of Entries.
	Position(ctx context.Context, sequence uint64) (Position, error)

	// Close waits for the entries under way. Later calls of the other methods
	// give ErrClosed.
	Close() error
}

// Reader is a store that reads single entries.
type Reader interface {
	// Entry returns an entry that was acknowledged. It is not to be changed. Errors are those of Store.Entries.
	Entry(ctx context.Context, sequence uint64) ([]byte, error)
}

// Extent is what a store holds: entries [First, Last], none where Last is
// First − 1, in about so many bytes.
type Extent struct {
	First, Last uint64
	Bytes       uint64
}

// Bounded is a store that knows its extent.
type Bounded interface {
	Extent(ctx context.Context) (Extent, error)
}

// Truncater is a store that forgets its oldest entries.
type Truncater interface {
	// TruncateBefore removes entries before a sequence, which is at most that
	// after the last. A store may keep some of them, never remove one more, and one
	// that has been fenced removes none: ErrFenced. Others are ErrHeld and ErrReadOnly.
	TruncateBefore(ctx context.Context, sequence uint64) error

	// FirstSince returns a sequence, all entries before which come before the first that is new.
	// Entries are asked by bisection: once one is new, later ones are taken to be. A store may
	// answer with an entry that comes some before the first new one.
	FirstSince(ctx context.Context, isNew func(entry []byte) (bool, error)) (sequence uint64, err error)

	// FirstWithin returns the sequence of the first entry from which on the log has at most so many
	// bytes, by the measure of Extent. It reads what comes before.
	FirstWithin(ctx context.Context, bytes uint64) (sequence uint64, err error)
}

var (
	// ErrTooLarge is of entries that do not fit into one frame.
	ErrTooLarge = errors.New("eventlog: entries are too large for one append")
	// ErrFenced is of a writer after another one has taken the log over.
	ErrFenced = errors.New("eventlog: another writer has taken the log over")
	// ErrAlive is returned when a log is opened while another process writes it.
	ErrAlive = errors.New("eventlog: another process writes the log")
	// ErrLost is returned by a writer whose log was moved or removed.
	ErrLost = errors.New("eventlog: the log is not where it was opened")
	// ErrReopen is of a writer that does not know where the log ends.
	ErrReopen = errors.New("eventlog: the log must be opened again")
	// ErrUnknown is of an append given up while it was under way.
	ErrUnknown = errors.New("eventlog: it is not known whether the entries are in the log")
	// ErrRemoved is of entries that the log no longer has.
	ErrRemoved = errors.New("eventlog: entries were removed")
	// ErrBeyond is of entries that the log does not have yet.
	ErrBeyond = errors.New("eventlog: the log ends before")
	// ErrHeld is of a removal while somebody copies the log.
	ErrHeld = errors.New("eventlog: a copy of the log is being made")
	// ErrReadOnly is of an append to a log opened for reading.
	ErrReadOnly = errors.New("eventlog: the log is open for reading only")
	// ErrClosed is of a closed store.
	ErrClosed = errors.New("eventlog: the log is closed")
)

// DamageError says that a log is unreadable from an entry on. Those before are
// sound.
type DamageError struct {
	Sequence uint64
	Err      error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("eventlog: the log cannot be read from entry %d on: %v", e.Sequence, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// CheckFrom reports ErrRemoved or ErrBeyond where entries cannot be read from a
// sequence on; the one after the last reads nothing.
func (e Extent) CheckFrom(sequence uint64) error {
	switch {
	case sequence < e.First:
		return fmt.Errorf("%w: entry %d is asked for, the first one left is %d", ErrRemoved, sequence, e.First)
	case sequence > e.Last+1:
		return fmt.Errorf("%w: entry %d is asked for, the last one is %d", ErrBeyond, sequence, e.Last)
	}
	return nil
}

// CheckEntry reports ErrRemoved or ErrBeyond for an entry that is not there.
func (e Extent) CheckEntry(sequence uint64) error {
	if sequence == e.Last+1 {
		return fmt.Errorf("%w: entry %d is asked for, the last one is %d", ErrBeyond, sequence, e.Last)
	}
	return e.CheckFrom(sequence)
}
