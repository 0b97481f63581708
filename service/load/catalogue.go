package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"vitrine/service/api"
	"vitrine/service/client"
)

// stock makes the requests of a world with items in the service's catalogue: they carry a user's features.
func (w *world) stock(o *Options, rng *rand.Rand) error {
	weights := make([]float64, o.User)
	for j := range weights {
		weights[j] = 0.5 * rng.NormFloat64() / math.Sqrt(float64(o.User))
	}
	for range numSets {
		set := candidates{shift: meanUtility}
		r := &api.Request{MaxSize: o.Size}
		for j, weight := range weights {
			v := rounded(rng.NormFloat64())
			r.User = append(r.User, api.Number(userName(j), v))
			set.shift += weight * v
		}
		var err error
		if set.request, err = client.Prepare(r); err != nil {
			return err
		}
		w.sets = append(w.sets, set)
	}
	return nil
}

func userName(j int) string { return fmt.Sprintf("u%d", j) }

// push puts the items into the catalogue, unless it already holds as many. If it holds more, push returns an error: the
// service would show these too, and the shoppers take only items that they know.
func (w *world) push(ctx context.Context, c *client.Client, o *Options) error {
	stats, err := c.Stats(ctx, o.Placement)
	if err != nil || stats.Items == o.Items {
		return err
	}
	if stats.Items > o.Items {
		return fmt.Errorf("placement %q: %w: its catalogue holds %d items, and the shoppers know only %d", o.Placement,
			ErrPlacement, stats.Items, o.Items)
	}
	if o.Note != nil {
		o.Note(fmt.Sprintf("putting %d items into the catalogue of %q", o.Items, o.Placement))
	}
	items := make([]api.CatalogueItem, 0, client.ItemsChunk)
	for i := range o.Items {
		item := api.CatalogueItem{ID: itemName(i), Revenue: &w.items.Revenue[i]}
		for j, v := range w.items.Features.RawRowView(i) {
			item.Features = append(item.Features, api.Number(featureName(j), v))
		}
		if items = append(items, item); len(items) == cap(items) || i == o.Items-1 {
			if _, err := c.PutItems(ctx, o.Placement, items); err != nil {
				return fmt.Errorf("the items cannot be put into the catalogue of %q: %w", o.Placement, err)
			}
			items = items[:0]
		}
	}
	return nil
}
