package client

import (
	"context"

	"vitrine/service/api"
)

// Process returns the answering process's part in its log. A process that takes no requests, because it is starting,
// ending or far behind the log, is a problem.
func (c *Client) Process(ctx context.Context) (*api.Process, error) {
	return get[api.Process](ctx, c, "/readyz")
}
