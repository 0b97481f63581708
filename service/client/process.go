package client

import (
	"context"

	"vitrine/service/api"
)

// Process says what the process that answers does with its log. One that takes no requests, because it is starting,
// ending or far behind the log, is a problem.
func (c *Client) Process(ctx context.Context) (*api.Process, error) {
	return get[api.Process](ctx, c, "/readyz")
}
