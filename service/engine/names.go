package engine

import (
	"context"
	"errors"
	"fmt"

	"vitrine/service/eventlog"
	"vitrine/service/state"
)

// The types of package state that callers of an engine meet.
type (
	Change    = state.Change
	Decision  = state.Decision
	Log       = eventlog.Log
	LossError = state.LossError
	Match     = state.Match
	View      = state.View
)

// The errors of package state that callers of an engine get.
var (
	ErrNotFound   = state.ErrNotFound
	ErrConflict   = state.ErrConflict
	ErrNotShown   = state.ErrNotShown
	ErrLate       = state.ErrLate
	ErrWithdrawn  = state.ErrWithdrawn
	ErrEvicted    = state.ErrEvicted
	ErrLoss       = state.ErrLoss
	ErrRelearning = state.ErrRelearning
	ErrExperiment = state.ErrExperiment
	ErrUnread     = state.ErrUnread
)

var (
	// ErrNotReady is returned for accepting a second learner that cannot decide yet.
	ErrNotReady = errors.New("the second learner cannot decide before it has read the log, nor while an alarm holds " +
		"rounds back: accept it later")
	// ErrMemory is returned for a placement that does not fit into the memory of the service.
	ErrMemory = errors.New("the service has too little memory")
	// ErrFollower is returned for a change by an engine that follows its log, which another process writes.
	ErrFollower = errors.New("this process follows the log, and another one writes it")
	// ErrNoLeader is returned for a decision or an outcome while no process writes the log, or this one cannot reach it.
	// The decision or outcome may be recorded nevertheless: ask again, under the same id.
	ErrNoLeader = errors.New("no process that writes the log can be reached at present")
	// ErrUnanswered is returned for a change that was passed on to the leader and not answered. Made twice, it may do
	// harm.
	ErrUnanswered = errors.New("the process that writes the log has not answered, and the change may have been made: " +
		"look before you repeat it")
	// ErrStopped is returned by an engine that is closed, or that cannot write its log and must be opened
	// again.
	ErrStopped = errors.New("the engine has stopped")
	// ErrKeys is returned while shoppers' keys cannot be read or written.
	ErrKeys = errors.New("shoppers' keys cannot be read or written")
)

// UnfinishedError is returned for a change whose caller's time ran out.
type UnfinishedError struct {
	What string // whether the change was made, as far as it is known
	Err  error  // the context's error
}

func (e *UnfinishedError) Error() string { return fmt.Sprintf("%v: %s", e.Err, e.What) }

// Unwrap returns the error of the context.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// unfinished returns err, with its consequence if the caller's time ran out.
func unfinished(err error, what string) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &UnfinishedError{what, err}
	}
	return err
}
