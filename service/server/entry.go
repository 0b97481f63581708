package server

import (
	"net/http"
	"strconv"
)

// entryHeader is the header of answers to changes: the entry of the log that has the change.
const entryHeader = "Vitrine-Entry"

// writes reports whether the route changes the state.
func (rt *route) writes() bool {
	return rt.method != http.MethodGet && rt.scope != "" && rt.scope != ScopeRead
}

// nameEntry sets the header of an answer to a change.
func (c *call) nameEntry(status int) {
	if c.entry > 0 && status < 300 {
		c.w.Header()[entryHeader] = []string{strconv.FormatUint(c.entry, 10)}
	}
}
