package engine

import "vitrine/service/state"

// The types of package state that callers of an engine meet.
type (
	Change    = state.Change
	Decision  = state.Decision
	Log       = state.Log
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
