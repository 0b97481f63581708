package api

import (
	"context"
	"net/url"
)

// Route is a route that package server serves for another package. The answer is JSON, an [SVG], or nil if it is empty.
type Route struct {
	Pattern string // as in http.ServeMux, with a method
	Handle  func(Call) (answer any, err error)
}

// Call is an admitted request.
type Call interface {
	Context() context.Context
	PathValue(name string) string

	// Decode decodes the JSON body and ignores unknown keys.
	Decode(body any) error
}

// SVG is a picture.
type SVG []byte

// PlacementPath returns the path of a placement.
func PlacementPath(name string) string { return "/v1/placements/" + url.PathEscape(name) }

// DecisionPath returns the path of a decision.
func DecisionPath(placement, id string) string {
	return PlacementPath(placement) + "/decisions/" + url.PathEscape(id)
}

// EntryHeader is the header of a change's answer that names the last entry of the log, as the process knows it.
const EntryHeader = "Vitrine-Entry"
