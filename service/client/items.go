package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"vitrine/service/api"
)

const asLines = "application/x-ndjson"

// PutItems puts items into a placement's catalogue, replacing known ids. It sends one request, and splits the items only if
// the service answers that the request is too large. The service stores the items of a request in chunks, each completely or
// not at all: see [ItemsChunk]. After an error the earlier chunks stay, and PutItems of the same items finishes the work. If
// the items were split, the error says which of them were in the failed request, and its [api.Problem] counts from the first
// of them.
func (c *Client) PutItems(ctx context.Context, placement string, items []api.CatalogueItem) (*api.ItemsChanged, error) {
	return c.changeItems(ctx, "PUT", placement, items)
}

// PatchItems changes the given fields of items: see [api.CatalogueItem]. Features, attributes and the members of a payload
// are merged by name.
func (c *Client) PatchItems(ctx context.Context, placement string,
	items []api.CatalogueItem) (*api.ItemsChanged, error) {
	return c.changeItems(ctx, "PATCH", placement, items)
}

// ItemsChunk is a good number of items for one request: with records of at most 250 bytes each, they are one entry of
// the log.
const ItemsChunk = 1000

func (c *Client) changeItems(ctx context.Context, method, placement string,
	items []api.CatalogueItem) (*api.ItemsChanged, error) {
	maxBody := math.MaxInt
	sum := new(api.ItemsChanged)
	for done := 0; ; {
		var body bytes.Buffer
		n := done
		for ; n < len(items); n++ {
			before := body.Len()
			if err := json.MarshalWrite(&body, &items[n]); err != nil {
				return nil, fmt.Errorf("client: item %d cannot be written: %w", n, err)
			}
			if body.WriteByte('\n'); body.Len() > maxBody && n > done {
				body.Truncate(before)
				break
			}
		}
		a, err := receive[api.ItemsChanged](ctx, c, method, itemsPath(placement),
			payload{mediaType: asLines, rest: body.Bytes()})
		if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusRequestEntityTooLarge && n > done+1 {
			maxBody = body.Len() / 2
			continue
		}
		if err != nil && n-done < len(items) {
			err = fmt.Errorf("in the request of %d items after the first %d: %w", n-done, done, err)
		}
		if err != nil {
			return nil, err
		}
		sum.Add(a)
		if done = n; done == len(items) {
			return sum, nil
		}
	}
}

// DeleteItems deletes items from the catalogue of a placement.
func (c *Client) DeleteItems(ctx context.Context, placement string, ids []string) (*api.ItemsChanged, error) {
	return exchange[api.ItemsChanged](ctx, c, "DELETE", itemsPath(placement), api.ItemIDs{IDs: ids})
}

// Items returns a page of the catalogue that a placement uses, at most limit items from a place on.
func (c *Client) Items(ctx context.Context, placement string, from, limit int) (*api.ItemPage, error) {
	return get[api.ItemPage](ctx, c, fmt.Sprintf("%s?from=%d&limit=%d", itemsPath(placement), from, limit))
}

// Item returns an item of the catalogue that a placement uses.
func (c *Client) Item(ctx context.Context, placement, id string) (*api.CatalogueItem, error) {
	return get[api.CatalogueItem](ctx, c, itemsPath(placement)+"/"+url.PathEscape(id))
}

func itemsPath(placement string) string { return api.PlacementPath(placement) + "/items" }
