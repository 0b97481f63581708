package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"vitrine/service/api"
)

// entryHeader is the header of answers to changes: the entry of the log that has the change.
const entryHeader = "Vitrine-Entry"

// maxEntryWait is how long a read waits for an entry.
const maxEntryWait = 2 * time.Second

// entryParameter is the parameter of reads that have to show what their caller has written.
var entryParameter = parameter{"entry", "an entry of the log, from the header " + entryHeader + " of an answer: the answer to this request is from a state that has it. 503 with the problem lag if this process does not have it within two seconds"}

// reads reports whether the route reads the state, and takes an entry to wait for.
func (rt *route) reads() bool {
	return rt.scope == ScopeRead && rt.id != "" && !rt.stream && rt.contract == nil
}

// awaitEntry waits until the state has the entry that the query names, if it names one.
func (s *Server) awaitEntry(c *call) error {
	if c.URL.RawQuery == "" {
		return nil
	}
	text := c.URL.Query().Get(entryParameter.name)
	if text == "" {
		return nil
	}
	entry, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return api.Fieldf("/entry", "%q: must be a whole number, the header %s of an answer", api.Abbreviate(text, 40), entryHeader)
	}
	ctx, cancel := context.WithTimeout(c.Context(), maxEntryWait)
	defer cancel()
	err = s.engine.Reach(ctx, entry)
	if errors.Is(err, context.DeadlineExceeded) {
		return problemf(http.StatusServiceUnavailable, "lag", "entry %d is not part of the state of this process, which is at entry %d: try again, or ask the process that wrote it", entry, s.engine.Sequence())
	}
	return err
}

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
