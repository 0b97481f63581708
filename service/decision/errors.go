package decision

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrInvalid is of a configuration or a request that breaks a rule. Its
	// errors are of type *FieldError.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound is of a placement, a decision or a version that is not there. A
	// decision is forgotten some time after its outcome.
	ErrNotFound = errors.New("not found")
	// ErrConflict is of a decision's id that has stood for another request in its placement, and of
	// an outcome other than the one there is.
	ErrConflict = errors.New("conflict")
	// ErrAmbiguous is returned for a decision that is named without its placement, if several placements have one of
	// this id.
	ErrAmbiguous = errors.New("several placements have a decision of this id")
	// ErrSchema is returned for a request that was made by another schema than the placement has now.
	ErrSchema = errors.New("the placement's features have changed meanwhile")
	// ErrNotShown is of an outcome that names an item that the decision did not show.
	ErrNotShown = errors.New("the item was not shown")
	// ErrLate is of an outcome or an activation after the attribution window: the round has
	// counted as the outside option, or for nothing where the decision was deferred.
	ErrLate = errors.New("the decision has expired")
	// ErrEvicted is of an outcome or an activation of a decision that left memory before its attribution window
	// was over: nothing was learned from it.
	ErrEvicted = errors.New("the placement's memory was too small to wait for the outcome")
	// ErrBehind is of what a learner that lags has no room for. Nothing has
	// changed, and trying again later may succeed.
	ErrBehind = errors.New("the learner is behind")
	// ErrPolicy is of a policy that panics or breaks the constraints.
	ErrPolicy = errors.New("the policy failed")
	// ErrStopped is of an engine that is closed, or that cannot write its log and must be
	// opened again.
	ErrStopped = errors.New("the engine has stopped")
)

// FieldError says what is wrong with a field of a configuration or a request.
type FieldError struct {
	Field   string // a JSON pointer, "/items/3/id"; "" is the whole
	Message string
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// Is makes every field error an ErrInvalid.
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

func fieldf(field, format string, args ...any) error {
	const most = 500 // bytes of what may come from a caller
	return &FieldError{abbreviate(field, most), abbreviate(fmt.Sprintf(format, args...), most)}
}

// abbreviate cuts what is longer than so many bytes.
func abbreviate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
