package state

import (
	"errors"
	"fmt"
	"strings"

	"vitrine/internal/hint"
	"vitrine/service/api"
)

var (
	// ErrNotFound is returned for an unknown placement or version, and for an unknown or forgotten decision.
	ErrNotFound = errors.New("not found")
	// ErrConflict is returned for a decision id that another request of the placement used, and for an outcome that
	// differs from the recorded one.
	ErrConflict = errors.New("conflict")
	// ErrNotShown is returned for an outcome with an item that the decision did not show.
	ErrNotShown = errors.New("the item was not shown")
	// ErrLate says that an outcome came after its decision ended. The outcome is recorded, and its revenue counts.
	ErrLate = errors.New("the outcome came too late to be learned: its revenue counts")
	// ErrWithdrawn is returned for an activation after the attribution window.
	ErrWithdrawn = errors.New("the decision was activated too late, and is withdrawn")
	// ErrEvicted is returned for an activation, or for the outcome of a forgotten decision, if memory or retention
	// ended the decision before its attribution window did. The decision taught nothing.
	ErrEvicted = errors.New("the placement's memory or the log was too small to wait for the outcome")
	// ErrLoss is wrapped by every *LossError.
	ErrLoss = errors.New("the learner would begin again")
	// ErrRelearning is returned for a change of a placement while its second learner is catching up.
	ErrRelearning = errors.New("a relearning is under way: wait until it has ended, or put the configuration that " +
		"the placement has, which gives it up")
	// ErrExperiment is returned for a change that a running experiment does not allow.
	ErrExperiment = errors.New("an experiment is under way: end it first, by a PUT with another mode")
	// ErrUnread is returned if the log cannot be read back now. The state is unchanged; a later attempt may succeed.
	ErrUnread = errors.New("the log could not be read")
)

// With these errors and page.ErrStale the writer refuses a proposal for now: its caller tries again, or makes room.
var (
	ErrRetryBatch  = errors.New("not in this batch")
	ErrSame        = errors.New("nothing changes")
	ErrExpireFirst = errors.New("a decision has to expire first")
	ErrBehind      = errors.New("the learner is behind") // its queue is full: an import waits
)

// LossError is returned for a change that would restart a placement's learner, unless the caller permits that.
type LossError struct {
	Placement string
	Fields    []string // that the learner depends on, and that would change
	MaxSize   int      // the new size if it is smaller, otherwise 0: the new learner skips larger sets
	OtherRows bool     // whether the new features make other rows than the log's, so that a learner cannot learn from the log
	api.Loss

	Experiment string   // that would end; "" if the learner of the placement would begin again
	Variants   []string // variants that would lose their learners
}

func (e *LossError) Error() string {
	if e.Experiment != "" {
		return fmt.Sprintf("placement %q: the experiment %q would end, and the %s that the learners of its "+
			"variants %q have learned would be forgotten", e.Placement, e.Experiment,
			hint.Count(int(e.Rounds), "round"), e.Variants)
	}
	return fmt.Sprintf("placement %q: %v and forget the %s that it has learned, because it depends on %s",
		e.Placement, ErrLoss, hint.Count(int(e.Rounds), "round"), strings.Join(e.Fields, ", "))
}

// Unwrap returns ErrLoss.
func (e *LossError) Unwrap() error { return ErrLoss }

// UnknownPlacement returns the error of a placement that is not there.
func UnknownPlacement(name string) error { return fmt.Errorf("placement %q: %w", name, ErrNotFound) }
