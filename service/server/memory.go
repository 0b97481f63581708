package server

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"vitrine/service/budget"
	"vitrine/service/setup"
)

// memoryPatience is how long a request waits for memory that other requests hold.
const memoryPatience = time.Second

// take takes memory from the budget until the call is answered.
func (c *call) take(p budget.Purpose, bytes int64) error {
	err := c.server.options.Budget.Take(c.Context(), p, bytes, memoryPatience)
	switch {
	case err == nil:
		c.taken[p] += bytes
	case errors.Is(err, budget.ErrNever):
		return problemf(http.StatusRequestEntityTooLarge, "memory", "the request may need %s: send fewer items or a shorter body, lower the columns or the memory of placements, or give the service more, in [limits] memory", err)
	case errors.Is(err, budget.ErrBusy):
		return problemf(http.StatusServiceUnavailable, "busy", "%s", err)
	}
	return err
}

// Reserve takes memory for the work on the request, which holds its body too, in place of what was taken for
// the work before.
func (c *call) Reserve(bytes int64) error {
	c.keep(budget.Work, 0)
	return c.take(budget.Work, bytes+c.taken[budget.Body])
}

// keep returns all but some bytes of the memory taken for a purpose.
func (c *call) keep(p budget.Purpose, bytes int64) {
	if rest := c.taken[p] - bytes; rest > 0 {
		c.server.options.Budget.Give(p, rest)
		c.taken[p] = bytes
	}
}

// maxPooled limits the memory of a request that is kept for reuse, in bytes.
const maxPooled = 8 << 20

// maxItems returns an upper bound on the number of items of a request that is not read yet: each item is an object.
func maxItems(body []byte, c *setup.Config) int {
	return min(bytes.Count(body, []byte{'{'}), c.MaxItems)
}
